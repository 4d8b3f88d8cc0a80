//! Completion at QoS 2, refusals that nobody waits for, and acknowledgements of nothing.

use muster_judge::{
    Ending, Figure, RuleName, RuleOutcome, Rules, RunResult, Scope, Share, SloBound, Unevaluated,
    Verdict,
};
use muster_measure::{Phase, Summary};

use crate::run::{MEASURE, Run, failed, rule};

/// A verdict on a run of which the figures are changed.
fn judged(run: &Run, change: impl FnOnce(&mut Summary)) -> Verdict {
    let mut summary = run.summary();
    change(&mut summary);
    run.judged_by(&summary)
}

fn incomplete(summary: &mut Summary, incomplete: u64) {
    let uplink = &mut summary.run.uplink;
    (uplink.session.incomplete, uplink.session.completed) = (incomplete, 1_200 - incomplete);
}

#[test]
fn what_is_accepted_at_qos_2_and_never_completed_fails_the_run() {
    let run = Run::healthy(100, 10);
    let verdict = judged(&run, |summary| incomplete(summary, 1_200));
    assert_eq!(
        (verdict.result, failed(&verdict)),
        (RunResult::Fail, vec!["incomplete"])
    );
    let completed = rule(&verdict, "incomplete");
    assert_eq!(completed.observed, Some(Figure::Fraction(1.0)));
    assert_eq!(
        completed.evidence,
        "1,200 of 1,200 accepted by PUBREC, no PUBCOMP"
    );
}

#[test]
fn completion_is_judged_by_the_bound_of_the_failure_ratio() {
    let allowed = SloBound::FailureRatio(Share::whole_percent(1));
    let run = Run::healthy(100, 10).names(&[allowed]);
    let outcome = |missing| {
        let verdict = judged(&run, |summary| incomplete(summary, missing));
        rule(&verdict, "incomplete").outcome.clone()
    };
    assert_eq!(outcome(0), RuleOutcome::Pass);
    assert_eq!(outcome(12), RuleOutcome::Pass);
    assert_eq!(outcome(13), RuleOutcome::Fail);
}

#[test]
fn a_pass_says_what_was_never_completed_where_no_rule_looks_at_it() {
    let mut run = Run::healthy(100, 10);
    run.rules = Rules::builder(true)
        .any(Scope::Run, RuleName::FailureRatio)
        .build();
    let warnings = |missing| {
        let verdict = judged(&run, |summary| {
            incomplete(summary, missing);
            summary.streams[0].uplink = summary.run.uplink.clone();
        });
        assert_eq!(verdict.result, RunResult::Pass);
        let warnings = verdict.warnings.into_iter();
        warnings.map(|one| one.detail).collect::<Vec<_>>()
    };
    let words = "100 % of what the platform accepted by PUBREC was never completed: \
                no PUBCOMP for 1,200 of 1,200";
    assert_eq!(warnings(1_200), [words]);
    assert!(warnings(11).is_empty(), "less than one per cent");
}

#[test]
fn nothing_is_to_be_completed_below_qos_2_or_in_a_run_that_did_not_wait() {
    let verdict = Run::healthy(100, 10).judged();
    assert!(verdict.rules.iter().all(|rule| rule.rule != "incomplete"));
    let mut run = Run::healthy(100, 10);
    run.ending = Ending::Interrupted;
    let verdict = judged(&run, |summary| incomplete(summary, 3));
    let outcome = &rule(&verdict, "incomplete").outcome;
    assert_eq!(*outcome, RuleOutcome::NotEvaluated(Unevaluated::CutShort));
    let verdict = judged(&run, |summary| incomplete(summary, 0));
    assert_eq!(rule(&verdict, "incomplete").outcome, RuleOutcome::Pass);
}

#[test]
fn a_refusal_that_nobody_waits_for_is_a_failure() {
    let verdict = judged(&Run::healthy(100, 10), |summary| {
        let measured = &mut summary.run.measured;
        measured.refused_unawaited = 150;
        let by_code = &mut measured.refused_unawaited_by_code;
        by_code.insert("4.03".to_owned(), 150);
        *measured = measured.clone().with_failed();
        let rows = summary.run.series.iter_mut().rev();
        let mut measured = rows.filter(|row| row.phase == Phase::Measure);
        let last = measured.next().expect("the run was measured");
        last.refused_unawaited_due = 150;
    });
    assert_eq!(failed(&verdict), ["failure-ratio"]);
    let since = rule(&verdict, "failure-ratio").since_s;
    assert_eq!(since, Some(MEASURE as u32 + 9));
    assert_eq!(
        rule(&verdict, "failure-ratio").evidence,
        "150 of 1,000 (15 %): refused unawaited 150 (4.03)"
    );
}

#[test]
fn a_refusal_of_who_sent_it_names_the_credential_though_nobody_waits_for_it() {
    let verdict = judged(&Run::healthy(100, 10), |summary| {
        let uplink = &mut summary.fleets[0].uplink;
        uplink.refused_unawaited = 150;
        let codes = &mut uplink.refused_unawaited_by_code;
        codes.extend([("4.01".to_owned(), 120), ("4.03".to_owned(), 30)]);
    });
    let [cause] = verdict.causes.as_slice() else {
        panic!("{:?}", verdict.causes);
    };
    assert_eq!((cause.count, cause.cause.as_str()), (120, "4.01"));
    assert_eq!(cause.see, "fleet.meters.credential");
}

#[test]
fn acknowledgements_of_nothing_are_warned_of_by_cause() {
    let verdict = judged(&Run::healthy(100, 10), |summary| {
        summary.run.links.counters.mqtt_again = 150.into();
        summary.run.links.counters.mqtt_unknown = 2.into();
    });
    assert_eq!(verdict.result, RunResult::Pass);
    let said: Vec<&str> = verdict
        .warnings
        .iter()
        .map(|it| it.detail.as_str())
        .collect();
    assert_eq!(
        said,
        [
            "152 acknowledgements that no message waited for (for an id answered before 150, for an \
             id never used 2): the platform acknowledges what was not sent"
        ]
    );
}
