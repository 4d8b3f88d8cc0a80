//! The record of a target's first state, which outlives this program.

use std::fs;
use std::io::{self, ErrorKind};
#[cfg(feature = "kubernetes")]
use std::path::Path;
use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{ActuatorError, Site};

/// The name of its file in the folder of the result.
const FILE: &str = "target.json";

/// A record that is there from before the first change until the target is as it was.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    actuator: String,
}

/// The content of the file.
#[derive(Debug, Serialize, Deserialize)]
struct Record<T> {
    /// The actuator that changed the target, as a hash.
    actuator: String,
    left: T,
}

impl Journal {
    /// The record in a folder, and its content if the target was left changed.
    pub(crate) fn open<T: DeserializeOwned>(
        site: &Site,
    ) -> Result<(Self, Option<T>), ActuatorError> {
        let journal = Self {
            path: site.folder.join(FILE),
            actuator: site.actuator.clone(),
        };
        let text = match fs::read(&journal.path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok((journal, None)),
            Err(error) => return Err(journal.failed(error)),
        };
        let unreadable = |error: serde_json::Error| journal.failed(error.into());
        let record: Record<Value> = serde_json::from_slice(&text).map_err(unreadable)?;
        if record.actuator != journal.actuator {
            return Err(ActuatorError::Another { path: journal.path });
        }
        let left = serde_json::from_value(record.left).map_err(unreadable)?;
        Ok((journal, Some(left)))
    }

    /// Writes the record, whole.
    pub(crate) fn write<T: Serialize>(&self, left: T) -> Result<(), ActuatorError> {
        let record = Record {
            actuator: self.actuator.clone(),
            left,
        };
        let text = serde_json::to_vec(&record).map_err(|error| self.failed(error.into()))?;
        let unfinished = self.path.with_extension("part");
        let written = fs::write(&unfinished, text);
        let written = written.and_then(|()| fs::File::open(&unfinished)?.sync_all());
        let written = written.and_then(|()| fs::rename(&unfinished, &self.path));
        written.map_err(|error| self.failed(error))
    }

    /// Its file.
    #[cfg(feature = "kubernetes")]
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The target is as it was.
    pub(crate) fn close(&self) -> Result<(), ActuatorError> {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(self.failed(error)),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    fn failed(&self, source: io::Error) -> ActuatorError {
        ActuatorError::Journal {
            path: self.path.clone(),
            source,
        }
    }
}

/// The number of instances that a target had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Original {
    pub(crate) instances: u32,
}
