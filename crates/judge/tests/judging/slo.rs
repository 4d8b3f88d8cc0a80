//! The service levels.

use std::collections::BTreeMap;

use muster_judge::{
    Allowance, Figure, Incident, IncidentKind, Latency, Percentile, RuleOutcome, Rules, RunResult,
    Scope, Share, SloBound, Unevaluated, WarningKind,
};
use muster_measure::Summary;
use muster_model::{FleetId, Listening, Micros, Outcome, Reason, ShedCause, StreamId};

use crate::run::{MEASURE, Message, Run, failed, rule};

const REFUSED: Outcome = Outcome::Rejected(Reason::Mqtt(0x97));

fn p99(of: Latency, at_most_ms: u64) -> SloBound {
    SloBound::Latency {
        of,
        percentile: Percentile::P99,
        at_most: Micros::from_millis(at_most_ms),
    }
}

#[test]
fn a_healthy_run_passes_every_default_rule() {
    let verdict = Run::healthy(100, 40).judged();
    assert_eq!(verdict.result, RunResult::Pass, "{verdict:#?}");
    assert_eq!(verdict.would_be, None);
    for name in [
        "loss",
        "failure-ratio",
        "connected",
        "drain",
        "stable",
        "residue",
    ] {
        assert_eq!(rule(&verdict, name).outcome, RuleOutcome::Pass, "{name}");
    }
}

#[test]
fn one_lost_message_of_the_warm_up_fails_the_run() {
    let mut run = Run::healthy(100, 10);
    run.messages[0].seen = None;
    let verdict = run.judged();
    assert_eq!(
        (verdict.result, failed(&verdict)),
        (RunResult::Fail, vec!["loss"])
    );
    let loss = rule(&verdict, "loss");
    assert_eq!(loss.observed, Some(Figure::Count(1)));
    assert_eq!(loss.since_s, Some(2));
    assert_eq!(loss.evidence, "1 of 1,200 (0.083 %) at backend app");
}

#[test]
fn loss_counts_what_has_no_answer_by_design_too() {
    let mut run = Run::healthy(100, 10);
    run.messages[5].ends(Outcome::Unacknowledged);
    assert_eq!(failed(&run.judged()), ["loss"]);
}

#[test]
fn what_the_platform_refused_or_never_answered_is_not_lost() {
    let mut run = Run::healthy(100, 10);
    run.messages[5].ends(REFUSED);
    run.messages[6].ends(Outcome::TimedOut);
    assert_eq!(rule(&run.judged(), "loss").outcome, RuleOutcome::Pass);
}

#[test]
fn a_target_that_refuses_everything_fails_and_is_not_excused_by_having_lost_nothing() {
    for how in [REFUSED, Outcome::Shed(ShedCause::Offline)] {
        let no_loss = SloBound::Loss(Allowance::Count(0));
        let no_failure = SloBound::FailureRatio(Share::whole_percent(0));
        let mut run = Run::healthy(100, 10).names(&[no_loss, no_failure]);
        for message in &mut run.messages {
            message.ends(how);
            message.seen = None;
        }
        let verdict = run.judged();
        assert_eq!(verdict.result, RunResult::Fail, "{how:?}: {verdict:#?}");
        let loss = rule(&verdict, "loss");
        assert_eq!(loss.outcome, RuleOutcome::Pass);
        assert_eq!(
            loss.evidence,
            "none of 1,200 due was accepted, so none was lost"
        );
    }
}

#[test]
fn a_loss_ratio_allows_its_share_exactly() {
    let allowed = SloBound::Loss(Allowance::Ratio(Share::whole_percent(1)));
    let mut run = Run::healthy(100, 10).names(&[allowed]);
    run.messages
        .iter_mut()
        .take(12)
        .for_each(|message| message.seen = None);
    assert_eq!(rule(&run.judged(), "loss").outcome, RuleOutcome::Pass);
    run.messages[12].seen = None;
    assert_eq!(rule(&run.judged(), "loss").outcome, RuleOutcome::Fail);
}

#[test]
fn zero_observed_prints_its_bound() {
    let verdict = Run::healthy(1_050, 48).judged();
    let told = &rule(&verdict, "loss").evidence;
    assert_eq!(told, "0 of 52,500: at most 0.006 % at 95 % at backend app");
}

#[test]
fn what_is_outstanding_fails_drain_and_is_never_called_loss() {
    let mut run = Run::healthy(100, 10);
    for message in run.messages.iter_mut().rev().take(100) {
        message.seen = None;
        message.outstanding = true;
    }
    let verdict = run.judged();
    assert_eq!(failed(&verdict), ["drain"]);
    assert_eq!(verdict.result, RunResult::Fail);
    let drain = rule(&verdict, "drain");
    assert_eq!(drain.observed, Some(Figure::Count(100)));
    assert_eq!(
        drain.evidence,
        "backend app still delivering 50/s, 2.0 s behind"
    );
}

#[test]
fn drain_says_where_a_consumer_was_away_while_settling() {
    let mut run = Run::healthy(100, 10);
    run.messages[0].seen = None;
    run.messages[0].outstanding = true;
    let told = |run: &Run| rule(&run.judged(), "drain").evidence.clone();
    let first = "backend app still delivering 50/s, 0.0 s behind";
    assert_eq!(told(&run), first);
    run.listening = Listening::deaf(run.end());
    let gone = format!("{first}; a consumer was away when settling ended");
    assert_eq!(told(&run), gone);
    (run.listening.since, run.listening.until) = (Micros::from_secs(20), run.end());
    assert_eq!(
        told(&run),
        format!("{first}; a consumer was away until 20 s")
    );
    run.listening.since = Micros::from_secs(13);
    assert_eq!(told(&run), first, "settling began at 14 s");
    run.messages[0].outstanding = false;
    run.messages[0].seen = Some(run.messages[0].ended);
    run.listening = Listening::deaf(run.end());
    assert!(
        told(&run).starts_with("everything due had come"),
        "nothing was missed"
    );
}

#[test]
fn failure_ratio_counts_every_failure_of_the_target_and_none_of_ours() {
    let failures = [
        (REFUSED, 1),
        (Outcome::TimedOut, 1),
        (Outcome::Broken(muster_model::Cause::Reset), 1),
        (Outcome::InFlight, 1),
        (Outcome::Shed(ShedCause::QueueFull), 1),
        (Outcome::Shed(ShedCause::Offline), 1),
        (Outcome::Shed(ShedCause::GeneratorLate), 0),
        (Outcome::Unacknowledged, 0),
    ];
    for (outcome, counts) in failures {
        let one_of_a_thousand = SloBound::FailureRatio(Share::percent(0.0).unwrap());
        let mut run = Run::healthy(100, 10).names(&[one_of_a_thousand]);
        run.measured().nth(500).unwrap().ends(outcome);
        let verdict = run.judged();
        let ratio = rule(&verdict, "failure-ratio");
        assert_eq!(
            ratio.observed,
            Some(Figure::Fraction(f64::from(counts) / 1_000.0))
        );
        assert_eq!(
            ratio.since_s,
            (counts > 0).then_some(MEASURE as u32 + 5),
            "{outcome:?}"
        );
    }
}

#[test]
fn failures_of_the_warm_up_are_not_judged() {
    let mut run = Run::healthy(100, 10);
    run.messages[0].ends(REFUSED);
    assert_eq!(run.judged().result, RunResult::Pass);
}

#[test]
fn a_percentile_is_decided_by_an_exact_counter() {
    let ends = |us: u64| move |m: &mut Message| m.ended = m.due + us;
    let never = |m: &mut Message| m.ends(Outcome::TimedOut);
    check_p99(10, ends(50_001), true);
    check_p99(11, ends(50_001), false);
    check_p99(11, ends(50_000), true);
    check_p99(11, never, false);
}

/// Changes so many of 1,000 messages and judges `response p99 <= 50 ms`.
fn check_p99(count: usize, change: impl Fn(&mut Message), holds: bool) {
    let mut run = Run::healthy(100, 10).names(&[p99(Latency::Response, 50)]);
    run.measured().take(count).for_each(change);
    let expected = if holds {
        RuleOutcome::Pass
    } else {
        RuleOutcome::Fail
    };
    assert_eq!(
        rule(&run.judged(), "response p99").outcome,
        expected,
        "{count} changed"
    );
}

#[test]
fn what_was_never_sent_counts_as_above_the_response_bound() {
    let mut run = Run::healthy(100, 10).names(&[p99(Latency::Response, 50)]);
    run.measured()
        .take(11)
        .for_each(|m| m.ends(Outcome::Shed(ShedCause::QueueFull)));
    let verdict = run.judged();
    let response = rule(&verdict, "response p99");
    assert_eq!(response.outcome, RuleOutcome::Fail);
    assert_eq!(
        response.evidence,
        "0 above and 11 without an end, of 1,000 (10 allowed)"
    );
}

#[test]
fn end_to_end_leaves_out_what_was_rejected_and_did_not_arrive() {
    let mut run = Run::healthy(100, 11).names(&[p99(Latency::EndToEnd, 50)]);
    run.measured().take(100).for_each(|m| m.ends(REFUSED));
    assert_eq!(
        rule(&run.judged(), "end-to-end p99").outcome,
        RuleOutcome::Pass
    );
    run.measured()
        .skip(100)
        .take(11)
        .for_each(|m| m.seen = None);
    let verdict = run.judged();
    let rule = rule(&verdict, "end-to-end p99");
    assert_eq!(rule.outcome, RuleOutcome::Fail);
    assert_eq!(
        rule.evidence,
        "0 above and 11 without an end, of 1,000 (10 allowed) at backend app"
    );
}

#[test]
fn end_to_end_is_not_judged_by_the_clocks_of_two_hosts() {
    let run = Run::healthy(100, 10).names(&[p99(Latency::EndToEnd, 50)]);
    let summary = Summary {
        has_one_clock: false,
        ..run.summary()
    };
    let verdict = run.judged_by(&summary);
    let outcome = RuleOutcome::NotEvaluated(Unevaluated::ClocksApart);
    assert_eq!(rule(&verdict, "end-to-end p99").outcome, outcome);
    assert_eq!(verdict.result, RunResult::Invalid);
}

#[test]
fn end_to_end_is_not_judged_where_it_is_not_known_which_message_came() {
    let run = Run::healthy(100, 10).names(&[p99(Latency::EndToEnd, 50)]);
    let mut summary = run.summary();
    summary.run.unsure_by_order = 25;
    summary.streams[0].unsure_by_order = 25;
    let verdict = run.judged_by(&summary);
    let outcome = RuleOutcome::NotEvaluated(Unevaluated::OrderUnsure);
    assert_eq!(rule(&verdict, "end-to-end p99").outcome, outcome);
    assert_eq!(verdict.result, RunResult::Invalid);
    let [warning] = &verdict.warnings[..] else {
        panic!("{:?}", verdict.warnings)
    };
    assert_eq!(warning.kind, WarningKind::OrderUnsure);
    assert!(
        warning
            .detail
            .starts_with("which messages 25 copies are of is not known")
    );
}

#[test]
fn a_target_that_rejects_so_many_that_the_rest_is_too_few_fails_end_to_end() {
    let reject = |rate: u64, left: usize| {
        let mut run = Run::healthy(rate, 10).names(&[p99(Latency::EndToEnd, 50)]);
        run.measured().skip(left).for_each(|m| m.ends(REFUSED));
        run.judged()
    };
    for left in [0, 999] {
        let verdict = reject(100, left);
        let rule = rule(&verdict, "end-to-end p99");
        let (outcome, result) = (RuleOutcome::Fail, RunResult::Fail);
        assert_eq!((&rule.outcome, verdict.result), (&outcome, result));
        assert_eq!(
            (rule.observed, rule.since_s),
            (None, Some((MEASURE + left as u64 / 100) as u32))
        );
        let told = format!("too few were not rejected to judge: {left} of 1,000, needs 1,000");
        assert_eq!(rule.evidence, told);
    }
    // Where too few were due in the first place, the target is not to blame.
    let verdict = reject(99, 0);
    let reason = Unevaluated::TooFewMessages {
        have: 0,
        needed: 1_000,
    };
    let outcome = RuleOutcome::NotEvaluated(reason);
    assert_eq!(rule(&verdict, "end-to-end p99").outcome, outcome);
    assert_eq!(verdict.result, RunResult::Invalid);
}

#[test]
fn too_few_messages_are_told_with_the_number_needed() {
    let mut run = Run::healthy(99, 10).names(&[p99(Latency::Response, 50)]);
    run.measured().for_each(|m| m.ended = m.due + 60_000);
    let verdict = run.judged();
    let response = rule(&verdict, "response p99");
    let reason = Unevaluated::TooFewMessages {
        have: 990,
        needed: 1_000,
    };
    assert_eq!(response.outcome, RuleOutcome::NotEvaluated(reason));
    assert_eq!(response.evidence, "needs 1,000 messages, had 990");
    assert_eq!(verdict.result, RunResult::Invalid);
    assert_eq!(verdict.would_be, None);
}

#[test]
fn connected_and_disconnects_judge_the_links() {
    let bounds = [
        SloBound::Connected(Share::whole_percent(98)),
        disconnects(1),
    ];
    let mut run = Run::healthy(100, 10).names(&bounds);
    run.links.up_at_start = 98;
    run.links.disconnects_later = BTreeMap::from([("reset".to_owned(), 1)]);
    assert_eq!(failed(&run.judged()), [""; 0]);
    run.links.up_at_start = 97;
    run.links.disconnects_later = BTreeMap::from([("reset".to_owned(), 2)]);
    assert_eq!(failed(&run.judged()), ["connected", "disconnects"]);
}

#[test]
fn links_closed_on_purpose_are_no_disconnects() {
    let mut run = Run::healthy(100, 10).names(&[disconnects(0)]);
    let on_purpose = ("lifetime".to_owned(), 3);
    run.links.disconnects_later = BTreeMap::from([on_purpose]);
    assert_eq!(failed(&run.judged()), [""; 0]);
}

#[test]
fn what_happened_to_links_in_the_connect_phase_is_no_matter_of_disconnects() {
    let mut run = Run::healthy(100, 10).names(&[disconnects(1)]);
    for cause in ["lifetime", "reset"] {
        run.links.disconnects.insert(cause.to_owned(), 5);
    }
    assert_eq!(failed(&run.judged()), [""; 0]);
    run.links.disconnects_later = BTreeMap::from([("reset".to_owned(), 2)]);
    let verdict = run.judged();
    assert_eq!(failed(&verdict), ["disconnects"]);
    let evidence = &rule(&verdict, "disconnects").evidence;
    assert!(
        evidence.contains("reset 2") && !evidence.contains("lifetime"),
        "{evidence}"
    );
}

fn disconnects(most: u64) -> SloBound {
    SloBound::Disconnects(Allowance::Count(most))
}

#[test]
fn a_pass_close_to_its_bound_says_that_one_run_does_not_know_its_spread() {
    for (bound_ms, is_close) in [(11, true), (12, false)] {
        let run = Run::healthy(100, 10).names(&[p99(Latency::Response, bound_ms)]);
        let verdict = run.judged();
        let response = rule(&verdict, "response p99");
        assert_eq!(response.outcome, RuleOutcome::Pass);
        let note = is_close.then_some("one run; the spread between runs is unknown");
        assert_eq!(response.note.as_deref(), note, "{bound_ms} ms");
    }
    let verdict = Run::healthy(100, 10).judged();
    assert!(
        verdict.rules.iter().all(|rule| rule.note.is_none()),
        "zero bounds have no margin"
    );
}

#[test]
fn loss_while_our_own_consumer_was_away_is_split_off() {
    let mut run = Run::healthy(100, 10);
    run.messages[0].seen = None;
    run.messages
        .iter_mut()
        .skip(600)
        .take(10)
        .for_each(|message| message.seen = None);
    run.health.incidents.push(Incident {
        kind: IncidentKind::ConsumerAway,
        from: Micros::from_millis(7_900),
        until: Micros::from_millis(8_200),
        count: 1,
        detail: "consumer 0".to_owned(),
    });
    let verdict = run.judged();
    let loss = rule(&verdict, "loss");
    assert_eq!(
        loss.outcome,
        RuleOutcome::NotEvaluated(Unevaluated::ConsumerDisturbed)
    );
    let told = "our own consumer was away: 11 lost at backend app, 10 of them due then";
    assert_eq!(loss.evidence, told);
    assert_eq!(
        (verdict.result, failed(&verdict)),
        (RunResult::Invalid, vec!["own-consumer"])
    );
}

#[test]
fn defaults_stand_only_where_the_scenario_names_nothing() {
    let names = |rules: &Rules| rules.slos.iter().map(|slo| slo.named).collect::<Vec<_>>();
    assert_eq!(names(&Rules::builder(true).build()), [false; 3]);
    assert_eq!(names(&Rules::builder(false).build()), [false; 2]);
    let at_the_top = Rules::builder(true)
        .slo(Scope::Run, SloBound::Stable)
        .build();
    assert_eq!(names(&at_the_top), [true]);
    let stream = Scope::Stream {
        fleet: FleetId(0),
        id: StreamId(0),
        name: "meters/readings".to_owned(),
    };
    let below = Rules::builder(true)
        .slo(stream, SloBound::Loss(Allowance::Count(3)))
        .build();
    assert_eq!(
        names(&below),
        [false, false, true],
        "failure-ratio and connected stay"
    );
}

#[test]
fn a_rule_of_a_fleet_or_stream_is_judged_there() {
    let scopes = [
        Scope::Fleet {
            id: FleetId(0),
            name: "meters".to_owned(),
        },
        Scope::Stream {
            fleet: FleetId(0),
            id: StreamId(0),
            name: "meters/readings".to_owned(),
        },
    ];
    for scope in scopes {
        let mut run = Run::healthy(100, 10);
        run.rules = Rules::builder(true)
            .slo(scope.clone(), SloBound::Loss(Allowance::Count(0)))
            .slo(scope.clone(), p99(Latency::Response, 5))
            .build();
        run.messages[0].seen = None;
        let verdict = run.judged();
        assert_eq!(failed(&verdict), ["loss", "response p99"]);
        assert_eq!(rule(&verdict, "loss").scope, scope.to_string());
    }
}

#[test]
fn a_killed_run_does_not_claim_what_it_cannot_know() {
    let mut run = Run::healthy(100, 20).names(&[
        SloBound::Loss(Allowance::Count(0)),
        SloBound::FailureRatio(Share::ZERO),
        p99(Latency::Response, 50),
    ]);
    run.residue = None;
    let verdict = run.judged();
    for name in ["loss", "failure-ratio", "response p99", "drain"] {
        let expected = RuleOutcome::NotEvaluated(Unevaluated::Unknown);
        assert_eq!(rule(&verdict, name).outcome, expected, "{name}");
    }
    assert_eq!(
        (verdict.result, verdict.would_be),
        (RunResult::Invalid, None)
    );
}

#[test]
fn a_backend_without_a_name_of_its_own_is_just_the_backend() {
    let mut run = Run::healthy(100, 10);
    run.backend = "backend".to_owned();
    run.messages[0].seen = None;
    let verdict = run.judged();
    let loss = rule(&verdict, "loss");
    assert_eq!(loss.evidence, "1 of 1,200 (0.083 %) at the backend");
}
