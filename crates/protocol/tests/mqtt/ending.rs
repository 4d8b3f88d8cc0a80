//! Pings, the end of a connection, and errors (sections 3.12 to 3.14 and 4.13).

use muster_protocol::mqtt::{Malformed, Pending, Qos, Refused, ServerLimits, Version, reason};

use crate::client_line::Line as Client;
use crate::server_line::{CONNECT_V5, Line as Server};

/// The codes a DISCONNECT may have (section 3.14.2.1).
const DISCONNECT: [u8; 29] = [
    0x00, 0x04, 0x80, 0x81, 0x82, 0x83, 0x87, 0x89, 0x8b, 0x8d, 0x8e, 0x8f, 0x90, 0x93, 0x94, 0x95,
    0x96, 0x97, 0x98, 0x99, 0x9a, 0x9b, 0x9c, 0x9d, 0x9e, 0x9f, 0xa0, 0xa1, 0xa2,
];

/// The next kind of fault, so that none is left out of a test; the compiler asks for new ones.
const fn next(malformed: Malformed) -> Option<Malformed> {
    Some(match malformed {
        Malformed::Length => Malformed::Integer,
        Malformed::Integer => Malformed::TooLarge {
            size: 2,
            maximum: 1,
        },
        Malformed::TooLarge { .. } => Malformed::BeyondOwnLimit {
            size: 9,
            maximum: 8,
        },
        Malformed::BeyondOwnLimit { .. } => Malformed::PacketType(0),
        Malformed::PacketType(_) => Malformed::Flags,
        Malformed::Flags => Malformed::Truncated,
        Malformed::Truncated => Malformed::Trailing,
        Malformed::Trailing => Malformed::Text,
        Malformed::Text => Malformed::Qos,
        Malformed::Qos => Malformed::PacketId,
        // Told by a CONNACK, since it shows before one.
        Malformed::PacketId | Malformed::ProtocolVersion => Malformed::PropertyPlace(1),
        Malformed::PropertyPlace(_) => Malformed::PropertyTwice(1),
        Malformed::PropertyTwice(_) => Malformed::PropertyValue(1),
        Malformed::PropertyValue(_) => Malformed::TopicName,
        Malformed::TopicName => Malformed::TopicAlias(1),
        Malformed::TopicAlias(_) => Malformed::Subscription,
        Malformed::Subscription => Malformed::ReceiveMaximum,
        Malformed::ReceiveMaximum => Malformed::PacketIdInUse(1),
        Malformed::PacketIdInUse(_) => Malformed::QosNotServed,
        Malformed::QosNotServed => Malformed::RetainNotServed,
        Malformed::RetainNotServed => Malformed::Unexpected(1),
        Malformed::Unexpected(_) => Malformed::Authentication(1),
        Malformed::Authentication(_) => Malformed::WrongAnswer(1),
        Malformed::WrongAnswer(_) => Malformed::SessionPresent,
        Malformed::SessionPresent => return None,
    })
}

/// MQTT-3.14.2-1.
#[test]
fn every_fault_of_the_other_side_is_told_by_a_code_that_disconnect_has() {
    let mut fault = Some(Malformed::Length);
    let mut count = 0;
    while let Some(malformed) = fault {
        let code = malformed.code();
        assert!(DISCONNECT.contains(&code), "{malformed}: {code:#x}");
        fault = next(malformed);
        count += 1;
    }
    assert_eq!(count, 25);
    let idle = [reason::KEEP_ALIVE_TIMEOUT, reason::SESSION_TAKEN_OVER];
    assert!(idle.iter().all(|code| DISCONNECT.contains(code)));
}

/// MQTT-3.12.4-1.
#[test]
fn a_ping_is_answered() {
    let mut line = Server::open(CONNECT_V5);
    assert_eq!(line.feed(&[0xc0, 0, 0xc0, 0]), ["Ping", "Ping"]);
    assert_eq!(line.written(), [0xd0, 0, 0xd0, 0]);
}

/// MQTT-3.14.4-1.
#[test]
fn after_its_disconnect_a_server_says_and_takes_nothing() {
    let mut line = Server::open(CONNECT_V5);
    line.deliver(1, Qos::AtLeastOnce).unwrap();
    line.feed(b"\x32\x06\x00\x01t\x00\x07\x00");
    line.written();
    line.server
        .disconnect(reason::SERVER_SHUTTING_DOWN, &mut line.out);
    assert_eq!(line.written(), [0xe0, 1, reason::SERVER_SHUTTING_DOWN]);
    let pending = Pending {
        packet_id: 7,
        qos: Qos::AtLeastOnce,
    };
    line.server.ack(pending, 0, &mut line.out);
    assert_eq!(line.deliver(2, Qos::AtMostOnce), Err(Refused::NotConnected));
    let suback = line.server.suback(1, &[0], &mut line.out);
    assert_eq!(suback, Err(Refused::NotConnected));
    line.server.disconnect(reason::BANNED, &mut line.out);
    assert_eq!(line.feed(&[0xc0, 0, 0x40, 2, 0, 1]), [""; 0]);
    assert_eq!(line.written(), [0; 0]);
}

/// MQTT-3.1.0-2, MQTT-3.14.0-1, MQTT-4.13.1-1.
#[test]
fn a_fault_of_the_client_ends_its_connection_whatever_comes_next() {
    for fault in [&[0x36, 3, 0, 1, b't'][..], CONNECT_V5, &[0x20, 2, 0, 0]] {
        let mut line = Server::open(CONNECT_V5);
        let bytes = [fault, &[0xc0, 0]].concat();
        let events = line.feed(&bytes);
        assert_eq!(events.len(), 1, "{events:?}");
        assert!(events[0].starts_with("Malformed"), "{events:?}");
        let written = line.written();
        assert!(written[0] == 0xe0 && written[2] >= 0x80, "{written:?}");
        assert!(!line.server.is_connected());
    }
    // Before CONNACK there is no DISCONNECT, but the end comes all the same.
    let mut line = Server::new(&ServerLimits::default());
    assert_eq!(
        line.feed(&[0xc0, 0, 0xc0, 0]),
        ["Malformed(Unexpected(12))"]
    );
    assert_eq!(line.written(), [0; 0]);
}

/// MQTT-4.13.2-1.
#[test]
fn a_code_of_failure_ends_a_clients_connection() {
    for code in [0x80, 0x8e, 0xa2] {
        let mut line = Client::open(Version::V5, &[]);
        let events = line.feed(&[0xe0, 1, code, 0xd0, 0]);
        assert_eq!(events.len(), 1, "{events:?}");
        assert!(!line.client.is_connected());
        assert_eq!(line.publish(1, Qos::AtMostOnce), Err(Refused::NotConnected));
        let mut line = Client::new(Version::V5, &muster_protocol::mqtt::Connect::new("c"));
        let events = line.feed(&[0x20, 3, 0, code, 0, 0xd0, 0]);
        assert_eq!(
            events,
            [format!(
                "Refused {{ reason: Mqtt({code}), properties: [] }}"
            )]
        );
        assert_eq!(line.written(), [0; 0]);
    }
}
