//! Error of a loop that cannot start or continue.

use rustix::io::Errno;

/// Error of a loop that cannot start or continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the event loop cannot {operation} (errno {errno})")]
pub struct LoopError {
    /// The operation that failed.
    pub operation: &'static str,
    /// The kernel's error.
    pub errno: i32,
}

impl LoopError {
    pub(crate) fn of(operation: &'static str, errno: Errno) -> Self {
        Self {
            operation,
            errno: errno.raw_os_error(),
        }
    }
}
