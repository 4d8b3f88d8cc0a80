//! Several runs of one scenario, one after the other: what each came to, and how far their
//! figures lie apart. The form is described in `docs/repeat.md`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::result::indented;
use crate::{Figure, Report, Rule, RunResult};

/// The name and version of the form of `repeat.json`.
pub const REPEAT_SCHEMA: &str = "muster-repeat/1";

/// Runs whose reasons the summary lists; the others are counted.
const RUNS_LISTED: usize = 10;

/// Several runs of one scenario with one verdict.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Repeat {
    /// Always [`REPEAT_SCHEMA`].
    pub schema: String,
    /// Version of the program that ran.
    pub muster: String,
    /// The scenario's name.
    pub name: String,
    /// The seed that all runs have.
    pub seed: u64,
    /// SHA-256 of the scenario's text, in hexadecimal.
    pub scenario_sha256: String,
    /// Number of runs asked for; there are fewer where the user stopped them.
    pub wanted: u32,
    /// The verdict on all of them.
    pub verdict: RepeatVerdict,
    /// Each run in order.
    pub runs: Vec<RepeatedRun>,
    /// Spread of the headline figures, in the order of the summary.
    pub spread: Vec<Spread>,
    /// The same of the invalid runs, whose figures may not be believed.
    pub spread_of_invalid: Vec<Spread>,
}

/// The verdict on several runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepeatVerdict {
    /// The worst result of a run: none before invalid before fail before pass; invalid at least
    /// where the user stopped them.
    pub result: RunResult,
}

/// One of several runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RepeatedRun {
    /// Its folder, in that of `repeat.json`.
    pub folder: String,
    /// Its id; null where there was nobody to run against.
    pub run: Option<String>,
    /// Its result.
    pub result: RunResult,
    /// Result that an invalid run would have if it were valid.
    pub would_be: Option<RunResult>,
    /// The rules that made the result what it is, as `<rule> [<scope>]`.
    pub reasons: Vec<String>,
    /// The headline figures; null where one is not known.
    pub figures: BTreeMap<String, Option<Figure>>,
}

/// Spread of one figure over the runs whose figures may be believed: those that passed or failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Name of the figure.
    pub figure: String,
    /// The one in the middle; of an even number the mean of the two there, counts and times
    /// rounded up.
    pub median: Figure,
    /// The smallest.
    pub min: Figure,
    /// The largest.
    pub max: Figure,
    /// Number of runs that know the figure.
    pub runs: u32,
}

/// Marks a figure of invalid runs.
const INVALID: char = '?';

/// The spread of some runs as a table, each line behind a mark; nothing without a figure.
fn table(title: &str, mark: char, spreads: &[Spread]) -> String {
    let mut text = String::new();
    if spreads.is_empty() {
        return text;
    }
    let _ = writeln!(
        text,
        "\n{title:<16}{:>12}{:>12}{:>12}{:>7}",
        "median", "min", "max", "runs"
    );
    for spread in spreads {
        let cells = [spread.median, spread.min, spread.max].map(|figure| figure.to_string());
        let _ = write!(text, "{mark} {:<14}", spread.figure);
        for cell in cells {
            let _ = write!(text, "{cell:>12}");
        }
        let _ = writeln!(text, "{:>7}", spread.runs);
    }
    text
}

impl RepeatedRun {
    /// A run that has a report.
    pub fn of(folder: String, report: &Report, figures: BTreeMap<String, Option<Figure>>) -> Self {
        let verdict = &report.verdict;
        Self {
            folder,
            run: Some(report.run.clone()),
            result: verdict.result,
            would_be: verdict.would_be,
            reasons: verdict.reasons().map(Rule::title).collect(),
            figures,
        }
    }

    /// A run that found nobody to run against.
    pub fn silent(folder: String) -> Self {
        Self {
            folder,
            run: None,
            result: RunResult::None,
            would_be: None,
            reasons: Vec::new(),
            figures: BTreeMap::new(),
        }
    }

    /// Its result in a line.
    pub fn line(&self) -> String {
        let mut line = format!("run {}: {}", self.folder, self.result.name());
        if let Some(would_be) = self.would_be {
            let _ = write!(line, " (would be {})", would_be.name());
        }
        if !self.reasons.is_empty() {
            let _ = write!(line, ": {}", self.reasons.join(", "));
        }
        line
    }
}

impl Repeat {
    /// The text of `repeat.json`, indented, with a line feed at the end.
    pub fn to_json(&self) -> String {
        indented(self)
    }

    /// The summary: the verdict, what speaks against it, and the spread as a table.
    pub fn text(&self) -> String {
        let mut text = self.heading();
        for run in self.not_passed().take(RUNS_LISTED) {
            let _ = writeln!(text, "  {}", run.line());
        }
        let more = self.not_passed().count().saturating_sub(RUNS_LISTED);
        if more > 0 {
            let _ = writeln!(text, "  and {more} more");
        }
        if self.spread.is_empty() && self.spread_of_invalid.is_empty() {
            text.push_str("\nno spread: none of these runs has figures\n");
        }
        text.push_str(&table("spread", ' ', &self.spread));
        if !self.spread_of_invalid.is_empty() {
            text.push_str(&table("invalid runs", INVALID, &self.spread_of_invalid));
            let _ = writeln!(
                text,
                "{INVALID} of invalid runs: these figures may not be believed"
            );
        }
        text
    }

    fn heading(&self) -> String {
        let result = self.verdict.result.name().to_uppercase();
        let all = [
            RunResult::Pass,
            RunResult::Fail,
            RunResult::Invalid,
            RunResult::None,
        ];
        let counts = all.iter().filter_map(|outcome| {
            let runs = self.runs.iter().filter(|run| run.result == *outcome);
            let count = runs.count();
            (count > 0).then(|| format!("{count} {}", outcome.name()))
        });
        let counts: Vec<String> = counts.collect();
        let (done, name, seed) = (self.runs.len(), &self.name, self.seed);
        let stopped = if done < self.wanted as usize {
            format!(" of {}, then stopped", self.wanted)
        } else {
            String::new()
        };
        format!(
            "{result}  {name}  {done} runs{stopped}, seed {seed}: {}\n",
            counts.join(", ")
        )
    }

    /// The runs that did not pass.
    fn not_passed(&self) -> impl Iterator<Item = &RepeatedRun> {
        self.runs.iter().filter(|run| run.result != RunResult::Pass)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repeat() -> Repeat {
        Repeat {
            schema: REPEAT_SCHEMA.to_owned(),
            muster: String::new(),
            name: "again".to_owned(),
            seed: 1,
            scenario_sha256: String::new(),
            wanted: 3,
            verdict: RepeatVerdict {
                result: RunResult::Invalid,
            },
            runs: Vec::new(),
            spread: Vec::new(),
            spread_of_invalid: Vec::new(),
        }
    }

    #[test]
    fn the_heading_says_that_the_user_stopped_the_runs() {
        let mut repeat = repeat();
        repeat.runs = vec![RepeatedRun::silent("1".to_owned()); 2];
        assert!(repeat.text().contains("2 runs of 3, then stopped, seed 1"));
        repeat.wanted = 2;
        assert!(repeat.text().contains("2 runs, seed 1"));
    }

    #[test]
    fn figures_of_invalid_runs_are_printed_and_marked() {
        let count = Figure::Count;
        let spread = Spread {
            figure: "lost".to_owned(),
            median: count(7),
            min: count(5),
            max: count(9),
            runs: 3,
        };
        let mut repeat = Repeat {
            spread_of_invalid: vec![spread.clone()],
            ..repeat()
        };
        let text = repeat.text();
        let marked = text.lines().filter(|line| line.starts_with("? ")).count();
        assert_eq!(marked, 2, "a figure and the words: {text}");
        assert!(text.contains("? lost"), "{text}");
        assert!(!text.contains("no spread"), "{text}");
        repeat.spread = vec![spread];
        repeat.spread_of_invalid.clear();
        assert!(!repeat.text().contains('?'), "{}", repeat.text());
    }
}
