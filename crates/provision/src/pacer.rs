//! Calls at a bounded rate, which a platform's limit may lower.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use muster_model::{Micros, Rate};
use muster_net::Clock;

use crate::{ProvisionError, Watch};

/// Longest sleep of a thread before it checks for the end.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Pause of all calls after a refusal for their rate: limits count in windows of a second at the least.
const PAUSE: Micros = Micros(1_000_000);
/// Period of the lowest rate that refusals lead to.
const SLOWEST: Micros = Micros(10_000_000);

/// Gives each call its turn: never two within one period.
#[derive(Debug)]
pub(crate) struct Pacer {
    clock: Clock,
    turns: Mutex<Turns>,
}

#[derive(Debug)]
struct Turns {
    period: Micros,
    next: Micros,
    /// Instant of the last slowdown.
    slowed: Micros,
}

impl Pacer {
    /// Returns a pacer of `rate` calls a second, above zero.
    pub(crate) fn new(rate: Rate) -> Self {
        Self {
            clock: Clock::start(),
            turns: Mutex::new(Turns {
                period: Micros(((1e6 / rate.get()).ceil() as u64).max(1)),
                next: Micros::ZERO,
                slowed: Micros::ZERO,
            }),
        }
    }

    pub(crate) fn now(&self) -> Micros {
        self.clock.now()
    }

    /// Halves the rate and pauses all calls after a call that was sent at that instant was refused for the rate.
    /// Of several calls that were under way, the first one counts. Returns the new rate in calls a second if it
    /// changed.
    pub(crate) fn slow_down(&self, sent: Micros) -> Option<f64> {
        self.turns().slow_down(sent, self.clock.now())
    }

    /// Waits for the caller's turn.
    ///
    /// # Errors
    /// [`ProvisionError::Interrupted`] if it is to stop first.
    pub(crate) fn wait(&self, watch: &dyn Watch) -> Result<(), ProvisionError> {
        let turn = self.turns().turn(self.clock.now());
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

    /// Gives nobody a turn for that time: a platform that says nothing by itself is asked again after it.
    pub(crate) fn rest(&self, time: Micros) {
        let from = self.clock.now() + time;
        let mut turns = self.turns();
        turns.next = turns.next.max(from);
    }

    fn turns(&self) -> MutexGuard<'_, Turns> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Turns {
    /// The next turn that nobody has. What was not used is not made up for.
    fn turn(&mut self, now: Micros) -> Micros {
        let turn = now.max(self.next);
        self.next = turn + self.period;
        turn
    }

    fn slow_down(&mut self, sent: Micros, now: Micros) -> Option<f64> {
        if sent < self.slowed {
            return None;
        }
        self.slowed = now + Micros(1);
        self.next = self.next.max(now + PAUSE);
        self.period = Micros(self.period.get() * 2).min(SLOWEST);
        Some(1e6 / self.period.get() as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_are_a_period_apart_and_idle_time_is_not_made_up_for() {
        let pacer = Pacer::new(Rate::per_second(10.0).expect("a rate"));
        let turns =
            [0, 0, 0, 1_000_000, 1_000_000].map(|now| pacer.turns().turn(Micros(now)).get());
        assert_eq!(turns, [0, 100_000, 200_000, 1_000_000, 1_100_000]);
    }

    #[test]
    fn a_rest_delays_the_next_turn_and_never_moves_it_forward() {
        let pacer = Pacer::new(Rate::per_second(1.0).expect("a rate"));
        let now = pacer.now();
        pacer.rest(Micros::from_secs(60));
        pacer.rest(Micros::from_secs(30));
        let turn = pacer.turns().turn(now);
        assert!(turn >= now + Micros::from_secs(60), "{turn:?}");
    }

    #[test]
    fn calls_never_come_faster_than_the_rate_says() {
        for rate in [3.0, 7.0, 300_000.0, 600_000.0, 3e6] {
            let pacer = Pacer::new(Rate::per_second(rate).expect("a rate"));
            let period = pacer.turns().period.get();
            assert!(period as f64 * rate >= 1e6, "{period} us at {rate}/s");
        }
    }

    /// Law: refusals of calls that were under way together lower the rate once, and it has a bottom.
    #[test]
    fn a_refusal_for_the_rate_halves_it_once() {
        let pacer = Pacer::new(Rate::per_second(100.0).expect("a rate"));
        let mut turns = pacer.turns();
        let slow = |turns: &mut Turns, sent, now| turns.slow_down(Micros(sent), Micros(now));
        assert_eq!(slow(&mut turns, 900, 1_000), Some(50.0));
        assert_eq!(slow(&mut turns, 1_000, 1_100), None, "it was under way");
        assert_eq!(turns.turn(Micros(1_200)), Micros(1_001_000));
        assert_eq!(turns.turn(Micros(1_200)), Micros(1_021_000));
        for again in 1..20 {
            let at = again * 2_000_000;
            assert!(slow(&mut turns, at, at + 1).is_some());
        }
        assert_eq!(turns.period, SLOWEST);
    }
}
