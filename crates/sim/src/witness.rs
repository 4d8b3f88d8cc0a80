//! A second witness: the number of final states that each message was given.

use std::collections::{BTreeMap, BTreeSet};

use muster_conduct::RecordingSink;
use muster_device::Sink;
use muster_measure::Counts;
use muster_model::{
    Attempt, Command, LinkFact, LinkId, MessageId, Met, Micros, Presence, Reception, StreamId,
};
use muster_plan::Plan;

use crate::whereabouts::Whereabouts;

/// Counts of final messages, kept apart from the recorder's.
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
    /// Commands.
    pub commands: CommandFinals,
}

/// Counts of commands and queries, kept apart from the recorder's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CommandFinals {
    /// Commands with a final state at the application.
    pub issues: u64,
    /// Commands with a final state at the device.
    pub answers: u64,
    /// Queries that are final.
    pub queries: u64,
    /// Commands that came due, by the presence of their device that follows from the facts of its link,
    /// in the order of [`Presence::ALL`].
    pub met: [u64; Presence::ALL.len()],
    /// Ends that were reported before.
    pub repeated: u64,
    /// Ends whose instants are out of order, and commands whose device stood elsewhere.
    pub absurd: u64,
}

/// Passes everything on to the recording, and remembers every message.
#[derive(Debug)]
pub(crate) struct Witness {
    pub(crate) recording: RecordingSink,
    finals: BTreeMap<MessageId, u32>,
    absurd: u64,
    resent: u64,
    ends: BTreeSet<(End, MessageId)>,
    commands: CommandFinals,
    whereabouts: Whereabouts,
}

/// A report that comes once for a command or a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    Issue,
    Met,
    Answer,
    Query,
}

impl Witness {
    pub(crate) fn new(plan: &Plan, recording: RecordingSink) -> Self {
        Self {
            recording,
            finals: BTreeMap::new(),
            absurd: 0,
            resent: 0,
            ends: BTreeSet::new(),
            commands: CommandFinals::default(),
            whereabouts: Whereabouts::of(plan),
        }
    }

    pub(crate) fn finals(&self) -> Finals {
        Finals {
            messages: self.finals.len() as u64,
            repeated: self.finals.values().filter(|count| **count > 1).count() as u64,
            absurd: self.absurd,
            resent: self.resent,
            commands: self.commands,
        }
    }

    fn ended(&mut self, end: End, id: MessageId, instants: &[Option<Micros>]) {
        self.commands.repeated += u64::from(!self.ends.insert((end, id)));
        self.commands.absurd += u64::from(!instants.iter().flatten().is_sorted());
    }

    fn met(&mut self, met: &Met) {
        self.ended(End::Met, met.id, &[]);
        let presence = self.whereabouts.presence(met);
        self.commands.absurd += u64::from(presence != met.presence);
        let places = Presence::ALL.iter().zip(&mut self.commands.met);
        for (_, count) in places.filter(|(place, _)| **place == presence) {
            *count += 1;
        }
    }
}

impl Finals {
    /// The counts of this witness and another one, added up.
    pub fn and(self, other: &Self) -> Self {
        Self {
            messages: self.messages + other.messages,
            repeated: self.repeated + other.repeated,
            absurd: self.absurd + other.absurd,
            resent: self.resent + other.resent,
            commands: self.commands.and(&other.commands),
        }
    }
}

impl CommandFinals {
    fn and(self, other: &Self) -> Self {
        Self {
            issues: self.issues + other.issues,
            answers: self.answers + other.answers,
            queries: self.queries + other.queries,
            met: std::array::from_fn(|place| self.met[place] + other.met[place]),
            repeated: self.repeated + other.repeated,
            absurd: self.absurd + other.absurd,
        }
    }
}

impl Sink for Witness {
    fn attempt(&mut self, attempt: &Attempt) {
        *self.finals.entry(attempt.id).or_default() += 1;
        self.absurd += u64::from(!is_sensible(attempt));
        self.resent += u64::from(attempt.resent);
        self.recording.attempt(attempt);
    }

    fn command(&mut self, command: &Command) {
        match command {
            Command::Query(query) => {
                self.commands.queries += 1;
                self.ended(End::Query, query.id, &[Some(query.due), Some(query.ended)]);
            }
            Command::Issue(issue) => {
                self.commands.issues += 1;
                let instants = [Some(issue.due), issue.issued, Some(issue.ended)];
                self.ended(End::Issue, issue.id, &instants);
            }
            Command::Answer(answer) => {
                self.commands.answers += 1;
                let instants = [Some(answer.due), answer.sent, Some(answer.ended)];
                self.ended(End::Answer, answer.id, &instants);
            }
            Command::Met(met) => self.met(met),
            Command::Receipt(_) | Command::Reply(_) => {}
        }
        self.recording.command(command);
    }

    fn reception(&mut self, reception: &Reception) {
        self.recording.reception(reception);
    }

    fn link(&mut self, fact: &LinkFact) {
        self.whereabouts.link(fact);
        self.recording.link(fact);
    }

    fn opened(&mut self, link: LinkId, at: Micros) {
        self.recording.opened(link, at);
    }

    fn counts(&mut self, stream: StreamId, at: Micros) -> &mut Counts {
        self.recording.counts(stream, at)
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
