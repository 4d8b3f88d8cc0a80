//! The service levels: failures, duplicates and links. Losses are in `loss`, latencies in `latency`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use muster_measure::{
    ArrivalFigures, LinkLedger, Phase, Scope as Measured, ScopeSummary, SecondRow, State,
};
use muster_model::{ConnectFailure, FleetId, StreamId, figure};

use crate::latency::PercentileBound;
use crate::own_delay::{Decision, OwnDelay};
use crate::{
    Allowance, Ending, Evidence, Figure, IncidentKind, RuleKind, RuleResult, Scope, Share, Slo,
    SloBound, StreamRole, Unevaluated, commands, failures, latency, loss,
};

/// The result of one SLO; none where narrower rules took everything out of it. Rule `stable` is not
/// decided here: it is evaluated for every stream, named or not.
pub(crate) fn evaluate(slo: &Slo, evidence: &Evidence<'_>) -> Option<RuleResult> {
    if is_empty(slo, evidence) {
        return None;
    }
    let Some(scope) = summary(slo, evidence).filter(|_| !is_without_uplinks(slo, evidence)) else {
        return Some(new(slo).not_evaluated(Unevaluated::NothingDue));
    };
    Some(match slo.bound {
        SloBound::Loss(allowed) => loss::evaluate(slo, allowed, scope, evidence),
        SloBound::FailureRatio(allowed) => failure_ratio(slo, allowed, scope, evidence),
        SloBound::Connected(wanted) => connected(slo, wanted, evidence),
        SloBound::Disconnects(allowed) => disconnects(slo, allowed, evidence),
        SloBound::Duplicates(allowed) => duplicates(slo, allowed, evidence),
        SloBound::Latency {
            of,
            percentile,
            at_most,
        } => {
            let bound = PercentileBound {
                of,
                percentile,
                at_most,
            };
            latency::evaluate(slo, bound, scope, evidence)
        }
        SloBound::NotReceived(allowed) => commands::not_received(slo, allowed, scope, evidence),
        SloBound::RepliesLost(allowed) => commands::replies_lost(slo, allowed, scope, evidence),
        SloBound::ReceiveLoss(allowed) => commands::receive_loss(slo, allowed, scope),
        SloBound::QueriesWithCommand(wanted) => commands::queries(slo, wanted, scope, evidence),
        SloBound::Stable => return None,
    })
}

/// Returns whether narrower rules took everything that a rule can be about out of it.
fn is_empty(slo: &Slo, evidence: &Evidence<'_>) -> bool {
    if slo.except.is_empty() {
        return false;
    }
    let name = slo.bound.name();
    if name.is_about_links() {
        return fleets(slo, evidence).next().is_none();
    }
    !evidence.roles(slo).any(|role| role.is_object_of(name))
}

/// Returns whether a rule is about messages that devices send, and no stream that it covers can
/// have any.
fn is_without_uplinks(slo: &Slo, evidence: &Evidence<'_>) -> bool {
    let name = slo.bound.name();
    let is_about_uplinks = !name.is_about_links() && StreamRole::Uplink.is_object_of(name);
    is_about_uplinks && !evidence.roles(slo).any(StreamRole::is_uplink)
}

/// The figures of what a rule is about.
pub(crate) fn summary<'a>(slo: &Slo, evidence: &Evidence<'a>) -> Option<&'a ScopeSummary> {
    if !slo.is_narrowed() {
        return evidence.summary.scope(measured(&slo.scope));
    }
    let streams = evidence.streams.iter().zip(0u8..=u8::MAX);
    let streams: Vec<(FleetId, StreamId)> =
        streams.map(|(of, id)| (of.fleet, StreamId(id))).collect();
    evidence.summary.group(&slo.streams(&streams))
}

/// The fleets whose links count for a rule.
fn fleets<'a>(slo: &Slo, evidence: &Evidence<'a>) -> impl Iterator<Item = &'a ScopeSummary> {
    let fleets = evidence.summary.fleets.iter().zip(0u8..=u8::MAX);
    fleets
        .filter(|(_, id)| slo.covers_links(FleetId(*id)))
        .map(|(scope, _)| scope)
}

/// The account of the links that count for a rule.
fn links<'a>(slo: &Slo, evidence: &Evidence<'a>) -> Cow<'a, LinkLedger> {
    match evidence.summary.scope(measured(&slo.scope)) {
        Some(scope) if slo.except.is_empty() => Cow::Borrowed(&scope.links),
        _ => {
            let mut sum = LinkLedger::default();
            fleets(slo, evidence).for_each(|fleet| sum.merge(&fleet.links));
            Cow::Owned(sum)
        }
    }
}

pub(crate) fn new(slo: &Slo) -> RuleResult {
    RuleResult::new(RuleKind::Slo, slo.bound.rule(), &slo.scope)
        .named(slo.named)
        .except(&slo.except)
        .of_sets(&slo.sets)
}

/// The scope's name in the summary.
pub(crate) const fn measured(scope: &Scope) -> Measured {
    match scope {
        Scope::Run => Measured::Run,
        Scope::Fleet { id, .. } => Measured::Fleet(*id),
        Scope::Stream { id, .. } => Measured::Stream(*id),
    }
}

/// Returns whether our own consumer was away, so that absence is no proof against the target.
pub(crate) fn is_consumer_disturbed(evidence: &Evidence<'_>) -> bool {
    evidence
        .health
        .incidents
        .iter()
        .any(|incident| incident.kind == IncidentKind::ConsumerAway)
}

/// The arrival figures of the streams that a rule is about, at one backend, over the whole run.
pub(crate) fn arrivals<'a>(
    slo: &'a Slo,
    backend: usize,
    evidence: &Evidence<'a>,
) -> impl Iterator<Item = &'a ArrivalFigures> {
    evidence.covered(slo, &evidence.summary.backends[backend].streams)
}

/// Rule `duplicates`, on the whole run: second copies of messages that we sent once. Every backend
/// has its account; the worst one decides.
fn duplicates(slo: &Slo, allowed: Allowance, evidence: &Evidence<'_>) -> RuleResult {
    let rule = new(slo).bound(allowed.figure());
    let summary = evidence.summary;
    if summary.backends.is_empty() {
        return rule.not_evaluated(Unevaluated::NoBackend);
    }
    if summary.run.uplink.arrivals.duplicates.is_none() {
        return rule.not_evaluated(Unevaluated::Unknown);
    }
    let of_backend = |at: usize| {
        arrivals(slo, at, evidence).fold((0, 0), |(again, first), figures| {
            (again + figures.duplicates, first + figures.arrived)
        })
    };
    let all = (0..summary.backends.len()).rev();
    let weight = |at: &usize| {
        let (found, arrived) = of_backend(*at);
        (!allowed.covers(found, arrived), found)
    };
    let worst = all.max_by_key(weight).unwrap_or(0);
    let (found, arrived) = of_backend(worst);
    let name = evidence.backend(worst);
    rule.evidence(format!("{} at {name}", counted(found, arrived)))
        .decided_by_count(allowed, (found, arrived), None)
}

/// Rule `failure-ratio`, on the measured cohort.
fn failure_ratio(
    slo: &Slo,
    allowed: Share,
    scope: &ScopeSummary,
    evidence: &Evidence<'_>,
) -> RuleResult {
    let rule = new(slo).bound(Figure::Fraction(allowed.as_fraction()));
    let ledger = &scope.measured;
    let Some(scheduled) = ledger.scheduled else {
        return rule.not_evaluated(Unevaluated::Unknown);
    };
    if scheduled == 0 {
        return rule.not_evaluated(Unevaluated::NothingDue);
    }
    let failed = ledger.failed;
    let ended = failed.saturating_sub(ledger.in_flight);
    if evidence.is_settling_cut()
        && !allowed.covers(failed, scheduled)
        && allowed.covers(ended, scheduled)
    {
        return rule.not_evaluated(Unevaluated::CutShort);
    }
    let since = scope
        .series
        .iter()
        .filter(|row| row.phase == Phase::Measure);
    let since = since
        .filter(|row| !allowed.covers(failed_due(row), row.due.finals()))
        .map(|row| row.second)
        .min();
    rule.evidence(counted(failed, scheduled) + &failures::listed(ledger))
        .decided_by_count(Allowance::Ratio(allowed), (failed, scheduled), since)
}

fn failed_due(row: &SecondRow) -> u64 {
    let due = &row.due;
    let failed = [
        State::Rejected,
        State::TimedOut,
        State::Broken,
        State::InFlight,
        State::Shed,
    ];
    let failed: u64 = failed.into_iter().map(|state| due.of(state)).sum();
    row.refused_unawaited_due + failed.saturating_sub(due.shed_own())
}

/// Rule `connected`: links up at the end of the connect phase.
fn connected(slo: &Slo, wanted: Share, of: &Evidence<'_>) -> RuleResult {
    let links = links(slo, of);
    let rule = new(slo).bound(Figure::Fraction(wanted.as_fraction()));
    if links.wanted == 0 {
        return rule.not_evaluated(Unevaluated::NoLinks);
    }
    let is_cut = matches!(of.ending, Ending::Interrupted | Ending::Unfinished { .. });
    if is_cut && of.summary.timeline.origin >= of.summary.end {
        return rule.not_evaluated(Unevaluated::CutShort);
    }
    let missing = links.wanted.saturating_sub(links.up_at_start);
    let most_missing = 1.0 - wanted.as_fraction();
    let fraction = links.up_at_start as f64 / links.wanted as f64;
    let ended = ConnectFailure::RunEnded.to_string();
    let causes = counts(&links.connect_failures).filter(|(cause, _)| *cause != ended);
    let words = format!(
        "{} of {} links up at the end of the connect phase{}",
        figure::count(links.up_at_start),
        figure::count(links.wanted),
        listed(causes)
    );
    // A refusal is the target's own, whatever else kept links away.
    let by_us = match of.was_refused() {
        true => 0,
        false => links.down_by_us_at_start.min(missing),
    };
    // Where no link came up, those that were not tried waited for the others.
    let excused = if by_us > 0 && of.is_kept_down_by_us() {
        missing
    } else {
        by_us
    };
    let words = match by_us {
        0 => words,
        by_us => format!(
            "{words}; {} timed out by our own delay",
            figure::count(by_us)
        ),
    };
    // Links that come and go: none was up when the run was ended for that.
    let words = match *of.ending == Ending::NoLinkUp && links.up_at_start > 0 {
        true => format!("{words}; at the last look before that no link was up, so the run ended"),
        false => words,
    };
    let decision = Decision::of(
        wanted.is_reached_by(links.up_at_start, links.wanted),
        || wanted.is_reached_by(links.up_at_start, links.wanted - excused),
    );
    rule.observed(Some(Figure::Fraction(fraction)))
        .evidence(words)
        .decided_by_both(decision, OwnDelay::Connects, None)
        .noted_if_close(margin(missing as f64 / links.wanted as f64, most_missing))
}

/// Rule `disconnects`: links that the platform ended between their first use and the end of
/// measuring.
fn disconnects(slo: &Slo, allowed: Allowance, evidence: &Evidence<'_>) -> RuleResult {
    let links = links(slo, evidence);
    let rule = new(slo).bound(allowed.figure());
    if links.wanted == 0 {
        return rule.not_evaluated(Unevaluated::NoLinks);
    }
    let lost = links.ended_by_platform.values().sum();
    let causes = listed(counts(&links.ended_by_platform));
    rule.evidence(counted(lost, links.connected) + &causes)
        .decided_by_count(allowed, (lost, links.connected), None)
}

impl Allowance {
    pub(crate) fn covers(self, found: u64, of: u64) -> bool {
        match self {
            Self::Count(most) => found <= most,
            Self::Ratio(share) => share.covers(found, of),
        }
    }

    pub(crate) fn figure(self) -> Figure {
        match self {
            Self::Count(most) => Figure::Count(most),
            Self::Ratio(share) => Figure::Fraction(share.as_fraction()),
        }
    }

    pub(crate) fn observed(self, found: u64, of: u64) -> Figure {
        match self {
            Self::Count(_) => Figure::Count(found),
            Self::Ratio(_) => Figure::Fraction(found as f64 / (of as f64).max(1.0)),
        }
    }

    /// The margin to the bound as a share of it, if it is small.
    pub(crate) fn margin(self, found: u64, of: u64) -> Option<f64> {
        margin(self.observed(found, of).value(), self.figure().value())
    }
}

/// The margin of a passing observation as a share of its bound, if it is within 10 % of it. A bound of zero
/// has no such margin: it is met exactly or not at all.
pub(crate) fn margin(observed: f64, bound: f64) -> Option<f64> {
    let is_close = bound > 0.0 && observed >= 0.9 * bound;
    is_close.then(|| (1.0 - observed / bound).max(0.0))
}

/// "3 of 100 (3 %)", or, where nothing was seen, what that proves: none in `n` independent trials
/// bounds the share at `1 - 0.05^(1/n)` with 95 % confidence.
pub(crate) fn counted(found: u64, of: u64) -> String {
    if found > 0 || of == 0 {
        let share = found as f64 / (of as f64).max(1.0);
        return format!(
            "{} of {} ({})",
            figure::count(found),
            figure::count(of),
            figure::percent(share)
        );
    }
    let bound = 1.0 - 0.05_f64.powf(1.0 / of as f64);
    format!(
        "0 of {}: at most {} % at 95 %",
        figure::count(of),
        two_digits(bound * 100.0)
    )
}

/// Two significant digits at most, rounded up, since the value is an upper bound; "0.006".
fn two_digits(value: f64) -> String {
    let digits = (1 - value.log10().floor() as i32).clamp(0, 9) as usize - usize::from(value < 1.0);
    let scale = 10_f64.powi(digits as i32);
    format!("{:.digits$}", (value * scale).ceil() / scale)
}

/// ": rejected 3, shed 4", or nothing if all are zero.
pub(crate) fn listed<'a>(parts: impl IntoIterator<Item = (&'a str, u64)>) -> String {
    let parts = parts.into_iter().filter(|(_, count)| *count > 0);
    let parts: Vec<String> = parts
        .map(|(name, count)| format!("{name} {}", figure::count(count)))
        .collect();
    if parts.is_empty() {
        String::new()
    } else {
        format!(": {}", parts.join(", "))
    }
}

/// Counts by name, for [`listed`].
pub(crate) fn counts(by_name: &BTreeMap<String, u64>) -> impl Iterator<Item = (&str, u64)> {
    by_name.iter().map(|(name, count)| (name.as_str(), *count))
}
