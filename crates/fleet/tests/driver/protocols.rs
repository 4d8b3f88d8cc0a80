//! Fleets of two protocols on one loop.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::sync::mpsc::sync_channel;

use muster_conduct::Order;
use muster_device::{Coap, Mqtt};
use muster_fleet::{Datagrams, Streams, datagram_driver, shard_loop, stream_driver};
use muster_measure::{State, WindowDelta};
use muster_model::StreamId;
use muster_net::Mailbox;
use muster_plan::Plan;
use muster_platform::Protocol;
use muster_protocol::layer::Plain;

use crate::rig::{Shard, plan, spec};

/// CONNACK of MQTT 5 without properties.
const CONNACK: [u8; 5] = [0x20, 3, 0, 0, 0];
const PUBLISH_QOS_1: u8 = 0x32;

/// A fleet of one device that publishes, and one of one device that asks.
fn both() -> Plan {
    let of = |platform: &str| {
        plan(&format!(
            "name: both\nplatform: {{ {platform} }}\nfleet:\n  \
             - {{ name: a, tenant: t, client: {{}}, streams: [ {{ name: r, rate: 20/s, payload: {{ size: 64 }} }} ] }}\n  \
             - {{ name: b, tenant: t, client: {{}}, streams: [ {{ name: r, rate: 20/s, payload: {{ size: 64 }} }} ] }}\n\
             phases: {{ warm-up: 0s, measure: 60s }}\n"
        ))
    };
    let mut both = of("kind: mqtt, devices: [ 'mqtt://127.0.0.1' ]");
    let coap = of("kind: hono, devices: [ 'coap://127.0.0.1' ]");
    both.platform.kind = coap.platform.kind;
    both.platform.endpoints.extend(coap.platform.endpoints);
    both.fleets[1] = coap.fleets[1].clone();
    both
}

/// A broker that takes one device and acknowledges each PUBLISH.
fn serve_mqtt(listener: &TcpListener) {
    let (mut socket, _) = listener.accept().expect("the device comes");
    let mut bytes = [0; 4_096];
    let _ = socket.read(&mut bytes).expect("CONNECT");
    socket.write_all(&CONNACK).expect("it listens");
    while let Ok(length @ 1..) = socket.read(&mut bytes) {
        let mut rest = &bytes[..length];
        while let [PUBLISH_QOS_1, length, body @ ..] = rest {
            let topic = usize::from(body[1]);
            let ack = [0x40, 2, body[2 + topic], body[3 + topic]];
            socket.write_all(&ack).expect("it listens");
            rest = &body[usize::from(*length)..];
        }
    }
}

/// A server that acknowledges each request with 2.04 (RFC 7252 section 4.2).
fn serve_coap(socket: &UdpSocket) {
    let mut bytes = [0; 4_096];
    while let Ok((_, from)) = socket.recv_from(&mut bytes) {
        let token = usize::from(bytes[0] & 0x0f);
        let mut answer = bytes[..4 + token].to_vec();
        answer[0] = 0x60 | bytes[0] & 0x0f;
        answer[1] = 0x44;
        let _ = socket.send_to(&answer, from);
    }
}

/// Accepted messages of both streams.
fn accepted(windows: &WindowDelta) -> [u64; 2] {
    [StreamId(0), StreamId(1)].map(|stream| {
        let uplinks = windows.uplinks.iter().filter(|((of, _), _)| *of == stream);
        let accepted = uplinks.map(|(_, of)| of.outcomes.states[State::Accepted.index()]);
        accepted.sum()
    })
}

#[test]
fn fleets_of_two_protocols_run_on_one_loop_and_its_account_closes_over_both() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let targets = vec![
        (Protocol::Coap, socket.local_addr().expect("its address")),
        (Protocol::Mqtt, listener.local_addr().expect("its address")),
    ];
    std::thread::spawn(move || serve_mqtt(&listener));
    std::thread::spawn(move || serve_coap(&socket));
    let drivers = vec![
        stream_driver::<Mqtt, _>(|_| Streams(Plain), None),
        datagram_driver::<Coap, _>(|_| Datagrams, None),
    ];
    let shard = Shard::start_over(both(), targets, drivers);
    shard.order(Order::Connect);
    shard.wait_for(|dispatch| {
        assert_eq!(dispatch.progress.links_wanted, 2);
        (dispatch.progress.links_up == 2).then_some(())
    });
    let origin = shard.clock.now();
    shard.order(Order::Start { origin });
    let mut all = [0; 2];
    let mut add = |windows: &WindowDelta| {
        let more = accepted(windows);
        all = [all[0] + more[0], all[1] + more[1]];
        all
    };
    shard.wait_for(|dispatch| {
        let all = add(&dispatch.windows);
        all.iter().all(|count| *count > 5).then_some(())
    });
    let at = shard.clock.now();
    shard.order(Order::EndDue { at });
    shard.wait_for(|dispatch| {
        add(&dispatch.windows);
        (dispatch.progress.open == 0 && dispatch.progress.at > at).then_some(())
    });
    shard.order(Order::Finish);
    let account = shard.wait_for(|dispatch| {
        add(&dispatch.windows);
        let handover = dispatch.handover.as_ref()?;
        Some(handover.account.clone())
    });
    for stream in [StreamId(0), StreamId(1)] {
        let of = &account.streams[stream.index()];
        let accepted = of.states[State::Accepted.index()].count;
        let [sent, all] = [of.sent.count, all[stream.index()]];
        assert_eq!((sent, accepted), (all, all), "{stream:?}");
    }
    assert_eq!(account.links.opened, 2);
}

#[test]
fn a_protocol_without_an_address_is_an_error_that_names_it() {
    let targets = vec![(Protocol::Mqtt, (Ipv4Addr::LOCALHOST, 1883).into())];
    let drivers = vec![datagram_driver::<Coap, _>(|_| Datagrams, None)];
    let ((_orders, inbox), (outbox, _)) = (sync_channel(1), sync_channel(1));
    let mailbox = Mailbox::new(0, inbox, outbox);
    let made = shard_loop(&spec(both(), targets, None), drivers, mailbox);
    let Err(error) = made else {
        panic!("no address is of CoAP");
    };
    assert_eq!(
        error.to_string(),
        "devices speak CoAP, and `platform.devices` has no address of it: add one"
    );
}
