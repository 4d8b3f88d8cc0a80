//! `muster run --repeat`: the same run several times, with one verdict.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use muster_report::{REPEAT_SCHEMA, Repeat, RepeatVerdict, RepeatedRun};
use muster_result::series;

use crate::args::RunArgs;
use crate::commands::run::{Done, once};
use crate::outputs::default_folder;
use crate::scenario_file::Loaded;
use crate::{folder, outcome, watched};

/// Runs a scenario `times` times, one after the other; the exit code is that of the worst run.
pub(crate) fn repeat(
    args: &RunArgs,
    times: u32,
    loaded: &Loaded,
    interrupted: &AtomicBool,
) -> Result<u8> {
    let out = match &args.out {
        Some(out) => out.clone(),
        None => folder::reserve(&default_folder(&loaded.plan))?,
    };
    folder::refuse_foreign(&out, |_| false)?;
    let mut runs = Vec::new();
    for number in 1..=times {
        if interrupted.load(Ordering::Relaxed) {
            break;
        }
        let done = once(&args_of(args, &out, number), loaded, interrupted)?;
        runs.push(reported(args, number, &done));
        write(args, &out, &summed_up(loaded, times, &runs))?;
        watched::end(done.exporter, args, interrupted);
    }
    let repeat = summed_up(loaded, times, &runs);
    outcome::say(&repeat.text());
    outcome::say(&format!("repeat: {}", out.join("repeat.json").display()));
    Ok(repeat.verdict.result.exit_code())
}

/// The arguments of the run of this number; it writes nothing that another one writes.
fn args_of(args: &RunArgs, out: &Path, number: u32) -> RunArgs {
    RunArgs {
        out: Some(out.join(number.to_string())),
        json: None,
        facts: args.facts.as_deref().map(|path| numbered(path, number)),
        ..args.clone()
    }
}

/// `facts` becomes `facts.1`.
fn numbered(path: &Path, number: u32) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number}"));
    PathBuf::from(name)
}

/// Says how a run went, and keeps what the spread is made of.
fn reported(args: &RunArgs, number: u32, done: &Done) -> RepeatedRun {
    let folder = number.to_string();
    let run = match &done.report {
        Some(report) => RepeatedRun::of(folder, report, series::figures(report)),
        None => RepeatedRun {
            result: done.outcome(),
            ..RepeatedRun::silent(folder)
        },
    };
    if args.quiet {
        outcome::say(&run.line());
    } else {
        outcome::say(&format!("{}\n", done.summary));
    }
    run
}

fn summed_up(loaded: &Loaded, wanted: u32, runs: &[RepeatedRun]) -> Repeat {
    Repeat {
        schema: REPEAT_SCHEMA.to_owned(),
        muster: env!("CARGO_PKG_VERSION").to_owned(),
        name: loaded.plan.name.clone(),
        seed: loaded.plan.seed,
        scenario_sha256: loaded.sha256.clone(),
        wanted,
        verdict: RepeatVerdict {
            result: series::worst(runs, wanted),
        },
        runs: runs.to_vec(),
        spread: series::spread(runs),
        spread_of_invalid: series::spread_of_invalid(runs),
    }
}

/// Writes the summary after each run, so that it is there even if the rest is killed.
fn write(args: &RunArgs, out: &Path, repeat: &Repeat) -> Result<()> {
    let json = repeat.to_json();
    fs::create_dir_all(out).with_context(|| format!("create {}", out.display()))?;
    folder::write_whole(&out.join("repeat.json"), &json)?;
    match &args.json {
        Some(path) => fs::write(path, &json).with_context(|| format!("write {}", path.display())),
        None => Ok(()),
    }
}
