//! Finds the workspace and its files.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Folders that hold no source: build output, results of runs, what fuzzing leaves behind.
const SKIPPED: [&str; 6] = [
    ".git",
    "results",
    "corpus",
    "artifacts",
    "coverage",
    "node_modules",
];

/// One text file of the project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextFile {
    /// Its path, relative to the workspace, with `/` between parts.
    pub path: String,
    /// Its content.
    pub text: String,
}

/// The root of the workspace: the folder above this crate.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}

/// Every text file below a folder, in the order of the paths; what is not UTF-8 is left out.
///
/// # Errors
/// If a folder or a file cannot be read.
pub fn text_files(root: &Path) -> Result<Vec<TextFile>> {
    let mut files = Vec::new();
    for path in files_below(root)? {
        let bytes = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
        if let Ok(text) = String::from_utf8(bytes) {
            files.push(TextFile {
                path: relative(root, &path),
                text,
            });
        }
    }
    Ok(files)
}

/// A path below the root, with `/` between its parts.
pub fn relative(root: &Path, path: &Path) -> String {
    let below = path.strip_prefix(root).unwrap_or(path);
    let parts: Vec<_> = below.iter().map(|part| part.to_string_lossy()).collect();
    parts.join("/")
}

fn files_below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let entries = fs::read_dir(folder).with_context(|| format!("listing {}", folder.display()))?;
    for entry in entries {
        let path = entry
            .with_context(|| format!("listing {}", folder.display()))?
            .path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        // `.git` is a folder, and in a worktree a file. Cargo builds into `target` beside a manifest.
        let built = name == "target" && folder.join("Cargo.toml").exists();
        if built || SKIPPED.contains(&name.as_ref()) {
            continue;
        }
        if path.is_dir() {
            files.extend(files_below(&path)?);
        } else if path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_is_a_workspace() -> Result<()> {
        let manifest = fs::read_to_string(root().join("Cargo.toml"))?;
        assert!(manifest.contains("[workspace]"));
        Ok(())
    }

    #[test]
    fn build_output_and_binaries_are_left_out() -> Result<()> {
        let folder = tempfile::tempdir()?;
        let write = |path: &str, bytes: &[u8]| -> Result<()> {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().context("it has a parent")?)?;
            Ok(fs::write(path, bytes)?)
        };
        write("src/b.rs", b"b")?;
        write("src/a.rs", b"a")?;
        write("src/target/c.rs", b"c")?;
        write("fuzz/Cargo.toml", b"f")?;
        write("fuzz/target/debug/d.rs", b"d")?;
        write(".git", b"of a worktree")?;
        write("picture.png", &[0xff, 0xfe, 0x00])?;
        let found = text_files(folder.path())?;
        let paths: Vec<&str> = found.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(
            paths,
            ["fuzz/Cargo.toml", "src/a.rs", "src/b.rs", "src/target/c.rs"]
        );
        Ok(())
    }
}
