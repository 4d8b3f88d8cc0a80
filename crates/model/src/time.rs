//! Instants and rates.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

use serde::{Deserialize, Serialize};

/// Microseconds: an instant since the run's T0, or a length of time.
///
/// Arithmetic saturates: an instant before T0 is T0.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize,
)]
pub struct Micros(pub u64);

/// The state of a thread that drives sockets, at the beginning of one of its turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Turn {
    /// Instant at which the thread woke up.
    pub now: Micros,
    /// Since when it has worked without looking at the sockets: what it reads in this turn may have
    /// lain there as long.
    pub began: Micros,
    /// The time that it has waited for a CPU, all in all.
    pub waited: Micros,
}

impl Micros {
    /// T0, or no time at all.
    pub const ZERO: Micros = Micros(0);
    /// Later than every instant of a run.
    pub const MAX: Micros = Micros(u64::MAX);

    /// Returns a time of `ms` milliseconds.
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms.saturating_mul(1_000))
    }

    /// Returns a time of `s` whole seconds.
    pub const fn from_secs(s: u64) -> Self {
        Self(s.saturating_mul(1_000_000))
    }

    /// Returns a time of `s` seconds; negative and not-a-number become zero.
    pub fn from_secs_f64(s: f64) -> Self {
        Self((s * 1e6).round().max(0.0) as u64)
    }

    /// The number of microseconds.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The same length in seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// The number of the second this instant lies in.
    pub const fn second(self) -> u32 {
        (self.0 / 1_000_000) as u32
    }
}

impl Add for Micros {
    type Output = Micros;
    fn add(self, other: Micros) -> Micros {
        Micros(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Micros {
    fn add_assign(&mut self, other: Micros) {
        *self = *self + other;
    }
}

impl Sub for Micros {
    type Output = Micros;
    fn sub(self, other: Micros) -> Micros {
        Micros(self.0.saturating_sub(other.0))
    }
}

impl fmt::Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            us @ 0..1_000 => write!(f, "{us} us"),
            us @ 1_000..1_000_000 => write!(f, "{} ms", us as f64 / 1e3),
            us => write!(f, "{} s", us as f64 / 1e6),
        }
    }
}

/// Events per second: finite and not negative.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Rate(f64);

impl Rate {
    /// No events.
    pub const ZERO: Rate = Rate(0.0);

    /// A rate, unless it is negative, infinite or not a number.
    pub fn per_second(value: f64) -> Option<Self> {
        (value.is_finite() && value >= 0.0).then_some(Self(value))
    }

    /// Events per second.
    pub const fn get(self) -> f64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_before_t0_is_t0() {
        assert_eq!(Micros(3) - Micros(5), Micros::ZERO);
    }

    #[test]
    fn a_rate_is_finite_and_not_negative() {
        assert_eq!(Rate::per_second(-1.0), None);
        assert_eq!(Rate::per_second(f64::NAN), None);
        assert_eq!(Rate::per_second(2.5).map(Rate::get), Some(2.5));
    }
}
