//! The generator's own use, second by second.

use std::fs::{self, DirEntry};

use muster_judge::ThreadRole;
use muster_model::Micros;
use rustix::thread::gettid;
use rustix::time::{ClockId, clock_gettime};

use crate::procfs::{CpuTimes, Memory, SchedStat, cpu_times, memory};
use crate::reread::{MonitorError, Reread};
use crate::{ClockChange, ClockReading};

/// A thread of this process, as the kernel names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ThreadId(i32);

/// The thread that calls; it hands the value to whoever owns the monitor.
pub fn current_thread() -> ThreadId {
    ThreadId(gettid().as_raw_nonzero().get())
}

/// Usage of one thread since the previous sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ThreadShare {
    /// Its role.
    pub role: ThreadRole,
    /// Its number within the role, from 0.
    pub index: u16,
    /// Time on a CPU divided by time passed; the scheduler's own clock lags by up to a tick, so
    /// a busy thread may read a little above 1.
    pub cpu: f64,
    /// Time ready to run but waiting for a CPU, divided by time passed.
    pub wait: f64,
}

/// The threads of this process whose names begin so.
fn named_threads(name: &str) -> Vec<ThreadId> {
    let Ok(tasks) = fs::read_dir("/proc/self/task") else {
        return Vec::new();
    };
    let is_named = |task: &DirEntry| {
        let comm = fs::read_to_string(task.path().join("comm"));
        comm.is_ok_and(|comm| comm.starts_with(name))
    };
    let tasks = tasks.flatten().filter(is_named);
    let ids = tasks.filter_map(|task| task.file_name().to_str()?.parse().ok());
    ids.map(ThreadId).collect()
}

/// CPU time of the thread that calls since it began, in microseconds.
pub fn thread_cpu_us() -> u64 {
    cpu_us(ClockId::ThreadCPUTime)
}

/// Activity of the generator and its host since the previous sample.
#[derive(Debug, Clone, PartialEq)]
pub struct GeneratorSample {
    /// Instant of the sample in the run's time, as given by the caller.
    pub at: Micros,
    /// Time that passed since the sample before, by `CLOCK_MONOTONIC`, in microseconds.
    pub passed_us: u64,
    /// Each watched thread that is still alive.
    pub threads: Vec<ThreadShare>,
    /// CPU time of the whole process since it began, in microseconds.
    pub cpu_us: u64,
    /// Memory of the process now and at its peak.
    pub process: Memory,
    /// Share of the host's CPU time that the hypervisor gave to others; none if procfs does
    /// not report it.
    pub steal: Option<f64>,
    /// Steps of the clocks and suspensions.
    pub clock: ClockChange,
}

/// Reads the generator's own use; one per process, sampled about once a second.
///
/// A sample costs one `pread` a file: two, and one for each watched thread.
#[derive(Debug)]
pub struct GeneratorMonitor {
    threads: Vec<Watched>,
    status: Reread,
    host: Option<Reread>,
    /// Readings of the sample before.
    clock: ClockReading,
    cpu_times: Option<CpuTimes>,
}

#[derive(Debug)]
struct Watched {
    role: ThreadRole,
    index: u16,
    thread: ThreadId,
    file: Reread,
    last: SchedStat,
}

impl GeneratorMonitor {
    /// Opens the files of this process and takes the first readings.
    ///
    /// # Errors
    /// [`MonitorError`] if `/proc/self/status` cannot be read. The host's files may be missing, as
    /// in some containers: their figures are then not known.
    pub fn open() -> Result<Self, MonitorError> {
        let mut host = Reread::open("/proc/stat").ok();
        Ok(Self {
            threads: Vec::new(),
            status: Reread::open("/proc/self/status")?,
            cpu_times: host.as_mut().and_then(Reread::read).and_then(cpu_times),
            host,
            clock: ClockReading::take(),
        })
    }

    /// Watches one more thread of this process.
    ///
    /// # Errors
    /// [`MonitorError`] if the thread is gone, or the kernel keeps no scheduler statistics.
    pub fn watch(
        &mut self,
        role: ThreadRole,
        index: u16,
        thread: ThreadId,
    ) -> Result<(), MonitorError> {
        let mut file = Reread::open(format!("/proc/self/task/{}/schedstat", thread.0))?;
        let last = file.read().and_then(SchedStat::parse).unwrap_or_default();
        self.threads.push(Watched {
            role,
            index,
            thread,
            file,
            last,
        });
        Ok(())
    }

    /// Watches every further thread of this process whose name begins so: a library starts its
    /// threads when it wants them. The first of them is number `first`.
    pub fn watch_named(&mut self, role: ThreadRole, name: &str, first: u16) {
        for thread in named_threads(name) {
            if self.threads.iter().any(|known| known.thread == thread) {
                continue;
            }
            let numbers = self.threads.iter().filter(|known| known.role == role);
            let last = numbers.map(|known| known.index).max().unwrap_or(0);
            // One that has ended since needs no watch.
            let _ = self.watch(role, last.saturating_add(1).max(first), thread);
        }
    }

    /// Samples the activity since the previous sample, or since the monitor was opened.
    ///
    /// `now` is the instant in the run's time that the sample will bear.
    pub fn sample(&mut self, now: Micros) -> GeneratorSample {
        let times = self.host.as_mut().and_then(Reread::read);
        let times = times.and_then(cpu_times);
        let host = times.zip(std::mem::replace(&mut self.cpu_times, times));
        let clock = ClockReading::take();
        let before = std::mem::replace(&mut self.clock, clock);
        let passed_ns = nanoseconds_between(before, clock);
        GeneratorSample {
            at: now,
            passed_us: passed_ns / 1_000,
            threads: self.thread_shares(passed_ns),
            cpu_us: cpu_us(ClockId::ProcessCPUTime),
            process: self.status.read().and_then(memory).unwrap_or_default(),
            steal: host.and_then(|(now, then)| steal(now, then)),
            clock: clock.since(before),
        }
    }

    /// Threads that ended are watched no longer.
    fn thread_shares(&mut self, passed_ns: u64) -> Vec<ThreadShare> {
        let mut shares = Vec::with_capacity(self.threads.len());
        self.threads.retain_mut(|thread| {
            let share = thread.share(passed_ns);
            shares.extend(share);
            share.is_some()
        });
        shares
    }
}

impl Watched {
    fn share(&mut self, passed_ns: u64) -> Option<ThreadShare> {
        let now = self.file.read().and_then(SchedStat::parse)?;
        let before = std::mem::replace(&mut self.last, now);
        let part = |ns: u64| ns as f64 / passed_ns.max(1) as f64;
        Some(ThreadShare {
            role: self.role,
            index: self.index,
            cpu: part(now.run_ns.saturating_sub(before.run_ns)),
            wait: part(now.wait_ns.saturating_sub(before.wait_ns)),
        })
    }
}

/// None while the host's counters did not move, as between two samples of one tick.
fn steal(now: CpuTimes, then: CpuTimes) -> Option<f64> {
    let total = now.total.saturating_sub(then.total);
    let stolen = now.steal.saturating_sub(then.steal);
    (total > 0).then(|| stolen as f64 / total as f64)
}

fn nanoseconds_between(then: ClockReading, now: ClockReading) -> u64 {
    u64::try_from(now.monotonic_ns - then.monotonic_ns).unwrap_or(0)
}

fn cpu_us(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    let us = time.tv_sec * 1_000_000 + time.tv_nsec / 1_000;
    u64::try_from(us).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Burns CPU until the scheduler's statistics, which lag by a tick, must have seen it.
    fn burn() {
        let start = thread_cpu_us();
        while thread_cpu_us() < start + 60_000 {
            std::hint::spin_loop();
        }
    }

    #[test]
    fn a_busy_thread_shows_its_time_on_a_cpu() {
        let mut monitor = GeneratorMonitor::open().expect("procfs is mounted");
        monitor
            .watch(ThreadRole::Shard, 3, current_thread())
            .expect("this thread is alive");
        burn();
        let sample = monitor.sample(Micros::from_secs(1));
        let thread = sample.threads[0];
        assert_eq!((thread.role, thread.index), (ThreadRole::Shard, 3));
        assert!(thread.cpu > 0.0, "{thread:?}");
        assert!(thread.cpu + thread.wait < 1.5, "{thread:?}");
    }

    #[test]
    fn threads_of_a_name_are_found_once_and_have_numbers_of_their_own() {
        let mut monitor = GeneratorMonitor::open().expect("procfs is mounted");
        monitor
            .watch(ThreadRole::Consumer, 3, current_thread())
            .expect("this thread is alive");
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let (ready, is_ready) = std::sync::mpsc::channel();
        let thread = std::thread::Builder::new().name("odd:name-9".to_owned());
        let work = move || {
            ready.send(()).expect("the test waits");
            ended.recv().expect_err("nothing is sent");
        };
        let thread = thread.spawn(work).expect("a thread can be had");
        is_ready.recv().expect("it begins");
        for _ in 0..2 {
            monitor.watch_named(ThreadRole::Consumer, "odd:", 100);
        }
        let sample = monitor.sample(Micros::from_secs(1));
        let numbers: Vec<u16> = sample.threads.iter().map(|it| it.index).collect();
        assert_eq!(numbers, [3, 100]);
        drop(end);
        thread.join().expect("it ends");
    }

    /// Ticks of user and system time of this process, as `/proc/self/stat` counts them
    /// (proc_pid_stat(5), fields 14 and 15), in microseconds.
    fn cpu_us_by_ticks() -> u64 {
        let stat = fs::read_to_string("/proc/self/stat").expect("procfs is mounted");
        let (_, fields) = stat
            .rsplit_once(')')
            .expect("the command ends with a bracket");
        let fields: Vec<&str> = fields.split_whitespace().collect();
        let ticks = |at: usize| fields[at].parse::<u64>().expect("a count of ticks");
        (ticks(11) + ticks(12)) * 1_000_000 / rustix::param::clock_ticks_per_second()
    }

    #[test]
    fn cpu_time_is_what_the_kernel_counts_in_ticks() {
        let mut monitor = GeneratorMonitor::open().expect("procfs is mounted");
        let begun = (monitor.sample(Micros::ZERO).cpu_us, cpu_us_by_ticks());
        (0..5).for_each(|_| burn());
        let ended = (monitor.sample(Micros::ZERO).cpu_us, cpu_us_by_ticks());
        let (ours, theirs) = (ended.0 - begun.0, ended.1 - begun.1);
        assert!(ours >= 300_000, "{ours} us");
        assert!(
            ours.abs_diff(theirs) <= 40_000 + ours / 10,
            "{ours} us, by ticks {theirs} us"
        );
    }

    #[test]
    fn the_share_of_a_thread_is_what_its_own_clock_says() {
        let mut monitor = GeneratorMonitor::open().expect("procfs is mounted");
        monitor
            .watch(ThreadRole::Shard, 0, current_thread())
            .expect("this thread is alive");
        let begun = thread_cpu_us();
        monitor.sample(Micros::ZERO);
        (0..5).for_each(|_| burn());
        let sample = monitor.sample(Micros::ZERO);
        let own = (thread_cpu_us() - begun) as f64;
        let told = sample.threads[0].cpu * sample.passed_us as f64;
        assert!(
            (told - own).abs() <= 20_000.0 + own / 20.0,
            "{told} us of {own} us"
        );
    }

    #[test]
    fn memory_is_what_the_kernel_counts_in_pages() {
        let mut monitor = GeneratorMonitor::open().expect("procfs is mounted");
        let ours = monitor.sample(Micros::ZERO).process.rss_bytes;
        // proc_pid_statm(5): the second field is the resident set in pages.
        let statm = fs::read_to_string("/proc/self/statm").expect("procfs is mounted");
        let pages = statm.split_whitespace().nth(1).expect("a second field");
        let theirs = pages.parse::<u64>().expect("pages") * rustix::param::page_size() as u64;
        assert!(
            ours.abs_diff(theirs) <= 2 << 20,
            "{ours} bytes, in pages {theirs}"
        );
    }

    #[test]
    fn shares_are_of_the_time_since_the_sample_before() {
        let start = ClockReading::take();
        let mut monitor = GeneratorMonitor::open().expect("procfs is mounted");
        burn();
        let first = monitor.sample(Micros::from_secs(1));
        let second = monitor.sample(Micros::from_secs(2));
        assert!(first.passed_us >= 60_000, "{first:?}");
        let passed_ns = nanoseconds_between(start, ClockReading::take());
        assert!(
            (first.passed_us + second.passed_us) * 1_000 <= passed_ns,
            "{second:?}"
        );
        assert!(second.cpu_us >= first.cpu_us);
    }

    #[test]
    fn a_thread_that_ended_is_watched_no_longer() {
        let mut monitor = GeneratorMonitor::open().expect("procfs is mounted");
        let (ready, told) = std::sync::mpsc::channel();
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            ready.send(current_thread()).expect("the test waits");
            stopped.recv().ok();
        });
        let id = told.recv().expect("the thread tells its id");
        monitor
            .watch(ThreadRole::Consumer, 0, id)
            .expect("the thread waits");
        assert_eq!(monitor.sample(Micros::ZERO).threads.len(), 1);
        drop(stop);
        thread.join().expect("the thread ends");
        // The kernel takes the thread out of procfs a little after it has told that it ended.
        while std::path::Path::new(&format!("/proc/self/task/{}", id.0)).exists() {
            std::thread::yield_now();
        }
        assert!(monitor.sample(Micros::ZERO).threads.is_empty());
        assert!(monitor.watch(ThreadRole::Consumer, 0, id).is_err());
    }

    #[test]
    fn memory_of_the_process_is_known() {
        let mut monitor = GeneratorMonitor::open().expect("procfs is mounted");
        let process = monitor.sample(Micros::ZERO).process;
        assert!(process.anon_bytes > 0 && process.anon_bytes <= process.rss_bytes);
        assert!(process.rss_bytes <= process.peak_rss_bytes);
    }

    #[test]
    fn a_share_of_no_time_is_not_known() {
        let times = CpuTimes {
            total: 100,
            steal: 10,
        };
        assert_eq!(steal(times, times), None);
        let later = CpuTimes {
            total: 200,
            steal: 13,
        };
        assert_eq!(steal(later, times), Some(0.03));
    }
}
