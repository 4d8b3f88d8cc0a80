//! A run without its planned end, in words.

use std::fmt;

use muster_model::{Micros, figure};
use serde::{Deserialize, Serialize};

/// The first word about a run that goes on.
const RUNNING: &str = "running";

/// Reason why a run missed its planned end. A result holds it as text: `running, 0:08 so far`, or
/// `interrupted at 0:08`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct Unfinished {
    words: String,
}

impl Unfinished {
    /// A run that goes on and has come so far.
    pub fn running(so_far: Micros) -> Self {
        let so_far = figure::clock(so_far);
        format!("{RUNNING}, {so_far} so far").into()
    }

    /// A run that was cut there, by its user or by the end of its process.
    pub fn interrupted(at: Micros) -> Self {
        format!("interrupted at {}", figure::clock(at)).into()
    }

    /// Returns whether the run goes on, so that it has no verdict yet.
    pub fn is_running(&self) -> bool {
        self.words.starts_with(RUNNING)
    }

    /// The heading of such a run: `RUNNING, 0:08 so far`, or `INTERRUPTED at 0:08`.
    pub fn heading(&self) -> String {
        let end = self.words.find(|c: char| !c.is_alphabetic());
        let (word, rest) = self.words.split_at(end.unwrap_or(self.words.len()));
        word.to_uppercase() + rest
    }
}

impl From<String> for Unfinished {
    fn from(words: String) -> Self {
        Self { words }
    }
}

impl From<Unfinished> for String {
    fn from(unfinished: Unfinished) -> Self {
        unfinished.words
    }
}

impl fmt::Display for Unfinished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_goes_on_and_one_that_was_cut_have_a_heading_each() {
        let at = Micros::from_millis(8_400);
        let running = Unfinished::running(at);
        assert_eq!(running.heading(), "RUNNING, 0:08 so far");
        assert!(running.is_running());
        let cut = Unfinished::interrupted(at);
        assert_eq!(cut.heading(), "INTERRUPTED at 0:08");
        assert!(!cut.is_running());
    }
}
