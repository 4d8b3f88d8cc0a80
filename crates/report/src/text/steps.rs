//! The table of steps.

use muster_model::Micros;
use muster_model::figure::{clock, rate};

use super::Screen;
use super::reasons::reason;
use crate::figures::in_words;
use crate::number::{known, per_second};
use crate::{LatencyFigures, Report, RuleResult, Step};

/// Steps that the summary shows; more are counted, and stand in the other forms of the report.
const STEPS: usize = 40;

/// The rules of the whole run whose percentiles are columns.
const SHOWN: [&str; 3] = ["response p50", "response p99", "end-to-end p99"];

impl Screen {
    /// One line a step; below it the rules that it breaks, and those that hold whose percentile is no column.
    pub(super) fn steps(&mut self, report: &Report) {
        if report.steps.is_empty() {
            return;
        }
        self.line(&format!(
            "{:<16}{:>12}{:>10}{:>9}{:>9}{:>9}{:>7}  result",
            "steps", "stated /s", "issued/s", "p50", "p99", "e2e p99", "lost"
        ));
        for step in report.steps.iter().take(STEPS) {
            self.line(&row(step));
            for rule in step.broken() {
                self.line(&format!("      {}", reason(rule)));
            }
            let further = step.percentiles_besides(&SHOWN);
            for rule in further.filter(|rule| rule.result == RuleResult::Pass) {
                self.line(&format!("      {}", reason(rule)));
            }
        }
        let more = report.steps.len().saturating_sub(STEPS);
        if more > 0 {
            self.line(&format!("  and {more} more in report.html and steps.csv"));
        }
        self.line("");
    }
}

fn row(step: &Step) -> String {
    let at = |seconds: f64| clock(Micros::from_secs_f64(seconds));
    let span = format!("{}-{}", at(step.from_s), at(step.until_s));
    let stated = match step.is_hold {
        true => rate(step.rate),
        false => format!("{} > {}", rate(step.rate), rate(step.rate_until)),
    };
    let (issued, lost) = (
        per_second(step.rates.issued),
        known(step.ledger.arrivals.lost),
    );
    let response = step.latency.response.as_ref();
    let (p50, p99) = (
        percentile(response, "p50_us"),
        percentile(response, "p99_us"),
    );
    let end_to_end = percentile(step.latency.end_to_end.as_ref(), "p99_us");
    let result = step.result.map_or("-", |result| result.name());
    format!(
        "{:>3} {span:<12}{stated:>12}{issued:>10}{p50:>9}{p99:>9}{end_to_end:>9}{lost:>7}  {result}",
        step.step
    )
}

/// A percentile of all due, as rules judge it; a lower bound fits without its blanks.
fn percentile(leg: Option<&LatencyFigures>, name: &str) -> String {
    let Some(leg) = leg else {
        return "-".to_owned();
    };
    let of = leg.all_due.unwrap_or(leg.percentiles);
    let words = in_words(&of, name);
    match of.at_least.holds(name) {
        true => words.replace(' ', ""),
        false => words,
    }
}
