//! Memory that a hundred million messages leave behind: `cargo run --release -p muster-measure
//! --example compact`.
//!
//! 10,000 devices send 10,000 messages each. One of a hundred times out and one of a hundred is lost,
//! at random, and the others are accepted and arrive, most in order. A flush a second is included. Memory is
//! the anonymous part of the resident set (`RssAnon`).

use std::io::Write;

use muster_measure::{
    Bounds, Cold, FleetTrack, PublishedPlan, Recorder, RecorderPlan, Role, StreamTrack,
};
use muster_model::{
    Arrival, Attempt, BackendId, ConsumerId, DeviceId, FleetId, Integrity, LinkId, MessageId,
    Micros, Outcome, RunId, StreamId, mix,
};

const DEVICES: u32 = 10_000;
const EACH: u32 = 10_000;
/// Messages of a second.
const RATE: u64 = 20_000;

fn main() -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    let mut recorder = Recorder::new(plan());
    recorder.start(Micros::ZERO);
    let before = anonymous_bytes()?;
    for seq in 0..EACH {
        for device in 0..DEVICES {
            message(&mut recorder, device, seq);
        }
        if (seq + 1).is_multiple_of(EACH / 10) {
            let messages = u64::from(seq + 1) * u64::from(DEVICES);
            let bytes = anonymous_bytes()?.saturating_sub(before);
            writeln!(
                out,
                "{messages} messages: {:.1} MiB, {:.2} bits a message",
                bytes as f64 / f64::from(1 << 20),
                bytes as f64 * 8.0 / messages as f64
            )?;
        }
    }
    drop(recorder.finish());
    Ok(())
}

fn message(recorder: &mut Recorder, device: u32, seq: u32) {
    let n = u64::from(seq) * u64::from(DEVICES) + u64::from(device);
    let due = Micros(n * 1_000_000 / RATE);
    let id = MessageId {
        run: RunId(1),
        device: DeviceId(device),
        stream: StreamId(0),
        seq,
    };
    let (dice, took) = (mix(1, n) % 100, Micros(mix(2, n) % 8_000));
    recorder.attempt(&Attempt {
        id,
        due,
        taken: Some(due),
        sent: Some(due),
        ended: due + took,
        outcome: if dice == 0 {
            Outcome::TimedOut
        } else {
            Outcome::Accepted
        },
        resent: false,
        own: Micros::ZERO,
    });
    if dice != 1 {
        recorder.copies(BackendId(0), due + took).consumed += 1;
        recorder.arrival(&Arrival {
            id: Some(id),
            due: Some(due),
            seen: due + took,
            backend: BackendId(0),
            consumer: ConsumerId(0),
            integrity: Integrity::Intact,
            own: Micros::ZERO,
        });
    }
    if (n + 1).is_multiple_of(RATE) {
        drop(recorder.flush(due));
    }
}

/// `RssAnon` of this process, in bytes.
fn anonymous_bytes() -> std::io::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kib.map(|kib| kib * 1_024)
        .ok_or_else(|| std::io::Error::other("status has no RssAnon"))
}

fn plan() -> RecorderPlan {
    RecorderPlan {
        run: RunId(1),
        warm_up: Micros::ZERO,
        measure: Micros::from_secs(u64::from(DEVICES) * u64::from(EACH) / RATE),
        streams: vec![StreamTrack {
            fleet: FleetId(0),
            first_device: DeviceId(0),
            devices: DEVICES,
            most_per_device: EACH,
            role: Role::Uplink,
            answers: true,
            closed: None,
            by_order: false,
            deadline: None,
            bounds: Bounds::default(),
        }],
        fleets: vec![FleetTrack {
            first_link: LinkId(0),
            links: DEVICES,
            devices_per_link: 1,
        }],
        backends: 1,
        store: None,
        cold: Cold::Nothing,
        groups: Vec::new(),
        published: PublishedPlan::Nothing,
    }
}
