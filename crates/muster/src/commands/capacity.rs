//! `muster capacity`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use muster_judge::capacity::{SearchEnd, SearchSpec};
use muster_judge::{Rules, SloBound};
use muster_model::{Micros, figure};
use muster_report::{
    CAPACITY_SCHEMA, CapacityReport, CapacityStep, Dimension, Report, capacity_html,
};
use muster_result::{CapacitySearch, Header, end_after};

use crate::args::{CapacityArgs, Find, RunArgs};
use crate::commands::run::{once, stop_by_signal};
use crate::folder::{reserve, write_whole};
use crate::scenario_file::{self, Loaded};
use crate::searching::{self, Begun, Prepared};
use crate::{outcome, outputs};

/// Widest interval, as a part of its lower end.
const WIDTH: f64 = 0.1;
/// First and highest rate without `--from` and `--to`, as multiples of the scenario's.
const FROM: f64 = 0.1;
const TO: f64 = 100.0;

/// Searches the capacity; the exit code says how the search ended.
pub(crate) fn capacity(args: &CapacityArgs) -> Result<u8> {
    let mut loaded = scenario_file::load(&args.scenario)?;
    for warning in &loaded.plan.warnings {
        outcome::remark(&format!("warning: {warning}"));
    }
    if !loaded.plan.rules.slos.iter().any(|slo| slo.named) {
        bail!(
            "search a capacity: the scenario has no SLO, so that no load is too high; add one, such as `slo: {{ \
             response: {{ p99: \"<= 250ms\" }} }}`"
        );
    }
    let (prepared, out) = prepare(args, &loaded)?;
    let spec = &prepared.begun.spec;
    if let Some(end) = end_after(spec.clone(), &prepared.earlier)? {
        bail!(
            "go on with the search in {}: it is over; its answer is in capacity.json{}",
            out.display(),
            match end {
                SearchEnd::OutOfBudget { .. } => ", and a longer --budget lets it go on",
                SearchEnd::Found(_)
                | SearchEnd::FailsAtFirst { .. }
                | SearchEnd::AtLeast { .. }
                | SearchEnd::NotRecovered { .. }
                | SearchEnd::NothingClear { .. } => "",
            }
        );
    }
    let stated = loaded.plan.stated_rate();
    // The last step may be followed by a pause of its whole length.
    let length = args.budget + loaded.plan.phases.settle.at_most;
    let plan = loaded
        .plan
        .adding(length, spec.most / stated.max(f64::MIN_POSITIVE));
    loaded.plan = plan.map_err(|why| anyhow!("multiply the load of the scenario: {why}"))?;
    loaded.search = Some(prepared.clone());
    let interrupted = stop_by_signal()?;
    if !prepared.earlier.is_empty() {
        searching::set_aside(&out)?;
    }
    let done = once(&run_args(args, out.clone()), &loaded, &interrupted)?;
    let (Some(report), Some(search)) = (&done.report, &done.search) else {
        outcome::say(&done.summary);
        return Ok(done.outcome().exit_code());
    };
    let answer = answer(report, search, &prepared.begun);
    write(&answer, &out)?;
    outcome::say(&answer.text());
    outcome::say(&format!("answer: {}", out.join("capacity.html").display()));
    Ok(answer.end.as_ref().map_or(outcome::INVALID, code))
}

/// The search, and the folder of its result.
fn prepare(args: &CapacityArgs, loaded: &Loaded) -> Result<(Prepared, PathBuf)> {
    let plan = Header::digest(&loaded.plan);
    let Find::Rate = args.find;
    let find = Dimension::Rate;
    if let Some(folder) = &args.resume {
        let mut prepared = searching::read(folder)?;
        if prepared.begun.plan != plan || prepared.begun.find != find {
            bail!(
                "go on with the search in {}: its scenario, --set, --seed or --find were others; give the same, or \
                 begin another search with --out",
                folder.display()
            );
        }
        prepared.begun.spec.budget = args.budget;
        return Ok((prepared, folder.clone()));
    }
    let stated = loaded.plan.stated_rate();
    let (short, long) = SearchSpec::lengths(longest_limit(&loaded.plan.rules));
    let spec = SearchSpec {
        first: args.from.unwrap_or(stated * FROM),
        most: args.to.unwrap_or(stated * TO),
        width: WIDTH,
        short,
        long,
        budget: args.budget,
    };
    if spec.budget < spec.short {
        bail!(
            "search within --budget {}: the first step alone takes {}; give more, such as 10m",
            figure::time(spec.budget),
            figure::time(spec.short)
        );
    }
    let prepared = Prepared {
        begun: Begun::new(plan, find, spec),
        earlier: Vec::new(),
    };
    let out = match &args.out {
        Some(out) => out.clone(),
        None => reserve(&outputs::default_folder(&loaded.plan))?,
    };
    Ok((prepared, out))
}

/// The longest time that an SLO allows.
fn longest_limit(rules: &Rules) -> Micros {
    let limits = rules.slos.iter().filter_map(|slo| {
        if let SloBound::Latency { at_most, .. } = slo.bound {
            Some(at_most)
        } else {
            None
        }
    });
    limits.max().unwrap_or_default()
}

fn run_args(args: &CapacityArgs, out: PathBuf) -> RunArgs {
    RunArgs {
        shards: None,
        slots: 4_194_304,
        buffers: 16_384,
        ..RunArgs::quiet(args.scenario.clone(), out)
    }
}

/// The answer, with the results that the closed ledger gave to the steps of the last run.
fn answer(report: &Report, search: &CapacitySearch, begun: &Begun) -> CapacityReport {
    let result_at_end = |step: &CapacityStep| {
        let mut all = report.steps.iter();
        let same = all.find(|of| of.from_s.to_bits() == step.figures.from_s.to_bits());
        same.filter(|_| step.session == search.session())?.result
    };
    let steps = search.held().iter().map(|step| CapacityStep {
        result_at_end: result_at_end(step),
        ..step.clone()
    });
    let answer = CapacityReport {
        schema: CAPACITY_SCHEMA.to_owned(),
        muster: report.muster.clone(),
        name: report.name.clone(),
        run: report.run.clone(),
        scenario_sha256: report.scenario_sha256.clone(),
        find: begun.find,
        limits: begun.spec.clone(),
        sessions: search.session(),
        end: search.end().cloned(),
        known: search.known(),
        certified: None,
        first_failing: None,
        steps: steps.collect(),
    };
    answer.concluded()
}

/// Writes the answer in all its forms.
fn write(answer: &CapacityReport, out: &Path) -> Result<()> {
    fs::create_dir_all(out).with_context(|| format!("create {}", out.display()))?;
    write_whole(&out.join("capacity.json"), &answer.to_json())?;
    write_whole(&out.join("capacity.html"), &capacity_html(answer))?;
    match answer.csv() {
        Some(csv) => write_whole(&out.join("capacity.csv"), &csv),
        None => Ok(()),
    }
}

const fn code(end: &SearchEnd) -> u8 {
    match end {
        SearchEnd::Found(_) => outcome::PASS,
        SearchEnd::FailsAtFirst { .. } => outcome::FAIL,
        SearchEnd::AtLeast { .. }
        | SearchEnd::NotRecovered { .. }
        | SearchEnd::NothingClear { .. }
        | SearchEnd::OutOfBudget { .. } => outcome::INVALID,
    }
}
