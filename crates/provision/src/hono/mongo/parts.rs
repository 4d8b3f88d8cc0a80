//! Sizes of the requests to the database.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::ProvisionError;

/// Documents of a batch: a few hundred kilobytes, well below what one message of the database holds.
pub(super) const BATCH: usize = 1_000;
/// Divisor of the size after a request that was not answered in time.
const SMALLER: usize = 4;

/// Parts of batches, as large as the database has managed in time until now.
pub(super) struct Parts {
    size: AtomicUsize,
}

impl Parts {
    pub(super) const fn new() -> Self {
        Self {
            size: AtomicUsize::new(BATCH),
        }
    }

    /// Does the work on all in parts, in their order. One that is late is done again in smaller ones, so
    /// the work must stand being repeated.
    ///
    /// # Errors
    /// [`ProvisionError::Late`] if one thing by itself is late, and every other error of the work.
    pub(super) fn each<T>(
        &self,
        all: &[T],
        mut work: impl FnMut(&[T]) -> Result<(), ProvisionError>,
    ) -> Result<(), ProvisionError> {
        let mut rest = all;
        while !rest.is_empty() {
            let size = self.size.load(Ordering::Relaxed);
            let (part, after) = rest.split_at(size.min(rest.len()));
            match work(part) {
                Ok(()) => rest = after,
                Err(ProvisionError::Late { .. }) if part.len() > 1 => self.shrink(part.len()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Of threads that were late at the same time only one makes it smaller.
    fn shrink(&self, late: usize) {
        let size = (late / SMALLER).max(1);
        self.size.fetch_min(size, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A server that manages so many things in time.
    fn server(
        manages: usize,
        done: &mut Vec<usize>,
    ) -> impl FnMut(&[usize]) -> Result<(), ProvisionError> {
        move |part: &[usize]| {
            if part.len() > manages {
                return Err(ProvisionError::Late {
                    call: "find".to_owned(),
                    timeout: Duration::from_secs(10),
                });
            }
            done.extend(part);
            Ok(())
        }
    }

    /// Law: whatever the server manages, each thing is done once and in its order.
    #[test]
    fn what_is_late_is_done_in_smaller_parts() {
        let all: Vec<usize> = (0..BATCH).collect();
        for manages in [1, 2, 17, 250, 999, BATCH] {
            let mut done = Vec::new();
            let all_of_it = Parts::new().each(&all, server(manages, &mut done));
            all_of_it.expect("each by itself is in time");
            assert_eq!(done, all, "{manages}");
        }
    }

    #[test]
    fn what_was_learnt_holds_for_the_next_batch() {
        let (parts, mut calls) = (Parts::new(), Vec::new());
        for _ in 0..2 {
            let mut done = Vec::new();
            let mut server = server(250, &mut done);
            let all_of_it = parts.each(&[0; BATCH], |part| {
                calls.push(part.len());
                server(part)
            });
            all_of_it.expect("parts of 250 are in time");
        }
        assert_eq!(calls, [1_000, 250, 250, 250, 250, 250, 250, 250, 250]);
    }

    #[test]
    fn one_that_is_late_by_itself_is_an_error() {
        let late = Parts::new().each(&[1, 2, 3], server(0, &mut Vec::new()));
        let shown = late.expect_err("nothing is in time").to_string();
        assert!(shown.contains("no answer within 10 s"), "{shown}");
        assert!(shown.contains("`provision.timeout`"), "{shown}");
    }
}
