//! ThingsBoard's REST API at the reference gateway: devices created, and stored points read back.

use std::io::Write;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::process::{Process, now};
use super::programs::Programs;
use super::run::figure;
use super::table::{begin, end, mebibytes, row};
use super::transports::result;

/// Devices that are created, and seconds that this may take.
const DEVICES: u32 = 10_000;
const DEVICES_GOAL: f64 = 20.0;
/// Points that are read back; the difference in memory is that of nine times as many.
const POINTS: [u32; 2] = [100_000, 1_000_000];
const POINTS_GOAL: f64 = 60.0;
/// Messages a second of the load before the reading, and its devices.
const RATE: u32 = 20_000;
const METERS: u32 = 1_000;
/// Calls a second: more than are made.
const CALLS: &str = "rate: 100000/s";
/// Longest time for a gateway to listen, for all devices, and for a load with its reading.
const BEGINNING: Duration = Duration::from_secs(60);
const CREATING: Duration = Duration::from_secs(300);
const READING: u32 = 400;

/// Both tables.
pub(super) fn over_rest(programs: &Programs, out: &mut dyn Write) -> Result<()> {
    created(programs, out)?;
    read_back(programs, out)
}

/// Devices created on a gateway that knows none.
fn created(programs: &Programs, out: &mut dyn Write) -> Result<()> {
    begin(out, "10,000 devices created by REST", "calls | seconds")?;
    for (name, bulk) in [("one a device", ""), ("bulk of 500", ", bulk: 500")] {
        let gateway = Board::start(programs)?;
        let path = programs.scratch("board.yaml");
        std::fs::write(&path, gateway.scenario(bulk)).context("write a scenario")?;
        let folder = programs.scratch("board");
        if folder.exists() {
            std::fs::remove_dir_all(&folder).context("remove the last record")?;
        }
        let words = ["provision".into(), path.into(), "create".into()];
        let words = [&words[..], &["--out".into(), folder.into()]].concat();
        let began = now();
        let output = programs.scratch("board.out");
        let process = Process::start(&programs.muster, &words, output)?;
        let (status, printed) = process.finish(CREATING)?;
        let took = began.elapsed().as_secs_f64();
        if !status.success() {
            bail!("muster provision failed: {printed}");
        }
        row(out, &[name.to_owned(), within(took, DEVICES_GOAL)])?;
    }
    end(
        out,
        "Whole processes, login and record included. Goal: 20 s.",
    )
}

/// Stored points read back, in a run with the embedded gateway.
fn read_back(programs: &Programs, out: &mut dyn Write) -> Result<()> {
    let columns = "points | seconds | peak resident memory of the generator";
    begin(out, "Stored points read back", columns)?;
    for points in POINTS {
        let result = result(programs, &reading(points), points / RATE + READING)?;
        let stored = figure(&result, "/ledger/by_backend/store/arrived")?;
        let seconds = seconds(&result).context("the result has no event of the read-back")?;
        let memory = figure(&result, "/generator/peak_rss_bytes")?;
        let goal = if points == POINTS[1] {
            POINTS_GOAL
        } else {
            f64::MAX
        };
        row(
            out,
            &[
                format!("{stored:.0}"),
                within(seconds, goal),
                mebibytes(memory),
            ],
        )?;
    }
    end(
        out,
        "A point a message, 1,000 devices. Goal: 60 s for a million.",
    )
}

fn within(seconds: f64, goal: f64) -> String {
    let missed = if seconds > goal {
        format!(" (goal {goal})")
    } else {
        String::new()
    };
    format!("{seconds:.1}{missed}")
}

fn reading(points: u32) -> String {
    let seconds = points / RATE;
    format!(
        r#"name: read-back
platform: {{ kind: gateway, dialect: thingsboard }}
provision: {{ bulk: 500, read-back: true, {CALLS} }}
fleet:
  - count: {METERS}
    id: "DW${{index:08}}"
    streams:
      - rate: {RATE}/s
        payload: {{ template: '{{"ts":${{unique_ms}},"values":{{"musterId":"${{stamp}}"}}}}' }}
phases: {{ warm-up: 0s, measure: {seconds}s, settle: {{ at-most: 250s, quiet: 1s }} }}
validity: {{ max-lateness: 600s }}
"#
    )
}

/// The seconds that the event of a read-back names.
fn seconds(result: &Value) -> Option<f64> {
    let mut events = result["events"].as_array()?.iter();
    let event = events.find(|event| event["kind"] == "read-back")?;
    let (_, took) = event["detail"].as_str()?.rsplit_once(" in ")?;
    took.strip_suffix(" s")?.parse().ok()
}

/// A gateway that serves ThingsBoard's REST API, in another process.
struct Board {
    _process: Process,
    /// Its addresses: devices over MQTT, and the API.
    addresses: [String; 2],
}

impl Board {
    fn start(programs: &Programs) -> Result<Self> {
        let free = "127.0.0.1:0";
        let words = ["gateway", "--dialect", "thingsboard", "--only-provisioned"];
        let words = [&words[..], &["--listen", free, "--rest", free]].concat();
        let words: Vec<_> = words.iter().map(Into::into).collect();
        let output = programs.scratch("board-gateway.out");
        let mut process = Process::start(&programs.muster, &words, output)?;
        let addresses = process.until(BEGINNING, |process| Ok(addresses(&process.printed()?)))?;
        Ok(Self {
            _process: process,
            addresses,
        })
    }

    fn scenario(&self, bulk: &str) -> String {
        let [devices, rest] = &self.addresses;
        format!(
            r#"name: created
platform: {{ kind: thingsboard, devices: [ "{devices}" ] }}
provision: {{ url: "{rest}", user: tenant@thingsboard.org, password: tenant, {CALLS}{bulk} }}
fleet: [ {{ count: {DEVICES}, id: "DW${{index:08}}", streams: [ {{ rate: 1/s }} ] }} ]
"#
        )
    }
}

/// Parses the addresses in its first lines, once both of them are there.
fn addresses(printed: &str) -> Option<[String; 2]> {
    let of = |scheme: &str| {
        let begin = printed.find(&format!("{scheme}://"))?;
        let rest = &printed[begin..];
        let end = rest.find(['\n', ';', ' '])?;
        Some(rest[..end].trim_end_matches("/api").to_owned())
    };
    Some([of("mqtt")?, of("http")?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_once_both_are_there() {
        let first = "gateway listens on mqtt://127.0.0.1:1; Ctrl-C ends it\n";
        assert_eq!(addresses(first), None);
        let all = format!("{first}devices are managed at http://127.0.0.1:2/api\n");
        let wanted = ["mqtt://127.0.0.1:1", "http://127.0.0.1:2"];
        assert_eq!(addresses(&all), Some(wanted.map(str::to_owned)));
    }

    #[test]
    fn the_time_of_a_reading_is_that_of_its_event() {
        let result = serde_json::json!({ "events": [
            { "kind": "provisioned", "detail": "device: 1 created" },
            { "kind": "read-back", "detail": "2500 messages of http://127.0.0.1:3 in 2.5 s" },
        ] });
        assert_eq!(seconds(&result), Some(2.5));
        assert_eq!(within(2.5, 2.0), "2.5 (goal 2)");
    }
}
