//! One procfs file, kept open and read again in place.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Error of a file of the kernel that cannot be opened.
#[derive(Debug, Error)]
#[error("cannot read {path}: {source} (is procfs mounted, and may this user read it?)")]
pub struct MonitorError {
    path: PathBuf,
    source: io::Error,
}

/// Largest file read: `/proc/stat` with its interrupt counters on a host of many cores.
const FILE_MAX: usize = 256 * 1024;
/// Most procfs files fit into one page.
const FIRST_READ: usize = 4096;

/// An open file of the kernel; its buffer is kept between readings.
#[derive(Debug)]
pub(crate) struct Reread {
    file: File,
    buffer: Vec<u8>,
}

impl Reread {
    /// Opens the file for reading.
    pub(crate) fn open(path: impl AsRef<Path>) -> Result<Self, MonitorError> {
        let path = path.as_ref();
        let file = File::open(path).map_err(|source| MonitorError {
            path: path.to_owned(),
            source,
        })?;
        Ok(Self {
            file,
            buffer: vec![0; FIRST_READ],
        })
    }

    /// The file's text as it is now; none once its process or thread is gone.
    pub(crate) fn read(&mut self) -> Option<&str> {
        let mut filled = 0;
        loop {
            let taken = self
                .file
                .read_at(&mut self.buffer[filled..], filled as u64)
                .ok()?;
            filled += taken;
            if taken == 0 || self.buffer.len() == FILE_MAX {
                return std::str::from_utf8(&self.buffer[..filled]).ok();
            }
            if filled == self.buffer.len() {
                self.buffer.resize((filled * 2).min(FILE_MAX), 0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_again_in_place() {
        let mut stat = Reread::open("/proc/self/stat").expect("procfs is mounted");
        let pid = format!("{} (", std::process::id());
        assert!(stat.read().is_some_and(|text| text.starts_with(&pid)));
        assert!(stat.read().is_some_and(|text| text.starts_with(&pid)));
    }

    #[test]
    fn a_file_larger_than_the_first_read_comes_whole() {
        let mut smaps = Reread::open("/proc/self/smaps").expect("procfs is mounted");
        let length = smaps.read().map(str::len);
        assert!(
            length.is_some_and(|length| length > FIRST_READ),
            "{length:?}"
        );
    }

    #[test]
    fn an_error_names_the_file() {
        let error = Reread::open("/proc/self/no-such-file").expect_err("it does not exist");
        assert!(
            error.to_string().contains("/proc/self/no-such-file"),
            "{error}"
        );
    }
}
