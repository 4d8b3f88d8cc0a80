//! The accounting rules on the generator: a breach makes the run invalid, because facts are missing or
//! the declared load was not offered (docs/semantics.md#validity).

use std::collections::BTreeMap;

use muster_measure::{CommandLedger, Distribution, Phase, ScopeSummary, SecondRow};
use muster_model::{Micros, ShedCause, figure};

use crate::{
    Ending, Evidence, Figure, GeneratorHealth, IncidentKind, Percentile, Reason, RuleKind,
    RuleOutcome, RuleResult, Rules, Share, Unevaluated,
};

/// Every rule on the generator, in the order of the report.
pub(crate) fn evaluate(rules: &Rules, evidence: &Evidence<'_>) -> Vec<RuleResult> {
    let mut results = vec![
        interrupted(evidence),
        something_due(evidence),
        residue(evidence),
        shed_own(evidence),
        lateness(rules, evidence),
    ];
    results.extend(command_lateness(rules, evidence));
    results.extend(closed_loops(evidence));
    results.extend(accidents(evidence.health));
    results
}

/// The rules that one step of a run can break, in the order of the report. That the user interrupted
/// the run is of the step in which that happened.
pub(crate) fn of_step(rules: &Rules, evidence: &Evidence<'_>) -> Vec<RuleResult> {
    let cut = (*evidence.ending == Ending::Interrupted).then(|| interrupted(evidence));
    let mut results: Vec<RuleResult> = cut.into_iter().collect();
    results.extend([
        residue(evidence),
        shed_own(evidence),
        lateness(rules, evidence),
    ]);
    results.extend(command_lateness(rules, evidence));
    results.extend(closed_loops(evidence));
    results.extend(accidents(evidence.health));
    results
}

/// The rules on incidents of the generator. The live view asks for the same rules on those so far.
pub fn accidents(health: &GeneratorHealth) -> Vec<RuleResult> {
    let kinds: [(Reason, &[IncidentKind]); 5] = [
        (Reason::ReceiveDrops, &[IncidentKind::ReceiveDrop]),
        (Reason::OwnConsumer, &[IncidentKind::ConsumerAway]),
        (Reason::GeneratorLimit, &[IncidentKind::LimitReached]),
        (
            Reason::Clock,
            &[IncidentKind::ClockStepped, IncidentKind::Suspended],
        ),
        (Reason::ProcessLost, &[IncidentKind::ProcessLost]),
    ];
    let rules = kinds.into_iter();
    rules
        .map(|(reason, kinds)| incidents(reason, kinds, health))
        .collect()
}

fn new(rule: &str, reason: Reason) -> RuleResult {
    RuleResult::new(RuleKind::Validity, rule, "run").because(reason)
}

/// The run went on to its planned end, or to one that its rules set.
fn interrupted(evidence: &Evidence<'_>) -> RuleResult {
    let rule = new("uninterrupted", Reason::Interrupted);
    match evidence.ending {
        Ending::Planned => rule.evidence("the run went on to its end"),
        Ending::Stopped(_) => rule.evidence("a `stop-if` condition ended the run"),
        Ending::Interrupted | Ending::SettlingInterrupted { .. } => {
            let at = match evidence.is_settling_cut() {
                true => evidence.summary.end,
                false => evidence.summary.timeline.settle.min(evidence.summary.end),
            };
            rule.evidence(format!("interrupted at {}", figure::clock(at)))
                .decided(false, None)
        }
        Ending::Unfinished { is_running, at } => {
            let at = figure::clock(*at);
            let rule = match is_running {
                true => rule
                    .without_reason()
                    .evidence(format!("running, {at} so far; judged at its end")),
                false => rule
                    .because(Reason::Killed)
                    .evidence(format!("interrupted at {at}: the run was killed")),
            };
            rule.decided(false, None)
        }
        Ending::NoLinkUp => rule.evidence("no link was up when connecting ended"),
        Ending::NotBegun(reason) => rule.evidence(reason.clone()).decided(false, None),
    }
}

/// Something was due while measuring, if a stream with a rate was declared: a closed loop that waited
/// for an answer all the while has nothing to be judged by. A run that `stop-if` ended early
/// needs no more than to have begun.
fn something_due(evidence: &Evidence<'_>) -> RuleResult {
    let rule = new("something-due", Reason::NothingDue);
    let run = &evidence.summary.run;
    let commands = run.command.as_ref().and_then(|of| of.ledger.scheduled);
    if commands.is_none()
        && !evidence
            .streams
            .iter()
            .any(|stream| stream.role.is_uplink())
    {
        return rule.not_evaluated(Unevaluated::NothingDue);
    }
    if *evidence.ending == Ending::NoLinkUp {
        return rule.not_evaluated(Unevaluated::NothingDue);
    }
    let (cohort, when) = match matches!(evidence.ending, Ending::Stopped(_)) {
        true => (&run.uplink, "due"),
        false => (&run.measured, "due while measuring"),
    };
    let Some(messages) = cohort.scheduled else {
        return rule.not_evaluated(Unevaluated::Unknown);
    };
    let due = messages + commands.unwrap_or(0);
    rule.observed(Some(Figure::Count(due)))
        .evidence(format!("{} messages were {when}", figure::count(due)))
        .decided(due > 0, None)
}

/// Every ledger closes.
fn residue(evidence: &Evidence<'_>) -> RuleResult {
    let rule = new("residue", Reason::Residue).bound(Figure::Count(0));
    if evidence.is_part {
        return rule.not_evaluated(Unevaluated::OnePart);
    }
    // No message was due, so that no ledger was opened.
    let is_unopened = *evidence.ending == Ending::NoLinkUp || !evidence.has_begun();
    if is_unopened && evidence.summary.residue.is_none() {
        return rule.not_evaluated(Unevaluated::NothingDue);
    }
    let Some(residue) = evidence.summary.residue else {
        let why = "the ledger was not closed: the run did not come to its end";
        return rule
            .because(Reason::Killed)
            .evidence(why)
            .decided(false, None);
    };
    let run = &evidence.summary.run;
    let command = run.command.iter().flat_map(|of| &of.ledger.equations);
    let reception = run.reception.iter().flat_map(|of| &of.ledger.equations);
    let broken = run.uplink.equations.iter().chain(command).chain(reception);
    let broken: Vec<String> = broken
        .map(|e| {
            let (left, right) = (figure::count(e.left), figure::count(e.right));
            format!("{} ({left} against {right})", e.name)
        })
        .collect();
    let words = match (residue, broken.is_empty()) {
        (0, _) => "every ledger closes".to_owned(),
        (_, true) => "a ledger does not close".to_owned(),
        (_, false) => broken.join("; "),
    };
    rule.observed(Some(Figure::Count(residue)))
        .evidence(words)
        .decided(residue == 0, None)
}

/// Nothing was shed by a cause of our own: no message, no command, no reply.
fn shed_own(evidence: &Evidence<'_>) -> RuleResult {
    let run = &evidence.summary.run;
    let since = run.series.iter().find(|row| row.due.shed_own() > 0);
    let commands = run.command.as_ref().map(|command| &command.ledger);
    let by_cause = with_commands(&run.uplink.shed_by_cause, commands);
    own_shed(&by_cause, since.map(|row| row.second))
}

/// Messages, commands and replies that were never sent, by cause.
fn with_commands(
    messages: &BTreeMap<String, u64>,
    commands: Option<&CommandLedger>,
) -> BTreeMap<String, u64> {
    let mut by_cause = messages.clone();
    if let Some(ledger) = commands {
        let unsent = ledger.withheld_by_cause.iter();
        for (cause, count) in unsent.chain(&ledger.answer_shed_by_cause) {
            *by_cause.entry(cause.clone()).or_default() += count;
        }
    }
    by_cause
}

/// Rule `own-shed` on what was shed so far, by cause; `since_s` is the first second of it.
pub fn own_shed(by_cause: &BTreeMap<String, u64>, since_s: Option<u32>) -> RuleResult {
    let own = muster_measure::own_shed(by_cause);
    let causes = ShedCause::ALL.into_iter().filter(|cause| cause.is_own());
    let named = causes.filter_map(|cause| by_cause.get_key_value(cause.name()));
    let named: Vec<String> = named
        .filter(|(_, count)| **count > 0)
        .map(|(name, count)| format!("{name} {}", figure::count(*count)))
        .collect();
    let words = if own == 0 {
        "nothing was shed by us".to_owned()
    } else {
        named.join(", ")
    };
    new("own-shed", shed_reason(by_cause))
        .bound(Figure::Count(0))
        .observed(Some(Figure::Count(own)))
        .evidence(words)
        .decided(own == 0, since_s)
}

/// The reason that most of what we shed was shed for.
fn shed_reason(by_cause: &BTreeMap<String, u64>) -> Reason {
    let of = |cause: ShedCause| by_cause.get(cause.name()).copied().unwrap_or(0);
    let reasons = [
        (of(ShedCause::Interrupted), Reason::Interrupted),
        (of(ShedCause::GeneratorLimit), Reason::GeneratorLimit),
        (of(ShedCause::GeneratorLate), Reason::GeneratorLate),
    ];
    let most = reasons.into_iter().max_by_key(|(count, _)| *count);
    most.map_or(Reason::GeneratorLate, |(_, reason)| reason)
}

/// The lateness of the measured cohort, as rule `shape` needs it.
#[derive(Debug, Clone, Copy)]
pub struct Lateness<'a> {
    /// The lateness of every message taken.
    pub known: &'a Distribution,
    /// The exact counter of the bound: messages above it, of all taken.
    pub above: Option<(u64, u64)>,
}

/// Messages went out when they were due.
fn lateness(rules: &Rules, evidence: &Evidence<'_>) -> RuleResult {
    let run = &evidence.summary.run;
    let bound = rules.validity.lateness_p99;
    let Some(view) = &run.latency.lateness else {
        return new(SHAPE, Reason::Shape).not_evaluated(Unevaluated::NothingDue);
    };
    let counter = run.above(muster_measure::Latency::Lateness, bound, None);
    let lateness = Lateness {
        known: &view.known,
        above: counter.map(|counter| (counter.above + counter.missing, counter.n)),
    };
    let rule = shape(bound, &lateness);
    let late = |row: &&SecondRow| {
        row.phase == Phase::Measure && row.lateness_p99_us.is_some_and(|p99| p99 > bound.get())
    };
    let since_s = run.series.iter().filter(late).map(|row| row.second).min();
    match rule.outcome {
        RuleOutcome::Fail => rule.decided(false, since_s),
        RuleOutcome::Pass | RuleOutcome::NotEvaluated(_) => rule,
    }
}

/// The rule on the shape of the load that was offered.
const SHAPE: &str = "shape";

/// The same for commands; none if none was issued. Commands are few among messages, so that late
/// ones would not show among all.
fn command_lateness(rules: &Rules, evidence: &Evidence<'_>) -> Option<RuleResult> {
    let lateness = &evidence.summary.run.command.as_ref()?.lateness.known;
    (lateness.count > 0).then(|| command_shape(rules.validity.lateness_p99, lateness))
}

/// The most that our own delay may be of the sum of all times from due to end of a closed loop that
/// left messages out.
const OWN_SHARE: Share = Share::whole_percent(5);

/// Rule `shape` of every closed stream: what it left out, it left out because of the target.
fn closed_loops(evidence: &Evidence<'_>) -> Vec<RuleResult> {
    let streams = evidence.streams.iter().zip(&evidence.summary.streams);
    let closed = streams.filter(|(stream, _)| stream.is_closed && stream.role.is_uplink());
    closed
        .map(|(stream, scope)| closed_loop(&stream.name, scope))
        .collect()
}

fn closed_loop(name: &str, scope: &ScopeSummary) -> RuleResult {
    let rule = RuleResult::new(RuleKind::Validity, SHAPE, name)
        .because(Reason::ClosedLoop)
        .bound(Figure::Fraction(OWN_SHARE.as_fraction()));
    let measured = &scope.measured;
    let Some((nominal, scheduled)) = measured.nominal.zip(measured.scheduled) else {
        return rule.not_evaluated(Unevaluated::Unknown);
    };
    let omitted = nominal.saturating_sub(scheduled);
    let (own, all) = (scope.times.own_us, scope.times.taken_us);
    let share = own as f64 / (all as f64).max(1.0);
    rule.observed(Some(Figure::Fraction(share)))
        .evidence(format!(
            "{} messages omitted; our own delay is {} of the time of those that took longer than a period",
            figure::count(omitted),
            figure::percent(share)
        ))
        .decided(omitted == 0 || OWN_SHARE.covers(own, all), None)
}

/// Rule `shape of commands`, by the upper edge of the p99's bucket.
pub fn command_shape(bound: Micros, lateness: &Distribution) -> RuleResult {
    let lateness = Lateness {
        known: lateness,
        above: None,
    };
    RuleResult {
        rule: format!("{SHAPE} of commands"),
        ..shape(bound, &lateness)
    }
}

/// Rule `shape` on the lateness so far, by an exact counter; where there is none, by the upper edge
/// of the p99's bucket.
pub fn shape(bound: Micros, lateness: &Lateness<'_>) -> RuleResult {
    let rule = new(SHAPE, Reason::Shape).bound(Figure::Time(bound));
    let needed = Percentile::P99.needed();
    let have = lateness.known.count;
    if have < needed {
        return rule.not_evaluated(Unevaluated::TooFewMessages { have, needed });
    }
    let p99 = lateness.known.quantile_us(Percentile::P99.as_fraction());
    let edge = p99.map_or(Micros::ZERO, Micros);
    let (holds, how) = match lateness.above {
        Some((above, n)) => (
            Percentile::P99.allows(above, n),
            format!(
                "lateness p99: {} of {} above",
                figure::count(above),
                figure::count(n)
            ),
        ),
        None => (
            edge <= bound,
            "lateness p99, by the upper edge of its bucket".to_owned(),
        ),
    };
    rule.observed(Some(Figure::Time(edge)))
        .evidence(how)
        .decided(holds, None)
}

/// No incident of these kinds.
fn incidents(reason: Reason, kinds: &[IncidentKind], health: &GeneratorHealth) -> RuleResult {
    let of_kind = || health.incidents.iter().filter(|i| kinds.contains(&i.kind));
    let first = kinds.first().copied().unwrap_or(IncidentKind::LimitReached);
    let happened: u64 = of_kind().map(|incident| incident.count.max(1)).sum();
    let mut described: Vec<String> = Vec::new();
    for incident in of_kind() {
        let words = format!("{}: {}", incident.kind, incident.detail);
        if described.len() < DESCRIBED_MAX && !described.contains(&words) {
            described.push(words);
        }
    }
    new(first.rule(), reason)
        .bound(Figure::Count(0))
        .observed(Some(Figure::Count(happened)))
        .evidence(if described.is_empty() {
            "none".to_owned()
        } else {
            described.join("; ")
        })
        .decided(
            happened == 0,
            of_kind().map(|incident| incident.from.second()).min(),
        )
}

/// Number of incidents described in words; the count has them all.
const DESCRIBED_MAX: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_or_reply_that_we_did_not_send_is_our_own_doing() {
        let of = |cause: ShedCause, count| BTreeMap::from([(cause.name().to_owned(), count)]);
        let messages = of(ShedCause::Offline, 9);
        let mut ledger = CommandLedger {
            withheld_by_cause: of(ShedCause::Offline, 4),
            ..CommandLedger::default()
        };
        let judged =
            |ledger: &CommandLedger| own_shed(&with_commands(&messages, Some(ledger)), None);
        assert_eq!(judged(&ledger).outcome, RuleOutcome::Pass);
        ledger.withheld_by_cause = of(ShedCause::GeneratorLate, 2);
        ledger.answer_shed_by_cause = of(ShedCause::GeneratorLimit, 1);
        let words = judged(&ledger);
        assert_eq!(words.outcome, RuleOutcome::Fail);
        assert_eq!(words.observed, Some(Figure::Count(3)));
        let alone = own_shed(&with_commands(&messages, None), None);
        assert_eq!(alone.outcome, RuleOutcome::Pass);
    }
}
