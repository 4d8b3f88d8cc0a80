//! Commands of each dialect: at the business application's end, the platform's and the device's.

use super::Dialect;
use crate::command::{CommandCopy, CommandScratch, Commanding, Handing, Replying};
use crate::hono::Notice;
use crate::kafka::{KafkaCommand, Returned};
use crate::{hono, mqtt, sap_edge, thingsboard};

impl Dialect {
    /// What a link subscribes to beyond [`Dialect::subscriptions`] if its devices take commands; `${id}`
    /// stands for the name of its device. `is_gateways` asks for links that carry several.
    #[must_use]
    pub const fn commands(self, is_gateways: bool) -> Option<&'static str> {
        match (self, is_gateways) {
            (Self::Mqtt, false) => Some(mqtt::COMMANDS),
            (Self::Thingsboard, false) => Some(thingsboard::COMMANDS),
            (Self::Thingsboard, true) => Some(thingsboard::GATEWAY_RPC),
            (Self::Mqtt, true) | (Self::SapEdge | Self::Hono, _) => None,
        }
    }

    /// Whether a link may take the commands of several devices.
    #[must_use]
    pub const fn commands_gateways(self) -> bool {
        self.asks() || self.commands(true).is_some()
    }

    /// What the business application subscribes to for the replies of all devices; none where
    /// commands are one-way.
    #[must_use]
    pub const fn replies(self) -> Option<&'static str> {
        match self {
            Self::Mqtt => Some(mqtt::REPLIES),
            Self::SapEdge => None,
            Self::Thingsboard => Some(thingsboard::REPLIES),
            Self::Hono => Some(hono::REPLIES),
        }
    }

    /// Whether a reply tells what became of its command by a status of the device's choice.
    #[must_use]
    pub const fn replies_with_status(self) -> bool {
        match self {
            Self::Mqtt | Self::SapEdge | Self::Thingsboard => false,
            Self::Hono => true,
        }
    }

    /// What the business application subscribes to for what the platform says of the delivery of commands
    /// that want a reply; none where its first word on them is its last.
    #[must_use]
    pub const fn notices(self) -> Option<&'static str> {
        match self {
            Self::Mqtt | Self::SapEdge | Self::Thingsboard => None,
            Self::Hono => Some(hono::NOTICES),
        }
    }

    /// Reads a notice of delivery; none if the topic is not one of notices, or its command none of
    /// Muster's.
    #[must_use]
    pub fn notice(self, topic: &str) -> Option<Notice> {
        match self {
            Self::Mqtt | Self::SapEdge | Self::Thingsboard => None,
            Self::Hono => Notice::of(topic),
        }
    }

    /// Whether the platform takes commands from Kafka.
    #[must_use]
    pub const fn commands_by_kafka(self) -> bool {
        match self {
            Self::Mqtt | Self::SapEdge | Self::Thingsboard => false,
            Self::Hono => true,
        }
    }

    /// The record of a command, from the topic that [`Dialect::write_command`] gave it; none where the
    /// platform takes none from Kafka, or not that one.
    #[must_use]
    pub fn kafka_command(self, topic: &str) -> Option<KafkaCommand<'_>> {
        match self {
            Self::Mqtt | Self::SapEdge | Self::Thingsboard => None,
            Self::Hono => hono::kafka_command(topic),
        }
    }

    /// Reads a record of a topic of [`KafkaRecords::Replies`](crate::KafkaRecords::Replies) from its
    /// headers and its value; none where there is no such topic, or the record is another application's.
    pub fn returned<'a>(
        self,
        headers: impl Iterator<Item = (&'a str, &'a [u8])>,
        payload: &[u8],
    ) -> Option<Returned> {
        match self {
            Self::Mqtt | Self::SapEdge | Self::Thingsboard => None,
            Self::Hono => hono::returned(headers, payload),
        }
    }

    /// Renders a command as the business application issues it.
    pub fn write_command(self, to: &Commanding<'_>, out: &mut CommandScratch) {
        match self {
            Self::Mqtt => mqtt::write_command(to.stamp, to.device, out),
            Self::SapEdge => sap_edge::write_command(to.stamp, to.device, out),
            Self::Thingsboard => thingsboard::write_command(to.stamp, to.device, out),
            Self::Hono => hono::write_command(to, out),
        }
    }

    /// Renders a device's reply to a command: topic and payload, and the payload alone where the
    /// reply is a request ([`Dialect::ask_reply`]).
    pub fn write_reply(self, to: &Replying<'_>, out: &mut CommandScratch) {
        match self {
            Self::Mqtt => mqtt::write_reply(to, out),
            Self::SapEdge => {}
            Self::Thingsboard => thingsboard::write_reply(to, out),
            Self::Hono => hono::write_reply(to, out),
        }
    }

    /// Reads a reply as the business application hears it; none if the topic is not one of replies.
    #[must_use]
    pub fn reply(self, topic: &str, payload: &[u8]) -> Option<CommandCopy<'static>> {
        match self {
            Self::Mqtt => mqtt::reply(topic, payload),
            Self::SapEdge => None,
            Self::Thingsboard => thingsboard::reply(topic, payload),
            Self::Hono => hono::reply(topic, payload),
        }
    }

    /// Whether the business application commands on a topic.
    #[must_use]
    pub fn is_command(self, topic: &str) -> bool {
        match self {
            Self::Mqtt => mqtt::is_command(topic),
            Self::SapEdge => sap_edge::is_command(topic),
            Self::Thingsboard => thingsboard::commanded(topic).is_some(),
            Self::Hono => hono::Commanded::of(topic).is_some(),
        }
    }

    /// The device that a command is for, where the server end hands it on in another form than it
    /// came; none where it goes on as it is.
    #[must_use]
    pub fn commanded(self, topic: &str) -> Option<&str> {
        match self {
            Self::Mqtt | Self::SapEdge => None,
            Self::Thingsboard => thingsboard::commanded(topic),
            Self::Hono => hono::Commanded::of(topic).map(|command| command.device),
        }
    }

    /// Whether a payload is a command that the server end takes.
    #[must_use]
    pub fn takes_command(self, payload: &[u8]) -> bool {
        match self {
            Self::Mqtt | Self::SapEdge | Self::Hono => true,
            Self::Thingsboard => thingsboard::is_call(payload),
        }
    }

    /// Renders a command as the server end hands it on, in the form of that number, from 0: the first
    /// that somebody subscribed to is right. False if there is no such form.
    pub fn hand(
        self,
        form: usize,
        to: &Handing<'_>,
        payload: &[u8],
        out: &mut CommandScratch,
    ) -> bool {
        match self {
            Self::Mqtt | Self::SapEdge | Self::Hono => false,
            Self::Thingsboard => thingsboard::hand(form, to, payload, out),
        }
    }

    /// A device's reply as the server end makes it surface: its topic goes into `out`, which is emptied
    /// first. None if the topic is not one of replies.
    #[must_use]
    pub fn surfaced_reply<'a>(
        self,
        link: &'a str,
        topic: &str,
        payload: &'a [u8],
        out: &mut String,
    ) -> Option<&'a [u8]> {
        match self {
            Self::Mqtt => {
                out.clear();
                out.push_str(topic);
                mqtt::is_reply(topic).then_some(payload)
            }
            Self::SapEdge | Self::Hono => None,
            Self::Thingsboard => thingsboard::surfaced(link, topic, payload, out),
        }
    }
}
