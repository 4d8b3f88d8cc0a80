//! Cost of recording: `cargo run --release -p muster-measure --example cost`.
//!
//! Every message is accepted after a few milliseconds and arrives once. The own account, the
//! Attempt, the Arrival, ids, windows and histograms are all on, and a flush a second is included.
//! Time is time on the CPU, from `/proc/thread-self/schedstat`, so that a busy machine does not
//! spoil it.

use std::io::Write;

use muster_measure::{
    Account, Bounds, Cold, FleetTrack, PublishedPlan, Recorder, RecorderPlan, Role, StreamTrack,
    WindowDelta,
};
use muster_model::{
    Arrival, Attempt, BackendId, ConsumerId, DeviceId, FleetId, Integrity, LinkId, MessageId,
    Micros, Outcome, RunId, StreamId, mix,
};

const RATE: u64 = 20_000;
const SECONDS: u64 = 60;
const REPETITIONS: usize = 5;

fn main() -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    for devices in [5_000, 19_000, 1_000_000] {
        let mut costs = (0..REPETITIONS)
            .map(|_| cost(devices))
            .collect::<Result<Vec<_>, _>>()?;
        costs.sort_by(f64::total_cmp);
        let median = costs[REPETITIONS / 2];
        writeln!(
            out,
            "{devices} devices: {median:.0} ns a message (CPU, median of {REPETITIONS})"
        )?;
    }
    Ok(())
}

/// Nanoseconds a message.
fn cost(devices: u32) -> std::io::Result<f64> {
    let plan = plan(devices);
    let mut account = Account::new(&plan);
    let mut recorder = Recorder::new(plan);
    let mut windows = WindowDelta::default();
    recorder.start(Micros::ZERO);
    let started = on_cpu_ns()?;
    for second in 0..SECONDS {
        for place in 0..RATE {
            message(second * RATE + place, devices, &mut account, &mut recorder);
        }
        windows
            .progress
            .merge(&recorder.flush(Micros::from_secs(second)).progress);
    }
    let took = on_cpu_ns()? - started;
    assert_eq!(windows.progress.expected.count, RATE * SECONDS);
    assert_eq!(windows.progress.arrived[0], windows.progress.expected);
    Ok(took as f64 / (RATE * SECONDS) as f64)
}

/// Nanoseconds this thread has been on a CPU.
fn on_cpu_ns() -> std::io::Result<u64> {
    let line = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let first = line
        .split_whitespace()
        .next()
        .and_then(|word| word.parse().ok());
    first.ok_or_else(|| std::io::Error::other("schedstat begins with no number"))
}

fn message(n: u64, devices: u32, account: &mut Account, recorder: &mut Recorder) {
    let due = Micros(n * 1_000_000 / RATE);
    let id = MessageId {
        run: RunId(1),
        device: DeviceId((n % u64::from(devices)) as u32),
        stream: StreamId(0),
        seq: (n / u64::from(devices)) as u32,
    };
    let taken = due + Micros(mix(1, n) % 100);
    let sent = taken + Micros(mix(2, n) % 50);
    let ended = sent + Micros(mix(3, n) % 8_000);
    account.sent(&id);
    account.ended(&id, &Outcome::Accepted, false);
    recorder.attempt(&Attempt {
        id,
        due,
        taken: Some(taken),
        sent: Some(sent),
        ended,
        outcome: Outcome::Accepted,
        resent: false,
        own: Micros::ZERO,
    });
    recorder.counts(StreamId(0), sent).session.bytes_payload += 100;
    account.consumed(BackendId(0));
    account.read(BackendId(0), Some(&id), Integrity::Intact);
    recorder.copies(BackendId(0), ended).consumed += 1;
    recorder.arrival(&Arrival {
        id: Some(id),
        due: Some(due),
        seen: ended,
        backend: BackendId(0),
        consumer: ConsumerId(0),
        integrity: Integrity::Intact,
        own: Micros::ZERO,
    });
}

fn plan(devices: u32) -> RecorderPlan {
    RecorderPlan {
        run: RunId(1),
        warm_up: Micros::ZERO,
        measure: Micros::from_secs(SECONDS),
        streams: vec![StreamTrack {
            fleet: FleetId(0),
            first_device: DeviceId(0),
            devices,
            most_per_device: u32::MAX,
            role: Role::Uplink,
            answers: true,
            closed: None,
            by_order: false,
            deadline: None,
            bounds: Bounds {
                response: vec![Micros::from_millis(250)],
                end_to_end: vec![Micros::from_secs(1)],
                ..Bounds::default()
            },
        }],
        fleets: vec![FleetTrack {
            first_link: LinkId(0),
            links: devices,
            devices_per_link: 1,
        }],
        backends: 1,
        store: None,
        cold: Cold::Nothing,
        groups: Vec::new(),
        published: PublishedPlan::Nothing,
    }
}
