//! The service levels.

use std::collections::BTreeMap;

use muster_judge::{
    Allowance, Ending, Figure, Incident, IncidentKind, Latency, Percentile, RuleName, RuleOutcome,
    Rules, RunResult, Scope, Share, SloBound, Unevaluated, Verdict, WarningKind,
};
use muster_measure::{GroupSummary, State, Summary};
use muster_model::{
    Cause, FleetId, Listening, Micros, Outcome, Reason, ShedCause, StreamId, figure,
};

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
    let words = &rule(&verdict, "loss").evidence;
    assert_eq!(words, "0 of 52,500: at most 0.006 % at 95 % at backend app");
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

/// A message in flight that arrived has its end at the backend, so that it excuses no other there.
#[test]
fn what_arrived_excuses_nothing_when_settling_was_interrupted() {
    let mut run = Run::healthy(100, 10).names(&[p99(Latency::EndToEnd, 250)]);
    let [open, lost] = [200..300, 300..320];
    run.messages[open].iter_mut().for_each(|message| {
        let seen = message.seen;
        message.ends(Outcome::InFlight);
        message.seen = seen;
    });
    run.messages[lost]
        .iter_mut()
        .for_each(|message| message.seen = None);
    run.ending = Ending::SettlingInterrupted { stop: None };
    assert_eq!(
        rule(&run.judged(), "end-to-end p99").outcome,
        RuleOutcome::Fail
    );
}

/// An interrupt while the run settles ends the wait for what is open.
#[test]
fn what_was_open_when_settling_was_interrupted_fails_no_rule() {
    let bounds = [Latency::Response, Latency::EndToEnd].map(|of| p99(of, 250));
    let mut run = Run::healthy(100, 10).names(&bounds);
    for message in run.messages.iter_mut().rev().take(100) {
        message.ends(Outcome::InFlight);
    }
    for message in run.messages.iter_mut().rev().skip(100).take(100) {
        message.seen = None;
        message.outstanding = true;
    }
    let open = ["failure-ratio", "response p99", "end-to-end p99", "drain"];
    assert_eq!(failed(&run.judged()), open);
    run.ending = Ending::SettlingInterrupted { stop: None };
    let verdict = run.judged();
    let cut = RuleOutcome::NotEvaluated(Unevaluated::CutShort);
    for name in open {
        assert_eq!(rule(&verdict, name).outcome, cut, "{name}");
    }
    assert_eq!(
        (verdict.result, verdict.would_be),
        (RunResult::Invalid, None)
    );
    let interrupted = format!("interrupted at {}", figure::clock(run.end()));
    assert_eq!(rule(&verdict, "uninterrupted").evidence, interrupted);
    // What had ended badly before stays a failure.
    run.messages[300].ends(Outcome::TimedOut);
    let verdict = run.judged();
    assert_eq!(rule(&verdict, "failure-ratio").outcome, RuleOutcome::Fail);
    assert_eq!(verdict.would_be, Some(RunResult::Fail));
}

#[test]
fn drain_says_where_a_consumer_was_away_while_settling() {
    let mut run = Run::healthy(100, 10);
    run.messages[0].seen = None;
    run.messages[0].outstanding = true;
    let words = |run: &Run| rule(&run.judged(), "drain").evidence.clone();
    let first = "backend app still delivering 50/s, 0.0 s behind";
    assert_eq!(words(&run), first);
    run.listening = Listening::deaf(run.end());
    let gone = format!("{first}; a consumer was away when settling ended");
    assert_eq!(words(&run), gone);
    (run.listening.since, run.listening.until) = (Micros::from_secs(20), run.end());
    assert_eq!(
        words(&run),
        format!("{first}; a consumer was away until 20 s")
    );
    run.listening.since = Micros::from_secs(13);
    assert_eq!(words(&run), first, "settling began at 14 s");
    run.listening.until = Micros::from_secs(11);
    let silent = format!("{first}; nothing came from the broker of a consumer after 11 s");
    assert_eq!(words(&run), silent);
    run.messages[0].outstanding = false;
    run.messages[0].seen = Some(run.messages[0].ended);
    run.listening = Listening::deaf(run.end());
    assert!(
        words(&run).starts_with("everything due had come"),
        "nothing was missed"
    );
}

#[test]
fn failure_ratio_counts_every_failure_of_the_target_and_none_of_ours() {
    let failures = [
        (REFUSED, 1),
        (Outcome::TimedOut, 1),
        (Outcome::Broken(Cause::Reset), 1),
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
        "0 above and 11 never answered, of 1,000 (10 allowed)"
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
        "0 above and 11 never arrived, of 1,000 (10 allowed) at backend app"
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
            .starts_with("25 copies could belong to more than one message")
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
        let words = format!("too few were not rejected to judge: {left} of 1,000, needs 1,000");
        assert_eq!(rule.evidence, words);
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
    run.links.ended_by_platform = BTreeMap::from([("reset".to_owned(), 1)]);
    assert_eq!(failed(&run.judged()), [""; 0]);
    run.links.up_at_start = 97;
    run.links.ended_by_platform = BTreeMap::from([("reset".to_owned(), 2)]);
    assert_eq!(failed(&run.judged()), ["connected", "disconnects"]);
}

#[test]
fn a_link_that_the_platform_ended_fails_a_run_that_names_no_rule() {
    let mut run = Run::healthy(100, 10);
    run.links.disconnects = BTreeMap::from([("lifetime".to_owned(), 3), ("reset".to_owned(), 1)]);
    assert_eq!(failed(&run.judged()), [""; 0], "not one of the platform's");
    run.links.ended_by_platform = BTreeMap::from([("disconnect-0x99".to_owned(), 12)]);
    let verdict = run.judged();
    assert_eq!(failed(&verdict), ["disconnects"]);
    assert_eq!(verdict.result, RunResult::Fail);
    let evidence = &rule(&verdict, "disconnects").evidence;
    assert!(evidence.contains("disconnect-0x99 12"), "{evidence}");
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
        let note = is_close.then_some(
            "one run; the spread between runs is unknown: response p99 [run] is within 9.1 % of its bound",
        );
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
    let words = "our own consumer was away: 11 lost at backend app, 10 of them due then";
    assert_eq!(loss.evidence, words);
    assert_eq!(
        (verdict.result, failed(&verdict)),
        (RunResult::Invalid, vec!["own-consumer"])
    );
}

#[test]
fn a_link_that_our_own_silence_ended_makes_the_run_invalid_and_is_no_disconnect() {
    let mut run = Run::healthy(100, 10);
    run.links.disconnects = BTreeMap::from([(Cause::KeepAliveMissed.to_string(), 2)]);
    let verdict = run.judged();
    assert_eq!(failed(&verdict), ["keep-alive missed by us"]);
    assert_eq!(
        (verdict.result, verdict.would_be),
        (RunResult::Invalid, Some(RunResult::Pass))
    );
}

const DEFAULTS: [RuleName; 4] = [
    RuleName::Loss,
    RuleName::FailureRatio,
    RuleName::Connected,
    RuleName::Disconnects,
];

fn names(rules: &Rules) -> Vec<(RuleName, bool)> {
    let slos = rules.slos.iter();
    slos.map(|slo| (slo.bound.name(), slo.named)).collect()
}

#[test]
fn four_defaults_apply_and_loss_only_where_there_is_a_backend() {
    let defaults = DEFAULTS.map(|rule| (rule, false));
    assert_eq!(names(&Rules::builder(true).build()), defaults);
    assert_eq!(names(&Rules::builder(false).build()), defaults[1..]);
}

#[test]
fn an_slo_at_the_top_leaves_the_defaults_of_other_names() {
    let rules = Rules::builder(true).slo(Scope::Run, p99(Latency::Response, 50));
    let response = p99(Latency::Response, 50).name();
    let mut expected = DEFAULTS.map(|rule| (rule, false)).to_vec();
    expected.push((response, true));
    assert_eq!(names(&rules.build()), expected);

    let rules = Rules::builder(true).slo(Scope::Run, disconnects(3)).build();
    let expected = [
        (RuleName::Loss, false),
        (RuleName::FailureRatio, false),
        (RuleName::Connected, false),
        (RuleName::Disconnects, true),
    ];
    assert_eq!(names(&rules), expected);
}

#[test]
fn any_switches_a_default_off_and_the_verdict_says_so() {
    let mut run = Run::healthy(100, 10);
    run.messages[0].seen = None;
    run.rules = Rules::builder(true).any(Scope::Run, RuleName::Loss).build();
    let verdict = run.judged();
    assert_eq!(verdict.result, RunResult::Pass, "{verdict:#?}");
    assert!(verdict.rules.iter().all(|rule| rule.rule != "loss"));
    let off = &verdict.switched_off[..];
    assert!(matches!(off, [off] if off.rule == RuleName::Loss && off.scope == Scope::Run));
}

/// A gateway that rejects half of what it gets, or loses 4,000 of 9,000 accepted messages, under a
/// scenario that names nothing but a latency.
#[test]
fn a_named_latency_excuses_neither_refusals_nor_losses() {
    let named = [p99(Latency::Response, 50)];
    let mut refusing = Run::healthy(100, 20).names(&named);
    refusing
        .messages
        .iter_mut()
        .step_by(2)
        .for_each(|m| m.ends(REFUSED));
    let verdict = refusing.judged();
    assert_eq!(
        (verdict.result, failed(&verdict)),
        (RunResult::Fail, vec!["failure-ratio"])
    );

    let mut losing = Run::healthy(450, 18).names(&named);
    losing
        .messages
        .iter_mut()
        .take(4_000)
        .for_each(|m| m.seen = None);
    let verdict = losing.judged();
    assert_eq!(
        (verdict.result, failed(&verdict)),
        (RunResult::Fail, vec!["loss"])
    );
    assert_eq!(rule(&verdict, "loss").observed, Some(Figure::Count(4_000)));
}

fn in_the_stream() -> Scope {
    Scope::Stream {
        fleet: FleetId(0),
        id: StreamId(0),
        name: "meters/readings".to_owned(),
    }
}

fn in_the_fleet() -> Scope {
    Scope::Fleet {
        id: FleetId(0),
        name: "meters".to_owned(),
    }
}

#[test]
fn a_rule_of_the_only_stream_leaves_nothing_to_the_wider_one() {
    for scope in [in_the_stream(), in_the_fleet()] {
        let mut run = Run::healthy(100, 10);
        run.messages[0].seen = None;
        run.rules = Rules::builder(true)
            .slo(scope.clone(), SloBound::Loss(Allowance::Count(1)))
            .build();
        let verdict = run.judged();
        assert_eq!(verdict.result, RunResult::Pass, "{verdict:#?}");
        assert_eq!(rule(&verdict, "loss").scope, scope.to_string());
    }
}

#[test]
fn any_in_a_fleet_takes_its_links_out_of_the_rules_about_links() {
    let mut run = Run::healthy(100, 10);
    run.links.up_at_start = 99;
    run.links.ended_by_platform = BTreeMap::from([("reset".to_owned(), 1)]);
    assert_eq!(failed(&run.judged()), ["connected", "disconnects"]);
    for scope in [in_the_fleet(), in_the_stream()] {
        run.rules = Rules::builder(true)
            .any(scope.clone(), RuleName::Connected)
            .any(scope, RuleName::Disconnects)
            .build();
        let verdict = run.judged();
        assert_eq!(verdict.result, RunResult::Pass, "{verdict:#?}");
    }
}

#[test]
fn the_backend_that_breaks_a_ratio_of_duplicates_decides_and_not_the_one_with_most() {
    let at_most = Share::whole_percent(5);
    let run = Run::healthy(100, 10).names(&[SloBound::Duplicates(Allowance::Ratio(at_most))]);
    let mut summary = run.summary();
    summary.run.uplink.arrivals.duplicates = Some(12);
    let mut few = summary.backends[0].clone();
    summary.backends[0].streams[0].duplicates = 12;
    (few.streams[0].duplicates, few.streams[0].arrived) = (10, 100);
    summary.backends.push(few);
    assert_eq!(failed(&run.judged_by(&summary)), ["duplicates"]);
}

/// Two streams, of which the second fails; the figures of the first alone are a group.
fn two_streams(rules: Rules) -> Verdict {
    let mut run = Run::healthy(100, 10);
    run.rules = rules;
    let good = run.summary();
    run.measured().take(500).for_each(|m| m.ends(REFUSED));
    run.messages[0].seen = None;
    let bad = run.summary();
    let mut both = bad.clone();
    both.streams = vec![good.streams[0].clone(), bad.streams[0].clone()];
    both.backends[0].streams = vec![good.backends[0].uplink, bad.backends[0].uplink];
    both.groups = vec![GroupSummary {
        streams: vec![StreamId(0)],
        scope: good.run.clone(),
    }];
    run.judged_streams(&both, 2)
}

#[test]
fn a_rule_of_a_stream_takes_it_out_of_the_wider_rule_and_the_rest_keeps_the_default() {
    let second = Scope::Stream {
        fleet: FleetId(0),
        id: StreamId(1),
        name: "meters/stream-1".to_owned(),
    };
    let plain = two_streams(Rules::builder(true).build());
    assert_eq!(failed(&plain), ["loss", "failure-ratio"]);

    let rules = Rules::builder(true)
        .any(second.clone(), RuleName::Loss)
        .slo(second, SloBound::FailureRatio(Share::whole_percent(60)))
        .build();
    let verdict = two_streams(rules);
    assert_eq!(verdict.result, RunResult::Pass, "{verdict:#?}");
    let of_run = verdict.rules.iter().filter(|rule| rule.scope == "run");
    let judged: Vec<_> = of_run.filter(|rule| !rule.except.is_empty()).collect();
    assert_eq!(judged.len(), 2, "the first stream keeps both defaults");
    for rule in judged {
        assert_eq!(rule.outcome, RuleOutcome::Pass);
        assert_eq!(rule.except, ["meters/stream-1"]);
    }
}

#[test]
fn duplicates_are_a_warning_unless_the_scenario_names_a_bound() {
    let judge = |rules: Rules| {
        let mut run = Run::healthy(100, 10);
        run.rules = rules;
        let mut summary = run.summary();
        summary.run.uplink.arrivals.duplicates = Some(1_200);
        summary.backends[0].uplink.duplicates = 1_200;
        summary.backends[0].streams[0].duplicates = 1_200;
        run.judged_by(&summary)
    };
    let verdict = judge(Rules::builder(true).build());
    assert_eq!(verdict.result, RunResult::Pass);
    let [warning] = &verdict.warnings[..] else {
        panic!("{:?}", verdict.warnings)
    };
    assert_eq!(warning.kind, WarningKind::Duplicates);
    let words = "duplicates at backend app: 1,200 of 1,200 (100 %)";
    assert!(warning.detail.starts_with(words), "{}", warning.detail);

    for (bound, outcome) in [
        (Allowance::Count(0), RuleOutcome::Fail),
        (Allowance::Count(1_200), RuleOutcome::Pass),
        (
            Allowance::Ratio(Share::whole_percent(99)),
            RuleOutcome::Fail,
        ),
        (Allowance::Ratio(Share::ONE), RuleOutcome::Pass),
    ] {
        let named = Rules::builder(true).slo(Scope::Run, SloBound::Duplicates(bound));
        let verdict = judge(named.build());
        assert_eq!(rule(&verdict, "duplicates").outcome, outcome, "{bound:?}");
        assert_eq!(verdict.warnings, [], "a rule looked at them");
    }
    let off = Rules::builder(true).any(Scope::Run, RuleName::Duplicates);
    assert_eq!(judge(off.build()).warnings, []);
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

/// Our consumers have no part in what a store keeps.
#[test]
fn what_a_store_lacks_fails_whatever_our_consumers_did() {
    let mut run = Run::healthy(100, 10);
    run.is_store = true;
    run.messages[600].seen = None;
    run.health.incidents.push(Incident {
        kind: IncidentKind::ConsumerAway,
        from: Micros::ZERO,
        until: run.end(),
        count: 1,
        detail: "consumer 0".to_owned(),
    });
    let verdict = run.judged();
    let loss = rule(&verdict, "loss");
    assert_eq!(loss.outcome, RuleOutcome::Fail);
    assert!(
        loss.evidence.ends_with("accepted but not stored"),
        "{}",
        loss.evidence
    );
    assert_eq!(
        verdict
            .warnings
            .iter()
            .filter(|it| it.kind == WarningKind::LostMeanwhile)
            .count(),
        0
    );
}

#[test]
fn a_store_that_was_not_read_to_its_end_fails_drain() {
    let mut run = Run::healthy(100, 10);
    run.is_store = true;
    for message in run.messages.iter_mut().take(7) {
        (message.seen, message.outstanding) = (None, true);
    }
    let verdict = run.judged();
    assert_eq!(failed(&verdict), ["drain"]);
    let words = "7 were accepted, and the store was not read to its end";
    assert_eq!(rule(&verdict, "drain").evidence, words);
}

/// Law: nothing is said of messages for which nobody looked; what the sample has is judged.
#[test]
fn loss_of_messages_outside_the_sample_is_not_evaluated() {
    let run = Run::healthy(100, 10).names(&[SloBound::Loss(Allowance::Count(0))]);
    for (in_sample, wanted) in [
        (0, RuleOutcome::NotEvaluated(Unevaluated::OutsideSample)),
        (1, RuleOutcome::Pass),
    ] {
        let mut summary = run.summary();
        let accepted = &mut summary.backends[0].streams[0].table.rows[State::Accepted.index()];
        accepted.outside_sample = accepted.arrived - in_sample;
        accepted.arrived = in_sample;
        let verdict = run.judged_by(&summary);
        assert_eq!(rule(&verdict, "loss").outcome, wanted);
    }
}
