//! Plain MQTT: topics and payloads of messages are the scenario's.
//!
//! Muster defines the topics of commands, since no convention exists: a command comes on
//! `command/<device>/req/<id>` and is replied to on `command/<device>/res/<id>/<status>`. The id is
//! a stamp as text whose check covers the payload of its message, so that it serves MQTT 3.1.1 and 5
//! alike and a broker can grant each device its own.

use crate::command::{
    COMMAND_BYTES, CommandCopy, CommandScratch, Commanded, OutboundCommand, REPLY_BYTES, Replying,
    Returned,
};
use crate::downlink::Downlink;

use crate::spec::{Application, PLAIN, PLAIN_PUBLISHING, PLAIN_SERVER, Publishing, Server, Spec};

pub(crate) static MQTT: Spec = Spec {
    name: "mqtt",
    is_broker: true,
    write_reply,
    application: Application {
        replies: Some("command/+/res/#"),
        write_command,
        returned,
        ..PLAIN.application
    },
    server: Server {
        command,
        surfaced_reply,
        ..PLAIN_SERVER
    },
    mqtt: Some(Publishing {
        commands: Some("command/${id}/req/+"),
        has_free_client_ids: true,
        downlink,
        ..PLAIN_PUBLISHING
    }),
    ..PLAIN
};

const ROOT: &str = "command/";
const REQUEST: &str = "/req/";
const RESPONSE: &str = "/res/";
/// The status of every reply.
const DONE: &str = "/200";

fn downlink<'a>(topic: &str, payload: &'a [u8]) -> Downlink<'a> {
    match below_device(topic, REQUEST) {
        Some((_, id)) => Downlink::Command(CommandCopy::read(id.as_bytes(), payload)),
        None => Downlink::Other,
    }
}

fn write_command(to: &OutboundCommand<'_>, out: &mut CommandScratch) {
    out.fill(COMMAND_BYTES);
    out.address([ROOT, to.device, REQUEST], to.stamp, "");
}

fn write_reply(to: &Replying<'_>, out: &mut CommandScratch) {
    out.fill(REPLY_BYTES);
    out.address([ROOT, to.device, RESPONSE], to.stamp, DONE);
}

/// Reads a reply; none if the topic is not one of replies.
fn returned(topic: &str, payload: &[u8]) -> Option<Returned> {
    let (_, rest) = below_device(topic, RESPONSE)?;
    let (id, _) = rest.split_once('/').unwrap_or((rest, ""));
    Some(Returned::Reply(CommandCopy::read(id.as_bytes(), payload)))
}

fn surfaced_reply<'a>(
    _: &str,
    topic: &str,
    payload: &'a [u8],
    out: &mut String,
) -> Option<&'a [u8]> {
    below_device(topic, RESPONSE)?;
    out.clear();
    out.push_str(topic);
    Some(payload)
}

fn command(topic: &str) -> Option<Commanded<'_>> {
    let (device, _) = below_device(topic, REQUEST)?;
    Some(Commanded::to(device))
}

/// The device, and what follows it and `word` in a topic of commands. A device's name may have levels.
fn below_device<'a>(topic: &'a str, word: &str) -> Option<(&'a str, &'a str)> {
    topic.strip_prefix(ROOT)?.rsplit_once(word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::tests::stamp;

    fn to_d3(stamp: &muster_model::Stamp) -> OutboundCommand<'_> {
        OutboundCommand {
            stamp,
            device: "d-3",
            tenant: "",
            is_two_way: true,
        }
    }

    #[test]
    fn a_command_and_its_reply_read_back_as_they_were_written() {
        let mut scratch = CommandScratch::default();
        write_command(&to_d3(&stamp()), &mut scratch);
        assert!(scratch.topic.starts_with("command/d-3/req/"));
        assert_eq!(command(&scratch.topic), Some(Commanded::to("d-3")));
        assert!(matches!(
            downlink(&scratch.topic, &scratch.payload),
            Downlink::Command(CommandCopy { stamp: Some(read), .. }) if read == stamp()
        ));
        let to = Replying {
            stamp: &stamp(),
            request: 0,
            device: "d-3",
            is_gateways: false,
            path: None,
            status: 200,
        };
        write_reply(&to, &mut scratch);
        assert!(scratch.topic.ends_with("/200") && command(&scratch.topic).is_none());
        assert!(matches!(
            returned(&scratch.topic, &scratch.payload),
            Some(Returned::Reply(CommandCopy { stamp: Some(read), .. })) if read == stamp()
        ));
    }

    #[test]
    fn one_altered_character_or_bit_is_not_believed() {
        let mut scratch = CommandScratch::default();
        write_command(&to_d3(&stamp()), &mut scratch);
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
        assert_eq!(returned("command/d/req/x", b""), None);
    }
}
