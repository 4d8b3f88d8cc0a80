//! The messages of some devices of one stream, one after the other in due order.

use std::ops::Range;
use std::sync::Arc;

use muster_model::{DeviceId, Micros};

use crate::active::ActivePosition;
use crate::layout::{Layout, Place};
use crate::poisson::Walk;
use crate::schedule::StreamSchedule;
use crate::shape::AddedHold;

/// The next message of a cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    /// Its number in the class.
    pub n: u64,
    /// Its device.
    pub device: DeviceId,
    /// Its number in that device's stream.
    pub seq: u32,
    /// Its due instant, from the start of warm-up.
    pub due: Micros,
}

/// Visits the messages of a range of devices in due order, without allocating, in constant time a
/// message.
///
/// Cursors over a partition of the class's devices visit every message of the schedule once.
#[derive(Debug, Clone)]
pub struct Cursor {
    schedule: Arc<StreamSchedule>,
    slots: Slots,
    round: u64,
    at: usize,
    within: u64,
    /// The position where the number of active devices changes; the round and the message within a turn are not
    /// used then.
    active: ActivePosition,
    walk: Option<Box<Walk>>,
    next: Option<Due>,
}

/// The slots of the range, ascending.
#[derive(Debug, Clone)]
enum Slots {
    Run(Range<u32>),
    /// Only for a part of a hashed class: 4 bytes a device.
    Table(Box<[u32]>),
}

impl Cursor {
    /// A cursor before the first message of `devices` (global numbers; those of other classes are
    /// passed over).
    pub fn new(schedule: Arc<StreamSchedule>, devices: Range<u32>) -> Self {
        let slots = Slots::new(&schedule, devices);
        let walk = schedule.poisson().map(|_| Box::new(Walk::new()));
        let mut cursor = Self {
            schedule,
            slots,
            round: 0,
            at: 0,
            within: 0,
            active: ActivePosition::default(),
            walk,
            next: None,
        };
        cursor.next = cursor.here();
        cursor
    }

    /// Goes on with another hold. Does nothing if there can be no such schedule: who orders the hold makes it first, and
    /// has the error.
    pub fn add_hold(&mut self, hold: &AddedHold) {
        if let Ok(schedule) = self.schedule.with_hold(hold) {
            self.schedule = Arc::new(schedule);
            self.next = self.here();
        }
    }

    /// The next message; none when the schedule is over.
    pub fn peek(&self) -> Option<Due> {
        self.next
    }

    /// Goes on to the message after it.
    pub fn advance(&mut self) {
        if self.next.is_none() {
            return;
        }
        match self.schedule.layout() {
            Layout::Active(_) => self.at += 1,
            Layout::Whole(rounds) => {
                self.within += 1;
                if self.within >= rounds.turn(self.round) {
                    self.within = 0;
                    self.at += 1;
                }
                if self.at >= self.slots.len() {
                    self.at = 0;
                    self.round += 1;
                }
            }
        }
        self.next = self.here();
    }

    /// The next message's number and place.
    fn place(&mut self) -> Option<(u64, Place)> {
        let rounds = match self.schedule.layout() {
            Layout::Whole(rounds) => rounds,
            Layout::Active(rounds) => {
                let slots = &self.slots;
                let own = |at| slots.get(at);
                let place = rounds.seek(&mut self.active, &mut self.at, own)?;
                return Some((place.turn, place));
            }
        };
        let slot = self.slots.get(self.at)?;
        if rounds.turn(self.round) == 0 {
            return None;
        }
        let n = rounds.first_of(self.round, slot) + self.within;
        let seq = rounds.seq(self.round, self.within);
        let turn = self.round * self.slots_of_class() + u64::from(slot);
        Some((n, Place { turn, slot, seq }))
    }

    fn slots_of_class(&self) -> u64 {
        self.schedule.devices().len() as u64
    }

    fn here(&mut self) -> Option<Due> {
        let (n, place) = self.place()?;
        if n >= self.schedule.count() {
            return None;
        }
        let due = match (self.schedule.poisson(), &mut self.walk) {
            (Some(poisson), Some(walk)) => self.schedule.instant(walk.arrival(poisson, n)?)?,
            (_, _) => self.schedule.due_at(n, place)?,
        };
        Some(Due {
            n,
            device: self.schedule.device_in(place.slot),
            seq: place.seq,
            due,
        })
    }
}

impl Iterator for Cursor {
    type Item = Due;

    fn next(&mut self) -> Option<Due> {
        let due = self.next;
        self.advance();
        due
    }
}

impl Slots {
    fn new(schedule: &StreamSchedule, devices: Range<u32>) -> Self {
        let class = schedule.devices();
        let start = devices.start.clamp(class.start, class.end);
        let end = devices.end.clamp(start, class.end);
        if schedule.is_ordered() || (start..end) == class {
            return Self::Run(start - class.start..end - class.start);
        }
        let mut slots: Box<[u32]> = (start..end)
            .filter_map(|device| schedule.slot_of(DeviceId(device)))
            .collect();
        slots.sort_unstable();
        Self::Table(slots)
    }

    fn len(&self) -> usize {
        match self {
            Self::Run(run) => run.len(),
            Self::Table(table) => table.len(),
        }
    }

    fn get(&self, at: usize) -> Option<u32> {
        match self {
            Self::Run(run) => (at < run.len()).then(|| run.start + at as u32),
            Self::Table(table) => table.get(at).copied(),
        }
    }
}

#[cfg(test)]
mod tests {
    use muster_model::Rate;
    use proptest::prelude::*;

    use super::*;
    use crate::sample::any_spec;
    use crate::schedule::Schedule;
    use crate::shape::{HoldRate, Phase, ScheduleSpec, Shape};

    fn hashed(devices: u32) -> ScheduleSpec {
        ScheduleSpec {
            shape: Shape::Constant,
            rate: Rate::per_second(1e6).unwrap(),
            phase: Phase::Hash,
            hold_rate: HoldRate::default(),
            poisson: false,
            first_device: DeviceId(0),
            devices,
            limit_per_device: None,
            warm_up: Micros::ZERO,
            measure: Micros::from_secs(1_000),
            seed: 1,
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        /// The union of cursors over a partition of the devices is the whole schedule, each message
        /// once, each cursor in due order and each message as random access gives it.
        #[test]
        fn cursors_over_a_partition_are_the_schedule(spec in any_spec(), cuts: [u32; 2]) {
            let schedule = Arc::new(StreamSchedule::new(spec).unwrap());
            let class = schedule.devices();
            let mut cuts = cuts.map(|cut| class.start + cut % (class.len() as u32 + 1));
            cuts.sort_unstable();
            let mut all = Vec::new();
            for part in [0..cuts[0], cuts[0]..cuts[1], cuts[1]..u32::MAX] {
                let visited: Vec<Due> = Cursor::new(Arc::clone(&schedule), part.clone()).collect();
                prop_assert!(visited.is_sorted_by(|a, b| a.n < b.n && a.due <= b.due));
                for due in &visited {
                    prop_assert!(part.contains(&due.device.0));
                    prop_assert_eq!(schedule.owner(due.n), (due.device, due.seq));
                    prop_assert_eq!(schedule.due(due.n), Some(due.due));
                }
                all.extend(visited.iter().map(|due| due.n));
            }
            all.sort_unstable();
            prop_assert_eq!(all, (0..schedule.count()).collect::<Vec<_>>());
        }
    }

    proptest! {
        /// Law: a cursor that reaches the end of each hold before the next one is added visits the messages
        /// of the schedule that has them all from the begin.
        #[test]
        fn holds_that_are_added_are_those_of_one_schedule(
            spec in any_spec(),
            holds in prop::collection::vec((0_u64..3_000, 1_u64..4_000, 1_u32..40), 1..5),
            cut: u32,
        ) {
            let silent = ScheduleSpec {
                poisson: spec.poisson && spec.phase != Phase::Together,
                rate: Rate::per_second(100.0).unwrap(),
                warm_up: Micros::ZERO,
                measure: Micros::from_secs(60),
                limit_per_device: None,
                ..spec
            };
            let silent = match silent.phase {
                // Any other numbers would begin before the holds.
                Phase::Active(_) => silent.with_active_devices().silent(),
                Phase::Even | Phase::Hash | Phase::Together => silent.silent(),
            };
            let mut at = Micros::ZERO;
            let added: Vec<AddedHold> = holds
                .iter()
                .map(|(pause, length, tenths)| {
                    let from = at + Micros::from_millis(*pause);
                    at = from + Micros::from_millis(*length);
                    AddedHold { from, until: at, factor: f64::from(*tenths) / 10.0 }
                })
                .collect();
            let all = added.iter().fold(silent.clone(), |spec, hold| spec.with_hold(hold));
            let whole = Arc::new(StreamSchedule::new(all).unwrap());
            let class = whole.devices();
            let part = class.start..class.start + 1 + cut % class.len() as u32;
            let expected: Vec<Due> = Cursor::new(Arc::clone(&whole), part.clone()).collect();
            let schedule = Arc::new(StreamSchedule::new(silent).unwrap());
            let mut cursor = Cursor::new(Arc::clone(&schedule), part);
            let mut recall = crate::Recall::new(schedule);
            let mut visited = Vec::new();
            for hold in &added {
                cursor.add_hold(hold);
                recall.add_hold(hold);
                visited.extend(cursor.by_ref());
            }
            prop_assert_eq!(&visited, &expected);
            for due in &visited {
                prop_assert_eq!(recall.due(due.device, due.seq), Some(due.due));
            }
        }
    }

    #[test]
    fn a_billion_messages_of_millions_of_devices_cost_nothing_up_front() {
        let schedule = Arc::new(StreamSchedule::new(hashed(4_000_000)).unwrap());
        assert_eq!(schedule.count(), 1_000_000_000);
        let whole = Cursor::new(Arc::clone(&schedule), 0..u32::MAX);
        assert!(matches!(whole.slots, Slots::Run(_)));
        let last = schedule.due(999_999_999).unwrap();
        assert!(last < Micros::from_secs(1_000) && last >= Micros(999_999_999));
    }

    #[test]
    fn a_cursor_ends_once_and_stays_there() {
        let spec = ScheduleSpec {
            limit_per_device: Some(1),
            ..hashed(2)
        };
        let mut cursor = Cursor::new(Arc::new(StreamSchedule::new(spec).unwrap()), 0..2);
        assert_eq!(cursor.by_ref().count(), 2);
        cursor.advance();
        assert_eq!(cursor.peek(), None);
    }
}
