//! One planted fault: a patch with two lines above it.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

/// The folder of the patches, below the root.
pub const FOLDER: &str = "faults";
const SUFFIX: &str = ".patch";
const KILLED_BY: &str = "killed by: cargo test ";

/// A fault, as its patch describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The file's name without its suffix; it begins with the crate's.
    pub name: String,
    /// The fault in one sentence.
    pub sentence: String,
    /// Arguments of `cargo test` with which a test fails.
    pub(super) arguments: Vec<String>,
}

impl Fault {
    /// All faults, in the order of their names.
    ///
    /// # Errors
    /// If a patch cannot be read, or does not begin with its two lines.
    pub fn all(root: &Path) -> Result<Vec<Self>> {
        let folder = root.join(FOLDER);
        let entries =
            fs::read_dir(&folder).with_context(|| format!("listing {}", folder.display()))?;
        let mut faults = Vec::new();
        for entry in entries {
            let entry = entry.with_context(|| format!("listing {}", folder.display()))?;
            let file = entry.file_name().to_string_lossy().into_owned();
            if let Some(name) = file.strip_suffix(SUFFIX) {
                let path = entry.path();
                let text = fs::read_to_string(&path)
                    .with_context(|| format!("reading {}", path.display()))?;
                faults.push(Self::parse(name, &text)?);
            }
        }
        faults.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(faults)
    }

    pub(super) fn parse(name: &str, text: &str) -> Result<Self> {
        let mut lines = text.lines();
        let sentence = lines.next().unwrap_or_default();
        let command = lines.next().unwrap_or_default();
        let Some(arguments) = command.strip_prefix(KILLED_BY) else {
            bail!("{FOLDER}/{name}{SUFFIX}: the second line must begin with `{KILLED_BY}`");
        };
        if !sentence.ends_with('.') {
            bail!(
                "{FOLDER}/{name}{SUFFIX}: the first line must be a sentence that says what is wrong"
            );
        }
        Ok(Self {
            name: name.to_owned(),
            sentence: sentence.to_owned(),
            arguments: arguments.split_whitespace().map(str::to_owned).collect(),
        })
    }

    /// The command that must fail while the fault is planted.
    pub fn command(&self) -> String {
        format!("cargo test {}", self.arguments.join(" "))
    }

    /// The patch below the root.
    pub(super) fn path(&self) -> String {
        format!("{FOLDER}/{}{SUFFIX}", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_begins_with_the_fault_and_its_test() -> Result<()> {
        let fault = Fault::parse(
            "x-dropped",
            "A copy is dropped.\nkilled by: cargo test -p x --lib own::a -- --exact\n\n--- a/x\n",
        )?;
        assert_eq!(fault.sentence, "A copy is dropped.");
        assert_eq!(fault.command(), "cargo test -p x --lib own::a -- --exact");
        assert_eq!(fault.path(), "faults/x-dropped.patch");
        for text in ["", "A copy.\n--- a/x", "A copy\nkilled by: cargo test -p x"] {
            assert!(Fault::parse("x", text).is_err(), "{text}");
        }
        Ok(())
    }
}
