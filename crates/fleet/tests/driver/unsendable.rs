//! A peer that says what it never takes.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};

use muster_conduct::{Diagnostic, Order};

use crate::rig::Shard;

const SCENARIO: &str = "
name: unsendable
platform: { kind: mqtt, devices: [ 'mqtt://127.0.0.1:1883' ] }
fleet: [ { name: meters, count: 1, client: { version: 5 }, streams: [ { name: large, rate: 10/s, qos: 1, payload: { size: 2000 } } ] } ]
phases: { measure: 60s }
";
/// CONNACK of MQTT 5: the largest packet has 1,024 bytes.
const CONNACK: [u8; 10] = [0x20, 8, 0, 0, 5, 0x27, 0, 0, 4, 0];

#[test]
fn a_message_that_the_peer_never_takes_is_told_once_with_the_limit() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let shard = Shard::start(SCENARIO, listener.local_addr().unwrap(), None);
    shard.order(Order::Connect);
    let (mut socket, _) = listener.accept().unwrap();
    let read = socket.read(&mut [0; 4_096]).unwrap();
    assert!(read > 0, "CONNECT");
    socket.write_all(&CONNACK).unwrap();
    shard.wait_for(|dispatch| (dispatch.progress.links_up == 1).then_some(()));
    let origin = shard.clock.now();
    shard.order(Order::Start { origin });
    let told = shard.wait_for(|dispatch| dispatch.diagnostics.first().cloned());
    let Diagnostic::Unsendable(text) = told else {
        panic!("{told:?}");
    };
    assert!(
        text.starts_with("messages of stream `large` of fleet `meters`: a packet of 2"),
        "{text}"
    );
    assert!(
        text.ends_with("bytes where the peer takes at most 1024"),
        "{text}"
    );
    let mut shed = 0;
    shard.wait_for(|dispatch| {
        assert_eq!(dispatch.diagnostics, []);
        let windows = dispatch.windows.uplinks.values();
        shed += windows
            .map(|window| window.outcomes.shed.total())
            .sum::<u64>();
        (shed > 5).then_some(())
    });
}
