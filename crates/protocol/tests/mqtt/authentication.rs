//! Enhanced authentication (sections 3.15 and 4.12).

use muster_protocol::mqtt::{
    Accept, Connect, Filter, Property, Publish, Qos, Refused, Subscribe, Token, Version, reason,
};

use crate::client_line::{Line as Client, NOW};
use crate::server_line::{CONNECT_V5, Line as Server, NAME, connect};

const METHOD: [Property<'static>; 1] = [Property::AuthenticationMethod("m")];

/// AUTH with method "m", by its code and one byte of data.
fn step(code: u8, data: u8) -> [u8; 12] {
    [0xf0, 10, code, 8, 0x15, 0, 1, b'm', 0x16, 0, 1, data]
}

/// A client whose CONNECT names method "m".
fn client() -> Client {
    let connect = Connect {
        authentication: Some(("m", b"1")),
        clean_start: false,
        ..Connect::new("c")
    };
    Client::new(Version::V5, &connect)
}

fn open_client() -> Client {
    let mut line = client();
    let event = line.connack(Version::V5, false, &METHOD);
    assert!(event.starts_with("Connected"), "{event}");
    line
}

/// A server whose client named method "m" with data "1".
fn server() -> Server {
    Server::asked(&connect(0, b"\x15\x00\x01m\x16\x00\x011", NAME))
}

fn open_server() -> Server {
    let mut line = server();
    line.server
        .accept(NOW, &Accept::default(), &mut line.out)
        .unwrap();
    line.written();
    line
}

fn told(code: u8, data: u8) -> String {
    format!(
        "Auth(Auth {{ reason: {code}, properties: [AuthenticationMethod(\"m\"), \
         AuthenticationData([{data}])] }})"
    )
}

/// MQTT-4.12.0-3, MQTT-4.12.0-5.
#[test]
fn a_client_answers_each_challenge_with_its_method_until_connack() {
    let mut line = client();
    for round in b'2'..b'5' {
        assert_eq!(line.feed(&step(0x18, round)), [told(0x18, round)]);
        line.client
            .authenticate(NOW, &[round], &mut line.out)
            .unwrap();
        assert_eq!(line.written(), step(0x18, round));
    }
    let connected = line.connack(Version::V5, false, &METHOD);
    assert!(connected.starts_with("Connected"), "{connected}");
    let after = line.client.authenticate(NOW, b"x", &mut line.out);
    assert_eq!(after, Err(Refused::Authentication), "nothing is under way");
}

/// MQTT-3.1.2-30.
#[test]
fn a_client_that_authenticates_sends_nothing_else_before_connack() {
    let mut line = client();
    let publish = Publish::new("t", b"x");
    let published = line.client.publish(NOW, Token(1), &publish, &mut line.out);
    assert_eq!(published, Err(Refused::NotConnected));
    let filters = [Filter::new("t", Qos::AtMostOnce)];
    let subscribe = Subscribe {
        id: 1,
        filters: &filters,
        subscription_id: None,
        user_properties: &[],
    };
    let subscribed = line.client.subscribe(NOW, &subscribe, &mut line.out);
    assert_eq!(subscribed, Err(Refused::NotConnected));
    let unsubscribed = line.client.unsubscribe(NOW, 1, &["t"], &mut line.out);
    assert_eq!(unsubscribed, Err(Refused::NotConnected));
    line.client.ping(NOW, &mut line.out);
    assert_eq!(line.client.timer(NOW, &mut line.out), None);
    assert_eq!(line.written(), [0; 0]);
}

/// MQTT-3.1.2-30.
#[test]
fn before_connack_a_challenged_client_may_only_go_on_or_leave() {
    let mut line = server();
    line.server.challenge(b"2", &mut line.out).unwrap();
    assert_eq!(line.written(), step(0x18, b'2'));
    assert_eq!(line.feed(&[0xc0, 0]), ["Malformed(Unexpected(12))"]);
    assert_eq!(line.written(), [0; 0], "there is no DISCONNECT yet");
    let mut line = server();
    line.server.challenge(b"2", &mut line.out).unwrap();
    let left = line.feed(&[0xe0, 0]);
    assert!(left[0].starts_with("Disconnect"), "{left:?}");
}

/// MQTT-4.12.0-2, MQTT-4.12.0-5.
#[test]
fn a_server_challenges_until_it_is_content() {
    let mut line = server();
    for round in b'2'..b'5' {
        line.server.challenge(&[round], &mut line.out).unwrap();
        assert_eq!(line.written(), step(0x18, round));
        let again = line.server.challenge(&[round], &mut line.out);
        assert_eq!(again, Err(Refused::NotConnected), "an answer is due first");
        assert_eq!(line.feed(&step(0x18, round)), [told(0x18, round)]);
    }
    let accept = Accept {
        authentication_data: Some(b"9"),
        ..Accept::default()
    };
    line.server.accept(NOW, &accept, &mut line.out).unwrap();
    let bytes = b"\x20\x0b\x00\x00\x08\x15\x00\x01m\x16\x00\x019";
    assert_eq!(line.written(), bytes, "the method stands in the CONNACK");
    let late = line.server.challenge(b"x", &mut line.out);
    assert_eq!(late, Err(Refused::Authentication));
}

/// MQTT-4.12.0-4.
#[test]
fn a_server_may_refuse_at_any_step() {
    for rounds in 0..3 {
        let mut line = server();
        for _ in 0..rounds {
            line.server.challenge(b"2", &mut line.out).unwrap();
            line.feed(&step(0x18, b'2'));
        }
        line.written();
        line.server.refuse(reason::NOT_AUTHORIZED, &mut line.out);
        assert_eq!(line.written(), [0x20, 3, 0, reason::NOT_AUTHORIZED, 0]);
        assert_eq!(line.feed(&step(0x18, b'2')), [""; 0], "it is over");
    }
}

/// MQTT-4.12.0-5.
#[test]
fn another_method_than_that_of_the_connect_is_malformed() {
    let other = b"\xf0\x06\x18\x04\x15\x00\x01n";
    let without = [0xf0, 1, 0x18];
    let wrong = ["Malformed(PropertyValue(21))"];
    for packet in [&other[..], &without] {
        assert_eq!(client().feed(packet), wrong);
        let mut line = server();
        line.server.challenge(b"2", &mut line.out).unwrap();
        assert_eq!(line.feed(packet), wrong);
    }
    for properties in [&[][..], &[Property::AuthenticationMethod("n")]] {
        let event = client().connack(Version::V5, false, properties);
        assert_eq!(event, wrong[0]);
    }
}

/// MQTT-4.12.0-6, MQTT-4.12.0-7.
#[test]
fn without_a_method_in_the_connect_nothing_is_said_of_authentication() {
    let plain = || Client::new(Version::V5, &Connect::new("c"));
    assert_eq!(plain().feed(&step(0x18, 1)), ["Malformed(Unexpected(15))"]);
    let event = plain().connack(Version::V5, false, &METHOD);
    assert_eq!(event, "Malformed(PropertyValue(21))");
    let mut line = Client::open(Version::V5, &[]);
    let none = Err(Refused::Authentication);
    assert_eq!(line.client.authenticate(NOW, b"1", &mut line.out), none);
    assert_eq!(line.client.reauthenticate(NOW, b"1", &mut line.out), none);
    assert_eq!(line.written(), [0; 0]);
    assert_eq!(line.feed(&step(0x00, 1)), ["Malformed(Unexpected(15))"]);
    let mut line = Server::asked(CONNECT_V5);
    assert_eq!(line.server.challenge(b"1", &mut line.out), none);
    let accept = Accept {
        authentication_data: Some(b"9"),
        ..Accept::default()
    };
    line.server.accept(NOW, &accept, &mut line.out).unwrap();
    assert_eq!(line.written(), [0x20, 3, 0, 0, 0]);
    assert_eq!(line.server.challenge(b"1", &mut line.out), none);
    assert_eq!(line.server.authenticated(&mut line.out), none);
    assert_eq!(line.feed(&step(0x19, 1)), ["Malformed(Unexpected(15))"]);
}

/// MQTT-3.15.2-1, MQTT-4.12.1-1.
#[test]
fn a_client_authenticates_again_with_the_method_of_its_connect() {
    let mut line = open_client();
    line.client
        .reauthenticate(NOW, b"5", &mut line.out)
        .unwrap();
    assert_eq!(line.written(), step(0x19, b'5'));
    assert_eq!(
        line.publish(1, Qos::AtMostOnce),
        Ok(()),
        "meanwhile it works"
    );
    line.written();
    assert_eq!(line.feed(&step(0x18, b'6')), [told(0x18, b'6')]);
    line.client.authenticate(NOW, b"7", &mut line.out).unwrap();
    assert_eq!(line.written(), step(0x18, b'7'));
    assert_eq!(line.feed(&step(0x00, b'8')), [told(0x00, b'8')]);
    let over = line.client.authenticate(NOW, b"9", &mut line.out);
    assert_eq!(over, Err(Refused::Authentication));
    assert!(line.client.is_connected());
}

/// MQTT-4.12.1-1, MQTT-4.12.1-2.
#[test]
fn a_server_lets_a_client_authenticate_again_or_ends_the_connection() {
    let mut line = open_server();
    assert_eq!(line.feed(&step(0x19, b'5')), [told(0x19, b'5')]);
    line.server.challenge(b"6", &mut line.out).unwrap();
    assert_eq!(line.written(), step(0x18, b'6'));
    assert_eq!(line.feed(&[0xc0, 0]), ["Ping"], "the connection goes on");
    line.written();
    assert_eq!(line.feed(&step(0x18, b'7')), [told(0x18, b'7')]);
    line.server.authenticated(&mut line.out).unwrap();
    assert_eq!(line.written(), b"\xf0\x06\x00\x04\x15\x00\x01m");
    line.feed(&step(0x19, b'5'));
    line.server
        .disconnect(reason::NOT_AUTHORIZED, &mut line.out);
    assert_eq!(line.written(), [0xe0, 1, reason::NOT_AUTHORIZED]);
    assert!(!line.server.is_connected());
}

/// MQTT-3.15.2-1.
#[test]
fn a_step_has_a_code_that_belongs_to_its_sender_and_to_its_place() {
    for code in [0x00, 0x19, 0x20, 0x87] {
        let wrong = [format!("Malformed(Authentication({code}))")];
        assert_eq!(client().feed(&step(code, 1)), wrong, "before CONNACK");
        let mut line = server();
        line.server.challenge(b"2", &mut line.out).unwrap();
        assert_eq!(line.feed(&step(code, 1)), wrong, "before CONNACK");
    }
    for code in [0x00, 0x18, 0x19, 0x87] {
        let wrong = [format!("Malformed(Authentication({code}))")];
        let mut line = open_client();
        assert_eq!(line.feed(&step(code, 1)), wrong, "nobody began");
        assert_eq!(line.written(), [0xe0, 1, reason::PROTOCOL_ERROR]);
    }
    for code in [0x00, 0x18, 0x87] {
        let wrong = [format!("Malformed(Authentication({code}))")];
        let mut line = open_server();
        assert_eq!(line.feed(&step(code, 1)), wrong, "nobody began");
        assert_eq!(line.written(), [0xe0, 1, reason::PROTOCOL_ERROR]);
    }
}

#[test]
fn each_connection_of_a_client_authenticates_anew() {
    let mut line = open_client();
    line.client.closed();
    let connect = Connect {
        authentication: Some(("m", b"1")),
        ..Connect::new("c")
    };
    line.client.connect(NOW, &connect, &mut line.out).unwrap();
    assert_eq!(line.feed(&step(0x18, 2)), [told(0x18, 2)]);
    line.client.closed();
    line.client
        .connect(NOW, &Connect::new("c"), &mut line.out)
        .unwrap();
    assert_eq!(line.feed(&step(0x18, 2)), ["Malformed(Unexpected(15))"]);
}

#[test]
fn mqtt_311_knows_no_authentication_beyond_name_and_password() {
    let connect = Connect {
        authentication: Some(("m", b"1")),
        ..Connect::new("c")
    };
    let mut line = Client::new(Version::V311, &connect);
    let connected = line.connack(Version::V311, false, &[]);
    assert!(connected.starts_with("Connected"), "{connected}");
    let again = line.client.reauthenticate(NOW, b"1", &mut line.out);
    assert_eq!(again, Err(Refused::Authentication));
    assert_eq!(line.feed(&step(0x18, 1)), ["Malformed(Unexpected(15))"]);
}
