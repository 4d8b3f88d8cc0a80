//! Rules that fail are decided again without the part that may be the generator's own
//! (docs/semantics.md#how-a-failed-rule-becomes-invalid): a rule that holds then is neither a pass nor a fail.

use std::fmt;

use muster_measure::{Above, DeliverySeconds};
use muster_model::{Micros, figure};
use serde::{Deserialize, Serialize};

use crate::{
    Evidence, Figure, Latency, Percentile, RuleName, RuleOutcome, RuleResult, Slo, Unevaluated,
};

/// The part of the generator that could have changed a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OwnDelay {
    /// A percentile holds by the lower times of the answered, and not by the upper ones.
    Answers,
    /// An end-to-end percentile fails only with seconds in which we were late, or with the
    /// consumer's own part.
    Delivery,
    /// The response rule of the same messages is undecided, so that their end-to-end times are too.
    Response,
    /// Links are missing only because we did not finish their connects within the time-out.
    Connects,
    /// Absent or outstanding messages were due while a consumer of ours had too little CPU.
    Consumer,
    /// Latency or a backlog grew while our own lateness grew.
    Lateness,
}

impl fmt::Display for OwnDelay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Answers => "our own delay decides: the rule holds without it",
            Self::Delivery => {
                "our own delay decides: without it the rule holds, or too few messages are left"
            }
            Self::Response => "our own delay decides the response of the same messages",
            Self::Connects => "our own delay decides: it used up the time-out of connects",
            Self::Consumer => {
                "our own consumer had too little CPU: without that time the rule holds"
            }
            Self::Lateness => "our own lateness grew as well",
        })
    }
}

/// A rule by both times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Decision {
    /// The rule holds by the upper times.
    Holds,
    /// The rule fails by the upper times and holds without our own part.
    Own,
    /// The rule fails without our own part as well.
    Fails,
}

impl Decision {
    /// A rule that fails if `fails`, and may do so only by our own part.
    pub(crate) fn of(holds: bool, holds_without_own: impl FnOnce() -> bool) -> Self {
        match holds {
            true => Self::Holds,
            false if holds_without_own() => Self::Own,
            false => Self::Fails,
        }
    }
}

impl RuleResult {
    /// The outcome of a decision by both times; `evidence` and `observed` stay as they are.
    pub(crate) fn decided_by_both(
        self,
        decision: Decision,
        own: OwnDelay,
        since_s: Option<u32>,
    ) -> Self {
        match decision {
            Decision::Holds => self.decided(true, None),
            Decision::Fails => self.decided(false, since_s),
            Decision::Own => self.undecided(own, since_s),
        }
    }

    /// Not evaluated because of our own part; it would be a fail.
    pub(crate) fn undecided(mut self, own: OwnDelay, since_s: Option<u32>) -> Self {
        self.evidence = match self.evidence.as_str() {
            "" => own.to_string(),
            words => format!("{own}; {words}"),
        };
        self.outcome = RuleOutcome::NotEvaluated(Unevaluated::OwnDelay(own));
        self.since_s = since_s;
        self
    }

    /// Adds the time without our own part to a rule, and says once where the two differ: as a caveat on a
    /// pass where our own part is large, else in the evidence. Reports print both times of a rule that
    /// our own part leaves undecided.
    pub(crate) fn with_lower(mut self, name: &str, lower: Option<Micros>) -> Self {
        let Some(Figure::Time(upper)) = self.observed else {
            return self;
        };
        self.lower = lower.map(Figure::Time);
        let Some(lower) = lower.filter(|lower| figure::time(*lower) != figure::time(upper)) else {
            return self;
        };
        if let RuleOutcome::NotEvaluated(_) = self.outcome {
            return self;
        }
        let (low, high) = (figure::time(lower), figure::time(upper));
        let both = match lower {
            Micros::ZERO => format!("{name} at most {high}; all of it may be our own delay"),
            _ => format!("{name} between {low} and {high}; the difference is our own delay"),
        };
        let own = upper.0.saturating_sub(lower.0);
        if self.outcome == RuleOutcome::Pass && own.saturating_mul(NOTED) >= upper.0 {
            return self.noted(&both);
        }
        self.evidence = match self.evidence.as_str() {
            "" => both,
            words => format!("{words}; {both}"),
        };
        self
    }
}

/// A time's own part is a caveat on a pass if it is at least the time divided by this number.
const NOTED: u64 = 10;

/// A percentile of the answered, by both times; the unanswered count in full.
pub(crate) fn by_both_times(counter: &Above, percentile: Percentile) -> Decision {
    let allows = |above: u64| percentile.allows(above + counter.missing, counter.n);
    Decision::of(allows(counter.above), || allows(counter.above_lower))
}

/// Lateness above this part of an end-to-end bound can have moved messages over it.
const LATE: u64 = 10;

/// An end-to-end percentile that fails, decided again: without the seconds of due in which we were
/// late by more than a tenth of the bound, and by the lower times. Too few messages decide nothing.
pub(crate) fn delivery(
    counter: &Above,
    percentile: Percentile,
    seconds: Option<&DeliverySeconds>,
) -> Decision {
    let holds = percentile.allows(counter.above + counter.missing, counter.n);
    Decision::of(holds, || {
        let Some(of) = seconds else {
            return percentile.allows(counter.above_lower + counter.missing, counter.n);
        };
        let is_punctual = |late_us: u64| late_us.saturating_mul(LATE) <= of.bound.0;
        let kept = of
            .seconds
            .iter()
            .filter(|at| is_punctual(at.lateness_max_us));
        let (above, n) = kept.fold((0, 0), |(above, n), at| {
            (above + at.above_lower + at.missing, n + at.n)
        });
        n < percentile.needed() || percentile.allows(above, n)
    })
}

/// Leaves end-to-end rules that fail undecided where the response rule of the same messages is.
pub(crate) fn follow_response(judged: &mut [(&Slo, RuleResult)], evidence: &Evidence<'_>) {
    let own = RuleOutcome::NotEvaluated(Unevaluated::OwnDelay(OwnDelay::Answers));
    let open = judged.iter();
    let open: Vec<&Slo> = open
        .filter(|(slo, result)| is_about(slo, Latency::Response) && result.outcome == own)
        .map(|(slo, _)| *slo)
        .collect();
    for (slo, result) in judged {
        let is_failed = is_about(slo, Latency::EndToEnd) && result.outcome == RuleOutcome::Fail;
        if is_failed && open.iter().any(|other| evidence.is_shared(slo, other)) {
            let since_s = result.since_s;
            *result = result.clone().undecided(OwnDelay::Response, since_s);
        }
    }
}

fn is_about(slo: &Slo, latency: Latency) -> bool {
    matches!(slo.bound.name(), RuleName::Latency { of, .. } if of == latency)
}
