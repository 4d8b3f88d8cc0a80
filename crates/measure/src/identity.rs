//! Sets of messages by end and arrival, merged once, at the end.

use muster_model::{MessageId, Micros, RunId};
use serde::{Deserialize, Serialize};

use crate::command::{CommandSets, StreamCommands};
use crate::copies::Seen;
use crate::drain::Drains;
use crate::merge::Merge;
use crate::pages::Pages;
use crate::reception::Receptions;
use crate::{Account, DeviceFigures, RecorderPlan, SeqSet, SlotTimes, State};

/// The identity sets of one recorder, or of all of a run once they are merged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    pub(crate) run: RunId,
    /// Per stream, the device side.
    pub(crate) streams: Vec<StreamFinals>,
    /// Per backend.
    pub(crate) backends: Vec<BackendSeen>,
    /// Counts from the Facts, to be compared with what was counted where it happened.
    pub(crate) facts: Account,
    /// The figures of a published test, by device.
    pub(crate) published: Vec<DeviceFigures>,
    /// The same by stream, in slots; empty where they are not kept.
    pub(crate) slots: Vec<SlotTimes>,
    /// Per stream, its commands.
    pub(crate) commands: Vec<StreamCommands>,
    /// Instant at which the last reply to a command of this run was seen.
    pub(crate) last_reply: Option<Micros>,
    /// Copies that subscribers among the devices received.
    pub(crate) receptions: Receptions,
    /// Absences on purpose, and the times that the draining of what was kept took.
    pub(crate) drains: Drains,
}

/// The final states of one stream's messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StreamFinals {
    /// The state that most messages are to end in.
    pub(crate) primary: State,
    pub(crate) devices: Pages<Finals>,
}

/// The final states of one device's stream.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Finals {
    /// Messages in the stream's primary state.
    pub(crate) primary: SeqSet,
    /// Messages in any other.
    pub(crate) others: Option<Box<Others>>,
    /// Number of messages that were due before the measured phase.
    pub(crate) warm_up: u32,
}

/// Sets of rare messages.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Others {
    /// Messages by state; that of the primary state is empty.
    states: [SeqSet; State::ALL.len()],
    /// Messages that went out more than once.
    pub(crate) resent: SeqSet,
}

/// Copies that one backend saw.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BackendSeen {
    /// Per stream.
    pub(crate) streams: Vec<Pages<Seen>>,
    /// Copies that name no message of this run.
    pub(crate) foreign: u64,
    /// Altered copies.
    pub(crate) corrupted: u64,
    /// First copies that more than one process took for the first.
    pub(crate) split: u64,
    /// Instant at which the last copy of a message of this run was seen.
    pub(crate) last_arrival: Option<Micros>,
}

impl Identity {
    /// The empty sets of a plan.
    pub fn new(plan: &RecorderPlan) -> Self {
        let streams = plan.streams.iter().map(|track| StreamFinals {
            primary: if track.answers {
                State::Accepted
            } else {
                State::Unacknowledged
            },
            devices: Pages::default(),
        });
        let backend = || BackendSeen {
            streams: plan.streams.iter().map(|_| Pages::default()).collect(),
            ..BackendSeen::default()
        };
        Self {
            run: plan.run,
            streams: streams.collect(),
            backends: (0..plan.backends).map(|_| backend()).collect(),
            facts: Account::new(plan),
            published: Vec::new(),
            slots: Vec::new(),
            commands: plan
                .streams
                .iter()
                .map(|_| StreamCommands::default())
                .collect(),
            last_reply: None,
            receptions: Receptions::default(),
            drains: Drains::default(),
        }
    }

    /// Takes in the sets of another recorder of the same run and plan. The union commutes and
    /// associates; derive nothing before it is complete.
    pub fn merge(&mut self, other: Identity) {
        for (mine, theirs) in self.streams.iter_mut().zip(other.streams) {
            mine.devices.merge(theirs.devices, Finals::merge);
        }
        for (mine, theirs) in self.backends.iter_mut().zip(other.backends) {
            mine.merge(theirs);
        }
        for (mine, theirs) in self.commands.iter_mut().zip(other.commands) {
            mine.merge(theirs);
        }
        self.last_reply = self.last_reply.max(other.last_reply);
        self.receptions.merge(other.receptions);
        self.drains.merge(other.drains);
        self.facts.merge(&other.facts);
        self.published.extend(other.published);
        self.published.sort_by_key(|figures| figures.device);
        self.slots.merge(&other.slots);
    }

    /// Times of each stream's exchanges, in slots as the published test of Hono has them: from
    /// taken to the answer, of what was accepted; of queries to the command, of replies from the
    /// command. Over the whole run; empty where they were not asked for.
    pub fn slots(&self) -> &[SlotTimes] {
        &self.slots
    }

    /// The figures of a published test, in the order of the devices; empty where none were asked
    /// for.
    pub fn published(&self) -> &[DeviceFigures] {
        &self.published
    }

    /// The account made from the Facts.
    pub fn facts(&self) -> &Account {
        &self.facts
    }

    /// Number of a backend's first copies that more than one process took for the first.
    pub fn split(&self, backend: muster_model::BackendId) -> u64 {
        self.backends
            .get(backend.index())
            .map_or(0, |backend| backend.split)
    }

    /// Altered copies at all backends.
    pub(crate) fn corrupted(&self) -> u64 {
        self.backends.iter().map(|backend| backend.corrupted).sum()
    }

    /// The sets of the device that a command is for, or that a query is from.
    pub(crate) fn command_sets(&mut self, plan: &RecorderPlan, id: &MessageId) -> &mut CommandSets {
        let slot = id.device.0 - plan.streams[id.stream.index()].first_device.0;
        self.commands[id.stream.index()].devices.get_mut(slot)
    }

    /// Remembers how far replies and receptions have come.
    pub(crate) fn mark_drain(&mut self) {
        for commands in &mut self.commands {
            for (_, sets) in commands.devices.iter_mut() {
                sets.replies.drained = sets.replies.next;
            }
        }
        self.receptions.mark_drain();
    }

    /// Gives back the room that growing left.
    pub(crate) fn shrink(&mut self) {
        for commands in &mut self.commands {
            for (_, sets) in commands.devices.iter_mut() {
                sets.shrink();
            }
        }
        self.receptions.shrink();
        for stream in &mut self.streams {
            for (_, finals) in stream.devices.iter_mut() {
                finals.shrink();
            }
        }
        for seen in self
            .backends
            .iter_mut()
            .flat_map(|backend| &mut backend.streams)
        {
            for (_, seen) in seen.iter_mut() {
                seen.shrink();
            }
        }
    }
}

impl BackendSeen {
    fn merge(&mut self, other: BackendSeen) {
        let split = &mut self.split;
        for (mine, theirs) in self.streams.iter_mut().zip(other.streams) {
            mine.merge(theirs, |mine, theirs| *split += mine.merge(theirs));
        }
        self.split += other.split;
        self.foreign += other.foreign;
        self.corrupted += other.corrupted;
        self.last_arrival = self.last_arrival.max(other.last_arrival);
    }
}

impl Finals {
    /// Puts a message into the set of its final state.
    pub(crate) fn end(&mut self, seq: u32, state: State, primary: State) {
        if state == primary {
            self.primary.insert(seq);
        } else {
            self.others.get_or_insert_default().states[state.index()].insert(seq);
        }
    }

    /// Remembers that a message went out more than once.
    pub(crate) fn resend(&mut self, seq: u32) {
        self.others.get_or_insert_default().resent.insert(seq);
    }

    /// The sets that are not known to be empty, with their states.
    pub(crate) fn sets(&self, primary: State) -> impl Iterator<Item = (State, &SeqSet)> {
        let others = self.others.as_ref().map(|others| &others.states);
        let others = others
            .into_iter()
            .flat_map(|sets| State::ALL.into_iter().zip(sets));
        std::iter::once((primary, &self.primary))
            .chain(others.filter(move |(state, _)| *state != primary))
    }

    /// Messages that went out more than once.
    pub(crate) fn resent(&self) -> Option<&SeqSet> {
        self.others.as_ref().map(|others| &others.resent)
    }

    /// Messages in any final state.
    pub(crate) fn union(&self, primary: State) -> SeqSet {
        let mut sets = self.sets(primary).filter(|(_, set)| !set.is_empty());
        let first = sets.next().map(|(_, set)| set.clone()).unwrap_or_default();
        sets.fold(first, |union, (_, set)| union.union(set))
    }

    fn merge(&mut self, other: Finals) {
        self.primary = union_of(&self.primary, other.primary);
        self.warm_up = self.warm_up.max(other.warm_up);
        let Some(theirs) = other.others else { return };
        let mine = self.others.get_or_insert_default();
        for (mine, theirs) in mine.states.iter_mut().zip(theirs.states) {
            *mine = union_of(mine, theirs);
        }
        mine.resent = union_of(&mine.resent, theirs.resent);
    }

    fn shrink(&mut self) {
        self.primary.shrink();
        if let Some(others) = &mut self.others {
            others.states.iter_mut().for_each(SeqSet::shrink);
            others.resent.shrink();
        }
    }
}

/// The union, at no cost if one of the two is empty.
fn union_of(mine: &SeqSet, theirs: SeqSet) -> SeqSet {
    if mine.is_empty() {
        theirs
    } else {
        mine.union(&theirs)
    }
}
