//! Cost of a packet in a session: `cargo run --release -p muster-protocol --example packet_cost`.
//!
//! One thread, 100-byte payloads, both versions. Costs are CPU time of the thread, so that a busy
//! machine disturbs them little.

use std::hint::black_box;
use std::io::Write;

use muster_model::Micros;
use muster_protocol::mqtt::packet::{self, Packet};
use muster_protocol::mqtt::{
    Client, ClientLimits, Connect, Input, Properties, Publish, Qos, Server, Token, Version,
};

const PACKETS: u32 = 2_000_000;
const REPETITIONS: usize = 5;
/// Publishes that wait for an answer at once.
const WINDOW: u32 = 1_000;
const TOPIC: &str = "muster/meter-00000042/t";
const PAYLOAD: [u8; 100] = [7; 100];
const NOW: Micros = Micros(1);

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "client {} bytes, server {} bytes",
        size_of::<Client>(),
        size_of::<Server>()
    )?;
    for version in [Version::V311, Version::V5] {
        let plain = Publish::new(TOPIC, &PAYLOAD);
        let once = Publish {
            qos: Qos::AtLeastOnce,
            ..plain
        };
        let stamp = [("id", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")];
        let rich = Publish {
            alias_slot: Some(1),
            user_properties: &stamp,
            ..plain
        };
        let publish = median(|| publish(version, &plain))?;
        let tagged = median(|| self::publish(version, &rich))?;
        let acked = median(|| acknowledge(version, &once))?;
        let received = median(|| receive(version))?;
        writeln!(
            out,
            "{version:?}: publish {publish:.0} ns, with alias and user property {tagged:.0} ns, \
             its PUBACK {acked:.0} ns, a received QoS 1 message {received:.0} ns"
        )?;
    }
    Ok(())
}

fn median(mut cost: impl FnMut() -> Result<f64, Failure>) -> Result<f64, Failure> {
    let mut costs = (0..REPETITIONS)
        .map(|_| cost())
        .collect::<Result<Vec<f64>, _>>()?;
    costs.sort_by(f64::total_cmp);
    Ok(costs[REPETITIONS / 2])
}

/// A client whose server takes three topic aliases.
fn connected(version: Version) -> Result<Client, Failure> {
    let mut client = Client::new(version, &ClientLimits::default());
    let mut out = Vec::new();
    client.connect(NOW, &Connect::new("meter-00000042"), &mut out)?;
    let connack: &[u8] = match version {
        Version::V311 => &[0x20, 2, 0, 0],
        Version::V5 => &[0x20, 6, 0, 0, 3, 0x22, 0, 3],
    };
    client.poll(NOW, &mut Input::new(connack), &mut out);
    Ok(client)
}

/// Nanoseconds to write a PUBLISH at QoS 0.
fn publish(version: Version, publish: &Publish<'_>) -> Result<f64, Failure> {
    let mut client = connected(version)?;
    let mut out = Vec::new();
    let started = cpu_ns();
    for token in 0..PACKETS {
        out.clear();
        client.publish(NOW, Token(token), black_box(publish), &mut out)?;
        black_box(&out);
    }
    Ok((cpu_ns() - started) / f64::from(PACKETS))
}

/// Nanoseconds to take the PUBACK of one of many publishes.
fn acknowledge(version: Version, publish: &Publish<'_>) -> Result<f64, Failure> {
    let mut client = connected(version)?;
    let (mut out, mut acks) = (Vec::new(), Vec::new());
    let (mut spent, mut taken, mut next_id) = (0.0, 0u32, 0u16);
    for _ in 0..PACKETS / WINDOW {
        out.clear();
        acks.clear();
        for token in 0..WINDOW {
            client.publish(NOW, Token(token), publish, &mut out)?;
            next_id = if next_id == u16::MAX { 1 } else { next_id + 1 };
            let [high, low] = next_id.to_be_bytes();
            acks.extend_from_slice(&[0x40, 2, high, low]);
        }
        let started = cpu_ns();
        let mut input = Input::new(&acks);
        while let Some(event) = client.poll(NOW, &mut input, &mut out) {
            black_box(event);
            taken += 1;
        }
        spent += cpu_ns() - started;
    }
    Ok(spent / f64::from(taken))
}

/// Nanoseconds to take a message at QoS 1 and to answer it.
fn receive(version: Version) -> Result<f64, Failure> {
    let mut client = connected(version)?;
    let (mut message, mut out) = (Vec::new(), Vec::new());
    let publish = packet::Publish {
        dup: false,
        qos: Qos::AtLeastOnce,
        retain: false,
        topic: TOPIC,
        packet_id: Some(7),
        properties: Properties::NONE,
        payload: &PAYLOAD,
    };
    Packet::Publish(publish).encode(version, &mut message)?;
    let started = cpu_ns();
    for _ in 0..PACKETS {
        out.clear();
        let mut input = Input::new(black_box(&message));
        black_box(client.poll(NOW, &mut input, &mut out));
    }
    Ok((cpu_ns() - started) / f64::from(PACKETS))
}

/// Nanoseconds this thread has been on a CPU (Linux, `proc_pid_schedstat(5)`); 0 elsewhere.
fn cpu_ns() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let first = text.split(' ').next();
    first.and_then(|ns| ns.parse().ok()).unwrap_or(0.0)
}
