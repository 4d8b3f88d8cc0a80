//! Answers of searches, and what refutes them.

use std::collections::BTreeMap;

use muster_judge::capacity::{Batch, Capacity, Margin, Next, Observed};
use muster_judge::{Ceiling, GENERATOR_SHARE_MAX, GeneratorPart, PartCeiling};
use muster_model::ResourceUnit;

use super::*;
use crate::monitor::tests::series;
use crate::verdict::tests::rule;
use crate::{Figure, InvalidReason, MonitoredSeries, Percentiles, Rule, RuleResult, Step, Window};

const CAPACITY: f64 = 2_000.0;

fn limits() -> SearchSpec {
    SearchSpec {
        first: 200.0,
        most: 200_000.0,
        width: 0.1,
        short: Micros::from_secs(5),
        long: Micros::from_secs(20),
        load_seconds: 0.0,
        budget: Micros::from_secs(1_200),
    }
}

/// A search of a target with a sharp limit that found its capacity.
fn found() -> CapacityReport {
    let mut search = Search::new(limits()).expect("a search");
    let mut steps = Vec::new();
    while let Next::Hold(step) = search.next() {
        let result = match step.rate < CAPACITY {
            true => RunResult::Pass,
            false => RunResult::Fail,
        };
        let outcome = outcome_of(Some(result));
        steps.push(CapacityStep {
            number: steps.len() as u64 + 1,
            session: 1,
            load: step.rate,
            hold: step.hold,
            phase: step.phase,
            set: None,
            outcome,
            has_recovered: true,
            took_s: step.hold.as_secs_f64(),
            result_at_end: Some(result),
            margin: None,
            others: Vec::new(),
            sent_to: BTreeMap::new(),
            figures: Step::default(),
        });
        search.record(&Observed::new(outcome, step.hold));
    }
    let Next::End(end @ SearchEnd::Found(_)) = search.next() else {
        panic!("no capacity was found");
    };
    CapacityReport {
        schema: CAPACITY_SCHEMA.to_owned(),
        muster: String::new(),
        name: "capacity".to_owned(),
        run: String::new(),
        scenario_sha256: None,
        find: Dimension::Rate,
        limits: limits(),
        sessions: 1,
        own: SetAnswer {
            end: Some(end),
            known: search.known(),
            ..SetAnswer::default()
        },
        generator: Some(CapacityCeiling::new(ceiling(), 1.0)),
        others: Vec::new(),
        steps,
    }
}

fn ceiling() -> Ceiling {
    let part = PartCeiling {
        part: GeneratorPart::Devices,
        rate: 100_000.0,
    };
    Ceiling::new(vec![part]).expect("a part")
}

fn interval(answer: &CapacityReport) -> Capacity {
    match answer.own.end {
        Some(SearchEnd::Found(found)) => found,
        _ => panic!("it was found"),
    }
}

#[test]
fn a_capacity_that_the_closed_ledger_confirms_is_certified_with_its_share_of_the_ceiling() {
    let answer = found().concluded_by(false);
    let Capacity {
        interval,
        first_failing,
    } = interval(&answer);
    assert_eq!(answer.own.certified, Some(interval.lower));
    assert_eq!((answer.result(), &answer.own.refuted), ("CAPACITY", &None));
    let share = answer.generator.as_ref().and_then(|of| of.share);
    assert_eq!(share, Some(interval.lower / 100_000.0));
    let failing = answer.failing().expect("a step fails");
    assert_eq!(failing.load.to_bits(), first_failing.to_bits());
    assert!(first_failing >= interval.lower);
    assert!(answer.text().contains("the generator's own ceiling"));
}

#[test]
fn the_answer_of_the_worst_set_comes_first_with_those_of_the_others() {
    let named = |set: &str, answer: CapacityReport| {
        let steps = answer.steps.into_iter().map(|step| CapacityStep {
            set: Some("silver".to_owned()),
            ..step
        });
        CapacityReport {
            own: SetAnswer {
                set: Some(set.to_owned()),
                ..answer.own
            },
            steps: steps.collect(),
            ..answer
        }
    };
    let silver = named("silver", found()).concluded_by(false);
    let mut gold = named("gold", found());
    gold.own.end = Some(SearchEnd::FailsAtFirst { rate: 200.0 });
    gold.own.known = None;
    let joined = CapacityReport::joined(vec![silver.clone(), gold], silver.steps.clone());
    let joined = joined.expect("two answers");
    assert_eq!(joined.outcome(), RunResult::Fail);
    let share = joined.generator.as_ref().and_then(|of| of.share);
    assert_eq!(share, silver.own.certified.map(|rate| rate / 100_000.0));
    let text = joined.text();
    assert!(text.starts_with("FAIL  capacity [gold]"), "{text}");
    assert!(text.contains("CAPACITY  capacity [silver]"), "{text}");
    let by_set = joined.by_set();
    assert_eq!(by_set[0].own.set.as_deref(), Some("gold"));
    assert_eq!(by_set[0].steps, []);
    assert_eq!(by_set[1..], [silver]);
    let read = CapacityReport::from_json(&joined.to_json()).expect("an answer");
    assert_eq!(read, joined);
}

#[test]
fn the_resource_that_rose_nearest_to_its_limit_is_named() {
    let mut answer = found().concluded_by(false);
    let failing = answer.own.first_failing.expect("a step fails");
    for (at, step) in answer.steps.iter_mut().enumerate() {
        (step.figures.from_s, step.figures.until_s) = (10.0 * at as f64, 10.0 * at as f64 + 10.0);
    }
    // A second at the begin of each step, with twice as much in the failing one.
    let sampled = |resource: &str, value: f64, limit| MonitoredSeries {
        limit: Some(limit),
        windows: (1..=answer.steps.len() as u64)
            .map(|number| {
                let value = if number == failing {
                    2.0 * value
                } else {
                    value
                };
                [10.0 * (number - 1) as f64, value, value, value]
            })
            .collect(),
        ..series("broker", resource, ResourceUnit::Number)
    };
    let mut report = Report {
        monitor: vec![
            sampled("threads", 3.0, 100.0),
            sampled("descriptors", 400.0, 1_000.0),
        ],
        ..Report::default()
    };
    let answer = answer.clone().concluded(&report);
    let saturated = answer.own.saturated.as_ref().expect("it rose");
    assert_eq!(
        (saturated.resource.as_str(), saturated.failing),
        ("descriptors", 800.0)
    );
    let words = "broker descriptors was nearest to its limit: 800 of 1,000 (400 at the highest load below that passed)";
    assert!(answer.text().contains(words), "{}", answer.text());
    // What did not rise says nothing.
    report.monitor[1]
        .windows
        .iter_mut()
        .for_each(|window| window[1] = 400.0);
    let named = answer
        .concluded(&report)
        .own
        .saturated
        .map(|of| of.resource);
    assert_eq!(named.as_deref(), Some("threads"));
}

#[test]
fn what_the_closed_ledger_contradicts_is_not_certified() {
    let confirming = [
        (Phase::ConfirmLower, RunResult::Fail),
        (Phase::ConfirmUpper, RunResult::Invalid),
    ];
    for (phase, at_end) in confirming {
        let mut answer = found();
        let mut steps = answer.steps.iter_mut();
        let step = steps.find(|step| step.phase == phase);
        step.expect("it was confirmed").result_at_end = Some(at_end);
        let answer = answer.concluded_by(false);
        assert_eq!((answer.own.certified, answer.result()), (None, "INVALID"));
        assert!(answer.text().contains("the closed ledger judges step"));
    }
    let answer = found().concluded_by(true);
    assert_eq!((answer.own.certified, answer.result()), (None, "INVALID"));
    assert!(answer.text().contains("residue"));
    // A step of the ramp is no evidence for the interval.
    let mut answer = found();
    answer.steps[0].result_at_end = Some(RunResult::Fail);
    assert_eq!(answer.concluded_by(false).result(), "CAPACITY");
}

#[test]
fn the_end_names_what_bounds_it() {
    let ends = |rate| CapacityReport {
        own: SetAnswer {
            end: Some(SearchEnd::AtLeast { rate }),
            ..SetAnswer::default()
        },
        ..found()
    };
    let bound = ends(GENERATOR_SHARE_MAX * 100_000.0).concluded_by(false);
    assert_eq!(
        bound.end_in_words(),
        format!(
            "at least 70,000/s, generator-bound by {}: {}",
            GeneratorPart::Devices,
            GeneratorPart::Devices.remedy()
        )
    );
    assert!(ends(69_000.0).end_in_words().contains("--to"));
}

#[test]
fn a_target_that_takes_nothing_any_more_is_said_to_have_died() {
    let mut answer = found();
    answer.own.end = Some(SearchEnd::NotRecovered {
        rate: 800.0,
        known: None,
    });
    assert!(!answer.end_in_words().contains("died"));
    let last = answer.steps.last_mut().expect("a step");
    last.figures.ledger.scheduled = Some(4_000);
    assert!(answer.end_in_words().contains("the target died"));
    assert!(answer.end_in_words().contains("800/s"));
}

#[test]
fn a_step_with_an_address_without_load_is_unclear_whatever_its_rules_say() {
    let mut step = found().steps.remove(0);
    step.figures.result = Some(RunResult::Pass);
    step.figures.rules = vec![rule("response p99", RuleResult::Pass, Consequence::None)];
    let sent_to = |second| {
        let sent = [("127.0.0.1:1", 1_000), ("127.0.0.1:2", second)];
        sent.map(|(address, messages)| (address.to_owned(), messages))
    };
    step.sent_to = BTreeMap::from(sent_to(990));
    assert_eq!(step.contradiction(), None);
    step.sent_to = BTreeMap::from(sent_to(3));
    let why = "step 1 is `pass`, and its rules give `unclear`";
    assert_eq!(step.contradiction().as_deref(), Some(why));
    step.outcome = Outcome::Unclear;
    assert_eq!((step.contradiction(), step.differs()), (None, false));
    let line = step.line(Dimension::Rate, None, Micros::ZERO);
    assert!(line.ends_with("(127.0.0.1:2 received no load)"), "{line}");
}

#[test]
fn a_margin_that_gives_another_outcome_contradicts_the_step() {
    let mut step = found().steps.remove(0);
    step.figures.result = Some(RunResult::Pass);
    let holds = rule("response p99", RuleResult::Pass, Consequence::None);
    step.figures.rules = vec![holds];
    let margin = |bad| Margin {
        slo: "response p99".to_owned(),
        allowed: 0.01,
        batches: vec![Batch {
            messages: 1_000,
            bad,
        }],
    };
    step.margin = Some(margin(10));
    assert_eq!(step.contradiction(), None);
    step.margin = Some(margin(11));
    let why = "step 1 is `pass`, and its share of bad messages by `response p99` is 1.10 of the allowed one";
    assert_eq!(step.contradiction().as_deref(), Some(why));
}

/// A search whose time is up, after steps of these loads and outcomes.
fn out_of_budget(steps: &[(f64, Outcome)], known: Option<Interval>) -> String {
    let mut answer = found();
    let of = |(at, (load, outcome)): (usize, &(f64, Outcome))| CapacityStep {
        number: at as u64 + 1,
        load: *load,
        hold: answer.limits.long,
        outcome: *outcome,
        took_s: 100.0,
        ..answer.steps[0].clone()
    };
    answer.steps = steps.iter().enumerate().map(of).collect();
    answer.own.end = Some(SearchEnd::OutOfBudget {
        known,
        passed: Some(900.0),
    });
    answer.end_in_words()
}

#[test]
fn a_search_out_of_time_names_what_took_it_and_what_to_do() {
    use Outcome::{Fail, Pass, Unclear};
    let known = |lower, upper| {
        Some(Interval {
            lower,
            middle: 1_000.0,
            upper,
        })
    };
    let ramp = [(400.0, Pass), (800.0, Pass)];
    let clear = [(900.0, Pass), (1_100.0, Fail)];
    let unclear = [(900.0, Unclear), (1_100.0, Fail)];
    // The target may be cold in the first step.
    let noisy = [(900.0, Pass), (1_050.0, Pass), (1_000.0, Fail)];
    for (steps, known, words) in [
        (&ramp[..], None, "the ramp alone took 2 steps; begin nearer"),
        (&unclear, known(900.0, 1_100.0), "1 of 2 steps were unclear"),
        (
            &noisy,
            known(900.0, 1_100.0),
            "1,050/s passed in step 2, and 1,000/s failed in step 3, so that noise moves the capacity by 5 %",
        ),
        (
            &clear,
            known(900.0, 1_100.0),
            "too few steps: this interval is 22.2 % wide, and at most 10 % is stated",
        ),
        (&clear, known(960.0, 1_040.0), "was not confirmed in time"),
    ] {
        let said = out_of_budget(steps, known);
        assert!(said.contains(words), "{words}: {said}");
        assert!(
            said.contains("--budget, such as 40m") || said.contains("more room"),
            "{said}"
        );
    }
}

/// A rule on p99 with what a step showed.
fn p99(seconds: f64) -> Rule {
    let (result, consequence) = match seconds > 1.0 {
        true => (RuleResult::Fail, Consequence::Fails),
        false => (RuleResult::Pass, Consequence::None),
    };
    Rule {
        observed: Some(Figure::time((seconds * 1e6) as u64)),
        bound: Some(Figure::time(1_000_000)),
        ..rule("response p99", result, consequence)
    }
}

/// A search whose time is up, with a step of 100 s of each load and p99. An unclear step is one of no p99.
fn noisy(steps: &[(f64, Option<f64>)]) -> CapacityReport {
    let mut answer = found();
    let of = |(at, (load, seconds)): (usize, &(f64, Option<f64>))| {
        let late = Rule {
            invalid: InvalidReason {
                reason: Some("generator-late".to_owned()),
                remedy: Some("lower the rate".to_owned()),
            },
            ..rule("shape", RuleResult::Fail, Consequence::Invalidates)
        };
        let outcome = match seconds {
            Some(..=1.0) => Outcome::Pass,
            Some(_) => Outcome::Fail,
            None => Outcome::Unclear,
        };
        CapacityStep {
            number: at as u64 + 1,
            load: *load,
            hold: answer.limits.long,
            outcome,
            took_s: 100.0,
            figures: Step {
                from_s: 110.0 * at as f64,
                until_s: 110.0 * at as f64 + 100.0,
                rules: vec![seconds.map_or(late, p99)],
                ..Step::default()
            },
            ..answer.steps[0].clone()
        }
    };
    answer.steps = steps.iter().enumerate().map(of).collect();
    answer.own.end = Some(SearchEnd::OutOfBudget {
        known: answer.own.known,
        passed: Some(1_821.0),
    });
    answer
}

/// The windows of a run of 660 s, each of 2 s, with a collection each 42 s until 540 s if it has any, and a rise of
/// microseconds each 14 s.
fn windows(has_collections: bool) -> Report {
    let window = |at: u64| {
        let is_slow = has_collections && at < 270 && at.is_multiple_of(21);
        let p99_us = if is_slow { 1_400_000 } else { 200_000 + at % 7 };
        Window {
            t_s: 2.0 * at as f64,
            for_s: 2.0,
            response: Percentiles {
                p99_us: Some(p99_us),
                ..Percentiles::default()
            },
            ..Window::default()
        }
    };
    let mut report = Report {
        windows: (0..330).map(window).collect(),
        ..Report::default()
    };
    report.latency.response = Some(crate::LatencyFigures::default());
    report
}

#[test]
fn noise_that_prevents_an_answer_is_named_with_what_would_help() {
    let steps = [
        (1_400.0, Some(0.2)),
        (1_575.0, Some(1.4)),
        (1_821.0, Some(0.2)),
        (1_700.0, None),
        (1_650.0, None),
        (1_300.0, Some(0.2)),
    ];
    let answer = noisy(&steps).concluded(&windows(true));
    let noise = &answer.own.noise;
    let kinds: Vec<NoiseKind> = noise.iter().map(|noise| noise.kind).collect();
    assert_eq!(
        kinds,
        [
            NoiseKind::Contradiction,
            NoiseKind::Period,
            NoiseKind::Unclear
        ]
    );
    let of_steps: Vec<&[u64]> = noise.iter().map(|noise| &noise.steps[..]).collect();
    assert_eq!(of_steps, [&[2, 3][..], &[1, 2, 3], &[4, 5]]);
    let period_s = noise[1].period_s.expect("a period");
    assert!((period_s - 42.0).abs() < 0.5, "{period_s}");
    let text = answer.text();
    for words in [
        "noise: response p99 [run] 1.4 s at 1,575/s failed in step 2, 200 ms at 1,821/s passed in step 3; find what",
        "noise: response p99 rises about every 42 s; steadier collections",
        "noise: 2 steps unclear, such as step 4: shape [run]; lower the rate",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(!text.contains("unclear and repeated"), "{text}");
    let read = CapacityReport::from_json(&answer.to_json()).expect("an answer");
    assert_eq!(read, answer);
}

#[test]
fn a_search_without_noise_names_none() {
    let even = [(1_400.0, Some(0.2)), (1_821.0, Some(1.4))];
    let answer = noisy(&even).concluded(&windows(false));
    assert_eq!(answer.own.noise, []);
    // One unclear step of five did not take the time.
    let passing = [(1_400.0, Some(0.2)); 4];
    let one_unclear = [&passing[..], &[(1_821.0, None)]].concat();
    let answer = noisy(&one_unclear).concluded(&windows(false));
    assert_eq!(answer.own.noise, []);
    // The ramp alone took it.
    let mut ramp = noisy(&passing);
    ramp.own.known = None;
    assert_eq!(ramp.concluded(&windows(true)).own.noise, []);
    // What is found is stated, whatever noise there was.
    assert_eq!(found().concluded(&windows(true)).own.noise, []);
}
