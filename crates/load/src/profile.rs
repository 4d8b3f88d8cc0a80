//! The cumulative rate of a class as a function of time, and its exact inverse.
//!
//! A position on the cumulative rate is counted in millionths of a message, so that a rate of one
//! message a second climbs one unit a microsecond. [`Profile::units_until`] is computed in `f64`
//! by expressions that are monotone operation by operation (sums and products of values that are
//! not negative), so it never decreases, whatever the rounding; [`Profile::instant`] is defined by
//! it: a float guess, put right by comparing integers. The two therefore agree to the unit for
//! every shape.

use muster_model::{Micros, Rate};

use crate::shape::{ScheduleSpec, Shape};

/// Units of position per message.
pub(crate) const UNITS: u64 = 1_000_000;
/// Lines that draw one period of a sine; the chord error of the rate is (pi / 256)^2 / 2 of the
/// amplitude.
const SINE_LINES: u64 = 256;
/// More than the rounding errors of one evaluation (relative) and far less than a microsecond
/// over any horizon: a position that is a whole message in exact arithmetic never rounds above it,
/// so that devices keep their periods to the microsecond.
const SLACK: f64 = 1.0 - 8.0 * f64::EPSILON;

/// The cumulative rate over `[0, horizon)`.
#[derive(Debug, Clone)]
pub(crate) struct Profile {
    lines: Vec<Line>,
    cycle: Option<Cycle>,
    horizon: u64,
    /// Units before the horizon.
    total: u64,
}

/// The part of a profile that repeats to the horizon.
#[derive(Debug, Clone)]
struct Cycle {
    start: u64,
    units_start: f64,
    period: u64,
    units: f64,
    lines: Vec<Line>,
}

/// A stretch over which the rate is a straight line.
#[derive(Debug, Clone, Copy)]
struct Line {
    start: u64,
    length: u64,
    from: f64,
    to: f64,
    /// Change of rate per microsecond, as a magnitude.
    slope: f64,
    units_start: f64,
    units_end: f64,
}

impl Profile {
    /// The profile of a spec that has been checked. A burst's profile counts bursts, not messages.
    pub(crate) fn new(spec: &ScheduleSpec) -> Self {
        let horizon = spec.horizon().get();
        let rate = spec.rate.get();
        let mut path = Path::default();
        let mut cycle = None;
        match &spec.shape {
            Shape::Constant => path.line(horizon, rate, rate),
            Shape::Ramp { from, over } => path.ramp(spec, *from, *over),
            Shape::Stages(_) => path.stages(spec),
            Shape::Spike { to, at, lasts } => {
                path.line((spec.warm_up + *at).get(), rate, rate);
                path.line(lasts.get(), to.get(), to.get());
                path.line(horizon.saturating_sub(path.end), rate, rate);
            }
            Shape::Sine { from, to, period } => {
                path.line(spec.warm_up.get(), from.get(), from.get());
                cycle = Some(Cycle::sine(&path, from.get(), to.get(), period.get()));
            }
            Shape::Burst { every, .. } => {
                let bursts = f64::from(spec.devices) * 1e6 / every.get() as f64;
                path.line(horizon, bursts, bursts);
            }
            Shape::Replay(_) => {}
        }
        if path.lines.is_empty() {
            path.line(horizon, 0.0, 0.0);
        }
        let mut profile = Self {
            lines: path.lines,
            cycle,
            horizon,
            total: 0,
        };
        profile.total = profile.units_until(horizon);
        profile
    }

    /// Units of position before `t`, rounded up; `t` beyond the horizon is the horizon.
    pub(crate) fn units_until(&self, t: u64) -> u64 {
        let t = t.min(self.horizon);
        let units = match &self.cycle {
            Some(cycle) if t >= cycle.start => cycle.units_at(t - cycle.start),
            Some(_) | None => units_at(&self.lines, t),
        };
        rounded_up(units * SLACK)
    }

    /// The last instant with `units_until(instant) <= position`: when the position is passed.
    /// None if that is not before the horizon.
    pub(crate) fn instant(&self, position: u64) -> Option<u64> {
        if self.total <= position {
            return None;
        }
        let guess = self.guess(position).min(self.horizon - 1);
        Some(last_where(guess, self.horizon, |t| {
            self.units_until(t) <= position
        }))
    }

    fn guess(&self, position: u64) -> u64 {
        let units = position as f64;
        match &self.cycle {
            Some(cycle) if units >= cycle.units_start && cycle.units > 0.0 => cycle.guess(units),
            Some(_) | None => guess(&self.lines, units),
        }
    }
}

impl Cycle {
    /// One period of a sine that starts where `path` ends.
    fn sine(path: &Path, from: f64, to: f64, period: u64) -> Self {
        let mut lines = Path::default();
        let (mut cos, mut sin) = (1.0, 0.0);
        let mut here = from;
        for line in 1..=SINE_LINES {
            (cos, sin) = (
                cos * COS_STEP - sin * SIN_STEP,
                sin * COS_STEP + cos * SIN_STEP,
            );
            let there = sine_value(from, to, cos);
            let end = (u128::from(period) * u128::from(line) / u128::from(SINE_LINES)) as u64;
            lines.line(end - lines.end, here, there);
            here = there;
        }
        Self {
            start: path.end,
            units_start: path.units,
            period,
            units: lines.units,
            lines: lines.lines,
        }
    }

    /// Bounded by the next period's start, so that rounding cannot make a step back there.
    fn units_at(&self, since: u64) -> f64 {
        let periods = since / self.period;
        let before = self.units_start + periods as f64 * self.units;
        let after = self.units_start + (periods + 1) as f64 * self.units;
        let within = since % self.period;
        (before + self.line_at(within).units_before(within)).min(after)
    }

    /// Lines of a cycle have one length but for rounding, so that the place is known within one.
    fn line_at(&self, within: u64) -> &Line {
        let share = within as f64 / self.period as f64;
        let place = ((share * self.lines.len() as f64) as usize).min(self.lines.len() - 1);
        match self.lines.get(place + 1) {
            _ if self.lines[place].start > within => &self.lines[place - 1],
            Some(next) if next.start <= within => next,
            Some(_) | None => &self.lines[place],
        }
    }

    fn guess(&self, units: f64) -> u64 {
        let periods = ((units - self.units_start) / self.units).floor();
        let within = units - (self.units_start + periods * self.units);
        self.start
            .saturating_add((periods as u64).saturating_mul(self.period))
            .saturating_add(guess(&self.lines, within))
    }
}

/// Cosine and sine of a 256th of a turn, as literals because the library's functions may differ
/// between machines.
const COS_STEP: f64 = 0.999_698_818_696_204_2;
const SIN_STEP: f64 = 0.024_541_228_522_912_288;

/// The rate where the cosine of the phase is `cos`: at 1 it is `from`, at -1 it is `to`.
fn sine_value(from: f64, to: f64, cos: f64) -> f64 {
    let value = (from + to) / 2.0 + (from - to) / 2.0 * cos;
    value.clamp(from.min(to), from.max(to))
}

impl Line {
    /// Units of position before `t`, which is not before the line.
    fn units_before(&self, t: u64) -> f64 {
        self.units_at((t - self.start).min(self.length))
    }

    /// Units of position at `since` the line's start. A falling line is measured from its end, so
    /// that both forms only add and multiply values that are not negative.
    fn units_at(&self, since: u64) -> f64 {
        if self.to >= self.from {
            return self.units_start + area(since, self.from, self.slope);
        }
        let rest = area(self.length.saturating_sub(since), self.to, self.slope);
        (self.units_end - rest).max(self.units_start)
    }

    fn guess(&self, units: f64) -> u64 {
        if self.to >= self.from {
            return self.start.saturating_add(side(
                units - self.units_start,
                self.from,
                self.slope,
            ));
        }
        let rest = side(self.units_end - units, self.to, self.slope);
        self.start + self.length.saturating_sub(rest)
    }
}

/// Units under a line that begins at `rate` and climbs by `slope`.
fn area(length: u64, rate: f64, slope: f64) -> f64 {
    let length = length as f64;
    length * (rate + 0.5 * slope * length)
}

/// The inverse of [`area`]: the positive root, in the form that does not cancel.
fn side(units: f64, rate: f64, slope: f64) -> u64 {
    let units = units.max(0.0);
    if slope == 0.0 {
        return (units / rate) as u64;
    }
    (2.0 * units / (rate + (rate * rate + 2.0 * slope * units).sqrt())) as u64
}

/// The least whole number at or above a value that is not negative and below 2^63; the library's
/// `ceil` is a call on processors without the instruction.
fn rounded_up(value: f64) -> u64 {
    let whole = value as i64;
    (whole + i64::from((whole as f64) < value)) as u64
}

fn line_at(lines: &[Line], t: u64) -> &Line {
    let after = lines.partition_point(|line| line.start <= t);
    &lines[after.saturating_sub(1)]
}

fn units_at(lines: &[Line], t: u64) -> f64 {
    line_at(lines, t).units_before(t)
}

fn guess(lines: &[Line], units: f64) -> u64 {
    let after = lines.partition_point(|line| line.units_start <= units);
    lines[after.saturating_sub(1)].guess(units)
}

/// The last `t` below `end` that holds, where `holds` is true up to some instant, from 0 on, and
/// false after it and at `end`. Steps away from the guess in doubling strides, then halves.
fn last_where(guess: u64, end: u64, holds: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (guess, guess);
    let mut stride = 1;
    if holds(guess) {
        loop {
            high = low.saturating_add(stride).min(end);
            if high == end || !holds(high) {
                break;
            }
            low = high;
            stride *= 2;
        }
    } else {
        loop {
            low = high.saturating_sub(stride);
            if low == 0 || holds(low) {
                break;
            }
            high = low;
            stride *= 2;
        }
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if holds(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

/// Lines put one after the other.
#[derive(Debug, Default)]
struct Path {
    lines: Vec<Line>,
    end: u64,
    units: f64,
}

impl Path {
    fn line(&mut self, length: u64, from: f64, to: f64) {
        if length == 0 {
            return;
        }
        let slope = (to - from).abs() / length as f64;
        let units_end = self.units + area(length, from.min(to), slope);
        self.lines.push(Line {
            start: self.end,
            length,
            from,
            to,
            slope,
            units_start: self.units,
            units_end,
        });
        self.end = self.end.saturating_add(length);
        self.units = units_end;
    }

    fn ramp(&mut self, spec: &ScheduleSpec, from: Rate, over: Micros) {
        let rate = spec.rate.get();
        let first = if over == Micros::ZERO {
            rate
        } else {
            from.get()
        };
        self.line(spec.warm_up.get(), first, first);
        self.line(over.get(), from.get(), rate);
        self.line(spec.horizon().get().saturating_sub(self.end), rate, rate);
    }

    fn stages(&mut self, spec: &ScheduleSpec) {
        let stretches = spec.shape.stretches(spec.measure);
        let first = stretches.first().map_or(0.0, |it| it.rate.get());
        self.line(spec.warm_up.get(), first, first);
        for it in stretches {
            let length = it.until.get() - it.from.get();
            self.line(length, it.rate.get(), it.rate_until.get());
        }
    }
}
