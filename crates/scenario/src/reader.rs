//! Files and variables that a scenario names, read by the caller.

/// Source of files and environment variables. Paths are relative to the scenario's file.
pub trait Reader {
    /// The bytes of a file.
    ///
    /// # Errors
    /// Reason why it cannot be read, for a sentence: "no such file".
    fn file(&self, path: &str) -> Result<Vec<u8>, String>;

    /// Beginning of a relative path when the file is opened later: the scenario's folder with a
    /// slash at its end, or nothing.
    fn folder(&self) -> String {
        String::new()
    }

    /// An environment variable; none if it is not set.
    fn variable(&self, name: &str) -> Option<String>;
}

/// A reader for scenarios that name neither files nor variables: there are none.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoFiles;

impl Reader for NoFiles {
    fn file(&self, _path: &str) -> Result<Vec<u8>, String> {
        Err("no such file".to_owned())
    }

    fn variable(&self, _name: &str) -> Option<String> {
        None
    }
}
