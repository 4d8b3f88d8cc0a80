//! Locks of what the gateway's threads share.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Takes a lock; a thread that panicked while holding it leaves counts that still add up.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
