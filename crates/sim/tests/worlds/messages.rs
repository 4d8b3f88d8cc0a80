//! Whole runs against model platforms: the ledger closes, whatever the platform does.

use muster_model::Micros;
use muster_plan::{Ack, Plan};
use muster_sim::{Behaviour, Run, What, World};
use proptest::prelude::*;

use crate::laws::{checked, config, incident, incidents, parsed, seed, shares, uplink};

/// A scenario with these keys of its fleet and of its stream.
fn plan(fleet: &str, stream: &str) -> Plan {
    parsed(&format!(
        "
name: world
fleet: [{{ name: meters, count: 12, {fleet} streams: [{{ name: r, rate: 120/s, payload: {{ size: 64 }}, {stream} }}] }}]
phases: {{ warm-up: 1s, measure: 3s, settle: {{ at-most: 30s, quiet: 500ms }} }}
"
    ))
}

fn run(fleet: &str, stream: &str, behaviour: Behaviour) -> Run {
    let world = World::new(plan(fleet, stream), behaviour, seed()).expect("the plan can be placed");
    checked(world.run().expect("time goes on"))
}

#[test]
fn a_faultless_platform_accepts_and_delivers_everything() {
    for qos in 0..3 {
        let run = run("", &format!("qos: {qos}"), Behaviour::default());
        let ledger = uplink(&run);
        assert_eq!(ledger.scheduled, Some(480));
        assert_eq!(ledger.arrivals.arrived, Some(480));
        let answered = if qos == 0 {
            ledger.unacknowledged
        } else {
            ledger.accepted
        };
        assert_eq!(answered, 480);
        assert_eq!(ledger.session.completed, if qos == 2 { 480 } else { 0 });
    }
}

/// The run waits for completions as long as for answers, and then says how many are missing.
#[test]
fn what_is_never_completed_is_accepted_and_counted_as_incomplete() {
    let ways = Behaviour {
        completes: false,
        ..Behaviour::default()
    };
    let run = run("", "qos: 2, timeout: 2s", ways);
    let ledger = uplink(&run);
    assert_eq!((ledger.accepted, ledger.arrivals.arrived), (480, Some(480)));
    assert_eq!(
        (ledger.session.completed, ledger.session.incomplete),
        (0, 480)
    );
    assert_eq!(ledger.residue, Some(0));
}

/// Links that we close on purpose, or that a platform without sessions takes back up: what was
/// accepted before the platform's end of a link is complete or incomplete, and what we ended is neither.
#[test]
fn a_lifetime_of_our_own_leaves_nothing_incomplete() {
    let run = run(
        "connect: { lifetime: 700ms },",
        "qos: 2",
        Behaviour::default(),
    );
    assert_eq!(uplink(&run).session.incomplete, 0);
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_one_does_not() {
    let ways = || Behaviour {
        drop: 0.05,
        duplicate: 0.05,
        hold: 0.1,
        ..Behaviour::default()
    };
    let run = |seed| {
        World::new(plan("", "qos: 1"), ways(), seed)
            .unwrap()
            .run()
            .unwrap()
    };
    assert_eq!(run(3), run(3));
    assert_ne!(run(3), run(4));
}

#[test]
fn what_the_platform_did_is_what_the_ledger_says() {
    let ways = Behaviour {
        reject: 0.05,
        drop: 0.04,
        ignore: 0.03,
        lose: 0.06,
        duplicate: 0.05,
        ..Behaviour::default()
    };
    let run = run("", "qos: 1, timeout: 2s", ways);
    let (ledger, platform) = (uplink(&run), run.platform);
    assert!(platform.lost > 0 && platform.dropped > 0 && platform.ignored > 0);
    assert_eq!(ledger.accepted, platform.accepted);
    assert_eq!(ledger.rejected, platform.rejected);
    assert_eq!(ledger.timed_out, platform.dropped + platform.ignored);
    assert_eq!(ledger.arrivals.lost, Some(platform.lost));
    assert_eq!(ledger.arrivals.duplicates, Some(platform.duplicated));
    assert_eq!(
        ledger.arrivals.timed_out_but_arrived,
        Some(platform.ignored)
    );
    assert_eq!(ledger.arrivals.consumed, Some(platform.delivered));
}

/// Messages are due to 5 s at the latest; settling takes 30 s at the most.
fn run_with_consumers_away(from: u64, until: u64) -> Run {
    let away = Micros::from_millis(from)..Micros::from_millis(until);
    let ways = Behaviour {
        consumers_away: Some(away),
        lose: 0.05,
        ..Behaviour::default()
    };
    run("", "qos: 1", ways)
}

#[test]
fn what_waits_for_consumers_that_come_back_is_never_lost() {
    for until in [4_600, 7_000, 12_000, 33_000] {
        let run = run_with_consumers_away(3_500, until);
        let (ledger, lost) = (uplink(&run), run.platform.lost);
        assert_eq!(ledger.arrivals.lost, Some(lost), "back at {until} ms");
        assert_eq!(ledger.arrivals.arrived, Some(480 - lost));
        assert_eq!(ledger.arrivals.outstanding, Some(0));
    }
}

#[test]
fn what_waits_for_consumers_that_stay_away_is_outstanding() {
    let run = run_with_consumers_away(3_500, 90_000);
    let (ledger, lost) = (uplink(&run), run.platform.lost);
    let absent = ledger.arrivals.lost.zip(ledger.arrivals.outstanding);
    let (called_lost, outstanding) = absent.expect("both are known");
    assert!(called_lost <= lost, "of {lost}: only what was overtaken");
    assert!(outstanding > 100);
    let arrived = ledger.arrivals.arrived.expect("it is known");
    assert_eq!(arrived + called_lost + outstanding, 480);
}

#[test]
fn an_answer_after_the_time_out_changes_nothing_and_is_counted() {
    let ways = Behaviour {
        late: 0.2,
        late_by: Micros::from_millis(1_500),
        ..Behaviour::default()
    };
    let run = run("", "qos: 1, timeout: 1s", ways);
    let ledger = uplink(&run);
    assert!(ledger.timed_out > 0);
    assert_eq!(ledger.accepted + ledger.timed_out, 480);
    // The run ends when all attempts are final and nothing arrives any more; what is answered
    // later than that nobody hears.
    assert!(ledger.session.answered_late > 0 && ledger.session.answered_late <= ledger.timed_out);
}

#[test]
fn what_a_device_may_not_have_in_flight_is_shed_or_waits() {
    let slow = || Behaviour {
        answer_after: Micros::from_millis(150),
        ..Behaviour::default()
    };
    let shed = run("", "qos: 1, loop: { in-flight: 1, overflow: shed }", slow());
    assert_eq!(uplink(&shed).shed_by_cause["in-flight"], uplink(&shed).shed);
    assert!(uplink(&shed).shed > 200, "every other message");
    let queued = run(
        "",
        "qos: 1, loop: { in-flight: 1, overflow: queue, bound: 5 }",
        slow(),
    );
    assert!(uplink(&queued).shed_by_cause["queue-full"] > 0);
    assert_eq!(uplink(&queued).shed_by_cause.len(), 1);
}

#[test]
fn on_a_link_of_many_devices_bounds_are_the_sum_of_theirs() {
    // Three links of four devices, which send 160 messages each.
    let deaf = Behaviour {
        drop: 1.0,
        ..Behaviour::default()
    };
    let stream = "qos: 1, timeout: 10s, loop: { in-flight: 1, overflow: queue, bound: 5 }";
    let queued = run("gateway: { devices: 4 },", stream, deaf);
    // Of them a link has four in flight and twenty in its queue.
    assert_eq!(uplink(&queued).shed_by_cause["queue-full"], 3 * (160 - 24));
}

#[test]
fn the_receive_maximum_is_kept_and_what_waits_behind_it_is_held_not_lost() {
    let ways = Behaviour {
        receive_maximum: 1,
        answer_after: Micros::from_millis(40),
        ..Behaviour::default()
    };
    let run = run("", "qos: 1", ways);
    assert_eq!((uplink(&run).accepted, run.platform.malformed), (480, 0));
}

#[test]
fn what_the_platform_never_takes_is_shed_by_a_cause_of_its_own() {
    let narrow = Behaviour {
        maximum_packet_size: 80,
        ..Behaviour::default()
    };
    let run = run("", "qos: 1", narrow);
    let shed = &uplink(&run).shed_by_cause;
    assert_eq!(Vec::from_iter(shed), [(&"unsendable".to_owned(), &480)]);
}

#[test]
fn what_waits_behind_a_time_out_goes_at_once() {
    let deaf = Behaviour {
        drop: 1.0,
        ..Behaviour::default()
    };
    let stream = "qos: 1, timeout: 2s, loop: { in-flight: 1, overflow: queue, bound: 1000 }";
    let run = run("", stream, deaf);
    // In 4 s of load and 30 s of settling every device has its turn each 2 s.
    assert!(
        uplink(&run).timed_out >= 12 * 15,
        "{}",
        uplink(&run).timed_out
    );
}

#[test]
fn a_closed_loop_never_has_two_messages_open() {
    let ways = Behaviour {
        answer_after: Micros::from_millis(250),
        ..Behaviour::default()
    };
    let run = run("", "qos: 1, loop: closed", ways);
    let ledger = uplink(&run);
    // A period of 100 ms, an answer after 250.4 ms: each device sends in 4 s at most 16.
    let sent = ledger.scheduled.unwrap();
    assert!((12 * 15..=12 * 16).contains(&sent), "{sent}");
    assert_eq!(ledger.omitted, Some(480 - sent));
    assert_eq!(ledger.accepted, sent);
}

#[test]
fn what_was_last_sent_without_an_answer_on_a_link_that_the_platform_ended_is_counted() {
    for (what, cause) in [
        (What::Fin, "closed-by-peer"),
        (What::Reset, "reset"),
        (What::Goodbye(0x99), "disconnect-0x99"),
    ] {
        let ways = Behaviour {
            incidents: incident(3_050, what),
            ..Behaviour::default()
        };
        let run = run("reconnect: { min: 100ms, max: 1s },", "qos: 0", ways);
        let last_sent = &run.summary.run.links.last_sent;
        assert_eq!(last_sent.keys().collect::<Vec<_>>(), [cause]);
        let before: u64 = run
            .summary
            .run
            .series
            .iter()
            .map(|row| match row.second {
                0..3 => row.flow.sent,
                _ => 0,
            })
            .sum();
        // Nothing came from the platform since CONNACK; 50 ms hold less than one message a device.
        assert!(
            (before..=before + 12).contains(&last_sent[cause]),
            "{last_sent:?}, {before}"
        );
    }
    let ways = Behaviour {
        incidents: incident(3_050, What::Goodbye(0x99)),
        ..Behaviour::default()
    };
    let answered = run("reconnect: { min: 100ms, max: 1s },", "qos: 1", ways);
    assert!(
        answered.summary.run.links.last_sent.is_empty(),
        "these are broken, and named so"
    );
}

#[test]
fn a_link_that_ends_breaks_its_attempts_and_comes_back() {
    for what in [What::Fin, What::Reset, What::Goodbye(0x8b)] {
        let ways = Behaviour {
            answer_after: Micros::from_millis(60),
            incidents: incident(3_050, what),
            ..Behaviour::default()
        };
        let run = run("reconnect: { min: 100ms, max: 1s },", "qos: 1", ways);
        let links = &run.summary.run.links;
        assert_eq!(
            (
                links.connected,
                links.ended_by_platform.values().sum::<u64>()
            ),
            (24, 12),
            "{what:?}"
        );
        assert!(uplink(&run).broken > 0, "{what:?}");
        assert_eq!(uplink(&run).broken + uplink(&run).accepted, 480, "{what:?}");
    }
}

#[test]
fn a_resumed_session_sends_again_and_counts_once() {
    let ways = Behaviour {
        answer_after: Micros::from_millis(60),
        incidents: incident(3_050, What::Reset),
        ..Behaviour::default()
    };
    let fleet =
        "reconnect: { min: 100ms, max: 1s }, client: { clean-start: false, session-expiry: 60s },";
    let run = run(fleet, "qos: 1", ways);
    let (ledger, platform) = (uplink(&run), run.platform);
    assert_eq!(
        (ledger.accepted, ledger.broken, platform.resumed),
        (480, 0, 12)
    );
    assert!(ledger.session.retransmitted > 0);
    assert_eq!(ledger.session.retransmitted, platform.received_again);
    assert_eq!(
        ledger.arrivals.duplicates,
        Some(0),
        "a second copy is our own"
    );
    assert_eq!(
        ledger.arrivals.consumed,
        Some(480 + ledger.arrivals.duplicate_own.unwrap())
    );
}

#[test]
fn a_message_of_which_the_platform_had_a_half_is_not_sent_again_but_sent() {
    // Of each link one message is half written when it ends, and others wait for their answer.
    let ways = Behaviour {
        answer_after: Micros::from_millis(260),
        hold: 1.0,
        hold_for: Micros::from_millis(60),
        incidents: incident(3_050, What::Reset),
        ..Behaviour::default()
    };
    let fleet =
        "reconnect: { min: 100ms, max: 1s }, client: { clean-start: false, session-expiry: 60s },";
    let run = run(fleet, "qos: 1", ways);
    let (again, marked) = (
        uplink(&run).session.retransmitted,
        run.platform.received_again,
    );
    assert!(again > 0 && again < marked, "{again} of {marked}");
    assert_eq!(again, run.finals.resent);
}

#[test]
fn a_retry_is_counted_whenever_it_goes_out() {
    let ways = Behaviour {
        drop: 0.2,
        reject: 0.2,
        ..Behaviour::default()
    };
    let run = run("", "qos: 1, timeout: 300ms, retry: 2", ways);
    let ledger = uplink(&run);
    assert_eq!(ledger.session.retried, run.platform.received - ledger.sent);
    assert!(ledger.session.retried > 100, "{}", ledger.session.retried);
    assert_eq!(ledger.session.retransmitted, 0);
    let sent = ledger.sent + ledger.session.retried;
    assert_eq!(ledger.session.bytes_payload, 64 * sent);
}

/// The language refuses the combination, since MQTT asks to send again what was not acknowledged
/// (MQTT-4.4.0-1); the engine's account closes all the same.
#[test]
fn a_resumed_session_repeats_nothing_that_is_final() {
    for qos in [1, 2] {
        let ways = Behaviour {
            answer_after: Micros::from_millis(60),
            hold: 0.5,
            hold_for: Micros::from_millis(20),
            incidents: incident(3_050, What::Reset),
            ..Behaviour::default()
        };
        let fleet = "reconnect: { min: 100ms, max: 1s }, client: { clean-start: false, session-expiry: 60s },";
        let mut plan = plan(fleet, &format!("qos: {qos}"));
        plan.fleets[0].streams[0].ack = Ack::None;
        let world = World::new(plan, ways, seed()).unwrap();
        let run = checked(world.run().unwrap());
        let (ledger, platform) = (uplink(&run), run.platform);
        assert_eq!(platform.resumed, 12);
        assert_eq!(
            (ledger.unacknowledged, ledger.session.retransmitted),
            (480, 0)
        );
        assert_eq!(platform.received_again, 0);
        assert_eq!(ledger.arrivals.arrived, Some(platform.received));
        assert_eq!(
            ledger.arrivals.lost_unacknowledged,
            Some(480 - platform.received)
        );
        assert!(ledger.session.transport_acknowledged > 0);
    }
}

#[test]
fn a_link_may_end_again_before_everything_was_sent_again() {
    // Every write takes 100 ms and a link lives for 400 ms at most, while some ten messages of
    // each device wait for their answer: it never gets through sending them again.
    let resets = (0..9).flat_map(|n| incident(1_600 + 400 * n, What::Reset));
    let ways = Behaviour {
        answer_after: Micros::from_millis(900),
        hold: 1.0,
        hold_for: Micros::from_millis(100),
        incidents: resets.collect(),
        ..Behaviour::default()
    };
    let fleet =
        "reconnect: { min: 10ms, max: 10ms }, client: { clean-start: false, session-expiry: 60s },";
    let run = run(fleet, "qos: 1, timeout: 20s", ways);
    assert!(run.platform.resumed >= 60, "{:?}", run.platform);
    assert_eq!(
        (uplink(&run).accepted, uplink(&run).arrivals.duplicates),
        (480, Some(0))
    );
}

#[test]
fn a_half_open_link_is_found_by_keep_alive() {
    let ways = Behaviour {
        incidents: incident(2_500, What::HalfOpen),
        ..Behaviour::default()
    };
    let fleet = "client: { keep-alive: 1s }, reconnect: { min: 100ms, max: 1s },";
    let run = run(fleet, "qos: 1, timeout: 20s", ways);
    let links = &run.summary.run.links;
    assert!(
        links.disconnects.contains_key("ping-unanswered"),
        "{links:?}"
    );
    assert!(uplink(&run).broken > 0);
}

/// Each message puts off nothing: the peer's silence counts, not ours.
#[test]
fn a_peer_that_hangs_is_found_by_devices_that_send_more_often_than_their_keep_alive() {
    for (qos, answer_time) in [(0, "10s"), (1, "10s"), (0, "1s")] {
        let ways = Behaviour {
            incidents: incident(500, What::HalfOpen),
            ..Behaviour::default()
        };
        let fleet = format!(
            "client: {{ keep-alive: 2s }}, connect: {{ timeout: {answer_time} }}, reconnect: {{ min: 1m, max: 1m }},"
        );
        let run = run(&fleet, &format!("qos: {qos}"), ways);
        let links = &run.summary.run.links;
        assert_eq!(links.disconnects["ping-unanswered"], 12, "{links:?}");
        assert_eq!(links.disconnects.len(), 1, "{links:?}");
    }
}

/// MQTT-3.14.4-2.
#[test]
fn a_link_ends_after_its_lifetime_and_comes_back() {
    let fleet = "connect: { lifetime: 1s }, reconnect: { min: 10ms, max: 1s },";
    for hold in [0.0, 0.5] {
        let ways = Behaviour {
            hold,
            ..Behaviour::default()
        };
        let run = run(fleet, "qos: 0", ways);
        let links = &run.summary.run.links;
        assert!(links.disconnects["lifetime"] >= 3 * 12, "{links:?}");
        assert_eq!(uplink(&run).arrivals.arrived, Some(480 - uplink(&run).shed));
        assert_eq!(uplink(&run).arrivals.duplicates, Some(0));
    }
}

#[test]
fn devices_that_go_offline_come_back_at_the_rate_of_the_ramp_and_lose_nothing() {
    let fleet = "client: { clean-start: false, session-expiry: 60s }, connect: { rate: 12/s }, \
                 offline: { at: 1s, for: 1s },";
    for qos in 0..3 {
        let run = run(fleet, &format!("qos: {qos}"), Behaviour::default());
        let (links, ledger) = (&run.summary.run.links, uplink(&run));
        let causes = Vec::from_iter(&links.disconnects);
        assert_eq!(causes, [(&"offline".to_owned(), &12)], "{links:?}");
        assert_eq!((links.connected, links.open_at_end), (24, Some(12)));
        assert_eq!((ledger.sent, ledger.arrivals.arrived), (480, Some(480)));
        // The last of them is away for one second and eleven twelfths, and sends ten a second.
        let held = run.summary.run.latency.held.as_ref();
        let longest = held.and_then(|held| held.figures.max_us).expect("sent");
        assert!((1_817_000..1_930_000).contains(&longest), "{longest}");
    }
}

#[test]
fn links_answer_the_platforms_challenge_and_authenticate_again() {
    let ways = || Behaviour {
        secret: Some("sesame"),
        ..Behaviour::default()
    };
    let fleet = |answer: &str| {
        format!(
            "client: {{ authentication: {{ method: sim, answer: \"{answer}\", echo: true, \
             again: 1s }} }}, reconnect: {{ min: 50ms, max: 1s }},"
        )
    };
    let run_once = run(&fleet("sesame"), "qos: 1", ways());
    let links = &run_once.summary.run.links;
    assert_eq!(
        (links.connected, links.open_at_end),
        (12, Some(12)),
        "{links:?}"
    );
    assert!(run_once.platform.authenticated >= 3 * 12);
    assert_eq!(uplink(&run_once).accepted, 480);
    let wrong = run(&fleet("${id}"), "qos: 1", ways());
    let links = &wrong.summary.run.links;
    assert!(links.connect_failures["rejected-0x87"] >= 12, "{links:?}");
    assert_eq!((links.connected, wrong.platform.authenticated), (0, 0));
    let without = run("reconnect: { min: 50ms, max: 1s },", "qos: 1", ways());
    assert_eq!(without.summary.run.links.connected, 0);
}

#[test]
fn a_link_that_ends_its_life_has_its_answers_first() {
    let fleet = "connect: { lifetime: 1s }, reconnect: { min: 10ms, max: 1s },";
    for (qos, overflow) in [
        (1, "queue, bound: 1000"),
        (2, "queue, bound: 1000"),
        (1, "shed"),
    ] {
        let ways = Behaviour {
            answer_after: Micros::from_millis(150),
            ..Behaviour::default()
        };
        let stream = format!("qos: {qos}, loop: {{ in-flight: 9, overflow: {overflow} }}");
        let run = run(fleet, &stream, ways);
        let (links, ledger) = (&run.summary.run.links, uplink(&run));
        assert!(links.disconnects["lifetime"] >= 3 * 12, "{links:?}");
        assert_eq!((ledger.broken, ledger.timed_out), (0, 0));
        assert_eq!(ledger.accepted + ledger.shed, 480);
        let causes = Vec::from_iter(ledger.shed_by_cause.keys());
        match overflow {
            "shed" => assert_eq!(causes, ["offline"], "down by our own wish, not in back-off"),
            _ => assert_eq!(
                ledger.shed, 0,
                "what is due meanwhile waits for the next link"
            ),
        }
    }
}

#[test]
fn a_link_that_ended_its_life_and_waits_for_its_turn_is_offline_and_not_in_back_off() {
    let far = Behaviour {
        latency: Micros::from_millis(20),
        ..Behaviour::default()
    };
    let run = run(
        "connect: { lifetime: 1s, pending: 1, rate: 1000/s },",
        "qos: 1, loop: { in-flight: 9, overflow: shed }",
        far,
    );
    assert!(run.summary.run.links.disconnects["lifetime"] >= 12);
    let causes = uplink(&run).shed_by_cause.keys();
    assert_eq!(Vec::from_iter(causes), ["offline"]);
}

#[test]
fn a_link_that_ends_its_life_waits_for_an_answer_until_it_is_overdue() {
    let deaf = Behaviour {
        drop: 1.0,
        ..Behaviour::default()
    };
    let run = run(
        "connect: { lifetime: 1s }, reconnect: { min: 10ms, max: 1s },",
        "qos: 1, timeout: 500ms",
        deaf,
    );
    assert!(run.summary.run.links.disconnects["lifetime"] >= 12);
    assert_eq!((uplink(&run).timed_out, uplink(&run).broken), (480, 0));
}

#[test]
fn a_platform_that_does_not_answer_connect_is_tried_again() {
    let ways = Behaviour {
        deaf: 0.5,
        ..Behaviour::default()
    };
    let run = run(
        "connect: { timeout: 200ms }, reconnect: { min: 50ms, max: 1s },",
        "qos: 1",
        ways,
    );
    let links = &run.summary.run.links;
    assert!(links.connect_failures["timed-out"] > 0, "{links:?}");
    assert_eq!(links.connected, 12);
}

#[test]
fn a_run_that_is_refused_every_link_ends_where_connecting_ends() {
    let ways = Behaviour {
        refuse_session: 1.0,
        ..Behaviour::default()
    };
    let run = run("", "qos: 1", ways);
    let links = &run.summary.run.links;
    assert!(links.connect_failures["rejected-0x89"] >= 12, "{links:?}");
    assert_eq!(format!("{:?}", run.ending), "Refused");
    assert_eq!((uplink(&run).sent, uplink(&run).shed), (0, 0));
}

#[test]
fn bytes_that_are_not_the_protocol_end_the_link() {
    let ways = Behaviour {
        garbage: 0.02,
        ..Behaviour::default()
    };
    let run = run("reconnect: { min: 50ms, max: 1s },", "qos: 1", ways);
    assert!(run.summary.run.links.disconnects["malformed"] > 0);
}

#[test]
fn a_run_that_is_interrupted_closes_its_account() {
    let mut world = World::new(plan("", "qos: 1"), Behaviour::default(), 1).unwrap();
    world.interrupt_at(Micros::from_millis(2_345));
    let run = world.run().unwrap();
    assert_eq!(run.summary.residue, Some(0));
    let scheduled = uplink(&run).scheduled.unwrap();
    assert!(scheduled > 100 && scheduled < 480, "{scheduled}");
    assert_eq!(uplink(&run).accepted, scheduled);
}

#[test]
fn what_is_half_written_at_the_end_never_arrives() {
    let ways = Behaviour {
        hold: 0.3,
        hold_for: Micros::from_secs(60),
        ..Behaviour::default()
    };
    let run = run("", "qos: 1", ways);
    let ledger = uplink(&run);
    assert!(ledger.shed_by_cause["socket-full"] > 0);
    assert_eq!(run.platform.received, ledger.sent);
}

#[test]
fn what_is_half_written_when_a_link_is_given_up_arrives_once() {
    let ways = Behaviour {
        hold: 0.05,
        hold_for: Micros::from_secs(60),
        ..Behaviour::default()
    };
    let fleet = "client: { keep-alive: 1s }, reconnect: { min: 10ms, max: 1s },";
    let run = run(fleet, "qos: 0", ways);
    assert!(run.summary.run.links.disconnects["ping-unanswered"] > 0);
    assert_eq!(uplink(&run).arrivals.duplicates, Some(0));
    assert_eq!(uplink(&run).arrivals.arrived, Some(uplink(&run).sent));
}

prop_compose! {
    fn behaviours()(
        answers in (shares(), shares(), shares(), shares(), shares()),
        copies in (shares(), shares(), shares()),
        links in (shares(), shares(), shares(), shares(), shares()),
        receive_maximum in prop_oneof![Just(1u16), Just(3), Just(u16::MAX)],
        keeps_sessions: bool,
        answer_ms in prop_oneof![Just(0u64), Just(1), Just(80), Just(400)],
        hold_ms in 0u64..3_000,
        incidents in incidents(5),
    ) -> Behaviour {
        Behaviour {
            reject: answers.0,
            drop: answers.1,
            ignore: answers.2,
            lose: answers.3,
            late: answers.4,
            late_by: Micros::from_millis(1_700),
            duplicate: copies.0,
            reorder: copies.1,
            corrupt: copies.2,
            refuse_connect: links.0,
            deaf: links.1,
            refuse_session: links.2,
            garbage: links.3 / 10.0,
            hold: links.4,
            hold_for: Micros::from_millis(hold_ms),
            receive_maximum,
            keeps_sessions,
            answer_after: Micros::from_millis(answer_ms),
            incidents,
            ..Behaviour::default()
        }
    }
}

prop_compose! {
    fn scenarios()(
        version in prop_oneof![Just("3.1.1"), Just("5")],
        qos in 0u8..3,
        policy in prop_oneof![
            Just("loop: open"),
            Just("loop: closed"),
            Just("loop: { in-flight: 1, overflow: shed }"),
            Just("loop: { in-flight: 2, overflow: queue, bound: 3 }"),
        ],
        retry in 0u8..3,
        per_link in prop_oneof![4 => Just(1), 1 => Just(5)],
        is_resumed: bool,
        lifetime in prop_oneof![Just(""), Just("lifetime: 1s, ")],
        offline in prop_oneof![
            2 => Just(""),
            1 => Just("offline: { at: 1s, for: 700ms },"),
            1 => Just("offline: { at: 0s, for: 10ms },"),
        ],
    ) -> (String, String) {
        let expiry = if version == "5" && is_resumed { ", session-expiry: 60s" } else { "" };
        let fleet = format!(
            "gateway: {{ devices: {per_link} }}, connect: {{ {lifetime}timeout: 300ms }}, reconnect: {{ min: 20ms, max: 500ms }}, \
             client: {{ version: {version}, clean-start: {}, keep-alive: 1s{expiry} }}, {offline}",
            !is_resumed
        );
        // A loop that waits for answers needs a stream that has them.
        let qos = if policy == "loop: open" { qos } else { qos.max(1) };
        let retry = if qos == 0 { String::new() } else { format!(", retry: {retry}") };
        (fleet, format!("qos: {qos}, timeout: 1s, {policy}{retry}"))
    }
}

proptest! {
    #![proptest_config(config())]

    /// Every scheduled message has exactly one final state, its instants are in order, and every
    /// equation of the ledger holds, whatever a platform and its network do.
    #[test]
    fn the_ledger_always_closes((fleet, stream) in scenarios(), ways in behaviours(), seed: u64) {
        let world = World::new(plan(&fleet, &stream), ways, seed).unwrap();
        checked(world.run().unwrap());
    }
}
