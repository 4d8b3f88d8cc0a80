//! TLS and WebSocket, from the scenario to the exit code.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;

use crate::program::{folder_with, json, muster};

const SCENARIO: &str = r#"
name: transport
platform: { PLATFORM }
fleet:
  - name: meters
    count: 20
    connect: { timeout: 2s }
    streams: [ { kind: telemetry, rate: 100/s, qos: 1 } ]
phases: { warm-up: 500ms, measure: 1s, settle: { at-most: 20s, quiet: 500ms } }
slo: { failure-ratio: 0 }
"#;

fn scenario(platform: &str) -> String {
    SCENARIO.replace("PLATFORM", platform)
}

fn result(folder: &Path) -> serde_json::Value {
    json(&folder.join("out/result.json"))
}

#[test]
fn the_embedded_gateway_is_met_over_every_scheme() {
    for scheme in ["ws", "mqtts", "wss"] {
        let text = scenario(&format!("devices: [ '{scheme}://127.0.0.1:0' ]"));
        let folder = folder_with(&text);
        let said = muster(
            folder.path(),
            &["run", "scenario.yaml", "--quiet", "--out", "out"],
        );
        assert_eq!(said.code, 0, "{scheme}: {said:?}");
        let result = result(folder.path());
        let uplink = &result["ledger"]["uplink"];
        let counts = ["scheduled", "accepted", "arrived", "residue"].map(|name| &uplink[name]);
        assert_eq!(counts, [150, 150, 150, 0], "{scheme}");
        let target = result["environment"]["target"].as_str().expect("a name");
        assert!(target.contains(&format!("{scheme}://")), "{target}");
    }
}

#[test]
fn insecure_is_said_on_stderr_and_in_every_report() {
    let text = scenario("devices: [ 'mqtts://127.0.0.1:0' ], tls: { insecure: true }");
    let folder = folder_with(&text);
    let said = muster(
        folder.path(),
        &["run", "scenario.yaml", "--quiet", "--out", "out"],
    );
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.err.contains("any certificate will do"), "{}", said.err);
    let taken = "any certificate was taken";
    assert!(said.out.contains(taken), "{}", said.out);
    assert_eq!(
        result(folder.path())["environment"]["tls"]["insecure"],
        true
    );
    let page = std::fs::read_to_string(folder.path().join("out/report.html"));
    assert!(page.expect("a page").contains(taken));
}

/// Nobody answers there, which changes nothing of whom the run would have taken for the target.
#[test]
fn over_dtls_insecure_is_said_where_a_certificate_is_looked_at() {
    let nobody = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
    let address = nobody.local_addr().expect("its address");
    for (credential, is_insecure) in [("none", true), ("psk, secret: key", false)] {
        let platform =
            format!("kind: hono, devices: [ 'coaps://{address}' ], tls: {{ insecure: true }}");
        let text = scenario(&platform)
            .replace(
                "count: 20",
                &format!("count: 2\n    tenant: t1\n    credential: {{ kind: {credential} }}"),
            )
            .replace("timeout: 2s", "timeout: 500ms")
            .replace(", qos: 1", "");
        let folder = folder_with(&text);
        let said = muster(
            folder.path(),
            &["run", "scenario.yaml", "--quiet", "--out", "out"],
        );
        assert_eq!(said.code, 4, "{said:?}");
        let tls = &result(folder.path())["environment"]["tls"];
        assert_eq!(tls["insecure"], is_insecure, "{credential}");
        assert_eq!(tls["session_resumption"]["coaps"], false);
    }
}

/// A peer that says the same to everybody; its sockets live on.
fn peer_that_says(words: &'static [u8]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("its address");
    std::thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            use std::io::Write;
            let _ = (&socket).write_all(words);
            std::mem::forget(socket);
        }
    });
    address
}

/// A server of TLS at which devices speak plain MQTT, and one of the web that serves no WebSocket:
/// nobody there has refused a device.
#[test]
fn a_target_that_speaks_no_mqtt_is_no_target() {
    let alert: &[u8] = &[0x15, 3, 3, 0, 2, 2, 70];
    let not_found = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
    let unauthorized = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n";
    for (scheme, words, cause, code) in [
        ("mqtt", alert, "malformed", 4),
        ("ws", not_found, "upgrade-refused-404", 4),
        ("ws", unauthorized, "upgrade-refused-401", 1),
    ] {
        let address = peer_that_says(words);
        let text = scenario(&format!("kind: mqtt, devices: [ '{scheme}://{address}' ]"));
        let folder = folder_with(&text);
        let arguments = ["run", "scenario.yaml", "--quiet", "--out", "out"];
        let said = muster(folder.path(), &arguments);
        assert_eq!(said.code, code, "{cause}: {said:?}");
        assert!(said.out.contains(cause), "{cause}: {}", said.out);
    }
}

/// A peer that speaks no TLS: every try fails for a cause with a name, and there was no run.
#[test]
fn a_target_that_speaks_no_tls_is_no_target() {
    // MQTT's CONNACK, and then nothing.
    let address = peer_that_says(&[0x20, 2, 0, 0]);
    let text = scenario(&format!(
        "kind: mqtt, devices: [ 'mqtts://{address}' ], tls: {{ insecure: true }}"
    ));
    let folder = folder_with(&text);
    let said = muster(
        folder.path(),
        &["run", "scenario.yaml", "--quiet", "--out", "out"],
    );
    assert_eq!(said.code, 4, "{said:?}");
    let result = result(folder.path());
    let causes = result["links"]["connect_failures"]
        .as_object()
        .expect("a map");
    assert!(causes.contains_key("tls-malformed"), "{causes:?}");
    let events = result["events"].as_array().expect("a list");
    let told = events
        .iter()
        .filter(|event| event["kind"] == "handshake-failed");
    assert_eq!(told.count(), 1, "{events:?}");
}

#[test]
fn each_missing_certificate_is_named_with_its_device_and_the_place_of_the_key() {
    let key = "    credential: { kind: certificate, cert: 'certs/${id}.pem' }";
    let text = scenario("devices: [ 'mqtts://127.0.0.1:0' ]")
        .replace("count: 20", &format!("count: 22\n{key}"));
    let folder = folder_with(&text);
    let line = text
        .lines()
        .position(|line| line == key)
        .expect("it is there")
        + 1;
    let place = format!("; see `credential` of fleet `meters` (scenario.yaml:{line})");
    for command in ["run", "check"] {
        let said = muster(folder.path(), &[command, "scenario.yaml"]);
        assert_eq!(said.code, 2, "{said:?}");
        let listed = |at: u32| {
            let start = format!("device `meters-{at:08}`: read certs/meters-{at:08}.pem: ");
            let mut lines = said.err.lines();
            lines.any(|line| line.contains(&start) && line.ends_with(&place))
        };
        assert!((0..20).all(listed) && !listed(20), "{}", said.err);
        assert!(said.err.contains("\nand 2 more devices"), "{}", said.err);
    }
}

#[test]
fn one_missing_certificate_of_all_devices_is_named_once() {
    let text = scenario("devices: [ 'mqtts://127.0.0.1:0' ]").replace(
        "count: 20",
        "count: 20\n    credential: { kind: certificate, cert: all.pem }",
    );
    let folder = folder_with(&text);
    let said = muster(folder.path(), &["check", "scenario.yaml"]);
    assert_eq!(said.code, 2, "{said:?}");
    let wanted = "device `meters-00000000` and 19 more: read all.pem: ";
    assert_eq!(said.err.matches(wanted).count(), 1, "{}", said.err);
}
