//! Checks of a schedule before it is built.

use muster_model::{Micros, Rate};
use thiserror::Error;

use crate::shape::{Active, Phase, ScheduleSpec, Shape};

/// The steepest class rate, in messages a second: a microsecond then holds a thousand messages.
pub const MAX_RATE: f64 = 1e9;
/// The longest schedule: 10 years, so that sums of instants never overflow.
pub const MAX_HORIZON: Micros = Micros::from_secs(10 * 366 * 86_400);
/// The shortest period of a sine: below it the 256 lines would be shorter than 4 microseconds.
pub const MIN_SINE_PERIOD: Micros = Micros::from_millis(1);
/// The most messages a schedule may hold: positions in millionths of a message fit in 62 bits.
pub const MAX_MESSAGES: u64 = 4_000_000_000_000;

/// Reasons that a spec has no schedule.
#[derive(Debug, Clone, Copy, PartialEq, Error)]
#[non_exhaustive]
pub enum ScheduleError {
    /// The class is empty.
    #[error("the stream has no devices; give its fleet a count of at least 1")]
    NoDevices,
    /// The last device would have no number.
    #[error("{devices} devices from number {first} on exceed 4294967295, the last device number")]
    DeviceNumbers {
        /// The first device's number.
        first: u32,
        /// Devices of the class.
        devices: u32,
    },
    /// Nothing is measured.
    #[error("the measured phase is empty; give `phases.measure` a length")]
    NothingMeasured,
    /// The schedule is longer than [`MAX_HORIZON`].
    #[error("warm-up and measured phase last {0}; the longest schedule is {MAX_HORIZON}")]
    TooLong(Micros),
    /// A rate is no number, negative or above [`MAX_RATE`].
    #[error("a rate of {0}/s is outside 0/s to {MAX_RATE}/s")]
    RateOutOfRange(f64),
    /// The whole schedule has more than [`MAX_MESSAGES`], or a device more than 2^32.
    #[error(
        "the schedule has too many messages: at most {MAX_MESSAGES} in all and 4294967296 a device"
    )]
    TooManyMessages,
    /// Stages without a stage.
    #[error("`stages` is empty; give at least one {{ to, over, hold }}")]
    NoStages,
    /// A sine of no length.
    #[error("a sine period of {0} is too short; the shortest is {MIN_SINE_PERIOD}")]
    SinePeriod(Micros),
    /// A burst of nothing.
    #[error("a burst of 0 messages sends nothing; give `n` at least 1")]
    EmptyBurst,
    /// Bursts all at once.
    #[error("`every` of a burst is 0; give the time from one burst of a device to its next")]
    BurstPeriod,
    /// A list that goes back in time.
    #[error("replay instant {index} ({at}) lies before the one above it; sort the list")]
    ReplayUnsorted {
        /// Index of the entry, from 0.
        index: usize,
        /// Its instant.
        at: Micros,
    },
    /// The list says exactly when, Poisson says by chance.
    #[error("`poisson` does not go with a {0}, which fixes every instant; remove one of them")]
    PoissonInstants(&'static str),
    /// Numbers of active devices that no class has, or turns that are no single messages without an end.
    #[error(
        "the number of active devices changes only between 1 and all, from the begin on, and without bursts, lists \
         and `count`"
    )]
    ActiveDevices,
    /// All at the same instant, and each by chance.
    #[error("`poisson` does not go with `phase: together`; remove one of them")]
    PoissonTogether,
}

/// Refuses a spec that has no schedule.
pub(crate) fn check(spec: &ScheduleSpec) -> Result<(), ScheduleError> {
    if spec.devices == 0 {
        return Err(ScheduleError::NoDevices);
    }
    let first = spec.first_device.0;
    if first.checked_add(spec.devices).is_none() {
        return Err(ScheduleError::DeviceNumbers {
            first,
            devices: spec.devices,
        });
    }
    if spec.measure == Micros::ZERO {
        return Err(ScheduleError::NothingMeasured);
    }
    if spec.horizon() > MAX_HORIZON {
        return Err(ScheduleError::TooLong(spec.horizon()));
    }
    check_shape(spec)?;
    check_active(spec)?;
    check_poisson(spec)
}

fn check_active(spec: &ScheduleSpec) -> Result<(), ScheduleError> {
    let Phase::Active(active) = &spec.phase else {
        return Ok(());
    };
    let is_fixed = matches!(spec.shape, Shape::Burst { .. } | Shape::Replay(_));
    let begins = active.first().is_some_and(|it| it.from == Micros::ZERO);
    let ascends = active.is_sorted_by_key(|it| it.from);
    let exists = |it: &Active| (1..=spec.devices).contains(&it.devices);
    let is_sound = begins && ascends && active.iter().all(exists);
    match is_sound && !is_fixed && spec.limit_per_device.is_none() {
        true => Ok(()),
        false => Err(ScheduleError::ActiveDevices),
    }
}

fn check_shape(spec: &ScheduleSpec) -> Result<(), ScheduleError> {
    match &spec.shape {
        Shape::Constant => check_rates(spec, &[spec.rate]),
        Shape::Ramp { from, .. } => check_rates(spec, &[spec.rate, *from]),
        Shape::Spike { to, .. } => check_rates(spec, &[spec.rate, *to]),
        Shape::Stages(stages) if stages.is_empty() => Err(ScheduleError::NoStages),
        Shape::Stages(stages) => stages
            .iter()
            .try_for_each(|stage| check_rates(spec, &[stage.to])),
        Shape::Sine { period, .. } if *period < MIN_SINE_PERIOD => {
            Err(ScheduleError::SinePeriod(*period))
        }
        Shape::Sine { from, to, .. } => check_rates(spec, &[*from, *to]),
        Shape::Burst { n: 0, .. } => Err(ScheduleError::EmptyBurst),
        Shape::Burst {
            every: Micros::ZERO,
            ..
        } => Err(ScheduleError::BurstPeriod),
        Shape::Burst { n, every } => check_burst(spec, *n, *every),
        Shape::Replay(instants) => check_replay(instants),
    }
}

/// Each rate by itself, and that even the steepest one, held throughout, leaves countable numbers.
fn check_rates(spec: &ScheduleSpec, rates: &[Rate]) -> Result<(), ScheduleError> {
    for rate in rates {
        let rate = rate.get();
        if !(0.0..=MAX_RATE).contains(&rate) {
            return Err(ScheduleError::RateOutOfRange(rate));
        }
        if rate * spec.horizon().as_secs_f64() > MAX_MESSAGES as f64 {
            return Err(ScheduleError::TooManyMessages);
        }
    }
    Ok(())
}

fn check_burst(spec: &ScheduleSpec, n: u32, every: Micros) -> Result<(), ScheduleError> {
    let rate = f64::from(spec.devices) * f64::from(n) / every.as_secs_f64();
    match Rate::per_second(rate) {
        Some(rate) => check_rates(spec, &[rate]),
        None => Err(ScheduleError::RateOutOfRange(rate)),
    }
}

fn check_replay(instants: &[Micros]) -> Result<(), ScheduleError> {
    match instants.windows(2).position(|pair| pair[1] < pair[0]) {
        Some(before) => Err(ScheduleError::ReplayUnsorted {
            index: before + 1,
            at: instants[before + 1],
        }),
        None => Ok(()),
    }
}

fn check_poisson(spec: &ScheduleSpec) -> Result<(), ScheduleError> {
    if !spec.poisson {
        return Ok(());
    }
    match &spec.shape {
        Shape::Burst { .. } => Err(ScheduleError::PoissonInstants("burst")),
        Shape::Replay(_) => Err(ScheduleError::PoissonInstants("replay")),
        Shape::Constant
        | Shape::Ramp { .. }
        | Shape::Stages(_)
        | Shape::Spike { .. }
        | Shape::Sine { .. } => match &spec.phase {
            Phase::Together => Err(ScheduleError::PoissonTogether),
            Phase::Even | Phase::Hash | Phase::Active(_) => Ok(()),
        },
    }
}

#[cfg(test)]
mod tests {
    use muster_model::DeviceId;

    use super::*;
    use crate::shape::{HoldRate, Stage};

    fn per_second(rate: f64) -> Rate {
        Rate::per_second(rate).unwrap()
    }

    fn good() -> ScheduleSpec {
        ScheduleSpec {
            shape: Shape::Constant,
            rate: per_second(10.0),
            phase: Phase::Even,
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

    fn refused(change: impl FnOnce(&mut ScheduleSpec), expected: ScheduleError) {
        let mut spec = good();
        change(&mut spec);
        assert_eq!(check(&spec), Err(expected), "{spec:?}");
    }

    fn shape_refused(shape: Shape, expected: ScheduleError) {
        refused(|spec| spec.shape = shape, expected);
    }

    #[test]
    fn a_class_that_cannot_be_is_refused_by_name() {
        assert_eq!(check(&good()), Ok(()));
        refused(|spec| spec.devices = 0, ScheduleError::NoDevices);
        refused(
            |spec| spec.first_device = DeviceId(u32::MAX),
            ScheduleError::DeviceNumbers {
                first: u32::MAX,
                devices: 10,
            },
        );
        refused(
            |spec| spec.measure = Micros::ZERO,
            ScheduleError::NothingMeasured,
        );
        refused(
            |spec| spec.measure = Micros::MAX,
            ScheduleError::TooLong(Micros::MAX),
        );
        refused(
            |spec| spec.rate = per_second(2e9),
            ScheduleError::RateOutOfRange(2e9),
        );
        let year = Micros::from_secs(365 * 86_400);
        refused(
            |spec| (spec.rate, spec.measure) = (per_second(1e6), year),
            ScheduleError::TooManyMessages,
        );
    }

    #[test]
    fn a_shape_that_cannot_be_is_refused_by_name() {
        let burst = |n, every| Shape::Burst { n, every };
        let zero = Rate::ZERO;
        shape_refused(Shape::Stages(vec![]), ScheduleError::NoStages);
        shape_refused(burst(0, Micros(1)), ScheduleError::EmptyBurst);
        shape_refused(burst(1, Micros::ZERO), ScheduleError::BurstPeriod);
        shape_refused(
            burst(u32::MAX, Micros(1)),
            ScheduleError::RateOutOfRange(42_949_672_950e6),
        );
        let period = Micros(999);
        shape_refused(
            Shape::Sine {
                from: zero,
                to: zero,
                period,
            },
            ScheduleError::SinePeriod(period),
        );
        let steep = Stage {
            to: per_second(3e9),
            over: Micros::ZERO,
            hold: Micros::ZERO,
        };
        shape_refused(
            Shape::Stages(vec![steep]),
            ScheduleError::RateOutOfRange(3e9),
        );
        shape_refused(
            Shape::Replay([3, 2].map(Micros).into()),
            ScheduleError::ReplayUnsorted {
                index: 1,
                at: Micros(2),
            },
        );
    }

    #[test]
    fn poisson_goes_with_nothing_that_fixes_instants() {
        let shaped = |shape: Shape| {
            |spec: &mut ScheduleSpec| {
                (spec.poisson, spec.shape) = (true, shape);
            }
        };
        let burst = Shape::Burst {
            n: 1,
            every: Micros::from_secs(1),
        };
        refused(shaped(burst), ScheduleError::PoissonInstants("burst"));
        refused(
            shaped(Shape::Replay([].into())),
            ScheduleError::PoissonInstants("replay"),
        );
        refused(
            |spec| (spec.poisson, spec.phase) = (true, Phase::Together),
            ScheduleError::PoissonTogether,
        );
    }
}
