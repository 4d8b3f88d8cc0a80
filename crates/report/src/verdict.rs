//! The verdict as it is written (docs/semantics.md#verdict-and-exit-codes).

use std::collections::BTreeSet;
use std::fmt::{self, Write as _};

use muster_judge::{
    Consequence, LinkCause, RuleKind, RunResult, SetNames, UnknownDelivery, Warning,
};
use muster_measure::Cell;
use muster_model::{Micros, Promise, figure};
use serde::ser::SerializeStruct as _;
use serde::{Deserialize, Serialize, Serializer};

/// The run's result and the rules behind it.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
pub struct Verdict {
    /// The result.
    pub result: RunResult,
    /// Of an invalid run, its result by the rules alone; null if undecidable.
    pub would_be: Option<RunResult>,
    /// Reasons why links did not come up, by fleet; empty if all did.
    pub causes: Vec<LinkCause>,
    /// Problems that no rule judged; they change no result.
    pub warnings: Vec<Warning>,
    /// The rules that the scenario switched off by `any`.
    pub switched_off: Vec<SwitchedOff>,
    /// Streams whose delivery nobody can confirm.
    pub delivery_unknown: Vec<UnknownDelivery>,
    /// Every rule, in the order in which they are judged.
    pub rules: Vec<Rule>,
}

impl Verdict {
    /// Counts the rules by how they ended: the one count that every form of a report shows.
    pub fn counts(&self) -> RuleCounts {
        let mut counts = RuleCounts::default();
        for rule in &self.rules {
            counts.rules += 1;
            *match (rule.result, rule.consequence) {
                (RuleResult::Pass, _) => &mut counts.hold,
                (RuleResult::Fail, Consequence::None) => &mut counts.not_judged,
                (RuleResult::Fail, Consequence::Fails | Consequence::Invalidates) => {
                    &mut counts.fail
                }
                (RuleResult::NotEvaluated, _) => &mut counts.not_evaluated,
            } += 1;
        }
        counts
    }

    /// The exit code of a run with this verdict (docs/semantics.md#verdict-and-exit-codes).
    pub const fn exit_code(&self) -> u8 {
        self.result.exit_code()
    }

    /// Rules behind the result: of an invalid run first those that make it invalid, the broken ones
    /// before those that could not be decided, then those against the target all the same; of a
    /// pass nothing.
    pub fn reasons(&self) -> impl Iterator<Item = &Rule> {
        let is_invalid = self.result == RunResult::Invalid;
        let own = move |rule: &&Rule| is_invalid && rule.consequence == Consequence::Invalidates;
        let is_broken = |rule: &&Rule| rule.result == RuleResult::Fail;
        let broken = self.rules.iter().filter(own).filter(is_broken);
        let undecided = self
            .rules
            .iter()
            .filter(own)
            .filter(move |rule| !is_broken(rule));
        let targets = self.rules.iter();
        let fails = |rule: &&Rule| rule.consequence == Consequence::Fails;
        broken.chain(undecided).chain(targets.filter(fails))
    }

    /// The rules that the scenario switched off, in words: `not judged: loss (switched off by `any`)`.
    pub fn not_judged(&self) -> Option<String> {
        let rules: Vec<String> = self
            .switched_off
            .iter()
            .map(SwitchedOff::to_string)
            .collect();
        let words = format!("not judged: {} (switched off by `any`)", rules.join(", "));
        (!rules.is_empty()).then_some(words)
    }

    /// Of a run that passes, the streams whose delivery is unknown, by the promise of their acknowledgements.
    pub fn unknown_delivery(&self) -> Option<String> {
        let is_pass = self.result == RunResult::Pass || self.would_be == Some(RunResult::Pass);
        let promises = [Promise::Enqueued, Promise::Nothing];
        let of = |promise: Promise| {
            let streams = self.delivery_unknown.iter();
            let streams = streams.filter(|of| of.promise == promise);
            let streams: Vec<&str> = streams.map(|of| of.scope.as_str()).collect();
            (!streams.is_empty()).then(|| format!("{promise} [{}]", streams.join(", ")))
        };
        let promises: Vec<String> = promises.into_iter().filter_map(of).collect();
        (is_pass && !promises.is_empty()).then(|| {
            format!(
                "delivery unknown: no backend, counter or read-back looks behind acknowledgements \
                 that promise {}",
                promises.join(", ")
            )
        })
    }

    /// The caveats on rules that hold, each once; where the same is said of several rules, they follow it in
    /// one list.
    pub fn notes(&self) -> Vec<String> {
        let notes = self.rules_that(RuleResult::Pass);
        let notes: BTreeSet<&str> = notes.filter_map(|rule| rule.note.as_deref()).collect();
        let mut joined: Vec<String> = Vec::new();
        let mut before = None;
        for note in notes {
            let common = note.split_once(": ").map(|(common, _)| common);
            match joined
                .last_mut()
                .filter(|_| common.is_some() && common == before)
            {
                Some(last) => {
                    let _ = write!(last, ", {}", &note[common.map_or(0, str::len) + 2..]);
                }
                None => joined.push(note.to_owned()),
            }
            before = common;
        }
        joined
    }

    /// Remedies for an invalid run, in the order of its reasons, each once.
    pub fn remedies(&self) -> Vec<&str> {
        let mut remedies: Vec<&str> = Vec::new();
        for remedy in self
            .reasons()
            .filter_map(|rule| rule.invalid.remedy.as_deref())
        {
            if !remedies.contains(&remedy) {
                remedies.push(remedy);
            }
        }
        remedies
    }

    /// True if the ledger does not add up.
    pub(crate) fn has_residue(&self) -> bool {
        self.rules_that(RuleResult::Fail)
            .any(|rule| rule.rule == "residue")
    }

    /// The rules with this result.
    pub fn rules_that(&self, result: RuleResult) -> impl Iterator<Item = &Rule> {
        self.rules.iter().filter(move |rule| rule.result == result)
    }
}

impl Serialize for Verdict {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self {
            result,
            would_be,
            causes,
            warnings,
            switched_off,
            delivery_unknown,
            rules,
        } = self;
        let mut verdict = serializer.serialize_struct("Verdict", 8)?;
        verdict.serialize_field("result", result)?;
        verdict.serialize_field("would_be", would_be)?;
        verdict.serialize_field("causes", causes)?;
        verdict.serialize_field("counts", &self.counts())?;
        verdict.serialize_field("warnings", warnings)?;
        verdict.serialize_field("switched_off", switched_off)?;
        verdict.serialize_field("delivery_unknown", delivery_unknown)?;
        verdict.serialize_field("rules", rules)?;
        verdict.end()
    }
}

/// Numbers of rules by how they ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct RuleCounts {
    /// All rules.
    pub rules: u64,
    /// Rules that hold.
    pub hold: u64,
    /// Rules that fail and count.
    pub fail: u64,
    /// Rules that could not be decided.
    pub not_evaluated: u64,
    /// Rules that fail and do not count.
    pub not_judged: u64,
}

impl fmt::Display for RuleCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rules, hold) = (figure::count(self.rules), figure::count(self.hold));
        if self.hold == self.rules {
            write!(f, "{rules} rules hold")?;
        } else {
            write!(f, "{hold} of {rules} rules hold")?;
        }
        for (number, word) in [
            (self.fail, "fail"),
            (self.not_evaluated, "not evaluated"),
            (self.not_judged, "fail and are not judged"),
        ] {
            if number > 0 {
                write!(f, ", {} {word}", figure::count(number))?;
            }
        }
        Ok(())
    }
}

/// A rule that the scenario switched off by `any`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwitchedOff {
    /// The rule, such as `loss`; `response` alone stands for all its percentiles.
    pub rule: String,
    /// Scope in which the rule is off: `run`, a fleet, or `<fleet>/<stream>`.
    pub scope: String,
}

impl fmt::Display for SwitchedOff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.scope.as_str() {
            "run" => f.write_str(&self.rule),
            scope => write!(f, "{} [{scope}]", self.rule),
        }
    }
}

/// One rule, and what became of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rule {
    /// The rule's name, such as `response p99`.
    pub rule: String,
    /// Scope of the rule: `run`, a fleet, or `<fleet>/<stream>`.
    pub scope: String,
    /// Fleets and streams that have a rule of the same name, or `any`, and are left out here.
    pub except: Vec<String>,
    /// The sets of SLOs that it belongs to; left out if it belongs to all.
    #[serde(default, skip_serializing_if = "SetNames::is_all")]
    pub sets: SetNames,
    /// The kind of rule; it decides what a failure means.
    pub kind: RuleKind,
    /// True if the scenario names it, false for a default.
    pub named: bool,
    /// Outcome of the rule.
    pub result: RuleResult,
    /// Consequence for the run's result.
    pub consequence: Consequence,
    /// Observed figure.
    pub observed: Option<Figure>,
    /// The observed time without the generator's own delay; null if there is none.
    pub lower: Option<Figure>,
    /// Allowed figure.
    pub bound: Option<Figure>,
    /// The second since which it fails; null if it holds or cannot be dated.
    pub since_s: Option<f64>,
    /// Grounds of the decision, or of none.
    pub evidence: String,
    /// A caveat.
    pub note: Option<String>,
    /// Reason why the rule makes the run invalid, and its remedy.
    #[serde(flatten)]
    pub invalid: InvalidReason,
}

/// Reason for an invalid run, and its remedy.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct InvalidReason {
    /// Reason why the rule makes the run invalid: a section of `invalid.md`; else null.
    pub reason: Option<String>,
    /// Remedy for the reason; null without one.
    pub remedy: Option<String>,
}

/// The rules that allow no less than their bound, where all others allow no more.
const AT_LEAST: [&str; 2] = ["connected", "queries-with-command"];

impl Rule {
    /// The rule with its scope and sets: `response p99 [run]`, or `response p99 [gold]`.
    pub(crate) fn title(&self) -> String {
        format!("{} [{}]", self.rule, self.sets.place(&self.scope))
    }

    /// Returns whether both are the same rule, of two steps or runs.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.rule == other.rule && self.scope == other.scope && self.sets == other.sets
    }

    /// Observed figure, in words that differ from those of the bound where the two differ.
    pub fn seen(&self) -> Option<String> {
        let observed = figure::Figure::from(self.observed?);
        let bound = self.bound.map(figure::Figure::from);
        Some(bound.map_or_else(|| observed.to_string(), |bound| observed.beside(bound)))
    }

    /// The observed time with and without the generator's own delay, where that decides: `between
    /// 9.3 ms and 12.4 ms`, or `between 0 and 1.2 ms`.
    pub fn both_times(&self) -> Option<String> {
        let is_open = self.result == RuleResult::NotEvaluated;
        let (lower, upper) = self.lower.zip(self.observed).filter(|_| is_open)?;
        let lower = match lower == Figure::time(0) {
            true => "0".to_owned(),
            false => lower.to_string(),
        };
        Some(format!("between {lower} and {upper}"))
    }

    /// Returns whether a decided SLO says the opposite of its figures.
    pub fn contradicts_its_figures(&self) -> bool {
        let (Some(observed), Some(bound)) = (self.observed, self.bound) else {
            return false;
        };
        if self.kind != RuleKind::Slo || observed.is_at_least() {
            return false;
        }
        let value = |of: Figure| figure::Figure::from(of).value();
        let is_met = |bound: Figure| match AT_LEAST.contains(&self.rule.as_str()) {
            true => value(observed) >= value(bound),
            false => value(observed) <= value(bound),
        };
        match self.result {
            RuleResult::Pass => !is_met(bound.at_edge_of_cell()),
            RuleResult::Fail => is_met(bound),
            RuleResult::NotEvaluated => false,
        }
    }

    /// Allowed figure, in words: `at most 250 ms`, `at least 99.9 %`.
    pub fn allowed(&self) -> Option<String> {
        let sense = if AT_LEAST.contains(&self.rule.as_str()) {
            "at least"
        } else {
            "at most"
        };
        self.bound.as_ref().map(|bound| format!("{sense} {bound}"))
    }
}

/// Outcome of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RuleResult {
    /// The rule holds.
    Pass,
    /// The rule does not hold.
    Fail,
    /// Too little was known to decide.
    NotEvaluated,
}

/// An observed or allowed value. A count is a plain number; any other value is an object with its unit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Figure {
    /// Number of messages, links or events.
    Count(u64),
    /// A length of time.
    Time {
        /// A length of time in microseconds.
        us: u64,
        /// True if the time is a lower bound; else absent.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        at_least: bool,
    },
    /// A part of a whole.
    Fraction {
        /// A share, 0 to 1.
        fraction: f64,
    },
    /// A rate.
    PerSecond {
        /// Events per second.
        per_second: f64,
    },
}

impl Figure {
    /// A length of time.
    pub const fn time(us: u64) -> Self {
        Self::Time {
            us,
            at_least: false,
        }
    }

    /// The largest figure that is observed where the value does not exceed this one. Exact counts decide on a
    /// time, and what is observed is the upper edge of its cell.
    const fn at_edge_of_cell(self) -> Self {
        match self {
            Self::Time { us, at_least } => Self::Time {
                us: Cell::new(Micros(us), 0).high_us(),
                at_least,
            },
            Self::Count(_) | Self::Fraction { .. } | Self::PerSecond { .. } => self,
        }
    }

    /// Returns whether the figure is a length of time.
    pub const fn is_time(self) -> bool {
        matches!(self, Self::Time { .. })
    }

    /// Returns whether the figure is a lower bound.
    pub const fn is_at_least(self) -> bool {
        matches!(self, Self::Time { at_least: true, .. })
    }
}

impl From<Figure> for figure::Figure {
    fn from(of: Figure) -> Self {
        match of {
            Figure::Count(number) => Self::Count(number),
            Figure::Time {
                us,
                at_least: false,
            } => Self::Time(Micros(us)),
            Figure::Time { us, at_least: true } => Self::AtLeast(Micros(us)),
            Figure::Fraction { fraction } => Self::Fraction(fraction),
            Figure::PerSecond { per_second } => Self::PerSecond(per_second),
        }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        figure::Figure::from(*self).fmt(f)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use muster_measure::Distribution;

    use super::*;

    /// A rule with a result, of which nothing else is known.
    pub(crate) fn rule(name: &str, result: RuleResult, consequence: Consequence) -> Rule {
        Rule {
            rule: name.to_owned(),
            scope: "run".to_owned(),
            except: Vec::new(),
            sets: SetNames::default(),
            kind: RuleKind::Slo,
            named: true,
            result,
            consequence,
            observed: None,
            lower: None,
            bound: None,
            since_s: None,
            evidence: String::new(),
            note: None,
            invalid: InvalidReason::default(),
        }
    }

    #[test]
    fn what_is_allowed_says_at_which_side_of_the_bound() {
        for (name, told) in [
            ("connected", "at least 98 %"),
            ("queries-with-command", "at least 98 %"),
            ("failure-ratio", "at most 98 %"),
        ] {
            let rule = Rule {
                bound: Some(Figure::Fraction { fraction: 0.98 }),
                ..rule(name, RuleResult::Pass, Consequence::None)
            };
            assert_eq!(rule.allowed().as_deref(), Some(told));
        }
    }

    #[test]
    fn rules_with_one_caveat_follow_it_in_one_list() {
        let noted = |note: &str| Rule {
            note: Some(note.to_owned()),
            ..rule("response p99", RuleResult::Pass, Consequence::None)
        };
        let verdict = Verdict {
            rules: ["one run: b is near", "none", "one run: a is near", "none"]
                .map(noted)
                .into(),
            ..Verdict::default()
        };
        assert_eq!(verdict.notes(), ["none", "one run: a is near, b is near"]);
    }

    #[test]
    fn a_time_that_may_be_all_our_own_has_no_lower_edge() {
        let both = |lower| {
            let rule = Rule {
                observed: Some(Figure::time(1_200)),
                lower: Some(Figure::time(lower)),
                ..rule(
                    "response p99",
                    RuleResult::NotEvaluated,
                    Consequence::Invalidates,
                )
            };
            rule.both_times().expect("both are known")
        };
        assert_eq!(both(200), "between 200 us and 1.2 ms");
        assert_eq!(both(0), "between 0 and 1.2 ms");
    }

    #[test]
    fn an_observed_time_contradicts_a_pass_only_beyond_the_cell_of_the_bound() {
        let contradicts = |result, observed| {
            let rule = Rule {
                observed: Some(Figure::time(observed)),
                bound: Some(Figure::time(250_000)),
                ..rule("response p99", result, Consequence::None)
            };
            rule.contradicts_its_figures()
        };
        let mut below = Distribution::default();
        below.record_n(Micros(249_999), 99);
        below.record(Micros::from_secs(1));
        let observed = below.quantile_us(0.99).expect("it has values");
        assert!(observed > 250_000);
        assert!(!contradicts(RuleResult::Pass, observed));
        assert!(contradicts(RuleResult::Pass, observed + 1));
        assert!(!contradicts(RuleResult::Fail, 250_001));
        assert!(contradicts(RuleResult::Fail, 250_000));
    }

    #[test]
    fn a_lower_bound_is_seen_as_one_and_written_only_where_it_is() {
        let least = Figure::Time {
            us: 749,
            at_least: true,
        };
        let rule = Rule {
            observed: Some(least),
            bound: Some(Figure::time(250_000)),
            ..rule("response p99", RuleResult::Fail, Consequence::Fails)
        };
        assert_eq!(rule.seen().as_deref(), Some(">= 749 us"));
        let json = |figure: Figure| serde_json::to_string(&figure).expect("JSON");
        assert_eq!(json(least), "{\"us\":749,\"at_least\":true}");
        assert_eq!(json(Figure::time(749)), "{\"us\":749}");
    }

    #[test]
    fn what_is_broken_is_told_before_what_was_not_decided() {
        let verdict = Verdict {
            result: RunResult::Invalid,
            rules: vec![
                rule("loss", RuleResult::Fail, Consequence::Fails),
                rule("p99", RuleResult::NotEvaluated, Consequence::Invalidates),
                rule("processes", RuleResult::Fail, Consequence::Invalidates),
                rule("connected", RuleResult::Pass, Consequence::None),
            ],
            ..Verdict::default()
        };
        let names: Vec<&str> = verdict.reasons().map(|rule| rule.rule.as_str()).collect();
        assert_eq!(names, ["processes", "p99", "loss"]);
    }

    #[test]
    fn the_counts_of_the_rules_add_up_and_leave_out_what_is_nought() {
        let mut verdict = Verdict {
            rules: vec![
                rule("loss", RuleResult::Pass, Consequence::None),
                rule("connected", RuleResult::Pass, Consequence::None),
            ],
            ..Verdict::default()
        };
        assert_eq!(verdict.counts().to_string(), "2 rules hold");
        verdict.rules.extend([
            rule("p99", RuleResult::NotEvaluated, Consequence::Invalidates),
            rule("stable", RuleResult::Fail, Consequence::None),
            rule("drain", RuleResult::Fail, Consequence::Fails),
            rule("residue", RuleResult::Fail, Consequence::Invalidates),
        ]);
        assert_eq!(
            verdict.counts().to_string(),
            "2 of 6 rules hold, 2 fail, 1 not evaluated, 1 fail and are not judged"
        );
        let json = serde_json::to_value(&verdict).expect("JSON");
        assert_eq!(json["counts"]["fail"], 2);
    }
}
