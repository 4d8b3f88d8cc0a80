//! Problems of a scenario: what is wrong, where, and what would be right.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One thing that is wrong with a scenario.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// The file, or the option of the command line, such as `--set`, for an override.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
    /// The key's path, as `--set` writes it: `fleet[0].streams[0].rate`.
    pub path: String,
    /// The line's text.
    pub text: String,
    /// Number of characters that are meant, from the column on; at least 1.
    pub length: u32,
    /// The mistake.
    pub what: String,
    /// Advice on how to correct it.
    pub help: String,
}

impl Problem {
    /// The place in short, such as `scenario.yaml:12`; for an override its option.
    pub fn place(&self) -> String {
        match self.is_of_an_option() {
            true => self.file.clone(),
            false => format!("{}:{}", self.file, self.line),
        }
    }

    /// Returns true if it is of the command line, where lines and columns say nothing.
    fn is_of_an_option(&self) -> bool {
        self.file.starts_with("--")
    }
}

impl fmt::Display for Problem {
    /// The problem with its line and a caret, as compilers show it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let margin = self.line.to_string().len();
        let blank = " ".repeat(margin);
        writeln!(f, "{}", self.what)?;
        if self.is_of_an_option() {
            writeln!(f, "{blank}--> {}", self.file)?;
        } else {
            writeln!(f, "{blank}--> {}:{}:{}", self.file, self.line, self.column)?;
        }
        writeln!(f, "{blank} |")?;
        writeln!(f, "{} | {}", self.line, self.text)?;
        let indent = " ".repeat(self.column.saturating_sub(1) as usize);
        let caret = "^".repeat(self.length.max(1) as usize);
        writeln!(f, "{blank} | {indent}{caret}")?;
        if !self.path.is_empty() {
            writeln!(f, "{blank} = key: {}", self.path)?;
        }
        write!(f, "{blank} = help: {}", self.help)
    }
}
