//! The scratch checkout in which faults are planted.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::Fault;

/// Seconds that a compilation or a test may take.
const LIMIT_S: u32 = 900;
/// Exit code of `timeout` where the limit was reached.
const TIMED_OUT: i32 = 124;
/// Lines of a step's output that a verdict repeats.
const LAST_LINES: usize = 12;

/// The end of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Succeeded,
    Failed,
    OutOfTime,
}

/// A worktree of the last commit and its target folder, kept for the next run.
#[derive(Debug)]
pub(super) struct Tree {
    root: PathBuf,
    folder: PathBuf,
    build: PathBuf,
    output: PathBuf,
}

impl Tree {
    /// Checks the last commit out below the target folder; files that did not change keep their
    /// times, so that little is compiled again.
    pub(super) fn of_last_commit(root: &Path) -> Result<Self> {
        let place = root.join("target/faults");
        fs::create_dir_all(&place).with_context(|| format!("create {}", place.display()))?;
        let tree = Self {
            root: root.to_owned(),
            folder: place.join("tree"),
            build: place.join("build"),
            output: place.join("output.txt"),
        };
        let commit = tree.last_commit()?;
        if tree.folder.join(".git").exists() {
            tree.clean()?;
            tree.git(&["checkout", "--quiet", "--detach", &commit])?;
        } else {
            let mut git = Command::new("git");
            git.current_dir(root)
                .args(["worktree", "add", "--quiet", "--force", "--detach"]);
            tree.demand(git.arg(&tree.folder).arg(&commit))?;
        }
        Ok(tree)
    }

    fn last_commit(&self) -> Result<String> {
        let mut git = Command::new("git");
        let said = git
            .current_dir(&self.root)
            .args(["rev-parse", "HEAD"])
            .output();
        let said = said.context("run git rev-parse HEAD")?;
        Ok(String::from_utf8_lossy(&said.stdout).trim().to_owned())
    }

    /// Applies the patch of a fault.
    pub(super) fn apply(&self, fault: &Fault) -> Result<(End, String)> {
        let mut git = Command::new("git");
        git.current_dir(&self.folder)
            .arg("apply")
            .arg(self.root.join(fault.path()));
        self.step(&mut git)
    }

    /// Takes back whatever was changed or written.
    pub(super) fn clean(&self) -> Result<()> {
        self.git(&["reset", "--quiet", "--hard"])?;
        self.git(&["clean", "--quiet", "--force", "-d"])
    }

    /// Compiles the tests of a fault.
    pub(super) fn compile(&self, fault: &Fault) -> Result<(End, String)> {
        let arguments = fault.arguments.iter().take_while(|it| *it != "--");
        let mut cargo = self.cargo_test();
        self.step(cargo.arg("--no-run").args(arguments))
    }

    /// Runs the tests of a fault.
    pub(super) fn test(&self, fault: &Fault) -> Result<(End, String)> {
        self.step(self.cargo_test().args(&fault.arguments))
    }

    /// `cargo test` within the limit, with all that it starts.
    fn cargo_test(&self) -> Command {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new("timeout");
        command
            .arg("--kill-after=10")
            .arg(LIMIT_S.to_string())
            .arg(cargo);
        command.args(["test", "--quiet"]);
        command
            .current_dir(&self.folder)
            .env("CARGO_TARGET_DIR", &self.build);
        command
    }

    fn git(&self, arguments: &[&str]) -> Result<()> {
        let mut git = Command::new("git");
        self.demand(git.current_dir(&self.folder).args(arguments))
    }

    /// Runs a command that has to succeed.
    fn demand(&self, command: &mut Command) -> Result<()> {
        let (end, said) = self.step(command)?;
        if end != End::Succeeded {
            bail!("{command:?} failed: {said}");
        }
        Ok(())
    }

    /// Runs a command to its end; the end of what it printed.
    fn step(&self, command: &mut Command) -> Result<(End, String)> {
        let path = &self.output;
        let file = File::create(path).with_context(|| format!("create {}", path.display()))?;
        let status = command.stdout(file.try_clone()?).stderr(file).status();
        let status = status.with_context(|| format!("run {command:?}"))?;
        let said = fs::read(path).with_context(|| format!("read {}", path.display()))?;
        let end = match status.code() {
            Some(0) => End::Succeeded,
            Some(TIMED_OUT) => End::OutOfTime,
            Some(_) | None => End::Failed,
        };
        Ok((end, last_lines(&String::from_utf8_lossy(&said))))
    }
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LAST_LINES)..].join("\n")
}
