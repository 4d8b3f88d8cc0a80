//! Faults that no rule looked at, so that a pass is not taken for more than it is.
//!
//! A warning moves no verdict: the scenario chose its rules, and it is judged by them alone.

use std::collections::BTreeMap;

use muster_measure::{
    ArrivalFigures, CommandLedger, Counter, Phase, ReceptionLedger, ScopeSummary,
};
use muster_model::{ShedCause, StreamId, figure};
use serde::{Deserialize, Serialize};

use crate::strain::{Strain, sentence, strains};
use crate::{
    Evidence, RuleName, RuleOutcome, RuleResult, Rules, meanwhile, reach, slo::counted,
    slo::is_consumer_disturbed,
};

mod links;

/// The share of a stream's messages from which on that they were not sent, failed or were lost is
/// worth a warning: it is beyond what stray errors come to, and would spoil a p99.
pub const UNTOLD_SHARE: f64 = 0.01;
/// The share of links that are missing at the end of measuring, from which on it is worth a
/// warning: fewer may just be connecting again.
pub const MISSING_LINKS_SHARE: f64 = 0.1;
/// Seconds without a link that are worth a warning, as with the events.
pub const NO_LINK_MIN_S: u32 = 2;
/// Fewer messages than this that went out late are but those that were due at the last moment.
const BEHIND_MIN: u64 = 10;

/// A problem that no rule judged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// The kind of problem.
    pub kind: WarningKind,
    /// `run`, or `<fleet>/<stream>`.
    pub scope: String,
    /// Description in words.
    pub detail: String,
}

/// The kind of a warning. Shares count from 1 % on, if no rule of the name given was evaluated on the
/// stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WarningKind {
    /// Messages were due and never sent (rule `failure-ratio`).
    Unsent,
    /// Messages failed (rule `failure-ratio`), or QoS 2 was not completed (rule `incomplete`).
    Failed,
    /// Messages were lost (rule `loss`).
    Lost,
    /// Any message sent once arrived more than once (rule `duplicates`).
    Duplicates,
    /// At least 10 messages were sent after the measured phase in which they were due.
    Behind,
    /// Queries ended without a command, in a run with commands (rule `queries-with-command`).
    NoCommand,
    /// Any loss towards devices (rules `commands-not-received`, `replies-lost`, `receive-loss`).
    NotReceived,
    /// Another message replaced accepted ones in the store, so that their loss cannot be seen.
    Overwritten,
    /// Lost messages were due while a consumer of ours was away.
    LostMeanwhile,
    /// MQTT acknowledgements came again, or named an unused packet id.
    StrayAnswers,
    /// With `carrier: order` something is missing, so ids and times are not known.
    OrderUnsure,
    /// Messages without an answer were the last on links that the platform ended.
    LastSent,
    /// No link was up for at least 2 s of the load.
    NoLink,
    /// The platform ended any link (rule `disconnects`).
    LinksEnded,
    /// More than 10 % of the links were missing when measuring ended.
    LinksDown,
    /// ICMP errors came back for datagrams, or the kernel refused them.
    Unreachable,
    /// A key of the scenario is allowed and probably a mistake; `muster check` prints it.
    Scenario,
    /// A Kafka topic has other partitions than the scenario says.
    TopicsDiffer,
    /// Somebody added partitions to a Kafka topic, deleted or recreated it during the run.
    TopicsChanged,
    /// The run created all topics of a tenant; its name may be misspelt.
    NewTenant,
    /// The platform granted a subscription a lower QoS than requested.
    LowerQos,
    /// Another client seems to use the client id of a device.
    TakenOver,
    /// The platform's own counters differ from the ledger.
    CountersDiffer,
    /// The growth of the platform's own counters is not known.
    CountersUnread,
    /// A server that receives the run's metrics lacks some of them.
    MetricsLost,
    /// A hook failed, hung until its time-out, or was not started.
    HookFailed,
    /// A thread of the generator used 85 % of a CPU, in over 5 % of seconds.
    Cpu,
    /// A thread of the generator waited for a CPU for 10 %, in over 5 % of seconds.
    CpuWait,
    /// The hypervisor took 3 % or more of the host's CPU time.
    Steal,
}

/// The warnings on a run, worst for the reader first: links, then each stream in the plan's order.
/// A run that never began has the warnings that were found before it, and no others.
pub(crate) fn warnings(
    rules: &Rules,
    results: &[RuleResult],
    evidence: &Evidence<'_>,
) -> Vec<Warning> {
    let mut found: Vec<Warning> = links::down(results, evidence).into_iter().collect();
    found.extend(links::ended(results, evidence));
    found.extend(last_sent(evidence));
    found.extend(reach::warning(evidence));
    found.extend(stray_answers(evidence));
    found.extend(overwritten(evidence));
    found.extend(meanwhile::warnings(evidence));
    found.extend_from_slice(evidence.found);
    for (at, stream) in evidence.streams.iter().enumerate() {
        let sees = |name: &str| results.iter().any(|rule| sees(rule, name, &stream.name));
        let id = StreamId(at as u8);
        let mut warn = |kind: WarningKind, detail: Option<String>| {
            found.extend(detail.map(|detail| Warning {
                kind,
                scope: stream.name.clone(),
                detail,
            }));
        };
        let Some(scope) = evidence.summary.streams.get(at) else {
            continue;
        };
        if !sees("failure-ratio") {
            warn(WarningKind::Unsent, unsent(scope));
            warn(WarningKind::Failed, failed(scope));
        }
        if !sees("incomplete") {
            warn(WarningKind::Failed, incomplete(scope));
        }
        if !sees("loss") && !is_consumer_disturbed(evidence) {
            warn(WarningKind::Lost, lost(evidence, id));
        }
        let is_off = rules.is_switched_off(RuleName::Duplicates, stream.fleet, id);
        if !sees("duplicates") && !is_off {
            warn(WarningKind::Duplicates, duplicates(evidence, id));
        }
        warn(WarningKind::OrderUnsure, order_unsure(scope));
        warn(WarningKind::Behind, behind(scope));
        let command = scope.command.as_ref().map(|command| &command.ledger);
        if !sees("queries-with-command") {
            warn(WarningKind::NoCommand, no_command(command, evidence));
        }
        let reception = scope.reception.as_ref().map(|reception| &reception.ledger);
        let mut looked = ["commands-not-received", "replies-lost", "receive-loss"].map(sees);
        // Replies end at our own consumer.
        looked[1] |= is_consumer_disturbed(evidence);
        let absent = not_received(command, reception, looked);
        warn(WarningKind::NotReceived, absent);
    }
    found.extend(strained(evidence));
    found
}

/// Health figures of the generator that may have lengthened times.
fn strained(evidence: &Evidence<'_>) -> impl Iterator<Item = Warning> {
    let timeline = &evidence.summary.timeline;
    let all = strains(evidence.health, (timeline.measure, timeline.settle));
    let harmful = all.into_iter().filter(Strain::is_harmful);
    harmful.map(|strain| Warning {
        kind: strain.kind.warning(),
        scope: "run".to_owned(),
        detail: sentence(&strain),
    })
}

/// Returns whether a rule of that name was decided on a stream, on its fleet, or on the run.
fn sees(rule: &RuleResult, name: &str, stream: &str) -> bool {
    let is_left_out = rule.except.iter().any(|scope| holds(scope, stream));
    is_decided(rule) && rule.rule == name && holds(&rule.scope, stream) && !is_left_out
}

fn is_decided(rule: &RuleResult) -> bool {
    matches!(rule.outcome, RuleOutcome::Pass | RuleOutcome::Fail)
}

/// Returns whether a stream belongs to a scope of that name.
fn holds(scope: &str, stream: &str) -> bool {
    let of_fleet = || stream.strip_prefix(scope);
    scope == "run" || scope == stream || of_fleet().is_some_and(|rest| rest.starts_with('/'))
}

/// Messages that the platform may have refused by ending their links.
fn last_sent(evidence: &Evidence<'_>) -> Option<Warning> {
    let by_cause = &evidence.summary.run.links.last_sent;
    let messages: u64 = by_cause.values().sum();
    let causes = by_cause
        .iter()
        .map(|(cause, count)| (cause.as_str(), *count));
    (messages > 0).then(|| Warning {
        kind: WarningKind::LastSent,
        scope: "run".to_owned(),
        detail: format!(
            "{} messages were last sent on links that then ended: {}",
            figure::count(messages),
            listed(&causes.collect())
        ),
    })
}

/// Accepted messages in whose place a store holds others.
fn overwritten(evidence: &Evidence<'_>) -> Option<Warning> {
    let backends = &evidence.summary.backends;
    let messages: u64 = backends.iter().map(|of| of.uplink.overwritten()).sum();
    (messages > 0).then(|| Warning {
        kind: WarningKind::Overwritten,
        scope: "run".to_owned(),
        detail: format!(
            "a loss of {} accepted messages cannot be seen: the store keeps one message for each device and instant; \
             give each its own instant",
            figure::count(messages)
        ),
    })
}

/// Share of what was due while measuring and never sent, our own faults left out: they make a run
/// invalid.
fn unsent(scope: &ScopeSummary) -> Option<String> {
    let ledger = &scope.measured;
    let causes = ShedCause::ALL.into_iter().filter(|cause| !cause.is_own());
    let causes: BTreeMap<&str, u64> = causes
        .filter_map(|cause| Some((cause.name(), *ledger.shed_by_cause.get(cause.name())?)))
        .collect();
    let share = much(ledger.shed_by_others(), ledger.scheduled?)?;
    Some(format!(
        "{share} of what was due was never sent (shed: {})",
        listed(&causes)
    ))
}

/// Share of what was sent while measuring and did not end well.
fn failed(scope: &ScopeSummary) -> Option<String> {
    let ledger = &scope.measured;
    let ends = BTreeMap::from([
        ("broken", ledger.broken),
        ("in flight", ledger.in_flight),
        ("refused unawaited", ledger.refused_unawaited),
        ("rejected", ledger.rejected),
        ("timed out", ledger.timed_out),
    ]);
    let share = much(ends.values().sum(), ledger.sent)?;
    Some(format!(
        "{share} of what was sent was not accepted ({})",
        listed(&ends)
    ))
}

/// The QoS 2 exchanges that the platform accepted and never completed, in words.
fn incomplete(scope: &ScopeSummary) -> Option<String> {
    let ledger = &scope.uplink;
    let all = ledger.session.completed + ledger.session.incomplete;
    let share = much(ledger.session.incomplete, all)?;
    Some(format!(
        "{share} of what the platform accepted by PUBREC was never completed: no PUBCOMP for {} of {}",
        figure::count(ledger.session.incomplete),
        figure::count(all)
    ))
}

/// Messages that were due while measuring and went out after it.
fn behind(scope: &ScopeSummary) -> Option<String> {
    // A phase need not begin or end with a second.
    let rows = scope.series.iter();
    let issued: u64 = rows
        .filter(|row| row.phase == Phase::Measure)
        .map(|row| row.flow.sent)
        .sum();
    let after = scope.measured.sent.saturating_sub(issued);
    let share = much(after, scope.measured.sent).filter(|_| after >= BEHIND_MIN)?;
    Some(format!(
        "{} messages ({share}) were sent after the measured phase had ended",
        figure::count(after)
    ))
}

/// Number of copies that may be of another message, where nothing but order can decide.
fn order_unsure(scope: &ScopeSummary) -> Option<String> {
    let copies = scope.unsure_by_order;
    (copies > 0).then(|| {
        format!(
            "{} copies could belong to more than one message, because only their order distinguishes them \
             apart. More may be lost than is counted. Use another `carrier`, or a payload with room \
             for an id",
            figure::count(copies)
        )
    })
}

/// Queries that were answered without a command, where there are commands at all.
fn no_command(command: Option<&CommandLedger>, evidence: &Evidence<'_>) -> Option<String> {
    let of_run = &evidence.summary.run.command.as_ref()?.ledger;
    let ledger = command.filter(|_| of_run.issued > 0)?;
    let share = much(ledger.no_command, ledger.queries)?;
    Some(format!(
        "{share} of the queries had no command ({} of {})",
        figure::count(ledger.no_command),
        figure::count(ledger.queries)
    ))
}

/// Share of a stream's messages lost at the backend that lost most of it.
fn lost(evidence: &Evidence<'_>, stream: StreamId) -> Option<String> {
    evidence.summary.run.uplink.arrivals.lost?;
    let figures = |of: &ArrivalFigures| (of.all_lost(), of.expected());
    let (lost, expected, backend) = most(evidence, stream, figures)?;
    let share = much(lost, expected)?;
    let lost = figure::count(lost);
    Some(format!(
        "{share} of what the platform took is lost at {backend} ({lost})"
    ))
}

/// Further copies of a stream's messages at the backend that had most of them.
fn duplicates(evidence: &Evidence<'_>, stream: StreamId) -> Option<String> {
    evidence.summary.run.uplink.arrivals.duplicates?;
    let figures = |of: &ArrivalFigures| (of.duplicates, of.arrived);
    let (again, arrived, backend) = most(evidence, stream, figures)?;
    let counted = counted(again, arrived);
    (again > 0).then(|| {
        format!("duplicates at {backend}: {counted}; name `duplicates` in `slo` to judge them")
    })
}

/// The largest count of a stream over backends, the whole that it is a part of, and the backend.
fn most(
    evidence: &Evidence<'_>,
    stream: StreamId,
    figures: impl Fn(&ArrivalFigures) -> (u64, u64),
) -> Option<(u64, u64, String)> {
    let backends = evidence.summary.backends.iter().enumerate();
    let counts = backends.filter_map(|(at, backend)| {
        let (part, whole) = figures(backend.streams.get(stream.index())?);
        Some((part, whole, at))
    });
    let (part, whole, at) = counts.max_by_key(|(part, ..)| *part)?;
    Some((part, whole, evidence.backend(at)))
}

/// Commands and messages that devices did not receive, and replies that the backend did not, unless
/// a rule looked.
fn not_received(
    command: Option<&CommandLedger>,
    reception: Option<&ReceptionLedger>,
    looked: [bool; 3],
) -> Option<String> {
    let commands = command.map(|ledger| (ledger.delivered_not_received, ledger.delivered));
    let replies = command.map(|ledger| (ledger.replies_lost, ledger.answered));
    let messages = reception.map(|ledger| (ledger.lost, ledger.expected.unwrap_or(0)));
    let words = [
        (commands, "delivered commands were not received"),
        (replies, "replies are lost"),
        (messages, "messages for subscribers are lost"),
    ];
    let words = words.into_iter().zip(looked).filter(|(_, looked)| !looked);
    let words = words.filter_map(|((of, what), _)| {
        let (part, whole) = of?;
        let part = part.filter(|part| *part > 0)?;
        Some(format!(
            "{} of {} {what}",
            figure::count(part),
            figure::count(whole)
        ))
    });
    let words: Vec<String> = words.collect();
    (!words.is_empty()).then(|| words.join("; "))
}

/// A share in words if it is worth a warning.
fn much(part: u64, whole: u64) -> Option<String> {
    let share = part as f64 / whole.max(1) as f64;
    (part > 0 && share >= UNTOLD_SHARE).then(|| figure::percent(share))
}

/// Acknowledgements over MQTT that belong to no message.
fn stray_answers(evidence: &Evidence<'_>) -> Option<Warning> {
    let counters = evidence.summary.run.links.counters;
    let count = |of: Counter| of.get().unwrap_or(0);
    let causes = BTreeMap::from([
        ("for an id answered before", count(counters.mqtt_again)),
        ("for an id never used", count(counters.mqtt_unknown)),
    ]);
    let all: u64 = causes.values().sum();
    (all > 0).then(|| Warning {
        kind: WarningKind::StrayAnswers,
        scope: "run".to_owned(),
        detail: format!(
            "{} acknowledgements that no message waited for ({}): the platform acknowledges what was \
             not sent",
            figure::count(all),
            listed(&causes)
        ),
    })
}

/// Counts by name, largest first.
fn listed(counts: &BTreeMap<&str, u64>) -> String {
    let mut counts: Vec<(&&str, &u64)> = counts.iter().filter(|(_, n)| **n > 0).collect();
    counts.sort_by(|a, b| b.1.cmp(a.1));
    let words = counts.iter();
    let words: Vec<String> = words
        .map(|(name, n)| format!("{name} {}", figure::count(**n)))
        .collect();
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_reply_and_message_that_did_not_come_is_told() {
        let mut commands = CommandLedger {
            delivered: 1_100,
            delivered_not_received: Some(5),
            answered: 1_095,
            replies_lost: Some(0),
            ..CommandLedger::default()
        };
        let words = |commands: &CommandLedger, lost| {
            let messages = ReceptionLedger {
                expected: Some(300),
                lost,
                ..ReceptionLedger::default()
            };
            not_received(Some(commands), Some(&messages), [false; 3])
        };
        let first = "5 of 1,100 delivered commands were not received";
        assert_eq!(words(&commands, None).as_deref(), Some(first));
        commands.replies_lost = Some(1);
        let all = format!(
            "{first}; 1 of 1,095 replies are lost; 2 of 300 messages for subscribers are lost"
        );
        assert_eq!(words(&commands, Some(2)), Some(all));
        commands.delivered_not_received = Some(0);
        commands.replies_lost = None;
        assert_eq!(words(&commands, Some(0)), None);
        assert_eq!(not_received(None, None, [false; 3]), None);
        commands.delivered_not_received = Some(5);
        let looked = not_received(Some(&commands), None, [true, false, false]);
        assert_eq!(looked, None, "a rule looked at it");
    }
}
