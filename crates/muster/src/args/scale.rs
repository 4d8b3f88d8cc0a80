//! The command line of `muster scale`.

use std::path::PathBuf;

use clap::Args;
use muster_model::Micros;

use super::{ScenarioArgs, every};

#[derive(Debug, Args)]
pub(crate) struct ScaleArgs {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArgs,
    /// The time that all searches may take together.
    #[arg(long, value_name = "TIME", value_parser = every, default_value = "10m")]
    pub(crate) budget: Micros,
    /// The folder of the result; by default `results/<name>-<UTC time>`. It has a folder for each search.
    #[arg(long, value_name = "DIR", conflicts_with = "resume")]
    pub(crate) out: Option<PathBuf>,
    /// Go on in the folder of a growth that was interrupted: searches that ended are not repeated.
    #[arg(long, value_name = "DIR")]
    pub(crate) resume: Option<PathBuf>,
}
