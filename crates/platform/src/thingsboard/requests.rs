//! Requests of a device and their answers: attributes, and client-side RPC.
//!
//! A request goes out on a topic that ends in the device's number of it, and its answer comes on a
//! topic that ends in the same one. An answer that has `error` among its members is the platform's no.

use super::numbered::{Kind, Numbered};
use super::provisioning;
use crate::downlink::{Acknowledgement, ApplicationId, NotAnAcknowledgement};
use crate::incoming::Question;
use crate::incoming::Unanswered;
use crate::json::Json;
use crate::server::{DevicePublish, Reply};

/// The code under which a no is counted, as the platform gives none.
pub(super) const REFUSED: u16 = 500;

/// The end of a call of a method that no rule node answers.
pub(super) const UNANSWERED: Unanswered = Unanswered {
    after_s: 60,
    code: REFUSED,
    body: br#"{"error":"timeout"}"#,
};

/// The topics of requests without their number, and what their answers come on.
const REQUESTS: [(&str, &str); 6] = [
    (
        "v1/devices/me/attributes/request",
        "v1/devices/me/attributes/response/+",
    ),
    ("v2/a/req", "v2/a/res/+"),
    ("v2/a/req/j", "v2/a/res/j/+"),
    ("v1/devices/me/rpc/request", "v1/devices/me/rpc/response/+"),
    ("v2/r/req", "v2/r/res/+"),
    ("v2/r/req/j", "v2/r/res/j/+"),
];

/// Returns the prefix of the topics of answers to requests on a topic; none if it is no topic of
/// requests.
pub(super) fn answers(topic: &str) -> Option<&'static str> {
    let stem = topic.rsplit_once("/${seq}").map_or(topic, |(stem, _)| stem);
    let known = REQUESTS.into_iter().find(|(request, _)| *request == stem);
    known.map(|(_, answers)| answers)
}

/// Reads what a device asked, at the server end: its topic names it.
pub(super) fn read<'a>(
    link: &'a str,
    topic: &'a str,
    payload: &'a [u8],
) -> Option<DevicePublish<'a>> {
    let asked = Numbered::of(topic)?;
    let is_readable = match asked.kind {
        Kind::AttributesRequest => are_keys(payload),
        Kind::RpcRequest => super::rpc::is_call(payload),
        Kind::AttributesResponse | Kind::RpcResponse => return None,
    };
    Some(if is_readable {
        DevicePublish::Message {
            device: link,
            id: Some(topic.as_bytes()),
        }
    } else {
        DevicePublish::Invalid
    })
}

/// Reads the question that a message asks.
pub(super) fn question<'a>(topic: &str, payload: &'a [u8]) -> Option<Question<'a>> {
    if topic == provisioning::REQUEST {
        return Some(Question::Device(payload));
    }
    match Numbered::of(topic)?.kind {
        Kind::AttributesRequest => values(payload),
        Kind::RpcRequest => Some(Question::Method(payload)),
        Kind::AttributesResponse | Kind::RpcResponse => None,
    }
}

/// The attributes that a payload asks for. Keys that are no text name none.
fn values(payload: &[u8]) -> Option<Question<'_>> {
    let mut json = Json::new(payload);
    let (mut client, mut shared) = (None, None);
    json.members(|name, json| {
        let keys = match name {
            b"clientKeys" => &mut client,
            b"sharedKeys" => &mut shared,
            _ => return json.skip(),
        };
        let is_text = json.peek()? == b'"';
        let value = if is_text {
            json.string()?
        } else {
            json.value()?
        };
        let text = std::str::from_utf8(value).ok().filter(|_| is_text);
        *keys = Some(text.unwrap_or_default());
        Some(())
    })?;
    Some(Question::Values { client, shared })
}

/// Keys of attributes: an object. ThingsBoard answers also one whose `clientKeys` is no text.
fn are_keys(payload: &[u8]) -> bool {
    let mut json = Json::new(payload);
    let read = json.members(|_, json| json.skip());
    read.is_some() && json.is_at_end()
}

/// Reads an answer.
pub(super) fn answer(
    number: u32,
    payload: &[u8],
) -> Result<Acknowledgement<'_>, NotAnAcknowledgement> {
    let error = error(payload).ok_or(NotAnAcknowledgement)?;
    Ok(Acknowledgement {
        id: Some(ApplicationId::of_number(number)),
        is_of_oldest: false,
        is_accepted: error.is_none(),
        code: if error.is_none() { 0 } else { REFUSED },
        messages: error.unwrap_or_default(),
    })
}

/// The member `error` of an answer; the outer option is none if the answer is no JSON.
fn error(payload: &[u8]) -> Option<Option<&[u8]>> {
    let mut json = Json::new(payload);
    let mut error = None;
    if json.peek()? == b'{' {
        json.members(|key, json| match key {
            b"error" => json.value().map(|value| error = Some(value)),
            _ => json.skip(),
        })?;
    } else {
        json.skip()?;
    }
    json.is_at_end().then_some(error)
}

/// Appends the topic of the answer to the request on `asked`; false if it is none.
pub(super) fn write_answer_topic(asked: &str, out: &mut String) -> bool {
    let Some(asked) = Numbered::of(asked) else {
        return false;
    };
    let Some(answers) = answers(asked.stem.trim_end_matches('/')) else {
        return false;
    };
    out.push_str(answers.trim_end_matches('+'));
    out.push_str(&asked.number.to_string());
    true
}

/// Appends the server end's answer, which is a yes or a no: it keeps no attributes and has no methods.
pub(super) fn write_answer(reply: &Reply<'_>, out: &mut Vec<u8>) {
    if reply.code == 0 {
        out.extend_from_slice(b"{}");
    } else {
        out.extend_from_slice(b"{\"error\":\"the gateway says no\"}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dialect;

    #[test]
    fn an_answer_comes_back_under_the_number_of_its_request() {
        for (topic, filter) in REQUESTS {
            assert_eq!(answers(topic), Some(filter));
            let template = Dialect::Thingsboard.numbered(topic, 3);
            assert_eq!(answers(&template), Some(filter), "{template}");
            let asked = template.replace("${seq}", "41");
            let body = if topic.contains("/a") {
                "{}"
            } else {
                r#"{"method":"getTime"}"#
            };
            let expected = DevicePublish::Message {
                device: "d",
                id: Some(asked.as_bytes()),
            };
            assert_eq!(
                read("d", &asked, body.as_bytes()),
                Some(expected),
                "{asked}"
            );
            let mut answer_topic = String::new();
            assert!(write_answer_topic(&asked, &mut answer_topic));
            assert_eq!(answer_topic, filter.replace('+', "4103"));
            let number = Numbered::of(&answer_topic).expect("it is numbered").number;
            let ack = answer(number, b"{}").expect("it is an answer");
            let id = Some(ApplicationId {
                stream_index: 3,
                seq: 41,
            });
            assert_eq!((ack.id, ack.is_accepted), (id, true));
        }
        assert_eq!(answers("v1/devices/me/telemetry"), None);
        let claim = "v1/devices/me/claim";
        assert_eq!(Dialect::Thingsboard.numbered(claim, 0), claim);
    }

    #[test]
    fn an_error_is_a_no_and_what_is_no_json_is_no_answer() {
        let read = |text: &'static str| answer(100, text.as_bytes());
        for yes in [
            r#"{"client":{"error":1},"shared":{"a":[]}}"#,
            "17",
            "\"on\"",
            "[]",
        ] {
            assert!(read(yes).is_ok_and(|ack| ack.is_accepted), "{yes}");
        }
        let no = read(r#"{"error":"no such method"}"#).expect("it is an answer");
        assert!(!no.is_accepted && no.code == REFUSED);
        assert_eq!(no.messages, br#""no such method""#);
        for broken in ["", "{", "{\"client\":", "{} x"] {
            assert_eq!(read(broken), Err(NotAnAcknowledgement), "{broken}");
        }
    }

    #[test]
    fn a_message_asks_for_values_a_method_or_a_device() {
        let asked = |topic: &str, payload: &'static str| question(topic, payload.as_bytes());
        for (payload, client, shared) in [
            ("{}", None, None),
            (r#"{"clientKeys":"a,b","x":[1]}"#, Some("a,b"), None),
            (r#"{"clientKeys":5,"sharedKeys":"c"}"#, Some(""), Some("c")),
        ] {
            let values = Some(Question::Values { client, shared });
            assert_eq!(asked("v2/a/req/1", payload), values, "{payload}");
        }
        let method = Some(Question::Method(b"{}"));
        assert_eq!(asked("v1/devices/me/rpc/request/1", "{}"), method);
        let device = Some(Question::Device(b"{}"));
        assert_eq!(asked(provisioning::REQUEST, "{}"), device);
        assert_eq!(asked("v1/devices/me/telemetry", "{}"), None);
    }

    #[test]
    fn what_asks_for_nothing_is_invalid() {
        let attributes = |text: &'static str| read("d", "v2/a/req/1", text.as_bytes());
        for fine in [
            "{}",
            r#"{"clientKeys":"a,b","sharedKeys":"c"}"#,
            r#"{"clientKeys":5}"#,
        ] {
            assert!(
                matches!(attributes(fine), Some(DevicePublish::Message { .. })),
                "{fine}"
            );
        }
        for broken in ["", "[]", r#"{"clientKeys":"#, "{} x"] {
            assert_eq!(attributes(broken), Some(DevicePublish::Invalid), "{broken}");
        }
        assert_eq!(read("d", "v2/r/req/1", b"{}"), Some(DevicePublish::Invalid));
        assert_eq!(read("d", "v2/r/res/1", b"{}"), None);
    }
}
