//! Health of the generator itself, second by second.

use std::fmt;

use muster_model::Micros;
use serde::{Deserialize, Serialize};

/// The health of all processes of the generator over a run; [`GeneratorHealth::merge`] unites the
/// accounts of several.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct GeneratorHealth {
    /// Every device shard and consumer thread.
    pub threads: Vec<ThreadHealth>,
    /// Every host that carries a generator process; several processes of one host report it once.
    pub hosts: Vec<HostHealth>,
    /// Events that must not happen, in no particular order.
    pub incidents: Vec<Incident>,
}

impl GeneratorHealth {
    /// Adds another process's account.
    pub fn merge(&mut self, other: Self) {
        self.threads.extend(other.threads);
        for host in other.hosts {
            if !self.hosts.iter().any(|known| known.name == host.name) {
                self.hosts.push(host);
            }
        }
        self.incidents.extend(other.incidents);
    }
}

/// One thread of the generator that must keep up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ThreadHealth {
    /// Its name, unique over all processes, such as `shard 1` or `worker 2 consumer 0`.
    pub name: String,
    /// Task of the thread.
    pub role: ThreadRole,
    /// Its use, in order of time.
    pub windows: Vec<ThreadWindow>,
}

/// Task of a thread of the generator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ThreadRole {
    /// Drives devices: if it starves, messages are late.
    Shard,
    /// Drives backend consumers: if it starves, arrivals seem late.
    Consumer,
}

/// The use of one thread over about one second.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ThreadWindow {
    /// Instant at which the second ended.
    pub until: Micros,
    /// Time on CPU divided by time passed.
    pub cpu: f64,
    /// Time ready to run but waiting for a CPU (schedstat) divided by time passed; none where the
    /// kernel does not report it.
    pub waiting: Option<f64>,
}

/// One host that carries a generator process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HostHealth {
    /// Its name.
    pub name: String,
    /// The share of CPU time that the hypervisor gave to others, with the end of each second;
    /// empty where the host does not report it.
    pub steal: Vec<(Micros, f64)>,
}

/// Something that must not happen in the generator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Incident {
    /// Kind of the incident.
    pub kind: IncidentKind,
    /// Instant at which the incident began, or was first seen.
    pub from: Micros,
    /// Instant at which the incident was over; the same instant for what has no length.
    pub until: Micros,
    /// Number or amount: drops, descriptors, microseconds of a clock step.
    pub count: u64,
    /// Place, in a few words.
    pub detail: String,
}

/// The kinds of incident; all but [`IncidentKind::ConsumerLost`] make a run invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum IncidentKind {
    /// The kernel dropped what came in because our receive queue was full (`SO_RXQ_OVFL` of
    /// the datagrams read, `SO_MEMINFO` of the socket where none came after).
    ReceiveDrop,
    /// A bound of ours on descriptors, ports, buffers or another pool was reached.
    LimitReached,
    /// Our own consumer lost its session or partitions by our fault, and came back.
    ConsumerAway,
    /// The platform ended the session of our own consumer. It makes no run invalid.
    ConsumerLost,
    /// The clock was stepped.
    ClockStepped,
    /// The host was suspended.
    Suspended,
    /// A process of the generator died, and its account with it.
    ProcessLost,
}

impl IncidentKind {
    /// The validity rule that it breaks.
    pub const fn rule(self) -> &'static str {
        match self {
            Self::ReceiveDrop => "receive-drops",
            Self::LimitReached => "limits",
            Self::ConsumerAway => "own-consumer",
            Self::ConsumerLost => "consumer-lost",
            Self::ClockStepped | Self::Suspended => "clock",
            Self::ProcessLost => "processes",
        }
    }
}

impl fmt::Display for IncidentKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ReceiveDrop => "dropped in our receive queue",
            Self::LimitReached => "limit of the generator reached",
            Self::ConsumerAway => "our consumer was away",
            Self::ConsumerLost => "the platform ended our consumer's session",
            Self::ClockStepped => "clock stepped",
            Self::Suspended => "host suspended",
            Self::ProcessLost => "process of the generator lost",
        })
    }
}
