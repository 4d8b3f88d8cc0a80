//! The command line of `muster capacity`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use muster_model::{Dimension, Micros};

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
    /// The load of the first step, such as `200/s`, or `50` devices or bytes; by default a tenth of the scenario's.
    #[arg(long, value_name = "LOAD", value_parser = load, conflicts_with = "resume")]
    pub(crate) from: Option<Load>,
    /// The highest load to try; by default a hundred times the scenario's, or all of its devices.
    #[arg(long, value_name = "LOAD", value_parser = load, conflicts_with = "resume")]
    pub(crate) to: Option<Load>,
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
    /// Devices that are connected and send at the scenario's rate each.
    Devices,
    /// Commands a second that the backend issues, while devices send at the scenario's rate.
    Commands,
    /// Bytes of each message, at the scenario's rate.
    Payload,
    /// Connection attempts a second; no messages are sent.
    Connects,
}

impl From<Find> for Dimension {
    fn from(find: Find) -> Self {
        match find {
            Find::Rate => Self::Rate,
            Find::Devices => Self::Devices,
            Find::Commands => Self::Commands,
            Find::Payload => Self::Payload,
            Find::Connects => Self::Connects,
        }
    }
}

/// A load in some dimension.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Load {
    /// A number of things.
    Count(u32),
    /// A rate, per second.
    PerSecond(f64),
}

impl Load {
    /// The load in a dimension.
    ///
    /// # Errors
    /// The remedy, if it has another unit.
    pub(crate) fn value(self, find: Dimension) -> Result<f64, &'static str> {
        match (self, find.is_count()) {
            (Self::PerSecond(rate), false) => Ok(rate),
            (Self::Count(count), true) if count > 0 => Ok(f64::from(count)),
            _ => Err(match find {
                Dimension::Rate | Dimension::Commands | Dimension::Connects => {
                    "write a rate, such as 200/s"
                }
                Dimension::Devices => "write a number of devices, such as 50",
                Dimension::Payload => "write a number of bytes, such as 1000",
            }),
        }
    }
}

fn load(text: &str) -> Result<Load, String> {
    if let Ok(count) = text.parse() {
        return Ok(Load::Count(count));
    }
    muster_scenario::rate_of_events(text).map(|rate| Load::PerSecond(rate.get()))
}
