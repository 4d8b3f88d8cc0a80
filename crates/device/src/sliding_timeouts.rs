//! Time-outs that begin anew with each acknowledgement that a device gets.
//!
//! On a queue the oldest attempt is overdue first, but an acknowledgement moves all attempts of its
//! device at once, so the queues of a shard have no fixed order. Each queue with an open attempt is
//! looked at when its oldest would be overdue by what was known at the last look, and is put back
//! if an acknowledgement came since: at most one look a queue and time-out, and a few bytes a queue.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use muster_model::Micros;

use crate::slots::{Chain, SlotId, Slots};

/// The attempts of all queues of a shard whose time-out slides; empty where there is none.
#[derive(Debug, Default)]
pub(crate) struct SlidingTimeouts {
    queues: Vec<SlidingQueue>,
    /// By link: when its device was acknowledged last.
    acknowledged_at: Vec<Micros>,
    /// Instants at which stream queues are looked at; each queue at most once.
    looks: BinaryHeap<Reverse<(Micros, u32)>>,
}

#[derive(Debug, Clone, Copy)]
struct SlidingQueue {
    waiting: Chain,
    timeout: Micros,
    is_listed: bool,
}

impl SlidingTimeouts {
    /// Allocates queues with these time-outs for `links` links; none if no time-out slides.
    pub(crate) fn of(timeouts: &[Option<Micros>], links: usize) -> Self {
        if timeouts.iter().all(Option::is_none) {
            return Self::default();
        }
        let queue = |timeout: &Option<Micros>| SlidingQueue {
            waiting: Chain::default(),
            timeout: timeout.unwrap_or(Micros::MAX),
            is_listed: false,
        };
        Self {
            queues: timeouts.iter().map(queue).collect(),
            acknowledged_at: vec![Micros::ZERO; links],
            looks: BinaryHeap::with_capacity(timeouts.len()),
        }
    }

    /// An attempt of a queue flies; [`crate::slots::Slot::flown`] is set.
    pub(crate) fn watch<K>(&mut self, slots: &mut Slots<K>, queue: usize, id: SlotId) {
        let state = &mut self.queues[queue];
        slots.watch(&mut state.waiting, id);
        if !std::mem::replace(&mut state.is_listed, true) {
            let deadline = slots.get(id).flown + state.timeout;
            self.looks.push(Reverse((deadline, queue as u32)));
        }
    }

    /// An attempt of a queue has landed.
    pub(crate) fn unwatch<K>(&mut self, slots: &mut Slots<K>, queue: usize, id: SlotId) {
        slots.unwatch(&mut self.queues[queue].waiting, id);
    }

    /// The device of a link was acknowledged.
    pub(crate) fn acknowledged(&mut self, link: u32, now: Micros) {
        if let Some(acknowledged_at) = self.acknowledged_at.get_mut(link as usize) {
            *acknowledged_at = now;
        }
    }

    /// Instant at which the next stream queue is looked at.
    pub(crate) fn next(&self) -> Option<Micros> {
        self.looks.peek().map(|Reverse((at, _))| *at)
    }

    /// An attempt that is overdue, which then lands.
    pub(crate) fn overdue<K>(&mut self, slots: &Slots<K>, now: Micros) -> Option<SlotId> {
        while let Some(Reverse((_, queue))) = self.looks.peek().filter(|next| next.0.0 <= now) {
            let queue = *queue;
            self.looks.pop();
            let state = &mut self.queues[queue as usize];
            let Some(oldest) = state.waiting.first() else {
                state.is_listed = false;
                continue;
            };
            let slot = slots.get(oldest);
            let since = slot.flown.max(self.acknowledged_at[slot.link as usize]);
            let deadline = since + state.timeout;
            self.looks.push(Reverse((deadline, queue)));
            if deadline <= now {
                return Some(oldest);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use muster_model::{DeviceId, StreamId};

    use super::*;
    use crate::slots::Admission;

    fn flying(slots: &mut Slots<()>, slide: &mut SlidingTimeouts, link: u32, at: u64) -> SlotId {
        let id = slots.take(Admission {
            due: Micros::ZERO,
            taken: Micros::ZERO,
            own: crate::generator_delay::DelayAtAdmission::default(),
            device: DeviceId(link),
            seq: 0,
            link,
            stream: StreamId(0),
        });
        let id = id.expect("there is room");
        slots.get_mut(id).flown = Micros::from_secs(at);
        slide.watch(slots, link as usize, id);
        id
    }

    fn at(seconds: u64) -> Micros {
        Micros::from_secs(seconds)
    }

    #[test]
    fn an_acknowledgement_puts_off_all_attempts_of_its_device_and_no_other() {
        let (mut slots, mut slide) = (
            Slots::<()>::new(10),
            SlidingTimeouts::of(&[Some(at(30)); 2], 2),
        );
        let first = flying(&mut slots, &mut slide, 0, 1);
        let other = flying(&mut slots, &mut slide, 1, 2);
        slide.acknowledged(0, at(20));
        assert_eq!(slide.overdue(&slots, at(31)), None);
        assert_eq!(slide.overdue(&slots, at(32)), Some(other));
        slide.unwatch(&mut slots, 1, other);
        assert_eq!(slide.overdue(&slots, at(49)), None);
        assert_eq!(slide.overdue(&slots, at(50)), Some(first));
        slide.unwatch(&mut slots, 0, first);
        assert_eq!(slide.overdue(&slots, at(500)), None);
        assert_eq!(slide.next(), None, "nothing is left to look at");
    }

    #[test]
    fn an_attempt_has_its_whole_time_after_it_was_sent() {
        let (mut slots, mut slide) = (
            Slots::<()>::new(10),
            SlidingTimeouts::of(&[Some(at(30))], 1),
        );
        slide.acknowledged(0, at(1));
        let id = flying(&mut slots, &mut slide, 0, 25);
        assert_eq!(slide.overdue(&slots, at(54)), None);
        assert_eq!(slide.overdue(&slots, at(55)), Some(id));
    }

    #[test]
    fn nothing_is_kept_where_no_lane_slides() {
        let mut slide = SlidingTimeouts::of(&[None, None], 2);
        slide.acknowledged(1, at(1));
        assert!(slide.queues.is_empty() && slide.acknowledged_at.is_empty());
    }
}
