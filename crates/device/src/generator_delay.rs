//! The generator's own part of the times of a shard's messages.
//!
//! The driver says when a turn began and how long its thread has waited for a CPU so far; this
//! module reads neither a clock nor a file.

use muster_measure::{ReadDelay, RecentLateness};
use muster_model::{Micros, Turn};

/// The generator's delay up to when a message is taken: 8 bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct DelayAtAdmission {
    /// The largest lateness from one second before its due until then, and the turns that read earlier
    /// parts of its answer, in microseconds.
    late: u32,
    /// The CPU wait of the thread until then, in microseconds modulo 2^32.
    waited: u32,
}

/// The lateness and the CPU wait of one shard.
#[derive(Debug, Default)]
pub(crate) struct GeneratorDelay {
    lateness: RecentLateness,
    reading: ReadDelay,
}

impl GeneratorDelay {
    pub(crate) fn turn_begins(&mut self, turn: &Turn) {
        self.reading.turn_begins(turn);
    }

    /// A message due at `due` is taken.
    pub(crate) fn taken(&mut self, due: Micros, now: Micros) -> DelayAtAdmission {
        let lateness = self.lateness.record(due, now);
        self.at_taken(lateness)
    }

    /// A reply is due and taken at once: no schedule was kept waiting.
    pub(crate) fn taken_at_once(&self, now: Micros) -> DelayAtAdmission {
        self.at_taken(self.lateness.largest_before(now))
    }

    fn at_taken(&self, lateness: Micros) -> DelayAtAdmission {
        DelayAtAdmission {
            late: u32::try_from(lateness.get()).unwrap_or(u32::MAX),
            waited: self.reading.waits().waited().get() as u32,
        }
    }

    /// A part of an answer was read in this turn, and the rest follows.
    pub(crate) fn read_part(&self, of: DelayAtAdmission, now: Micros) -> DelayAtAdmission {
        let turn = u32::try_from(self.reading.turn(now).get()).unwrap_or(u32::MAX);
        DelayAtAdmission {
            late: of.late.saturating_add(turn),
            ..of
        }
    }

    /// The own part of a message that ends at `ended`: of at most that time since its due.
    pub(crate) fn until(&self, of: DelayAtAdmission, due: Micros, ended: Micros) -> Micros {
        let waited = (self.reading.waits().waited().get() as u32).wrapping_sub(of.waited);
        let own = u64::from(of.late) + u64::from(waited) + self.reading.turn(ended).get();
        Micros(own).min(ended - due)
    }

    /// Returns whether a try to connect that began at `since` may have timed out by our own delay:
    /// the delay exceeded half of the time-out.
    pub(crate) fn is_timed_out_by_us(&self, since: Micros, timeout: Micros, now: Micros) -> bool {
        let late = now - (since + timeout);
        let lateness = self.lateness.largest_since(since).max(late);
        let own = lateness + self.reading.waits().since(since) + self.reading.turn(now);
        own.get() > timeout.get() / 2
    }
}
