//! Instant at which a connect begins.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::mpsc::{Sender, channel};

use muster_conduct::{FactWriter, Order};
use muster_model::{Fact, LinkEvent, Micros};

use crate::rig::Shard;

/// As many links as one turn of the loop connects, all at once.
const LINKS: usize = 16;
const SCENARIO: &str = "
name: connect
platform: { kind: mqtt, devices: [ 'mqtt://127.0.0.1:1883' ] }
fleet: [ { name: meters, count: 16, client: { version: 5 }, connect: { rate: 1000000/s, pending: 16 }, streams: [ { name: r, rate: 1/s, payload: { size: 64 } } ] } ]
phases: { measure: 60s }
";
/// CONNACK of MQTT 5 without properties.
const CONNACK: [u8; 5] = [0x20, 3, 0, 0, 0];

/// Tells when each connect began.
#[derive(Debug)]
struct Begun(Sender<Micros>);

impl FactWriter for Begun {
    fn note(&mut self, fact: &Fact) {
        if let Fact::Link(link) = fact
            && let LinkEvent::Connected { took } = link.event
        {
            let _ = self.0.send(link.at - took);
        }
    }
}

fn greet(mut socket: TcpStream) -> TcpStream {
    let read = socket.read(&mut [0; 4_096]).expect("it says something");
    assert!(read > 0, "CONNECT");
    socket.write_all(&CONNACK).expect("it listens");
    socket
}

#[test]
fn links_come_from_the_addresses_that_the_scenario_names_in_turn() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let from = "from: [ '127.0.0.7', '127.0.0.9', '::1' ], rate: 1000000/s";
    let scenario = SCENARIO.replace("rate: 1000000/s", from);
    let shard = Shard::start(&scenario, listener.local_addr().unwrap(), None);
    shard.order(Order::Connect);
    let sockets = listener.incoming().take(LINKS);
    let sources = sockets.map(|socket| socket.unwrap().peer_addr().unwrap().ip());
    let mut sources = Vec::from_iter(sources.map(|source| source.to_string()));
    sources.sort_unstable();
    let half = LINKS / 2;
    assert_eq!(sources[..half], ["127.0.0.7"].repeat(half));
    assert_eq!(sources[half..], ["127.0.0.9"].repeat(half));
}

#[test]
fn a_connect_begins_with_its_own_syn_and_not_with_the_first_of_its_turn() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let (told, begun) = channel();
    let writer = Box::new(Begun(told));
    let shard = Shard::start(SCENARIO, listener.local_addr().unwrap(), Some(writer));
    shard.order(Order::Connect);
    let sockets = listener.incoming().take(LINKS);
    let _sockets = Vec::from_iter(sockets.map(|socket| greet(socket.unwrap())));
    let mut begun = Vec::from_iter(begun.iter().take(LINKS));
    begun.sort_unstable();
    begun.dedup();
    // To open a socket takes microseconds, so that few of them share one.
    assert!(begun.len() > LINKS / 2, "{begun:?}");
}
