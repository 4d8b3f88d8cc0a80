//! Usage of a process of the target on this host.

use rustix::param::clock_ticks_per_second;

use crate::procfs::{cpu_ticks, memory};
use crate::reread::{MonitorError, Reread};

/// Usage of a process.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct TargetSample {
    /// CPU time since the monitor was opened, in seconds.
    pub cpu_s: f64,
    /// Largest resident memory so far, in bytes.
    pub peak_rss_bytes: u64,
}

/// Watches one process that the caller knows, such as a gateway it started.
///
/// Open files stay bound to their process, so that another one with the same pid cannot be
/// mistaken for it.
#[derive(Debug)]
pub struct TargetMonitor {
    stat: Reread,
    status: Reread,
    ticks_before: u64,
}

impl TargetMonitor {
    /// Opens the files of the process.
    ///
    /// # Errors
    /// [`MonitorError`] if there is no such process.
    pub fn open(pid: u32) -> Result<Self, MonitorError> {
        let mut stat = Reread::open(format!("/proc/{pid}/stat"))?;
        Ok(Self {
            ticks_before: stat.read().and_then(cpu_ticks).unwrap_or_default(),
            stat,
            status: Reread::open(format!("/proc/{pid}/status"))?,
        })
    }

    /// Samples the usage; none once the process is gone.
    pub fn sample(&mut self) -> Option<TargetSample> {
        let ticks = self.stat.read().and_then(cpu_ticks)?;
        let used = ticks.saturating_sub(self.ticks_before);
        Some(TargetSample {
            cpu_s: used as f64 / clock_ticks_per_second() as f64,
            peak_rss_bytes: self.status.read().and_then(memory)?.peak_rss_bytes,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::process::{Command, Stdio};

    use super::*;
    use crate::thread_cpu_us;

    #[test]
    fn a_process_of_ours_shows_its_cpu_time_and_memory() {
        let mut monitor = TargetMonitor::open(std::process::id()).expect("this process is alive");
        let begun = thread_cpu_us();
        while thread_cpu_us() < begun + 100_000 {}
        let sample = monitor.sample().expect("this process is alive");
        assert!(sample.cpu_s >= 0.09, "100 ms less a tick: {sample:?}");
        assert!(sample.peak_rss_bytes > 0);
    }

    #[test]
    fn a_process_that_was_killed_is_gone() {
        let mut command = Command::new("cat");
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("cat is everywhere");
        // Once it has answered it is `cat`, with memory; then it waits for an input that never comes.
        let mut input = child.stdin.take().expect("it is piped");
        input.write_all(b"x").expect("it reads");
        let mut output = child.stdout.take().expect("it is piped");
        output.read_exact(&mut [0]).expect("it writes");
        let mut monitor = TargetMonitor::open(child.id()).expect("it is alive");
        assert!(monitor.sample().is_some());
        child.kill().expect("it is ours");
        child.wait().expect("it was started");
        assert_eq!(monitor.sample(), None);
        assert!(TargetMonitor::open(child.id()).is_err());
    }
}
