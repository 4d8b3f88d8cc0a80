//! When each link first connects.

use muster_model::{Micros, Rate};

/// A ramp of first connects: at a rate, with a bound on handshakes under way.
///
/// Each shard has a ramp of its own for its share of a fleet's links, numbered from 0, with as large
/// a share of the fleet's rate and bound, so that the total does not depend on how many shards there
/// are; but no shard with links has a bound below 1, which exceeds a bound below their number.
#[derive(Debug, Clone)]
pub struct Ramp {
    rate: Rate,
    start: Option<Micros>,
    pending_limit: u32,
}

impl Ramp {
    /// A ramp that has not begun; a rate of zero means all at once.
    pub fn new(rate: Rate, pending_limit: u32) -> Self {
        Self {
            rate,
            start: None,
            pending_limit,
        }
    }

    /// The ramp begins.
    pub fn start(&mut self, now: Micros) {
        self.start = Some(now);
    }

    /// When the link at `place` may connect; none before the ramp began.
    pub fn at(&self, place: u32) -> Option<Micros> {
        Some(self.start? + self.after(place))
    }

    /// How long after the first link the one at `place` connects.
    pub fn after(&self, place: u32) -> Micros {
        if self.rate == Rate::ZERO {
            return Micros::ZERO;
        }
        Micros::from_secs_f64(f64::from(place) / self.rate.get())
    }

    /// Whether another handshake may begin while `pending` are under way.
    pub fn has_room(&self, pending: u32) -> bool {
        pending < self.pending_limit
    }
}

/// Back-off between tries to reconnect: doubling from a least to a greatest wait, with jitter.
#[derive(Debug, Clone, Copy)]
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

/// When the links of a fleet are closed on purpose, counted from the start of the warm-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offline {
    /// From then on.
    pub from: Micros,
    /// The first link comes back then.
    pub until: Micros,
    /// Whether links are reset, so that the platform publishes their wills.
    pub is_abrupt: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_connect_at_the_rate_of_the_ramp() {
        let mut ramp = Ramp::new(Rate::per_second(500.0).unwrap(), 128);
        assert_eq!(ramp.at(0), None);
        ramp.start(Micros::from_secs(1));
        assert_eq!(ramp.at(250), Some(Micros::from_millis(1_500)));
    }

    #[test]
    fn handshakes_under_way_are_bounded() {
        let ramp = Ramp::new(Rate::ZERO, 2);
        assert!(ramp.has_room(1));
        assert!(!ramp.has_room(2));
    }

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
