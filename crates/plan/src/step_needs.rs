//! The least length of a step whose percentiles are judged.

use muster_judge::{Latency, SloBound};
use muster_model::{Dimension, Micros};

use crate::{Plan, StreamPlan};

/// Messages of a short step, as a multiple of those that a percentile needs. With fewer, the capacity of a simulated
/// queue is found too high more often than the search claims.
const MORE: f64 = 2.0;
/// The first step takes at most this part of the budget.
const FIRST_PART: f64 = 10.0;

/// The messages that the percentiles of the SLOs need in a step of a search, as lengths of the step.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct StepNeeds {
    /// The load times the seconds of the step: for percentiles of messages whose number grows with the load.
    pub load_seconds: f64,
    /// The length at any load: for percentiles of messages that are sent at the scenario's rate.
    pub hold: Micros,
}

impl StepNeeds {
    /// The lowest load whose first step takes at most a tenth of a search's budget.
    pub fn lowest_load(&self, budget: Micros) -> f64 {
        self.load_seconds / (budget.as_secs_f64() / FIRST_PART)
    }
}

impl Plan {
    /// Needs of a step of a search in a dimension. A percentile of streams without a rate needs nothing.
    pub fn step_needs(&self, dimension: Dimension) -> StepNeeds {
        let stated = self.stated_load(dimension);
        match dimension {
            Dimension::Connects => {
                let attempts = self.clone().only_attempts();
                attempts.needs_of_streams(dimension, stated)
            }
            Dimension::Rate | Dimension::Devices | Dimension::Commands | Dimension::Payload => {
                self.needs_of_streams(dimension, stated)
            }
        }
    }

    fn needs_of_streams(&self, dimension: Dimension, stated: f64) -> StepNeeds {
        let mut needs = StepNeeds::default();
        for slo in &self.rules.slos {
            let SloBound::Latency { of, percentile, .. } = slo.bound else {
                continue;
            };
            let is_of_commands = matches!(of, Latency::CommandResponse | Latency::CommandLoop);
            let is_its = |stream: &StreamPlan| match is_of_commands {
                true => stream.is_command(),
                false => stream.is_uplink(),
            };
            let streams = self.streams();
            let streams = streams.filter(|(fleet, of)| is_its(of) && slo.covers(fleet.id, of.id));
            let rate: f64 = streams.map(|(_, of)| of.schedule.rate.get()).sum();
            if rate == 0.0 {
                continue;
            }
            let seconds = percentile.needed() as f64 * MORE / rate;
            let is_constant = match dimension {
                Dimension::Payload => true,
                Dimension::Commands => !is_of_commands,
                Dimension::Rate | Dimension::Devices | Dimension::Connects => false,
            };
            if is_constant {
                needs.hold = needs.hold.max(Micros::from_secs_f64(seconds.ceil()));
            } else {
                needs.load_seconds = needs.load_seconds.max(seconds * stated);
            }
        }
        needs
    }
}
