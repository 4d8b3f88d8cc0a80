//! Where a shard's facts go: into the recorder, and to whoever wants every single one.

use std::fmt;

use muster_device::Sink;
use muster_measure::{Account, Cold, Counts, Identity, PublishedPlan, Recorder, RecorderPlan};
use muster_model::{
    Arrival, Attempt, Command, Fact, LinkFact, LinkId, Micros, Reception, RunId, StreamId,
};

use crate::{Dispatch, Handover, Progress, Trouble};

/// Who writes every fact down, beside the recorder.
pub trait Scribe: fmt::Debug + Send {
    /// Takes note of one fact; never waits.
    fn note(&mut self, fact: &Fact);
}

/// What one thread records.
#[derive(Debug)]
pub struct Tape {
    recorder: Recorder,
    scribe: Option<Box<dyn Scribe>>,
}

impl Tape {
    /// A tape that has heard nothing.
    pub fn new(recorder: Recorder, scribe: Option<Box<dyn Scribe>>) -> Self {
        Self { recorder, scribe }
    }

    /// The recorder.
    pub fn recorder(&mut self) -> &mut Recorder {
        &mut self.recorder
    }

    /// What was recorded since the last dispatch, and the troubles since then, which are taken.
    pub fn dispatch(&mut self, progress: Progress, troubles: &mut Vec<Trouble>) -> Box<Dispatch> {
        Box::new(Dispatch {
            progress,
            windows: self.recorder.flush(progress.at),
            troubles: std::mem::take(troubles),
            handover: None,
        })
    }

    /// The last dispatch, with all that the thread leaves behind.
    pub fn hand_over(&mut self, account: Account) -> Box<Dispatch> {
        let identity = self.finish();
        Box::new(Dispatch {
            handover: Some(Box::new(Handover { identity, account })),
            ..Dispatch::default()
        })
    }

    /// The identity, when the thread has done its work; what comes after is not recorded.
    pub fn finish(&mut self) -> Identity {
        let nothing = RecorderPlan {
            run: RunId(0),
            warm_up: Micros::ZERO,
            measure: Micros::ZERO,
            streams: Vec::new(),
            fleets: Vec::new(),
            backends: 0,
            cold: Cold::Nothing,
            groups: Vec::new(),
            published: PublishedPlan::Nothing,
        };
        std::mem::replace(&mut self.recorder, Recorder::new(nothing)).finish()
    }

    /// A copy reached a backend.
    pub fn arrival(&mut self, arrival: &Arrival) {
        self.recorder.arrival(arrival);
        if let Some(scribe) = &mut self.scribe {
            scribe.note(&Fact::Arrival(*arrival));
        }
    }
}

impl Sink for Tape {
    fn attempt(&mut self, attempt: &Attempt) {
        self.recorder.attempt(attempt);
        if let Some(scribe) = &mut self.scribe {
            scribe.note(&Fact::Attempt(*attempt));
        }
    }

    fn command(&mut self, command: &Command) {
        self.recorder.command(command);
        if let Some(scribe) = &mut self.scribe {
            scribe.note(&Fact::Command(*command));
        }
    }

    fn reception(&mut self, reception: &Reception) {
        self.recorder.reception(reception);
        if let Some(scribe) = &mut self.scribe {
            scribe.note(&Fact::Reception(*reception));
        }
    }

    fn link(&mut self, fact: &LinkFact) {
        self.recorder.link(fact);
        if let Some(scribe) = &mut self.scribe {
            scribe.note(&Fact::Link(*fact));
        }
    }

    fn opened(&mut self, link: LinkId, at: Micros) {
        self.recorder.opened(link, at);
    }

    fn counts(&mut self, stream: StreamId, at: Micros) -> &mut Counts {
        self.recorder.counts(stream, at)
    }
}
