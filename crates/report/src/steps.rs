//! The steps of a run as they are written, and as a table.

use muster_measure::Ledger;
use serde::{Deserialize, Serialize};

use crate::{Figure, Latencies, Rates, Report, Rule, RuleKind, RunResult};

/// One step of a run whose rate changes by stages: a hold, or a change of rate. A message belongs to the
/// step in which it was due (docs/semantics.md#steps).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
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
    /// The commands that came due in the step; null without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commands: Option<StepCommands>,
    /// Links that the platform ended in the step.
    pub disconnects: u64,
    /// The rules that a step has; empty without a result.
    pub rules: Vec<Rule>,
}

/// The commands that came due in a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StepCommands {
    /// Number of commands.
    pub scheduled: u64,
    /// Number of those that were issued in the step and whose reply arrived.
    pub replied: u64,
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

    /// The result that its rules give; none without a rule.
    pub fn result_by_rules(&self) -> Option<RunResult> {
        use crate::Consequence::{Fails, Invalidates};
        let has = |consequence| {
            self.rules
                .iter()
                .any(|rule| rule.consequence == consequence)
        };
        (!self.rules.is_empty()).then(|| match (has(Invalidates), has(Fails)) {
            (true, _) => RunResult::Invalid,
            (false, true) => RunResult::Fail,
            (false, false) => RunResult::Pass,
        })
    }

    /// The step judged by one set of SLOs.
    #[must_use]
    pub fn of_set(&self, set: &str) -> Self {
        let rules = self.rules.iter().filter(|rule| rule.sets.contain(set));
        let mut own = Self {
            rules: rules.cloned().collect(),
            ..self.clone()
        };
        own.result = self.result.and_then(|_| own.result_by_rules());
        own
    }

    /// The result by one set of SLOs; by all of them without a name.
    pub fn result_by(&self, set: Option<&str>) -> Option<RunResult> {
        match set {
            Some(set) => self.of_set(set).result,
            None => self.result,
        }
    }

    /// The rules on percentiles that a table with columns for `shown`, rules of the whole run, lacks.
    pub(crate) fn percentiles_besides<'a>(
        &'a self,
        shown: &'a [&'a str],
    ) -> impl Iterator<Item = &'a Rule> {
        self.rules.iter().filter(|rule| {
            let is_percentile =
                rule.kind == RuleKind::Slo && rule.bound.is_some_and(Figure::is_time);
            let is_shown = rule.scope == "run" && shown.contains(&rule.rule.as_str());
            is_percentile && !is_shown
        })
    }
}

/// The rules of the whole run that have a column by themselves.
const SHOWN: [&str; 4] = [
    "response p50",
    "response p99",
    "end-to-end p50",
    "end-to-end p99",
];

/// The name of the column of a percentile that a rule names: `response_p90_us`, or with its scope
/// `response_p90_us [meters/telemetry]`.
fn column(rule: &Rule) -> String {
    let name = rule.rule.replace([' ', '-', '.'], "_");
    match rule.scope.as_str() {
        "run" => format!("{name}_us"),
        scope => format!("{name}_us [{scope}]"),
    }
}

/// The columns of all percentiles that rules name besides those with a column by themselves.
fn further_columns(steps: &[&Step]) -> Vec<String> {
    let mut columns = Vec::new();
    for rule in steps
        .iter()
        .flat_map(|step| step.percentiles_besides(&SHOWN))
    {
        let column = column(rule);
        if !columns.contains(&column) {
            columns.push(column);
        }
    }
    columns
}

/// A step's cells for further columns, and at the end the names of those that are lower bounds.
fn further_cells(step: &Step, columns: &[String]) -> Vec<String> {
    let rule_of = |name: &String| {
        let mut rules = step.percentiles_besides(&SHOWN);
        rules.find(|rule| column(rule) == *name)
    };
    let observed = |name: &String| rule_of(name).and_then(|rule| rule.observed);
    let us = |name: &String| match observed(name) {
        Some(Figure::Time { us, .. }) => us.to_string(),
        _ => String::new(),
    };
    let is_at_least = |name: &&String| observed(name).is_some_and(Figure::is_at_least);
    let at_least = columns.iter().filter(is_at_least).map(String::as_str);
    let at_least = at_least.collect::<Vec<_>>().join("; ");
    columns.iter().map(us).chain([at_least]).collect()
}

/// A step's cells in order, each with the name of its column. A new column comes last.
fn cells(step: &Step) -> Cells {
    let (ledger, arrivals) = (&step.ledger, &step.ledger.arrivals);
    let response = step.latency.response.as_ref();
    let all_due = response.and_then(|leg| leg.all_due).unwrap_or_default();
    let end_to_end = step.latency.end_to_end.as_ref();
    let end_to_end = end_to_end.and_then(|leg| leg.all_due).unwrap_or_default();
    let broken: Vec<String> = step.broken().map(Rule::title).collect();
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
        (
            "commands",
            known(step.commands.map(|commands| commands.scheduled)),
        ),
        (
            "commands_replied",
            known(step.commands.map(|commands| commands.replied)),
        ),
    ]
}

fn known(value: Option<impl ToString>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// The steps as comma-separated values, with a heading; none if the run has no steps. Percentiles are of
/// all due. Each percentile that a rule names has a column.
pub fn steps_csv(report: &Report) -> Option<String> {
    let rows = report.steps.iter().map(|step| (Vec::new(), step));
    table(&rows.collect::<Vec<_>>())
}

/// Cells in order, each with the name of its column.
type Cells = Vec<(&'static str, String)>;

/// Steps as comma-separated values, each behind cells that belong to it; none without a step.
pub(crate) fn table(rows: &[(Cells, &Step)]) -> Option<String> {
    let steps: Vec<&Step> = rows.iter().map(|(_, step)| *step).collect();
    let further = further_columns(&steps);
    let (first, step) = rows.first()?;
    let names = first.iter().cloned().chain(cells(step));
    let mut heading: Vec<String> = names.map(|(name, _)| name.to_owned()).collect();
    if !further.is_empty() {
        heading.extend(further.iter().cloned());
        heading.push("rules_at_least".to_owned());
    }
    let rows = rows.iter().map(|(first, step)| {
        let all = first.iter().cloned().chain(cells(step));
        let mut row: Vec<String> = all.map(|(_, cell)| cell).collect();
        if !further.is_empty() {
            row.extend(further_cells(step, &further));
        }
        row
    });
    let lines = std::iter::once(heading).chain(rows).map(|row| {
        let row: Vec<String> = row.into_iter().map(quoted).collect();
        row.join(",") + "\n"
    });
    Some(lines.collect())
}

/// A cell as RFC 4180 wants it.
pub(crate) fn quoted(cell: String) -> String {
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
