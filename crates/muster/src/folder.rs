//! The folder of a result: `windows.bin` while the run goes on, the reports at its end.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use muster_measure::{Record, encode_record};
use muster_provision::JOURNAL;
use muster_result::Archive;
use rustix::fs::{FlockOperation, flock};

use crate::searching::{self, is_aside};

/// A result folder that is being written.
pub(crate) struct Folder {
    path: PathBuf,
    windows: File,
    buffer: Vec<u8>,
    /// The first thing that went wrong while writing, if something did.
    pub(crate) broken: Option<String>,
}

/// Files that may be there before a run: the journals of its search and of its devices.
const BEFORE_A_RUN: [&str; 2] = [searching::FILE, JOURNAL];

/// Runs of one scenario that may begin in one second.
const RESERVED_MAX: u32 = 1_000;

/// Bytes that a folder should have free before a run begins: windows of hours.
const FREE_WANTED: u64 = 64 << 20;

impl Folder {
    /// Creates the folder and its `windows.bin`, so that what can go wrong does so before the
    /// run. A refusal leaves nothing behind.
    pub(crate) fn create(path: &Path) -> Result<Self> {
        if path.join("windows.bin").exists() || path.join("result.json").exists() {
            bail!(
                "write a result into {}: it holds one already; name another with --out",
                path.display()
            );
        }
        refuse_foreign(path, |name| BEFORE_A_RUN.contains(&name) || is_aside(name))?;
        check_room(path)?;
        fs::create_dir_all(path).with_context(|| wanted("create the result folder", path))?;
        Self::open(path)
    }

    /// Opens `windows.bin` in a folder that is there.
    fn open(path: &Path) -> Result<Self> {
        let file = path.join("windows.bin");
        let windows = OpenOptions::new().create(true).append(true).open(&file);
        let windows = windows.inspect_err(|_| {
            // It goes only if it is empty, and so it is the one that was just made.
            let _ = fs::remove_dir(path);
        });
        let windows = windows.with_context(|| wanted("write to the result folder", path))?;
        // Whoever reads it meanwhile learns by the lock that the run goes on. A file system without
        // locks does not keep a run from its result.
        let _ = flock(&windows, FlockOperation::NonBlockingLockExclusive);
        Ok(Self {
            path: path.to_owned(),
            windows,
            buffer: Vec::new(),
            broken: None,
        })
    }

    /// Creates a folder of this name that nobody else has: if there is one, the name goes on with `-2`,
    /// `-3` and so on.
    pub(crate) fn create_own(path: &Path) -> Result<Self> {
        Self::open(&reserve(path)?)
    }

    /// Takes the folder away again: there will be no run.
    pub(crate) fn abandon(self) {
        let _ = fs::remove_file(self.path.join("windows.bin"));
        let _ = fs::remove_dir(&self.path);
    }

    /// Its path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Appends a record; returns whether it was written. A failure does not end the run and is reported at
    /// its end.
    pub(crate) fn record(&mut self, record: &Record) -> bool {
        if self.broken.is_some() {
            return false;
        }
        self.buffer.clear();
        if let Err(error) = encode_record(record, &mut self.buffer) {
            self.broken = Some(error.to_string());
        } else if let Err(error) = self.windows.write_all(&self.buffer) {
            let path = self.path.join("windows.bin");
            self.broken = Some(format!("write {}: {error}", path.display()));
        }
        self.broken.is_none()
    }

    /// Appends records.
    pub(crate) fn record_all(&mut self, records: &[Record]) {
        for record in records {
            self.record(record);
        }
    }

    /// Writes a file of the result: whole, or not at all.
    pub(crate) fn write(&mut self, name: &str, text: &str) {
        if let Err(error) = write_whole(&self.path.join(name), text) {
            self.broken.get_or_insert(format!("{error:#}"));
        }
    }
}

/// Refuses a folder that holds anything but what the command itself has written there.
pub(crate) fn refuse_foreign(path: &Path, is_own: impl Fn(&str) -> bool) -> Result<()> {
    let read = match fs::read_dir(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        read => read.and_then(Iterator::collect::<io::Result<Vec<_>>>),
    };
    let entries = read.with_context(|| wanted("read the result folder", path))?;
    let names = entries
        .iter()
        .map(|entry| entry.file_name().to_string_lossy().into_owned());
    match names.filter(|name| !is_own(name)).min() {
        Some(foreign) => bail!(
            "write a result into {}: it holds `{foreign}`, which is no part of it; name an empty or a new folder with \
             --out",
            path.display()
        ),
        None => Ok(()),
    }
}

/// Creates a folder of this name that nobody else has, and gives its path.
pub(crate) fn reserve(path: &Path) -> Result<PathBuf> {
    check_room(path)?;
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).with_context(|| wanted("create the folder", parent))?;
    }
    let further = (2..=RESERVED_MAX).map(|number| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!("-{number}"));
        PathBuf::from(name)
    });
    for path in std::iter::once(path.to_owned()).chain(further) {
        // Of two processes that create one folder, one is told that it exists.
        match fs::create_dir(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => {
                return Err(error).with_context(|| wanted("create the result folder", &path));
            }
        }
    }
    bail!(
        "create the result folder {}: {RESERVED_MAX} of that name are there; name another with --out",
        path.display()
    )
}

/// The context of an error at a folder, with the remedy.
fn wanted(what: &str, path: &Path) -> String {
    format!(
        "{what} {} (name one that you may write to with --out)",
        path.display()
    )
}

/// Writes a file whole, or not at all.
pub(crate) fn write_whole(path: &Path, text: &str) -> Result<()> {
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".part");
    let written = fs::write(&unfinished, text).and_then(|()| fs::rename(&unfinished, path));
    written
        .inspect_err(|_| {
            let _ = fs::remove_file(&unfinished);
        })
        .with_context(|| format!("write {}", path.display()))
}

/// Looks at the file system on which the folder will be.
fn check_room(path: &Path) -> Result<()> {
    let there = path.ancestors().find(|folder| folder.exists());
    let there = there.unwrap_or_else(|| Path::new("."));
    let free = rustix::fs::statvfs(there).map(|stat| stat.f_bavail * stat.f_frsize);
    match free {
        Ok(free) if free < FREE_WANTED => bail!(
            "write a result into {}: only {free} bytes are free there, {FREE_WANTED} are wanted; \
             free some or name another folder with --out",
            path.display()
        ),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Reads the archive of a folder.
pub(crate) fn read_archive(folder: &Path) -> Result<Archive> {
    let path = folder.join("windows.bin");
    if !path.exists() {
        bail!("read {}: {}", folder.display(), no_result(folder));
    }
    let name = path.display().to_string();
    let bytes = fs::read(&path).with_context(|| format!("read {name}"))?;
    let mut archive = Archive::read(&bytes, &name)?;
    archive.is_running = is_being_written(&path);
    Ok(archive)
}

/// A part of the windows in a folder that cannot be read although their run came to its end, as the
/// end of a sentence that begins with "failed to".
pub(crate) fn damage(folder: &Path) -> Option<String> {
    let name = folder.join("windows.bin").display().to_string();
    match read_archive(folder) {
        Err(error) => Some(format!("{error:#}")),
        Ok(archive) => archive.damage(&name),
    }
}

/// True if a run still writes a file ([`Folder`] holds a lock on it).
pub(crate) fn is_being_written(path: &Path) -> bool {
    let Ok(file) = File::open(path) else {
        return false;
    };
    // The lock goes with the file.
    flock(&file, FlockOperation::NonBlockingLockShared) == Err(rustix::io::Errno::WOULDBLOCK)
}

/// The reason why a folder is no result, and the remedy.
fn no_result(folder: &Path) -> String {
    if folder.join("repeat.json").exists() {
        let first = folder.join("1");
        return format!(
            "it holds the runs of a `--repeat`, each in its own folder, and their common result in \
             repeat.json; name one of them, such as {}",
            first.display()
        );
    }
    if !folder.is_dir() {
        return "there is no such folder; name the one that `muster run` ended with".to_owned();
    }
    "it holds no result, neither result.json nor windows.bin; name the folder that `muster run` \
     ended with"
        .to_owned()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_folder_that_cannot_be_read_is_not_taken_for_an_empty_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("file");
        fs::write(&file, "").expect("it is written");
        let error = refuse_foreign(&file, |_| true).expect_err("it is no folder");
        assert!(format!("{error:#}").contains(&file.display().to_string()));
        refuse_foreign(&folder.path().join("none"), |_| false).expect("it is not there yet");
    }

    #[test]
    fn runs_that_begin_in_one_second_have_folders_of_their_own() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("results/first-20261121T101500Z");
        let made = std::thread::scope(|scope| {
            let begin = || scope.spawn(|| Folder::create_own(&path).map(|own| own.path));
            let begun: Vec<_> = (0..8).map(|_| begin()).collect();
            let ended = begun.into_iter().map(|run| run.join().expect("it ends"));
            ended.collect::<Result<BTreeSet<_>>>()
        });
        let made = made.expect("each has one");
        assert_eq!(made.len(), 8, "{made:?}");
        assert!(made.contains(&path), "the first one has the plain name");
    }
}
