//! `muster report --format hono-simulator`: the published form, whose figures are the ledger's.

use serde_json::{Map, Value, json};

use crate::program::{folder_with, json as read, muster};

/// A reading without an answer times out, an event without one is open when the run stops. While an
/// answer is missing, or a command, what is due is not sent.
const SCENARIO: &str = r#"
name: published
seed: 7
platform:
  kind: gateway
  dialect: hono
  devices: [ "coap://127.0.0.1:0" ]
  PLATFORM
  backend: { commands: { mode: two-way, to: waiting } }
fleet:
  - name: meters
    count: 20
    tenant: t1
    obey-retry-after: false
    client: { coap: { ack-timeout: 5s, nstart: 8 } }
    streams:
      - name: readings
        rate: 100/s
        timeout: 700ms
        payload: { size: 40 }
        loop: { in-flight: 1, overflow: shed }
      - { name: alarms, kind: event, rate: 60/s, timeout: 60s, payload: { size: 40 } }
      - { name: asks, kind: command-query, every: 400ms, ttd: 1s, payload: { size: 40 } }
      - { kind: command }
phases: { warm-up: 500ms, measure: 3s, settle: { at-most: 2s, quiet: 500ms } }
"#;

/// The form as the command writes it, and the ledgers by stream.
fn run(platform: &str) -> (Value, Value) {
    let folder = folder_with(&SCENARIO.replace("PLATFORM", platform));
    let ran = muster(
        folder.path(),
        &["run", "scenario.yaml", "--quiet", "--out", "out"],
    );
    let result = read(&folder.path().join("out/result.json"));
    assert_eq!(result["ledger"]["uplink"]["residue"], 0, "{ran:?}");
    assert_eq!(result["ledger"]["command"]["residue"], 0, "{ran:?}");
    let arguments = ["report", "out", "--format", "hono-simulator"];
    let said = muster(folder.path(), &arguments);
    assert_eq!(said.code, 0, "{said:?}");
    let form: Value = serde_json::from_str(&said.out).expect("the form is JSON");
    assert_eq!(form, result["published"]["hono"]);
    let connects = &form["numClientSuccessfulConnects"];
    assert_eq!(connects, &result["links"]["connected"]);
    (form, result["ledger"]["by_stream"].clone())
}

fn count(value: &Value) -> u64 {
    value
        .as_u64()
        .unwrap_or_else(|| panic!("{value} is no count"))
}

/// One class of the form, under the names that the ledger has for its terms.
fn class(form: &Value, published: &str, [times, errors, class]: [&str; 3]) -> Value {
    json!({
        "sent": form[published],
        "ok": form[times]["all"],
        "errors": form[errors],
        "in_flight": form["inFlightAtStop"][class],
        "not_issued": form["notIssued"][class],
    })
}

/// Errors by code, and those by name that befell.
fn errors(by_code: &Value, named: &[(&str, u64)]) -> Value {
    let mut all: Map<String, Value> = by_code.as_object().expect("codes").clone();
    let befell = named.iter().filter(|(_, times)| *times > 0);
    all.extend(befell.map(|(name, times)| ((*name).to_owned(), json!(times))));
    Value::Object(all)
}

/// The same of a stream of messages, from its ledger.
fn messages(stream: &Value) -> Value {
    let ledger = &stream["ledger"];
    let silent = count(&ledger["timed_out"]) + count(&ledger["broken"]);
    json!({
        "sent": ledger["sent"],
        "ok": ledger["accepted"],
        "errors": errors(&ledger["rejected_by_code"], &[("unknownCoapError", silent)]),
        "in_flight": ledger["in_flight"],
        "not_issued": ledger["shed"],
    })
}

fn queries(stream: &Value) -> Value {
    let ledger = &stream["command"];
    let silent = count(&ledger["query_timed_out"]) + count(&ledger["query_broken"]);
    let named = [
        ("missingCommand", count(&ledger["no_command"])),
        ("unknownCoapError", silent),
    ];
    json!({
        "sent": ledger["queries"],
        "ok": ledger["received_by_query"],
        "errors": errors(&ledger["query_rejected_by_code"], &named),
        "in_flight": ledger["query_in_flight"],
        "not_issued": stream["ledger"]["shed"],
    })
}

/// The published form counts replies that were taken, and not those that were sent.
fn replies(stream: &Value) -> Value {
    let ledger = &stream["command"];
    let silent = count(&ledger["answer_timed_out"]) + count(&ledger["answer_broken"]);
    json!({
        "sent": ledger["answered"],
        "ok": ledger["answered"],
        "errors": errors(&ledger["answer_rejected_by_code"], &[("unknownCoapError", silent)]),
        "in_flight": ledger["answer_in_flight"],
        "not_issued": ledger["answer_shed"],
    })
}

/// The four classes of the form, each of which is the ledger's.
fn classes(platform: &str) -> [Value; 4] {
    let (form, streams) = run(platform);
    let telemetry = [
        "coapRttSendTelemetry",
        "coapErrorsSendTelemetry",
        "telemetry",
    ];
    let event = ["coapRttSendEvent", "coapErrorsSendEvent", "event"];
    let request = [
        "coapRttSendCommandRequest",
        "coapErrorsSendCommandRequest",
        "commandRequest",
    ];
    let response = [
        "coapRttSendCommandResponse",
        "coapErrorsSendCommandResponse",
        "commandResponse",
    ];
    let told = [
        class(&form, "publishedTelemetryCount", telemetry),
        class(&form, "publishedEventsCount", event),
        class(&form, "publishedCommandQueries", request),
        class(&form, "answeredCommandsCount", response),
    ];
    assert_eq!(told[0], messages(&streams["meters/readings"]));
    assert_eq!(told[1], messages(&streams["meters/alarms"]));
    assert_eq!(told[2], queries(&streams["meters/asks"]));
    assert_eq!(told[3], replies(&streams["meters/command"]));
    let received = &streams["meters/asks"]["command"]["received_by_query"];
    assert_eq!(&form["receivedCommands"], received);
    told
}

#[test]
fn each_class_of_the_form_has_the_figures_of_its_own_ledger() {
    let told =
        classes("behaviour: { reject: { code: 503, share: 15% }, ignore: 60, lose-commands: 5 }");
    let [telemetry, event, request, response] = &told;
    for (of, terms) in [
        (telemetry, &["5.03", "unknownCoapError"][..]),
        (event, &["5.03"]),
        (request, &["5.03", "missingCommand"]),
    ] {
        let errors = of["errors"].as_object().expect("errors");
        let names: Vec<&String> = errors.keys().collect();
        assert_eq!(names, *terms, "{told:?}");
    }
    for some in [
        &telemetry["not_issued"],
        &event["in_flight"],
        &request["in_flight"],
        &request["not_issued"],
        &response["ok"],
    ] {
        assert!(count(some) > 0, "{told:?}");
    }
    // None could stand in the place of another.
    for term in ["sent", "errors"] {
        for (at, of) in told.iter().enumerate() {
            let others = told[at + 1..].iter();
            assert!(
                others.clone().all(|other| other[term] != of[term]),
                "{term}: {told:?}"
            );
        }
    }
}

/// Messages are taken, and replies are longer than what is.
#[test]
fn replies_that_were_refused_stand_beside_the_form() {
    let [.., request, response] = classes("max-payload: 50");
    assert_eq!(request["errors"], json!({}));
    assert_eq!(response["errors"], json!({ "4.13": request["ok"] }));
    assert_eq!(response["ok"], 0);
}
