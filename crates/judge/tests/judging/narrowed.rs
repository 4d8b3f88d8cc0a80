//! Rules that narrower ones took streams out of.

use muster_judge::{
    Allowance, Latency, OwnDelay, Percentile, RuleOutcome, Rules, Scope, Share, SloBound,
    StreamRole, Unevaluated,
};
use muster_measure::GroupSummary;
use muster_model::{FleetId, Micros, Outcome, Reason, StreamId};

use crate::run::{Run, rule};

fn p99(of: Latency, at_most_ms: u64) -> SloBound {
    SloBound::Latency {
        of,
        percentile: Percentile::P99,
        at_most: Micros::from_millis(at_most_ms),
    }
}

/// Returns whether a rule of the run is judged on a stream of this role, if the run's other stream
/// has a rule of the same name.
fn is_judged_on(role: StreamRole, bound: SloBound) -> bool {
    let first = Scope::Stream {
        fleet: FleetId(0),
        id: StreamId(0),
        name: "meters/readings".to_owned(),
    };
    let mut run = Run::healthy(100, 10);
    run.rules = Rules::builder(true)
        .slo(Scope::Run, bound)
        .slo(first, bound)
        .build();
    let mut summary = run.summary();
    summary.streams.push(summary.streams[0].clone());
    summary.groups = vec![GroupSummary {
        streams: vec![StreamId(1)],
        scope: summary.run.clone(),
    }];
    let fleet = FleetId(0);
    let verdict = run.judged_roles(&summary, &[(fleet, StreamRole::Uplink), (fleet, role)]);
    let mut rules = verdict.rules.iter();
    rules.any(|rule| rule.rule == bound.rule() && rule.scope == "run")
}

#[test]
fn a_rule_is_judged_on_the_streams_that_are_left_if_it_can_be_about_them() {
    const ROLES: [StreamRole; 5] = [
        StreamRole::Uplink,
        StreamRole::Query,
        StreamRole::Command { is_two_way: true },
        StreamRole::Command { is_two_way: false },
        StreamRole::Receive,
    ];
    let none = Allowance::Count(0);
    let half = Share::whole_percent(50);
    for (bound, expected) in [
        (SloBound::Loss(none), [true, true, false, false, false]),
        (
            SloBound::Duplicates(none),
            [true, true, false, false, false],
        ),
        (
            SloBound::FailureRatio(half),
            [true, true, false, false, false],
        ),
        (
            p99(Latency::Response, 50),
            [true, true, false, false, false],
        ),
        (
            p99(Latency::EndToEnd, 50),
            [true, true, false, false, false],
        ),
        (
            p99(Latency::CommandRequest, 50),
            [false, true, false, false, false],
        ),
        (
            SloBound::QueriesWithCommand(half),
            [false, true, false, false, false],
        ),
        (
            p99(Latency::CommandResponse, 50),
            [false, false, true, false, false],
        ),
        (
            p99(Latency::CommandLoop, 50),
            [false, false, true, false, false],
        ),
        (
            SloBound::RepliesLost(none),
            [false, false, true, false, false],
        ),
        (
            SloBound::NotReceived(none),
            [false, false, true, true, false],
        ),
        (
            SloBound::ReceiveLoss(none),
            [false, false, false, false, true],
        ),
    ] {
        assert_eq!(
            ROLES.map(|role| is_judged_on(role, bound)),
            expected,
            "{bound:?}"
        );
    }
}

/// Fleet A has a response rule of its own that holds, and its end-to-end rule fails. The wider
/// response rule, which is left with fleet B, is undecided by our own delay.
#[test]
fn a_response_rule_of_other_streams_leaves_no_end_to_end_rule_undecided() {
    let fleet_a = || Scope::Fleet {
        id: FleetId(0),
        name: "a".to_owned(),
    };
    let mut a = Run::healthy(100, 20);
    a.rules = Rules::builder(true)
        .slo(Scope::Run, p99(Latency::Response, 50))
        .slo(fleet_a(), p99(Latency::Response, 50))
        .slo(fleet_a(), p99(Latency::EndToEnd, 50))
        .build();
    a.measured().for_each(|m| m.seen = Some(m.due + 60_000));
    let mut b = Run::healthy(100, 20).names(&[p99(Latency::Response, 50)]);
    for message in b.measured().step_by(10) {
        (message.ended, message.own) = (message.due + 60_000, 15_000);
    }
    let (mut summary, of_b) = (a.summary(), b.summary());
    summary.fleets.push(of_b.fleets[0].clone());
    summary.streams.push(of_b.streams[0].clone());
    summary.groups = vec![GroupSummary {
        streams: vec![StreamId(1)],
        scope: of_b.run,
    }];
    let uplinks = [0, 1].map(|fleet| (FleetId(fleet), StreamRole::Uplink));
    let verdict = a.judged_roles(&summary, &uplinks);
    let response = verdict
        .rules
        .iter()
        .find(|rule| rule.rule == "response p99" && rule.scope == "run");
    let undecided = RuleOutcome::NotEvaluated(Unevaluated::OwnDelay(OwnDelay::Answers));
    assert_eq!(response.map(|rule| &rule.outcome), Some(&undecided));
    assert_eq!(rule(&verdict, "end-to-end p99").outcome, RuleOutcome::Fail);
}

#[test]
fn completion_leaves_out_the_same_streams_as_the_failure_ratio() {
    let first = Scope::Stream {
        fleet: FleetId(0),
        id: StreamId(0),
        name: "meters/readings".to_owned(),
    };
    let mut run = Run::healthy(100, 10);
    run.rules = Rules::builder(true)
        .slo(first, SloBound::FailureRatio(Share::whole_percent(1)))
        .build();
    run.messages[0].ends(Outcome::Rejected(Reason::Mqtt(0x97)));
    let mut summary = run.summary();
    summary.streams.push(summary.streams[0].clone());
    let mut scope = summary.run.clone();
    scope.uplink.session.completed = 100;
    summary.groups = vec![GroupSummary {
        streams: vec![StreamId(1)],
        scope,
    }];
    let verdict = run.judged_streams(&summary, 2);
    let incomplete = rule(&verdict, "incomplete");
    assert_eq!(incomplete.except, ["meters/readings"]);
    assert!(
        incomplete
            .evidence
            .ends_with("; not counted here: meters/readings")
    );
}
