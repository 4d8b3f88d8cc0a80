//! The service levels of commands.

use std::collections::BTreeMap;

use muster_judge::{
    Allowance, Ending, Figure, Incident, IncidentKind, Latency, Percentile, RuleOutcome, RunResult,
    Share, SloBound, Unevaluated, Verdict, WarningKind,
};
use muster_measure::{CommandSummary, CommandTimes, LegSummary, QueriesDue};
use muster_model::Micros;

use crate::run::{Run, rule};

const RULE: &str = "queries-with-command";

/// A run that names the rule, with so many queries by their end, and so many that were never sent.
fn judged(run: &Run, ends: [u64; 6], shed: u64) -> Verdict {
    let mut summary = run.summary();
    let mut command = CommandSummary {
        measured: CommandTimes {
            queries: QueriesDue { ends, shed },
            ..CommandTimes::default()
        },
        ..CommandSummary::default()
    };
    command.ledger.queries = ends.iter().sum();
    command.ledger.no_command = ends[1];
    command.ledger.issued = ends[0];
    summary.streams[0].command = Some(command.clone());
    summary.run.command = Some(command);
    run.judged_by(&summary)
}

fn consumer_away() -> Incident {
    Incident {
        kind: IncidentKind::ConsumerAway,
        from: Micros::from_secs(5),
        until: Micros::from_secs(6),
        count: 1,
        detail: "consumer 0".to_owned(),
    }
}

fn wants(percent: u32) -> Run {
    Run::healthy(100, 10).names(&[SloBound::QueriesWithCommand(Share::whole_percent(percent))])
}

#[test]
fn the_share_is_of_all_queries_that_were_due() {
    let found = judged(&wants(98), [980, 10, 2, 3, 1, 4], 0);
    let found = rule(&found, RULE);
    assert_eq!(found.outcome, RuleOutcome::Pass);
    assert_eq!(found.observed, Some(Figure::Fraction(0.98)));
    let words = "980 of 1,000 queries due had a command: none came 10, rejected 2, timed out 3, \
                broken 1, in flight 4";
    assert_eq!(found.evidence, words);
    for end in 1..6 {
        let mut ends = [980, 0, 0, 0, 0, 0];
        ends[end] = 21;
        let verdict = judged(&wants(98), ends, 0);
        assert_eq!(verdict.result, RunResult::Fail, "end {end}");
    }
}

#[test]
fn a_query_that_was_never_sent_had_no_command() {
    let verdict = judged(&wants(98), [980, 0, 0, 0, 0, 0], 20);
    assert_eq!(verdict.result, RunResult::Pass);
    let verdict = judged(&wants(98), [980, 0, 0, 0, 0, 0], 21);
    assert_eq!(verdict.result, RunResult::Fail);
    let words = "980 of 1,001 queries due had a command: shed 21";
    assert_eq!(rule(&verdict, RULE).evidence, words);
}

/// An interrupt while the run settles ends the wait for what is open; what had ended badly stays.
#[test]
fn queries_that_were_open_when_settling_was_interrupted_fail_no_rule() {
    let cut = RuleOutcome::NotEvaluated(Unevaluated::CutShort);
    let mut run = wants(98);
    run.ending = Ending::SettlingInterrupted { stop: None };
    for (ends, expected) in [
        ([979, 0, 0, 0, 0, 21], cut),
        ([970, 0, 0, 21, 0, 9], RuleOutcome::Fail),
        ([980, 0, 0, 0, 0, 20], RuleOutcome::Pass),
    ] {
        assert_eq!(
            rule(&judged(&run, ends, 0), RULE).outcome,
            expected,
            "{ends:?}"
        );
    }
}

#[test]
fn where_no_query_was_due_nobody_knows() {
    for verdict in [judged(&wants(98), [0; 6], 0), wants(98).judged()] {
        let outcome = &rule(&verdict, RULE).outcome;
        assert_eq!(*outcome, RuleOutcome::NotEvaluated(Unevaluated::NothingDue));
    }
}

#[test]
fn a_killed_run_does_not_know_how_many_queries_were_due() {
    let mut run = wants(98);
    run.residue = None;
    let verdict = judged(&run, [980, 0, 0, 0, 0, 0], 0);
    let outcome = &rule(&verdict, RULE).outcome;
    assert_eq!(*outcome, RuleOutcome::NotEvaluated(Unevaluated::Unknown));
}

#[test]
fn queries_are_not_judged_where_our_own_consumer_was_away() {
    let mut run = wants(98);
    run.health.incidents.push(consumer_away());
    let verdict = judged(&run, [0, 980, 0, 0, 0, 0], 0);
    assert_eq!(
        rule(&verdict, RULE).outcome,
        RuleOutcome::NotEvaluated(Unevaluated::ConsumerDisturbed)
    );
    assert_eq!(verdict.result, RunResult::Invalid);
}

#[test]
fn queries_without_a_command_are_a_warning_unless_a_rule_looked() {
    let kinds = |run: &Run| {
        let warnings = judged(run, [900, 100, 0, 0, 0, 0], 0).warnings;
        warnings.into_iter().map(|one| one.kind).collect::<Vec<_>>()
    };
    assert_eq!(kinds(&Run::healthy(100, 10)), [WarningKind::NoCommand]);
    assert_eq!(kinds(&wants(90)), []);
}

/// Bound on the loop of 1,000 commands, as in the rule below.
const BOUND: Micros = Micros::from_millis(100);

/// A run of which rules look at the loop, and at what was lost of commands and of replies: of 1,000 commands one
/// was not received and 40 replies never came.
fn replies_lost(run: Run) -> Verdict {
    let lost = Allowance::Count(0);
    let run = run.names(&[
        SloBound::RepliesLost(lost),
        SloBound::NotReceived(lost),
        SloBound::Latency {
            of: Latency::CommandLoop,
            percentile: Percentile::P99,
            at_most: BOUND,
        },
        SloBound::Latency {
            of: Latency::CommandResponse,
            percentile: Percentile::P99,
            at_most: BOUND,
        },
    ]);
    run.judged_by(&with_replies_lost(&run))
}

fn with_replies_lost(run: &Run) -> muster_measure::Summary {
    let leg = |ended| LegSummary {
        begun: 1_000,
        ended,
        above: BTreeMap::from([(BOUND, 0)]),
        ..LegSummary::default()
    };
    let mut command = CommandSummary {
        legs: [leg(1_000), leg(1_000), leg(960)],
        ..CommandSummary::default()
    };
    let ledger = &mut command.ledger;
    (ledger.issued, ledger.delivered, ledger.received) = (1_001, 1_001, 1_000);
    ledger.delivered_not_received = Some(1);
    (ledger.answered, ledger.replies_lost) = (1_000, Some(40));
    let mut summary = run.summary();
    summary.streams[0].command = Some(command.clone());
    summary.run.command = Some(command);
    summary
}

#[test]
fn what_ends_at_our_own_consumer_is_not_judged_where_it_was_away() {
    let failed = |run: Run| {
        let rules = replies_lost(run).rules.into_iter();
        let failed = rules.filter(|rule| rule.outcome == RuleOutcome::Fail);
        failed.map(|rule| rule.rule).collect::<Vec<_>>()
    };
    let healthy = || Run::healthy(100, 10);
    let all = ["replies-lost", "commands-not-received", "command-loop p99"];
    assert_eq!(failed(healthy()), all);
    let mut away = healthy();
    away.health.incidents.push(consumer_away());
    let verdict = replies_lost(away);
    for name in ["replies-lost", "command-loop p99"] {
        let outcome = &rule(&verdict, name).outcome;
        let reason = Unevaluated::ConsumerDisturbed;
        assert_eq!(*outcome, RuleOutcome::NotEvaluated(reason), "{name}");
    }
    let words = "our own consumer was away: 40 of 1,000 replies lost, whenever they were sent";
    assert_eq!(rule(&verdict, "replies-lost").evidence, words);
    let of_devices = &rule(&verdict, "commands-not-received").outcome;
    assert_eq!(*of_devices, RuleOutcome::Fail, "devices tell of it");
    let of_devices = &rule(&verdict, "command-response p99").outcome;
    assert_eq!(*of_devices, RuleOutcome::Pass, "devices tell of it");
    assert_eq!(verdict.result, RunResult::Invalid);
}

/// Of commands and replies that were open when settling was interrupted nobody knows the end.
#[test]
fn legs_and_commands_that_settling_left_open_fail_no_rule() {
    let mut run = Run::healthy(100, 10).names(&[
        SloBound::RepliesLost(Allowance::Count(0)),
        SloBound::NotReceived(Allowance::Count(0)),
        SloBound::Latency {
            of: Latency::CommandLoop,
            percentile: Percentile::P99,
            at_most: BOUND,
        },
    ]);
    run.ending = Ending::SettlingInterrupted { stop: None };
    let outcome = |outstanding, name: &str| {
        let mut summary = with_replies_lost(&run);
        let command = summary.run.command.as_mut().expect("there are commands");
        command.ledger.replies_outstanding = Some(outstanding);
        rule(&run.judged_by(&summary), name).outcome.clone()
    };
    let cut = RuleOutcome::NotEvaluated(Unevaluated::CutShort);
    assert_eq!(outcome(40, "command-loop p99"), cut);
    assert_eq!(outcome(20, "command-loop p99"), RuleOutcome::Fail);
    assert_eq!(outcome(40, "commands-not-received"), cut);
    assert_eq!(
        outcome(40, "replies-lost"),
        RuleOutcome::Fail,
        "these are known"
    );
}

#[test]
fn replies_that_are_lost_are_no_warning_where_our_own_consumer_was_away() {
    let words = |run: &Run| {
        let warnings = run.judged_by(&with_replies_lost(run)).warnings.into_iter();
        let mut found = warnings.filter(|one| one.kind == WarningKind::NotReceived);
        found.next().map(|one| one.detail)
    };
    let mut run = Run::healthy(100, 10);
    let commands = "1 of 1,001 delivered commands were not received";
    let both = format!("{commands}; 40 of 1,000 replies are lost");
    assert_eq!(words(&run), Some(both));
    run.health.incidents.push(consumer_away());
    assert_eq!(words(&run).as_deref(), Some(commands));
}
