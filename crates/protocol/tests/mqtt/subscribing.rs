//! SUBSCRIBE, UNSUBSCRIBE and their answers (sections 3.8 to 3.11).

use muster_protocol::mqtt::{Version, reason};

use crate::client_line::Line as Client;
use crate::server_line::{CONNECT_V5, Line as Server};

/// MQTT-3.8.3-5.
#[test]
fn reserved_subscription_options_are_malformed() {
    for reserved in [0x40, 0x80, 0xc0] {
        let mut line = Server::open(CONNECT_V5);
        let events = line.feed(&[0x82, 7, 0, 1, 0, 0, 1, b'a', reserved]);
        assert_eq!(events, ["Malformed(Flags)"]);
        assert_eq!(line.written(), [0xe0, 1, reason::MALFORMED_PACKET]);
    }
}

/// MQTT-3.8.3-2, MQTT-3.10.3-2.
#[test]
fn a_request_has_at_least_one_filter() {
    for packet in [&[0x82, 3, 0, 1, 0], &[0xa2, 3, 0, 1, 0]] {
        let mut line = Server::open(CONNECT_V5);
        assert_eq!(line.feed(packet), ["Malformed(Subscription)"]);
        assert_eq!(line.written(), [0xe0, 1, reason::PROTOCOL_ERROR]);
    }
}

/// MQTT-3.8.3-4.
#[test]
fn a_shared_subscription_cannot_keep_its_own_messages_away() {
    let mut line = Server::open(CONNECT_V5);
    let shared = b"\x82\x10\x00\x01\x00\x00\x0a$share/g/t\x04";
    assert_eq!(line.feed(shared), ["Malformed(Subscription)"]);
    assert_eq!(line.written(), [0xe0, 1, reason::PROTOCOL_ERROR]);
    let mut line = Server::open(CONNECT_V5);
    let plain = line.feed(b"\x82\x07\x00\x01\x00\x00\x01t\x04");
    assert!(plain[0].contains("no_local: true"), "{plain:?}");
}

/// MQTT-2.2.1-6.
#[test]
fn an_answer_to_no_request_is_told_to_nobody() {
    let mut line = Client::open(Version::V5, &[]);
    assert_eq!(line.feed(&[0x90, 4, 0, 9, 0, 0]), [""; 0]);
    assert_eq!(line.feed(&[0xb0, 4, 0, 9, 0, 0]), [""; 0]);
}
