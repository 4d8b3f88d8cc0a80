//! The platform's end: requests as ThingsBoard reads them, and its answers.

use super::{
    BAD_REQUEST, JSON, METHOD_NOT_ALLOWED, NOT_FOUND, PROVISION, REQUEST_TIMEOUT, Resource,
    SERVER_ERROR, TEXT, TOO_LARGE, UNAUTHORIZED, UNAVAILABLE,
};
use crate::command::Handing;
use crate::incoming::{Asker, Incoming, Manner, Peer, Question, Refusal, Upload, Wanted};
use crate::request::{Method, Status};
use crate::server::{DevicePublish, Reply};
use crate::thingsboard::{provisioning, rpc, scope, uplinks};

/// Segments in front of the token.
const ROOT: [&str; 2] = ["api", "v1"];
/// The place of the word of a resource.
const WORD: usize = 3;
/// A body of this type never reaches the device API.
const FORM: &str = "application/x-www-form-urlencoded";
/// Bytes of an unreadable payload that its refusal shows.
const SHOWN_MAX: usize = 256;
/// Bytes of the longest reply to a command.
const REPLY_MAX: usize = 65_536;
/// Longest time for which a device may wait, in milliseconds, and that of one that names none.
const WAIT_MAX_MS: u64 = 30_000;
/// Seconds until a call of a method is given up: 30.8 were seen.
const CALL_WAITS_S: u32 = 31;

const NO_PATH: Refusal = Refusal::new(NOT_FOUND, "there is no such path");
pub(super) const NO_METHOD: Refusal =
    Refusal::new(METHOD_NOT_ALLOWED, "Request method is not supported");
pub(super) const NO_BODY: Refusal = Refusal::new(BAD_REQUEST, "Required request body is missing");
pub(super) const NO_TOKEN: Refusal = Refusal::new(UNAUTHORIZED, "no device has this token");
pub(super) const UNREADABLE: Refusal = Refusal::new(SERVER_ERROR, "Can't parse value: ");

const NO_NUMBER: Refusal = Refusal::new(BAD_REQUEST, "Failed to convert a value to a number");
const TOO_LONG: Refusal = Refusal::new(TOO_LARGE, "Payload size exceeds the limit");
const NOTHING_CAME: Refusal = Refusal::new(REQUEST_TIMEOUT, "nothing came in time");
const GIVEN_UP: Refusal = Refusal::new(UNAVAILABLE, "Async request timed out");

/// Returns the token in the path of a request.
pub(super) fn token<'a>(came: &Incoming<'a>) -> Option<&'a str> {
    let is_of_api = [came.at(0), came.at(1)] == ROOT.map(Some);
    came.at(ROOT.len())
        .filter(|_| is_of_api && came.segments() > WORD)
}

/// Reads a request, and puts the topic on which it surfaces into `out`. `peer` is the device of the token; none
/// where no device has it.
pub(super) fn read<'a>(
    came: &Incoming<'a>,
    peer: Option<&Peer<'a>>,
    out: &mut String,
) -> Wanted<'a> {
    out.clear();
    wanted(came, peer, out).unwrap_or_else(Wanted::Refused)
}

/// Reads the same over CoAP, which knows one code for all that it does not take. Whoever waits there for a command
/// observes.
pub(super) fn read_over_coap<'a>(
    came: &Incoming<'a>,
    peer: Option<&Peer<'a>>,
    out: &mut String,
) -> Wanted<'a> {
    match read(came, peer, out) {
        Wanted::Refused(Refusal { status, why }) if status != UNAUTHORIZED => {
            Wanted::Refused(Refusal::new(BAD_REQUEST, why))
        }
        Wanted::Upload(upload)
            if upload.ttd_s.is_some() && came.observes && upload.tenant != UPDATES =>
        {
            Wanted::Observation(upload)
        }
        Wanted::Upload(Upload { ttd_s: Some(_), .. }) => {
            Wanted::Refused(Refusal::new(BAD_REQUEST, "it does not observe"))
        }
        wanted @ (Wanted::Upload(_)
        | Wanted::Reply(_)
        | Wanted::Observation(_)
        | Wanted::Ignored
        | Wanted::Refused(_)) => wanted,
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
        (Get, "attributes", _, WORD) => {
            let [client, shared] =
                ["clientKeys", "sharedKeys"].map(|key| came.parameter_value(key));
            question(peer, Question::Values { client, shared })
        }
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

fn question<'a>(peer: Option<&Peer<'a>>, question: Question<'a>) -> Result<Wanted<'a>, Refusal> {
    Ok(Wanted::Upload(Upload {
        surfaces: false,
        question: Some(question),
        ..upload(peer.ok_or(NO_TOKEN)?)
    }))
}

/// A question that nobody answers: the device waits for nothing that can come.
pub(super) fn unanswered(question: Upload<'_>) -> Upload<'_> {
    Upload {
        tenant: UPDATES,
        ttd_s: Some(CALL_WAITS_S),
        question: None,
        over: Some(GIVEN_UP),
        ..question
    }
}

/// Reads a call of a method of the platform.
fn call<'a>(came: &Incoming<'a>, peer: Option<&Peer<'a>>) -> Result<Wanted<'a>, Refusal> {
    let payload = body(came)?;
    let wanted = question(peer, Question::Method(payload))?;
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
    let payload = body(came)?;
    provisioning::asked(payload).ok_or(UNREADABLE)?;
    let nobody = Peer {
        tenant: "",
        device: PROVISION,
    };
    Ok(Wanted::Upload(Upload {
        surfaces: false,
        question: Some(Question::Device(payload)),
        ..upload(&nobody)
    }))
}

/// Stands for the tenant of devices that wait for something else, so that no command finds them.
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

/// Returns the number in the path of a reply to a command.
pub(super) fn reply_number(came: &Incoming<'_>) -> Option<u32> {
    came.at(WORD + 1)?.parse().ok()
}

/// Renders a command for a device that waited: the call with the platform's number of it.
pub(super) fn command_body(to: &Handing<'_>, payload: &[u8], out: &mut Vec<u8>) -> bool {
    rpc::write_numbered(to.request, payload, out).is_some()
}

/// Answers a question without a store: there are no attributes, and any device may be made.
pub(super) fn answer(question: &Question<'_>, out: &mut Vec<u8>) -> &'static str {
    match question {
        Question::Values { .. } | Question::Method(_) => {
            out.extend_from_slice(b"{}");
            JSON
        }
        Question::Device(payload) => {
            let (id, code) = (provisioning::asked(payload).flatten(), 0);
            provisioning::write_answer(&Reply { id, code }, out);
            TEXT
        }
    }
}

/// Appends the body of a refusal: JSON from the web framework, text from the reader of JSON, else none.
pub(super) fn explain(
    refusal: &Refusal,
    payload: &[u8],
    out: &mut Vec<u8>,
) -> Option<&'static str> {
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
pub(super) fn closes(status: Status) -> bool {
    matches!(status.0, 400 | 408 | 411 | 413 | 414 | 500 | 501 | 503)
}
