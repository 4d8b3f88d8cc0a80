//! Devices over CoAP, the business application over MQTT.

use muster_gateway::{GatewayConfig, KnownDevice};
use muster_model::Micros;
use muster_protocol::coap::{Code, Transmission};
use muster_protocol::mqtt::Qos;

use crate::device::{Ask, Device, PATIENCE};
use crate::rig::Rig;

#[test]
fn what_a_device_uploads_is_answered_and_surfaces() {
    let mut rig = Rig::new("coap");
    let mut device = Device::new(rig.at);
    let telemetry = device.answer(Ask::put("t/T1/dev-1", b"{\"a\":1}"));
    let event = device.answer(Ask::put("event/T1/dev-1", b"{\"b\":2}"));
    let unconfirmed = device.answer(Ask {
        is_confirmable: false,
        ..Ask::put("telemetry/T1/dev-2", b"{}")
    });
    for answer in [&telemetry, &event, &unconfirmed] {
        assert_eq!(
            (answer.code, &answer.payload[..]),
            (Code::CHANGED, &b""[..])
        );
    }
    assert!(!telemetry.is_separate && !event.is_separate);
    let expected = [
        ("telemetry/T1/dev-1", &b"{\"a\":1}"[..]),
        ("event/T1/dev-1", b"{\"b\":2}"),
        ("telemetry/T1/dev-2", b"{}"),
    ];
    let expected = expected.map(|(topic, payload)| (topic.to_owned(), payload.to_vec()));
    assert_eq!(rig.surfaced(3), expected);
    let got = rig.application.got();
    assert!(
        got[0].properties.contains("application/json"),
        "{}",
        got[0].properties
    );
    assert_eq!(got.iter().map(|got| got.qos).max(), Some(Qos::AtLeastOnce));
    assert_eq!(got[2].qos, Qos::AtMostOnce);
    let counts = rig.account().counts;
    assert_eq!(
        (counts.received, counts.accepted, counts.processed),
        (3, 3, 3)
    );
    assert_eq!(
        (counts.peers, counts.received_again, counts.malformed),
        (1, 0, 0)
    );
    assert_eq!((counts.datagrams_dropped, counts.unsent), (0, 0));
}

#[test]
fn a_body_in_blocks_surfaces_whole() {
    let mut rig = Rig::with(
        "coap",
        GatewayConfig {
            max_payload: Some(5_000),
            ..GatewayConfig::default()
        },
    );
    let mut device = Device::new(rig.at);
    let body: Vec<u8> = (0..5_000_u32).map(|at| at as u8).collect();
    let answer = device.answer(Ask::put("t/T1/dev-1", &body));
    assert_eq!(answer.code, Code::CHANGED);
    assert_eq!(rig.surfaced(1), [("telemetry/T1/dev-1".to_owned(), body)]);
    let counts = rig.account().counts;
    assert_eq!((counts.received, counts.accepted), (1, 1));
}

#[test]
fn a_device_that_is_not_registered_is_refused_where_registered_ones_are_named() {
    let known = KnownDevice {
        tenant: "T1".to_owned(),
        device: "dev-1".to_owned(),
    };
    let mut rig = Rig::with(
        "coap",
        GatewayConfig {
            devices: Some(vec![known]),
            ..GatewayConfig::default()
        },
    );
    let mut device = Device::new(rig.at);
    for (path, code) in [
        ("t/T1/dev-1", Code::CHANGED),
        ("t/T1/dev-2", Code::NOT_FOUND),
        ("event/T2/dev-1", Code::NOT_FOUND),
        ("cr/T1/dev-2/203abc", Code::NOT_FOUND),
    ] {
        let answer = device.answer(Ask {
            query: "hono-cmd-status=200",
            ..Ask::put(path, b"{}")
        });
        assert_eq!(answer.code, code, "{path}");
    }
    assert_eq!(rig.surfaced(1)[0].0, "telemetry/T1/dev-1");
    let counts = rig.account().counts;
    assert_eq!((counts.received, counts.refused_requests), (1, 3));
}

/// Hono's adapter takes 2,048 bytes unless it is told otherwise.
#[test]
fn a_payload_above_the_limit_is_refused_however_it_comes() {
    for (limit, most) in [(None, 2_048), (Some(100), 100)] {
        let mut rig = Rig::with(
            "coap",
            GatewayConfig {
                max_payload: limit,
                ..GatewayConfig::default()
            },
        );
        let mut device = Device::new(rig.at);
        for (length, code) in [
            (most, Code::CHANGED),
            (most + 1, Code::REQUEST_ENTITY_TOO_LARGE),
            (3 * most, Code::REQUEST_ENTITY_TOO_LARGE),
        ] {
            let answer = device.answer(Ask::put("t/T1/dev-1", &vec![b'7'; length]));
            assert_eq!(answer.code, code, "{length} of {most}");
        }
        assert_eq!(rig.surfaced(1)[0].1.len(), most);
        let counts = rig.account().counts;
        assert_eq!((counts.received, counts.refused_requests), (1, 2));
    }
}

#[test]
fn a_request_that_comes_again_is_answered_again_and_surfaces_once() {
    let mut rig = Rig::new("coap");
    let mut device = Device::new(rig.at);
    device.answer(Ask::put("t/T1/dev-1", b"once"));
    let again = device.last.clone();
    for came in 2..5 {
        device.send(&again);
        device.until("the same answer", |device| device.came == came);
    }
    device.answer(Ask::put("t/T1/dev-1", b"the next"));
    let payloads: Vec<Vec<u8>> = rig.surfaced(2).into_iter().map(|(_, p)| p).collect();
    assert_eq!(payloads, [&b"once"[..], b"the next"]);
    let counts = rig.account().counts;
    assert_eq!((counts.received, counts.received_again), (2, 3));
    assert_eq!(counts.accepted, 2);
}

#[test]
fn what_cannot_be_taken_is_refused_with_its_code() {
    let mut rig = Rig::new("coap");
    let mut device = Device::new(rig.at);
    for (ask, code) in [
        (Ask::post("t", b"{}"), Code::UNAUTHORIZED),
        (Ask::put("nothing/T1/d", b"{}"), Code::NOT_FOUND),
        (Ask::put("t/T1", b"{}"), Code::NOT_FOUND),
        (Ask::put("t/T1/d", b""), Code::BAD_REQUEST),
        (
            Ask {
                method: Code::GET,
                ..Ask::put("t/T1/d", b"")
            },
            Code::METHOD_NOT_ALLOWED,
        ),
        (
            Ask {
                is_confirmable: false,
                ..Ask::put("e/T1/d", b"{}")
            },
            Code::BAD_REQUEST,
        ),
    ] {
        let answer = device.answer(ask.clone());
        assert_eq!(answer.code, code, "{ask:?}");
        assert!(!answer.payload.is_empty(), "it says why");
    }
    device.send(b"\x40\x01");
    device.answer(Ask::put("t/T1/d", b"{}"));
    assert_eq!(rig.surfaced(1).len(), 1);
    let counts = rig.account().counts;
    assert_eq!((counts.refused_requests, counts.malformed), (6, 1));
    assert_eq!((counts.received, counts.rejected), (1, 0));
}

#[test]
fn a_device_that_waits_gets_its_command_and_its_reply_surfaces() {
    let mut rig = Rig::new("coap");
    let mut device = Device::new(rig.at);
    let query = device.ask(Ask {
        query: "hono-ttd=20",
        ..Ask::put("t/T1/dev-1", b"{}")
    });
    rig.surfaced(1);
    assert!(
        rig.application.got()[0]
            .user
            .contains(&("ttd".to_owned(), "20".to_owned()))
    );
    // Later than half a second, so that the answer is one of its own.
    device.until("acknowledged", |device| device.acknowledged == [query]);
    rig.application
        .publish("command/T1/dev-1/7f3a/set", b"on", Qos::AtLeastOnce);
    rig.application.answers(1);
    device.until("the command", |device| device.answers.contains_key(&query));
    let answer = device.answers[&query].clone();
    assert_eq!(
        (answer.code, &answer.payload[..]),
        (Code::CHANGED, &b"on"[..])
    );
    assert!(answer.is_separate);
    assert_eq!(answer.parameters, ["hono-command=set"]);
    let path = answer.location.join("/");
    assert!(path.ends_with("/2047f3a"), "{path}");
    let reply = device.answer(Ask {
        query: "hono-cmd-status=200",
        ..Ask::put(&path, b"done")
    });
    assert_eq!(reply.code, Code::CHANGED);
    let surfaced = rig.surfaced(2);
    let expected = (
        "command_response/T1/dev-1/7f3a/200".to_owned(),
        b"done".to_vec(),
    );
    assert!(surfaced.contains(&expected), "{surfaced:?}");
    let counts = rig.account().counts;
    assert_eq!(
        (counts.queries, counts.commands_handed, counts.replies),
        (1, 1, 1)
    );
    // The query, the reply, and the application's command.
    assert_eq!((counts.received, counts.accepted), (1, 3));
    assert_eq!((counts.separate, counts.separate_acknowledged), (1, 1));
}

#[test]
fn a_device_that_waits_in_vain_is_told_after_its_time() {
    let mut rig = Rig::new("coap");
    let mut device = Device::new(rig.at);
    let begun = Device::now();
    let answer = device.answer(Ask {
        query: "hono-ttd=1",
        ..Ask::put("t/T1/dev-1", b"{}")
    });
    assert!(answer.at - begun >= Micros::from_secs(1));
    assert_eq!((answer.code, answer.is_separate), (Code::CHANGED, true));
    assert!(answer.parameters.is_empty() && answer.location.is_empty());
    rig.application
        .publish("command/T1/dev-1/7f3a/set", b"on", Qos::AtLeastOnce);
    let surfaced = rig.surfaced(2);
    let notice = surfaced
        .iter()
        .find(|(topic, _)| topic.starts_with("command_failure"));
    let (topic, _) = notice.expect("nobody waits any more");
    assert_eq!(topic, "command_failure/T1/dev-1/7f3a/503");
    let counts = rig.account().counts;
    assert_eq!((counts.queries, counts.queries_without_command), (1, 1));
    assert_eq!((counts.commands, counts.commands_undelivered), (1, 1));
    assert_eq!((counts.commands_handed, counts.commands_routed), (0, 0));
}

/// A command that no device can receive comes back with its reason, and whoever waits goes on
/// waiting.
#[test]
fn a_command_whose_id_is_too_long_comes_back_and_the_next_is_handed_over() {
    let mut rig = Rig::new("coap");
    let mut device = Device::new(rig.at);
    let query = device.ask(Ask {
        query: "hono-ttd=20",
        ..Ask::put("t/T1/dev-1", b"{}")
    });
    rig.surfaced(1);
    let long = "x".repeat(256);
    let topic = |id: &str| format!("command/T1/dev-1/{id}/set");
    rig.application
        .publish(&topic(&long), b"on", Qos::AtLeastOnce);
    rig.application.answers(1);
    let notice = rig.surfaced(2).remove(1);
    let expected = format!("command_failure/T1/dev-1/{long}/400");
    assert_eq!(notice.0, expected);
    let why = String::from_utf8_lossy(&notice.1).into_owned();
    assert!(why.contains("longer than 255 bytes: shorten it"), "{why}");
    rig.application
        .publish(&topic("7f3a"), b"off", Qos::AtLeastOnce);
    device.until("the command", |device| device.answers.contains_key(&query));
    assert_eq!(device.answers[&query].payload, b"off");
    let counts = rig.account().counts;
    assert_eq!((counts.commands, counts.commands_undelivered), (2, 1));
    assert_eq!((counts.commands_handed, counts.commands_routed), (1, 1));
    assert_eq!(counts.unknown_topics, 0);
}

/// RFC 7252 section 4.2: what is never acknowledged is given up after its copies.
#[test]
fn an_answer_that_is_never_acknowledged_is_counted_as_refused() {
    let mut rig = Rig::with(
        "coap",
        GatewayConfig {
            transmission: Transmission::of(Micros::from_millis(50), 1.0, 2),
            ..GatewayConfig::default()
        },
    );
    let mut device = Device::new(rig.at);
    device.ask(Ask {
        query: "hono-ttd=1",
        ..Ask::put("t/T1/dev-1", b"{}")
    });
    // The device reads nothing any more.
    rig.surfaced(1);
    let give_up = Device::now() + PATIENCE;
    while rig.gateway.account().counts.separate_refused == 0 {
        assert!(
            Device::now() < give_up,
            "{:?}",
            rig.gateway.account().counts
        );
        rig.application.read();
    }
    let counts = rig.account().counts;
    assert_eq!((counts.separate, counts.separate_acknowledged), (1, 0));
    assert_eq!((counts.separate_refused, counts.retransmitted), (1, 2));
}

#[test]
fn several_threads_share_the_devices_and_their_commands() {
    let mut rig = Rig::with(
        "coap",
        GatewayConfig {
            threads: 3,
            ..GatewayConfig::default()
        },
    );
    let mut devices: Vec<Device> = (0..12).map(|_| Device::new(rig.at)).collect();
    let queries: Vec<u32> = devices
        .iter_mut()
        .enumerate()
        .map(|(n, device)| {
            device.ask(Ask {
                query: "hono-ttd=20",
                ..Ask::put(&format!("e/T1/dev-{n}"), b"{}")
            })
        })
        .collect();
    rig.surfaced(12);
    for n in 0..12 {
        let topic = format!("command/T1/dev-{n}//set");
        let payload = n.to_string();
        rig.application
            .publish(&topic, payload.as_bytes(), Qos::AtLeastOnce);
    }
    for (n, (device, query)) in devices.iter_mut().zip(queries).enumerate() {
        device.until("its command", |device| device.answers.contains_key(&query));
        assert_eq!(device.answers[&query].payload, n.to_string().as_bytes());
    }
    let counts = rig.account().counts;
    // The application's commands are answered too.
    assert_eq!((counts.received, counts.accepted), (12, 24));
    assert_eq!(
        (counts.commands_handed, counts.commands_undelivered),
        (12, 0)
    );
}
