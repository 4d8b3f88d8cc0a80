//! Shape of a stream's rate over time, and the other inputs of a schedule.

use std::sync::Arc;

use muster_model::{DeviceId, Micros, Rate};
use serde::{Deserialize, Serialize};

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

/// Phases of the devices of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// Device `i` of `D` at `i / D` of the period.
    Even,
    /// A seeded order, and a seeded place of each device within its slot: each device keeps an
    /// exact period.
    Hash,
    /// All devices at the same instant.
    Together,
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

    /// The highest rate of the class.
    pub fn peak(&self) -> f64 {
        let rate = self.rate.get();
        match &self.shape {
            Shape::Constant | Shape::Burst { .. } | Shape::Replay(_) => rate,
            Shape::Ramp { from, .. } => rate.max(from.get()),
            Shape::Stages(stages) => stages.iter().map(|it| it.to.get()).fold(0.0, f64::max),
            Shape::Spike { to, .. } => rate.max(to.get()),
            Shape::Sine { from, to, .. } => from.get().max(to.get()),
        }
    }
}
