//! Rules on the generator: faults that make a run invalid.

use muster_judge::validity::accidents;
use muster_judge::{
    HostHealth, Incident, IncidentKind, Latency, Percentile, RuleOutcome, Rules, RunResult, Scope,
    SloBound, StrainKind, ThreadHealth, ThreadRole, ThreadWindow, Unevaluated, ValidityBounds,
    WarningKind, strains,
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
fn cpu_and_cpu_wait_are_warned_about_and_decide_nothing() {
    let (shard, consumer) = (ThreadRole::Shard, ThreadRole::Consumer);
    let cases = [
        (shard, (1, 0.99, 0.5), &[] as &[WarningKind]),
        (shard, (2, 0.85, 0.0), &[WarningKind::Cpu]),
        (shard, (2, 0.84, 0.09), &[]),
        (shard, (2, 0.0, 0.10), &[WarningKind::CpuWait]),
        (
            consumer,
            (2, 0.99, 0.2),
            &[WarningKind::CpuWait, WarningKind::Cpu],
        ),
    ];
    for (role, bad, expected) in cases {
        let mut run = Run::healthy(100, 20);
        run.health.threads.push(thread(role, 20, bad));
        let verdict = run.judged();
        let kinds: Vec<WarningKind> = verdict.warnings.iter().map(|w| w.kind).collect();
        assert_eq!(kinds, expected, "{role:?} {bad:?}");
        assert_eq!(verdict.result, RunResult::Pass);
        if let Some(warning) = verdict.warnings.first() {
            let seconds = "(within bounds in 18 of 20 s)";
            assert!(warning.detail.ends_with(seconds), "{}", warning.detail);
        }
    }
}

/// The generator that waited for a CPU all the time: every rule holds with its own part counted in.
#[test]
fn a_starved_generator_whose_rules_hold_passes() {
    let mut run = Run::healthy(100, 20);
    let starved = thread(ThreadRole::Shard, 20, (20, 1.0, 1.1));
    run.health.threads.push(starved);
    let verdict = run.judged();
    assert_eq!(verdict.result, RunResult::Pass);
    let names = |name: &str| verdict.rules.iter().any(|rule| rule.rule.starts_with(name));
    assert!(!names("cpu") && !names("steal"), "{verdict:#?}");
}

#[test]
fn a_machine_that_reports_no_health_is_not_warned_about() {
    let mut run = Run::healthy(100, 20);
    let mut silent = thread(ThreadRole::Shard, 20, (0, 0.0, 0.0));
    silent
        .windows
        .iter_mut()
        .for_each(|window| window.waiting = None);
    run.health.threads.push(silent);
    let verdict = run.judged();
    assert_eq!(
        (verdict.result, verdict.warnings.len()),
        (RunResult::Pass, 0)
    );
    let kinds: Vec<StrainKind> = strains(&run.health, measured(20))
        .iter()
        .map(|strain| strain.kind)
        .collect();
    assert_eq!(kinds, [StrainKind::Cpu(ThreadRole::Shard)]);
}

fn measured(measure_s: u64) -> (Micros, Micros) {
    let from = Micros::from_secs(MEASURE);
    (from, from + Micros::from_secs(measure_s))
}

#[test]
fn three_percent_of_steal_in_the_measured_phase_are_warned_about() {
    for (steal, expected) in [(0.029, 0), (0.03, 1)] {
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
        let verdict = run.judged();
        let counted = (verdict.result, verdict.warnings.len());
        assert_eq!(counted, (RunResult::Pass, expected), "{steal}");
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
fn incidents_of_one_kind_with_the_same_words_are_told_once() {
    let mut run = Run::healthy(100, 10);
    for (second, detail) in [(6, "a packet"), (7, "a packet"), (8, "a port")] {
        run.health.incidents.push(Incident {
            kind: IncidentKind::LimitReached,
            from: Micros::from_secs(second),
            until: Micros::from_secs(second),
            count: 1,
            detail: detail.to_owned(),
        });
    }
    let verdict = run.judged();
    let limits = rule(&verdict, "limits");
    let (first, second) = ("limit of the generator reached: a packet", "a port");
    assert!(limits.evidence.starts_with(&format!("{first}; ")));
    assert_eq!(limits.evidence.matches("a packet").count(), 1);
    assert!(limits.evidence.ends_with(second));
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

#[test]
fn lateness_is_bounded_by_the_scenario_or_by_100_ms() {
    let named = Rules::builder(true).validity(ValidityBounds {
        lateness_p99: Micros::from_millis(3),
        ..ValidityBounds::default()
    });
    let response = SloBound::Latency {
        of: Latency::Response,
        percentile: Percentile::P99,
        at_most: Micros::from_millis(15),
    };
    let cases = [
        (Rules::builder(true).build(), 100_000),
        (
            Rules::builder(true).slo(Scope::Run, response).build(),
            100_000,
        ),
        (named.build(), 3_000),
    ];
    for (rules, bound) in cases {
        for (over, holds) in [(0, true), (1, false)] {
            let mut run = Run::healthy(100, 10);
            run.rules = rules.clone();
            run.measured().take(11).for_each(|m| m.late = bound + over);
            let verdict = run.judged();
            let expected: &[&str] = if holds { &[] } else { &["shape"] };
            assert_eq!(failed(&verdict), expected, "{bound} + {over}");
            let is_valid = verdict.result != RunResult::Invalid;
            assert_eq!(is_valid, holds);
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
    assert_eq!(rule(&verdict, "shape").outcome, expected);
    assert_eq!(verdict.result, RunResult::Pass);
}

#[test]
fn the_rules_so_far_are_those_of_the_end_on_the_same_incidents() {
    let mut run = Run::healthy(100, 20);
    run.health.incidents.push(Incident {
        kind: IncidentKind::LimitReached,
        from: Micros::from_secs(7),
        until: Micros::from_secs(7),
        count: 2,
        detail: "no descriptor is left".to_owned(),
    });
    let at_end = run.judged();
    let so_far = accidents(&run.health);
    assert_eq!(so_far.len(), 5);
    for rule in so_far {
        let same = at_end.rules.iter().find(|known| known.rule == rule.rule);
        let same = same.expect("the rule is judged at the end");
        assert_eq!(
            (&same.outcome, &same.evidence),
            (&rule.outcome, &rule.evidence)
        );
    }
}

#[test]
fn late_commands_make_a_run_invalid_however_punctual_its_messages_are() {
    for (late, holds) in [(99_000, true), (110_000, false)] {
        let run = Run::healthy(100, 10);
        let mut summary = run.summary();
        let mut commands = CommandSummary::default();
        (0..1_000).for_each(|_| commands.lateness.known.record(Micros(late)));
        summary.run.command = Some(commands);
        let verdict = run.judged_by(&summary);
        let expected: &[&str] = if holds { &[] } else { &["shape of commands"] };
        assert_eq!(failed(&verdict), expected, "{late}");
    }
}
