//! The target of every run, in another process.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};

use super::process::{Process, figures};
use super::programs::Programs;

/// Longest wait for the sink's answer: some tools crowd it out with a thousand threads.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running sink; each run has a fresh one, and so a fresh port without old connections.
#[derive(Debug)]
pub(super) struct Sink {
    process: Process,
    /// Its address.
    pub(super) address: String,
    asked: usize,
}

/// Its counts so far.
#[derive(Debug, Clone, Copy)]
pub(super) struct Counts {
    /// Clients that it took.
    pub(super) connects: u64,
    /// Messages that it got.
    pub(super) messages: u64,
    /// Bytes that it got.
    pub(super) bytes: u64,
    /// Reads that got something.
    pub(super) reads: u64,
}

impl Sink {
    /// Over MQTT.
    pub(super) fn start(programs: &Programs) -> Result<Self> {
        Self::run(&programs.mqtt.sink, programs)
    }

    /// The program at this path.
    pub(super) fn run(sink: &Path, programs: &Programs) -> Result<Self> {
        let output = programs.scratch("sink.out");
        let mut process = Process::start(sink, &["127.0.0.1:0".into()], output)?;
        let address = process.first_line()?;
        Ok(Self {
            process,
            address,
            asked: 0,
        })
    }

    pub(super) fn counts(&mut self) -> Result<Counts> {
        self.asked += 1;
        self.process.write_line("")?;
        let asked = self.asked;
        let line = self.process.until(PATIENCE, |process| {
            let printed = process.printed()?;
            // A line counts once its end is there.
            let whole = printed.matches('\n').count() > asked;
            Ok(whole.then(|| printed.lines().nth(asked).map(str::to_owned)))
        })?;
        let line = line.context("the sink printed its counts")?;
        let counts = figures(&line, ["connects", "messages", "bytes", "reads"])?;
        let [connects, messages, bytes, reads] = counts.map(|count| count as u64);
        Ok(Counts {
            connects,
            messages,
            bytes,
            reads,
        })
    }
}
