//! What ledger, histograms and ids cost a message, without any socket.

use std::io::Write;

use anyhow::{Result, bail};

use super::programs::{Programs, cargo};
use super::table::end;

/// Runs the example of `measure` that times its own recorder.
pub(super) fn cost(programs: &Programs, out: &mut dyn Write) -> Result<()> {
    let words = [
        "run",
        "--release",
        "--quiet",
        "-p",
        "muster-measure",
        "--example",
        "cost",
    ];
    let output = cargo(&programs.root).args(words).output()?;
    if !output.status.success() {
        bail!(
            "the example failed: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    writeln!(out, "### Ledger, histograms and ids\n")?;
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        writeln!(out, "- {line}")?;
    }
    end(out, "Goal: at most 500 ns.")
}
