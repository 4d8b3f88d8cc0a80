//! Plain MQTT: topics and payloads of messages are the scenario's.
//!
//! Commands have topics of their own, since nothing is usual there: a command comes on
//! `command/<device>/req/<id>` and is replied to on `command/<device>/res/<id>/<status>`. The id is
//! a stamp as text whose check covers the payload of its message, so that it serves MQTT 3.1.1 and 5
//! alike and a broker can grant each device its own.

use muster_model::{Promise, Stamp};

use crate::command::{COMMAND_BYTES, CommandCopy, CommandScratch, REPLY_BYTES, Replying};
use crate::dialect::{Defaults, Promises};
use crate::downlink::Downlink;

/// A broker acknowledges what it has in its queues.
pub(crate) const PROMISES: Promises = Promises {
    transport: Promise::Enqueued,
    application: Promise::Nothing,
};

/// The language's own defaults stand.
pub(crate) const DEFAULTS: Defaults = Defaults {
    fleet: &[],
    gateway: &[],
    gateway_stream: &[],
    stream: &[],
    acknowledged: &[],
};

/// What a device subscribes to that takes commands.
pub(crate) const COMMANDS: &str = "command/${id}/req/+";
/// What the business application subscribes to for the replies of all devices.
pub(crate) const REPLIES: &str = "command/+/res/#";

const ROOT: &str = "command/";
const REQUEST: &str = "/req/";
const RESPONSE: &str = "/res/";
/// The status of every reply.
const DONE: &str = "/200";

pub(crate) fn downlink<'a>(topic: &str, payload: &'a [u8]) -> Downlink<'a> {
    match below_device(topic, REQUEST) {
        Some(id) => Downlink::Command(CommandCopy::read(id.as_bytes(), payload)),
        None => Downlink::Other,
    }
}

pub(crate) fn write_command(stamp: &Stamp, device: &str, out: &mut CommandScratch) {
    out.fill(COMMAND_BYTES);
    out.address([ROOT, device, REQUEST], stamp, "");
}

pub(crate) fn write_reply(to: &Replying<'_>, out: &mut CommandScratch) {
    out.fill(REPLY_BYTES);
    out.address([ROOT, to.device, RESPONSE], to.stamp, DONE);
}

/// Reads a reply; none if the topic is not one of replies.
pub(crate) fn reply(topic: &str, payload: &[u8]) -> Option<CommandCopy<'static>> {
    let rest = below_device(topic, RESPONSE)?;
    let (id, _) = rest.split_once('/').unwrap_or((rest, ""));
    Some(CommandCopy::read(id.as_bytes(), payload))
}

pub(crate) fn is_reply(topic: &str) -> bool {
    below_device(topic, RESPONSE).is_some()
}

pub(crate) fn is_command(topic: &str) -> bool {
    below_device(topic, REQUEST).is_some()
}

/// What follows the device and `word` in a topic of commands. A device's name may have levels.
fn below_device<'a>(topic: &'a str, word: &str) -> Option<&'a str> {
    let rest = topic.strip_prefix(ROOT)?;
    rest.rsplit_once(word).map(|(_, below)| below)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::tests::stamp;

    #[test]
    fn a_command_and_its_reply_read_back_as_they_were_written() {
        let mut scratch = CommandScratch::default();
        write_command(&stamp(), "d-3", &mut scratch);
        assert!(scratch.topic.starts_with("command/d-3/req/") && is_command(&scratch.topic));
        assert!(matches!(
            downlink(&scratch.topic, &scratch.payload),
            Downlink::Command(CommandCopy { stamp: Some(read), .. }) if read == stamp()
        ));
        let to = Replying {
            stamp: &stamp(),
            request: 0,
            device: "d-3",
            is_gateways: false,
        };
        write_reply(&to, &mut scratch);
        assert!(scratch.topic.ends_with("/200") && !is_command(&scratch.topic));
        let read = reply(&scratch.topic, &scratch.payload);
        assert_eq!(read.map(|copy| copy.stamp), Some(Some(stamp())));
    }

    #[test]
    fn one_altered_character_or_bit_is_not_believed() {
        let mut scratch = CommandScratch::default();
        write_command(&stamp(), "d-3", &mut scratch);
        scratch.payload[9] ^= 4;
        assert!(matches!(
            downlink(&scratch.topic, &scratch.payload),
            Downlink::Command(CommandCopy { stamp: None, .. })
        ));
        scratch.payload[9] ^= 4;
        let topic = scratch.topic.replace("/req/A", "/req/B");
        assert_ne!(topic, scratch.topic);
        assert!(matches!(
            downlink(&topic, &scratch.payload),
            Downlink::Command(CommandCopy { stamp: None, .. })
        ));
    }

    #[test]
    fn other_topics_are_nobodys() {
        assert!(matches!(downlink("muster/d/t", b""), Downlink::Other));
        assert_eq!(reply("command/d/req/x", b""), None);
    }
}
