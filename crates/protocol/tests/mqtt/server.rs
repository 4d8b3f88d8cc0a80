//! Steps of the server session against bytes written by hand.

use muster_model::Micros;
use muster_protocol::mqtt::{
    Accept, Input, Pending, Publish, Qos, Refused, ServerEvent, ServerLimits, Token, Version,
    reason,
};

use crate::server_line::{CONNECT_V5, CONNECT_V311, Line, NAME, NOW, connect};

/// MQTT-3.1.4-5.
#[test]
fn a_connect_waits_for_the_callers_decision() {
    let mut line = Line::new(&ServerLimits::default());
    let bytes = [CONNECT_V5, &[0xc0, 0]].concat();
    let mut input = Input::new(&bytes);
    let event = line.server.poll(NOW, &mut input, &mut line.out);
    let Some(ServerEvent::Connect(connect)) = event else {
        unreachable!("a CONNECT came");
    };
    assert_eq!((connect.version, connect.client_id), (Version::V5, "c"));
    assert_eq!(line.server.poll(NOW, &mut input, &mut line.out), None);
    assert_eq!(input.rest(), [0xc0, 0], "what follows is left for later");
    line.server
        .accept(NOW, &Accept::default(), &mut line.out)
        .unwrap();
    assert_eq!(
        line.written(),
        [0x20, 11, 0, 0, 8, 0x27, 0, 0x10, 0, 0, 0x22, 0, 64]
    );
    assert_eq!(
        line.server.poll(NOW, &mut input, &mut line.out),
        Some(ServerEvent::Ping)
    );
    assert_eq!(line.written(), [0xd0, 0]);
}

/// MQTT-3.2.2-9.
#[test]
fn a_connack_says_what_is_not_served() {
    let limits = ServerLimits {
        receive_maximum: 20,
        maximum_packet_size: muster_protocol::mqtt::MAXIMUM_PACKET_SIZE,
        topic_alias_maximum: 0,
    };
    let mut line = Line::new(&limits);
    // With the authentication method "m".
    line.feed(&connect(0, b"\x15\x00\x01m", NAME));
    let accept = Accept {
        session_expiry: Some(1),
        assigned_client_id: Some("x"),
        server_keep_alive: Some(4),
        maximum_qos: Qos::AtMostOnce,
        retain_available: false,
        shared_available: false,
        authentication_data: Some(b"d"),
        user_properties: &[("k", "v")],
    };
    line.server.accept(NOW, &accept, &mut line.out).unwrap();
    let bytes = b"\x20\x27\x00\x00\x24\x11\x00\x00\x00\x01\x12\x00\x01x\x13\x00\x04\x21\x00\x14\
        \x24\x00\x25\x00\x2a\x00\x15\x00\x01m\x16\x00\x01d\x26\x00\x01k\x00\x01v";
    assert_eq!(line.written(), bytes);
    assert_eq!(
        line.server.deadline(),
        Some(NOW + Micros::from_secs(6)),
        "the server's own"
    );
    assert_eq!(
        line.feed(b"\x31\x04\x00\x01t\x00"),
        ["Malformed(RetainNotServed)"]
    );
    assert_eq!(line.written(), [0xe0, 1, reason::RETAIN_NOT_SUPPORTED]);
}

/// MQTT-3.1.4-6.
#[test]
fn a_refusal_is_translated_for_mqtt_311() {
    for (connect, connack) in [
        (
            CONNECT_V5,
            &[0x20, 3, 0, reason::BAD_USER_OR_PASSWORD, 0][..],
        ),
        (
            CONNECT_V311,
            &[0x20, 2, 0, reason::V311_BAD_USER_OR_PASSWORD],
        ),
    ] {
        let mut line = Line::new(&ServerLimits::default());
        line.feed(connect);
        line.server
            .refuse(reason::BAD_USER_OR_PASSWORD, &mut line.out);
        assert_eq!(line.written(), connack);
        assert_eq!(line.feed(&[0xc0, 0]), [""; 0], "the connection is over");
    }
}

/// MQTT-3.1.0-1, MQTT-3.1.0-2.
#[test]
fn the_first_packet_is_a_connect_and_the_only_one() {
    let mut line = Line::new(&ServerLimits::default());
    assert_eq!(line.feed(&[0xc0, 0]), ["Malformed(Unexpected(12))"]);
    assert_eq!(line.written(), [0; 0]);
    let mut line = Line::open(CONNECT_V311);
    assert_eq!(line.feed(CONNECT_V311), ["Malformed(Unexpected(1))"]);
    assert_eq!(line.written(), [0; 0], "MQTT 3.1.1 has no words for it");
}

/// MQTT-3.1.2-2.
#[test]
fn an_unknown_version_is_refused_in_the_oldest_form() {
    let mut line = Line::new(&ServerLimits::default());
    let old = b"\x10\x0f\x00\x06MQIsdp\x03\x00\x00\x0a\x00\x01c";
    assert_eq!(line.feed(old), ["Malformed(ProtocolVersion)"]);
    assert_eq!(line.written(), [0x20, 2, 0, 1]);
}

/// MQTT-2.2.1-5, MQTT-3.3.4-1, MQTT-3.4.2-1, MQTT-4.3.2-4.
#[test]
fn a_publish_is_answered_when_the_caller_says_so() {
    let mut line = Line::open(CONNECT_V5);
    let told = line.feed(b"\x32\x06\x00\x01t\x00\x07\x00");
    assert!(told[0].contains("pending: Some(Pending { packet_id: 7, qos: AtLeastOnce })"));
    assert_eq!(line.written(), [0; 0]);
    let pending = Pending {
        packet_id: 7,
        qos: Qos::AtLeastOnce,
    };
    line.server
        .ack(pending, reason::NO_MATCHING_SUBSCRIBERS, &mut line.out);
    assert_eq!(line.written(), [0x40, 3, 0, 7, 0x10]);
    line.server.ack(pending, 0, &mut line.out);
    assert_eq!(line.written(), [0x40, 2, 0, 7], "as often as it is called");
}

/// MQTT-4.3.3-8, MQTT-4.3.3-10, MQTT-4.3.3-11, MQTT-4.3.3-12.
#[test]
fn received_qos_2_is_told_once() {
    let mut line = Line::open(CONNECT_V311);
    let publish = b"\x34\x05\x00\x01t\x00\x07";
    let again = b"\x3c\x05\x00\x01t\x00\x07";
    assert_eq!(line.feed(publish).len(), 1);
    assert_eq!(line.feed(again), [""; 0]);
    assert_eq!(line.written(), [0; 0], "the caller has not decided");
    line.server.ack(
        Pending {
            packet_id: 7,
            qos: Qos::ExactlyOnce,
        },
        0,
        &mut line.out,
    );
    assert_eq!(line.written(), [0x50, 2, 0, 7]);
    let mut line = line.resumed(CONNECT_V311);
    assert_eq!(line.feed(again), [""; 0]);
    assert_eq!(
        line.written(),
        [0x50, 2, 0, 7],
        "answered before, so answered again"
    );
    assert_eq!(line.feed(&[0x62, 2, 0, 7]), [""; 0]);
    assert_eq!(line.written(), [0x70, 2, 0, 7]);
    assert_eq!(line.feed(publish).len(), 1);
    assert_eq!(line.server.counts().suppressed, 1);
}

#[test]
fn what_was_not_answered_is_told_again_after_the_connections_end() {
    let mut line = Line::open(CONNECT_V5);
    assert_eq!(line.feed(b"\x34\x06\x00\x01t\x00\x07\x00").len(), 1);
    let mut line = line.resumed(CONNECT_V5);
    assert_eq!(line.feed(b"\x3c\x06\x00\x01t\x00\x07\x00").len(), 1);
}

/// MQTT-3.5.2-1, MQTT-4.3.3-9.
#[test]
fn a_refused_qos_2_frees_its_packet_id() {
    let mut line = Line::open(CONNECT_V5);
    let publish = b"\x34\x06\x00\x01t\x00\x07\x00";
    let pending = Pending {
        packet_id: 7,
        qos: Qos::ExactlyOnce,
    };
    line.feed(publish);
    line.server
        .ack(pending, reason::QUOTA_EXCEEDED, &mut line.out);
    assert_eq!(line.written(), [0x50, 3, 0, 7, 0x97]);
    assert_eq!(line.feed(publish).len(), 1);
    // MQTT 3.1.1 cannot refuse: the answer is an acceptance, and PUBREL follows.
    let mut line = Line::open(CONNECT_V311);
    line.feed(b"\x34\x05\x00\x01t\x00\x07");
    line.server
        .ack(pending, reason::QUOTA_EXCEEDED, &mut line.out);
    assert_eq!(line.written(), [0x50, 2, 0, 7]);
    assert_eq!(line.feed(b"\x3c\x05\x00\x01t\x00\x07"), [""; 0]);
}

/// MQTT-3.7.2-1.
#[test]
fn a_release_of_nothing_is_not_found() {
    let mut line = Line::open(CONNECT_V5);
    line.feed(&[0x62, 2, 0, 9]);
    assert_eq!(line.written(), [0x70, 3, 0, 9, 0x92]);
}

#[test]
fn more_than_the_receive_maximum_is_malformed() {
    let mut line = Line::open(CONNECT_V5);
    let publish = |id| [0x34, 6, 0, 1, b't', 0, id, 0];
    line.feed(&publish(1));
    line.feed(&publish(2));
    line.server.ack(
        Pending {
            packet_id: 1,
            qos: Qos::ExactlyOnce,
        },
        0,
        &mut line.out,
    );
    line.feed(&[0x62, 2, 0, 1]);
    assert_eq!(line.feed(&publish(3)).len(), 1, "PUBCOMP made room");
    line.written();
    assert_eq!(line.feed(&publish(4)), ["Malformed(ReceiveMaximum)"]);
    assert_eq!(line.written(), [0xe0, 1, reason::RECEIVE_MAXIMUM_EXCEEDED]);
}

#[test]
fn a_packet_id_cannot_serve_two_exchanges() {
    let mut line = Line::open(CONNECT_V5);
    line.feed(&[0x34, 6, 0, 1, b't', 0, 1, 0]);
    assert_eq!(
        line.feed(&[0x32, 6, 0, 1, b't', 0, 1, 0]),
        ["Malformed(PacketIdInUse(1))"]
    );
}

#[test]
fn topic_aliases_of_the_client_are_resolved() {
    let mut line = Line::open(CONNECT_V5);
    let first = line.feed(b"\x30\x08\x00\x01t\x03\x23\x00\x40x");
    let second = line.feed(b"\x30\x07\x00\x00\x03\x23\x00\x40x");
    assert!(
        first == second && first[0].contains("topic: \"t\""),
        "{first:?}"
    );
    assert_eq!(
        line.feed(b"\x30\x07\x00\x00\x03\x23\x00\x41x"),
        ["Malformed(TopicAlias(65))"]
    );
    let mut line = Line::open(CONNECT_V5);
    assert_eq!(line.feed(b"\x30\x03\x00\x00\x00"), ["Malformed(TopicName)"]);
}

/// MQTT-3.3.4-6.
#[test]
fn a_subscription_identifier_is_not_for_a_client_to_send() {
    let mut line = Line::open(CONNECT_V5);
    let events = line.feed(&[0x30, 6, 0, 1, b't', 2, 0x0b, 1]);
    assert_eq!(events, ["Malformed(PropertyPlace(11))"]);
}

/// MQTT-2.2.1-6, MQTT-2.2.2-1, MQTT-3.8.4-1, MQTT-3.8.4-2, MQTT-3.10.4-5.
#[test]
fn subscriptions_are_the_callers_to_answer() {
    let mut line = Line::open(CONNECT_V5);
    let mut input = Input::new(b"\x82\x0a\x00\x01\x00\x00\x01a\x01\x00\x00\x00");
    let event = line.server.poll(NOW, &mut input, &mut line.out);
    assert!(
        matches!(event, Some(ServerEvent::Malformed(_))),
        "an empty filter: {event:?}"
    );
    let mut line = Line::open(CONNECT_V5);
    let mut input = Input::new(b"\x82\x0b\x00\x01\x00\x00\x01a\x01\x00\x01b\x02");
    let Some(ServerEvent::Subscribe(subscribe)) = line.server.poll(NOW, &mut input, &mut line.out)
    else {
        unreachable!("a SUBSCRIBE came");
    };
    let filters: Vec<_> = subscribe
        .filters
        .iter()
        .map(|f| (f.filter, f.qos))
        .collect();
    assert_eq!(filters, [("a", Qos::AtLeastOnce), ("b", Qos::ExactlyOnce)]);
    line.server
        .suback(subscribe.packet_id, &[1, 0x80], &mut line.out)
        .unwrap();
    assert_eq!(line.written(), [0x90, 5, 0, 1, 0, 1, 0x80]);
    let events = line.feed(b"\xa2\x06\x00\x02\x00\x00\x01a");
    assert!(events[0].contains("filters: [\"a\"]"), "{events:?}");
    line.server.unsuback(2, &[0], &mut line.out).unwrap();
    assert_eq!(line.written(), [0xb0, 4, 0, 2, 0, 0]);
    let mut line = Line::open(CONNECT_V311);
    line.server.unsuback(2, &[0], &mut line.out).unwrap();
    assert_eq!(line.written(), [0xb0, 2, 0, 2]);
}

/// MQTT-3.1.2-24, MQTT-3.3.4-9, MQTT-4.9.0-1, MQTT-4.9.0-2.
#[test]
fn deliveries_keep_to_what_the_client_takes() {
    // Receive maximum 1, maximum packet size 16, topic alias maximum 1.
    let connect = b"\x10\x19\x00\x04MQTT\x05\x00\x00\x0a\x0b\x21\x00\x01\x27\x00\x00\x00\x10\
        \x22\x00\x01\x00\x01c";
    let mut line = Line::open(connect);
    assert_eq!(line.deliver(1, Qos::AtLeastOnce), Ok(()));
    assert_eq!(line.deliver(2, Qos::ExactlyOnce), Err(Refused::Window));
    line.written();
    assert_eq!(
        line.feed(&[0x40, 2, 0, 1]),
        ["Acked { token: Token(1), reason: 0 }"]
    );
    assert_eq!(line.deliver(2, Qos::ExactlyOnce), Ok(()));
    assert_eq!(
        line.feed(&[0x50, 2, 0, 2]),
        ["Acked { token: Token(2), reason: 0 }"]
    );
    assert_eq!(
        line.feed(&[0x70, 2, 0, 2]),
        ["Completed { token: Token(2) }"]
    );
    assert_eq!(line.server.window_free(), 1);
    let large = Publish::new("t", b"1234567890a");
    let refused = line.server.deliver(Token(3), &large, &mut line.out);
    assert_eq!(
        refused,
        Err(Refused::TooLarge {
            size: 17,
            maximum: 16
        })
    );
    line.written();
    let short = Publish {
        alias_slot: Some(0),
        ..Publish::new("t", b"")
    };
    line.server
        .deliver(Token(4), &short, &mut line.out)
        .unwrap();
    line.server
        .deliver(Token(4), &short, &mut line.out)
        .unwrap();
    assert_eq!(
        line.written(),
        b"\x30\x07\x00\x01t\x03\x23\x00\x01\x30\x06\x00\x00\x03\x23\x00\x01"
    );
}

/// MQTT-4.3.3-5, MQTT-4.4.0-1.
#[test]
fn a_session_moves_to_the_next_connection() {
    let mut line = Line::open(CONNECT_V311);
    (1..=3).for_each(|token| line.deliver(token, Qos::ExactlyOnce).unwrap());
    line.feed(&[0x50, 2, 0, 1]);
    line.server.forget(Token(3));
    let mut line = line.resumed(CONNECT_V311);
    assert_eq!(line.feed(&[]), ["Resend { token: Token(2) }"]);
    assert_eq!(line.written(), [0x62, 2, 0, 1, 0x62, 2, 0, 3]);
    let publish = Publish {
        qos: Qos::ExactlyOnce,
        ..Publish::new("t", b"x")
    };
    line.server
        .redeliver(Token(2), &publish, &mut line.out)
        .unwrap();
    assert_eq!(line.written(), b"\x3c\x06\x00\x01t\x00\x02x");
    assert_eq!(line.server.counts().retransmitted, 1);
    assert_eq!(line.server.take_session().in_flight(), 3);
}

/// MQTT-3.14.4-3.
#[test]
fn a_disconnect_says_whether_the_will_is_due() {
    let mut line = Line::open(CONNECT_V5);
    let normal = "Disconnect { reason: 0, with_will: false, session_expiry: None }";
    assert_eq!(line.feed(&[0xe0, 0]), [normal]);
    let mut line = Line::open(CONNECT_V5);
    let with_will = "Disconnect { reason: 4, with_will: true, session_expiry: None }";
    assert_eq!(line.feed(&[0xe0, 1, 4]), [with_will]);
    let mut line = Line::open(CONNECT_V5);
    let prolonged = [0xe0, 7, 0, 5, 0x11, 0, 0, 0, 9];
    assert_eq!(line.feed(&prolonged), ["Malformed(PropertyValue(17))"]);
    let connect =
        b"\x10\x13\x00\x04MQTT\x05\x00\x00\x0a\x05\x11\x00\x00\x00\x01\x00\x01c".as_slice();
    let mut line = Line::open(connect);
    let allowed = "Disconnect { reason: 0, with_will: false, session_expiry: Some(9) }";
    assert_eq!(line.feed(&prolonged), [allowed]);
}

/// MQTT-3.1.2-22, MQTT-3.2.2-22.
#[test]
fn silence_ends_the_connection_after_one_and_a_half_keep_alives() {
    let mut line = Line::open(CONNECT_V5);
    let end = NOW + Micros::from_secs(15);
    assert_eq!(line.server.deadline(), Some(end));
    assert_eq!(line.server.timer(Micros(end.0 - 1), &mut line.out), None);
    assert_eq!(
        line.server.timer(end, &mut line.out),
        Some(ServerEvent::KeepAliveExpired)
    );
    assert_eq!(line.written(), [0xe0, 1, reason::KEEP_ALIVE_TIMEOUT]);
    assert_eq!(line.deliver(1, Qos::AtMostOnce), Err(Refused::NotConnected));
}

/// MQTT-3.14.2-2.
#[test]
fn the_server_can_end_the_connection() {
    let mut line = Line::open(CONNECT_V5);
    line.server
        .disconnect(reason::SESSION_TAKEN_OVER, &mut line.out);
    assert_eq!(line.written(), [0xe0, 1, 0x8e]);
    let mut line = Line::open(CONNECT_V311);
    line.server
        .disconnect(reason::SESSION_TAKEN_OVER, &mut line.out);
    assert_eq!(line.written(), [0; 0], "MQTT 3.1.1 closes without a word");
    line.server.ack(
        Pending {
            packet_id: 7,
            qos: Qos::AtLeastOnce,
        },
        0,
        &mut line.out,
    );
    assert_eq!(line.written(), [0; 0]);
}

#[test]
fn a_session_without_clean_flag_has_no_end_in_mqtt_311() {
    let mut line = Line::new(&ServerLimits::default());
    let event = line
        .server
        .poll(NOW, &mut Input::new(CONNECT_V311), &mut line.out);
    let Some(ServerEvent::Connect(connect)) = event else {
        unreachable!("a CONNECT came");
    };
    assert_eq!(connect.session_expiry(), u32::MAX);
}
