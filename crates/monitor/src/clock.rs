//! Detects steps of the host's clocks and suspension between two readings.

use rustix::time::{ClockId, clock_gettime};

/// The three clocks of the kernel, read as close together as it gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClockReading {
    /// `CLOCK_MONOTONIC` in nanoseconds: never stepped, stands still while suspended.
    pub monotonic_ns: i64,
    /// `CLOCK_REALTIME` in nanoseconds: the wall clock, stepped by whoever sets it.
    pub realtime_ns: i64,
    /// `CLOCK_BOOTTIME` in nanoseconds: monotonic plus the time spent suspended.
    pub boottime_ns: i64,
}

/// Changes of the clocks between two readings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClockChange {
    /// By how many microseconds the wall clock was set forward (or back, if negative).
    pub stepped_us: i64,
    /// For how many microseconds the host was suspended.
    pub suspended_us: u64,
}

/// Readings for one result: the best one is used, since a thread may be preempted in another.
const READINGS: usize = 5;
/// Differences below this are the error of a reading on a loaded host, not a step. A clock
/// daemon steps only what it will not slew: 128 ms for ntpd, a second and more for others.
const CHANGE_MIN_NS: i64 = 10_000_000;

impl ClockReading {
    /// Reads the clocks.
    pub fn take() -> Self {
        let readings = (0..READINGS).map(|_| Self::take_once());
        let best = readings.min_by_key(|(_, took_ns)| *took_ns);
        best.unwrap_or_default().0
    }

    /// Returns the change since an earlier reading.
    ///
    /// A slewed clock is no change: the kernel slews `CLOCK_MONOTONIC` and `CLOCK_REALTIME` alike.
    pub const fn since(self, earlier: Self) -> ClockChange {
        let monotonic = self.monotonic_ns - earlier.monotonic_ns;
        let suspended = above_error(self.boottime_ns - earlier.boottime_ns - monotonic);
        let stepped = above_error(self.realtime_ns - earlier.realtime_ns - monotonic - suspended);
        let suspended_us = if suspended > 0 {
            suspended as u64 / 1_000
        } else {
            0
        };
        ClockChange {
            stepped_us: stepped / 1_000,
            suspended_us,
        }
    }

    /// A reading and the nanoseconds it took.
    fn take_once() -> (Self, i64) {
        let before = nanoseconds(ClockId::Monotonic);
        let realtime_ns = nanoseconds(ClockId::Realtime);
        let boottime_ns = nanoseconds(ClockId::Boottime);
        let after = nanoseconds(ClockId::Monotonic);
        let monotonic_ns = before + (after - before) / 2;
        (
            Self {
                monotonic_ns,
                realtime_ns,
                boottime_ns,
            },
            after - before,
        )
    }
}

const fn above_error(difference_ns: i64) -> i64 {
    if difference_ns.abs() < CHANGE_MIN_NS {
        0
    } else {
        difference_ns
    }
}

fn nanoseconds(clock: ClockId) -> i64 {
    let time = clock_gettime(clock);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;
    const START: ClockReading = ClockReading {
        monotonic_ns: 500 * SECOND,
        realtime_ns: 1_700_000_000 * SECOND,
        boottime_ns: 520 * SECOND,
    };

    fn later(monotonic: i64, realtime: i64, boottime: i64) -> ClockChange {
        ClockReading {
            monotonic_ns: START.monotonic_ns + monotonic,
            realtime_ns: START.realtime_ns + realtime,
            boottime_ns: START.boottime_ns + boottime,
        }
        .since(START)
    }

    #[test]
    fn clocks_that_run_alike_did_not_change() {
        assert_eq!(later(SECOND, SECOND, SECOND), ClockChange::default());
        let error = later(SECOND, SECOND + 900_000, SECOND - 900_000);
        assert_eq!(error, ClockChange::default());
    }

    #[test]
    fn a_wall_clock_set_forward_is_a_step() {
        let change = later(SECOND, 4 * SECOND, SECOND);
        assert_eq!(
            change,
            ClockChange {
                stepped_us: 3_000_000,
                suspended_us: 0
            }
        );
    }

    #[test]
    fn a_wall_clock_set_back_is_a_step() {
        let change = later(SECOND, SECOND - 200_000_000, SECOND);
        assert_eq!(
            change,
            ClockChange {
                stepped_us: -200_000,
                suspended_us: 0
            }
        );
    }

    #[test]
    fn a_suspended_host_was_suspended_and_not_stepped() {
        let change = later(SECOND, 61 * SECOND, 61 * SECOND);
        assert_eq!(
            change,
            ClockChange {
                stepped_us: 0,
                suspended_us: 60_000_000
            }
        );
    }

    #[test]
    fn a_suspended_host_whose_clock_was_then_set_was_both() {
        let change = later(SECOND, 63 * SECOND, 61 * SECOND);
        assert_eq!(
            change,
            ClockChange {
                stepped_us: 2_000_000,
                suspended_us: 60_000_000
            }
        );
    }

    #[test]
    fn two_readings_of_this_host_agree() {
        let first = ClockReading::take();
        assert_eq!(ClockReading::take().since(first), ClockChange::default());
    }
}
