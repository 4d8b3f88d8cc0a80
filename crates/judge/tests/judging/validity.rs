//! Whether the generator is to blame.

use muster_judge::validity::generator;
use muster_judge::{
    Consequence, Figure, HostHealth, Incident, IncidentKind, Latency, Percentile, RuleOutcome,
    RuleResult, Rules, RunResult, Scope, Share, SloBound, ThreadHealth, ThreadRole, ThreadWindow,
    Unevaluated, ValidityBounds,
};
use muster_measure::CommandSummary;
use muster_model::{Micros, Outcome, ShedCause};

use crate::run::{MEASURE, Run, failed, rule};

/// A thread whose first windows of the measured phase are `bad`, all others good.
fn thread(role: ThreadRole, measure_s: u64, bad: (u64, f64, f64)) -> ThreadHealth {
    let (count, cpu, waiting) = bad;
    let windows = (1..=MEASURE + measure_s + 3).map(|second| {
        let is_bad = (MEASURE + 1..=MEASURE + count).contains(&second);
        ThreadWindow {
            until: Micros::from_secs(second),
            cpu: if is_bad { cpu } else { 0.4 },
            waiting: Some(if is_bad { waiting } else { 0.01 }),
        }
    });
    ThreadHealth {
        name: "worker 1".to_owned(),
        role,
        windows: windows.collect(),
    }
}

#[test]
fn a_thread_must_keep_within_its_bounds_in_95_percent_of_windows() {
    let (shard, consumer) = (ThreadRole::Shard, ThreadRole::Consumer);
    let cases = [
        (shard, (1, 0.99, 0.5), &[] as &[&str]),
        (shard, (2, 0.85, 0.0), &["cpu"]),
        (shard, (2, 0.84, 0.09), &[]),
        (shard, (2, 0.0, 0.10), &["cpu-wait"]),
        (
            consumer,
            (2, 0.99, 0.2),
            &["cpu of consumers", "cpu-wait of consumers"],
        ),
    ];
    for (role, bad, expected) in cases {
        let mut run = Run::healthy(100, 20);
        run.health.threads.push(thread(role, 20, bad));
        let verdict = run.judged();
        assert_eq!(failed(&verdict), expected, "{role:?} {bad:?}");
        let result = if expected.is_empty() {
            RunResult::Pass
        } else {
            RunResult::Invalid
        };
        assert_eq!(verdict.result, result);
        if let Some(name) = expected.first() {
            let rule = rule(&verdict, name);
            assert_eq!(rule.since_s, Some(MEASURE as u32));
            assert_eq!(rule.evidence, "worker 1: below in 18 of 20 s");
        }
    }
}

#[test]
fn a_bound_of_the_whole_is_no_bound() {
    let mut run = Run::healthy(100, 20);
    let starved = thread(ThreadRole::Shard, 20, (20, 1.0, 1.1));
    run.health.threads.push(starved);
    run.rules.validity = ValidityBounds {
        cpu: Share::ONE,
        cpu_wait: Share::ONE,
        ..run.rules.validity
    };
    let verdict = run.judged();
    assert_eq!(verdict.result, RunResult::Pass);
    let waited = rule(&verdict, "cpu-wait").observed;
    assert_eq!(waited, Some(Figure::Fraction(1.0)));
}

#[test]
fn a_machine_that_does_not_tell_is_not_evaluated_and_not_invalid() {
    let mut run = Run::healthy(100, 20);
    let mut silent = thread(ThreadRole::Shard, 20, (0, 0.0, 0.0));
    silent
        .windows
        .iter_mut()
        .for_each(|window| window.waiting = None);
    run.health.threads.push(silent);
    let verdict = run.judged();
    for name in ["cpu-wait", "steal"] {
        let expected = RuleOutcome::NotEvaluated(Unevaluated::NotMeasured);
        assert_eq!(rule(&verdict, name).outcome, expected);
    }
    assert_eq!(verdict.result, RunResult::Pass);
}

#[test]
fn the_hypervisor_may_take_less_than_three_percent() {
    for (steal, expected) in [(0.029, RunResult::Pass), (0.03, RunResult::Invalid)] {
        let mut run = Run::healthy(100, 20);
        let seconds = (1..=30).map(|second| {
            let is_measured = (MEASURE + 1..=MEASURE + 20).contains(&second);
            (
                Micros::from_secs(second),
                if is_measured { steal } else { 0.9 },
            )
        });
        let host = HostHealth {
            name: "here".to_owned(),
            steal: seconds.collect(),
        };
        run.health.hosts.push(host);
        assert_eq!(run.judged().result, expected, "{steal}");
    }
}

#[test]
fn every_incident_makes_the_run_invalid() {
    let kinds = [
        (IncidentKind::ReceiveDrop, "receive-drops"),
        (IncidentKind::LimitReached, "limits"),
        (IncidentKind::ConsumerAway, "own-consumer"),
        (IncidentKind::ClockStepped, "clock"),
        (IncidentKind::Suspended, "clock"),
        (IncidentKind::ProcessLost, "processes"),
    ];
    for (kind, name) in kinds {
        let mut run = Run::healthy(100, 10);
        let from = Micros::from_secs(7);
        let detail = "once".to_owned();
        run.health.incidents.push(Incident {
            kind,
            from,
            until: from,
            count: 1,
            detail,
        });
        let verdict = run.judged();
        assert_eq!(
            (verdict.result, failed(&verdict)),
            (RunResult::Invalid, vec![name])
        );
        // What was lost while our consumer was away nobody knows.
        let is_known = kind != IncidentKind::ConsumerAway;
        assert_eq!(verdict.would_be, is_known.then_some(RunResult::Pass));
        assert_eq!(rule(&verdict, name).since_s, Some(7));
    }
}

#[test]
fn nothing_may_be_shed_by_us() {
    for cause in ShedCause::ALL {
        let mut run = Run::healthy(100, 10);
        run.measured().nth(300).unwrap().ends(Outcome::Shed(cause));
        let verdict = run.judged();
        let expected = if cause.is_own() {
            RunResult::Invalid
        } else {
            RunResult::Fail
        };
        assert_eq!(verdict.result, expected, "{cause}");
        if cause.is_own() {
            let own = rule(&verdict, "own-shed");
            assert_eq!(
                (own.since_s, own.evidence.as_str()),
                (Some(7), &*format!("{cause} 1"))
            );
        }
    }
}

#[test]
fn a_ledger_that_does_not_close_makes_the_run_invalid() {
    for residue in [Some(1), None] {
        let mut run = Run::healthy(100, 10);
        run.residue = residue;
        let verdict = run.judged();
        assert_eq!(
            (verdict.result, failed(&verdict)),
            (RunResult::Invalid, vec!["residue"])
        );
    }
}

#[test]
fn nothing_due_although_a_rate_was_declared_is_invalid() {
    let mut run = Run::healthy(100, 10);
    run.messages.clear();
    let verdict = run.judged();
    assert_eq!(
        (verdict.result, failed(&verdict)),
        (RunResult::Invalid, vec!["something-due"])
    );
}

/// A closed loop sends nothing while it waits: a target that has said nothing since before the
/// measured phase must not pass for want of messages.
#[test]
fn what_was_due_before_the_measured_phase_alone_is_no_run() {
    let mut run = Run::healthy(100, 10);
    run.messages.truncate(100);
    for message in &mut run.messages {
        message.due = 0;
    }
    let verdict = run.judged();
    assert!(failed(&verdict).contains(&"something-due"), "{verdict:?}");
    assert_eq!(verdict.result, RunResult::Invalid);
}

/// Rules that name a p99 of response, and, if there is one, a bound on lateness.
fn rules(response_ms: Option<u64>, lateness: Option<Micros>) -> Rules {
    let builder = Rules::builder(true).validity(ValidityBounds {
        lateness_p99: lateness,
        ..ValidityBounds::default()
    });
    let Some(ms) = response_ms else {
        return builder.build();
    };
    let at_most = Micros::from_millis(ms);
    let bound = SloBound::Latency {
        of: Latency::Response,
        percentile: Percentile::P99,
        at_most,
    };
    builder.slo(Scope::Run, bound).build()
}

#[test]
fn lateness_is_bounded_by_the_scenario_or_by_the_tightest_response_bound() {
    let ms = Micros::from_millis;
    let cases = [
        (rules(Some(100), None), ms(5)),
        (rules(Some(15), None), ms(1)),
        (rules(Some(1_000), None), ms(50)),
        (rules(Some(1_000), Some(ms(3))), ms(3)),
    ];
    for (rules, bound) in cases {
        for (over, holds) in [(0, true), (1, false)] {
            let mut run = Run::healthy(100, 10);
            run.rules = rules.clone();
            run.measured()
                .take(11)
                .for_each(|m| m.late = bound.0 + over);
            let verdict = run.judged();
            let expected = if holds {
                RuleOutcome::Pass
            } else {
                RuleOutcome::Fail
            };
            assert_eq!(
                rule(&verdict, "lateness-p99").outcome,
                expected,
                "{bound} + {over}"
            );
        }
    }
}

#[test]
fn without_a_response_bound_lateness_is_measured_against_the_measured_p99() {
    for (response_us, bound_us) in [(10_000, 1_000), (100_000, 5_000), (900_000, 20_000)] {
        for (late, holds) in [(bound_us * 99 / 100, true), (bound_us * 101 / 100, false)] {
            let mut run = Run::healthy(100, 10);
            run.rules = rules(None, None);
            run.measured().for_each(|m| m.ended = m.due + response_us);
            run.measured().take(20).for_each(|m| m.late = late);
            let verdict = run.judged();
            let expected = if holds {
                RunResult::Pass
            } else {
                RunResult::Invalid
            };
            assert_eq!(verdict.result, expected, "{response_us} {late}");
        }
    }
}

#[test]
fn lateness_of_too_few_messages_is_not_evaluated() {
    let verdict = Run::healthy(10, 10).judged();
    let reason = Unevaluated::TooFewMessages {
        have: 100,
        needed: 1_000,
    };
    let expected = RuleOutcome::NotEvaluated(reason);
    assert_eq!(rule(&verdict, "lateness-p99").outcome, expected);
    assert_eq!(verdict.result, RunResult::Pass);
}

#[test]
fn the_rules_so_far_are_those_of_the_end_on_the_same_samples() {
    let mut run = Run::healthy(100, 20);
    run.health
        .threads
        .push(thread(ThreadRole::Shard, 20, (3, 0.99, 0.28)));
    let at_end = run.judged();
    let measured = (Micros::from_secs(MEASURE), Micros::from_secs(MEASURE + 20));
    let so_far = generator(&run.rules.validity, &run.health, measured);
    assert!(so_far.len() > 5);
    for rule in so_far {
        let same = at_end.rules.iter().find(|known| known.rule == rule.rule);
        let consequence = same.map_or(Consequence::None, |known| known.consequence);
        let concluded = RuleResult {
            consequence,
            ..rule
        };
        assert_eq!(same, Some(&concluded));
    }
    // One second in, two of the three bad ones are still to come.
    let early = (measured.0, Micros::from_secs(MEASURE + 1));
    let early = generator(&run.rules.validity, &run.health, early);
    let broken = early
        .iter()
        .filter(|rule| rule.outcome == RuleOutcome::Fail);
    let broken: Vec<&str> = broken.map(|rule| rule.rule.as_str()).collect();
    assert_eq!(broken, ["cpu", "cpu-wait"]);
}

#[test]
fn late_commands_make_a_run_invalid_however_punctual_its_messages_are() {
    for (late, holds) in [(5_000, true), (6_000, false)] {
        let run = Run {
            rules: rules(Some(100), None),
            ..Run::healthy(100, 10)
        };
        let mut summary = run.summary();
        let mut commands = CommandSummary::default();
        (0..1_000).for_each(|_| commands.lateness.known.record(Micros(late)));
        summary.run.command = Some(commands);
        let verdict = run.judged_by(&summary);
        let expected: &[&str] = if holds {
            &[]
        } else {
            &["lateness-p99 of commands"]
        };
        assert_eq!(failed(&verdict), expected, "{late}");
    }
}
