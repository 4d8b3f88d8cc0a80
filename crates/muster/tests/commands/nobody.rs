//! Devices over UDP whose address nobody listens at.

use std::net::UdpSocket;

use serde_json::Value;

use crate::program::{folder_with, json, muster};

/// Output and result of `muster run`, and its code; `scheme` and `fleet` are the devices'.
fn run(scheme: &str, fleet: &str) -> (String, Value, i32) {
    let port = UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
    let at = port.expect("a port that was free a moment ago");
    let folder = folder_with(&format!(
        "name: nobody\nplatform: {{ kind: hono, devices: [ '{scheme}://{at}' ] }}\n\
         fleet: [ {{ tenant: t1, count: 5, {fleet} }} ]\n\
         phases: {{ warm-up: 500ms, measure: 2s, settle: {{ at-most: 1s, quiet: 500ms }} }}\n"
    ));
    let arguments = ["run", "scenario.yaml", "--quiet", "--out", "out"];
    let said = muster(folder.path(), &arguments);
    let result = json(&folder.path().join("out/result.json"));
    (said.out, result, said.code)
}

fn has_failed(result: &Value, name: &str) -> bool {
    let rules = result["verdict"]["rules"].as_array().expect("rules");
    let mut of_name = rules.iter().filter(|rule| rule["rule"] == name);
    of_name.any(|rule| rule["result"] == "fail")
}

#[test]
fn whatever_the_loop_it_is_no_pass_and_the_report_says_that_nobody_listens() {
    let loops = [
        ("loop: closed", 3),
        ("loop: open", 1),
        ("loop: { in-flight: 1, overflow: shed }", 1),
        ("confirmable: false", 1),
    ];
    for (of, code) in loops {
        let fleet = format!("streams: [ {{ rate: 20/s, {of}, payload: {{ size: 64 }} }} ]");
        let (out, result, ended) = run("coap", &fleet);
        assert_eq!(ended, code, "{of}: {out}");
        assert!(has_failed(&result, "reachable"), "{of}: {out}");
        // The width of counts decides where lines break.
        let words: Vec<&str> = out.split_whitespace().collect();
        assert!(words.join(" ").contains("nobody listens"), "{of}: {out}");
        assert!(result["links"]["icmp_errors"].as_u64() > Some(0), "{of}");
        let events = result["events"].as_array().expect("events");
        let mut told = events.iter().filter(|event| event["kind"] == "unreachable");
        let detail = told.next().and_then(|event| event["detail"].as_str());
        assert!(
            detail.is_some_and(|it| it.contains("Connection refused")),
            "{of}"
        );
    }
}

#[test]
fn flights_of_a_handshake_that_are_said_again_are_counted() {
    let psk = "credential: { kind: psk, user: '${id}', secret: key }, connect: { timeout: 2500ms }, \
               streams: [ { rate: 20/s, payload: { size: 64 } } ]";
    let (out, result, code) = run("coaps", psk);
    assert_eq!(code, 4, "{out}");
    // After a second, of each device.
    let again = result["links"]["dtls_retransmitted"].as_u64();
    assert!(again >= Some(5), "{out}");
    assert!(result["links"]["icmp_errors"].as_u64() > Some(0));
    let failed = result["events"].as_array().expect("events");
    let failed = failed.iter().find(|it| it["kind"] == "handshake-failed");
    let said = failed.and_then(|it| it["detail"].as_str());
    let asks = |said: &str| said.contains("Is the tenant?") && said.contains("`muster provision`");
    assert!(said.is_some_and(asks), "{said:?}");
}
