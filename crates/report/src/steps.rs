//! The steps of a run as they are written, and as a table.

use muster_measure::Ledger;
use serde::{Deserialize, Serialize};

use crate::{Latencies, Rates, Report, Rule, RunResult};

/// One step of a run whose rate changes by stages: a hold, or a change of rate. A message belongs to the
/// step in which it was due (docs/semantics.md#steps).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Its number, from 1.
    pub step: u64,
    /// Its begin, in seconds since T0.
    pub from_s: f64,
    /// Its end.
    pub until_s: f64,
    /// Rate that the stages state at its begin, per second.
    pub rate: f64,
    /// Rate that they state at its end; another one if the rate changes within the step.
    pub rate_until: f64,
    /// True if no stage changes its rate within the step.
    pub is_hold: bool,
    /// Its result; null if the rate changes within the step, if nothing was due in it, or if nothing of the run is judged.
    pub result: Option<RunResult>,
    /// The rates of the step, over all streams.
    pub rates: Rates,
    /// The messages due in the step; what has no due instant is null, or counts by its own second.
    pub ledger: Ledger,
    /// Latencies of the messages due in the step.
    pub latency: Latencies,
    /// Links that the platform ended in the step.
    pub disconnects: u64,
    /// The rules that a step has; empty without a result.
    pub rules: Vec<Rule>,
}

impl Step {
    /// The rules that decided the result against a pass, those that make it invalid first.
    pub fn broken(&self) -> impl Iterator<Item = &Rule> {
        use crate::Consequence::{Fails, Invalidates};
        let of = |consequence| {
            let rules = self.rules.iter();
            rules.filter(move |rule| rule.consequence == consequence)
        };
        of(Invalidates).chain(of(Fails))
    }
}

/// A step's cells in order, each with the name of its column. A new column comes last.
fn cells(step: &Step) -> Vec<(&'static str, String)> {
    let (ledger, arrivals) = (&step.ledger, &step.ledger.arrivals);
    let response = step.latency.response.as_ref();
    let all_due = response.and_then(|leg| leg.all_due).unwrap_or_default();
    let end_to_end = step.latency.end_to_end.as_ref();
    let end_to_end = end_to_end.and_then(|leg| leg.all_due).unwrap_or_default();
    let broken: Vec<String> = step
        .broken()
        .map(|rule| format!("{} [{}]", rule.rule, rule.scope))
        .collect();
    vec![
        ("step", step.step.to_string()),
        ("from_s", step.from_s.to_string()),
        ("until_s", step.until_s.to_string()),
        ("rate", step.rate.to_string()),
        ("rate_until", step.rate_until.to_string()),
        ("result", known(step.result.map(RunResult::name))),
        ("broken", broken.join("; ")),
        ("offered_per_s", known(step.rates.offered)),
        ("issued_per_s", known(step.rates.issued)),
        ("scheduled", known(ledger.scheduled)),
        ("sent", ledger.sent.to_string()),
        ("accepted", ledger.accepted.to_string()),
        ("failed", ledger.failed.to_string()),
        ("arrived", known(arrivals.arrived)),
        ("lost", known(arrivals.lost)),
        ("lost_unacknowledged", known(arrivals.lost_unacknowledged)),
        ("outstanding", known(arrivals.outstanding)),
        ("response_p50_us", known(all_due.p50_us)),
        ("response_p99_us", known(all_due.p99_us)),
        (
            "response_at_least",
            all_due.at_least.names().collect::<Vec<_>>().join(" "),
        ),
        ("end_to_end_p50_us", known(end_to_end.p50_us)),
        ("end_to_end_p99_us", known(end_to_end.p99_us)),
        (
            "end_to_end_at_least",
            end_to_end.at_least.names().collect::<Vec<_>>().join(" "),
        ),
        ("disconnects", step.disconnects.to_string()),
    ]
}

fn known(value: Option<impl ToString>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// The steps as comma-separated values, with a heading; none if the run has no steps. Percentiles are of
/// all due.
pub fn steps_csv(report: &Report) -> Option<String> {
    let rows: Vec<Vec<(&str, String)>> = report.steps.iter().map(cells).collect();
    let heading: Vec<&str> = rows.first()?.iter().map(|(name, _)| *name).collect();
    let mut table = heading.join(",") + "\n";
    for row in rows {
        let row: Vec<String> = row.into_iter().map(|(_, cell)| quoted(cell)).collect();
        table += &(row.join(",") + "\n");
    }
    Some(table)
}

/// A cell as RFC 4180 wants it.
fn quoted(cell: String) -> String {
    match cell.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_with_a_comma_is_quoted() {
        let cells = ["loss [run]", "loss [a,b]", "a \"b\""].map(|cell| quoted(cell.to_owned()));
        assert_eq!(cells, ["loss [run]", "\"loss [a,b]\"", "\"a \"\"b\"\"\""]);
    }

    #[test]
    fn a_run_without_steps_has_no_table_of_them() {
        assert_eq!(steps_csv(&Report::default()), None);
    }
}
