//! The service levels of commands and of devices that subscribe.

use muster_measure::{CommandSummary, LatencyView, Leg, LegSummary, QueriesDue, ScopeSummary};
use muster_model::{Micros, figure};

use crate::capacity::Batch;
use crate::latency::{PercentileBound, all_due, counted as counted_above, of_all_due};
use crate::own_delay::Decision;
use crate::slo::{counted, is_consumer_disturbed, listed, margin, new};
use crate::{
    Allowance, Evidence, Figure, OwnDelay, RuleOutcome, RuleResult, Share, Slo, Unevaluated,
};

/// The counts and times of one leg of commands.
struct LegTimes<'a> {
    counts: &'a LegSummary,
    view: &'a LatencyView,
    /// The times without our own part; none where the leg has no two times.
    lower: Option<&'a LatencyView>,
    /// Legs that might have ended if settling had gone on.
    open: u64,
}

impl<'a> LegTimes<'a> {
    fn new(leg: Leg, command: &'a CommandSummary) -> Self {
        let (times, ledger) = (&command.measured, &command.ledger);
        let (view, lower, open) = match leg {
            Leg::Request => (
                &times.request,
                Some(&times.request_lower),
                times.queries.in_flight(),
            ),
            Leg::Response => (
                &times.response,
                Some(&times.response_lower),
                ledger.answer_in_flight,
            ),
            Leg::Loop => {
                let outstanding = ledger.replies_outstanding.unwrap_or(0);
                (&times.round, None, ledger.answer_in_flight + outstanding)
            }
        };
        Self {
            counts: &command.legs[leg.index()],
            view,
            lower,
            open,
        }
    }
}

/// Rule `<leg> pX`: it holds iff what took longer and what never ended are together at most
/// `(1 - X) n`, n being what began while measuring (docs/semantics.md#percentile-rules).
pub(crate) fn leg(
    slo: &Slo,
    leg: Leg,
    bound: PercentileBound,
    scope: &ScopeSummary,
    evidence: &Evidence<'_>,
) -> RuleResult {
    let (percentile, at_most) = (bound.percentile, bound.at_most);
    let rule = new(slo).bound(Figure::Time(at_most));
    let Some(command) = &scope.command else {
        return rule.not_evaluated(Unevaluated::NoSuchLatency);
    };
    // Replies end at our own consumer.
    if leg == Leg::Loop && is_consumer_disturbed(evidence) {
        return rule.not_evaluated(Unevaluated::ConsumerDisturbed);
    }
    if leg == Leg::Loop && !evidence.summary.has_one_clock {
        return rule.not_evaluated(Unevaluated::ClocksApart);
    }
    let LegTimes {
        counts,
        view,
        lower,
        open,
    } = LegTimes::new(leg, command);
    let Some(above) = counts.above.get(&at_most).copied() else {
        return rule.not_evaluated(Unevaluated::NoSuchLatency);
    };
    let (n, missing) = (counts.begun, counts.missing());
    if n < percentile.needed() {
        let (have, needed) = (n, percentile.needed());
        return rule.not_evaluated(Unevaluated::TooFewMessages { have, needed });
    }
    let above_lower = counts.above_lower.get(&at_most).copied().unwrap_or(above);
    let holds = |above: u64| percentile.allows(above + missing, n);
    let decision = Decision::of(holds(above), || holds(above_lower));
    let holds_if_settled = percentile.allows(above + missing.saturating_sub(open), n);
    if decision != Decision::Holds && holds_if_settled && evidence.is_settling_cut() {
        return rule.not_evaluated(Unevaluated::CutShort);
    }
    let quantile = |view: &LatencyView| all_due(view).quantile_us(percentile.as_fraction());
    let observed = of_all_due(view, percentile, missing);
    let lower = lower.and_then(quantile).map(Micros);
    let margin = observed.and_then(|at| margin(at.value(), at_most.0 as f64));
    let counts = (above, missing, n);
    rule.observed(observed)
        .evidence(counted_above(counts, percentile, "never answered"))
        .decided_by_both(decision, OwnDelay::Answers, None)
        .with_lower(&slo.bound.rule(), lower)
        .noted_if_close(margin)
}

/// The legs that a bound counts, and those above it or without an end; none where nothing is known of them.
pub(crate) fn counts_above(
    leg: Leg,
    bound: PercentileBound,
    scope: &ScopeSummary,
) -> Option<Batch> {
    let counts = &scope.command.as_ref()?.legs[leg.index()];
    let above = counts.above.get(&bound.at_most)?;
    Some(Batch {
        messages: counts.begun,
        bad: above + counts.missing(),
    })
}

/// Rule `commands-not-received`, on the whole run.
pub(crate) fn not_received(
    slo: &Slo,
    allowed: Allowance,
    scope: &ScopeSummary,
    evidence: &Evidence<'_>,
) -> RuleResult {
    let of = scope.command.as_ref().map(|command| &command.ledger);
    let found = of.map(|of| (of.delivered_not_received, of.delivered, of.issued));
    let decided = decide(new(slo), allowed, found);
    // Nothing reports which of them were still on their way to the device.
    match evidence.is_settling_cut() && decided.outcome == RuleOutcome::Fail {
        true => decided.not_evaluated(Unevaluated::CutShort),
        false => decided,
    }
}

/// Rule `replies-lost`, on the whole run. Replies end at our own consumer: what did not come while it
/// was away is no proof.
pub(crate) fn replies_lost(
    slo: &Slo,
    allowed: Allowance,
    scope: &ScopeSummary,
    evidence: &Evidence<'_>,
) -> RuleResult {
    let of = scope.command.as_ref().map(|command| &command.ledger);
    let found = of.map(|of| {
        let due = of.received.saturating_sub(of.one_way);
        (of.replies_lost, of.answered, due)
    });
    if !is_consumer_disturbed(evidence) {
        return decide(new(slo), allowed, found);
    }
    let rule = new(slo)
        .bound(allowed.figure())
        .not_evaluated(Unevaluated::ConsumerDisturbed);
    let Some((Some(lost), answered, _)) = found else {
        return rule;
    };
    let words = format!(
        "our own consumer was away: {} of {} replies lost, whenever they were sent",
        figure::count(lost),
        figure::count(answered)
    );
    rule.observed(Some(allowed.observed(lost, answered)))
        .evidence(words)
}

/// Rule `receive-loss`, on the whole run.
pub(crate) fn receive_loss(slo: &Slo, allowed: Allowance, scope: &ScopeSummary) -> RuleResult {
    let found = scope.reception.as_ref().map(|reception| {
        let expected = reception.ledger.expected.unwrap_or(0);
        (reception.ledger.lost, expected, expected)
    });
    decide(new(slo), allowed, found)
}

/// Rule `queries-with-command`, on the measured cohort: of all queries that were due, whether they could be
/// sent or not.
pub(crate) fn queries(
    slo: &Slo,
    wanted: Share,
    scope: &ScopeSummary,
    evidence: &Evidence<'_>,
) -> RuleResult {
    let rule = new(slo).bound(Figure::Fraction(wanted.as_fraction()));
    if scope.measured.scheduled.is_none() {
        return rule.not_evaluated(Unevaluated::Unknown);
    }
    // Who is away issues no commands.
    if is_consumer_disturbed(evidence) {
        return rule.not_evaluated(Unevaluated::ConsumerDisturbed);
    }
    let queries = scope
        .command
        .as_ref()
        .map(|command| command.measured.queries);
    let Some(queries) = queries.filter(|queries| queries.due() > 0) else {
        return rule.not_evaluated(Unevaluated::NothingDue);
    };
    let (due, having) = (queries.due(), queries.with_command());
    let is_reached = wanted.is_reached_by(having, due);
    let with_open = having + queries.in_flight();
    if !is_reached && wanted.is_reached_by(with_open, due) && evidence.is_settling_cut() {
        return rule.not_evaluated(Unevaluated::CutShort);
    }
    let share = having as f64 / due as f64;
    let words = format!(
        "{} of {} queries due had a command{}",
        figure::count(having),
        figure::count(due),
        listed(without(&queries))
    );
    rule.observed(Some(Figure::Fraction(share)))
        .evidence(words)
        .decided(is_reached, None)
        .noted_if_close(margin(1.0 - share, 1.0 - wanted.as_fraction()))
}

/// Queries without a command, by their end.
fn without(queries: &QueriesDue) -> [(&'static str, u64); 6] {
    let [_, no_command, rejected, timed_out, broken, in_flight] = queries.ends;
    [
        ("none came", no_command),
        ("rejected", rejected),
        ("timed out", timed_out),
        ("broken", broken),
        ("in flight", in_flight),
        ("shed", queries.shed),
    ]
}

/// Decides by the number absent, the number it is a share of, and the number due to begin with.
fn decide(
    rule: RuleResult,
    allowed: Allowance,
    found: Option<(Option<u64>, u64, u64)>,
) -> RuleResult {
    let rule = rule.bound(allowed.figure());
    let Some((absent, of, due)) = found else {
        return rule.not_evaluated(Unevaluated::NothingDue);
    };
    let Some(absent) = absent else {
        return rule.not_evaluated(Unevaluated::Unknown);
    };
    if due == 0 {
        return rule.not_evaluated(Unevaluated::NothingDue);
    }
    rule.evidence(counted(absent, of))
        .decided_by_count(allowed, (absent, of), None)
}
