//! The turns of a loop's thread: when they began, which input they presented, and the wait for a CPU.

use muster_model::{Micros, Turn};

use crate::cpu_wait::{CpuWait, WaitsOf};

/// The shortest poll in which the loop may have slept, without the time that taking events needs.
const REST_LEAST: Micros = Micros(25);
/// Events that the kernel hands over in a microsecond, at the least.
const EVENTS_PER_US: u64 = 4;
/// Turns in a row after which the rest of the input is not waited for any more: with 1,024 events a
/// turn, each of 65,536 connections has had its turn by then.
const BEHIND_MAX: u32 = 64;

/// The turns of one loop.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    /// Instant at which the last poll returned.
    polled: Micros,
    /// Since when the loop has worked, or ought to have, without waiting for events.
    began: Micros,
    /// All that came until then has been presented.
    presented_until: Micros,
    /// Turns in a row in which not all that had come was presented.
    behind: u32,
    /// None where nobody asked for it.
    cpu_wait: Option<CpuWait>,
}

/// A wait for events.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Poll {
    /// Its start.
    pub(crate) asked: Micros,
    /// Its longest time; `Micros::MAX` for ever.
    pub(crate) wait: Micros,
}

impl Poll {
    fn until(&self) -> Micros {
        Micros(self.asked.get().saturating_add(self.wait.get()))
    }
}

impl Turns {
    /// A poll has returned `events` events at `now`.
    pub(crate) fn woke(&mut self, poll: &Poll, now: Micros, events: usize) {
        let taking = REST_LEAST + Micros(events as u64 / EVENTS_PER_US);
        self.began = if now - poll.asked > taking {
            // A thread that was to wake up earlier did not run: it was stopped, or its CPU was.
            now.min(poll.until())
        } else {
            // What came while the last turn was at work has waited since that began.
            self.polled
        };
        self.polled = now;
        if let Some(wait) = &mut self.cpu_wait {
            wait.read(now);
        }
    }

    /// Ends the presentation of a turn's input. If more had come (`is_behind`), later turns read
    /// it; their number is bounded, since time-outs wait for them.
    pub(crate) fn presented(&mut self, is_behind: bool) {
        if is_behind && self.behind < BEHIND_MAX {
            self.behind += 1;
            return;
        }
        self.behind = 0;
        self.presented_until = self.polled;
    }

    pub(super) fn presented_until(&self) -> Micros {
        self.presented_until
    }

    pub(super) fn watch_cpu_wait(&mut self, of: WaitsOf) {
        self.cpu_wait = Some(CpuWait::new(of));
    }

    pub(super) fn turn(&self) -> Turn {
        let waited = self.cpu_wait.as_ref().map(CpuWait::waited);
        Turn {
            now: self.polled,
            began: self.began,
            waited: waited.unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the begin of a turn behind a poll of up to `wait` that returned after `took`; the
    /// previous turn worked from 1 ms to 3 ms.
    fn began(wait: u64, took: u64, events: usize) -> u64 {
        let mut turns = Turns {
            polled: Micros(1_000),
            ..Turns::default()
        };
        let asked = Micros(3_000);
        let wait = Micros(wait);
        turns.woke(&Poll { asked, wait }, asked + Micros(took), events);
        turns.began.get()
    }

    #[test]
    fn a_turn_began_when_the_thread_ought_to_have_run() {
        assert_eq!(
            began(0, 3, 1),
            1_000,
            "something had come: at work since the turn before"
        );
        assert_eq!(began(0, 200, 1_024), 1_000, "many events take time");
        assert_eq!(began(10_000, 4_000, 1), 7_000, "an event ended its sleep");
        assert_eq!(began(u64::MAX, 4_000, 1), 7_000);
        assert_eq!(began(10_000, 310_000, 1), 13_000, "it woke up 300 ms late");
    }

    #[test]
    fn a_loop_that_is_always_behind_hears_after_some_turns() {
        let mut turns = Turns::default();
        let mut turn = |at: u64, is_behind: bool| {
            turns.polled = Micros(at);
            turns.presented(is_behind);
            turns.presented_until.get()
        };
        assert_eq!(turn(1, false), 1);
        assert!((2..66).all(|at| turn(at, true) == 1));
        assert_eq!(turn(66, true), 66);
        assert_eq!(turn(67, true), 66);
        assert_eq!(turn(68, false), 68);
    }
}
