//! Samples of the target over time.

use muster_judge::outlook::{Lasts, Outlook};
use muster_model::ResourceUnit;
use serde::{Deserialize, Serialize};

use crate::Report;
use crate::steps::quoted;

/// One resource of the target over time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MonitoredSeries {
    /// The entry of `monitor`.
    pub name: String,
    /// The resource: `cpu`, `memory`, or the name of a figure.
    pub resource: String,
    /// The unit of its values.
    pub unit: ResourceUnit,
    /// The value at which it runs out; null without one, or if it is not known.
    pub limit: Option<f64>,
    /// Mean of the samples of the measured phase; null if it has none, as the next two.
    pub average: Option<f64>,
    /// The least of them.
    pub min: Option<f64>,
    /// The largest of them.
    pub max: Option<f64>,
    /// Its trend and the time until it runs out; null without `soak` in the scenario, or without a limit.
    pub outlook: Option<ResourceTrend>,
    /// Length of each of `windows` in seconds.
    pub for_s: u32,
    /// At most 600 stretches of the whole run: `[begin in seconds since T0, average, min, max]`.
    pub windows: Vec<[f64; 4]>,
}

/// Movement of a resource towards its limit while measuring, with 90 % intervals.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ResourceTrend {
    /// `sustainable`, `not-sustainable` or `unclear`.
    pub verdict: Sustainability,
    /// Its level at the end: that of its peaks, or of its lows if the limit is below.
    pub level: f64,
    /// Growth per hour of its floor; null if the load was too short, as the next two.
    pub per_hour: Option<f64>,
    /// Lower end of the interval of `per_hour`.
    pub per_hour_low: Option<f64>,
    /// Upper end of the interval of `per_hour`.
    pub per_hour_high: Option<f64>,
    /// Seconds from the end of the load until it runs out at this rate; null if it does not move towards its limit, as
    /// the next two.
    pub runs_out_s: Option<f64>,
    /// The earliest that is likely.
    pub earliest_s: Option<f64>,
    /// The latest that is likely.
    pub latest_s: Option<f64>,
    /// Length of the measured phase that decides; null if it is decided.
    pub needs_s: Option<f64>,
}

/// Finding on the trend of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sustainability {
    /// The resource lasts for the time that the scenario demands.
    Sustainable,
    /// The resource runs out before.
    NotSustainable,
    /// The interval of its trend holds both.
    Unclear,
}

impl From<&Outlook> for ResourceTrend {
    fn from(of: &Outlook) -> Self {
        let per_hour = |slope: Option<f64>| slope.map(|slope| slope * 3_600.0);
        let (verdict, needs_s) = match of.lasts {
            Lasts::Yes => (Sustainability::Sustainable, None),
            Lasts::No => (Sustainability::NotSustainable, None),
            Lasts::Unclear { needs_s } => (Sustainability::Unclear, Some(needs_s.ceil())),
        };
        Self {
            verdict,
            level: of.level,
            per_hour: per_hour(of.slope),
            per_hour_low: per_hour(of.slope_low),
            per_hour_high: per_hour(of.slope_high),
            runs_out_s: of.runs_out_s.map(f64::round),
            earliest_s: of.earliest_s.map(f64::round),
            latest_s: of.latest_s.map(f64::round),
            needs_s,
        }
    }
}

/// The samples as comma-separated values with a heading, a row for each stretch of each resource; none without a
/// sample.
pub fn monitor_csv(report: &Report) -> Option<String> {
    if report.monitor.is_empty() {
        return None;
    }
    let mut table = "t_s,for_s,name,resource,unit,average,min,max\n".to_owned();
    for series in &report.monitor {
        let name = quoted(series.name.clone());
        let resource = quoted(series.resource.clone());
        for [begin, average, min, max] in &series.windows {
            let (for_s, unit) = (series.for_s, series.unit.name());
            table += &format!("{begin},{for_s},{name},{resource},{unit},{average},{min},{max}\n");
        }
    }
    Some(table)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Two samples of a resource.
    pub(crate) fn series(name: &str, resource: &str, unit: ResourceUnit) -> MonitoredSeries {
        MonitoredSeries {
            name: name.to_owned(),
            resource: resource.to_owned(),
            unit,
            limit: None,
            average: Some(0.5),
            min: Some(0.25),
            max: Some(0.75),
            outlook: None,
            for_s: 1,
            windows: vec![[0.0, 0.25, 0.25, 0.25], [1.0, 0.75, 0.75, 0.75]],
        }
    }

    #[test]
    fn each_sample_has_a_row() {
        let mut report = Report::default();
        assert_eq!(monitor_csv(&report), None);
        report.monitor = vec![series("a,b", "cpu", ResourceUnit::Cores)];
        let table = monitor_csv(&report).expect("a table");
        let expected = "t_s,for_s,name,resource,unit,average,min,max\n\
                        0,1,\"a,b\",cpu,cores,0.25,0.25,0.25\n\
                        1,1,\"a,b\",cpu,cores,0.75,0.75,0.75\n";
        assert_eq!(table, expected);
    }
}
