//! PUBLISH and its answers, aliases, order and flow control (sections 3.3 to 3.7, 4.3 to 4.9).

use muster_protocol::mqtt::{
    Connect, Filter, Pending, Property, Publish, Qos, Refused, ServerLimits, Subscribe, Token,
    Version,
};

use crate::client_line::{Line as Client, NOW};
use crate::server_line::{CONNECT_V5, Line as Server, NAME, connect};

/// A PUBLISH of MQTT 5 to "t" with one byte of payload, by its first byte and its packet id.
fn publish(first: u8, id: u8) -> [u8; 9] {
    [first, 7, 0, 1, b't', 0, id, 0, b'x']
}

const QOS_1: u8 = 0x32;
const QOS_2: u8 = 0x34;
const DUP: u8 = 0x08;

/// MQTT-3.3.2-10, MQTT-3.3.2-12.
#[test]
fn every_alias_up_to_the_announced_maximum_is_taken() {
    const MAXIMUM: u16 = 20;
    let limits = ServerLimits {
        topic_alias_maximum: MAXIMUM,
        ..ServerLimits::default()
    };
    let mut server = Server::new(&limits);
    server.feed(CONNECT_V5);
    let accept = muster_protocol::mqtt::Accept::default();
    server.server.accept(NOW, &accept, &mut server.out).unwrap();
    let connect = Connect {
        topic_alias_maximum: MAXIMUM,
        ..Connect::new("c")
    };
    let mut client = Client::new(Version::V5, &connect);
    client.connack(Version::V5, false, &[]);
    for alias in 1..=MAXIMUM as u8 {
        let given = [0x30, 8, 0, 1, b'a' + alias, 3, 0x23, 0, alias, b'x'];
        let used = [0x30, 7, 0, 0, 3, 0x23, 0, alias, b'x'];
        let topic = format!("topic: {:?}", char::from(b'a' + alias).to_string());
        for packet in [&given[..], &used] {
            assert!(server.feed(packet)[0].contains(&topic));
            assert!(client.feed(packet)[0].contains(&topic));
        }
    }
    let beyond = [0x30, 8, 0, 1, b't', 3, 0x23, 0, MAXIMUM as u8 + 1, b'x'];
    assert_eq!(server.feed(&beyond), ["Malformed(TopicAlias(21))"]);
    assert_eq!(client.feed(&beyond), ["Malformed(TopicAlias(21))"]);
}

/// MQTT-3.3.2-7.
#[test]
fn aliases_of_a_client_end_with_their_connection() {
    let mut line = Server::open(CONNECT_V5);
    assert_eq!(line.feed(b"\x30\x08\x00\x01t\x03\x23\x00\x03x").len(), 1);
    let mut line = line.resumed(CONNECT_V5);
    let unknown = line.feed(b"\x30\x07\x00\x00\x03\x23\x00\x03x");
    assert_eq!(unknown, ["Malformed(TopicAlias(3))"]);
}

/// MQTT-3.1.2-26, MQTT-3.1.2-27, MQTT-3.2.2-18, MQTT-3.3.2-11.
#[test]
fn no_alias_is_sent_beyond_what_the_other_side_takes() {
    let aliased = Publish {
        alias_slot: Some(0),
        ..Publish::new("t", b"x")
    };
    let plain = b"\x30\x05\x00\x01t\x00x";
    for properties in [&[][..], &[Property::TopicAliasMaximum(0)]] {
        let mut line = Client::open(Version::V5, properties);
        for _ in 0..2 {
            line.client
                .publish(NOW, Token(1), &aliased, &mut line.out)
                .unwrap();
            assert_eq!(line.written(), plain);
        }
    }
    for properties in [&[][..], &[0x22, 0, 0]] {
        let mut line = Server::open(&connect(0, properties, NAME));
        for _ in 0..2 {
            line.server
                .deliver(Token(1), &aliased, &mut line.out)
                .unwrap();
            assert_eq!(line.written(), plain);
        }
    }
    // One alias is taken, and this would be the second.
    let mut line = Server::open(&connect(0, &[0x22, 0, 1], NAME));
    let second = Publish {
        alias_slot: Some(1),
        ..aliased
    };
    line.server
        .deliver(Token(1), &second, &mut line.out)
        .unwrap();
    assert_eq!(line.written(), plain);
}

/// MQTT-3.3.2-14.
#[test]
fn a_response_topic_is_a_name_without_wildcards() {
    for wrong in [b'+', b'#'] {
        let mut line = Server::open(CONNECT_V5);
        let packet = [0x30, 10, 0, 1, b't', 6, 8, 0, 3, b'a', b'/', wrong];
        assert_eq!(line.feed(&packet), ["Malformed(PropertyValue(8))"]);
    }
    let mut line = Server::open(CONNECT_V5);
    let right = line.feed(b"\x30\x0a\x00\x01t\x06\x08\x00\x03a/b");
    assert!(right[0].contains("ResponseTopic(\"a/b\")"), "{right:?}");
}

/// MQTT-4.3.2-5.
#[test]
fn after_puback_a_packet_id_names_a_new_message() {
    let mut client = Client::open(Version::V5, &[]);
    let mut server = Server::open(CONNECT_V5);
    for first in [QOS_1, QOS_1 | DUP, QOS_1] {
        assert_eq!(client.feed(&publish(first, 7)).len(), 1);
        assert_eq!(client.written(), [0x40, 2, 0, 7]);
        assert_eq!(server.feed(&publish(first, 7)).len(), 1);
        let pending = Pending {
            packet_id: 7,
            qos: Qos::AtLeastOnce,
        };
        server.server.ack(pending, 0, &mut server.out);
        assert_eq!(server.written(), [0x40, 2, 0, 7]);
    }
}

/// MQTT-4.6.0-2, MQTT-4.6.0-3, MQTT-4.6.0-4.
#[test]
fn answers_go_in_the_order_of_what_they_answer() {
    let mut line = Client::open(Version::V5, &[]);
    for (first, kind) in [(QOS_1, 0x40), (QOS_2, 0x50)] {
        let packets: Vec<u8> = [5, 3, 9]
            .iter()
            .flat_map(|id| publish(first, *id))
            .collect();
        assert_eq!(line.feed(&packets).len(), 3);
        let answers: Vec<u8> = [5, 3, 9].iter().flat_map(|id| [kind, 2, 0, *id]).collect();
        assert_eq!(line.written(), answers);
    }
    let mut line = Client::open(Version::V5, &[]);
    (1..=3).for_each(|token| line.publish(token, Qos::ExactlyOnce).unwrap());
    line.written();
    line.feed(&[0x50, 2, 0, 2, 0x50, 2, 0, 1, 0x50, 2, 0, 3]);
    assert_eq!(
        line.written(),
        [0x62, 2, 0, 2, 0x62, 2, 0, 1, 0x62, 2, 0, 3]
    );
}

/// MQTT-3.3.4-8, MQTT-4.9.0-3.
#[test]
fn a_client_with_a_full_window_sends_and_takes_everything_else() {
    let mut line = Client::open(Version::V5, &[Property::ReceiveMaximum(1)]);
    line.publish(1, Qos::AtLeastOnce).unwrap();
    assert_eq!(line.publish(2, Qos::AtLeastOnce), Err(Refused::Window));
    line.written();
    let filters = [Filter::new("a", Qos::AtMostOnce)];
    let subscribe = Subscribe {
        id: 1,
        filters: &filters,
        subscription_id: None,
        user_properties: &[],
    };
    line.client
        .subscribe(NOW, &subscribe, &mut line.out)
        .unwrap();
    line.client
        .unsubscribe(NOW, 2, &["a"], &mut line.out)
        .unwrap();
    line.client.ping(NOW, &mut line.out);
    let written = line.written();
    assert_eq!((written[0], written[written.len() - 2]), (0x82, 0xc0));
    assert_eq!(line.feed(&publish(QOS_2, 7)).len(), 1);
    line.feed(&[0x62, 2, 0, 7]);
    assert_eq!(line.written(), [0x50, 2, 0, 7, 0x70, 2, 0, 7]);
    assert_eq!(line.feed(&[0xd0, 0]), ["Pong"]);
    line.client.disconnect(0, &mut line.out);
    assert_eq!(line.written(), [0xe0, 0]);
}

/// MQTT-3.3.4-10, MQTT-4.9.0-3.
#[test]
fn a_server_with_a_full_window_sends_and_takes_everything_else() {
    // A receive maximum of one.
    let mut line = Server::open(&connect(0, &[0x21, 0, 1], NAME));
    line.deliver(1, Qos::AtLeastOnce).unwrap();
    assert_eq!(line.deliver(2, Qos::ExactlyOnce), Err(Refused::Window));
    line.written();
    assert_eq!(line.feed(&publish(QOS_1, 7)).len(), 1);
    let pending = Pending {
        packet_id: 7,
        qos: Qos::AtLeastOnce,
    };
    line.server.ack(pending, 0, &mut line.out);
    line.server.suback(8, &[0], &mut line.out).unwrap();
    assert_eq!(line.feed(&[0xc0, 0]), ["Ping"]);
    assert_eq!(
        line.written(),
        [0x40, 2, 0, 7, 0x90, 4, 0, 8, 0, 0, 0xd0, 0]
    );
    assert_eq!(
        line.deliver(3, Qos::AtMostOnce),
        Ok(()),
        "QoS 0 has no quota"
    );
}

/// MQTT-4.4.0-2.
#[test]
fn what_was_refused_is_not_sent_again() {
    let mut client = Client::open(Version::V5, &[]);
    client.publish(1, Qos::AtLeastOnce).unwrap();
    client.publish(2, Qos::ExactlyOnce).unwrap();
    client.feed(&[0x40, 3, 0, 1, 0x97, 0x50, 3, 0, 2, 0x97]);
    assert!(!client.reconnect(true, &[]).contains("Resend"));
    let mut server = Server::open(CONNECT_V5);
    server.deliver(1, Qos::AtLeastOnce).unwrap();
    server.deliver(2, Qos::ExactlyOnce).unwrap();
    server.feed(&[0x40, 3, 0, 1, 0x97, 0x50, 3, 0, 2, 0x97]);
    assert_eq!(server.resumed(CONNECT_V5).feed(&[]), [""; 0]);
}

/// MQTT-3.3.1-1, MQTT-4.3.2-2, MQTT-4.3.2-3, MQTT-4.3.3-2, MQTT-4.3.3-3, MQTT-4.3.3-6.
#[test]
fn a_delivery_is_unanswered_until_its_own_answer_and_then_goes_again_by_its_old_id() {
    let mut line = Server::open(CONNECT_V5);
    line.deliver(1, Qos::AtLeastOnce).unwrap();
    assert_eq!(line.written(), publish(QOS_1, 1));
    line.deliver(2, Qos::ExactlyOnce).unwrap();
    assert_eq!(line.written(), publish(QOS_2, 2));
    let mut line = line.resumed(CONNECT_V5);
    let resend = ["Resend { token: Token(1) }", "Resend { token: Token(2) }"];
    assert_eq!(line.feed(&[]), resend);
    for (token, qos) in [(1, Qos::AtLeastOnce), (2, Qos::ExactlyOnce)] {
        let message = Publish {
            qos,
            ..Publish::new("t", b"x")
        };
        line.server
            .redeliver(Token(token), &message, &mut line.out)
            .unwrap();
        let first = if token == 1 { QOS_1 } else { QOS_2 };
        assert_eq!(line.written(), publish(first | DUP, token as u8));
    }
    line.feed(&[0x50, 2, 0, 2]);
    assert_eq!(line.written(), [0x62, 2, 0, 2]);
    let mut line = line.resumed(CONNECT_V5);
    assert_eq!(line.feed(&[]), ["Resend { token: Token(1) }"]);
    assert_eq!(line.written(), [0x62, 2, 0, 2], "released, not delivered");
    line.feed(&[0x70, 2, 0, 2, 0x40, 2, 0, 1]);
    assert_eq!(line.resumed(CONNECT_V5).feed(&[]), [""; 0]);
}
