//! Events on their way, by the instant at which they come.

use std::collections::BTreeMap;

use muster_model::Micros;
use muster_platform::PROPERTY_NAME;
use muster_protocol::mqtt::{Incoming, Pending, Qos};

use crate::behaviour::What;

/// Something that comes at an instant. `conn` numbers the connections of one link, so that what
/// comes on a connection that is gone is not taken for something of the next one.
#[derive(Debug)]
pub(crate) enum Event {
    /// The connection stands, or the network refused it.
    Dialled {
        link: u32,
        conn: u32,
        is_up: bool,
    },
    /// Bytes reach the platform.
    ToPlatform {
        link: u32,
        conn: u32,
        bytes: Vec<u8>,
    },
    /// The end of a connection reaches the platform.
    EndToPlatform {
        link: u32,
        conn: u32,
    },
    /// Bytes reach the device.
    ToDevice {
        link: u32,
        conn: u32,
        bytes: Vec<u8>,
    },
    /// The end of a connection reaches the device.
    EndToDevice {
        link: u32,
        conn: u32,
        is_reset: bool,
    },
    /// The socket takes the rest of what it held.
    Flushed {
        link: u32,
        conn: u32,
    },
    /// A timer of a link runs out.
    Timer {
        link: u32,
    },
    /// The platform answers a publish of a session.
    Answer {
        link: u32,
        session: u32,
        answer: Answer,
    },
    /// The platform's application speaks on a publish.
    Acknowledge {
        link: u32,
        answered: Answered,
    },
    /// A copy of a device's message reaches the backends, and who subscribed to it.
    Copy(Copy),
    Mail(Copy),
    /// Something happens to links.
    Incident {
        what: What,
        share: f64,
    },
}

/// Answer of the protocol to a publish.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) pending: Pending,
    pub(crate) reason: u8,
}

/// Acknowledgement of a publish by the platform's application.
#[derive(Debug, Clone)]
pub(crate) struct Answered {
    pub(crate) device: String,
    pub(crate) id: Option<Vec<u8>>,
    pub(crate) code: u16,
    /// True if only a part of it comes.
    pub(crate) is_garbled: bool,
}

/// One copy of a message, as the platform delivers it.
#[derive(Debug, Clone)]
pub(crate) struct Copy {
    pub(crate) topic: String,
    pub(crate) payload: Vec<u8>,
    pub(crate) property: Option<String>,
    pub(crate) qos: Qos,
}

impl Answer {
    /// The answer by a code; none if there is no code, or the publish waits for no answer.
    pub(crate) fn new(publish: &Incoming<'_>, reason: Option<u8>) -> Option<Self> {
        let (pending, reason) = (publish.pending?, reason?);
        Some(Self { pending, reason })
    }
}

impl Copy {
    /// A copy of what was published, on the topic that it surfaces on.
    pub(crate) fn of(publish: &Incoming<'_>, topic: String) -> Self {
        let mut user = publish.properties.user();
        let property = user.find(|(name, _)| *name == PROPERTY_NAME);
        Self {
            topic,
            payload: publish.payload.to_vec(),
            property: property.map(|(_, text)| text.to_owned()),
            qos: publish.qos,
        }
    }
}

/// The virtual clock and all that is on its way; what comes at one instant comes in the order in which it was sent.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    now: Micros,
    /// By the instant and the order of sending.
    events: BTreeMap<(Micros, u64), Event>,
    pushed: u64,
}

impl Queue {
    pub(crate) fn now(&self) -> Micros {
        self.now
    }

    pub(crate) fn jump(&mut self, to: Micros) {
        self.now = self.now.max(to);
    }

    pub(crate) fn push(&mut self, at: Micros, event: Event) {
        self.events.insert((at, self.pushed), event);
        self.pushed += 1;
    }

    pub(crate) fn next(&self) -> Option<Micros> {
        self.events.keys().next().map(|(at, _)| *at)
    }

    /// Takes the next event, if it has come.
    pub(crate) fn pop(&mut self) -> Option<Event> {
        self.next().filter(|at| *at <= self.now)?;
        self.take_next()
    }

    /// Takes the next event, even before its instant.
    pub(crate) fn take_next(&mut self) -> Option<Event> {
        self.events.pop_first().map(|(_, event)| event)
    }
}
