//! Reachability of the target: over datagrams without a handshake a link is up as soon as it has a
//! socket.

use muster_model::figure;

use crate::{Evidence, RuleKind, RuleResult, Warning, WarningKind};

/// Rule `reachable`: what was sent brought back more than errors. It is there only where errors came
/// (ICMP) or the kernel refused datagrams, and nothing else came back: neither an answer nor, at a
/// backend, a message.
pub(crate) fn reachable(evidence: &Evidence<'_>) -> Option<RuleResult> {
    let errors = errors(evidence).filter(|_| !has_answers(evidence))?;
    let rule = RuleResult::new(RuleKind::Slo, "reachable", "run");
    let words = format!(
        "only {} came back: nobody listens at the devices' address, or no route leads to it",
        errors.words()
    );
    Some(rule.evidence(words).decided(false, None))
}

/// Errors that came in addition to answers.
pub(crate) fn warning(evidence: &Evidence<'_>) -> Option<Warning> {
    let errors = errors(evidence).filter(|_| has_answers(evidence))?;
    Some(Warning {
        kind: WarningKind::Unreachable,
        scope: "run".to_owned(),
        detail: format!("some datagrams reached nobody: {}", errors.words()),
    })
}

/// Errors of datagrams; at least one.
struct Errors {
    icmp: u64,
    refused: u64,
}

impl Errors {
    fn words(&self) -> String {
        let (icmp, refused) = (figure::count(self.icmp), figure::count(self.refused));
        format!("{icmp} ICMP errors and {refused} datagrams that the kernel refused")
    }
}

fn errors(evidence: &Evidence<'_>) -> Option<Errors> {
    let counters = evidence.summary.run.links.counters;
    let (icmp, refused) = (
        counters.icmp_errors.get()?,
        counters.datagrams_refused.get()?,
    );
    (icmp + refused > 0).then_some(Errors { icmp, refused })
}

fn has_answers(evidence: &Evidence<'_>) -> bool {
    let uplink = &evidence.summary.run.uplink;
    let answers = [
        uplink.accepted,
        uplink.rejected,
        uplink.session.answered_late,
        uplink.session.transport_acknowledged,
        uplink.arrivals.arrived.unwrap_or(0),
    ];
    answers.into_iter().any(|count| count > 0)
}
