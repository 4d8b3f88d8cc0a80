//! Commands printed in the documents: each works as printed.
//!
//! Commands are in fenced blocks marked `sh`. A block is run, page by page in one scratch folder, with
//! `muster` on the `PATH`. The rest of the mark says how:
//!
//! - `sh` must end with exit code 0, `sh exit=1` with 1.
//! - `sh needs=hono` needs what a test has not (a broker, two hosts, minutes). It is not run: each `muster`
//!   command is only parsed by the program, and recipes, scripts and scenarios must exist.
//!
//! It must never change a file of the project: runs write into the scratch folder.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Context, Result, anyhow, ensure};
use clap::Args;

use crate::project::{self, TextFile};
use crate::violation::Violation;

/// Longest time of a block, in seconds.
const LIMIT: &str = "60";
/// Pages that are checked at the same time: their runs take most of their time to wait.
const WORKERS: usize = 4;
/// Exit code of a run whose machine was too busy.
const INVALID: i32 = 3;
/// Most runs of a page whose block ends with [`INVALID`].
const TRIES: u32 = 3;
/// Programs whose commands stand in a block marked `sh`, and nowhere else.
const PROGRAMS: [&str; 7] = [
    "muster",
    "cargo",
    "just",
    "sudo",
    "bash",
    "mosquitto",
    "docker",
];
/// Commands of the shells that run blocks.
const SHELL: &str = include_str!("docs/shell.sh");

/// Program that the commands run.
#[derive(Debug, Args)]
pub struct Options {
    /// The program under `muster`.
    #[arg(long, default_value = "target/release/muster")]
    pub program: PathBuf,
}

/// Block of a page that holds commands.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Block {
    /// Line of its mark, from 1.
    line: usize,
    /// Exit code that it ends with; none if it needs what a test has not.
    exit: Option<i32>,
    commands: String,
}

/// Runs every command of the documents, and finds those that fail.
///
/// # Errors
/// If a page cannot be read, or the program or a shell cannot be started.
pub fn check(root: &Path, options: &Options) -> Result<Vec<Violation>> {
    let program = root.join(&options.program);
    let named = options.program.display();
    ensure!(
        program.exists(),
        "there is no {named}: build it, or name another by --program"
    );
    let (pages, next) = (pages(root)?, AtomicUsize::new(0));
    let check_some = || -> Result<Vec<Violation>> {
        let mut found = Vec::new();
        while let Some(page) = pages.get(next.fetch_add(1, Ordering::Relaxed)) {
            found.extend(check_page(root, &program, page)?);
        }
        Ok(found)
    };
    let mut found = Vec::new();
    thread::scope(|scope| -> Result<()> {
        let workers: Vec<_> = (0..WORKERS).map(|_| scope.spawn(check_some)).collect();
        for worker in workers {
            let checked = worker.join().map_err(|_| anyhow!("a worker panicked"))?;
            found.extend(checked?);
        }
        Ok(())
    })?;
    found.sort();
    Ok(found)
}

/// Finds commands outside of blocks marked `sh`, and marks that do not exist.
///
/// # Errors
/// If a page cannot be read.
pub fn check_marks(root: &Path) -> Result<Vec<Violation>> {
    let pages = pages(root)?;
    Ok(pages.iter().flat_map(|page| blocks(page).1).collect())
}

/// README, CONTRIBUTING and the pages of `docs/`.
fn pages(root: &Path) -> Result<Vec<TextFile>> {
    let mut names = vec!["README.md".to_owned(), "CONTRIBUTING.md".to_owned()];
    for entry in fs::read_dir(root.join("docs"))? {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == "md") {
            names.push(project::relative(root, &path));
        }
    }
    names.sort();
    let read = |path: String| -> Result<TextFile> {
        let text =
            fs::read_to_string(root.join(&path)).with_context(|| format!("reading {path}"))?;
        Ok(TextFile { path, text })
    };
    names.into_iter().map(read).collect()
}

/// The blocks of a page that hold commands, and what is wrong with the marks of all.
fn blocks(page: &TextFile) -> (Vec<Block>, Vec<Violation>) {
    let (mut blocks, mut found) = (Vec::new(), Vec::new());
    let mut lines = page.text.lines().zip(1..);
    let command = |line: &str| {
        PROGRAMS
            .iter()
            .any(|program| line.starts_with(&format!("{program} ")))
    };
    while let Some((line, number)) = lines.next() {
        let mut wrong =
            |number, what: &str| found.push(Violation::new(&page.path, number, "command", what));
        let Some(mark) = line.trim_start().strip_prefix("```") else {
            if line
                .strip_prefix("    ")
                .is_some_and(|rest| command(rest.trim_start()))
            {
                wrong(
                    number,
                    "a command stands outside of a fenced block: mark the block with ```sh",
                );
            }
            continue;
        };
        let inside = lines
            .by_ref()
            .take_while(|(line, _)| line.trim_start() != "```");
        let body: Vec<&str> = inside.map(|(line, _)| line).collect();
        let exit = match mark.split_once(' ').unwrap_or((mark, "")) {
            ("sh", "") => Some(0),
            ("sh", detail) if detail.starts_with("needs=") => None,
            ("sh", detail) => match detail.strip_prefix("exit=").map(str::parse) {
                Some(Ok(exit)) => Some(exit),
                _ => {
                    wrong(
                        number,
                        "no such mark: use ```sh, ```sh exit=N or ```sh needs=WHAT",
                    );
                    continue;
                }
            },
            _ => {
                if body.iter().any(|line| command(line)) {
                    wrong(number, "a block with commands has another mark: use ```sh");
                }
                continue;
            }
        };
        let commands = body.join("\n");
        blocks.push(Block {
            line: number,
            exit,
            commands,
        });
    }
    (blocks, found)
}

/// Runs the blocks of a page in one scratch folder.
fn check_page(root: &Path, program: &Path, page: &TextFile) -> Result<Vec<Violation>> {
    try_page(root, program, page, TRIES)
}

/// The same, from the beginning where a run was invalid, at most `tries` times.
fn try_page(root: &Path, program: &Path, page: &TextFile, tries: u32) -> Result<Vec<Violation>> {
    let (blocks, mut found) = blocks(page);
    let scratch = root.join("target/docs").join(page.path.replace('/', "-"));
    if scratch.exists() {
        fs::remove_dir_all(&scratch)?;
    }
    fs::create_dir_all(&scratch)?;
    for folder in ["scenarios", "docs", "e2e"] {
        std::os::unix::fs::symlink(root.join(folder), scratch.join(folder))?;
    }
    for block in blocks {
        let said = scratch.join("said");
        let status = shell(root, program, &scratch, &block, &said)?;
        if status == Some(INVALID) && block.exit != status && tries > 1 {
            return try_page(root, program, page, tries - 1);
        }
        let expected = block.exit.unwrap_or(0);
        if status != Some(expected) {
            let text = fs::read_to_string(&said)?;
            let last: Vec<&str> = text.lines().rev().take(6).collect();
            let last: Vec<&str> = last.into_iter().rev().collect();
            let status = status.map_or_else(|| "a signal".to_owned(), |status| status.to_string());
            let what = format!("ended with {status}, not {expected}: {}", last.join(" | "));
            found.push(Violation::new(&page.path, block.line, "command", what));
        }
    }
    Ok(found)
}

/// Runs one block, and returns its exit code. What it prints goes into the file `said`.
fn shell(
    root: &Path,
    program: &Path,
    scratch: &Path,
    block: &Block,
    said: &Path,
) -> Result<Option<i32>> {
    let printed = File::create(said)?;
    let begin = match block.exit {
        Some(_) => "to_run\nset -euo pipefail",
        None => "to_parse",
    };
    let script = format!("{SHELL}\n{begin}\n{}\n", waited_for(&block.commands));
    let status = Command::new("timeout")
        .args(["--kill-after=5", LIMIT, "bash", "-c", &script])
        .env("PROGRAM", program)
        .env("PROJECT", root)
        .env("HOME", scratch)
        .current_dir(scratch)
        .stdin(Stdio::null())
        .stdout(printed.try_clone()?)
        .stderr(printed)
        .status()
        .context("starting bash by timeout")?;
    Ok(status.code())
}

/// Commands whose gateways are waited for: the shell's own `muster gateway` returns once it listens, so that a `&` behind
/// it would let the next command come too early.
fn waited_for(commands: &str) -> String {
    let lines = commands.lines().map(|line| match line.strip_suffix(" &") {
        Some(gateway) if gateway.starts_with("muster gateway ") => gateway,
        _ => line,
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(text: &str) -> TextFile {
        let path = "docs/x.md".to_owned();
        TextFile {
            path,
            text: text.to_owned(),
        }
    }

    fn ends(text: &str, program: &str) -> Result<usize> {
        let root = tempfile::tempdir()?;
        fs::create_dir_all(root.path().join("target"))?;
        fs::write(root.path().join("justfile"), "demo:\n")?;
        Ok(check_page(root.path(), Path::new(program), &page(text))?.len())
    }

    #[test]
    fn every_command_stands_in_a_block_marked_sh() {
        let wrong = "    muster run a\n\n```\ncargo build\n```\n\n```sh wants=luck\n```\n";
        assert_eq!(blocks(&page(wrong)).1.len(), 3);
        let (found, wrong) = blocks(&page(
            "```sh exit=3\nmuster run a\n```\n\n```yaml\na: b\n```\n",
        ));
        let commands = "muster run a".to_owned();
        assert_eq!(
            (found, wrong.len()),
            (
                vec![Block {
                    line: 1,
                    exit: Some(3),
                    commands
                }],
                0
            )
        );
    }

    #[test]
    fn a_block_ends_with_the_exit_code_of_its_mark() -> Result<()> {
        assert_eq!(ends("```sh\nmuster run a\n```\n", "/bin/true")?, 0);
        assert_eq!(ends("```sh\nmuster run a\n```\n", "/bin/false")?, 1);
        assert_eq!(ends("```sh exit=1\nmuster run a\n```\n", "/bin/false")?, 0);
        Ok(())
    }

    #[test]
    fn a_gateway_in_the_background_is_waited_for() {
        let commands =
            "muster gateway --listen 127.0.0.1:1883 &\nmuster run first.yaml &\nsleep 1 &";
        let waited = "muster gateway --listen 127.0.0.1:1883\nmuster run first.yaml &\nsleep 1 &";
        assert_eq!(waited_for(commands), waited);
    }

    #[test]
    fn a_block_that_needs_something_is_parsed_only() -> Result<()> {
        assert_eq!(
            ends(
                "```sh needs=b\nunknown-program | other &\nmuster a \\\n  b\njust demo\n```\n",
                "/bin/true"
            )?,
            0
        );
        assert_eq!(
            ends(
                "```sh needs=b\ncargo run --release -- a\ntrue\n```\n",
                "/bin/false"
            )?,
            1
        );
        assert_eq!(ends("```sh needs=b\njust demon\n```\n", "/bin/true")?, 1);
        assert_eq!(ends("```sh needs=b\njust dem\n```\n", "/bin/true")?, 1);
        Ok(())
    }
}
