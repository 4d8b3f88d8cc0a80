//! Messages to and from the business application, in the place of Kafka.
//!
//! A command's correlation id is its own id as text, and its body names it too: the one comes back where
//! Hono says that it could not deliver, the other reaches the device of a command that wants no reply.

use muster_model::Stamp;

use crate::command::{
    CommandCopy, CommandScratch, Commanded, Notice, OutboundCommand, Returned, named, named_text,
    read_named_text,
};

pub(super) const COMMAND: &str = "command";
pub(super) const RESPONSE: &str = "command_response";
pub(super) const FAILURE: &str = "command_failure";
/// The name of every command.
pub(super) const NAME: &str = "set";

/// The media types of Hono's notices, which distinguish them from replies.
const NOTICE_TYPES: [&str; 2] = [
    "application/vnd.eclipse-hono-delivery-failure-notification+json",
    "application/vnd.eclipse-hono-delivery-success-notification+json",
];

/// Returns true for a media type of Hono's own: no device sent such a message, as with
/// notifications of connections, or the device's message is empty.
pub fn is_own_media_type(media_type: &str) -> bool {
    media_type.starts_with("application/vnd.eclipse-hono-")
}

/// Renders the notice that a command could not be delivered. Returns false if the command has no
/// correlation id, so that no application could match the notice.
pub(super) fn write_notice(
    command: &Commanded<'_>,
    status: u16,
    why: &str,
    out: &mut CommandScratch,
) -> bool {
    let Some(correlation_id) = command.correlation_id else {
        return false;
    };
    let (tenant, device, status) = (command.tenant, command.device, status.to_string());
    write_topic(
        [FAILURE, tenant, device, correlation_id, &status],
        &mut out.topic,
    );
    out.payload.clear();
    out.payload
        .extend_from_slice(format!("{{\"error\":\"{why}\"}}").as_bytes());
    true
}

/// Reads the topic of a command; none if it is no such topic.
pub(super) fn command(topic: &str) -> Option<Commanded<'_>> {
    let [word, tenant, device, correlation_id, name] = levels(topic)?;
    let is_one = word == COMMAND && ![tenant, device, name].contains(&"");
    is_one.then_some(Commanded {
        tenant,
        device,
        correlation_id: (!correlation_id.is_empty()).then_some(correlation_id),
        name,
    })
}

/// True if a body of this media type is a notice.
pub(super) fn is_notice(media_type: &str) -> bool {
    NOTICE_TYPES.contains(&media_type)
}

/// Reads the topic of a notice; none if it is none, or of no command of Muster's.
fn notice(topic: &str) -> Option<Notice> {
    let [word, _, _, correlation_id, status] = levels(topic)?;
    (word == FAILURE).then_some(())?;
    Some(Notice {
        stamp: read_named_text(correlation_id)?,
        status: status.parse().ok()?,
    })
}

/// Renders a command as the business application issues it.
pub(super) fn write_command(to: &OutboundCommand<'_>, out: &mut CommandScratch) {
    write_body(to.stamp, out);
    let correlation_id = if to.is_two_way {
        &out.correlation_id
    } else {
        ""
    };
    write_topic(
        [COMMAND, to.tenant, to.device, correlation_id, NAME],
        &mut out.topic,
    );
}

/// Renders the body of a command, which names it, and its correlation id.
pub(super) fn write_body(stamp: &Stamp, out: &mut CommandScratch) {
    out.payload.clear();
    out.write_named(stamp);
    out.correlation_id.clear();
    // The characters of base64url are text.
    let id = named_text(stamp);
    let id = std::str::from_utf8(&id).unwrap_or_default();
    out.correlation_id.push_str(id);
}

/// Reads a notice, or a reply; none if the topic is neither's. The correlation id of a reply says which
/// command it is about, and the body has to say so too.
pub(super) fn returned(topic: &str, payload: &[u8]) -> Option<Returned> {
    if let Some(notice) = notice(topic) {
        return Some(Returned::Notice(notice));
    }
    let [word, _, _, correlation_id, status] = levels(topic)?;
    (word == RESPONSE).then(|| {
        Returned::Reply(CommandCopy {
            stamp: read_named_text(correlation_id).filter(|stamp| named(payload) == Some(*stamp)),
            status: status.parse().ok(),
            ..CommandCopy::UNREADABLE
        })
    })
}

/// Puts the topic on which a reply surfaces into `out`.
pub(super) fn write_reply_topic(
    [tenant, device, correlation_id]: [&str; 3],
    status: u16,
    out: &mut String,
) {
    write_topic(
        [
            RESPONSE,
            tenant,
            device,
            correlation_id,
            &status.to_string(),
        ],
        out,
    );
}

fn write_topic(levels: [&str; 5], out: &mut String) {
    out.clear();
    for (at, level) in levels.into_iter().enumerate() {
        out.push_str(if at == 0 { "" } else { "/" });
        out.push_str(level);
    }
}

fn levels(topic: &str) -> Option<[&str; 5]> {
    let mut all = topic.split('/');
    let mut levels = [""; 5];
    for level in &mut levels {
        *level = all.next()?;
    }
    all.next().is_none().then_some(levels)
}

#[cfg(test)]
pub(super) mod tests {
    use muster_model::{Delivery, Reason};

    use super::*;
    use crate::command::tests::{outbound, stamp};

    /// A command as it is issued.
    pub(crate) fn issued(is_two_way: bool) -> CommandScratch {
        let mut scratch = CommandScratch::default();
        let of = stamp();
        let to = outbound(&of, is_two_way);
        write_command(&to, &mut scratch);
        scratch
    }

    #[test]
    fn a_command_is_read_as_it_was_issued() {
        let two_way = issued(true);
        let read = command(&two_way.topic).expect("it is a command");
        assert_eq!((read.tenant, read.device), ("tload_tests", "ns:d-17"));
        assert_eq!(read.name, NAME);
        let id = read.correlation_id.expect("a reply is wanted");
        assert_eq!(read_named_text(id), Some(stamp()));
        assert_eq!(named(&two_way.payload), Some(stamp()));
        let one_way = issued(false);
        let read = command(&one_way.topic).expect("it is a command");
        assert_eq!(read.correlation_id, None);
        assert_eq!(named(&one_way.payload), Some(stamp()));
    }

    #[test]
    fn a_notice_tells_which_command_was_not_delivered() {
        let (two_way, mut said) = (issued(true), CommandScratch::default());
        let read = command(&two_way.topic).expect("it is a command");
        assert!(write_notice(&read, 503, "nobody waits", &mut said));
        assert_eq!(said.payload, b"{\"error\":\"nobody waits\"}");
        let expected = Notice {
            stamp: stamp(),
            status: 503,
        };
        assert_eq!(notice(&said.topic), Some(expected));
        let delivery = Delivery::Undeliverable(Reason::Application(503));
        assert_eq!(expected.delivery(), delivery);
        let read = returned(&said.topic, &said.payload);
        assert_eq!(read, Some(Returned::Notice(expected)));
        let one_way = issued(false);
        let read = command(&one_way.topic).expect("it is a command");
        assert!(!write_notice(&read, 503, "nobody waits", &mut said));
        assert_eq!(notice("command_failure/t/d/7f3a/503"), None);
    }

    /// The topic of a reply under a correlation id.
    fn reply_topic(correlation_id: &str) -> String {
        let mut topic = String::new();
        write_reply_topic(["tload_tests", "ns:d-17", correlation_id], 503, &mut topic);
        topic
    }

    /// The correlation id of a command with this stamp.
    fn correlation_id(stamp: &Stamp) -> String {
        String::from_utf8_lossy(&named_text(stamp)).into_owned()
    }

    #[test]
    fn a_reply_names_its_command_in_its_topic_and_its_body() {
        let issued = issued(true);
        let topic = reply_topic("7f3a");
        assert_eq!(topic, "command_response/tload_tests/ns:d-17/7f3a/503");
        let ours = reply_topic(&correlation_id(&stamp()));
        let copy = |stamp| CommandCopy {
            stamp,
            status: Some(503),
            ..CommandCopy::UNREADABLE
        };
        let read = returned(&ours, &issued.payload);
        assert_eq!(read, Some(Returned::Reply(copy(Some(stamp())))));
        assert_eq!(returned("telemetry/t/d", b""), None);
    }

    #[test]
    fn a_reply_whose_topic_and_body_do_not_agree_is_nobodys() {
        let (issued, mut other) = (issued(true), stamp());
        other.id.seq += 1;
        let [ours, mixed_up] = [stamp(), other].map(|stamp| reply_topic(&correlation_id(&stamp)));
        for (topic, payload) in [
            (&mixed_up, issued.payload.as_slice()),
            (&reply_topic("7f3a"), &issued.payload),
            (&reply_topic(""), &issued.payload),
            (&ours, b"{}"),
        ] {
            let read = returned(topic, payload);
            assert!(
                matches!(
                    read,
                    Some(Returned::Reply(CommandCopy {
                        stamp: None,
                        status: Some(503),
                        ..
                    }))
                ),
                "{topic}"
            );
        }
    }

    #[test]
    fn other_topics_are_no_commands() {
        for topic in [
            "command/t/d/set",
            "command//d/1/set",
            "command/t//1/set",
            "command/t/d/1/",
            "command/t/d/1/set/more",
            "telemetry/t/d",
        ] {
            assert_eq!(command(topic), None, "{topic}");
        }
    }
}
