//! Usage of the target's processes on this host.

use std::fs;

use muster_model::Micros;
use rustix::param::clock_ticks_per_second;

use crate::ClockReading;
use crate::procfs::{Io, Memory, ProcessTimes, io, memory, process_times};
use crate::reread::{MonitorError, Reread};

/// The kernel cuts a command's name to this many bytes (`TASK_COMM_LEN` less its end mark).
const COMM_MAX: usize = 15;

/// Usage of the watched processes since the previous sample, summed.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct TargetSample {
    /// Instant of the sample in the run's time, as given by the caller.
    pub at: Micros,
    /// Number of processes that are alive.
    pub processes: u32,
    /// CPU time divided by time passed: 1.5 is one and a half cores.
    pub cpu: f64,
    /// Resident memory now.
    pub memory: Memory,
    /// Bytes moved to and from storage; none where this user may not read it.
    pub io: Option<Io>,
    /// Processes that were not there at the sample before.
    pub started: u32,
    /// Processes that were there at the sample before and are gone.
    pub ended: u32,
}

/// Watches the processes of one target, by pid or by name.
///
/// By name, processes are looked up again at each sample, so that a target that was killed and
/// started again is found.
#[derive(Debug)]
pub struct TargetMonitor {
    name: String,
    look_up: bool,
    ticks_per_s: f64,
    processes: Vec<Process>,
    last: ClockReading,
}

#[derive(Debug)]
struct Process {
    pid: u32,
    stat: Reread,
    status: Reread,
    io: Option<Reread>,
    times: ProcessTimes,
    moved: Option<Io>,
}

impl TargetMonitor {
    /// Watches one process that the caller knows, such as a gateway it started.
    ///
    /// # Errors
    /// [`MonitorError`] if there is no such process.
    pub fn of_process(name: &str, pid: u32) -> Result<Self, MonitorError> {
        Ok(Self::new(name, false, vec![Process::open(pid)?]))
    }

    /// Watches all processes whose command has the name (`/proc/<pid>/comm`).
    ///
    /// # Errors
    /// [`MonitorError`] if there is none.
    pub fn named(name: &str) -> Result<Self, MonitorError> {
        let processes: Vec<_> = pids_named(name)
            .into_iter()
            .filter_map(|pid| Process::open(pid).ok())
            .collect();
        if processes.is_empty() {
            return Err(MonitorError::NoProcess {
                name: name.to_owned(),
            });
        }
        Ok(Self::new(name, true, processes))
    }

    /// The name it was given.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Samples the usage since the previous sample, or since the monitor was created.
    pub fn sample(&mut self, now: Micros) -> TargetSample {
        let clock = ClockReading::take();
        let passed_s = (clock.monotonic_ns - self.last.monotonic_ns).max(1) as f64 / 1e9;
        self.last = clock;
        let mut sample = TargetSample {
            at: now,
            ..TargetSample::default()
        };
        let mut ticks = 0;
        let before = self.processes.len();
        self.processes
            .retain_mut(|process| process.add_to(&mut sample, &mut ticks).is_some());
        sample.ended = count(before - self.processes.len());
        sample.started = self.find_new();
        sample.processes = count(self.processes.len());
        sample.cpu = ticks as f64 / self.ticks_per_s / passed_s;
        sample
    }

    fn new(name: &str, look_up: bool, processes: Vec<Process>) -> Self {
        Self {
            name: name.to_owned(),
            look_up,
            ticks_per_s: clock_ticks_per_second() as f64,
            processes,
            last: ClockReading::take(),
        }
    }

    fn find_new(&mut self) -> u32 {
        if !self.look_up {
            return 0;
        }
        let before = self.processes.len();
        for pid in pids_named(&self.name) {
            if self.processes.iter().all(|process| process.pid != pid) {
                self.processes.extend(Process::open(pid));
            }
        }
        count(self.processes.len() - before)
    }
}

impl Process {
    fn open(pid: u32) -> Result<Self, MonitorError> {
        let mut process = Self {
            pid,
            stat: Reread::open(format!("/proc/{pid}/stat"))?,
            status: Reread::open(format!("/proc/{pid}/status"))?,
            io: Reread::open(format!("/proc/{pid}/io")).ok(),
            times: ProcessTimes::default(),
            moved: None,
        };
        process.times = process
            .stat
            .read()
            .and_then(process_times)
            .unwrap_or_default();
        process.moved = process.io.as_mut().and_then(Reread::read).and_then(io);
        Ok(process)
    }

    /// None once the process is gone. Open files stay bound to their process, so that another
    /// one with the same pid cannot be mistaken for it.
    fn add_to(&mut self, sample: &mut TargetSample, ticks: &mut u64) -> Option<()> {
        let times = self.stat.read().and_then(process_times)?;
        let used = self.status.read().and_then(memory)?;
        *ticks += (times.user_ticks + times.system_ticks)
            .saturating_sub(self.times.user_ticks + self.times.system_ticks);
        self.times = times;
        sample.memory.rss_bytes += used.rss_bytes;
        sample.memory.peak_rss_bytes += used.peak_rss_bytes;
        sample.memory.anon_bytes += used.anon_bytes;
        sample.memory.threads += used.threads;
        self.add_io(sample);
        Some(())
    }

    fn add_io(&mut self, sample: &mut TargetSample) {
        let now = self.io.as_mut().and_then(Reread::read).and_then(io);
        if let (Some(now), Some(before)) = (now, self.moved) {
            let sum = sample.io.get_or_insert_default();
            sum.read_bytes += now.read_bytes.saturating_sub(before.read_bytes);
            sum.written_bytes += now.written_bytes.saturating_sub(before.written_bytes);
        }
        self.moved = now;
    }
}

fn pids_named(name: &str) -> Vec<u32> {
    let wanted = name.as_bytes().get(..COMM_MAX).unwrap_or(name.as_bytes());
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut pids: Vec<u32> = entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| {
            fs::read(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm.trim_ascii_end() == wanted)
        })
        .collect();
    pids.sort_unstable();
    pids
}

fn count(processes: usize) -> u32 {
    u32::try_from(processes).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// A child that lives until it is killed; `cat` waits for an input that never comes.
    fn idle_child() -> Child {
        Command::new("cat")
            .stdin(Stdio::piped())
            .spawn()
            .expect("cat is everywhere")
    }

    #[test]
    fn a_process_of_ours_shows_its_memory() {
        let mut monitor =
            TargetMonitor::of_process("self", std::process::id()).expect("this process is alive");
        let sample = monitor.sample(Micros::from_secs(1));
        assert_eq!((sample.processes, sample.started, sample.ended), (1, 0, 0));
        assert!(sample.memory.rss_bytes > 0 && sample.memory.threads > 0);
        assert_eq!(monitor.name(), "self");
    }

    #[test]
    fn a_process_that_was_killed_is_gone() {
        let mut child = idle_child();
        let mut monitor = TargetMonitor::of_process("cat", child.id()).expect("it is alive");
        assert_eq!(monitor.sample(Micros::ZERO).processes, 1);
        child.kill().expect("it is ours");
        child.wait().expect("it was started");
        let sample = monitor.sample(Micros::from_secs(1));
        assert_eq!((sample.processes, sample.ended), (0, 1));
        assert_eq!(monitor.sample(Micros::from_secs(2)).ended, 0);
    }

    #[test]
    fn a_name_finds_processes_that_start_later() {
        let name = fs::read_to_string("/proc/self/comm").expect("procfs is mounted");
        let mut monitor = TargetMonitor::named(name.trim_end()).expect("this process has it");
        let known = monitor.sample(Micros::ZERO).processes;
        assert!(known >= 1);
        monitor.processes.clear();
        assert!(monitor.sample(Micros::ZERO).started >= 1);
    }

    #[test]
    fn a_name_that_nobody_bears_is_an_error() {
        let error = TargetMonitor::named("no-such-target").expect_err("nobody bears it");
        assert!(error.to_string().contains("no-such-target"), "{error}");
    }
}
