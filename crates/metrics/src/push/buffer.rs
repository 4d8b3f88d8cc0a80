//! Values that wait for a server that is away.

use std::collections::VecDeque;

/// Bytes that wait at most; the oldest go first. A second of a run of some streams has 10 KB, so that a
/// server may be away for about ten minutes.
const BYTES_MAX: usize = 8 << 20;
/// Bytes of one call: below the limits of all servers; the lowest known is 1 MB.
const BATCH_MAX: usize = 512 << 10;

/// Values that wait for a server that is away.
#[derive(Debug, Default)]
pub(super) struct Buffer {
    parts: VecDeque<(Vec<u8>, u64)>,
    bytes: usize,
    /// Parts of the batch under way.
    batch: usize,
}

impl Buffer {
    /// Adds values in their bytes, and returns the number of older values that had to go.
    pub(super) fn add(&mut self, bytes: Vec<u8>, values: u64) -> u64 {
        self.bytes += bytes.len();
        self.parts.push_back((bytes, values));
        let mut dropped = 0;
        while self.bytes > BYTES_MAX
            && let Some((bytes, values)) = self.parts.pop_front()
        {
            self.bytes -= bytes.len();
            dropped += values;
        }
        dropped
    }

    /// The body of the next call, and its number of values: the oldest parts, at least one of them.
    pub(super) fn batch(&mut self) -> Option<(Vec<u8>, u64)> {
        self.batch = 0;
        let (mut body, mut values) = (Vec::new(), 0);
        for (bytes, of) in &self.parts {
            if self.batch > 0 && body.len() + bytes.len() > BATCH_MAX {
                break;
            }
            body.extend_from_slice(bytes);
            values += of;
            self.batch += 1;
        }
        (self.batch > 0).then_some((body, values))
    }

    /// Forgets the parts of the batch: they are delivered, or never will be.
    pub(super) fn forget_batch(&mut self) {
        let forgotten = self.parts.drain(..std::mem::take(&mut self.batch));
        self.bytes -= forgotten.map(|(bytes, _)| bytes.len()).sum::<usize>();
    }

    /// Values that wait.
    pub(super) fn values(&self) -> u64 {
        self.parts.iter().map(|(_, values)| values).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_go_first_and_are_counted() {
        let mut buffer = Buffer::default();
        let quarter = BYTES_MAX / 4;
        let dropped: Vec<u64> = (1..=6)
            .map(|values| buffer.add(vec![0; quarter], values))
            .collect();
        assert_eq!(dropped, [0, 0, 0, 0, 1, 2]);
        assert_eq!(buffer.values(), 3 + 4 + 5 + 6);
    }

    #[test]
    fn a_batch_has_a_size_and_at_least_one_part() {
        let mut buffer = Buffer::default();
        for bytes in [BATCH_MAX + 1, 10, BATCH_MAX - 10, 1] {
            buffer.add(vec![0; bytes], 1);
        }
        let mut sizes = Vec::new();
        while let Some((body, _)) = buffer.batch() {
            sizes.push(body.len());
            buffer.forget_batch();
        }
        assert_eq!(sizes, [BATCH_MAX + 1, BATCH_MAX, 1]);
        assert_eq!((buffer.values(), buffer.bytes), (0, 0));
    }

    #[test]
    fn a_batch_that_is_not_forgotten_comes_again() {
        let mut buffer = Buffer::default();
        buffer.add(vec![1], 1);
        assert_eq!(buffer.batch(), Some((vec![1], 1)));
        buffer.add(vec![2], 1);
        assert_eq!(buffer.batch(), Some((vec![1, 2], 2)));
    }
}
