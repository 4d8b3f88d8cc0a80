//! Rule `loss`: messages that the platform took and that no backend received, or that its store lacks.

use muster_measure::{ArrivalFigures, ScopeSummary};
use muster_model::figure;

use crate::capacity::Batch;
use crate::own_delay::{Decision, OwnDelay};
use crate::slo::{arrivals, counted, is_consumer_disturbed, new};
use crate::starved::{Apart, StarvedSeconds};
use crate::{Allowance, Evidence, Figure, IncidentKind, RuleResult, Slo, Unevaluated, meanwhile};

/// Messages expected at one backend, and those of them that are lost.
#[derive(Debug, Clone, Copy, Default)]
struct Loss {
    expected: u64,
    lost: u64,
    /// Further messages, of devices outside the sample of a store.
    outside_sample: u64,
}

/// The loss at one backend, by the rule.
struct LossAt {
    backend: usize,
    found: Loss,
    /// The part that was due while our consumer had too little CPU.
    apart: Apart,
    decision: Decision,
}

impl LossAt {
    fn of(backend: usize, found: Loss, apart: Apart, allowed: Allowance) -> Self {
        let decision = Decision::of(allowed.covers(found.lost, found.expected), || {
            let rest = found.expected.saturating_sub(apart.expected);
            allowed.covers(found.lost.saturating_sub(apart.lost), rest)
        });
        Self {
            backend,
            found,
            apart,
            decision,
        }
    }
}

impl Loss {
    fn of<'a>(figures: impl Iterator<Item = &'a ArrivalFigures>) -> Self {
        figures.fold(Self::default(), |sum, figures| Self {
            expected: sum.expected + figures.expected(),
            lost: sum.lost + figures.all_lost(),
            outside_sample: sum.outside_sample + figures.outside_sample(),
        })
    }
}

/// Rule `loss`, on the whole run: accepted or unacknowledged, and never arrived. Every backend has
/// its account; the worst one decides.
pub(crate) fn evaluate(
    slo: &Slo,
    allowed: Allowance,
    scope: &ScopeSummary,
    evidence: &Evidence<'_>,
) -> RuleResult {
    let rule = new(slo).bound(allowed.figure());
    let summary = evidence.summary;
    let is_known = summary.run.uplink.arrivals.lost.is_some();
    if !summary.backends.is_empty() && !is_known {
        return rule.not_evaluated(Unevaluated::Unknown);
    }
    let starved = StarvedSeconds::with_sessions(evidence.health);
    let of_backend = |at: usize| {
        let found = Loss::of(arrivals(slo, at, evidence));
        let apart = starved.apart(&scope.series, summary, at);
        LossAt::of(at, found, apart, allowed)
    };
    // Of equals the first.
    let all = (0..summary.backends.len()).rev().map(of_backend);
    let worst = all.max_by_key(|at| (at.decision, at.found.lost, at.found.expected));
    let Some(LossAt {
        backend: worst,
        found,
        apart,
        decision,
    }) = worst
    else {
        return rule.not_evaluated(Unevaluated::NoBackend);
    };
    let name = evidence.backend(worst);
    let is_store = summary.backends[worst].is_store;
    if !is_store && is_consumer_disturbed(evidence) {
        let meanwhile = meanwhile::lost(evidence, scope, worst, IncidentKind::ConsumerAway);
        let words = format!(
            "our own consumer was away: {} lost at {name}, {} of them due then",
            figure::count(found.lost),
            figure::count(meanwhile)
        );
        let rule = rule.observed(Some(allowed.observed(found.lost, found.expected)));
        return rule
            .not_evaluated(Unevaluated::ConsumerDisturbed)
            .evidence(words);
    }
    if found.expected == 0 && found.outside_sample > 0 {
        return rule.not_evaluated(Unevaluated::OutsideSample);
    }
    if found.expected == 0 {
        return nothing_to_lose(rule, scope);
    }
    let since = scope
        .series
        .iter()
        .find(|row| row.arrivals.get(worst).is_some_and(|at| at.lost_due > 0))
        .map(|row| row.second);
    let counted = counted(found.lost, found.expected);
    let mut words = format!("{counted} {}", evidence.lost_at(worst));
    if found.lost > 0 && !is_store {
        words += &meanwhile::beside_a_loss(evidence, scope, worst);
    }
    if apart.lost > 0 {
        let lost = figure::count(apart.lost);
        words = format!("{words}; {lost} of them were due while our consumer had too little CPU");
    }
    rule.observed(Some(allowed.observed(found.lost, found.expected)))
        .evidence(words)
        .decided_by_both(decision, OwnDelay::Consumer, since)
        .noted_if_close(allowed.margin(found.lost, found.expected))
}

/// The messages expected at each backend, and those of them that are lost.
pub(crate) fn losses(slo: &Slo, evidence: &Evidence<'_>) -> impl Iterator<Item = Batch> {
    (0..evidence.summary.backends.len()).map(move |at| {
        let Loss { expected, lost, .. } = Loss::of(arrivals(slo, at, evidence));
        Batch {
            messages: expected,
            bad: lost,
        }
    })
}

/// A target that took nothing lost nothing: that it refused everything is judged by other rules,
/// and must not make the run invalid.
fn nothing_to_lose(rule: RuleResult, scope: &ScopeSummary) -> RuleResult {
    match scope.uplink.scheduled {
        None | Some(0) => rule.not_evaluated(Unevaluated::NothingDue),
        Some(due) => rule
            .observed(Some(Figure::Count(0)))
            .evidence(format!(
                "none of {} due was accepted, so none was lost",
                figure::count(due)
            ))
            .decided(true, None),
    }
}
