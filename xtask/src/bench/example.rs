//! Runs the examples that measure the cost of one part in memory, without any socket.

use std::io::Write;

use anyhow::{Result, bail};

use super::programs::{Programs, cargo};
use super::table::end;

/// An example of a crate that times its own parts, and what is asked of them.
pub(super) struct Example {
    package: &'static str,
    name: &'static str,
    title: &'static str,
    goals: &'static str,
}

/// The recorder's cost of a message.
pub(super) const LEDGER: Example = Example {
    package: "muster-measure",
    name: "cost",
    title: "Ledger, histograms and ids",
    goals: "Goal: at most 500 ns.",
};

/// The cost of a TLS handshake, link and message.
pub(super) const TLS: Example = Example {
    package: "muster-transport",
    name: "tls_cost",
    title: "TLS 1.3 and WebSocket",
    goals: "Goals: full handshakes at least 0.8 of rustls alone, resumed ones at least 2.5 times full, \
            at most 6,144 bytes a link at rest.",
};

/// The cost of watching processes.
pub(super) const MONITOR: Example = Example {
    package: "muster-monitor",
    name: "watch_cost",
    title: "Watching the target",
    goals: "Goal: at most 10 ms of CPU a sample, which is 1 % of a core at one a second.",
};

/// The cost of a DTLS handshake, session and record.
pub(super) const DTLS: Example = Example {
    package: "muster-transport",
    name: "dtls_cost",
    title: "DTLS 1.2",
    goals: "In memory; handshakes over sockets are in the table above.",
};

impl Example {
    pub(super) fn run(&self, programs: &Programs, out: &mut dyn Write) -> Result<()> {
        let how = ["run", "--release", "--quiet"];
        let what = ["-p", self.package, "--example", self.name];
        let output = cargo(&programs.root).args(how).args(what).output()?;
        if !output.status.success() {
            let words = String::from_utf8_lossy(&output.stderr);
            bail!("the example {} failed: {words}", self.name);
        }
        writeln!(out, "### {}\n", self.title)?;
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            writeln!(out, "- {line}")?;
        }
        end(out, self.goals)
    }
}
