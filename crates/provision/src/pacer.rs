//! Calls at a bounded rate.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use muster_model::{Micros, Rate};
use muster_net::Clock;

use crate::{ProvisionError, Watch};

/// Longest sleep of a thread before it checks for the end.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Gives each call its turn: never two within one period.
#[derive(Debug)]
pub(crate) struct Pacer {
    clock: Clock,
    period: Micros,
    next: Mutex<Micros>,
}

impl Pacer {
    /// Returns a pacer of `rate` calls a second, above zero.
    pub(crate) fn new(rate: Rate) -> Self {
        Self {
            clock: Clock::start(),
            period: Micros(((1e6 / rate.get()).ceil() as u64).max(1)),
            next: Mutex::new(Micros::ZERO),
        }
    }

    /// Waits for the caller's turn.
    ///
    /// # Errors
    /// [`ProvisionError::Interrupted`] if it is to stop first.
    pub(crate) fn wait(&self, watch: &dyn Watch) -> Result<(), ProvisionError> {
        let turn = self.turn(self.clock.now());
        loop {
            if watch.is_over() {
                return Err(ProvisionError::Interrupted);
            }
            let left = turn.get().saturating_sub(self.clock.now().get());
            if left == 0 {
                return Ok(());
            }
            std::thread::sleep(Duration::from_micros(left).min(LOOK_EVERY));
        }
    }

    /// The next turn that nobody has. What was not used is not made up for.
    fn turn(&self, now: Micros) -> Micros {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = now.max(*next);
        *next = turn + self.period;
        turn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_are_a_period_apart_and_idle_time_is_not_made_up_for() {
        let pacer = Pacer::new(Rate::per_second(10.0).expect("a rate"));
        let turns = [0, 0, 0, 1_000_000, 1_000_000].map(|now| pacer.turn(Micros(now)).get());
        assert_eq!(turns, [0, 100_000, 200_000, 1_000_000, 1_100_000]);
    }

    #[test]
    fn calls_never_come_faster_than_the_rate_says() {
        for rate in [3.0, 7.0, 300_000.0, 600_000.0, 3e6] {
            let pacer = Pacer::new(Rate::per_second(rate).expect("a rate"));
            let period = pacer.period.get();
            assert!(period as f64 * rate >= 1e6, "{period} us at {rate}/s");
        }
    }
}
