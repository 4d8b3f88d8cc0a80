//! Next due messages of one shard: of open streams by their schedules, of closed streams by their
//! devices' answers.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use muster_load::{AddedHold, Cursor, StreamSchedule};
use muster_model::{DeviceId, Micros, StreamId};

/// A message that the schedule wants now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DueMessage {
    /// Its stream.
    pub stream: StreamId,
    /// From whom.
    pub device: DeviceId,
    /// Its place in that device's stream.
    pub seq: u32,
    /// Since T0.
    pub due: Micros,
}

/// All streams of one shard, in due order.
#[derive(Debug)]
pub struct Agenda {
    entries: Vec<Entry>,
    origin: Option<Micros>,
    end: Micros,
}

#[derive(Debug)]
struct Entry {
    stream: StreamId,
    source: Source,
}

#[derive(Debug)]
enum Source {
    Open(Cursor),
    Closed(ClosedLoop),
}

impl Agenda {
    /// An agenda without streams.
    pub fn new() -> Self {
        Self {
            entries: Vec::new(),
            origin: None,
            end: Micros::MAX,
        }
    }

    /// Adds a stream for a range of its devices; call before [`Agenda::start`].
    pub fn add(
        &mut self,
        stream: StreamId,
        schedule: Arc<StreamSchedule>,
        devices: Range<u32>,
        closed: bool,
    ) {
        let source = if closed {
            Source::Closed(ClosedLoop::new(schedule, devices))
        } else {
            Source::Open(Cursor::new(schedule, devices))
        };
        self.entries.push(Entry { stream, source });
    }

    /// The warm-up begins at `origin`.
    pub fn start(&mut self, origin: Micros) {
        self.origin = Some(origin);
        for entry in &mut self.entries {
            if let Source::Closed(closed) = &mut entry.source {
                closed.start(origin);
            }
        }
    }

    /// Goes on with another hold. Closed loops have none.
    pub fn add_hold(&mut self, hold: &AddedHold) {
        for entry in &mut self.entries {
            match &mut entry.source {
                Source::Open(cursor) => cursor.add_hold(hold),
                Source::Closed(_) => {}
            }
        }
    }

    /// Nothing is due at or after `at`.
    pub fn end(&mut self, at: Micros) {
        self.end = self.end.min(at);
    }

    /// The earliest message that is due by `now`.
    pub fn pop(&mut self, now: Micros) -> Option<DueMessage> {
        let (origin, end) = (self.origin?, self.end);
        let next = |entry: &Entry| entry.next(origin).filter(|due| *due < end);
        let (index, due) = match self.entries.as_slice() {
            [only] => (0, next(only)?),
            many => (0..)
                .zip(many)
                .filter_map(|(index, entry)| Some((index, next(entry)?)))
                .min_by_key(|(_, due)| *due)?,
        };
        if due > now {
            return None;
        }
        self.entries[index].take(origin)
    }

    /// Instant at which the next message is due.
    pub fn next(&self) -> Option<Micros> {
        let origin = self.origin?;
        self.entries
            .iter()
            .filter_map(|entry| entry.next(origin))
            .min()
            .filter(|due| *due < self.end)
    }

    /// A message of a closed stream reached its final state, so its device's next one is due.
    pub fn ended(&mut self, stream: StreamId, device: DeviceId, at: Micros) {
        for entry in &mut self.entries {
            match &mut entry.source {
                Source::Closed(closed) if entry.stream == stream => closed.ended(device, at),
                Source::Closed(_) | Source::Open(_) => {}
            }
        }
    }
}

impl Default for Agenda {
    fn default() -> Self {
        Self::new()
    }
}

impl Entry {
    fn next(&self, origin: Micros) -> Option<Micros> {
        match &self.source {
            Source::Open(cursor) => cursor.peek().map(|due| origin + due.due),
            Source::Closed(closed) => closed.next(),
        }
    }

    fn take(&mut self, origin: Micros) -> Option<DueMessage> {
        let (device, seq, due) = match &mut self.source {
            Source::Open(cursor) => {
                let due = cursor.peek()?;
                cursor.advance();
                (due.device, due.seq, origin + due.due)
            }
            Source::Closed(closed) => closed.take()?,
        };
        Some(DueMessage {
            stream: self.stream,
            device,
            seq,
            due,
        })
    }
}

/// One closed stream: a device's next message is due a period after the one before, or when that
/// one ended, whichever is later: `due(n) = max(due(n-1) + period, ended(n-1))`.
#[derive(Debug)]
struct ClosedLoop {
    schedule: Arc<StreamSchedule>,
    first: u32,
    devices: Vec<ClosedDevice>,
    waiting: BinaryHeap<Reverse<(Micros, u32)>>,
    ready: VecDeque<u32>,
    origin: Micros,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ClosedDevice {
    due: Micros,
    seq: u32,
}

impl ClosedLoop {
    fn new(schedule: Arc<StreamSchedule>, devices: Range<u32>) -> Self {
        let count = devices.len();
        Self {
            schedule,
            first: devices.start,
            devices: vec![ClosedDevice::default(); count],
            waiting: BinaryHeap::with_capacity(count),
            ready: VecDeque::with_capacity(count),
            origin: Micros::ZERO,
        }
    }

    fn start(&mut self, origin: Micros) {
        self.origin = origin;
        for (place, device) in (0u32..).zip(&mut self.devices) {
            let Some(first) = self.schedule.first_due(DeviceId(self.first + place)) else {
                continue;
            };
            device.due = origin + first;
            self.waiting.push(Reverse((device.due, place)));
        }
    }

    /// The first device that is ready, and the first that waits for its period, by their instants.
    fn firsts(&self) -> [Option<Micros>; 2] {
        let ready = self.ready.front();
        let ready = ready.map(|place| self.devices[*place as usize].due);
        [ready, self.waiting.peek().map(|Reverse((due, _))| *due)]
    }

    fn next(&self) -> Option<Micros> {
        self.firsts().into_iter().flatten().min()
    }

    fn take(&mut self) -> Option<(DeviceId, u32, Micros)> {
        let place = match self.firsts() {
            [Some(ready), waiting] if waiting.is_none_or(|due| ready <= due) => {
                self.ready.pop_front()?
            }
            [_, _] => self.waiting.pop()?.0.1,
        };
        let device = self.devices[place as usize];
        Some((DeviceId(self.first + place), device.seq, device.due))
    }

    /// With a period shorter than the answer the next due instant is `at`, later than all that
    /// are ready: those keep their order without the heap.
    fn ended(&mut self, device: DeviceId, at: Micros) {
        let place = device.0 - self.first;
        let state = &mut self.devices[place as usize];
        let Some(next) = self.schedule.one_period_after(state.due - self.origin) else {
            return;
        };
        let due = (self.origin + next).max(at);
        let spec = self.schedule.spec();
        let is_last = spec
            .limit_per_device
            .is_some_and(|limit| state.seq + 1 >= limit);
        if is_last || due >= self.origin + spec.horizon() {
            return;
        }
        *state = ClosedDevice {
            due,
            seq: state.seq + 1,
        };
        if due == at {
            self.ready.push_back(place);
        } else {
            self.waiting.push(Reverse((due, place)));
        }
    }
}
