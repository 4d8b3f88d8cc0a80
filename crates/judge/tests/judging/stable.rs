//! Rule `stable` on whole runs.

use muster_judge::{Hold, RuleOutcome, RunResult, SloBound, Unevaluated};
use muster_model::{Micros, Outcome, Promise, Rate, Reason, ShedCause};

use crate::run::{MEASURE, ORIGIN, Run, failed, rule};

/// One server that takes `service_us` a message, with room for `room` microseconds of waiting
/// before it; beyond that it answers no at once.
fn queued(mut run: Run, service_us: u64, room: u64) -> Run {
    let mut free = 0;
    for message in &mut run.messages {
        let start = message.due.max(free);
        if start - message.due > room {
            message.ends(Outcome::Rejected(Reason::Mqtt(0x97)));
            message.ended = message.due + 1_000;
            continue;
        }
        free = start + service_us;
        message.ended = free;
        message.seen = Some(free + 1_000);
    }
    run
}

#[test]
fn an_overloaded_target_is_unstable_and_fails_only_where_it_is_named() {
    let run = queued(Run::healthy(200, 60), 5_250, u64::MAX);
    let verdict = run.judged();
    let stable = rule(&verdict, "stable");
    assert_eq!(stable.outcome, RuleOutcome::Fail, "{}", stable.evidence);
    assert_eq!(verdict.result, RunResult::Pass, "printed, not judged");
    let since = stable.since_s.unwrap();
    assert!((10..30).contains(&since), "{since}");

    let verdict = run.names(&[SloBound::Stable]).judged();
    assert_eq!(
        (verdict.result, failed(&verdict)),
        (RunResult::Fail, vec!["stable"])
    );
}

#[test]
fn a_healthy_target_that_rejects_one_percent_is_stable() {
    let mut run = Run::healthy(200, 60).names_only(&[SloBound::Stable]);
    for message in run.messages.iter_mut().step_by(100) {
        message.ends(Outcome::Rejected(Reason::Mqtt(0x97)));
    }
    let verdict = run.judged();
    assert_eq!(
        verdict.result,
        RunResult::Pass,
        "{:?}",
        rule(&verdict, "stable")
    );
}

#[test]
fn a_target_that_loses_is_caught_by_loss_and_not_by_its_backlog() {
    let mut run = Run::healthy(200, 60);
    run.messages
        .iter_mut()
        .step_by(20)
        .for_each(|message| message.seen = None);
    assert_eq!(failed(&run.judged()), ["loss"]);
}

#[test]
fn a_harmless_drift_is_not_unstable() {
    let mut run = Run::healthy(200, 60).names(&[SloBound::Stable]);
    for message in &mut run.messages {
        message.ended += (message.due / 1_000_000) * 5;
    }
    let verdict = run.judged();
    assert_eq!(
        verdict.result,
        RunResult::Pass,
        "{:?}",
        rule(&verdict, "stable")
    );
}

#[test]
fn a_full_queue_that_drops_is_caught_by_failure_ratio_and_not_by_its_backlog() {
    // The queue of half a second is full before measuring begins, and stays full.
    let mut run = queued(Run::healthy(200, 60), 10_000, 500_000);
    run.rules = muster_judge::Rules::builder(true).build();
    let verdict = run.judged();
    assert_eq!(
        failed(&verdict),
        ["failure-ratio"],
        "{:?}",
        rule(&verdict, "stable")
    );
    assert_eq!(verdict.result, RunResult::Fail);
}

#[test]
fn what_is_shed_leaves_the_backlog_at_once() {
    let mut run = Run::healthy(200, 60);
    for message in run.messages.iter_mut().skip(1).step_by(2) {
        message.ends(Outcome::Shed(ShedCause::QueueFull));
        message.ended = message.due;
    }
    assert_eq!(failed(&run.judged()), ["failure-ratio"]);
}

#[test]
fn a_backend_that_falls_behind_is_unstable_though_every_answer_is_prompt() {
    let mut run = Run::healthy(200, 60).names(&[SloBound::Stable]);
    for message in &mut run.messages {
        let behind = (message.due - ORIGIN * 1_000_000) / 20;
        message.seen = Some(message.due + 2_000 + behind);
    }
    let verdict = run.judged();
    assert_eq!(failed(&verdict), ["stable"]);
    let words = &rule(&verdict, "stable").evidence;
    assert!(words.starts_with("backend app backlog"), "{words}");
}

#[test]
fn a_latency_that_rises_without_a_backlog_is_unclear_and_says_for_how_long_to_hold() {
    let mut run = Run::healthy(200, 60).names(&[SloBound::Stable]);
    for message in &mut run.messages {
        // From 10 ms by 1 ms a second: 0.25 s of traffic between the fifths after 312.5 s.
        message.ended = message.due + 10_000 + (message.due - MEASURE * 1_000_000 / 2) / 1_000;
        message.seen = Some(message.ended);
    }
    let verdict = run.judged();
    let stable = rule(&verdict, "stable");
    let RuleOutcome::NotEvaluated(Unevaluated::Unclear { needed_s }) = stable.outcome else {
        panic!("{stable:?}");
    };
    assert!((310..316).contains(&needed_s), "{needed_s}");
    assert_eq!(verdict.result, RunResult::Invalid);
    assert!(stable.evidence.contains("rose by"), "{}", stable.evidence);
}

#[test]
fn a_short_or_changing_hold_is_said_aloud() {
    let mut run = Run::healthy(100, 29);
    let verdict = run.judged();
    let stable = rule(&verdict, "stable");
    let reason = Unevaluated::TooFewWindows {
        have: 29,
        needed: 30,
    };
    assert_eq!(stable.outcome, RuleOutcome::NotEvaluated(reason));
    assert_eq!(stable.evidence, "needs 30 s of constant rate, had 29 s");
    assert_eq!(verdict.result, RunResult::Pass);

    run.holds = Some(Vec::new());
    let expected = RuleOutcome::NotEvaluated(Unevaluated::NotConstant);
    assert_eq!(rule(&run.judged(), "stable").outcome, expected);
}

#[test]
fn of_several_holds_the_worst_decides() {
    let mut run = queued(Run::healthy(200, 80), 4_000, u64::MAX);
    let offered = Rate::per_second(200.0).unwrap();
    let hold = |from: u64, until: u64| Hold {
        from: Micros::from_secs(MEASURE + from),
        until: Micros::from_secs(MEASURE + until),
        offered,
    };
    run.holds = Some(vec![hold(0, 40), hold(40, 80)]);
    assert_eq!(rule(&run.judged(), "stable").outcome, RuleOutcome::Pass);
    // From the second hold on the target answers 2 % slower than it is asked.
    let start = (MEASURE + 40) * 1_000_000;
    for message in run
        .messages
        .iter_mut()
        .filter(|message| message.due >= start)
    {
        let behind = (message.due - start) / 50;
        message.ended += behind;
        message.seen = message.seen.map(|seen| seen + behind);
    }
    let verdict = run.judged();
    let stable = rule(&verdict, "stable");
    assert_eq!(stable.outcome, RuleOutcome::Fail);
    assert!(
        stable
            .since_s
            .is_some_and(|since| since > MEASURE as u32 + 40),
        "{stable:?}"
    );
}

#[test]
fn a_closed_loop_that_leaves_messages_out_is_unstable() {
    let mut run = Run::healthy(200, 60).names(&[SloBound::Stable]);
    run.is_closed = true;
    assert_eq!(run.judged().result, RunResult::Pass);
    let mut n = 0;
    run.messages.retain(|_| {
        n += 1;
        n % 20 != 0
    });
    let verdict = run.judged();
    assert_eq!(failed(&verdict), ["stable"]);
    let words = &rule(&verdict, "stable").evidence;
    assert!(words.starts_with("omitted backlog"), "{words}");
}

#[test]
fn a_closed_loop_that_holds_more_and_more_is_unstable() {
    let mut run = Run::healthy(200, 60).names(&[SloBound::Stable]);
    run.is_closed = true;
    for message in &mut run.messages {
        message.held = (message.due - ORIGIN * 1_000_000) / 20;
        message.ended = message.due + message.late + message.held + 10_000;
        message.seen = Some(message.ended + 2_000);
    }
    let verdict = run.judged();
    assert_eq!(failed(&verdict), ["stable"]);
}

#[test]
fn a_closed_loop_whose_target_rejects_one_percent_is_stable() {
    let mut run = Run::healthy(200, 60).names_only(&[SloBound::Stable]);
    run.is_closed = true;
    for message in run.messages.iter_mut().step_by(100) {
        message.ends(Outcome::Rejected(Reason::Mqtt(0x97)));
    }
    assert_eq!(run.judged().result, RunResult::Pass);
}

#[test]
fn a_killed_run_has_no_backlog_that_could_be_told() {
    let mut run = Run::healthy(200, 60);
    run.residue = None;
    let expected = RuleOutcome::NotEvaluated(Unevaluated::Unknown);
    assert_eq!(rule(&run.judged(), "stable").outcome, expected);
}

/// One server that takes `service_us` a message behind a queue without a bound; the device gives
/// every message up after `timeout` microseconds, and the run ends `settle_s` after the last due.
fn given_up(mut run: Run, service_us: u64, timeout: u64, settle_s: u64) -> Run {
    let end = (MEASURE + run.measure_s + settle_s) * 1_000_000;
    let mut free = 0;
    for message in &mut run.messages {
        free = free.max(message.due) + service_us;
        if free - message.due <= timeout {
            message.ended = free;
            message.seen = Some(free + 1_000);
            continue;
        }
        message.ends(Outcome::TimedOut);
        message.ended = message.due + timeout;
        message.seen = (free < end).then_some(free + 1_000);
        message.outstanding = free >= end;
    }
    run
}

#[test]
fn an_overloaded_target_is_unstable_though_the_devices_have_given_up_what_it_still_delivers() {
    // Four times too much, and so much behind that most of it never comes before the end.
    let run = given_up(Run::healthy(200, 40), 20_000, 10_000_000, 10);
    let verdict = run.judged();
    let stable = rule(&verdict, "stable");
    assert_eq!(stable.outcome, RuleOutcome::Fail, "{}", stable.evidence);
    assert_eq!(
        stable.evidence,
        "backend app backlog grows by 150/s, at 95 % by 150/s or more: by 24.00 s of traffic so far"
    );
}

#[test]
fn a_queue_that_fills_and_then_drops_is_no_growth_but_its_level_is_told() {
    // Twice too much; the queue holds 10 s of waiting, is full after 20 s of 180, and then drops.
    let mut run = queued(Run::healthy(200, 180), 10_000, 10_000_000);
    for message in &mut run.messages {
        if message.state() == muster_measure::State::Rejected {
            message.ends(Outcome::TimedOut);
            message.ended = message.due + 10_000_000;
        }
    }
    let verdict = run.judged();
    let stable = rule(&verdict, "stable");
    assert_eq!(stable.outcome, RuleOutcome::Pass, "{}", stable.evidence);
    assert!(stable.evidence.contains("backlog grew to "), "{stable:?}");
    let note = Some("a backlog grew, though not steadily");
    assert_eq!(stable.note.as_deref(), note);
    assert!(
        failed(&verdict).contains(&"failure-ratio"),
        "which catches it"
    );
}

#[test]
fn what_is_shed_leaves_at_its_own_instant_and_not_before() {
    // Everything waits for 5 s before it is shed: a backlog of 5 s of traffic that does not grow.
    let mut run = Run::healthy(200, 60);
    for message in &mut run.messages {
        message.ends(Outcome::Shed(ShedCause::QueueFull));
        message.ended = message.due + 5_000_000;
    }
    let verdict = run.judged();
    let stable = rule(&verdict, "stable");
    assert_eq!(stable.outcome, RuleOutcome::Pass, "{}", stable.evidence);
    assert!(
        stable.evidence.contains("5.00 s of traffic"),
        "{}",
        stable.evidence
    );

    // Each second it waits for longer: the backlog grows until the shedding ends it.
    for message in &mut run.messages {
        let behind = (message.due - ORIGIN * 1_000_000) / 20;
        message.ended = message.due + 5_000_000 + behind;
    }
    let verdict = run.judged();
    let stable = rule(&verdict, "stable");
    assert_eq!(stable.outcome, RuleOutcome::Fail, "{}", stable.evidence);
}

/// A database that is locked behind a queue: everything was acknowledged, and nobody looks further.
#[test]
fn where_delivery_is_unknown_nothing_is_stable_and_an_overload_is_unstable_all_the_same() {
    let unseen = |mut run: Run, promise| {
        (run.promise, run.is_delivery_seen) = (promise, false);
        run.judged()
    };
    for promise in [Promise::Enqueued, Promise::Nothing] {
        let verdict = unseen(Run::healthy(200, 60), promise);
        let unknown = RuleOutcome::NotEvaluated(Unevaluated::DeliveryUnknown);
        assert_eq!(rule(&verdict, "stable").outcome, unknown);
        assert_eq!(verdict.result, RunResult::Pass);
        let [found] = &verdict.delivery_unknown[..] else {
            panic!("{:?}", verdict.delivery_unknown)
        };
        assert_eq!(
            (found.scope.as_str(), found.promise),
            ("meters/readings", promise)
        );
        let overloaded = queued(Run::healthy(200, 60), 5_250, u64::MAX);
        let outcome = &rule(&unseen(overloaded, promise), "stable").outcome.clone();
        assert_eq!(*outcome, RuleOutcome::Fail);
    }
    for promise in [Promise::Stored, Promise::Processed, Promise::Forwarded] {
        let verdict = unseen(Run::healthy(200, 60), promise);
        assert_eq!(rule(&verdict, "stable").outcome, RuleOutcome::Pass);
        assert_eq!(verdict.delivery_unknown, []);
    }
    assert_eq!(
        Run::healthy(200, 60).judged().delivery_unknown,
        [],
        "a backend looks"
    );
}

/// A store that stands still for a time and takes everything later has all of it when it is read.
#[test]
fn a_read_back_alone_shows_no_stability_and_hides_no_overload() {
    let stored = |mut run: Run, promise| {
        (run.promise, run.is_store) = (promise, true);
        let verdict = run.judged();
        assert_eq!(verdict.delivery_unknown, []);
        rule(&verdict, "stable").outcome.clone()
    };
    let unseen = RuleOutcome::NotEvaluated(Unevaluated::NoTimes);
    assert_eq!(stored(Run::healthy(200, 60), Promise::Enqueued), unseen);
    assert_eq!(
        stored(Run::healthy(200, 60), Promise::Stored),
        RuleOutcome::Pass
    );
    let mut losing = Run::healthy(200, 60);
    losing
        .messages
        .iter_mut()
        .step_by(2)
        .for_each(|message| message.seen = None);
    assert_eq!(
        stored(losing, Promise::Enqueued),
        unseen,
        "what is lost is no backlog"
    );
    let overloaded = queued(Run::healthy(200, 60), 5_250, u64::MAX);
    assert_eq!(stored(overloaded, Promise::Enqueued), RuleOutcome::Fail);
}
