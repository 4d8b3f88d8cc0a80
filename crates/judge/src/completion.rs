//! Completion at QoS 2: what the platform accepted (PUBREC) it has to complete (PUBCOMP).

use muster_model::figure;

use crate::slo::{counted, summary};
use crate::{
    Allowance, Ending, Evidence, Figure, RuleKind, RuleResult, Rules, SloBound, Unevaluated,
};

/// Rule `incomplete` for each SLO `failure-ratio`, whose bound it takes over: of the messages accepted at
/// QoS 2 over the whole run, the share that was never completed. It exists only where a message was
/// accepted at QoS 2.
pub(crate) fn evaluate(rules: &Rules, evidence: &Evidence<'_>) -> Vec<RuleResult> {
    let judged = rules.slos.iter().filter_map(|slo| {
        let SloBound::FailureRatio(allowed) = slo.bound else {
            return None;
        };
        let ledger = &summary(slo, evidence)?.uplink;
        let (incomplete, all) = (
            ledger.session.incomplete,
            ledger.session.incomplete + ledger.session.completed,
        );
        if all == 0 {
            return None;
        }
        let rule = RuleResult::new(RuleKind::Slo, "incomplete", &slo.scope)
            .named(slo.named)
            .except(&slo.except)
            .of_sets(&slo.sets)
            .bound(Figure::Fraction(allowed.as_fraction()));
        let holds = allowed.covers(incomplete, all);
        // Whoever interrupts a run does not wait for the answers either.
        let is_cut = matches!(
            evidence.ending,
            Ending::Interrupted | Ending::SettlingInterrupted { .. }
        );
        if is_cut && !holds {
            return Some(rule.not_evaluated(Unevaluated::CutShort));
        }
        let ratio = Allowance::Ratio(allowed);
        let rule = rule.evidence(words(incomplete, all));
        Some(rule.decided_by_count(ratio, (incomplete, all), None))
    });
    judged.collect()
}

fn words(incomplete: u64, all: u64) -> String {
    if incomplete == 0 {
        return format!("no PUBCOMP: {}", counted(incomplete, all));
    }
    format!(
        "{} of {} accepted by PUBREC, no PUBCOMP",
        figure::count(incomplete),
        figure::count(all)
    )
}
