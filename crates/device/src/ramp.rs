//! Instants at which links first connect.

use muster_model::{Micros, Rate};

/// A ramp of first connects: at a rate, with a bound on handshakes under way.
///
/// Each shard has a ramp for its share of a fleet's links, numbered from 0, with as large a share of
/// the fleet's rate and bound, so that the total does not depend on the number of shards. A shard with
/// links has a bound of at least 1, so a bound below the number of shards is exceeded.
#[derive(Debug, Clone)]
pub struct Ramp {
    rate: Rate,
    /// Links that connect at the same instant; at least 1.
    pack: u32,
    start: Option<Micros>,
    pending_limit: u32,
}

impl Ramp {
    /// A ramp that has not begun; a rate of zero means all at once.
    pub fn new(rate: Rate, pending_limit: u32) -> Self {
        Self {
            rate,
            pack: 1,
            start: None,
            pending_limit,
        }
    }

    /// The same ramp, at the same rate, with this number of links at one instant; at least 1.
    pub fn in_packs(self, pack: u32) -> Self {
        let pack = pack.max(1);
        Self { pack, ..self }
    }

    /// The ramp begins.
    pub fn start(&mut self, now: Micros) {
        self.start = Some(now);
    }

    /// Instant at which the link at `place` may connect; none before the ramp began.
    pub fn at(&self, place: u32) -> Option<Micros> {
        Some(self.start? + self.after(place))
    }

    /// Time from the first link's connect to that of the link at `place`.
    pub fn after(&self, place: u32) -> Micros {
        if self.rate == Rate::ZERO {
            return Micros::ZERO;
        }
        let first_of_pack = place - place % self.pack;
        Micros::from_secs_f64(f64::from(first_of_pack) / self.rate.get())
    }

    /// Returns whether another handshake may begin while `pending` are under way.
    pub fn has_room(&self, pending: u32) -> bool {
        pending < self.pending_limit
    }
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
    fn a_pack_of_links_connects_at_once() {
        let ramp = Ramp::new(Rate::per_second(1_000.0).unwrap(), 128).in_packs(100);
        let after = |place| ramp.after(place);
        assert_eq!([0, 99].map(after), [Micros::ZERO; 2]);
        assert_eq!([100, 199].map(after), [Micros::from_millis(100); 2]);
    }

    #[test]
    fn handshakes_under_way_are_bounded() {
        let ramp = Ramp::new(Rate::ZERO, 2);
        assert!(ramp.has_room(1));
        assert!(!ramp.has_room(2));
    }
}
