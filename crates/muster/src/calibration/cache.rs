//! Measured costs, kept in the user's cache folder by scenario shape, machine and program.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use anyhow::Result;
use muster_monitor::Environment;
use muster_plan::Plan;
use muster_result::{Header, sha256};
use serde::{Deserialize, Serialize};

use super::Measured;
use crate::folder::write_whole;
use crate::wall_clock;

/// The name and version of the form of an entry.
const SCHEMA: &str = "muster-calibration/1";
/// Age from which an entry is measured again: a machine changes without another name.
const AGE_MAX_S: u64 = 7 * 86_400;
/// The same of an entry that was measured while the machine was busy.
const BUSY_AGE_MAX_S: u64 = 600;
/// Entries that remain; the oldest ones go first.
const ENTRIES_MAX: usize = 100;
/// Begin of the name of an entry.
const PREFIX: &str = "calibration-";

#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    schema: String,
    key: String,
    /// Seconds since the Unix epoch.
    at_s: u64,
    measured: Measured,
}

/// The costs of a plan: as they were kept, or as `measure` finds them.
pub(super) fn cached(
    null: &Plan,
    is_bypassed: bool,
    measure: impl FnOnce() -> Result<Measured>,
) -> Result<Measured> {
    let Some(folder) = folder().filter(|_| !is_bypassed) else {
        return measure();
    };
    cached_in(&folder, &key(null), measure)
}

fn cached_in(
    folder: &Path,
    key: &str,
    measure: impl FnOnce() -> Result<Measured>,
) -> Result<Measured> {
    let path = folder.join(format!("{PREFIX}{key}.json"));
    if let Some(measured) = read(&path, key) {
        return Ok(measured);
    }
    let measured = measure()?;
    let entry = Entry {
        schema: SCHEMA.to_owned(),
        key: key.to_owned(),
        at_s: wall_clock::now_s(),
        measured,
    };
    // Without a cache the next check measures again.
    if fs::create_dir_all(folder).is_ok() {
        let _ = write_whole(&path, &serde_json::to_string(&entry)?);
        forget(folder);
    }
    Ok(entry.measured)
}

/// An entry that is there, whole, of this key and not old.
fn read(path: &Path, key: &str) -> Option<Measured> {
    let entry: Entry = serde_json::from_str(&fs::read_to_string(path).ok()?).ok()?;
    let age_s = wall_clock::now_s().checked_sub(entry.at_s)?;
    let age_max_s = match entry.measured.is_of_busy_machine() {
        true => BUSY_AGE_MAX_S,
        false => AGE_MAX_S,
    };
    let is_of_this = entry.schema == SCHEMA && entry.key == key && age_s < age_max_s;
    (is_of_this && entry.measured.is_plausible()).then_some(entry.measured)
}

/// Removes the oldest entries beyond the most that remain.
fn forget(folder: &Path) {
    let Ok(files) = fs::read_dir(folder) else {
        return;
    };
    let mut entries: Vec<_> = files
        .flatten()
        .filter(|file| file.file_name().to_string_lossy().starts_with(PREFIX))
        .map(|file| {
            let changed = file.metadata().and_then(|it| it.modified());
            (changed.unwrap_or(UNIX_EPOCH), file.path())
        })
        .collect();
    entries.sort();
    let beyond = entries.len().saturating_sub(ENTRIES_MAX);
    for (_, path) in &entries[..beyond] {
        let _ = fs::remove_file(path);
    }
}

/// `muster` in the user's cache folder (XDG Base Directory Specification); none without a home.
fn folder() -> Option<PathBuf> {
    let absolute = |name| {
        let path = PathBuf::from(env::var_os(name)?);
        path.is_absolute().then_some(path)
    };
    let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
    Some(cache?.join("muster"))
}

/// A digest of all that a cost depends on.
fn key(null: &Plan) -> String {
    let machine = Environment::read();
    let program = env::current_exe().and_then(fs::metadata).ok();
    let program = program.map(|file| (file.len(), file.modified().ok()));
    let text = format!(
        "{} {} {} {} {} {program:?}",
        Header::digest(null),
        machine.cpu_model,
        machine.cpus_usable,
        machine.kernel,
        env!("CARGO_PKG_VERSION"),
    );
    sha256(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use muster_judge::Cost;
    use muster_model::StreamId;

    use super::super::StreamCost;
    use super::*;

    fn measured(reached: f64) -> Measured {
        let cost = Cost {
            shards_us: 10.0,
            ..Cost::default()
        };
        let streams = vec![StreamCost {
            stream: StreamId(0),
            cost,
            bytes: 120.0,
        }];
        Measured {
            streams,
            reached,
            waited: 0.1,
        }
    }

    #[test]
    fn a_measurement_on_a_busy_machine_is_kept_for_minutes() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("entry.json");
        for (waited, is_kept) in [(0.1, true), (0.6, false)] {
            let entry = Entry {
                schema: SCHEMA.to_owned(),
                key: "key".to_owned(),
                at_s: wall_clock::now_s() - 3_600,
                measured: Measured {
                    waited,
                    ..measured(1.0)
                },
            };
            let text = serde_json::to_string(&entry).expect("plain data");
            fs::write(&path, text).expect("it is written");
            assert_eq!(read(&path, "key").is_some(), is_kept);
        }
    }

    #[test]
    fn an_entry_is_used_until_it_is_old_corrupt_or_of_another_key() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(format!("{PREFIX}key.json"));
        let measures = Cell::new(0);
        let get = || {
            let measure = || {
                measures.set(measures.get() + 1);
                Ok(measured(1.0))
            };
            let got = cached_in(folder.path(), "key", measure).expect("it is measured");
            assert_eq!(got, measured(1.0));
            measures.get()
        };
        assert_eq!((get(), get()), (1, 1));
        let text = fs::read_to_string(&path).expect("an entry");
        let changed = |from: &str, to: &str| {
            assert!(text.contains(from), "{text}");
            text.replace(from, to)
        };
        let at = text.split("\"at_s\":").nth(1).expect("its time");
        let at = at.split(',').next().expect("a number").to_owned();
        for (damage, measured) in [
            (text[..text.len() / 2].to_owned(), 2),
            (changed("\"key\":\"key\"", "\"key\":\"other\""), 3),
            (changed(&at, "1000000000"), 4),
            (changed("\"shards_us\":10.0", "\"shards_us\":0.0"), 5),
            (changed("\"streams\":[{", "\"streams\":[],\"x\":[{"), 6),
            (text.clone(), 6),
        ] {
            fs::write(&path, damage).expect("it is written");
            assert_eq!(get(), measured);
        }
    }

    #[test]
    fn the_number_of_entries_is_bounded() {
        let folder = tempfile::tempdir().expect("a folder");
        for number in 0..ENTRIES_MAX + 3 {
            let key = format!("key{number}");
            cached_in(folder.path(), &key, || Ok(measured(1.0))).expect("it is measured");
        }
        let entries = fs::read_dir(folder.path()).expect("the folder");
        assert_eq!(entries.count(), ENTRIES_MAX);
    }
}
