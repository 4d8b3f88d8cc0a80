//! The truth table of blame on whole runs: a rule that only our own delay breaks makes the run
//! invalid, one that the platform breaks by more is a fail, and one that holds passes.

use std::collections::BTreeMap;

use muster_judge::{
    Consequence, Ending, Evidence, GeneratorHealth, Hints, Reason, RunResult, StreamEvidence,
    StreamRole, Verdict, judge,
};
use muster_measure::WindowDelta;
use muster_model::{FleetId, Micros, Promise};
use muster_plan::Plan;
use muster_sim::{Behaviour, Stall, What, Whose, Why, World};

use crate::laws::{checked, incident, parsed, seed};

/// 1,600 messages while measuring, so that 16 may exceed a p99.
fn plan(bound_ms: u64) -> Plan {
    parsed(&format!(
        "
name: blame
fleet: [{{ name: meters, count: 16, streams: [{{ name: r, rate: 400/s, qos: 1, payload: {{ size: 64 }} }}] }}]
phases: {{ warm-up: 1s, measure: 4s, settle: {{ at-most: 30s, quiet: 500ms }} }}
slo: {{ response: {{ p99: '<= {bound_ms}ms' }}, end-to-end: {{ p99: '<= {bound_ms}ms' }} }}
"
    ))
}

/// A thread that waits for a CPU for 140 ms: 56 messages are late, 36 of them by more than 50 ms,
/// and too few by more than 100 ms for rule `shape`.
fn starved(whose: Whose) -> Stall {
    Stall {
        at: Micros::from_millis(4_000),
        lasts: Micros::from_millis(140),
        whose,
        why: Why::CpuWait,
    }
}

fn verdict(bound_ms: u64, behaviour: Behaviour, stalls: &[Stall]) -> Verdict {
    judged(plan(bound_ms), behaviour, stalls)
}

fn judged(plan: Plan, behaviour: Behaviour, stalls: &[Stall]) -> Verdict {
    let rules = plan.rules.clone();
    let mut world = World::new(plan, behaviour, seed()).expect("it can be placed");
    stalls.iter().for_each(|stall| world.stall(*stall));
    let run = checked(world.run().expect("time goes on"));
    let stream = StreamEvidence {
        role: StreamRole::Uplink,
        name: "meters/r".to_owned(),
        fleet: FleetId(0),
        promise: Promise::Enqueued,
        is_delivery_seen: true,
        is_closed: false,
        holds: Vec::new(),
    };
    let evidence = Evidence {
        summary: &run.summary,
        windows: &WindowDelta::default(),
        health: &GeneratorHealth::default(),
        streams: &[stream],
        fleets: &["meters".to_owned()],
        reason_strings: &BTreeMap::new(),
        hints: &Hints::default(),
        backends: &["backend".to_owned()],
        ending: &Ending::Planned,
        is_part: false,
        found: &[],
        resources: &[],
    };
    judge(&rules, &evidence)
}

fn reasons(verdict: &Verdict) -> Vec<(&str, Reason)> {
    let rules = verdict.rules.iter();
    rules
        .filter_map(|rule| Some((rule.rule.as_str(), rule.reason?)))
        .collect()
}

fn slow(by_ms: u64) -> Behaviour {
    Behaviour {
        answer_after: Micros::from_millis(by_ms),
        deliver_after: Micros::from_millis(by_ms),
        ..Behaviour::default()
    }
}

#[test]
fn a_starved_generator_whose_rules_hold_passes_and_says_what_was_its_own() {
    let verdict = verdict(200, Behaviour::default(), &[starved(Whose::Devices)]);
    assert_eq!(verdict.result, RunResult::Pass, "{:#?}", verdict.rules);
    let response = verdict
        .rules
        .iter()
        .find(|rule| rule.rule == "response p99");
    let note = response.and_then(|rule| rule.note.clone());
    let note = note.expect("a caveat");
    assert!(note.contains("the difference is our own delay"), "{note}");
}

#[test]
fn a_response_that_only_a_starved_generator_lengthens_is_invalid() {
    let verdict = verdict(50, Behaviour::default(), &[starved(Whose::Devices)]);
    let reasons = reasons(&verdict);
    assert!(
        reasons.contains(&("response p99", Reason::OwnDelay)),
        "{reasons:?}"
    );
    let found = (verdict.result, verdict.would_be);
    assert_eq!(found, (RunResult::Invalid, Some(RunResult::Fail)));
}

#[test]
fn a_delivery_that_only_a_starved_consumer_delays_is_invalid() {
    let verdict = verdict(50, Behaviour::default(), &[starved(Whose::Consumers)]);
    assert_eq!(
        reasons(&verdict),
        [("end-to-end p99", Reason::OwnDelayEndToEnd)]
    );
    assert_eq!(verdict.would_be, Some(RunResult::Fail));
}

#[test]
fn a_platform_that_is_slower_by_more_fails_beside_the_same_stall() {
    for stalls in [
        &[] as &[Stall],
        &[starved(Whose::Devices)],
        &[starved(Whose::Consumers)],
    ] {
        let verdict = verdict(50, slow(300), stalls);
        assert_eq!(verdict.result, RunResult::Fail, "{:#?}", verdict.rules);
    }
}

#[test]
fn what_a_platform_loses_is_lost_however_late_we_were() {
    let losing = Behaviour {
        lose: 0.01,
        ..Behaviour::default()
    };
    let verdict = verdict(200, losing, &[starved(Whose::Devices)]);
    let failed = verdict
        .rules
        .iter()
        .any(|rule| rule.rule == "loss" && rule.outcome == muster_judge::RuleOutcome::Fail);
    assert!(failed, "{:#?}", verdict.rules);
}

/// The fleet of `e2e/blame.sh`, smaller, with further keys of its stream and its rules.
fn target(stream: &str, slo: &str) -> Plan {
    parsed(&format!(
        "
name: blame
fleet:
  - name: meters
    count: 16
    reconnect: {{ min: 2s, max: 3s }}
    streams: [ {{ name: readings, rate: 400/s, qos: 1, timeout: 3s, payload: {{ size: 64 }} {stream} }} ]
phases: {{ warm-up: 0s, measure: 6s, settle: {{ at-most: 30s, quiet: 1s }} }}
slo: {{ loss: 0, failure-ratio: '<= 1%', connected: 100%, response: {{ p99: '<= 1s' }} {slo} }}
"
    ))
}

/// The target is blamed, by these rules.
fn fails(plan: Plan, behaviour: Behaviour, rules: &[&str]) {
    let verdict = judged(plan, behaviour, &[]);
    let failed = verdict
        .rules
        .iter()
        .filter(|rule| rule.consequence == Consequence::Fails);
    let failed: Vec<&str> = failed.map(|rule| rule.rule.as_str()).collect();
    assert_eq!(failed, rules, "{:#?}", verdict.rules);
    assert_eq!(verdict.result, RunResult::Fail, "{:#?}", verdict.rules);
}

#[test]
fn a_target_that_answers_late_because_messages_queue_there_fails() {
    fails(target("", ""), slow(2_000), &["response p99"]);
}

#[test]
fn a_target_that_rejects_what_is_beyond_its_capacity_fails() {
    let rejecting = Behaviour {
        reject: 0.75,
        ..Behaviour::default()
    };
    fails(target("", ""), rejecting, &["failure-ratio"]);
}

#[test]
fn a_target_that_drops_what_is_beyond_its_capacity_fails() {
    let dropping = Behaviour {
        drop: 0.75,
        ..Behaviour::default()
    };
    fails(target("", ""), dropping, &["failure-ratio", "response p99"]);
}

#[test]
fn a_target_that_stops_reading_for_a_time_fails() {
    let blocking = Behaviour {
        hold: 0.2,
        hold_for: Micros::from_millis(1_500),
        ..Behaviour::default()
    };
    fails(target("", ""), blocking, &["failure-ratio", "response p99"]);
}

#[test]
fn a_target_that_rejects_every_publish_fails_where_a_rule_names_end_to_end() {
    let rejecting = Behaviour {
        reject: 1.0,
        ..Behaviour::default()
    };
    let plan = target("", ", end-to-end: { p99: '<= 1s' }");
    fails(plan, rejecting, &["failure-ratio", "end-to-end p99"]);
}

#[test]
fn a_target_too_slow_for_one_message_at_a_time_fails_whether_the_rest_waits_or_is_shed() {
    let response = "response p99";
    for (overflow, rules) in [
        ("queue, bound: 1000", &[response] as &[&str]),
        ("shed", &["failure-ratio", response]),
    ] {
        let stream = format!(", loop: {{ in-flight: 1, overflow: {overflow} }}");
        fails(target(&stream, ""), slow(100), rules);
    }
}

#[test]
fn a_target_that_takes_one_publish_at_a_time_fails() {
    let narrow = Behaviour {
        receive_maximum: 1,
        ..slow(100)
    };
    let plan = target("", "");
    fails(plan, narrow, &["response p99"]);
}

#[test]
fn a_target_that_closes_links_fails() {
    let closing = Behaviour {
        incidents: incident(2_000, What::Fin),
        ..Behaviour::default()
    };
    let plan = target("", ", disconnects: 0");
    fails(plan, closing, &["disconnects", "response p99"]);
}
