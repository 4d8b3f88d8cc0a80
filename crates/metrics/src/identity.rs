//! The run that figures belong to.

use crate::snapshot::Point;
use crate::table;

/// The run that figures belong to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Identity {
    /// The run's id as eight hexadecimal digits.
    pub run: String,
    /// The scenario's name.
    pub scenario: String,
    /// The destination of the load.
    pub target: String,
    /// The part of the run that this process carries; empty for the whole run.
    pub part: String,
    /// Name of this machine.
    pub host: String,
    /// Wall clock at T0, in milliseconds since the Unix epoch.
    pub began_ms: u64,
}

/// Version of this program.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

impl Identity {
    /// Names and values that each series of a push carries, so that runs stay apart.
    pub(crate) fn tags(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let all = [
            ("run", self.run.as_str()),
            ("scenario", self.scenario.as_str()),
            ("part", self.part.as_str()),
        ];
        all.into_iter().filter(|(_, value)| !value.is_empty())
    }

    /// The same as a metric, for a system whose series carry only their own labels.
    pub(crate) fn point(&self) -> Point {
        let (run, scenario, target) = (&self.run, &self.scenario, &self.target);
        let labels: [&str; 5] = [run, scenario, target, VERSION, &self.part];
        Point::count(&table::RUN_INFO, &labels, 1)
    }
}
