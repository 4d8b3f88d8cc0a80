//! The truth table of blame: a rule that only our own delay breaks is undecided, one that breaks
//! without it fails, and one that holds with it passes.

use muster_judge::{
    Allowance, Consequence, Figure, Incident, IncidentKind, Latency, OwnDelay, Percentile, Reason,
    RuleOutcome, RunResult, Share, SloBound, ThreadHealth, ThreadRole, ThreadWindow, Unevaluated,
};
use muster_measure::{CommandSummary, Summary};
use muster_model::{Micros, Outcome};
use proptest::prelude::*;

use crate::run::{MEASURE, Message, Run, failed, rule};

fn p99(of: Latency, at_most_ms: u64) -> SloBound {
    SloBound::Latency {
        of,
        percentile: Percentile::P99,
        at_most: Micros::from_millis(at_most_ms),
    }
}

/// A run with a bound of 50 ms on the response, and one of its messages in `each` changed.
fn responses(each: usize, change: impl Fn(&mut Message)) -> Run {
    let mut run = Run::healthy(100, 20).names(&[p99(Latency::Response, 50)]);
    run.measured().step_by(each).for_each(change);
    run
}

fn answered_after(us: u64, own: u64) -> impl Fn(&mut Message) {
    move |message| {
        message.ended = message.due + us;
        message.own = own;
    }
}

fn outcome(run: &Run, name: &str) -> RuleOutcome {
    rule(&run.judged(), name).outcome.clone()
}

const fn undecided(own: OwnDelay) -> RuleOutcome {
    RuleOutcome::NotEvaluated(Unevaluated::OwnDelay(own))
}

#[test]
fn a_response_that_only_our_own_delay_lengthens_is_invalid_and_would_fail() {
    let run = responses(10, answered_after(60_000, 15_000));
    let verdict = run.judged();
    let response = rule(&verdict, "response p99");
    assert_eq!(response.outcome, undecided(OwnDelay::Answers));
    assert_eq!(response.consequence, Consequence::Invalidates);
    assert_eq!(response.reason, Some(Reason::OwnDelay));
    let found = (verdict.result, verdict.would_be);
    assert_eq!(found, (RunResult::Invalid, Some(RunResult::Fail)));
    let us = |figure: Option<Figure>| figure.map_or(0.0, Figure::value);
    assert!(us(response.lower) < us(response.observed), "{response:?}");
    let both = "our own delay decides: the rule holds without it; 200 above";
    assert!(response.evidence.starts_with(both), "{}", response.evidence);
}

#[test]
fn a_service_rule_is_decided_by_both_times_too() {
    for (own, expected) in [
        (15_000, undecided(OwnDelay::Answers)),
        (5_000, RuleOutcome::Fail),
    ] {
        let mut run = Run::healthy(100, 20).names(&[p99(Latency::Service, 50)]);
        run.measured()
            .step_by(10)
            .for_each(answered_after(60_000, own));
        assert_eq!(outcome(&run, "service p99"), expected);
    }
}

#[test]
fn a_target_that_is_slower_than_our_own_delay_fails_beside_the_same_hogs() {
    let run = responses(10, answered_after(70_000, 15_000));
    let verdict = run.judged();
    assert_eq!(failed(&verdict), ["response p99"]);
    assert_eq!(verdict.result, RunResult::Fail);
}

#[test]
fn a_response_that_holds_with_our_own_delay_passes_and_says_how_much_was_ours() {
    let run = responses(10, answered_after(45_000, 30_000));
    let verdict = run.judged();
    assert_eq!(verdict.result, RunResult::Pass);
    let note = rule(&verdict, "response p99").note.clone();
    let note = note.expect("the figure's own part is a caveat");
    assert!(note.contains("response p99 between 15"), "{note}");
    assert!(note.contains("the difference is our own delay"), "{note}");
}

#[test]
fn a_time_that_may_be_all_our_own_has_no_lower_edge() {
    let run = responses(1, answered_after(40_000, 40_000));
    let verdict = run.judged();
    let note = rule(&verdict, "response p99").note.clone();
    let words = "response p99 at most 40.0 ms; all of it may be our own delay";
    assert_eq!(note.as_deref(), Some(words));
}

#[test]
fn what_was_never_answered_counts_in_full_by_both_times() {
    let run = responses(10, |message| {
        message.ends(Outcome::TimedOut);
        message.own = 9_000;
    });
    assert_eq!(outcome(&run, "response p99"), RuleOutcome::Fail);
}

#[test]
fn a_leg_of_commands_is_decided_by_both_times_too() {
    for (above_lower, expected) in [(5, undecided(OwnDelay::Answers)), (11, RuleOutcome::Fail)] {
        let run = Run::healthy(100, 10).names(&[p99(Latency::CommandRequest, 50)]);
        let mut summary = run.summary();
        let mut commands = CommandSummary::default();
        let leg = &mut commands.legs[0];
        (leg.begun, leg.ended) = (1_000, 1_000);
        leg.above.insert(Micros::from_millis(50), 20);
        leg.above_lower.insert(Micros::from_millis(50), above_lower);
        let times = &mut commands.measured;
        let (upper, lower) = (&mut times.request, &mut times.request_lower);
        (0..1_000).for_each(|_| upper.known.record(Micros(60_000)));
        (0..1_000).for_each(|_| lower.known.record(Micros(40_000)));
        summary.run.command = Some(commands);
        let verdict = run.judged_by(&summary);
        assert_eq!(rule(&verdict, "command-request p99").outcome, expected);
    }
}

/// End-to-end times of 60 ms in these seconds of the measured phase, against a bound of 50 ms.
fn delivered_late(seconds: std::ops::Range<u64>, change: impl Fn(&mut Message)) -> Run {
    let mut run = Run::healthy(100, 40).names(&[p99(Latency::EndToEnd, 50)]);
    let of = |m: &&mut Message| seconds.contains(&(m.due / 1_000_000 - MEASURE));
    run.measured().filter(of).for_each(|message| {
        message.seen = Some(message.due + 60_000);
        change(message);
    });
    run
}

#[test]
fn an_end_to_end_rule_that_only_late_seconds_break_is_undecided() {
    // A tenth of the bound is allowed.
    for (late, expected) in [
        (5_000, RuleOutcome::Fail),
        (5_001, undecided(OwnDelay::Delivery)),
    ] {
        let run = delivered_late(3..6, |message| message.late = late);
        assert_eq!(outcome(&run, "end-to-end p99"), expected, "{late}");
    }
}

#[test]
fn an_end_to_end_rule_that_the_consumers_own_part_breaks_is_undecided() {
    for (own, expected) in [
        (9_999, RuleOutcome::Fail),
        (10_000, undecided(OwnDelay::Delivery)),
    ] {
        let run = delivered_late(3..6, |message| message.own_seen = own);
        assert_eq!(outcome(&run, "end-to-end p99"), expected, "{own}");
    }
}

#[test]
fn a_target_that_delivers_late_in_punctual_seconds_too_fails() {
    let run = delivered_late(0..20, |message| {
        message.late = if message.due / 1_000_000 < MEASURE + 9 {
            9_000
        } else {
            20
        };
    });
    assert_eq!(outcome(&run, "end-to-end p99"), RuleOutcome::Fail);
    // Where no punctual messages are left, nothing decides.
    let run = delivered_late(0..40, |message| message.late = 9_000);
    assert_eq!(
        outcome(&run, "end-to-end p99"),
        undecided(OwnDelay::Delivery)
    );
}

#[test]
fn an_end_to_end_rule_is_no_surer_than_the_response_of_its_messages() {
    let bounds = [p99(Latency::Response, 50), p99(Latency::EndToEnd, 50)];
    let mut run = Run::healthy(100, 20).names(&bounds);
    for message in run.measured().step_by(10) {
        (message.ended, message.own) = (message.due + 60_000, 15_000);
        message.seen = Some(message.due + 60_000);
    }
    let verdict = run.judged();
    assert_eq!(
        rule(&verdict, "end-to-end p99").outcome,
        undecided(OwnDelay::Response)
    );
    assert_eq!(verdict.would_be, Some(RunResult::Fail));
}

#[test]
fn connects_that_ran_out_of_time_by_our_own_delay_are_not_held_against_the_target() {
    for (by_us, result) in [
        (0, RunResult::Fail),
        (2, RunResult::Fail),
        (3, RunResult::Invalid),
        (9, RunResult::Invalid),
    ] {
        let mut run = Run::healthy(100, 10);
        run.links.up_at_start = 97;
        run.links.down_by_us_at_start = by_us;
        let verdict = run.judged();
        assert_eq!(verdict.result, result, "{by_us}");
        let connected = rule(&verdict, "connected");
        let reason = (result == RunResult::Invalid).then_some(Reason::OwnDelayConnect);
        assert_eq!(connected.reason, reason);
    }
}

/// A consumer that waited for a CPU in the second that ends at `until_s`.
fn starved(until_s: u64) -> ThreadHealth {
    let window = |second: u64| ThreadWindow {
        until: Micros::from_secs(second),
        cpu: 0.1,
        waiting: Some(if second == until_s { 0.4 } else { 0.01 }),
    };
    ThreadHealth {
        name: "consumer 0".to_owned(),
        role: ThreadRole::Consumer,
        windows: (1..=40).map(window).collect(),
    }
}

#[test]
fn what_is_lost_while_our_consumer_starves_is_shown_apart() {
    // The window from 19 to 20 s reaches back to 9 s.
    for (due_s, is_ours) in [(8, false), (9, true), (19, true), (20, false)] {
        let mut run = Run::healthy(100, 30);
        run.health.threads.push(starved(20));
        let first = ((due_s - 2) * 100) as usize;
        run.messages[first].seen = None;
        let verdict = run.judged();
        let loss = rule(&verdict, "loss");
        if is_ours {
            assert_eq!(loss.outcome, undecided(OwnDelay::Consumer), "{due_s}");
            let apart = "1 of them were due while our consumer had too little CPU";
            assert!(loss.evidence.contains(apart), "{}", loss.evidence);
            let found = (verdict.result, verdict.would_be, loss.reason);
            let expected = Some(Reason::ConsumerStarved);
            assert_eq!(found, (RunResult::Invalid, Some(RunResult::Fail), expected));
        } else {
            assert_eq!(verdict.result, RunResult::Fail, "{due_s}");
        }
    }
}

#[test]
fn a_ratio_of_losses_is_taken_of_what_was_due_outside_of_starved_seconds() {
    let mut run = Run::healthy(100, 30);
    let allowed = SloBound::Loss(Allowance::Ratio(Share::whole_percent(1)));
    run = run.names(&[allowed]);
    run.health.threads.push(starved(20));
    // 1.5 % of all, everywhere alike: outside of starved seconds the rule fails as well.
    run.messages
        .iter_mut()
        .step_by(66)
        .for_each(|m| m.seen = None);
    assert_eq!(outcome(&run, "loss"), RuleOutcome::Fail);
}

#[test]
fn what_is_outstanding_of_starved_seconds_leaves_drain_undecided() {
    for (until_s, expected) in [(14, undecided(OwnDelay::Consumer)), (3, RuleOutcome::Fail)] {
        let mut run = Run::healthy(100, 10);
        run.health.threads.push(starved(until_s));
        for message in run.messages.iter_mut().rev().take(100) {
            (message.seen, message.outstanding) = (None, true);
        }
        assert_eq!(outcome(&run, "drain"), expected);
    }
}

/// The figures of a run with a second backend, which is that of another run.
fn with_backend_of(run: &Run, other: &Run) -> Summary {
    let (mut both, other) = (run.summary(), other.summary());
    both.backends.extend(other.backends);
    for scope in [&mut both.run, &mut both.fleets[0], &mut both.streams[0]] {
        for (row, more) in scope.series.iter_mut().zip(&other.run.series) {
            row.arrivals.extend(&more.arrivals);
        }
    }
    both
}

#[test]
fn a_backend_that_our_starved_consumer_excuses_hides_no_loss_at_another() {
    // Seconds 9 to 19 are starved.
    let lost = |due_s: usize, count: usize| {
        let mut run = Run::healthy(100, 30);
        run.health.threads.push(starved(20));
        let from = (due_s - 2) * 100;
        let lost = &mut run.messages[from..from + count];
        lost.iter_mut().for_each(|message| message.seen = None);
        run
    };
    let excused = lost(10, 100);
    for (other, expected) in [
        (lost(25, 50), RuleOutcome::Fail),
        (lost(12, 50), undecided(OwnDelay::Consumer)),
        (lost(25, 0), undecided(OwnDelay::Consumer)),
    ] {
        for summary in [
            with_backend_of(&excused, &other),
            with_backend_of(&other, &excused),
        ] {
            let verdict = excused.judged_by(&summary);
            assert_eq!(rule(&verdict, "loss").outcome, expected);
        }
    }
}

#[test]
fn a_backend_that_our_starved_consumer_excuses_hides_nothing_outstanding_at_another() {
    let outstanding = |due_s: usize, count: usize| {
        let mut run = Run::healthy(100, 10);
        run.health.threads.push(starved(13));
        let from = (due_s - 2) * 100;
        for message in &mut run.messages[from..from + count] {
            (message.seen, message.outstanding) = (None, true);
        }
        run
    };
    let excused = outstanding(10, 100);
    for (other, expected) in [
        (outstanding(13, 50), RuleOutcome::Fail),
        (outstanding(11, 50), undecided(OwnDelay::Consumer)),
    ] {
        let verdict = excused.judged_by(&with_backend_of(&excused, &other));
        assert_eq!(rule(&verdict, "drain").outcome, expected);
    }
}

#[test]
fn failures_and_duplicated_links_are_never_excused_by_timing() {
    let mut run = responses(10, answered_after(60_000, 15_000));
    run.measured().nth(5).unwrap().ends(Outcome::TimedOut);
    run = run.names(&[
        p99(Latency::Response, 50),
        SloBound::FailureRatio(Share::ZERO),
    ]);
    assert_eq!(outcome(&run, "failure-ratio"), RuleOutcome::Fail);
    assert_eq!(run.judged().would_be, Some(RunResult::Fail));
}

/// A target that answers later and later, whose generator is later and later by a part of it.
fn creeping(own_share: f64) -> Run {
    let mut run = Run::healthy(200, 60).names(&[SloBound::Stable]);
    for message in &mut run.messages {
        let into = (message.due - 2_000_000) as f64 / 1e6;
        let wait = (into * 50_000.0) as u64;
        message.late = ((wait as f64) * own_share) as u64 + 20;
        message.ended = message.due + 10_000 + wait;
        message.seen = Some(message.ended + 1_000);
    }
    run
}

#[test]
fn a_backlog_that_grows_with_our_own_lateness_is_undecided() {
    assert_eq!(outcome(&creeping(0.0), "stable"), RuleOutcome::Fail);
    assert_eq!(outcome(&creeping(0.3), "stable"), RuleOutcome::Fail);
    let run = creeping(0.6);
    assert_eq!(outcome(&run, "stable"), undecided(OwnDelay::Lateness));
    let verdict = run.judged();
    assert_eq!(verdict.result, RunResult::Invalid);
    assert_eq!(rule(&verdict, "stable").reason, Some(Reason::LatenessGrew));
}

/// A stream without answers, of which nothing arrives while it is held, and a generator whose
/// lateness creeps by 2 ms meanwhile.
#[test]
fn a_lateness_that_creeps_explains_no_backlog_of_what_never_came() {
    for arrives_at_last in [false, true] {
        let mut run = Run::healthy(200, 60).names(&[SloBound::Stable]);
        let end = run.messages.last().expect("there are some").due + 1_000_000;
        for message in &mut run.messages {
            message.late = 1_000 + (message.due - 2_000_000) / 30_000;
            message.ends(Outcome::Unacknowledged);
            message.ended = message.due + message.late + message.held;
            message.outstanding = !arrives_at_last;
            message.seen = arrives_at_last.then_some(end);
        }
        let mut summary = run.summary();
        summary.streams[0].latency.response = None;
        let verdict = run.judged_by(&summary);
        let stable = rule(&verdict, "stable");
        assert_eq!(stable.outcome, RuleOutcome::Fail, "{}", stable.evidence);
    }
}

/// One message in twelve does not arrive. The others arrive in time, so that no percentile rises by
/// much.
#[test]
fn a_lateness_that_creeps_explains_no_backlog_beside_a_steady_latency() {
    let mut run = Run::healthy(200, 60).names(&[SloBound::Stable]);
    for (n, message) in run.messages.iter_mut().enumerate() {
        let into = message.due - 2_000_000;
        message.late = 1_000 + into / 30_000;
        message.ended = message.due + 10_000 + into / 600_000;
        message.seen = (n % 12 > 0).then_some(message.ended + 1_000);
        message.outstanding = n % 12 == 0;
    }
    assert_eq!(outcome(&run, "stable"), RuleOutcome::Fail);
}

#[test]
fn a_backlog_of_a_backend_whose_consumer_starved_all_the_time_is_undecided() {
    let mut run = creeping(0.0);
    for message in &mut run.messages {
        message.seen = Some(message.ended + 1_000);
        message.ended = message.due + 10_000;
    }
    assert_eq!(outcome(&run, "stable"), RuleOutcome::Fail);
    let always = (1..=80).map(starved);
    run.health.threads.extend(always);
    assert_eq!(outcome(&run, "stable"), undecided(OwnDelay::Consumer));
    // On the device side no consumer takes part.
    let mut run = creeping(0.0);
    run.health.threads.extend((1..=80).map(starved));
    run.messages
        .iter_mut()
        .for_each(|m| m.seen = Some(m.due + 12_000));
    assert_eq!(outcome(&run, "stable"), RuleOutcome::Fail);
}

#[test]
fn a_closed_loop_that_our_own_delay_slows_offers_less_than_declared() {
    for (omitted, own, expected) in [
        (0, 5_000, &[] as &[&str]),
        (7, 500, &[]),
        (7, 600, &["shape"]),
    ] {
        let mut run = Run::healthy(100, 10);
        run.is_closed = true;
        run.messages
            .iter_mut()
            .for_each(|message| message.own = own);
        let mut summary = run.summary();
        let stream = &mut summary.streams[0].measured;
        stream.nominal = stream.scheduled.map(|due| due + omitted);
        let verdict = run.judged_by(&summary);
        assert_eq!(failed(&verdict), expected, "{omitted} {own}");
        let closed = verdict
            .rules
            .iter()
            .find(|rule| rule.rule == "shape" && rule.scope != "run");
        let reason = closed.and_then(|rule| rule.reason);
        assert_eq!(reason, (!expected.is_empty()).then_some(Reason::ClosedLoop));
    }
}

/// Outcome of rule `shape` for a closed stream that left seven messages out.
fn closed_loop(mut run: Run, has_answers: bool) -> RuleOutcome {
    run.is_closed = true;
    let mut summary = run.summary();
    let stream = &mut summary.streams[0];
    stream.measured.nominal = stream.measured.scheduled.map(|due| due + 7);
    if !has_answers {
        (stream.latency.response, stream.latency.response_lower) = (None, None);
    }
    let verdict = run.judged_by(&summary);
    let mut shapes = verdict.rules.iter().filter(|rule| rule.rule == "shape");
    let of_stream = shapes.find(|rule| rule.scope != "run");
    of_stream.expect("the stream is closed").outcome.clone()
}

#[test]
fn a_closed_loop_is_slowed_by_messages_without_an_answer_too() {
    let mut silent = Run::healthy(2, 60);
    for (seq, message) in silent.messages.iter_mut().enumerate() {
        if seq % 30 == 0 {
            (message.ended, message.own) = (message.due + 150, 30);
        } else {
            message.ends(Outcome::TimedOut);
            message.ended = message.due + 10_000_000;
        }
    }
    assert_eq!(closed_loop(silent, true), RuleOutcome::Pass);
    for (own, outcome) in [(200, RuleOutcome::Pass), (4_000, RuleOutcome::Fail)] {
        let mut at_qos_0 = Run::healthy(100, 10);
        for message in &mut at_qos_0.messages {
            message.ends(Outcome::Unacknowledged);
            (message.ended, message.own) = (message.due + 5_000, own);
        }
        assert_eq!(closed_loop(at_qos_0, false), outcome);
    }
}

/// Messages of a random run: how long each took, and which part of it was our own.
fn lives() -> impl Strategy<Value = Vec<(u64, f64, f64, u8)>> {
    let one = (0_u64..120_000, 0.0..1.0, 0.0..1.0, 0_u8..20);
    proptest::collection::vec(one, 20)
}

fn random(lives: &[(u64, f64, f64, u8)], with_own: bool) -> Run {
    let bounds = [p99(Latency::Response, 50), p99(Latency::EndToEnd, 60)];
    let mut run = Run::healthy(100, 20).names(&bounds);
    for (message, (took, own, own_seen, fate)) in run.measured().zip(lives.iter().cycle()) {
        let of = |share: f64, whole: u64| (share * whole as f64) as u64;
        message.ended = message.due + took + 30;
        message.seen = Some(message.due + took + 2_000);
        if with_own {
            message.own = of(*own, took + 30);
            message.own_seen = of(*own_seen, took + 2_000);
        }
        if *fate == 0 {
            message.ends(Outcome::TimedOut);
        }
    }
    run
}

/// Returns whether the rule holds by plain counting: above and unanswered are at most 1 %.
fn plain(run: &Run, bound_us: u64, lower: bool) -> bool {
    let measured = run.messages.iter().filter(|m| m.due >= MEASURE * 1_000_000);
    let measured: Vec<&Message> = measured.collect();
    let above = measured.iter().filter(|m| {
        let own = if lower { m.own } else { 0 };
        m.outcome != Outcome::Accepted || m.ended - m.due - own > bound_us
    });
    above.count() * 100 <= measured.len()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Without any delay of our own, the verdicts are those of plain counting.
    #[test]
    fn without_own_delay_a_rule_is_plain_counting(lives in lives()) {
        let run = random(&lives, false);
        let expected = match plain(&run, 50_000, false) {
            true => RuleOutcome::Pass,
            false => RuleOutcome::Fail,
        };
        prop_assert_eq!(outcome(&run, "response p99"), expected);
        prop_assert!(!matches!(
            outcome(&run, "end-to-end p99"),
            RuleOutcome::NotEvaluated(_)
        ));
    }

    /// Own delay never turns a pass into a fail, a fail by the lower times into a pass, nor either
    /// into the other.
    #[test]
    fn own_delay_moves_a_rule_only_from_fail_to_undecided(lives in lives()) {
        let (without, with) = (random(&lives, false), random(&lives, true));
        for name in ["response p99", "end-to-end p99"] {
            let (plain, own) = (outcome(&without, name), outcome(&with, name));
            match plain {
                RuleOutcome::Pass => prop_assert_eq!(own, RuleOutcome::Pass),
                RuleOutcome::Fail | RuleOutcome::NotEvaluated(_) => {
                    prop_assert_ne!(own, RuleOutcome::Pass);
                }
            }
        }
        let expected = match (plain(&with, 50_000, false), plain(&with, 50_000, true)) {
            (true, _) => RuleOutcome::Pass,
            (false, false) => RuleOutcome::Fail,
            (false, true) => undecided(OwnDelay::Answers),
        };
        prop_assert_eq!(outcome(&with, "response p99"), expected);
    }
}

#[test]
fn the_observed_time_is_the_upper_one() {
    let run = responses(2, answered_after(40_000, 20_000));
    let verdict = run.judged();
    let response = rule(&verdict, "response p99");
    let us = |figure: Option<Figure>| figure.map_or(0.0, Figure::value);
    assert!(
        (40_000.0..42_000.0).contains(&us(response.observed)),
        "{response:?}"
    );
    assert!(
        (20_000.0..21_000.0).contains(&us(response.lower)),
        "{response:?}"
    );
}

#[test]
fn the_end_of_a_session_by_the_platform_explains_a_loss_before_our_want_of_cpu_does() {
    for (kind, expected) in [
        (Some(IncidentKind::ConsumerLost), RuleOutcome::Fail),
        (None, undecided(OwnDelay::Consumer)),
    ] {
        let mut run = Run::healthy(100, 10);
        run.health.threads.push(starved(12));
        let cut = kind.map(|kind| Incident {
            kind,
            from: Micros::from_millis(7_900),
            until: Micros::from_millis(8_200),
            count: 1,
            detail: "consumer 0: closed by the platform".to_owned(),
        });
        run.health.incidents.extend(cut);
        // Due from 8 s on.
        let lost = run.messages.iter_mut().skip(600).take(10);
        lost.for_each(|message| message.seen = None);
        assert_eq!(outcome(&run, "loss"), expected, "{kind:?}");
        let late = run.messages.iter_mut().skip(600).take(10);
        late.for_each(|message| message.outstanding = true);
        assert_eq!(outcome(&run, "drain"), expected, "{kind:?}");
    }
}

#[test]
fn the_two_times_of_a_pass_are_told_once() {
    let run = responses(1, answered_after(40_000, 20_000));
    let verdict = run.judged();
    let response = rule(&verdict, "response p99");
    assert_eq!(response.outcome, RuleOutcome::Pass);
    let note = response.note.as_deref().unwrap_or_default();
    let words = format!("{}; {note}", response.evidence);
    assert_eq!(words.matches(" between ").count(), 1, "{words}");
}
