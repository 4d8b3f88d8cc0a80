//! Steps of the client session against bytes written by hand.

use muster_model::{Micros, Reason};
use muster_protocol::mqtt::packet::{Packet, Publish as Sent};
use muster_protocol::mqtt::{
    Client, ClientEvent, ClientLimits, Connect, Filter, Input, Malformed, Properties, Property,
    Publish, Qos, Refused, Stage, Subscribe, Token, Version, reason,
};

use crate::client_line::{Line, NOW};

const ACCEPTED_1: &str = "Accepted { token: Token(1), reason: 0 }";

#[test]
fn a_client_stays_small() {
    assert!(size_of::<Client>() <= 160, "{}", size_of::<Client>());
}

/// MQTT-2.2.1-2, MQTT-3.3.1-2, MQTT-4.3.1-1.
#[test]
fn qos_0_is_sent_and_forgotten() {
    let mut line = Line::open(Version::V311, &[]);
    assert_eq!(line.publish(1, Qos::AtMostOnce), Ok(()));
    assert_eq!(line.written(), b"\x30\x04\x00\x01tx");
    assert_eq!(line.client.in_flight(), 0);
}

/// MQTT-2.2.2-1, MQTT-4.3.2-2.
#[test]
fn qos_1_is_accepted_by_its_puback() {
    let mut line = Line::open(Version::V5, &[]);
    assert_eq!(line.publish(1, Qos::AtLeastOnce), Ok(()));
    assert_eq!(line.written(), b"\x32\x07\x00\x01t\x00\x01\x00x");
    assert_eq!(line.feed(&[0x40, 2, 0, 1]), [ACCEPTED_1]);
    assert_eq!(line.feed(&[0x40, 2, 0, 1]), [""; 0]);
    let counts = line.client.counts();
    assert_eq!((counts.again, counts.unknown), (1, 0));
    assert_eq!(line.feed(&[0x40, 2, 0, 7]), [""; 0]);
    assert_eq!(line.feed(&[0x90, 4, 0, 8, 0, 0]), [""; 0]);
    let counts = line.client.counts();
    assert_eq!((counts.again, counts.unknown), (1, 2));
}

/// MQTT-2.2.1-5, MQTT-4.3.3-2, MQTT-4.3.3-4.
#[test]
fn qos_2_is_accepted_by_pubrec_and_completed_by_pubcomp() {
    let mut line = Line::open(Version::V311, &[]);
    assert_eq!(line.publish(1, Qos::ExactlyOnce), Ok(()));
    assert_eq!(line.written(), b"\x34\x06\x00\x01t\x00\x01x");
    assert_eq!(line.feed(&[0x50, 2, 0, 1]), [ACCEPTED_1]);
    assert_eq!(line.written(), [0x62, 2, 0, 1]);
    // A second PUBREC is released again and told to nobody.
    assert_eq!(line.feed(&[0x50, 2, 0, 1]), [""; 0]);
    assert_eq!(line.written(), [0x62, 2, 0, 1]);
    assert_eq!(
        line.feed(&[0x70, 2, 0, 1]),
        ["Completed { token: Token(1) }"]
    );
    assert_eq!(line.client.in_flight(), 0);
}

/// MQTT-3.6.2-1.
#[test]
fn a_pubrec_to_nothing_is_released_as_not_found() {
    let mut line = Line::open(Version::V5, &[]);
    assert_eq!(line.feed(&[0x50, 2, 0, 9]), [""; 0]);
    assert_eq!(line.written(), [0x62, 3, 0, 9, 0x92]);
}

#[test]
fn no_subscriber_is_accepted_and_counted() {
    let mut line = Line::open(Version::V5, &[]);
    line.publish(1, Qos::AtLeastOnce).unwrap();
    assert_eq!(
        line.feed(&[0x40, 3, 0, 1, 0x10]),
        ["Accepted { token: Token(1), reason: 16 }"]
    );
}

/// MQTT-3.3.4-7, MQTT-4.3.3-4.
#[test]
fn a_refusal_keeps_its_code_and_frees_the_window() {
    let mut line = Line::open(Version::V5, &[Property::ReceiveMaximum(1)]);
    for (qos, kind) in [(Qos::AtLeastOnce, 0x40), (Qos::ExactlyOnce, 0x50)] {
        line.publish(1, qos).unwrap();
        assert_eq!(line.publish(2, qos), Err(Refused::Window));
        let id = line
            .written()
            .windows(4)
            .find_map(|w| (w[..2] == *b"\x01t").then(|| w[3]));
        let events = line.feed(&[kind, 3, 0, id.unwrap(), 0x97]);
        assert_eq!(events, ["Rejected { token: Token(1), reason: Mqtt(151) }"]);
        assert_eq!(line.client.window_free(), 1);
        assert_eq!(line.written(), [0; 0]);
    }
}

/// MQTT-3.3.4-7, MQTT-4.9.0-1, MQTT-4.9.0-2.
#[test]
fn the_window_is_the_receive_maximum_until_pubcomp() {
    let mut line = Line::open(Version::V5, &[Property::ReceiveMaximum(2)]);
    line.publish(1, Qos::ExactlyOnce).unwrap();
    line.publish(2, Qos::AtLeastOnce).unwrap();
    line.written();
    assert_eq!(line.publish(3, Qos::AtLeastOnce), Err(Refused::Window));
    assert_eq!(
        line.publish(3, Qos::AtMostOnce),
        Ok(()),
        "QoS 0 needs no window"
    );
    line.feed(&[0x50, 2, 0, 1]);
    assert_eq!(
        line.client.window_free(),
        0,
        "PUBREC does not free the window"
    );
    line.feed(&[0x70, 2, 0, 1]);
    assert_eq!(line.client.window_free(), 1);
    line.feed(&[0x40, 2, 0, 2]);
    assert_eq!(line.client.window_free(), 2);
}

/// MQTT-3.2.2-11, MQTT-3.2.2-14, MQTT-3.2.2-15, MQTT-4.7.3-3.
#[test]
fn nothing_is_sent_that_the_server_does_not_take() {
    let mut line = Line::open(
        Version::V5,
        &[
            Property::MaximumPacketSize(9),
            Property::MaximumQos(Qos::AtLeastOnce),
            Property::RetainAvailable(false),
        ],
    );
    assert_eq!(
        line.publish(1, Qos::ExactlyOnce),
        Err(Refused::QosUnavailable)
    );
    assert_eq!(line.publish(1, Qos::AtLeastOnce), Ok(()));
    let publish = Publish {
        qos: Qos::AtLeastOnce,
        ..Publish::new("t", b"xy")
    };
    let refused = line.client.publish(NOW, Token(2), &publish, &mut line.out);
    assert_eq!(
        refused,
        Err(Refused::TooLarge {
            size: 10,
            maximum: 9
        })
    );
    let publish = Publish {
        retain: true,
        ..Publish::new("t", b"")
    };
    let refused = line.client.publish(NOW, Token(2), &publish, &mut line.out);
    assert_eq!(refused, Err(Refused::RetainUnavailable));
    let topic = "t".repeat(70_000);
    let publish = Publish::new(&topic, b"");
    let mut wide = Line::open(Version::V5, &[]);
    let refused = wide.client.publish(NOW, Token(2), &publish, &mut wide.out);
    assert_eq!(refused, Err(Refused::TextTooLong));
    assert_eq!(line.written(), b"\x32\x07\x00\x01t\x00\x01\x00x");
    assert_eq!(line.client.in_flight(), 1);
}

/// MQTT-3.2.2-17, MQTT-3.3.2-9.
#[test]
fn a_repeated_topic_is_sent_once_a_connection() {
    let mut line = Line::open(Version::V5, &[Property::TopicAliasMaximum(2)]);
    let publish = |slot| Publish {
        alias_slot: Some(slot),
        ..Publish::new("t", b"x")
    };
    let send = |line: &mut Line, slot| {
        line.client
            .publish(NOW, Token(0), &publish(slot), &mut line.out)
            .unwrap();
        line.written()
    };
    assert_eq!(send(&mut line, 1), b"\x30\x08\x00\x01t\x03\x23\x00\x02x");
    assert_eq!(send(&mut line, 1), b"\x30\x07\x00\x00\x03\x23\x00\x02x");
    assert_eq!(
        send(&mut line, 2),
        b"\x30\x05\x00\x01t\x00x",
        "above the server's maximum"
    );
    line.reconnect(true, &[Property::TopicAliasMaximum(2)]);
    assert_eq!(send(&mut line, 1), b"\x30\x08\x00\x01t\x03\x23\x00\x02x");
}

/// MQTT-3.3.2-8.
#[test]
fn a_refused_publish_gives_no_alias() {
    let limits = [
        Property::TopicAliasMaximum(2),
        Property::MaximumPacketSize(12),
    ];
    let mut line = Line::open(Version::V5, &limits);
    let publish = |payload| Publish {
        alias_slot: Some(0),
        ..Publish::new("t", payload)
    };
    let large = line
        .client
        .publish(NOW, Token(0), &publish(b"0123456789"), &mut line.out);
    assert!(matches!(large, Err(Refused::TooLarge { .. })));
    line.client
        .publish(NOW, Token(0), &publish(b"x"), &mut line.out)
        .unwrap();
    assert_eq!(line.written(), b"\x30\x08\x00\x01t\x03\x23\x00\x01x");
}

/// MQTT-3.1.2-23, MQTT-3.3.1-1, MQTT-4.3.2-3, MQTT-4.3.3-3, MQTT-4.3.3-5, MQTT-4.3.3-6,
/// MQTT-4.4.0-1, MQTT-4.6.0-1.
#[test]
fn a_resumed_session_sends_again_in_the_old_order() {
    let mut line = Line::open(Version::V5, &[]);
    line.publish(1, Qos::AtLeastOnce).unwrap();
    line.publish(2, Qos::ExactlyOnce).unwrap();
    line.publish(3, Qos::ExactlyOnce).unwrap();
    line.publish(4, Qos::AtLeastOnce).unwrap();
    line.feed(&[0x50, 2, 0, 2]);
    let events = line.reconnect(true, &[]);
    assert!(events.contains("Resend { token: Token(1) } Resend { token: Token(3) } Resend"));
    assert_eq!(
        line.written(),
        [0x62, 2, 0, 2],
        "the released one is released again"
    );
    assert_eq!(line.publish(5, Qos::AtLeastOnce), Err(Refused::Window));
    line.republish(1, Qos::AtLeastOnce).unwrap();
    assert_eq!(
        line.written(),
        b"\x3a\x07\x00\x01t\x00\x01\x00x",
        "DUP and the old packet id"
    );
    line.republish(3, Qos::ExactlyOnce).unwrap();
    assert_eq!(line.written(), b"\x3c\x07\x00\x01t\x00\x03\x00x");
    assert_eq!(line.republish(3, Qos::ExactlyOnce), Err(Refused::Unknown));
    line.republish(4, Qos::AtLeastOnce).unwrap();
    assert_eq!(line.publish(5, Qos::AtLeastOnce), Ok(()));
}

#[test]
fn a_resumed_session_sends_again_within_the_new_window() {
    let mut line = Line::open(Version::V5, &[]);
    (1..=3).for_each(|token| line.publish(token, Qos::AtLeastOnce).unwrap());
    let narrow = [Property::ReceiveMaximum(1)];
    line.client.closed();
    let connect = Connect {
        clean_start: false,
        ..Connect::new("c")
    };
    line.client.connect(NOW, &connect, &mut line.out).unwrap();
    let mut connack = Vec::new();
    let packet = muster_protocol::mqtt::packet::Connack {
        session_present: true,
        code: 0,
        properties: Properties::new(&narrow),
    };
    Packet::Connack(packet)
        .encode(Version::V5, &mut connack)
        .unwrap();
    let mut input = Input::new(&connack);
    assert!(line.client.poll(NOW, &mut input, &mut line.out).is_some());
    for token in 1..=3 {
        let event = line.client.poll(NOW, &mut Input::new(&[]), &mut line.out);
        assert_eq!(
            event,
            Some(ClientEvent::Resend {
                token: Token(token)
            })
        );
        line.republish(token, Qos::AtLeastOnce).unwrap();
        assert_eq!(
            line.client.poll(NOW, &mut Input::new(&[]), &mut line.out),
            None
        );
        let ack = [0x40, 2, 0, token as u8];
        let event = line.client.poll(NOW, &mut Input::new(&ack), &mut line.out);
        assert_eq!(
            event,
            Some(ClientEvent::Accepted {
                token: Token(token),
                reason: 0
            })
        );
    }
    assert_eq!(line.client.window_free(), 1);
}

#[test]
fn nothing_is_left_out_when_ids_come_round_while_sending_again() {
    let mut line = Line::open(Version::V311, &[]);
    line.publish(1, Qos::AtLeastOnce).unwrap();
    for id in 2..=u16::MAX {
        line.publish(u32::from(id), Qos::AtLeastOnce).unwrap();
        if id < u16::MAX - 1 {
            let [high, low] = id.to_be_bytes();
            line.feed(&[0x40, 2, high, low]);
        }
        line.out.clear();
    }
    line.client.closed();
    let connect = Connect {
        clean_start: false,
        ..Connect::new("c")
    };
    line.client.connect(NOW, &connect, &mut line.out).unwrap();
    let mut connack = Input::new(&[0x20, 2, 1, 0]);
    let mut resent = Vec::new();
    while let Some(event) = line.client.poll(NOW, &mut connack, &mut line.out) {
        if let ClientEvent::Resend { token } = event {
            resent.push(token.0);
            line.republish(token.0, Qos::AtLeastOnce).unwrap();
            // The next id of the circle is that of the publish just sent again.
            let filters = [Filter::new("a", Qos::AtLeastOnce)];
            let subscribe = Subscribe {
                id: 0,
                filters: &filters,
                subscription_id: None,
                user_properties: &[],
            };
            line.client
                .subscribe(NOW, &subscribe, &mut line.out)
                .unwrap();
        }
    }
    assert_eq!(resent, [1, 65_534, 65_535]);
}

/// MQTT-3.2.2-5.
#[test]
fn a_lost_session_gives_up_what_was_in_flight() {
    let mut line = Line::open(Version::V5, &[]);
    (1..=4).for_each(|token| line.publish(token, Qos::ExactlyOnce).unwrap());
    line.feed(&[0x50, 2, 0, 2]);
    line.client.forget(Token(3));
    assert!(
        line.reconnect(false, &[])
            .starts_with("Connected(Connected { session_present: false")
    );
    line.client
        .unsubscribe(NOW, 9, &["a"], &mut line.out)
        .unwrap();
    let mut dropped = Vec::new();
    line.client
        .drop_inflight(|token, stage| dropped.push((token.0, stage)));
    assert_eq!(
        dropped,
        [
            (1, Stage::Published),
            (2, Stage::Accepted),
            (4, Stage::Published)
        ]
    );
    assert_eq!(line.client.window_free(), u16::MAX);
    let events = line.feed(&[0xb0, 4, 0, 5, 0, 0]);
    assert_eq!(
        events,
        ["Unsubscribed { id: 9, codes: [0] }"],
        "requests are not dropped"
    );
    assert_eq!(line.client.in_flight(), 0);
}

#[test]
fn a_forgotten_publish_is_answered_late_and_keeps_its_place() {
    let mut line = Line::open(Version::V5, &[Property::ReceiveMaximum(1)]);
    line.publish(1, Qos::AtLeastOnce).unwrap();
    assert!(line.client.forget(Token(1)));
    assert!(!line.client.forget(Token(1)));
    assert_eq!(line.publish(1, Qos::AtLeastOnce), Err(Refused::Window));
    assert_eq!(
        line.feed(&[0x40, 2, 0, 1]),
        ["AnsweredLate { token: Token(1), reason: 0 }"]
    );
    assert_eq!(line.publish(1, Qos::ExactlyOnce), Ok(()));
    assert!(line.client.forget(Token(1)));
    assert_eq!(
        line.feed(&[0x50, 2, 0, 2]),
        ["AnsweredLate { token: Token(1), reason: 0 }"]
    );
    assert_eq!(line.feed(&[0x70, 2, 0, 2]), [""; 0]);
    assert_eq!(line.client.window_free(), 1);
}

#[test]
fn a_forgotten_publish_is_not_sent_again() {
    let mut line = Line::open(Version::V5, &[]);
    line.publish(1, Qos::AtLeastOnce).unwrap();
    line.publish(2, Qos::ExactlyOnce).unwrap();
    line.publish(3, Qos::AtLeastOnce).unwrap();
    line.publish(4, Qos::ExactlyOnce).unwrap();
    line.client.forget(Token(1));
    line.client.forget(Token(2));
    let events = line.reconnect(true, &[]);
    assert!(
        events.ends_with("Resend { token: Token(3) } Resend { token: Token(4) }"),
        "{events}"
    );
    // At QoS 2 the server has to give the packet id up before another message uses it.
    assert_eq!(line.written(), [0x62, 2, 0, 2]);
    // The same holds for what is forgotten instead of being sent again.
    line.client.forget(Token(3));
    line.client.forget(Token(4));
    assert_eq!(line.feed(&[]), [""; 0]);
    assert_eq!(line.written(), [0x62, 2, 0, 4]);
    assert_eq!(line.feed(&[0x70, 3, 0, 2, 0x92, 0x70, 2, 0, 4]), [""; 0]);
    assert_eq!(
        (line.client.in_flight(), line.client.window_free()),
        (0, u16::MAX)
    );
}

#[test]
fn a_token_may_be_used_again_once_its_publish_at_qos_2_is_accepted() {
    let mut line = Line::open(Version::V5, &[]);
    line.publish(1, Qos::ExactlyOnce).unwrap();
    assert_eq!(line.feed(&[0x50, 2, 0, 1]).len(), 1);
    line.publish(1, Qos::AtLeastOnce).unwrap();
    assert!(line.client.forget(Token(1)));
    let late = line.feed(&[0x40, 2, 0, 2]);
    assert_eq!(late, ["AnsweredLate { token: Token(1), reason: 0 }"]);
    let completed = line.feed(&[0x70, 2, 0, 1]);
    assert_eq!(completed, ["Completed { token: Token(1) }"]);
}

/// MQTT-3.2.2-5, MQTT-3.3.4-1, MQTT-3.5.2-1, MQTT-4.3.3-8, MQTT-4.3.3-10, MQTT-4.3.3-11,
/// MQTT-4.3.3-12, MQTT-4.5.0-2.
#[test]
fn received_qos_2_is_told_once() {
    let mut line = Line::open(Version::V311, &[]);
    let message = b"\x34\x06\x00\x01t\x00\x07x";
    assert_eq!(line.feed(message).len(), 1);
    assert_eq!(line.written(), [0x50, 2, 0, 7]);
    let again = b"\x3c\x06\x00\x01t\x00\x07x";
    assert_eq!(line.feed(again), [""; 0]);
    assert_eq!(line.written(), [0x50, 2, 0, 7]);
    line.reconnect(true, &[]);
    assert_eq!(
        line.feed(again),
        [""; 0],
        "the id is remembered over the connection's end"
    );
    line.written();
    assert_eq!(line.feed(&[0x62, 2, 0, 7]), [""; 0]);
    assert_eq!(line.written(), [0x70, 2, 0, 7]);
    assert_eq!(
        line.feed(message).len(),
        1,
        "after PUBREL the id names a new message"
    );
    line.reconnect(false, &[]);
    assert_eq!(line.feed(again).len(), 1, "a new session remembers nothing");
}

/// MQTT-3.3.4-1, MQTT-3.4.2-1, MQTT-4.3.2-4, MQTT-4.5.0-2.
#[test]
fn received_qos_1_is_answered_and_told() {
    let mut line = Line::open(Version::V5, &[]);
    let events = line.feed(b"\x33\x0a\x00\x01t\x00\x07\x02\x0b\x05xy");
    assert_eq!(
        events,
        [
            "Message(Message { topic: \"t\", payload: [120, 121], qos: AtLeastOnce, retain: true, \
          dup: false, properties: [SubscriptionId(5)] })"
        ]
    );
    assert_eq!(line.written(), [0x40, 2, 0, 7]);
}

#[test]
fn topic_aliases_of_the_server_are_resolved() {
    let connect = Connect {
        topic_alias_maximum: 3,
        ..Connect::new("c")
    };
    let mut line = Line::new(Version::V5, &connect);
    line.connack(Version::V5, false, &[]);
    let first = line.feed(b"\x30\x08\x00\x01t\x03\x23\x00\x03x");
    let second = line.feed(b"\x30\x07\x00\x00\x03\x23\x00\x03x");
    assert!(
        second[0].contains("topic: \"t\"") && first == second,
        "{second:?}"
    );
    line.feed(b"\x30\x08\x00\x01u\x03\x23\x00\x03x");
    assert!(line.feed(b"\x30\x07\x00\x00\x03\x23\x00\x03x")[0].contains("topic: \"u\""));
    let unknown = line.feed(b"\x30\x07\x00\x00\x03\x23\x00\x02x");
    assert_eq!(unknown, ["Malformed(TopicAlias(2))"]);
    assert_eq!(line.written(), [0xe0, 1, reason::TOPIC_ALIAS_INVALID]);
}

/// MQTT-3.3.2-7.
#[test]
fn topic_aliases_end_with_their_connection() {
    let connect = Connect {
        topic_alias_maximum: 3,
        clean_start: false,
        ..Connect::new("c")
    };
    let mut line = Line::new(Version::V5, &connect);
    line.connack(Version::V5, false, &[]);
    assert_eq!(line.feed(b"\x30\x08\x00\x01t\x03\x23\x00\x03x").len(), 1);
    line.client.closed();
    line.client.connect(NOW, &connect, &mut line.out).unwrap();
    line.connack(Version::V5, true, &[]);
    let unknown = line.feed(b"\x30\x07\x00\x00\x03\x23\x00\x03x");
    assert_eq!(unknown, ["Malformed(TopicAlias(3))"]);
}

#[test]
fn a_topic_alias_above_the_maximum_is_malformed() {
    let mut line = Line::open(Version::V5, &[]);
    let events = line.feed(b"\x30\x08\x00\x01t\x03\x23\x00\x01x");
    assert_eq!(events, ["Malformed(TopicAlias(1))"]);
}

#[test]
fn more_than_our_receive_maximum_is_counted() {
    let connect = Connect {
        receive_maximum: 1,
        ..Connect::new("c")
    };
    let mut line = Line::new(Version::V5, &connect);
    line.connack(Version::V5, false, &[]);
    assert_eq!(line.feed(b"\x34\x06\x00\x01t\x00\x01\x00").len(), 1);
    assert_eq!(
        line.feed(b"\x32\x06\x00\x01t\x00\x02\x00").len(),
        1,
        "QoS 1 is answered at once"
    );
    assert_eq!(line.client.counts().over_window, 0);
    line.written();
    assert_eq!(line.feed(b"\x34\x06\x00\x01t\x00\x03\x00").len(), 1);
    assert_eq!(
        line.written(),
        [0x50, 2, 0, 3],
        "a broker's fault does not end the measurement"
    );
    assert_eq!(line.client.counts().over_window, 1);
}

#[test]
fn a_packet_above_our_maximum_is_malformed_from_its_header() {
    let connect = Connect {
        maximum_packet_size: Some(20),
        ..Connect::new("c")
    };
    let mut line = Line::new(Version::V5, &connect);
    line.connack(Version::V5, false, &[]);
    let events = line.feed(&[0x30, 19]);
    assert_eq!(events, ["Malformed(TooLarge { size: 21, maximum: 20 })"]);
    assert_eq!(line.written(), [0xe0, 1, reason::PACKET_TOO_LARGE]);
    assert_eq!(
        line.feed(&[0xd0, 0]),
        [""; 0],
        "nothing is taken after the end"
    );
}

#[test]
fn a_limit_that_was_not_announced_is_our_own() {
    for version in [Version::V311, Version::V5] {
        let mut line = Line::open(version, &[]);
        // 2 MiB, above the default limit of 1 MiB.
        let events = line.feed(&[0x30, 0x80, 0x80, 0x80, 0x01]);
        assert_eq!(
            events,
            ["Malformed(BeyondOwnLimit { size: 2097157, maximum: 1048576 })"]
        );
    }
}

#[test]
fn requests_are_answered_by_their_number() {
    let mut line = Line::open(Version::V5, &[]);
    let filters = [
        Filter::new("a", Qos::AtLeastOnce),
        Filter::new("$share/g/b", Qos::AtMostOnce),
    ];
    let subscribe = Subscribe {
        id: 77,
        filters: &filters,
        subscription_id: Some(3),
        user_properties: &[],
    };
    line.client
        .subscribe(NOW, &subscribe, &mut line.out)
        .unwrap();
    assert_eq!(
        line.written(),
        b"\x82\x16\x00\x01\x02\x0b\x03\x00\x01a\x01\x00\x0a$share/g/b\x00"
    );
    let events = line.feed(&[0x90, 5, 0, 1, 0, 1, 0x87]);
    assert_eq!(events, ["Subscribed { id: 77, codes: [1, 135] }"]);
    line.client
        .unsubscribe(NOW, 78, &["a"], &mut line.out)
        .unwrap();
    assert_eq!(line.written(), b"\xa2\x06\x00\x02\x00\x00\x01a");
    assert_eq!(
        line.feed(&[0xb0, 4, 0, 2, 0, 0]),
        ["Unsubscribed { id: 78, codes: [0] }"]
    );
    assert_eq!(
        line.client.window_free(),
        u16::MAX,
        "requests take no window"
    );
    assert_eq!(line.client.in_flight(), 0);
}

#[test]
fn an_answer_of_the_wrong_kind_is_malformed() {
    for wrong in [[0x50, 2, 0, 1], [0x70, 2, 0, 1]] {
        let mut line = Line::open(Version::V311, &[]);
        line.publish(1, Qos::AtLeastOnce).unwrap();
        assert_eq!(line.feed(&wrong), ["Malformed(WrongAnswer(1))"]);
    }
    let mut line = Line::open(Version::V311, &[]);
    line.publish(1, Qos::ExactlyOnce).unwrap();
    assert_eq!(line.feed(&[0x40, 2, 0, 1]), ["Malformed(WrongAnswer(1))"]);
    let mut line = Line::open(Version::V311, &[]);
    line.publish(1, Qos::AtLeastOnce).unwrap();
    assert_eq!(
        line.feed(&[0x90, 3, 0, 1, 0]),
        ["Malformed(WrongAnswer(1))"]
    );
}

#[test]
fn packets_of_a_client_are_not_for_a_client() {
    for packet in [
        &[0xc0, 0][..],
        &[0x20, 3, 0, 0, 0],
        b"\x82\x07\x00\x01\x00\x00\x01a\x00",
    ] {
        let mut line = Line::open(Version::V5, &[]);
        assert_eq!(
            line.feed(packet),
            [format!("Malformed(Unexpected({}))", packet[0] >> 4)]
        );
        assert_eq!(line.written(), [0xe0, 1, reason::PROTOCOL_ERROR]);
    }
}

#[test]
fn a_refused_connection_keeps_its_code() {
    let mut line = Line::new(Version::V311, &Connect::new("c"));
    assert_eq!(
        line.feed(&[0x20, 2, 0, 5]),
        ["Refused { reason: MqttConnack(5), properties: [] }"]
    );
    let mut line = Line::new(Version::V5, &Connect::new("c"));
    assert_eq!(
        line.feed(&[0x20, 3, 0, 0x86, 0]),
        ["Refused { reason: Mqtt(134), properties: [] }"]
    );
    assert_eq!(line.publish(1, Qos::AtMostOnce), Err(Refused::NotConnected));
}

/// MQTT-3.2.2-4.
#[test]
fn a_session_after_a_clean_start_is_malformed() {
    let mut line = Line::new(Version::V5, &Connect::new("c"));
    assert_eq!(
        line.feed(&[0x20, 3, 1, 0, 0]),
        ["Malformed(SessionPresent)"]
    );
    assert_eq!(line.written(), [0; 0]);
}

#[test]
fn a_server_sent_disconnect_ends_the_connection() {
    let mut line = Line::open(Version::V5, &[]);
    let mut input = Input::new(b"\xe0\x07\x8b\x05\x1f\x00\x02up");
    let event = line.client.poll(NOW, &mut input, &mut line.out);
    let properties = [Property::ReasonString("up")];
    assert_eq!(
        event,
        Some(ClientEvent::Disconnected {
            reason: Reason::Mqtt(reason::SERVER_SHUTTING_DOWN),
            properties: Properties::new(&properties),
        })
    );
    assert!(!line.client.is_connected());
    let mut line = Line::open(Version::V311, &[]);
    assert_eq!(line.feed(&[0xe0, 0]), ["Malformed(Unexpected(14))"]);
}

/// MQTT-3.1.2-20, MQTT-3.1.2-21, MQTT-3.2.2-21.
#[test]
fn keep_alive_pings_after_silence_and_gives_up_after_more() {
    let mut line = Line::open(Version::V5, &[Property::ServerKeepAlive(5)]);
    let due = NOW + Micros::from_secs(5);
    assert_eq!(line.client.deadline(), Some(due));
    assert_eq!(line.client.timer(Micros(due.0 - 1), &mut line.out), None);
    assert_eq!(line.written(), [0; 0]);
    assert_eq!(line.client.timer(due, &mut line.out), None);
    assert_eq!(line.written(), [0xc0, 0]);
    assert_eq!(line.feed_at(due, &[0xd0, 0]), ["Pong"]);
    let due = due + Micros::from_secs(5);
    assert_eq!(line.client.deadline(), Some(due));
    line.client.timer(due, &mut line.out);
    let end = due + Micros::from_secs(5);
    assert_eq!(line.client.deadline(), Some(end), "a keep-alive later");
    assert_eq!(
        line.client.timer(end, &mut line.out),
        Some(ClientEvent::KeepAliveExpired)
    );
    assert!(!line.client.is_connected());
    assert_eq!(line.client.deadline(), None);
}

/// Publishes at QoS 0.
fn publish_at(line: &mut Line, now: Micros) {
    publish_as(line, now, Qos::AtMostOnce);
}

fn publish_as(line: &mut Line, now: Micros, qos: Qos) {
    let publish = Publish {
        qos,
        ..Publish::new("t", b"x")
    };
    let written = line.client.publish(now, Token(1), &publish, &mut line.out);
    written.unwrap();
    line.written();
}

const A_MESSAGE: &[u8] = b"\x30\x04\x00\x01tx";

#[test]
fn what_is_sent_and_received_puts_the_ping_off() {
    let mut line = Line::open(Version::V311, &[]);
    let secs = |seconds| NOW + Micros::from_secs(seconds);
    publish_at(&mut line, secs(40));
    assert_eq!(
        line.client.deadline(),
        Some(secs(60)),
        "nothing was received"
    );
    line.feed_at(secs(50), A_MESSAGE);
    assert_eq!(line.client.deadline(), Some(secs(100)), "nothing was sent");
    assert_eq!(line.client.timer(secs(99), &mut line.out), None);
    assert_eq!(line.written(), [0; 0]);
    // The first byte of a packet that is still coming.
    publish_at(&mut line, secs(70));
    line.feed_at(secs(75), &A_MESSAGE[..3]);
    assert_eq!(line.client.deadline(), Some(secs(130)));
}

#[test]
fn a_peer_that_hangs_is_found_by_a_client_that_never_stops_sending() {
    let mut line = Line::open(Version::V311, &[]);
    let secs = |seconds: f64| NOW + Micros::from_secs_f64(seconds);
    let mut pings = Vec::new();
    for step in 1..200 {
        let now = secs(f64::from(step));
        publish_at(&mut line, now);
        let due = line.client.deadline().expect("the keep-alive is on");
        if now < due {
            continue;
        }
        if line.client.timer(now, &mut line.out) == Some(ClientEvent::KeepAliveExpired) {
            assert_eq!(pings, [60]);
            return assert_eq!(step, 70, "10 s after the ping");
        }
        assert_eq!(line.written(), [0xc0, 0]);
        pings.push(step);
    }
    panic!("it was never found: {pings:?}");
}

/// A process that stood still finds the answer in its socket.
#[test]
fn an_answer_that_may_lie_unread_gets_its_time_again() {
    let mut line = Line::open(Version::V311, &[]);
    let secs = |seconds| NOW + Micros::from_secs(seconds);
    line.client.timer(secs(60), &mut line.out);
    assert_eq!(line.client.timer(secs(75), &mut line.out), None, "5 s late");
    assert_eq!(line.client.deadline(), Some(secs(85)));
    let expired = line.client.timer(secs(85), &mut line.out);
    assert_eq!(expired, Some(ClientEvent::KeepAliveExpired));
}

/// MQTT-3.1.2-22.
#[test]
fn a_client_knows_that_it_was_silent_for_too_long() {
    let mut line = Line::open(Version::V311, &[]);
    let secs = |seconds| NOW + Micros::from_secs(seconds);
    assert!(!line.client.has_missed_keep_alive(secs(89)));
    assert!(line.client.has_missed_keep_alive(secs(90)));
    publish_at(&mut line, secs(91));
    assert!(
        line.client.has_missed_keep_alive(secs(92)),
        "it was, before"
    );
    line.feed_at(secs(93), A_MESSAGE);
    assert!(line.client.has_missed_keep_alive(secs(93)), "sent before");
    line.feed_at(secs(94), &[0xd0, 0]);
    assert!(!line.client.has_missed_keep_alive(secs(95)));
}

/// A message went out each second, so that no ping is due; then the client stalls for longer than
/// one and a half keep-alives, and the server lets it pass.
#[test]
fn a_silence_that_the_server_answers_to_has_passed() {
    let secs = |seconds| NOW + Micros::from_secs(seconds);
    let puback = |id: u8| [0x40, 2, 0, id];
    let mut line = Line::open(Version::V311, &[]);
    publish_as(&mut line, secs(1), Qos::AtLeastOnce);
    publish_as(&mut line, secs(100), Qos::AtLeastOnce);
    line.feed_at(secs(101), &puback(1));
    assert!(line.client.has_missed_keep_alive(secs(101)), "sent before");
    line.feed_at(secs(102), &puback(2));
    assert!(!line.client.has_missed_keep_alive(secs(102)));
    assert!(line.client.has_missed_keep_alive(secs(190)), "silent again");
}

/// The first packet after the silence may be a ping: then its answer tells, and none before it.
#[test]
fn a_silence_that_a_ping_ends_has_passed_with_its_answer() {
    let secs = |seconds| NOW + Micros::from_secs(seconds);
    let mut line = Line::open(Version::V311, &[]);
    publish_as(&mut line, secs(1), Qos::AtLeastOnce);
    assert_eq!(line.client.timer(secs(100), &mut line.out), None);
    line.feed_at(secs(101), &[0x40, 2, 0, 1]);
    assert!(line.client.has_missed_keep_alive(secs(101)), "sent before");
    line.feed_at(secs(102), &[0xd0, 0]);
    assert!(!line.client.has_missed_keep_alive(secs(102)));
}

/// PUBREC is the answer to a publish of before the silence, PUBCOMP one to the PUBREL after it.
#[test]
fn a_release_after_a_silence_is_answered_after_it() {
    let secs = |seconds| NOW + Micros::from_secs(seconds);
    let mut line = Line::open(Version::V311, &[]);
    publish_as(&mut line, secs(1), Qos::ExactlyOnce);
    line.feed_at(secs(100), &[0x50, 2, 0, 1]);
    assert!(line.client.has_missed_keep_alive(secs(100)));
    line.feed_at(secs(101), &[0x70, 2, 0, 1]);
    assert!(!line.client.has_missed_keep_alive(secs(101)));
}

/// Law: if nothing that is sent has an answer and something always comes, one ping asks.
#[test]
fn a_client_pings_after_a_silence_whatever_comes_and_goes() {
    let secs = |seconds| NOW + Micros::from_secs(seconds);
    let mut line = Line::open(Version::V311, &[]);
    line.feed_at(secs(99), A_MESSAGE);
    publish_at(&mut line, secs(100));
    assert_eq!(line.client.deadline(), Some(secs(100)));
    assert_eq!(line.client.timer(secs(100), &mut line.out), None);
    assert_eq!(line.out, [0xc0, 0]);
    line.feed_at(secs(101), A_MESSAGE);
    assert_eq!(line.client.deadline(), Some(secs(160)), "once");
    assert!(line.client.has_missed_keep_alive(secs(101)));
    line.feed_at(secs(102), &[0xd0, 0]);
    assert!(!line.client.has_missed_keep_alive(secs(102)));
}

#[test]
fn without_keep_alive_there_is_no_deadline() {
    let mut line = Line::new(
        Version::V311,
        &Connect {
            keep_alive: 0,
            ..Connect::new("c")
        },
    );
    line.connack(Version::V311, false, &[]);
    assert_eq!(line.client.deadline(), None);
    line.client.ping(NOW, &mut line.out);
    assert_eq!(
        line.client.deadline(),
        Some(NOW + ClientLimits::default().ping_timeout)
    );
}

/// MQTT-3.14.4-1.
#[test]
fn disconnect_is_the_last_packet() {
    let mut line = Line::open(Version::V5, &[]);
    line.client
        .disconnect(reason::DISCONNECT_WITH_WILL, &mut line.out);
    assert_eq!(line.written(), [0xe0, 1, 4]);
    line.client.disconnect(reason::SUCCESS, &mut line.out);
    assert_eq!(line.publish(1, Qos::AtMostOnce), Err(Refused::NotConnected));
    assert_eq!(line.written(), [0; 0]);
}

#[test]
fn an_answer_that_nobody_reads_is_not_waited_for() {
    let connect = Connect {
        keep_alive: 10,
        ..Connect::new("c")
    };
    let mut line = Line::new(Version::V5, &connect);
    line.connack(Version::V5, false, &[]);
    let later = NOW + Micros::from_secs(9);
    line.client.ping_unawaited(later, &mut line.out);
    assert_eq!(line.written(), [0xc0, 0]);
    // Nothing was received for a keep-alive, and no answer is waited for.
    assert_eq!(line.client.deadline(), Some(NOW + Micros::from_secs(10)));
    assert_eq!(line.feed_at(later, &[0xd0, 0]), ["Pong"]);
}

#[test]
fn a_session_may_end_with_its_connection() {
    let mut line = Line::open(Version::V5, &[]);
    line.client.end_session(&mut line.out);
    assert_eq!(line.written(), [0xe0, 7, 0, 5, 17, 0, 0, 0, 0]);
    assert!(!line.client.is_connected());
    let mut line = Line::open(Version::V311, &[]);
    line.client.end_session(&mut line.out);
    assert_eq!(line.written(), [0xe0, 0]);
}

#[test]
fn all_that_connect_and_publish_can_say_is_written() {
    let mut client = Client::new(Version::V5, &ClientLimits::default());
    let mut out = Vec::new();
    let connect = Connect {
        session_expiry: 9,
        receive_maximum: 8,
        maximum_packet_size: Some(7_000),
        topic_alias_maximum: 6,
        request_response_information: true,
        request_problem_information: false,
        user_properties: &[("k", "v")],
        ..Connect::new("c")
    };
    client.connect(NOW, &connect, &mut out).unwrap();
    let Ok(Some(Packet::Connect(read))) = Packet::decode(Version::V5, &mut Input::new(&out), 1_000)
    else {
        unreachable!("a CONNECT was written");
    };
    assert_eq!(
        read.properties.iter().collect::<Vec<_>>(),
        [
            Property::SessionExpiry(9),
            Property::ReceiveMaximum(8),
            Property::MaximumPacketSize(7_000),
            Property::TopicAliasMaximum(6),
            Property::RequestResponseInformation(true),
            Property::RequestProblemInformation(false),
            Property::User("k", "v"),
        ]
    );
    let mut line = Line::open(Version::V5, &[Property::TopicAliasMaximum(1)]);
    let publish = Publish {
        alias_slot: Some(0),
        is_text: true,
        message_expiry: Some(1),
        content_type: Some("a"),
        response_topic: Some("b"),
        correlation: Some(b"c"),
        user_properties: &[("k", "v"), ("k", "w")],
        ..Publish::new("t", b"x")
    };
    line.client
        .publish(NOW, Token(1), &publish, &mut line.out)
        .unwrap();
    let Ok(Some(Packet::Publish(Sent { properties, .. }))) =
        Packet::decode(Version::V5, &mut Input::new(&line.out), 1_000)
    else {
        unreachable!("a PUBLISH was written");
    };
    assert_eq!(
        properties.iter().collect::<Vec<_>>(),
        [
            Property::TopicAlias(1),
            Property::PayloadFormat(true),
            Property::MessageExpiry(1),
            Property::ContentType("a"),
            Property::ResponseTopic("b"),
            Property::CorrelationData(b"c"),
            Property::User("k", "v"),
            Property::User("k", "w"),
        ]
    );
}

#[test]
fn a_malformed_packet_names_its_code() {
    let codes = [
        (Malformed::Text, reason::MALFORMED_PACKET),
        (Malformed::PropertyTwice(1), reason::PROTOCOL_ERROR),
        (
            Malformed::ProtocolVersion,
            reason::UNSUPPORTED_PROTOCOL_VERSION,
        ),
        (Malformed::TopicName, reason::TOPIC_NAME_INVALID),
    ];
    for (malformed, code) in codes {
        assert_eq!(malformed.code(), code, "{malformed}");
    }
}
