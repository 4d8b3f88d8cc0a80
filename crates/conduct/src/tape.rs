//! Where a shard's facts go: into the recorder, and into the facts file if one is wanted.

use std::fmt;
use std::io::Write;
use std::sync::{Arc, Mutex};

use muster_device::Sink;
use muster_measure::{Cold, Counts, FACTS_HEADER, Identity, Recorder, RecorderPlan, encode_fact};
use muster_model::{Arrival, Attempt, Fact, LinkFact, LinkId, Micros, RunId, StreamId};

/// Where every fact is written, shared by all threads of a process.
#[derive(Clone)]
pub struct FactsLog {
    shared: Arc<Mutex<Shared>>,
}

struct Shared {
    out: Box<dyn Write + Send>,
    left: u64,
    is_whole: bool,
}

impl FactsLog {
    /// A log that has its heading; at most `most` facts are written to it.
    ///
    /// # Errors
    /// If the heading cannot be written.
    pub fn new(mut out: Box<dyn Write + Send>, most: u64) -> std::io::Result<Self> {
        out.write_all(FACTS_HEADER.as_bytes())?;
        let shared = Shared {
            out,
            left: most,
            is_whole: true,
        };
        Ok(Self {
            shared: Arc::new(Mutex::new(shared)),
        })
    }

    /// Writes out what is still buffered; whether every fact is there.
    #[must_use]
    pub fn close(&self) -> bool {
        let Ok(mut shared) = self.shared.lock() else {
            return false;
        };
        let is_flushed = shared.out.flush().is_ok();
        is_flushed && shared.is_whole
    }

    fn write(&self, line: &[u8]) {
        let Ok(mut shared) = self.shared.lock() else {
            return;
        };
        let has_room = shared.left > 0;
        shared.left = shared.left.saturating_sub(1);
        let is_written = has_room && shared.out.write_all(line).is_ok();
        shared.is_whole &= is_written;
    }
}

impl fmt::Debug for FactsLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FactsLog")
    }
}

/// What one thread records.
#[derive(Debug)]
pub struct Tape {
    recorder: Recorder,
    facts: Option<FactsLog>,
    line: Vec<u8>,
}

impl Tape {
    /// A tape that has heard nothing.
    #[must_use]
    pub fn new(recorder: Recorder, facts: Option<FactsLog>) -> Self {
        Self {
            recorder,
            facts,
            line: Vec::new(),
        }
    }

    /// The recorder.
    pub fn recorder(&mut self) -> &mut Recorder {
        &mut self.recorder
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
        };
        std::mem::replace(&mut self.recorder, Recorder::new(nothing)).finish()
    }

    /// A copy reached a backend.
    pub fn arrival(&mut self, arrival: &Arrival) {
        self.recorder.arrival(arrival);
        if self.facts.is_some() {
            self.note(&Fact::Arrival(*arrival));
        }
    }

    fn note(&mut self, fact: &Fact) {
        if let Some(facts) = &self.facts {
            self.line.clear();
            encode_fact(fact, &mut self.line);
            facts.write(&self.line);
        }
    }
}

impl Sink for Tape {
    fn attempt(&mut self, attempt: &Attempt) {
        self.recorder.attempt(attempt);
        if self.facts.is_some() {
            self.note(&Fact::Attempt(*attempt));
        }
    }

    fn link(&mut self, fact: &LinkFact) {
        self.recorder.link(fact);
        if self.facts.is_some() {
            self.note(&Fact::Link(*fact));
        }
    }

    fn opened(&mut self, link: LinkId, at: Micros) {
        self.recorder.opened(link, at);
    }

    fn counts(&mut self, stream: StreamId, at: Micros) -> &mut Counts {
        self.recorder.counts(stream, at)
    }
}
