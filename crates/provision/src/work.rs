//! Work that several threads share.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::{Summary, Watch};

pub(crate) struct Work<'a> {
    pub(crate) watch: &'a dyn Watch,
    of: u64,
    done: AtomicU64,
    summary: Mutex<Summary>,
}

impl<'a> Work<'a> {
    pub(crate) fn new(watch: &'a dyn Watch, of: u64) -> Self {
        Self {
            watch,
            of,
            done: AtomicU64::new(0),
            summary: Mutex::default(),
        }
    }

    pub(crate) fn done(&self, note: impl FnOnce(&mut Summary)) {
        self.done_all(1, note);
    }

    /// Notes that `things` are done at once.
    pub(crate) fn done_all(&self, things: u64, note: impl FnOnce(&mut Summary)) {
        note(&mut self.locked());
        let done = self.done.fetch_add(things, Ordering::Relaxed) + things;
        self.watch.progress(done, self.of);
    }

    fn locked(&self) -> MutexGuard<'_, Summary> {
        self.summary.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn summary(&self) -> Summary {
        self.locked().clone()
    }
}
