//! The counters of a window.

use muster_model::{Attempt, Cause, ConnectFailure, LinkEvent, Micros, Outcome, Reason, ShedCause};
use serde::{Deserialize, Serialize};

use crate::State;
use crate::merge::{Merge, merge_fields};

/// Counts by code or cause, in the order of the codes; a code that was not met takes no space.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountBy<K>(Vec<(K, u64)>);

/// Counts by sessions and sockets that the facts of single messages do not hold, by event.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counts {
    /// Messages handed to the socket, each once.
    pub handed: u64,
    /// Refusals of messages whose answer nobody waited for (NON with `ack: none`), by code and by the
    /// second in which these were due.
    pub refused_unawaited: CountBy<Reason>,
    /// The counts that stand in the ledger as they are.
    pub session: SessionCounts,
}

/// Counts by sessions and sockets, in windows and in the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SessionCounts {
    /// Further transmissions by the protocol.
    pub retransmitted: u64,
    /// CoAP responses in a separate message, after the acknowledgement.
    pub separate_responses: u64,
    /// CoAP responses that came again.
    pub duplicate_responses: u64,
    /// Further attempts by the application.
    pub retried: u64,
    /// Accepted although nobody subscribes (MQTT 5, code 0x10).
    pub no_subscriber: u64,
    /// QoS 2 exchanges that ended with PUBCOMP.
    pub completed: u64,
    /// QoS 2 exchanges with PUBREC and without PUBCOMP.
    pub incomplete: u64,
    /// Acknowledged by the transport, if the application's acknowledgement decides.
    pub transport_acknowledged: u64,
    /// Answers after the time-out or the end of the link; they change nothing.
    pub answered_late: u64,
    /// Repeated acknowledgements by the application.
    pub answered_again: u64,
    /// Acknowledgements by the application of no message sent.
    pub answered_unknown: u64,
    /// Acknowledgement messages that could not be read to their end.
    pub answered_malformed: u64,
    /// Commands to a device that takes none, or that the link does not carry.
    pub commands_received: u64,
    /// Bytes of payload handed to the socket.
    pub bytes_payload: u64,
    /// Bytes of the protocol for the messages, without TLS and WebSocket.
    pub bytes_wire: u64,
}

/// Messages by the second in which something happened to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Flow {
    /// First transmissions taken by the kernel.
    pub sent: u64,
    /// Messages that reached a final state, by state; the index is [`State::index`].
    pub ended: [u64; State::ALL.len()],
}

/// Messages by the second in which they were due.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Outcomes {
    /// Messages by final state; the index is [`State::index`].
    pub states: [u64; State::ALL.len()],
    /// Rejected by code.
    pub rejected: CountBy<Reason>,
    /// Broken by cause.
    pub broken: CountBy<Cause>,
    /// Shed by cause.
    pub shed: CountBy<ShedCause>,
    /// Messages that the engine picked up.
    pub taken: u64,
    /// Messages that were sent.
    pub sent: u64,
}

/// The times of the messages of a closed loop that took longer than a period, and so can have left
/// others out, summed by the second in which they were due: also of those without an answer, since
/// a closed loop waits for these as well. 0 for an open loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TimeSums {
    /// `ended - due`, in microseconds.
    pub taken_us: u64,
    /// The part of it that may be the generator's own, in microseconds.
    pub own_us: u64,
}

/// Copies a backend took in, of all streams and of none, by event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CopyCounts {
    /// Every copy, counted before decoding.
    pub consumed: u64,
    /// Payload bytes of all copies, in bytes.
    pub bytes_payload: u64,
    /// Copies that name no message of this run.
    pub foreign: u64,
    /// Copies without a readable id.
    pub unstamped: u64,
    /// Altered copies, with or without a readable id.
    pub corrupted: u64,
}

/// Counts of what happened to the links of a fleet, by event.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LinkCounts {
    /// Tries to connect.
    pub opened: u64,
    /// Tries that ended with a usable link.
    pub connected: u64,
    /// Tries that ended without one, by cause.
    pub failures: CountBy<ConnectFailure>,
    /// Tries among them that timed out while our own delay exceeded half of the time-out.
    pub timed_out_by_us: u64,
    /// Links whose last try so far became one of these.
    pub down_by_us: u64,
    /// Links whose last try so far was one of these, and that tried again in another way.
    pub down_by_us_no_more: u64,
    /// Usable links that ended, by cause.
    pub disconnects: CountBy<Cause>,
    /// Links among them that need no connection until a message is due.
    pub rested: u64,
    /// Links that needed none, and tried to connect again.
    pub woken: u64,
    /// Messages last sent on links that the platform ended, by the cause of that end.
    pub last_sent: CountBy<Cause>,
}

impl<K> Default for CountBy<K> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K: Ord + Copy> CountBy<K> {
    /// Adds to the count of one code. Allocates only for a code not met before.
    pub fn add(&mut self, code: K, count: u64) {
        match self.0.binary_search_by(|(known, _)| known.cmp(&code)) {
            Ok(at) => self.0[at].1 += count,
            Err(at) => self.0.insert(at, (code, count)),
        }
    }

    /// The count of one code.
    pub fn of(&self, code: K) -> u64 {
        self.iter()
            .find(|(known, _)| *known == code)
            .map_or(0, |(_, count)| count)
    }

    /// Codes and their counts, in the order of the codes.
    pub fn iter(&self) -> impl Iterator<Item = (K, u64)> + '_ {
        self.0.iter().copied()
    }

    /// The counts of the codes that `is_wanted` picks.
    pub fn only(&self, is_wanted: impl Fn(K) -> bool) -> Self {
        Self(self.iter().filter(|(code, _)| is_wanted(*code)).collect())
    }

    /// The sum over all codes.
    pub fn total(&self) -> u64 {
        self.0.iter().map(|(_, count)| count).sum()
    }

    /// Adds every count of `other`.
    pub fn merge(&mut self, other: &Self) {
        other.iter().for_each(|(code, count)| self.add(code, count));
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

impl<K: Ord + Copy> Merge for CountBy<K> {
    fn merge(&mut self, other: &Self) {
        Self::merge(self, other);
    }
}

impl TimeSums {
    /// Adds a message, if it took longer than `period`.
    pub fn count(&mut self, attempt: &Attempt, period: Micros) {
        if attempt.upper() <= period {
            return;
        }
        self.taken_us += attempt.upper().get();
        self.own_us += attempt.own.get();
    }
}

impl Flow {
    /// Messages that ended in `state` in this second.
    pub fn of(&self, state: State) -> u64 {
        self.ended[state.index()]
    }

    /// Messages that reached any final state in this second.
    pub fn finals(&self) -> u64 {
        self.ended.iter().sum()
    }

    /// Messages that ended with an answer in this second.
    pub fn answered(&self) -> u64 {
        self.of(State::Accepted) + self.of(State::Rejected)
    }
}

impl Outcomes {
    /// Messages due here that ended in `state`.
    pub fn of(&self, state: State) -> u64 {
        self.states[state.index()]
    }

    /// Messages due here whose end is known.
    pub fn finals(&self) -> u64 {
        self.states.iter().sum()
    }

    /// Messages shed by a cause that is the generator's own.
    pub fn shed_own(&self) -> u64 {
        self.shed
            .iter()
            .filter(|(cause, _)| cause.is_own())
            .map(|(_, count)| count)
            .sum()
    }

    /// Counts one final message.
    pub fn count(&mut self, outcome: &Outcome) {
        self.states[State::from(outcome).index()] += 1;
        match outcome {
            Outcome::Rejected(reason) => self.rejected.add(*reason, 1),
            Outcome::Broken(cause) => self.broken.add(*cause, 1),
            Outcome::Shed(cause) => self.shed.add(*cause, 1),
            Outcome::Accepted | Outcome::TimedOut | Outcome::Unacknowledged | Outcome::InFlight => {
            }
        }
    }

    pub(crate) fn clear(&mut self) {
        self.states = Default::default();
        self.rejected.clear();
        self.broken.clear();
        self.shed.clear();
        self.taken = 0;
        self.sent = 0;
    }
}

impl LinkCounts {
    /// Links that are up, or need no connection until a message is due.
    pub fn usable(&self) -> u64 {
        let came = self.connected + self.rested;
        came.saturating_sub(self.disconnects.total() + self.woken)
    }

    /// Counts what happened to a link.
    pub(crate) fn link(&mut self, event: &LinkEvent) {
        match event {
            LinkEvent::Connected { took: _ } => self.connected += 1,
            LinkEvent::Returned { is_kept: _ } => {}
            LinkEvent::Failed(failure) => self.failures.add(*failure, 1),
            LinkEvent::Disconnected(cause) => self.disconnects.add(*cause, 1),
            LinkEvent::LastSent { cause, messages } => {
                self.last_sent.add(*cause, u64::from(*messages));
            }
        }
    }
}

merge_fields! {
    Counts { handed, refused_unawaited, session }
    SessionCounts {
        retransmitted, separate_responses, duplicate_responses, retried, no_subscriber, completed,
        incomplete, transport_acknowledged, answered_late, answered_again, answered_unknown,
        answered_malformed, commands_received, bytes_payload, bytes_wire,
    }
    TimeSums { taken_us, own_us }
    Flow { sent, ended }
    Outcomes { states, rejected, broken, shed, taken, sent }
    CopyCounts { consumed, bytes_payload, foreign, unstamped, corrupted }
    LinkCounts {
        opened, connected, failures, timed_out_by_us, down_by_us, down_by_us_no_more, disconnects,
        rested, woken, last_sent,
    }
}
