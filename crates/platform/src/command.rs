//! A command on its way to a device, and the reply on its way back.

use muster_model::{Delivery, Reason, STAMP_TEXT, Stamp};

use crate::json::Json;
use crate::request::ReplyPath;

/// Payload bytes of a command that Muster issues, where the id does not travel in them.
pub const COMMAND_BYTES: usize = 64;
/// Payload bytes of a reply.
pub const REPLY_BYTES: usize = 16;

/// Filler of a command or reply: text, so that people can read it on the wire.
const FILL: &[u8] = b"muster ";
/// Filler next to an id that travels in JSON.
const NAMED_FILL: &[u8] = b"muster muster muster";

/// A copy of a command or of a reply, as its dialect reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommandCopy<'a> {
    /// The command and its instant of issue; none if the check fails, so that the id is not
    /// credible.
    pub stamp: Option<Stamp>,
    /// The platform's own number of the command, which the reply gives back; 0 where it has none.
    pub request: u32,
    /// Its device, if a link takes the commands of several devices; none if they are the link's
    /// own.
    pub device: Option<&'a str>,
    /// Result that a reply reports for its command, as a status of HTTP; none if replies carry no result.
    pub status: Option<u16>,
    /// The topic of the reply, where the command names it; none if no reply is wanted, or the
    /// dialect's replies need no such name.
    pub reply: Option<ReplyTopic<'a>>,
}

/// The levels of the topic that a reply goes to, but for the status behind them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplyTopic<'a>(pub(crate) [&'a str; 5]);

impl ReplyTopic<'_> {
    /// Puts the levels into `path`, which is emptied first; false if they are longer than it can hold.
    pub fn keep(&self, path: &mut ReplyPath) -> bool {
        path.clear();
        self.0.iter().all(|level| path.push(level))
    }
}

/// A command on its way north, as the business application issues it. How it is written there depends on
/// dialect and backend: [`Application::write_command`](crate::Application::write_command) over MQTT,
/// [`Kafka::command`](crate::Kafka::command) over Kafka.
#[derive(Debug, Clone, Copy)]
pub struct OutboundCommand<'a> {
    /// Its stamp.
    pub stamp: &'a Stamp,
    /// To whom.
    pub device: &'a str,
    /// The device's tenant; empty where the scenario has none.
    pub tenant: &'a str,
    /// True if a reply is wanted.
    pub is_two_way: bool,
}

/// A command of the business application as its topic says it at the server end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Commanded<'a> {
    /// The device's tenant; empty where the topic names none.
    pub tenant: &'a str,
    /// The device that it is for.
    pub device: &'a str,
    /// The id that the reply gives back; none where no reply is wanted, or commands have none.
    pub correlation_id: Option<&'a str>,
    /// Its name; empty where commands have no names.
    pub name: &'a str,
}

impl<'a> Commanded<'a> {
    /// A command to a device, whose topic says nothing else.
    pub(crate) const fn to(device: &'a str) -> Self {
        Self {
            tenant: "",
            device,
            correlation_id: None,
            name: "",
        }
    }
}

/// The platform's word on whether it could hand a command to its device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Notice {
    /// The stamp of the command.
    pub stamp: Stamp,
    /// As in HTTP: 2xx where the device has it, 5xx where it was not there, 4xx where the command is
    /// not right.
    pub status: u16,
}

impl Notice {
    /// The delivery that the notice reports.
    pub const fn delivery(&self) -> Delivery {
        match self.status {
            200..300 => Delivery::Delivered,
            status => Delivery::Undeliverable(Reason::Application(status)),
        }
    }
}

/// Replies and notices, which come back to the business application besides messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Returned {
    /// A device replied; without a stamp where its id is not that of a command of Muster's, or damaged.
    Reply(CommandCopy<'static>),
    /// The platform says whether a device got its command.
    Notice(Notice),
}

/// A command that is replied to, and by whom.
#[derive(Debug, Clone, Copy)]
pub struct Replying<'a> {
    /// The stamp of the command.
    pub stamp: &'a Stamp,
    /// The platform's number of it, as it came.
    pub request: u32,
    /// The replying device.
    pub device: &'a str,
    /// True if its link serves several devices.
    pub is_gateways: bool,
    /// The topic that the command named for its reply; none where topics follow from the rest.
    pub path: Option<&'a ReplyPath>,
    /// Result of the command, as a status of HTTP, where replies carry one.
    pub status: u16,
}

/// A command as the server end hands it to a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handing<'a> {
    /// The command as its topic says it.
    pub command: Commanded<'a>,
    /// Login of the gateway's link, or the gateway as the dialect names it; none if the device has a
    /// link.
    pub gateway: Option<&'a str>,
    /// The platform's number of it.
    pub request: u32,
}

/// Buffers of a command or a reply, used again for every one of them.
#[derive(Debug, Default)]
pub struct CommandScratch {
    /// The topic.
    pub topic: String,
    /// The payload.
    pub payload: Vec<u8>,
    /// The id that a reply gives back, where that is neither in the topic nor in the payload.
    pub(crate) correlation_id: String,
}

impl CommandCopy<'_> {
    /// A copy that cannot be read.
    pub(crate) const UNREADABLE: CommandCopy<'static> = CommandCopy {
        stamp: None,
        request: 0,
        device: None,
        status: None,
        reply: None,
    };

    /// Reads the text of an id whose check covers `covered`.
    pub(crate) fn read(text: &[u8], covered: &[u8]) -> Self {
        let text: Option<&[u8; STAMP_TEXT]> = text.try_into().ok();
        let stamp = text.and_then(|text| Stamp::decode_text(text, &[covered]).ok());
        Self {
            stamp,
            ..Self::UNREADABLE
        }
    }
}

impl CommandScratch {
    /// Fills the payload with text of this length in bytes.
    pub(crate) fn fill(&mut self, bytes: usize) {
        self.payload.clear();
        self.payload
            .extend(FILL.iter().copied().cycle().take(bytes));
    }

    /// Puts the parts of a topic together, with `id` as text whose check covers the payload.
    pub(crate) fn address(&mut self, before: [&str; 3], id: &Stamp, after: &str) {
        let text = id.encode_text(&[&self.payload]);
        self.topic.clear();
        self.topic.extend(before);
        // The characters of base64url are text.
        self.topic
            .push_str(std::str::from_utf8(&text).unwrap_or_default());
        self.topic.push_str(after);
    }

    /// Takes a topic that holds no id.
    pub(crate) fn head(&mut self, parts: &[&str]) {
        self.topic.clear();
        self.topic.extend(parts.iter().copied());
    }

    /// Appends the JSON object that names a command. The check of the id covers the filler text, so that
    /// the id stays valid if a platform writes the JSON anew.
    pub(crate) fn write_named(&mut self, id: &Stamp) {
        let text = named_text(id);
        for part in [
            b"{\"musterId\":\"".as_slice(),
            &text,
            b"\",\"fill\":\"",
            NAMED_FILL,
            b"\"}",
        ] {
            self.payload.extend_from_slice(part);
        }
    }
}

/// The id of [`CommandScratch::write_named`] by itself.
pub(crate) fn named_text(id: &Stamp) -> [u8; STAMP_TEXT] {
    id.encode_text(&[NAMED_FILL])
}

/// Reads it; none if it is none or damaged.
pub(crate) fn read_named_text(text: &str) -> Option<Stamp> {
    CommandCopy::read(text.as_bytes(), NAMED_FILL).stamp
}

/// Reads the object of [`CommandScratch::write_named`]; none if it is no such object or damaged.
pub(crate) fn named(object: &[u8]) -> Option<Stamp> {
    let mut json = Json::new(object);
    let (mut id, mut fill) = (None, None);
    json.members(|key, json| match key {
        b"musterId" => json.string().map(|text| id = Some(text)),
        b"fill" => json.string().map(|text| fill = Some(text)),
        _ => json.skip(),
    })?;
    CommandCopy::read(id?, fill?).stamp
}

#[cfg(test)]
pub(crate) mod tests {
    use muster_model::{DeviceId, MessageId, Micros, RunId, StreamId};

    use super::*;

    /// A command of a run.
    pub(crate) fn stamp() -> Stamp {
        Stamp {
            id: MessageId {
                run: RunId(7),
                device: DeviceId(3),
                stream: StreamId(1),
                seq: 41,
            },
            due: Some(Micros(5)),
        }
    }

    /// The same as the application issues it.
    pub(crate) fn outbound(stamp: &Stamp, is_two_way: bool) -> OutboundCommand<'_> {
        OutboundCommand {
            stamp,
            device: "ns:d-17",
            tenant: "tload_tests",
            is_two_way,
        }
    }

    #[test]
    fn a_name_in_json_survives_another_writer_and_no_damage() {
        let mut scratch = CommandScratch::default();
        scratch.write_named(&stamp());
        assert_eq!(named(&scratch.payload), Some(stamp()));
        let text = String::from_utf8(scratch.payload).expect("it is text");
        let other: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
        let other = serde_json::to_string_pretty(&other).expect("it can be written");
        assert_ne!(other, text);
        assert_eq!(named(other.as_bytes()), Some(stamp()));
        assert_eq!(
            named(text.replace("muster muster", "musteR").as_bytes()),
            None
        );
        for broken in ["", "{}", "[]", r#"{"musterId":1,"fill":""}"#] {
            assert_eq!(named(broken.as_bytes()), None, "{broken}");
        }
    }
}
