//! Runs of scenarios by Muster; the result of each replaces the last one.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::Value;

use super::process::Process;
use super::programs::Programs;

/// Starts a run of the scenario; what it prints goes to a file of this name.
pub(super) fn start(
    programs: &Programs,
    scenario: &str,
    output: &str,
    options: &[&str],
) -> Result<Process> {
    let path = programs.scratch("scenario.yaml");
    fs::write(&path, scenario).with_context(|| format!("write {}", path.display()))?;
    let folder = folder(programs);
    if folder.exists() {
        fs::remove_dir_all(&folder).context("remove the last result")?;
    }
    let mut words: Vec<OsString> =
        ["run".into(), path.into(), "--out".into(), folder.into()].into();
    words.extend(options.iter().map(Into::into));
    Process::start(&programs.muster, &words, programs.scratch(output))
}

/// The result of the last run.
pub(super) fn result(programs: &Programs) -> Result<Value> {
    let path = folder(programs).join("result.json");
    let text = fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
    serde_json::from_str(&text).context("read Muster's result")
}

/// A number of a result.
pub(super) fn figure(result: &Value, pointer: &str) -> Result<f64> {
    let value = result.pointer(pointer).and_then(Value::as_f64);
    value.with_context(|| format!("the result has no {pointer}"))
}

fn folder(programs: &Programs) -> PathBuf {
    programs.scratch("result")
}
