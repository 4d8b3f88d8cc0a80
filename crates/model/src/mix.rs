//! Counter-based randomness: a value is a pure function of its key, so any message can be made
//! again without a table.

/// A well-mixed 64-bit value of `seed` and `key`.
///
/// Two rounds of the `splitmix64` finaliser (Steele, Lea, Flood 2014).
pub const fn mix(seed: u64, key: u64) -> u64 {
    finalise(finalise(seed.wrapping_add(0x9e37_79b9_7f4a_7c15)) ^ key)
}

/// The value as a fraction in `[0, 1)`, from its upper 53 bits.
pub fn unit(value: u64) -> f64 {
    (value >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

const fn finalise(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_keys_give_unrelated_values() {
        let flipped: u32 = (0..1_000)
            .map(|k| (mix(1, k) ^ mix(1, k + 1)).count_ones())
            .sum();
        assert!((31_000..33_000).contains(&flipped), "{flipped}");
    }

    #[test]
    fn the_unit_interval_is_covered_evenly() {
        let mean: f64 = (0..10_000).map(|k| unit(mix(9, k))).sum::<f64>() / 10_000.0;
        assert!((mean - 0.5).abs() < 0.01, "{mean}");
    }
}
