//! The service levels of commands.

use muster_judge::{
    Figure, Incident, IncidentKind, RuleOutcome, RunResult, Share, SloBound, Unevaluated, Verdict,
    WarningKind,
};
use muster_measure::{CommandSummary, QueriesDue};
use muster_model::Micros;

use crate::run::{Run, rule};

const RULE: &str = "queries-with-command";

/// A run that names the rule, with so many queries by their end, and so many that were never sent.
fn judged(run: &Run, ends: [u64; 6], shed: u64) -> Verdict {
    let mut summary = run.summary();
    let mut command = CommandSummary {
        queries: QueriesDue { ends, shed },
        ..CommandSummary::default()
    };
    command.ledger.queries = ends.iter().sum();
    command.ledger.no_command = ends[1];
    command.ledger.issued = ends[0];
    summary.streams[0].command = Some(command.clone());
    summary.run.command = Some(command);
    run.judged_by(&summary)
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
    let told = "980 of 1,000 queries due had a command: none came 10, rejected 2, timed out 3, \
                broken 1, in flight 4";
    assert_eq!(found.evidence, told);
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
    let told = "980 of 1,001 queries due had a command: shed 21";
    assert_eq!(rule(&verdict, RULE).evidence, told);
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
    run.health.incidents.push(Incident {
        kind: IncidentKind::ConsumerAway,
        from: Micros::from_secs(5),
        until: Micros::from_secs(6),
        count: 1,
        detail: "consumer 0".to_owned(),
    });
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
