//! Demands of MQTT 5 on a server beyond a single connection: sessions, retained messages, wills,
//! subscriptions, expiry.

use muster_gateway::{Gateway, GatewayConfig};
use muster_model::behaviour::{Behaviour, ServiceTime};
use muster_model::{Micros, Reason};
use muster_protocol::mqtt::{
    Connect, Filter, Properties, Property, Publish, Qos, RetainHandling, Version, Will,
};

use crate::peer::{Got, Peer, Seen};

/// Long enough that what was on its way would have come.
const WHILE: Micros = Micros::from_millis(60);
/// Longer than the shortest expiry and delay, a second.
const BEYOND_A_SECOND: Micros = Micros::from_millis(1_150);

fn gateway() -> Gateway {
    Gateway::start(GatewayConfig::default()).expect("a gateway")
}

fn peer(gateway: &Gateway, name: &str) -> Peer {
    Peer::new(gateway.addr(), Version::V5, name)
}

/// A client whose session outlives its connection by so many seconds.
fn lasting(name: &str, session_expiry: u32) -> Connect<'_> {
    Connect {
        clean_start: false,
        session_expiry,
        ..Connect::new(name)
    }
}

fn open(gateway: &Gateway, connect: &Connect<'_>) -> Peer {
    Peer::open(gateway.addr(), Version::V5, connect)
}

fn retained<'a>(topic: &'a str, payload: &'a [u8]) -> Publish<'a> {
    Publish {
        retain: true,
        qos: Qos::AtLeastOnce,
        ..Publish::new(topic, payload)
    }
}

fn payloads(got: &[Got]) -> Vec<&[u8]> {
    got.iter().map(|got| got.payload.as_slice()).collect()
}

/// Messages that a new subscriber gets at once.
fn kept(gateway: &Gateway, topic: &str) -> Vec<Got> {
    let mut consumer = peer(gateway, "who comes late");
    consumer.subscribe(topic, Qos::ExactlyOnce);
    consumer.catch_up();
    consumer.got()
}

/// MQTT-3.3.1-5, MQTT-3.3.1-8.
#[test]
fn a_retained_message_is_replaced_by_the_next_and_untouched_by_others() {
    let gateway = gateway();
    let mut device = peer(&gateway, "device");
    device.publish("t", b"passes", Qos::AtLeastOnce);
    device.answers(1);
    assert!(kept(&gateway, "t").is_empty());
    device.send(&retained("t", b"old"));
    device.send(&retained("t", b"new"));
    device.publish("t", b"passes", Qos::AtLeastOnce);
    device.publish("t", b"", Qos::AtLeastOnce);
    device.answers(5);
    let got = kept(&gateway, "t");
    assert_eq!(payloads(&got), [b"new"]);
    assert!(got[0].retain);
}

/// MQTT-3.3.1-6, MQTT-3.3.1-7.
#[test]
fn an_empty_retained_message_is_delivered_and_removes_what_was_kept() {
    let gateway = gateway();
    let mut device = peer(&gateway, "device");
    let mut live = peer(&gateway, "live");
    live.subscribe("t", Qos::AtLeastOnce);
    device.send(&retained("t", b"kept"));
    device.send(&retained("t", b""));
    assert_eq!(payloads(&live.messages(2)), [&b"kept"[..], b""]);
    assert!(kept(&gateway, "t").is_empty());
}

/// MQTT-3.3.1-9, MQTT-3.3.1-10, MQTT-3.3.1-11, MQTT-3.8.4-4.
#[test]
fn retain_handling_decides_when_retained_messages_come() {
    let gateway = gateway();
    let mut device = peer(&gateway, "device");
    device.send(&retained("t", b"kept"));
    device.answers(1);
    let with = |retain_handling| Filter {
        retain_handling,
        ..Filter::new("t", Qos::AtLeastOnce)
    };
    let mut consumer = peer(&gateway, "consumer");
    let mut asks = |handling, is_new: bool| {
        if is_new {
            consumer.unsubscribe("t");
        }
        let before = consumer.got().len();
        consumer.ask([with(handling)], None);
        consumer.catch_up();
        consumer.got().len() - before
    };
    assert_eq!(asks(RetainHandling::SendIfNew, true), 1);
    assert_eq!(asks(RetainHandling::SendIfNew, false), 0);
    assert_eq!(asks(RetainHandling::Send, false), 1);
    assert_eq!(asks(RetainHandling::Send, true), 1);
    assert_eq!(asks(RetainHandling::Keep, false), 0);
    assert_eq!(asks(RetainHandling::Keep, true), 0);
}

/// MQTT-3.3.1-3.
#[test]
fn dup_is_not_passed_on() {
    let gateway = gateway();
    let mut consumer = peer(&gateway, "consumer");
    consumer.subscribe("t", Qos::AtLeastOnce);
    let mut device = peer(&gateway, "device");
    // QoS 1 with DUP.
    device.write_raw(b"\x3a\x07\x00\x01t\x00\x07\x00x");
    let got = consumer.messages(1);
    assert!(!got[0].dup);
    assert_eq!(gateway.stop().counts.received_again, 1);
}

const SAID: &str = "[PayloadFormat(true), ContentType(\"a/b\"), ResponseTopic(\"r\"), \
                    CorrelationData([1, 2]), User(\"k\", \"v\"), User(\"k\", \"w\"), \
                    User(\"a\", \"b\")]";

/// MQTT-3.3.2-4, MQTT-3.3.2-15, MQTT-3.3.2-16, MQTT-3.3.2-17, MQTT-3.3.2-18, MQTT-3.3.2-20.
#[test]
fn what_a_message_brings_reaches_every_subscriber_unaltered() {
    let gateway = gateway();
    let mut consumers = [peer(&gateway, "c0"), peer(&gateway, "c1")];
    for consumer in &mut consumers {
        consumer.subscribe("t", Qos::AtLeastOnce);
    }
    let publish = Publish {
        is_text: true,
        content_type: Some("a/b"),
        response_topic: Some("r"),
        correlation: Some(&[1, 2]),
        user_properties: &[("k", "v"), ("k", "w"), ("a", "b")],
        ..retained("t", b"x")
    };
    peer(&gateway, "device").send(&publish);
    for consumer in &mut consumers {
        assert_eq!(consumer.messages(1)[0].properties, SAID);
    }
    assert_eq!(kept(&gateway, "t")[0].properties, SAID);
}

/// MQTT-3.1.3-10.
#[test]
fn what_a_will_brings_is_published_unaltered() {
    let gateway = gateway();
    let mut consumer = peer(&gateway, "consumer");
    consumer.subscribe("w", Qos::AtLeastOnce);
    let said = [
        Property::PayloadFormat(true),
        Property::ContentType("a/b"),
        Property::ResponseTopic("r"),
        Property::CorrelationData(&[1, 2]),
        Property::User("k", "v"),
        Property::User("k", "w"),
        Property::User("a", "b"),
    ];
    let will = Will {
        properties: Properties::new(&said),
        ..gone(false)
    };
    drop(open(&gateway, &leaving(will)));
    assert_eq!(consumer.messages(1)[0].properties, SAID);
}

/// MQTT-3.3.2-5, MQTT-3.3.2-6.
#[test]
fn a_message_waits_no_longer_than_its_expiry_and_says_how_long_is_left() {
    let gateway = gateway();
    let connect = lasting("consumer", 600);
    let mut consumer = open(&gateway, &connect);
    consumer.subscribe("t", Qos::AtLeastOnce);
    consumer.cut();
    let mut device = peer(&gateway, "device");
    for (payload, seconds) in [(&b"short"[..], 1), (b"long", 100)] {
        device.send(&Publish {
            qos: Qos::AtLeastOnce,
            message_expiry: Some(seconds),
            ..Publish::new("t", payload)
        });
    }
    device.answers(2);
    device.watch(BEYOND_A_SECOND);
    let mut consumer = open(&gateway, &connect);
    let got = consumer.messages(1);
    assert_eq!(payloads(&got), [b"long"]);
    let left = got[0].properties.strip_prefix("[MessageExpiry(");
    let left = left.and_then(|text| text.strip_suffix(")]"));
    let left: u32 = left.and_then(|text| text.parse().ok()).expect("an expiry");
    assert!((50..100).contains(&left), "{left}");
    consumer.watch(WHILE);
    assert_eq!(
        (consumer.got().len(), gateway.stop().counts.expired),
        (1, 1)
    );
}

/// MQTT-3.3.2-5, MQTT-4.3.3-13.
#[test]
fn an_exchange_at_qos_2_goes_on_though_its_message_has_expired() {
    let config = GatewayConfig {
        behaviour: Behaviour {
            service_time: Some(ServiceTime::Fixed(BEYOND_A_SECOND)),
            ..Behaviour::default()
        },
        ..GatewayConfig::default()
    };
    let gateway = Gateway::start(config).expect("a gateway");
    let mut consumer = peer(&gateway, "consumer");
    consumer.subscribe("t", Qos::ExactlyOnce);
    let mut device = peer(&gateway, "device");
    let token = device.send(&Publish {
        qos: Qos::ExactlyOnce,
        message_expiry: Some(1),
        ..Publish::new("t", b"x")
    });
    device.until("PUBCOMP", |seen| seen.contains(&Seen::Completed { token }));
    consumer.watch(WHILE);
    assert!(consumer.got().is_empty());
    assert_eq!(gateway.stop().counts.expired, 1);
}

/// MQTT-4.3.3-7.
#[test]
fn what_was_sent_at_qos_2_is_sent_again_though_it_has_expired_since() {
    let gateway = gateway();
    let connect = lasting("consumer", 600);
    let mut consumer = open(&gateway, &connect);
    consumer.subscribe("t", Qos::ExactlyOnce);
    let mut device = peer(&gateway, "device");
    device.send(&Publish {
        qos: Qos::ExactlyOnce,
        message_expiry: Some(1),
        ..Publish::new("t", b"x")
    });
    device.answers(1);
    // The consumer has not read it, let alone answered.
    device.watch(BEYOND_A_SECOND);
    let mut consumer = consumer.reopen(gateway.addr(), &connect);
    assert!(consumer.messages(1)[0].dup);
}

/// MQTT-3.3.4-4.
#[test]
fn one_copy_carries_the_identifier_of_its_subscriptions() {
    let gateway = gateway();
    let mut consumer = peer(&gateway, "consumer");
    let filters = [
        Filter::new("t/#", Qos::AtMostOnce),
        Filter::new("t/+", Qos::ExactlyOnce),
    ];
    consumer.ask(filters, Some(7));
    peer(&gateway, "device").publish("t/1", b"x", Qos::ExactlyOnce);
    let got = consumer.messages(1);
    assert_eq!(
        (&got[0].subscription_ids[..], got[0].qos),
        (&[7][..], Qos::ExactlyOnce)
    );
    consumer.watch(WHILE);
    assert_eq!(consumer.got().len(), 1);
}

/// MQTT-3.1.2-25.
#[test]
fn a_message_too_large_for_one_subscriber_is_as_good_as_sent() {
    let gateway = gateway();
    let connect = Connect {
        maximum_packet_size: Some(50),
        ..lasting("narrow", 600)
    };
    let mut narrow = open(&gateway, &connect);
    let mut wide = peer(&gateway, "wide");
    for consumer in [&mut narrow, &mut wide] {
        consumer.subscribe("t", Qos::ExactlyOnce);
    }
    let mut device = peer(&gateway, "device");
    for qos in [Qos::AtMostOnce, Qos::AtLeastOnce, Qos::ExactlyOnce] {
        device.publish("t", &[b'x'; 100], qos);
        device.publish("t", b"fits", qos);
    }
    assert_eq!(payloads(&narrow.messages(3)), [b"fits"; 3]);
    assert_eq!(wide.messages(6).len(), 6);
    device.answers(4);
    narrow.watch(WHILE);
    assert_eq!(narrow.got().len(), 3);
    // The same if the messages have waited for it.
    narrow.cut();
    device.publish("t", &[b'x'; 100], Qos::AtLeastOnce);
    device.publish("t", b"fits", Qos::AtLeastOnce);
    device.answers(6);
    let mut narrow = open(&gateway, &connect);
    assert_eq!(payloads(&narrow.messages(1)), [b"fits"]);
    assert_eq!(gateway.stop().counts.undeliverable, 4);
}

/// MQTT-3.1.2-24.
#[test]
fn a_client_that_takes_no_connack_is_refused() {
    let gateway = gateway();
    let connect = Connect {
        maximum_packet_size: Some(7),
        ..Connect::new("c")
    };
    let mut peer = open(&gateway, &connect);
    peer.until("closed", |seen| seen.last() == Some(&Seen::Closed));
    let refused = Seen::Refused(Reason::Mqtt(0x95));
    assert_eq!(peer.seen, [refused, Seen::Closed]);
}

/// MQTT-3.1.3-6, MQTT-3.1.3-7, MQTT-3.2.2-16.
#[test]
fn a_chosen_client_id_is_told_and_no_other_session_has_it() {
    let gateway = gateway();
    let first = peer(&gateway, "");
    let name = first.assigned.clone().expect("a name was chosen");
    let numbers: Vec<u64> = name
        .split('-')
        .filter_map(|part| part.parse().ok())
        .collect();
    let [0, place, number] = numbers[..] else {
        unreachable!("a thread, a place and a number: {name}");
    };
    // This client has the name that the one after it would be given.
    let taken = format!("auto-0-{}-{}", place + 2, number + 2);
    let holder = peer(&gateway, &taken);
    let next = peer(&gateway, "");
    let free = format!("auto-0-{}-{}", place + 2, number + 3);
    assert_eq!(next.assigned, Some(free));
    assert_eq!(gateway.account().counts.taken_over, 0);
    // The client can go on under its name.
    let same = peer(&gateway, &name);
    assert_eq!((same.assigned, gateway.stop().counts.taken_over), (None, 1));
    drop((first, holder, next));
}

/// MQTT-3.1.3-5.
#[test]
fn every_plain_client_id_of_up_to_23_characters_is_allowed() {
    let gateway = gateway();
    for name in [
        "a",
        "0123456789abcdefghijklm",
        "nopqrstuvwxyzABCDEFGHIJ",
        "KLMNOPQRSTUVWXYZ",
    ] {
        let peer = peer(&gateway, name);
        assert_eq!(peer.assigned, None);
    }
}

/// MQTT-3.1.3-2.
#[test]
fn a_session_belongs_to_its_client_id() {
    let gateway = gateway();
    for name in ["a", "b"] {
        let mut consumer = open(&gateway, &lasting(name, 600));
        consumer.subscribe(name, Qos::AtLeastOnce);
        consumer.cut();
    }
    let mut device = peer(&gateway, "device");
    for name in ["a", "b"] {
        device.publish(name, name.as_bytes(), Qos::AtLeastOnce);
    }
    device.answers(2);
    for name in ["a", "b"] {
        let mut consumer = open(&gateway, &lasting(name, 600));
        assert_eq!(payloads(&consumer.messages(1)), [name.as_bytes()]);
        consumer.catch_up();
        assert_eq!(consumer.got().len(), 1);
    }
}

/// MQTT-3.1.2-6, MQTT-3.1.4-4, MQTT-3.2.2-2, MQTT-3.2.2-3.
#[test]
fn a_connack_says_whether_a_session_was_found() {
    let gateway = gateway();
    let lasting = lasting("c", 600);
    let clean = Connect {
        clean_start: true,
        ..lasting
    };
    for (connect, present) in [
        (&lasting, false),
        (&lasting, true),
        (&clean, false),
        (&lasting, true),
    ] {
        let peer = open(&gateway, connect);
        assert_eq!(peer.seen, [Seen::Connected { present }]);
        peer.cut();
    }
}

/// MQTT-4.1.0-1.
#[test]
fn a_session_lasts_at_least_as_long_as_its_connection() {
    let gateway = gateway();
    for expiry in [0, 1] {
        let mut consumer = open(&gateway, &lasting("consumer", expiry));
        consumer.subscribe("t", Qos::AtLeastOnce);
        consumer.watch(BEYOND_A_SECOND);
        peer(&gateway, "device").publish("t", b"x", Qos::AtLeastOnce);
        assert_eq!(consumer.messages(1).len(), 1, "{expiry}");
    }
}

fn gone(retain: bool) -> Will<'static> {
    Will {
        topic: "w",
        payload: b"gone",
        qos: Qos::AtLeastOnce,
        retain,
        properties: Properties::NONE,
    }
}

fn leaving(will: Will<'_>) -> Connect<'_> {
    Connect {
        will: Some(will),
        ..lasting("device", 600)
    }
}

/// MQTT-3.1.2-14, MQTT-3.1.2-15.
#[test]
fn a_will_is_retained_if_it_says_so() {
    for retain in [false, true] {
        let gateway = gateway();
        let mut live = peer(&gateway, "live");
        live.subscribe("w", Qos::AtLeastOnce);
        drop(open(&gateway, &leaving(gone(retain))));
        assert!(!live.messages(1)[0].retain);
        let kept = kept(&gateway, "w");
        assert_eq!(kept.len(), usize::from(retain));
        assert!(kept.iter().all(|got| got.retain));
    }
}

/// MQTT-3.1.2-10.
#[test]
fn a_will_is_published_once() {
    let gateway = gateway();
    let mut consumer = peer(&gateway, "consumer");
    consumer.subscribe("w", Qos::AtLeastOnce);
    open(&gateway, &leaving(gone(false))).cut();
    assert_eq!(consumer.messages(1).len(), 1);
    // The same session without a will.
    open(&gateway, &lasting("device", 600)).cut();
    consumer.watch(WHILE);
    assert_eq!(consumer.got().len(), 1);
}

/// MQTT-3.1.2-8.
#[test]
fn a_will_waits_no_longer_than_its_session_lasts() {
    let gateway = gateway();
    let mut consumer = peer(&gateway, "consumer");
    consumer.subscribe("w", Qos::AtLeastOnce);
    let delay = [Property::WillDelay(600)];
    let will = Will {
        properties: Properties::new(&delay),
        ..gone(false)
    };
    let connect = Connect {
        session_expiry: 1,
        ..leaving(will)
    };
    let device = open(&gateway, &connect);
    let began = consumer.now();
    drop(device);
    assert_eq!(payloads(&consumer.messages(1)), [b"gone"]);
    assert!(consumer.now() - began >= Micros::from_millis(900));
}

/// MQTT-3.1.4-2, MQTT-3.2.2-7, MQTT-4.13.2-1.
#[test]
fn what_is_refused_is_closed() {
    let config = GatewayConfig {
        users: vec![muster_gateway::User {
            name: "device".to_owned(),
            password: b"secret".to_vec(),
        }],
        ..GatewayConfig::default()
    };
    let gateway = Gateway::start(config).expect("a gateway");
    let mut peer = open(&gateway, &Connect::new("c"));
    peer.until("closed", |seen| seen.last() == Some(&Seen::Closed));
    let refused = Seen::Refused(Reason::Mqtt(0x86));
    assert_eq!(peer.seen, [refused, Seen::Closed]);
}

/// MQTT-3.8.4-3, MQTT-3.8.4-4.
#[test]
fn a_subscription_to_the_same_filter_replaces_the_first_and_loses_nothing() {
    let gateway = gateway();
    let mut consumer = peer(&gateway, "consumer");
    consumer.subscribe("t", Qos::AtMostOnce);
    let mut device = peer(&gateway, "device");
    let again = Filter {
        retain_handling: RetainHandling::Keep,
        ..Filter::new("t", Qos::AtLeastOnce)
    };
    for round in 0..20u8 {
        consumer.ask([again], Some(u32::from(round) + 1));
        for n in 0..10 {
            device.publish("t", &[round * 10 + n], Qos::AtLeastOnce);
        }
    }
    let got = consumer.messages(200);
    let numbers: Vec<u8> = got.iter().map(|got| got.payload[0]).collect();
    assert_eq!(numbers, (0..200).collect::<Vec<u8>>());
    assert!(got.iter().all(|got| got.qos == Qos::AtLeastOnce));
    assert_eq!(got[199].subscription_ids, [20]);
    consumer.watch(WHILE);
    let subscriptions = gateway.account().subscriptions;
    assert_eq!((consumer.got().len(), subscriptions), (200, 1));
}

/// MQTT-3.10.4-1, MQTT-3.10.4-4, MQTT-3.10.4-5, MQTT-3.10.4-6, MQTT-3.11.3-1, MQTT-3.11.3-2.
#[test]
fn unsubscribing_compares_character_by_character_and_answers_each_filter() {
    let gateway = gateway();
    let mut consumer = peer(&gateway, "consumer");
    let filters = ["t/+", "u", "v"].map(|filter| Filter::new(filter, Qos::AtLeastOnce));
    assert_eq!(consumer.ask(filters, None), [1, 1, 1]);
    let codes = consumer.unask(&["t/#", "u", "T/+", "t/1", "a#", "v"]);
    assert_eq!(codes, [0x11, 0, 0x11, 0x11, 0x8f, 0]);
    assert_eq!(consumer.unask(&["u"]), [0x11]);
    let mut device = peer(&gateway, "device");
    for topic in ["u", "v", "t/1"] {
        device.publish(topic, b"x", Qos::AtLeastOnce);
    }
    assert_eq!(consumer.messages(1)[0].topic, "t/1");
    consumer.watch(WHILE);
    assert_eq!(consumer.got().len(), 1);
    let unsubacks = consumer
        .seen
        .iter()
        .filter(|seen| matches!(seen, Seen::Unsubscribed { .. }));
    assert_eq!(unsubacks.count(), 2, "one for each packet");
}

/// MQTT-3.10.4-3.
#[test]
fn a_delivery_that_has_begun_outlives_its_subscription() {
    for qos in [Qos::AtLeastOnce, Qos::ExactlyOnce] {
        let gateway = gateway();
        let connect = lasting("consumer", 600);
        let mut consumer = open(&gateway, &connect);
        consumer.subscribe("t", qos);
        let mut device = peer(&gateway, "device");
        device.publish("t", b"begun", qos);
        device.answers(1);
        // UNSUBSCRIBE, while the copy lies unread.
        consumer.write_raw(b"\xa2\x06\x00\x09\x00\x00\x01t");
        device.until_subscribed(&gateway, 0);
        device.publish("t", b"late", qos);
        device.answers(2);
        let mut consumer = consumer.reopen(gateway.addr(), &connect);
        let got = consumer.messages(1);
        assert_eq!(payloads(&got), [b"begun"]);
        assert!(got[0].dup);
        consumer.catch_up();
        assert_eq!(consumer.got().len(), 1);
        assert_eq!(gateway.stop().counts.delivered_acknowledged, 1);
    }
}

/// Two sharers of topic "t", the second of which gets nothing as long as it is its peer's turn.
fn sharers(gateway: &Gateway, first: &Connect<'_>) -> [Peer; 2] {
    let mut sharers = [open(gateway, first), peer(gateway, "other")];
    for sharer in &mut sharers {
        sharer.subscribe("$share/g/t", Qos::ExactlyOnce);
    }
    sharers
}

/// MQTT-4.8.2-3.
#[test]
fn a_sharer_gets_what_its_own_subscription_was_granted() {
    let gateway = gateway();
    let mut low = peer(&gateway, "low");
    low.subscribe("$share/g/t", Qos::AtMostOnce);
    let mut high = peer(&gateway, "high");
    high.subscribe("$share/g/t", Qos::ExactlyOnce);
    let mut device = peer(&gateway, "device");
    for _ in 0..4 {
        device.publish("t", b"x", Qos::ExactlyOnce);
    }
    let levels =
        |peer: &mut Peer| -> Vec<Qos> { peer.messages(2).iter().map(|got| got.qos).collect() };
    assert_eq!(levels(&mut low), [Qos::AtMostOnce; 2]);
    assert_eq!(levels(&mut high), [Qos::ExactlyOnce; 2]);
}

/// MQTT-4.8.2-4.
#[test]
fn a_delivery_to_a_sharer_that_was_cut_off_is_completed_to_it_alone() {
    let gateway = gateway();
    let connect = lasting("first", 600);
    let [first, mut other] = sharers(&gateway, &connect);
    let mut device = peer(&gateway, "device");
    device.publish("t", b"x", Qos::ExactlyOnce);
    device.answers(1);
    let mut first = first.reopen(gateway.addr(), &connect);
    let got = first.messages(1);
    assert!(got[0].dup && got[0].qos == Qos::ExactlyOnce);
    other.watch(WHILE);
    assert!(other.got().is_empty());
}

/// MQTT-4.8.2-5.
#[test]
fn a_delivery_to_a_sharer_whose_session_ends_goes_to_nobody_else() {
    let gateway = gateway();
    let [first, mut other] = sharers(&gateway, &lasting("first", 1));
    let mut device = peer(&gateway, "device");
    device.publish("t", b"x", Qos::ExactlyOnce);
    device.answers(1);
    first.cut();
    other.until_subscribed(&gateway, 1);
    other.catch_up();
    assert!(other.got().is_empty());
    let first = open(&gateway, &lasting("first", 1));
    assert_eq!(first.seen, [Seen::Connected { present: false }]);
}

/// MQTT-4.8.2-6.
#[test]
fn what_a_sharer_refuses_goes_to_nobody_else() {
    for (refusal, sent) in [(0x40, Qos::AtLeastOnce), (0x50, Qos::ExactlyOnce)] {
        let gateway = gateway();
        let connect = lasting("first", 600);
        let [mut first, mut other] = sharers(&gateway, &connect);
        let mut device = peer(&gateway, "device");
        device.publish("t", b"x", sent);
        device.answers(1);
        // Packet id 1, quota exceeded.
        first.write_raw(&[refusal, 3, 0, 1, 0x97]);
        other.watch(WHILE);
        assert!(other.got().is_empty());
        let mut first = first.reopen(gateway.addr(), &connect);
        first.watch(WHILE);
        assert!(first.got().is_empty(), "it is not sent again either");
        assert_eq!(gateway.stop().counts.delivered, 1);
    }
}

/// MQTT-4.7.2-1.
#[test]
fn a_wildcard_at_the_front_brings_nothing_of_the_servers_own_topics() {
    let gateway = gateway();
    let mut consumer = peer(&gateway, "consumer");
    consumer.subscribe("#", Qos::AtLeastOnce);
    consumer.subscribe("+/x", Qos::AtLeastOnce);
    let mut own = peer(&gateway, "own");
    own.subscribe("$own/#", Qos::AtLeastOnce);
    let mut device = peer(&gateway, "device");
    device.publish("$own/x", b"x", Qos::AtLeastOnce);
    device.publish("t", b"t", Qos::AtLeastOnce);
    assert_eq!(own.messages(1)[0].topic, "$own/x");
    assert_eq!(consumer.messages(1)[0].topic, "t");
}

/// MQTT-4.7.3-4.
#[test]
fn names_are_compared_as_they_are_written() {
    let gateway = gateway();
    let mut consumer = peer(&gateway, "consumer");
    // The same letter, composed, against two code points; and another case; and a slash more.
    for filter in ["caf\u{e9}", "ACCOUNTS", "/t"] {
        consumer.subscribe(filter, Qos::AtLeastOnce);
    }
    let mut device = peer(&gateway, "device");
    for topic in ["cafe\u{301}", "Accounts", "t", "/t/", "caf\u{e9}"] {
        device.publish(topic, b"x", Qos::AtLeastOnce);
    }
    assert_eq!(consumer.messages(1)[0].topic, "caf\u{e9}");
    consumer.watch(WHILE);
    assert_eq!(consumer.got().len(), 1);
}
