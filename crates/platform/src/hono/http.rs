//! Hono's adapter of HTTP, both ends.
//!
//! The paths are those of CoAP in their long words, and a path names its device wherever the credentials do
//! not. Headers have the place of CoAP's options: `qos-level` asks that telemetry is sent on at least once,
//! and a command comes with `hono-command`, its `hono-cmd-req-id` and, to a gateway,
//! `hono-cmd-target-device`. No header names the path of a reply: `command/res/<id>` for a device's own,
//! and `command/res/<tenant>/<device>/<id>` for one that the path of the request named.

use std::fmt::Write as _;

use muster_model::Micros;

use super::commands::{JSON, ask_reply_by};
use super::northbound::write_reply_topic;
use super::requests::{COMMAND_STATUS, Endpoint, TTD, Who, method};
use super::server::{
    self, BAD_REQUEST, EMPTY_NOTIFICATION, METHOD_NOT_ALLOWED, NOT_FOUND, UNAUTHORIZED, asker,
    correlation_id, granted_ttd_s, named, request_id,
};
use crate::command::{CommandCopy, Commanded, named as named_command};
use crate::incoming::{Asker, HandedCommand, Incoming, Manner, Peer, Refusal, Upload, Wanted};
use crate::request::{
    Answered, Answering, Asking, Field, Fields, Method, ReplyPath, Request, RequestLimits,
    Segments, Status,
};
use crate::spec::{PLAIN_REQUESTS, Requests};

/// Both ends of requests over HTTP.
pub(super) const REQUESTS: Requests = Requests {
    limits: Some(RequestLimits {
        body: 2_048,
        body_code: "413",
        body_key: "`maxPayloadSize` of the adapter",
        ttd: Micros::from_secs(60),
        ttd_key: "`max-ttd` of the adapter hono-http in the tenant",
    }),
    resource,
    login: "${id}@${tenant}",
    uplink: ask,
    reply: ask_reply,
    answered,
    accepted: Status(202),
    commanded: Status(200),
    hint,
    read,
    hand,
    ..PLAIN_REQUESTS
};

/// Asks that telemetry travels on at least once; without it a yes says nothing of the messaging network.
const QOS_LEVEL: &str = "qos-level";
/// The name of a command.
const COMMAND: &str = "hono-command";
/// The id that a reply to it names; missing if none is wanted.
const REQUEST_ID: &str = "hono-cmd-req-id";
/// The device that it is for, where a gateway asked.
const TARGET_DEVICE: &str = "hono-cmd-target-device";
/// The first segments of the path of a reply.
const REPLY: [&str; 2] = ["command", "res"];
/// The media type of a body without another: the adapter takes none without a type.
const OCTETS: &str = "application/octet-stream";
/// Bytes of a header's value that is handed over, far below what clients and servers take of a head.
const VALUE_MAX: usize = 4_096;

/// The path of an endpoint, as the template that stands where a stream names none. A gateway names its tenant,
/// since older adapters take no empty one.
const fn resource(endpoint: Endpoint, who: Who) -> &'static str {
    match (endpoint, who) {
        (Endpoint::Telemetry, Who::Device) => "telemetry",
        (Endpoint::Telemetry, Who::Gateway | Who::Nobody) => "telemetry/${tenant}/${id}",
        (Endpoint::Event, Who::Device) => "event",
        (Endpoint::Event, Who::Gateway | Who::Nobody) => "event/${tenant}/${id}",
    }
}

/// Makes a request of a message. The method is POST if the path names no device, else PUT.
fn ask<'a>(asking: &Asking<'a>, query: &'a mut String) -> Request<'a> {
    query.clear();
    if let Some(ttd_s) = asking.ttd_s {
        // Writing to a string cannot fail.
        let _ = write!(query, "{TTD}={ttd_s}");
    }
    let mut path = Segments::of(asking.path);
    let is_telemetry = path.next() == Some(Endpoint::Telemetry.word(false));
    let media_type = match asking.payload {
        [] => EMPTY_NOTIFICATION,
        [..] => asking.content_type.unwrap_or(OCTETS),
    };
    Request {
        method: method(path.next().is_none()),
        path: Segments::of(asking.path),
        query,
        content_type: Some(media_type),
        // An event is always sent on at least once.
        headers: match asking.is_at_least_once && is_telemetry {
            true => &[(QOS_LEVEL, "1")],
            false => &[],
        },
        is_at_least_once: asking.is_at_least_once,
        payload: asking.payload,
    }
}

/// Makes the request that replies to a command. The method is POST if the path names no device, else PUT.
fn ask_reply<'a>(answering: &Answering<'a>, query: &'a mut String) -> Request<'a> {
    let method = method(answering.to.len() <= REPLY.len() + 1);
    ask_reply_by(method, answering, query)
}

/// Reads an answer to a request on that path. Where a command comes with it that wants a reply, the path of
/// the reply goes into `reply`, which is emptied first.
fn answered<'a>(
    status: Status,
    fields: Fields<'_, 'a>,
    payload: &'a [u8],
    mut asked: Segments<'_>,
    reply: &mut ReplyPath,
) -> Answered<'a> {
    reply.clear();
    let (mut is_command, mut id, mut target) = (false, None, None);
    for field in fields {
        match field {
            Field::Header(COMMAND, _) => is_command = true,
            Field::Header(REQUEST_ID, value) => id = Some(value),
            Field::Header(TARGET_DEVICE, value) => target = Some(value),
            Field::Header(..)
            | Field::PathSegment(_)
            | Field::Parameter(_)
            | Field::ContentType(_)
            | Field::MaxAge(_) => {}
        }
    }
    if !status.is_yes() {
        return Answered::Rejected(status);
    }
    if !is_command {
        return Answered::Accepted;
    }
    if let Some(id) = id {
        let (tenant, device) = (asked.nth(1), asked.next());
        let mut is_kept = REPLY.iter().all(|word| reply.push(word));
        if let Some(device) = target.or(device) {
            is_kept &= reply.push(tenant.unwrap_or_default()) && reply.push(device);
        }
        if !(reply.push(id) && is_kept) {
            reply.clear();
        }
    }
    Answered::Command(CommandCopy {
        stamp: named_command(payload),
        device: target,
        ..CommandCopy::UNREADABLE
    })
}

/// Reads a request, and puts the topic on which it surfaces into `out`. `peer` is none where the request has
/// no credentials.
fn read<'a>(came: &Incoming<'a>, peer: Option<&Peer<'a>>, out: &mut String) -> Wanted<'a> {
    out.clear();
    let wanted = match (came.at(0), came.at(1)) {
        (Some(command), Some(word)) if [command, word] == REPLY => {
            reply(came, peer, out).map(Wanted::Reply)
        }
        (Some(word), _) => upload(came, peer, word)
            .inspect(|upload| out.extend([word, "/", upload.tenant, "/", upload.device]))
            .map(Wanted::Upload),
        (None, _) => Err(NO_RESOURCE),
    };
    wanted.unwrap_or_else(Wanted::Refused)
}

const NO_RESOURCE: Refusal = Refusal::new(NOT_FOUND, "there is no such resource");

/// Reads a message on the endpoint of that word; the adapter knows long words alone.
fn upload<'a>(
    came: &Incoming<'a>,
    peer: Option<&Peer<'a>>,
    word: &str,
) -> Result<Upload<'a>, Refusal> {
    let endpoint = Endpoint::named(word).filter(|(_, is_short)| !is_short);
    let (endpoint, is_short) = endpoint.ok_or(NO_RESOURCE)?;
    let is_of_endpoint = match came.method {
        Method::Post => came.segments() == 1,
        Method::Put => came.segments() == 3,
        Method::Get | Method::Other => true,
    };
    if !is_of_endpoint {
        return Err(NO_RESOURCE);
    }
    let of = whose(came, peer, 1)?;
    let is_asked = match came.header_value(QOS_LEVEL) {
        None | Some("0") => false,
        Some("1") => true,
        Some(_) => return Err(Refusal::new(BAD_REQUEST, "qos-level is 0 or 1")),
    };
    let (asker, gateway) = asker(of, peer);
    let ttd_s = came.header_value(TTD).or(came.parameter_value(TTD));
    Ok(Upload {
        tenant: of.tenant,
        device: of.device,
        gateway,
        content_type: Some(content_type(came)?),
        is_at_least_once: endpoint == Endpoint::Event || is_asked,
        ttd_s: ttd_s.and_then(|text| granted_ttd_s(text.parse().ok()?)),
        manner: Manner { is_short, asker },
        surfaces: true,
        question: None,
        over: None,
    })
}

/// A body has to be of its type: none where the type says that it is empty, and only there.
fn content_type<'a>(came: &Incoming<'a>) -> Result<&'a str, Refusal> {
    let Some(media_type) = came.content_type else {
        return Err(Refusal::new(BAD_REQUEST, "there is no content type"));
    };
    match (media_type == EMPTY_NOTIFICATION) == came.payload.is_empty() {
        true => Ok(media_type),
        false => Err(Refusal::new(
            BAD_REQUEST,
            "the content type does not match the body",
        )),
    }
}

/// Reads a reply to a command, and puts the topic on which it surfaces into `out`.
fn reply<'a>(
    came: &Incoming<'a>,
    peer: Option<&Peer<'a>>,
    out: &mut String,
) -> Result<Peer<'a>, Refusal> {
    let is_put = came.method == Method::Put;
    let place = REPLY.len() + if is_put { 2 } else { 0 };
    if came.segments() != place + 1 {
        return Err(NO_RESOURCE);
    }
    let of = whose(came, peer, REPLY.len())?;
    let status = came.header_value(COMMAND_STATUS);
    let status = status.or(came.parameter_value(COMMAND_STATUS));
    let status = status.and_then(|text| text.parse().ok());
    let status = status.filter(|status| (200..600).contains(status));
    match (came.at(place).and_then(correlation_id), status) {
        (Some(id), Some(status)) => {
            write_reply_topic([of.tenant, of.device, id], status, out);
            Ok(of)
        }
        _ => Err(Refusal::new(
            BAD_REQUEST,
            "the request id or the status is missing or wrong",
        )),
    }
}

/// Returns the device of a request: POST is the peer's own, PUT names tenant and device in the segments from
/// `first` on.
fn whose<'a>(
    came: &Incoming<'a>,
    peer: Option<&Peer<'a>>,
    first: usize,
) -> Result<Peer<'a>, Refusal> {
    match came.method {
        Method::Post => peer
            .copied()
            .ok_or(Refusal::new(UNAUTHORIZED, "no credentials")),
        Method::Put => named([came.at(first), came.at(first + 1)], peer),
        Method::Get | Method::Other => Err(Refusal::new(METHOD_NOT_ALLOWED, "POST and PUT alone")),
    }
}

/// Takes over a command to a device that asked in that manner; the error says why it cannot be handed over.
fn hand(
    manner: Manner,
    command: &Commanded<'_>,
    out: &mut HandedCommand,
) -> Result<(), &'static str> {
    out.clear();
    out.content_type = JSON;
    let [name, id, target] = &mut out.headers;
    name.0 = COMMAND;
    name.1.push_str(command.name);
    id.0 = REQUEST_ID;
    if let Some(correlation_id) = command.correlation_id {
        id.1.push_str(&request_id(correlation_id));
    }
    target.0 = TARGET_DEVICE;
    if manner.asker == Asker::Gateway {
        target.1.push_str(command.device);
    }
    let is_value = |(_, value): &(_, String)| {
        value.len() <= VALUE_MAX && !value.bytes().any(|byte| byte.is_ascii_control())
    };
    match out.headers.iter().all(is_value) && !command.name.is_empty() {
        true => Ok(()),
        false => Err(NOT_TO_BE_HANDED),
    }
}

const NOT_TO_BE_HANDED: &str = "a header carries up to 4096 bytes without line breaks and control characters: \
     change the command's name or correlation id";

/// Each refusal, and what to look at.
const HINTS: [(Status, &str); 10] = [
    (
        BAD_REQUEST,
        "Hono cannot take such a request: a body that is not of its content type, a qos-level other than 0 \
         and 1, or a reply whose request id or status is not right",
    ),
    (
        UNAUTHORIZED,
        "the adapter does not know these credentials: see `credential` and `muster provision`; devices without \
         credentials need HONO_HTTP_AUTHENTICATION_REQUIRED=false",
    ),
    (
        server::FORBIDDEN,
        "the tenant or its HTTP adapter is disabled, the tenant of the path is not that of the \
         credentials, or the gateway may not act for the device (`via`)",
    ),
    (
        NOT_FOUND,
        "the tenant or the device is not registered, or is disabled; or there is no such resource: see \
         `muster provision` and `topic`",
    ),
    (METHOD_NOT_ALLOWED, "the resource takes POST and PUT alone"),
    (
        Status(413),
        "the payload is above the adapter's maxPayloadSize (2048 bytes unless it was set)",
    ),
    (
        Status(429),
        "the tenant's limit of messages, data volume or connection time is reached",
    ),
    (Status(500), "an error within Hono: see its log"),
    (
        Status(502),
        "a proxy before the adapter has no adapter behind it that answers",
    ),
    (
        Status(503),
        "nobody consumes these messages, or a consumer gives no credit, or a service of Hono's did not answer \
         in time; the message may arrive nevertheless",
    ),
];

/// Returns the meaning of a refusal on this platform, and the setting to check.
fn hint(status: Status) -> Option<&'static str> {
    let known = HINTS.iter().find(|(known, _)| *known == status);
    known.map(|(_, hint)| *hint)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::commands::tests::answering;
    use super::*;
    use crate::command::tests::stamp;
    use crate::command::{CommandScratch, OutboundCommand};
    use crate::hono::northbound;

    const PEER: Peer<'static> = Peer {
        tenant: "t1",
        device: "dev1",
    };
    const GATEWAY: Peer<'static> = Peer {
        device: "gw1",
        ..PEER
    };
    const TELEMETRY: Asking<'static> = Asking {
        path: "telemetry",
        payload: b"{\"temp\": 5}",
        content_type: Some(JSON),
        is_at_least_once: true,
        ttd_s: None,
        login: "",
    };

    /// The parts of a request that the user guide shows, in the order of its lines.
    fn written(asking: &Asking<'_>) -> String {
        let mut query = "left over".to_owned();
        shown(&ask(asking, &mut query))
    }

    fn shown(request: &Request<'_>) -> String {
        let method = match request.method {
            Method::Post => "POST",
            Method::Put => "PUT",
            Method::Get | Method::Other => "?",
        };
        let mut text = format!("{method} ");
        request.path.for_each(|segment| text.extend(["/", segment]));
        if !request.query.is_empty() {
            text.extend(["?", request.query]);
        }
        if let Some(media_type) = request.content_type {
            text.extend(["\ncontent-type: ", media_type]);
        }
        for (name, value) in request.headers {
            text.extend(["\n", name, ": ", value]);
        }
        text
    }

    /// The examples of the user guide of the adapter, line by line.
    #[test]
    fn a_message_is_the_request_of_the_user_guide() {
        let by_path = |path| Asking { path, ..TELEMETRY };
        let json = "content-type: application/json";
        assert_eq!(
            written(&TELEMETRY),
            format!("POST /telemetry\n{json}\nqos-level: 1")
        );
        let at_most_once = Asking {
            is_at_least_once: false,
            ..TELEMETRY
        };
        assert_eq!(written(&at_most_once), format!("POST /telemetry\n{json}"));
        assert_eq!(
            written(&by_path("telemetry/DEFAULT_TENANT/4711")),
            format!("PUT /telemetry/DEFAULT_TENANT/4711\n{json}\nqos-level: 1")
        );
        let waits = Asking {
            ttd_s: Some(10),
            ..by_path("event")
        };
        assert_eq!(written(&waits), format!("POST /event?hono-ttd=10\n{json}"));
    }

    #[test]
    fn every_body_has_a_type() {
        let untyped = Asking {
            content_type: None,
            ..TELEMETRY
        };
        assert!(written(&untyped).contains("content-type: application/octet-stream"));
        let empty = Asking {
            payload: b"",
            ..TELEMETRY
        };
        let empty = written(&empty);
        assert!(empty.contains("content-type: application/vnd.eclipse-hono-empty-notification"));
        assert!(!empty.contains('?'));
    }

    fn came<'a>(request: &Request<'a>) -> Incoming<'a> {
        let mut came = Incoming::new(request.method, true, request.payload);
        came.content_type = request.content_type;
        request.path.for_each(|segment| came.segment(segment));
        let parameters = request.parameters();
        parameters.for_each(|parameter| came.parameter(parameter));
        let headers = request.headers.iter();
        headers.for_each(|(name, value)| came.header(name, value));
        came
    }

    /// A request with a method, a path, and headers.
    fn parts(
        method: Method,
        path: &'static str,
        headers: &[(&'static str, &'static str)],
    ) -> Incoming<'static> {
        let mut came = Incoming::new(method, true, b"{}");
        path.split('/').for_each(|segment| came.segment(segment));
        for (name, value) in headers {
            match *name {
                "content-type" => came.content_type = Some(value),
                name => came.header(name, value),
            }
        }
        came
    }

    const TYPED: (&str, &str) = ("content-type", JSON);

    fn code(came: &Incoming<'_>, peer: Option<&Peer<'_>>) -> u16 {
        match read(came, peer, &mut String::new()) {
            Wanted::Refused(refusal) => refusal.status.0,
            Wanted::Upload(_) | Wanted::Reply(_) | Wanted::Observation(_) | Wanted::Ignored => 202,
        }
    }

    #[test]
    fn each_refusal_has_honos_code() {
        use Method::{Other, Post, Put};
        let empty = ("content-type", EMPTY_NOTIFICATION);
        let level = |value| [TYPED, ("Qos-Level", value)];
        let cases: [(Option<&Peer<'_>>, Method, &str, &[_], u16); 18] = [
            (Some(&PEER), Post, "telemetry", &[TYPED], 202),
            (Some(&PEER), Post, "telemetry", &level("1"), 202),
            (Some(&PEER), Post, "telemetry", &level("2"), 400),
            (Some(&PEER), Post, "event", &level("yes"), 400),
            (Some(&PEER), Post, "telemetry", &[], 400),
            (Some(&PEER), Post, "telemetry", &[empty], 400),
            (Some(&PEER), Post, "telemetry/t1/dev1", &[TYPED], 404),
            (Some(&PEER), Post, "t", &[TYPED], 404),
            (Some(&PEER), Put, "telemetry/t1/dev2", &[TYPED], 202),
            (Some(&PEER), Put, "telemetry//dev2", &[TYPED], 202),
            (Some(&PEER), Put, "telemetry/t2/dev2", &[TYPED], 403),
            (Some(&PEER), Put, "telemetry", &[TYPED], 404),
            (Some(&PEER), Other, "telemetry", &[TYPED], 405),
            (None, Post, "telemetry", &[TYPED], 401),
            (None, Put, "event/t1/dev1", &[TYPED], 202),
            (None, Put, "event//dev1", &[TYPED], 404),
            (None, Put, "nosuch/t1/dev1", &[TYPED], 404),
            (None, Put, "", &[TYPED], 404),
        ];
        for (peer, method, path, headers, expected) in cases {
            let came = parts(method, path, headers);
            assert_eq!(code(&came, peer), expected, "{came:?}");
        }
    }

    #[test]
    fn each_refusal_of_a_reply_has_honos_code() {
        use Method::{Post, Put};
        let done = [("hono-cmd-status", "200")];
        let cases: [(Option<&Peer<'_>>, Method, &str, &[_], u16); 8] = [
            (Some(&PEER), Post, "command/res/2047f3a", &done, 202),
            (Some(&PEER), Post, "command/res/2047f3a", &[], 400),
            (Some(&PEER), Post, "command/res/2057f3a", &done, 400),
            (Some(&PEER), Post, "command/res/t1/dev1/2047f3a", &done, 404),
            (Some(&PEER), Put, "command/res/t1/dev2/2047f3a", &done, 202),
            (Some(&PEER), Put, "command/res/t2/dev2/2047f3a", &done, 403),
            (None, Put, "command/res/t1/dev1/2047f3a", &done, 202),
            (None, Post, "command/res/2047f3a", &done, 401),
        ];
        for (peer, method, path, headers, expected) in cases {
            let came = parts(method, path, headers);
            assert_eq!(code(&came, peer), expected, "{came:?}");
        }
    }

    #[test]
    fn telemetry_travels_on_at_least_once_if_it_says_so_and_events_always_do() {
        let level = |value| [TYPED, (QOS_LEVEL, value)];
        for (path, headers, expected) in [
            ("telemetry", &level("0"), false),
            ("telemetry", &level("1"), true),
            ("event", &level("0"), true),
        ] {
            let came = parts(Method::Post, path, headers);
            let Wanted::Upload(upload) = read(&came, Some(&PEER), &mut String::new()) else {
                panic!("{path}");
            };
            assert_eq!(upload.is_at_least_once, expected, "{path}");
        }
    }

    #[test]
    fn the_time_to_wait_is_a_header_or_a_parameter() {
        for (header, parameter, ttd_s) in [
            (Some("10"), None, Some(10)),
            (None, Some("hono-ttd=10"), Some(10)),
            (Some("999"), None, Some(60)),
            (Some("soon"), None, None),
            (Some("0"), None, None),
        ] {
            let mut came = parts(Method::Post, "telemetry", &[TYPED]);
            header.iter().for_each(|value| came.header(TTD, value));
            parameter.iter().for_each(|text| came.parameter(text));
            let Wanted::Upload(upload) = read(&came, Some(&PEER), &mut String::new()) else {
                panic!("{came:?}");
            };
            assert_eq!(upload.ttd_s, ttd_s, "{came:?}");
        }
    }

    /// The server's end reads what the device's end writes, for every way to ask.
    #[test]
    fn a_command_goes_to_its_device_and_its_reply_comes_back() {
        let cases = [
            ("telemetry", Some(&PEER), "POST /command/res/"),
            ("event", Some(&PEER), "POST /command/res/"),
            (
                "telemetry/t1/dev1",
                Some(&GATEWAY),
                "PUT /command/res/t1/dev1/",
            ),
            ("event//dev1", Some(&GATEWAY), "PUT /command/res//dev1/"),
            ("event/t1/dev1", None, "PUT /command/res/t1/dev1/"),
        ];
        for (path, peer, before) in cases {
            for is_two_way in [true, false] {
                let (stamp, mut issued) = (stamp(), CommandScratch::default());
                let to = OutboundCommand {
                    stamp: &stamp,
                    device: "dev1",
                    tenant: "t1",
                    is_two_way,
                };
                northbound::write_command(&to, &mut issued);
                let command = northbound::command(&issued.topic).expect("it is a command");
                let mut handed = HandedCommand::default();
                assert_eq!(hand(manner(path, peer), &command, &mut handed), Ok(()));

                let mut to = ReplyPath::default();
                to.push("left over");
                let (asked, fields) = (Segments::of(path), &mut handed.fields());
                let came_back = answered(Status(200), fields, &issued.payload, asked, &mut to);
                let Answered::Command(copy) = came_back else {
                    panic!("{path}: {came_back:?}");
                };
                assert_eq!(copy.stamp, Some(stamp), "{path}");
                let is_gateways = peer == Some(&GATEWAY);
                assert_eq!(copy.device, is_gateways.then_some("dev1"), "{path}");
                assert_eq!(to.is_empty(), !is_two_way, "{path}");
                if is_two_way {
                    let mut query = String::new();
                    let answering = answering(&to);
                    let request = ask_reply(&answering, &mut query);
                    let id = command.correlation_id.expect("a reply is wanted");
                    let expected = format!(
                        "{before}{}?hono-cmd-status=200\ncontent-type: application/json",
                        request_id(id)
                    );
                    assert_eq!(shown(&request), expected);
                    let mut topic = String::new();
                    let replied = read(&came(&request), peer, &mut topic);
                    assert_eq!(replied, Wanted::Reply(PEER), "{path}");
                    assert_eq!(topic, format!("command_response/t1/dev1/{id}/200"));
                }
            }
        }
    }

    /// Returns the form of a device's request on that path.
    fn manner(path: &'static str, peer: Option<&Peer<'static>>) -> Manner {
        let mut query = String::new();
        let asking = Asking {
            path,
            ttd_s: Some(10),
            ..TELEMETRY
        };
        let (request, mut topic) = (ask(&asking, &mut query), String::new());
        let Wanted::Upload(upload) = read(&came(&request), peer, &mut topic) else {
            panic!("{path} is refused");
        };
        let expected = ("t1", "dev1", Some(10));
        assert_eq!((upload.tenant, upload.device, upload.ttd_s), expected);
        let word = path.split('/').next().expect("a word");
        assert_eq!(topic, format!("{word}/t1/dev1"));
        upload.manner
    }

    /// The answer of the user guide.
    #[test]
    fn a_command_is_the_answer_of_the_user_guide() {
        let command = Commanded {
            tenant: "t1",
            device: "dev1",
            correlation_id: Some("7f3a"),
            name: "set",
        };
        let manner = Manner {
            is_short: false,
            asker: Asker::Gateway,
        };
        let mut handed = HandedCommand::default();
        assert_eq!(hand(manner, &command, &mut handed), Ok(()));
        let expected = [
            Field::Header("hono-command", "set"),
            Field::Header("hono-cmd-req-id", "2047f3a"),
            Field::Header("hono-cmd-target-device", "dev1"),
            Field::ContentType("application/json"),
        ];
        assert!(handed.fields().eq(expected));
    }

    #[test]
    fn what_no_header_can_carry_is_not_handed_over() {
        let manner = Manner {
            is_short: false,
            asker: Asker::Itself,
        };
        let long = "x".repeat(VALUE_MAX + 1);
        for name in ["", "set\r\nx: y", "a\0", &long] {
            let command = Commanded {
                name,
                ..Commanded::to("dev1")
            };
            let handed = hand(manner, &command, &mut HandedCommand::default());
            assert_eq!(handed, Err(NOT_TO_BE_HANDED), "{name}");
        }
        assert!(NOT_TO_BE_HANDED.contains(&VALUE_MAX.to_string()));
    }

    #[test]
    fn a_no_is_a_no_whatever_headers_come_with_it() {
        let mut reply = ReplyPath::default();
        for (status, expected) in [
            (Status(202), Answered::Accepted),
            (Status(302), Answered::Rejected(Status(302))),
            (Status(503), Answered::Rejected(Status(503))),
        ] {
            let asked = Segments::of("telemetry");
            let mut fields = [Field::Header(REQUEST_ID, "2047f3a"), Field::MaxAge(2)].into_iter();
            let read = answered(status, &mut fields, b"", asked, &mut reply);
            assert_eq!(read, expected);
            assert!(reply.is_empty());
        }
    }

    /// The codes that the user guide names, 405 for other methods, and those of proxies.
    #[test]
    fn each_code_of_the_adapter_has_a_meaning() {
        for code in [400, 401, 403, 404, 405, 413, 429, 500, 502, 503] {
            assert!(hint(Status(code)).is_some(), "{code}");
        }
        assert_eq!(hint(Status(202)), None);
    }

    proptest! {
        /// Law: any request is read without a panic, and an accepted one names its device.
        #[test]
        fn anything_is_read(
            segments in prop::collection::vec("(telemetry|command|res|event|201a|[a-z\u{e4}]{0,3})", 0..7),
            headers in prop::collection::vec(("(qos-level|hono-ttd|hono-cmd-status)", "[0-9a-z]{0,4}"), 0..9),
            is_put: bool, is_typed: bool, is_known: bool,
        ) {
            let method = if is_put { Method::Put } else { Method::Post };
            let mut came = Incoming::new(method, true, b"1");
            came.content_type = is_typed.then_some(JSON);
            segments.iter().for_each(|segment| came.segment(segment));
            headers.iter().for_each(|(name, value)| came.header(name, value));
            let mut topic = String::new();
            match read(&came, is_known.then_some(&PEER), &mut topic) {
                Wanted::Upload(upload) => prop_assert!(!upload.device.is_empty()),
                Wanted::Reply(_) => {
                    prop_assert!(topic.starts_with("command_response/") && !topic.contains("//"));
                }
                Wanted::Ignored => prop_assert!(false, "everything is answered"),
                Wanted::Observation(_) => prop_assert!(false, "nothing is observed"),
                Wanted::Refused(refusal) => {
                    prop_assert!(!refusal.status.is_yes() && topic.is_empty());
                }
            }
        }
    }
}
