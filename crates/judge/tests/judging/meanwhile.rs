//! Losses of the time in which a consumer of ours did not listen.

use muster_judge::{Incident, IncidentKind, RuleOutcome, RunResult, Warning, WarningKind};
use muster_model::Micros;

use crate::run::{Run, failed, rule};

/// Eleven lost, ten of them due within a second in which a consumer was away.
fn run(kind: IncidentKind) -> Run {
    let mut run = Run::healthy(100, 10);
    run.messages[0].seen = None;
    run.messages
        .iter_mut()
        .skip(600)
        .take(10)
        .for_each(|message| message.seen = None);
    run.health.incidents.push(Incident {
        kind,
        from: Micros::from_millis(7_900),
        until: Micros::from_millis(8_200),
        count: 1,
        detail: "consumer 0: the connection was closed".to_owned(),
    });
    run
}

#[test]
fn what_was_lost_while_the_platform_had_ended_our_consumer_counts_and_is_named_apart() {
    let verdict = run(IncidentKind::ConsumerLost).judged();
    assert_eq!(
        (verdict.result, failed(&verdict)),
        (RunResult::Fail, vec!["loss"])
    );
    let loss = rule(&verdict, "loss");
    assert_eq!(
        loss.evidence,
        "11 of 1,200 (0.92 %) at backend app; 10 of them due while the platform had ended the \
         session of our consumer"
    );
    let warning = &verdict.warnings[0];
    assert_eq!(warning.kind, WarningKind::LostMeanwhile);
    assert_eq!(
        warning.detail,
        "10 of the 11 lost at backend app were due while the platform had ended the session of our \
         consumer, which counts"
    );
}

#[test]
fn what_was_lost_while_our_consumer_was_away_by_our_fault_is_named_beside_the_loss() {
    let verdict = run(IncidentKind::ConsumerAway).judged();
    let loss = &rule(&verdict, "loss").outcome;
    assert!(matches!(loss, RuleOutcome::NotEvaluated(_)), "{loss:?}");
    let detail = &verdict.warnings[0].detail;
    assert!(
        detail.starts_with("10 of the 11 lost at backend app were due while our consumer was away"),
        "{detail}"
    );
}

#[test]
fn what_others_did_to_topics_is_named_beside_the_loss() {
    let mut run = run(IncidentKind::ConsumerLost);
    run.health.incidents.clear();
    let detail = "topic `readings` was deleted at 31 s".to_owned();
    run.found.push(Warning {
        kind: WarningKind::TopicsChanged,
        scope: "run".to_owned(),
        detail: detail.clone(),
    });
    let verdict = run.judged();
    let loss = rule(&verdict, "loss");
    let words = format!("11 of 1,200 (0.92 %) at backend app; {detail}");
    assert_eq!(loss.evidence, words);
    assert_eq!(verdict.warnings[0].detail, detail);
    let mut whole = Run::healthy(100, 10);
    whole.found = run.found;
    let verdict = whole.judged();
    assert!(!rule(&verdict, "loss").evidence.contains("topic"));
}
