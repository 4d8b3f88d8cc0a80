//! Servers that watch a run.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::{Child, ChildStdout, Stdio};
use std::thread::{JoinHandle, spawn};

use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

use crate::program::{folder_with, json, muster, program, signal, warnings};

/// Much goes wrong, and for seconds before the end nothing happens any more.
const SCENARIO: &str = "
name: watched
platform:
  kind: gateway
  behaviour: { reject: { code: 151, count: 7 }, drop: 5, lose-after-accept: 3, duplicate: 4, corrupt: 2 }
fleet:
  - name: meters
    count: 20
    streams:
      - { name: readings, rate: 100/s, qos: 1, timeout: 500ms, payload: { size: 100 } }
      - { name: alarms, rate: 30/s, qos: 0, payload: { size: 64 } }
phases: { warm-up: 1s, measure: 3s, settle: { at-most: 20s, quiet: 4s } }
";

/// Commands with replies, of which some are lost, and devices that subscribe to others.
const DOWNLINK: &str = "
name: watched-downlink
platform:
  kind: gateway
  behaviour: { lose-commands: 3 }
  backend: { commands: { rate: 50/s, mode: two-way } }
fleet:
  - name: pumps
    count: 20
    streams:
      - { name: readings, rate: 50/s, qos: 1, topic: \"muster/news/${index}\" }
      - { name: orders, kind: command }
  - name: boards
    count: 3
    streams: [ { name: heard, kind: receive, filter: \"muster/news/#\", qos: 1 } ]
phases: { warm-up: 1s, measure: 3s, settle: { at-most: 20s, quiet: 4s } }
";

/// A run that serves its page and prints a line each second.
struct Run {
    folder: TempDir,
    child: Child,
    out: BufReader<ChildStdout>,
    url: String,
}

impl Run {
    fn start(scenario: &str, arguments: &[&str]) -> Self {
        let folder = folder_with(scenario);
        let run = [
            "run",
            "scenario.yaml",
            "--out",
            "out",
            "--every",
            "1s",
            "--metrics",
            "0",
        ];
        let mut child = program(folder.path(), &[&run[..], arguments].concat())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut out = BufReader::new(child.stdout.take().expect("its output is piped"));
        let mut line = String::new();
        out.read_line(&mut line).expect("it says where");
        let url = line
            .trim()
            .strip_prefix("metrics: ")
            .expect("its address")
            .to_owned();
        Self {
            folder,
            child,
            out,
            url,
        }
    }

    /// The page as it was with the last line of the run, before the result was there.
    fn last_page(&mut self) -> Page {
        let mut page = Page::default();
        let mut line = String::new();
        while !line.starts_with("report: ") {
            if line.contains("| SLOs ") {
                page = self.page();
            }
            line.clear();
            let read = self.out.read_line(&mut line).expect("it goes on");
            assert!(read > 0, "it ends before its result");
        }
        page
    }

    fn page(&self) -> Page {
        let mut answer = ureq::get(&self.url).call().expect("it is served");
        let text = answer.body_mut().read_to_string().expect("a page");
        let samples = text.lines().filter(|line| !line.starts_with('#'));
        let samples = samples.map(|line| line.rsplit_once(' ').expect("a value"));
        let samples =
            samples.map(|(name, value)| (name.to_owned(), value.parse().expect("a number")));
        Page(samples.collect())
    }

    fn result(&self) -> Value {
        json(&self.folder.path().join("out/result.json"))
    }

    fn end(mut self) -> Option<i32> {
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).expect("it ends");
        self.child.wait().expect("it ends").code()
    }
}

/// Values of a page by name and labels.
#[derive(Debug, Default)]
struct Page(BTreeMap<String, f64>);

impl Page {
    fn of_kind(&self, ending: &str) -> BTreeMap<&str, f64> {
        let all = self.0.iter().map(|(name, value)| (name.as_str(), *value));
        let base = |name: &str| {
            name.split('{')
                .next()
                .is_some_and(|base| base.ends_with(ending))
        };
        all.filter(|(name, _)| base(name)).collect()
    }

    fn value(&self, name: &str) -> f64 {
        *self
            .0
            .get(name)
            .unwrap_or_else(|| panic!("no {name} in {self:?}"))
    }
}

/// The final page of a run whose counters were those of the result already while it went on.
fn final_page(run: &mut Run) -> Page {
    let (before, after) = (run.last_page(), run.page());
    assert_eq!(after.value("muster_run_finished"), 1.0);
    assert!(!before.0.contains_key("muster_run_finished"), "{before:?}");
    let (before, at_end) = (before.of_kind("_total"), after.of_kind("_total"));
    for (name, value) in &at_end {
        // Due messages are counted at the end, when links are closed too.
        let is_later = ["muster_messages_scheduled", "muster_links_ended"].iter();
        if !is_later.clone().any(|later| name.starts_with(later)) {
            let counted = before.get(name).copied().unwrap_or(0.0);
            assert_eq!(counted, *value, "{name}");
        }
    }
    assert!(before.len() > 30, "{before:?}");
    assert!(
        before.keys().all(|name| at_end.contains_key(name)),
        "{before:?} {at_end:?}"
    );
    after
}

/// Exit code of a result, which a busy machine may make invalid.
fn code(result: &Value) -> i32 {
    match result["verdict"]["result"].as_str() {
        Some("pass") => 0,
        Some("fail") => 1,
        _ => 3,
    }
}

#[test]
fn counters_on_the_way_are_those_of_the_result_in_the_end() {
    let mut run = Run::start(SCENARIO, &["--metrics-wait", "60s"]);
    let after = final_page(&mut run);
    let result = run.result();
    let ledger = &result["ledger"]["by_stream"]["meters/readings"]["ledger"];
    let of = "fleet=\"meters\",stream=\"readings\"";
    let count = |key: &str| ledger[key].as_f64().expect("a count");
    assert_eq!(
        after.value(&format!("muster_messages_sent_total{{{of}}}")),
        count("sent")
    );
    assert_eq!(
        after.value(&format!("muster_messages_failed_total{{{of}}}")),
        count("failed")
    );
    let rejected = format!("muster_messages_rejected_total{{{of},code=\"0x97\"}}");
    assert_eq!(after.value(&rejected), count("rejected"));
    let p50 =
        result["ledger"]["by_stream"]["meters/readings"]["latency"]["response"]["p50_us"].as_f64();
    let shown = after.value(&format!(
        "muster_latency_response_seconds{{{of},quantile=\"0.5\"}}"
    ));
    assert_eq!(Some(shown), p50.map(|us| us / 1e6));
    let verdict = result["verdict"]["result"].as_str().expect("a word");
    assert_eq!(
        after.value(&format!("muster_run_verdict{{result=\"{verdict}\"}}")),
        1.0
    );
    // The final page was read, so that nothing keeps the program.
    assert_eq!(run.end(), Some(code(&result)));
}

#[test]
fn commands_and_receptions_have_their_counters() {
    let mut run = Run::start(DOWNLINK, &["--metrics-wait", "60s"]);
    let after = final_page(&mut run);
    let result = run.result();
    let orders = &result["ledger"]["by_stream"]["pumps/orders"]["command"];
    let of = "fleet=\"pumps\",stream=\"orders\"";
    let count = |key: &str| orders[key].as_f64().expect("a count");
    let delivered = format!("muster_commands_deliveries_total{{{of},delivery=\"delivered\"}}");
    assert_eq!(after.value(&delivered), count("delivered"));
    assert!(count("delivered") > 100.0, "{orders}");
    let received = after.value(&format!("muster_commands_received_total{{{of}}}"));
    assert_eq!(received, count("delivered") - 3.0);
    assert_eq!(
        after.value(&format!("muster_commands_not_received{{{of}}}")),
        3.0
    );
    let loops = after.value(&format!(
        "muster_latency_command_loop_seconds_count{{{of}}}"
    ));
    assert!(loops > 100.0, "{after:?}");
    let heard = "fleet=\"boards\",stream=\"heard\"";
    let arrived = result["ledger"]["receive"]["arrived"].as_f64();
    let shown = after.value(&format!("muster_receive_arrived_total{{{heard}}}"));
    assert_eq!(Some(shown), arrived);
    assert!(shown > 300.0, "{after:?}");
    assert_eq!(run.end(), Some(code(&result)));
}

#[test]
fn a_signal_ends_the_wait_for_a_scrape() {
    let mut run = Run::start(SCENARIO, &["--metrics-wait", "1h"]);
    run.last_page();
    signal(&run.child, Signal::INT);
    let verdict = code(&run.result());
    assert_eq!(run.end(), Some(verdict), "the verdict stands");
}

#[test]
fn a_taken_port_ends_the_run_before_it_begins() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let at = taken.local_addr().expect("its address").to_string();
    let folder = folder_with(SCENARIO);
    let said = muster(
        folder.path(),
        &["run", "scenario.yaml", "--out", "out", "--metrics", &at],
    );
    assert_eq!(said.code, 2, "{said:?}");
    assert!(
        said.err.contains(&format!("--metrics {at}: ")),
        "{}",
        said.err
    );
    assert!(said.err.contains("name a free port"), "{}", said.err);
    assert!(!folder.path().join("out").exists());
}

/// A server that refuses everything with this status, and the requests that it read.
fn refusing(status: &'static str, calls: usize) -> (String, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("its address"));
    let serving = spawn(move || {
        let one = |_| {
            let (client, _) = listener.accept().expect("somebody calls");
            let mut client = BufReader::new(client);
            let (mut head, mut length) = (String::new(), 0);
            while !head.ends_with("\r\n\r\n") {
                let start = head.len();
                client.read_line(&mut head).expect("a head");
                let line = head[start..].to_ascii_lowercase();
                if let Some(value) = line.strip_prefix("content-length: ") {
                    length = value.trim().parse().expect("a length");
                }
            }
            let mut body = vec![0; length];
            client.read_exact(&mut body).expect("a body");
            let answer =
                format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            client
                .get_mut()
                .write_all(answer.as_bytes())
                .expect("it waits");
            head + &String::from_utf8_lossy(&body)
        };
        (0..calls).map(one).collect()
    });
    (url, serving)
}

#[test]
fn a_server_that_refuses_is_a_warning_and_changes_nothing_else() {
    let (url, serving) = refusing("404 Not Found", 2);
    let folder = folder_with(SCENARIO);
    let influx = format!("{url}?db=m");
    let said = muster(
        folder.path(),
        &[
            "run",
            "scenario.yaml",
            "--quiet",
            "--out",
            "out",
            "--influx",
            &influx,
        ],
    );
    let result = json(&folder.path().join("out/result.json"));
    assert_eq!(said.code, code(&result), "{said:?}");
    let named = format!("warning: InfluxDB at {url}: it answered 404; create the database");
    assert!(said.err.contains(&named), "{}", said.err);
    let requests = serving.join().expect("it has answered");
    assert!(
        requests[0].starts_with("POST /write?db=m&precision=ms HTTP/1.1\r\n"),
        "{requests:?}"
    );
    assert!(
        requests[1].contains("\nmuster_messages,run="),
        "{}",
        requests[1]
    );
    assert_eq!(result["ledger"]["uplink"]["residue"], 0);
    // It is away from the third call on, and what waits then is lacking when the run ends.
    let detail = lost(&result);
    assert!(
        detail.starts_with(&format!("InfluxDB at {url} lacks ")),
        "{detail}"
    );
    assert!(
        detail.ends_with("start it, or name the address where it listens"),
        "{detail}"
    );
}

/// Words of the one warning about metrics.
fn lost(result: &Value) -> &str {
    let lost = warnings(result)
        .into_iter()
        .filter(|it| it["kind"] == "metrics-lost");
    let lost: Vec<&Value> = lost.collect();
    assert_eq!(lost.len(), 1, "{result}");
    lost[0]["detail"].as_str().expect("words")
}

#[test]
fn values_that_a_server_will_not_have_are_a_warning_of_the_result() {
    let (url, serving) = refusing("400 Bad Request", 4);
    let folder = folder_with(SCENARIO);
    let otlp = format!("{url}/v1/metrics");
    let run = [
        "run",
        "scenario.yaml",
        "--quiet",
        "--out",
        "out",
        "--otlp",
        &otlp,
    ];
    let said = muster(folder.path(), &run);
    let requests = serving.join().expect("it has answered");
    assert!(requests[1].contains("muster.messages.sent"), "{requests:?}");
    let result = json(&folder.path().join("out/result.json"));
    assert_eq!(said.code, code(&result), "{said:?}");
    let detail = lost(&result);
    assert!(
        detail.starts_with(&format!("the OTLP receiver at {otlp} lacks ")),
        "{detail}"
    );
}
