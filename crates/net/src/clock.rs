//! The real clock: microseconds since the run's T0.

use muster_model::Micros;
use rustix::time::{ClockId, Timespec, clock_gettime};

/// `CLOCK_MONOTONIC` counted from T0, one reading that every process of the host shares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clock {
    t0_ns: u64,
    wall_ms_at_t0: u64,
}

impl Clock {
    /// A clock whose T0 is now.
    pub fn start() -> Self {
        Self::at(nanoseconds(ClockId::Monotonic))
    }

    /// A clock whose T0 is the raw reading `t0_ns` of [`Clock::t0_ns`], taken by any process of
    /// this host since it booted.
    pub fn at(t0_ns: u64) -> Self {
        let (wall_ns, now_ns) = both();
        let since_t0 = now_ns.saturating_sub(t0_ns);
        Self {
            t0_ns,
            wall_ms_at_t0: wall_ns.saturating_sub(since_t0) / 1_000_000,
        }
    }

    /// A clock as another process of this host has it: T0 by [`Clock::t0_ns`], and its wall-clock
    /// twin, which two processes that work it out apart would not agree on to the millisecond.
    pub const fn agreed(t0_ns: u64, wall_ms_at_t0: u64) -> Self {
        Self {
            t0_ns,
            wall_ms_at_t0,
        }
    }

    /// A clock whose T0 is an instant of the wall clock, in milliseconds since the Unix epoch and
    /// after the host booted. It may lie ahead: until then the clock reads zero.
    pub fn at_wall(wall_ms: u64) -> Self {
        let (wall_ns, now_ns) = both();
        let ahead_ns = i128::from(wall_ms) * 1_000_000 - i128::from(wall_ns);
        Self {
            t0_ns: u64::try_from(i128::from(now_ns) + ahead_ns).unwrap_or(0),
            wall_ms_at_t0: wall_ms,
        }
    }

    /// Returns the time until T0; zero after it.
    pub fn until_t0(&self) -> Micros {
        Micros(
            self.t0_ns
                .saturating_sub(nanoseconds(ClockId::Monotonic))
                .div_ceil(1_000),
        )
    }

    /// The raw `CLOCK_MONOTONIC` reading at T0, in nanoseconds, to hand to other processes.
    pub const fn t0_ns(&self) -> u64 {
        self.t0_ns
    }

    /// Wall-clock milliseconds since the Unix epoch at T0; for display and `${due_ms}` only.
    pub const fn wall_ms_at_t0(&self) -> u64 {
        self.wall_ms_at_t0
    }

    /// Reads the clock: the time since T0, zero before it.
    pub fn now(&self) -> Micros {
        Micros(nanoseconds(ClockId::Monotonic).saturating_sub(self.t0_ns) / 1_000)
    }
}

/// The wall clock and `CLOCK_MONOTONIC` at one instant: of some readings that with the least time
/// between them, since the thread may lose its CPU there.
fn both() -> (u64, u64) {
    const READINGS: usize = 10;
    let reading = |_| {
        let before = nanoseconds(ClockId::Monotonic);
        let wall = nanoseconds(ClockId::Realtime);
        let took = nanoseconds(ClockId::Monotonic) - before;
        (took, wall, before + took / 2)
    };
    let best = (0..READINGS).map(reading).min();
    best.map_or((0, 0), |(_, wall, monotonic)| (wall, monotonic))
}

fn nanoseconds(clock: ClockId) -> u64 {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(clock);
    (tv_sec as u64) * 1_000_000_000 + tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_on_the_wall_clock_is_the_same_instant_for_all() {
        let wall_ms = nanoseconds(ClockId::Realtime) / 1_000_000 + 60_000;
        let (first, second) = (Clock::at_wall(wall_ms), Clock::at_wall(wall_ms));
        assert!(first.t0_ns().abs_diff(second.t0_ns()) < 1_000_000);
        assert_eq!(first.now(), Micros::ZERO);
        assert!(first.until_t0() > Micros::from_secs(50));
        assert!(first.until_t0() <= Micros::from_secs(61));
        assert_eq!(Clock::start().until_t0(), Micros::ZERO);
    }

    #[test]
    fn two_processes_with_the_same_t0_read_the_same_time() {
        let first = Clock::start();
        let second = Clock::at(first.t0_ns());
        let (a, b, c) = (first.now(), second.now(), first.now());
        assert!(a <= b && b <= c);
        assert!(first.wall_ms_at_t0().abs_diff(second.wall_ms_at_t0()) <= 2);
        let third = Clock::agreed(first.t0_ns(), first.wall_ms_at_t0());
        assert_eq!(third, first);
    }
}
