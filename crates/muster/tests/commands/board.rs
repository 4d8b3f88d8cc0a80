//! A ThingsBoard whose rule chain a run swaps for the time of its load.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::program::{
    Gateway, Said, folder_with, json as read_json, muster, program, signal, warnings,
};

const LOGIN: &str = "/api/auth/login";
const SCENARIO: &str = r#"
name: counted
platform: { kind: thingsboard, devices: [ 'mqtt://127.0.0.1:PORT' ] }
provision: { url: 'REST', user: tenant@thingsboard.org, password: tenant, remove: true, count: true, rate: 1000/s }
fleet:
  - name: meters
    count: 20
    streams: [ { name: telemetry, rate: 100/s, qos: 1 } ]
hooks: [ { name: reset, when: after, command: 'true' } ]
phases: { warm-up: 0s, measure: MEASURE, settle: { at-most: 30s, quiet: 300ms } }
slo: { failure-ratio: 0 }
"#;

/// A gateway as ThingsBoard, and a scenario that counts in its rule engine.
struct Board {
    // Ends with the value.
    _gateway: Gateway,
    rest: String,
    folder: tempfile::TempDir,
}

impl Board {
    fn start(measure: &str) -> Self {
        Self::behaving("", measure)
    }

    /// A gateway with a misbehaviour, whose own counters are read.
    fn behaving(behaviour: &str, measure: &str) -> Self {
        let options = "--dialect thingsboard --only-provisioned --rest 127.0.0.1:0 --expect 200";
        let mut options: Vec<&str> = options.split(' ').collect();
        if !behaviour.is_empty() {
            options.extend(["--behaviour", behaviour]);
        }
        let mut gateway = Gateway::start(&options);
        let rest = gateway.next_url();
        let rest = rest.trim_end_matches("/api").to_owned();
        let (_, port) = gateway.url.rsplit_once(':').expect("a port");
        let scenario = SCENARIO.replace("PORT", port).replace("REST", &rest);
        let folder = folder_with(&scenario.replace("MEASURE", measure));
        Self {
            _gateway: gateway,
            rest,
            folder,
        }
    }

    fn muster(&self, arguments: &[&str]) -> Said {
        muster(self.folder.path(), arguments)
    }

    /// One call, a POST with a body; the login itself has no token.
    fn call(&self, path: &str, body: Option<Value>) -> Value {
        let url = format!("{}{path}", self.rest);
        let token = match path {
            LOGIN => String::new(),
            _ => self.bearer(),
        };
        let answer = match body {
            Some(body) => ureq::post(url)
                .header("content-type", "application/json")
                .header("x-authorization", token)
                .send(body.to_string()),
            None => ureq::get(url).header("x-authorization", token).call(),
        };
        let text = answer.expect("an answer").body_mut().read_to_string();
        serde_json::from_str(&text.expect("text")).expect("JSON")
    }

    fn bearer(&self) -> String {
        let login = json!({ "username": "tenant@thingsboard.org", "password": "tenant" });
        let login = self.call(LOGIN, Some(login));
        format!("Bearer {}", login["token"].as_str().expect("a token"))
    }

    /// A run whose load has begun.
    fn loaded(&self) -> Child {
        let mut child = program(
            self.folder.path(),
            &["run", "scenario.yaml", "--out", "out"],
        )
        .stderr(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
        let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let is_loading = lines.any(|line| line.expect("text").contains("measure"));
        assert!(is_loading, "the run ended");
        // It must not fail for nobody reading.
        std::thread::spawn(move || lines.for_each(drop));
        child
    }

    /// The rule chains by name, and whether each is root.
    fn chains(&self) -> Vec<(String, bool)> {
        let page = self.call("/api/ruleChains?pageSize=100&page=0", None);
        let chains = page["data"].as_array().expect("a list").iter();
        chains
            .map(|chain| {
                let name = chain["name"].as_str().expect("a name").to_owned();
                (name, chain["root"] == json!(true))
            })
            .collect()
    }
}

#[test]
fn a_run_counts_in_the_rule_engine_and_puts_the_root_back() {
    let board = Board::start("2s");
    let before = board.chains();
    let said = board.muster(&["run", "scenario.yaml", "--quiet", "--out", "out"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(board.chains(), before);
    let result = read_json(&board.folder.path().join("out/result.json"));
    let accepted = result["ledger"]["uplink"]["accepted"].as_u64();
    let accepted = accepted.expect("a count");
    assert_eq!(accepted, 200);
    let events = result["events"].as_array().expect("a list");
    let detail = |kind: &str| {
        let event = events.iter().find(|event| event["kind"] == kind);
        event.unwrap_or_else(|| panic!("no {kind}: {events:?}"))["detail"].to_string()
    };
    let counted = &result["target"]["counted"];
    assert_eq!([&counted["messages"], &counted["accepted"]], [200, 200]);
    assert!(counted["rate"].as_f64() > Some(0.0), "{counted}");
    assert_eq!(counted["nodes"][0]["messages"], 200);
    let table = board.muster(&["report", "out", "--format", "thingsboard"]);
    assert!(
        table.out.contains("Node [") && table.out.contains("\nTotal AVG is "),
        "{table:?}"
    );
    assert!(
        table
            .out
            .contains("Counted 200, accepted 200, without an answer 0, difference 0."),
        "{table:?}"
    );
    assert!(detail("rule-chain-restored").contains("root rule chain: 1 put back"));
    assert!(detail("deprovisioned").contains("20 removed"));
    let ended = events.iter().filter_map(|event| event["t_s"].as_f64());
    let ended = ended.fold(0.0, f64::max);
    let reset = result["hooks"][0]["t_s"].as_f64();
    assert!(
        reset >= Some(ended),
        "a hook that resets comes last: {reset:?}, {ended}"
    );
    let left = board.folder.path().join("results/counted-provision");
    assert!(!left.exists(), "the record of the rule chain is left");
}

#[test]
fn counters_of_the_server_say_what_was_accepted_and_not_stored() {
    let board = Board::behaving("lose-stored: 53", "2s");
    let monitor = format!(
        "monitor=[{{ name: board, counters: '{}/actuator/prometheus' }}]",
        board.rest
    );
    let said = board.muster(&[
        "run",
        "scenario.yaml",
        "--quiet",
        "--out",
        "out",
        "--set",
        &monitor,
        "--set",
        "phases.settle.quiet=2s",
    ]);
    assert_eq!(said.code, 0, "{said:?}");
    let result = read_json(&board.folder.path().join("out/result.json"));
    assert_eq!(result["target"]["counted"]["difference"], -53);
    let counters = result["target"]["counters"].as_array().expect("a list");
    let row = |kind: &str, status: &str| {
        let mut rows = counters.iter();
        let found = rows.find(|of| of["type"] == kind && of["status"] == status);
        let found = found.unwrap_or_else(|| panic!("no {kind} {status}: {counters:?}"));
        [&found["grown"], &found["ledger"], &found["agrees"]].map(Value::clone)
    };
    let successful = "successfulMsgs";
    assert_eq!(
        row("ruleEngine_producer", successful),
        [json!(200), json!(200), Value::Null]
    );
    assert_eq!(
        row("ruleEngine queues", successful),
        [json!(147), json!(200), json!(false)]
    );
    assert_eq!(
        row("ruleEngine queues", "failedMsgs"),
        [json!(53), Value::Null, json!(false)]
    );
    let details: Vec<String> = warnings(&result)
        .iter()
        .filter(|warning| warning["kind"] == "counters-differ")
        .map(|warning| warning["detail"].to_string())
        .collect();
    let lost = "thingsboard says 53 ruleEngine queues failedMsgs, perhaps lost behind";
    assert!(
        details.iter().any(|detail| detail.contains(lost)),
        "{details:?}"
    );
    let resources = result["monitor"].as_array().expect("a list").iter();
    let average = |name: &str| {
        let mut resources = resources.clone();
        let of = resources
            .find(|of| of["resource"] == name)
            .expect("a resource");
        of["average"].as_f64().expect("samples")
    };
    assert!(average("accepted") > 0.0);
    assert!(average("queue-lag") < 200.0);
}

#[test]
fn a_killed_run_leaves_a_record_by_which_the_root_is_put_back() {
    let board = Board::start("60s");
    let before = board.chains();
    let mut child = board.loaded();
    let during = board.chains();
    assert_eq!(during.len(), before.len() + 1, "{during:?}");
    let is_ours = |(name, root): &(String, bool)| *root && name.starts_with("Muster count ");
    assert!(during.iter().any(is_ours), "{during:?}");
    child.kill().expect("it is there");
    child.wait().expect("it ends");

    // Another run with a record of its own makes no second copy.
    let other = ["run", "scenario.yaml", "--quiet", "--set", "name=other"];
    let said = board.muster(&other);
    assert_eq!(said.code, 4, "{said:?}");
    assert!(
        said.unbroken().contains("of another run is there"),
        "{said:?}"
    );
    assert_eq!(board.chains(), during);

    let said = board.muster(&["provision", "scenario.yaml", "restore"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.out.contains("root rule chain: 1 put back"), "{said:?}");
    assert_eq!(board.chains(), before);
    let said = board.muster(&["provision", "scenario.yaml", "remove", "--out", "out"]);
    assert!(said.out.contains("device: 20 removed"), "{said:?}");
}

#[test]
fn a_root_that_somebody_else_has_made_stays() {
    let board = Board::start("60s");
    let mut before = board.chains();
    let mut child = board.loaded();
    child.kill().expect("it is there");
    child.wait().expect("it ends");
    let theirs = json!({ "name": "Theirs", "type": "CORE" });
    let theirs = board.call("/api/ruleChain", Some(theirs));
    let id = theirs["id"]["id"].as_str().expect("an id");
    board.call(&format!("/api/ruleChain/{id}/root"), Some(json!({})));

    let said = board.muster(&["provision", "scenario.yaml", "restore"]);
    let words = said.unbroken();
    assert!(words.contains("somebody else made it root"), "{said:?}");
    before.iter_mut().for_each(|(_, root)| *root = false);
    before.push(("Theirs".to_owned(), true));
    let mut left = board.chains();
    left.sort_unstable();
    before.sort_unstable();
    assert_eq!(left, before);
}

#[test]
fn an_interrupted_run_puts_the_root_back_itself() {
    let board = Board::start("60s");
    let before = board.chains();
    let mut child = board.loaded();
    assert_ne!(board.chains(), before);
    signal(&child, Signal::INT);
    child.wait().expect("it ends");
    assert_eq!(board.chains(), before);
}
