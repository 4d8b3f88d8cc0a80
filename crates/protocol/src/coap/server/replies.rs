//! The bytes of replies, for requests that come again (RFC 7252 section 4.5).

use std::collections::VecDeque;

/// Replies one behind the other, the oldest first; dropped when their requests are forgotten, or
/// when there are too many bytes.
#[derive(Debug, Default)]
pub(super) struct Replies {
    bytes: VecDeque<u8>,
    /// The place of the first byte; places go on, and round.
    first: u32,
    marks: VecDeque<Mark>,
}

/// Bytes of replies whose memory is given back once far fewer are left.
const LARGE: usize = 1 << 16;

#[derive(Debug)]
struct Mark {
    request: u32,
    length: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    at: u32,
    length: u32,
}

impl Replies {
    /// Keeps a reply to a request; none if it alone is more than `bound` bytes. `is_known` says
    /// whether the session remembers a request.
    #[inline]
    pub(super) fn keep(
        &mut self,
        request: u32,
        reply: &[u8],
        bound: u32,
        mut is_known: impl FnMut(u32) -> bool,
    ) -> Option<Place> {
        let length = u32::try_from(reply.len())
            .ok()
            .filter(|length| *length <= bound)?;
        let room = bound as usize - reply.len();
        self.drop_while(|bytes, request| bytes > room || !is_known(request));
        if self.bytes.capacity() > LARGE {
            self.give_back();
        }
        let at = self.first.wrapping_add(self.bytes.len() as u32);
        self.bytes.extend(reply);
        self.marks.push_back(Mark { request, length });
        Some(Place { at, length })
    }

    /// Drops replies to requests that are not known any more, and gives memory back where there is far
    /// more than `marks` and the bytes left need.
    pub(super) fn drop_forgotten(&mut self, marks: usize, mut is_known: impl FnMut(u32) -> bool) {
        self.drop_while(|_, request| !is_known(request));
        self.marks.shrink_to(2 * marks);
        self.give_back();
    }

    /// To shrink is to copy: only what gives back more than it copies.
    fn give_back(&mut self) {
        if self.bytes.capacity() > 4 * self.bytes.len() {
            self.bytes.shrink_to(2 * self.bytes.len());
            self.marks.shrink_to(2 * self.marks.len());
        }
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Drops the oldest while `is_due` of the bytes that are kept and the oldest's request.
    #[inline]
    fn drop_while(&mut self, mut is_due: impl FnMut(usize, u32) -> bool) {
        while let Some(mark) = self.marks.front()
            && is_due(self.bytes.len(), mark.request)
        {
            let length = mark.length;
            self.bytes.drain(..length as usize);
            self.first = self.first.wrapping_add(length);
            self.marks.pop_front();
        }
    }

    /// Appends a reply; whether it was still there.
    pub(super) fn repeat(&self, place: Place, out: &mut Vec<u8>) -> bool {
        let from = place.at.wrapping_sub(self.first) as usize;
        let to = from + place.length as usize;
        let is_there = to <= self.bytes.len();
        if is_there {
            out.extend(self.bytes.range(from..to));
        }
        is_there
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_repeated_until_it_is_dropped() {
        let mut replies = Replies {
            first: u32::MAX - 3,
            ..Replies::default()
        };
        let mut places = Vec::new();
        for request in 0..10u32 {
            let reply = [request as u8; 4];
            places.push(
                replies
                    .keep(request, &reply, 12, |_| true)
                    .expect("it fits"),
            );
        }
        for (request, place) in places.iter().enumerate() {
            let mut out = Vec::new();
            assert_eq!(replies.repeat(*place, &mut out), request >= 7);
            assert_eq!(
                out,
                if request >= 7 {
                    vec![request as u8; 4]
                } else {
                    Vec::new()
                }
            );
        }
        assert_eq!(replies.keep(10, &[0; 13], 12, |_| true), None);
    }

    /// However often it is called while replies come and go, what is kept is seldom copied.
    #[test]
    fn memory_is_given_back_without_copying_at_each_call() {
        let mut replies = Replies::default();
        let mut copies = 0;
        for request in 0..10_000u32 {
            let reply = vec![7; 10 + 10 * (request / 100 % 5) as usize];
            let _ = replies.keep(request, &reply, 1 << 16, |_| true);
            let before = replies.bytes.capacity();
            replies.drop_forgotten(64, |known| known + 64 > request);
            copies += u32::from(replies.bytes.capacity() != before);
        }
        assert!(replies.len() < 64 * 60 && copies < 200, "{copies} copies");
        for request in 10_000..10_100u32 {
            let _ = replies.keep(request, &[7; 600], 1 << 16, |_| true);
        }
        replies.drop_forgotten(64, |known| known == 10_099);
        assert_eq!((replies.len(), replies.bytes.capacity()), (600, 1_200));
    }

    #[test]
    fn replies_to_requests_that_are_forgotten_go_first() {
        let mut replies = Replies::default();
        let first = replies.keep(0, b"one", 100, |_| true).expect("it fits");
        let second = replies
            .keep(1, b"two", 100, |request| request != 0)
            .expect("it fits");
        assert!(!replies.repeat(first, &mut Vec::new()));
        assert!(replies.repeat(second, &mut Vec::new()));
    }
}
