//! Shape of a stream's rate over time, and the other inputs of a schedule.

use std::sync::Arc;

use muster_model::{DeviceId, Micros, Rate};
use serde::{Deserialize, Serialize};

use crate::active::active_devices;

/// Rate of a whole class over time.
///
/// A shape starts when warm-up ends; its instants count from there. Warm-up runs at the shape's
/// first value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Shape {
    /// The stream's rate throughout.
    Constant,
    /// A straight line from `from` to the stream's rate, which then holds.
    Ramp {
        /// The first value.
        from: Rate,
        /// Length of the line.
        over: Micros,
    },
    /// Straight lines and holds one after the other, the first line from zero; the last value
    /// holds. A line that takes no time is a jump. The stream's rate is not used.
    Stages(Vec<Stage>),
    /// The stream's rate, but for one rectangle.
    Spike {
        /// The rate within the rectangle.
        to: Rate,
        /// Start, after warm-up.
        at: Micros,
        /// Length.
        lasts: Micros,
    },
    /// A sine that begins at `from`, reaches `to` after half a period and comes back. It is drawn
    /// by 256 straight lines a period, which keeps it within 0.01 % of the curve. The stream's
    /// rate is not used.
    Sine {
        /// The first value and one extreme.
        from: Rate,
        /// The other extreme.
        to: Rate,
        /// From one `from` to the next.
        period: Micros,
    },
    /// Each device sends `n` messages at one instant, again after every `every`; the phase spreads
    /// the devices over that period. Bursts run from the start of warm-up without a break. The
    /// stream's rate is not used.
    Burst {
        /// Messages a device sends at once.
        n: u32,
        /// From one burst of a device to its next.
        every: Micros,
    },
    /// Exactly these instants after warm-up, in ascending order, dealt round to the devices.
    /// Nothing is due in warm-up. The stream's rate and phase are not used.
    Replay(Arc<[Micros]>),
}

impl Shape {
    /// Messages that a device sends at each of its turns.
    pub(crate) const fn per_turn(&self) -> u32 {
        match self {
            Self::Burst { n, .. } => *n,
            Self::Constant
            | Self::Ramp { .. }
            | Self::Stages(_)
            | Self::Spike { .. }
            | Self::Sine { .. }
            | Self::Replay(_) => 1,
        }
    }

    /// The stretches of stages, one after the other without a gap; the last hold goes on to `end` at least.
    /// A stretch without any time is left out. Empty for other shapes.
    pub fn stretches(&self, end: Micros) -> Vec<Stretch> {
        let stages = match self {
            Self::Stages(stages) => stages.as_slice(),
            Self::Constant
            | Self::Ramp { .. }
            | Self::Spike { .. }
            | Self::Sine { .. }
            | Self::Burst { .. }
            | Self::Replay(_) => &[],
        };
        let (mut now, mut rate) = (Micros::ZERO, Rate::ZERO);
        let mut stretches = Vec::with_capacity(2 * stages.len());
        for (place, stage) in stages.iter().enumerate() {
            let line = Stretch {
                stage: place,
                is_hold: false,
                from: now,
                until: now + stage.over,
                rate,
                rate_until: stage.to,
            };
            let held_until = line.until + stage.hold;
            let hold = Stretch {
                is_hold: true,
                from: line.until,
                until: match place + 1 == stages.len() {
                    true => held_until.max(end),
                    false => held_until,
                },
                rate: stage.to,
                ..line
            };
            (now, rate) = (hold.until, stage.to);
            stretches.extend([line, hold].into_iter().filter(|it| it.from < it.until));
        }
        stretches
    }
}

/// One line and one hold of [`Shape::Stages`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// The rate at the end of the line.
    pub to: Rate,
    /// Length of the line; zero is a jump.
    pub over: Micros,
    /// Time for which the rate then stays constant.
    pub hold: Micros,
}

/// The line or the hold of one stage, with instants that count from the end of warm-up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stretch {
    /// The stage that it is a part of, from 0.
    pub stage: usize,
    /// True for the hold, false for the line before it.
    pub is_hold: bool,
    /// Its begin.
    pub from: Micros,
    /// Its end, which is later.
    pub until: Micros,
    /// The rate at its begin.
    pub rate: Rate,
    /// The rate at its end.
    pub rate_until: Rate,
}

impl Stretch {
    /// The rate per second at an instant of the stretch, its begin and end included.
    pub fn rate_at(&self, at: Micros) -> f64 {
        let (rate, rate_until) = (self.rate.get(), self.rate_until.get());
        let share = (at - self.from).as_secs_f64() / (self.until - self.from).as_secs_f64();
        rate + (rate_until - rate) * share
    }
}

impl Stage {
    /// Nothing from now on.
    const SILENCE: Stage = Stage {
        to: Rate::ZERO,
        over: Micros::ZERO,
        hold: Micros::ZERO,
    };
}

/// A load that is held for a time and was not planned: a multiple of the stated one. In a class whose number of
/// active devices changes, the factor is the share of active devices, each at its stated rate. In any other one it
/// multiplies the rate, or does not concern it ([`HoldRate`]). Instants count from the start of warm-up.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct AddedHold {
    /// Its begin, not before the end of the one before.
    pub from: Micros,
    /// Its end; nothing is due from then on until another hold.
    pub until: Micros,
    /// The load of each stream as a multiple of the stated one.
    pub factor: f64,
}

/// A number of active devices from an instant on, which counts from the start of warm-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Active {
    /// The instant.
    pub from: Micros,
    /// Number of devices that are active; at least 1, at most all of the class.
    pub devices: u32,
}

/// Phases of the devices of a class.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// Device `i` of `D` at `i / D` of the period.
    Even,
    /// A seeded order, and a seeded place of each device within its slot: each device keeps an
    /// exact period.
    Hash,
    /// All devices at the same instant.
    Together,
    /// The active devices evenly, in the order of their fleet ([`ActiveOrder`](crate::ActiveOrder)). Their number
    /// changes at these instants, which ascend from zero.
    Active(Vec<Active>),
}

/// The rate of a class in a hold that is added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum HoldRate {
    /// The stated rate, multiplied by the factor of the hold.
    #[default]
    Multiplied,
    /// The stated rate, whatever the factor.
    Stated,
}

/// All that one stream's schedule depends on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScheduleSpec {
    /// Shape of the rate.
    pub shape: Shape,
    /// Of the whole class: the plateau of a constant or ramp, the base of a spike.
    pub rate: Rate,
    /// Phases of the devices.
    pub phase: Phase,
    /// The rate in holds that are added.
    pub hold_rate: HoldRate,
    /// True if arrivals of the class are a Poisson process of that rate.
    pub poisson: bool,
    /// The first device of the class.
    pub first_device: DeviceId,
    /// Number of devices of the class.
    pub devices: u32,
    /// Messages a device sends before it stops.
    pub limit_per_device: Option<u32>,
    /// Length of warm-up.
    pub warm_up: Micros,
    /// Length of the measured phase.
    pub measure: Micros,
    /// Makes phases and arrivals reproducible; differs per stream.
    pub seed: u64,
}

impl ScheduleSpec {
    /// The same class without any message but those of holds that are added.
    #[must_use]
    pub fn silent(self) -> Self {
        let shape = Shape::Stages(vec![Stage::SILENCE]);
        Self { shape, ..self }
    }

    /// The same class, but each hold that is added has a number of active devices.
    #[must_use]
    pub fn with_active_devices(self) -> Self {
        let all = Active {
            from: Micros::ZERO,
            devices: self.devices,
        };
        let phase = Phase::Active(vec![all]);
        Self { phase, ..self }
    }

    /// The same class, but each hold that is added has the stated rate.
    #[must_use]
    pub fn with_stated_rate(self) -> Self {
        let hold_rate = HoldRate::Stated;
        Self { hold_rate, ..self }
    }

    /// Adds a hold to a silent class. The messages due before it stay what they are.
    #[must_use]
    pub fn with_hold(mut self, hold: &AddedHold) -> Self {
        let factor = match &mut self.phase {
            Phase::Active(active) => {
                let devices = active_devices(self.devices, hold.factor);
                let from = hold.from;
                active.push(Active { from, devices });
                f64::from(devices) / f64::from(self.devices.max(1))
            }
            Phase::Even | Phase::Hash | Phase::Together => match self.hold_rate {
                HoldRate::Multiplied => hold.factor,
                HoldRate::Stated => 1.0,
            },
        };
        let rate = Rate::per_second(self.rate.get() * factor).unwrap_or(Rate::ZERO);
        if let Shape::Stages(stages) = &mut self.shape {
            let length = |stage: &Stage| stage.over + stage.hold;
            let end = stages
                .iter()
                .map(length)
                .fold(self.warm_up, |sum, it| sum + it);
            let held = |to: Rate, hold: Micros| Stage {
                to,
                over: Micros::ZERO,
                hold,
            };
            stages.push(held(Rate::ZERO, hold.from - end));
            stages.push(held(rate, hold.until - hold.from));
            stages.push(Stage::SILENCE);
        }
        self
    }

    /// The end of the schedule: warm-up and measured phase; nothing is due at or after it.
    pub fn horizon(&self) -> Micros {
        self.warm_up + self.measure
    }

    /// The shortest time, rounded down, from one message of a device to its next when the loop is
    /// closed; zero for a replay, which has no period.
    pub fn shortest_period(&self) -> Micros {
        match &self.shape {
            Shape::Burst { n, every } => Micros(every.get() / u64::from((*n).max(1))),
            Shape::Replay(_) => Micros::ZERO,
            Shape::Constant
            | Shape::Ramp { .. }
            | Shape::Stages(_)
            | Shape::Spike { .. }
            | Shape::Sine { .. } => Micros((f64::from(self.devices) * 1e6 / self.peak()) as u64),
        }
    }

    /// The highest rate of the class before the horizon.
    pub fn peak(&self) -> f64 {
        let rate = self.rate.get();
        match &self.shape {
            Shape::Constant | Shape::Burst { .. } | Shape::Replay(_) => rate,
            Shape::Ramp { from, .. } => rate.max(from.get()),
            Shape::Stages(_) => {
                let stretches = self.shape.stretches(self.measure).into_iter();
                let reached = stretches.filter(|it| it.from < self.measure);
                let rates =
                    reached.flat_map(|it| [it.rate.get(), it.rate_at(it.until.min(self.measure))]);
                rates.fold(0.0, f64::max)
            }
            Shape::Spike { to, .. } => rate.max(to.get()),
            Shape::Sine { from, to, .. } => from.get().max(to.get()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stages(stages: &[(f64, u64, u64)]) -> Shape {
        let stages = stages.iter().map(|(to, over, hold)| Stage {
            to: Rate::per_second(*to).expect("a rate"),
            over: Micros::from_secs(*over),
            hold: Micros::from_secs(*hold),
        });
        Shape::Stages(stages.collect())
    }

    /// Stretches as (stage, is a hold, from, until, rate, rate at the end), in seconds.
    fn stretches(shape: &Shape, end: u64) -> Vec<(usize, bool, f64, f64, f64, f64)> {
        let stretches = shape.stretches(Micros::from_secs(end)).into_iter();
        let in_seconds = stretches.map(|it| {
            let (from, until) = (it.from.as_secs_f64(), it.until.as_secs_f64());
            let (rate, rate_until) = (it.rate.get(), it.rate_until.get());
            (it.stage, it.is_hold, from, until, rate, rate_until)
        });
        in_seconds.collect()
    }

    #[test]
    fn stages_are_lines_and_holds_the_last_of_which_goes_on() {
        let shape = stages(&[(100.0, 0, 10), (200.0, 4, 0), (50.0, 0, 5)]);
        let mut expected = [
            (0, true, 0.0, 10.0, 100.0, 100.0),
            (1, false, 10.0, 14.0, 100.0, 200.0),
            (2, true, 14.0, 30.0, 50.0, 50.0),
        ];
        assert_eq!(stretches(&shape, 30), expected);
        expected[2].3 = 19.0;
        assert_eq!(stretches(&shape, 12), expected);
        assert_eq!(stretches(&Shape::Constant, 30), []);
    }

    #[test]
    fn a_stretch_is_a_straight_line() {
        let line = stages(&[(100.0, 4, 0)]).stretches(Micros::ZERO)[0];
        let at = |ms| line.rate_at(Micros::from_millis(ms));
        assert_eq!([at(0), at(1_000), at(4_000)], [0.0, 25.0, 100.0]);
    }

    #[test]
    fn a_stage_after_the_horizon_is_no_peak() {
        let peak = |shape, measure| {
            ScheduleSpec {
                shape,
                rate: Rate::ZERO,
                phase: Phase::Even,
                hold_rate: HoldRate::default(),
                poisson: false,
                first_device: DeviceId(0),
                devices: 1,
                limit_per_device: None,
                warm_up: Micros::from_secs(30),
                measure: Micros::from_secs(measure),
                seed: 1,
            }
            .peak()
        };
        let shape = || stages(&[(20.0, 0, 1), (50.0, 0, 60), (90.0, 10, 0)]);
        assert_eq!(peak(shape(), 1), 20.0);
        assert_eq!(peak(shape(), 4), 50.0);
        assert_eq!(peak(shape(), 66), 70.0, "half of the last line");
        assert_eq!(peak(shape(), 90), 90.0);
    }
}
