//! The time that a resource of the target lasts: its trend under load, and when it reaches its limit.
//!
//! The ups and downs within a cycle of collections, checkpoints or flushes are no trend. So time is cut into blocks of at
//! least one cycle: the trend is that of their minima, and the level that meets the limit is that of their maxima.

use crate::cycle;
use crate::stability::{Point, Trend};

/// Blocks at the most: more of them only make neighbours depend on each other.
const BLOCKS_MAX: usize = 60;
/// Blocks at the least: with fewer the interval of a slope is no interval.
const BLOCKS_MIN: usize = 10;
/// Standard deviation of the middles of stretches, as a part of the extent of one, up to which each holds whole cycles.
const EVEN_MAX: f64 = 0.1;

/// Extremes of a resource in one stretch of time; all stretches of a series are equally long.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Extremes {
    /// Its begin in seconds since any fixed instant.
    pub t_s: f64,
    /// The least value.
    pub min: f64,
    /// The largest value.
    pub max: f64,
}

/// The limit of a resource.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Limit {
    /// A value that it must not rise to, such as that of memory.
    Ceiling(f64),
    /// A value that it must not fall to, such as that of credits.
    Floor(f64),
}

impl Limit {
    /// The limit of a number that may rise or fall: the side on which most of its values lie decides.
    pub fn of_number(series: &[Extremes], limit: f64) -> Self {
        if median_middle(series) > limit {
            Self::Floor(limit)
        } else {
            Self::Ceiling(limit)
        }
    }
}

/// Movement of a resource towards its limit, with 90 % intervals.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outlook {
    /// Its level at the end: that of its peaks, or of its lows if the limit is below.
    pub level: f64,
    /// Its growth per second; none if the load was too short, as the next two.
    pub slope: Option<f64>,
    /// Lower end of its interval.
    pub slope_low: Option<f64>,
    /// Upper end of its interval.
    pub slope_high: Option<f64>,
    /// Seconds from the end until it reaches its limit at this rate; none if it does not move towards it, as the next
    /// two.
    pub runs_out_s: Option<f64>,
    /// The earliest that is likely.
    pub earliest_s: Option<f64>,
    /// The latest that is likely.
    pub latest_s: Option<f64>,
    /// The finding.
    pub lasts: Lasts,
}

/// Finding on a resource.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Lasts {
    /// No limit is reached within the wanted time.
    Yes,
    /// The limit is reached within the wanted time.
    No,
    /// The interval of the trend holds both.
    Unclear {
        /// Length of the load that decides it, in seconds.
        needs_s: f64,
    },
}

impl Outlook {
    /// The outlook of a series in order of time for `horizon_s` seconds after it; `length_s` is that of its stretches.
    pub fn of(series: &[Extremes], length_s: f64, limit: Limit, horizon_s: f64) -> Self {
        let limit = match limit {
            Limit::Ceiling(limit) => return Self::rising(series, length_s, limit, horizon_s),
            Limit::Floor(limit) => limit,
        };
        let turned = series.iter().map(|of| Extremes {
            t_s: of.t_s,
            min: -of.max,
            max: -of.min,
        });
        let turned: Vec<Extremes> = turned.collect();
        let outlook = Self::rising(&turned, length_s, -limit, horizon_s);
        Self {
            level: -outlook.level,
            slope: outlook.slope.map(|slope| -slope),
            slope_low: outlook.slope_high.map(|slope| -slope),
            slope_high: outlook.slope_low.map(|slope| -slope),
            ..outlook
        }
    }

    /// The outlook of a series that ends before the load does: nobody knows what came after it. A load of `needs_s`
    /// seconds that is seen whole decides it.
    pub fn cut_off(series: &[Extremes], needs_s: f64) -> Self {
        Self::unknown(series, needs_s)
    }

    /// The outlook towards a limit above.
    fn rising(series: &[Extremes], length_s: f64, limit: f64, horizon_s: f64) -> Self {
        let run = block_length(series);
        let blocks: Vec<Extremes> = series.rchunks_exact(run).rev().map(block).collect();
        let last = series.last().map_or(0.0, |last| last.t_s + length_s);
        // A stretch without a sample is not in the series.
        let load_s = last - series.first().map_or(last, |first| first.t_s);
        let spacing_s = load_s / series.len().max(1) as f64;
        let floors: Vec<Point> = blocks.iter().map(floor).collect();
        let up = Trend::of(&floors).filter(|_| blocks.len() >= BLOCKS_MIN);
        let down: Vec<Point> = floors.iter().map(turned).collect();
        let down = Trend::of(&down).filter(|down| down.lower.is_finite());
        let (Some(up), Some(down)) = (up.filter(|up| up.lower.is_finite()), down) else {
            let wanted = BLOCKS_MIN as f64 * run as f64 * spacing_s;
            return Self::unknown(series, wanted.max(2.0 * load_s));
        };
        let (low, high) = (up.lower, -down.lower);
        let level = level(&blocks, up.slope, last);
        let room = limit - level;
        let until = |slope: f64| (slope > 0.0).then(|| room.max(0.0) / slope);
        let allowed = room.max(0.0) / horizon_s;
        let lasts = if room <= 0.0 || low > allowed {
            Lasts::No
        } else if high <= allowed {
            Lasts::Yes
        } else {
            let error = if up.slope > allowed {
                (up.slope - low) / (up.slope - allowed)
            } else {
                (high - up.slope) / (allowed - up.slope)
            };
            // The error of a slope falls with the length of the load to the power of 1.5.
            let needs_s = (load_s * error.powf(2.0 / 3.0)).min(load_s + horizon_s);
            Lasts::Unclear { needs_s }
        };
        Self {
            level,
            slope: Some(up.slope),
            slope_low: Some(low),
            slope_high: Some(high),
            runs_out_s: until(up.slope),
            earliest_s: until(high),
            latest_s: until(low),
            lasts,
        }
    }

    fn unknown(series: &[Extremes], needs_s: f64) -> Self {
        Self {
            level: series.last().map_or(0.0, |last| last.max),
            slope: None,
            slope_low: None,
            slope_high: None,
            runs_out_s: None,
            earliest_s: None,
            latest_s: None,
            lasts: Lasts::Unclear { needs_s },
        }
    }
}

fn median_middle(series: &[Extremes]) -> f64 {
    let middles = series.iter().map(|of| f64::midpoint(of.min, of.max));
    median(middles.collect())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// Stretches of a block: a cycle at the least, and enough that there are not too many blocks.
fn block_length(series: &[Extremes]) -> usize {
    let spread = series.len().div_ceil(BLOCKS_MAX);
    // The minimum of a cycle may lie at the border of two stretches.
    let cycle = cycle_of(series).map_or(1, |cycle| cycle + 1);
    spread.max(cycle).max(1)
}

/// The length of the cycle of a series in stretches, if it has one that it shows at least three times.
fn cycle_of(series: &[Extremes]) -> Option<usize> {
    let points: Vec<Point> = series.iter().map(middle).collect();
    let slope = Trend::of(&points)?.slope;
    let rest: Vec<f64> = points.iter().map(|of| of.value - slope * of.t_s).collect();
    let mean = rest.iter().sum::<f64>() / rest.len() as f64;
    let rest: Vec<f64> = rest.iter().map(|value| value - mean).collect();
    let power: f64 = rest.iter().map(|value| value * value).sum();
    let extents = series.iter().map(|of| of.max - of.min);
    let extent = median(extents.collect());
    // Stretches that hold whole cycles differ by the instants of their samples alone.
    if (power / rest.len() as f64).sqrt() <= EVEN_MAX * extent {
        return None;
    }
    cycle::length(&rest, power)
}

fn middle(of: &Extremes) -> Point {
    Point {
        t_s: of.t_s,
        value: f64::midpoint(of.min, of.max),
    }
}

fn floor(of: &Extremes) -> Point {
    Point {
        t_s: of.t_s,
        value: of.min,
    }
}

fn turned(of: &Point) -> Point {
    Point {
        t_s: of.t_s,
        value: -of.value,
    }
}

/// The extremes of several stretches, at their begin.
fn block(stretches: &[Extremes]) -> Extremes {
    let t_s = stretches.first().map_or(0.0, |first| first.t_s);
    let min = stretches
        .iter()
        .map(|of| of.min)
        .fold(f64::INFINITY, f64::min);
    let max = stretches
        .iter()
        .map(|of| of.max)
        .fold(f64::NEG_INFINITY, f64::max);
    Extremes { t_s, min, max }
}

/// The level of the peaks at an instant: the median of those of all blocks, each moved there by the slope.
fn level(blocks: &[Extremes], slope: f64, at: f64) -> f64 {
    let length = match blocks {
        [first, second, ..] => second.t_s - first.t_s,
        _ => 0.0,
    };
    // Under a rise the peak of a block lies at its end.
    let moved = blocks
        .iter()
        .map(|of| of.max + slope * (at - of.t_s - length));
    median(moved.collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MB: f64 = 1e6;
    const DAY: f64 = 86_400.0;

    /// A resource under virtual time: sampled each second.
    #[derive(Debug, Clone, Copy)]
    struct Resource {
        base: f64,
        leak: f64,
        amplitude: f64,
        period_s: f64,
        noise: f64,
        seed: u64,
    }

    impl Resource {
        fn at(&self, second: u64) -> f64 {
            let cycles = second as f64 / self.period_s;
            let noise =
                self.noise * (2.0 * muster_model::unit(muster_model::mix(self.seed, second)) - 1.0);
            self.base + self.leak * second as f64 + self.amplitude * cycles.fract() + noise
        }

        /// Its samples as a result keeps them: at most 600 stretches.
        fn sampled(&self, load_s: u64) -> (Vec<Extremes>, f64) {
            let length = load_s.div_ceil(600).next_power_of_two();
            let stretch = |begin: u64| {
                let values = (begin..(begin + length).min(load_s)).map(|second| self.at(second));
                let (min, max) = values
                    .fold((f64::INFINITY, f64::NEG_INFINITY), |(min, max), value| {
                        (min.min(value), max.max(value))
                    });
                let t_s = begin as f64;
                Extremes { t_s, min, max }
            };
            let begins = (0..load_s).step_by(length as usize);
            (begins.map(stretch).collect(), length as f64)
        }

        fn outlook(&self, load_s: u64, limit: f64) -> Outlook {
            let (series, length_s) = self.sampled(load_s);
            let limit = Limit::of_number(&series, limit);
            Outlook::of(&series, length_s, limit, 7.0 * DAY)
        }
    }

    const QUIET: Resource = Resource {
        base: 300.0 * MB,
        leak: 0.0,
        amplitude: 0.0,
        period_s: 60.0,
        noise: 0.0,
        seed: 1,
    };

    #[test]
    fn a_resource_that_does_not_move_lasts() {
        let outlook = QUIET.outlook(3_600, 1e9);
        assert_eq!((outlook.lasts, outlook.runs_out_s), (Lasts::Yes, None));
        assert_eq!(outlook.level, 300.0 * MB);
    }

    #[test]
    fn credits_that_fall_to_nothing_run_out() {
        let credits = Resource {
            base: 100.0,
            leak: -0.01,
            noise: 0.2,
            ..QUIET
        };
        let outlook = credits.outlook(3_600, 0.0);
        assert_eq!(outlook.lasts, Lasts::No);
        let left = outlook.runs_out_s.expect("it falls");
        assert!((left - 6_400.0).abs() < 640.0, "{left}");
        assert!(outlook.slope.is_some_and(|slope| slope < 0.0));
        assert!(outlook.slope_low <= outlook.slope && outlook.slope <= outlook.slope_high);
    }

    #[test]
    fn what_is_at_its_limit_has_run_out() {
        let outlook = QUIET.outlook(3_600, 300.0 * MB);
        assert_eq!(outlook.lasts, Lasts::No);
    }

    /// A floor is for what may fall: memory above its limit has not far to go to the other side.
    #[test]
    fn what_is_above_its_ceiling_has_run_out_whatever_its_trend() {
        for leak in [-0.1 * MB, 0.0, 0.1 * MB] {
            let over = Resource {
                base: 2e9,
                leak,
                ..QUIET
            };
            let (series, length_s) = over.sampled(3_600);
            let outlook = Outlook::of(&series, length_s, Limit::Ceiling(1e9), DAY);
            assert_eq!(outlook.lasts, Lasts::No, "{leak}");
        }
    }

    /// A series sampled each 30 s is as long as its time, not as its number of samples.
    #[test]
    fn a_thin_series_needs_no_longer_load_than_its_time_says() {
        let stretch = |at: u64| Extremes {
            t_s: 30.0 * at as f64,
            min: 100.0,
            max: 100.0,
        };
        let series: Vec<Extremes> = (0..8).map(stretch).collect();
        let Lasts::Unclear { needs_s } = Outlook::of(&series, 1.0, Limit::Ceiling(1e3), DAY).lasts
        else {
            panic!("eight samples decide nothing")
        };
        assert!((240.0..600.0).contains(&needs_s), "{needs_s}");
    }

    #[test]
    fn a_short_load_is_unclear_and_says_how_long_it_must_be() {
        let outlook = QUIET.outlook(8, 1e9);
        let Lasts::Unclear { needs_s } = outlook.lasts else {
            panic!("{outlook:?}")
        };
        assert!(needs_s >= 16.0, "{needs_s}");
        // A leak that noise hides needs a longer load, which then decides.
        let hidden = Resource {
            leak: 2_000.0,
            noise: 100.0 * MB,
            ..QUIET
        };
        let unclear = hidden.outlook(1_800, 1.2e9);
        let Lasts::Unclear { needs_s } = unclear.lasts else {
            panic!("{unclear:?}")
        };
        assert!(needs_s > 1_800.0, "{needs_s}");
    }

    /// Sampled each second, a cycle of 16.9885 s differs from itself until 87 of them are over.
    #[test]
    fn a_cycle_within_a_stretch_is_no_longer_one() {
        let steady = Resource {
            amplitude: 24.0 * MB,
            period_s: 16.988_524,
            ..QUIET
        };
        assert_eq!(steady.outlook(5_988, 4e9).lasts, Lasts::Yes);
    }

    #[test]
    fn an_empty_series_is_unclear() {
        let outlook = Outlook::of(&[], 1.0, Limit::Ceiling(1.0), DAY);
        assert!(
            matches!(outlook.lasts, Lasts::Unclear { .. }),
            "{outlook:?}"
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// A leak of 1 MB/s behind noise and a sawtooth is found, with the time to the limit within 10 %.
        #[test]
        fn a_leak_is_found_with_its_time(
            load_s in 1_200_u64..20_000,
            period_s in 15.0..90.0_f64,
            amplitude in 0.0..150.0_f64,
            noise in 0.0..5.0_f64,
            factor in 1.5..8.0_f64,
            seed: u64,
        ) {
            let leaking = Resource {
                leak: MB,
                amplitude: amplitude * MB,
                period_s,
                noise: noise * MB,
                seed,
                ..QUIET
            };
            let peak = leaking.base + leaking.amplitude + leaking.leak * load_s as f64;
            let limit = peak + leaking.leak * load_s as f64 * (factor - 1.0);
            let left = load_s as f64 * (factor - 1.0);
            let outlook = leaking.outlook(load_s, limit);
            prop_assert_eq!(outlook.lasts, Lasts::No);
            let found = outlook.runs_out_s.expect("it rises");
            prop_assert!((found - left).abs() <= left / 10.0, "{} of {}", found, left);
            let (earliest, latest) = (outlook.earliest_s, outlook.latest_s);
            prop_assert!(earliest <= Some(found) && Some(found) <= latest);
        }

        /// A sawtooth without a leak lasts.
        #[test]
        fn a_sawtooth_is_no_leak(
            load_s in 3_600_u64..36_000,
            period_s in 15.0..300.0_f64,
            amplitude in 1.0..150.0_f64,
            noise in 0.0..5.0_f64,
            seed: u64,
        ) {
            let steady = Resource {
                amplitude: amplitude * MB,
                period_s,
                noise: noise * MB,
                seed,
                ..QUIET
            };
            let outlook = steady.outlook(load_s, 4e9);
            prop_assert_eq!(outlook.lasts, Lasts::Yes, "{:?}", outlook);
        }
    }
}
