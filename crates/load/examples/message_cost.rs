//! Cost of a message before it reaches a session: `cargo run --release -p muster-load --example
//! message_cost`.
//!
//! Enumerates a schedule with a cursor and renders each payload, on one thread. Also measures
//! the cost of asking for due instants in any order, as a consumer does for messages whose stamp
//! leaves them out. Costs are CPU time of the thread, so that a busy machine disturbs them little.

use std::hint::black_box;
use std::io::Write;
use std::sync::Arc;

use muster_load::{
    Cursor, HoldRate, Payload, PayloadSpec, Phase, Recall, Schedule, ScheduleSpec, Scope, Shape,
    StreamSchedule,
};
use muster_model::{DeviceId, MessageId, Micros, Rate, RunId, StreamId, mix};

const MESSAGES: u64 = 2_000_000;
const REPETITIONS: usize = 5;
const JSON: &str = r#"{"ts":${due_ms},"temperature":${normal:20:3},"device":"${id}","seq":${seq},"id":"${stamp}"}"#;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    let size = PayloadSpec::Size(100);
    let json = PayloadSpec::Template(JSON.to_owned());
    let rate = Rate::per_second(20_000.0).unwrap_or_default();
    let sine = Shape::Sine {
        from: Rate::ZERO,
        to: rate,
        period: Micros::from_secs(10),
    };
    for (name, spec, payload) in [
        (
            "constant, even, 100 bytes",
            spec(Shape::Constant, Phase::Even, false),
            &size,
        ),
        (
            "constant, hash, 100 bytes",
            spec(Shape::Constant, Phase::Hash, false),
            &size,
        ),
        (
            "sine, hash, 100 bytes",
            spec(sine, Phase::Hash, false),
            &size,
        ),
        (
            "poisson, hash, 100 bytes",
            spec(Shape::Constant, Phase::Hash, true),
            &size,
        ),
        (
            "constant, hash, JSON",
            spec(Shape::Constant, Phase::Hash, false),
            &json,
        ),
    ] {
        let schedule = Arc::new(StreamSchedule::new(spec)?);
        let payload = Payload::compile(payload)?;
        let whole = median(|| visit(&schedule, 0..u32::MAX, &payload));
        let half = median(|| visit(&schedule, 0..500_000, &payload));
        let asked = median(|| ask(&schedule));
        let recalled = median(|| recall(&schedule));
        writeln!(
            out,
            "{name}: {whole:.0} ns a message, {half:.0} ns in one of two parts, due({{n}}) {asked:.0} ns, recalled {recalled:.0} ns"
        )?;
    }
    Ok(())
}

fn spec(shape: Shape, phase: Phase, poisson: bool) -> ScheduleSpec {
    ScheduleSpec {
        shape,
        rate: Rate::per_second(20_000.0).unwrap_or_default(),
        phase,
        hold_rate: HoldRate::default(),
        poisson,
        first_device: DeviceId(0),
        devices: 1_000_000,
        limit_per_device: None,
        warm_up: Micros::ZERO,
        measure: Micros::from_secs(1_000),
        seed: 1,
    }
}

fn median(mut cost: impl FnMut() -> f64) -> f64 {
    let mut costs: Vec<f64> = (0..REPETITIONS).map(|_| cost()).collect();
    costs.sort_by(f64::total_cmp);
    costs[REPETITIONS / 2]
}

/// Nanoseconds to enumerate and render one message.
fn visit(schedule: &Arc<StreamSchedule>, devices: std::ops::Range<u32>, payload: &Payload) -> f64 {
    let cursor = Cursor::new(Arc::clone(schedule), devices);
    let mut bytes = Vec::with_capacity(256);
    let mut rendered = 0u64;
    let started = cpu_ns();
    for due in cursor.take(MESSAGES as usize) {
        let id = MessageId {
            run: RunId(1),
            device: due.device,
            stream: StreamId(0),
            seq: due.seq,
        };
        let scope = Scope {
            seed: 1,
            id,
            due: due.due,
            wall_ms_at_t0: 1_700_000_000_000,
            name: "meter-00000042",
            index: due.device.0,
            tenant: "t1",
            columns: None,
            unique: None,
        };
        bytes.clear();
        black_box(payload.render(&scope, &mut bytes));
        black_box(&bytes);
        rendered += 1;
    }
    (cpu_ns() - started) / rendered as f64
}

/// Nanoseconds to ask for one due instant out of order.
fn ask(schedule: &StreamSchedule) -> f64 {
    let asked = MESSAGES / 20;
    let started = cpu_ns();
    for question in 0..asked {
        black_box(schedule.due(mix(3, question) % schedule.count()));
    }
    (cpu_ns() - started) / asked as f64
}

/// Nanoseconds to ask for one due instant by id, up to 200 messages out of order.
fn recall(schedule: &Arc<StreamSchedule>) -> f64 {
    let asked = MESSAGES / 4;
    let mut recall = Recall::new(Arc::clone(schedule));
    let started = cpu_ns();
    for question in 0..asked {
        let (device, seq) = schedule.owner(question + mix(3, question) % 200);
        black_box(recall.due(device, seq));
    }
    (cpu_ns() - started) / asked as f64
}

/// Nanoseconds this thread has been on a CPU (Linux, `proc_pid_schedstat(5)`); 0 elsewhere.
fn cpu_ns() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ')
        .next()
        .and_then(|ns| ns.parse().ok())
        .unwrap_or(0.0)
}
