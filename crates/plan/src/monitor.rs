//! Parts of the target that are watched while a run goes on.

use muster_model::Micros;

use crate::{Selector, WebAddress};

/// One entry of `monitor`.
#[derive(Debug, Clone, PartialEq)]
pub struct MonitorPlan {
    /// Its name in the result.
    pub name: String,
    /// The part of the target that it watches.
    pub watched: Watched,
    /// Interval of its samples.
    pub every: Micros,
    /// The value at which its resource runs out; of a process or cgroup its memory in bytes.
    pub limit: Option<f64>,
}

/// A part of the target.
#[derive(Debug, Clone, PartialEq)]
pub enum Watched {
    /// A page of the platform's own counters, which is read before and after the load, never over TLS.
    Counters(WebAddress),
    /// The embedded gateway.
    Gateway,
    /// A process by its name or id, with its child processes.
    Process(String),
    /// A cgroup by its folder.
    Cgroup(String),
    /// Figures of a page that Prometheus would read.
    Page(PagePlan),
    /// A command of the shell that prints a number.
    Command(String),
}

/// Figures of a page in the text format of Prometheus.
#[derive(Debug, Clone, PartialEq)]
pub struct PagePlan {
    /// Its address, never over TLS.
    pub url: WebAddress,
    /// Its figures by their names, at least one.
    pub series: Vec<PageSeries>,
}

/// One figure of a page: the sum of the samples that are selected.
#[derive(Debug, Clone, PartialEq)]
pub struct PageSeries {
    /// Its name in the result.
    pub name: String,
    /// The samples.
    pub selector: Selector,
    /// True if the figure is the growth per second of a counter.
    pub is_rate: bool,
    /// The value at which it runs out.
    pub limit: Option<f64>,
}

impl MonitorPlan {
    /// The page of counters that it names.
    pub const fn counters(&self) -> Option<&WebAddress> {
        match &self.watched {
            Watched::Counters(page) => Some(page),
            Watched::Gateway
            | Watched::Process(_)
            | Watched::Cgroup(_)
            | Watched::Page(_)
            | Watched::Command(_) => None,
        }
    }
}
