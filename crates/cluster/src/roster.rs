//! Who carries which share of a run.

use std::net::SocketAddr;

use muster_agent::Assignment;
use muster_conduct::{Slice, Trial};
use muster_model::{BackendId, ConsumerId, RunId};
use muster_net::Clock;
use muster_scenario::Plan;

/// How a run is spread over processes and threads.
#[derive(Debug, Clone)]
pub struct Spread {
    /// Which run it is.
    pub run: RunId,
    /// The share of the run that this machine carries.
    pub part: Slice,
    /// The clock that all processes share.
    pub clock: Clock,
    /// Processes; 1 means this one alone.
    pub processes: u32,
    /// Device shards of each process.
    pub shards: u32,
    /// Where devices connect.
    pub targets: Vec<SocketAddr>,
    /// Where each backend's consumers connect; the index is the `BackendId`.
    pub backends: Vec<Vec<SocketAddr>>,
    /// What only tests set.
    pub trial: Trial,
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
            t0_ns: spread.clock.t0_ns(),
            wall_ms_at_t0: spread.clock.wall_ms_at_t0(),
            shards: spread.shards,
            targets: spread.targets.clone(),
            seats: dealt.map(|(_, seat)| *seat).collect(),
            trial: spread.trial,
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

#[cfg(test)]
mod tests {
    use muster_scenario::{NoFiles, Overrides, Source, parse};

    use super::*;

    #[test]
    fn every_process_has_the_same_clock_on_the_wall_too() {
        let source = Source {
            name: "spread.yaml",
            text: "name: spread\nfleet: [ { count: 10 } ]\n",
        };
        let plan = parse(source, &Overrides::new(), &NoFiles).expect("a scenario");
        let clock = Clock::at_wall(1_600_000_000_123);
        let spread = Spread {
            run: RunId(1),
            part: Slice::WHOLE,
            clock,
            processes: 3,
            shards: 1,
            targets: Vec::new(),
            backends: Vec::new(),
            trial: Trial {
                slots: 10,
                buffers: 10,
                lost_copy: None,
            },
        };
        for assignment in assignments(&plan, &spread) {
            let theirs = Clock::agreed(assignment.t0_ns, assignment.wall_ms_at_t0);
            assert_eq!(theirs, clock);
        }
    }
}
