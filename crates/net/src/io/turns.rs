//! The turns of a loop's thread: when they began, what they have heard, and the wait for a CPU.

use muster_model::{Micros, Turn};

use super::Io;
use crate::cpu_wait::{CpuWait, WaitsOf};

/// The shortest poll in which the loop may have slept, beside the time that taking events needs.
const REST_LEAST: Micros = Micros(25);
/// Events that the kernel hands over in a microsecond, at the least.
const EVENTS_PER_US: u64 = 4;
/// Turns in a row after which the rest of the input is not waited for any more: with 1,024 events a
/// turn, each of 65,536 connections has had its turn by then.
const BEHIND_MAX: u32 = 64;

/// The turns of one loop.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    /// When the last poll returned.
    polled: Micros,
    /// Since when the loop has worked without waiting for events.
    began: Micros,
    /// All that came until then has been presented.
    heard: Micros,
    /// Turns in a row in which not all that had come was presented.
    behind: u32,
    /// None where nobody asked for it.
    cpu_wait: Option<CpuWait>,
}

impl Turns {
    /// A poll that began at `asked` has returned at `now`, with so many events.
    pub(crate) fn woke(&mut self, asked: Micros, now: Micros, events: usize) {
        let is_rested = now - asked > REST_LEAST + Micros(events as u64 / EVENTS_PER_US);
        // What came while the last turn was at work has waited since that began.
        self.began = if is_rested { now } else { self.polled };
        self.polled = now;
        if let Some(wait) = &mut self.cpu_wait {
            wait.read(now);
        }
    }

    /// What a turn reads has been presented; whether more had come is what `is_behind` says. The
    /// rest has its turn in the next ones; a bound on their number keeps time-outs from waiting
    /// for ever.
    pub(crate) fn presented(&mut self, is_behind: bool) {
        if is_behind && self.behind < BEHIND_MAX {
            self.behind += 1;
            return;
        }
        self.behind = 0;
        self.heard = self.polled;
    }
}

impl Io {
    /// Reads the CPU wait of the loop's thread, and of those that count as it, after a wake-up if 200 us have passed since the last reading.
    /// [`Io::turn`] has it.
    pub fn watch_cpu_wait(&mut self, of: WaitsOf) {
        self.turns.cpu_wait = Some(CpuWait::new(of));
    }

    /// The state of the thread since it woke up.
    #[must_use]
    pub fn turn(&self) -> Turn {
        let waited = self.turns.cpu_wait.as_ref().map(CpuWait::waited);
        Turn {
            now: self.turns.polled,
            began: self.turns.began,
            waited: waited.unwrap_or_default(),
        }
    }

    /// The instant until which all that came has been presented. By it a time-out is decided, so that
    /// an answer that still lies in a socket counts. It lags behind [`Io::now`] by the turn so far,
    /// and by some turns where more comes than one turn reads.
    #[must_use]
    pub fn heard(&self) -> Micros {
        self.turns.heard
    }
}
