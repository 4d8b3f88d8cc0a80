//! Waking a loop from another thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};

/// Makes a loop call [`crate::Handler::woken`], from any thread.
#[derive(Debug, Clone)]
pub struct Waker {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    fd: OwnedFd,
    pending: AtomicBool,
}

impl Waker {
    /// A waker of whoever waits at its descriptor.
    ///
    /// # Errors
    /// If no descriptor is left.
    pub fn new() -> rustix::io::Result<Self> {
        let fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self {
            shared: Arc::new(Shared {
                fd,
                pending: AtomicBool::new(false),
            }),
        })
    }

    /// Wakes the loop soon; costs no system call while an earlier call waits to be noticed.
    ///
    /// Everything that the caller wrote before is visible to the loop's thread in `woken`.
    pub fn wake(&self) {
        if !self.shared.pending.swap(true, Ordering::AcqRel) {
            // The counter cannot overflow: each write is followed by a wake-up before the next.
            let _ = rustix::io::write(&self.shared.fd, &1u64.to_ne_bytes());
        }
    }

    /// The event was seen: later calls of `wake` are for a later turn. The descriptor is watched
    /// edge-triggered, so it need not be read.
    pub(crate) fn noticed(&self) {
        self.shared.pending.swap(false, Ordering::AcqRel);
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.shared.fd.as_fd()
    }
}
