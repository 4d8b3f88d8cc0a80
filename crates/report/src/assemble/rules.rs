//! The verdict of `judge` as the result writes it.

use muster_judge::{RuleOutcome, Unevaluated};

use crate::{Figure, InvalidReason, Rule, RuleResult, SwitchedOff, Verdict};

impl From<&muster_judge::Verdict> for Verdict {
    fn from(verdict: &muster_judge::Verdict) -> Self {
        Self {
            result: verdict.result,
            would_be: verdict.would_be,
            causes: verdict.causes.clone(),
            warnings: verdict.warnings.clone(),
            delivery_unknown: verdict.delivery_unknown.clone(),
            switched_off: verdict.switched_off.iter().map(SwitchedOff::from).collect(),
            rules: verdict.rules.iter().map(Rule::from).collect(),
        }
    }
}

impl From<&muster_judge::SwitchedOff> for SwitchedOff {
    fn from(off: &muster_judge::SwitchedOff) -> Self {
        Self {
            rule: off.rule.to_string(),
            scope: off.scope.to_string(),
        }
    }
}

impl From<&muster_judge::RuleResult> for Rule {
    fn from(rule: &muster_judge::RuleResult) -> Self {
        let (evidence, note) = evidence_and_note(rule);
        Self {
            rule: rule.rule.clone(),
            scope: rule.scope.clone(),
            except: rule.except.clone(),
            sets: rule.sets.clone(),
            kind: rule.kind,
            named: rule.named,
            result: match rule.outcome {
                RuleOutcome::Pass => RuleResult::Pass,
                RuleOutcome::Fail => RuleResult::Fail,
                RuleOutcome::NotEvaluated(_) => RuleResult::NotEvaluated,
            },
            consequence: rule.consequence,
            observed: rule.observed.map(Figure::from),
            lower: rule.lower.map(Figure::from),
            bound: rule.bound.map(Figure::from),
            since_s: rule.since_s.map(f64::from),
            evidence,
            note,
            invalid: InvalidReason {
                reason: rule.reason.map(|reason| reason.name().to_owned()),
                remedy: rule
                    .reason
                    .map(|reason| format!("{} ({})", reason.remedy(), reason.section())),
            },
        }
    }
}

/// Evidence and note of a rule. The rule's need comes first and short, so that a summary can quote
/// it; what it had follows.
fn evidence_and_note(rule: &muster_judge::RuleResult) -> (String, Option<String>) {
    if let RuleOutcome::NotEvaluated(Unevaluated::TooFewWindows { have, needed }) = rule.outcome {
        let had = format!("had {have} s of constant rate");
        return (format!("needs {needed} s"), Some(had));
    }
    (rule.evidence.clone(), rule.note.clone())
}

impl From<muster_judge::Figure> for Figure {
    fn from(figure: muster_judge::Figure) -> Self {
        match figure {
            muster_judge::Figure::Count(count) => Self::Count(count),
            muster_judge::Figure::Time(time) => Self::time(time.get()),
            muster_judge::Figure::AtLeast(time) => Self::Time {
                us: time.get(),
                at_least: true,
            },
            muster_judge::Figure::Fraction(fraction) => Self::Fraction { fraction },
            muster_judge::Figure::PerSecond(per_second) => Self::PerSecond { per_second },
        }
    }
}
