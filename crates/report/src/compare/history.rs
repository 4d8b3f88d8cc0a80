//! A history of results as it is written (docs/compare.md).

use std::fmt::Write as _;

use muster_judge::compare::{FALSE_ALARMS, Finding, HISTORY_MIN, Judgement};
use serde::{Deserialize, Serialize};

use super::Unit;
use super::text::p_in_words;
use crate::result::indented;

/// The name and version of the form of a history.
pub const HISTORY_SCHEMA: &str = "muster-history/1";

/// The results of a folder over time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct History {
    /// Always [`HISTORY_SCHEMA`].
    pub schema: String,
    /// Version of the program that compared.
    pub muster: String,
    /// The worst verdict of all scenarios.
    pub verdict: Judgement,
    /// Relative difference that does not matter.
    pub tolerance: f64,
    /// One course for each load.
    pub courses: Vec<HistoryCourse>,
    /// Results that do not count, each with the reason.
    pub left_out: Vec<String>,
}

/// Results of one load over time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HistoryCourse {
    /// The scenario's name.
    pub name: String,
    /// The verdict on its last results.
    pub verdict: Judgement,
    /// Its results in order of time.
    pub results: Vec<HistoryResult>,
    /// The figures, those that decide first.
    pub figures: Vec<HistoryFigure>,
}

/// One result of a history: a run, or the runs of one `--repeat`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HistoryResult {
    /// Its folder.
    pub folder: String,
    /// Wall clock at T0 of its first run.
    pub started: String,
    /// Number of its runs.
    pub runs: usize,
}

/// One figure over time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HistoryFigure {
    /// Its name, such as `response p99`.
    pub figure: String,
    /// The unit of its values.
    pub unit: Unit,
    /// True if the figure decides the verdict.
    pub decides: bool,
    /// The values, one a result: the median of its runs; null where not known.
    pub values: Vec<Option<f64>>,
    /// The changes of level in order.
    pub changes: Vec<HistoryChange>,
    /// Distance from the first to the last result since the last change; null with too few results.
    pub drift: Option<f64>,
    /// Probability of such a drift by chance; null likewise.
    pub drift_p: Option<f64>,
    /// The finding on the last results.
    pub finding: Finding,
}

/// A change of level.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HistoryChange {
    /// Index of the first result after it.
    pub at: usize,
    /// Folder of this result.
    pub folder: String,
    /// Level before it.
    pub before: f64,
    /// Level after it.
    pub after: f64,
    /// Distance of both levels: 0.05 is 5 % more, of a share 5 percentage points more.
    pub by: f64,
    /// Probability of such a change by chance.
    pub p: f64,
    /// The finding.
    pub finding: Finding,
}

impl History {
    /// The history as JSON, indented, with a line feed at the end.
    pub fn to_json(&self) -> String {
        indented(self)
    }

    /// The history as text.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for course in &self.courses {
            course.text(self.tolerance, &mut text);
        }
        for reason in &self.left_out {
            let _ = writeln!(text, "left out: {reason}");
        }
        text
    }
}

impl HistoryCourse {
    fn text(&self, tolerance: f64, text: &mut String) {
        let span = match (self.results.first(), self.results.last()) {
            (Some(first), Some(last)) => format!(", {} to {}", first.started, last.started),
            _ => String::new(),
        };
        let _ = writeln!(
            text,
            "{}  {}  {} results{span}, tolerance {} %",
            self.verdict.name().to_uppercase(),
            self.name,
            self.results.len(),
            tolerance * 100.0
        );
        if self.results.len() < HISTORY_MIN {
            let _ = writeln!(
                text,
                "  a history needs {HISTORY_MIN} results of one load\n"
            );
            return;
        }
        let width = self
            .figures
            .iter()
            .map(|of| of.figure.len())
            .max()
            .unwrap_or(0);
        for figure in &self.figures {
            figure.text(width, text);
        }
        let _ = writeln!(
            text,
            "* decides; a history that does not change is called better or worse in at most {} %\n",
            FALSE_ALARMS * 100.0
        );
    }
}

impl HistoryFigure {
    fn text(&self, width: usize, text: &mut String) {
        let mark = if self.decides { '*' } else { ' ' };
        let last = self.values.iter().rev().flatten().next().copied();
        let drift = self
            .drift
            .zip(self.drift_p)
            .map_or(String::new(), |(by, p)| {
                format!(
                    "drift {} (p {})",
                    self.unit.distance_in_words(by),
                    p_in_words(p)
                )
            });
        let _ = writeln!(
            text,
            "{mark} {:<width$} {:>10}  {:<8} {drift}",
            self.figure,
            self.unit.in_words(last),
            self.finding.name()
        );
        for change in &self.changes {
            let _ = writeln!(
                text,
                "    {} since {}: {} to {} ({}, p {})",
                change.finding.name(),
                change.folder,
                self.unit.in_words(Some(change.before)),
                self.unit.in_words(Some(change.after)),
                self.unit.distance_in_words(change.by),
                p_in_words(change.p)
            );
        }
    }
}
