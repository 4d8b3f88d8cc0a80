//! The steps of a run, each judged by what was due in it.

use muster_judge::capacity::{
    Next, Observed, Outcome as StepOutcome, Search, SearchEnd, SearchSpec,
};
use muster_judge::{
    Ending, Hold, Incident, IncidentKind, Latency, OwnDelay, Percentile, RuleOutcome, RunResult,
    SloBound, StepVerdict, Unevaluated,
};
use muster_model::{Micros, Outcome, Rate};

use crate::recorded::recorded_in_steps;
use crate::run::{MEASURE, Message, Run};

/// Three steps of 20 s.
const STARTS: [u32; 3] = [4, 24, 44];

/// A run with a bound of 50 ms on the response, whose messages from one second of the measured phase to
/// another are changed.
fn run(seconds: std::ops::Range<u64>, change: impl Fn(&mut Message)) -> Run {
    let mut run = Run::healthy(100, 60).names(&[SloBound::Latency {
        of: Latency::Response,
        percentile: Percentile::P99,
        at_most: Micros::from_millis(50),
    }]);
    let span = (MEASURE + seconds.start) * 1_000_000..(MEASURE + seconds.end) * 1_000_000;
    let hit = run.measured().filter(|message| span.contains(&message.due));
    hit.for_each(change);
    let offered = Rate::per_second(100.0).expect("a rate");
    let holds = STARTS.map(|start| Hold {
        from: Micros::from_secs(u64::from(start)),
        until: Micros::from_secs(u64::from(start) + 20),
        offered,
    });
    run.holds = Some(holds.to_vec());
    run
}

fn judged(run: &Run) -> Vec<StepVerdict> {
    let (whole, steps) = recorded_in_steps(run, &STARTS);
    let steps = steps.iter().map(|step| run.judged_step(&whole, step));
    steps
        .map(|step| step.expect("messages are due in it"))
        .collect()
}

fn results(run: &Run) -> Vec<RunResult> {
    judged(run).into_iter().map(|step| step.result).collect()
}

fn failed(step: &StepVerdict) -> Vec<&str> {
    let rules = step.rules.iter();
    let failed = rules.filter(|rule| rule.outcome == RuleOutcome::Fail);
    failed.map(|rule| rule.rule.as_str()).collect()
}

const PASS: RunResult = RunResult::Pass;
const FAIL: RunResult = RunResult::Fail;
const INVALID: RunResult = RunResult::Invalid;

#[test]
fn a_step_fails_by_what_was_due_in_it_and_no_other_does() {
    assert_eq!(results(&run(0..0, |_| {})), [PASS; 3]);
    let slow = run(25..27, |message| message.ended = message.due + 60_000);
    assert_eq!(results(&slow), [PASS, FAIL, PASS]);
    assert_eq!(failed(&judged(&slow)[1]), ["response p99"]);
    // Due in the first step, answered in the second.
    let late = run(19..20, |message| message.ended = message.due + 2_000_000);
    assert_eq!(results(&late), [FAIL, PASS, PASS]);
    let lost = run(59..60, |message| message.seen = None);
    assert_eq!(results(&lost), [PASS, PASS, FAIL]);
    assert_eq!(failed(&judged(&lost)[2]), ["loss"]);
    let refused = run(30..31, |message| message.ends(Outcome::TimedOut));
    assert_eq!(
        failed(&judged(&refused)[1]),
        ["failure-ratio", "response p99"]
    );
}

#[test]
fn a_step_that_only_our_own_delay_breaks_is_invalid() {
    let own = run(25..27, |message| {
        message.ended = message.due + 60_000;
        message.own = 40_000;
    });
    let steps = judged(&own);
    let results: Vec<RunResult> = steps.iter().map(|step| step.result).collect();
    assert_eq!(results, [PASS, INVALID, PASS]);
    let open = RuleOutcome::NotEvaluated(Unevaluated::OwnDelay(OwnDelay::Answers));
    assert!(steps[1].rules.iter().any(|rule| rule.outcome == open));
}

/// A generator without CPU from some load on sends late, so that its target seems to be slow.
#[test]
fn a_search_by_a_starved_generator_finds_no_capacity() {
    const STARVES_AT: f64 = 400.0;
    let starved = run(20..40, |message| {
        message.late = 60_000;
        message.own = 60_000;
        message.ended += 60_000;
    });
    let outcome = |run: &Run| match judged(run)[1].result {
        PASS => StepOutcome::Pass,
        FAIL => StepOutcome::Fail,
        RunResult::Invalid | RunResult::None | RunResult::Part => StepOutcome::Unclear,
    };
    let (healthy, starved) = (outcome(&run(0..0, |_| {})), outcome(&starved));
    assert_eq!(
        (healthy, starved),
        (StepOutcome::Pass, StepOutcome::Unclear)
    );
    let (short, long) = SearchSpec::lengths(Micros::from_millis(50));
    let mut search = Search::new(SearchSpec {
        first: 50.0,
        most: 10_000.0,
        width: 0.1,
        short,
        long,
        load_seconds: 0.0,
        budget: Micros::from_secs(6_000),
    })
    .expect("a search");
    let end = loop {
        match search.next() {
            Next::End(end) => break end,
            Next::Hold(step) => {
                let outcome = match step.rate < STARVES_AT {
                    true => healthy,
                    false => starved,
                };
                search.record(&Observed::new(outcome, step.hold));
            }
        }
    };
    let SearchEnd::NothingClear { known, passed, .. } = end else {
        panic!("it ends with {end:?}");
    };
    assert_eq!(known, None);
    assert!(passed.is_some_and(|passed| passed < STARVES_AT));
}

#[test]
fn an_incident_is_of_the_steps_that_it_can_have_changed() {
    let mut run = run(0..0, |_| {});
    let incident = |at: u64| Incident {
        kind: IncidentKind::LimitReached,
        from: Micros::from_secs(at),
        until: Micros::from_secs(at),
        count: 1,
        detail: "ports".to_owned(),
    };
    run.health.incidents = vec![incident(40)];
    assert_eq!(results(&run), [PASS, INVALID, PASS]);
    run.health.incidents = vec![incident(48)];
    assert_eq!(results(&run), [PASS, INVALID, INVALID]);
}

#[test]
fn an_interruption_is_of_the_step_in_which_it_came() {
    let mut run = run(0..0, |_| {});
    run.ending = Ending::Interrupted;
    assert_eq!(results(&run), [PASS, PASS, INVALID]);
}

#[test]
fn a_named_rule_with_too_few_messages_leaves_its_step_undecided() {
    let mut run = run(0..0, |_| {});
    run.messages
        .retain(|message| message.due < 24_000_000 || message.due % 1_000_000 < 100_000);
    let steps = judged(&run);
    assert_eq!(steps[0].result, PASS);
    assert_eq!(steps[1].result, INVALID);
    let few = |step: &StepVerdict| {
        let mut rules = step.rules.iter();
        rules.any(|rule| {
            rule.outcome
                == RuleOutcome::NotEvaluated(Unevaluated::TooFewMessages {
                    have: 200,
                    needed: 1_000,
                })
        })
    };
    assert!(few(&steps[1]));
}

#[test]
fn a_step_without_anything_due_is_not_judged() {
    let mut run = run(0..0, |_| {});
    run.messages
        .retain(|message| !(24_000_000..44_000_000).contains(&message.due));
    let (whole, steps) = recorded_in_steps(&run, &STARTS);
    let steps = steps.iter().map(|step| run.judged_step(&whole, step));
    let results: Vec<_> = steps.map(|step| step.map(|it| it.result)).collect();
    assert_eq!(results, [Some(PASS), None, Some(PASS)]);
}

#[test]
fn rules_of_the_whole_run_are_not_judged_by_step() {
    let run = run(0..0, |_| {});
    let named = |name: &str| {
        let steps = judged(&run);
        steps[0].rules.iter().any(|rule| rule.rule == name)
    };
    assert!(
        ["loss", "disconnects", "residue", "shape"]
            .into_iter()
            .all(named)
    );
    assert!(
        !["connected", "drain", "something-due", "stop-if"]
            .into_iter()
            .any(named)
    );
    assert!(!named("stable"), "twenty seconds are too few");
}
