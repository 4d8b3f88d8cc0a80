//! `muster check`: what can be known before a run.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::path::Path;

use crate::program::{Gateway, Said, folder_with, json, muster, program};

const SCENARIO: &str = r#"
name: check
platform:
  kind: mqtt
  devices: [ "DEVICES" ]
  backend: { url: "BACKEND", filter: "muster/#", user: app, password: app-secret }
fleet:
  - name: meters
    count: 20
    credential: { kind: password, user: meter, secret: meter-secret }
    client: { version: "VERSION", will: { topic: "w/${id}", payload: gone } }
    connect: { timeout: 400ms }
    streams: [ { kind: telemetry, rate: 10/s, qos: 1 } ]
phases: { measure: 1s }
"#;

fn checked(devices: &str, backend: &str, version: &str, options: &[&str]) -> Said {
    let scenario = SCENARIO
        .replace("DEVICES", devices)
        .replace("BACKEND", backend)
        .replace("VERSION", version);
    let folder = folder_with(&scenario);
    muster(
        folder.path(),
        &[&["check", "scenario.yaml"], options].concat(),
    )
}

/// A gateway that admits only these.
fn gateway(users: &str) -> Gateway {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("users");
    std::fs::write(&file, users).expect("the users are written");
    Gateway::start(&["--users", file.to_str().expect("a path in UTF-8")])
}

/// An address where nobody listens.
fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    format!("mqtt://{}", listener.local_addr().expect("its address"))
}

#[test]
fn a_target_that_answers_is_met_as_the_run_would_meet_it_and_left_as_it_was() {
    let gateway = gateway("meter:meter-secret\napp:app-secret\n");
    for version in ["3.1.1", "5"] {
        let said = checked(&gateway.url, &gateway.url, version, &[]);
        assert_eq!(said.code, 0, "{said:?}");
        let device = format!(
            "ok      {}, device `meters-00000000`: connected",
            gateway.url
        );
        let backend = format!("ok      {}, backend `backend`: connected", gateway.url);
        assert!(said.out.contains(&device), "{}", said.out);
        assert!(said.out.contains(&backend), "{}", said.out);
    }
    let account = gateway.stop();
    let counts = ["connected", "received", "wills", "subscriptions"].map(|name| &account[name]);
    assert_eq!(counts, [4, 0, 0, 0]);
}

#[test]
fn devices_that_are_refused_are_no_success_and_said_with_the_code_its_meaning_and_the_key() {
    let gateway = gateway("app:app-secret\n");
    for (version, code) in [("5", "0x86"), ("3.1.1", "connack-4")] {
        let said = checked(&gateway.url, &gateway.url, version, &[]);
        assert_eq!(said.code, 2, "{said:?}");
        let refused = format!(
            "refused {}, device `meters-00000000`: CONNACK {code} (bad user name or password); \
             see `credential` of fleet `meters`\n",
            gateway.url
        );
        assert!(said.out.contains(&refused), "{}", said.out);
    }
}

#[test]
fn a_consumer_that_is_refused_is_no_success_either() {
    let gateway = gateway("meter:meter-secret\napp:another\n");
    let said = checked(&gateway.url, &gateway.url, "5", &[]);
    assert_eq!(said.code, 2, "{said:?}");
    let refused = format!(
        "refused {}, backend `backend`: CONNECT refused with 0x86 (bad user name or password); see \
         platform.backend.user and platform.backend.password\n",
        gateway.url
    );
    assert!(said.out.contains(&refused), "{}", said.out);
}

#[test]
fn a_backend_that_cannot_be_set_up_is_named_before_anything_connects() {
    let bad = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let lacks_tls = !cfg!(feature = "kafka-tls");
    for (keys, is_wrong) in [
        ("mqtts://h\", filter: \"#\", tls: { ca: bad.pem }", true),
        ("kafkas://h\", topics: { readings: 1 }", lacks_tls),
    ] {
        let scenario = SCENARIO
            .replace("BACKEND\", filter: \"muster/#\"", keys)
            .replace("DEVICES", "mqtt://h")
            .replace("VERSION", "5");
        let folder = folder_with(&scenario);
        std::fs::write(folder.path().join("bad.pem"), bad).expect("it is written");
        if is_wrong {
            let said = muster(folder.path(), &["run", "scenario.yaml"]);
            let start = "error: failed to set up the backends: backend `backend`: ";
            assert!(said.err.starts_with(start), "{said:?}");
            assert!(!said.err.contains("start the"), "{said:?}");
        }
    }
}

#[test]
fn a_run_whose_consumer_is_refused_says_once_why_and_where_to_look() {
    let gateway = gateway("meter:meter-secret\napp:another\n");
    let scenario = SCENARIO
        .replace("DEVICES", &gateway.url)
        .replace("BACKEND", &gateway.url)
        .replace("VERSION", "5");
    let folder = folder_with(&scenario);
    let said = muster(folder.path(), &["run", "scenario.yaml", "--out", "out"]);
    assert_eq!(said.code, 4, "{said:?}");
    let words = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
    let why = "CONNECT refused with 0x86 (bad user name or password); see platform.backend.user \
               and platform.backend.password";
    assert_eq!(words.matches(why).count(), 1, "{}", said.out);
    assert_eq!(words.matches(" refused").count(), 1, "{}", said.out);
    let mut lines = said.out.lines();
    lines.find(|line| line.starts_with("NONE"));
    let first = lines.next().expect("a line below the result");
    let who = "  1 of 1 consumer of backend `backend` at ";
    assert!(first.starts_with(who), "{}", said.out);
    let result = json(&folder.path().join("out/result.json"));
    let cause = &result["verdict"]["causes"][0];
    let text = cause["text"].as_str().expect("a cause");
    assert!(text.ends_with(why), "{text}");
    // Nobody waits for the time to connect to be over.
    let phases = result["phases"].as_array().and_then(|phases| phases.last());
    let until = phases.and_then(|phase| phase["until_s"].as_f64());
    assert!(until.is_some_and(|until| until < 8.0), "{until:?}");
    let junit = muster(folder.path(), &["report", "out", "--format", "junit"]);
    assert!(
        junit
            .out
            .contains("<property name=\"cause\" value=\"1 of 1 "),
        "{}",
        junit.out
    );
}

#[test]
fn a_run_whose_devices_are_all_refused_fails_and_says_why() {
    let gateway = gateway("app:app-secret\n");
    let scenario = SCENARIO
        .replace("DEVICES", &gateway.url)
        .replace("BACKEND", &gateway.url)
        .replace("VERSION", "5");
    let folder = folder_with(&scenario);
    let said = muster(folder.path(), &["run", "scenario.yaml", "--out", "out"]);
    assert_eq!(said.code, 1, "{said:?}");
    let why = "refused: bad user name or password (0x86); see fleet.meters.credential";
    let mut lines = said.out.lines();
    lines
        .find(|line| line.starts_with("FAIL"))
        .expect("a verdict");
    let first = lines.next().expect("a line below it");
    assert!(first.trim_start().ends_with(why), "{}", said.out);
    let live = said
        .out
        .lines()
        .take_while(|line| !line.starts_with("FAIL"));
    let live: Vec<&str> = live.collect();
    let told = live
        .iter()
        .any(|line| line.contains("refused: bad user name or password (0x86)"));
    assert!(told, "{live:?}");
    let result = json(&folder.path().join("out/result.json"));
    let cause = &result["verdict"]["causes"][0];
    assert_eq!(cause["see"], "fleet.meters.credential");
    assert_eq!(result["ledger"]["uplink"]["sent"], 0);
    assert_eq!(
        result["measured_s"],
        serde_json::Value::Null,
        "it ended before"
    );
    for format in ["junit", "html"] {
        let report = muster(folder.path(), &["report", "out", "--format", format]);
        assert!(report.out.contains(why), "{format}: {}", report.out);
    }
}

/// An address for documentation (RFC 5737), which no machine has.
#[test]
fn a_source_address_of_another_machine_is_refused_before_the_run_with_its_key() {
    let scenario = "name: t\nfleet: [ { name: meters, connect: { from: [ \"192.0.2.1\" ] }, \
                    streams: [ { rate: 1/s } ] } ]\nphases: { measure: 1s }\n";
    let folder = folder_with(scenario);
    for (arguments, code) in [
        (&["check", "scenario.yaml", "--offline"][..], 3),
        (&["run", "scenario.yaml", "--out", "out"], 4),
    ] {
        let said = muster(folder.path(), arguments);
        assert_eq!(said.code, code, "{said:?}");
        let words = "use 192.0.2.1 of `fleet.meters.connect.from`: ";
        assert!(said.out.contains(words), "{said:?}");
        assert!(said.out.contains("ip address add 192.0.2.1"), "{said:?}");
        assert!(!folder.path().join("out").exists());
    }
}

#[test]
fn source_addresses_of_another_family_than_the_target_are_refused_by_check_and_run() {
    let scenario = "name: t\nplatform: { kind: mqtt, devices: \"mqtt://127.0.0.1:1\" }\n\
                    fleet: [ { name: meters, connect: { from: [ \"::1\" ] }, \
                    streams: [ { rate: 1/s } ] } ]\nphases: { measure: 1s }\n";
    let folder = folder_with(scenario);
    for (arguments, code) in [
        (&["check", "scenario.yaml", "--offline"][..], 3),
        (&["check", "scenario.yaml"], 3),
        (&["run", "scenario.yaml", "--out", "out"], 4),
    ] {
        let said = muster(folder.path(), arguments);
        assert_eq!(said.code, code, "{said:?}");
        let words = "cannot reach 127.0.0.1:1 from `fleet.meters.connect.from`: none of its \
                     addresses is one of IPv4; add one, or remove the key";
        assert!(said.out.contains(words), "{said:?}");
        assert!(said.out.contains("infeasible on this machine"), "{said:?}");
        assert!(!folder.path().join("out").exists());
    }
}

#[test]
fn a_target_where_nobody_listens_is_silent() {
    let gateway = Gateway::start::<&str>(&[]);
    for (devices, backend, silent) in [
        (nobody(), gateway.url.clone(), "device `meters-00000000`"),
        (gateway.url.clone(), nobody(), "backend `backend`"),
    ] {
        let said = checked(&devices, &backend, "5", &[]);
        assert_eq!(said.code, 4, "{said:?}");
        let line = said.out.lines().find(|line| line.starts_with("silent"));
        let line = line.expect("who is silent is said");
        assert!(line.contains(silent) && line.contains("refused"), "{line}");
        assert_eq!(said.out.matches(": connected").count(), 1, "{}", said.out);
    }
}

#[test]
fn a_name_without_an_address_is_silent() {
    // No part of a name has 64 characters (RFC 1035 section 2.3.4): no server is asked.
    let host = "x".repeat(64);
    let said = checked(&format!("mqtt://{host}"), &nobody(), "5", &[]);
    assert_eq!(said.code, 4, "{said:?}");
    let line = format!("failed to look up `{host}` of mqtt://{host}:1883: ");
    assert!(said.out.contains(&line), "{}", said.out);
    assert_eq!(said.out.matches("failed").count(), 1, "{}", said.out);
}

#[test]
fn a_target_that_takes_connections_and_says_nothing_is_silent() {
    let mute = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("mqtt://{}", mute.local_addr().expect("its address"));
    let gateway = Gateway::start::<&str>(&[]);
    let said = checked(&url, &gateway.url, "5", &[]);
    assert_eq!(said.code, 4, "{said:?}");
    assert!(said.out.contains("no answer within 400 ms"), "{}", said.out);
}

#[test]
fn a_target_that_speaks_something_else_is_named_so() {
    let web = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("mqtt://{}", web.local_addr().expect("its address"));
    let server = std::thread::spawn(move || {
        let (mut socket, _) = web.accept().expect("a connection");
        let _ = socket.read(&mut [0; 256]);
        let page = " ".repeat(200);
        let _ = write!(socket, "HTTP/1.1 400 Bad Request\r\n\r\n{page}");
    });
    let gateway = Gateway::start::<&str>(&[]);
    let said = checked(&url, &gateway.url, "5", &[]);
    server.join().expect("the server has answered");
    assert_eq!(said.code, 2, "{said:?}");
    let odd = format!("no MQTT {url}, device `meters-00000000`");
    assert!(said.out.contains(&odd), "{}", said.out);
}

#[test]
fn a_backend_of_amqp_that_speaks_something_else_is_named_so() {
    let web = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("amqp://{}", web.local_addr().expect("its address"));
    std::thread::spawn(move || {
        for mut socket in web.incoming().flatten() {
            let _ = socket.read(&mut [0; 256]);
            let _ = socket.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    let gateway = Gateway::start::<&str>(&[]);
    let folder = folder_with(&format!(
        "name: odd\nplatform:\n  kind: mqtt\n  devices: [ \"{}\" ]\n  backend: {{ url: \"{url}\", addresses: [ q ] }}\n\
         fleet: [ {{ streams: [ {{ rate: 1/s }} ] }} ]\nphases: {{ measure: 1s }}\n",
        gateway.url
    ));
    let said = muster(folder.path(), &["check", "scenario.yaml"]);
    assert_eq!(said.code, 2, "{said:?}");
    let odd = format!("no AMQP {url}, backend `backend`: ");
    assert!(said.out.contains(&odd), "{said:?}");
}

#[test]
fn a_refusal_is_said_in_the_words_of_the_platform_too() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("mqtt://{}", listener.local_addr().expect("its address"));
    std::thread::spawn(move || {
        for link in listener.incoming().take(2) {
            let mut link = link.expect("a link");
            let _connect = link.read(&mut [0; 1_000]);
            // CONNACK 0x97 with a reason string (31).
            let _sent = link.write_all(b"\x20\x0b\0\x97\x08\x1f\0\x0550000");
            let _rest = link.read(&mut [0; 1_000]);
        }
    });
    let said = checked(&url, &url, "5", &[]);
    assert_eq!(said.code, 2, "{said:?}");
    let told = "CONNACK 0x97 (quota exceeded), \"50000\"";
    assert!(said.out.contains(told), "{said:?}");
}

#[test]
fn a_target_whose_connack_allows_less_than_the_payloads_need_is_said_before_the_run() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("mqtt://{}", listener.local_addr().expect("its address"));
    std::thread::spawn(move || {
        for link in listener.incoming().take(2) {
            let mut link = link.expect("a link");
            let _connect = link.read(&mut [0; 1_000]);
            // CONNACK with a Maximum Packet Size (39) of 50 bytes.
            let _sent = link.write_all(&[0x20, 8, 0, 0, 5, 39, 0, 0, 0, 50]);
            let mut next = [0; 1_000];
            let _read = link.read(&mut next);
            // SUBACK for a SUBSCRIBE.
            if next[0] == 0x82 {
                let _sent = link.write_all(&[0x90, 4, next[2], next[3], 0, 1]);
            }
            let _rest = link.read(&mut next);
        }
    });
    let said = checked(&url, &url, "5", &[]);
    assert_eq!(said.code, 3, "{said:?}");
    let told = "device `meters-00000000`: its CONNACK allows packets of at most 50 bytes";
    assert!(said.out.contains(told), "{said:?}");
    assert!(
        said.out.contains("backend `backend`: connected"),
        "{said:?}"
    );
}

#[test]
fn what_no_machine_can_do_is_infeasible_and_said_with_its_bound() {
    let rates = ["fleet.streams.rate=99000000/s"];
    let bytes = [
        "fleet.streams.rate=9000/s",
        "fleet.streams.payload={size: 200000000}",
    ];
    let time = ["fleet.connect.rate=1/d"];
    let memory = ["fleet.connect.rate=100000/s", "fleet.count=4000000000"];
    for (values, thing) in [
        (&rates[..], "short   rates: "),
        (&bytes[..], "short   bytes: "),
        (&time[..], "short   time: "),
        (&memory[..], "short   memory: "),
    ] {
        let options: Vec<&str> = values.iter().flat_map(|value| ["--set", value]).collect();
        let said = checked(&nobody(), &nobody(), "5", &options);
        assert_eq!(said.code, 3, "{said:?}");
        assert!(said.out.contains(thing), "{}", said.out);
        assert!(said.err.is_empty(), "{}", said.err);
        assert!(
            said.out.ends_with("infeasible on this machine\n"),
            "{}",
            said.out
        );
    }
}

/// A scenario with the embedded gateway and a backend.
const EMBEDDED: &str = "\
name: embedded
fleet: [ { name: meters, count: 50, streams: [ { rate: 100/s, qos: 1, payload: { size: 64 } } ] } ]
phases: { measure: 1s }
";

/// The line of the ceiling that `check` prints.
fn ceiling(folder: &Path, cache: &Path, options: &[&str]) -> (i32, String, String) {
    let arguments = [&["check", "scenario.yaml"], options].concat();
    let output = program(folder, &arguments)
        .env("XDG_CACHE_HOME", cache)
        .output()
        .expect("it runs");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let line = text.lines().find(|line| line.contains(" ceiling: "));
    let line = line.unwrap_or_else(|| panic!("{text}")).to_owned();
    (output.status.code().expect("a code"), line, text)
}

#[test]
fn the_ceiling_of_the_generator_is_measured_once_for_a_shape_and_names_its_parts() {
    let (folder, cache) = (folder_with(EMBEDDED), folder_with(""));
    let (code, line, _) = ceiling(folder.path(), cache.path(), &[]);
    assert_eq!(code, 0, "{line}");
    assert!(
        line.starts_with("ok      ceiling: at most 100/s is "),
        "{line}"
    );
    for part in ["devices ", "consumers ", "cores "] {
        assert!(line.contains(part), "{line}");
    }
    let entries = || {
        let files = std::fs::read_dir(cache.path().join("muster")).expect("the cache");
        files.count()
    };
    assert_eq!(entries(), 1);
    // Another rate of the same shape, with what was measured before.
    let measured = line.split("(devices").nth(1).expect("the parts");
    let other = ["--set", "fleet.streams.rate=50/s", "--offline"];
    let (_, again, _) = ceiling(folder.path(), cache.path(), &other);
    assert!(again.ends_with(measured), "{again} after {line}");
    assert_eq!(entries(), 1);
}

#[test]
fn a_rate_above_the_ceiling_is_infeasible_and_the_part_that_ends_it_has_a_remedy() {
    let (folder, cache) = (folder_with(EMBEDDED), folder_with(""));
    // Below what no machine sends.
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let rate = format!("fleet.streams.rate={}/s", 400_000 * cores);
    let (code, line, text) = ceiling(folder.path(), cache.path(), &["--set", &rate]);
    assert_eq!(code, 3, "{text}");
    assert!(line.starts_with("short   ceiling: "), "{text}");
    assert!(text.contains("note    generator-bound: "), "{text}");
    assert!(text.ends_with("infeasible on this machine\n"), "{text}");
    // A slow interface, whatever the CPU.
    let slow = ["--link-speed", "100k", "--offline"];
    let (code, line, text) = ceiling(folder.path(), cache.path(), &slow);
    assert_eq!(code, 3, "{text}");
    assert!(line.contains("interface "), "{line}");
    assert!(
        text.contains("the ceiling of its interface; add a faster"),
        "{text}"
    );
}

#[test]
fn commands_and_connects_have_ceilings_of_their_own() {
    let commanded = EMBEDDED.replace(
        "fleet: [ { name: meters, count: 50, streams: [",
        "platform: { kind: gateway, backend: { commands: { rate: 20/s, mode: two-way } } }\nfleet: [ { name: meters, \
         count: 50, connect: { rate: 600/s }, streams: [ { kind: command }, ",
    );
    let (folder, cache) = (folder_with(&commanded), folder_with(""));
    let (code, _, text) = ceiling(folder.path(), cache.path(), &[]);
    assert_eq!(code, 0, "{text}");
    for (begin, parts) in [
        (
            "ok      ceiling of commands: at most 20/s is ",
            "consumers ",
        ),
        ("ok      ceiling of connects: at most 600/s is ", "devices "),
    ] {
        let line = text.lines().find(|line| line.starts_with(begin));
        assert!(line.is_some_and(|line| line.contains(parts)), "{text}");
    }
    // Above what any machine sends, so that it leaves nothing to the same commands.
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let rate = format!("rate: {}/s, qos", 400_000 * cores);
    let filled = folder_with(&commanded.replace("rate: 100/s, qos", &rate));
    let (code, _, text) = ceiling(filled.path(), cache.path(), &[]);
    assert_eq!(code, 3, "{text}");
    let line = "short   ceiling of commands: at most 20/s is ";
    assert!(text.contains(line), "{text}");
    // Above what any machine makes.
    let connects = ["--set", "fleet.connect.rate=1000000/s"];
    let (code, _, text) = ceiling(folder.path(), cache.path(), &connects);
    assert_eq!(code, 3, "{text}");
    assert!(text.contains("short   ceiling of connects: "), "{text}");
}

#[test]
fn a_run_that_would_need_more_than_there_is_does_not_begin() {
    // Nobody is asked: an address of the documentation (RFC 5737) that no machine has.
    let scenario = SCENARIO
        .replace("DEVICES", "mqtt://192.0.2.1")
        .replace("BACKEND", "mqtt://192.0.2.1")
        .replace("VERSION", "5");
    let folder = folder_with(&scenario);
    let ports = ["fleet.connect.rate=100000/s", "fleet.count=100000"];
    let memory = ["fleet.connect.rate=100000/s", "fleet.count=4000000000"];
    let rates = [
        "fleet.connect.rate=100000/s",
        "fleet.streams.rate=99000000/s",
    ];
    for (values, thing) in [
        (ports, "  ports towards"),
        (memory, "  memory: "),
        (rates, "  rates: "),
    ] {
        let options = values.iter().flat_map(|value| ["--set", value]);
        let run = ["run", "scenario.yaml", "--out", "out"].into_iter();
        let said = muster(folder.path(), &run.chain(options).collect::<Vec<_>>());
        assert_eq!(said.code, 4, "{said:?}");
        let lines = said.out.lines().collect::<Vec<_>>();
        assert_eq!(lines[..2], ["NONE  check", "  infeasible on this machine"]);
        assert!(lines.iter().any(|line| line.starts_with(thing)), "{said:?}");
        assert!(!folder.path().join("out").exists(), "nothing was begun");
    }
}

/// A peer of CoAP that hears the first ping and answers the second as this changes it.
fn pinged(answer: fn(&mut [u8])) -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let address = socket.local_addr().expect("its address");
    std::thread::spawn(move || {
        let (mut first, mut again) = ([0; 64], [0; 64]);
        let (length, _) = socket.recv_from(&mut first).expect("a ping");
        assert_eq!(first[..2], [0x40, 0x00], "an empty CON");
        let (_, from) = socket.recv_from(&mut again).expect("the ping again");
        assert_eq!(first, again);
        answer(&mut again[..length]);
        socket.send_to(&again[..length], from).expect("it is sent");
    });
    address
}

/// Checks devices that speak CoAP with servers at these addresses.
fn coap(addresses: &[SocketAddr], sockets: &str) -> Said {
    let devices: Vec<String> = addresses
        .iter()
        .map(|at| format!("'coap://{at}'"))
        .collect();
    let text = format!(
        "name: ping\nplatform: {{ kind: hono, devices: [ {} ] }}\n\
         fleet: [ {{ count: 9, tenant: t1, sockets: {sockets}, connect: {{ timeout: 9s }}, streams: [ {{ rate: 1/s }} ] }} ]\n\
         phases: {{ measure: 1s, settle: {{ at-most: 40s, quiet: 1s }} }}\n",
        devices.join(", ")
    );
    let folder = folder_with(&text);
    muster(folder.path(), &["check", "scenario.yaml"])
}

#[test]
fn a_reset_is_a_sign_of_life_of_coap_and_nothing_else_is() {
    let reset: fn(&mut [u8]) = |ping| ping[0] = 0x70;
    let said = coap(&[pinged(reset), pinged(reset)], "shared");
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(said.out.matches("connected within ").count(), 2, "{said:?}");
    let of_another: fn(&mut [u8]) = |ping| (ping[0], ping[3]) = (0x70, !ping[3]);
    for odd in [of_another, |ping| ping.copy_from_slice(b"hell")] {
        let odd = pinged(odd);
        let said = coap(&[pinged(reset), odd], "per-device");
        assert_eq!(said.code, 2, "{said:?}");
        assert_eq!(said.out.matches("connected within ").count(), 1, "{said:?}");
        let line = format!("no CoAP coap://{odd}, device `");
        assert!(said.out.contains(&line), "{said:?}");
    }
}

#[test]
fn an_address_of_coap_where_nobody_listens_is_silent() {
    let closed = UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
    let closed = closed.expect("a port that was free a moment ago");
    let said = coap(&[closed], "per-device");
    assert_eq!(said.code, 4, "{said:?}");
    assert!(said.out.contains("nobody listens there"), "{said:?}");
}
