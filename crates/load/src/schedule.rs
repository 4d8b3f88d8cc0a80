//! Due instant and device of each message of a stream, without tables.

use std::ops::Range;
use std::sync::Arc;

use muster_model::{DeviceId, Micros, mix};

use crate::active::{ActiveOrder, ActiveRounds};
use crate::check::{ScheduleError, check};
use crate::layout::{Layout, Place, Rounds};
use crate::permutation::Permutation;
use crate::poisson::Poisson;
use crate::profile::{Profile, UNITS};
use crate::shape::{AddedHold, Phase, ScheduleSpec, Shape};

/// Keys that keep the uses of one seed apart.
const ORDER: u64 = 1;
const PLACES: u64 = 2;
const ARRIVALS: u64 = 3;

/// The messages of a class in due order, numbered from 0 without gaps.
///
/// Instants count from the start of warm-up. `due` never falls, and the messages due before `t`
/// are those below `count_until(t)`, exactly, for every `t`.
pub trait Schedule {
    /// Returns the due instant of message `n`; none beyond the horizon or the devices' limit.
    fn due(&self, n: u64) -> Option<Micros>;
    /// Messages due before `t`.
    fn count_until(&self, t: Micros) -> u64;
    /// The device of message `n` and the message's sequence number there.
    fn owner(&self, n: u64) -> (DeviceId, u32);
    /// The number of the message `seq` of `device`; none if there is no such message.
    fn index_of(&self, device: DeviceId, seq: u32) -> Option<u64>;
}

/// The schedule of one stream: constant memory, whatever the number of devices and messages.
#[derive(Debug, Clone)]
pub struct StreamSchedule {
    spec: ScheduleSpec,
    layout: Layout,
    profile: Profile,
    arrivals: Arrivals,
    order: Option<Permutation>,
    count: u64,
    /// Messages due in warm-up: with `count`, what is asked once a device when a run ends.
    warm_up_count: u64,
}

/// Position of messages on the cumulative rate.
#[derive(Debug, Clone)]
enum Arrivals {
    Even,
    /// The seed of the places within the slots.
    Hash(u64),
    Together,
    Poisson(Poisson),
    Replay(Arc<[Micros]>),
}

impl StreamSchedule {
    /// The schedule of a spec.
    ///
    /// # Errors
    /// [`ScheduleError`] if no schedule can be what the spec says.
    pub fn new(spec: ScheduleSpec) -> Result<Self, ScheduleError> {
        check(&spec)?;
        let per_turn = spec.shape.per_turn();
        let layout = Layout::Whole(Rounds::new(spec.devices, per_turn, spec.limit_per_device));
        let profile = Profile::new(&spec);
        let arrivals = Arrivals::new(&spec, &profile);
        let order = match &spec.phase {
            Phase::Even | Phase::Together => None,
            Phase::Hash => Some(Permutation::new(spec.devices, mix(spec.seed, ORDER))),
            Phase::Active(_) => {
                Some(ActiveOrder::new(spec.first_device, spec.devices).into_order())
            }
        };
        let mut schedule = Self {
            spec,
            layout,
            profile,
            arrivals,
            order,
            count: 0,
            warm_up_count: 0,
        };
        if let Phase::Active(active) = &schedule.spec.phase {
            let first = |from: Micros| schedule.turns_until(from);
            let stretches = active.iter().map(|it| (first(it.from), it.devices));
            schedule.layout = Layout::Active(ActiveRounds::new(stretches));
        }
        schedule.count = schedule.uncut_count(schedule.spec.horizon());
        if schedule.spec.limit_per_device.is_none() && schedule.count > schedule.layout.total() {
            return Err(ScheduleError::TooManyMessages);
        }
        schedule.count = schedule.count.min(schedule.layout.total());
        let warm_up = schedule.uncut_count(schedule.spec.warm_up);
        schedule.warm_up_count = warm_up.min(schedule.count);
        Ok(schedule)
    }

    /// The schedule with another hold: its first messages are those of this one.
    ///
    /// # Errors
    /// [`ScheduleError`] if there can be no such schedule.
    pub fn with_hold(&self, hold: &AddedHold) -> Result<Self, ScheduleError> {
        Self::new(self.spec.clone().with_hold(hold))
    }

    /// Returns the spec of the schedule.
    pub fn spec(&self) -> &ScheduleSpec {
        &self.spec
    }

    /// Messages of the whole schedule.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The devices of the class.
    pub fn devices(&self) -> Range<u32> {
        self.spec.first_device.0..self.spec.first_device.0 + self.spec.devices
    }

    /// The instant one period of a device after `t`, following the rate as it moves. None if it is
    /// not before the horizon, or for a replay and a changing number of devices, which have no period.
    ///
    /// This is the step of a closed loop: due(n) = max(due(n-1) + period, ended(n-1)). A period that
    /// is no whole number of microseconds is rounded up, so that a closed loop is never ahead of
    /// the schedule and never sends more than is nominal.
    pub fn one_period_after(&self, t: Micros) -> Option<Micros> {
        let is_replay = matches!(self.spec.shape, Shape::Replay(_));
        if is_replay || matches!(self.spec.phase, Phase::Active(_)) {
            return None;
        }
        let round = u64::from(self.spec.devices) * UNITS;
        let step = round.div_ceil(u64::from(self.spec.shape.per_turn()));
        // The last of the positions whose instant is `t`.
        let here = self
            .profile
            .units_until(t.get().saturating_add(1))
            .saturating_sub(1);
        self.instant(here + step)
    }

    /// Returns the due instant of the first message of `device`: its phase offset.
    pub fn first_due(&self, device: DeviceId) -> Option<Micros> {
        self.due(self.index_of(device, 0)?)
    }

    /// Messages of `device` among the first `before` messages of the class, in constant time.
    pub fn count_of(&self, device: DeviceId, before: u64) -> u32 {
        match self.slot_of(device) {
            Some(slot) => self.layout.of_slot(slot, before.min(self.count)),
            None => 0,
        }
    }

    /// The slot in which a device has its turns; none for a device of another class.
    pub(crate) fn slot_of(&self, device: DeviceId) -> Option<u32> {
        if !self.devices().contains(&device.0) {
            return None;
        }
        let member = device.0 - self.spec.first_device.0;
        Some(
            self.order
                .as_ref()
                .map_or(member, |order| order.place_of(member)),
        )
    }

    /// The device that has its turns in a slot.
    pub(crate) fn device_in(&self, slot: u32) -> DeviceId {
        let member = self.order.as_ref().map_or(slot, |order| order.at(slot));
        DeviceId(self.spec.first_device.0 + member)
    }

    /// Returns true if slots are in the order of devices.
    pub(crate) fn is_ordered(&self) -> bool {
        self.order.is_none()
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The process behind the arrivals, if they are one.
    pub(crate) fn poisson(&self) -> Option<&Poisson> {
        match &self.arrivals {
            Arrivals::Poisson(poisson) => Some(poisson),
            Arrivals::Even | Arrivals::Hash(_) | Arrivals::Together | Arrivals::Replay(_) => None,
        }
    }

    /// [`Schedule::due`] of a message that exists and whose place is known.
    pub(crate) fn due_at(&self, n: u64, place: Place) -> Option<Micros> {
        let Place { turn, slot, .. } = place;
        let position = match &self.arrivals {
            Arrivals::Even => turn * UNITS,
            Arrivals::Hash(seed) => turn * UNITS + offset(*seed, u64::from(slot)),
            Arrivals::Together => (turn - u64::from(slot)) * UNITS,
            Arrivals::Poisson(poisson) => poisson.arrival(n)?,
            Arrivals::Replay(instants) => {
                return instants.get(n as usize).map(|at| self.spec.warm_up + *at);
            }
        };
        self.instant(position)
    }

    /// Returns the instant at which the cumulative rate passes a position.
    pub(crate) fn instant(&self, position: u64) -> Option<Micros> {
        self.profile.instant(position).map(Micros)
    }

    /// Messages due before `t`, were there no limit.
    fn uncut_count(&self, t: Micros) -> u64 {
        match &self.arrivals {
            // Each is one message, whatever its turn is.
            Arrivals::Poisson(_) | Arrivals::Replay(_) => self.turns_until(t),
            Arrivals::Even | Arrivals::Hash(_) | Arrivals::Together => {
                self.layout.messages(self.turns_until(t))
            }
        }
    }

    /// Turns that begin before `t`, were there no limit; messages, where chance or a list has them.
    fn turns_until(&self, t: Micros) -> u64 {
        let t = t.min(self.spec.horizon());
        let units = self.profile.units_until(t.get());
        let devices = u64::from(self.spec.devices);
        match &self.arrivals {
            Arrivals::Even => units.div_ceil(UNITS),
            Arrivals::Hash(seed) => {
                let whole = units / UNITS;
                whole + u64::from(offset(*seed, whole % devices) < units % UNITS)
            }
            Arrivals::Together => units.div_ceil(UNITS * devices) * devices,
            Arrivals::Poisson(poisson) => poisson.count_before(units),
            Arrivals::Replay(instants) => {
                instants.partition_point(|at| self.spec.warm_up + *at < t) as u64
            }
        }
    }
}

impl Schedule for StreamSchedule {
    fn due(&self, n: u64) -> Option<Micros> {
        if n >= self.count {
            return None;
        }
        self.due_at(n, self.layout.place(n))
    }

    fn count_until(&self, t: Micros) -> u64 {
        match t {
            t if t >= self.spec.horizon() => self.count,
            t if t == self.spec.warm_up => self.warm_up_count,
            t => self.uncut_count(t).min(self.count),
        }
    }

    fn owner(&self, n: u64) -> (DeviceId, u32) {
        let place = self.layout.place(n);
        (self.device_in(place.slot), place.seq)
    }

    fn index_of(&self, device: DeviceId, seq: u32) -> Option<u64> {
        if self.spec.limit_per_device.is_some_and(|limit| seq >= limit) {
            return None;
        }
        let n = self.layout.index(self.slot_of(device)?, seq);
        (n < self.count).then_some(n)
    }
}

impl Arrivals {
    fn new(spec: &ScheduleSpec, profile: &Profile) -> Self {
        if let Shape::Replay(instants) = &spec.shape {
            return Self::Replay(Arc::clone(instants));
        }
        if spec.poisson {
            let units = profile.units_until(spec.horizon().get());
            return Self::Poisson(Poisson::new(mix(spec.seed, ARRIVALS), units));
        }
        match &spec.phase {
            Phase::Even | Phase::Active(_) => Self::Even,
            Phase::Hash => Self::Hash(mix(spec.seed, PLACES)),
            Phase::Together => Self::Together,
        }
    }
}

/// Returns the offset of a turn within its slot, equal in every round so that periods are exact.
fn offset(seed: u64, slot: u64) -> u64 {
    ((u128::from(mix(seed, slot)) * u128::from(UNITS)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use muster_model::Rate;
    use proptest::prelude::*;

    use super::*;
    use crate::sample::{any_spec, large_spec};
    use crate::shape::{HoldRate, Stage};

    fn per_second(rate: f64) -> Rate {
        Rate::per_second(rate).unwrap()
    }

    fn spec(shape: Shape, rate: f64, phase: Phase) -> ScheduleSpec {
        ScheduleSpec {
            shape,
            rate: per_second(rate),
            phase,
            hold_rate: HoldRate::default(),
            poisson: false,
            first_device: DeviceId(0),
            devices: 10,
            limit_per_device: None,
            warm_up: Micros::ZERO,
            measure: Micros::from_secs(10),
            seed: 7,
        }
    }

    fn schedule(spec: ScheduleSpec) -> StreamSchedule {
        StreamSchedule::new(spec).unwrap()
    }

    fn dues(schedule: &StreamSchedule) -> Vec<u64> {
        (0..schedule.count())
            .map(|n| schedule.due(n).unwrap().get())
            .collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        /// due never falls and stays below the horizon; count_until(due(n)) <= n and
        /// count_until(due(n) + 1) > n, with equality where no other message shares the instant.
        #[test]
        fn counting_inverts_due(spec in any_spec()) {
            let schedule = StreamSchedule::new(spec).unwrap();
            let dues = dues(&schedule);
            prop_assert!(dues.is_sorted());
            prop_assert_eq!(schedule.due(schedule.count()), None);
            prop_assert_eq!(schedule.count_until(Micros::MAX), schedule.count());
            prop_assert_eq!(schedule.count_until(Micros::ZERO), 0);
            for due in &dues {
                prop_assert!(*due < schedule.spec().horizon().get());
                let before = dues.partition_point(|other| other < due);
                let with = dues.partition_point(|other| other <= due);
                prop_assert_eq!(schedule.count_until(Micros(*due)), before as u64);
                prop_assert_eq!(schedule.count_until(Micros(*due + 1)), with as u64);
            }
        }

        /// The same at any size, message by message: count_until(due(n)) <= n < count_until(due(n)
        /// + 1), due(n) <= due(n + 1) and index_of(owner(n)) = n; and count_until(t) splits the
        /// messages into those due before t and those due from t on.
        #[test]
        fn the_laws_hold_at_any_size(spec in large_spec(), n: u64, t: u64) {
            let schedule = match StreamSchedule::new(spec) {
                Ok(schedule) => schedule,
                Err(error) => {
                    prop_assert_eq!(error, ScheduleError::TooManyMessages);
                    return Ok(());
                }
            };
            if schedule.count() > 0 {
                let n = n % schedule.count();
                let due = schedule.due(n).unwrap();
                prop_assert!(schedule.count_until(due) <= n);
                prop_assert!(n < schedule.count_until(due + Micros(1)));
                prop_assert!(schedule.due(n + 1).is_none_or(|next| next >= due));
                let (device, seq) = schedule.owner(n);
                prop_assert_eq!(schedule.index_of(device, seq), Some(n));
            }
            let t = Micros(t % schedule.spec().horizon().get());
            let before = schedule.count_until(t);
            prop_assert!(schedule.due(before).is_none_or(|due| due >= t));
            prop_assert!(before.checked_sub(1).is_none_or(|n| schedule.due(n).unwrap() < t));
        }

        /// count_until(t) is the number of messages with due < t, for instants that are no due.
        #[test]
        fn counting_is_enumerating(spec in any_spec(), t in 0u64..8_000_000) {
            let schedule = StreamSchedule::new(spec).unwrap();
            let before = dues(&schedule).partition_point(|due| *due < t);
            prop_assert_eq!(schedule.count_until(Micros(t)), before as u64);
        }

        /// index_of(owner(n)) = n; sequence numbers of a device start at 0 and have no gaps.
        #[test]
        fn owners_invert(spec in any_spec(), t in 0u64..8_000_000) {
            let schedule = StreamSchedule::new(spec).unwrap();
            let class = schedule.devices();
            let mut next = vec![0; class.len()];
            let before = schedule.count_until(Micros(t));
            for n in 0..before {
                let (device, seq) = schedule.owner(n);
                prop_assert_eq!(schedule.index_of(device, seq), Some(n));
                let next = &mut next[(device.0 - class.start) as usize];
                prop_assert_eq!(seq, *next);
                *next += 1;
            }
            for (place, count) in next.iter().enumerate() {
                let device = DeviceId(class.start + place as u32);
                prop_assert_eq!(schedule.count_of(device, before), *count);
                prop_assert_eq!(schedule.index_of(device, u32::MAX), None);
            }
        }

        /// Two schedules of one spec are the same, whatever the order of questions.
        #[test]
        fn a_schedule_is_a_pure_function(spec in any_spec(), ns: [u64; 8]) {
            let (a, b) = (StreamSchedule::new(spec.clone()).unwrap(), StreamSchedule::new(spec).unwrap());
            let wanted: Vec<_> = (0..a.count()).map(|n| a.due(n)).collect();
            for n in ns {
                let n = n % (b.count() + 1);
                prop_assert_eq!(b.due(n), wanted.get(n as usize).copied().flatten());
            }
        }

        /// At any integer rate message n of an even schedule is due at floor(n / rate) exactly, also
        /// after 10^9 messages.
        #[test]
        fn constant_dues_are_exact(rate in 1u32..2_000_000, n in 0u64..1_000_000_000) {
            let mut spec = spec(Shape::Constant, f64::from(rate), Phase::Even);
            spec.measure = Micros::from_secs(1_000_000_000 / u64::from(rate) + 2);
            let expected = n * 1_000_000 / u64::from(rate);
            prop_assert_eq!(schedule(spec).due(n), Some(Micros(expected)));
        }

        /// Each device of a constant class keeps one period, to the microsecond.
        #[test]
        fn hashed_devices_keep_their_period(seed: u64, device in 0u32..10) {
            let spec = ScheduleSpec { seed, ..spec(Shape::Constant, 20.0, Phase::Hash) };
            let schedule = schedule(spec);
            let dues: Vec<u64> = (0..20)
                .map(|seq| schedule.index_of(DeviceId(device), seq).unwrap())
                .map(|n| schedule.due(n).unwrap().get())
                .collect();
            prop_assert!(dues.windows(2).all(|pair| pair[1] - pair[0] == 500_000));
            prop_assert_eq!(schedule.first_due(DeviceId(device)), Some(Micros(dues[0])));
        }

        /// One period after any due instant of a constant class is the device's next due instant.
        #[test]
        fn a_closed_loop_steps_by_the_period(seed: u64, n in 0u64..150) {
            let spec = ScheduleSpec { seed, ..spec(Shape::Constant, 20.0, Phase::Hash) };
            let schedule = schedule(spec);
            let due = schedule.due(n).unwrap();
            prop_assert_eq!(schedule.one_period_after(due), schedule.due(n + 10));
        }
    }

    proptest! {
        /// A closed loop that is never held up is never ahead of the schedule, nor more than a
        /// microsecond a period behind it at a constant rate.
        #[test]
        fn a_closed_loop_follows_the_schedule(spec in any_spec(), device: u32) {
            let is_burst = matches!(spec.shape, Shape::Burst { .. });
            prop_assume!(!spec.poisson && !is_burst && !matches!(spec.shape, Shape::Replay(_)));
            prop_assume!(!matches!(spec.phase, Phase::Active(_)));
            let schedule = StreamSchedule::new(spec).unwrap();
            let device = DeviceId(schedule.devices().start + device % schedule.spec().devices);
            let mut due = schedule.first_due(device);
            for seq in 0..schedule.spec().limit_per_device.unwrap_or(u32::MAX) {
                let nominal = schedule.index_of(device, seq).and_then(|n| schedule.due(n));
                let Some(here) = due else { break };
                prop_assert!(nominal.is_some_and(|nominal| nominal <= here));
                if schedule.spec().shape == Shape::Constant {
                    let behind = nominal.map(|nominal| here - nominal);
                    prop_assert!(behind <= Some(Micros(u64::from(seq))));
                }
                due = schedule.one_period_after(here);
            }
        }
    }

    /// The dues of a class of ten devices over ten seconds.
    fn check(shape: &Shape, rate: f64, phase: Phase, n: u64, due_us: u64) {
        let schedule = schedule(spec(shape.clone(), rate, phase));
        assert_eq!(schedule.due(n), Some(Micros(due_us)), "{shape:?} {n}");
    }

    #[test]
    fn shapes_are_due_where_their_integral_says() {
        let ramp = Shape::Ramp {
            from: Rate::ZERO,
            over: Micros::from_secs(10),
        };
        // n = 5 t^2, so message 20 is due at 2 s and message 125 at 5 s.
        check(&ramp, 100.0, Phase::Even, 20, 2_000_000);
        check(&ramp, 100.0, Phase::Even, 125, 5_000_000);
        let stages = Shape::Stages(vec![
            Stage {
                to: per_second(10.0),
                over: Micros::ZERO,
                hold: Micros::from_secs(1),
            },
            Stage {
                to: Rate::ZERO,
                over: Micros::ZERO,
                hold: Micros::from_secs(2),
            },
            Stage {
                to: per_second(10.0),
                over: Micros::ZERO,
                hold: Micros::from_secs(1),
            },
        ]);
        check(&stages, 0.0, Phase::Even, 9, 900_000);
        check(&stages, 0.0, Phase::Even, 10, 3_000_000);
        let spike = Shape::Spike {
            to: per_second(100.0),
            at: Micros::from_secs(1),
            lasts: Micros::from_secs(1),
        };
        check(&spike, 10.0, Phase::Even, 60, 1_500_000);
        check(&spike, 10.0, Phase::Even, 115, 2_500_000);
        check(&Shape::Constant, 20.0, Phase::Together, 19, 500_000);
    }

    #[test]
    fn a_sine_carries_its_mean_each_period_and_rises_first() {
        let shape = Shape::Sine {
            from: Rate::ZERO,
            to: per_second(200.0),
            period: Micros::from_secs(2),
        };
        let schedule = schedule(spec(shape, 0.0, Phase::Even));
        assert_eq!(schedule.count_until(Micros::from_secs(2)), 200);
        assert_eq!(schedule.count_until(Micros::from_secs(8)), 800);
        // Within the first quarter of a period a sine from zero carries 1/4 - 1/(2 pi) of it.
        assert_eq!(schedule.count_until(Micros::from_millis(500)), 19);
    }

    #[test]
    fn warm_up_runs_at_the_first_value() {
        let shape = Shape::Ramp {
            from: per_second(10.0),
            over: Micros::from_secs(10),
        };
        let spec = ScheduleSpec {
            warm_up: Micros::from_secs(3),
            ..spec(shape, 20.0, Phase::Even)
        };
        let schedule = schedule(spec);
        assert_eq!(schedule.count_until(Micros::from_secs(3)), 30);
        assert_eq!(schedule.count(), 30 + 150);
    }

    #[test]
    fn a_burst_gives_each_device_its_messages_at_once() {
        let shape = Shape::Burst {
            n: 3,
            every: Micros::from_secs(1),
        };
        let schedule = schedule(spec(shape, 0.0, Phase::Even));
        let first: Vec<_> = (0..4)
            .map(|n| (schedule.owner(n), schedule.due(n).unwrap()))
            .collect();
        assert_eq!(first[2], ((DeviceId(0), 2), Micros::ZERO));
        assert_eq!(first[3], ((DeviceId(1), 0), Micros::from_millis(100)));
        assert_eq!(schedule.index_of(DeviceId(0), 3), Some(30));
        assert_eq!(schedule.due(30), Some(Micros::from_secs(1)));
        assert_eq!(schedule.count(), 300);
    }

    #[test]
    fn a_replay_is_due_at_its_instants_after_warm_up() {
        let shape = Shape::Replay([5, 5, 90].map(Micros).into());
        let spec = ScheduleSpec {
            warm_up: Micros(100),
            ..spec(shape, 0.0, Phase::Even)
        };
        let schedule = schedule(spec);
        assert_eq!(dues(&schedule), [105, 105, 190]);
        assert_eq!(schedule.owner(2), (DeviceId(2), 0));
    }

    #[test]
    fn a_class_without_rate_has_no_message() {
        let schedule = schedule(spec(Shape::Constant, 0.0, Phase::Hash));
        assert_eq!((schedule.count(), schedule.due(0)), (0, None));
        assert_eq!(schedule.one_period_after(Micros::ZERO), None);
    }

    #[test]
    fn poisson_arrivals_follow_the_rate() {
        let shape = Shape::Ramp {
            from: Rate::ZERO,
            over: Micros::from_secs(10),
        };
        let spec = ScheduleSpec {
            poisson: true,
            ..spec(shape, 20_000.0, Phase::Hash)
        };
        let schedule = schedule(spec);
        // 100,000 in all, give or take 316; a quarter of them in the first half.
        assert!(
            schedule.count().abs_diff(100_000) < 1_230,
            "{}",
            schedule.count()
        );
        let half = schedule.count_until(Micros::from_secs(5));
        assert!(half.abs_diff(25_000) < 615, "{half}");
    }
}
