//! The value of Block1 and Block2: which block of a body (RFC 7959 section 2.2).

use serde::{Deserialize, Serialize};

use super::Uint;

/// Most blocks of a body: numbers have 20 bits (section 2.2).
const NUMBER_MAX: u32 = (1 << 20) - 1;

/// The size of a block, 16 to 1,024 bytes, as its exponent from 0 to 6 (section 2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct BlockSize(u8);

impl BlockSize {
    /// 1,024 bytes, the largest.
    pub const MAX: Self = Self(6);

    /// The largest size that is no greater than `bytes`; none below 16.
    pub const fn within(bytes: usize) -> Option<Self> {
        if bytes < 16 {
            return None;
        }
        let exponent = bytes.ilog2() - 4;
        Some(Self(if exponent > 6 { 6 } else { exponent as u8 }))
    }

    /// Bytes of one block.
    pub const fn bytes(self) -> usize {
        16 << self.0
    }

    /// The exponent on the wire (SZX).
    pub const fn exponent(self) -> u8 {
        self.0
    }
}

/// A block of the reserved size 7 (RFC 7959 section 2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReservedSize;

/// One block of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Block {
    /// Its place among blocks of its size, from 0.
    pub number: u32,
    /// True if blocks follow it.
    pub more: bool,
    /// The size of all blocks but the last.
    pub size: BlockSize,
}

impl Block {
    /// The block that begins at a byte of a body; none if it has no number of 20 bits.
    pub fn at(offset: usize, more: bool, size: BlockSize) -> Option<Self> {
        let number = u32::try_from(offset / size.bytes()).ok()?;
        (number <= NUMBER_MAX).then_some(Self { number, more, size })
    }

    /// The block that an option's number names; none for the reserved size 7.
    pub const fn of_value(value: u32) -> Option<Self> {
        let exponent = (value & 0x07) as u8;
        if exponent > BlockSize::MAX.0 || value >> 4 > NUMBER_MAX {
            return None;
        }
        Some(Self {
            number: value >> 4,
            more: value & 0x08 != 0,
            size: BlockSize(exponent),
        })
    }

    /// The number that stands for it in an option.
    pub const fn value(self) -> u32 {
        self.number << 4 | (self.more as u32) << 3 | self.size.0 as u32
    }

    /// The value of the option.
    pub const fn uint(self) -> Uint {
        Uint::of(self.value())
    }

    /// The first byte of the body that it holds.
    pub const fn offset(self) -> usize {
        (self.number as usize) << (self.size.0 + 4)
    }

    /// The bytes of a body that it holds; empty beyond the body's end.
    pub fn of(self, body: &[u8]) -> &[u8] {
        let rest = body.get(self.offset()..).unwrap_or_default();
        &rest[..rest.len().min(self.size.bytes())]
    }

    /// Returns true if a body of `length` bytes continues behind it.
    pub const fn is_before_the_end(self, length: usize) -> bool {
        self.offset() + self.size.bytes() < length
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 7959 section 2.2: number, more, and the exponent of the size less four.
    #[test]
    fn a_block_is_twenty_bits_of_number_one_of_more_and_three_of_size() {
        let block = Block {
            number: 7,
            more: true,
            size: BlockSize::within(64).expect("a size"),
        };
        assert_eq!(block.value(), 0x7a);
        assert_eq!(Block::of_value(0x7a), Some(block));
        assert_eq!((block.offset(), block.size.bytes()), (448, 64));
        assert_eq!(Block::of_value(0xff_ffff), None, "size 7 is reserved");
        assert_eq!(Block::of_value(0x100_0000), None, "21 bits of number");
        for value in (0..1 << 24).step_by(97) {
            let read = Block::of_value(value);
            assert_eq!(read.map(Block::value), (value & 7 != 7).then_some(value));
        }
    }

    #[test]
    fn sizes_are_powers_of_two_from_16_to_1024() {
        assert_eq!(BlockSize::within(15), None);
        for (limit, bytes) in [(16, 16), (31, 16), (32, 32), (1_023, 512), (70_000, 1_024)] {
            assert_eq!(BlockSize::within(limit).map(BlockSize::bytes), Some(bytes));
        }
    }

    #[test]
    fn the_blocks_of_a_body_are_the_body() {
        let body: Vec<u8> = (0..=255).collect();
        for length in [0, 1, 15, 16, 17, 64, 255] {
            let body = &body[..length];
            let size = BlockSize::within(16).expect("a size");
            let mut joined = Vec::new();
            for number in 0.. {
                let mut block = Block {
                    number,
                    more: false,
                    size,
                };
                block.more = block.is_before_the_end(length);
                joined.extend_from_slice(block.of(body));
                assert_eq!(Block::at(block.offset(), block.more, size), Some(block));
                if !block.more {
                    assert_eq!(
                        number as usize,
                        length.saturating_sub(1) / 16,
                        "the last block"
                    );
                    assert!(block.of(body).len() <= 16);
                    break;
                }
                assert_eq!(block.of(body).len(), 16);
            }
            assert_eq!(joined, body);
        }
    }
}
