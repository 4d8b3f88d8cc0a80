//! `muster import`: what another load test was called with, as a scenario.

mod environment;
mod hono;
mod sap;
mod thingsboard;
mod variables;

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use muster_scenario::{NoFiles, Overrides, Reader, Source, parse};

use crate::args::{ImportArgs, ImportFrom};
use crate::outcome;

/// Prints the scenario, or writes it to a file.
pub(crate) fn import(args: &ImportArgs) -> Result<u8> {
    let (scenario, out) = match &args.from {
        ImportFrom::Sap(args) => {
            let scenario = sap::scenario(args);
            check(&scenario, &NoFiles)?;
            (scenario, &args.out)
        }
        ImportFrom::HonoSimulator(args) => {
            let imported = hono::imported(args)?;
            check(&imported.text, &imported)?;
            (imported.text, &args.out)
        }
        ImportFrom::Thingsboard(args) => {
            let imported = thingsboard::imported(args)?;
            check(&imported.text, &imported)?;
            (imported.text, &args.out)
        }
    };
    match out {
        None => outcome::say(&scenario),
        Some(path) => write_new(path, &scenario)?,
    }
    Ok(outcome::PASS)
}

/// Checks that the scenario can run.
fn check(scenario: &str, reader: &dyn Reader) -> Result<()> {
    let source = Source {
        name: "the scenario",
        text: scenario,
    };
    let plan = parse(source, &Overrides::new(), reader);
    plan.map(drop).map_err(|problems| anyhow!("{problems}"))
}

/// A scenario that somebody has worked on is not overwritten.
fn write_new(path: &Path, scenario: &str) -> Result<()> {
    let file = OpenOptions::new().write(true).create_new(true).open(path);
    file.and_then(|mut file| file.write_all(scenario.as_bytes()))
        .with_context(|| format!("write the scenario {}", path.display()))
}
