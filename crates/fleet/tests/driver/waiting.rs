//! A peer that goes on sending and never reads.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};

use muster_conduct::Order;
use muster_model::Cause;

use crate::rig::Shard;

/// One device that sends a message larger than all buffers of the kernel.
const SCENARIO: &str = "
name: waiting
platform: { kind: mqtt, devices: [ 'mqtt://127.0.0.1:1883' ] }
fleet: [ { name: meters, count: 1, client: { version: 5 }, streams: [ { name: r, rate: 1/s, qos: 2, payload: { size: 67108864 } } ] } ]
phases: { measure: 60s }
";
/// CONNACK of MQTT 5 without properties.
const CONNACK: [u8; 5] = [0x20, 3, 0, 0, 0];
/// PUBREC of a packet id that was never used: it is answered, with some bytes.
const PUBREC: [u8; 4] = [0x50, 2, 0x77, 0x77];
/// Takes a device, waits for the head of its message, and answers without end.
fn flood(listener: &TcpListener) {
    let (mut socket, _) = listener.accept().expect("the device comes");
    let mut bytes = [0; 4_096];
    let _ = socket.read(&mut bytes).expect("it says something");
    socket.write_all(&CONNACK).expect("it listens");
    let _ = socket.read(&mut bytes).expect("it says something");
    let answers = PUBREC.repeat(1_024);
    while socket.write_all(&answers).is_ok() {}
}

#[test]
fn a_peer_that_answers_without_end_and_reads_nothing_is_cut_off() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let shard = Shard::start(SCENARIO, listener.local_addr().unwrap(), None);
    let peer = std::thread::spawn(move || flood(&listener));
    shard.order(Order::Connect);
    shard.wait_for(|dispatch| (dispatch.progress.links_up == 1).then_some(()));
    let origin = shard.clock.now();
    shard.order(Order::Start { origin });
    let causes = shard.wait_for(|dispatch| {
        let mut links = dispatch.windows.links.values();
        let ended = links.find(|window| window.counts.disconnects.total() > 0)?;
        let causes = ended.counts.disconnects.iter();
        Some(causes.map(|(cause, _)| cause).collect::<Vec<Cause>>())
    });
    assert_eq!(causes, [Cause::Malformed]);
    peer.join().unwrap();
}
