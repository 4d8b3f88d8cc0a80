//! A stream: what the devices of a fleet send.

use muster_load::{PayloadSpec, ScheduleSpec, Template};
use muster_model::{CommandTarget, Micros, Promise, StreamId};
use muster_platform::{Carrier, Dialect, IntegrityLevel};
use muster_protocol::mqtt::Qos;
use serde::{Deserialize, Serialize};

use crate::HttpCall;

/// One kind of message that each device of a fleet sends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StreamPlan {
    /// Its name within the fleet.
    pub name: String,
    /// Its place in the plan, over all fleets.
    pub id: StreamId,
    /// Its kind, as the platform takes it.
    pub kind: StreamKind,
    /// Filter that its devices subscribe to; none where it is not of kind `receive`.
    pub filter: Option<Template>,
    /// Schedule of its messages.
    pub schedule: ScheduleSpec,
    /// Treatment of a message that is due while the device is busy.
    pub policy: Policy,
    /// Topic that it is published on.
    pub topic: Template,
    /// Topic of its messages northbound: as a rule the one they are published on.
    pub surface: Template,
    /// The quality of service; over CoAP 1 where an answer is waited for, else 0.
    pub qos: Qos,
    /// True if it is sent until it is acknowledged (CoAP: CON, not NON); of no meaning in MQTT.
    pub is_confirmable: bool,
    /// True if the platform keeps the last message for later subscribers.
    pub retain: bool,
    /// Answer that makes a message accepted.
    pub ack: Ack,
    /// Longest time that an answer may take, from sent.
    pub timeout: Micros,
    /// A later arrival is `late`; none if the stream has no deadline.
    pub deadline: Option<Micros>,
    /// Its payload.
    pub payload: PayloadSpec,
    /// Bytes of the longest payload.
    pub largest: u32,
    /// Its MQTT 5 content type.
    pub content_type: Option<String>,
    /// Carrier of the message's id.
    pub carrier: Carrier,
    /// Part of a message that the check of its stamp covers.
    pub integrity: IntegrityLevel,
    /// Number of times that the application tries again.
    pub retry: u8,
    /// The form of its requests over HTTP, where the dialect leaves it to the scenario.
    pub http: Option<Box<HttpCall>>,
}

/// Kind of a stream, as the platform takes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum StreamKind {
    /// Many, none of them vital.
    Telemetry,
    /// Few, each of them vital.
    Event,
    /// Each asks for a command.
    CommandQuery {
        /// Time that a device waits for a command once its query was taken.
        ttd: Micros,
    },
    /// Commands to the devices; the schedule is that of the backend's commands.
    Command {
        /// True if a reply is wanted.
        is_two_way: bool,
        /// Outcome of a command as its device reports it, as a status of HTTP; sent where the
        /// dialect's replies have one of the device's choice.
        status: u16,
        /// Devices that the schedule is for.
        to: CommandTarget,
    },
    /// Messages that devices subscribe to.
    Receive,
    /// No messages, but connection attempts: when one is due, the link of its device is closed and opened again.
    Connect,
}

impl StreamPlan {
    /// Returns true if its messages are the devices' own.
    pub const fn is_uplink(&self) -> bool {
        match self.kind {
            StreamKind::Telemetry
            | StreamKind::Event
            | StreamKind::CommandQuery { .. }
            | StreamKind::Connect => true,
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

    /// Returns true if it takes commands.
    pub const fn is_command(&self) -> bool {
        matches!(self.kind, StreamKind::Command { .. })
    }

    /// Returns true if its messages ask for commands.
    pub const fn is_query(&self) -> bool {
        matches!(self.kind, StreamKind::CommandQuery { .. })
    }
}

/// Treatment of a message whose device is busy or offline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Policy {
    /// Queues it, with a bound for each device.
    Queue {
        /// The queue's bound a device.
        bound: u32,
        /// The bound on unanswered messages a device; none: the protocol's own.
        in_flight: Option<u32>,
    },
    /// Sheds it.
    Shed {
        /// The bound on unanswered messages a device.
        in_flight: u32,
    },
    /// Makes it due only after the answer to the one before.
    Closed,
}

/// Answer that makes a message accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ack {
    /// None: it ends as unacknowledged.
    None,
    /// The protocol's.
    Transport,
    /// The application's, in the words of the dialect.
    Application,
}
