//! Commands that a run starts.

use muster_measure::Phase;
use muster_model::Micros;

/// One command of the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookPlan {
    /// Its name in the result.
    pub name: String,
    /// The command, for the shell.
    pub command: String,
    /// The time to start it.
    pub when: HookTime,
    /// The longest time for it; then it is ended.
    pub timeout: Micros,
}

/// The time to start a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookTime {
    /// Before the first link opens.
    Before,
    /// A time after the begin of a phase.
    In {
        /// The phase.
        phase: Phase,
        /// The time.
        after: Micros,
    },
    /// After settling.
    After,
}
