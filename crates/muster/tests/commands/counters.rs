//! The platform's own counters, beside the ledger.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc::{Receiver, channel};
use std::thread::spawn;

use serde_json::{Value, json};

use crate::program::{Gateway, Said, folder_with, json as read_json, muster, warnings};

const SCENARIO: &str = r#"
name: counted
platform: { kind: hono, devices: [ 'DEVICES' ] }
monitor: [ MONITOR ]
fleet:
  - name: f
    count: 5
    tenant: t1
    streams: [ { name: a, rate: 20/s, timeout: 5s, payload: { size: 64 } } ]
phases: { warm-up: 0s, measure: 2s, settle: { at-most: 8s, quiet: 300ms } }
slo: { failure-ratio: 0, connected: 100% }
"#;

/// Answers one question after the other with these counts of forwarded telemetry; tells of each.
fn adapter(counts: &'static [u64]) -> (SocketAddr, Receiver<u64>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("its address");
    let (tell, told) = channel();
    spawn(move || {
        for count in counts {
            let (mut client, _) = listener.accept().expect("somebody asks");
            let _ = client.read(&mut [0; 4096]);
            let page = format!(
                "# TYPE x summary\nhono_telemetry_processing_duration_seconds_count{{type=\"telemetry\",\
                 tenant=\"t1\",status=\"forwarded\"}} {count}.0\n"
            );
            let length = page.len();
            let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{page}");
            client.write_all(answer.as_bytes()).expect("it is heard");
            let _ = tell.send(*count);
        }
    });
    (address, told)
}

/// A run at a gateway whose counters are those of others.
fn run(monitor: &str) -> (Said, Value) {
    let mut gateway = Gateway::start(&["--dialect", "hono", "--coap", "127.0.0.1:0"]);
    let scenario = SCENARIO.replace("DEVICES", &gateway.next_url());
    let folder = folder_with(&scenario.replace("MONITOR", monitor));
    let arguments = ["run", "scenario.yaml", "--quiet", "--out", "out"];
    let said = muster(folder.path(), &arguments);
    let result = read_json(&folder.path().join("out/result.json"));
    // The same is told again from what the run left behind.
    std::fs::remove_file(folder.path().join("out/result.json")).expect("it is there");
    let again = muster(folder.path(), &["report", "out", "--format", "json"]);
    let again: Value = serde_json::from_str(&again.out).expect("a result");
    assert_eq!(again["target"], result["target"]);
    assert_eq!(again["verdict"], result["verdict"]);
    (said, result)
}

fn entry(name: &str, address: SocketAddr) -> String {
    format!("{{ name: {name}, counters: 'http://{address}/prometheus' }}")
}

fn forwarded(result: &Value) -> Value {
    result["target"]["counters"][0].clone()
}

#[test]
fn two_instances_that_say_the_same_as_the_ledger_make_a_line() {
    let ((first, told), (second, _)) = (adapter(&[1_000, 1_030]), adapter(&[5, 15]));
    let (said, result) = run(&format!("{}, {}", entry("a", first), entry("b", second)));
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(told.iter().collect::<Vec<_>>(), [1_000, 1_030]);
    let row = json!({ "platform": "hono", "type": "telemetry", "status": "forwarded",
        "grown": 40, "ledger": 40, "unanswered": 0, "agrees": true });
    assert_eq!(forwarded(&result), row);
    assert!(warnings(&result).is_empty(), "{result}");
    let line = "hono says  40 telemetry forwarded, as the ledger\n";
    assert!(said.out.contains(line), "{}", said.out);
}

#[test]
fn another_number_is_a_warning_and_no_failure() {
    let (address, _) = adapter(&[1_000, 1_039]);
    let (said, result) = run(&entry("adapter", address));
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(forwarded(&result)["agrees"], false);
    assert_eq!(result["verdict"]["warnings"][0]["kind"], "counters-differ");
    let line = "warning: hono says 39 telemetry forwarded, the ledger 40: ";
    assert!(said.out.contains(line), "{}", said.out);
}

#[test]
fn counters_that_fell_or_cannot_be_read_are_not_known_and_no_failure() {
    let (address, _) = adapter(&[1_000, 40]);
    let nobody = TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr());
    let nobody = nobody.expect("a port that was free a moment ago");
    for (address, why) in [(address, "began anew"), (nobody, "refused")] {
        let (said, result) = run(&entry("adapter", address));
        assert_eq!(said.code, 0, "{said:?}");
        assert_eq!(forwarded(&result)["grown"], Value::Null);
        let warnings = warnings(&result);
        let kinds: Vec<&Value> = warnings.iter().map(|it| &it["kind"]).collect();
        assert_eq!(kinds, ["counters-unread"]);
        let detail = warnings[0]["detail"].as_str().expect("a text");
        assert!(
            detail.contains("adapter: ") && detail.contains(why),
            "{detail}"
        );
        let events = result["events"].as_array().expect("events");
        assert!(events.iter().any(|event| event["detail"] == detail));
    }
}
