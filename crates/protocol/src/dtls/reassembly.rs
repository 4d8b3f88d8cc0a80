//! Messages of the handshake in order and whole, whatever order and pieces they come in.

use super::message::{Fragment, Kind};

/// Messages ahead of the next one that are kept: a flight has six at the most.
const AHEAD: u16 = 8;
/// Pieces of one message that may be apart from each other.
const PIECES: usize = 16;

/// Puts fragments together; what it holds is bounded by its limit.
#[derive(Debug)]
pub(super) struct Reassembly {
    next: u16,
    /// Messages that have come in part.
    partial: Vec<Partial>,
    /// Bytes that `partial` holds at the most.
    limit: usize,
    keeps_ahead: bool,
}

/// Received parts of a message.
#[derive(Debug)]
struct Partial {
    kind: Kind,
    sequence: u16,
    bytes: Vec<u8>,
    /// The parts that are there, from and to, in order and apart from each other.
    there: Vec<(usize, usize)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrived {
    /// The next message, whole: it is to be handled as it lies in the fragment.
    Next,
    /// A part of a message, kept; [`Reassembly::take`] gives what is whole.
    Kept,
    /// The end of the last message that was handled: the peer says its flight again.
    Again,
    /// Of a message that was handled, or too far ahead, or too much.
    Dropped,
}

#[derive(Debug)]
pub(super) struct Whole {
    pub(super) kind: Kind,
    pub(super) bytes: Vec<u8>,
}

impl Reassembly {
    /// The message of this number is next.
    pub(super) const fn new(next: u16, limit: usize) -> Self {
        let partial = Vec::new();
        Self {
            next,
            partial,
            limit,
            keeps_ahead: true,
        }
    }

    pub(super) const fn keep_ahead(&mut self, keeps_ahead: bool) {
        self.keeps_ahead = keeps_ahead;
    }

    pub(super) fn accept(&mut self, fragment: &Fragment<'_>) -> Arrived {
        if self.is_again(fragment) {
            return Arrived::Again;
        }
        let ahead = fragment.sequence.wrapping_sub(self.next);
        if ahead == 0 && fragment.is_whole() {
            self.partial
                .retain(|partial| partial.sequence != fragment.sequence);
            self.next = self.next.wrapping_add(1);
            return Arrived::Next;
        }
        let has_place = ahead == 0 || ahead < AHEAD && self.keeps_ahead;
        if has_place && self.keep(fragment) {
            return Arrived::Kept;
        }
        Arrived::Dropped
    }

    /// Returns true if this is the end of the last message that was handled.
    pub(super) const fn is_again(&self, fragment: &Fragment<'_>) -> bool {
        fragment.sequence == self.next.wrapping_sub(1) && fragment.is_last()
    }

    pub(super) fn take(&mut self) -> Option<(u16, Whole)> {
        let sequence = self.next;
        let at = self
            .partial
            .iter()
            .position(|partial| partial.sequence == sequence && partial.is_whole())?;
        let Partial { kind, bytes, .. } = self.partial.swap_remove(at);
        self.next = self.next.wrapping_add(1);
        Some((sequence, Whole { kind, bytes }))
    }

    fn keep(&mut self, fragment: &Fragment<'_>) -> bool {
        let known = self
            .partial
            .iter_mut()
            .find(|partial| partial.sequence == fragment.sequence);
        if let Some(partial) = known {
            return partial.add(fragment);
        }
        let held: usize = self.partial.iter().map(|partial| partial.bytes.len()).sum();
        if held + fragment.length > self.limit {
            return false;
        }
        let mut partial = Partial {
            kind: fragment.kind,
            sequence: fragment.sequence,
            bytes: vec![0; fragment.length],
            there: Vec::new(),
        };
        partial.add(fragment);
        self.partial.push(partial);
        true
    }
}

impl Partial {
    fn is_whole(&self) -> bool {
        self.bytes.is_empty() || self.there == [(0, self.bytes.len())]
    }

    /// Adds a piece; whether it belongs to this message and there is room to remember it.
    fn add(&mut self, fragment: &Fragment<'_>) -> bool {
        if fragment.kind != self.kind || fragment.length != self.bytes.len() {
            return false;
        }
        let (mut from, mut to) = (fragment.offset, fragment.offset + fragment.bytes.len());
        if from == to {
            return true;
        }
        let before = self.there.partition_point(|part| part.1 < from);
        let behind = self.there.partition_point(|part| part.0 <= to);
        if before == behind && self.there.len() == PIECES {
            return false;
        }
        self.bytes[from..to].copy_from_slice(fragment.bytes);
        for part in self.there.drain(before..behind) {
            from = from.min(part.0);
            to = to.max(part.1);
        }
        self.there.insert(before, (from, to));
        true
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn piece(sequence: u16, message: &[u8], from: usize, to: usize) -> Fragment<'_> {
        Fragment {
            kind: Kind::Certificate,
            sequence,
            length: message.len(),
            offset: from,
            bytes: &message[from..to],
        }
    }

    proptest! {
        /// However pieces of some messages overlap and in whatever order they come, the messages
        /// come out whole, once and in order, as soon as all before them are there.
        #[test]
        fn messages_come_out_whole_and_in_order(
            lengths in prop::collection::vec(0_usize..40, 1..6),
            cuts in prop::collection::vec((0_u16..6, 0_usize..40, 0_usize..40), 0..60),
        ) {
            let messages: Vec<Vec<u8>> = lengths
                .iter()
                .enumerate()
                .map(|(at, length)| (0..*length).map(|byte| (at * 40 + byte) as u8).collect())
                .collect();
            let mut reassembly = Reassembly::new(0, 1 << 14);
            let mut out = Vec::new();
            let wholes = (0..messages.len()).map(|at| (at as u16, 0, 40));
            for (sequence, a, b) in cuts.into_iter().chain(wholes) {
                let Some(message) = messages.get(usize::from(sequence)) else {
                    continue;
                };
                let (a, b) = (a.min(b).min(message.len()), a.max(b).min(message.len()));
                match reassembly.accept(&piece(sequence, message, a, b)) {
                    Arrived::Next => out.push(message.clone()),
                    Arrived::Kept | Arrived::Again | Arrived::Dropped => {}
                }
                while let Some((number, whole)) = reassembly.take() {
                    prop_assert_eq!(usize::from(number), out.len());
                    out.push(whole.bytes);
                }
            }
            prop_assert_eq!(out, messages);
            prop_assert!(reassembly.partial.is_empty());
        }
    }

    #[test]
    fn what_is_held_is_bounded() {
        let mut reassembly = Reassembly::new(0, 100);
        let message = [1; 60];
        assert_eq!(reassembly.accept(&piece(1, &message, 0, 1)), Arrived::Kept);
        assert_eq!(
            reassembly.accept(&piece(2, &message, 0, 1)),
            Arrived::Dropped
        );
        assert_eq!(
            reassembly.accept(&piece(AHEAD, &[], 0, 0)),
            Arrived::Dropped
        );
        let many = [1; 100];
        let mut reassembly = Reassembly::new(0, 100);
        for at in 0..PIECES {
            let piece = piece(0, &many, 3 * at, 3 * at + 1);
            assert_eq!(reassembly.accept(&piece), Arrived::Kept);
        }
        assert_eq!(
            reassembly.accept(&piece(0, &many, 90, 91)),
            Arrived::Dropped
        );
        assert_eq!(reassembly.accept(&piece(0, &many, 0, 50)), Arrived::Kept);
    }

    #[test]
    fn who_keeps_nothing_ahead_still_puts_the_next_message_together() {
        let mut reassembly = Reassembly::new(0, 100);
        reassembly.keep_ahead(false);
        assert_eq!(reassembly.accept(&piece(1, b"b", 0, 1)), Arrived::Dropped);
        assert_eq!(reassembly.accept(&piece(0, b"ab", 1, 2)), Arrived::Kept);
        assert_eq!(reassembly.accept(&piece(0, b"ab", 0, 1)), Arrived::Kept);
        assert!(reassembly.take().is_some() && reassembly.take().is_none());
        reassembly.keep_ahead(true);
        assert_eq!(reassembly.accept(&piece(2, b"c", 0, 1)), Arrived::Kept);
    }

    #[test]
    fn the_end_of_the_last_message_is_the_peers_flight_again() {
        let mut reassembly = Reassembly::new(0, 100);
        assert_eq!(reassembly.accept(&piece(0, b"ab", 0, 2)), Arrived::Next);
        assert_eq!(reassembly.accept(&piece(0, b"ab", 0, 1)), Arrived::Dropped);
        assert_eq!(reassembly.accept(&piece(0, b"ab", 1, 2)), Arrived::Again);
        assert_eq!(reassembly.accept(&piece(1, b"c", 0, 1)), Arrived::Next);
        assert_eq!(reassembly.accept(&piece(0, b"ab", 0, 2)), Arrived::Dropped);
    }

    #[test]
    fn a_piece_of_another_message_under_the_same_number_is_dropped() {
        let mut reassembly = Reassembly::new(0, 100);
        assert_eq!(reassembly.accept(&piece(0, b"abc", 0, 1)), Arrived::Kept);
        assert_eq!(
            reassembly.accept(&piece(0, b"abcd", 1, 2)),
            Arrived::Dropped
        );
    }
}
