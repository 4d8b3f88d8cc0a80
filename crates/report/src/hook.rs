//! Commands of the user that a run started.

use serde::{Deserialize, Serialize};

/// One hook of the scenario, as it ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HookRun {
    /// Its name.
    pub name: String,
    /// Its begin in seconds since T0, 0 before it; null if it was not started.
    pub t_s: Option<f64>,
    /// The time that it took, in seconds; null likewise.
    pub took_s: Option<f64>,
    /// Its exit code; null if a signal or its time-out ended it, or it was not started.
    pub code: Option<i32>,
    /// Its end in words, such as `code 3` or `no exit after 0:30`.
    pub end: String,
    /// The last of its standard output, at most 2 KiB.
    pub output: String,
    /// The last line of its standard error; empty if there was none.
    pub error: String,
}

impl HookRun {
    /// True if it ended with code 0.
    pub fn succeeded(&self) -> bool {
        self.code == Some(0)
    }

    /// Its end in one sentence.
    pub fn words(&self) -> String {
        let error = match self.error.as_str() {
            "" => String::new(),
            error => format!(": {error}"),
        };
        format!("hook `{}`: {}{error}", self.name, self.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hook_that_failed_has_its_last_words() {
        let run = HookRun {
            name: "restart".to_owned(),
            t_s: Some(7.0),
            took_s: Some(0.5),
            code: Some(3),
            end: "code 3".to_owned(),
            output: String::new(),
            error: "no such unit".to_owned(),
        };
        assert!(!run.succeeded());
        assert_eq!(run.words(), "hook `restart`: code 3: no such unit");
    }
}
