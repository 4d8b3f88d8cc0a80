//! A second witness: how often each message was told to be final.

use std::collections::BTreeMap;

use muster_conduct::Tape;
use muster_device::Sink;
use muster_measure::Counts;
use muster_model::{Attempt, Command, LinkFact, LinkId, MessageId, Micros, Reception, StreamId};

/// How often messages were told to be final, counted apart from the recorder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Finals {
    /// Messages with a final state.
    pub messages: u64,
    /// Messages with more than one.
    pub repeated: u64,
    /// Messages whose instants are out of order, or that are shed and sent, or neither.
    pub absurd: u64,
    /// Messages that went out more than once.
    pub resent: u64,
}

/// Passes everything on to the tape, and remembers every message.
#[derive(Debug)]
pub(crate) struct Witness {
    pub(crate) tape: Tape,
    finals: BTreeMap<MessageId, u32>,
    absurd: u64,
    resent: u64,
}

impl Witness {
    pub(crate) fn new(tape: Tape) -> Self {
        Self {
            tape,
            finals: BTreeMap::new(),
            absurd: 0,
            resent: 0,
        }
    }

    pub(crate) fn finals(&self) -> Finals {
        Finals {
            messages: self.finals.len() as u64,
            repeated: self.finals.values().filter(|count| **count > 1).count() as u64,
            absurd: self.absurd,
            resent: self.resent,
        }
    }
}

impl Sink for Witness {
    fn attempt(&mut self, attempt: &Attempt) {
        *self.finals.entry(attempt.id).or_default() += 1;
        self.absurd += u64::from(!is_sensible(attempt));
        self.resent += u64::from(attempt.resent);
        self.tape.attempt(attempt);
    }

    fn command(&mut self, command: &Command) {
        self.tape.command(command);
    }

    fn reception(&mut self, reception: &Reception) {
        self.tape.reception(reception);
    }

    fn link(&mut self, fact: &LinkFact) {
        self.tape.link(fact);
    }

    fn opened(&mut self, link: LinkId, at: Micros) {
        self.tape.opened(link, at);
    }

    fn counts(&mut self, stream: StreamId, at: Micros) -> &mut Counts {
        self.tape.counts(stream, at)
    }
}

/// due <= taken <= sent <= ended, and sent exactly if not shed.
fn is_sensible(attempt: &Attempt) -> bool {
    let taken = attempt.taken.unwrap_or(attempt.due);
    let sent = attempt.sent.unwrap_or(taken);
    let is_shed = matches!(attempt.outcome, muster_model::Outcome::Shed(_));
    let is_ordered = attempt.due <= taken && taken <= sent && sent <= attempt.ended;
    is_ordered && is_shed == attempt.sent.is_none()
}
