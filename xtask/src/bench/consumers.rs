//! Consuming: Muster's consumer against the library below it alone, for each library.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::Bench;
use super::process::figures;
use super::programs::Programs;
use super::table::{at_least, begin, end, medians, row, thousands};

/// A library, and how its consumer is compared with ours.
pub(super) struct Library {
    title: &'static str,
    name: &'static str,
    /// The word for what is consumed.
    unit: &'static str,
    /// The example of `muster-backend` that consumes by both.
    example: &'static str,
    /// The script that starts a peer and runs the example.
    script: &'static str,
    /// Enough for some seconds of CPU a turn.
    messages: u32,
    /// Least share of the rate of the library alone.
    goal: f64,
    note: &'static str,
}

pub(super) const KAFKA: Library = Library {
    title: "Consuming from Kafka",
    name: "rdkafka",
    unit: "messages",
    example: "kafka_cost",
    script: "bench/kafka.sh",
    messages: 2_000_000,
    goal: 0.7,
    note: "Ditto messages of 600 bytes with 8 headers, 10 partitions, a group; CPU of the whole process, \
           librdkafka's threads included.",
};

pub(super) const AMQP: Library = Library {
    title: "Receiving over AMQP 1.0",
    name: "fe2o3-amqp",
    unit: "deliveries",
    example: "amqp_cost",
    script: "bench/amqp.sh",
    messages: 500_000,
    goal: 0.7,
    note: "Ditto messages of 600 bytes with 5 application properties, credit 1000, each accepted; CPU of the whole \
           process, the library's thread included.",
};

impl Library {
    /// Compares both consumers in alternating runs.
    pub(super) fn compare(&self, bench: &mut Bench<'_>) -> Result<()> {
        let pairs = self.measured(bench.programs, bench.extent.repetitions)?;
        let Self {
            unit, name, goal, ..
        } = self;
        let columns = format!(
            "{unit} | {name} alone per CPU-s | Muster per CPU-s | ratio | lowest and highest"
        );
        begin(bench.out, self.title, &columns)?;
        let [bare, muster, ratio] = medians(&pairs);
        let ratios = || pairs.iter().map(|(bare, muster)| muster / bare);
        let (low, high) = (
            ratios().fold(f64::INFINITY, f64::min),
            ratios().fold(0.0, f64::max),
        );
        let cells = [
            self.messages.to_string(),
            thousands(bare),
            thousands(muster),
            at_least(ratio, *goal),
            format!("{low:.2} to {high:.2}"),
        ];
        row(bench.out, &cells)?;
        end(bench.out, &format!("{} Goal: {goal}.", self.note))
    }

    /// Messages per CPU-second of the library alone and of Muster, turn by turn.
    fn measured(&self, programs: &Programs, repetitions: u32) -> Result<Vec<(f64, f64)>> {
        let script = self.script;
        let output = Command::new("bash")
            .current_dir(&programs.root)
            .arg(script)
            .arg(programs.example_of("muster-backend", self.example)?)
            .args([self.messages.to_string(), repetitions.to_string()])
            .stderr(Stdio::inherit())
            .output()
            .with_context(|| format!("run {script}"))?;
        let printed = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() {
            bail!("{script} failed: {printed}");
        }
        let figures = printed.lines().map(|line| self.per_cpu(line));
        let figures: Result<Vec<f64>> = figures.collect();
        Ok(figures?
            .chunks_exact(2)
            .map(|pair| (pair[0], pair[1]))
            .collect())
    }

    /// Of one turn, in which the id of every message was read.
    fn per_cpu(&self, line: &str) -> Result<f64> {
        let [messages, read, cpu_s] = figures(line, ["messages", "read", "cpu_s"])?;
        if messages.min(read) < f64::from(self.messages) {
            bail!("not every message was taken and read: {line}");
        }
        Ok(messages / cpu_s)
    }
}
