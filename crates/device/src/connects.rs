//! Turns of links to connect: the first by their ramps, later ones after a back-off.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use muster_model::Micros;

use crate::fleets::FleetLinks;
use crate::ramp::Ramp;

/// The connects of a shard's links, by class.
#[derive(Debug, Default)]
pub struct Connects {
    classes: Vec<ClassRamp>,
}

/// Progress of a class's first connects, and the links that wait to try again.
#[derive(Debug)]
struct ClassRamp {
    ramp: Ramp,
    first: u32,
    next: u32,
    links: u32,
    pending: u32,
    /// Links that wait for their next try, the earliest first; each stands here at most once.
    waiting: BinaryHeap<Reverse<(Micros, u32)>>,
}

impl ClassRamp {
    fn has_room(&self) -> bool {
        self.ramp.has_room(self.pending)
    }

    /// Instant at which the next link that never tried may connect.
    fn next_first(&self) -> Option<Micros> {
        self.ramp.at(self.next).filter(|_| self.next < self.links)
    }

    /// Instant at which the next link may try again.
    fn next_again(&self) -> Option<Micros> {
        self.waiting.peek().map(|Reverse((at, _))| *at)
    }
}

impl Connects {
    /// Adds a class, with room for all its links, so that none allocates. Its links connect by themselves only if
    /// they are wanted from the begin on.
    pub(crate) fn add(&mut self, ramp: Ramp, links: &FleetLinks, are_wanted: bool) {
        self.classes.push(ClassRamp {
            ramp,
            first: links.first,
            next: if are_wanted { 0 } else { links.count },
            links: links.count,
            pending: 0,
            waiting: BinaryHeap::with_capacity(links.count as usize),
        });
    }

    /// The ramp of first connects begins.
    pub fn start(&mut self, now: Micros) {
        for class in &mut self.classes {
            class.ramp.start(now);
        }
    }

    /// No link connects any more.
    pub(crate) fn end(&mut self) {
        for class in &mut self.classes {
            class.links = class.next;
            class.waiting.clear();
        }
    }

    /// The next link whose turn to connect has come, if handshakes under way leave room for it;
    /// the driver opens a socket and calls [`crate::Shard::opening`] or
    /// [`crate::Shard::connect_failed`].
    pub fn take(&mut self, now: Micros) -> Option<u32> {
        for class in self.classes.iter_mut().filter(|class| class.has_room()) {
            if class.next_first().is_some_and(|at| at <= now) {
                class.next += 1;
                return Some(class.first + class.next - 1);
            }
            if class.next_again().is_some_and(|at| at <= now) {
                return class.waiting.pop().map(|Reverse((_, link))| link);
            }
        }
        None
    }

    /// Earliest instant at which a link may connect, among classes with room for a handshake.
    pub fn next(&self) -> Option<Micros> {
        let with_room = self.classes.iter().filter(|class| class.has_room());
        with_room
            .flat_map(|class| [class.next_first(), class.next_again()])
            .flatten()
            .min()
    }

    /// Number of ramps; they are numbered from 0.
    pub fn ramps(&self) -> usize {
        self.classes.len()
    }

    /// Returns whether handshakes under way leave room for another one of a ramp.
    pub fn has_room(&self, ramp: usize) -> bool {
        self.classes[ramp].has_room()
    }

    /// The links of a ramp.
    pub(crate) fn links_of(&self, ramp: usize) -> Range<u32> {
        let class = &self.classes[ramp];
        class.first..class.first + class.links
    }

    /// A link connects as number `place` of those that join now, at the rate of its ramp.
    pub(crate) fn join(&mut self, ramp: usize, link: u32, now: Micros, place: u32) {
        let class = &mut self.classes[ramp];
        let at = now + class.ramp.after(place);
        class.waiting.push(Reverse((at, link)));
    }

    /// Only these links of a ramp go on to wait for their next try.
    pub(crate) fn keep(&mut self, ramp: usize, is_kept: impl Fn(u32) -> bool) {
        let waiting = &mut self.classes[ramp].waiting;
        waiting.retain(|Reverse((_, link))| is_kept(*link));
    }

    /// A handshake of a class begins.
    pub(crate) fn begin(&mut self, class: usize) {
        self.classes[class].pending += 1;
    }

    /// A handshake of a class is over.
    pub(crate) fn finish(&mut self, class: usize) {
        let class = &mut self.classes[class];
        class.pending = class.pending.saturating_sub(1);
    }

    /// A link tries again at `at`; or, where its fleet is offline then, after `offline_until`, at the
    /// rate at which the links first connected.
    pub(crate) fn retry(
        &mut self,
        class: usize,
        link: u32,
        at: Micros,
        offline_until: Option<Micros>,
    ) {
        let class = &mut self.classes[class];
        let back = offline_until.map(|until| until + class.ramp.after(link - class.first));
        class.waiting.push(Reverse((back.unwrap_or(at), link)));
    }
}
