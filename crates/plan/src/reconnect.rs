//! Waits before links are opened again, and times when they are closed on purpose.

use muster_model::Micros;
use serde::{Deserialize, Serialize};

/// Back-off between tries to reconnect: doubling from a least to a greatest wait, with jitter.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BackOff {
    /// The first wait.
    pub min: Micros,
    /// The longest wait.
    pub max: Micros,
    /// The share of a wait that is random, from 0 to 1.
    pub jitter: f64,
}

impl BackOff {
    /// The wait before the try after `failures` failed ones; `random` is in `[0, 1)`.
    ///
    /// With jitter j the wait is spread evenly over `[(1 - j) w, w]`.
    pub fn wait(&self, failures: u8, random: f64) -> Micros {
        let doubled = self
            .min
            .get()
            .saturating_mul(1 << u32::from(failures.min(30)));
        let whole = doubled.min(self.max.get()) as f64;
        Micros((whole * (1.0 - self.jitter * random)) as u64)
    }
}

/// Time in which the links of a fleet are closed on purpose, counted from the start of the warm-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offline {
    /// From then on.
    pub from: Micros,
    /// The first link comes back then.
    pub until: Micros,
    /// True if links are reset, so that the platform publishes their wills.
    pub is_abrupt: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_doubles_up_to_its_bound() {
        let back_off = BackOff {
            min: Micros::from_secs(1),
            max: Micros::from_secs(30),
            jitter: 0.0,
        };
        let waits: Vec<u64> = (0..7)
            .map(|n| back_off.wait(n, 0.9).get() / 1_000_000)
            .collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 30, 30]);
    }

    #[test]
    fn jitter_only_shortens_the_wait() {
        let back_off = BackOff {
            min: Micros::from_secs(8),
            max: Micros::from_secs(8),
            jitter: 0.5,
        };
        assert_eq!(back_off.wait(0, 0.0), Micros::from_secs(8));
        assert_eq!(back_off.wait(0, 0.5), Micros::from_secs(6));
    }
}
