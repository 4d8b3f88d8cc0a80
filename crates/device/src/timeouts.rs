//! Time-outs of attempts, and waits for commands.
//!
//! With one time-out a stream the oldest attempt is overdue first. Time-outs that begin anew with
//! each acknowledgement are kept apart ([`SlidingTimeouts`]).

use muster_model::Micros;

use crate::class::ClassStream;
use crate::sliding_timeouts::SlidingTimeouts;
use crate::slots::{Chain, SlotId, Slots};

/// The attempts of a shard that wait for an answer or for a command.
#[derive(Debug)]
pub(crate) struct Timeouts {
    /// By stream of the plan.
    streams: Vec<Waiting>,
    sliding: SlidingTimeouts,
}

/// The attempts of one stream, by the instant from which on they wait.
#[derive(Debug, Clone, Copy, Default)]
struct Waiting {
    timeout: Micros,
    /// The time that a device waits for a command once the platform has taken its query.
    ttd: Option<Micros>,
    slides: bool,
    for_answer: Chain,
    for_command: Chain,
}

impl Timeouts {
    /// No message waits; `streams` are those of the plan.
    pub(crate) fn new(streams: usize) -> Self {
        Self {
            streams: vec![Waiting::default(); streams],
            sliding: SlidingTimeouts::default(),
        }
    }

    /// Takes in a stream of the shard.
    pub(crate) fn add(&mut self, stream: &ClassStream) {
        self.streams[stream.id.index()] = Waiting {
            timeout: stream.timeout,
            ttd: stream.ttd(),
            slides: stream.sliding_timeout().is_some(),
            ..Waiting::default()
        };
    }

    /// Makes room for the sliding time-outs of all queues; called once all streams are known.
    pub(crate) fn slide(&mut self, queues: &[Option<Micros>], links: usize) {
        self.sliding = SlidingTimeouts::of(queues, links);
    }

    /// An attempt waits for its answer; [`crate::slots::Slot::flown`] is set.
    pub(crate) fn watch<K>(&mut self, slots: &mut Slots<K>, queue: usize, id: SlotId) {
        let stream = &mut self.streams[slots.get(id).stream.index()];
        if stream.slides {
            self.sliding.watch(slots, queue, id);
        } else {
            slots.watch(&mut stream.for_answer, id);
        }
    }

    /// A query that the platform has taken waits for a command.
    pub(crate) fn await_command<K>(&mut self, slots: &mut Slots<K>, id: SlotId) {
        let stream = &mut self.streams[slots.get(id).stream.index()];
        slots.watch(&mut stream.for_command, id);
    }

    /// An attempt waits no more.
    pub(crate) fn unwatch<K>(&mut self, slots: &mut Slots<K>, queue: usize, id: SlotId) {
        let is_asking = std::mem::take(&mut slots.get_mut(id).is_asking);
        let stream = &mut self.streams[slots.get(id).stream.index()];
        if is_asking {
            slots.unwatch(&mut stream.for_command, id);
        } else if stream.slides {
            self.sliding.unwatch(slots, queue, id);
        } else {
            slots.unwatch(&mut stream.for_answer, id);
        }
    }

    /// The device of a link was acknowledged.
    pub(crate) fn acknowledged(&mut self, link: u32, now: Micros) {
        self.sliding.acknowledged(link, now);
    }

    /// The instant from which the next attempt may be overdue.
    pub(crate) fn next<K>(&self, slots: &Slots<K>) -> Option<Micros> {
        let streams = self.streams.iter();
        let ends = streams.flat_map(|stream| [stream.answer_due(slots), stream.command_due(slots)]);
        ends.flatten().chain(self.sliding.next()).min()
    }

    /// An attempt that is overdue; it is to be unwatched.
    pub(crate) fn overdue<K>(&mut self, slots: &Slots<K>, now: Micros) -> Option<SlotId> {
        let is_over = |due: Option<Micros>| due.is_some_and(|due| due <= now);
        let mut streams = self.streams.iter();
        if let Some(stream) = streams.find(|stream| is_over(stream.answer_due(slots))) {
            return stream.for_answer.first();
        }
        let mut streams = self.streams.iter();
        if let Some(stream) = streams.find(|stream| is_over(stream.command_due(slots))) {
            return stream.for_command.first();
        }
        self.sliding.overdue(slots, now)
    }
}

impl Waiting {
    fn answer_due<K>(&self, slots: &Slots<K>) -> Option<Micros> {
        let oldest = slots.get(self.for_answer.first()?);
        Some(oldest.flown + self.timeout)
    }

    fn command_due<K>(&self, slots: &Slots<K>) -> Option<Micros> {
        let oldest = slots.get(self.for_command.first()?);
        Some(oldest.flown + self.ttd?)
    }
}
