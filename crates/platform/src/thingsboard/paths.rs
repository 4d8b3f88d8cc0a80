//! ThingsBoard's device API over HTTP and CoAP, both ends.
//!
//! A request names its device by the access token in its path, as `/api/v1/<token>/telemetry`. A stream has the
//! topic that it has over MQTT, and the path follows from that. Both protocols have the same paths and bodies;
//! they differ in the codes of their answers.

mod device;
mod server;

use super::{POLL, Topic, provisioning, requests};
use crate::request::{LateRefusal, Status};
use crate::spec::{PLAIN_REQUESTS, Requests};

use self::device::{answered, ask, reply};
use self::server::{
    answer, closes, command_body, explain, read, read_over_coap, reply_number, token, unanswered,
};

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
    values_beyond_limit: Some(LateRefusal {
        after_s: 31,
        status: UNAVAILABLE,
    }),
    unanswered,
    reply_number,
    ..PLAIN_REQUESTS
};

/// Both ends over CoAP.
pub(super) const COAP: Requests = Requests {
    // 2.01, and 2.05.
    accepted: Status(201),
    commanded: Status(205),
    hint: hint_of_coap,
    has: |topic| Resource::of(topic).is_some(),
    poll: None,
    observed: Some(POLL),
    values_beyond_limit: None,
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

/// The segments in front of the token.
const BEFORE_TOKEN: &str = "api/v1/";
/// The word in the place of the token where a device asks to be made.
const PROVISION: &str = "provision";
const JSON: &str = "application/json";
const TEXT: &str = "text/plain";

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

    use super::server::{NO_BODY, NO_METHOD, NO_TOKEN, UNREADABLE};
    use super::*;
    use crate::command::tests::stamp;
    use crate::command::{CommandScratch, Commanded, Handing, OutboundCommand};
    use crate::incoming::{Incoming, Peer, Question, Refusal, Wanted};
    use crate::request::{Answered, Answering, Asking, Method, ReplyPath, Segments};

    const DEVICE_REQUEST: &[u8] =
        br#"{"provisionDeviceKey":"k","provisionDeviceSecret":"s","token":"a"}"#;
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
            Wanted::Reply(_) | Wanted::Observation(_) => None,
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
        for empty in [NO_TOKEN, Refusal::new(SERVER_ERROR, "refused on purpose")] {
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
        super::super::rpc::write_command(&to, &mut issued);
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
        assert_eq!((HTTP.reply_number)(&came), Some(41));
    }

    #[test]
    fn over_coap_a_device_observes_its_commands_and_nothing_else() {
        let asking = Asking {
            path: COAP.observed.expect("it has a topic"),
            payload: b"",
            content_type: None,
            is_at_least_once: true,
            ttd_s: None,
            login: "T",
        };
        let mut text = String::new();
        let request = (COAP.uplink)(&asking, &mut text);
        assert_eq!((request.method, request.query), (Method::Get, ""));
        assert!(request.path.eq("api/v1/T/rpc".split('/')));
        let wanted = |of: &Requests, path| {
            let mut came = came(Method::Get, path, b"");
            came.observes = true;
            let wanted = (of.read)(&came, Some(&DEVICE), &mut String::new());
            matches!(wanted, Wanted::Observation(it) if it.device == DEVICE.device)
        };
        assert!(wanted(&COAP, "api/v1/T/rpc") && !wanted(&HTTP, "api/v1/T/rpc"));
        assert!(!wanted(&COAP, "api/v1/T/attributes/updates"));
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
    fn a_call_that_nobody_answers_ends_after_31_seconds_and_no_command_ends_it() {
        let call = br#"{"method":"getTime"}"#;
        let came = came(Method::Post, "api/v1/T/rpc", call);
        let Wanted::Upload(upload) = read(&came, Some(&DEVICE), &mut String::new()) else {
            panic!("it is read");
        };
        assert_eq!(upload.question, Some(Question::Method(call)));
        let waits = (HTTP.unanswered)(upload);
        let over = waits.over.map(|refusal| refusal.status.0);
        assert_eq!(
            (waits.ttd_s, over, waits.question),
            (Some(31), Some(503), None)
        );
        assert_ne!(waits.tenant, DEVICE.tenant);
    }

    #[test]
    fn a_device_is_made_or_not_whatever_the_code_is() {
        let asked = Segments::of(provisioning::REQUEST);
        let mut out = Vec::new();
        assert_eq!(
            (HTTP.answer)(&Question::Device(DEVICE_REQUEST), &mut out),
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
