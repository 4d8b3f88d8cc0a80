//! Assigns shares of a run to processes.

use std::net::SocketAddr;

use muster_agent::Assignment;
use muster_conduct::{Part, Trial};
use muster_model::{BackendId, ConsumerId, RunId};
use muster_net::Clock;
use muster_plan::Plan;
use muster_platform::Protocol;

/// Spread of a run over processes and threads.
#[derive(Debug, Clone)]
pub struct Spread {
    /// Its id.
    pub run: RunId,
    /// The share of the run that this machine carries.
    pub part: Part,
    /// The clock that all processes share.
    pub clock: Clock,
    /// Processes; 1 means this one alone.
    pub processes: u32,
    /// Device shards of each process.
    pub shards: u32,
    /// Addresses for devices, each with the protocol of its devices.
    pub targets: Vec<(Protocol, SocketAddr)>,
    /// Addresses for each backend's consumers; the index is the `BackendId`.
    pub backends: Vec<Vec<SocketAddr>>,
    /// The processes of an embedded gateway on this host, whose CPU wait counts as our own.
    pub gateways: Vec<u32>,
    /// Settings that only tests use.
    pub trial: Trial,
}

/// One assignment a process. Consumers are dealt out one by one over the parts, and those of this part
/// over its processes, however many the others have.
pub fn assignments(plan: &Plan, spread: &Spread) -> Vec<Assignment> {
    let mine = own_consumers(plan, spread);
    let processes = spread.processes.max(1);
    let assignment = |index: u32| {
        let links = spread.part.links;
        let dealt = (0u32..)
            .zip(&mine)
            .filter(|(number, _)| number % processes == index);
        Assignment {
            name: match processes {
                1 => String::new(),
                _ => format!("worker {index}"),
            },
            plan: plan.clone(),
            run: spread.run,
            slice: links.map(|slice| slice.part(index, processes)),
            t0_ns: spread.clock.t0_ns(),
            wall_ms_at_t0: spread.clock.wall_ms_at_t0(),
            shards: spread.shards,
            targets: spread.targets.clone(),
            consumers: dealt.map(|(_, consumer)| *consumer).collect(),
            gateways: spread.gateways.clone(),
            trial: spread.trial,
        }
    };
    (0..processes).map(assignment).collect()
}

/// The consumers of this part. All have numbers over the whole run: each of every backend, at each
/// of its addresses.
fn own_consumers(plan: &Plan, spread: &Spread) -> Vec<((BackendId, ConsumerId), SocketAddr)> {
    let Some(slice) = spread.part.consumers else {
        return Vec::new();
    };
    let backends = (0u8..).zip(&plan.backends).zip(&spread.backends);
    let all = backends.flat_map(|((id, backend), targets)| {
        let repeated = |target| std::iter::repeat_n(target, backend.consumers as usize);
        let targets = targets.iter().flat_map(repeated);
        targets.map(move |target| (BackendId(id), *target))
    });
    let numbered = (0u16..).zip(all);
    let mine = numbered.filter(|(number, _)| u32::from(*number) % slice.of == slice.index);
    mine.map(|(number, (backend, target))| ((backend, ConsumerId(number)), target))
        .collect()
}

#[cfg(test)]
mod tests {
    use muster_conduct::Slice;
    use muster_scenario::{NoFiles, Overrides, Source, parse};

    use super::*;

    #[test]
    fn each_link_and_each_consumer_is_carried_once_however_many_processes_a_part_has() {
        let dealt = |part: &str, processes: u32| {
            let text = "name: parts\nplatform: { kind: mqtt, devices: [ \"mqtt://127.0.0.1:1\" ], \
                        backend: { url: \"mqtt://127.0.0.1:1\", consumers: 2, shared: s } }\n\
                        fleet: [ { count: 10, streams: [ { rate: 1/s } ] } ]\nphases: { measure: 1s }\n";
            let (name, part) = ("parts.yaml", part.parse().expect("a part"));
            let plan =
                parse(Source { name, text }, &Overrides::new(), &NoFiles).expect("a scenario");
            let target = SocketAddr::from(([127, 0, 0, 1], 1));
            let spread = Spread {
                part,
                backends: vec![vec![target]],
                ..spread(Clock::at_wall(1_600_000_000_123), processes)
            };
            let assignments = assignments(&plan, &spread);
            let consumers = assignments
                .iter()
                .map(|one| one.consumers.len())
                .sum::<usize>();
            let links = |slice: Slice| slice.cut(0, 10).len();
            let links = assignments
                .iter()
                .filter_map(|one| one.slice.map(links))
                .sum::<usize>();
            (links, consumers)
        };
        for processes in [1, 2, 3] {
            assert_eq!(dealt("devices", processes), (10, 0));
            assert_eq!(dealt("backend", processes), (0, 2));
            assert_eq!(dealt("1/2", processes), (5, 1));
            assert_eq!(dealt("2/2", processes), (5, 1));
            assert_eq!(dealt("devices:2/2", processes), (5, 0));
        }
    }

    fn spread(clock: Clock, processes: u32) -> Spread {
        Spread {
            run: RunId(1),
            part: Part::WHOLE,
            clock,
            processes,
            shards: 1,
            targets: Vec::new(),
            backends: Vec::new(),
            gateways: Vec::new(),
            trial: Trial {
                slots: 10,
                buffers: 10,
                lost_copy: None,
            },
        }
    }

    #[test]
    fn every_process_has_the_same_clock_on_the_wall_too() {
        let source = Source {
            name: "spread.yaml",
            text: "name: spread\nfleet: [ { count: 10 } ]\n",
        };
        let plan = parse(source, &Overrides::new(), &NoFiles).expect("a scenario");
        let clock = Clock::at_wall(1_600_000_000_123);
        let spread = spread(clock, 3);
        for assignment in assignments(&plan, &spread) {
            let theirs = Clock::agreed(assignment.t0_ns, assignment.wall_ms_at_t0);
            assert_eq!(theirs, clock);
        }
    }
}
