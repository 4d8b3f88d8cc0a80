//! Work that several threads share.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::{Tally, Watch};

/// Work to do, and its progress.
pub(crate) struct Work<'a> {
    pub(crate) watch: &'a dyn Watch,
    of: u64,
    done: AtomicU64,
    tally: Mutex<Tally>,
}

impl<'a> Work<'a> {
    pub(crate) fn new(watch: &'a dyn Watch, of: u64) -> Self {
        Self {
            watch,
            of,
            done: AtomicU64::new(0),
            tally: Mutex::default(),
        }
    }

    pub(crate) fn done(&self, note: impl FnOnce(&mut Tally)) {
        self.done_all(1, note);
    }

    /// Notes that `things` are done at once.
    pub(crate) fn done_all(&self, things: u64, note: impl FnOnce(&mut Tally)) {
        note(&mut self.locked());
        let done = self.done.fetch_add(things, Ordering::Relaxed) + things;
        self.watch.progress(done, self.of);
    }

    fn locked(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn tally(&self) -> Tally {
        self.locked().clone()
    }
}
