//! ThingsBoard's device API over HTTP and CoAP, both ends.
//!
//! A request names its device by the access token in its path, as `/api/v1/<token>/telemetry`. A stream has the
//! topic that it has over MQTT, and the path follows from that. Both protocols have the same paths and bodies;
//! they differ in the codes of their answers.

use super::{Topic, scope, uplinks};
use crate::incoming::{Asker, Incoming, Manner, Peer, Refusal, Upload, Wanted};
use crate::request::{Asking, Method, Request, Segments, Status};
use crate::server::DevicePublish;
use crate::spec::{PLAIN_REQUESTS, Requests};

/// Both ends over HTTP.
pub(super) const HTTP: Requests = Requests {
    uplink: ask,
    accepted: Status(200),
    refused: SERVER_ERROR,
    commanded: Status(200),
    hint,
    has: |topic| resource(topic).is_some(),
    path_token: Some(token),
    methods: "POST",
    explain,
    closes,
    read,
    ..PLAIN_REQUESTS
};

/// Both ends over CoAP.
pub(super) const COAP: Requests = Requests {
    // 2.01.
    accepted: Status(201),
    hint: hint_of_coap,
    explain: |_, _, _| None,
    closes: |_| false,
    read: read_over_coap,
    ..HTTP
};

const BAD_REQUEST: Status = Status(400);
const UNAUTHORIZED: Status = Status(401);
const NOT_FOUND: Status = Status(404);
const METHOD_NOT_ALLOWED: Status = Status(405);
const SERVER_ERROR: Status = Status(500);

const NO_PATH: Refusal = refused(NOT_FOUND, "there is no such path");
const NO_METHOD: Refusal = refused(METHOD_NOT_ALLOWED, "Request method is not supported");
const NO_BODY: Refusal = refused(BAD_REQUEST, "Required request body is missing");
const NO_TOKEN: Refusal = refused(UNAUTHORIZED, "no device has this token");
const UNREADABLE: Refusal = refused(SERVER_ERROR, "Can't parse value: ");

const fn refused(status: Status, why: &'static str) -> Refusal {
    Refusal { status, why }
}

/// Segments in front of the token.
const ROOT: [&str; 2] = ["api", "v1"];
/// The same as text.
const BEFORE_TOKEN: &str = "api/v1/";
/// Segments of the path of a resource.
const RESOURCE_SEGMENTS: usize = 4;
const JSON: &str = "application/json";
/// A body of this type never reaches the device API.
const FORM: &str = "application/x-www-form-urlencoded";
/// Bytes of an unreadable payload that its refusal shows.
const SHOWN_MAX: usize = 256;

/// The resources, each with the topic that has the same meaning over MQTT.
const RESOURCES: [(&str, Topic, &str); 3] = [
    ("telemetry", Topic::Telemetry, "v1/devices/me/telemetry"),
    ("attributes", Topic::Attributes, "v1/devices/me/attributes"),
    ("claim", Topic::Claim, "v1/devices/me/claim"),
];

/// Returns the word of the resource that messages on a topic are posted to.
fn resource(topic: &str) -> Option<&'static str> {
    let topic = Topic::of(topic)?;
    let found = RESOURCES.iter().find(|(_, of, _)| *of == topic);
    found.map(|(word, _, _)| *word)
}

/// Makes a request of a message.
fn ask<'a>(asking: &Asking<'a>, text: &'a mut String) -> Request<'a> {
    let resource = resource(asking.path).unwrap_or_default();
    text.clear();
    text.extend([BEFORE_TOKEN, asking.login, "/", resource]);
    Request {
        method: Method::Post,
        path: Segments::of(text),
        query: "",
        content_type: Some(asking.content_type.unwrap_or(JSON)),
        headers: &[],
        is_at_least_once: asking.is_at_least_once,
        payload: asking.payload,
    }
}

/// Returns the token in the path of a request.
fn token<'a>(came: &Incoming<'a>) -> Option<&'a str> {
    let is_of_api = [came.at(0), came.at(1)] == ROOT.map(Some);
    came.at(ROOT.len())
        .filter(|_| is_of_api && came.segments() >= RESOURCE_SEGMENTS)
}

/// Reads a request, and puts the topic on which it surfaces into `out`. `peer` is the device of the token; none
/// where no device has it.
fn read<'a>(came: &Incoming<'a>, peer: Option<&Peer<'a>>, out: &mut String) -> Wanted<'a> {
    out.clear();
    wanted(came, peer, out).unwrap_or_else(Wanted::Refused)
}

/// Reads the same over CoAP, which knows one code for all that it does not take.
fn read_over_coap<'a>(
    came: &Incoming<'a>,
    peer: Option<&Peer<'a>>,
    out: &mut String,
) -> Wanted<'a> {
    match read(came, peer, out) {
        Wanted::Refused(Refusal { status, why }) if status != UNAUTHORIZED => {
            Wanted::Refused(refused(BAD_REQUEST, why))
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
    let word = token(came).and(came.at(RESOURCE_SEGMENTS - 1));
    let word = word.filter(|_| came.segments() == RESOURCE_SEGMENTS);
    let known = RESOURCES.iter().find(|(known, _, _)| Some(*known) == word);
    let (_, of, topic) = known.ok_or(NO_PATH)?;
    if came.method != Method::Post {
        return Err(NO_METHOD);
    }
    if came.content_type.is_some_and(|it| it.starts_with(FORM)) {
        return Err(UNREADABLE);
    }
    let payload = match (came.payload, of) {
        // A claim may say nothing.
        ([], Topic::Claim) => &b"{}"[..],
        ([], _) => return Err(NO_BODY),
        (payload, _) => payload,
    };
    let peer = peer.ok_or(NO_TOKEN)?;
    match uplinks::read(peer.device, topic, payload) {
        DevicePublish::Data(data) => data.write_surface(peer.device, out),
        DevicePublish::Taken => {
            scope::route(peer.device, topic, out);
        }
        DevicePublish::Ignored => return Ok(Wanted::Ignored),
        DevicePublish::Invalid
        | DevicePublish::Unknown
        | DevicePublish::Message { .. }
        | DevicePublish::Unreadable { .. }
        | DevicePublish::Announced { .. }
        | DevicePublish::Published(_)
        | DevicePublish::Refused(_)
        | DevicePublish::Other => return Err(UNREADABLE),
    }
    Ok(Wanted::Upload(Upload {
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
    }))
}

/// Appends the body of a refusal: JSON from the web framework, text from the reader of JSON, else none.
fn explain(refusal: &Refusal, payload: &[u8], out: &mut Vec<u8>) -> Option<&'static str> {
    if *refusal == UNREADABLE {
        out.extend_from_slice(refusal.why.as_bytes());
        out.extend_from_slice(&payload[..payload.len().min(SHOWN_MAX)]);
        return Some("text/plain");
    }
    let code = match refusal.status {
        BAD_REQUEST | METHOD_NOT_ALLOWED => 31,
        NOT_FOUND => 32,
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
        503 => "ThingsBoard gave up after its own time-out: a limit is reached, or its queue stands",
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
    use super::*;

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
                assert_eq!((upload.device, upload.ttd_s), ("T", None));
                None
            }
            Wanted::Reply(_) => panic!("{came:?}"),
        };
        (status, topic)
    }

    #[test]
    fn a_message_goes_to_the_path_of_its_topic_and_surfaces_under_its_device() {
        for (topic, path, surface) in [
            ("v1/devices/me/telemetry", "api/v1/T/telemetry", "thingsboard/T/telemetry"),
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
        for topic in ["v1/gateway/telemetry", "v1/devices/me/rpc/request", "muster/a/t"] {
            assert!(!(HTTP.has)(topic), "{topic}");
        }
    }

    /// The rows of ThingsBoard CE 4.3.1.3 that need no socket; 0 is never answered.
    #[test]
    fn a_request_is_refused_as_thingsboard_does() {
        use Method::{Get, Other, Post, Put};
        for (method, path, body, over_http, over_coap) in [
            (Post, "api/v1/T/telemetry", "[{\"a\":1}]", None, None),
            (Post, "api/v1/T/telemetry", "{\"ts\":1,\"values\":{}}", None, None),
            (Post, "api/v1/T/telemetry", "[]", Some(0), Some(0)),
            (Post, "api/v1/T/telemetry", "5", Some(500), Some(400)),
            (Post, "api/v1/T/telemetry", "on", Some(500), Some(400)),
            (Post, "api/v1/T/telemetry", "", Some(400), Some(400)),
            (Post, "api/v1/T/attributes", "[]", Some(500), Some(400)),
            (Post, "api/v1/T/claim", "", None, None),
            (Post, "api/v1/T/claim", "[]", Some(500), Some(400)),
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
            assert_eq!(read_by(&HTTP, &came).0, over_http, "{method:?} {path} {body}");
            assert_eq!(read_by(&COAP, &came).0, over_coap, "{method:?} {path} {body}");
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
}
