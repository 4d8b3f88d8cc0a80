//! A seeded order of a class's devices that is computed, not stored.

use muster_model::mix;

/// Enough that neighbouring inputs are unrelated even where the halves have a few bits.
const ROUNDS: usize = 6;

/// A permutation of `0..len` and its inverse, both in constant time and memory.
///
/// A Feistel network over the next power of two; values outside `0..len` are sent through again
/// until they fall inside ("cycle walking", Black and Rogaway 2002), less than twice on average.
#[derive(Debug, Clone)]
pub(crate) struct Permutation {
    len: u32,
    low_bits: u32,
    low_mask: u32,
    high_mask: u32,
    keys: [u32; ROUNDS],
}

impl Permutation {
    pub(crate) fn new(len: u32, seed: u64) -> Self {
        let bits = u32::BITS - len.saturating_sub(1).leading_zeros();
        let low_bits = bits.div_ceil(2);
        let mut keys = [0; ROUNDS];
        for (round, key) in keys.iter_mut().enumerate() {
            *key = mix(seed, round as u64) as u32;
        }
        let mask = |bits: u32| ((1u64 << bits) - 1) as u32;
        Self {
            len,
            low_bits,
            low_mask: mask(low_bits),
            high_mask: mask(bits - low_bits),
            keys,
        }
    }

    /// The value at `place`, which is below the length.
    pub(crate) fn at(&self, place: u32) -> u32 {
        let mut value = place;
        loop {
            value = self.forward(value);
            if value < self.len {
                return value;
            }
        }
    }

    /// The place of `value`, which is below the length.
    pub(crate) fn place_of(&self, value: u32) -> u32 {
        let mut place = value;
        loop {
            place = self.backward(place);
            if place < self.len {
                return place;
            }
        }
    }

    fn forward(&self, value: u32) -> u32 {
        let (mut low, mut high) = self.split(value);
        for pair in self.keys.chunks_exact(2) {
            high ^= scramble(low, pair[0]) & self.high_mask;
            low ^= scramble(high, pair[1]) & self.low_mask;
        }
        self.join(low, high)
    }

    fn backward(&self, value: u32) -> u32 {
        let (mut low, mut high) = self.split(value);
        for pair in self.keys.chunks_exact(2).rev() {
            low ^= scramble(high, pair[1]) & self.low_mask;
            high ^= scramble(low, pair[0]) & self.high_mask;
        }
        self.join(low, high)
    }

    fn split(&self, value: u32) -> (u32, u32) {
        (value & self.low_mask, value >> self.low_bits)
    }

    fn join(&self, low: u32, high: u32) -> u32 {
        (high << self.low_bits) | low
    }
}

/// The 32-bit finaliser of MurmurHash3 (Appleby), keyed; its upper bits are the better mixed.
fn scramble(value: u32, key: u32) -> u32 {
    let mut z = value ^ key;
    z = (z ^ (z >> 16)).wrapping_mul(0x85eb_ca6b);
    z = (z ^ (z >> 13)).wrapping_mul(0xc2b2_ae35);
    z ^ (z >> 16)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// place_of(at(i)) = i and at(i) lies in the domain, so `at` is a bijection.
        #[test]
        fn the_order_inverts(len in 1u32.., seed: u64, place: u32) {
            let order = Permutation::new(len, seed);
            let place = place % len;
            prop_assert!(order.at(place) < len);
            prop_assert_eq!(order.place_of(order.at(place)), place);
        }
    }

    #[test]
    fn every_device_has_one_place() {
        for len in [1, 2, 3, 7, 8, 1_000] {
            let order = Permutation::new(len, 5);
            let mut seen: Vec<u32> = (0..len).map(|place| order.at(place)).collect();
            seen.sort_unstable();
            assert_eq!(seen, (0..len).collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_order_is_no_run_of_neighbours() {
        let order = Permutation::new(10_000, 1);
        let near = (0..9_999)
            .filter(|i| order.at(*i).abs_diff(order.at(*i + 1)) < 100)
            .count();
        // 2 % of pairs are that near by chance: 200, give or take 14.
        assert!((130..270).contains(&near), "{near}");
    }
}
