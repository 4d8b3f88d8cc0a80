//! Representation of values, flags and properties in packets (sections 1.5 and 2).

use muster_protocol::mqtt::packet::{Packet, Publish};
use muster_protocol::mqtt::{Input, Property, Version, reason};

use crate::client_line::Line as Client;
use crate::server_line::{CONNECT_V5, Line as Server, connect};

/// Checks that a packet is taken as it stands, and is malformed once a `~` in it becomes an invalid
/// character.
fn assert_text(server: impl Fn() -> Server, packet: &[u8]) {
    let events = server().feed(packet);
    assert!(!events[0].starts_with("Malformed"), "{events:?}");
    let places = packet.iter().enumerate().filter(|(_, byte)| **byte == b'~');
    for (place, _) in places {
        for wrong in [0xff, 0] {
            let mut bytes = packet.to_vec();
            bytes[place] = wrong;
            let events = server().feed(&bytes);
            assert_eq!(events, ["Malformed(Text)"], "{wrong:#x} at {place}");
        }
    }
}

/// MQTT-1.5.4-1, MQTT-1.5.4-2, MQTT-3.1.3-4, MQTT-3.1.3-11, MQTT-3.1.3-12.
#[test]
fn client_id_will_topic_and_user_name_are_text() {
    let new = || Server::new(&muster_protocol::mqtt::ServerLimits::default());
    let payload = b"\x00\x01~\x00\x00\x01~\x00\x00\x00\x01~";
    assert_text(new, &connect(0x86, &[], payload));
}

/// MQTT-1.5.7-1, MQTT-3.3.2-1, MQTT-3.3.2-13, MQTT-3.3.2-19.
#[test]
fn topic_content_type_response_topic_and_user_properties_are_text() {
    let packet =
        b"\x30\x13\x00\x01~\x0f\x03\x00\x01~\x08\x00\x01~\x26\x00\x01~\x00\x01~".as_slice();
    assert_text(|| Server::open(CONNECT_V5), packet);
}

/// MQTT-3.8.3-1, MQTT-3.10.3-1.
#[test]
fn topic_filters_are_text() {
    assert_text(
        || Server::open(CONNECT_V5),
        b"\x82\x07\x00\x01\x00\x00\x01~\x00",
    );
    assert_text(
        || Server::open(CONNECT_V5),
        b"\xa2\x06\x00\x01\x00\x00\x01~",
    );
}

/// MQTT-1.5.4-3.
#[test]
fn the_byte_order_mark_is_a_character_like_any_other() {
    let packet = b"\x30\x07\x00\x04\xef\xbb\xbft\x00";
    let told = format!("topic: {:?}", "\u{feff}t");
    assert!(Server::open(CONNECT_V5).feed(packet)[0].contains(&told));
    assert!(Client::open(Version::V5, &[]).feed(packet)[0].contains(&told));
}

/// MQTT-2.1.3-1, MQTT-3.6.1-1, MQTT-3.8.1-1, MQTT-3.10.1-1, MQTT-3.14.1-1, MQTT-3.15.1-1.
#[test]
fn reserved_flags_are_as_listed_or_the_connection_ends() {
    for kind in (1..=15).filter(|kind| *kind != 3) {
        let listed = if matches!(kind, 6 | 8 | 10) {
            0b0010
        } else {
            0
        };
        for flags in (0..16).filter(|flags| *flags != listed) {
            let packet = [(kind << 4) | flags, 0];
            let mut server = Server::open(CONNECT_V5);
            assert_eq!(server.feed(&packet), ["Malformed(Flags)"], "{packet:?}");
            assert_eq!(server.written(), [0xe0, 1, reason::MALFORMED_PACKET]);
            let mut client = Client::open(Version::V5, &[]);
            assert_eq!(client.feed(&packet), ["Malformed(Flags)"], "{packet:?}");
            assert_eq!(client.written(), [0xe0, 1, reason::MALFORMED_PACKET]);
        }
    }
}

/// MQTT-1.5.5-1.
#[test]
fn a_variable_byte_integer_is_written_in_its_shortest_form() {
    // A subscription identifier as property, and the remaining length and property length.
    for (id, bytes) in [
        (127, &[0x7f][..]),
        (128, &[0x80, 0x01]),
        (16_384, &[0x80, 0x80, 0x01]),
        (2_097_152, &[0x80, 0x80, 0x80, 0x01]),
    ] {
        let properties = [Property::SubscriptionId(id)];
        let publish = Publish {
            dup: false,
            qos: muster_protocol::mqtt::Qos::AtMostOnce,
            retain: false,
            topic: "t",
            packet_id: None,
            properties: muster_protocol::mqtt::Properties::new(&properties),
            payload: b"",
        };
        let mut out = Vec::new();
        Packet::Publish(publish)
            .encode(Version::V5, &mut out)
            .unwrap();
        let size = bytes.len() as u8;
        let head = [0x30, 5 + size, 0, 1, b't', 1 + size, 0x0b];
        assert_eq!(out, [&head[..], bytes].concat());
        assert!(Packet::decode(Version::V5, &mut Input::new(&out), 100).is_ok());
    }
}
