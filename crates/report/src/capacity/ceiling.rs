//! The generator's own ceiling in the answer of a search.

use muster_judge::{Ceiling, GENERATOR_SHARE_MAX, GeneratorPart};
use muster_model::{Dimension, figure};
use serde::{Deserialize, Serialize};

/// The generator's own ceiling for the scenario of a search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CapacityCeiling {
    /// The ceiling: messages, commands or connects a second, or bytes of a message if payloads are searched.
    pub ceiling: Ceiling,
    /// The part of the ceiling that one unit of the load is: messages a second of a device, else 1.
    pub rate_per_load: f64,
    /// Share of it at the certified load; null without one.
    pub share: Option<f64>,
}

impl CapacityCeiling {
    /// A ceiling without a share.
    pub const fn new(ceiling: Ceiling, rate_per_load: f64) -> Self {
        Self {
            ceiling,
            rate_per_load,
            share: None,
        }
    }

    /// The highest load that it can judge, and the part that bounds it.
    pub fn most(&self) -> Option<(f64, GeneratorPart)> {
        let least = self.ceiling.least()?;
        let most = least.rate * GENERATOR_SHARE_MAX / self.rate_per_load;
        Some((most, least.part))
    }

    /// Share of it at a load.
    pub(super) fn share_of(&self, load: f64) -> f64 {
        self.ceiling.share_of(load * self.rate_per_load)
    }

    /// The ceiling in a line, with the share at the certified load.
    pub(super) fn line(&self, find: Dimension) -> String {
        let share = self.share.map(figure::percent);
        let share = share.map_or(String::new(), |share| {
            format!("; the certified load needs {share} of it")
        });
        let unit = match find {
            Dimension::Payload => find,
            Dimension::Rate | Dimension::Devices | Dimension::Commands | Dimension::Connects => {
                Dimension::Rate
            }
        };
        let ceiling = unit.in_words(self.ceiling.rate);
        format!("  the generator's own ceiling: {ceiling}{share}\n")
    }

    /// Its weakest part in words, with the remedy, if this load is the highest that it can judge.
    pub fn bound(&self, load: f64) -> Option<String> {
        let is_bound = self.share_of(load) >= GENERATOR_SHARE_MAX * (1.0 - ROUNDING);
        let (_, part) = is_bound.then(|| self.most())??;
        let remedy = part.remedy();
        Some(format!("generator-bound by {part}: {remedy}"))
    }
}

/// Relative difference of two loads that are equal but for rounding.
const ROUNDING: f64 = 1e-9;
