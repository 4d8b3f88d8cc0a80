//! A run as it stands, and all that it leaves behind.

use muster_judge::{GeneratorHealth, Stop};
use muster_load::AddedHold;
use muster_measure::{Account, Identity, Timeline, WindowDelta};
use muster_model::{Listening, Micros};

use crate::{Afterlife, Diagnostic, Ending, Phase, Progress};

/// A decision on the load of a run that goes on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Steer {
    /// Another hold is due.
    Hold(AddedHold),
    /// Connect this share of each fleet's devices, and close the links of the others.
    Activate(f64),
    /// Nothing more is due.
    End,
}

/// State of a run.
#[derive(Debug, Clone, Copy)]
pub struct Standing {
    /// Its instant.
    pub now: Micros,
    /// In which phase.
    pub phase: Phase,
    /// Longest rest of the phase.
    pub time_left: Micros,
    /// Begin of the phases; not known while connecting.
    pub timeline: Timeline,
    /// All agents together.
    pub progress: Progress,
}

/// Something that happened to the generator or its consumers, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incidents {
    /// Its instant.
    pub at: Micros,
    /// The diagnostic.
    pub diagnostic: Diagnostic,
}

/// All that a run left behind.
#[derive(Debug)]
pub struct RunData {
    /// Windows that the observer did not keep.
    pub unkept: WindowDelta,
    /// The identity sets; none if an agent was lost.
    pub identity: Option<Identity>,
    /// Counters of sessions and consumers; none if an agent was lost.
    pub account: Option<Account>,
    /// The health of all processes.
    pub health: GeneratorHealth,
    /// Each process when it was over.
    pub afterlives: Vec<Afterlife>,
    /// Diagnostics, in order.
    pub incidents: Vec<Incidents>,
    /// Begin of the phases; [`Timeline::CONNECTING`] if nothing ever came due.
    pub timeline: Timeline,
    /// End of settling.
    pub end: Micros,
    /// Listening of the consumers when settling ended; none without consumers, as in a part of
    /// devices.
    pub listening: Option<Listening>,
    /// Reason that the due messages ended.
    pub ending: Ending,
    /// The condition that ended them, if one did.
    pub stop: Option<Stop>,
}
