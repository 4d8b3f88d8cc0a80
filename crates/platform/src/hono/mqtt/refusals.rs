//! Refusals of what a device published, on the topic of errors.

use std::fmt::Write as _;

use muster_model::percent::Part;

use super::super::requests::Endpoint;
use super::{COMMAND_WORDS, ERROR_WORDS, Identity, PropertyBag, levels, scope};
use crate::command::CommandScratch;
use crate::downlink::{Acknowledgement, Acknowledgements, ApplicationId, Downlink, Words};
use crate::scope::scoped;
use crate::server::{Objection, OnRefusal};

/// Forms of a refusal: each word, and tenant and device named or not.
const FORMS: usize = 8;
/// The correlation id of a message that has none, and no packet id either.
const NO_ID: &str = "-1";

/// Reads a refusal that came to a device; none if the topic is none of one.
pub(super) fn read<'a>(topic: &str, payload: &'a [u8]) -> Option<Downlink<'a>> {
    let [word, _tenant, _device, _endpoint, id, status] = levels(topic)?;
    let status = ERROR_WORDS.contains(&word).then(|| status.parse().ok())?;
    let refusal = Acknowledgement {
        id: ApplicationId::parse(id.as_bytes()),
        is_of_oldest: false,
        is_accepted: false,
        code: status?,
        messages: payload,
    };
    Some(Downlink::Acknowledgements(Acknowledgements(Words::One(
        Some(Ok(refusal)),
    ))))
}

/// The treatment of a message that is refused: as its property `on-error` says.
pub(in super::super) fn treatment(topic: &str, is_published: bool) -> OnRefusal {
    let (_, properties) = PropertyBag::split(topic);
    match (properties.raw(PropertyBag::ON_ERROR), is_published) {
        (Some("ignore"), _) => OnRefusal::Acknowledge,
        (Some("skip-ack"), _) => OnRefusal::Ignore,
        (Some("disconnect"), _) | (_, false) => OnRefusal::Disconnect,
        (_, true) => OnRefusal::Acknowledge,
    }
}

/// Renders a refusal as it is routed, in one of the forms in which the link may have subscribed to it; false
/// if there is no such form.
pub(in super::super) fn write(form: usize, to: &Objection<'_>, out: &mut CommandScratch) -> bool {
    let (path, properties) = PropertyBag::split(to.topic);
    let own = Identity::parse(to.link);
    let word = path.split('/').next().unwrap_or_default();
    let [_, tenant, device] = levels::<3>(path).unwrap_or_default();
    let device = device.split('/').next().unwrap_or_default();
    let (tenant, device) = match own {
        Some(own) => (own.tenant, own.auth_id),
        None => (tenant, device),
    };
    if form >= FORMS {
        return false;
    }
    let packet_id = to.packet_id.map(|id| id.to_string());
    let mut id = String::new();
    if !properties.read(PropertyBag::CORRELATION_ID, &mut id) {
        id.push_str(packet_id.as_deref().unwrap_or(NO_ID));
    }
    let status = to.status.to_string();
    let mut level = String::new();
    match id.contains(is_no_part_of_a_level) {
        true => Part::Value.encode(&id, &mut level),
        false => level.push_str(&id),
    }
    let visible = [
        ERROR_WORDS[form & 1],
        if form & 2 != 0 { tenant } else { "" },
        if form & 4 != 0 { device } else { "" },
        endpoint(word),
        &level,
        &status,
    ];
    out.topic.clear();
    scoped(&scope(tenant, device), &visible.join("/"), &mut out.topic);
    out.payload.clear();
    write_body(to, &id, &mut out.payload);
    true
}

/// True for a character that ends a level, or that the name of a topic must not hold.
fn is_no_part_of_a_level(character: char) -> bool {
    matches!(character, '/' | '+' | '#') || character.is_control()
}

/// The name of an endpoint in the topic of a refusal.
fn endpoint(word: &str) -> &'static str {
    match Endpoint::named(word) {
        Some((endpoint, _)) => endpoint.word(false),
        None if COMMAND_WORDS.contains(&word) => "command-response",
        None => "unknown",
    }
}

/// Appends the body: what was wrong, when, and with which message.
fn write_body(to: &Objection<'_>, id: &str, out: &mut Vec<u8>) {
    let mut text = String::new();
    // Writing to a string cannot fail. An id is a value of JSON whatever it holds.
    let _ = write!(
        text,
        "{{\"code\":{},\"message\":\"{}\",\"timestamp\":\"{}\",\"correlation-id\":{}}}",
        to.status,
        meaning(to.status),
        to.at,
        quoted(id)
    );
    out.extend_from_slice(text.as_bytes());
}

/// A text as JSON has it.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            character if character.is_control() => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(character));
            }
            character => quoted.push(character),
        }
    }
    quoted.push('"');
    quoted
}

const fn meaning(status: u16) -> &'static str {
    match status {
        400 => "malformed message",
        401 => "no credentials",
        403 => "not the tenant of the credentials",
        404 => "no such device or endpoint",
        413 => "payload too large",
        429 => "too many messages",
        503 => "temporarily unavailable",
        _ => "refused",
    }
}

#[cfg(test)]
mod tests {
    use super::super::{REFUSALS, route};
    use super::*;
    use crate::scope::unscoped;

    const TOPIC: &str = "t/?correlation-id=1.41";

    fn objection<'a>(link: &'a str, topic: &'a str, packet_id: Option<u16>) -> Objection<'a> {
        Objection {
            link,
            topic,
            packet_id,
            status: 503,
            at: "2026-01-01T00:00:00Z",
        }
    }

    fn acknowledgement<'a>(topic: &str, payload: &'a [u8]) -> Acknowledgement<'a> {
        let Some(Downlink::Acknowledgements(mut all)) = read(topic, payload) else {
            panic!("{topic} is no refusal");
        };
        all.next().expect("it is one").expect("it is readable")
    }

    #[test]
    fn a_refusal_reaches_the_link_that_subscribed_and_names_the_message() {
        for (link, topic, filter) in [
            ("dev1@t1", TOPIC, REFUSALS),
            ("dev1@t1", TOPIC, "error/t1/dev1/#"),
            ("", "t/t1/dev1/?correlation-id=1.41", "e/t1/dev1/#"),
        ] {
            let (mut routed, mut out) = (String::new(), CommandScratch::default());
            assert!(route(link, filter, &mut routed), "{filter}");
            let prefix = routed.strip_suffix('#').expect("it is a wildcard");
            let form = (0..FORMS).find(|form| {
                write(*form, &objection(link, topic, Some(7)), &mut out)
                    && out.topic.starts_with(prefix)
            });
            assert!(form.is_some(), "{link} {topic} {filter}");
            let refusal = acknowledgement(unscoped(&out.topic), &out.payload);
            let expected = ApplicationId {
                stream_index: 1,
                seq: 41,
            };
            assert_eq!((refusal.id, refusal.code), (Some(expected), 503));
            let body: serde_json::Value = serde_json::from_slice(&out.payload).expect("it is JSON");
            assert_eq!(
                (&body["code"], &body["correlation-id"]),
                (&503.into(), &"1.41".into())
            );
        }
        let mut out = CommandScratch::default();
        assert!(!write(FORMS, &objection("d@t", "t", None), &mut out));
    }

    #[test]
    fn the_packet_id_stands_for_a_correlation_id() {
        let mut out = CommandScratch::default();
        for (packet_id, expected) in [(Some(7), "event/7/503"), (None, "event/-1/503")] {
            assert!(write(1, &objection("d@t", "e", packet_id), &mut out));
            assert_eq!(unscoped(&out.topic), format!("e///{expected}"));
        }
    }

    #[test]
    fn a_correlation_id_is_one_level_whatever_it_holds() {
        let mut out = CommandScratch::default();
        let topic = "t/?correlation-id=a%2Fb%23%2B%00";
        assert!(write(0, &objection("d@t", topic, Some(7)), &mut out));
        let seen = unscoped(&out.topic);
        assert_eq!(seen, "error///telemetry/a%2Fb%23%2B%00/503");
        assert_eq!(acknowledgement(seen, &out.payload).code, 503);
        let body: serde_json::Value = serde_json::from_slice(&out.payload).expect("it is JSON");
        assert_eq!(body["correlation-id"], "a/b#+\0");
    }

    #[test]
    fn a_message_says_what_becomes_of_it_and_its_link() {
        for (said, alone, published) in [
            ("", OnRefusal::Disconnect, OnRefusal::Acknowledge),
            ("default", OnRefusal::Disconnect, OnRefusal::Acknowledge),
            ("disconnect", OnRefusal::Disconnect, OnRefusal::Disconnect),
            ("ignore", OnRefusal::Acknowledge, OnRefusal::Acknowledge),
            ("skip-ack", OnRefusal::Ignore, OnRefusal::Ignore),
        ] {
            let topic = format!("t/?on-error={said}");
            assert_eq!(treatment(&topic, false), alone, "{said}");
            assert_eq!(treatment(&topic, true), published, "{said}");
        }
    }

    #[test]
    fn other_topics_are_no_refusals() {
        for topic in ["e///t/1", "e///t/1/x", "event/t1/d/a/b/503", "t///t/1/503"] {
            assert!(read(topic, b"").is_none(), "{topic}");
        }
    }
}
