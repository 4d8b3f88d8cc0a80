//! Devices that ask the platform to be made, and those that ask to be claimed.
//!
//! A link that logged in as `provision` may publish on `/provision/request` and nothing else; it is
//! answered on `/provision/response` without having subscribed. The answer names no request: a yes gives back the token that the request chose, and a no
//! is that to the oldest request of the link. A claim is answered by the transport alone.

use crate::downlink::{Acknowledgement, ApplicationId, NotAnAcknowledgement};
use crate::json::Json;
use crate::server::{DevicePublish, Reply};

use super::requests::REFUSED;
use super::rest::PROVISIONING_TOKEN;

/// Topic of a device's request to be created.
pub(super) const REQUEST: &str = "/provision/request";
/// Topic of the answers.
pub(super) const RESPONSE: &str = "/provision/response";
/// User name of such a link.
const USER: &str = PROVISIONING_TOKEN;
/// Prefix of the client id in the name of such a link.
const LINK: &str = "provision/";
/// Separator of a device's name and the number of its request in the token that it chooses.
const BETWEEN: u8 = b'~';

/// Returns the name of a link that logged in as `user`.
pub(super) fn link_name(user: Option<&str>, client_id: &str) -> String {
    match user {
        Some(USER) => format!("{LINK}{client_id}"),
        user => user.unwrap_or(client_id).to_owned(),
    }
}

/// Returns true if a link may do nothing but request devices.
pub(super) fn is_provisioning(link: &str) -> bool {
    link.starts_with(LINK)
}

/// Returns the seconds after which such a link is closed.
pub(super) fn lifetime_s(link: &str) -> Option<u32> {
    is_provisioning(link).then_some(60)
}

/// The body of requests if a scenario names none. Each request asks for another device with another
/// token.
pub(super) const PAYLOAD: &str = concat!(
    r#"{ template: '{"deviceName":"${id}-${seq}","provisionDeviceKey":"muster","#,
    r#""provisionDeviceSecret":"muster","credentialsType":"ACCESS_TOKEN","token":"${id}~${seq}"}' }"#
);

/// Reads what such a link published, at the server end.
pub(super) fn read<'a>(link: &'a str, topic: &str, payload: &'a [u8]) -> DevicePublish<'a> {
    if topic != REQUEST {
        return DevicePublish::Foreign;
    }
    match asked(payload) {
        Some(id) => DevicePublish::Message { device: link, id },
        None => DevicePublish::Invalid,
    }
}

/// The token that a request chooses, with its quotes; the outer option is none if it is no request.
pub(super) fn asked(payload: &[u8]) -> Option<Option<&[u8]>> {
    let mut json = Json::new(payload);
    let (mut key, mut secret, mut token) = (None, None, None);
    json.members(|name, json| match name {
        b"provisionDeviceKey" => json.string().map(|text| key = Some(text)),
        b"provisionDeviceSecret" => json.string().map(|text| secret = Some(text)),
        b"token" => {
            let is_text = json.peek()? == b'"';
            token = Some(json.value()?).filter(|_| is_text);
            is_text.then_some(())
        }
        _ => json.skip(),
    })?;
    (json.is_at_end() && key.is_some() && secret.is_some()).then_some(token)
}

/// Appends the server end's answer.
pub(super) fn write_answer(reply: &Reply<'_>, out: &mut Vec<u8>) {
    if reply.code != 0 {
        let no = b"{\"status\":\"FAILURE\",\"errorMsg\":\"the gateway says no\"}";
        return out.extend_from_slice(no);
    }
    out.extend_from_slice(b"{\"status\":\"SUCCESS\",\"credentialsType\":\"ACCESS_TOKEN\"");
    out.extend_from_slice(b",\"credentialsValue\":");
    out.extend_from_slice(reply.id.unwrap_or(b"\"made-up\""));
    out.push(b'}');
}

/// Reads an answer.
pub(super) fn answer(payload: &[u8]) -> Result<Acknowledgement<'_>, NotAnAcknowledgement> {
    acknowledgement(payload).ok_or(NotAnAcknowledgement)
}

fn acknowledgement(payload: &[u8]) -> Option<Acknowledgement<'_>> {
    let mut json = Json::new(payload);
    let (mut status, mut credentials, mut error) = (None, None, &[][..]);
    json.members(|key, json| match key {
        b"status" | b"provisionDeviceStatus" => json.string().map(|text| status = Some(text)),
        b"credentialsValue" => json.value().map(|value| credentials = Some(value)),
        b"errorMsg" => json.value().map(|value| error = value),
        _ => json.skip(),
    })?;
    let is_accepted = status? == b"SUCCESS";
    let id = credentials.and_then(number_of);
    json.is_at_end().then_some(Acknowledgement {
        id,
        is_of_oldest: !is_accepted,
        is_accepted,
        code: if is_accepted { 0 } else { REFUSED },
        messages: error,
    })
}

/// The number of the request that chose a token.
fn number_of(token: &[u8]) -> Option<ApplicationId> {
    let token = token.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    let at = token.iter().rposition(|byte| *byte == BETWEEN)?;
    ApplicationId::parse(&token[at + 1..])
}

/// Returns true if a payload claims a device.
pub(super) fn is_claim(payload: &[u8]) -> bool {
    let mut json = Json::new(payload);
    let read = json.members(|key, json| match key {
        b"secretKey" => json.string().map(|_| ()),
        b"durationMs" => (json.peek()?.is_ascii_digit()).then(|| json.skip())?,
        _ => json.skip(),
    });
    read.is_some() && json.is_at_end()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(stream_index: u8, seq: u32) -> String {
        let written = PAYLOAD.split('\'').nth(1).expect("it is quoted");
        let template = written.replace("${seq}", &ApplicationId::template(stream_index));
        template
            .replace("${id}", "d")
            .replace("${seq}", &seq.to_string())
    }

    fn answered(request: &str, code: u16) -> (Option<ApplicationId>, bool, bool) {
        let DevicePublish::Message { id, .. } = read("provision/c", REQUEST, request.as_bytes())
        else {
            panic!("{request}");
        };
        let mut out = Vec::new();
        write_answer(&Reply { id, code }, &mut out);
        let ack = answer(&out).expect("it is an answer");
        (ack.id, ack.is_accepted, ack.is_of_oldest)
    }

    #[test]
    fn a_yes_names_its_request_by_the_token_and_a_no_is_the_oldest_ones() {
        for (stream_index, seq) in [(0, 0), (0, 41), (2, 7)] {
            let id = Some(ApplicationId { stream_index, seq });
            assert_eq!(answered(&request(stream_index, seq), 0), (id, true, false));
            assert_eq!(
                answered(&request(stream_index, seq), 151),
                (None, false, true)
            );
        }
        let made_up = r#"{"provisionDeviceKey":"k","provisionDeviceSecret":"s"}"#;
        assert_eq!(answered(made_up, 0), (None, true, false));
    }

    #[test]
    fn what_the_platform_itself_says_is_read() {
        let yes = br#"{"credentialsType":"ACCESS_TOKEN","credentialsValue":"d~5","provisionDeviceStatus":"SUCCESS"}"#;
        let ack = answer(yes).expect("it is an answer");
        assert_eq!(
            ack.id,
            Some(ApplicationId {
                stream_index: 0,
                seq: 5
            })
        );
        let no = br#"{"status":"NOT_FOUND","errorMsg":"no such profile"}"#;
        let ack = answer(no).expect("it is an answer");
        assert!(!ack.is_accepted && ack.is_of_oldest && ack.code == REFUSED);
        assert_eq!(ack.messages, br#""no such profile""#);
        for broken in [
            "",
            "{}",
            "[]",
            r#"{"status":1}"#,
            r#"{"status":"SUCCESS"} x"#,
        ] {
            assert!(answer(broken.as_bytes()).is_err(), "{broken}");
        }
    }

    #[test]
    fn a_provisioning_link_does_nothing_else() {
        assert_eq!(link_name(Some("provision"), "c"), "provision/c");
        assert_eq!(link_name(Some("token"), "c"), "token");
        assert_eq!(link_name(None, "c"), "c");
        assert!(is_provisioning("provision/c") && !is_provisioning("provision"));
        assert_eq!(["provision/c", "c"].map(lifetime_s), [Some(60), None]);
        let whole = request(0, 1);
        assert_eq!(
            read("provision/c", "v1/devices/me/telemetry", whole.as_bytes()),
            DevicePublish::Foreign
        );
        for broken in [
            "",
            "{}",
            r#"{"provisionDeviceKey":"k"}"#,
            r#"{"provisionDeviceKey":"k","provisionDeviceSecret":"s","token":1}"#,
        ] {
            assert_eq!(
                read("provision/c", REQUEST, broken.as_bytes()),
                DevicePublish::Invalid,
                "{broken}"
            );
        }
    }

    #[test]
    fn a_claim_has_a_secret_and_a_duration_or_neither() {
        for fine in ["{}", r#"{"secretKey":"s","durationMs":60000}"#] {
            assert!(is_claim(fine.as_bytes()), "{fine}");
        }
        for broken in ["", "[]", r#"{"secretKey":1}"#, r#"{"durationMs":"x"}"#] {
            assert!(!is_claim(broken.as_bytes()), "{broken}");
        }
    }
}
