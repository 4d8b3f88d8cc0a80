//! Searches of simulated targets, and how often they are right.

use muster_judge::Percentile;
use muster_judge::capacity::{Interval, Next, Observed, Outcome, Search, SearchEnd, SearchSpec};
use muster_model::{Micros, mix};

use crate::targets::{Target, World};

/// The pause after a step.
const PAUSE: Micros = Micros::from_secs(2);
/// Distance of the middle from the truth that counts as close.
pub(crate) const CLOSE: f64 = 0.03;

pub(crate) fn spec() -> SearchSpec {
    SearchSpec {
        first: 50.0,
        most: 100_000.0,
        width: 0.1,
        short: Micros::from_secs(5),
        long: Micros::from_secs(20),
        load_seconds: 0.0,
        budget: Micros::from_secs(1200),
    }
}

/// A search of a slow target with an SLO for p99: its steps last as long as that needs.
pub(crate) fn slow_spec(target: &Target, budget: Micros) -> SearchSpec {
    let (short, long) = SearchSpec::lengths(Micros::from_secs_f64(target.limit));
    let load_seconds = 2.0 * Percentile::P99.needed() as f64;
    SearchSpec {
        first: load_seconds * 10.0 / budget.as_secs_f64(),
        short,
        long,
        load_seconds,
        budget,
        ..spec()
    }
}

/// The answer of one search of a simulated target.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) end: SearchEnd,
    /// The true capacity when the search ended.
    pub(crate) truth: f64,
    pub(crate) spent_s: f64,
}

pub(crate) fn answer(target: Target, spec: &SearchSpec, seed: u64) -> Answer {
    let mut world = World::new(target, seed);
    let mut search = Search::new(spec.clone()).expect("a valid specification");
    loop {
        match search.next() {
            Next::Hold(step) => {
                let batch = spec.batch(step.rate, step.hold).as_secs_f64();
                let judged = world.hold(step.rate, step.hold.as_secs_f64(), batch);
                let messages = judged.margin.batches.iter().map(|batch| batch.messages);
                let has_too_few = messages.sum::<u64>() < Percentile::P99.needed();
                search.record(&Observed {
                    outcome: match spec.load_seconds > 0.0 && has_too_few {
                        true => Outcome::Unclear,
                        false => judged.outcome,
                    },
                    margin: Some(judged.margin),
                    took: step.hold + PAUSE,
                    has_recovered: judged.has_recovered,
                });
            }
            Next::End(end) => {
                return Answer {
                    end,
                    truth: target.truth(world.age),
                    spent_s: (spec.budget - search.left()).as_secs_f64(),
                };
            }
        }
    }
}

/// Numbers of searches by their answer.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Figures {
    pub(crate) searches: u32,
    /// With a capacity as the answer.
    pub(crate) found: u32,
    /// Of these, with a middle close to the truth.
    pub(crate) close: u32,
    /// Of these, with a lower end above the truth.
    pub(crate) above: u32,
    /// Of these, with an interval that covers the truth.
    pub(crate) covered: u32,
    /// With a known interval and without a capacity.
    pub(crate) open: u32,
    /// Of these, with an interval that covers the truth.
    pub(crate) open_covered: u32,
    pub(crate) not_recovered: u32,
    /// Sums over all searches: time in seconds, and width of those that found a capacity.
    pub(crate) spent_s: f64,
    pub(crate) width: f64,
    /// Sum of the relative error of the middle.
    pub(crate) error: f64,
}

impl Figures {
    /// Searches of a target; search `i` is a function of the seed and `i` alone.
    pub(crate) fn collect(target: Target, spec: &SearchSpec, seed: u64, searches: u32) -> Self {
        let mut figures = Self::default();
        for at in 0..searches {
            figures.add(&answer(target, spec, mix(seed, u64::from(at))));
        }
        figures
    }

    fn add(&mut self, answer: &Answer) {
        let truth = answer.truth;
        let covers = |interval: &Interval| interval.lower <= truth && truth <= interval.upper;
        self.searches += 1;
        self.spent_s += answer.spent_s;
        match &answer.end {
            SearchEnd::Found(capacity) => {
                let interval = &capacity.interval;
                self.found += 1;
                let error = interval.middle / truth - 1.0;
                self.close += u32::from(error.abs() <= CLOSE);
                self.above += u32::from(interval.lower > truth);
                self.covered += u32::from(covers(interval));
                self.width += interval.width();
                self.error += error;
            }
            SearchEnd::NotRecovered { known, .. } => {
                self.not_recovered += 1;
                self.open(known.as_ref().map(covers));
            }
            SearchEnd::OutOfBudget { known, .. } | SearchEnd::NothingClear { known, .. } => {
                self.open(known.as_ref().map(covers));
            }
            SearchEnd::FailsAtFirst { .. } | SearchEnd::AtLeast { .. } => {}
        }
    }

    fn open(&mut self, covered: Option<bool>) {
        self.open += 1;
        self.open_covered += u32::from(covered == Some(true));
    }
}
