//! Why a loop cannot start or go on.

use rustix::io::Errno;

/// Why the loop cannot start or go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the event loop cannot {operation} (errno {errno})")]
pub struct LoopError {
    /// What it tried.
    pub operation: &'static str,
    /// What the kernel said.
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
