//! Data that the links of one fleet share, so that a link holds only its own state.

use std::ops::Range;
use std::sync::Arc;

use muster_load::{StreamSchedule, Template};
use muster_model::{CommandTarget, DeviceId, LinkId, Micros, StreamId};
use muster_plan::{BackOff, HttpCall, Policy};
use muster_platform::{Announcement, Dialect, Directory, Uplink, Who};

use crate::client::Client;

/// The part of a fleet that one shard carries.
#[derive(Debug)]
pub struct Class<C> {
    /// Its devices by formula.
    pub directory: Directory,
    /// Dialect that its devices and the platform speak.
    pub dialect: Dialect,
    /// The link that carries the fleet's first device.
    pub first_link: LinkId,
    /// The links of the fleet that this shard carries.
    pub links: Range<u32>,
    /// Number of devices on each link; the last link may carry fewer.
    pub devices_per_link: u32,
    /// The topic on which a link says of each device that it is there, before any of them publishes.
    pub announces: Option<Announcement>,
    /// Streams of its devices.
    pub streams: Vec<ClassStream>,
    /// Settings of its sessions.
    pub client: Client<C>,
    /// The waits between tries to connect.
    pub back_off: BackOff,
}

/// One stream of a fleet.
#[derive(Debug)]
pub struct ClassStream {
    /// Its place in the plan.
    pub id: StreamId,
    /// Kind of its messages.
    pub kind: Kind,
    /// Template of its messages, with the place of the id.
    pub uplink: Uplink,
    /// The quality of service; over CoAP 1 where an answer is waited for, else 0.
    pub qos: Qos,
    /// True if it is sent until it is acknowledged (CoAP: CON, not NON); of no meaning in MQTT.
    pub is_confirmable: bool,
    /// True if the platform keeps the last message.
    pub retain: bool,
    /// Its MQTT 5 content type.
    pub content_type: Option<String>,
    /// Party whose answer ends an attempt.
    pub answer: Answer,
    /// True if a refusal that the platform publishes names the message by its id.
    pub is_refused_by_name: bool,
    /// Longest time from sent to the answer.
    pub timeout: Micros,
    /// Treatment of a message when the device is busy.
    pub policy: Policy,
    /// Number of times that a failed attempt is tried again.
    pub retry: u8,
    /// Instants at which its messages are due.
    pub schedule: Arc<StreamSchedule>,
    /// True if an answer is read by the path of its request, also where that asks for no command.
    pub is_read_by_path: bool,
    /// The form of its requests over HTTP, where the dialect does not give it.
    pub http: Option<Box<HttpCall>>,
}

/// Kind of a stream's messages.
#[derive(Debug)]
pub enum Kind {
    /// The devices' own.
    Uplink,
    /// The devices' own; each asks for a command.
    Query {
        /// Time that a device waits for a command once the platform has taken the query.
        ttd: Micros,
    },
    /// Commands to the devices, and their replies.
    Command {
        /// True if a reply is wanted.
        is_two_way: bool,
        /// HTTP status that a device reports for a command, if the dialect's replies carry one.
        status: u16,
        /// Devices that the schedule is for.
        to: CommandTarget,
        /// The numbers of a device's commands are all below this.
        most_per_device: u32,
    },
    /// Other devices' messages that the devices subscribe to.
    Receive {
        /// To what.
        filter: Template,
    },
    /// Connection attempts: an attempt waits until its link is connected anew.
    Connect,
}

/// The promise with which a message is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Qos {
    /// Sent once; the protocol does not answer.
    AtMostOnce,
    /// The protocol answers, and the message may come twice.
    AtLeastOnce,
    /// The protocol answers twice, so that the message comes once.
    ExactlyOnce,
}

/// Party whose answer ends an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// No party: a message ends once it is sent.
    None,
    /// The protocol's.
    Transport,
    /// The application; the protocol's answer is counted too.
    Application {
        /// True if its time-out begins anew with each acknowledgement that the device gets.
        slides: bool,
    },
}

impl ClassStream {
    /// Returns whether an attempt waits for an answer once it is sent.
    pub(crate) fn is_answered(&self) -> bool {
        self.answer != Answer::None
    }

    /// Returns whether that answer is the application's.
    pub(crate) fn is_acknowledged(&self) -> bool {
        matches!(self.answer, Answer::Application { .. })
    }

    /// Returns whether a message that the platform publishes may end an attempt by the id of its message.
    pub(crate) fn is_ended_by_name(&self) -> bool {
        self.is_acknowledged() || (self.is_refused_by_name && self.is_tracked())
    }

    /// Returns whether its messages ask for a command.
    pub(crate) fn is_query(&self) -> bool {
        matches!(self.kind, Kind::Query { .. })
    }

    /// Returns whether its messages are replies to commands.
    pub(crate) fn is_command(&self) -> bool {
        matches!(self.kind, Kind::Command { .. })
    }

    /// Returns whether its devices subscribe to other devices' messages.
    pub(crate) fn is_receive(&self) -> bool {
        matches!(self.kind, Kind::Receive { .. })
    }

    /// Returns whether its messages are connection attempts.
    pub(crate) fn is_connect(&self) -> bool {
        matches!(self.kind, Kind::Connect)
    }

    /// Time that a device waits for a command once the platform has taken its query.
    pub(crate) fn ttd(&self) -> Option<Micros> {
        match self.kind {
            Kind::Query { ttd } => Some(ttd),
            Kind::Uplink | Kind::Command { .. } | Kind::Receive { .. } | Kind::Connect => None,
        }
    }

    /// The same in seconds: a plan of requests has whole ones.
    pub(crate) fn ttd_s(&self) -> Option<u32> {
        let seconds = |ttd: Micros| u32::try_from(ttd.get() / 1_000_000).unwrap_or(u32::MAX);
        self.ttd().map(seconds)
    }

    /// Returns whether the session tracks a message until the protocol has answered it.
    pub(crate) fn is_tracked(&self) -> bool {
        self.is_answered() && self.qos != Qos::AtMostOnce
    }

    /// The time-out, where it begins anew with each acknowledgement that the device gets.
    pub(crate) fn sliding_timeout(&self) -> Option<Micros> {
        match self.answer {
            Answer::Application { slides: true } => Some(self.timeout),
            Answer::Application { slides: false } | Answer::Transport | Answer::None => None,
        }
    }
}

impl<C> Class<C> {
    /// The link that carries a device, as an index into this class's links of the shard.
    pub fn link_of(&self, device: DeviceId) -> u32 {
        let place = device.0 - self.directory.first_device().0;
        self.first_link.0 + place / self.devices_per_link - self.links.start
    }

    /// The first device that a link carries; the session has its name.
    pub fn first_device_of(&self, link: LinkId) -> DeviceId {
        let place = (link.0 - self.first_link.0) * self.devices_per_link;
        DeviceId(self.directory.first_device().0 + place)
    }

    /// The name of a link: as a rule that of its first device.
    pub(crate) fn name_of(&self, link: LinkId) -> String {
        let mut name = String::new();
        let device = self.first_device_of(link);
        self.client.render_name(&self.directory, device, &mut name);
        name
    }

    /// The role of its links on the platform.
    pub(crate) fn role(&self) -> Who {
        if self.client.gateway.is_some() {
            Who::Gateway
        } else if self.client.is_nameless {
            Who::Nobody
        } else {
            Who::Device
        }
    }

    /// The stream that takes commands, as its place among the streams.
    pub(crate) fn command_stream(&self) -> Option<usize> {
        self.streams.iter().position(ClassStream::is_command)
    }

    /// The devices that this shard's links carry.
    pub fn devices(&self) -> Range<u32> {
        let first = self.directory.first_device().0;
        let place = |link: u32| {
            let devices = (link - self.first_link.0).saturating_mul(self.devices_per_link);
            first + devices.min(self.directory.devices())
        };
        place(self.links.start)..place(self.links.end)
    }
}
