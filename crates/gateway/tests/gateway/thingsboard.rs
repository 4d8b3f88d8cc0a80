//! The gateway as ThingsBoard: devices are known by their links, and their data surface under their
//! names.

use muster_gateway::{Dialect, Gateway, GatewayConfig, User};
use muster_model::behaviour::Behaviour;
use muster_model::{Micros, Reason};
use muster_protocol::mqtt::{Connect, Publish, Qos, Version};

use crate::peer::{Peer, Seen};

const TELEMETRY: &str = "v1/devices/me/telemetry";
const PAYLOAD_FORMAT_INVALID: Reason = Reason::Mqtt(0x99);
const MALFORMED_PACKET: Reason = Reason::Mqtt(0x81);
const TOPIC_NAME_INVALID: Reason = Reason::Mqtt(0x90);

fn user(name: &str, password: &str) -> User {
    User {
        name: name.to_owned(),
        password: password.as_bytes().to_vec(),
    }
}

fn config() -> GatewayConfig {
    GatewayConfig {
        dialect: Dialect::Thingsboard,
        northbound: Some(user("north", "secret")),
        ..GatewayConfig::default()
    }
}

fn device(gateway: &Gateway, version: Version, token: &str) -> Peer {
    let client_id = format!("client-of-{token}");
    let connect = Connect {
        user: Some(token),
        ..Connect::new(&client_id)
    };
    let peer = Peer::open(gateway.addr(), version, &connect);
    assert_eq!(peer.seen, [Seen::Connected { present: false }]);
    peer
}

fn consumer(gateway: &Gateway) -> Peer {
    let connect = Connect {
        user: Some("north"),
        password: Some(b"secret"),
        ..Connect::new("consumer")
    };
    let mut peer = Peer::open(gateway.addr(), Version::V5, &connect);
    peer.subscribe("thingsboard/#", Qos::AtLeastOnce);
    peer
}

/// Topics and payloads, sorted.
fn copies(consumer: &mut Peer, count: usize) -> Vec<(String, String)> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let copies = consumer.messages(count).into_iter();
    let mut copies: Vec<_> = copies.map(|got| (got.topic, text(&got.payload))).collect();
    copies.sort();
    copies
}

#[test]
fn data_surface_as_they_came_under_the_name_of_their_link() {
    for (threads, behaviour) in [
        (1, Behaviour::default()),
        (2, Behaviour::default()),
        (1, odd()),
    ] {
        let gateway = Gateway::start(GatewayConfig {
            threads,
            behaviour,
            ..config()
        });
        let gateway = gateway.expect("a gateway");
        let mut north = consumer(&gateway);
        let (mut one, mut two) = (
            device(&gateway, Version::V5, "DW00000001"),
            device(&gateway, Version::V311, "DW00000002"),
        );
        let point = r#"{"ts":1600000000000,"values":{"pulseCounter":5,"leakage":false}}"#;
        one.publish(TELEMETRY, point.as_bytes(), Qos::AtLeastOnce);
        two.publish("v2/t", br#"{"longKey":73}"#, Qos::AtMostOnce);
        two.publish(
            "v1/devices/me/attributes",
            br#"{"model":"x"}"#,
            Qos::AtLeastOnce,
        );
        let retained = Publish {
            retain: true,
            qos: Qos::AtLeastOnce,
            user_properties: &[("muster-id", "stamp")],
            ..Publish::new("v2/a", br#"{"model":"y"}"#)
        };
        one.send(&retained);
        let of = |name: &str, text: &str| (format!("thingsboard/{name}"), text.to_owned());
        let expected = [
            of("DW00000001/attributes", r#"{"model":"y"}"#),
            of("DW00000001/telemetry", point),
            of("DW00000002/attributes", r#"{"model":"x"}"#),
            of("DW00000002/telemetry", r#"{"longKey":73}"#),
        ];
        assert_eq!(copies(&mut north, 4), expected);
        let user: Vec<_> = north.got().into_iter().flat_map(|got| got.user).collect();
        assert_eq!(user, [("muster-id".to_owned(), "stamp".to_owned())]);
        assert!(north.got().iter().all(|got| !got.retain));
        one.answers(2);
        two.answers(1);
        let account = gateway.stop();
        let counts = (
            account.counts.received,
            account.counts.accepted,
            account.counts.delivered,
        );
        assert_eq!(counts, (4, 3, 4));
        assert_eq!(
            (account.counts.unreadable, account.counts.unknown_topics),
            (0, 0)
        );
    }
}

/// A gateway that plans a fault for each uplink, but none for these.
fn odd() -> Behaviour {
    Behaviour {
        service_time: Some(muster_model::behaviour::ServiceTime::Fixed(
            Micros::from_millis(2),
        )),
        ..Behaviour::default()
    }
}

#[test]
fn data_that_nobody_subscribed_to_are_accepted_without_a_word_of_it() {
    let gateway = Gateway::start(config()).expect("a gateway");
    let mut device = device(&gateway, Version::V5, "d");
    device.publish(TELEMETRY, b"{}", Qos::AtLeastOnce);
    device.answers(1);
    let is_success = |seen: &Seen| matches!(seen, Seen::Accepted { reason: 0, .. });
    assert!(device.seen.iter().any(is_success), "{:?}", device.seen);
    assert_eq!(gateway.stop().counts.no_subscriber, 0);
}

#[test]
fn a_payload_that_is_no_data_ends_the_link() {
    let gateway = Gateway::start(config()).expect("a gateway");
    let mut north = consumer(&gateway);
    device(&gateway, Version::V5, "z").publish(TELEMETRY, b"{}", Qos::AtLeastOnce);
    let bad = b"{\"values\":";
    for qos in [Qos::AtMostOnce, Qos::AtLeastOnce] {
        let mut new = device(&gateway, Version::V5, "a");
        new.publish(TELEMETRY, bad, qos);
        new.until("closed", |seen| seen.last() == Some(&Seen::Closed));
        let goodbye = Seen::Disconnected(PAYLOAD_FORMAT_INVALID);
        assert_eq!(new.seen[1..], [goodbye, Seen::Closed], "{qos:?}");
        let mut old = device(&gateway, Version::V311, "c");
        old.publish("v2/a", b"[]", qos);
        old.until("closed", |seen| seen.last() == Some(&Seen::Closed));
        assert_eq!(old.seen.len(), 2, "{:?}", old.seen);
    }
    assert_eq!(copies(&mut north, 1).len(), 1);
    let account = gateway.stop();
    assert_eq!((account.counts.unreadable, account.counts.rejected), (4, 0));
    assert_eq!(account.counts.delivered, 1);
}

#[test]
fn a_payload_above_65536_bytes_ends_the_link() {
    let gateway = Gateway::start(config()).expect("a gateway");
    let body = |bytes: usize| format!("{{\"a\":\"{}\"}}", "x".repeat(bytes - 8)).into_bytes();
    for (version, qos) in [
        (Version::V5, Qos::AtLeastOnce),
        (Version::V311, Qos::AtMostOnce),
    ] {
        let mut peer = device(&gateway, version, "a");
        peer.publish(TELEMETRY, &body(65_536), Qos::AtLeastOnce);
        peer.answers(1);
        peer.publish(TELEMETRY, &body(65_537), qos);
        peer.until("closed", |seen| seen.last() == Some(&Seen::Closed));
        let is_told = peer.seen.contains(&Seen::Disconnected(MALFORMED_PACKET));
        assert_eq!(is_told, version == Version::V5, "{:?}", peer.seen);
    }
    let counts = gateway.stop().counts;
    assert_eq!((counts.accepted, counts.unreadable), (2, 2));
}

#[test]
fn a_list_of_no_points_is_never_acknowledged() {
    let gateway = Gateway::start(config()).expect("a gateway");
    let mut peer = device(&gateway, Version::V5, "a");
    let ignored = peer.publish(TELEMETRY, b"[]", Qos::AtLeastOnce);
    peer.publish(TELEMETRY, b"{}", Qos::AtLeastOnce);
    peer.answers(1);
    let is_of = |seen: &Seen| matches!(seen, Seen::Accepted { token, .. } if *token == ignored);
    assert!(!peer.seen.iter().any(is_of), "{:?}", peer.seen);
    let counts = gateway.stop().counts;
    assert_eq!(
        (counts.received, counts.accepted, counts.unanswered),
        (2, 1, 1)
    );
}

#[test]
fn a_device_that_is_no_gateway_is_never_answered_on_their_topics() {
    let behaviour = Behaviour {
        no_gateways: true,
        ..Behaviour::default()
    };
    let gateway = Gateway::start(GatewayConfig {
        behaviour,
        ..config()
    });
    let gateway = gateway.expect("a gateway");
    let mut peer = device(&gateway, Version::V5, "GW00000000");
    peer.publish("v1/gateway/connect", br#"{"device":"a"}"#, Qos::AtLeastOnce);
    peer.publish(
        "v1/gateway/telemetry",
        br#"{"a":[{"x":1}]}"#,
        Qos::AtLeastOnce,
    );
    let own = peer.publish(TELEMETRY, b"{}", Qos::AtLeastOnce);
    peer.answers(1);
    let is_own = |seen: &Seen| matches!(seen, Seen::Accepted { token, .. } if *token == own);
    assert!(
        is_own(&peer.seen[1]) && peer.seen.len() == 2,
        "{:?}",
        peer.seen
    );
    let counts = gateway.stop().counts;
    assert_eq!((counts.announced, counts.accepted), (0, 1));
}

#[test]
fn a_topic_that_is_not_thingsboards_goes_to_nobody() {
    let gateway = Gateway::start(config()).expect("a gateway");
    let mut north = consumer(&gateway);
    north.subscribe("muster/#", Qos::AtLeastOnce);
    let mut new = device(&gateway, Version::V5, "a");
    let token = new.publish("muster/a/t", b"{}", Qos::AtLeastOnce);
    let reason = TOPIC_NAME_INVALID;
    new.until("0x90", |seen| {
        seen.contains(&Seen::Rejected { token, reason })
    });
    new.publish("thingsboard/b/telemetry", b"{}", Qos::AtMostOnce);
    let mut old = device(&gateway, Version::V311, "b");
    old.publish("muster/b/t", b"{}", Qos::AtLeastOnce);
    old.answers(1);
    new.publish(TELEMETRY, b"{}", Qos::AtLeastOnce);
    let expected = ("thingsboard/a/telemetry".to_owned(), "{}".to_owned());
    assert_eq!(copies(&mut north, 1), [expected]);
    let account = gateway.stop();
    assert_eq!(
        (account.counts.unknown_topics, account.counts.delivered),
        (3, 1)
    );
}

#[test]
fn only_known_tokens_are_admitted_where_they_were_told() {
    let gateway = Gateway::start(GatewayConfig {
        users: vec![user("known", "")],
        ..config()
    });
    let gateway = gateway.expect("a gateway");
    device(&gateway, Version::V5, "known").disconnect();
    device(&gateway, Version::V311, "known").disconnect();
    for (version, unknown, nobody) in [
        (Version::V5, Reason::Mqtt(0x86), Reason::Mqtt(0x85)),
        (
            Version::V311,
            Reason::MqttConnack(5),
            Reason::MqttConnack(2),
        ),
    ] {
        for (user, reason) in [(Some("unknown"), unknown), (None, nobody)] {
            let connect = Connect {
                user,
                ..Connect::new("c")
            };
            let peer = Peer::open(gateway.addr(), version, &connect);
            assert_eq!(peer.seen.first(), Some(&Seen::Refused(reason)), "{user:?}");
        }
    }
}

#[test]
fn a_gateway_speaks_for_the_devices_it_names() {
    let gateway = Gateway::start(config()).expect("a gateway");
    let mut north = consumer(&gateway);
    let mut peer = device(&gateway, Version::V311, "GW00000000");
    for device in ["a", "b"] {
        let payload = format!(r#"{{"device":"{device}"}}"#);
        peer.publish("v1/gateway/connect", payload.as_bytes(), Qos::AtLeastOnce);
    }
    peer.answers(2);
    let both = r#"{"a":[{"ts":1,"values":{"x":1}}],"b":[{"x":2},{"x":3}]}"#;
    peer.publish("v1/gateway/telemetry", both.as_bytes(), Qos::AtLeastOnce);
    let one = r#"{"b":{"model":"m"}}"#;
    peer.publish("v1/gateway/attributes", one.as_bytes(), Qos::AtLeastOnce);
    peer.publish(
        "v1/gateway/disconnect",
        br#"{"device":"b"}"#,
        Qos::AtLeastOnce,
    );
    peer.answers(5);
    let of = |topic: &str, text: &str| (format!("thingsboard/{topic}"), text.to_owned());
    let expected = [
        of("a/telemetry", both),
        of("b/attributes", one),
        of("b/telemetry", both),
    ];
    assert_eq!(copies(&mut north, 3), expected);
    peer.publish("v1/gateway/connect", b"{}", Qos::AtLeastOnce);
    peer.until("closed", |seen| seen.last() == Some(&Seen::Closed));
    let counts = gateway.stop().counts;
    assert_eq!(
        (counts.announced, counts.announced_gone, counts.received),
        (2, 1, 3)
    );
    assert_eq!((counts.accepted, counts.unreadable), (2, 1));
}
