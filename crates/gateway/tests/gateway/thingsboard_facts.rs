//! The gateway as ThingsBoard CE 4.3.1.3 answered: each row was noted on a real one.

use muster_gateway::{Dialect, GatewayConfig, User};
use muster_model::Reason;
use muster_model::behaviour::{Amount, Behaviour, Reject};
use muster_protocol::coap::Code;
use muster_protocol::mqtt::{Connect, Filter, Qos, Version};

use crate::browser::Browser;
use crate::device::{Ask, Device};
use crate::peer::{CLOCK, Peer, Seen};
use crate::rig::Rig;
use crate::tenant::PATIENCE;

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

/// A gateway that refuses every message over HTTP with this code.
fn rejecting(code: u16) -> Rig {
    let reject = Some(Reject {
        code,
        amount: Amount::Share(1.0),
    });
    let behaviour = Behaviour {
        reject,
        ..Behaviour::default()
    };
    rig("http", behaviour)
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
        let what = format!(
            "{} {}: {body}",
            row.line,
            &row.body[..row.body.len().min(40)]
        );
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
    assert_eq!(
        Browser::new(rig.at).answer(TELEMETRY, &[], "{}").status,
        200
    );
    assert_eq!(rig.surfaced(1).len(), 1);
    let counts = rig.account().counts;
    assert_eq!(
        (counts.received, counts.accepted, counts.unanswered),
        (2, 1, 1)
    );
    device.until_closed();
    assert_eq!(device.left(), "");
}

/// The row on limits of the tenant.
#[test]
fn a_refusal_is_an_empty_500_that_ends_the_connection() {
    let rig = rejecting(0x97);
    let mut device = Browser::new(rig.at);
    let answer = device.answer(TELEMETRY, &[], "{}");
    assert_eq!((answer.status, &answer.body[..]), (500, &b""[..]));
    assert_eq!(answer.field("connection"), Some("close"));
    assert_eq!(answer.field("content-type"), None);
    device.until_closed();
    assert_eq!(rig.account().counts.rejected, 1);
}

/// The row on attributes beyond a device's limit: no answer while messages are refused at once.
#[test]
fn a_question_for_attributes_beyond_a_limit_hangs() {
    let rig = rejecting(0x83);
    let mut asking = Browser::new(rig.at);
    asking.ask("GET /api/v1/T/attributes?clientKeys=a", &[], "");
    let give_up = CLOCK.now() + PATIENCE;
    while rig.gateway.account().counts.received < 1 {
        assert!(CLOCK.now() < give_up, "it is not read");
        std::thread::yield_now();
    }
    assert_eq!(
        Browser::new(rig.at).answer(TELEMETRY, &[], "{}").status,
        500
    );
    let counts = rig.account().counts;
    assert_eq!(
        (counts.received, counts.rejected, counts.unanswered),
        (2, 1, 1)
    );
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
        assert_eq!(
            (answer.code, &answer.payload[..]),
            (code, &b""[..]),
            "{path} {body}"
        );
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

/// A link that logs in with this user name, if with any, and all that it saw.
fn link(rig: &Rig, version: Version, user: Option<&str>) -> Peer {
    let connect = Connect {
        user,
        ..Connect::new("a-client")
    };
    Peer::open(rig.gateway.addr(), version, &connect)
}

/// The rows on CONNACK: unknown token, and no user name.
#[test]
fn a_login_is_refused_as_thingsboard_does() {
    let rig = rig("http", Behaviour::default());
    for (user, old, new) in [(Some("X"), 5, 0x86), (None, 2, 0x85)] {
        for (version, reason) in [
            (Version::V311, Reason::MqttConnack(old)),
            (Version::V5, Reason::Mqtt(new)),
        ] {
            let peer = link(&rig, version, user);
            assert_eq!(peer.seen.first(), Some(&Seen::Refused(reason)), "{user:?}");
        }
    }
}

/// The rows on SUBACK.
#[test]
fn a_subscription_is_granted_as_thingsboard_does() {
    let rig = rig("http", Behaviour::default());
    for (version, foreign) in [(Version::V311, 0x80), (Version::V5, 0x8f)] {
        let mut peer = link(&rig, version, Some("T"));
        for (filter, qos, code) in [
            ("thingsboard/#", Qos::AtLeastOnce, foreign),
            ("#", Qos::AtMostOnce, foreign),
            ("v1/devices/me/rpc/request/+", Qos::AtLeastOnce, 1),
            ("v1/devices/me/attributes", Qos::ExactlyOnce, 1),
            ("v2/a", Qos::AtMostOnce, 0),
        ] {
            assert_eq!(
                peer.ask([Filter::new(filter, qos)], None),
                [code],
                "{filter}"
            );
        }
    }
}

/// The rows on PUBLISH that end in a DISCONNECT of MQTT 5, and in a closed connection before.
#[test]
fn a_message_that_ends_its_link_has_thingsboards_code() {
    let large = format!(r#"{{"a":"{}"}}"#, "x".repeat(65_536));
    let limit = Behaviour {
        reject: Some(Reject {
            code: 0x83,
            amount: Amount::Share(1.0),
        }),
        ..Behaviour::default()
    };
    for (topic, payload, behaviour, code) in [
        ("v1/devices/me/telemetry", "on", Behaviour::default(), 0x99),
        (
            "v1/devices/me/telemetry",
            &large,
            Behaviour::default(),
            0x81,
        ),
        ("v1/devices/me/telemetry", "{}", limit, 0x83),
    ] {
        let rig = rig("http", behaviour);
        for version in [Version::V311, Version::V5] {
            let mut peer = link(&rig, version, Some("T"));
            peer.publish(topic, payload.as_bytes(), Qos::AtLeastOnce);
            peer.until("closed", |seen| seen.last() == Some(&Seen::Closed));
            let goodbye = Seen::Disconnected(Reason::Mqtt(code));
            let expected = match version {
                Version::V311 => vec![Seen::Closed],
                Version::V5 => vec![goodbye, Seen::Closed],
            };
            assert_eq!(peer.seen[1..], expected, "{code:#x}");
        }
    }
}

/// The rows on PUBLISH that keep the link: `[]` and topics of gateways are never answered.
#[test]
fn a_message_that_keeps_its_link_is_answered_or_not_as_thingsboard_does() {
    let behaviour = Behaviour {
        no_gateways: true,
        ..Behaviour::default()
    };
    for version in [Version::V311, Version::V5] {
        let rig = rig("http", behaviour);
        let mut peer = link(&rig, version, Some("T"));
        let answers = "v1/devices/me/attributes/response/+";
        assert_eq!(
            peer.ask([Filter::new(answers, Qos::AtLeastOnce)], None),
            [1]
        );
        for (topic, payload) in [
            ("v1/devices/me/telemetry", "[]"),
            ("v1/gateway/connect", r#"{"device":"a"}"#),
        ] {
            peer.publish(topic, payload.as_bytes(), Qos::AtLeastOnce);
        }
        let last = peer.publish(
            "v1/devices/me/attributes/request/7",
            br#"{"clientKeys":5}"#,
            Qos::AtLeastOnce,
        );
        let got = peer.messages(1).remove(0);
        assert_eq!(got.topic, "v1/devices/me/attributes/response/7");
        assert_eq!(got.payload, b"{}");
        peer.answers(1);
        let is_last = |seen: &Seen| matches!(seen, Seen::Accepted { token, .. } if *token == last);
        let is_answer = |seen: &&Seen| matches!(seen, Seen::Accepted { .. });
        let answered: Vec<&Seen> = peer.seen.iter().filter(is_answer).collect();
        assert!(answered.len() == 1 && is_last(answered[0]), "{answered:?}");
        if version == Version::V311 {
            peer.publish("muster/a/t", b"{}", Qos::AtLeastOnce);
            peer.answers(2);
        }
        assert!(rig.application.got().is_empty(), "nothing surfaces");
    }
}

/// The rows on a link that asks for devices.
#[test]
fn a_provisioning_link_may_do_nothing_else() {
    let config = GatewayConfig::default();
    let rig = Rig::of(Dialect::Thingsboard, "http", config);
    let mut peer = link(&rig, Version::V5, Some("provision"));
    let filter = Filter::new("/provision/response", Qos::AtLeastOnce);
    assert_eq!(peer.ask([filter], None), [1]);
    let token = peer.publish("v1/devices/me/telemetry", b"{}", Qos::AtLeastOnce);
    peer.until("closed", |seen| seen.last() == Some(&Seen::Closed));
    let reason = Reason::Mqtt(0x90);
    let expected = [
        Seen::Rejected { token, reason },
        Seen::Disconnected(reason),
        Seen::Closed,
    ];
    assert!(peer.seen.ends_with(&expected), "{:?}", peer.seen);
}

/// The rows on RPC and attributes over HTTP.
#[test]
fn waits_replies_and_questions_are_answered_over_http_as_thingsboard_does() {
    let mut rig = rig("http", Behaviour::default());
    let mut device = Browser::new(rig.at);
    device.ask("GET /api/v1/T/rpc?timeout=20000", &[], "");
    let call = br#"{"method":"setGpio","params":{"a":1}}"#;
    // The wait may not have begun: then the command finds nobody, and is issued again.
    let answer = loop {
        let command = "thingsboard-rpc/T/request";
        rig.application.publish(command, call, Qos::AtLeastOnce);
        if let Some(answer) = device.next_within(muster_model::Micros::from_millis(100)) {
            break answer;
        }
    };
    let body = String::from_utf8_lossy(&answer.body).into_owned();
    assert_eq!(answer.status, 200);
    let number = body
        .strip_prefix(r#"{"id":"#)
        .and_then(|rest| rest.split_once(','));
    let (number, rest) = number.expect("a number");
    assert_eq!(rest, r#""method":"setGpio","params":{"a":1}}"#);
    let long = "1".repeat(65_537);
    for (line, body, status, expected) in [
        (
            &*format!("POST /api/v1/T/rpc/{number}"),
            r#"{"ok":true}"#,
            200,
            "",
        ),
        ("POST /api/v1/T/rpc/987654", "17", 200, ""),
        (
            "GET /api/v1/T/attributes?clientKeys=a&sharedKeys=b",
            "",
            200,
            "{}",
        ),
        (
            r"POST /api/v1/T/rpc",
            r#"{"method":"getTime","params":{}}"#,
            200,
            "{}",
        ),
        ("POST /api/v1/X/rpc", r#"{"method":"getTime"}"#, 401, ""),
        ("GET /api/v1/X/attributes", "", 401, ""),
        ("GET /api/v1/T/rpc?timeout=1000", "", 408, ""),
        ("GET /api/v1/T/attributes/updates?timeout=1000", "", 408, ""),
        ("POST /api/v1/T/rpc/5", &long, 413, ""),
    ] {
        let answer = Browser::new(rig.at).answer(line, &[], body);
        let text = String::from_utf8_lossy(&answer.body);
        assert_eq!((answer.status, &*text), (status, expected), "{line}");
    }
    let made = Browser::new(rig.at).answer(
        "POST /api/v1/provision",
        &[],
        r#"{"provisionDeviceKey":"k","provisionDeviceSecret":"s","token":"a~1"}"#,
    );
    assert_eq!(
        (made.status, made.field("content-type")),
        (200, Some("text/plain"))
    );
    let text = String::from_utf8_lossy(&made.body);
    assert!(text.contains(r#""credentialsValue":"a~1""#), "{text}");
    let replies = rig.surfaced(2);
    let topic = "thingsboard-rpc/T/response".to_owned();
    assert!(
        replies.contains(&(topic, br#"{"ok":true}"#.to_vec())),
        "{replies:?}"
    );
}
