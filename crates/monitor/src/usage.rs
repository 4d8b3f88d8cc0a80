//! Resources of the target, sampled over time.

mod cgroup;
mod counters;
mod find;
mod growth;
mod page;
mod process;

use muster_model::{Micros, Resource, ResourceUnit};
use thiserror::Error;

use crate::page::PageError;
use crate::reread::MonitorError;

pub use cgroup::CgroupUsage;
pub use counters::CounterUsage;
pub use growth::Growth;
pub use page::PageUsage;
pub use process::ProcessUsage;

/// Something of the target whose resources are sampled.
pub trait UsageSource: Send {
    /// Its resources, in the order of the values of a sample.
    fn resources(&self) -> &[Resource];

    /// Its values at an instant of the run; none where a value is not known, as a rate in the first sample.
    ///
    /// # Errors
    /// [`UsageError`] if nothing could be read. [`UsageError::is_final`] says if nothing will be again.
    fn sample(&mut self, now: Micros) -> Result<Vec<Option<f64>>, UsageError>;
}

/// Reasons for which resources cannot be read.
#[derive(Debug, Error)]
pub enum UsageError {
    /// No process has the name.
    #[error(
        "no process is named `{wanted}`; there are {running}; start it, or name another one or its id"
    )]
    NoProcess {
        /// The name or id.
        wanted: String,
        /// Names of processes that run.
        running: String,
    },
    /// Several processes that do not belong together have the name.
    #[error(
        "{count} processes are named `{wanted}`: {found}; name one of them by its id, or their cgroup"
    )]
    SeveralProcesses {
        /// The name.
        wanted: String,
        /// Their number.
        count: usize,
        /// Their ids and programs.
        found: String,
    },
    /// A folder that is no cgroup of version 2.
    #[error(
        "{folder} is no cgroup of version 2 (it has no `cpu.stat`); name the folder of one, absolute or below {root}"
    )]
    NoCgroup {
        /// The folder.
        folder: String,
        /// The folder of all cgroups.
        root: &'static str,
    },
    /// A file of the kernel that cannot be read.
    #[error(transparent)]
    File(#[from] MonitorError),
    /// A page that cannot be read.
    #[error(transparent)]
    Page(#[from] PageError),
    /// A page without a wanted sample.
    #[error("read {url}: it has no sample of {series}; compare `series` with the page")]
    NoSample {
        /// Its address.
        url: String,
        /// The figures that have none.
        series: String,
    },
    /// A command that failed or printed no number.
    #[error("{0}")]
    Command(String),
    /// The process or cgroup is gone.
    #[error("{0} ended")]
    Ended(String),
}

impl UsageError {
    /// True if nothing can be read from then on.
    pub const fn is_final(&self) -> bool {
        matches!(self, Self::Ended(_))
    }
}

/// The resources of a process or a cgroup: its own, with their units and limits, and its traffic with disks and, if it
/// can be read, networks.
fn resources(
    entry: &str,
    own: &[(&str, ResourceUnit, Option<f64>)],
    has_network: bool,
) -> Vec<Resource> {
    let rate = |name| (name, ResourceUnit::BytesPerSecond, None);
    let disks = ["read", "written"].map(rate);
    let networks = ["received", "sent"].map(rate);
    let networks = networks.into_iter().filter(|_| has_network);
    let all = own.iter().copied().chain(disks).chain(networks);
    let resources = all.map(|(name, unit, limit)| Resource {
        entry: entry.to_owned(),
        name: name.to_owned(),
        unit,
        limit,
    });
    resources.collect()
}
