//! The folder of a result: `windows.bin` while the run goes on, the reports at its end.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use muster_measure::{Record, encode_record};

/// A result folder that is being written.
pub(crate) struct Folder {
    path: PathBuf,
    windows: File,
    buffer: Vec<u8>,
    /// The first thing that went wrong while writing, if something did.
    pub(crate) broken: Option<String>,
}

/// Bytes that a folder should have free before a run begins: windows of hours.
const FREE_WANTED: u64 = 64 << 20;

impl Folder {
    /// Creates the folder and its `windows.bin`, so that what can go wrong does so before the
    /// run.
    pub(crate) fn create(path: &Path) -> Result<Self> {
        fs::create_dir_all(path)
            .with_context(|| format!("create the result folder {}", path.display()))?;
        let file = path.join("windows.bin");
        if file.exists() || path.join("result.json").exists() {
            bail!(
                "write a result into {}: it holds one already; name another with --out",
                path.display()
            );
        }
        let windows = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&file)
            .with_context(|| format!("write to the result folder {}", path.display()))?;
        let free = rustix::fs::statvfs(path).map(|stat| stat.f_bavail * stat.f_frsize);
        if let Ok(free) = free
            && free < FREE_WANTED
        {
            bail!(
                "write a result into {}: only {free} bytes are free there, {FREE_WANTED} are \
                 wanted; free some or name another folder with --out",
                path.display()
            );
        }
        Ok(Self {
            path: path.to_owned(),
            windows,
            buffer: Vec::new(),
            broken: None,
        })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Appends a record; whether it is there. A failure does not end the run: it is told at the
    /// end.
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

    /// Writes a file of the result: whole, or not at all.
    pub(crate) fn write(&mut self, name: &str, text: &str) {
        let path = self.path.join(name);
        let unfinished = self.path.join(format!("{name}.part"));
        let written = fs::write(&unfinished, text).and_then(|()| fs::rename(&unfinished, &path));
        if let Err(error) = written {
            let _ = fs::remove_file(&unfinished);
            let what = format!("write {}: {error}", path.display());
            self.broken.get_or_insert(what);
        }
    }
}
