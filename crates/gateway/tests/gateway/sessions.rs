//! Connections that begin, end and come back.

use muster_gateway::{Gateway, GatewayConfig, ListenAddresses, User};
use muster_model::{Micros, Reason};
use muster_protocol::mqtt::{Connect, Properties, Property, Qos, Version, Will};

use crate::peer::{Peer, Seen};

fn gateway(threads: u16) -> Gateway {
    Gateway::start(GatewayConfig {
        threads,
        ..GatewayConfig::default()
    })
    .expect("a gateway")
}

fn lasting(client_id: &str) -> Connect<'_> {
    Connect {
        clean_start: false,
        session_expiry: 600,
        ..Connect::new(client_id)
    }
}

/// MQTT-3.1.2-5, MQTT-3.1.2-23, MQTT-4.5.0-1.
#[test]
fn a_lasting_session_gets_what_came_while_it_was_away() {
    for threads in [1, 2] {
        let gateway = gateway(threads);
        let mut consumer = Peer::open(gateway.addr(), Version::V5, &lasting("consumer"));
        consumer.subscribe("t/#", Qos::AtLeastOnce);
        let mut device = Peer::new(gateway.addr(), Version::V5, "device");
        let mut sent = 0u8;
        // Several times, so that with two threads the session moves from one to the other.
        for round in 0..8 {
            consumer.cut();
            for _ in 0..10 {
                device.publish("t/1", &[sent], Qos::AtLeastOnce);
                sent += 1;
            }
            device.answers(usize::from(sent));
            consumer = Peer::open(gateway.addr(), Version::V5, &lasting("consumer"));
            assert_eq!(
                consumer.seen[0],
                Seen::Connected { present: true },
                "round {round}"
            );
            let got: Vec<u8> = consumer
                .messages(10)
                .iter()
                .map(|got| got.payload[0])
                .collect();
            assert_eq!(
                got,
                (sent - 10..sent).collect::<Vec<u8>>(),
                "{threads} threads"
            );
            consumer.watch(Micros::from_millis(20));
        }
        let counts = gateway.stop().counts;
        assert_eq!((counts.resumed, counts.discarded), (8, 0));
        assert_eq!(counts.delivered, 80, "{counts:?}");
    }
}

/// MQTT-4.4.0-1.
#[test]
fn what_was_not_acknowledged_comes_again_with_dup() {
    for threads in [1, 2] {
        let gateway = gateway(threads);
        let connect = lasting("consumer");
        let mut consumer = Peer::open(gateway.addr(), Version::V5, &connect);
        consumer.subscribe("t", Qos::AtLeastOnce);
        let mut device = Peer::new(gateway.addr(), Version::V5, "device");
        // Several times, so that with two threads the session moves from one to the other.
        for round in 1..=8 {
            // It was sent, and the peer reads it only when it comes again.
            device.publish("t", &[round], Qos::AtLeastOnce);
            consumer.await_unread();
            consumer = consumer.reopen(gateway.addr(), &connect);
            let got = consumer.messages(1);
            assert_eq!((got[0].dup, got[0].payload[0]), (true, round));
            consumer.catch_up();
        }
        let counts = gateway.stop().counts;
        assert_eq!((counts.delivered, counts.redelivered), (8, 8));
        assert_eq!(counts.delivered_acknowledged, 8);
    }
}

/// MQTT-3.1.2-4, MQTT-3.1.4-4.
#[test]
fn a_clean_start_throws_the_session_away() {
    let gateway = gateway(1);
    let mut consumer = Peer::open(gateway.addr(), Version::V5, &lasting("consumer"));
    consumer.subscribe("t", Qos::AtLeastOnce);
    consumer.cut();
    let mut device = Peer::new(gateway.addr(), Version::V5, "device");
    device.publish("t", b"x", Qos::AtLeastOnce);
    device.answers(1);
    let mut consumer = Peer::new(gateway.addr(), Version::V5, "consumer");
    consumer.watch(Micros::from_millis(50));
    assert!(consumer.got().is_empty());
    assert_eq!(gateway.stop().counts.discarded, 1);
}

/// MQTT-4.1.0-2.
#[test]
fn a_session_ends_when_its_expiry_has_passed() {
    let gateway = gateway(1);
    let connect = Connect {
        session_expiry: 1,
        ..lasting("consumer")
    };
    let mut consumer = Peer::open(gateway.addr(), Version::V5, &connect);
    consumer.subscribe("t", Qos::AtLeastOnce);
    consumer.cut();
    let mut bystander = Peer::new(gateway.addr(), Version::V5, "bystander");
    bystander.until_subscribed(&gateway, 0);
    let consumer = Peer::open(gateway.addr(), Version::V5, &connect);
    assert_eq!(consumer.seen, [Seen::Connected { present: false }]);
}

/// MQTT-3.1.4-3, MQTT-3.14.4-2, MQTT-4.13.2-1.
#[test]
fn the_same_client_id_takes_over() {
    for threads in [1, 2] {
        let gateway = gateway(threads);
        let mut peers = vec![Peer::new(gateway.addr(), Version::V5, "same")];
        for _ in 0..6 {
            peers.push(Peer::new(gateway.addr(), Version::V5, "same"));
        }
        let last = peers.pop().expect("the last");
        for peer in &mut peers {
            peer.until("closed", |seen| seen.last() == Some(&Seen::Closed));
            assert!(peer.seen.contains(&Seen::Disconnected(Reason::Mqtt(0x8e))));
        }
        assert_eq!(last.seen, [Seen::Connected { present: false }]);
        assert_eq!(gateway.stop().counts.taken_over, 6);
    }
}

/// MQTT-3.1.2-7, MQTT-3.1.2-8, MQTT-3.1.2-10, MQTT-3.14.4-3.
#[test]
fn a_will_is_published_unless_the_client_said_goodbye() {
    let gateway = gateway(1);
    let mut consumer = Peer::new(gateway.addr(), Version::V5, "consumer");
    consumer.subscribe("w/#", Qos::AtLeastOnce);
    let will = |topic| Will {
        topic,
        payload: b"gone",
        qos: Qos::AtLeastOnce,
        retain: false,
        properties: Properties::NONE,
    };
    let polite = Connect {
        will: Some(will("w/polite")),
        ..Connect::new("polite")
    };
    Peer::open(gateway.addr(), Version::V5, &polite).disconnect();
    let abrupt = Connect {
        will: Some(will("w/abrupt")),
        ..Connect::new("abrupt")
    };
    drop(Peer::open(gateway.addr(), Version::V311, &abrupt));
    assert_eq!(consumer.messages(1)[0].topic, "w/abrupt");
    consumer.watch(Micros::from_millis(50));
    assert_eq!((consumer.got().len(), gateway.stop().counts.wills), (1, 1));
}

/// MQTT-3.1.2-8, MQTT-3.1.3-9.
#[test]
fn a_delayed_will_is_not_published_for_a_client_that_came_back() {
    let gateway = gateway(1);
    let mut consumer = Peer::new(gateway.addr(), Version::V5, "consumer");
    consumer.subscribe("w", Qos::AtLeastOnce);
    let delay = [Property::WillDelay(1)];
    let will = Will {
        topic: "w",
        payload: b"gone",
        qos: Qos::AtLeastOnce,
        retain: false,
        properties: Properties::new(&delay),
    };
    let connect = Connect {
        will: Some(will),
        ..lasting("device")
    };
    Peer::open(gateway.addr(), Version::V5, &connect).cut();
    let back = Peer::open(gateway.addr(), Version::V5, &lasting("device"));
    consumer.watch(Micros::from_millis(1_200));
    assert!(consumer.got().is_empty());
    drop(back);
    Peer::open(gateway.addr(), Version::V5, &connect).cut();
    assert_eq!(consumer.messages(1)[0].payload, b"gone");
}

/// MQTT-3.2.2-8.
#[test]
fn wrong_credentials_are_refused_with_the_right_code() {
    let user = |name: &str| User {
        name: name.to_owned(),
        password: b"secret".to_vec(),
    };
    let config = GatewayConfig {
        users: vec![user("device")],
        northbound: Some(user("north")),
        ..GatewayConfig::default()
    };
    let gateway = Gateway::start(config).expect("a gateway");
    let with = |user, password| Connect {
        user,
        password,
        ..Connect::new("c")
    };
    let good: [Connect<'_>; 2] = [
        with(Some("device"), Some(b"secret")),
        with(Some("north"), Some(b"secret")),
    ];
    for connect in &good {
        let peer = Peer::open(gateway.addr(), Version::V5, connect);
        assert_eq!(peer.seen, [Seen::Connected { present: false }]);
        peer.disconnect();
    }
    let bad = [
        with(None, None),
        with(Some("device"), Some(b"wrong")),
        with(Some("nobody"), Some(b"secret")),
    ];
    for connect in &bad {
        let new = Peer::open(gateway.addr(), Version::V5, connect);
        assert_eq!(new.seen[0], Seen::Refused(Reason::Mqtt(0x86)));
        let old = Peer::open(gateway.addr(), Version::V311, connect);
        assert_eq!(old.seen[0], Seen::Refused(Reason::MqttConnack(4)));
    }
    let account = gateway.stop();
    assert_eq!((account.refused[&0x86], account.counts.connected), (6, 2));
}

/// MQTT-3.1.3-6, MQTT-3.1.3-8.
#[test]
fn a_client_without_a_name_gets_one() {
    let gateway = gateway(1);
    let first = Peer::new(gateway.addr(), Version::V5, "");
    let second = Peer::new(gateway.addr(), Version::V311, "");
    assert_eq!(gateway.account().counts.taken_over, 0);
    let connect = Connect {
        clean_start: false,
        ..Connect::new("")
    };
    let refused = Peer::open(gateway.addr(), Version::V311, &connect);
    assert_eq!(refused.seen[0], Seen::Refused(Reason::MqttConnack(2)));
    drop((first, second));
}

/// MQTT-3.1.4-1, MQTT-4.13.1-1.
#[test]
fn nonsense_ends_the_connection_and_nothing_else() {
    let gateway = gateway(1);
    let bystander = Peer::new(gateway.addr(), Version::V5, "bystander");
    let mut peer = Peer::new(gateway.addr(), Version::V5, "noisy");
    peer.write_raw(&[0xf0, 0xff, 0xff, 0xff, 0xff, 0xff]);
    peer.until("closed", |seen| seen.last() == Some(&Seen::Closed));
    assert_eq!(gateway.account().counts.malformed, 1);
    bystander.disconnect();
}

/// MQTT-3.1.2-22.
#[test]
fn a_silent_client_is_let_go_after_one_and_a_half_keep_alives() {
    let gateway = gateway(1);
    let connect = Connect {
        keep_alive: 1,
        ..Connect::new("silent")
    };
    let mut peer = Peer::open(gateway.addr(), Version::V5, &connect);
    let began = peer.now();
    peer.until("closed", |seen| seen.last() == Some(&Seen::Closed));
    let took = peer.now() - began;
    assert!(took >= Micros::from_millis(1_400), "{took}");
    assert_eq!(gateway.stop().counts.keep_alive_expired, 1);
}

#[test]
fn gateways_share_a_port_only_if_each_of_them_may() {
    let start = |shares_port, listen: ListenAddresses| {
        Gateway::start(GatewayConfig {
            shares_port,
            listen,
            ..GatewayConfig::default()
        })
    };
    let first = start(true, GatewayConfig::default().listen).expect("a gateway");
    let at = || ListenAddresses::new(first.addr());
    let second = start(true, at()).expect("a gateway on the same port");
    assert_eq!(first.addr(), second.addr());
    assert!(start(false, at()).is_err());
}
