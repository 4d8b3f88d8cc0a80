//! The service levels of commands and of devices that subscribe.

use muster_measure::{CommandSummary, LatencyView, Leg, QueriesDue, ReceptionLedger, ScopeSummary};
use muster_model::{Micros, figure};

use crate::latency::{PercentileBound, all_due, counted as counted_above, of_all_due};
use crate::own_delay::Decision;
use crate::slo::{counted, is_consumer_disturbed, listed, margin, new};
use crate::{
    Allowance, Evidence, Figure, Latency, OwnDelay, RuleOutcome, RuleResult, Share, Slo, SloBound,
    Unevaluated,
};

/// Rule `<leg> pX`: it holds iff what took longer and what never ended are together at most
/// `(1 - X) n`, n being what began while measuring (docs/semantics.md#percentile-rules).
pub(crate) fn leg(
    slo: &Slo,
    bound: PercentileBound,
    scope: &ScopeSummary,
    evidence: &Evidence<'_>,
) -> RuleResult {
    let PercentileBound {
        of,
        percentile,
        at_most,
    } = bound;
    let rule = new(slo).bound(Figure::Time(at_most));
    let command = scope.command.as_ref();
    let Some((command, (leg, view))) =
        command.and_then(|command| Some((command, leg_of(of, command)?)))
    else {
        return rule.not_evaluated(Unevaluated::NoSuchLatency);
    };
    // Replies end at our own consumer.
    if of == Latency::CommandLoop && is_consumer_disturbed(evidence) {
        return rule.not_evaluated(Unevaluated::ConsumerDisturbed);
    }
    if of == Latency::CommandLoop && !evidence.summary.has_one_clock {
        return rule.not_evaluated(Unevaluated::ClocksApart);
    }
    let Some(above) = leg.above.get(&at_most).copied() else {
        return rule.not_evaluated(Unevaluated::NoSuchLatency);
    };
    let (n, missing) = (leg.begun, leg.missing());
    if n < percentile.needed() {
        let (have, needed) = (n, percentile.needed());
        return rule.not_evaluated(Unevaluated::TooFewMessages { have, needed });
    }
    let above_lower = leg.above_lower.get(&at_most).copied().unwrap_or(above);
    let holds = |above: u64| percentile.allows(above + missing, n);
    let decision = Decision::of(holds(above), || holds(above_lower));
    let settled = missing - open(of, command).min(missing);
    let holds_if_settled = percentile.allows(above + settled, n);
    if decision != Decision::Holds && holds_if_settled && evidence.is_settling_cut() {
        return rule.not_evaluated(Unevaluated::CutShort);
    }
    let quantile = |view: &LatencyView| all_due(view).quantile_us(percentile.as_fraction());
    let observed = of_all_due(view, percentile, missing);
    let lower = lower_of(of, scope).and_then(quantile).map(Micros);
    let margin = observed.and_then(|at| margin(at.value(), at_most.0 as f64));
    rule.observed(observed)
        .evidence(counted_above(
            (above, missing, n),
            percentile,
            "never answered",
        ))
        .decided_by_both(decision, OwnDelay::Answers, None)
        .with_lower(&slo.bound.rule(), lower)
        .noted_if_close(margin)
}

/// Queries, replies or commands that might have had their end if settling had gone on.
fn open(of: Latency, command: &CommandSummary) -> u64 {
    let ledger = &command.ledger;
    match of {
        Latency::CommandRequest => command.queries.in_flight(),
        Latency::CommandResponse => ledger.answer_in_flight,
        Latency::CommandLoop => ledger.answer_in_flight + ledger.replies_outstanding.unwrap_or(0),
        Latency::Response | Latency::Service | Latency::EndToEnd | Latency::Lateness => 0,
    }
}

/// The times of a leg without our own part; none where it has no two times.
fn lower_of(of: Latency, scope: &ScopeSummary) -> Option<&LatencyView> {
    let command = scope.command.as_ref()?;
    match of {
        Latency::CommandRequest => Some(&command.request_lower),
        Latency::CommandResponse => Some(&command.response_lower),
        Latency::CommandLoop
        | Latency::Response
        | Latency::Service
        | Latency::EndToEnd
        | Latency::Lateness => None,
    }
}

/// A leg's exact counts and its times; none for what is no leg.
fn leg_of(
    of: Latency,
    command: &CommandSummary,
) -> Option<(&muster_measure::LegSummary, &LatencyView)> {
    let (leg, view) = match of {
        Latency::CommandRequest => (Leg::Request, &command.request),
        Latency::CommandResponse => (Leg::Response, &command.response),
        Latency::CommandLoop => (Leg::Loop, &command.round),
        Latency::Response | Latency::Service | Latency::EndToEnd | Latency::Lateness => {
            return None;
        }
    };
    Some((&command.legs[leg.index()], view))
}

/// Rules `commands-not-received`, `replies-lost` and `receive-loss`, on the whole run; none for a
/// bound of another kind.
pub(crate) fn absent(
    slo: &Slo,
    scope: &ScopeSummary,
    evidence: &Evidence<'_>,
) -> Option<RuleResult> {
    let command = scope.command.as_ref().map(|command| &command.ledger);
    let received = scope.reception.as_ref().map(|reception| &reception.ledger);
    let (allowed, found) = match slo.bound {
        SloBound::NotReceived(allowed) => {
            let of = command.map(|of| (of.delivered_not_received, of.delivered, of.issued));
            (allowed, of)
        }
        SloBound::RepliesLost(allowed) => {
            let of = command.map(|of| {
                (
                    of.replies_lost,
                    of.answered,
                    of.received.saturating_sub(of.one_way),
                )
            });
            (allowed, of)
        }
        SloBound::ReceiveLoss(allowed) => (allowed, received.map(expected)),
        SloBound::Loss(_)
        | SloBound::FailureRatio(_)
        | SloBound::Connected(_)
        | SloBound::Disconnects(_)
        | SloBound::Duplicates(_)
        | SloBound::Latency { .. }
        | SloBound::QueriesWithCommand(_)
        | SloBound::Stable => return None,
    };
    if matches!(slo.bound, SloBound::RepliesLost(_)) && is_consumer_disturbed(evidence) {
        return Some(replies_while_away(new(slo), allowed, found));
    }
    let decided = decide(new(slo), allowed, found);
    // Of commands nobody tells which were still on their way to the device.
    let is_open = matches!(slo.bound, SloBound::NotReceived(_)) && evidence.is_settling_cut();
    Some(match is_open && decided.outcome == RuleOutcome::Fail {
        true => decided.not_evaluated(Unevaluated::CutShort),
        false => decided,
    })
}

/// Replies end at our own consumer: what did not come while it was away is no proof.
fn replies_while_away(
    rule: RuleResult,
    allowed: Allowance,
    found: Option<(Option<u64>, u64, u64)>,
) -> RuleResult {
    let rule = rule
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
    let queries = scope.command.as_ref().map(|command| command.queries);
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
        listed(&without(&queries))
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

fn expected(of: &ReceptionLedger) -> (Option<u64>, u64, u64) {
    let expected = of.expected.unwrap_or(0);
    (of.lost, expected, expected)
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
    rule.observed(Some(allowed.observed(absent, of)))
        .evidence(counted(absent, of))
        .decided(allowed.covers(absent, of), None)
        .noted_if_close(allowed.margin(absent, of))
}
