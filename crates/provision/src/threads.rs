//! Threads that work through a list side by side.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{Builder, scope};

use crate::ProvisionError;

/// Does the work for each item on this number of threads; the first error ends it.
///
/// # Errors
/// The first error.
pub(crate) fn each<T: Send>(
    items: impl Iterator<Item = T> + Send,
    threads: u16,
    work: impl Fn(T) -> Result<(), ProvisionError> + Sync,
) -> Result<(), ProvisionError> {
    let items = Mutex::new(items);
    let failed = Mutex::new(None);
    let is_over = AtomicBool::new(false);
    let next = || items.lock().unwrap_or_else(PoisonError::into_inner).next();
    let run = || {
        while !is_over.load(Ordering::Relaxed)
            && let Some(item) = next()
        {
            if let Err(error) = work(item) {
                is_over.store(true, Ordering::Relaxed);
                let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
                failed.get_or_insert(error);
            }
        }
    };
    scope(|scope| {
        for number in 0..threads {
            let name = format!("provision-{number}");
            let started = Builder::new().name(name).spawn_scoped(scope, run);
            // With one thread the work gets done, only more slowly.
            if let (Err(error), 0) = (started, number) {
                return Err(ProvisionError::Thread(error));
            }
        }
        Ok(())
    })?;
    let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    failed.map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_item_is_worked_on_once() {
        let done = Mutex::new(Vec::new());
        each(0..1_000_u32, 8, |item| {
            done.lock().expect("no thread panics").push(item);
            Ok(())
        })
        .expect("nothing fails");
        let done = done.into_inner().expect("no thread panics");
        let distinct: BTreeSet<u32> = done.iter().copied().collect();
        assert_eq!((done.len(), distinct.len()), (1_000, 1_000));
    }

    #[test]
    fn an_error_ends_an_endless_list() {
        let failed = each(0_u64.., 4, |item| match item {
            100 => Err(ProvisionError::Interrupted),
            _ => Ok(()),
        });
        assert!(matches!(failed, Err(ProvisionError::Interrupted)));
    }
}
