//! The resource of the target that was nearest to its limit when a step failed.

use muster_model::ResourceUnit;
use serde::{Deserialize, Serialize};

use super::CapacityStep;
use crate::{MonitoredSeries, Report};

/// The resource of the target that rose nearest to its limit, among those that `monitor` watches and that have one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Saturation {
    /// The entry of `monitor`.
    pub name: String,
    /// The resource.
    pub resource: String,
    /// The unit of the values.
    pub unit: ResourceUnit,
    /// Its limit.
    pub limit: f64,
    /// Its average in the first failing step.
    pub failing: f64,
    /// Its average in the passing step below that with the highest load.
    pub passing: f64,
}

impl Saturation {
    /// The resource by the samples of a report; none if none was sampled in both steps, or none rose.
    pub(super) fn new(
        report: &Report,
        failing: &CapacityStep,
        passing: &CapacityStep,
    ) -> Option<Self> {
        let all = report.monitor.iter().filter_map(|series| {
            let limit = series.limit.filter(|limit| *limit > 0.0)?;
            Some(Self {
                name: series.name.clone(),
                resource: series.resource.clone(),
                unit: series.unit,
                limit,
                failing: average(series, failing)?,
                passing: average(series, passing)?,
            })
        });
        let risen = all.filter(|of| of.failing > of.passing);
        risen.max_by(|a, b| a.share().total_cmp(&b.share()))
    }

    fn share(&self) -> f64 {
        self.failing / self.limit
    }

    pub(super) fn in_words(&self) -> String {
        let words = |value: f64| self.unit.words(value);
        format!(
            "of what `monitor` watches, {} {} was nearest to its limit: {} of {} ({} at the highest load below that passed)",
            self.name,
            self.resource,
            words(self.failing),
            words(self.limit),
            words(self.passing)
        )
    }
}

/// The average of the stretches that lie within a step.
fn average(series: &MonitoredSeries, step: &CapacityStep) -> Option<f64> {
    let (from, until) = (step.figures.from_s, step.figures.until_s);
    let length = f64::from(series.for_s);
    let within = series.windows.iter();
    let within = within.filter(|window| window[0] >= from && window[0] + length <= until);
    let averages: Vec<f64> = within.map(|window| window[1]).collect();
    (!averages.is_empty()).then(|| averages.iter().sum::<f64>() / averages.len() as f64)
}
