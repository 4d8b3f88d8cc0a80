//! A scenario adds SLOs to the defaults, replaces one by naming it, or switches it off.

use std::path::Path;

use serde_json::Value;

use crate::program::{Gateway, Said, folder_with, json, muster};

const SCENARIO: &str = r#"
name: slos
platform: { kind: gateway, behaviour: { BEHAVIOUR } }
fleet:
  - name: meters
    count: 20
    streams: [ { name: readings, kind: telemetry, rate: 500/s, qos: 1, payload: { size: 64 } } ]
phases: { warm-up: 0s, measure: 2s, settle: { at-most: 10s, quiet: 300ms } }
slo: { SLO }
"#;

/// A latency that any machine keeps, as the only rule that a scenario names.
const LATENCY: &str = r#"response: { p99: "<= 8s" }"#;

struct Judged {
    said: Said,
    result: Value,
    junit: String,
    html: String,
}

fn judged(behaviour: &str, slo: &str) -> Judged {
    let scenario = SCENARIO.replace("BEHAVIOUR", behaviour).replace("SLO", slo);
    judged_by(&scenario)
}

fn judged_by(scenario: &str) -> Judged {
    let folder = folder_with(scenario);
    let said = muster(folder.path(), &["run", "scenario.yaml", "--out", "result"]);
    let report = |format: &str| shown(folder.path(), format);
    Judged {
        result: json(&folder.path().join("result/result.json")),
        junit: report("junit"),
        html: report("html"),
        said,
    }
}

fn shown(folder: &Path, format: &str) -> String {
    let said = muster(folder, &["report", "result", "--format", format]);
    assert!(!said.out.is_empty(), "{said:?}");
    said.out
}

/// Reasons for an invalid run that only say that other tests took the CPU.
const OF_TIME: [&str; 3] = ["own-delay", "own-delay-end-to-end", "consumer-starved"];

impl Judged {
    /// Checks the result. A run that is invalid for reasons of time alone has to say that it would be that.
    fn is(&self, wanted: &str) {
        let verdict = &self.result["verdict"];
        let rules = verdict["rules"].as_array().expect("rules");
        let mut open = rules
            .iter()
            .filter(|rule| rule["consequence"] == "invalidates");
        let (key, code) = match open.clone().next() {
            Some(_) => ("would_be", 3),
            None if wanted == "pass" => ("result", 0),
            None => ("result", 1),
        };
        let is_of_time = |rule: &Value| {
            rule["reason"]
                .as_str()
                .is_some_and(|it| OF_TIME.contains(&it))
        };
        assert!(open.all(is_of_time), "{:?}", self.said);
        assert_eq!(verdict[key], wanted, "{:?}", self.said);
        assert_eq!(self.said.code, code, "{:?}", self.said);
    }

    /// Returns true if rules decided, and not the machine.
    fn is_decided(&self) -> bool {
        self.said.code != 3
    }
}

/// The scopes and names of the failed rules, and of those that a busy machine leaves open.
fn failed(result: &Value) -> Vec<String> {
    let rules = result["verdict"]["rules"].as_array().expect("rules");
    let failed = rules.iter().filter(|rule| {
        let is_open = rule["consequence"] == "invalidates" && rule["kind"] != "validity";
        rule["consequence"] == "fails" || is_open
    });
    failed
        .map(|rule| {
            format!(
                "{} [{}]",
                rule["rule"].as_str().unwrap_or("-"),
                rule["scope"].as_str().unwrap_or("-")
            )
        })
        .collect()
}

#[test]
fn a_named_latency_leaves_the_defaults_on_refusals_and_losses() {
    for (behaviour, broken) in [
        ("reject: { code: 151, count: 500 }", "failure-ratio [run]"),
        ("lose-after-accept: 400", "loss [run]"),
    ] {
        let run = judged(behaviour, LATENCY);
        run.is("fail");
        assert_eq!(failed(&run.result), [broken]);
        if run.is_decided() {
            assert!(run.said.out.contains("FAIL  slos"), "{}", run.said.out);
            assert!(run.junit.contains("failures=\"1\""), "{}", run.junit);
            assert!(run.html.contains("<title>fail: slos</title>"));
        }
    }
}

#[test]
fn any_switches_a_default_off_and_every_report_says_so() {
    let run = judged("lose-after-accept: 400", "loss: any, disconnects: any");
    run.is("pass");
    let told = "not judged: loss, disconnects (switched off by `any`)";
    assert!(run.said.out.contains(told), "{}", run.said.out);
    assert!(run.html.contains(told), "the summary of the page");
    let off = run.result["verdict"]["switched_off"]
        .as_array()
        .expect("a list");
    let off: Vec<&str> = off.iter().filter_map(|off| off["rule"].as_str()).collect();
    assert_eq!(off, ["loss", "disconnects"]);
    let skipped = "<skipped message=\"not judged: switched off by `any`\"/>";
    assert!(run.junit.contains(skipped), "{}", run.junit);
}

#[test]
fn a_rule_of_a_stream_takes_it_out_of_the_default() {
    let streams = "{ name: readings, kind: telemetry, rate: 500/s, qos: 1, payload: { size: 64 } }";
    let scenario = SCENARIO
        .replace("BEHAVIOUR", "reject: { code: 151, count: 50 }")
        .replace("slo: { SLO }\n", "");
    let alone = "{ name: alone, rate: 100/s, slo: { failure-ratio: 100% } }";
    let idle = "{ name: more, rate: 100/s, slo: { failure-ratio: \"<= 100%\" } }";
    let both = scenario.replace(streams, &format!("{alone}, {idle}"));
    // No stream is left to the default.
    judged_by(&both).is("pass");
    let left = scenario.replace(streams, &format!("{alone}, {{ name: more, rate: 400/s }}"));
    let run = judged_by(&left);
    assert_eq!(failed(&run.result), ["failure-ratio [run]"]);
    let rules = run.result["verdict"]["rules"].as_array().expect("rules");
    let of_run = rules
        .iter()
        .find(|rule| rule["rule"] == "failure-ratio" && rule["scope"] == "run");
    let of_run = of_run.expect("the default");
    assert_eq!(of_run["except"][0], "meters/alone");
    let evidence = of_run["evidence"].as_str().expect("words");
    assert!(
        evidence.contains(" of 800 ("),
        "the other stream is left out: {evidence}"
    );
}

#[test]
fn copies_that_come_twice_are_a_warning_and_fail_where_duplicates_are_named() {
    let twice = "duplicate: 1000";
    let run = judged(twice, LATENCY);
    run.is("pass");
    let told = "warning: duplicates at the backend: 1,000 of 1,000 (100 %)";
    assert!(run.said.out.contains(told), "{}", run.said.out);
    let run = judged(twice, "duplicates: 0");
    run.is("fail");
    assert_eq!(failed(&run.result), ["duplicates [run]"]);
    let run = judged(twice, "duplicates: 100%");
    assert_eq!(run.said.code, 0, "{:?}", run.said);
}

/// QoS 0 to a peer that nobody looks behind.
const UNSEEN: &str = r#"
name: unseen
platform: { kind: mqtt, devices: [ "DEVICES" ]BACKEND }
fleet:
  - { name: meters, count: 10, streams: [ { name: readings, rate: 100/s, qos: QOS } ] }
phases: { warm-up: 0s, measure: 1s, settle: { at-most: 10s, quiet: 300ms } }
"#;

#[test]
fn a_pass_that_nothing_looks_behind_says_that_delivery_is_unknown_in_every_report() {
    let gateway = Gateway::start(&["--expect", "100"]);
    let scenario = |qos: &str, backend: &str| {
        UNSEEN
            .replace("DEVICES", &gateway.url)
            .replace("BACKEND", backend)
            .replace("QOS", qos)
    };
    for (qos, promise) in [("0", "nothing"), ("1", "enqueued")] {
        let run = judged_by(&scenario(qos, ""));
        assert_eq!(run.said.code, 0, "{:?}", run.said);
        let told = "delivery unknown: no backend, counter or read-back looks behind acknowledgements \
                    that promise";
        let told = format!("{told} {promise} [meters/readings]");
        assert!(run.said.unbroken().contains(&told), "{}", run.said.out);
        assert!(
            run.junit.contains(&format!("value=\"{told}\"")),
            "{}",
            run.junit
        );
        assert!(
            run.html.contains("delivery unknown: "),
            "the summary of the page"
        );
        let unknown = &run.result["verdict"]["delivery_unknown"];
        assert_eq!(unknown[0]["promise"], promise, "{unknown}");
    }
    let backend = format!(
        ", backend: {{ url: \"{}\", filter: \"muster/#\" }}",
        gateway.url
    );
    let run = judged_by(&scenario("1", &backend));
    assert_eq!(run.said.code, 0, "{:?}", run.said);
    assert!(
        !run.said.out.contains("delivery unknown"),
        "{}",
        run.said.out
    );
}
