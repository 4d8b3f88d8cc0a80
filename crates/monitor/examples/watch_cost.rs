//! Cost of watching processes: `cargo run --release -p muster-monitor --example watch_cost`.
//!
//! Time is time on the CPU, from `/proc/thread-self/schedstat`, so that a busy machine does not spoil it.
//! It grows with the processes of the machine, since each sample looks for children that began.

use std::error::Error;
use std::io::Write;
use std::process::{Child, Command, Stdio};

use muster_model::Micros;
use muster_monitor::{ProcessUsage, UsageSource};

const SAMPLES: u64 = 1_000;
/// Children of the larger family: those of a small database server.
const CHILDREN: usize = 20;

fn main() -> Result<(), Box<dyn Error>> {
    let mut out = std::io::stdout().lock();
    let processes = std::fs::read_dir("/proc")?.count();
    for children in [0, CHILDREN] {
        // Each ends with its input, which ends here.
        let family = (0..children).map(|_| child());
        let family: Vec<Child> = family.collect::<Result<_, _>>()?;
        let ms = cost()? as f64 / 1e6 / SAMPLES as f64;
        writeln!(
            out,
            "a process and {children} children, {processes} entries in /proc: {ms:.2} ms a sample"
        )?;
        for mut child in family {
            drop(child.stdin.take());
            child.wait()?;
        }
    }
    Ok(())
}

fn child() -> std::io::Result<Child> {
    let mut program = Command::new("cat");
    program.stdin(Stdio::piped()).stdout(Stdio::null()).spawn()
}

/// Nanoseconds on the CPU of all samples of this process and its children.
fn cost() -> Result<u64, Box<dyn Error>> {
    let mut usage = ProcessUsage::of("it", &[std::process::id()], None)?;
    let started = on_cpu_ns()?;
    for second in 1..=SAMPLES {
        let values = usage.sample(Micros::from_secs(second))?;
        assert_eq!(values.len(), usage.resources().len());
    }
    Ok(on_cpu_ns()? - started)
}

fn on_cpu_ns() -> std::io::Result<u64> {
    let line = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let first = line
        .split_whitespace()
        .next()
        .and_then(|word| word.parse().ok());
    first.ok_or_else(|| std::io::Error::other("schedstat begins with no number"))
}
