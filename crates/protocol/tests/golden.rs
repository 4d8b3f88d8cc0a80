//! Wire bytes taken from the standards' own examples, and one of every packet by hand.

use muster_protocol::mqtt::packet::{
    Acknowledge, Auth, Connack, Connect, Disconnect, Filter, Filters, Packet, Publish,
    RetainHandling, Suback, Subscribe, Texts, Unsubscribe, Will,
};
use muster_protocol::mqtt::{Input, Malformed, Properties, Property, Qos, Version};

/// The packet reads from the bytes, and the bytes are written from the packet.
fn check(version: Version, bytes: &[u8], packet: &Packet<'_>) {
    let mut input = Input::new(bytes);
    let read = Packet::decode(version, &mut input, u32::MAX);
    assert_eq!(read.as_ref(), Ok(&Some(packet.clone())));
    assert_eq!(input.consumed(), bytes.len());
    let mut out = Vec::new();
    assert_eq!(packet.encode(version, &mut out), Ok(()));
    assert_eq!(out, bytes, "{packet:?}");
}

fn refused(version: Version, bytes: &[u8], malformed: Malformed) {
    let read = Packet::decode(version, &mut Input::new(bytes), 1_000);
    assert_eq!(read, Err(malformed), "{bytes:02x?}");
}

fn both(bytes: &[u8], packet: &Packet<'_>) {
    check(Version::V311, bytes, packet);
    check(Version::V5, bytes, packet);
}

fn ack(packet_id: u16, reason: u8) -> Acknowledge<'static> {
    Acknowledge::new(packet_id, reason)
}

const WILL: Will<'static> = Will {
    topic: "w",
    payload: b"gone",
    qos: Qos::AtLeastOnce,
    retain: false,
    properties: Properties::NONE,
};

#[test]
fn connect_is_that_of_mqtt_311_figure_3_6() {
    // Variable header of MQTT 3.1.1 section 3.1.2 with flags 0xce and a keep-alive of ten.
    let bytes =
        b"\x10\x1f\x00\x04MQTT\x04\xce\x00\x0a\x00\x02id\x00\x01w\x00\x04gone\x00\x02me\x00\x02pw";
    let connect = Connect {
        version: Version::V311,
        client_id: "id",
        clean_start: true,
        keep_alive: 10,
        will: Some(WILL),
        user: Some("me"),
        password: Some(b"pw"),
        properties: Properties::NONE,
    };
    check(Version::V311, bytes, &Packet::Connect(connect));
}

#[test]
fn connect_is_that_of_mqtt_5_figure_3_6() {
    // Variable header of section 3.1.2.12: the same, with a session expiry of ten.
    let bytes = b"\x10\x2b\x00\x04MQTT\x05\xce\x00\x0a\x05\x11\x00\x00\x00\x0a\x00\x02id\
        \x05\x18\x00\x00\x00\x07\x00\x01w\x00\x04gone\x00\x02me\x00\x02pw";
    let connect = Connect {
        version: Version::V5,
        client_id: "id",
        clean_start: true,
        keep_alive: 10,
        will: Some(Will {
            properties: Properties::new(&[Property::WillDelay(7)]),
            ..WILL
        }),
        user: Some("me"),
        password: Some(b"pw"),
        properties: Properties::new(&[Property::SessionExpiry(10)]),
    };
    check(Version::V5, bytes, &Packet::Connect(connect));
    assert_eq!(connect.session_expiry(), 10);
}

/// MQTT-3.2.2-1.
#[test]
fn connack_says_what_the_server_takes() {
    let refused = Connack {
        session_present: false,
        code: 5,
        properties: Properties::NONE,
    };
    check(Version::V311, &[0x20, 2, 0, 5], &Packet::Connack(refused));
    let properties = [
        Property::ReceiveMaximum(20),
        Property::TopicAliasMaximum(5),
        Property::MaximumQos(Qos::AtLeastOnce),
        Property::RetainAvailable(false),
        Property::MaximumPacketSize(0x0102_0304),
        Property::AssignedClientId("x"),
        Property::ServerKeepAlive(9),
    ];
    let connack = Connack {
        session_present: true,
        code: 0,
        properties: Properties::new(&properties),
    };
    let bytes = [
        0x20, 25, 1, 0, 22, 0x21, 0, 20, 0x22, 0, 5, 0x24, 1, 0x25, 0, 0x27, 1, 2, 3, 4, 0x12, 0,
        1, b'x', 0x13, 0, 9,
    ];
    check(Version::V5, &bytes, &Packet::Connack(connack));
    assert_eq!(connack.server_keep_alive(), Some(9));
}

/// MQTT-2.2.1-2, MQTT-3.3.2-1.
#[test]
fn publish_is_that_of_figure_3_10() {
    // Topic "a/b", packet id 10, no properties (section 3.3.2.4).
    let publish = Publish {
        dup: false,
        qos: Qos::AtLeastOnce,
        retain: false,
        topic: "a/b",
        packet_id: Some(10),
        properties: Properties::NONE,
        payload: b"hi",
    };
    check(
        Version::V311,
        b"\x32\x09\x00\x03a/b\x00\x0ahi",
        &Packet::Publish(publish),
    );
    check(
        Version::V5,
        b"\x32\x0a\x00\x03a/b\x00\x0a\x00hi",
        &Packet::Publish(publish),
    );
    let again = Publish {
        dup: true,
        retain: true,
        qos: Qos::ExactlyOnce,
        ..publish
    };
    check(
        Version::V311,
        b"\x3d\x09\x00\x03a/b\x00\x0ahi",
        &Packet::Publish(again),
    );
    let once = Publish {
        qos: Qos::AtMostOnce,
        packet_id: None,
        ..publish
    };
    check(
        Version::V311,
        b"\x30\x07\x00\x03a/bhi",
        &Packet::Publish(once),
    );
}

#[test]
fn publish_carries_its_properties() {
    let properties = [
        Property::PayloadFormat(true),
        Property::MessageExpiry(60),
        Property::TopicAlias(3),
        Property::CorrelationData(&[7]),
        Property::SubscriptionId(200),
        Property::SubscriptionId(1),
        Property::User("k", "v"),
        Property::User("k", "v"),
    ];
    let publish = Publish {
        dup: false,
        qos: Qos::AtMostOnce,
        retain: false,
        topic: "",
        packet_id: None,
        properties: Properties::new(&properties),
        payload: b"",
    };
    let bytes = [
        0x30, 36, 0, 0, 33, 1, 1, 2, 0, 0, 0, 60, 0x23, 0, 3, 9, 0, 1, 7, 11, 0xc8, 1, 11, 1, 38,
        0, 1, b'k', 0, 1, b'v', 38, 0, 1, b'k', 0, 1, b'v',
    ];
    check(Version::V5, &bytes, &Packet::Publish(publish));
    assert_eq!(
        publish.properties.subscription_ids().collect::<Vec<_>>(),
        [200, 1]
    );
    assert_eq!(
        publish.properties.user().collect::<Vec<_>>(),
        [("k", "v"); 2]
    );
}

#[test]
fn acknowledgements_leave_out_what_is_success() {
    both(&[0x40, 2, 0x12, 0x34], &Packet::Puback(ack(0x1234, 0)));
    both(&[0x50, 2, 0, 1], &Packet::Pubrec(ack(1, 0)));
    both(&[0x62, 2, 0, 1], &Packet::Pubrel(ack(1, 0)));
    both(&[0x70, 2, 0, 1], &Packet::Pubcomp(ack(1, 0)));
    check(
        Version::V5,
        &[0x40, 3, 0, 1, 0x10],
        &Packet::Puback(ack(1, 0x10)),
    );
    check(
        Version::V5,
        &[0x62, 3, 0, 1, 0x92],
        &Packet::Pubrel(ack(1, 0x92)),
    );
    let properties = Properties::new(&[Property::ReasonString("no")]);
    let told = Acknowledge {
        properties,
        ..ack(1, 0x97)
    };
    check(
        Version::V5,
        b"\x50\x09\x00\x01\x97\x05\x1f\x00\x02no",
        &Packet::Pubrec(told),
    );
}

#[test]
fn subscribe_is_that_of_figure_3_20() {
    // "a/b" at QoS 1, "c/d" at QoS 2, packet id 10 (section 3.8.3.2).
    let filters = [
        Filter::new("a/b", Qos::AtLeastOnce),
        Filter::new("c/d", Qos::ExactlyOnce),
    ];
    let subscribe = Subscribe {
        packet_id: 10,
        properties: Properties::NONE,
        filters: Filters::new(&filters),
    };
    let v311 = b"\x82\x0e\x00\x0a\x00\x03a/b\x01\x00\x03c/d\x02";
    check(Version::V311, v311, &Packet::Subscribe(subscribe));
    let v5 = b"\x82\x0f\x00\x0a\x00\x00\x03a/b\x01\x00\x03c/d\x02";
    check(Version::V5, v5, &Packet::Subscribe(subscribe));
}

#[test]
fn subscription_options_have_their_bits() {
    let filters = [Filter {
        filter: "#",
        qos: Qos::AtLeastOnce,
        no_local: true,
        retain_as_published: true,
        retain_handling: RetainHandling::Keep,
    }];
    let subscribe = Subscribe {
        packet_id: 1,
        properties: Properties::new(&[Property::SubscriptionId(5)]),
        filters: Filters::new(&filters),
    };
    let bytes = [0x82, 9, 0, 1, 2, 11, 5, 0, 1, b'#', 0x2d];
    check(Version::V5, &bytes, &Packet::Subscribe(subscribe));
    assert_eq!(subscribe.subscription_id(), Some(5));
}

#[test]
fn suback_and_unsuback_bring_a_code_for_each_filter() {
    // The payload of figure 3.26 of MQTT 3.1.1: QoS 0, QoS 2, failure.
    let codes = &[0, 2, 0x80];
    let suback = Suback {
        packet_id: 10,
        properties: Properties::NONE,
        codes,
    };
    check(
        Version::V311,
        &[0x90, 5, 0, 10, 0, 2, 0x80],
        &Packet::Suback(suback),
    );
    check(
        Version::V5,
        &[0x90, 6, 0, 10, 0, 0, 2, 0x80],
        &Packet::Suback(suback),
    );
    let codes = &[0, 0x11];
    let unsuback = Suback {
        packet_id: 10,
        properties: Properties::NONE,
        codes,
    };
    check(
        Version::V5,
        &[0xb0, 5, 0, 10, 0, 0, 0x11],
        &Packet::Unsuback(unsuback),
    );
    let silent = Suback {
        codes: &[],
        ..unsuback
    };
    check(Version::V311, &[0xb0, 2, 0, 10], &Packet::Unsuback(silent));
}

#[test]
fn unsubscribe_is_that_of_figure_3_28() {
    // "a/b" and "c/d" (section 3.10.3).
    let filters = Texts::new(&["a/b", "c/d"]);
    let unsubscribe = Unsubscribe {
        packet_id: 10,
        properties: Properties::NONE,
        filters,
    };
    let v311 = b"\xa2\x0c\x00\x0a\x00\x03a/b\x00\x03c/d";
    check(Version::V311, v311, &Packet::Unsubscribe(unsubscribe));
    let v5 = b"\xa2\x0d\x00\x0a\x00\x00\x03a/b\x00\x03c/d";
    check(Version::V5, v5, &Packet::Unsubscribe(unsubscribe));
}

#[test]
fn pings_are_two_bytes() {
    both(&[0xc0, 0], &Packet::Pingreq);
    both(&[0xd0, 0], &Packet::Pingresp);
}

#[test]
fn disconnect_and_auth_leave_out_what_is_success() {
    let normal = Disconnect {
        reason: 0,
        properties: Properties::NONE,
    };
    both(&[0xe0, 0], &Packet::Disconnect(normal));
    let busy = Disconnect {
        reason: 0x89,
        properties: Properties::NONE,
    };
    check(Version::V5, &[0xe0, 1, 0x89], &Packet::Disconnect(busy));
    let properties = Properties::new(&[Property::ServerReference("b")]);
    let moved = Disconnect {
        reason: 0x9d,
        properties,
    };
    check(
        Version::V5,
        &[0xe0, 6, 0x9d, 4, 0x1c, 0, 1, b'b'],
        &Packet::Disconnect(moved),
    );
    check(
        Version::V5,
        &[0xf0, 0],
        &Packet::Auth(Auth {
            reason: 0,
            properties: Properties::NONE,
        }),
    );
    let properties = [
        Property::AuthenticationMethod("m"),
        Property::AuthenticationData(&[1, 2]),
    ];
    let auth = Auth {
        reason: 0x18,
        properties: Properties::new(&properties),
    };
    let bytes = [0xf0, 11, 0x18, 9, 0x15, 0, 1, b'm', 0x16, 0, 2, 1, 2];
    check(Version::V5, &bytes, &Packet::Auth(auth));
    assert_eq!((auth.method(), auth.data()), (Some("m"), Some(&[1, 2][..])));
}

/// Bytes that are no packet of MQTT 5, and why.
const NO_V5: &[(&[u8], Malformed)] = &[
    (&[0x00, 0], Malformed::PacketType(0)),
    (&[0x41, 2, 0, 1], Malformed::Flags),
    (&[0x60, 2, 0, 1], Malformed::Flags),
    (&[0x36, 5, 0, 1, b'a', 0, 1], Malformed::Qos),
    (&[0x38, 4, 0, 1, b'a', 0], Malformed::Flags),
    (&[0x32, 6, 0, 1, b'a', 0, 0, 0], Malformed::PacketId),
    (&[0x30, 4, 0, 1, b'+', 0], Malformed::TopicName),
    (&[0x30, 4, 0, 1, 0, 0], Malformed::Text),
    (&[0x30, 4, 0, 1, 0xff, 0], Malformed::Text),
    (&[0x30, 3, 0, 9, b'a'], Malformed::Truncated),
    (&[0x30, 5, 0, 0, 9, 0x23, 0], Malformed::Truncated),
    (&[0x30, 6, 0, 0, 3, 0x23, 0, 0], Malformed::TopicAlias(0)),
    (&[0x30, 5, 0, 0, 2, 1, 2], Malformed::PropertyValue(1)),
    (&[0x30, 7, 0, 0, 4, 1, 1, 1, 1], Malformed::PropertyTwice(1)),
    (
        &[0x30, 6, 0, 0, 3, 0x21, 0, 1],
        Malformed::PropertyPlace(0x21),
    ),
    (&[0x30, 5, 0, 0, 2, 0x7f, 0], Malformed::PropertyPlace(0x7f)),
    (&[0x30, 4, 0, 0, 0x80, 0], Malformed::Integer),
    (&[0x40, 1, 0], Malformed::Truncated),
    (&[0x40, 2, 0, 0], Malformed::PacketId),
    (&[0x40, 5, 0, 1, 0, 0, 0], Malformed::Trailing),
    (&[0x20, 3, 2, 0, 0], Malformed::Flags),
    (&[0x20, 3, 1, 0x87, 0], Malformed::SessionPresent),
    (
        &[0x20, 6, 0, 0, 3, 0x21, 0, 0],
        Malformed::PropertyValue(0x21),
    ),
    (&[0x20, 5, 0, 0, 2, 0x24, 2], Malformed::PropertyValue(0x24)),
    (&[0x82, 3, 0, 1, 0], Malformed::Subscription),
    (&[0x82, 7, 0, 1, 0, 0, 1, b'a', 3], Malformed::Qos),
    (&[0x82, 7, 0, 1, 0, 0, 1, b'a', 0x40], Malformed::Flags),
    (
        &[0x82, 7, 0, 1, 0, 0, 1, b'a', 0x30],
        Malformed::Subscription,
    ),
    (
        b"\x82\x0f\x00\x01\x00\x00\x09$share/g/\x05",
        Malformed::Subscription,
    ),
    (&[0xa2, 3, 0, 1, 0], Malformed::Subscription),
    (&[0x90, 3, 0, 1, 0], Malformed::Truncated),
    (&[0xc0, 1, 0], Malformed::Trailing),
    (
        b"\x10\x0d\x00\x04MQTT\x03\x00\x00\x00\x00\x00\x00",
        Malformed::ProtocolVersion,
    ),
    (
        b"\x10\x0d\x00\x04MQTS\x05\x00\x00\x00\x00\x00\x00",
        Malformed::ProtocolVersion,
    ),
    (
        b"\x10\x0d\x00\x04MQTT\x05\x01\x00\x00\x00\x00\x00",
        Malformed::Flags,
    ),
    (
        b"\x10\x0d\x00\x04MQTT\x05\x20\x00\x00\x00\x00\x00",
        Malformed::Flags,
    ),
    (
        b"\x10\x0e\x00\x04MQTT\x05\x00\x00\x00\x00\x00\x00!",
        Malformed::Trailing,
    ),
    (
        b"\x10\x11\x00\x04MQTT\x05\x00\x00\x00\x04\x16\x00\x01!\x00\x00",
        Malformed::PropertyPlace(22),
    ),
];

/// Bytes that are no packet of MQTT 3.1.1, and why.
const NO_V311: &[(&[u8], Malformed)] = &[
    (&[0xf0, 0], Malformed::PacketType(15)),
    (&[0x30, 2, 0, 0], Malformed::TopicName),
    (&[0x40, 3, 0, 1, 0], Malformed::Trailing),
    (&[0xe0, 1, 0], Malformed::Trailing),
    (&[0x82, 6, 0, 1, 0, 1, b'a', 4], Malformed::Subscription),
    (
        b"\x10\x0e\x00\x04MQTT\x04\x40\x00\x00\x00\x00\x00\x00",
        Malformed::Flags,
    ),
    (
        &[0x30, 0xe8, 0x07],
        Malformed::TooLarge {
            size: 1_003,
            maximum: 1_000,
        },
    ),
];

/// MQTT-3.2.2-1, MQTT-3.3.1-2, MQTT-3.3.1-4, MQTT-3.3.2-2, MQTT-3.3.2-8, MQTT-4.7.0-1.
#[test]
fn what_the_standard_forbids_is_refused() {
    for (bytes, malformed) in NO_V5 {
        refused(Version::V5, bytes, *malformed);
    }
    for (bytes, malformed) in NO_V311 {
        refused(Version::V311, bytes, *malformed);
    }
}
