//! Samples of the target and commands of the user, while the load goes on.

use std::sync::atomic::AtomicBool;

use muster_conduct::Standing;
use muster_net::Clock;
use muster_result::Note;

use crate::hooks::Hooks;
use crate::monitoring::{Monitor, Monitoring};

/// Samples and commands of a run that has not begun.
pub(crate) struct Prepared {
    pub(crate) monitor: Monitor,
    pub(crate) hooks: Hooks,
}

impl Prepared {
    /// Begins with the load.
    pub(crate) fn start(self, clock: Clock) -> Meanwhile {
        Meanwhile {
            monitoring: self.monitor.start(clock),
            hooks: self.hooks,
            clock,
        }
    }
}

/// Samples and commands of a run that goes on.
pub(crate) struct Meanwhile {
    monitoring: Option<Monitoring>,
    hooks: Hooks,
    clock: Clock,
}

impl Meanwhile {
    /// Starts hooks that are due, and gives the notes that came since the last time.
    pub(crate) fn turn(&mut self, standing: &Standing) -> Vec<Note> {
        let samples = self.monitoring.iter().flat_map(Monitoring::notes);
        let mut notes: Vec<Note> = samples.map(Note::Usage).collect();
        let hooks = self.hooks.turn(standing, self.clock);
        notes.extend(hooks.into_iter().map(Note::Hook));
        notes
    }

    /// Ends sampling, runs the hooks after the load, and gives the last notes.
    pub(crate) fn end(self, interrupted: &AtomicBool) -> Vec<Note> {
        let samples = self.monitoring.map(Monitoring::end);
        let samples = samples.into_iter().flatten().map(Note::Usage);
        let mut notes: Vec<Note> = samples.collect();
        let hooks = self.hooks.end(self.clock, interrupted);
        notes.extend(hooks.into_iter().map(Note::Hook));
        notes
    }
}
