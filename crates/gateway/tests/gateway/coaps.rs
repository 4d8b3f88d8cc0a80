//! Devices over CoAP and DTLS.

use std::net::SocketAddr;

use muster_gateway::{Dialect, Gateway, GatewayConfig, GatewayDtls, ListenAddresses, User};
use muster_model::Micros;
use muster_model::behaviour::{Behaviour, CloseLinks};
use muster_protocol::coap::{Code, Transmission};
use muster_protocol::dtls::Fault;
use muster_protocol::mqtt::{Qos, Version};

use crate::device::{Ask, Device};
use crate::peer::Peer;
use crate::wire::{Ended, Wire};

const SENSOR: (&str, &str) = ("sensor1@T1", "hono-secret");

fn config() -> GatewayConfig {
    let here = SocketAddr::from(([127, 0, 0, 1], 0));
    GatewayConfig {
        dialect: Dialect::Hono,
        listen: ListenAddresses::new(here).with("coaps", Some(here)),
        coaps: Some(GatewayDtls {
            connection_id: true,
            secret: None,
            certificate: None,
        }),
        users: vec![User {
            name: SENSOR.0.to_owned(),
            password: SENSOR.1.as_bytes().to_vec(),
        }],
        northbound: Some(User {
            name: "app".to_owned(),
            password: b"app".to_vec(),
        }),
        ..GatewayConfig::default()
    }
}

/// A gateway and where devices are heard.
fn start(config: GatewayConfig) -> (Gateway, SocketAddr) {
    let gateway = Gateway::start(config).expect("a gateway");
    let addr = gateway.addresses().get("coaps").expect("it hears DTLS");
    (gateway, addr)
}

fn application(gateway: &Gateway) -> Peer {
    let connect = muster_protocol::mqtt::Connect {
        user: Some("app"),
        password: Some(b"app"),
        ..muster_protocol::mqtt::Connect::new("app")
    };
    let mut peer = Peer::open(gateway.addr(), Version::V5, &connect);
    peer.subscribe("#", Qos::AtLeastOnce);
    peer
}

#[test]
fn a_device_is_known_by_its_identity() {
    let (gateway, addr) = start(config());
    let mut application = application(&gateway);
    let mut device = Device::secure(addr, SENSOR);
    assert!(!device.wire.connected().expect("open").has_connection_id);
    for path in ["t", "event"] {
        assert_eq!(device.answer(Ask::post(path, b"{}")).code, Code::CHANGED);
    }
    let other = device.answer(Ask::put("t//dev-2", b"{}"));
    assert_eq!(other.code, Code::CHANGED, "as a gateway");
    let foreign = device.answer(Ask::put("t/T2/dev-2", b"{}"));
    assert_eq!(foreign.code, Code::FORBIDDEN);
    let body = vec![7; 2_000];
    assert_eq!(device.answer(Ask::post("t", &body)).code, Code::CHANGED);
    let topics: Vec<String> = application
        .messages(4)
        .into_iter()
        .map(|got| got.topic)
        .collect();
    let expected = [
        "telemetry/T1/sensor1",
        "event/T1/sensor1",
        "telemetry/T1/dev-2",
    ];
    assert_eq!(topics[..3], expected);
    assert_eq!(application.got()[3].payload, body);
    device.wire.close();
    let mut again = Device::secure(addr, SENSOR);
    assert_eq!(again.answer(Ask::post("t", b"{}")).code, Code::CHANGED);
    let account = gateway.stop();
    let counts = account.counts;
    assert_eq!((counts.dtls_handshakes, counts.dtls_cookies), (2, 2));
    assert_eq!((counts.dtls_closed, counts.dtls_connection_ids), (1, 0));
    assert_eq!((counts.received, counts.refused_requests), (5, 1));
    assert_eq!(account.handshakes_failed.len(), 0);
    assert_eq!((counts.dtls_discarded, counts.peers), (0, 2));
}

#[test]
fn a_command_comes_in_a_record_too() {
    let (gateway, addr) = start(config());
    let mut application = application(&gateway);
    let mut device = Device::secure(addr, SENSOR);
    let query = device.ask(Ask {
        query: "hono-ttd=20",
        ..Ask::post("e", b"{}")
    });
    application.messages(1);
    device.until("acknowledged", |device| device.acknowledged == [query]);
    application.publish("command/T1/sensor1/1/set", b"on", Qos::AtLeastOnce);
    device.until("the command", |device| device.answers.contains_key(&query));
    assert_eq!(device.answers[&query].payload, b"on");
    assert_eq!(device.answers[&query].location, ["cr", "2011"]);
}

#[test]
fn a_wrong_key_or_identity_is_silence() {
    let (gateway, addr) = start(config());
    for psk in [
        ("sensor1@T1", "wrong"),
        ("sensor2@T1", "x"),
        ("nobody", "x"),
    ] {
        let wire = Wire::secure(addr, psk, None);
        let mut device = Device::over(wire, Transmission::default());
        device.until("the end", |device| device.wire.ended().is_some());
        assert_eq!(
            device.wire.ended(),
            Some(Ended::Failed(Fault::TimedOut)),
            "{psk:?}"
        );
    }
    let account = gateway.stop();
    assert_eq!(account.counts.dtls_handshakes, 0);
    let failed: u64 = account.handshakes_failed.values().sum();
    assert_eq!(
        failed, 2,
        "of the wrong key nothing can be told yet: {account:?}"
    );
    assert!(
        account.counts.dtls_discarded > 0,
        "its last message does not open"
    );
}

#[test]
fn any_identity_of_a_tenant_is_known_where_there_is_a_key_for_all() {
    let mut config = config();
    let dtls = config.coaps.as_mut().expect("it is there");
    dtls.secret = Some("common".to_owned());
    let (gateway, addr) = start(config);
    let mut own = Device::secure(addr, SENSOR);
    let mut other = Device::secure(addr, ("sensor9@T1", "common"));
    for device in [&mut own, &mut other] {
        assert_eq!(device.answer(Ask::post("t", b"{}")).code, Code::CHANGED);
    }
    assert_eq!(gateway.stop().counts.dtls_handshakes, 2);
}

#[test]
fn a_session_with_a_connection_id_goes_on_from_another_address() {
    let (gateway, addr) = start(config());
    let wire = Wire::secure(addr, SENSOR, Some(b""));
    let mut device = Device::over(wire, Transmission::default());
    device.until("open", |device| device.wire.connected().is_some());
    assert!(device.wire.connected().expect("open").has_connection_id);
    assert_eq!(device.answer(Ask::post("t", b"{}")).code, Code::CHANGED);
    device.wire.move_away();
    assert_eq!(device.answer(Ask::post("t", b"{}")).code, Code::CHANGED);
    let counts = gateway.stop().counts;
    assert_eq!((counts.dtls_handshakes, counts.dtls_connection_ids), (1, 1));
    assert_eq!((counts.dtls_moved, counts.received), (1, 2));
}

#[test]
fn sessions_of_one_socket_are_told_apart_by_their_connection_ids() {
    let mut config = config();
    config.users.clear();
    let dtls = config.coaps.as_mut().expect("it is there");
    dtls.secret = Some("common".to_owned());
    let (gateway, addr) = start(config);
    let mut application = application(&gateway);
    let first = Wire::secure(addr, ("sensor0@T1", "common"), Some(b""));
    let socket = first.socket.try_clone().expect("a socket");
    let mut devices = vec![Device::over(first, Transmission::default())];
    devices[0].until("open", |device| device.wire.connected().is_some());
    for n in 1..4 {
        let socket = socket.try_clone().expect("a socket");
        let identity = format!("sensor{n}@T1");
        let wire = Wire::secure_by(socket, (&identity, "common"), Some(b""));
        let mut device = Device::over(wire, Transmission::default());
        device.until("open", |device| device.wire.connected().is_some());
        devices.push(device);
    }
    for _ in 0..2 {
        for device in &mut devices {
            assert_eq!(device.answer(Ask::post("t", b"{}")).code, Code::CHANGED);
        }
    }
    let topics: Vec<String> = application
        .messages(8)
        .into_iter()
        .map(|got| got.topic)
        .collect();
    let expected = [0, 1, 2, 3, 0, 1, 2, 3].map(|n| format!("telemetry/T1/sensor{n}"));
    assert_eq!(topics, expected);
    let counts = gateway.stop().counts;
    assert_eq!((counts.dtls_handshakes, counts.dtls_connection_ids), (4, 4));
    assert_eq!((counts.dtls_moved, counts.dtls_discarded), (0, 0));
}

#[test]
fn connection_ids_can_be_declined() {
    let mut config = config();
    let dtls = config.coaps.as_mut().expect("it is there");
    dtls.connection_id = false;
    let (gateway, addr) = start(config);
    let wire = Wire::secure(addr, SENSOR, Some(b""));
    let mut device = Device::over(wire, Transmission::default());
    device.until("open", |device| device.wire.connected().is_some());
    assert!(!device.wire.connected().expect("open").has_connection_id);
    assert_eq!(device.answer(Ask::post("t", b"{}")).code, Code::CHANGED);
    assert_eq!(gateway.stop().counts.dtls_connection_ids, 0);
}

/// A client that was restarted has forgotten its session, and opens another from the same address.
#[test]
fn a_new_session_takes_the_place_of_the_old_one_at_its_address() {
    let (gateway, addr) = start(config());
    let mut device = Device::secure(addr, SENSOR);
    assert_eq!(device.answer(Ask::post("t", b"{}")).code, Code::CHANGED);
    for _ in 0..2 {
        let socket = device.wire.socket.try_clone().expect("a socket");
        let wire = Wire::secure_by(socket, SENSOR, None);
        device = Device::over(wire, Transmission::default());
        device.until("open", |device| device.wire.connected().is_some());
        assert_eq!(device.answer(Ask::post("t", b"{}")).code, Code::CHANGED);
    }
    let counts = gateway.stop().counts;
    assert_eq!((counts.dtls_handshakes, counts.received), (3, 3));
}

#[test]
fn what_is_no_record_of_anybody_is_discarded() {
    let (gateway, addr) = start(config());
    let mut stranger = Wire::plain(addr);
    for datagram in [
        &b"\x40\x01\x00\x01"[..],
        b"\x17\xfe\xfd\x00\x01\x00\x00\x00\x00\x00\x01\x00\x03abc",
        b"\x19\xfe\xfd\x00\x01\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01a",
        b"\x16\xfe\xfd\x00\x00\x00\x00\x00\x00\x00\x01\x00\x03\x01bc",
    ] {
        stranger.send(datagram);
    }
    let mut device = Device::secure(addr, SENSOR);
    assert_eq!(device.answer(Ask::post("t", b"{}")).code, Code::CHANGED);
    assert!(stranger.receive().is_none(), "nobody is answered");
    assert_eq!(gateway.stop().counts.dtls_discarded, 4);
}

/// A device whose session was closed waits no more, though its time is not over.
#[test]
fn a_command_to_a_device_whose_session_was_closed_comes_back() {
    let mut config = config();
    config.behaviour.close_links = Some(CloseLinks {
        at: Micros::from_millis(600),
        share: 1.0,
    });
    let (gateway, addr) = start(config);
    let mut application = application(&gateway);
    let mut device = Device::secure(addr, SENSOR);
    let query = device.ask(Ask {
        query: "hono-ttd=20",
        ..Ask::post("e", b"{}")
    });
    device.until("the end", |device| device.wire.ended().is_some());
    assert_eq!(device.acknowledged, [query]);
    application.publish("command/T1/sensor1/7f3a/set", b"on", Qos::AtLeastOnce);
    let notice = application.messages(2).remove(1);
    assert_eq!(notice.topic, "command_failure/T1/sensor1/7f3a/503");
    let counts = gateway.stop().counts;
    assert_eq!((counts.queries, counts.queries_abandoned), (1, 1));
    assert_eq!(
        (counts.commands_undelivered, counts.commands_handed),
        (1, 0)
    );
    assert_eq!((counts.commands_routed, counts.unanswerable), (0, 0));
}

#[test]
fn half_of_the_sessions_can_be_closed() {
    let behaviour = Behaviour {
        close_links: Some(CloseLinks {
            at: Micros::from_millis(100),
            share: 0.5,
        }),
        ..Behaviour::default()
    };
    let mut config = config();
    config.behaviour = behaviour;
    config.users.clear();
    config.northbound = None;
    let dtls = config.coaps.as_mut().expect("it is there");
    dtls.secret = Some("common".to_owned());
    let (gateway, addr) = start(config);
    let mut devices: Vec<Device> = (0..6)
        .map(|n| Device::secure(addr, (&format!("sensor{n}@T1"), "common")))
        .collect();
    assert_eq!(devices[0].answer(Ask::post("t", b"{}")).code, Code::CHANGED);
    let give_up = Device::now() + Micros::from_secs(20);
    let closed = |devices: &[Device]| {
        let ended = devices.iter().map(|device| device.wire.ended());
        ended.filter(|ended| *ended == Some(Ended::Closed)).count()
    };
    while closed(&devices) < 3 {
        assert!(Device::now() < give_up, "never closed");
        devices.iter_mut().for_each(Device::read);
    }
    assert_eq!(gateway.stop().counts.closed_links, 3);
}
