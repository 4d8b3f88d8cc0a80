//! Misbehaviour of the model platform and its network.

use std::ops::Range;

use muster_model::{Listening, Micros, mix, unit};
use muster_protocol::mqtt::reason;

/// Delay after which it is known that consumers receive nothing, as of a broker that is frozen.
const KNOWN_AFTER: Micros = Micros::from_secs(3);

/// A model platform's ways. Shares are chances between 0 and 1, each decided by the seed alone.
#[derive(Debug, Clone, PartialEq)]
pub struct Behaviour {
    /// Time that bytes travel, in either direction.
    pub latency: Micros,
    /// Time that the platform takes to answer a publish.
    pub answer_after: Micros,
    /// Time that it takes to deliver a message to the backends.
    pub deliver_after: Micros,
    /// Number of unanswered publishes that it takes on one link (MQTT 5).
    pub receive_maximum: u16,
    /// The largest packet that it takes, in bytes (MQTT 5).
    pub maximum_packet_size: u32,
    /// True if it keeps the sessions of clients that ask for it.
    pub keeps_sessions: bool,
    /// Connects that the network refuses.
    pub refuse_connect: f64,
    /// CONNECTs that are never answered.
    pub deaf: f64,
    /// Secret that clients have to put behind its challenge; without one, nobody is challenged.
    pub secret: Option<&'static str>,
    /// CONNECTs that are answered with a refusal.
    pub refuse_session: f64,
    /// SUBSCRIBEs that are refused.
    pub refuse_subscribe: f64,
    /// Publishes acknowledged by the application in a way that cannot be read.
    pub garble: f64,
    /// Publishes acknowledged by the application under an id that nobody sent.
    pub mislead: f64,
    /// Publishes answered with a refusal and not delivered.
    pub reject: f64,
    /// Publishes that vanish: neither answered nor delivered.
    pub drop: f64,
    /// Publishes delivered and never answered.
    pub ignore: f64,
    /// Publishes answered and never delivered.
    pub lose: f64,
    /// Publishes delivered, or acknowledged by the application, twice.
    pub duplicate: f64,
    /// Publishes delivered later than those after them.
    pub reorder: f64,
    /// Publishes whose delivery is altered by one bit.
    pub corrupt: f64,
    /// Publishes answered later, by [`Behaviour::late_by`].
    pub late: f64,
    /// Delay of these answers.
    pub late_by: Micros,
    /// Publishes answered with bytes that are not the protocol.
    pub garbage: f64,
    /// True if it completes what it accepted at QoS 2 (PUBCOMP).
    pub completes: bool,
    /// Writes of the device side that the socket takes only half of at once.
    pub hold: f64,
    /// Time that the other half waits.
    pub hold_for: Micros,
    /// Span in which the consumers of the backends receive nothing; messages for them wait until it
    /// ends.
    pub consumers_away: Option<Range<Micros>>,
    /// Events that befall links, and their instants.
    pub incidents: Vec<Incident>,
    /// Treatment of commands and replies; the shares of publishes above do not concern them.
    pub commands: CommandWays,
}

/// A model platform's ways towards commands and their replies.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct CommandWays {
    /// Commands answered with a refusal and not delivered.
    pub refuse: f64,
    /// Commands answered and never delivered.
    pub lose: f64,
    /// Commands delivered twice.
    pub duplicate: f64,
    /// Commands delivered later, by [`Behaviour::late_by`].
    pub late: f64,
    /// Commands delivered and never answered.
    pub ignore: f64,
    /// Replies answered with a refusal and not delivered.
    pub refuse_reply: f64,
    /// Replies delivered and never answered.
    pub ignore_reply: f64,
    /// Replies answered and never delivered.
    pub lose_reply: f64,
    /// Replies delivered twice.
    pub duplicate_reply: f64,
}

/// Something that happens to some of the links at an instant of the run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Incident {
    /// Since T0.
    pub at: Micros,
    /// The chance of each link to be met.
    pub share: f64,
    /// The event.
    pub what: What,
}

/// Events that can befall a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// The platform closes it in order.
    Fin,
    /// The platform resets it.
    Reset,
    /// The platform forgets it without a word; what is sent on it is never answered.
    HalfOpen,
    /// The platform says DISCONNECT with this code, and closes.
    Goodbye(u8),
}

impl Default for Behaviour {
    /// A platform without a fault that answers and delivers within a millisecond.
    fn default() -> Self {
        Self {
            latency: Micros(200),
            answer_after: Micros(500),
            deliver_after: Micros(700),
            receive_maximum: u16::MAX,
            maximum_packet_size: 1 << 20,
            keeps_sessions: true,
            refuse_connect: 0.0,
            deaf: 0.0,
            secret: None,
            refuse_session: 0.0,
            refuse_subscribe: 0.0,
            garble: 0.0,
            mislead: 0.0,
            reject: 0.0,
            drop: 0.0,
            ignore: 0.0,
            lose: 0.0,
            duplicate: 0.0,
            reorder: 0.0,
            corrupt: 0.0,
            late: 0.0,
            late_by: Micros::from_secs(15),
            garbage: 0.0,
            completes: true,
            hold: 0.0,
            hold_for: Micros::from_millis(20),
            consumers_away: None,
            incidents: Vec::new(),
            commands: CommandWays::default(),
        }
    }
}

impl Behaviour {
    /// Instant at which consumers that receive nothing now are back.
    pub(crate) fn consumers_back(&self, now: Micros) -> Option<Micros> {
        let away = self.consumers_away.as_ref()?;
        away.contains(&now).then_some(away.end)
    }

    /// Listening state of the consumers, as known at this instant.
    pub(crate) fn listening(&self, now: Micros) -> Listening {
        let Some(Range { start, end }) = self.consumers_away.clone() else {
            return Listening::until(now);
        };
        if now >= end {
            let (since, until) = (end, now);
            Listening { since, until }
        } else if now >= start + KNOWN_AFTER {
            Listening::deaf(now)
        } else {
            Listening::until(now.min(start))
        }
    }
}

/// A way to treat one message badly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    Garbage,
    Garble,
    Mislead,
    Reject,
    Drop,
    Ignore,
    Lose,
    Duplicate,
    Late,
}

impl Fault {
    /// The code of the answer to a message; none if it gets no answer.
    pub(crate) fn answer(fault: Option<Self>) -> Option<u8> {
        match fault {
            Some(Self::Drop | Self::Ignore) => None,
            Some(Self::Reject) => Some(reason::QUOTA_EXCEEDED),
            _ => Some(reason::SUCCESS),
        }
    }

    /// Number of copies of a message that are delivered.
    pub(crate) fn copies(fault: Option<Self>) -> u8 {
        match fault {
            Some(Self::Reject | Self::Drop | Self::Lose) => 0,
            Some(Self::Duplicate) => 2,
            _ => 1,
        }
    }
}

/// Decisions by seed: the n-th one is always the same.
#[derive(Debug)]
pub(crate) struct Dice {
    seed: u64,
    thrown: u64,
}

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed, thrown: 0 }
    }

    /// Returns whether something of this chance happens.
    pub(crate) fn hits(&mut self, share: f64) -> bool {
        self.thrown += 1;
        unit(mix(self.seed, self.thrown)) < share
    }

    /// The first fault that happens, and counts it: each has its chance if none before it happened.
    pub(crate) fn first<'a>(
        &mut self,
        faults: impl IntoIterator<Item = (f64, Fault, &'a mut u64)>,
    ) -> Option<Fault> {
        let mut faults = faults.into_iter();
        let (_, fault, count) = faults.find(|(share, ..)| self.hits(*share))?;
        *count += 1;
        Some(fault)
    }
}
