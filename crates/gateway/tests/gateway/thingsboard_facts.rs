//! The gateway as ThingsBoard CE 4.3.1.3 answered: each row was noted on a real one.

use muster_gateway::{Dialect, GatewayConfig, User};
use muster_model::behaviour::{Amount, Behaviour, Reject};
use muster_protocol::coap::Code;

use crate::browser::Browser;
use crate::device::{Ask, Device};
use crate::rig::Rig;

/// The one token that the gateway knows is `T`.
fn rig(scheme: &str, behaviour: Behaviour) -> Rig {
    let user = User {
        name: "T".to_owned(),
        password: Vec::new(),
    };
    let config = GatewayConfig {
        users: vec![user],
        behaviour,
        ..GatewayConfig::default()
    };
    Rig::of(Dialect::Thingsboard, scheme, config)
}

/// A call of the device API over HTTP, and the answer to it: status, media type, and the text that its body has.
struct Row {
    line: &'static str,
    media_type: &'static str,
    body: String,
    answer: (u16, Option<&'static str>, &'static str),
}

const JSON: &str = "application/json";

fn row(line: &'static str, body: &str, status: u16) -> Row {
    Row {
        line,
        media_type: JSON,
        body: body.to_owned(),
        answer: (status, None, ""),
    }
}

impl Row {
    fn of(self, media_type: &'static str) -> Self {
        Self { media_type, ..self }
    }

    fn with(self, media_type: &'static str, text: &'static str) -> Self {
        let (status, _, _) = self.answer;
        let answer = (status, Some(media_type), text);
        Self { answer, ..self }
    }

    fn request(&self) -> String {
        let Self {
            line,
            media_type,
            body,
            ..
        } = self;
        let length = body.len();
        format!(
            "{line} HTTP/1.1\r\nHost: h\r\nContent-Type: {media_type}\r\nContent-Length: {length}\r\n\r\n{body}"
        )
    }
}

const TELEMETRY: &str = "POST /api/v1/T/telemetry";
const ATTRIBUTES: &str = "POST /api/v1/T/attributes";
const CLAIM: &str = "POST /api/v1/T/claim";

fn rows() -> Vec<Row> {
    let large = format!(r#"{{"a":"{}"}}"#, "x".repeat(70_000));
    vec![
        row(TELEMETRY, r#"{"a":1}"#, 200),
        row(TELEMETRY, r#"[{"a":1},{"a":2}]"#, 200),
        row(TELEMETRY, r#"{"ts":1600000000000,"values":{"a":1}}"#, 200),
        row(TELEMETRY, "{}", 200),
        row(TELEMETRY, &large, 200),
        row(TELEMETRY, "{}", 200).of("text/plain"),
        row(ATTRIBUTES, r#"{"model":"m"}"#, 200),
        row(CLAIM, r#"{"secretKey":"s","durationMs":60000}"#, 200),
        row("POST /api/v1/X/telemetry", "{}", 401),
        row("POST /api/v1/X/attributes", "{}", 401),
        row("POST /api/v1/X/claim", "{}", 401),
        row(TELEMETRY, "on", 500).with("text/plain", "Can't parse value: on"),
        row(TELEMETRY, "5", 500).with("text/plain", "Can't parse value: 5"),
        row(TELEMETRY, "", 400).with(JSON, r#""errorCode":31"#),
        row(TELEMETRY, "a=1", 500)
            .of("application/x-www-form-urlencoded")
            .with("text/plain", ""),
        row("GET /api/v1/T/telemetry", "", 405).with(JSON, r#""errorCode":31"#),
        row("PUT /api/v1/T/telemetry", "{}", 405).with(JSON, r#""status":405"#),
        row("POST /api/v1/T/telemetri", "{}", 404).with(JSON, r#""status":404"#),
    ]
}

#[test]
fn the_device_api_answers_over_http_as_thingsboard_does() {
    let mut rig = rig("http", Behaviour::default());
    let (mut accepted, mut surfacing) = (0, 0);
    for row in rows() {
        let mut device = Browser::new(rig.at);
        device.send(row.request());
        let answer = device.next(row.line);
        let body = String::from_utf8_lossy(&answer.body);
        let (status, media_type, text) = row.answer;
        let what = format!("{} {}: {body}", row.line, &row.body[..row.body.len().min(40)]);
        assert_eq!(answer.status, status, "{what}");
        assert_eq!(answer.field("content-type"), media_type, "{what}");
        assert_eq!(answer.body.is_empty(), media_type.is_none(), "{what}");
        assert!(body.contains(text), "{what}");
        let closes = matches!(status, 400 | 500);
        let expected = closes.then_some("close");
        assert_eq!(answer.field("connection"), expected, "{what}");
        if status == 200 {
            accepted += 1;
            surfacing += usize::from(row.line != CLAIM);
        }
    }
    let surfaced = rig.surfaced(surfacing);
    let topics = ["thingsboard/T/attributes", "thingsboard/T/telemetry"];
    assert!(surfaced.iter().all(|(topic, _)| topics.contains(&&**topic)));
    let counts = rig.account().counts;
    assert_eq!((counts.received, counts.accepted), (accepted, accepted));
    assert_eq!(counts.refused_requests, rows().len() as u64 - accepted);
}

#[test]
fn a_list_of_no_points_is_never_answered_over_http() {
    let mut rig = rig("http", Behaviour::default());
    let mut device = Browser::new(rig.at);
    device.ask(TELEMETRY, &[], "[]");
    // What is behind it waits for its answer.
    device.ask(TELEMETRY, &[], "{}");
    assert_eq!(Browser::new(rig.at).answer(TELEMETRY, &[], "{}").status, 200);
    assert_eq!(rig.surfaced(1).len(), 1);
    let counts = rig.account().counts;
    assert_eq!((counts.received, counts.accepted, counts.unanswered), (2, 1, 1));
    device.until_closed();
    assert_eq!(device.left(), "");
}

/// What a limit of the tenant looks like to a device.
#[test]
fn a_refusal_is_an_empty_500_that_ends_the_connection() {
    let reject = Some(Reject {
        code: 0x97,
        amount: Amount::Share(1.0),
    });
    let rig = rig(
        "http",
        Behaviour {
            reject,
            ..Behaviour::default()
        },
    );
    let mut device = Browser::new(rig.at);
    let answer = device.answer(TELEMETRY, &[], "{}");
    assert_eq!((answer.status, &answer.body[..]), (500, &b""[..]));
    assert_eq!(answer.field("connection"), Some("close"));
    assert_eq!(answer.field("content-type"), None);
    device.until_closed();
    assert_eq!(rig.account().counts.rejected, 1);
}

#[test]
fn the_device_api_answers_over_coap_with_its_codes() {
    let mut rig = rig("coap", Behaviour::default());
    let mut device = Device::new(rig.at);
    let bad_request = Code::of_status(400).expect("it has a code");
    let unauthorized = Code::of_status(401).expect("it has a code");
    let created = Code::of_status(201).expect("it has a code");
    for (path, body, code) in [
        ("api/v1/T/telemetry", r#"{"a":1}"#, created),
        ("api/v1/T/attributes", r#"{"model":"m"}"#, created),
        ("api/v1/T/claim", "{}", created),
        ("api/v1/T/telemetry", "on", bad_request),
        ("api/v1/T/telemetry", "", bad_request),
        ("api/v1/X/telemetry", "{}", unauthorized),
        ("api/v1/T/nothing", "{}", bad_request),
    ] {
        let answer = device.answer(Ask::post(path, body.as_bytes()));
        assert_eq!((answer.code, &answer.payload[..]), (code, &b""[..]), "{path} {body}");
    }
    let expected = [
        ("thingsboard/T/telemetry", r#"{"a":1}"#),
        ("thingsboard/T/attributes", r#"{"model":"m"}"#),
    ];
    let expected = expected.map(|(topic, body)| (topic.to_owned(), body.as_bytes().to_vec()));
    assert_eq!(rig.surfaced(2), expected);
    let counts = rig.account().counts;
    assert_eq!((counts.received, counts.accepted), (3, 3));
    assert_eq!(counts.refused_requests, 4);
}
