//! The handshake of both ends (RFC 6455 sections 1.3 and 4).

use muster_protocol::layer::{Layer, Pipe, Standing};
use muster_protocol::websocket::{Fault, Upgrade, UpgradeError, WebSocket};

use crate::ends::{Heard, answer, asking, failed, frame, hear};

/// The example of section 1.2 with the nonce of section 1.3, for MQTT.
const REQUEST: &str = "GET /chat HTTP/1.1\r\n\
    Host: server.example.com\r\n\
    Upgrade: websocket\r\n\
    Connection: Upgrade\r\n\
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
    Origin: http://example.com\r\n\
    Sec-WebSocket-Protocol: mqttv3.1, mqtt\r\n\
    Sec-WebSocket-Version: 13\r\n\r\n";

const SWITCH: &str = "HTTP/1.1 101 Switching Protocols\r\n\
    Upgrade: websocket\r\n\
    Connection: Upgrade\r\n\
    Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\
    Sec-WebSocket-Protocol: mqtt\r\n\r\n";

fn ask(request: &str) -> Heard {
    ask_for(None, request)
}

fn ask_for(path: Option<&str>, request: &str) -> Heard {
    let mut server = Pipe::new(WebSocket::server(path));
    hear(&mut server, request.as_bytes(), &[], 1)
}

/// Returns a client's view of its right answer, altered.
fn answered(from: &str, to: &str) -> Heard {
    let text = String::from_utf8(answer()).expect("it is text");
    assert!(text.contains(from), "{from:?} in {text:?}");
    hear(&mut asking().0, text.replace(from, to).as_bytes(), &[], 1)
}

#[track_caller]
fn assert_refused(request: &str, fault: Fault, status: &str) {
    let heard = ask(request);
    assert_eq!(heard.end, failed(fault), "{request}");
    let wire = String::from_utf8(heard.wire).expect("it is text");
    assert!(
        wire.starts_with(&format!("HTTP/1.1 {status}\r\n")),
        "{wire}"
    );
    assert!(wire.ends_with("Content-Length: 0\r\n\r\n"), "{wire}");
}

/// MQTT-6.0.0-4.
#[test]
fn section_1_3_the_servers_answer_has_the_accept_key_of_the_nonce() {
    let heard = ask(REQUEST);
    assert_eq!(String::from_utf8(heard.wire).as_deref(), Ok(SWITCH));
    assert_eq!((heard.end, heard.plain), (None, vec![]));
}

/// MQTT-6.0.0-3.
#[test]
fn section_4_1_the_request_has_all_that_it_must_have() {
    let text = String::from_utf8(asking().1).expect("it is text");
    assert_eq!(
        text,
        "GET /mqtt HTTP/1.1\r\nHost: server.example.com\r\nUpgrade: websocket\r\n\
         Connection: Upgrade\r\nSec-WebSocket-Key: e7HSo0p3P0VmJQ9Si1xFWg==\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: mqtt\r\n\r\n"
    );
}

#[test]
fn section_4_1_item_7_each_connection_has_its_own_nonce() {
    let request = |seed| {
        let upgrade = Upgrade::new("h", "/");
        let mut client = WebSocket::client(&upgrade, seed).expect("it can be written");
        let mut wire = Vec::new();
        client.open(&mut wire);
        wire
    };
    assert_eq!(request(1), request(1));
    assert_ne!(request(1), request(2));
}

#[test]
fn section_4_1_item_12_the_caller_may_add_fields() {
    let upgrade = Upgrade {
        fields: &[("Authorization", "Basic eDp5"), ("X-Trace", "")],
        ..Upgrade::new("h:8080", "/a?b=c")
    };
    let mut client = WebSocket::client(&upgrade, 1).expect("it can be written");
    let mut wire = Vec::new();
    client.open(&mut wire);
    let text = String::from_utf8(wire).expect("it is text");
    assert!(text.starts_with("GET /a?b=c HTTP/1.1\r\nHost: h:8080\r\n"));
    assert!(text.ends_with("mqtt\r\nAuthorization: Basic eDp5\r\nX-Trace: \r\n\r\n"));
}

#[test]
fn a_request_that_would_be_another_one_is_refused_before_it_is_sent() {
    let with = |name, value| {
        let fields = &[(name, value)];
        let upgrade = Upgrade {
            fields,
            ..Upgrade::new("h", "/")
        };
        upgrade.check().expect_err("it cannot be written")
    };
    let names = [
        "",
        "a b",
        "Host",
        "sec-WebSocket-key",
        "Content-Length",
        "a:",
    ];
    for name in names {
        assert_eq!(with(name, "x"), UpgradeError::FieldName(name.to_owned()));
    }
    for value in ["a\r\nb: c", "a\nb", "\0", "\x7f"] {
        assert_eq!(with("A", value), UpgradeError::FieldValue("A".to_owned()));
    }
    for path in ["", "mqtt", "/a b", "/a#b", "/a\r\nb"] {
        let refused = Upgrade::new("h", path).check();
        assert_eq!(refused, Err(UpgradeError::Path(path.to_owned())));
    }
    for host in ["", "a b", "a\r\nb"] {
        let refused = Upgrade::new(host, "/").check();
        assert_eq!(refused, Err(UpgradeError::Host(host.to_owned())));
    }
}

#[test]
fn section_4_1_the_client_says_nothing_until_it_is_answered() {
    let (mut client, _) = asking();
    let mut wire = b"before".to_vec();
    wire.extend_from_slice(b"too early");
    client.layer.wrap(&mut wire, 6);
    assert_eq!(wire, b"before");
    assert_eq!(client.layer.standing(), Standing::Opening);
}

#[test]
fn section_4_1_step_1_any_status_but_101_is_a_refusal_with_its_code() {
    for status in [100, 200, 302, 401, 403, 404, 426, 503] {
        let line = format!("HTTP/1.1 {status} Said");
        let heard = answered("HTTP/1.1 101 Switching Protocols", &line);
        assert_eq!(heard.end, failed(Fault::Refused(status)));
        assert_eq!(heard.wire, [], "no frame before the handshake is over");
    }
    let heard = answered("HTTP/1.1 101 Switching Protocols", "HTTP/1.0 403 Forbidden");
    assert_eq!(heard.end, failed(Fault::Refused(403)));
}

#[test]
fn section_4_1_steps_2_and_3_an_answer_that_does_not_upgrade_fails() {
    let not_upgraded = failed(Fault::NotUpgraded);
    assert_eq!(answered("Upgrade: websocket\r\n", "").end, not_upgraded);
    assert_eq!(
        answered("Upgrade: websocket", "Upgrade: h2c").end,
        not_upgraded
    );
    assert_eq!(answered("Connection: Upgrade\r\n", "").end, not_upgraded);
    assert_eq!(
        answered("Connection: Upgrade", "Connection: close").end,
        not_upgraded
    );
    assert_eq!(
        answered("Upgrade: websocket", "upgrade:  WebSocket ").end,
        None
    );
    assert_eq!(
        answered("Connection: Upgrade", "CONNECTION: x, upgrade").end,
        None
    );
}

#[test]
fn section_4_1_step_4_an_accept_key_that_is_missing_or_wrong_fails() {
    let wrong = failed(Fault::AcceptKey);
    let text = String::from_utf8(answer()).expect("it is text");
    let line = text
        .lines()
        .find(|line| line.starts_with("Sec-WebSocket-Accept"));
    let line = line.expect("it is there");
    assert_eq!(answered(&format!("{line}\r\n"), "").end, wrong);
    let other = "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";
    assert_eq!(answered(line, other).end, wrong);
    assert_eq!(answered(line, &line.to_lowercase()).end, wrong);
    assert_eq!(answered(line, &format!("{line}  ")).end, None);
}

#[test]
fn section_4_1_step_5_an_extension_that_was_not_asked_for_fails() {
    let heard = answered(
        "\r\n\r\n",
        "\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n",
    );
    assert_eq!(heard.end, failed(Fault::Extension));
}

/// MQTT-6.0.0-4.
#[test]
fn section_4_1_step_6_and_mqtt_6_0_0_4_the_subprotocol_is_mqtt() {
    let wrong = failed(Fault::Subprotocol);
    let line = "Sec-WebSocket-Protocol: mqtt";
    assert_eq!(answered(&format!("{line}\r\n"), "").end, wrong);
    assert_eq!(
        answered(line, "Sec-WebSocket-Protocol: mqttv3.1").end,
        wrong
    );
    assert_eq!(answered(line, "Sec-WebSocket-Protocol: MQTT").end, wrong);
}

#[test]
fn section_11_3_a_field_that_stands_twice_where_it_may_once_is_malformed() {
    let line = "Sec-WebSocket-Protocol: mqtt";
    assert_eq!(
        answered(line, &format!("{line}\r\n{line}")).end,
        failed(Fault::Head)
    );
    let nonce = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    let twice = REQUEST.replace("\r\n\r\n", &format!("\r\n{nonce}"));
    assert_refused(&twice, Fault::Head, "400 Bad Request");
}

#[test]
fn an_answer_that_is_not_http_is_refused_as_soon_as_that_is_sure() {
    for bytes in [
        &b"\x20\x02\x00\x05"[..],
        b"\x15\x03\x03",
        b"SSH-2.0-x\r\n",
        b"HTTP/1.1 101\n",
    ] {
        let heard = hear(&mut asking().0, bytes, &[], 1);
        assert_eq!(heard.end, failed(Fault::Head), "{bytes:?}");
    }
    let folded = answered("Upgrade: websocket", "Upgrade:\r\n websocket");
    assert_eq!(folded.end, failed(Fault::Head));
    let old = answered("HTTP/1.1 101", "HTTP/1.0 101");
    assert_eq!(old.end, failed(Fault::Head));
}

#[test]
fn a_head_without_an_end_is_refused_at_its_bound() {
    let padding = format!("X: {}\r\n", "a".repeat(60)).repeat(59);
    let fits = answered("\r\n\r\n", &format!("\r\n{padding}\r\n"));
    assert_eq!(fits.end, None);
    let field = format!("X: {}", "a".repeat(9_000));
    let heard = answered("Upgrade: websocket", &field);
    assert_eq!(heard.end, failed(Fault::HeadTooLong(8_192)));
    let many = answered("\r\n\r\n", &format!("\r\n{}\r\n", "X: a\r\n".repeat(61)));
    assert_eq!(many.end, failed(Fault::Head));
}

#[test]
fn frames_right_behind_the_answer_are_heard() {
    let wire = [answer(), frame(0x82, b"data", None)].concat();
    for cut in 0..wire.len() {
        let heard = hear(&mut asking().0, &wire, &[cut], 1);
        assert_eq!(
            (heard.plain, heard.end),
            (b"data".to_vec(), None),
            "cut at {cut}"
        );
    }
}

#[test]
fn section_4_2_1_a_request_that_is_not_as_it_must_be_is_answered_400() {
    let bad = "400 Bad Request";
    let without = |line: &str| {
        assert!(REQUEST.contains(line), "{line}");
        REQUEST.replace(line, "")
    };
    assert_refused(&REQUEST.replace("GET", "POST"), Fault::Method, bad);
    assert_refused(&REQUEST.replace("HTTP/1.1", "HTTP/1.0"), Fault::Head, bad);
    assert_refused(&without("Host: server.example.com\r\n"), Fault::Host, bad);
    assert_refused(
        &without("Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"),
        Fault::Nonce,
        bad,
    );
    for nonce in [
        "dGhlIHNhbXBsZSBub25jZQ=",
        "dGhlIHNhbXBsZSBub25jZWU=",
        "dGhlIHNhbXBsZSBub25j!!==",
    ] {
        let request = REQUEST.replace("dGhlIHNhbXBsZSBub25jZQ==", nonce);
        assert_refused(&request, Fault::Nonce, bad);
    }
    assert_refused("HELO mail\r\n\r\n", Fault::Head, bad);
    assert_refused("GET / HTTP/1.1\n\n", Fault::Head, bad);
    let long = REQUEST.replace("/chat", &format!("/{}", "c".repeat(9_000)));
    assert_refused(&long, Fault::HeadTooLong(8_192), bad);
}

/// MQTT-6.0.0-3.
#[test]
fn mqtt_6_0_0_3_a_request_that_does_not_offer_mqtt_is_answered_400() {
    let request = REQUEST.replace("mqttv3.1, mqtt", "mqttv3.1, amqp");
    assert_refused(&request, Fault::NotOffered, "400 Bad Request");
    let request = REQUEST.replace("mqttv3.1, mqtt", "MQTT");
    assert_refused(&request, Fault::NotOffered, "400 Bad Request");
    let two = "mqttv3.1\r\nSec-WebSocket-Protocol: mqtt";
    assert_eq!(ask(&REQUEST.replace("mqttv3.1, mqtt", two)).end, None);
}

#[test]
fn section_4_2_2_another_version_or_no_upgrade_is_answered_426_with_the_version() {
    let upgrade = "426 Upgrade Required";
    assert_refused(
        &REQUEST.replace("Version: 13", "Version: 8"),
        Fault::Version,
        upgrade,
    );
    assert_refused(
        &REQUEST.replace("Upgrade: websocket\r\n", ""),
        Fault::NotUpgrade,
        upgrade,
    );
    assert_refused(
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        Fault::NotUpgrade,
        upgrade,
    );
    let request = REQUEST.replace("Connection: Upgrade", "Connection: keep-alive");
    assert_refused(&request, Fault::NotUpgrade, upgrade);
    let wire = String::from_utf8(ask(&request).wire).expect("it is text");
    assert!(wire.contains("\r\nSec-WebSocket-Version: 13\r\n"), "{wire}");
    let browser = REQUEST.replace("Connection: Upgrade", "Connection: keep-alive, Upgrade");
    assert_eq!(ask(&browser).end, None);
}

#[test]
fn section_4_2_2_a_path_that_is_not_served_is_answered_404() {
    assert_eq!(ask_for(Some("/chat"), REQUEST).end, None);
    let heard = ask_for(Some("/mqtt"), REQUEST);
    assert_eq!(heard.end, failed(Fault::Path));
    assert!(heard.wire.starts_with(b"HTTP/1.1 404 Not Found\r\n"));
    for target in ["/chat?token=1", "http://h/chat", "https://h:1/chat?a=/b"] {
        let request = REQUEST.replace("/chat", target);
        assert_eq!(ask_for(Some("/chat"), &request).end, None, "{target}");
    }
    let bare = REQUEST.replace("/chat", "http://h");
    assert_eq!(ask_for(Some("/"), &bare).end, None);
}

#[test]
fn after_a_refusal_nothing_is_heard_or_said() {
    let mut server = Pipe::new(WebSocket::server(None));
    let refused = hear(&mut server, b"POST / HTTP/1.1\r\n\r\n", &[], 1);
    assert_eq!(refused.end, failed(Fault::Method));
    assert_eq!(server.layer.standing(), Standing::Over);
    let more = hear(&mut server, REQUEST.as_bytes(), &[], 1);
    assert_eq!(more, Heard::default());
}
