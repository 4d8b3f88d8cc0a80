//! Every misbehaviour, seen from both sides, is exactly what the account says it was.

use std::collections::BTreeMap;

use muster_gateway::{Gateway, GatewayAccount, GatewayConfig, payload_hash};
use muster_model::behaviour::{
    Amount, Behaviour, Capacity, CloseLinks, Delayed, Full, Reject, Service, ServiceTime, Stall,
};
use muster_model::{Micros, Rate, Reason};
use muster_protocol::mqtt::{Qos, Version};

use crate::browser::Browser;
use crate::coap_behaviour::due;
use crate::device::{Ask, Device, PATIENCE};
use crate::peer::{Got, Peer, Seen};
use crate::rig::Rig;
use crate::told::{befell, delayed};

const DEVICES: usize = 4;
const UPLINKS: usize = 200;

/// Results of one run, on both sides.
struct Run {
    account: GatewayAccount,
    /// By payload hash: what the device side saw, and the copies that arrived.
    uplinks: BTreeMap<u64, Fared>,
    arrived: Vec<Got>,
    peers: Vec<Peer>,
}

#[derive(Debug, Default, Clone)]
struct Fared {
    sent_at: Micros,
    accepted_at: Vec<Micros>,
    rejected: Vec<Reason>,
    copies: Vec<Micros>,
}

impl Run {
    /// Sends 200 uplinks at QoS 1 from four devices to one consumer, one after the other, and
    /// waits for what is still under way.
    fn new(behaviour: Behaviour) -> Self {
        Self::with(behaviour, Version::V5, Micros::from_millis(400))
    }

    fn with(behaviour: Behaviour, version: Version, settle: Micros) -> Self {
        let config = GatewayConfig {
            behaviour,
            seed: 11,
            expected_uplinks: UPLINKS as u64,
            ..GatewayConfig::default()
        };
        let gateway = Gateway::start(config).expect("a gateway");
        let mut consumer = Peer::new(gateway.addr(), Version::V5, "consumer");
        consumer.subscribe("t/#", Qos::AtLeastOnce);
        let mut peers: Vec<Peer> = (0..DEVICES)
            .map(|n| Peer::new(gateway.addr(), version, &format!("device-{n}")))
            .collect();
        let mut tokens: Vec<BTreeMap<u32, u64>> = vec![BTreeMap::new(); DEVICES];
        let mut uplinks = BTreeMap::new();
        for n in 0..UPLINKS {
            let device = n % DEVICES;
            // Its number twice, so that one flipped bit never makes another's payload of it.
            let payload = format!("uplink {n} of device {device}: {n}");
            let hash = payload_hash(payload.as_bytes());
            let sent_at = consumer.now();
            let topic = format!("t/{device}");
            let token = peers[device].publish(&topic, payload.as_bytes(), Qos::AtLeastOnce);
            tokens[device].insert(token, hash);
            uplinks.insert(
                hash,
                Fared {
                    sent_at,
                    ..Fared::default()
                },
            );
        }
        let (until, give_up) = (consumer.now() + settle, consumer.now() + PATIENCE);
        let are_missing = |arrived| arrived < due(&behaviour, &gateway.account().counts);
        while consumer.now() < until || are_missing(consumer.got().len()) {
            assert!(consumer.now() < give_up, "{} came", consumer.got().len());
            consumer.read();
            peers.iter_mut().for_each(Peer::read);
        }
        for (device, peer) in peers.iter().enumerate() {
            peer.note(&tokens[device], &mut uplinks);
        }
        let arrived = consumer.got();
        for got in &arrived {
            let fared = uplinks.entry(payload_hash(&got.payload)).or_default();
            fared.copies.push(got.at);
        }
        Self {
            account: gateway.stop(),
            uplinks,
            arrived,
            peers,
        }
    }

    /// The uplinks that fared so must be those of the account.
    fn check(&self, misbehaviour: &str, count: usize, fared: impl Fn(&Fared) -> bool) {
        let all = self.uplinks.iter().filter(|(_, how)| fared(how));
        befell(
            &self.account,
            misbehaviour,
            count,
            all.map(|(hash, _)| *hash),
        );
    }

    /// The uplinks that were delayed, from when they were sent to this instant, must be those of the account.
    fn check_delays(&self, misbehaviour: &str, by: Delayed, until: impl Fn(&Fared) -> Micros) {
        let all = self.uplinks.iter();
        let delays = all.map(|(hash, fared)| (*hash, until(fared) - fared.sent_at));
        let wanted = (by.count as usize, by.by);
        delayed(&self.account, misbehaviour, wanted, delays);
    }

    fn accepted(&self) -> usize {
        self.uplinks
            .values()
            .filter(|fared| !fared.accepted_at.is_empty())
            .count()
    }
}

impl Peer {
    fn note(&self, tokens: &BTreeMap<u32, u64>, into: &mut BTreeMap<u64, Fared>) {
        for event in &self.seen {
            if let Seen::Accepted { token, at, .. } = event {
                let fared = into.get_mut(&tokens[token]).expect("it was sent");
                fared.accepted_at.push(*at);
            }
            if let Seen::Rejected { token, reason } = event {
                let fared = into.get_mut(&tokens[token]).expect("it was sent");
                fared.rejected.push(*reason);
            }
        }
    }
}

const ARRIVED_ONCE: fn(&Fared) -> bool = |fared| fared.copies.len() == 1;
const ACCEPTED: fn(&Fared) -> bool = |fared| !fared.accepted_at.is_empty();

#[test]
fn without_misbehaviour_everything_arrives_once_and_is_accepted() {
    let run = Run::new(Behaviour::default());
    assert!(
        run.uplinks
            .values()
            .all(|fared| ARRIVED_ONCE(fared) && ACCEPTED(fared))
    );
    let counts = run.account.counts;
    assert_eq!(
        (counts.received, counts.accepted, counts.delivered),
        (200, 200, 200)
    );
    assert_eq!(counts.delivered_acknowledged, 200);
    assert!(run.account.misbehaved.is_empty());
}

#[test]
fn the_lost_are_accepted_and_never_arrive() {
    let run = Run::new(Behaviour {
        lose_after_accept: 37,
        ..Behaviour::default()
    });
    run.check("lose-after-accept", 37, |fared| {
        ACCEPTED(fared) && fared.copies.is_empty()
    });
    assert_eq!(run.accepted(), UPLINKS);
    assert_eq!(run.arrived.len(), UPLINKS - 37);
}

#[test]
fn the_dropped_are_neither_answered_nor_delivered() {
    let run = Run::new(Behaviour {
        drop: 9,
        ..Behaviour::default()
    });
    run.check("drop", 9, |fared| {
        !ACCEPTED(fared) && fared.copies.is_empty()
    });
    assert_eq!(
        (run.accepted(), run.arrived.len()),
        (UPLINKS - 9, UPLINKS - 9)
    );
    assert_eq!(run.account.counts.unanswered, 9);
}

#[test]
fn the_ignored_are_delivered_and_not_answered() {
    let run = Run::new(Behaviour {
        ignore: 8,
        ..Behaviour::default()
    });
    run.check("ignore", 8, |fared| !ACCEPTED(fared) && ARRIVED_ONCE(fared));
    assert_eq!(run.arrived.len(), UPLINKS);
}

#[test]
fn late_answers_are_late_by_what_was_asked() {
    let by = Micros::from_millis(200);
    let late = Delayed { count: 7, by };
    let run = Run::new(Behaviour {
        answer_late: late,
        ..Behaviour::default()
    });
    run.check_delays("answer-late", late, |fared| fared.accepted_at[0]);
    assert_eq!((run.accepted(), run.arrived.len()), (UPLINKS, UPLINKS));
}

/// Each uplink has its place in the account, whenever the gateway stops.
#[test]
fn uplinks_whose_answer_is_still_to_come_when_the_gateway_stops_are_unanswered() {
    let hour = Micros::from_secs(3_600);
    let config = |behaviour| GatewayConfig {
        behaviour,
        expected_uplinks: 3,
        ..GatewayConfig::default()
    };
    let late = Behaviour {
        answer_late: Delayed { count: 3, by: hour },
        ..Behaviour::default()
    };
    let mut rig = Rig::with("coap", config(late));
    let mut device = Device::new(rig.at);
    for n in 0..3 {
        // The NON has no answer that anybody waits for.
        let put = Ask::put(&format!("telemetry/T1/dev-{n}"), b"{}");
        device.ask(Ask {
            is_confirmable: n > 0,
            ..put
        });
    }
    assert_eq!(rig.surfaced(3).len(), 3);
    let counts = rig.account().counts;
    assert_eq!((counts.received, counts.accepted), (3, 0));
    assert_eq!(counts.unanswered, 2);

    let mut rig = Rig::with("http", config(late));
    let mut devices = [Browser::new(rig.at), Browser::new(rig.at)];
    for device in &mut devices {
        device.ask("PUT /event/T1/dev-1", &[], "{}");
    }
    assert_eq!(rig.surfaced(2).len(), 2);
    assert_eq!(rig.account().counts.unanswered, 2);

    // Answered late, and not served at all.
    let slow = Behaviour {
        service_time: Some(ServiceTime::Fixed(hour)),
        ..Behaviour::default()
    };
    for (behaviour, arrives) in [(late, true), (slow, false)] {
        let gateway = Gateway::start(config(behaviour)).expect("a gateway");
        let mut peer = Peer::new(gateway.addr(), Version::V5, "device");
        peer.subscribe("t", Qos::AtLeastOnce);
        for qos in [Qos::AtMostOnce, Qos::AtLeastOnce, Qos::ExactlyOnce] {
            peer.publish("t", b"one", qos);
        }
        if arrives {
            peer.messages(3);
        }
        // Its answer comes after all that was sent before it was read.
        peer.subscribe("u", Qos::AtLeastOnce);
        let counts = gateway.stop().counts;
        assert_eq!((counts.received, counts.accepted), (3, 0));
        assert_eq!(counts.unanswered, 2);
    }
}

#[test]
fn requests_that_wait_for_a_command_when_the_gateway_stops_are_unanswered() {
    let mut rig = Rig::new("coap");
    let mut device = Device::new(rig.at);
    for is_confirmable in [true, false] {
        let put = Ask::put("telemetry/T1/dev-1", b"{}");
        device.ask(Ask {
            query: "hono-ttd=3600",
            is_confirmable,
            ..put
        });
    }
    assert_eq!(rig.surfaced(2).len(), 2);
    let counts = rig.account().counts;
    assert_eq!((counts.queries, counts.accepted), (2, 0));
    assert_eq!(counts.unanswered, 1);

    let mut rig = Rig::new("http");
    let mut device = Browser::new(rig.at);
    device.ask("PUT /event/T1/dev-1?hono-ttd=3600", &[], "{}");
    assert_eq!(rig.surfaced(1).len(), 1);
    assert_eq!(rig.account().counts.unanswered, 1);
}

#[test]
fn late_deliveries_are_late_by_what_was_asked() {
    let by = Micros::from_millis(200);
    let late = Delayed { count: 7, by };
    let run = Run::new(Behaviour {
        deliver_late: late,
        ..Behaviour::default()
    });
    run.check_delays("deliver-late", late, |fared| fared.copies[0]);
    assert_eq!((run.accepted(), run.arrived.len()), (UPLINKS, UPLINKS));
}

#[test]
fn a_second_answer_is_a_second_packet() {
    let run = Run::new(Behaviour {
        answer_twice: 6,
        ..Behaviour::default()
    });
    assert_eq!(run.account.befell("answer-twice"), 6);
    assert_eq!((run.accepted(), run.arrived.len()), (UPLINKS, UPLINKS));
    let stray: u32 = run
        .peers
        .iter()
        .map(|peer| peer.client.counts().again)
        .sum();
    assert_eq!(stray, 6);
}

#[test]
fn duplicates_arrive_twice() {
    let run = Run::new(Behaviour {
        duplicate: 12,
        ..Behaviour::default()
    });
    run.check("duplicate", 12, |fared| fared.copies.len() == 2);
    assert_eq!(run.arrived.len(), UPLINKS + 12);
    assert_eq!(run.accepted(), UPLINKS);
}

#[test]
fn the_reordered_come_after_the_next_of_their_device() {
    let run = Run::new(Behaviour {
        reorder: 5,
        ..Behaviour::default()
    });
    let number = |got: &Got| -> usize {
        let text = String::from_utf8(got.payload.clone()).expect("text");
        text.split(' ')
            .nth(1)
            .expect("a number")
            .parse()
            .expect("a number")
    };
    let mut late = Vec::new();
    for device in 0..DEVICES {
        let order: Vec<&Got> = run
            .arrived
            .iter()
            .filter(|got| got.topic == format!("t/{device}"))
            .collect();
        let mut highest = None;
        for got in order {
            if highest.is_some_and(|highest| number(got) < highest) {
                late.push(payload_hash(&got.payload));
            }
            highest = highest.max(Some(number(got)));
        }
    }
    late.sort_unstable();
    assert_eq!(late, run.account.misbehaved["reorder"]);
    assert_eq!(
        (late.len(), run.arrived.len(), run.accepted()),
        (5, UPLINKS, UPLINKS)
    );
}

#[test]
fn the_corrupted_arrive_with_one_bit_flipped() {
    let run = Run::new(Behaviour {
        corrupt: 4,
        ..Behaviour::default()
    });
    run.check("corrupt", 4, |fared| {
        ACCEPTED(fared) && fared.copies.is_empty()
    });
    assert_eq!(run.arrived.len(), UPLINKS);
    let strangers = run
        .uplinks
        .values()
        .filter(|fared| fared.sent_at == Micros::ZERO);
    assert_eq!(strangers.count(), 4, "copies that nobody sent");
}

#[test]
fn the_rejected_hear_the_code_and_do_not_arrive() {
    let reject = Reject {
        code: 0x97,
        amount: Amount::Share(0.25),
    };
    let run = Run::new(Behaviour {
        reject: Some(reject),
        ..Behaviour::default()
    });
    let no = [Reason::Mqtt(0x97)];
    run.check("reject", 50, |fared| {
        fared.rejected == no && fared.copies.is_empty()
    });
    assert_eq!((run.accepted(), run.arrived.len()), (150, 150));
    assert_eq!(run.account.counts.rejected, 50);
}

#[test]
fn the_rejected_but_delivered_arrive() {
    let run = Run::new(Behaviour {
        reject_but_deliver: Delayed::at_once(5),
        ..Behaviour::default()
    });
    run.check("reject-but-deliver", 5, |fared| {
        fared.rejected == [Reason::Mqtt(0x97)] && ARRIVED_ONCE(fared)
    });
    assert_eq!((run.accepted(), run.arrived.len()), (UPLINKS - 5, UPLINKS));
}

#[test]
fn misbehaviours_go_together_and_keep_their_counts() {
    let behaviour = Behaviour {
        lose_after_accept: 10,
        drop: 9,
        duplicate: 8,
        reject_but_deliver: Delayed::at_once(7),
        ignore: 6,
        ..Behaviour::default()
    };
    let run = Run::new(behaviour);
    run.check("lose-after-accept", 10, |fared| {
        ACCEPTED(fared) && fared.copies.is_empty()
    });
    run.check("drop", 9, |fared| {
        !ACCEPTED(fared) && fared.copies.is_empty() && fared.rejected.is_empty()
    });
    run.check("duplicate", 8, |fared| fared.copies.len() == 2);
    run.check("reject-but-deliver", 7, |fared| !fared.rejected.is_empty());
    run.check("ignore", 6, |fared| {
        !ACCEPTED(fared) && fared.copies.len() == 1 && fared.rejected.is_empty()
    });
}

#[test]
fn a_no_that_mqtt_3_cannot_say_closes_the_link() {
    let reject = Reject {
        code: 0x97,
        amount: Amount::Count(1),
    };
    let behaviour = Behaviour {
        reject: Some(reject),
        ..Behaviour::default()
    };
    let config = GatewayConfig {
        behaviour,
        ..GatewayConfig::default()
    };
    let gateway = Gateway::start(config).expect("a gateway");
    let mut device = Peer::new(gateway.addr(), Version::V311, "old");
    device.publish("t", b"first", Qos::AtLeastOnce);
    device.until("closed", |seen| seen.last() == Some(&Seen::Closed));
    let account = gateway.stop();
    assert_eq!(
        (account.befell("reject"), account.counts.closed_links),
        (1, 1)
    );
}

#[test]
fn service_time_delays_each_message_by_itself() {
    let time = Micros::from_millis(100);
    let behaviour = Behaviour {
        service_time: Some(ServiceTime::Fixed(time)),
        ..Behaviour::default()
    };
    let run = Run::new(behaviour);
    for fared in run.uplinks.values() {
        let took = fared.accepted_at[0] - fared.sent_at;
        assert!(took >= time && took < Micros::from_millis(1_000), "{took}");
        assert!(fared.copies[0] - fared.sent_at >= time);
    }
    // 200 messages of 100 ms each, all at once: in series they would take 20 s.
    assert_eq!((run.accepted(), run.arrived.len()), (UPLINKS, UPLINKS));
}

fn capacity(rate: f64, queue: u32, full: Full) -> Behaviour {
    let rate = Rate::per_second(rate).expect("a rate");
    let capacity = Capacity {
        rate,
        service: Service::Fixed,
        queue,
        full,
    };
    Behaviour {
        capacity: Some(capacity),
        ..Behaviour::default()
    }
}

#[test]
fn a_full_queue_drops_what_it_says() {
    let run = Run::new(capacity(50.0, 10, Full::Drop));
    let counts = run.account.counts;
    assert!(counts.capacity_dropped > 100, "{counts:?}");
    assert_eq!(run.accepted() as u64, 200 - counts.capacity_dropped);
    assert_eq!(run.arrived.len() as u64, 200 - counts.capacity_dropped);
}

#[test]
fn a_full_queue_rejects_what_it_says() {
    let run = Run::new(capacity(50.0, 10, Full::Reject));
    let rejected = run
        .uplinks
        .values()
        .filter(|fared| !fared.rejected.is_empty())
        .count();
    assert_eq!(rejected as u64, run.account.counts.capacity_rejected);
    assert!(rejected > 100);
    assert_eq!(run.accepted() + rejected, UPLINKS);
}

#[test]
fn a_full_queue_blocks_and_then_serves_everything_at_its_rate() {
    let blocked = || {
        let behaviour = capacity(400.0, 10, Full::Block);
        let run = Run::with(behaviour, Version::V5, Micros::from_millis(700));
        assert_eq!((run.accepted(), run.arrived.len()), (UPLINKS, UPLINKS));
        assert!(run.account.counts.capacity_blocked > 0);
        let first = run.uplinks.values().map(|fared| fared.sent_at).min();
        let last = run.arrived.last().expect("it arrived").at;
        let took = last - first.expect("it was sent");
        // 200 times 2.5 ms, however busy the machine.
        assert!(took >= Micros::from_millis(500), "{took}");
        took
    };
    // A busy machine delays some runs, and a gateway below its rate all of them.
    let mut runs: Vec<Micros> = (0..5).map(|_| blocked()).collect();
    runs.sort_unstable();
    assert!(runs[2] < Micros::from_millis(800), "{runs:?}");
}

#[test]
fn a_stalled_gateway_says_nothing_and_then_everything() {
    let stall = Stall {
        at: Micros::from_millis(100),
        lasts: Micros::from_millis(400),
    };
    let behaviour = Behaviour {
        stall: Some(stall),
        ..Behaviour::default()
    };
    let gateway = Gateway::start(GatewayConfig {
        behaviour,
        ..GatewayConfig::default()
    })
    .expect("one");
    let mut device = Peer::new(gateway.addr(), Version::V5, "device");
    let began = device.now();
    let mut sent = Vec::new();
    while device.now() - began < Micros::from_millis(700) {
        let at = device.now();
        sent.push((device.publish("t", b"x", Qos::AtLeastOnce), at));
        device.read();
    }
    device.answers(sent.len());
    let answered: BTreeMap<u32, Micros> = device
        .seen
        .iter()
        .filter_map(|event| {
            if let Seen::Accepted { token, at, .. } = event {
                Some((*token, *at))
            } else {
                None
            }
        })
        .collect();
    let longest = sent
        .iter()
        .map(|(token, at)| answered[token] - *at)
        .max()
        .expect("some");
    let bounds = Micros::from_millis(330)..Micros::from_millis(900);
    assert!(bounds.contains(&longest), "{longest}");
    assert_eq!(gateway.stop().counts.stalled, 1);
}

#[test]
fn a_share_of_the_device_links_is_closed_and_no_consumer() {
    let close = CloseLinks {
        at: Micros::from_millis(50),
        share: 0.5,
    };
    let behaviour = Behaviour {
        close_links: Some(close),
        ..Behaviour::default()
    };
    let gateway = Gateway::start(GatewayConfig {
        behaviour,
        ..GatewayConfig::default()
    })
    .expect("one");
    let mut consumer = Peer::new(gateway.addr(), Version::V5, "consumer");
    consumer.subscribe("t", Qos::AtMostOnce);
    let mut devices: Vec<Peer> = (0..10)
        .map(|n| Peer::new(gateway.addr(), Version::V5, &format!("device-{n}")))
        .collect();
    devices[0].publish("t", b"the clock starts", Qos::AtLeastOnce);
    consumer.messages(1);
    let is_closed = |peer: &Peer| peer.seen.last() == Some(&Seen::Closed);
    let give_up = consumer.now() + PATIENCE;
    while devices.iter().filter(|device| is_closed(device)).count() < 5 {
        assert!(consumer.now() < give_up, "they stay open");
        devices.iter_mut().for_each(Peer::read);
    }
    // All at once, and no others.
    assert_eq!(gateway.account().counts.closed_links, 5);
    devices.retain(|device| !is_closed(device));
    devices.iter_mut().for_each(Peer::catch_up);
    consumer.catch_up();
}

#[test]
fn a_lost_message_stays_lost_when_it_is_sent_again() {
    let behaviour = Behaviour {
        drop: 1,
        ..Behaviour::default()
    };
    let config = GatewayConfig {
        behaviour,
        expected_uplinks: 1,
        ..GatewayConfig::default()
    };
    let gateway = Gateway::start(config).expect("a gateway");
    let mut consumer = Peer::new(gateway.addr(), Version::V5, "consumer");
    consumer.subscribe("t", Qos::AtLeastOnce);
    let connect = muster_protocol::mqtt::Connect {
        clean_start: false,
        session_expiry: 60,
        ..muster_protocol::mqtt::Connect::new("device")
    };
    let mut device = Peer::open(gateway.addr(), Version::V5, &connect);
    let token = device.publish("t", b"dropped", Qos::AtLeastOnce);
    device.catch_up();
    let mut device = device.reopen(gateway.addr(), &connect);
    device.until("resend", |seen| seen.contains(&Seen::Resend { token }));
    let again = muster_protocol::mqtt::Publish {
        qos: Qos::AtLeastOnce,
        ..muster_protocol::mqtt::Publish::new("t", b"dropped")
    };
    device.resend(token, &again);
    device.catch_up();
    consumer.catch_up();
    assert!(consumer.got().is_empty());
    let account = gateway.stop();
    assert_eq!(
        (account.counts.received, account.counts.received_again),
        (1, 1)
    );
    assert_eq!(account.counts.accepted, 0);
}
