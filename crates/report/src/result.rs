//! The whole result of a run, as `result.json` holds it (docs/result.md).

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    Event, GeneratorUse, HookRun, Latencies, Ledgers, LinkLedger, MonitoredSeries, Phase, Rates,
    Step, TargetUse, Unfinished, Verdict, Window,
};

/// The name and version of the form in which a result is written.
pub const SCHEMA: &str = "muster/1";

/// `load` of the environment of a run on whose load a search decided.
pub const SEARCHED: &str = "searched";

/// The result of one run.
///
/// A figure that is not known is `null`, never 0.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Report {
    /// The schema, `muster/1`; a new key does not change it.
    pub schema: Schema,
    /// Version of the program that ran.
    pub muster: String,
    /// The scenario's name.
    pub name: String,
    /// The run's id as eight hexadecimal digits.
    pub run: String,
    /// The seed that reproduces the run.
    pub seed: u64,
    /// SHA-256 of the scenario's text, in hexadecimal.
    pub scenario_sha256: Option<String>,
    /// SHA-256 of the resolved plan and its rules, secrets and labels left out.
    pub resolved_sha256: Option<String>,
    /// Labels of the scenario and the command line.
    pub labels: BTreeMap<String, String>,
    /// Wall clock at T0, RFC 3339 in UTC; for display.
    pub started: Option<String>,
    /// `running, 0:08 so far` or `interrupted at 0:08`; null after a planned end.
    pub unfinished: Option<Unfinished>,
    /// Length of the measured phase; null if it never began.
    pub measured_s: Option<f64>,
    /// The phases as they ran.
    pub phases: Vec<Phase>,
    /// The scenario as resolved, secrets masked.
    pub scenario: Value,
    /// Machine, kernel, limits and target; its keys are not fixed.
    pub environment: Value,
    /// True if the target ran on the generator's machine.
    pub co_located: Option<bool>,
    /// The verdict with every rule.
    pub verdict: Verdict,
    /// Ledgers of all messages.
    pub ledger: Ledgers,
    /// Links opened, refused and lost.
    pub links: LinkLedger,
    /// The rates of the measured phase, over all streams.
    pub rates: Rates,
    /// Latencies of the measured cohort, over all streams.
    pub latency: Latencies,
    /// Latencies of the cold messages; null if the scenario keeps none apart.
    pub latency_cold: Option<Latencies>,
    /// Latencies of the other messages of the measured cohort; null likewise.
    pub latency_warm: Option<Latencies>,
    /// The steps of the measured phase, in order; empty if no stage changes the rate within it.
    #[serde(default)]
    pub steps: Vec<Step>,
    /// Resources that the generator itself used.
    pub generator: GeneratorUse,
    /// Resources that the target used, where it was watched.
    pub target: TargetUse,
    /// Samples of the target over time: a row for each resource of each entry of `monitor`.
    #[serde(default)]
    pub monitor: Vec<MonitoredSeries>,
    /// The hooks of the scenario, in the order in which they ended.
    #[serde(default)]
    pub hooks: Vec<HookRun>,
    /// Events, in order of begin.
    pub events: Vec<Event>,
    /// At most 600 stretches of the run, in order of time.
    pub windows: Vec<Window>,
    /// Figures by the formulas of published load tests: `sap`, `hono`.
    pub published: BTreeMap<String, Value>,
}

impl Report {
    /// The text of `result.json`: indented, each window and each series on one line, with a line feed at the end.
    pub fn to_json(&self) -> String {
        let rest = Self {
            windows: Vec::new(),
            monitor: Vec::new(),
            ..self.clone()
        };
        let mut text = json(&rest, true);
        for (key, rows) in [
            ("monitor", in_lines(&self.monitor)),
            ("windows", in_lines(&self.windows)),
        ] {
            // The key of the top level is the only one indented by two spaces.
            let empty = format!("\n  \"{key}\": []");
            text = text.replacen(&empty, &format!("\n  \"{key}\": {rows}"), 1);
        }
        text.push('\n');
        text
    }

    /// Address that the load went to, from `target` of the environment.
    pub fn target_name(&self) -> Option<&str> {
        self.environment.get("target").and_then(Value::as_str)
    }

    /// Part of a run that the report covers, such as `1 of 2`, from `part` of the environment; none
    /// for the whole run.
    pub fn part(&self) -> Option<&str> {
        self.environment.get("part").and_then(Value::as_str)
    }

    /// Returns whether a search decided on the load, by `load` of the environment.
    pub fn is_searched(&self) -> bool {
        self.environment.get("load").and_then(Value::as_str) == Some(SEARCHED)
    }

    /// Returns whether the run still goes on, so that it is not judged.
    pub fn is_running(&self) -> bool {
        self.unfinished.as_ref().is_some_and(Unfinished::is_running)
    }

    /// Returns whether any certificate would do (`tls.insecure`), so that the run
    /// may have talked to anybody, from `tls` of the environment.
    pub fn is_insecure(&self) -> bool {
        let insecure = self.environment.pointer("/tls/insecure");
        insecure.and_then(Value::as_bool) == Some(true)
    }

    /// Fleets over CoAP whose message ids are used again sooner than their other times say (RFC 7252
    /// section 4.8.2), with both times in seconds, from `coap` of the environment.
    pub fn shortened_lifetimes(&self) -> impl Iterator<Item = (&str, f64, f64)> {
        let fleets = self.environment.get("coap").and_then(Value::as_array);
        fleets.into_iter().flatten().filter_map(|fleet| {
            let seconds = |key: &str| fleet.get(key)?.as_f64();
            let own = seconds("exchange_lifetime_s")?;
            let standard = seconds("standard_exchange_lifetime_s")?;
            (own < standard).then_some((fleet.get("fleet")?.as_str()?, own, standard))
        })
    }

    /// Reads `result.json`.
    ///
    /// # Errors
    /// [`ReadError`] if the text is not a result, or one of another schema.
    pub fn from_json(json: &str) -> Result<Self, ReadError> {
        let report: Self = serde_json::from_str(json).map_err(ReadError::NotAResult)?;
        match report.schema.0.as_str() {
            SCHEMA => Ok(report),
            _ => Err(ReadError::Schema(report.schema.0)),
        }
    }

    /// The figures of a published test by its name; none if the run has none.
    pub(crate) fn published<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        let value = self.published.get(name)?;
        serde_json::from_value(value.clone()).ok()
    }
}

/// A list of the top level with each value on one line.
fn in_lines(values: &[impl Serialize]) -> String {
    let lines: Vec<String> = values.iter().map(|value| json(value, false)).collect();
    match lines.as_slice() {
        [] => "[]".to_owned(),
        lines => format!("[\n    {}\n  ]", lines.join(",\n    ")),
    }
}

/// A value as indented JSON with a line feed at the end, as a file holds it.
pub(crate) fn indented(value: &impl Serialize) -> String {
    json(value, true) + "\n"
}

fn json(value: &impl Serialize, is_indented: bool) -> String {
    let text = if is_indented {
        serde_json::to_string_pretty(value)
    } else {
        serde_json::to_string(value)
    };
    text.expect("a report holds only string keys, so that it is always JSON")
}

/// The name and version of the form of a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schema(String);

impl Default for Schema {
    fn default() -> Self {
        Self(SCHEMA.to_owned())
    }
}

/// A reason why a text is not a result that this version can read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Not JSON, or not of this form.
    #[error("the text is not a {SCHEMA} result: {0}")]
    NotAResult(#[source] serde_json::Error),
    /// A result of another schema.
    #[error(
        "the result is of schema {0:?}, this version reads {SCHEMA:?}: use the version of muster that wrote it"
    )]
    Schema(String),
}
