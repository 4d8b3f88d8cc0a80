//! Dimensions of a load.

use serde::{Deserialize, Serialize};

use crate::figure;

/// A dimension of the load. A search finds how much of it a target carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dimension {
    /// Messages a second, of all streams together.
    Rate,
    /// Connected devices. Each of them sends at its stated rate.
    Devices,
    /// Commands a second to all devices together. Devices send at their stated rates.
    Commands,
    /// Bytes of each message. Devices send at their stated rates.
    Payload,
    /// Connection attempts a second, of all fleets together.
    Connects,
}

impl Dimension {
    /// The name of the dimension.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::Devices => "devices",
            Self::Commands => "commands",
            Self::Payload => "payload",
            Self::Connects => "connects",
        }
    }

    /// True if a load is a number of things, false if it is a rate.
    pub const fn is_count(self) -> bool {
        matches!(self, Self::Devices | Self::Payload)
    }

    /// A load in words, such as `2,000/s`.
    pub fn in_words(self, load: f64) -> String {
        match self {
            Self::Rate | Self::Commands | Self::Connects => format!("{}/s", figure::rate(load)),
            Self::Devices => format!("{} devices", figure::count(self.held(load) as u64)),
            Self::Payload => format!("{} bytes", figure::count(self.held(load) as u64)),
        }
    }

    /// The load that is held where a search wants this one: things are whole.
    pub fn held(self, load: f64) -> f64 {
        match self.is_count() {
            true => load.floor().max(1.0),
            false => load,
        }
    }

    /// The remedy where the highest load that may be tried passes.
    pub const fn beyond(self) -> &'static str {
        match self {
            Self::Rate | Self::Commands | Self::Connects => "try a higher one with --to",
            Self::Payload => "try a higher one with --to, up to the largest payload",
            Self::Devices => "give the scenario more devices, and --to if it is set",
        }
    }
}
