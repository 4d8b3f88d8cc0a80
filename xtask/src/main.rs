//! The developer's commands: `cargo run -p xtask -- <command>`.

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};
use xtask::{Violation, bench, docs, faults, layers, project, tidy};

/// Checks the project's own rules.
#[derive(Debug, Parser)]
#[command(name = "xtask", after_help = "Example: cargo run -p xtask -- tidy")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Sizes, names, English, headers, stray marks, characters, paths and links.
    Tidy,
    /// Layers, purity and the map of the crates.
    Layers,
    /// Writes the tables of the conformance pages from the tests' doc comments.
    Conformance,
    /// Speed and memory against the bare loop and published tools; needs an otherwise idle machine.
    #[command(after_help = "Example: cargo run --release -p xtask -- bench quick")]
    Bench(bench::Options),
    /// Runs the commands printed in README, CONTRIBUTING and `docs/`, each as printed.
    #[command(after_help = "Example: cargo run -p xtask -- docs --program target/debug/muster")]
    Docs(docs::Options),
    /// Plants each fault of `faults/` in the last commit and demands that its test fails.
    #[command(after_help = "Example: cargo run -p xtask -- faults judge measure-arrival")]
    Faults(faults::Options),
}

fn main() -> Result<ExitCode> {
    let root = project::root();
    let found = match Arguments::parse().command {
        Command::Tidy => tidy::check(&root)?,
        Command::Layers => layers::check(&root)?,
        Command::Conformance => {
            tidy::write_tables(&root)?;
            return Ok(ExitCode::SUCCESS);
        }
        Command::Docs(options) => docs::check(&root, &options)?,
        Command::Bench(options) => {
            bench::run(&root, &options, &mut io::stdout().lock())?;
            return Ok(ExitCode::SUCCESS);
        }
        Command::Faults(options) => {
            let all_killed = faults::run(&root, &options, &mut io::stdout().lock())?;
            return Ok(match all_killed {
                true => ExitCode::SUCCESS,
                false => ExitCode::FAILURE,
            });
        }
    };
    report(&found)
}

fn report(found: &[Violation]) -> Result<ExitCode> {
    let mut out = io::stdout().lock();
    for violation in found {
        writeln!(out, "{violation}")?;
    }
    writeln!(out, "{} violations", found.len())?;
    Ok(if found.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
