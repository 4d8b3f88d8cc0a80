//! Who carries which share of a run.

use std::net::SocketAddr;

use muster_agent::Assignment;
use muster_conduct::Slice;
use muster_model::{BackendId, ConsumerId, RunId};
use muster_scenario::Plan;

/// How a run is spread over processes and threads.
#[derive(Debug, Clone)]
pub struct Spread {
    /// Which run it is.
    pub run: RunId,
    /// The share of the run that this machine carries.
    pub part: Slice,
    /// T0 as a raw reading of `CLOCK_MONOTONIC`, in nanoseconds.
    pub t0_ns: u64,
    /// Processes; 1 means this one alone.
    pub processes: u32,
    /// Device shards of each process.
    pub shards: u32,
    /// Where devices connect.
    pub targets: Vec<SocketAddr>,
    /// Where each backend's consumers connect; the index is the `BackendId`.
    pub backends: Vec<Vec<SocketAddr>>,
    /// The most messages that may be waiting or unanswered at once on one shard.
    pub slot_limit: u32,
}

/// One assignment a process. Consumers are dealt out one by one over all processes of all parts.
#[must_use]
pub fn assignments(plan: &Plan, spread: &Spread) -> Vec<Assignment> {
    let seats = seats(plan, spread);
    let processes = spread.processes.max(1);
    let assignment = |index: u32| {
        let slice = spread.part.part(index, processes);
        let dealt = (0u32..)
            .zip(&seats)
            .filter(|(seat, _)| seat % slice.of == slice.index);
        Assignment {
            name: if processes == 1 {
                String::new()
            } else {
                format!("worker {index}")
            },
            plan: plan.clone(),
            run: spread.run,
            slice,
            t0_ns: spread.t0_ns,
            shards: spread.shards,
            targets: spread.targets.clone(),
            seats: dealt.map(|(_, seat)| *seat).collect(),
            slot_limit: spread.slot_limit,
        }
    };
    (0..processes).map(assignment).collect()
}

/// Every consumer of every backend at each of its addresses, numbered over the whole run.
fn seats(plan: &Plan, spread: &Spread) -> Vec<(BackendId, ConsumerId, SocketAddr)> {
    let mut seats = Vec::new();
    let backends = (0u8..).zip(&plan.backends).zip(&spread.backends);
    for ((id, backend), targets) in backends {
        for target in targets {
            for _ in 0..backend.consumers {
                let number = ConsumerId(seats.len() as u16);
                seats.push((BackendId(id), number, *target));
            }
        }
    }
    seats
}
