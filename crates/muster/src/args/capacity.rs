//! The command line of `muster capacity`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use muster_model::{Micros, Rate};

use super::{CalibrationArgs, ScenarioArgs, every};

#[derive(Debug, Args)]
pub(crate) struct CapacityArgs {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArgs,
    /// The dimension of the load that grows.
    #[arg(long, value_enum, default_value = "rate")]
    pub(crate) find: Find,
    /// The time that all steps may take together; by default 10m, and with --resume as before.
    #[arg(long, value_name = "TIME", value_parser = every)]
    pub(crate) budget: Option<Micros>,
    /// The rate of the first step, such as `200/s`; by default a tenth of the scenario's.
    #[arg(long, value_name = "RATE", value_parser = rate, conflicts_with = "resume")]
    pub(crate) from: Option<f64>,
    /// The highest rate to try; by default a hundred times the scenario's.
    #[arg(long, value_name = "RATE", value_parser = rate, conflicts_with = "resume")]
    pub(crate) to: Option<f64>,
    #[command(flatten)]
    pub(crate) calibration: CalibrationArgs,
    /// The folder of the result; by default `results/<name>-<UTC time>`.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Sign `certificate.json` with this private key of ed25519 in PEM; `certificate.sig` is its signature.
    #[arg(long, value_name = "KEY")]
    pub(crate) sign: Option<PathBuf>,
    /// Goes on with the search of this folder, which was stopped or had too short a budget: no step that was
    /// judged is held again. `--budget` counts the time of all its runs.
    #[arg(long, value_name = "DIR", conflicts_with = "out")]
    pub(crate) resume: Option<PathBuf>,
}

/// A dimension of the load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Find {
    /// Messages a second, of all streams together.
    Rate,
}

/// A rate, per second.
fn rate(text: &str) -> Result<f64, String> {
    muster_scenario::rate_of_events(text).map(Rate::get)
}
