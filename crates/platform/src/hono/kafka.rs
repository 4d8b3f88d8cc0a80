//! Where Hono publishes on Kafka, with the partition counts of the published test, and how commands and
//! replies are written there.

use super::northbound::{Notice, command};
use crate::command::{CommandCopy, Commanded, named, read_named_text};
use crate::hono::commands::JSON;
use crate::kafka::{KafkaClass, KafkaCommand, KafkaRecords, Returned};

/// Where commands are produced: before the tenant.
const COMMANDS: &str = "hono.command.";
/// Headers. Every value is UTF-8 text: strings as they are, all else as JSON.
const DEVICE_ID: &str = "device_id";
const SUBJECT: &str = "subject";
/// The header of a record that has its media type.
pub const CONTENT_TYPE: &str = "content-type";
const CORRELATION_ID: &str = "correlation-id";
const RESPONSE_REQUIRED: &str = "response-required";
const STATUS: &str = "status";

/// Hono creates none of them itself; those of notifications have no tenant.
pub(super) const TOPICS: [KafkaClass; 6] = [
    class(
        "telemetry",
        "hono.telemetry.${tenant}",
        10,
        "telemetry/${tenant}/",
    ),
    class("event", "hono.event.${tenant}", 4, "event/${tenant}/"),
    KafkaClass {
        records: KafkaRecords::Replies,
        ..class(
            "command_response",
            "hono.command_response.${tenant}",
            2,
            "command_response/${tenant}/",
        )
    },
    not_consumed("command", "hono.command.${tenant}", 3),
    not_consumed("registry-tenant", "hono.notification.registry-tenant", 4),
    not_consumed("registry-device", "hono.notification.registry-device", 4),
];

const fn class(
    name: &'static str,
    topic: &'static str,
    partitions: u32,
    surface: &'static str,
) -> KafkaClass {
    KafkaClass {
        name,
        topic,
        partitions,
        surface,
        records: KafkaRecords::Messages,
    }
}

const fn not_consumed(name: &'static str, topic: &'static str, partitions: u32) -> KafkaClass {
    KafkaClass {
        records: KafkaRecords::Others,
        ..class(name, topic, partitions, "")
    }
}

/// A command, from the topic that it has where MQTT stands in for Kafka; none if it is no command, or its
/// correlation id is longer than Hono takes.
pub(super) fn record_of(topic: &str) -> Option<KafkaCommand<'_>> {
    let command = command(topic).filter(Commanded::is_takeable)?;
    let record = KafkaCommand::new([COMMANDS, command.tenant], command.device)
        .with(DEVICE_ID, command.device)
        .with(SUBJECT, command.name)
        .with(CONTENT_TYPE, JSON);
    Some(match command.correlation_id {
        Some(id) => record
            .with(CORRELATION_ID, id)
            .with(RESPONSE_REQUIRED, "true"),
        None => record,
    })
}

/// Reads a record of the topic of replies. The correlation id says which command it is about, and of a
/// reply the body has to say so too. A record where neither says so is another application's.
pub(super) fn returned<'a>(
    headers: &mut dyn Iterator<Item = (&'a str, &'a [u8])>,
    payload: &[u8],
) -> Option<Returned> {
    let (mut correlation_id, mut status, mut is_notice) = (None, None, false);
    for (name, value) in headers {
        let text = std::str::from_utf8(value).ok();
        match name {
            CORRELATION_ID => correlation_id = text,
            STATUS => status = text.and_then(|text| text.parse().ok()),
            CONTENT_TYPE => is_notice = text.is_some_and(Notice::is_told_by),
            _ => {}
        }
    }
    let stamp = correlation_id.and_then(read_named_text);
    if let (true, Some((stamp, status))) = (is_notice, stamp.zip(status)) {
        return Some(Returned::Notice(Notice { stamp, status }));
    }
    let told = named(payload);
    if stamp.is_none() && told.is_none() {
        return None;
    }
    Some(Returned::Reply(CommandCopy {
        stamp: stamp.filter(|stamp| told == Some(*stamp)),
        status,
        ..CommandCopy::UNREADABLE
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::tests::stamp;
    use crate::hono::northbound::tests::issued;

    /// The headers of a record as its bytes are.
    fn bytes<'a>(headers: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a [u8])> {
        let bytes = headers
            .iter()
            .map(|(name, value)| (*name, value.as_bytes()));
        bytes.collect()
    }

    fn read(headers: &[(&str, &str)], payload: &[u8]) -> Option<Returned> {
        returned(&mut bytes(headers).into_iter(), payload)
    }

    /// Step 4 of the reference's worked example.
    #[test]
    fn a_command_has_the_headers_of_the_worked_example() {
        let topic = "command/tload_tests/ns:d-17/7f3a/set";
        let record = record_of(topic).expect("it is a command");
        assert_eq!(record.topic.concat(), "hono.command.tload_tests");
        assert_eq!(record.key, "ns:d-17");
        let golden: [(&str, &[u8]); 5] = [
            ("device_id", b"ns:d-17"),
            ("subject", b"set"),
            ("content-type", b"application/json"),
            ("correlation-id", b"7f3a"),
            ("response-required", b"true"),
        ];
        assert_eq!(bytes(record.headers()), golden);
    }

    #[test]
    fn a_command_without_a_reply_has_no_correlation_id() {
        let one_way = issued(false);
        let record = record_of(&one_way.topic).expect("it is a command");
        let names = record.headers().iter().map(|(name, _)| *name);
        assert!(names.eq(["device_id", "subject", "content-type"]));
    }

    #[test]
    fn a_correlation_id_is_as_long_as_two_hexadecimal_digits_tell() {
        let topic = |length| format!("command/t/d/{}/set", "x".repeat(length));
        assert!(record_of(&topic(255)).is_some());
        assert_eq!(record_of(&topic(256)), None);
        let ours = issued(true);
        let record = record_of(&ours.topic).expect("it is a command");
        assert_eq!(record.headers()[3].1.len(), 30);
    }

    /// Step 7 of the reference's worked example, with an id of Muster's.
    #[test]
    fn a_reply_is_known_by_its_correlation_id_and_its_body() {
        let issued = issued(true);
        let record = record_of(&issued.topic).expect("it is a command");
        let id = record.headers()[3].1;
        let headers = [
            ("correlation-id", id),
            ("device_id", "ns:d-17"),
            ("tenant_id", "tload_tests"),
            ("status", "200"),
            ("creation-time", "1712345678901"),
        ];
        let known = CommandCopy {
            stamp: Some(stamp()),
            status: Some(200),
            ..CommandCopy::UNREADABLE
        };
        let unknown = Some(Returned::Reply(CommandCopy {
            stamp: None,
            ..known
        }));
        assert_eq!(
            read(&headers, &issued.payload),
            Some(Returned::Reply(known))
        );
        assert_eq!(read(&headers, b"{}"), unknown, "another body");
        assert_eq!(read(&headers[1..], &issued.payload), unknown, "no id");
        let other = [("correlation-id", "7f3a"), ("status", "200")];
        assert_eq!(read(&other, &issued.payload), unknown, "another's id");
        assert_eq!(read(&other, b"{}"), None, "another application's");
        assert_eq!(read(&[], b""), None);
    }

    #[test]
    fn a_notice_is_known_by_its_media_type() {
        let issued = issued(true);
        let record = record_of(&issued.topic).expect("it is a command");
        let id = record.headers()[3].1;
        let failure = "application/vnd.eclipse-hono-delivery-failure-notification+json";
        let success = "application/vnd.eclipse-hono-delivery-success-notification+json";
        for (media_type, status) in [(failure, "503"), (success, "202")] {
            let headers = [
                ("status", status),
                ("content-type", media_type),
                ("correlation-id", id),
            ];
            let expected = Some(Returned::Notice(Notice {
                stamp: stamp(),
                status: status.parse().expect("a number"),
            }));
            assert_eq!(read(&headers, b"{\"error\":\"x\"}"), expected);
        }
        let without = [("content-type", failure), ("correlation-id", id)];
        let unknown = Some(Returned::Reply(CommandCopy::UNREADABLE));
        assert_eq!(read(&without, b"{}"), unknown, "it says no status");
        let foreign = [
            ("content-type", failure),
            ("correlation-id", "7f3a"),
            ("status", "503"),
        ];
        assert_eq!(read(&foreign, b"{}"), None, "another's command");
    }
}
