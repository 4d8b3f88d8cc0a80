//! One place that breaks one rule.

use std::fmt;

/// A broken rule: where, which one, and what would be right.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    /// The file, relative to the workspace.
    pub file: String,
    /// The line, from 1; 0 where the whole file is meant.
    pub line: usize,
    /// The rule's name.
    pub rule: &'static str,
    /// Error and remedy.
    pub what: String,
}

impl Violation {
    /// A violation at a line of a file.
    pub fn new(file: &str, line: usize, rule: &'static str, what: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            line,
            rule,
            what: what.into(),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            file,
            line,
            rule,
            what,
        } = self;
        match line {
            0 => write!(f, "{file}: [{rule}] {what}"),
            line => write!(f, "{file}:{line}: [{rule}] {what}"),
        }
    }
}
