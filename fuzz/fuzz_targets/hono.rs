//! Any parts as a request to Hono's server end, and as an answer to its device, over CoAP and HTTP: both
//! readers end, do not panic, what is taken names its device, and over CoAP where a reply goes is what came.

#![no_main]

use libfuzzer_sys::fuzz_target;
use muster_platform::{
    Answered, Answering, Commanded, Dialect, Field, HandedCommand, Identity, Incoming, Method,
    Peer, Protocol, ReplyPath, Requests, Segments, Status, Wanted,
};

const HONO: Dialect = Dialect::Hono;
const PEER: Peer<'static> = Peer {
    tenant: "t1",
    device: "d1",
};

/// The parts of a text between line breaks.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split('\n').take(12)
}

/// The parts of a header that a part of a text is.
fn header(part: &str) -> Option<(&str, &str)> {
    part.strip_prefix('!')?.split_once('=')
}

fn request(requests: &Requests, flags: u8, text: &str) {
    let method = [Method::Post, Method::Put, Method::Other][usize::from(flags % 3)];
    let mut came = Incoming::new(method, flags & 8 != 0, text.as_bytes());
    if flags & 32 != 0 {
        came.payload = b"";
    }
    came.content_type = (flags & 64 != 0).then_some("application/json");
    parts(text).for_each(|part| match (part.strip_prefix('?'), header(part)) {
        (Some(parameter), _) => came.parameter(parameter),
        (None, Some((name, value))) => came.header(name, value),
        (None, None) => came.segment(part),
    });
    let (peer, mut topic) = ((flags & 16 != 0).then_some(&PEER), String::new());
    match (requests.read)(&came, peer, &mut topic) {
        Wanted::Upload(upload) => {
            assert!(!upload.device.is_empty() && !upload.tenant.is_empty());
            assert!(upload.ttd_s.is_none_or(|ttd_s| (1..=60).contains(&ttd_s)));
            let (name, id) = text.split_once('\n').unwrap_or((text, ""));
            let command = Commanded {
                tenant: upload.tenant,
                device: upload.device,
                correlation_id: (!id.is_empty()).then_some(id),
                name,
            };
            let mut handed = HandedCommand::default();
            if (requests.hand)(upload.manner, &command, &mut handed).is_ok() {
                let mut reply = ReplyPath::default();
                let (yes, asked) = (requests.commanded, Segments::of("telemetry"));
                let fields = &mut handed.fields();
                let read = (requests.answered)(yes, fields, b"", asked, &mut reply);
                assert!(matches!(read, Answered::Command(_)));
                // A segment of a path, as which an id replies, has a bound.
                assert!(!id.is_empty() || reply.is_empty());
                assert!(id.is_empty() || id.len() > 250 || !reply.is_empty());
            }
        }
        Wanted::Reply(_) => {
            let status = topic.rsplit('/').next().and_then(|text| text.parse().ok());
            assert!(status.is_some_and(|status: u16| (200..600).contains(&status)));
        }
        Wanted::Observation(_) => unreachable!("Hono has no observers"),
        Wanted::Ignored => unreachable!("Hono answers everything"),
        Wanted::Refused(refusal) => assert!(!refusal.status.is_yes()),
    }
}

fn read(status: u8, text: &str) {
    let fields = || {
        parts(text).map(|part| match part.strip_prefix('?') {
            Some(parameter) => Field::Parameter(parameter),
            None => Field::PathSegment(part),
        })
    };
    let (mut path, asked) = (ReplyPath::default(), Segments::of(""));
    let status = Status(u16::from(status) * 4);
    match (HONO.requests(Protocol::Coap).answered)(
        status,
        &mut fields(),
        text.as_bytes(),
        asked,
        &mut path,
    ) {
        Answered::Command(_) => {
            let came = parts(text).filter(|part| !part.starts_with('?'));
            assert!(path.is_empty() || path.segments().eq(came));
            let mut query = String::new();
            let answering = Answering {
                to: &path,
                status: 200,
                payload: b"",
                login: "",
            };
            let request = (HONO.requests(Protocol::Coap).reply)(&answering, &mut query);
            assert!(request.parameters().eq(["hono-cmd-status=200"]));
        }
        Answered::Accepted => assert!(status.is_yes() && path.is_empty()),
        Answered::Rejected(code) => assert!(code == status && path.is_empty()),
    }
}

/// The same over HTTP, where headers and the path of the request say where a reply goes.
fn read_headers(requests: &Requests, status: u8, text: &str) {
    let mut path = ReplyPath::default();
    let status = Status(u16::from(status) * 4);
    let (asked, headers) = text.split_once('\n').unwrap_or((text, ""));
    let headers = parts(headers).filter_map(header);
    let mut fields = headers.map(|(name, value)| Field::Header(name, value));
    let asked = Segments::of(asked);
    match (requests.answered)(status, &mut fields, text.as_bytes(), asked, &mut path) {
        Answered::Command(_) => assert!(matches!(path.len(), 0 | 3 | 5)),
        Answered::Accepted => assert!(status.is_yes() && path.is_empty()),
        Answered::Rejected(code) => assert!(code == status && path.is_empty()),
    }
}

fuzz_target!(|data: &[u8]| {
    let [flags, rest @ ..] = data else { return };
    let Ok(text) = std::str::from_utf8(rest) else {
        return;
    };
    let http = HONO.requests(Protocol::Http);
    request(HONO.requests(Protocol::Coap), *flags, text);
    request(http, *flags, text);
    read(*flags, text);
    read_headers(http, *flags, text);
    let _ = ((HONO.server.command)(text), Identity::parse(text));
    let headers = text.split('&').filter_map(|pair| pair.split_once('='));
    let mut headers = headers.map(|(name, value)| (name, value.as_bytes()));
    let kafka = HONO.application.kafka.as_ref().expect("Hono speaks it");
    let _ = (kafka.returned)(&mut headers, text.as_bytes());
    let _ = (HONO.application.returned)(text, rest);
});
