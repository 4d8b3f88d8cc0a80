//! A run as it stands, and all that it leaves behind.

use muster_judge::{GeneratorHealth, Stop};
use muster_measure::{Account, Identity, Timeline, WindowDelta};
use muster_model::{Listening, Micros};

use crate::{Afterlife, Diagnostic, Ending, Phase, Progress};

/// How a run stands.
#[derive(Debug, Clone, Copy)]
pub struct Standing {
    /// When.
    pub now: Micros,
    /// In which phase.
    pub phase: Phase,
    /// How long that lasts at the most.
    pub time_left: Micros,
    /// Where the phases begin; not known while connecting.
    pub timeline: Timeline,
    /// All agents together.
    pub progress: Progress,
}

/// Something that happened to the generator or its consumers, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incidents {
    /// When.
    pub at: Micros,
    /// What.
    pub diagnostic: Diagnostic,
}

/// All that a run left behind.
#[derive(Debug)]
pub struct RunData {
    /// Those windows that the observer did not keep.
    pub unkept: WindowDelta,
    /// The identity sets; none if an agent was lost.
    pub identity: Option<Identity>,
    /// What sessions and consumers counted where it happened; none if an agent was lost.
    pub account: Option<Account>,
    /// The health of all processes.
    pub health: GeneratorHealth,
    /// Each process when it was over.
    pub afterlives: Vec<Afterlife>,
    /// What went wrong, in order.
    pub incidents: Vec<Incidents>,
    /// Where the phases began; [`Timeline::CONNECTING`] if nothing ever came due.
    pub timeline: Timeline,
    /// When settling ended.
    pub end: Micros,
    /// How consumers listened when settling ended; none if there were none, as in a part that has none.
    pub listening: Option<Listening>,
    /// Why the due messages ended.
    pub ending: Ending,
    /// The condition that ended them, if one did.
    pub stop: Option<Stop>,
}
