//! The command line of `muster scale`.

use std::path::PathBuf;

use clap::Args;
use muster_model::Micros;

use super::{CalibrationArgs, ScenarioArgs, every};

#[derive(Debug, Args)]
pub(crate) struct ScaleArgs {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArgs,
    /// The time that all searches may take together; by default 10m, or more if the searches need more. With
    /// `policy: published` the time of the test, by default as long as it takes.
    #[arg(long, value_name = "TIME", value_parser = every)]
    pub(crate) budget: Option<Micros>,
    /// The folder of the result; by default `results/<name>-<UTC time>`. It has a folder for each search.
    #[arg(long, value_name = "DIR", conflicts_with = "resume")]
    pub(crate) out: Option<PathBuf>,
    /// Sign the certificate of each search with this private key of ed25519 in PEM; `scale.json` and `scale.html` are not
    /// signed.
    #[arg(long, value_name = "KEY")]
    pub(crate) sign: Option<PathBuf>,
    /// Go on in the folder of a growth that was interrupted, or had too short a budget: capacities that were found are not
    /// searched again.
    #[arg(long, value_name = "DIR")]
    pub(crate) resume: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) calibration: CalibrationArgs,
}
