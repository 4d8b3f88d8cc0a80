//! CONNECT and CONNACK (sections 3.1 and 3.2).

use muster_protocol::mqtt::packet::{Packet, Will};
use muster_protocol::mqtt::{
    Accept, Connect, Input, Pending, Properties, Property, Publish, Qos, Refused, ServerLimits,
    Subscribe, Token, Version, reason,
};

use crate::client_line::Line as Client;
use crate::server_line::{CONNECT_V5, Line as Server, NAME, NOW, connect};

/// A will with topic "w" and no payload, behind the client id.
const WILL: &[u8] = b"\x00\x01c\x00\x00\x01w\x00\x00";
const WILL_FLAG: u8 = 0x04;

/// MQTT-3.1.0-1.
#[test]
fn nothing_goes_before_the_connect() {
    let limits = muster_protocol::mqtt::ClientLimits::default();
    let mut client = muster_protocol::mqtt::Client::new(Version::V5, &limits);
    let mut out = Vec::new();
    let publish = client.publish(NOW, Token(1), &Publish::new("t", b"x"), &mut out);
    assert_eq!(publish, Err(Refused::NotConnected));
    let filters = [muster_protocol::mqtt::Filter::new("t", Qos::AtMostOnce)];
    let subscribe = Subscribe {
        id: 1,
        filters: &filters,
        subscription_id: None,
        user_properties: &[],
    };
    let subscribed = client.subscribe(NOW, &subscribe, &mut out);
    assert_eq!(subscribed, Err(Refused::NotConnected));
    client.ping(NOW, &mut out);
    client.disconnect(reason::SUCCESS, &mut out);
    assert_eq!(client.timer(NOW, &mut out), None);
    assert_eq!(out, [0; 0]);
    client.connect(NOW, &Connect::new("c"), &mut out).unwrap();
    assert_eq!(out[0], 0x10);
}

/// MQTT-3.1.2-4.
#[test]
fn a_clean_start_takes_nothing_of_an_earlier_session_with_it() {
    let mut line = Client::open(Version::V5, &[]);
    line.publish(1, Qos::AtLeastOnce).unwrap();
    let message = b"\x34\x07\x00\x01t\x00\x07\x00x";
    assert_eq!(line.feed(message).len(), 1);
    line.client.closed();
    line.client
        .connect(NOW, &Connect::new("c"), &mut line.out)
        .unwrap();
    let events = line.connack(Version::V5, false, &[]);
    assert!(events.starts_with("Connected") && !events.contains("Resend"));
    assert_eq!(line.feed(message).len(), 1, "the packet id is a new one");
}

/// MQTT-3.1.2-1, MQTT-3.1.2-2.
#[test]
fn a_name_or_level_that_is_not_mqtt_ends_the_connection() {
    let mut names: Vec<Vec<u8>> = vec![b"\x10\x0e\x00\x04MQTS\x05\x00\x00\x0a\x00\x00\x01c".into()];
    for level in [0, 3, 6, 0x85] {
        let mut bytes = CONNECT_V5.to_vec();
        bytes[8] = level;
        names.push(bytes);
    }
    for bytes in names {
        let mut line = Server::new(&ServerLimits::default());
        assert_eq!(line.feed(&bytes), ["Malformed(ProtocolVersion)"]);
        assert_eq!(line.feed(CONNECT_V5), [""; 0], "it is over");
    }
}

/// MQTT-3.1.2-3.
#[test]
fn the_reserved_flag_of_a_connect_is_zero() {
    let mut line = Server::new(&ServerLimits::default());
    assert_eq!(line.feed(&connect(1, &[], NAME)), ["Malformed(Flags)"]);
}

/// MQTT-3.1.2-11, MQTT-3.1.2-13.
#[test]
fn will_flags_stand_only_beside_a_will() {
    for stray in [0x08, 0x10, 0x18, 0x20, 0x38] {
        let mut line = Server::new(&ServerLimits::default());
        assert_eq!(line.feed(&connect(stray, &[], NAME)), ["Malformed(Flags)"]);
    }
}

/// MQTT-3.1.2-12.
#[test]
fn a_will_has_one_of_three_qualities_of_service() {
    for (bits, name) in [(0, "AtMostOnce"), (1, "AtLeastOnce"), (2, "ExactlyOnce")] {
        let mut line = Server::new(&ServerLimits::default());
        let told = line.feed(&connect(WILL_FLAG | (bits << 3), &[], WILL));
        assert!(told[0].contains(&format!("qos: {name}")), "{told:?}");
    }
    let mut line = Server::new(&ServerLimits::default());
    let told = line.feed(&connect(WILL_FLAG | (3 << 3), &[], WILL));
    assert_eq!(told, ["Malformed(Qos)"]);
}

/// MQTT-3.1.2-9, MQTT-3.1.2-16, MQTT-3.1.2-17, MQTT-3.1.2-18, MQTT-3.1.2-19, MQTT-3.1.3-1,
/// MQTT-3.1.3-3, MQTT-3.1.4-1.
#[test]
fn the_flags_of_a_connect_say_which_fields_follow_and_in_which_order() {
    let fields: [(u8, &[u8]); 3] = [
        (WILL_FLAG, b"\x00\x00\x01w\x00\x01p"),
        (0x80, b"\x00\x01u"),
        (0x40, b"\x00\x01s"),
    ];
    for chosen in 0..8 {
        let is_chosen = |at: &usize| chosen & (1 << at) != 0;
        let mut flags = 0;
        let mut payload = NAME.to_vec();
        for at in (0..3).filter(is_chosen) {
            flags |= fields[at].0;
            payload.extend_from_slice(fields[at].1);
        }
        let told = Server::new(&ServerLimits::default()).feed(&connect(flags, &[], &payload));
        let texts = ["topic: \"w\"", "user: Some(\"u\")", "password: Some([115])"];
        assert!(told[0].contains("client_id: \"c\""), "{told:?}");
        for (at, text) in texts.iter().enumerate() {
            assert_eq!(told[0].contains(text), is_chosen(&at), "{told:?}");
        }
        for (flag, _) in fields {
            let wrong = connect(flags ^ flag, &[], &payload);
            let told = Server::new(&ServerLimits::default()).feed(&wrong);
            assert!(told[0].starts_with("Malformed"), "{flag:#x}: {told:?}");
        }
    }
    let told = Server::new(&ServerLimits::default()).feed(&connect(0, &[], &[]));
    assert_eq!(
        told,
        ["Malformed(Truncated)"],
        "there is always a client id"
    );
}

/// MQTT-3.2.0-1, MQTT-3.14.0-1.
#[test]
fn nothing_but_a_refusal_is_said_before_connack() {
    for connect in [&[][..], CONNECT_V5] {
        let mut line = Server::new(&ServerLimits::default());
        line.feed(connect);
        let pending = Pending {
            packet_id: 1,
            qos: Qos::AtLeastOnce,
        };
        assert_eq!(line.deliver(1, Qos::AtMostOnce), Err(Refused::NotConnected));
        let suback = line.server.suback(1, &[0], &mut line.out);
        assert_eq!(suback, Err(Refused::NotConnected));
        line.server.ack(pending, 0, &mut line.out);
        line.server
            .disconnect(reason::SERVER_SHUTTING_DOWN, &mut line.out);
        assert_eq!(line.written(), [0; 0]);
    }
}

/// MQTT-3.2.0-2.
#[test]
fn there_is_one_connack_and_no_more() {
    let mut line = Server::open(CONNECT_V5);
    let again = line.server.accept(NOW, &Accept::default(), &mut line.out);
    assert_eq!(again, Err(Refused::NotConnected));
    line.server.refuse(reason::BANNED, &mut line.out);
    assert_eq!(line.written(), [0; 0]);
    let mut client = Client::open(Version::V5, &[]);
    let second = client.feed(&[0x20, 3, 0, 0, 0]);
    assert_eq!(second, ["Malformed(Unexpected(2))"]);
}

/// A server of MQTT 3.1.1 knows no reason codes and no properties (section 3.2.2.3 there).
#[test]
fn a_server_that_is_older_refuses_by_the_version() {
    let mut client = Client::new(Version::V5, &Connect::new("c"));
    let refused = client.feed(&[0x20, 2, 0, 1]).join(" ");
    let code = reason::UNSUPPORTED_PROTOCOL_VERSION;
    assert_eq!(
        refused,
        format!("Refused {{ reason: Mqtt({code}), properties: [] }}")
    );
    let mut client = Client::new(Version::V5, &Connect::new("c"));
    let malformed = client.feed(&[0x20, 2, 0, 0]).join(" ");
    assert!(malformed.starts_with("Malformed"), "{malformed}");
}

/// MQTT-3.1.3-8, MQTT-3.1.4-6, MQTT-3.2.2-6.
#[test]
fn a_refusal_has_no_session_and_ends_the_connection() {
    let state = Server::open(CONNECT_V5).server.take_session();
    let mut line = Server::asked(CONNECT_V5);
    line.server.resume(state);
    line.server
        .refuse(reason::CLIENT_ID_NOT_VALID, &mut line.out);
    assert_eq!(line.written(), [0x20, 3, 0, reason::CLIENT_ID_NOT_VALID, 0]);
    assert_eq!(line.feed(&[0xc0, 0]), [""; 0], "nothing more is taken");
    let accept = line.server.accept(NOW, &Accept::default(), &mut line.out);
    assert_eq!(accept, Err(Refused::NotConnected));
}

/// MQTT-3.1.2-24.
#[test]
fn a_client_is_sent_no_packet_larger_than_it_takes() {
    // A maximum packet size of six bytes, and the method "m".
    let limited = connect(0, b"\x27\x00\x00\x00\x06\x15\x00\x01m", NAME);
    let mut line = Server::asked(&limited);
    let challenge = line.server.challenge(b"data", &mut line.out);
    let too_large = |size| Err(Refused::TooLarge { size, maximum: 6 });
    assert_eq!(challenge, too_large(15));
    let accept = Accept {
        server_keep_alive: Some(5),
        ..Accept::default()
    };
    // With the method of the CONNECT and the keep-alive.
    let accepted = line.server.accept(NOW, &accept, &mut line.out);
    assert_eq!(accepted, too_large(12));
    assert_eq!(line.written(), [0; 0]);
    line.server.refuse(reason::PACKET_TOO_LARGE, &mut line.out);
    assert_eq!(line.written(), [0x20, 3, 0, reason::PACKET_TOO_LARGE, 0]);
    let mut line = Server::asked(&connect(0, b"\x27\x00\x00\x00\x06", NAME));
    line.server
        .accept(NOW, &Accept::default(), &mut line.out)
        .unwrap();
    assert_eq!(line.written(), [0x20, 3, 0, 0, 0]);
    let suback = line.server.suback(1, &[0, 0], &mut line.out);
    assert_eq!(suback, too_large(7));
    let unsuback = line.server.unsuback(1, &[0, 0], &mut line.out);
    assert_eq!(unsuback, too_large(7));
    assert_eq!(line.written(), [0; 0]);
    assert_eq!(line.server.suback(1, &[0], &mut line.out), Ok(()));
    let mut line = Server::asked(&connect(0, b"\x27\x00\x00\x00\x04", NAME));
    line.server.refuse(reason::BANNED, &mut line.out);
    assert_eq!(line.written(), [0; 0], "not even a refusal fits");
}

/// MQTT-3.2.2-20.
#[test]
fn user_properties_of_a_connack_are_left_out_where_they_do_not_fit() {
    let accept = Accept {
        user_properties: &[("k", "v")],
        ..Accept::default()
    };
    for (maximum, connack) in [
        (11, &[0x20, 3, 0, 0, 0][..]),
        (12, b"\x20\x0a\x00\x00\x07\x26\x00\x01k\x00\x01v"),
    ] {
        let mut line = Server::asked(&connect(0, &[0x27, 0, 0, 0, maximum], NAME));
        line.server.accept(NOW, &accept, &mut line.out).unwrap();
        assert_eq!(line.written(), connack, "{maximum}");
    }
}

/// MQTT-3.1.2-28.
#[test]
fn response_information_is_never_given() {
    for asked in [&[][..], &[0x19, 0], &[0x19, 1]] {
        let mut line = Server::asked(&connect(0, asked, NAME));
        line.server
            .accept(NOW, &Accept::default(), &mut line.out)
            .unwrap();
        let Ok(Some(Packet::Connack(connack))) =
            Packet::decode(Version::V5, &mut Input::new(&line.out), 1_000)
        else {
            unreachable!("a CONNACK was written");
        };
        let is_it = |property: Property<'_>| matches!(property, Property::ResponseInformation(_));
        assert!(!connack.properties.iter().any(is_it));
    }
}

/// MQTT-3.1.2-29.
#[test]
fn answers_bring_neither_reason_string_nor_user_property() {
    // Request problem information 0.
    let mut line = Server::open(&connect(0, &[0x17, 0], NAME));
    for (qos, packet) in [
        (Qos::AtLeastOnce, b"\x32\x06\x00\x01t\x00\x07\x00"),
        (Qos::ExactlyOnce, b"\x34\x06\x00\x01t\x00\x08\x00"),
    ] {
        line.feed(packet);
        let pending = Pending {
            packet_id: u16::from(packet[6]),
            qos,
        };
        line.server
            .ack(pending, reason::QUOTA_EXCEEDED, &mut line.out);
    }
    line.feed(&[0x62, 2, 0, 9, 0x50, 2, 0, 9]);
    line.server.suback(3, &[0x87], &mut line.out).unwrap();
    line.server.unsuback(4, &[0x87], &mut line.out).unwrap();
    let out = line.written();
    let mut input = Input::new(&out);
    let mut count = 0;
    while let Some(packet) = Packet::decode(Version::V5, &mut input, 1_000).unwrap() {
        if let Packet::Suback(suback) | Packet::Unsuback(suback) = packet {
            assert!(suback.properties.is_empty());
            count += 1;
        }
        if let Packet::Puback(ack)
        | Packet::Pubrec(ack)
        | Packet::Pubrel(ack)
        | Packet::Pubcomp(ack) = packet
        {
            assert!(ack.properties.is_empty());
            count += 1;
        }
    }
    assert_eq!(count, 6);
}

/// MQTT-3.2.2-10.
#[test]
fn a_server_without_a_quality_of_service_takes_subscriptions_to_it() {
    let mut line = Server::asked(CONNECT_V5);
    let accept = Accept {
        maximum_qos: Qos::AtMostOnce,
        ..Accept::default()
    };
    line.server.accept(NOW, &accept, &mut line.out).unwrap();
    assert_eq!(line.written(), [0x20, 5, 0, 0, 2, 0x24, 0]);
    for qos in 0..3 {
        let events = line.feed(&[0x82, 7, 0, 1, 0, 0, 1, b't', qos]);
        assert!(events[0].starts_with("Subscribe("), "{events:?}");
    }
    let events = line.feed(b"\x32\x06\x00\x01t\x00\x07\x00");
    assert_eq!(events, ["Malformed(QosNotServed)"]);
}

/// MQTT-3.2.2-12, MQTT-3.2.2-13.
#[test]
fn a_will_beyond_what_is_served_is_not_accepted() {
    let without_qos_2 = Accept {
        maximum_qos: Qos::AtLeastOnce,
        ..Accept::default()
    };
    let without_retain = Accept {
        retain_available: false,
        ..Accept::default()
    };
    for (flags, accept, refused) in [
        (0x10, &without_qos_2, Refused::QosUnavailable),
        (0x20, &without_retain, Refused::RetainUnavailable),
    ] {
        let mut line = Server::asked(&connect(WILL_FLAG | flags, &[], WILL));
        let accepted = line.server.accept(NOW, accept, &mut line.out);
        assert_eq!(accepted, Err(refused));
        line.server.refuse(reason::QOS_NOT_SUPPORTED, &mut line.out);
        assert_eq!(line.written(), [0x20, 3, 0, reason::QOS_NOT_SUPPORTED, 0]);
        let mut line = Server::asked(&connect(WILL_FLAG | 0x08, &[], WILL));
        assert_eq!(line.server.accept(NOW, accept, &mut line.out), Ok(()));
    }
}

/// MQTT-3.1.2-1, MQTT-3.1.2-17, MQTT-3.1.2-19, MQTT-3.1.3-1.
#[test]
fn a_client_of_ours_writes_its_fields_as_a_server_reads_them() {
    let connect = Connect {
        will: Some(Will {
            topic: "w",
            payload: b"gone",
            qos: Qos::ExactlyOnce,
            retain: true,
            properties: Properties::NONE,
        }),
        user: Some("u"),
        password: Some(b"s"),
        ..Connect::new("c")
    };
    let mut client = muster_protocol::mqtt::Client::new(
        Version::V5,
        &muster_protocol::mqtt::ClientLimits::default(),
    );
    let mut out = Vec::new();
    client.connect(NOW, &connect, &mut out).unwrap();
    let bytes = b"\x10\x1e\x00\x04MQTT\x05\xf6\x00\x3c\x00\x00\x01c\x00\x00\x01w\x00\x04gone\
        \x00\x01u\x00\x01s";
    assert_eq!(out, bytes);
    let told = Server::new(&ServerLimits::default()).feed(&out);
    assert!(told[0].contains("retain: true"), "{told:?}");
}
