//! Resources of the target.

use muster_model::figure;

use super::Screen;
use crate::MonitoredSeries;

/// Resources that have a line; more are counted.
const LINES: usize = 24;

impl Screen {
    /// A line for each resource that was sampled while measuring.
    pub(super) fn monitor(&mut self, all: &[MonitoredSeries]) {
        let shown: Vec<&MonitoredSeries> = all.iter().filter(|of| of.average.is_some()).collect();
        let names = shown.iter().map(|of| name(of).chars().count());
        let width = names.max().unwrap_or(0);
        for (at, series) in shown.iter().take(LINES).enumerate() {
            let words = |value| figure::known(value, |value| series.unit.words(value));
            let limit = series
                .limit
                .map(|limit| format!("limit {}", series.unit.words(limit)));
            let mut parts = vec![
                format!(
                    "{:<width$}  average {}",
                    name(series),
                    words(series.average)
                ),
                format!("min {}", words(series.min)),
                format!("max {}", words(series.max)),
            ];
            parts.extend(limit);
            self.row(if at == 0 { "target" } else { "" }, &parts);
        }
        if shown.len() > LINES {
            self.row("", &[format!("and {} more", shown.len() - LINES)]);
        }
    }
}

fn name(of: &MonitoredSeries) -> String {
    format!("{} {}", of.name, of.resource)
}

#[cfg(test)]
mod tests {
    use muster_model::ResourceUnit;

    use crate::monitor::tests::series;
    use crate::{Report, text};

    #[test]
    fn each_resource_has_a_line() {
        let mut report = Report::default();
        assert!(!text(&report, 100).contains("\ntarget "));
        report.monitor = vec![
            series("broker", "cpu", ResourceUnit::Cores),
            series("broker", "memory", ResourceUnit::Bytes),
        ];
        report.monitor[0].limit = Some(2.0);
        (report.monitor[1].average, report.monitor[1].max) = (Some(4.5e6), Some(5e6));
        let lines = "\
target     broker cpu     average 0.5 cores  min 0.25 cores  max 0.75 cores  limit 2 cores
           broker memory  average 4.50 MB  min 0 B  max 5.00 MB
";
        let summary = text(&report, 100);
        assert!(summary.contains(lines), "{summary}");
    }
}
