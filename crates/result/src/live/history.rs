//! The times of the last minutes, by second of due: a percentile of few messages takes many seconds.

use std::collections::BTreeMap;

use muster_judge::Percentile;
use muster_measure::{Distribution, Percentiles, WindowDelta};
use muster_model::{Micros, StreamId};

use super::Quantiles;

/// Seconds that are remembered, at most.
pub(super) const SPAN_MAX_S: u32 = 300;
/// Seconds that are remembered whatever they hold: late answers belong to them.
const SPAN_MIN_S: u32 = 30;

/// Counts and times of the messages due in each of the last seconds.
#[derive(Debug, Default)]
pub(super) struct History {
    seconds: BTreeMap<u32, SecondTimes>,
}

/// Counts and times of the messages due in one second.
#[derive(Debug, Default)]
pub(super) struct SecondTimes {
    /// The response of the answered.
    pub(super) answered: Distribution,
    /// The least response of those that got no answer.
    pub(super) censored: Distribution,
    /// End-to-end at the first backend.
    pub(super) end_to_end: Distribution,
    finals: BTreeMap<StreamId, u64>,
}

impl SecondTimes {
    /// Messages of a stream that have ended.
    pub(super) fn finals(&self, stream: StreamId) -> u64 {
        self.finals.get(&stream).copied().unwrap_or(0)
    }
}

impl History {
    /// Takes in what came, and forgets what no percentile needs.
    pub(super) fn add(&mut self, delta: &WindowDelta) {
        let until = delta.until.second();
        let oldest = self.oldest(until);
        for ((stream, key), window) in &delta.uplinks {
            if key.second >= oldest {
                let second = self.seconds.entry(key.second).or_default();
                second.answered.merge(&window.response);
                second.censored.merge(&window.censored);
                *second.finals.entry(*stream).or_default() += window.outcomes.finals();
            }
        }
        for ((backend, _, key), window) in &delta.arrivals {
            if key.second >= oldest && backend.0 == 0 {
                let second = self.seconds.entry(key.second).or_default();
                second.end_to_end.merge(&window.end_to_end);
            }
        }
        let oldest = self.oldest(until);
        self.seconds = self.seconds.split_off(&oldest);
    }

    /// The first second of those that hold enough times for every percentile.
    fn oldest(&self, until: u32) -> u32 {
        let needed = Percentile::P99.needed();
        let (mut answered, mut arrived) = (0, 0);
        let enough = self.seconds.iter().rev().find(|(_, times)| {
            answered += times.answered.count;
            arrived += times.end_to_end.count;
            answered >= needed && (arrived >= needed || arrived == 0)
        });
        let enough = enough.map_or(0, |(second, _)| *second);
        let least = until.saturating_sub(SPAN_MAX_S);
        enough.min(until.saturating_sub(SPAN_MIN_S)).max(least)
    }

    /// The counts and times of a second.
    pub(super) fn of(&self, second: u32) -> Option<&SecondTimes> {
        self.seconds.get(&second)
    }
}

/// The quantiles of the latest of these seconds, of as many of them as each needs; they come from the latest
/// to the earliest, each with the times that are known and the lower bounds of the others.
pub(super) fn quantiles(seconds: impl Iterator<Item = (Distribution, Distribution)>) -> Quantiles {
    let (mut known, mut others) = (Distribution::default(), Distribution::default());
    let mut quantiles = Quantiles {
        p99_needs: Percentile::P99.needed(),
        ..Quantiles::default()
    };
    for (over_s, second) in (1..).zip(seconds) {
        known.merge(&second.0);
        others.merge(&second.1);
        let percentiles = Percentiles::of_all_due(&known, &others);
        if quantiles.p50.is_none() {
            quantiles.p50 = percentiles.p50_us.map(Micros);
            quantiles.p50_over_s = over_s;
            quantiles.is_p50_at_least = percentiles.at_least.holds("p50_us");
        }
        quantiles.p99 = percentiles.p99_us.map(Micros);
        quantiles.p99_over_s = over_s;
        quantiles.is_p99_at_least = percentiles.at_least.holds("p99_us");
        quantiles.p99_of = known.count + others.count;
        if quantiles.p99.is_some() {
            break;
        }
    }
    quantiles
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(count: u64, us: u64) -> (Distribution, Distribution) {
        let mut times = Distribution::default();
        times.record_n(Micros(us), count);
        (times, Distribution::default())
    }

    #[test]
    fn each_quantile_takes_the_seconds_that_it_needs_and_no_more() {
        let slow = [15, 15, 600, 600, 600].map(|count| second(count, 1_000));
        let found = quantiles(slow.into_iter());
        assert_eq!((found.p50, found.p50_over_s), (Some(Micros(1_000)), 2));
        assert_eq!((found.p99, found.p99_over_s), (Some(Micros(1_000)), 4));
    }

    #[test]
    fn a_second_with_enough_stands_alone() {
        let found = quantiles([second(1_000, 10), second(1_000, 99_000)].into_iter());
        assert_eq!((found.p99, found.p99_over_s), (Some(Micros(10)), 1));
    }

    #[test]
    fn too_few_in_all_seconds_have_no_quantile() {
        let found = quantiles([second(5, 10), second(5, 10)].into_iter());
        assert_eq!((found.p50, found.p99), (None, None));
        assert_eq!((found.p99_of, found.p99_needs), (10, 1_000));
    }
}
