//! The answer of a growth, made again from its journal and the results of its runs.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use muster_model::Micros;
use muster_plan::Plan;
use muster_report::{CapacityReport, Report};
use muster_scale::{End, Next, Outcome, Setting};
use muster_scenario::{NoFiles, Overrides, Source};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::addresses::loads;
use super::answer::Answer;
use super::log::{Basis, Entry, HeldStep, Log, parse};
use super::policy::{Policy, alone};
use super::{begun, found, published};
use crate::folder::read_archive;
use crate::scenario_file::Loaded;
use crate::searching;
use crate::steering::Decider;

/// A growth as its folder has it.
pub(crate) struct Grown {
    /// The folders of its runs with a result.
    pub(crate) runs: Vec<String>,
    /// Figures of the journal and of the answer that do not follow.
    pub(crate) faults: Vec<String>,
}

/// Returns whether a folder has a growth.
pub(crate) fn is_in(folder: &Path) -> bool {
    Log::is_in(folder)
}

/// Makes the answer of a growth again. The figures of its runs are not checked.
///
/// # Errors
/// If its files cannot be read, or no run of it has a result.
pub(crate) fn grown(folder: &Path) -> Result<Grown> {
    let (head, journal) = Log::read(folder)?;
    let unreadable = |why: String| anyhow!("read the journal: {why}");
    let stated = Stated(folder);
    match head.basis.published {
        None => {
            let entries: Vec<Entry> = parse(&journal).map_err(unreadable)?;
            let runs = runs(folder, entries.iter().map(|entry| entry.folder.as_str()))?;
            let mut faults: Vec<String> = head_fault(&head.basis, &runs).into_iter().collect();
            for entry in &entries {
                let run = runs.iter().find(|run| run.name == entry.folder);
                faults.extend(entry_fault(entry, run, folder, &head.plan));
            }
            let follows = |loaded: &Loaded, end: Option<Value>| {
                let end = end.map(|end| end_of_json(&head.basis, end)).transpose()?;
                let starts = starts(&entries);
                let policies = starts.map(|start| resumed(&head.basis, loaded, &entries, start));
                for policy in policies {
                    let Some(end) = end_of(&policy, end.as_ref()) else {
                        continue;
                    };
                    let answer = Answer::new(loaded, &head.basis, &policy, end, &entries);
                    if stated.has("scale.json", &answer.json()?) {
                        let forms = answer.forms()?;
                        return Ok(forms.iter().all(|(name, text)| stated.has(name, text)));
                    }
                }
                Ok(false)
            };
            faults.extend(answer_fault(&stated, &runs, follows)?);
            Ok(Grown::new(runs, faults))
        }
        Some(_) => {
            let entries: Vec<published::Entry> = parse(&journal).map_err(unreadable)?;
            let ran = || published::runs(&entries);
            let runs = runs(folder, ran().map(|ran| ran.folder.as_str()))?;
            let mut faults: Vec<String> = head_fault(&head.basis, &runs).into_iter().collect();
            for ran in ran() {
                let run = runs.iter().find(|run| run.name == ran.folder);
                let own = run.map(|run| (run.report.verdict.result, loads(&run.report, &run.plan)));
                if own != Some((ran.result, ran.load.clone())) {
                    faults.push(format!(
                        "{} does not give its line of the journal",
                        ran.folder
                    ));
                }
            }
            let follows = |loaded: &Loaded, end| {
                let answer = published::answer_again(loaded, &head.basis, &entries, end)?;
                Ok(stated.has("scale.json", &answer))
            };
            faults.extend(answer_fault(&stated, &runs, follows)?);
            Ok(Grown::new(runs, faults))
        }
    }
}

impl Grown {
    fn new(runs: Vec<Run>, faults: Vec<String>) -> Self {
        let runs = runs.into_iter().map(|run| run.name).collect();
        Self { runs, faults }
    }
}

/// A run of a growth with its result.
struct Run {
    name: String,
    report: Report,
    plan: Plan,
}

/// The runs that have a result, by the names of their folders.
fn runs<'a>(folder: &Path, names: impl Iterator<Item = &'a str>) -> Result<Vec<Run>> {
    let with_result = names.filter(|name| folder.join(name).join("result.json").exists());
    let read = |name: &str| -> Result<Run> {
        let of = folder.join(name);
        let text = fs::read_to_string(of.join("result.json"))?;
        Ok(Run {
            name: name.to_owned(),
            report: Report::from_json(&text)?,
            plan: read_archive(&of)?.header.plan,
        })
    };
    let read = with_result.map(|name| read(name).with_context(|| format!("read {name}")));
    read.collect()
}

/// The fault of the first line, if the scenario that a run wrote states another growth. A scenario that needs files or the
/// environment cannot be read again, and proves nothing.
fn head_fault(basis: &Basis, runs: &[Run]) -> Option<String> {
    let growths = runs.iter().filter_map(|run| {
        let text = as_written(&run.report.scenario).to_string();
        let (name, text) = ("result.json", text.as_str());
        let plan = muster_scenario::parse(Source { name, text }, &Overrides::new(), &NoFiles);
        Some((&run.name, plan.ok()?.platform.scale?))
    });
    let mut bases = growths.map(|(run, scale)| (run, Basis::new(&scale)));
    let (run, _) = bases.find(|(_, own)| own != basis)?;
    Some(format!(
        "the first line of the journal does not follow from the scenario of {run}"
    ))
}

/// A scenario without the defaults of `scale` that are refused where somebody writes them.
fn as_written(scenario: &Value) -> Value {
    let mut scenario = scenario.clone();
    if let Some(scale) = scenario.get_mut("scale").and_then(Value::as_object_mut) {
        if scale.get("policy").and_then(Value::as_str) != Some("published") {
            scale.remove("published");
        }
        if scale.contains_key("components") || scale.contains_key("sweep") {
            scale.remove("instances");
        }
    }
    scenario
}

/// The fault of the line of a search, if it does not follow from its run. The actuator alone knows whether another number
/// of instances was ready in the end.
fn entry_fault(entry: &Entry, run: Option<&Run>, folder: &Path, plan: &str) -> Option<String> {
    let of = folder.join(&entry.folder);
    let answer = fs::read_to_string(of.join("capacity.json")).ok();
    let answer = answer.and_then(|text| CapacityReport::from_json(&text).ok());
    let (Some(run), Some(answer)) = (run, answer) else {
        let is_unclear = matches!(entry.outcome, Outcome::Unclear { known: None, .. });
        let held_nothing = is_unclear && entry.steps.is_empty();
        return (!held_nothing).then(|| format!("{} has no answer", entry.folder));
    };
    let load = loads(&run.report, &run.plan);
    let is_of_target = matches!(entry.outcome, Outcome::Unclear { known: None, .. });
    let outcome = match is_of_target {
        true => entry.outcome.clone(),
        false => found(&answer),
    };
    let steps = answer.steps.iter().map(HeldStep::new).collect();
    let is_same = outcome == entry.outcome && load == entry.load && are_same(steps, &entry.steps);
    let is_of_plan = searching::is_of_plan(&of, plan);
    (!is_same || !is_of_plan)
        .then(|| format!("{} does not give its line of the journal", entry.folder))
}

/// Returns whether steps are the same, but for the time of their run.
fn are_same(mut own: Vec<HeldStep>, stated: &[HeldStep]) -> bool {
    let firsts = own.first().zip(stated.first());
    let later = firsts.map_or(0.0, |(own, stated)| stated.from_s - own.from_s);
    let near = |a: f64, b: f64| Micros::from_secs_f64((a - b).abs()) <= Micros(1);
    for (own, stated) in own.iter_mut().zip(stated) {
        if near(own.from_s + later, stated.from_s) && near(own.until_s + later, stated.until_s) {
            (own.from_s, own.until_s) = (stated.from_s, stated.until_s);
        }
    }
    own == stated
}

/// The answer as its folder has it.
struct Stated<'a>(&'a Path);

impl Stated<'_> {
    fn read(&self, name: &str) -> Result<String> {
        let path = self.0.join(name);
        fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))
    }

    /// Returns whether the file of this name has this text.
    fn has(&self, name: &str, text: &str) -> bool {
        self.read(name).is_ok_and(|stated| stated == text)
    }
}

/// The fault of `scale.json` and its other forms, if they do not follow from the journal with the stated end.
fn answer_fault<E: DeserializeOwned>(
    stated: &Stated<'_>,
    runs: &[Run],
    follows: impl Fn(&Loaded, Option<E>) -> Result<bool>,
) -> Result<Option<String>> {
    let first = runs.first().context(
        "find a run with a result: none of the growth has one, so that there is nothing to verify",
    )?;
    let answer = stated.read("scale.json")?;
    let answer: Value = serde_json::from_str(&answer).context("read scale.json")?;
    let refused = || {
        Ok(Some(
            "scale.json does not follow from the journal".to_owned(),
        ))
    };
    let Ok(end) = serde_json::from_value(answer["end"].clone()) else {
        return refused();
    };
    let sha256 = answer["scenario_sha256"].as_str().unwrap_or_default();
    let mut digests = runs.iter().map(|run| run.report.scenario_sha256.as_deref());
    if !digests.any(|digest| digest == Some(sha256)) {
        return refused();
    }
    let loaded = Loaded {
        plan: first.plan.clone(),
        sha256: sha256.to_owned(),
        decider: Decider::Scenario,
    };
    match follows(&loaded, end) {
        Ok(true) => Ok(None),
        Ok(false) | Err(_) => refused(),
    }
}

/// The entries at which the last `--resume` may have begun, which the journal does not have. Only those behind a search
/// that was not judged make a difference.
fn starts(entries: &[Entry]) -> impl Iterator<Item = usize> {
    let behind = (1..).zip(entries);
    let behind = behind.filter(|(_, entry)| !entry.outcome.is_judged());
    std::iter::once(0).chain(behind.map(|(start, _)| start))
}

/// The policy in the end, if the last `--resume` began at the entry `start`: searches before it count if they were judged.
fn resumed(basis: &Basis, loaded: &Loaded, entries: &[Entry], start: usize) -> Policy {
    let mut policy = begun(basis, &loaded.plan);
    let counted = (0..).zip(entries);
    let counted = counted.filter(|(at, entry)| *at >= start || entry.outcome.is_judged());
    counted.for_each(|(_, entry)| policy.record(&entry.setting, &entry.outcome));
    policy
}

/// The stated end, whose instances are written as the policy has them.
fn end_of_json(basis: &Basis, end: Value) -> Result<End<Setting>> {
    Ok(match Policy::new(basis, 0.0) {
        Policy::One(_) => serde_json::from_value::<End>(end)?.map(alone),
        Policy::Several(_) => serde_json::from_value::<End<Vec<u32>>>(end)?.map(Setting::new),
        Policy::Sweep(_) => serde_json::from_value(end)?,
    })
}

/// The end of a growth. If its searches do not end it, the stated one counts, if that can be; the outer option is none
/// if it cannot.
fn end_of(policy: &Policy, stated: Option<&End<Setting>>) -> Option<Option<End<Setting>>> {
    let wanted = match policy.next() {
        Next::End(end) => return Some(Some(end)),
        Next::Measure(wanted) => wanted,
    };
    let can_be = match stated {
        None => true,
        Some(End::NotSet { instances, .. }) => *instances == wanted.instances,
        Some(end @ End::Unclear { why, .. }) => *end == policy.out_of_budget(why.clone()),
        Some(End::AtMost | End::NoGain { .. } | End::AtLeast { .. } | End::FailsAtFirst { .. }) => {
            false
        }
    };
    can_be.then(|| stated.cloned())
}
