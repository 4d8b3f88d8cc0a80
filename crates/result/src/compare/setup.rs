//! Differences between the set-ups of two sides.

use std::collections::BTreeMap;

use muster_report::{Report, SetupDifference};
use serde_json::Value;

use super::{SideRun, SideRuns};

/// Parts of a scenario that change no load: what is tested, what is allowed, what a run is called.
const NO_LOAD: [&str; 14] = [
    "name",
    "seed",
    "labels",
    "platform",
    "slo",
    "stop-if",
    "soak",
    "validity",
    "stability",
    "provision",
    "hooks",
    "scale",
    "monitor",
    "cold",
];

/// Keys of a fleet or stream that change no load.
const NO_LOAD_BELOW: [&str; 2] = ["slo", "credential"];

/// Facts of the environment that are compared. Others differ from run to run.
const ENVIRONMENT: [&str; 12] = [
    "target",
    "processes",
    "shards",
    "about",
    "machine.host",
    "machine.kernel",
    "machine.os",
    "machine.architecture",
    "machine.cpu_model",
    "machine.cpus_usable",
    "machine.memory_bytes",
    "machine.container.cpu_quota",
];

/// The dimension of the load that a search looked for.
pub(super) const FIND: &str = "find";

/// Address of an embedded gateway, whose port is another one in each run.
const EMBEDDED: &str = "embedded gateway";

/// Values of each key, over all runs of a side.
type Keys = BTreeMap<String, Vec<String>>;

/// The keys whose values differ between the sides, those that forbid a comparison first.
pub(super) fn differences(
    base: &SideRuns,
    change: &SideRuns,
    ignore: &[String],
) -> Vec<SetupDifference> {
    let (of_base, of_change) = (keys(base), keys(change));
    if of_base.is_empty() || of_change.is_empty() {
        return Vec::new();
    }
    let mut names: Vec<&String> = of_base.keys().chain(of_change.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let words = |values: Option<&Vec<String>>| match values {
        Some(values) => values.join(" | "),
        None => "-".to_owned(),
    };
    // Runs of one side that are of different loads have no common figure either.
    // The capacity is another one by other SLOs, and in another dimension.
    let is_searched = base.is_searched() && change.is_searched();
    let is_load = |name: &str| is_load(name) || is_searched && (is_slo(name) || name == FIND);
    let is_mixed = |name: &String| {
        let several = |keys: &Keys| keys.get(name).is_some_and(|values| values.len() > 1);
        is_load(name) && (several(&of_base) || several(&of_change))
    };
    let differ = names
        .into_iter()
        .filter(|name| of_base.get(*name) != of_change.get(*name) || is_mixed(name));
    let mut found: Vec<SetupDifference> = differ
        .map(|name| SetupDifference {
            key: name.clone(),
            base: words(of_base.get(name)),
            change: words(of_change.get(name)),
            blocks: is_load(name) && !ignore.iter().any(|key| covers(key, name)),
        })
        .collect();
    found.sort_by_key(|one| !one.blocks);
    found
}

/// Returns whether the scenario of a run has a key that `--ignore` names.
pub(super) fn has(run: &Report, ignored: &str) -> bool {
    let mut lines = Vec::new();
    flatten("scenario", &run.scenario, &mut lines);
    lines.iter().any(|(key, _)| covers(ignored, key))
}

/// The load of a run as text: equal texts are one load. Of a search its SLOs and its dimension belong to it.
pub(super) fn load(run: &SideRun, ignore: &[String]) -> String {
    let find = run.answer.as_ref().map(|answer| answer.find.name());
    let run = &run.report;
    let mut lines = Vec::new();
    flatten("scenario", &run.scenario, &mut lines);
    let is_load = |key: &str| is_load(key) || find.is_some() && is_slo(key);
    lines.retain(|(key, _)| is_load(key) && !ignore.iter().any(|ignored| covers(ignored, key)));
    let lines: Vec<String> = lines
        .into_iter()
        .map(|(key, value)| format!("{key}: {value}"))
        .collect();
    let kind = find.map_or("run".to_owned(), |find| format!("capacity ({find})"));
    format!("{kind} {}\n{}", run.name, lines.join("\n"))
}

/// Returns whether a key of `--ignore` names this one, or a part that it lies in.
fn covers(ignored: &str, name: &str) -> bool {
    let name = name.strip_prefix("scenario.").unwrap_or(name);
    let ignored = ignored.strip_prefix("scenario.").unwrap_or(ignored);
    let rest = name.strip_prefix(ignored);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// Returns whether another value of this key is another load.
fn is_load(name: &str) -> bool {
    let Some(name) = name.strip_prefix("scenario.") else {
        return false;
    };
    let steps: Vec<&str> = name.split(['.', '[']).collect();
    let is_free = |step: &&str| NO_LOAD_BELOW.contains(step);
    !NO_LOAD.contains(&steps[0]) && !steps.iter().any(is_free)
}

/// Returns whether a key belongs to the SLOs of the run, a fleet or a stream.
fn is_slo(name: &str) -> bool {
    let name = name.strip_prefix("scenario.").unwrap_or_default();
    name.split(['.', '[']).any(|step| step == "slo")
}

fn keys(side: &SideRuns) -> Keys {
    let mut all = Keys::new();
    for run in side.counted() {
        for (key, value) in of_run(run) {
            let values = all.entry(key).or_default();
            if !values.contains(&value) {
                values.push(value);
            }
        }
    }
    for values in all.values_mut() {
        values.sort_unstable();
    }
    all
}

fn of_run(run: &SideRun) -> Vec<(String, String)> {
    let find = run.answer.as_ref().map(|answer| answer.find.name());
    let run = &run.report;
    let mut found = vec![("muster".to_owned(), run.muster.clone())];
    found.extend(find.map(|find| (FIND.to_owned(), find.to_owned())));
    flatten("scenario", &run.scenario, &mut found);
    for key in ENVIRONMENT {
        let pointer = format!("/{}", key.replace('.', "/"));
        let value = run
            .environment
            .pointer(&pointer)
            .filter(|value| !value.is_null());
        found.extend(value.map(|value| {
            let text = scalar(value);
            let text = match text.starts_with(EMBEDDED) {
                true => EMBEDDED.to_owned(),
                false => text,
            };
            (key.to_owned(), text)
        }));
    }
    let co_located = run
        .co_located
        .map(|is| ("co_located".to_owned(), is.to_string()));
    found.extend(co_located);
    found
}

/// The leaves of a JSON value by their paths: `scenario.fleet[0].count`.
fn flatten(path: &str, value: &Value, into: &mut Vec<(String, String)>) {
    match value {
        Value::Object(map) => {
            for (key, inner) in map {
                flatten(&format!("{path}.{key}"), inner, into);
            }
        }
        Value::Array(list) => {
            for (at, inner) in list.iter().enumerate() {
                flatten(&format!("{path}[{at}]"), inner, into);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            into.push((path.to_owned(), scalar(value)));
        }
    }
}

fn scalar(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}
