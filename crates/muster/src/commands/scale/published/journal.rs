//! The journal of the published policy, with which it goes on after a kill, and the log of the published test.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use muster_report::RunResult;
use muster_scale::{Event, Figures, Level, Limit, LogLine};
use serde::{Deserialize, Serialize};

use crate::commands::scale::log::{Load, Log};
use crate::{outcome, wall_clock};

/// The log of the published test in the folder of the growth.
const FILE: &str = "published.log";

/// An entry of the journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "entry")]
pub(in crate::commands::scale) enum Entry {
    /// A run begins; nothing else has its folder.
    Begin {
        /// The folder of its result.
        folder: String,
    },
    /// A level is to be set.
    Level(Level),
    /// A line of the log.
    Line(LogLine),
    /// A run at one number of instances ended.
    Run(Ran),
    /// The test is over.
    End {
        /// The limit that ended it.
        limit: Limit,
    },
}

impl Entry {
    pub(super) fn line(&self) -> Option<&LogLine> {
        match self {
            Self::Line(line) => Some(line),
            Self::Begin { .. } | Self::Level(_) | Self::Run(_) | Self::End { .. } => None,
        }
    }
}

/// A run at one number of instances.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(in crate::commands::scale) struct Ran {
    pub(super) instances: u32,
    /// The folder of its result.
    pub(in crate::commands::scale) folder: String,
    /// Its verdict by the SLOs of the scenario, over all levels.
    pub(in crate::commands::scale) result: RunResult,
    /// Its length in seconds, that of the change of instances included.
    pub(super) took_s: f64,
    /// The fault of the target for which its lines do not count; null if there was none.
    pub(super) fault: Option<String>,
    /// The load that each address received; empty where it was not counted by address.
    pub(in crate::commands::scale) load: Vec<Load>,
}

/// The files of a growth by the published policy.
#[derive(Debug)]
pub(super) struct Journal {
    log: Log,
    text: File,
    path: PathBuf,
}

impl Journal {
    /// Opens the log of the published test, and writes the lines so far anew.
    pub(super) fn open(log: Log, folder: &Path, entries: &[Entry]) -> Result<Self> {
        let path = folder.join(FILE);
        let file = OpenOptions::new()
            .create(true)
            .write(true)
            .truncate(true)
            .open(&path);
        let text = file.with_context(|| format!("write to {}", path.display()))?;
        let mut journal = Self { log, text, path };
        for entry in entries {
            entry.line().map_or(Ok(()), |line| journal.text(line))?;
        }
        Ok(journal)
    }

    /// The same files for another owner.
    pub(super) fn again(&self) -> Result<Self> {
        let text = self.text.try_clone();
        Ok(Self {
            log: self.log.again()?,
            text: text.with_context(|| format!("open {}", self.path.display()))?,
            path: self.path.clone(),
        })
    }

    /// All entries.
    pub(super) fn entries(&self) -> Result<Vec<Entry>> {
        self.log.entries()
    }

    /// Keeps an entry.
    pub(super) fn keep(&mut self, entry: &Entry) -> Result<()> {
        self.log.append(entry)?;
        if let Some(line) = entry.line() {
            self.text(line)?;
            outcome::say(&in_words(line));
        }
        Ok(())
    }

    /// Keeps an event of the policy, so that it is there whatever happens next.
    pub(super) fn event(&mut self, event: &Event) -> Result<()> {
        match event {
            Event::Log(line) => self.keep(&Entry::Line(*line)),
            Event::Set(level) => self.keep(&Entry::Level(*level)),
            Event::End(limit) => self.keep(&Entry::End { limit: *limit }),
            Event::StableStart => Ok(()),
        }
    }

    fn text(&mut self, line: &LogLine) -> Result<()> {
        let time = wall_clock::rfc3339(line.at.get() / 1_000);
        let written = writeln!(self.text, "{}", line.text(&time));
        written.with_context(|| format!("write to {}", self.path.display()))
    }
}

/// A line on the terminal: the published figures, and those by sums.
fn in_words(line: &LogLine) -> String {
    let shown = |figures: &Figures| {
        let ratio = figures.failure_ratio.map(|ratio| ratio * 100.0);
        let ratio = ratio.map_or("no request".to_owned(), |ratio| {
            format!("{ratio:.2} % failed")
        });
        let rtt = figures.rtt_ms;
        let rtt = rtt.map_or(String::new(), |rtt| format!(", {rtt:.1} ms"));
        format!("{:.0}/s received, {ratio}{rtt}", figures.received_per_s)
    };
    format!(
        "units {:>3}  instances {:>3}  published: {}; by sums: {}",
        line.level.units,
        line.level.instances,
        shown(&line.published),
        shown(&line.summed)
    )
}
