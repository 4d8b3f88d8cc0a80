//! Hono's topics on Kafka, with the partition counts of the published test, and the form of
//! commands and replies there.

use super::northbound::{NAME, is_notice, write_body};
use crate::command::{
    CommandCopy, CommandScratch, Notice, OutboundCommand, Returned, named, read_named_text,
};
use crate::hono::commands::JSON;
use crate::kafka::{Headers, KafkaClass, KafkaCommand, KafkaRecords};

/// Prefix of the topic of commands, in front of the tenant.
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

/// Renders a command as a record. Its correlation id is its own id as text.
pub(super) fn record<'a>(
    to: &OutboundCommand<'a>,
    out: &'a mut CommandScratch,
) -> KafkaCommand<'a> {
    out.head(&[COMMANDS, to.tenant]);
    write_body(to.stamp, out);
    let record = KafkaCommand::new(&out.topic, to.device, &out.payload)
        .with(DEVICE_ID, to.device)
        .with(SUBJECT, NAME)
        .with(CONTENT_TYPE, JSON);
    match to.is_two_way {
        true => record
            .with(CORRELATION_ID, &out.correlation_id)
            .with(RESPONSE_REQUIRED, "true"),
        false => record,
    }
}

/// Reads a record of the topic of replies. The correlation id says which command it is about, and of a
/// reply the body has to say so too. A record where neither says so is another application's.
pub(super) fn returned<'a>(headers: Headers<'_, 'a>, payload: &[u8]) -> Option<Returned> {
    let (mut correlation_id, mut status, mut has_notice) = (None, None, false);
    for (name, value) in headers {
        let text = std::str::from_utf8(value).ok();
        match name {
            CORRELATION_ID => correlation_id = text,
            STATUS => status = text.and_then(|text| text.parse().ok()),
            CONTENT_TYPE => has_notice = text.is_some_and(is_notice),
            _ => {}
        }
    }
    let stamp = correlation_id.and_then(read_named_text);
    if let (true, Some((stamp, status))) = (has_notice, stamp.zip(status)) {
        return Some(Returned::Notice(Notice { stamp, status }));
    }
    let in_body = named(payload);
    if stamp.is_none() && in_body.is_none() {
        return None;
    }
    Some(Returned::Reply(CommandCopy {
        stamp: stamp.filter(|stamp| in_body == Some(*stamp)),
        status,
        ..CommandCopy::UNREADABLE
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::tests::{outbound, stamp};

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

    /// A command of Muster's as a record, with its correlation id.
    fn issued(is_two_way: bool) -> (CommandScratch, Vec<(&'static str, String)>) {
        let mut scratch = CommandScratch::default();
        let of = stamp();
        let to = outbound(&of, is_two_way);
        let record = record(&to, &mut scratch);
        assert_eq!(record.topic, "hono.command.tload_tests");
        assert_eq!(record.key, "ns:d-17");
        assert_eq!(named(record.payload), Some(stamp()));
        let headers = record.headers().iter();
        let headers = headers.map(|(name, value)| (*name, (*value).to_owned()));
        let headers = headers.collect();
        (scratch, headers)
    }

    /// Step 4 of the reference's worked example, with an id of Muster's.
    #[test]
    fn a_command_has_the_headers_of_the_worked_example() {
        let (scratch, headers) = issued(true);
        assert_eq!(read_named_text(&scratch.correlation_id), Some(stamp()));
        let golden = [
            ("device_id", "ns:d-17"),
            ("subject", "set"),
            ("content-type", "application/json"),
            ("correlation-id", scratch.correlation_id.as_str()),
            ("response-required", "true"),
        ];
        let headers = headers.iter().map(|(name, value)| (*name, value.as_str()));
        assert!(headers.eq(golden));
    }

    #[test]
    fn a_command_without_a_reply_has_no_correlation_id() {
        let (_, headers) = issued(false);
        let names = headers.iter().map(|(name, _)| *name);
        assert!(names.eq(["device_id", "subject", "content-type"]));
    }

    /// Step 7 of the reference's worked example, with an id of Muster's.
    #[test]
    fn a_reply_is_known_by_its_correlation_id_and_its_body() {
        let (issued, _) = issued(true);
        let id = issued.correlation_id.as_str();
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
        let (issued, _) = issued(true);
        let id = issued.correlation_id.as_str();
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
