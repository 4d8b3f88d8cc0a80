//! ThingsBoard's device API over HTTP and CoAP, both ends.
//!
//! A request names its device by the access token in its path, as `/api/v1/<token>/telemetry`. A stream has the
//! topic that it has over MQTT, and the path follows from that. Both protocols have the same paths and bodies;
//! they differ in the codes of their answers.

use std::fmt::Write as _;

use super::{POLL, Topic, provisioning, requests, rpc, scope, uplinks};
use crate::command::{CommandCopy, Handing};
use crate::incoming::{Asker, Incoming, Manner, Peer, Question, Refusal, Upload, Wanted};
use crate::json::Json;
use crate::request::{
    Answered, Answering, Asking, Fields, Method, ReplyPath, Request, Segments, Status,
};
use crate::server::{DevicePublish, Reply};
use crate::spec::{PLAIN_REQUESTS, Requests};

/// Both ends over HTTP.
pub(super) const HTTP: Requests = Requests {
    uplink: ask,
    reply,
    answered,
    accepted: Status(200),
    refused: SERVER_ERROR,
    commanded: Status(200),
    hint,
    has: |topic| topic == POLL || Resource::of(topic).is_some(),
    path_token: Some(token),
    methods: "GET, POST",
    explain,
    closes,
    read,
    hand: |_, _, out| {
        out.clear();
        out.content_type = JSON;
        Ok(())
    },
    command_body,
    answer,
    poll: Some(POLL),
    ..PLAIN_REQUESTS
};

/// Both ends over CoAP.
pub(super) const COAP: Requests = Requests {
    // 2.01, and 2.05.
    accepted: Status(201),
    commanded: Status(205),
    hint: hint_of_coap,
    // Commands come to those that observe, which devices of Muster do not.
    has: |topic| Resource::of(topic).is_some(),
    poll: None,
    explain: |_, _, _| None,
    closes: |_| false,
    read: read_over_coap,
    ..HTTP
};

const BAD_REQUEST: Status = Status(400);
const UNAUTHORIZED: Status = Status(401);
const NOT_FOUND: Status = Status(404);
const METHOD_NOT_ALLOWED: Status = Status(405);
const REQUEST_TIMEOUT: Status = Status(408);
const TOO_LARGE: Status = Status(413);
const SERVER_ERROR: Status = Status(500);
const UNAVAILABLE: Status = Status(503);

const NO_PATH: Refusal = refused(NOT_FOUND, "there is no such path");
const NO_METHOD: Refusal = refused(METHOD_NOT_ALLOWED, "Request method is not supported");
const NO_BODY: Refusal = refused(BAD_REQUEST, "Required request body is missing");
const NO_TOKEN: Refusal = refused(UNAUTHORIZED, "no device has this token");
const UNREADABLE: Refusal = refused(SERVER_ERROR, "Can't parse value: ");

const NO_NUMBER: Refusal = refused(BAD_REQUEST, "Failed to convert a value to a number");
const TOO_LONG: Refusal = refused(TOO_LARGE, "Payload size exceeds the limit");
const NOTHING_CAME: Refusal = refused(REQUEST_TIMEOUT, "nothing came in time");
const GIVEN_UP: Refusal = refused(UNAVAILABLE, "Async request timed out");

const fn refused(status: Status, why: &'static str) -> Refusal {
    Refusal { status, why }
}

/// Segments in front of the token.
const ROOT: [&str; 2] = ["api", "v1"];
/// The same as text.
const BEFORE_TOKEN: &str = "api/v1/";
/// The word in the place of the token where a device asks to be made.
const PROVISION: &str = "provision";
/// The place of the word of a resource.
const WORD: usize = 3;
const JSON: &str = "application/json";
const TEXT: &str = "text/plain";
/// A body of this type never reaches the device API.
const FORM: &str = "application/x-www-form-urlencoded";
/// Bytes of an unreadable payload that its refusal shows.
const SHOWN_MAX: usize = 256;
/// Bytes of the longest reply to a command.
const REPLY_MAX: usize = 65_536;
/// Longest time for which a device may wait, in milliseconds, and that of one that names none.
const WAIT_MAX_MS: u64 = 30_000;

/// A resource of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Resource {
    Telemetry,
    Attributes,
    /// Values of attributes that the device wants to know.
    Values,
    /// A method of the platform that the device calls.
    Method,
    Claim,
    /// The device that is to be made.
    Device,
}

impl Resource {
    /// The resource of the messages on a topic; none if it is of no use over requests.
    fn of(topic: &str) -> Option<Self> {
        if topic == provisioning::REQUEST {
            return Some(Self::Device);
        }
        if let Some(answers) = requests::answers(topic) {
            let asks_for_values = answers.contains("/a");
            return Some(if asks_for_values {
                Self::Values
            } else {
                Self::Method
            });
        }
        match Topic::of(topic)? {
            Topic::Telemetry => Some(Self::Telemetry),
            Topic::Attributes => Some(Self::Attributes),
            Topic::Claim => Some(Self::Claim),
            Topic::GatewayTelemetry
            | Topic::GatewayAttributes
            | Topic::GatewayConnect
            | Topic::GatewayDisconnect => None,
        }
    }

    /// Its word in a path.
    const fn word(self) -> &'static str {
        match self {
            Self::Telemetry => "telemetry",
            Self::Attributes | Self::Values => "attributes",
            Self::Method => "rpc",
            Self::Claim => "claim",
            Self::Device => PROVISION,
        }
    }

    /// The topic that has its meaning over MQTT, where messages need no number there.
    const fn topic(self) -> &'static str {
        match self {
            Self::Telemetry => "v1/devices/me/telemetry",
            Self::Attributes => "v1/devices/me/attributes",
            Self::Claim => "v1/devices/me/claim",
            Self::Device | Self::Values | Self::Method => "",
        }
    }
}

/// Makes a request of a message.
fn ask<'a>(asking: &Asking<'a>, text: &'a mut String) -> Request<'a> {
    text.clear();
    text.push_str(BEFORE_TOKEN);
    let resource = Resource::of(asking.path);
    let (mut method, mut payload) = (Method::Post, asking.payload);
    let mut content_type = Some(asking.content_type.unwrap_or(JSON));
    if resource != Some(Resource::Device) {
        text.extend([asking.login, "/"]);
    }
    let word = resource.map_or(Resource::Method.word(), Resource::word);
    text.push_str(word);
    let path = text.len();
    if asking.ttd_s.is_some() || resource == Some(Resource::Values) {
        (method, payload, content_type) = (Method::Get, &[][..], None);
    }
    if let Some(ttd_s) = asking.ttd_s {
        // Writing to a string cannot fail.
        let _ = write!(text, "timeout={ttd_s}000");
    } else if resource == Some(Resource::Values) {
        write_keys(asking.payload, text);
    }
    let (path, query) = text.split_at(path);
    Request {
        method,
        path: Segments::of(path),
        query,
        content_type,
        headers: &[],
        is_at_least_once: asking.is_at_least_once,
        payload,
    }
}

/// Appends the keys that a payload of MQTT names as parameters.
fn write_keys(payload: &[u8], out: &mut String) {
    let mut before = "";
    let mut json = Json::new(payload);
    // A payload without keys asks for all there are.
    let _ = json.members(|name, json| {
        if !matches!(name, b"clientKeys" | b"sharedKeys") || json.peek()? != b'"' {
            return json.skip();
        }
        let (name, keys) = (
            std::str::from_utf8(name),
            std::str::from_utf8(json.string()?),
        );
        out.extend([before, name.ok()?, "=", keys.ok()?]);
        before = "&";
        Some(())
    });
}

/// Makes the request that replies to a command, whose number is all of the path that came with it.
fn reply<'a>(answering: &Answering<'a>, text: &'a mut String) -> Request<'a> {
    text.clear();
    text.extend([BEFORE_TOKEN, answering.login, "/", Resource::Method.word()]);
    let number = answering.to.segments().next().unwrap_or_default();
    text.extend(["/", number]);
    Request {
        method: Method::Post,
        path: Segments::of(text),
        query: "",
        content_type: Some(JSON),
        headers: &[],
        is_at_least_once: true,
        payload: answering.payload,
    }
}

/// Reads an answer. To one that waited for a command 408 says that none came.
fn answered<'a>(
    status: Status,
    _: Fields<'_, 'a>,
    payload: &'a [u8],
    asked: Segments<'_>,
    reply: &mut ReplyPath,
) -> Answered<'a> {
    reply.clear();
    let has_waited = asked.eq(POLL.split('/'));
    if has_waited && status == REQUEST_TIMEOUT {
        return Answered::Accepted;
    }
    if !status.is_yes() {
        return Answered::Rejected(status);
    }
    if asked.eq(provisioning::REQUEST.split('/')) {
        return match provisioning::answer(payload) {
            Ok(answer) if answer.is_accepted => Answered::Accepted,
            Ok(_) | Err(_) => Answered::Rejected(Status(requests::REFUSED)),
        };
    }
    if !has_waited {
        return Answered::Accepted;
    }
    let (number, stamp) = rpc::called(payload).unwrap_or_default();
    if let Some(number) = number {
        // The digits of a number are short.
        let _ = reply.push(number);
    }
    Answered::Command(CommandCopy {
        stamp,
        ..CommandCopy::UNREADABLE
    })
}

/// Returns the token in the path of a request.
fn token<'a>(came: &Incoming<'a>) -> Option<&'a str> {
    let is_of_api = [came.at(0), came.at(1)] == ROOT.map(Some);
    came.at(ROOT.len())
        .filter(|_| is_of_api && came.segments() > WORD)
}

/// Reads a request, and puts the topic on which it surfaces into `out`. `peer` is the device of the token; none
/// where no device has it.
fn read<'a>(came: &Incoming<'a>, peer: Option<&Peer<'a>>, out: &mut String) -> Wanted<'a> {
    out.clear();
    wanted(came, peer, out).unwrap_or_else(Wanted::Refused)
}

/// Reads the same over CoAP, which knows one code for all that it does not take. Nobody waits there for a command
/// without observing.
fn read_over_coap<'a>(
    came: &Incoming<'a>,
    peer: Option<&Peer<'a>>,
    out: &mut String,
) -> Wanted<'a> {
    match read(came, peer, out) {
        Wanted::Refused(Refusal { status, why }) if status != UNAUTHORIZED => {
            Wanted::Refused(refused(BAD_REQUEST, why))
        }
        Wanted::Upload(Upload { ttd_s: Some(_), .. }) => {
            Wanted::Refused(refused(BAD_REQUEST, "it does not observe"))
        }
        wanted @ (Wanted::Upload(_) | Wanted::Reply(_) | Wanted::Ignored | Wanted::Refused(_)) => {
            wanted
        }
    }
}

/// The order of the checks is ThingsBoard's: the path, the method and the form of the body come before the token.
fn wanted<'a>(
    came: &Incoming<'a>,
    peer: Option<&Peer<'a>>,
    out: &mut String,
) -> Result<Wanted<'a>, Refusal> {
    use Method::{Get, Post};
    let is_provision = came.segments() == WORD && came.at(WORD - 1) == Some(PROVISION);
    if is_provision && [came.at(0), came.at(1)] == ROOT.map(Some) {
        return provision(came);
    }
    let word = token(came).and(came.at(WORD)).unwrap_or_default();
    let last = came.at(WORD + 1);
    match (came.method, word, last, came.segments().saturating_sub(1)) {
        (Post, "telemetry", _, WORD) => post(came, Resource::Telemetry, peer, out),
        (Post, "attributes", _, WORD) => post(came, Resource::Attributes, peer, out),
        (Post, "claim", _, WORD) => post(came, Resource::Claim, peer, out),
        (Get, "attributes", _, WORD) => question(peer),
        (Post, "rpc", _, WORD) => call(came, peer),
        (Get, "rpc", _, WORD) => poll(came, peer, ""),
        (Get, "attributes", Some("updates"), _) => poll(came, peer, UPDATES),
        (Post, "rpc", Some(_), _) => answer_to_command(came, peer, out),
        (_, "telemetry" | "attributes" | "claim" | "rpc", _, WORD)
        | (_, "attributes", Some("updates"), _)
        | (_, "rpc", Some(_), _) => Err(NO_METHOD),
        _ => Err(NO_PATH),
    }
}

/// Checks the body of a request that has to have one.
fn body<'a>(came: &Incoming<'a>) -> Result<&'a [u8], Refusal> {
    match came.payload {
        _ if came.content_type.is_some_and(|it| it.starts_with(FORM)) => Err(UNREADABLE),
        [] => Err(NO_BODY),
        payload => Ok(payload),
    }
}

/// Reads data of a device, or its claim.
fn post<'a>(
    came: &Incoming<'a>,
    resource: Resource,
    peer: Option<&Peer<'a>>,
    out: &mut String,
) -> Result<Wanted<'a>, Refusal> {
    let payload = match (body(came), resource) {
        // A claim may say nothing.
        (Err(refusal), Resource::Claim) if refusal == NO_BODY => &b"{}"[..],
        (body, _) => body?,
    };
    let peer = peer.ok_or(NO_TOKEN)?;
    match uplinks::read(peer.device, resource.topic(), payload) {
        DevicePublish::Data(data) => data.write_surface(peer.device, out),
        DevicePublish::Taken => {
            scope::route(peer.device, resource.topic(), out);
        }
        DevicePublish::Ignored => return Ok(Wanted::Ignored),
        DevicePublish::Invalid
        | DevicePublish::Unknown
        | DevicePublish::Foreign
        | DevicePublish::Message { .. }
        | DevicePublish::Unreadable { .. }
        | DevicePublish::Announced { .. }
        | DevicePublish::Published(_)
        | DevicePublish::Refused(_)
        | DevicePublish::Other => return Err(UNREADABLE),
    }
    Ok(Wanted::Upload(upload(peer)))
}

/// A message of a device that surfaces.
const fn upload<'a>(peer: &Peer<'a>) -> Upload<'a> {
    Upload {
        tenant: peer.tenant,
        device: peer.device,
        gateway: None,
        content_type: None,
        is_at_least_once: true,
        ttd_s: None,
        manner: Manner {
            is_short: false,
            asker: Asker::Itself,
        },
        surfaces: true,
        question: None,
        over: None,
    }
}

fn question<'a>(peer: Option<&Peer<'a>>) -> Result<Wanted<'a>, Refusal> {
    Ok(Wanted::Upload(Upload {
        surfaces: false,
        question: Some(Question::Values),
        ..upload(peer.ok_or(NO_TOKEN)?)
    }))
}

/// Reads a call of a method of the platform.
fn call<'a>(came: &Incoming<'a>, peer: Option<&Peer<'a>>) -> Result<Wanted<'a>, Refusal> {
    let payload = body(came)?;
    let wanted = question(peer)?;
    match rpc::is_call(payload) {
        true => Ok(wanted),
        false => Err(UNREADABLE),
    }
}

/// Reads a request for a device.
fn provision<'a>(came: &Incoming<'a>) -> Result<Wanted<'a>, Refusal> {
    if came.method != Method::Post {
        return Err(NO_METHOD);
    }
    let token = provisioning::asked(body(came)?).ok_or(UNREADABLE)?;
    let nobody = Peer {
        tenant: "",
        device: PROVISION,
    };
    Ok(Wanted::Upload(Upload {
        surfaces: false,
        question: Some(Question::Device(token)),
        ..upload(&nobody)
    }))
}

/// Stands for the tenant of devices that wait for attributes, so that no command finds them.
const UPDATES: &str = "updates";

/// Reads the wait of a device for a command, or for attributes.
fn poll<'a>(
    came: &Incoming<'a>,
    peer: Option<&Peer<'a>>,
    tenant: &'a str,
) -> Result<Wanted<'a>, Refusal> {
    let peer = peer.ok_or(NO_TOKEN)?;
    let named = came.parameter_value("timeout");
    let named = named.map(|text| text.parse::<u64>().map_err(|_| NO_NUMBER));
    let named_ms = named
        .transpose()?
        .filter(|ms| (1..=WAIT_MAX_MS).contains(ms));
    // No wait is shorter than a second here.
    let seconds = named_ms.unwrap_or(WAIT_MAX_MS).div_ceil(1_000);
    Ok(Wanted::Upload(Upload {
        tenant,
        ttd_s: u32::try_from(seconds).ok(),
        surfaces: false,
        over: Some(match named_ms {
            Some(_) => NOTHING_CAME,
            None => GIVEN_UP,
        }),
        ..upload(peer)
    }))
}

/// Reads a reply to a command, also to one that was never issued, and puts the topic on which it surfaces into
/// `out`.
fn answer_to_command<'a>(
    came: &Incoming<'a>,
    peer: Option<&Peer<'a>>,
    out: &mut String,
) -> Result<Wanted<'a>, Refusal> {
    if came.segments() != WORD + 2 {
        return Err(NO_PATH);
    }
    let number = came.at(WORD + 1).and_then(|text| text.parse::<i32>().ok());
    number.ok_or(NO_NUMBER)?;
    if body(came)?.len() > REPLY_MAX {
        return Err(TOO_LONG);
    }
    let peer = peer.ok_or(NO_TOKEN)?;
    rpc::write_surface(peer.device, out);
    Ok(Wanted::Reply(*peer))
}

/// Renders a command for a device that waited: the call with the platform's number of it.
fn command_body(to: &Handing<'_>, payload: &[u8], out: &mut Vec<u8>) -> bool {
    rpc::write_numbered(to.request, payload, out).is_some()
}

/// Answers a question: the platform keeps no attributes and has no methods.
fn answer(question: &Question<'_>, out: &mut Vec<u8>) -> &'static str {
    match question {
        Question::Values => {
            out.extend_from_slice(b"{}");
            JSON
        }
        Question::Device(token) => {
            let (id, code) = (*token, 0);
            provisioning::write_answer(&Reply { id, code }, out);
            TEXT
        }
    }
}

/// Appends the body of a refusal: JSON from the web framework, text from the reader of JSON, else none.
fn explain(refusal: &Refusal, payload: &[u8], out: &mut Vec<u8>) -> Option<&'static str> {
    if *refusal == UNREADABLE {
        out.extend_from_slice(refusal.why.as_bytes());
        out.extend_from_slice(&payload[..payload.len().min(SHOWN_MAX)]);
        return Some(TEXT);
    }
    let code = match refusal.status {
        BAD_REQUEST | METHOD_NOT_ALLOWED => 31,
        NOT_FOUND => 32,
        UNAVAILABLE => 2,
        _ => return None,
    };
    let Refusal { status, why } = refusal;
    let text = format!(r#"{{"status":{status},"message":"{why}","errorCode":{code}}}"#);
    out.extend_from_slice(text.as_bytes());
    Some(JSON)
}

/// Returns true for the codes behind which Tomcat closes a connection.
fn closes(status: Status) -> bool {
    matches!(status.0, 400 | 408 | 411 | 413 | 414 | 500 | 501 | 503)
}

const UNKNOWN_TOKEN: &str = "no device of ThingsBoard has this access token: see `credential`";

/// Returns the meaning of a refusal over HTTP, and the setting to check.
fn hint(status: Status) -> Option<&'static str> {
    Some(match status.0 {
        400 => "ThingsBoard got no body: see `payload`",
        401 => UNKNOWN_TOKEN,
        404 | 405 => "ThingsBoard has no such path: see the address in `platform.devices`",
        413 => "the body is longer than ThingsBoard takes (http.max_payload_size)",
        500 => {
            "the body is no JSON, or a limit of the tenant or the device is reached: ThingsBoard answers both with 500"
        }
        503 => {
            "ThingsBoard gave up after its own time-out: a limit is reached, or its queue stands"
        }
        _ => return None,
    })
}

/// Returns the same over CoAP.
fn hint_of_coap(status: Status) -> Option<&'static str> {
    Some(match status.0 {
        400 => "ThingsBoard cannot read the request: the body is no JSON, or there is no such path",
        401 => UNKNOWN_TOKEN,
        500 => "a limit of the tenant or the device is reached, or ThingsBoard's queue failed",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::command::tests::stamp;
    use crate::command::{CommandScratch, Commanded, OutboundCommand};

    const DEVICE: Peer<'static> = Peer {
        tenant: "",
        device: "T",
    };

    /// A request to a path, and the topic on which it surfaces.
    fn came<'a>(method: Method, path: &'a str, payload: &'a [u8]) -> Incoming<'a> {
        let mut came = Incoming::new(method, true, payload);
        path.split('/').for_each(|segment| came.segment(segment));
        came
    }

    /// The status of a refusal, if it is one, and the topic.
    fn read_by(of: &Requests, came: &Incoming<'_>) -> (Option<u16>, String) {
        let mut topic = "left over".to_owned();
        let peer = (of.path_token.expect("it has one"))(came).filter(|it| *it == DEVICE.device);
        let wanted = (of.read)(came, peer.map(|_| &DEVICE), &mut topic);
        let status = match wanted {
            Wanted::Refused(refusal) => Some(refusal.status.0),
            Wanted::Ignored => Some(0),
            Wanted::Upload(upload) => {
                assert!(upload.surfaces || topic.is_empty(), "{topic}");
                None
            }
            Wanted::Reply(_) => None,
        };
        (status, topic)
    }

    #[test]
    fn a_message_goes_to_the_path_of_its_topic_and_surfaces_under_its_device() {
        for (topic, path, surface) in [
            (
                "v1/devices/me/telemetry",
                "api/v1/T/telemetry",
                "thingsboard/T/telemetry",
            ),
            ("v2/t/j", "api/v1/T/telemetry", "thingsboard/T/telemetry"),
            ("v2/a", "api/v1/T/attributes", "thingsboard/T/attributes"),
            ("v1/devices/me/claim", "api/v1/T/claim", ""),
        ] {
            let asking = Asking {
                path: topic,
                payload: b"{}",
                content_type: None,
                is_at_least_once: true,
                ttd_s: None,
                login: "T",
            };
            for of in [HTTP, COAP] {
                let mut text = "left over".to_owned();
                let request = (of.uplink)(&asking, &mut text);
                assert!(request.path.eq(path.split('/')), "{topic}");
                assert_eq!(request.content_type, Some(JSON));
                let mut came = Incoming::new(request.method, true, request.payload);
                request.path.for_each(|segment| came.segment(segment));
                let (refused, surfaced) = read_by(&of, &came);
                assert_eq!(refused, None, "{topic}");
                assert!(surface.is_empty() || surfaced == surface, "{surfaced}");
                assert!((of.has)(topic));
            }
        }
        for topic in [
            "v1/gateway/telemetry",
            "v1/devices/me/rpc/response/1",
            "muster/a/t",
        ] {
            assert!(!(HTTP.has)(topic), "{topic}");
        }
        assert!((HTTP.has)(POLL) && !(COAP.has)(POLL));
    }

    /// The rows of ThingsBoard CE 4.3.1.3 that need no socket; 0 is never answered.
    #[test]
    fn a_request_is_refused_as_thingsboard_does() {
        use Method::{Get, Other, Post, Put};
        for (method, path, body, over_http, over_coap) in [
            (Post, "api/v1/T/telemetry", "[{\"a\":1}]", None, None),
            (
                Post,
                "api/v1/T/telemetry",
                "{\"ts\":1,\"values\":{}}",
                None,
                None,
            ),
            (Post, "api/v1/T/telemetry", "[]", Some(0), Some(0)),
            (Post, "api/v1/T/telemetry", "5", Some(500), Some(400)),
            (Post, "api/v1/T/telemetry", "on", Some(500), Some(400)),
            (Post, "api/v1/T/telemetry", "", Some(400), Some(400)),
            (Post, "api/v1/T/attributes", "[]", Some(500), Some(400)),
            (Post, "api/v1/T/claim", "", None, None),
            (Post, "api/v1/T/claim", "[]", Some(500), Some(400)),
            (Get, "api/v1/T/attributes", "", None, None),
            (Get, "api/v1/X/attributes", "", Some(401), Some(401)),
            (Post, "api/v1/T/rpc", r#"{"method":"getTime"}"#, None, None),
            (Post, "api/v1/T/rpc", "{}", Some(500), Some(400)),
            (Post, "api/v1/X/rpc", "{}", Some(401), Some(401)),
            (Get, "api/v1/T/rpc", "", None, Some(400)),
            (Get, "api/v1/X/rpc", "", Some(401), Some(401)),
            (Get, "api/v1/T/attributes/updates", "", None, Some(400)),
            (Put, "api/v1/T/attributes/updates", "", Some(405), Some(400)),
            (Post, "api/v1/T/rpc/5", "17", None, None),
            (Post, "api/v1/T/rpc/on", "17", Some(400), Some(400)),
            (Post, "api/v1/T/rpc/5/6", "17", Some(404), Some(400)),
            (Get, "api/v1/T/rpc/5", "", Some(405), Some(400)),
            (Post, "api/v1/provision", "{}", Some(500), Some(400)),
            (Get, "api/v1/provision", "", Some(405), Some(400)),
            (Post, "api/v1/X/telemetry", "{}", Some(401), Some(401)),
            (Post, "api/v1/X/telemetry", "on", Some(401), Some(401)),
            (Get, "api/v1/T/telemetry", "", Some(405), Some(400)),
            (Put, "api/v1/X/telemetry", "{}", Some(405), Some(400)),
            (Other, "api/v1/T/claim", "{}", Some(405), Some(400)),
            (Post, "api/v1/T/telemetri", "{}", Some(404), Some(400)),
            (Post, "api/v1/T/telemetry/x", "{}", Some(404), Some(400)),
            (Post, "api/v1/T", "{}", Some(404), Some(400)),
            (Post, "api/v2/T/telemetry", "{}", Some(404), Some(400)),
            (Post, "", "{}", Some(404), Some(400)),
        ] {
            let came = came(method, path, body.as_bytes());
            assert_eq!(
                read_by(&HTTP, &came).0,
                over_http,
                "{method:?} {path} {body}"
            );
            assert_eq!(
                read_by(&COAP, &came).0,
                over_coap,
                "{method:?} {path} {body}"
            );
        }
        let mut form = came(Post, "api/v1/T/telemetry", b"{}");
        form.content_type = Some("application/x-www-form-urlencoded; charset=utf-8");
        assert_eq!(read_by(&HTTP, &form).0, Some(500));
        form.content_type = Some("text/plain");
        assert_eq!(read_by(&HTTP, &form).0, None);
    }

    #[test]
    fn a_refusal_has_the_body_that_thingsboard_writes() {
        let body = |refusal: Refusal, payload: &[u8]| {
            let mut out = Vec::new();
            let media_type = (HTTP.explain)(&refusal, payload, &mut out);
            (media_type, String::from_utf8(out).expect("it is text"))
        };
        let text = "Can't parse value: 5".to_owned();
        assert_eq!(body(UNREADABLE, b"5"), (Some("text/plain"), text));
        let (media_type, json) = body(NO_METHOD, b"");
        assert_eq!(media_type, Some(JSON));
        assert!(json.starts_with(r#"{"status":405,"#), "{json}");
        assert!(json.ends_with(r#""errorCode":31}"#), "{json}");
        assert_eq!(body(NO_BODY, b"").0, Some(JSON));
        for empty in [NO_TOKEN, refused(SERVER_ERROR, "refused on purpose")] {
            assert_eq!(body(empty, b"{}"), (None, String::new()));
        }
    }

    /// A message of MQTT as a request, as it is written in the documentation.
    fn asked(topic: &str, payload: &str, ttd_s: Option<u32>) -> String {
        let asking = Asking {
            path: topic,
            payload: payload.as_bytes(),
            content_type: None,
            is_at_least_once: true,
            ttd_s,
            login: "T",
        };
        let mut text = "left over".to_owned();
        let request = (HTTP.uplink)(&asking, &mut text);
        let path = request.path.collect::<Vec<_>>().join("/");
        let body = String::from_utf8_lossy(request.payload).into_owned();
        format!("{:?} {path}?{} {body}", request.method, request.query)
    }

    #[test]
    fn a_question_is_a_request_of_its_own() {
        let keys = r#"{"clientKeys":"model,mac","x":{},"sharedKeys":"interval"}"#;
        let values = "Get api/v1/T/attributes?clientKeys=model,mac&sharedKeys=interval ";
        let topic = "v1/devices/me/attributes/request";
        assert_eq!(asked(topic, keys, None), values);
        assert_eq!(asked("v2/a/req/j", "{}", None), "Get api/v1/T/attributes? ");
        let call = r#"{"method":"getTime","params":{}}"#;
        let expected = format!("Post api/v1/T/rpc? {call}");
        assert_eq!(asked("v1/devices/me/rpc/request", call, None), expected);
        let device = asked(provisioning::REQUEST, "{}", None);
        assert_eq!(device, "Post api/v1/provision? {}");
        assert_eq!(
            asked(POLL, "{}", Some(10)),
            "Get api/v1/T/rpc?timeout=10000 "
        );
    }

    #[test]
    fn a_device_that_waits_gets_a_command_or_nothing_and_its_reply_surfaces() {
        let none = &mut std::iter::empty();
        let (poll, mut path) = (Segments::of(POLL), ReplyPath::default());
        let over = (HTTP.answered)(REQUEST_TIMEOUT, none, b"", poll, &mut path);
        assert_eq!(over, Answered::Accepted);
        let elsewhere = (HTTP.answered)(REQUEST_TIMEOUT, none, b"", Segments::of(""), &mut path);
        assert_eq!(elsewhere, Answered::Rejected(REQUEST_TIMEOUT));
        let (mut issued, id) = (CommandScratch::default(), stamp());
        let to = OutboundCommand {
            stamp: &id,
            device: "T",
            tenant: "",
            is_two_way: true,
        };
        rpc::write_command(&to, &mut issued);
        let handing = Handing {
            command: Commanded::to("T"),
            gateway: None,
            request: 41,
        };
        let mut body = Vec::new();
        assert!((HTTP.command_body)(&handing, &issued.payload, &mut body));
        assert!(body.starts_with(br#"{"id":41,"method":"setGpio","params":{"#));
        let Answered::Command(copy) = (HTTP.answered)(Status(200), none, &body, poll, &mut path)
        else {
            panic!("a command came");
        };
        assert_eq!(copy.stamp, Some(id));
        let answering = Answering {
            to: &path,
            status: 200,
            payload: b"{}",
            login: "T",
        };
        let mut text = String::new();
        let request = (HTTP.reply)(&answering, &mut text);
        assert!(request.path.eq("api/v1/T/rpc/41".split('/')));
        let mut came = Incoming::new(request.method, true, request.payload);
        request.path.for_each(|segment| came.segment(segment));
        let (refused, topic) = read_by(&HTTP, &came);
        assert_eq!((refused, &topic[..]), (None, "thingsboard-rpc/T/response"));
    }

    #[test]
    fn a_wait_ends_as_it_was_asked_for() {
        for (query, ttd_s, over) in [
            ("timeout=3000", 3, 408),
            ("timeout=30000", 30, 408),
            ("timeout=1", 1, 408),
            ("timeout=30001", 30, 503),
            ("timeout=0", 30, 503),
            ("", 30, 503),
        ] {
            let mut came = came(Method::Get, "api/v1/T/rpc", b"");
            came.parameter(query);
            let Wanted::Upload(upload) = read(&came, Some(&DEVICE), &mut String::new()) else {
                panic!("{query}");
            };
            assert_eq!(upload.ttd_s, Some(ttd_s), "{query}");
            let ends_with = upload.over.map(|refusal| refusal.status.0);
            assert_eq!(ends_with, Some(over), "{query}");
        }
        let mut came = came(Method::Get, "api/v1/T/rpc", b"");
        came.parameter("timeout=soon");
        assert_eq!(read_by(&HTTP, &came).0, Some(400));
    }

    #[test]
    fn a_device_is_made_or_not_whatever_the_code_is() {
        let asked = Segments::of(provisioning::REQUEST);
        let mut out = Vec::new();
        assert_eq!(
            (HTTP.answer)(&Question::Device(Some(b"\"a\"")), &mut out),
            TEXT
        );
        let none = &mut std::iter::empty();
        for (body, expected) in [
            (&out[..], Answered::Accepted),
            (
                br#"{"status":"NOT_FOUND"}"#,
                Answered::Rejected(Status(500)),
            ),
            (b"", Answered::Rejected(Status(500))),
        ] {
            let mut path = ReplyPath::default();
            let answered = (HTTP.answered)(Status(200), none, body, asked, &mut path);
            assert_eq!(answered, expected);
        }
    }

    proptest! {
        /// Law: any request is read without a panic, and what surfaces has a topic.
        #[test]
        fn any_request_is_read(path in "(api/v1/)?(T/|provision|X/)?(telemetry|attributes|rpc|claim)?[/0-9a-z]{0,6}", body in "[\\[\\]{}\":,a-z0-9]{0,20}", method in 0usize..4) {
            let method = [Method::Get, Method::Post, Method::Put, Method::Other][method];
            let came = came(method, &path, body.as_bytes());
            let mut topic = String::new();
            if let Wanted::Upload(upload) = read(&came, Some(&DEVICE), &mut topic) {
                prop_assert_eq!(upload.surfaces, !topic.is_empty());
            }
        }
    }
}
