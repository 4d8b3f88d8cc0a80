//! A stream: what the devices of a fleet send.

use muster_load::{PayloadSpec, ScheduleSpec, Template};
use muster_model::{CommandTarget, Micros, Promise, StreamId};
use muster_platform::{Carrier, Dialect, IntegrityLevel};
use muster_protocol::mqtt::Qos;
use serde::{Deserialize, Serialize};

/// One kind of message that each device of a fleet sends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StreamPlan {
    /// Its name within the fleet.
    pub name: String,
    /// Its place in the plan, over all fleets.
    pub id: StreamId,
    /// What the platform takes it for.
    pub kind: StreamKind,
    /// What its devices subscribe to; none where it is not of kind `receive`.
    pub filter: Option<Template>,
    /// When its messages are due.
    pub schedule: ScheduleSpec,
    /// What happens when a message is due and the device is busy.
    pub policy: Policy,
    /// Where it is published.
    pub topic: Template,
    /// Where its messages surface northbound: as a rule where they are published.
    pub surface: Template,
    /// The quality of service; over CoAP 1 where an answer is waited for, else 0.
    pub qos: Qos,
    /// Whether it is sent until it is acknowledged (CoAP: CON, not NON); of no meaning in MQTT.
    pub is_confirmable: bool,
    /// Whether the platform keeps the last message for later subscribers.
    pub retain: bool,
    /// Which answer makes a message accepted.
    pub ack: Ack,
    /// How long an answer may take, from sent.
    pub timeout: Micros,
    /// A later arrival is `late`; none if the stream has no deadline.
    pub deadline: Option<Micros>,
    /// What is sent.
    pub payload: PayloadSpec,
    /// Bytes of the longest payload.
    pub largest: u32,
    /// Its MQTT 5 content type.
    pub content_type: Option<String>,
    /// Where the message's id travels.
    pub carrier: Carrier,
    /// What the check of its stamp covers.
    pub integrity: IntegrityLevel,
    /// How often the application tries again.
    pub retry: u8,
}

/// What the platform takes a stream for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum StreamKind {
    /// Many, none of them vital.
    Telemetry,
    /// Few, each of them vital.
    Event,
    /// Each asks for a command.
    CommandQuery {
        /// How long a device waits for a command once its query was taken.
        ttd: Micros,
    },
    /// Commands to the devices; the schedule is that of the backend's commands.
    Command {
        /// Whether a reply is wanted.
        is_two_way: bool,
        /// What a device says became of a command, as a status of HTTP; told where the dialect's replies
        /// have one of the device's choice.
        status: u16,
        /// Which devices the schedule is for.
        to: CommandTarget,
    },
    /// What devices subscribe to.
    Receive,
}

impl StreamPlan {
    /// Whether its messages are the devices' own.
    pub const fn is_uplink(&self) -> bool {
        match self.kind {
            StreamKind::Telemetry | StreamKind::Event | StreamKind::CommandQuery { .. } => true,
            StreamKind::Command { .. } | StreamKind::Receive => false,
        }
    }

    /// The promise of the answer that makes one of its messages accepted.
    pub const fn promise(&self, dialect: Dialect) -> Promise {
        match self.ack {
            Ack::None => Promise::Nothing,
            Ack::Transport => dialect.spec().promises.transport,
            Ack::Application => dialect.spec().promises.application,
        }
    }

    /// Whether it takes commands.
    pub const fn is_command(&self) -> bool {
        matches!(self.kind, StreamKind::Command { .. })
    }

    /// Whether its messages ask for commands.
    pub const fn is_query(&self) -> bool {
        matches!(self.kind, StreamKind::CommandQuery { .. })
    }
}

/// What happens to a message when its device is busy or offline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Policy {
    /// It waits in a queue of at most so many a device.
    Queue {
        /// The queue's bound a device.
        bound: u32,
        /// The bound on unanswered messages a device; none: the protocol's own.
        in_flight: Option<u32>,
    },
    /// It is shed.
    Shed {
        /// The bound on unanswered messages a device.
        in_flight: u32,
    },
    /// It is due only after the answer to the one before.
    Closed,
}

/// Which answer makes a message accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ack {
    /// None: it ends as unacknowledged.
    None,
    /// The protocol's.
    Transport,
    /// The application's, in the words of the dialect.
    Application,
}
