//! The answer of a growth, made again from its journal and the results of its runs.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use muster_model::Micros;
use muster_plan::Plan;
use muster_report::{CapacityReport, Report};
use muster_scale::{End, Next, Outcome, Setting};
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
    match head.basis.published {
        None => {
            let entries: Vec<Entry> = parse(&journal).map_err(unreadable)?;
            let runs = runs(folder, entries.iter().map(|entry| entry.folder.as_str()))?;
            let mut faults = Vec::new();
            for entry in &entries {
                let run = runs.iter().find(|run| run.name == entry.folder);
                faults.extend(entry_fault(entry, run, folder, &head.plan));
            }
            let answers = |loaded: &Loaded, stated: Option<Value>| {
                let stated = stated
                    .map(|end| end_of_json(&head.basis, end))
                    .transpose()?;
                answers(loaded, &head.basis, &entries, stated.as_ref())
            };
            faults.extend(answer_fault(folder, &runs, answers)?);
            Ok(Grown::new(runs, faults))
        }
        Some(_) => {
            let entries: Vec<published::Entry> = parse(&journal).map_err(unreadable)?;
            let ran = || published::runs(&entries);
            let runs = runs(folder, ran().map(|ran| ran.folder.as_str()))?;
            let mut faults = Vec::new();
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
            let answers = |loaded: &Loaded, stated| {
                let answer = published::answer_again(loaded, &head.basis, &entries, stated)?;
                Ok(vec![vec![("scale.json", answer)]])
            };
            faults.extend(answer_fault(folder, &runs, answers)?);
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

/// Files of an answer by their names.
type Forms = Vec<(&'static str, String)>;

/// The fault of `scale.json` and its page, if they are none of the answers that the journal can give.
fn answer_fault<E: DeserializeOwned>(
    folder: &Path,
    runs: &[Run],
    answers: impl Fn(&Loaded, Option<E>) -> Result<Vec<Forms>>,
) -> Result<Option<String>> {
    let first = runs.first().context(
        "find a run with a result: none of the growth has one, so that there is nothing to verify",
    )?;
    let read = |name: &str| {
        let path = folder.join(name);
        fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))
    };
    let stated: Value = serde_json::from_str(&read("scale.json")?).context("read scale.json")?;
    let refused = || {
        Ok(Some(
            "scale.json does not follow from the journal".to_owned(),
        ))
    };
    let Ok(end) = serde_json::from_value(stated["end"].clone()) else {
        return refused();
    };
    let sha256 = stated["scenario_sha256"].as_str().unwrap_or_default();
    let mut digests = runs.iter().map(|run| run.report.scenario_sha256.as_deref());
    if !digests.any(|digest| digest == Some(sha256)) {
        return refused();
    }
    let loaded = Loaded {
        plan: first.plan.clone(),
        sha256: sha256.to_owned(),
        decider: Decider::Scenario,
    };
    let is_stated =
        |(name, text): &(&'static str, String)| read(name).is_ok_and(|stated| stated == *text);
    match answers(&loaded, end) {
        Ok(answers) if answers.iter().any(|forms| forms.iter().all(is_stated)) => Ok(None),
        Ok(_) | Err(_) => refused(),
    }
}

/// The answers that a journal can give: a search that was not judged counts until the next `--resume`, which the journal
/// does not have.
fn answers(
    loaded: &Loaded,
    basis: &Basis,
    entries: &[Entry],
    stated: Option<&End<Setting>>,
) -> Result<Vec<Forms>> {
    let mut all = Vec::new();
    for resumed in 0..=entries.len() {
        let mut policy = begun(basis, &loaded.plan);
        let judged = (0..).zip(entries);
        let judged = judged.filter(|(at, entry)| *at >= resumed || entry.outcome.is_judged());
        judged.for_each(|(_, entry)| policy.record(&entry.setting, &entry.outcome));
        if let Some(end) = end_of(&policy, stated) {
            let answer = Answer::new(loaded, basis, &policy, end, entries);
            all.push(answer.forms()?.to_vec());
        }
    }
    Ok(all)
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
