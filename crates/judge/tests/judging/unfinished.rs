//! Runs that are read before their end, or were killed.

use muster_judge::{
    Consequence, Ending, Latency, Percentile, Reason, RuleKind, RuleOutcome, RunResult, SloBound,
    Unevaluated,
};
use muster_model::{Micros, Outcome};

use crate::run::{Run, rule};

/// A run that is cut at 8.4 s, with messages that have not ended.
fn cut(is_running: bool) -> Run {
    let p99 = SloBound::Latency {
        of: Latency::Response,
        percentile: Percentile::P99,
        at_most: Micros::from_millis(50),
    };
    let mut run = Run::healthy(100, 10).names(&[p99]);
    run.ending = Ending::Unfinished {
        is_running,
        at: Micros::from_millis(8_400),
    };
    run.residue = None;
    for message in run.messages.iter_mut().rev().take(150) {
        message.held += 5_000_000;
        message.ends(Outcome::InFlight);
    }
    run
}

#[test]
fn a_run_without_an_end_is_judged_by_nothing_that_is_not_known() {
    for (is_running, why, reason) in [
        (
            true,
            "the run has not ended",
            "running, 0:08 so far; judged at its end",
        ),
        (
            false,
            "not measured: the run stopped first",
            "interrupted at 0:08: the run was killed",
        ),
    ] {
        let verdict = cut(is_running).judged();
        assert_eq!(verdict.result, RunResult::Invalid);
        assert_eq!(verdict.would_be, None);
        assert!(verdict.warnings.is_empty(), "{:?}", verdict.warnings);
        assert_eq!(rule(&verdict, "uninterrupted").evidence, reason);
        let known = ["uninterrupted", "connected"];
        for rule in verdict
            .rules
            .iter()
            .filter(|it| !known.contains(&it.rule.as_str()))
        {
            assert!(
                matches!(rule.outcome, RuleOutcome::NotEvaluated(_)),
                "{rule:?}"
            );
            assert_eq!(rule.evidence, why, "{rule:?}");
            assert_eq!((rule.observed, rule.lower), (None, None), "{rule:?}");
        }
        assert!(
            verdict
                .rules
                .iter()
                .any(|rule| rule.kind == RuleKind::Drain)
        );
    }
}

#[test]
fn a_killed_run_says_that_it_was_killed_and_a_running_one_needs_no_remedy() {
    let killed = cut(false).judged();
    let uninterrupted = rule(&killed, "uninterrupted");
    assert_eq!(uninterrupted.reason, Some(Reason::Killed));
    let of_rules = killed.rules.iter().filter_map(|rule| rule.reason);
    assert!(of_rules.into_iter().all(|reason| reason == Reason::Killed));

    let running = cut(true).judged();
    let consequence = rule(&running, "uninterrupted").consequence;
    assert_eq!(consequence, Consequence::Invalidates);
    for rule in &running.rules {
        assert_eq!(rule.reason, None, "{rule:?}");
    }
}

#[test]
fn a_run_without_an_end_shows_no_time_at_all() {
    let mut run = cut(true);
    (run.residue, run.messages) = (Some(0), Run::healthy(100, 10).messages);
    let verdict = run.judged();
    let response = rule(&verdict, "response p99");
    assert_eq!((response.observed, response.lower), (None, None));
}

#[test]
fn a_run_that_the_user_stopped_while_connecting_was_not_killed() {
    let mut run = Run::healthy(100, 10);
    run.ending = Ending::Interrupted;
    run.residue = None;
    run.messages.clear();
    let mut summary = run.summary();
    summary.timeline.origin = Micros::MAX;
    let verdict = run.judged_by(&summary);
    assert_eq!(verdict.result, RunResult::Invalid);
    let residue = rule(&verdict, "residue");
    let outcome = RuleOutcome::NotEvaluated(Unevaluated::NothingDue);
    assert_eq!(residue.outcome, outcome);
    for rule in verdict.rules.iter().filter(|rule| rule.reason.is_some()) {
        assert_eq!(rule.reason, Some(Reason::Interrupted), "{rule:?}");
    }
}

#[test]
fn a_run_that_the_user_stopped_says_when() {
    let mut run = Run::healthy(100, 10);
    run.ending = Ending::Interrupted;
    let verdict = run.judged();
    assert_eq!(
        rule(&verdict, "uninterrupted").evidence,
        "interrupted at 0:14"
    );
}
