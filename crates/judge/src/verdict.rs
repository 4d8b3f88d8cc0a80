//! Verdict on a run: one result, and every rule behind it
//! (docs/semantics.md#verdict-and-exit-codes).

use std::fmt;

use muster_model::figure::{self, Figure};
use serde::{Deserialize, Serialize};

use crate::{
    Allowance, Ending, LinkCause, Reason, Scope, SetNames, SwitchedOff, Unevaluated,
    UnknownDelivery, Warning,
};

/// The verdict on one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The result.
    pub result: RunResult,
    /// Only of an invalid run: what its rules say of the target all the same; none if no rule
    /// failed and one that counts could not be evaluated, so that nobody knows.
    pub would_be: Option<RunResult>,
    /// Links that did not come up, by fleet and cause: the first thing to read.
    pub causes: Vec<LinkCause>,
    /// Faults that no rule looked at; they move no result.
    pub warnings: Vec<Warning>,
    /// The rules that the scenario switched off by `any`.
    pub switched_off: Vec<SwitchedOff>,
    /// The streams whose delivery is unknown.
    pub delivery_unknown: Vec<UnknownDelivery>,
    /// Every rule, SLOs first, validity last.
    pub rules: Vec<RuleResult>,
}

/// The result of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunResult {
    /// Every rule that counts holds.
    Pass,
    /// The target broke a rule that counts.
    Fail,
    /// The generator could have changed the verdict, or there was too little to decide.
    Invalid,
    /// No run took place: the target was not there, or nothing could begin.
    #[default]
    None,
    /// One part of a run succeeded; the merged parts have the verdict.
    Part,
}

impl RunResult {
    /// The word used in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Invalid => "invalid",
            Self::None => "none",
            Self::Part => "part",
        }
    }

    /// The exit code of this result (docs/semantics.md#verdict-and-exit-codes).
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Pass | Self::Part => 0,
            Self::Fail => 1,
            Self::Invalid => 3,
            Self::None => 4,
        }
    }

    /// The worse of two: none before invalid before fail before pass.
    pub fn or_worse(self, other: Self) -> Self {
        if other.exit_code() > self.exit_code() {
            other
        } else {
            self
        }
    }
}

impl fmt::Display for RunResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One rule, and what became of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RuleResult {
    /// Kind of the rule, which decides what a failure means.
    pub kind: RuleKind,
    /// Its name, as in the scenario where it has one: `loss`, `response p99`, `cpu`.
    pub rule: String,
    /// Scope of the rule: `run`, a fleet, or `<fleet>/<stream>`.
    pub scope: String,
    /// Fleets and streams that have a rule of the same name, or `any`, and are left out here.
    pub except: Vec<String>,
    /// The sets of SLOs that it belongs to.
    pub sets: SetNames,
    /// True if the scenario names it.
    pub named: bool,
    /// Outcome of the rule.
    pub outcome: RuleOutcome,
    /// Consequence for the result.
    pub consequence: Consequence,
    /// Observed figure; none where nothing could be observed.
    pub observed: Option<Figure>,
    /// The same without the part that may be our own; none where nothing of it may be.
    pub lower: Option<Figure>,
    /// Allowed figure; none for rules without one.
    pub bound: Option<Figure>,
    /// Since when it does not hold, in seconds since T0; none if it holds or cannot be dated.
    pub since_s: Option<u32>,
    /// Grounds of the decision, in one sentence.
    pub evidence: String,
    /// A caveat on a pass.
    pub note: Option<String>,
    /// Reason why the run is invalid by this rule, with its remedy; none unless it is.
    pub reason: Option<Reason>,
}

impl RuleResult {
    pub(crate) fn new(kind: RuleKind, rule: impl Into<String>, scope: impl fmt::Display) -> Self {
        Self {
            kind,
            rule: rule.into(),
            scope: scope.to_string(),
            except: Vec::new(),
            sets: SetNames::default(),
            named: false,
            outcome: RuleOutcome::Pass,
            consequence: Consequence::None,
            observed: None,
            lower: None,
            bound: None,
            since_s: None,
            evidence: String::new(),
            note: None,
            reason: None,
        }
    }

    /// Gives the reason that a failure is for an invalid run.
    pub(crate) fn because(mut self, reason: Reason) -> Self {
        self.reason = Some(reason);
        self
    }

    /// Takes the reason away, where a failure needs no remedy.
    pub(crate) fn without_reason(mut self) -> Self {
        self.reason = None;
        self
    }

    /// Adds a caveat for a rule that holds.
    pub(crate) fn noted(mut self, note: &str) -> Self {
        self.note = Some(match self.note {
            Some(before) => format!("{before}; {note}"),
            None => note.to_owned(),
        });
        self
    }

    pub(crate) fn named(mut self, named: bool) -> Self {
        self.named = named;
        self
    }

    pub(crate) fn except(mut self, scopes: &[Scope]) -> Self {
        self.except = scopes.iter().map(Scope::to_string).collect();
        self
    }

    pub(crate) fn of_sets(mut self, sets: &SetNames) -> Self {
        self.sets = sets.clone();
        self
    }

    pub(crate) fn bound(mut self, bound: Figure) -> Self {
        self.bound = Some(bound);
        self
    }

    pub(crate) fn observed(mut self, observed: Option<Figure>) -> Self {
        self.observed = observed;
        self
    }

    pub(crate) fn evidence(mut self, evidence: impl Into<String>) -> Self {
        self.evidence = evidence.into();
        self
    }

    /// Passes if `holds`, else fails since the given second.
    pub(crate) fn decided(mut self, holds: bool, since_s: Option<u32>) -> Self {
        self.outcome = if holds {
            RuleOutcome::Pass
        } else {
            RuleOutcome::Fail
        };
        self.since_s = since_s.filter(|_| !holds);
        self
    }

    /// Passes if what was found of a whole is allowed, else fails since the given second.
    pub(crate) fn decided_by_count(
        self,
        allowed: Allowance,
        (found, of): (u64, u64),
        since_s: Option<u32>,
    ) -> Self {
        self.observed(Some(allowed.observed(found, of)))
            .decided(allowed.covers(found, of), since_s)
            .noted_if_close(allowed.margin(found, of))
    }

    pub(crate) fn not_evaluated(mut self, reason: Unevaluated) -> Self {
        self.evidence = reason.to_string();
        self.outcome = RuleOutcome::NotEvaluated(reason);
        self
    }

    /// Adds the caveat that one run does not know its own spread, if the rule passed and its
    /// observation is close to the bound, by this share of it.
    pub(crate) fn noted_if_close(self, margin: Option<f64>) -> Self {
        let Some(margin) = margin.filter(|_| self.outcome == RuleOutcome::Pass) else {
            return self;
        };
        let near = format!(
            "one run; the spread between runs is unknown: {} [{}] is within {} of its bound",
            self.rule,
            self.sets.place(&self.scope),
            figure::percent(margin)
        );
        self.noted(&near)
    }

    /// Leaves a rule on the target to the merged parts: one part knows no more than a half of it.
    pub(crate) fn leave_to_the_whole(&mut self) {
        if !matches!(self.kind, RuleKind::StopIf | RuleKind::Validity) {
            self.forget(Unevaluated::OnePart);
        }
    }

    /// Leaves a rule undecided for this reason, whatever it came to so far. Links that were up at the
    /// end of the connect phase stay what they were, and that the run has no end is known.
    pub(crate) fn leave_open(&mut self, reason: Unevaluated) {
        let is_open = matches!(self.outcome, RuleOutcome::NotEvaluated(_));
        if is_open || !["connected", "uninterrupted"].contains(&self.rule.as_str()) {
            self.forget(reason);
        }
    }

    fn forget(&mut self, reason: Unevaluated) {
        self.outcome = RuleOutcome::NotEvaluated(reason);
        self.evidence = reason.to_string();
        (self.observed, self.lower) = (None, None);
        (self.since_s, self.note) = (None, None);
    }

    /// Attributes what is not known to the interruption of a run that never sent a message.
    pub(crate) fn cut_short(&mut self) {
        if self.outcome == RuleOutcome::NotEvaluated(Unevaluated::Unknown) {
            self.outcome = RuleOutcome::NotEvaluated(Unevaluated::CutShort);
            self.evidence = Unevaluated::CutShort.to_string();
        }
    }

    /// Draws the consequence of the outcome. A run that its end has cut short is not made invalid by
    /// that.
    pub(crate) fn conclude(&mut self, ending: &Ending) {
        let is_open = matches!(self.outcome, RuleOutcome::NotEvaluated(_));
        let is_excused = matches!(ending, Ending::Stopped(_)) && self.outcome.is_cut_short()
            || *ending == Ending::NoLinkUp && is_open && !self.is_own_delay();
        if self.outcome != RuleOutcome::Pass {
            self.note = None;
        }
        self.consequence = if self.is_on_target() && self.outcome == RuleOutcome::Fail {
            Consequence::Fails
        } else if self.invalidates() && !is_excused {
            Consequence::Invalidates
        } else {
            Consequence::None
        };
        self.reason = match (self.consequence, &self.outcome) {
            (Consequence::Invalidates, RuleOutcome::NotEvaluated(why)) => Reason::of(*why),
            (Consequence::Invalidates, RuleOutcome::Pass | RuleOutcome::Fail) => self.reason,
            (Consequence::None | Consequence::Fails, _) => None,
        };
    }

    /// Returns whether the rule fails, and our own part could have made it fail.
    pub(crate) const fn is_own_delay(&self) -> bool {
        matches!(
            self.outcome,
            RuleOutcome::NotEvaluated(Unevaluated::OwnDelay(_))
        )
    }

    /// Returns whether the rule is on the target and counts.
    pub(crate) fn is_on_target(&self) -> bool {
        match self.kind {
            RuleKind::Slo | RuleKind::Drain | RuleKind::StopIf => true,
            RuleKind::Stability => self.named,
            RuleKind::Validity => false,
        }
    }

    /// Returns whether the rule makes the run invalid: a validity rule that failed, or an SLO that
    /// could not be evaluated. A default that had nothing to judge does not apply, and stability
    /// counts only where the scenario names it.
    fn invalidates(&self) -> bool {
        let RuleOutcome::NotEvaluated(reason) = self.outcome else {
            return self.kind == RuleKind::Validity && self.outcome == RuleOutcome::Fail;
        };
        let is_here = reason != Unevaluated::OnePart;
        match self.kind {
            RuleKind::Slo => is_here && (self.named || !reason.is_without_object()),
            RuleKind::Drain => self.is_own_delay(),
            RuleKind::Stability => is_here && self.named,
            RuleKind::StopIf | RuleKind::Validity => false,
        }
    }
}

/// Consequence of a rule for the result of its run. It is drawn here once, and everybody else reads
/// it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Consequence {
    /// Nothing: it holds, or does not count.
    None,
    /// The run fails.
    Fails,
    /// The run is invalid.
    Invalidates,
}

/// Subject of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RuleKind {
    /// A service level of the target, named or by default.
    Slo,
    /// Everything has arrived when settling ends.
    Drain,
    /// No `stop-if` condition ended the run.
    StopIf,
    /// No backlog grows; judged only if the scenario names it.
    Stability,
    /// The generator did not change the verdict.
    Validity,
}

/// Outcome of a rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RuleOutcome {
    /// The rule holds.
    Pass,
    /// The rule does not hold.
    Fail,
    /// Too little was known to decide.
    NotEvaluated(Unevaluated),
}

impl RuleOutcome {
    /// The word used in results.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::NotEvaluated(_) => "not-evaluated",
        }
    }

    /// Returns whether a rule lacks only what the rest of the run would have brought. A run that
    /// `stop-if` ended fails by that rule; it is not made invalid by having been ended.
    const fn is_cut_short(&self) -> bool {
        matches!(
            self,
            Self::NotEvaluated(
                Unevaluated::TooFewMessages { .. }
                    | Unevaluated::TooFewWindows { .. }
                    | Unevaluated::Unclear { .. }
                    | Unevaluated::NothingDue
                    | Unevaluated::CutShort
                    | Unevaluated::NotConstant
            )
        )
    }
}
