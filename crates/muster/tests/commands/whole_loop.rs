//! `muster check --loop`: one device of each fleet, to the platform and back.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use crate::program::{Said, folder_with, muster};

const SCENARIO: &str = r#"
name: loop
platform:
  kind: gateway
  dialect: DIALECT
  devices: [ "SCHEME://127.0.0.1:0" ]
fleet:
  - name: meters
    count: 500
    tenant: t1
    streams:
      - { name: readings, rate: 1000/s, timeout: 2s }
      - { name: alarms, kind: event, rate: 0.1/s, timeout: 2s }
phases: { measure: 10m, settle: { at-most: 4s, quiet: 3s } }
"#;

fn checked(dialect: &str, scheme: &str, behaviour: &str) -> Said {
    let text = SCENARIO
        .replace("DIALECT", dialect)
        .replace("SCHEME", scheme);
    let folder = folder_with(&text);
    let behaviour = format!("platform.behaviour={behaviour}");
    let arguments = ["check", "scenario.yaml", "--loop", "--set", &behaviour];
    muster(folder.path(), &arguments)
}

fn line<'a>(said: &'a Said, stream: &str) -> &'a str {
    let mut lines = said.out.lines();
    let line = lines.find(|line| line.contains(&format!("{stream}: ")));
    line.unwrap_or_else(|| panic!("{stream} is not told: {said:?}"))
}

#[test]
fn what_comes_through_is_told_with_its_times() {
    for (dialect, scheme) in [("mqtt", "mqtt"), ("hono", "coap")] {
        let said = checked(dialect, scheme, "{}");
        assert_eq!(said.code, 0, "{said:?}");
        for stream in ["meters/readings", "meters/alarms"] {
            let line = line(&said, stream);
            assert!(line.starts_with("ok "), "{line}");
            assert!(line.contains("accepted within"), "{line}");
            assert!(line.contains("seen within"), "{line}");
        }
    }
}

#[test]
fn where_a_message_ends_is_told() {
    for (behaviour, code, start, words) in [
        (
            "{ reject: { code: 0x87, share: 100% } }",
            2,
            "refused",
            "0x87",
        ),
        (
            "{ lose-after-accept: 2 }",
            4,
            "lost",
            "not seen at the backend",
        ),
        ("{ drop: 2 }", 4, "silent", "not answered"),
    ] {
        let said = checked("mqtt", "mqtt", behaviour);
        assert_eq!(said.code, code, "{said:?}");
        let line = line(&said, "meters/readings");
        assert!(line.starts_with(start) && line.contains(words), "{line}");
    }
}

#[test]
fn a_refusal_is_told_with_what_it_means_there() {
    let said = checked("hono", "coap", "{ reject: { code: 4.04, share: 100% } }");
    assert_eq!(said.code, 2, "{said:?}");
    assert!(said.out.contains("see `muster provision`"), "{}", said.out);
}

const GATEWAY: &str = r#"
name: loop
platform: { kind: gateway, dialect: thingsboard, behaviour: { no-gateways: true } }
fleet:
  - name: sensors
    count: 30
    gateway: { devices: 10 }
    connect: { timeout: 500ms }
    streams: [ { name: readings, rate: 10/s, timeout: 2s } ]
phases: { warm-up: 0s, measure: 2s, settle: { at-most: 4s, quiet: 1s } }
"#;

/// As ThingsBoard does where the device of a gateway's token is no gateway.
#[test]
fn an_announcement_that_is_not_answered_is_named_by_the_check_and_by_the_run() {
    let folder = folder_with(GATEWAY);
    let checked = muster(folder.path(), &["check", "scenario.yaml", "--loop"]);
    assert_eq!(checked.code, 4, "{checked:?}");
    let run = muster(folder.path(), &["run", "scenario.yaml", "--quiet"]);
    assert_eq!(run.code, 4, "{run:?}");
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    for said in [words(&checked.out), words(&run.out)] {
        for part in [
            "announcement-unanswered",
            "link `GW00000000`: the announcement of device `sensors-00000000` on `v1/gateway/connect` was not answered within 500 ms",
            "`additionalInfo.gateway = true`",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
    }
    let line = checked.out.lines().find(|line| line.starts_with("no link"));
    assert_eq!(
        line,
        Some("no link 1 of 1 links did not come up (announcement-unanswered)")
    );
}

/// A peer that answers CONNECT and nothing else.
fn mute_peer() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("its address");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || hear(stream));
        }
    });
    address
}

fn hear(mut stream: TcpStream) {
    let mut room = [0; 512];
    let mut is_first = true;
    while stream.read(&mut room).is_ok_and(|length| length > 0) {
        if std::mem::take(&mut is_first) {
            let connack = [0x20, 3, 0, 0, 0];
            stream.write_all(&connack).expect("the peer listens");
        }
    }
}

#[test]
fn the_request_that_a_peer_left_unanswered_is_named() {
    let subscribe = "SUBSCRIBE to `ack/PerfTest_0`, `commands/PerfTest_0` was not answered";
    let announcement =
        "the announcement of device `sensors-00000000` on `v1/gateway/connect` was not answered";
    for (kind, keys, cause, words) in [
        ("sap-edge", "", "subscribe-unanswered", subscribe),
        (
            "thingsboard",
            "gateway: { devices: 5 },",
            "announcement-unanswered",
            announcement,
        ),
    ] {
        let text = format!(
            "name: mute\nplatform: {{ kind: {kind}, devices: [ 'mqtt://{}' ] }}\n\
             fleet: [ {{ name: sensors, count: 5, connect: {{ timeout: 500ms }}, {keys} streams: [ {{ rate: 5/s }} ] }} ]\n\
             phases: {{ warm-up: 0s, measure: 1s, settle: {{ at-most: 40s, quiet: 1s }} }}\n",
            mute_peer()
        );
        let folder = folder_with(&text);
        for arguments in [
            ["check", "scenario.yaml", "--loop"],
            ["run", "scenario.yaml", "--quiet"],
        ] {
            let said = muster(folder.path(), &arguments);
            assert_eq!(said.code, 4, "{said:?}");
            let out = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(out.contains(cause) && out.contains(words), "{out}");
        }
    }
}

const COMMANDED: &str = r#"
name: loop
platform:
  kind: gateway
  dialect: DIALECT
  devices: [ "SCHEME://127.0.0.1:0" ]
  PLATFORM
  backend: { commands: { COMMANDS } }
fleet:
  - name: pumps
    count: 500
    tenant: t1
    obey-retry-after: false
    streams:
      - { name: readings, rate: 1000/s, timeout: 2s, payload: { size: 40 } }
      - { kind: command, timeout: 2s }
ASKING
phases: { measure: 10m, settle: { at-most: 6s, quiet: 3s } }
"#;
const ASKING: &str =
    "      - { name: asks, kind: command-query, every: 1m, ttd: 1s, payload: { size: 40 } }";
const TO_QUERIES: &str = "mode: two-way, to: waiting";

/// Output of a check of a platform with commands, for devices of MQTT and for those of CoAP.
fn commanded(dialect: &str, (platform, commands): (&str, &str), asking: &str) -> Said {
    let scheme = if dialect == "hono" { "coap" } else { "mqtt" };
    let text = COMMANDED
        .replace("DIALECT", dialect)
        .replace("SCHEME", scheme)
        .replace("PLATFORM", platform)
        .replace("COMMANDS", commands)
        .replace("ASKING", asking);
    let text = match dialect {
        "hono" => text,
        _ => text.replace("    obey-retry-after: false\n", ""),
    };
    let folder = folder_with(&text);
    muster(folder.path(), &["check", "scenario.yaml", "--loop"])
}

#[test]
fn a_command_that_came_is_told_with_its_reply() {
    let seen = "a command was received, and its reply seen within ";
    let alone = "a command was received";
    for (dialect, commands, asking, told) in [
        ("mqtt", "rate: 10/s, mode: two-way", "", seen),
        ("mqtt", TO_QUERIES, ASKING, seen),
        ("hono", TO_QUERIES, ASKING, seen),
        ("hono", "mode: one-way, to: waiting", ASKING, alone),
    ] {
        let said = commanded(dialect, ("", commands), asking);
        assert_eq!(said.code, 0, "{said:?}");
        let line = line(&said, "pumps/command");
        let (_, words) = line.split_once(": ").expect("a line names its stream");
        assert!(line.starts_with("ok "), "{line}");
        match told == alone {
            true => assert_eq!(words, alone),
            false => assert!(words.starts_with(told), "{line}"),
        }
    }
}

/// The gateway takes the messages, and no reply, which is longer.
#[test]
fn a_reply_that_is_refused_is_no_success() {
    let said = commanded("hono", ("max-payload: 50", TO_QUERIES), ASKING);
    assert_eq!(said.code, 2, "{said:?}");
    assert!(line(&said, "pumps/asks").starts_with("ok "), "{said:?}");
    let line = line(&said, "pumps/command");
    let told = "a command was received, and its reply was refused with 4.13";
    assert!(
        line.starts_with("refused ") && line.ends_with(told),
        "{line}"
    );
}

#[test]
fn a_command_that_did_not_come_and_one_that_nobody_asked_for_are_no_success() {
    for (behaviour, code, of_query, of_command) in [
        (
            "behaviour: { lose-commands: 1 }",
            4,
            "no command came for the query",
            "a command was issued, and did not come",
        ),
        (
            "behaviour: { reject: { code: 503, share: 100% } }",
            2,
            "5.03 (service unavailable)",
            "no command was issued, as no query came to the backend",
        ),
    ] {
        let said = commanded("hono", (behaviour, TO_QUERIES), ASKING);
        assert_eq!(said.code, code, "{said:?}");
        let told = |what: &str| {
            let mut lines = said.out.lines();
            let line = lines.find(|line| line.ends_with(what));
            line.is_some_and(|line| !line.starts_with("ok "))
        };
        assert!(told(of_query) && told(of_command), "{said:?}");
    }
}
