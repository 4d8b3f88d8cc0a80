//! Whole runs against model platforms whose application acknowledges messages.

use muster_model::Micros;
use muster_plan::Plan;
use muster_sim::{Behaviour, Incident, Run, What, World};
use proptest::prelude::*;

use crate::laws::{checked, config, incident, parsed, seed, shares, uplink};

/// Messages of 12 devices in 4 s.
const MESSAGES: u64 = 480;

fn plan(fleet: &str, stream: &str) -> Plan {
    parsed(&format!(
        "
name: world
platform: {{ kind: gateway, dialect: sap-edge }}
fleet: [{{ name: meters, count: 12, {fleet} streams: [{{ name: r, rate: 120/s, {stream} }}] }}]
phases: {{ warm-up: 1s, measure: 3s, settle: {{ at-most: 40s, quiet: 500ms }} }}
"
    ))
}

fn run(fleet: &str, stream: &str, behaviour: Behaviour) -> Run {
    run_of(seed(), fleet, stream, behaviour)
}

/// A run for which the laws of every run hold.
fn run_of(seed: u64, fleet: &str, stream: &str, behaviour: Behaviour) -> Run {
    let world = World::new(plan(fleet, stream), behaviour, seed).expect("the plan can be placed");
    let run = checked(world.run().expect("time goes on"));
    assert_eq!(run.platform.malformed, 0);
    run
}

#[test]
fn the_application_accepts_and_the_transport_is_counted_beside_it() {
    for (qos, transport) in [(0, 0), (1, MESSAGES), (2, MESSAGES)] {
        let run = run("", &format!("qos: {qos}"), Behaviour::default());
        let ledger = uplink(&run);
        assert_eq!(ledger.accepted, MESSAGES, "QoS {qos}");
        assert_eq!(
            ledger.session.transport_acknowledged, transport,
            "QoS {qos}"
        );
        assert_eq!(
            (ledger.session.answered_late, ledger.session.answered_again),
            (0, 0)
        );
        assert_eq!(
            (ledger.arrivals.arrived, ledger.arrivals.lost),
            (None, None),
            "no northbound"
        );
    }
}

#[test]
fn nothing_is_published_before_every_subscription_was_granted() {
    let run = run("", "", Behaviour::default());
    assert_eq!(run.platform.subscribed, 12);
    assert_eq!(run.platform.unsubscribed, 0);
    assert_eq!(run.summary.run.links.connected, 12);
}

#[test]
fn a_refused_subscription_is_a_connect_failure_of_its_own() {
    let ways = Behaviour {
        refuse_subscribe: 1.0,
        ..Behaviour::default()
    };
    let run = run("reconnect: { min: 1s, max: 1s },", "", ways);
    let links = &run.summary.run.links;
    assert_eq!(links.connected, 0);
    assert!(links.connect_failures["subscribe-rejected-0x87"] >= 12);
    assert_eq!(links.connect_failures.len(), 1, "{links:?}");
    assert_eq!(uplink(&run).sent, 0);
}

#[test]
fn what_the_application_did_is_what_the_ledger_says() {
    let ways = Behaviour {
        reject: 0.05,
        drop: 0.04,
        garble: 0.05,
        mislead: 0.03,
        duplicate: 0.06,
        ..Behaviour::default()
    };
    for qos in [0, 1] {
        let run = run("", &format!("qos: {qos}, timeout: 2s"), ways.clone());
        let (ledger, platform) = (uplink(&run), run.platform);
        assert!(platform.garbled > 0 && platform.misled > 0 && platform.duplicated > 0);
        assert_eq!(ledger.accepted, platform.accepted);
        assert_eq!(ledger.rejected_by_code["503"], platform.rejected);
        let silent = platform.dropped + platform.garbled + platform.misled;
        assert_eq!(ledger.timed_out, silent);
        assert_eq!(ledger.session.answered_malformed, platform.garbled);
        assert_eq!(ledger.session.answered_unknown, platform.misled);
        assert_eq!(ledger.session.answered_again, platform.duplicated);
    }
}

/// Every other acknowledgement of a device keeps its attempts alive: with one stream of messages
/// each 100 ms nothing is overdue before the device is silent for the whole time-out.
#[test]
fn a_time_out_begins_anew_with_each_acknowledgement_of_the_device() {
    let ways = Behaviour {
        late: 0.2,
        late_by: Micros::from_millis(1_500),
        ..Behaviour::default()
    };
    let run = run("", "timeout: 1s", ways);
    let ledger = uplink(&run);
    let response = ledger.accepted + ledger.timed_out;
    assert_eq!(response, MESSAGES);
    // Those whose acknowledgement is late are waited for as long as others come: what times out
    // was sent in the last second before the devices fall silent.
    assert!(ledger.accepted > MESSAGES * 9 / 10, "{}", ledger.accepted);
    assert!(ledger.session.answered_late <= ledger.timed_out);
}

#[test]
fn a_device_without_any_acknowledgement_times_out_after_the_time_from_sent() {
    let deaf = Behaviour {
        drop: 1.0,
        ..Behaviour::default()
    };
    let run = run("", "", deaf);
    assert_eq!(uplink(&run).timed_out, MESSAGES);
    // By default: the last one is due some 100 ms before the end of the measured phase.
    let settled = run.summary.end - run.summary.timeline.settle;
    assert!(settled >= Micros::from_millis(29_900), "{settled}");
}

#[test]
fn a_link_that_ends_breaks_its_attempts_and_subscribes_again() {
    let ways = Behaviour {
        answer_after: Micros::from_millis(60),
        incidents: incident(3_050, What::Reset),
        ..Behaviour::default()
    };
    let run = run("reconnect: { min: 100ms, max: 1s },", "", ways);
    let ledger = uplink(&run);
    assert_eq!(run.platform.subscribed, 24);
    assert_eq!(run.summary.run.links.connected, 24);
    assert!(ledger.broken > 0);
    assert_eq!(ledger.broken + ledger.accepted, MESSAGES);
    assert_eq!(run.platform.unheard, ledger.broken - unread(&run));
}

/// Number of messages that were sent and did not reach the platform before their connection ended.
fn unread(run: &Run) -> u64 {
    uplink(run).sent - run.platform.received
}

#[test]
fn half_written_messages_are_acknowledged_once() {
    let ways = Behaviour {
        hold: 0.5,
        duplicate: 0.1,
        incidents: incident(2_500, What::Reset),
        ..Behaviour::default()
    };
    for qos in [0, 1] {
        let fleet = "reconnect: { min: 100ms, max: 200ms }, client: { clean-start: false, session-expiry: 60s },";
        let run = run(fleet, &format!("qos: {qos}, timeout: 2s"), ways.clone());
        let ledger = uplink(&run);
        let ends = ledger.accepted + ledger.timed_out + ledger.broken;
        assert_eq!(ends, MESSAGES, "QoS {qos}");
        assert!(ledger.accepted > MESSAGES * 9 / 10, "QoS {qos}");
    }
}

#[test]
fn a_closed_loop_waits_for_the_application() {
    let slow = Behaviour {
        answer_after: Micros::from_millis(250),
        ..Behaviour::default()
    };
    let run = run("", "loop: closed", slow);
    let sent = uplink(&run).scheduled.unwrap();
    assert!((12 * 15..=12 * 16).contains(&sent), "{sent}");
    assert_eq!(uplink(&run).accepted, sent);
}

#[test]
fn streams_of_one_device_are_told_apart_by_their_ids() {
    let text = "
name: world
platform: { kind: gateway, dialect: sap-edge }
fleet: [{ name: meters, count: 3, streams: [
  { name: a, rate: 30/s }, { name: b, rate: 60/s, payload: { sap-measures: { samples: 2 } } } ] }]
phases: { warm-up: 0s, measure: 2s, settle: { at-most: 40s, quiet: 500ms } }
";
    let ways = Behaviour {
        reject: 0.3,
        ..Behaviour::default()
    };
    let run = World::new(parsed(text), ways, 1).unwrap().run().unwrap();
    let streams: Vec<u64> = run
        .summary
        .streams
        .iter()
        .map(|stream| stream.uplink.accepted + stream.uplink.rejected)
        .collect();
    assert_eq!(streams, [60, 120]);
    assert_eq!(uplink(&run).session.answered_unknown, 0);
}

prop_compose! {
    fn behaviours()(
        answers in (shares(), shares(), shares(), shares(), shares(), shares()),
        links in (shares(), shares(), shares(), shares(), shares()),
        keeps_sessions: bool,
        answer_ms in prop_oneof![Just(0u64), Just(1), Just(80), Just(400)],
        hold_ms in 0u64..3_000,
        incidents in prop::collection::vec((0u64..6_000, 0.1f64..1.0, any::<bool>()), 0..5),
    ) -> Behaviour {
        let incident = |(at_ms, share, is_reset): (u64, f64, bool)| Incident {
            at: Micros::from_millis(at_ms),
            share,
            what: if is_reset { What::Reset } else { What::Fin },
        };
        Behaviour {
            reject: answers.0,
            drop: answers.1,
            late: answers.2,
            late_by: Micros::from_millis(1_700),
            duplicate: answers.3,
            garble: answers.4,
            mislead: answers.5,
            refuse_connect: links.0,
            deaf: links.1,
            refuse_session: links.2,
            refuse_subscribe: links.3,
            hold: links.4,
            hold_for: Micros::from_millis(hold_ms),
            keeps_sessions,
            answer_after: Micros::from_millis(answer_ms),
            incidents: incidents.into_iter().map(incident).collect(),
            ..Behaviour::default()
        }
    }
}

proptest! {
    #![proptest_config(config())]

    /// Every scheduled message has exactly one final state, and every equation of the ledger holds,
    /// whatever a platform whose application acknowledges and its network do.
    #[test]
    fn the_ledger_always_closes(
        ways in behaviours(),
        qos in 0u8..3,
        policy in prop_oneof![
            Just("open"),
            Just("closed"),
            Just("{ in-flight: 1, overflow: shed }"),
            Just("{ in-flight: 2, overflow: queue, bound: 3 }"),
        ],
        retry in 0u8..3,
        is_resumed: bool,
        seed: u64,
    ) {
        let fleet = format!(
            "connect: {{ timeout: 300ms }}, reconnect: {{ min: 20ms, max: 500ms }}, \
             client: {{ clean-start: {}, keep-alive: 1s{} }},",
            !is_resumed,
            if is_resumed { ", session-expiry: 60s" } else { "" },
        );
        let stream = format!("qos: {qos}, timeout: 1s, loop: {policy}, retry: {retry}");
        run_of(seed, &fleet, &stream, ways);
    }
}
