//! Which link tries again when.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use muster_model::Micros;

/// Links of one class that wait for their next try, the earliest first; each stands here at most once.
#[derive(Debug)]
pub(crate) struct Reconnects {
    waiting: BinaryHeap<Reverse<(Micros, u32)>>,
}

impl Reconnects {
    /// Room for so many links, so that none allocates.
    pub(crate) fn with_capacity(links: usize) -> Self {
        Self {
            waiting: BinaryHeap::with_capacity(links),
        }
    }

    pub(crate) fn push(&mut self, at: Micros, link: u32) {
        self.waiting.push(Reverse((at, link)));
    }

    pub(crate) fn next(&self) -> Option<Micros> {
        self.waiting.peek().map(|Reverse((at, _))| *at)
    }

    /// A link whose wait is over by `now`.
    pub(crate) fn pop(&mut self, now: Micros) -> Option<u32> {
        self.next().filter(|at| *at <= now)?;
        self.waiting.pop().map(|Reverse((_, link))| link)
    }
}
