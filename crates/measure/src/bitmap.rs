//! Bits in words: what a dense set of sequence numbers is kept in.

use std::ops::Range;

/// Bits of one word of a bitmap.
pub(crate) const WORD: u32 = u64::BITS;
/// Least growth of a bitmap, in words, so that growing is rare on small sets.
const GROWTH_WORDS: usize = 8;

/// Sets a bit, growing the bitmap if need be; whether it was clear.
pub(crate) fn set_bit(words: &mut Vec<u64>, bit: u32) -> bool {
    let at = (bit / WORD) as usize;
    grow(words, at + 1);
    let mask = 1 << (bit % WORD);
    let is_new = words[at] & mask == 0;
    words[at] |= mask;
    is_new
}

/// Sets a range of bits.
pub(crate) fn set_bits(words: &mut Vec<u64>, bits: Range<u32>) {
    grow(words, bits.end.div_ceil(WORD) as usize);
    for bit in bits {
        words[(bit / WORD) as usize] |= 1 << (bit % WORD);
    }
}

fn grow(words: &mut Vec<u64>, len: usize) {
    if len > words.capacity() {
        words.reserve_exact((len - words.len()).max(words.len() / 64 + GROWTH_WORDS));
    }
    if len > words.len() {
        words.resize(len, 0);
    }
}

/// The first bit from `bit` on that is not set.
pub(crate) fn first_zero(words: &[u64], mut bit: u32) -> u32 {
    while let Some(word) = words.get((bit / WORD) as usize) {
        let ones = (word >> (bit % WORD)).trailing_ones();
        bit += ones;
        if !bit.is_multiple_of(WORD) || ones == 0 {
            return bit;
        }
    }
    bit
}

/// The first bit from `bit` on that is set.
pub(crate) fn first_one(words: &[u64], mut bit: u32) -> Option<u32> {
    loop {
        let rest = words.get((bit / WORD) as usize)? >> (bit % WORD);
        if rest != 0 {
            return Some(bit + rest.trailing_zeros());
        }
        bit = (bit / WORD + 1) * WORD;
    }
}
