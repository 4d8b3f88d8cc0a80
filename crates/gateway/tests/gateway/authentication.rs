//! The gateway's own method of enhanced authentication.

use muster_gateway::{Demand, Gateway, GatewayConfig, User};
use muster_model::Reason;
use muster_protocol::mqtt::{Connect, Qos, Version};

use crate::peer::{Peer, Seen};

const SECRET: &[u8] = b"open sesame";
const NOT_AUTHORIZED: Reason = Reason::Mqtt(0x87);
const BAD_METHOD: Reason = Reason::Mqtt(0x8c);

fn gateway(threads: u16) -> Gateway {
    Gateway::start(GatewayConfig {
        threads,
        authentication: Some(Demand {
            method: "echo".to_owned(),
            secret: "open sesame".to_owned(),
        }),
        northbound: Some(User {
            name: "north".to_owned(),
            password: b"secret".to_vec(),
        }),
        ..GatewayConfig::default()
    })
    .expect("a gateway")
}

fn by(method: &'static str) -> Connect<'static> {
    Connect {
        authentication: Some((method, b"meter-7")),
        ..Connect::new("c")
    }
}

#[test]
fn who_answers_the_challenge_is_admitted() {
    for threads in [1, 2] {
        let gateway = gateway(threads);
        let addr = gateway.addr();
        let mut peer = Peer::open_secret(addr, Version::V5, &by("echo"), SECRET);
        assert_eq!(peer.seen, [Seen::Connected { present: false }]);
        peer.subscribe("t", Qos::AtLeastOnce);
        peer.publish("t", b"x", Qos::AtLeastOnce);
        assert_eq!(peer.messages(1).len(), 1);
        let again = Peer::open_secret(addr, Version::V5, &by("echo"), SECRET);
        assert_eq!(again.seen, [Seen::Connected { present: false }]);
        peer.until("taken over", |seen| seen.last() == Some(&Seen::Closed));
        assert_eq!(gateway.stop().counts.authenticated, 2);
    }
}

/// MQTT-3.1.4-2, MQTT-3.2.2-8, MQTT-4.12.0-1, MQTT-4.12.0-4.
#[test]
fn a_wrong_answer_or_method_or_none_is_refused_and_closed() {
    let gateway = gateway(1);
    let wrong = [
        (by("echo"), NOT_AUTHORIZED),
        (by("other"), BAD_METHOD),
        (Connect::new("c"), NOT_AUTHORIZED),
    ];
    for (connect, reason) in &wrong {
        let mut peer = Peer::open_secret(gateway.addr(), Version::V5, connect, b"guess");
        peer.until("closed", |seen| seen.last() == Some(&Seen::Closed));
        assert_eq!(peer.seen, [Seen::Refused(*reason), Seen::Closed]);
    }
    let old = Peer::open(gateway.addr(), Version::V311, &Connect::new("c"));
    assert_eq!(old.seen[0], Seen::Refused(Reason::MqttConnack(5)));
    let account = gateway.stop();
    assert_eq!(
        (account.counts.authenticated, account.counts.connected),
        (0, 0)
    );
    assert_eq!((account.refused[&0x87], account.refused[&0x8c]), (3, 1));
}

/// MQTT-4.12.0-1.
#[test]
fn a_method_that_nobody_asked_for_is_refused() {
    let gateway = Gateway::start(GatewayConfig::default()).expect("a gateway");
    let mut peer = Peer::open_secret(gateway.addr(), Version::V5, &by("echo"), SECRET);
    peer.until("closed", |seen| seen.last() == Some(&Seen::Closed));
    assert_eq!(peer.seen, [Seen::Refused(BAD_METHOD), Seen::Closed]);
}

#[test]
fn consumers_log_in_by_name_and_password_alone() {
    let gateway = gateway(1);
    let connect = Connect {
        user: Some("north"),
        password: Some(b"secret"),
        ..Connect::new("n")
    };
    let peer = Peer::open(gateway.addr(), Version::V5, &connect);
    assert_eq!(peer.seen, [Seen::Connected { present: false }]);
}

/// MQTT-4.12.1-2.
#[test]
fn a_client_may_authenticate_again_and_is_let_go_if_it_fails() {
    let gateway = gateway(1);
    let mut peer = Peer::open_secret(gateway.addr(), Version::V5, &by("echo"), SECRET);
    for count in 1..=3 {
        peer.reauthenticate();
        peer.until("authenticated", |seen| seen.len() > count);
        assert_eq!(peer.seen[count], Seen::Authenticated);
    }
    peer.secret = b"forgotten";
    peer.reauthenticate();
    peer.until("closed", |seen| seen.last() == Some(&Seen::Closed));
    assert_eq!(
        peer.seen[4..],
        [Seen::Disconnected(NOT_AUTHORIZED), Seen::Closed]
    );
    assert_eq!(gateway.stop().counts.authenticated, 4);
}

#[test]
fn an_answer_to_no_challenge_ends_the_connection() {
    let gateway = gateway(1);
    let mut peer = Peer::open_secret(gateway.addr(), Version::V5, &by("echo"), SECRET);
    // AUTH, continue, with the method.
    peer.write_raw(b"\xf0\x09\x18\x07\x15\x00\x04echo");
    peer.until("closed", |seen| seen.last() == Some(&Seen::Closed));
    let gone = Seen::Disconnected(Reason::Mqtt(0x82));
    assert_eq!(peer.seen[1..], [gone, Seen::Closed]);
    let mut plain = Peer::open(
        gateway.addr(),
        Version::V5,
        &Connect {
            user: Some("north"),
            password: Some(b"secret"),
            ..Connect::new("n")
        },
    );
    plain.write_raw(b"\xf0\x09\x18\x07\x15\x00\x04echo");
    plain.until("closed", |seen| seen.last() == Some(&Seen::Closed));
    assert_eq!(gateway.stop().counts.malformed, 2);
}
