//! Rule `soak`: the resources of the target last under the load.

use muster_judge::outlook::{Extremes, Limit, Outlook};
use muster_judge::{ResourceOutlook, RuleOutcome, RuleResult, RunResult, Unevaluated};
use muster_model::Micros;

use crate::run::{Run, rule};

const DAY: Micros = Micros::from_secs(86_400);

/// A resource with a limit of 1,000, sampled for 600 s, that grows by so much a second.
fn resource(name: &str, per_second: f64, seconds: u32) -> ResourceOutlook {
    let extremes = (0..seconds).map(|second| {
        let value = 100.0 + per_second * f64::from(second);
        Extremes {
            t_s: f64::from(second),
            min: value,
            max: value,
        }
    });
    let extremes: Vec<Extremes> = extremes.collect();
    ResourceOutlook {
        name: name.to_owned(),
        outlook: Outlook::of(&extremes, 1.0, Limit::Ceiling(1_000.0), DAY.as_secs_f64()),
    }
}

fn judged(resources: Vec<ResourceOutlook>) -> (RunResult, RuleResult) {
    let mut run = Run::healthy(100, 40);
    run.rules.soak = Some(DAY);
    run.resources = resources;
    let verdict = run.judged();
    (verdict.result, rule(&verdict, "soak").clone())
}

#[test]
fn a_run_without_soak_has_no_such_rule() {
    let verdict = Run::healthy(100, 40).judged();
    assert!(verdict.rules.iter().all(|rule| rule.rule != "soak"));
}

#[test]
fn resources_that_do_not_move_are_sustainable() {
    let all = ["broker memory", "broker descriptors"].map(|name| resource(name, 0.0, 600));
    let (result, soak) = judged(all.into());
    assert_eq!(
        (result, &soak.outcome),
        (RunResult::Pass, &RuleOutcome::Pass)
    );
    assert_eq!(
        soak.evidence,
        "sustainable: each of 2 resources lasts for 24 h at this rate"
    );
}

#[test]
fn the_resource_that_runs_out_first_fails_the_run() {
    let slow = resource("store disk", 0.1, 600);
    let fast = resource("broker memory", 0.5, 600);
    let (result, soak) = judged(vec![slow, resource("broker cpu", 0.0, 600), fast]);
    assert_eq!(
        (result, &soak.outcome),
        (RunResult::Fail, &RuleOutcome::Fail)
    );
    let evidence = soak.evidence.as_str();
    // 1,000 less 400 at 0.5 a second.
    let words = "not sustainable: broker memory in 20:0";
    assert!(evidence.starts_with(words), "{evidence}");
    assert!(evidence.contains("; store disk in 2:20:0"), "{evidence}");
    assert!(!evidence.contains("cpu"), "{evidence}");
}

#[test]
fn too_short_a_load_is_unclear_and_invalid() {
    let (result, soak) = judged(vec![resource("broker memory", 0.5, 8)]);
    assert_eq!(result, RunResult::Invalid);
    assert_eq!(result.exit_code(), 3);
    assert!(
        matches!(soak.outcome, RuleOutcome::NotEvaluated(Unevaluated::Trend { needed_s }) if needed_s > 8),
        "{soak:?}"
    );
    assert!(
        soak.evidence.starts_with("unclear: needs at least "),
        "{}",
        soak.evidence
    );
}

#[test]
fn a_soak_without_a_resource_is_invalid() {
    let (result, soak) = judged(Vec::new());
    assert_eq!(result, RunResult::Invalid);
    assert_eq!(
        soak.outcome,
        RuleOutcome::NotEvaluated(Unevaluated::NoLimit)
    );
}
