//! Devices over HTTP, the business application over MQTT.

use std::io::Write;

use muster_gateway::{Dialect, GatewayConfig, KnownDevice, User};
use muster_model::Micros;
use muster_model::behaviour::{Behaviour, CloseLinks};
use muster_protocol::mqtt::Qos;

use crate::browser::{Browser, request};
use crate::device::PATIENCE;
use crate::peer::CLOCK;
use crate::rig::Rig;

/// `sensor1@T1:secret`, as Basic shows it.
const SENSOR: &str = "Authorization: Basic c2Vuc29yMUBUMTpzZWNyZXQ=";
/// `sensor1@T1:wrong`.
const WRONG: &str = "Authorization: Basic c2Vuc29yMUBUMTp3cm9uZw==";
/// `gw@T1:secret`.
const GATEWAY: &str = "Authorization: Basic Z3dAVDE6c2VjcmV0";
const DEV_1: &str = "PUT /telemetry/T1/dev-1";

fn users() -> Vec<User> {
    let user = |name: &str| User {
        name: name.to_owned(),
        password: b"secret".to_vec(),
    };
    vec![user("sensor1@T1"), user("gw@T1")]
}

#[test]
fn what_a_device_uploads_is_answered_and_surfaces() {
    let mut rig = Rig::new("http");
    let mut device = Browser::new(rig.at);
    for (line, fields, body) in [
        (DEV_1, &["QoS-Level: 1"][..], "{\"a\":1}"),
        ("POST /event?x=y", &[SENSOR], "{\"b\":2}"),
        ("PUT /telemetry//dev%202", &[GATEWAY], "{}"),
        ("PUT http://gateway:80/event/T1/%C3%A4", &[], "[]"),
    ] {
        let answer = device.answer(line, fields, body);
        assert_eq!((answer.status, &answer.body[..]), (202, &b""[..]), "{line}");
        assert_eq!(answer.field("content-length"), Some("0"));
    }
    let expected = [
        ("telemetry/T1/dev-1", "{\"a\":1}"),
        ("event/T1/sensor1", "{\"b\":2}"),
        ("telemetry/T1/dev 2", "{}"),
        ("event/T1/\u{e4}", "[]"),
    ];
    let expected = expected.map(|(topic, body)| (topic.to_owned(), body.as_bytes().to_vec()));
    assert_eq!(rig.surfaced(4), expected);
    let got = rig.application.got();
    let properties = &got[0].properties;
    assert!(properties.contains("application/json"), "{properties}");
    let qos: Vec<Qos> = got.iter().map(|got| got.qos).collect();
    let (once, least) = (Qos::AtMostOnce, Qos::AtLeastOnce);
    assert_eq!(qos, [least, least, once, least]);
    let counts = rig.account().counts;
    assert_eq!((counts.received, counts.accepted), (4, 4));
    assert_eq!((counts.processed, counts.http_connections), (4, 1));
    assert_eq!((counts.malformed, counts.refused_requests), (0, 0));
}

/// RFC 9112 section 9.3.2: answers come in the order of the requests, even if one of them takes long.
#[test]
fn pipelined_requests_are_answered_in_their_order() {
    let mut rig = Rig::new("http");
    let mut device = Browser::new(rig.at);
    let line = |n: usize| format!("PUT /event/T1/dev-{n}");
    let requests: Vec<u8> = (0..50)
        .flat_map(|n| {
            let ttd: &[&str] = if n == 7 { &["hono-ttd: 20"] } else { &[] };
            request(&line(n), ttd, n.to_string().as_bytes())
        })
        .collect();
    device.send(&requests);
    for n in 0..7 {
        assert_eq!(device.next(&line(n)).status, 202);
    }
    assert_eq!(rig.surfaced(8).len(), 8, "those behind it wait");
    rig.application
        .publish("command/T1/dev-7//set", b"on", Qos::AtLeastOnce);
    let command = device.next("a command");
    assert_eq!((command.status, &command.body[..]), (200, &b"on"[..]));
    for n in 8..50 {
        assert_eq!(device.next(&line(n)).status, 202);
    }
    let bodies: Vec<Vec<u8>> = rig.surfaced(50).into_iter().map(|(_, body)| body).collect();
    let expected: Vec<Vec<u8>> = (0..50).map(|n| n.to_string().into_bytes()).collect();
    assert_eq!(bodies, expected);
    assert_eq!(rig.account().counts.http_connections, 1);
}

/// Bytes come in any pieces, and a body in chunks after the client was asked to go on.
#[test]
fn a_body_surfaces_whole_however_it_comes() {
    let mut rig = Rig::new("http");
    let mut device = Browser::new(rig.at);
    for byte in request(DEV_1, &[], b"byte by byte") {
        device.send([byte]);
    }
    assert_eq!(device.next("bytes").status, 202);
    let head = "PUT /event/T1/dev-1 HTTP/1.1\r\nHost: g\r\nContent-Type: text/plain\r\n";
    device.send(format!(
        "{head}Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n"
    ));
    assert_eq!(device.next("the head").status, 100);
    for piece in [
        "5;x=y\r\nin ch",
        "\r\n4\r\nunks\r\n",
        "0\r\nTrailer: 1\r\n\r\n",
    ] {
        device.send(piece);
    }
    assert_eq!(device.next("chunks").status, 202);
    let bodies: Vec<Vec<u8>> = rig.surfaced(2).into_iter().map(|(_, body)| body).collect();
    assert_eq!(bodies, [&b"byte by byte"[..], b"in chunks"]);
}

#[test]
fn what_cannot_be_taken_is_refused_with_its_code_and_the_connection_stays() {
    let mut rig = Rig::new("http");
    let mut device = Browser::new(rig.at);
    for (line, fields, body, status) in [
        ("POST /telemetry", &[][..], "{}", 401),
        ("PUT /nothing/T1/d", &[], "{}", 404),
        ("PUT /", &[], "{}", 404),
        ("PUT /telemetry/T1/%ff", &[], "{}", 400),
        ("PUT /telemetry/T2/d", &[SENSOR], "{}", 403),
        (DEV_1, &["qos-level: 7"], "{}", 400),
        (DEV_1, &[], "", 400),
        ("GET /telemetry/T1/dev-1", &[], "", 405),
        ("OPTIONS *", &[], "", 404),
        ("BREW /telemetry/T1/dev-1", &[], "", 501),
        (DEV_1, &["Authorization: Digest x"], "{}", 401),
    ] {
        let answer = device.answer(line, fields, body);
        assert_eq!(answer.status, status, "{line} {fields:?}");
        assert!(!answer.body.is_empty(), "{line}: it says why");
        assert_eq!(answer.field("content-type"), Some("text/plain"));
        assert_eq!(answer.field("www-authenticate").is_some(), status == 401);
        assert_eq!(
            answer.field("allow"),
            (status == 405).then_some("POST, PUT")
        );
    }
    // RFC 9110 section 9.3.2.
    let head = device.answer("HEAD /telemetry/T1/dev-1", &[], "");
    assert_eq!((head.status, &head.body[..]), (405, &b""[..]));
    assert_eq!(device.answer(DEV_1, &[], "{}").status, 202);
    assert_eq!(rig.surfaced(1).len(), 1);
    let counts = rig.account().counts;
    assert_eq!((counts.refused_requests, counts.malformed), (12, 0));
    assert_eq!((counts.received, counts.rejected), (1, 0));
    assert_eq!(counts.http_connections, 1);
}

/// RFC 9112 section 9.6: the answer says that it is the last one, and FIN follows.
#[test]
fn a_connection_that_is_to_end_ends_behind_its_answer() {
    let mut rig = Rig::new("http");
    for head in [
        "PUT /event/T1/d HTTP/1.1\r\nHost: g\r\nConnection: close",
        "PUT /event/T1/d HTTP/1.0",
        "PUT /event/T1/d HTTP/1.0\r\nConnection: x",
    ] {
        let mut device = Browser::new(rig.at);
        let length = "\r\nContent-Type: a/b\r\nContent-Length: 2\r\n\r\n{}";
        // What is behind it is not read.
        device.send(format!("{head}{length}{head}{length}"));
        let answer = device.next(head);
        assert_eq!(answer.status, 202, "{head}");
        assert_eq!(answer.field("connection"), Some("close"), "{head}");
        device.until_closed();
        assert_eq!(device.left(), "", "{head}");
    }
    assert_eq!(rig.surfaced(3).len(), 3);
    let counts = rig.account().counts;
    assert_eq!((counts.received, counts.http_connections), (3, 3));
}

/// Requests that two servers may read differently, from their second field on, and the codes for them.
const AMBIGUOUS: [(&str, u16); 19] = [
    (
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        400,
    ),
    (
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
        400,
    ),
    ("Content-Length: 5\r\nContent-Length: 6\r\n\r\nabcde", 400),
    ("Content-Length: 5, 6\r\n\r\nabcde", 400),
    ("Content-Length: +5\r\n\r\nabcde", 400),
    ("Content-Length: 0x5\r\n\r\nabcde", 400),
    ("Content-Length: -1\r\n\r\n", 400),
    ("Content-Length: 99999999999999999999\r\n\r\n", 400),
    ("Content-Length : 5\r\n\r\nabcde", 400),
    ("Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", 501),
    ("Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 501),
    (
        "Transfer-Encoding: chunked\r\n\r\n5\nabcde\r\n0\r\n\r\n",
        400,
    ),
    (
        "Transfer-Encoding: chunked\r\n\r\n-5\r\nabcde\r\n0\r\n\r\n",
        400,
    ),
    (
        "Transfer-Encoding: chunked\r\n\r\n5\r\nabcdefg\r\n0\r\n\r\n",
        400,
    ),
    ("X: a\r\n Content-Length: 5\r\n\r\nabcde", 400),
    ("X: a\nContent-Length: 5\r\n\r\nabcde", 400),
    ("X: a\n\n", 400),
    ("X: a\r\r\n\r\n", 400),
    ("Host: other\r\n\r\n", 400),
];

/// RFC 9112 section 11.2.
#[test]
fn ambiguous_requests_are_refused_and_nothing_behind_them_is_read() {
    let rig = Rig::new("http");
    let put = "PUT /event/T1/d HTTP/1.1\r\n";
    let smuggled = "PUT /event/T1/smuggled HTTP/1.1\r\nHost: g\r\nContent-Length: 0\r\n\r\n";
    let ambiguous = AMBIGUOUS.map(|(rest, status)| (format!("{put}Host: g\r\n{rest}"), status));
    let no_host = (format!("{put}\r\n"), 400);
    let tls = ("\u{16}\u{3}\u{1}\u{2}\u{0}\u{1}".to_owned(), 400);
    for (bytes, status) in ambiguous.into_iter().chain([no_host, tls]) {
        let mut device = Browser::new(rig.at);
        device.send(format!("{bytes}{smuggled}"));
        let answer = device.next(&bytes);
        assert_eq!(answer.status, status, "{bytes:?}");
        assert_eq!(answer.field("connection"), Some("close"), "{bytes:?}");
        device.until_closed();
        assert_eq!(device.left(), "", "{bytes:?}");
    }
    let counts = rig.account().counts;
    let count = AMBIGUOUS.len() as u64 + 2;
    assert_eq!((counts.malformed, counts.received), (count, 0));
    assert_eq!(counts.refused_requests, 0);
}

#[test]
fn what_is_longer_than_the_limits_is_refused() {
    for (limit, most) in [(None, 2_048), (Some(100), 100)] {
        let mut rig = Rig::with(
            "http",
            GatewayConfig {
                max_payload: limit,
                ..GatewayConfig::default()
            },
        );
        let mut device = Browser::new(rig.at);
        assert_eq!(device.answer(DEV_1, &[], vec![b'7'; most]).status, 202);
        assert_eq!(device.answer(DEV_1, &[], vec![b'7'; most + 1]).status, 413);
        device.until_closed();
        let mut chunked = Browser::new(rig.at);
        let head = "PUT /event/T1/d HTTP/1.1\r\nHost: g\r\nTransfer-Encoding: chunked\r\n\r\n";
        chunked.send(format!("{head}fffffff\r\n{}", "7".repeat(most + 1)));
        assert_eq!(chunked.next("chunks").status, 413);
        chunked.until_closed();
        assert_eq!(rig.surfaced(1)[0].1.len(), most);
        let counts = rig.account().counts;
        assert_eq!((counts.received, counts.refused_requests), (1, 2));
    }
    let rig = Rig::new("http");
    let many: Vec<String> = (0..200).map(|n| format!("x-{n}: y")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let long = format!("x: {}", "y".repeat(20_000));
    for fields in [&many[..], &[&long]] {
        let mut device = Browser::new(rig.at);
        assert_eq!(device.answer(DEV_1, fields, "{}").status, 431);
        device.until_closed();
    }
    let counts = rig.account().counts;
    assert_eq!((counts.received, counts.malformed), (0, 2));
}

#[test]
fn where_users_are_named_nobody_else_is_admitted() {
    let mut rig = Rig::with(
        "http",
        GatewayConfig {
            users: users(),
            ..GatewayConfig::default()
        },
    );
    let mut device = Browser::new(rig.at);
    for (line, fields, status) in [
        ("POST /telemetry", &[SENSOR][..], 202),
        ("POST /telemetry", &[SENSOR], 202),
        ("POST /telemetry", &[WRONG], 401),
        (DEV_1, &[], 401),
        (DEV_1, &["Authorization: Basic c2Vuc29yMUBUMQ=="], 401),
        (DEV_1, &["Authorization: Bearer sensor1@T1"], 401),
        (DEV_1, &[GATEWAY], 202),
        ("PUT /telemetry/T2/dev-1", &[GATEWAY], 403),
    ] {
        assert_eq!(
            device.answer(line, fields, "{}").status,
            status,
            "{line} {fields:?}"
        );
    }
    let topics: Vec<String> = rig
        .surfaced(3)
        .into_iter()
        .map(|(topic, _)| topic)
        .collect();
    let own = "telemetry/T1/sensor1";
    assert_eq!(topics, [own, own, "telemetry/T1/dev-1"]);
    let counts = rig.account().counts;
    assert_eq!((counts.received, counts.refused_requests), (3, 5));
}

#[test]
fn a_device_that_is_not_registered_is_refused_where_registered_ones_are_named() {
    let known = KnownDevice {
        tenant: "T1".to_owned(),
        device: "dev-1".to_owned(),
    };
    let rig = Rig::with(
        "http",
        GatewayConfig {
            devices: Some(vec![known]),
            ..GatewayConfig::default()
        },
    );
    let mut device = Browser::new(rig.at);
    for (line, status) in [
        (DEV_1, 202),
        ("PUT /telemetry/T1/dev-2", 404),
        ("PUT /event/T2/dev-1", 404),
        ("PUT /command/res/T1/dev-2/203abc?hono-cmd-status=200", 404),
    ] {
        assert_eq!(device.answer(line, &[], "{}").status, status, "{line}");
    }
    let counts = rig.account().counts;
    assert_eq!((counts.received, counts.refused_requests), (1, 3));
}

#[test]
fn a_device_that_waits_gets_its_command_and_its_reply_surfaces() {
    let mut rig = Rig::new("http");
    for (line, fields) in [
        ("POST /telemetry", &[SENSOR, "hono-ttd: 20"][..]),
        ("POST /event?hono-ttd=20", &[SENSOR]),
    ] {
        let mut device = Browser::new(rig.at);
        device.ask(line, fields, "{}");
        let count = rig.application.got().len();
        rig.surfaced(count + 1);
        let user = &rig.application.got()[count].user;
        assert!(
            user.contains(&("ttd".to_owned(), "20".to_owned())),
            "{user:?}"
        );
        rig.application
            .publish("command/T1/sensor1/7f3a/set", b"on", Qos::AtLeastOnce);
        let answer = device.next("the query");
        assert_eq!((answer.status, &answer.body[..]), (200, &b"on"[..]));
        assert_eq!(answer.field("hono-command"), Some("set"));
        assert_eq!(answer.field("hono-cmd-req-id"), Some("2047f3a"));
        assert_eq!(answer.field("hono-cmd-target-device"), None);
        let reply = device.answer(
            "POST /command/res/2047f3a",
            &[SENSOR, "hono-cmd-status: 200"],
            "done",
        );
        assert_eq!(reply.status, 202);
        let surfaced = rig.surfaced(count + 2).remove(count + 1);
        let expected = "command_response/T1/sensor1/7f3a/200".to_owned();
        assert_eq!(surfaced, (expected, b"done".to_vec()));
    }
    let counts = rig.account().counts;
    assert_eq!(
        (counts.queries, counts.commands_handed, counts.replies),
        (2, 2, 2)
    );
    // The queries, the replies, and the application's commands.
    assert_eq!((counts.received, counts.accepted), (2, 6));
    assert_eq!(counts.queries_without_command, 0);
}

#[test]
fn a_device_that_waits_in_vain_is_answered_after_its_time() {
    let mut rig = Rig::new("http");
    let mut device = Browser::new(rig.at);
    let begun = CLOCK.now();
    let answer = device.answer("PUT /telemetry/T1/dev-1?hono-ttd=1", &[], "{}");
    assert!(answer.at - begun >= Micros::from_secs(1));
    assert_eq!((answer.status, answer.field("hono-command")), (202, None));
    rig.application
        .publish("command/T1/dev-1/7f3a/set", b"on", Qos::AtLeastOnce);
    let (topic, _) = rig.surfaced(2).remove(1);
    assert_eq!(topic, "command_failure/T1/dev-1/7f3a/503");
    let counts = rig.account().counts;
    assert_eq!((counts.queries, counts.queries_without_command), (1, 1));
    assert_eq!((counts.commands, counts.commands_undelivered), (1, 1));
}

#[test]
fn a_command_to_a_device_that_went_away_comes_back() {
    let mut rig = Rig::new("http");
    let mut device = Browser::new(rig.at);
    device.ask("PUT /telemetry/T1/dev-1?hono-ttd=20", &[], "{}");
    rig.surfaced(1);
    drop(device);
    // The end of a connection is known once another one was served.
    while rig.gateway.account().counts.queries_abandoned == 0 {
        Browser::new(rig.at).answer("GET /", &[], "");
    }
    rig.application
        .publish("command/T1/dev-1/7f3a/set", b"on", Qos::AtLeastOnce);
    let (topic, _) = rig.surfaced(2).remove(1);
    assert_eq!(topic, "command_failure/T1/dev-1/7f3a/503");
}

/// A command that no header can carry comes back, and its device is answered without it.
#[test]
fn a_command_that_would_break_a_head_comes_back() {
    let mut rig = Rig::new("http");
    let mut device = Browser::new(rig.at);
    device.ask("PUT /telemetry/T1/dev-1?hono-ttd=20", &[], "{}");
    rig.surfaced(1);
    let topic = "command/T1/dev-1/7f3a/set\r\nx: y";
    rig.application.publish(topic, b"on", Qos::AtLeastOnce);
    let answer = device.next("the query");
    assert_eq!((answer.status, answer.field("x")), (202, None));
    let (topic, _) = rig.surfaced(2).remove(1);
    assert_eq!(topic, "command_failure/T1/dev-1/7f3a/400");
    let counts = rig.account().counts;
    assert_eq!(
        (counts.commands_handed, counts.commands_undelivered),
        (0, 1)
    );
}

#[test]
fn several_threads_share_the_devices_and_their_commands() {
    let mut rig = Rig::with(
        "http",
        GatewayConfig {
            threads: 3,
            ..GatewayConfig::default()
        },
    );
    let mut devices: Vec<Browser> = (0..12).map(|_| Browser::new(rig.at)).collect();
    for (n, device) in devices.iter_mut().enumerate() {
        device.ask(&format!("PUT /event/T1/dev-{n}?hono-ttd=20"), &[], "{}");
    }
    rig.surfaced(12);
    for n in 0..12 {
        let (topic, payload) = (format!("command/T1/dev-{n}//set"), n.to_string());
        rig.application
            .publish(&topic, payload.as_bytes(), Qos::AtLeastOnce);
    }
    for (n, device) in devices.iter_mut().enumerate() {
        let answer = device.next("its query");
        assert_eq!(answer.body, n.to_string().as_bytes());
    }
    let counts = rig.account().counts;
    assert_eq!((counts.received, counts.accepted), (12, 24));
    assert_eq!(
        (counts.commands_handed, counts.commands_undelivered),
        (12, 0)
    );
}

/// Any API: a message surfaces on its path, whatever its method, and is answered 202.
#[test]
fn without_a_dialect_messages_surface_on_their_paths() {
    let mut rig = Rig::of(Dialect::Http, "http", GatewayConfig::default());
    let mut device = Browser::new(rig.at);
    let cases = [
        ("POST /v1/devices/d-1/readings", "v1/devices/d-1/readings"),
        ("PATCH /a/b/c/d/e/f/g?x=y", "a/b/c/d/e/f/g"),
        ("DELETE http://gateway/d%20e", "d%20e"),
    ];
    for (line, _) in cases {
        assert_eq!(device.answer(line, &[], line).status, 202, "{line}");
    }
    for line in ["POST /", "POST /a+b", "POST /?a=b"] {
        assert_eq!(device.answer(line, &[], "1").status, 404, "{line}");
    }
    let long = vec![b'7'; 1_000_000];
    assert_eq!(device.answer("PUT /long", &[], &long).status, 202);
    assert_eq!(
        device
            .answer("PUT /long", &[], [&long[..], b"7"].concat())
            .status,
        413
    );
    let expected = cases.map(|(line, topic)| (topic.to_owned(), line.as_bytes().to_vec()));
    assert_eq!(rig.surfaced(4)[..3], expected);
    let counts = rig.account().counts;
    assert_eq!((counts.received, counts.refused_requests), (4, 4));
}

#[test]
fn a_share_of_the_connections_is_closed() {
    let close_links = CloseLinks {
        at: Micros::ZERO,
        share: 0.3,
    };
    let mut rig = Rig::with(
        "http",
        GatewayConfig {
            behaviour: Behaviour {
                close_links: Some(close_links),
                ..Behaviour::default()
            },
            ..GatewayConfig::default()
        },
    );
    let mut devices: Vec<Browser> = (0..10).map(|_| Browser::new(rig.at)).collect();
    for device in &mut devices {
        assert_eq!(device.answer("GET /", &[], "").status, 404, "it is there");
    }
    // The first uplink begins the time.
    assert_eq!(devices[0].answer(DEV_1, &[], "{}").status, 202);
    while rig.gateway.account().counts.closed_links < 3 {
        rig.application.read();
    }
    let is_open = |device: &mut Browser| {
        device.ask("GET /", &[], "");
        device.next_within(PATIENCE).is_some()
    };
    let open = devices
        .iter_mut()
        .filter_map(|device| is_open(device).then_some(()));
    assert_eq!(open.count(), 7);
    assert_eq!(rig.account().counts.closed_links, 3);
}

/// More than the buffers of the kernel and the gateway hold together.
#[test]
fn a_client_that_sends_without_reading_is_answered_whole() {
    const REQUESTS: usize = 20_000;
    let rig = Rig::new("http");
    let mut device = Browser::new(rig.at);
    let mut writer = device.writer();
    let sender = std::thread::spawn(move || {
        let refused = request(&format!("PUT /nothing/{}", "x".repeat(1_000)), &[], b"{}");
        (0..REQUESTS).all(|_| writer.write_all(&refused).is_ok())
    });
    for n in 0..REQUESTS {
        assert_eq!(device.next(&n.to_string()).status, 404);
    }
    assert!(sender.join().expect("it ran"));
    assert_eq!(rig.account().counts.refused_requests, REQUESTS as u64);
}
