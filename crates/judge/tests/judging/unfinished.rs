//! Runs that are read before their end, or were killed.

use muster_judge::{Ending, RuleKind, RuleOutcome, RunResult};
use muster_model::{Micros, Outcome};

use crate::run::{Run, rule};

/// A run that is cut at 8.4 s, with messages that have not ended.
fn cut(is_running: bool) -> Run {
    let mut run = Run::healthy(100, 10);
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
            "the run ended before this could be known",
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
            assert_eq!(rule.observed, None, "{rule:?}");
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
fn a_run_that_the_user_stopped_says_when() {
    let mut run = Run::healthy(100, 10);
    run.ending = Ending::Interrupted;
    let verdict = run.judged();
    assert_eq!(
        rule(&verdict, "uninterrupted").evidence,
        "interrupted at 0:14"
    );
}
