//! The comparison of results as it is written (docs/compare.md).

use muster_judge::compare::{Finding, Judgement};
use muster_model::{Dimension, Micros, figure};
use serde::{Deserialize, Serialize};

use crate::Window;
use crate::result::indented;

mod history;
mod markdown;
mod text;

pub use history::{
    HISTORY_SCHEMA, History, HistoryChange, HistoryCourse, HistoryFigure, HistoryResult,
};

/// The name and version of the form of a comparison.
pub const COMPARE_SCHEMA: &str = "muster-compare/1";

/// Several sides, each after the first compared with the first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Compare {
    /// Always [`COMPARE_SCHEMA`].
    pub schema: String,
    /// Version of the program that compared.
    pub muster: String,
    /// The worst verdict of all comparisons.
    pub verdict: Judgement,
    /// The comparisons, in the order of the sides.
    pub comparisons: Vec<Comparison>,
}

/// The windows of one run, from the begin of its measured phase on, for the charts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OverlaidRun {
    /// Number of its side; 0 is the base.
    pub side: usize,
    /// Its folder.
    pub folder: String,
    /// Its windows of the measured phase, without heat maps.
    pub windows: Vec<Window>,
}

/// Two sides, compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The verdict.
    pub verdict: Judgement,
    /// Grounds of the verdict, most important first.
    pub reasons: Vec<String>,
    /// The side that the other one is compared with.
    pub base: Side,
    /// The other side.
    pub change: Side,
    /// Relative difference that does not matter.
    pub tolerance: f64,
    /// Probability with which each interval holds the truth.
    pub confidence: f64,
    /// Differences between the set-ups.
    pub setup: Vec<SetupDifference>,
    /// The figures, those that decide first.
    pub figures: Vec<ComparedFigure>,
}

/// One side of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Side {
    /// Name of the side, as it was given.
    pub name: String,
    /// Its runs.
    pub runs: Vec<ComparedRun>,
}

/// One run of a side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ComparedRun {
    /// Its folder.
    pub folder: String,
    /// Its id.
    pub run: String,
    /// Its wall clock at T0.
    pub started: Option<String>,
    /// Its result in a word.
    pub result: String,
    /// Reason why its figures do not count; null if they count.
    pub left_out: Option<String>,
}

/// A difference between the set-ups of two sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SetupDifference {
    /// The key, such as `scenario.phases.measure`.
    pub key: String,
    /// Values of the base.
    pub base: String,
    /// Values of the change.
    pub change: String,
    /// True if figures of such set-ups cannot be compared.
    pub blocks: bool,
}

/// A unit of a compared figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Microseconds.
    Us,
    /// Events per second.
    PerSecond,
    /// Connected devices.
    Devices,
    /// A share, 0 to 1.
    Share,
    /// Bytes.
    Bytes,
}

/// A figure of both sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ComparedFigure {
    /// Its name, such as `response p99`.
    pub figure: String,
    /// The stream `<fleet>/<stream>`, or `run`.
    pub scope: String,
    /// The unit of its values.
    pub unit: Unit,
    /// True if less is better.
    pub less_is_better: bool,
    /// True if the figure decides the verdict.
    pub decides: bool,
    /// The values of the base, one a run; null where not known.
    pub base_runs: Vec<Option<f64>>,
    /// The values of the change.
    pub change_runs: Vec<Option<f64>>,
    /// The base: geometric mean of its runs, of a share the mean; null where not known.
    pub base: Option<f64>,
    /// The change, likewise.
    pub change: Option<f64>,
    /// Distance of the change: 0.05 is 5 % more, of a share 5 percentage points more.
    pub by: Option<f64>,
    /// Bounds of the distance; null if nothing bounds it.
    pub interval: Option<[f64; 2]>,
    /// Probability of so large a distance between equal sides; null with too few runs.
    pub p: Option<f64>,
    /// The finding; null if only one side knows the figure.
    pub finding: Option<Finding>,
    /// A remark, such as the number of runs that would decide.
    pub note: Option<String>,
}

impl Compare {
    /// The text of `compare.json`: indented, with a line feed at the end.
    pub fn to_json(&self) -> String {
        indented(self)
    }

    /// The comparison and the windows for its charts as JSON.
    pub(crate) fn json_with(&self, overlaid: &[OverlaidRun]) -> String {
        let data = PageData {
            muster: &self.muster,
            schema: &self.schema,
            comparisons: &self.comparisons,
            overlaid,
        };
        serde_json::to_string(&data).expect("it holds only string keys, so that it is always JSON")
    }
}

impl Unit {
    /// A value in words.
    pub fn in_words(self, value: Option<f64>) -> String {
        figure::known(value, |value| match self {
            Self::Us => figure::time(Micros(value.round() as u64)),
            Self::PerSecond => Dimension::Rate.in_words(value),
            Self::Devices => format!("{} devices", figure::count(value.round() as u64)),
            Self::Share => figure::percent(value),
            Self::Bytes => figure::bytes(value.round() as u64),
        })
    }

    /// A distance in words: `+12.3 %`, of a share in percentage points: `+0.12 pp`.
    pub fn distance_in_words(self, distance: f64) -> String {
        let percent = distance * 100.0;
        match self {
            Self::Share => format!("{percent:+.3} pp"),
            Self::Us | Self::PerSecond | Self::Devices | Self::Bytes => match percent.abs() {
                0.0..100.0 => format!("{percent:+.1} %"),
                100.0..100_000.0 => format!("{percent:+.0} %"),
                _ => format!("x {:.3e}", 1.0 + distance),
            },
        }
    }
}

/// The data of a page.
#[derive(Serialize)]
struct PageData<'a> {
    muster: &'a str,
    schema: &'a str,
    comparisons: &'a [Comparison],
    overlaid: &'a [OverlaidRun],
}

impl ComparedFigure {
    /// Its name with its scope.
    pub fn title(&self) -> String {
        match self.scope.as_str() {
            "run" => self.figure.clone(),
            scope => format!("{} [{scope}]", self.figure),
        }
    }

    /// A value in words.
    pub fn in_words(&self, value: Option<f64>) -> String {
        self.unit.in_words(value)
    }

    /// A distance in words.
    pub fn distance_in_words(&self, distance: f64) -> String {
        self.unit.distance_in_words(distance)
    }

    /// The interval in words: `-1.2 % to +3.4 %`; a dash without one.
    pub fn interval_in_words(&self) -> String {
        figure::known(self.interval, |[low, high]| {
            let [low, high] = [low, high].map(|bound| self.distance_in_words(bound));
            format!("{low} to {high}")
        })
    }

    /// The finding in words.
    pub fn finding_in_words(&self) -> &str {
        self.finding.map_or("not compared", Finding::name)
    }
}

impl Side {
    /// The runs whose figures count.
    pub fn counted(&self) -> usize {
        self.runs
            .iter()
            .filter(|run| run.left_out.is_none())
            .count()
    }

    /// Its name and number of runs.
    pub fn title(&self) -> String {
        match (self.counted(), self.runs.len()) {
            (1, 1) => format!("{} (1 run)", self.name),
            (counted, all) if counted == all => format!("{} ({all} runs)", self.name),
            (counted, all) => format!("{} ({counted} of {all} runs)", self.name),
        }
    }
}
