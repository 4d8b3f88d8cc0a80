//! Subject and limits of a search.

use std::fmt;

use muster_model::Micros;
use serde::{Deserialize, Serialize};

/// Least lengths of a short and a long step.
const SHORT: Micros = Micros::from_secs(5);
const LONG: Micros = Micros::from_secs(20);
/// Lengths of both in multiples of the longest latency limit. A queue that grows by 2 % of the traffic takes
/// 50 times the limit to reach it: until then a step passes at 2 % above the capacity.
const SHORT_LIMITS: u64 = 10;
const LONG_LIMITS: u64 = 50;
/// Each step of the ramp is this many times the one before.
pub(super) const GROWTH: f64 = 2.0;
/// Steps of a confirmation: its lower end three times, and its upper end once.
const CONFIRMING: u64 = 4;

/// Subject and limits of a search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SearchSpec {
    /// The rate of the first step, above 0: per second, or a number of devices.
    pub first: f64,
    /// The highest rate that may be asked for, at least `first`: what the generator can judge.
    pub most: f64,
    /// The width of the stated interval at the most, as a part of its lower end.
    pub width: f64,
    /// The length of the first steps.
    pub short: Micros,
    /// The length of steps close to the capacity and of the confirmation, unless outcomes contradict each other.
    pub long: Micros,
    /// The load of a short step times its seconds, at the least: the messages that a percentile needs. At 1,100, a short
    /// step at a load of 20 lasts 55 s, and a long one longer by the same factor. 0 if no percentile needs any.
    pub load_seconds: f64,
    /// The time that all steps may take together, pauses between them included.
    pub budget: Micros,
}

impl SearchSpec {
    /// The lengths of a short and a long step for service levels whose longest latency limit is `limit`.
    pub fn lengths(limit: Micros) -> (Micros, Micros) {
        let times = |factor: u64| Micros(limit.get().saturating_mul(factor));
        (times(SHORT_LIMITS).max(SHORT), times(LONG_LIMITS).max(LONG))
    }

    /// The length of a short step at a rate.
    pub fn short_at(&self, rate: f64) -> Micros {
        self.stretched(rate, self.short)
    }

    /// The length of a long step at a rate.
    pub fn long_at(&self, rate: f64) -> Micros {
        self.stretched(rate, self.long)
    }

    fn stretched(&self, rate: f64, hold: Micros) -> Micros {
        let factor = self.load_seconds / rate / self.short.as_secs_f64();
        match factor > 1.0 {
            true => Micros::from_secs_f64((hold.as_secs_f64() * factor).ceil()),
            false => hold,
        }
    }

    /// The least time of a search: the ramp up to `to`, or to the highest rate, and a confirmation there.
    pub fn least_budget(&self, to: f64) -> Micros {
        let to = to.clamp(self.first, self.most);
        let ramp = std::iter::successors(Some(self.first), |rate| Some(rate * GROWTH));
        let ramp = ramp.take_while(|rate| *rate < to);
        let ramp = ramp.fold(Micros::ZERO, |sum, rate| sum + self.short_at(rate));
        let confirming = self.long_at(to).get().saturating_mul(CONFIRMING);
        ramp.max(self.short_at(self.first)) + Micros(confirming)
    }

    /// The length of the parts of a step at a rate: about half a long step.
    pub fn batch(&self, rate: f64, hold: Micros) -> Micros {
        let half = self.long_at(rate).get() as f64 / 2.0;
        let parts = (hold.get() as f64 / half).round().max(1.0);
        Micros(hold.get().div_ceil(parts as u64))
    }

    pub(super) fn check(&self) -> Result<(), SearchError> {
        if !(self.first > 0.0 && self.first <= self.most && self.most.is_finite()) {
            return Err(SearchError::Rates);
        }
        if !(self.width > 0.0 && self.width < 1.0) {
            return Err(SearchError::Width);
        }
        if self.short == Micros::ZERO || self.short > self.long {
            return Err(SearchError::Lengths);
        }
        if !(self.load_seconds >= 0.0 && self.load_seconds.is_finite()) {
            return Err(SearchError::LoadSeconds);
        }
        Ok(())
    }
}

/// A specification that cannot be searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchError {
    /// The first rate is not above 0 and at most the highest.
    Rates,
    /// The width is not above 0 and below 1.
    Width,
    /// A short step is longer than a long one, or has no length.
    Lengths,
    /// The load times the seconds of a step is not a number from 0.
    LoadSeconds,
}

impl fmt::Display for SearchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rates => "the first rate must be above 0, and at most the highest rate",
            Self::Width => "the width must be above 0 and below 1",
            Self::Lengths => "a short step must have a length, and not more than a long one",
            Self::LoadSeconds => "the load times the seconds of a step must be a number from 0",
        })
    }
}

impl std::error::Error for SearchError {}
