//! Instants of a device's messages as whole ticks, all different.
//!
//! A platform may keep one value for each device, key and millisecond. Messages that are due within one
//! millisecond, as those of a burst are, then need instants that differ. An instant stays a pure function
//! of the message's id and due instant: no message is remembered.

use std::sync::Arc;

use muster_model::{DeviceId, Micros};

use crate::schedule::{Schedule, StreamSchedule};
use crate::shape::{ScheduleSpec, Shape};
use crate::template::Scope;

/// Microseconds of a millisecond.
const US_PER_MS: u64 = 1_000;
/// Messages of a device per tick, on average, from which on a schedule counts as dense.
const DENSE: f64 = 0.5;

/// The rule that makes the instants of a stream's messages differ.
#[derive(Debug, Clone)]
pub struct UniqueMs {
    rule: Rule,
}

#[derive(Debug, Clone)]
enum Rule {
    /// No two messages of a device are due within one tick.
    AsDue,
    /// Each device sends this many messages at once, and its next burst is due after as many ticks.
    InBurst(u32),
    /// A device may send more than one message a tick for long: each message adds one tick to its due
    /// instant.
    Counted,
    /// Any instants: a message follows the one before it by at least one tick.
    Following(Arc<StreamSchedule>),
}

impl UniqueMs {
    /// The rule for a schedule, in ticks of at most `step` milliseconds. `is_closed` says that a message may be due
    /// later than the schedule has it, and the next one a period after that.
    pub fn new(schedule: &Arc<StreamSchedule>, step: u32, is_closed: bool) -> Self {
        let rule = match Arrivals::of(schedule.spec(), step.max(1), is_closed) {
            Arrivals::Apart => Rule::AsDue,
            Arrivals::Burst(messages) => Rule::InBurst(messages),
            Arrivals::Dense => Rule::Counted,
            Arrivals::Irregular => Rule::Following(Arc::clone(schedule)),
        };
        Self { rule }
    }

    /// The tick, of `step` milliseconds, of a message that is due at this microsecond of the wall clock.
    pub(crate) fn tick(&self, scope: &Scope<'_>, due_us: u64, step: u32) -> u64 {
        let tick_us = u64::from(step) * US_PER_MS;
        let tick = due_us / tick_us;
        let seq = scope.id.seq;
        match &self.rule {
            Rule::AsDue => tick,
            Rule::InBurst(messages) => tick + u64::from(seq % messages),
            Rule::Counted => tick + u64::from(seq),
            Rule::Following(schedule) => {
                let line = Line {
                    schedule,
                    device: scope.id.device,
                    tick_us,
                };
                line.tick(seq, due_us).unwrap_or(tick)
            }
        }
    }
}

impl ScheduleSpec {
    /// Returns true if two messages of a device may be due within one millisecond.
    pub fn may_share_ms(&self, is_closed: bool) -> bool {
        !matches!(Arrivals::of(self, 1, is_closed), Arrivals::Apart)
    }

    /// Returns true if a device may send more than one message a millisecond for long.
    pub fn outpaces_ms(&self, is_closed: bool) -> bool {
        matches!(Arrivals::of(self, 1, is_closed), Arrivals::Dense)
    }
}

/// The distances between the messages of one device.
enum Arrivals {
    Apart,
    Burst(u32),
    Dense,
    Irregular,
}

impl Arrivals {
    fn of(spec: &ScheduleSpec, step: u32, is_closed: bool) -> Self {
        let tick_us = f64::from(step) * US_PER_MS as f64;
        if spec.limit_per_device == Some(1) {
            return Self::Apart;
        }
        let devices = f64::from(spec.devices);
        match &spec.shape {
            Shape::Burst { n, every } => {
                let (messages, every) = (f64::from(*n), every.get() as f64);
                // In a closed loop the messages of a burst are due one after the other.
                let gap = if is_closed { every / messages } else { every };
                let ticks = if is_closed { 1.0 } else { messages };
                match gap >= ticks * tick_us {
                    true if is_closed || *n == 1 => Self::Apart,
                    true => Self::Burst(*n),
                    false => Self::Dense,
                }
            }
            Shape::Replay(instants) => {
                let ticks = spec.measure.get() as f64 / tick_us;
                Self::of_chance(instants.len() as f64 / devices / ticks)
            }
            Shape::Constant
            | Shape::Ramp { .. }
            | Shape::Stages(_)
            | Shape::Spike { .. }
            | Shape::Sine { .. } => {
                let per_tick = spec.peak() / devices * tick_us / 1e6;
                match (spec.poisson, per_tick) {
                    (true, per_tick) => Self::of_chance(per_tick),
                    (false, per_tick) if per_tick <= 1.0 => Self::Apart,
                    (false, _) => Self::Dense,
                }
            }
        }
    }

    fn of_chance(per_tick: f64) -> Self {
        if per_tick > DENSE {
            Self::Dense
        } else {
            Self::Irregular
        }
    }
}

/// The messages of one device.
struct Line<'a> {
    schedule: &'a StreamSchedule,
    device: DeviceId,
    tick_us: u64,
}

impl Line<'_> {
    /// The tick of message `seq`: the greatest of d(j) + seq - j over all messages j up to it, where d(j) is
    /// the tick in which message j is due. None if the schedule has no such message.
    ///
    /// As d never falls, a message before j can exceed the greatest `lead` d(i) - i so far only if it is
    /// before d(j) - lead. At less than one message a tick these jumps grow like powers.
    fn tick(&self, seq: u32, due_us: u64) -> Option<u64> {
        let own = self.due(seq)?.get();
        let d = |due: Micros| {
            let earlier = own.saturating_sub(due.get());
            i64::try_from(due_us.saturating_sub(earlier) / self.tick_us).unwrap_or(i64::MAX)
        };
        let seq = i64::from(seq);
        let mut here = d(Micros(own));
        let mut lead = here - seq;
        while let Ok(before) = u32::try_from(here - lead - 1) {
            here = d(self.due(before)?);
            lead = lead.max(here - i64::from(before));
        }
        u64::try_from(lead + seq).ok()
    }

    fn due(&self, seq: u32) -> Option<Micros> {
        self.schedule.due(self.schedule.index_of(self.device, seq)?)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use muster_model::{MessageId, Rate, RunId, StreamId};
    use proptest::prelude::*;

    use super::*;
    use crate::sample::any_spec;
    use crate::shape::{HoldRate, Phase};
    use crate::template::Template;

    fn spec(shape: Shape, rate: f64) -> ScheduleSpec {
        ScheduleSpec {
            shape,
            rate: Rate::per_second(rate).unwrap(),
            phase: Phase::Even,
            hold_rate: HoldRate::default(),
            poisson: false,
            first_device: DeviceId(0),
            devices: 3,
            limit_per_device: None,
            warm_up: Micros::ZERO,
            measure: Micros::from_secs(4),
            seed: 7,
        }
    }

    /// Each message's device, tick as the template writes it, and due millisecond.
    fn written(spec: ScheduleSpec, variable: &str, wall_ms: u64) -> Vec<(DeviceId, u64, u64)> {
        let schedule = Arc::new(StreamSchedule::new(spec).unwrap());
        let template = Template::parse(variable).unwrap();
        let step = template.unique_step().unwrap();
        let unique = UniqueMs::new(&schedule, step, false);
        let one = |n| {
            let (device, seq) = schedule.owner(n);
            // The run begins at an odd microsecond.
            let due = schedule.due(n).unwrap() + Micros(1_234_567);
            let scope = Scope {
                seed: 0,
                id: MessageId {
                    run: RunId(1),
                    device,
                    stream: StreamId(0),
                    seq,
                },
                due,
                wall_ms_at_t0: wall_ms,
                name: "d",
                index: 0,
                tenant: "",
                columns: None,
                unique: Some(&unique),
            };
            let mut out = Vec::new();
            template.render(&scope, &mut out);
            let text = String::from_utf8(out).unwrap();
            (device, text.parse().unwrap(), wall_ms + due.get() / 1_000)
        };
        (0..schedule.count()).map(one).collect()
    }

    fn differ(written: &[(DeviceId, u64, u64)]) -> bool {
        let all: BTreeSet<_> = written.iter().map(|(device, ms, _)| (device, ms)).collect();
        all.len() == written.len()
    }

    proptest! {
        /// No two messages of a device share a millisecond, whatever the schedule; none is earlier than its
        /// due millisecond; and with a step two streams share none either.
        #[test]
        fn no_two_messages_of_a_device_share_a_millisecond(spec in any_spec(), wall in 0u64..1 << 40) {
            let plain = written(spec.clone(), "${unique_ms}", wall);
            prop_assert!(differ(&plain));
            prop_assert!(plain.iter().all(|(_, ms, due)| ms >= due));
            let mut both = written(spec.clone(), "${unique_ms:2:0}", wall);
            both.extend(written(spec, "${unique_ms:2:1}", wall));
            prop_assert!(differ(&both));
        }
    }

    fn offsets(spec: ScheduleSpec) -> Vec<u64> {
        let written = written(spec, "${unique_ms}", 1_600_000_000_000);
        assert!(differ(&written));
        let first = written.iter().filter(|(device, ..)| *device == DeviceId(0));
        first.map(|(_, ms, due)| ms - due).collect()
    }

    #[test]
    fn a_burst_counts_its_messages_and_others_keep_their_due_instants() {
        let burst = |n, every| Shape::Burst {
            n,
            every: Micros::from_millis(every),
        };
        assert_eq!(
            offsets(spec(burst(5, 1_000), 0.0))[..7],
            [0, 1, 2, 3, 4, 0, 1]
        );
        assert_eq!(offsets(spec(burst(5, 5), 0.0))[..7], [0, 1, 2, 3, 4, 0, 1]);
        assert!(
            offsets(spec(Shape::Constant, 300.0))
                .iter()
                .all(|it| *it == 0)
        );
        // A thousand a second from each device.
        assert!(
            offsets(spec(Shape::Constant, 3_000.0))
                .iter()
                .all(|it| *it == 0)
        );
    }

    #[test]
    fn messages_by_chance_stay_near_their_due_instants() {
        for rate in [3.0, 300.0, 1_200.0] {
            let poisson = ScheduleSpec {
                poisson: true,
                ..spec(Shape::Constant, rate)
            };
            let offsets = offsets(poisson);
            assert!(offsets.iter().all(|it| *it < 60), "{rate}: {offsets:?}");
        }
        let instants = [0, 0, 0, 0, 0, 0, 0, 500, 1_000, 900_000].map(Micros);
        let replay = spec(Shape::Replay(instants.into()), 0.0);
        assert_eq!(offsets(replay), [0, 1, 2, 0]);
    }

    #[test]
    fn more_than_one_message_a_millisecond_runs_ahead_of_the_clock() {
        let dense = spec(Shape::Constant, 6_000.0);
        assert!(dense.outpaces_ms(false));
        offsets(dense);
        let overlapping = Shape::Burst {
            n: 5,
            every: Micros::from_millis(4),
        };
        offsets(spec(overlapping, 0.0));
    }

    #[test]
    fn a_schedule_says_whether_messages_may_share_a_millisecond() {
        let burst = |n| Shape::Burst {
            n,
            every: Micros::from_secs(1),
        };
        let poisson = ScheduleSpec {
            poisson: true,
            ..spec(Shape::Constant, 3.0)
        };
        let once = ScheduleSpec {
            limit_per_device: Some(1),
            ..poisson.clone()
        };
        for (spec, is_closed, expected) in [
            (spec(Shape::Constant, 300.0), false, false),
            (spec(Shape::Constant, 3_100.0), false, true),
            (spec(burst(1), 0.0), false, false),
            (spec(burst(2), 0.0), false, true),
            (spec(burst(2), 0.0), true, false),
            (poisson, false, true),
            (once, false, false),
        ] {
            assert_eq!(spec.may_share_ms(is_closed), expected, "{spec:?}");
        }
    }
}
