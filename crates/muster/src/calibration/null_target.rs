//! A run against a null target, from which the CPU of a message is read.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result, bail};
use muster_cluster::{Agents, Observer, Spread, Surroundings, assignments, carry_out};
use muster_conduct::{
    Incidents, Part, ProcessSample, Refused, RunData, Standing, Trial, timetable,
};
use muster_judge::{Cost, ThreadHealth, ThreadRole, ThreadWindow};
use muster_measure::WindowDelta;
use muster_model::{BackendId, Micros, RunId, StreamId, mix};
use muster_net::{Clock, limits};
use muster_plan::Plan;
use muster_scenario::needs;

use super::{Measured, StreamCost};
use crate::target::{self, Target};

/// The most messages that wait or are unanswered at once: each device has one.
const SLOTS: u32 = 65_536;
/// The most buffers for bytes that wait for sockets.
const BUFFERS: u32 = 16_384;
/// Farthest end of a sample of CPU from the end of the second that it stands for.
const SAMPLE_OFF_MAX: Micros = Micros::from_millis(400);

/// Carries out the plan of a calibration, with one shard, and derives the cost of a message, command or attempt of each
/// stream.
pub(super) fn measure(mut plan: Plan, turns: &[StreamId]) -> Result<Measured> {
    for backend in plan.backends.iter_mut().filter(|it| it.kind().listens) {
        backend.endpoint.port = free_port().context("find a port for the webhook")?;
    }
    let needs = needs(&plan);
    let addresses = target::resolve(&plan, Part::WHOLE)?;
    let mut target = Target::start(&mut plan, addresses, &needs, limits::raise_descriptors())?;
    let clock = Clock::start();
    let spread = Spread {
        run: RunId(mix(clock.t0_ns(), u64::from(std::process::id())) as u32),
        part: Part::WHOLE,
        clock,
        processes: 1,
        shards: 1,
        targets: target.addresses.devices.clone(),
        backends: target.addresses.backends.clone(),
        gateways: target.gateways(),
        trial: Trial {
            slots: SLOTS,
            buffers: BUFFERS,
            lost_copy: None,
        },
    };
    let Some(assignment) = assignments(&plan, &spread).pop() else {
        bail!("assign the devices: the plan has none");
    };
    let mut agents = Agents::here(assignment, None)?;
    let surroundings = Surroundings {
        interrupted: &AtomicBool::new(false),
        observer: &mut Nobody,
        channel: None,
    };
    let (data, _) = carry_out(&mut agents, timetable(&plan), &plan, clock, surroundings);
    drop(agents);
    let gateway_s: f64 = target.stop().used.cpu_s.values().sum();
    if data.timeline.measure == Micros::MAX {
        bail!("connect the links to the null target: {}", why(&data));
    }
    derive(&data, turns, gateway_s)
}

fn why(data: &RunData) -> String {
    let first = data.incidents.first();
    first.map_or("they did not come up".to_owned(), |incident| {
        format!("{:?}", incident.diagnostic)
    })
}

/// A port on which nobody listens now.
fn free_port() -> std::io::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(listener.local_addr()?.port())
}

/// Each stream's cost from the second in which it sent alone.
fn derive(data: &RunData, turns: &[StreamId], gateway_s: f64) -> Result<Measured> {
    let first = (data.timeline.measure + Plan::LEAD).second();
    let windows = &data.unkept;
    let messages = windows.uplinks.values().map(|window| window.flow.sent);
    let received = windows.commands.values().map(|of| of.counts.received);
    let all: u64 = messages.chain(received).sum();
    let gateway_us = gateway_s * 1e6 / all.max(1) as f64;
    let (mut streams, mut reached, mut waited) = (Vec::new(), 0_f64, 0_f64);
    for (second, &stream) in (first..).zip(turns) {
        let commands = commands(windows, stream, second);
        let sent = commands + sent(windows, stream, second);
        let share = |role, of| shares(data, role, second, of);
        let shards = share(ThreadRole::Shard, |window| window.cpu);
        let waits = share(ThreadRole::Shard, |window| window.waiting.unwrap_or(0.0));
        waited = waits.into_iter().fold(waited, f64::max);
        if sent == 0 || shards.is_empty() {
            bail!(
                "measure against the null target: stream {} had {sent} messages in its second",
                stream.index()
            );
        }
        reached = reached.max(sent as f64);
        let consumers = share(ThreadRole::Consumer, |window| window.cpu);
        let arrived = arrived(windows, second).filter(|_| commands == 0);
        let arrived = arrived.unwrap_or(sent as f64);
        let sum = |cpu: &[f64]| cpu.iter().sum::<f64>() * 1e6;
        let busiest = consumers.iter().copied().fold(0.0, f64::max) * 1e6;
        streams.push(StreamCost {
            stream,
            cost: Cost {
                shards_us: sum(&shards) / sent as f64,
                consumer_us: busiest / arrived,
                consumers_us: sum(&consumers) / arrived,
                gateway_us,
            },
            bytes: bytes(windows, stream),
        });
    }
    Ok(Measured {
        streams,
        reached,
        waited,
    })
}

fn sent(windows: &WindowDelta, stream: StreamId, second: u32) -> u64 {
    let windows = windows.uplinks_of(stream);
    let in_second = windows.filter(|(key, _)| key.second == second);
    in_second.map(|(_, window)| window.flow.sent).sum()
}

/// Commands of a stream that devices received in a second; they wait for nothing else.
fn commands(windows: &WindowDelta, stream: StreamId, second: u32) -> u64 {
    let in_second = windows.commands.iter();
    let in_second = in_second.filter(|((of, key), _)| *of == stream && key.second == second);
    in_second.map(|(_, window)| window.counts.received).sum()
}

/// Messages of a second that surfaced, on the average of the backends; none if none did.
fn arrived(windows: &WindowDelta, second: u32) -> Option<f64> {
    let in_second = windows.arrivals.iter();
    let in_second = in_second.filter(|((_, _, key), _)| key.second == second);
    let arrived: u64 = in_second.map(|(_, window)| window.arrived).sum();
    let backends = windows.arrivals.keys().map(|(backend, _, _)| *backend);
    let backends = backends
        .max()
        .map_or(0, |BackendId(last)| u32::from(last) + 1);
    (arrived > 0).then(|| arrived as f64 / f64::from(backends))
}

/// Bytes of the protocol for one message of a stream.
fn bytes(windows: &WindowDelta, stream: StreamId) -> f64 {
    let (mut bytes, mut handed) = (0, 0);
    for (_, window) in windows.uplinks_of(stream) {
        bytes += window.counts.session.bytes_wire;
        handed += window.counts.handed;
    }
    bytes as f64 / handed.max(1) as f64
}

/// A share of a second of each thread with this role.
fn shares(data: &RunData, role: ThreadRole, second: u32, of: fn(&ThreadWindow) -> f64) -> Vec<f64> {
    let end = Micros::from_secs(u64::from(second) + 1);
    let off = |until: Micros| until.max(end) - until.min(end);
    let share = |thread: &ThreadHealth| {
        let windows = thread.windows.iter();
        let nearest = windows.min_by_key(|window| off(window.until))?;
        (off(nearest.until) <= SAMPLE_OFF_MAX).then(|| of(nearest))
    };
    let threads = data.health.threads.iter();
    threads
        .filter(|thread| thread.role == role)
        .filter_map(share)
        .collect()
}

/// Keeps nothing: the windows remain in the data of the run.
struct Nobody;

impl Observer for Nobody {
    fn windows(&mut self, _: &WindowDelta) -> bool {
        false
    }

    fn refused(&mut self, _: &[Refused]) {}

    fn process_sample(&mut self, _: usize, _: &ProcessSample) {}

    fn incident(&mut self, _: &Incidents) {}

    fn standing(&mut self, _: &Standing) {}
}
