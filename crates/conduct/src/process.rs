//! Reports of a generator process on itself.

use muster_judge::{GeneratorHealth, Incident};
use muster_model::Micros;
use serde::{Deserialize, Serialize};

/// Health of a process over the last second.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProcessSample {
    /// Its instant.
    pub at: Micros,
    /// Each shard and consumer thread.
    pub threads: Vec<ThreadSample>,
    /// Resident set in bytes.
    pub rss_bytes: u64,
    /// Share of CPU time that the hypervisor gave to others, 0 to 1; none if it is unknown.
    pub steal: Option<f64>,
    /// Incidents since the process began.
    pub incidents: Vec<Incident>,
}

impl ProcessSample {
    /// Becomes the sample of this time and of a later one together: the worse of both.
    pub fn worsen(&mut self, later: Self) {
        for (thread, after) in self.threads.iter_mut().zip(later.threads) {
            thread.cpu = thread.cpu.max(after.cpu);
            thread.wait = thread.wait.max(after.wait);
        }
        self.at = later.at;
        self.rss_bytes = self.rss_bytes.max(later.rss_bytes);
        self.steal = match (self.steal, later.steal) {
            (Some(before), Some(after)) => Some(before.max(after)),
            (before, after) => before.or(after),
        };
        self.incidents = later.incidents;
    }
}

/// Health of one thread; shares are 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ThreadSample {
    /// True if it drives consumers rather than devices.
    pub is_consumer: bool,
    /// Time on a CPU.
    pub cpu: f64,
    /// Time ready to run but waiting for a CPU.
    pub wait: f64,
}

/// Final figures of a process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Afterlife {
    /// Its health, second by second.
    pub health: GeneratorHealth,
    /// CPU time of the whole process, in microseconds.
    pub cpu_us: u64,
    /// CPU time of its device shards, in microseconds.
    pub shards_cpu_us: u64,
    /// CPU time of its consumer threads, in microseconds.
    pub consumers_cpu_us: u64,
    /// Peak of the resident set, in bytes.
    pub peak_rss_bytes: u64,
    /// Anonymous memory of its links at the end, in bytes: the growth since before the first link.
    pub links_bytes: u64,
    /// Number of its devices.
    pub devices: u64,
}
