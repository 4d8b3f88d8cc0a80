//! Journal of created things on disk: written before and after each call, so that it survives the
//! process.
//!
//! One line of JSON each. A thing that is `creating` may or may not be there: its call was about to
//! be made, and whether it was answered is not known. Its `id` is what it would be known by, so that
//! it can be distinguished from what others have put there since. Only what this file says was created is ever
//! removed.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use crate::ProvisionError;

/// Its name in the folder of a result.
pub const JOURNAL: &str = "provisioned.jsonl";

/// The record of what was created at one management API.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    file: File,
    /// Things that were created and not removed, by kind and name: no more than the plans had.
    things: BTreeMap<(String, String), Standing>,
}

/// A thing by its name, and what it is known by.
#[cfg(feature = "mongodb")]
pub(crate) type Thing = (String, String);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Its creation was begun, with this id; none where only the platform gives it a name.
    Creating(Option<String>),
    Created(String),
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    target: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line<'a> {
    did: Did,
    kind: &'a str,
    key: &'a str,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Did {
    Creating,
    Created,
    /// The platform said no: it is not there by our doing.
    Refused,
    Removed,
}

impl Journal {
    /// Opens the record in a folder, or begins one. What a killed process wrote is read.
    ///
    /// # Errors
    /// [`ProvisionError::Journal`] if it cannot be read or written, is in use, or is that of another
    /// management API.
    pub fn open(folder: &Path, target: &str) -> Result<Self, ProvisionError> {
        let path = folder.join(JOURNAL);
        let file = open_locked(&path).map_err(|why| wrong(&path, why))?;
        let things = read(&file, target).map_err(|why| wrong(&path, why))?;
        let inner = Mutex::new(Inner { file, things });
        Ok(Self { path, inner })
    }

    /// Returns how many things were created and are not known to be removed.
    pub fn len(&self) -> usize {
        self.inner().things.len()
    }

    /// Returns true if nothing is left to remove.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn standing(&self, kind: &str, key: &str) -> Option<Standing> {
        let place = (kind.to_owned(), key.to_owned());
        self.inner().things.get(&place).cloned()
    }

    /// Returns true if the creation of a thing was begun, and its end is not known.
    pub(crate) fn is_begun(&self, kind: &str, key: &str) -> bool {
        matches!(self.standing(kind, key), Some(Standing::Creating(_)))
    }

    pub(crate) fn all(&self, kind: &str) -> Vec<(String, Standing)> {
        let inner = self.inner();
        let of_kind = inner.things.iter().filter(|((its, _), _)| its == kind);
        of_kind
            .map(|((_, key), standing)| (key.clone(), standing.clone()))
            .collect()
    }

    /// A thing is about to be created, to be known by this.
    pub(crate) fn creating(
        &self,
        kind: &str,
        key: &str,
        id: Option<&str>,
    ) -> Result<(), ProvisionError> {
        self.note(Did::Creating, [kind, key], id)
    }

    pub(crate) fn created(&self, kind: &str, key: &str, id: &str) -> Result<(), ProvisionError> {
        self.note(Did::Created, [kind, key], Some(id))
    }

    pub(crate) fn refused(&self, kind: &str, key: &str) -> Result<(), ProvisionError> {
        self.note(Did::Refused, [kind, key], None)
    }

    pub(crate) fn removed(&self, kind: &str, key: &str) -> Result<(), ProvisionError> {
        self.note(Did::Removed, [kind, key], None)
    }

    fn note(
        &self,
        did: Did,
        [kind, key]: [&str; 2],
        id: Option<&str>,
    ) -> Result<(), ProvisionError> {
        self.note_all(did, kind, std::iter::once((key, id)))
    }

    /// Lines in one call of the system. A process that is killed meanwhile leaves whole lines and half of
    /// one, which is dropped when it is read.
    pub(crate) fn note_all<'a>(
        &self,
        did: Did,
        kind: &'a str,
        things: impl Iterator<Item = (&'a str, Option<&'a str>)> + Clone,
    ) -> Result<(), ProvisionError> {
        let lines = things.map(|(key, id)| Line { did, kind, key, id });
        let mut inner = self.inner();
        append(&inner.file, lines.clone()).map_err(|why| wrong(&self.path, why.to_string()))?;
        lines.for_each(|line| take_in(&mut inner.things, &line));
        Ok(())
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn take_in(things: &mut BTreeMap<(String, String), Standing>, line: &Line<'_>) {
    let place = (line.kind.to_owned(), line.key.to_owned());
    let id = line.id.map(str::to_owned);
    match (line.did, id) {
        (Did::Created, Some(id)) => things.insert(place, Standing::Created(id)),
        (Did::Creating | Did::Created, id) => things.insert(place, Standing::Creating(id)),
        (Did::Refused | Did::Removed, _) => things.remove(&place),
    };
}

/// Two processes that wrote one record would each not know of the other's half.
fn open_locked(path: &Path) -> Result<File, String> {
    let file = OpenOptions::new()
        .create(true)
        .read(true)
        .append(true)
        .open(path)
        .map_err(|error| error.to_string())?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            Err("another process is at work with it; wait until it has ended".to_owned())
        }
        Err(TryLockError::Error(error)) => Err(error.to_string()),
    }
}

/// Reads what is there, or writes the first line. Half a line at the end is of a process that was
/// killed before the call that the line was for, and is dropped.
fn read(file: &File, target: &str) -> Result<BTreeMap<(String, String), Standing>, String> {
    let mut things = BTreeMap::new();
    let mut reader = BufReader::new(file);
    let (mut text, mut number, mut whole) = (String::new(), 0_u64, 0_u64);
    while reader
        .read_line(&mut text)
        .map_err(|error| error.to_string())?
        > 0
    {
        if !text.ends_with('\n') {
            file.set_len(whole).map_err(|error| error.to_string())?;
            break;
        }
        number += 1;
        whole += text.len() as u64;
        let no_line = |error| format!("line {number} is none of a record: {error}");
        if number == 1 {
            check_head(&serde_json::from_str(&text).map_err(no_line)?, target)?;
        } else {
            let owned: OwnedLine = serde_json::from_str(&text).map_err(no_line)?;
            take_in(&mut things, &owned.line());
        }
        text.clear();
    }
    if number == 0 {
        let target = target.to_owned();
        append(file, std::iter::once(Head { target })).map_err(|error| error.to_string())?;
    }
    Ok(things)
}

/// A line as it is read: text with escapes cannot be borrowed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OwnedLine {
    did: Did,
    kind: String,
    key: String,
    id: Option<String>,
}

impl OwnedLine {
    fn line(&self) -> Line<'_> {
        Line {
            did: self.did,
            kind: &self.kind,
            key: &self.key,
            id: self.id.as_deref(),
        }
    }
}

fn check_head(head: &Head, target: &str) -> Result<(), String> {
    if head.target == target {
        return Ok(());
    }
    let key = if target.starts_with("mongodb://") {
        "`provision.mongodb` leads to"
    } else {
        "`provision.url` is"
    };
    Err(format!(
        "it records what was created at {}, and {key} {target}; name another folder with --out",
        head.target
    ))
}

fn append(mut file: &File, lines: impl Iterator<Item = impl Serialize>) -> io::Result<()> {
    let mut text = String::new();
    for line in lines {
        text += &serde_json::to_string(&line)?;
        text.push('\n');
    }
    file.write_all(text.as_bytes())
}

fn wrong(path: &Path, why: String) -> ProvisionError {
    ProvisionError::Journal {
        path: path.display().to_string(),
        why,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARGET: &str = "http://127.0.0.1:8080/api/v1";

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().expect("a folder")
    }

    fn open(folder: &tempfile::TempDir) -> Journal {
        Journal::open(folder.path(), TARGET).expect("a record")
    }

    #[test]
    fn what_was_created_and_not_removed_is_there_again() {
        let folder = folder();
        let journal = open(&folder);
        for key in ["a", "b", "c", "d\n\"e"] {
            journal.creating("device", key, None).expect("written");
        }
        journal.created("device", "a", "7").expect("written");
        journal.created("device", "b", "8").expect("written");
        journal.removed("device", "b").expect("written");
        journal.refused("device", "c").expect("written");
        drop(journal);
        let journal = open(&folder);
        let created = Some(Standing::Created("7".to_owned()));
        assert_eq!(journal.standing("device", "a"), created);
        let kept = journal.all("device").into_iter().map(|(key, _)| key);
        assert_eq!(kept.collect::<Vec<_>>(), ["a", "d\n\"e"]);
        assert_eq!(journal.standing("sensor type", "a"), None);
    }

    /// Law: wherever a process is killed, the record can be read again, and whatever was told
    /// whole is in it.
    #[test]
    fn a_record_cut_anywhere_is_a_record() {
        let whole = folder();
        let journal = open(&whole);
        for key in ["a", "b"] {
            journal.creating("device", key, None).expect("written");
            journal.created("device", key, "1").expect("written");
        }
        drop(journal);
        let bytes = std::fs::read(whole.path().join(JOURNAL)).expect("it is there");
        for cut in 0..=bytes.len() {
            let folder = folder();
            std::fs::write(folder.path().join(JOURNAL), &bytes[..cut]).expect("written");
            let journal = open(&folder);
            let told = bytes[..cut].iter().filter(|byte| **byte == b'\n').count();
            assert_eq!(journal.len(), told.saturating_sub(1).div_ceil(2), "{cut}");
            journal.creating("device", "z", Some("9")).expect("written");
            drop(journal);
            let again = open(&folder);
            let begun = Some(Standing::Creating(Some("9".to_owned())));
            assert_eq!(again.standing("device", "z"), begun);
        }
    }

    #[test]
    fn a_record_of_another_target_or_in_use_or_of_something_else_is_refused() {
        let folder = folder();
        let journal = open(&folder);
        let refused = |target| {
            let refused = Journal::open(folder.path(), target);
            refused.expect_err("it is refused").to_string()
        };
        assert!(refused(TARGET).contains("another process is at work"));
        drop(journal);
        assert!(refused("http://other").contains("created at http://127.0.0.1:8080/api/v1"));
        assert!(refused("http://other").contains("`provision.url` is http://other;"));
        let of_database = refused("mongodb://h/db");
        assert!(
            of_database.contains("`provision.mongodb` leads to mongodb://h/db;"),
            "{of_database}"
        );
        std::fs::write(folder.path().join(JOURNAL), "{}\n").expect("written");
        assert!(refused(TARGET).contains("line 1 is none of a record"));
        let nowhere = Journal::open(Path::new("/nowhere"), TARGET).expect_err("no folder");
        assert!(nowhere.to_string().contains("/nowhere/provisioned.jsonl"));
    }
}
