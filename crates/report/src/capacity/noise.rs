//! The noise that kept a search from stating a capacity.

use muster_judge::capacity::{Outcome, Search, SearchEnd, SearchSpec};
use muster_judge::{cycle, stability::Point};
use muster_model::{Dimension, Micros, figure};
use serde::{Deserialize, Serialize};

use super::obstacle::Obstacle;
use super::{CapacityReport, CapacityStep};
use crate::text::reason;
use crate::{Consequence, Report, Rule, Window};

/// Periods that a step has to last, so that each step has about as many bad messages.
const PERIODS: f64 = 3.0;
/// Highest p99 of a window in multiples of the median of its step, below which it does not rise.
const RISE: f64 = 1.5;
/// Steps as long that a budget has to have room for: one takes at most a quarter of the time left, and the last ones
/// confirm.
const STEPS: f64 = 8.0;

/// A noise that kept a search from stating a capacity, and what would help.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Noise {
    /// The kind of noise.
    pub kind: NoiseKind,
    /// Numbers of the steps that show it.
    pub steps: Vec<u64>,
    /// The period in seconds; left out of other kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period_s: Option<f64>,
    /// The figures that show it.
    pub seen: String,
    /// The remedy.
    pub remedy: String,
}

/// A kind of noise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoiseKind {
    /// A load failed, and a higher one passed.
    Contradiction,
    /// A latency rises at even intervals.
    Period,
    /// Steps said nothing of the target.
    Unclear,
}

/// Two steps that contradict each other: the one with the lower load failed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Contradicting<'a> {
    pub(super) passed: &'a CapacityStep,
    pub(super) failed: &'a CapacityStep,
}

impl<'a> Contradicting<'a> {
    /// The steps that contradict each other the most, as the search has it.
    pub(super) fn new(limits: &SearchSpec, steps: &'a [CapacityStep]) -> Option<Self> {
        let mut search = Search::new(limits.clone()).ok()?;
        CapacityStep::replay(steps, &mut search);
        let rates = search.contradiction()?;
        let last = |outcome, load| {
            let of = |step: &&CapacityStep| step.outcome == outcome && step.load == load;
            steps.iter().rev().find(of)
        };
        Some(Self {
            passed: last(Outcome::Pass, rates.passed)?,
            failed: last(Outcome::Fail, rates.failed)?,
        })
    }

    fn noise(&self, find: Dimension, budget: Micros) -> Noise {
        let fails = |rule: &&Rule| rule.consequence == Consequence::Fails;
        let broken = self.failed.figures.rules.iter().find(fails);
        let at = |step: &CapacityStep| {
            let rules = step.figures.rules.iter();
            let rule = broken.and_then(|broken| rules.clone().find(|rule| rule.is_same(broken)));
            let seen = rule.and_then(Rule::seen);
            let seen = seen.map_or(String::new(), |seen| format!("{seen} "));
            format!("{seen}at {}", find.in_words(step.load))
        };
        let rule = broken.map_or(String::new(), |rule| rule.title() + " ");
        Noise {
            kind: NoiseKind::Contradiction,
            steps: vec![self.failed.number, self.passed.number],
            period_s: None,
            seen: format!(
                "{rule}{} failed in step {}, {} passed in step {}",
                at(self.failed),
                self.failed.number,
                at(self.passed),
                self.passed.number
            ),
            remedy: format!(
                "find what disturbs the target, or hold longer steps by --budget {}",
                minutes(budget + budget)
            ),
        }
    }
}

impl CapacityReport {
    /// The noise that kept the search from stating a capacity, by the windows of the last run; none if it stated one, or
    /// something else ended it.
    pub(super) fn noise(&self, report: &Report) -> Vec<Noise> {
        let known = self.own.known.as_ref();
        let obstacle = Obstacle::new(&self.limits, &self.steps, known);
        let is_unclear = matches!(self.own.end, Some(SearchEnd::NothingClear { .. }));
        let is_prevented = match &self.own.end {
            Some(SearchEnd::NothingClear { .. }) => true,
            Some(SearchEnd::OutOfBudget { .. }) => !obstacle.is_ramp(),
            Some(_) => false,
            None => known.is_some_and(|known| known.width() > self.limits.width),
        };
        if !is_prevented {
            return Vec::new();
        }
        let contradicting = Contradicting::new(&self.limits, &self.steps);
        let contradiction = contradicting.map(|of| of.noise(self.find, self.limits.budget));
        let mut noise: Vec<Noise> = contradiction.into_iter().collect();
        noise.extend(self.period(report));
        if is_unclear || obstacle.is_unclear() {
            noise.extend(self.unclear());
        }
        noise
    }

    /// The period of a latency in the steps of the last run up to the interval; none if none is sure.
    fn period(&self, report: &Report) -> Option<Noise> {
        if self.find == Dimension::Commands {
            // Windows have no latency of commands.
            return None;
        }
        let highest = self.own.known.map_or(f64::INFINITY, |known| known.upper);
        let is_meant = |step: &&CapacityStep| {
            step.session == self.sessions
                && step.load <= highest
                && step.outcome != Outcome::Unclear
        };
        let spacing_s = report.windows.iter().map(|window| window.for_s);
        let spacing_s = spacing_s.max_by(f64::total_cmp)?;
        let has_response = report.latency.response.is_some();
        let (leg, p99): (_, fn(&Window) -> Option<u64>) = match has_response {
            true => ("response", |window| window.response.p99_us),
            false => ("end-to-end", |window| window.end_to_end.p99_us),
        };
        let points = |step: &CapacityStep| {
            let within = report.windows.iter().filter(|window| {
                let until_s = window.t_s + window.for_s;
                window.t_s >= step.figures.from_s && until_s <= step.figures.until_s
            });
            let point = |window: &Window| {
                Some(Point {
                    t_s: window.t_s,
                    value: (p99(window)?.max(1) as f64).ln(),
                })
            };
            within.filter_map(point).collect::<Vec<Point>>()
        };
        let of_step = self.steps.iter().filter(is_meant);
        let of_step = of_step.map(|step| (step.number, points(step)));
        let of_step = of_step.filter(|(_, points)| rises(points));
        let (steps, points): (Vec<u64>, Vec<Vec<Point>>) = of_step.unzip();
        let period_s = cycle::period(&points, spacing_s)?;
        let lasting = Micros::from_secs_f64(PERIODS * period_s);
        let enough = Micros::from_secs_f64(STEPS * PERIODS * period_s);
        let budget = self.limits.budget;
        Some(Noise {
            kind: NoiseKind::Period,
            steps,
            period_s: Some(period_s),
            seen: format!("{leg} p99 rises about every {period_s:.0} s"),
            remedy: format!(
                "steadier collections, checkpoints or flushes of the target, or steps of at least {} by --budget {}",
                figure::time(lasting),
                minutes(enough.max(budget + budget))
            ),
        })
    }

    /// The causes of unclear steps, in the order of their first steps.
    fn unclear(&self) -> Vec<Noise> {
        let mut causes: Vec<(String, Noise)> = Vec::new();
        for step in self
            .steps
            .iter()
            .filter(|step| step.outcome == Outcome::Unclear)
        {
            let rule = step
                .figures
                .broken()
                .next()
                .filter(|_| step.idle().is_none());
            let cause = rule.map_or_else(|| step.why().unwrap_or_default(), Rule::title);
            if let Some((_, noise)) = causes.iter_mut().find(|(known, _)| *known == cause) {
                noise.steps.push(step.number);
                continue;
            }
            let remedy = rule.and_then(|rule| rule.invalid.remedy.clone());
            let noise = Noise {
                kind: NoiseKind::Unclear,
                steps: vec![step.number],
                period_s: None,
                seen: rule.map_or_else(|| cause.clone(), reason),
                remedy: remedy
                    .unwrap_or_else(|| "see the rules of the step in capacity.json".to_owned()),
            };
            causes.push((cause, noise));
        }
        causes
            .into_iter()
            .map(|(_, noise)| noise.counted())
            .collect()
    }
}

impl Noise {
    /// An unclear step with the number of those that have the same cause.
    fn counted(self) -> Self {
        let steps = figure::number_of(self.steps.len() as u64, "step");
        let first = self.steps.first().copied().unwrap_or_default();
        Self {
            seen: format!("{steps} unclear, such as step {first}: {}", self.seen),
            ..self
        }
    }

    /// The noise in a line, with what would help.
    pub(super) fn line(&self) -> String {
        format!("  noise: {}; {}\n", self.seen, self.remedy)
    }
}

/// Returns whether a logarithm rises far above its median.
fn rises(points: &[Point]) -> bool {
    let mut values: Vec<f64> = points.iter().map(|point| point.value).collect();
    values.sort_unstable_by(f64::total_cmp);
    let median = values.get(values.len() / 2);
    let highest = values.last().zip(median);
    highest.is_some_and(|(highest, median)| highest - median >= RISE.ln())
}

/// A budget in whole minutes, as an option takes it.
pub(super) fn minutes(budget: Micros) -> String {
    format!("{}m", budget.get().div_ceil(60_000_000))
}
