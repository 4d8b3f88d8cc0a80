//! The searches of a growth that ended, one line each: a growth that was killed goes on behind them.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use muster_scale::Outcome;
use serde::{Deserialize, Serialize};

/// The name of the file in the folder of the growth.
const FILE: &str = "scale.jsonl";

/// A search that ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Entry {
    /// The number of instances.
    pub(super) instances: u32,
    /// The outcome.
    #[serde(flatten)]
    pub(super) outcome: Outcome,
    /// The folder of its result.
    pub(super) folder: String,
    /// Its begin, in seconds since that of the command.
    pub(super) began_s: f64,
    /// Its length in seconds, that of the change of instances included.
    pub(super) took_s: f64,
    /// The load that each address received.
    pub(super) load: Vec<Load>,
}

/// The load that an address received.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Load {
    /// The address.
    pub(super) address: String,
    /// Links that connected.
    pub(super) connected: u64,
    /// Messages that were accepted.
    pub(super) accepted: u64,
}

/// The first line.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Head {
    scenario_sha256: String,
}

/// The file of the searches.
#[derive(Debug)]
pub(super) struct Log {
    file: File,
    path: PathBuf,
}

impl Log {
    /// True if a folder has one.
    pub(super) fn is_in(folder: &Path) -> bool {
        folder.join(FILE).exists()
    }

    /// Opens the file of a folder, and reads the searches in it. A last line that was cut off is dropped.
    pub(super) fn open(folder: &Path, scenario_sha256: &str) -> Result<(Self, Vec<Entry>)> {
        let path = folder.join(FILE);
        let head = Head {
            scenario_sha256: scenario_sha256.to_owned(),
        };
        let mut lines = Vec::new();
        if let Ok(file) = File::open(&path) {
            lines = BufReader::new(file).lines().collect::<Result<_, _>>()?;
        }
        let mut entries = Vec::new();
        if let Some((first, rest)) = lines.split_first() {
            let before: Head = serde_json::from_str(first)
                .with_context(|| format!("read the first line of {}", path.display()))?;
            if before != head {
                bail!(
                    "go on in {}: the scenario has changed since; take it back, or begin anew without --resume",
                    folder.display()
                );
            }
            entries = rest
                .iter()
                .map_while(|line| serde_json::from_str(line).ok())
                .collect();
        }
        let file = OpenOptions::new().create(true).append(true).open(&path);
        let file = file.with_context(|| format!("write to {}", path.display()))?;
        let mut log = Self { file, path };
        // What cannot be read goes, so that what follows can be.
        log.file
            .set_len(0)
            .with_context(|| format!("write to {}", log.path.display()))?;
        log.line(&head)?;
        for entry in &entries {
            log.line(entry)?;
        }
        Ok((log, entries))
    }

    /// Adds a search that ended.
    pub(super) fn append(&mut self, entry: &Entry) -> Result<()> {
        self.line(entry)
    }

    fn line(&mut self, content: &impl Serialize) -> Result<()> {
        let text = serde_json::to_string(content)? + "\n";
        let written = self
            .file
            .write_all(text.as_bytes())
            .and_then(|()| self.file.sync_data());
        written.with_context(|| format!("write to {}", self.path.display()))
    }
}
