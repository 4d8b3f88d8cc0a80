//! Settings of both ends of a session: times, bounds, sizes.

use muster_model::{Micros, mix, unit};
use serde::{Deserialize, Serialize};

use super::BlockSize;

/// The transmission parameters (RFC 7252 section 4.8) and what they bound.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Transmission {
    /// `ACK_TIMEOUT`: how long the first copy of a CON waits, at least.
    pub ack_timeout: Micros,
    /// `ACK_RANDOM_FACTOR`: how many times that it waits at most; at least 1.
    pub ack_random_factor: f64,
    /// `MAX_RETRANSMIT`: copies of a CON after the first.
    pub max_retransmit: u8,
    /// `EXCHANGE_LIFETIME`: how long a message id may not be used again, and duplicates of a CON
    /// are known (section 4.8.2).
    pub exchange_lifetime: Micros,
    /// `NON_LIFETIME`: how long an answer to a NON is waited for (section 4.8.2).
    pub non_lifetime: Micros,
}

/// `MAX_LATENCY`, and so the longest that a datagram is under way (section 4.8.2).
const MAX_LATENCY: Micros = Micros::from_secs(100);

impl Default for Transmission {
    /// The standard's: 2 s, 1.5, 4; hence 247 s and 145 s.
    fn default() -> Self {
        Self::of(Micros::from_secs(2), 1.5, 4)
    }
}

impl Transmission {
    /// The parameters, and the lifetimes that section 4.8.2 derives from them.
    pub fn of(ack_timeout: Micros, ack_random_factor: f64, max_retransmit: u8) -> Self {
        let ack_random_factor = ack_random_factor.max(1.0);
        let mut parameters = Self {
            ack_timeout,
            ack_random_factor,
            max_retransmit,
            exchange_lifetime: Micros::ZERO,
            non_lifetime: Micros::ZERO,
        };
        let span = parameters.max_transmit_span();
        // PROCESSING_DELAY is ACK_TIMEOUT.
        parameters.exchange_lifetime = span + MAX_LATENCY + MAX_LATENCY + ack_timeout;
        parameters.non_lifetime = span + MAX_LATENCY;
        parameters
    }

    /// `MAX_TRANSMIT_SPAN`: from the first copy of a CON to its last, at most.
    pub fn max_transmit_span(&self) -> Micros {
        self.waits((1u64 << self.max_retransmit.min(32)) - 1)
    }

    /// `MAX_TRANSMIT_WAIT`: from the first copy of a CON to giving it up, at most.
    pub fn max_transmit_wait(&self) -> Micros {
        self.waits((2u64 << self.max_retransmit.min(32)) - 1)
    }

    fn waits(&self, first_waits: u64) -> Micros {
        let longest = self.ack_timeout.get() as f64 * self.ack_random_factor;
        Micros((longest * first_waits as f64).round() as u64)
    }

    /// Returns the time-out of a CON's first copy, by a random value (section 4.2).
    pub(super) fn first_timeout(&self, random: u64) -> Micros {
        let factor = 1.0 + unit(random) * (self.ack_random_factor - 1.0);
        Micros((self.ack_timeout.get() as f64 * factor) as u64)
    }
}

/// Settings of a client end; one value serves all sessions of a fleet.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ClientSettings {
    /// Times of the message layer.
    pub transmission: Transmission,
    /// `NSTART`: interactions that a device may have open at once (section 4.7).
    pub nstart: u16,
    /// Exchanges of a socket at once, those acknowledged or given up among them.
    pub exchanges_max: u16,
    /// Separate responses whose duplicates are known, of one socket.
    pub remembered_max: u16,
    /// The largest block that is sent or asked for; a body above it travels in blocks.
    pub block_size: BlockSize,
    /// True if a block size is requested before the server names one (RFC 7959 section 2.4).
    pub asks_block_size: bool,
    /// Bytes of the longest body that is sent or taken.
    pub body_max: u32,
    /// True if Max-Age of 5.03 keeps a device silent (section 5.9.3.4).
    pub obeys_max_age: bool,
}

impl Default for ClientSettings {
    /// The standard's times, NSTART 1, blocks of 1,024 bytes, bodies of 1 MiB; 16 exchanges and 8
    /// separate responses, which is plenty for one device.
    fn default() -> Self {
        Self {
            transmission: Transmission::default(),
            nstart: 1,
            exchanges_max: 16,
            remembered_max: 8,
            block_size: BlockSize::MAX,
            asks_block_size: false,
            body_max: 1 << 20,
            obeys_max_age: true,
        }
    }
}

/// Settings of a server end; one value serves all peers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ServerSettings {
    /// Times of the message layer.
    pub transmission: Transmission,
    /// Requests whose duplicates are known, of one peer; all 65,536 message ids can be.
    pub remembered_max: u32,
    /// Bytes of replies kept for duplicates, of one peer.
    pub replies_max: u32,
    /// Confirmable messages of ours that wait for an acknowledgement, of one peer; nearly as many as
    /// there are message ids can.
    pub transmissions_max: u16,
    /// The largest block that is sent or taken.
    pub block_size: BlockSize,
    /// Bytes of the longest body that is taken.
    pub body_max: u32,
    /// Bodies under way in blocks at once in each direction, of one peer; beyond, the oldest is given
    /// up.
    pub bodies_max: u16,
    /// Bytes of them in each direction, but for a single one; beyond, the oldest is given up.
    pub bodies_bytes_max: u32,
}

impl Default for ServerSettings {
    /// The standard's times; bounds that one device cannot reach in earnest, and 64 KiB of
    /// replies. A peer behind whose address many devices stand needs more; nothing is taken before
    /// it is used.
    fn default() -> Self {
        Self {
            transmission: Transmission::default(),
            remembered_max: 1 << 16,
            replies_max: 1 << 16,
            transmissions_max: 64,
            block_size: BlockSize::MAX,
            body_max: 1 << 20,
            bodies_max: 4,
            bodies_bytes_max: 4 << 20,
        }
    }
}

/// Random values without end from one seed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Random(u64);

impl Random {
    pub(super) const fn new(seed: u64) -> Self {
        Self(mix(seed, 0xc0a9))
    }

    #[inline]
    pub(super) const fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(1);
        mix(self.0, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 7252 section 4.8.2, table 3.
    #[test]
    fn times_derived_from_the_defaults_are_those_of_table_3() {
        let standard = Transmission::default();
        assert_eq!(standard.max_transmit_span(), Micros::from_secs(45));
        assert_eq!(standard.max_transmit_wait(), Micros::from_secs(93));
        assert_eq!(standard.exchange_lifetime, Micros::from_secs(247));
        assert_eq!(standard.non_lifetime, Micros::from_secs(145));
    }

    /// RFC 7252 section 4.2: the initial timeout lies between `ACK_TIMEOUT` and `ACK_TIMEOUT` times
    /// `ACK_RANDOM_FACTOR`.
    #[test]
    fn the_first_timeout_is_spread_over_its_range() {
        let standard = Transmission::default();
        let mut random = Random::new(7);
        let drawn: Vec<u64> = (0..1_000)
            .map(|_| standard.first_timeout(random.draw()).get())
            .collect();
        assert!(
            drawn
                .iter()
                .all(|wait| (2_000_000..3_000_000).contains(wait))
        );
        let mean = drawn.iter().sum::<u64>() / 1_000;
        assert!((2_450_000..2_550_000).contains(&mean), "{mean}");
        let fixed = Transmission::of(Micros(5), 0.3, 0);
        assert_eq!(fixed.first_timeout(u64::MAX), Micros(5));
        assert_eq!(fixed.max_transmit_span(), Micros::ZERO);
    }
}
