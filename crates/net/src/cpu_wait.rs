//! The time that threads have waited for a CPU, read seldom and without allocation.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

use muster_model::Micros;

/// The least time between two readings. A reading costs 1 to 2 us a thread.
const EVERY: Micros = Micros(200);
/// Bytes of the longest schedstat: three numbers of 20 digits.
const TEXT_MAX: usize = 64;
/// Threads of other processes that are read beside the own one.
const OTHERS_MAX: usize = 16;
/// What the event loops of an embedded gateway are called: `gateway-<port>`, or a part of it.
const GATEWAY_THREADS: &str = "gateway";

/// What the scheduler knows of one thread since it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SchedStat {
    /// Nanoseconds spent on a CPU.
    pub run_ns: u64,
    /// Nanoseconds spent ready to run, waiting for a CPU.
    pub wait_ns: u64,
}

impl SchedStat {
    /// Parses `run_ns wait_ns timeslices` (proc_pid_schedstat(5)); none if the text has another
    /// form.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut fields = text.split_ascii_whitespace();
        let run_ns = fields.next()?.parse().ok()?;
        let wait_ns = fields.next()?.parse().ok()?;
        Some(Self { run_ns, wait_ns })
    }
}

/// The CPU wait of the thread that reads, and of the worst thread of an embedded gateway, which
/// counts as our own: the sum over readings of what the reading thread waited since the reading
/// before and the most that any gateway thread waited.
#[derive(Debug, Default)]
pub(crate) struct CpuWait {
    gateways: Vec<u32>,
    own: Option<Watched>,
    others: Vec<Watched>,
    is_open: bool,
    read_at: Micros,
    waited_ns: u64,
}

#[derive(Debug)]
struct Watched {
    file: File,
    wait_ns: u64,
}

impl CpuWait {
    /// Waits of the thread that reads first, and of the gateways with these process ids.
    pub(crate) fn new(gateways: Vec<u32>) -> Self {
        Self {
            gateways,
            ..Self::default()
        }
    }

    /// Reads the waits if the last reading is long enough ago. Answers with the whole wait so far.
    pub(crate) fn read(&mut self, now: Micros) -> Micros {
        if self.is_open && now - self.read_at < EVERY {
            return self.waited();
        }
        if !std::mem::replace(&mut self.is_open, true) {
            self.open();
        }
        self.read_at = now;
        let own = self.own.as_mut().map_or(0, Watched::grown);
        let worst = self.others.iter_mut().map(Watched::grown).max();
        self.waited_ns += own + worst.unwrap_or(0);
        self.waited()
    }

    /// The whole wait, as it was read last.
    pub(crate) fn waited(&self) -> Micros {
        Micros(self.waited_ns / 1_000)
    }

    /// A kernel without scheduler statistics tells of no wait.
    fn open(&mut self) {
        self.own = Watched::open(Path::new("/proc/thread-self/schedstat"));
        for process in &self.gateways {
            let tasks = fs::read_dir(format!("/proc/{process}/task"));
            for task in tasks.into_iter().flatten().flatten() {
                let path = task.path();
                let name = fs::read_to_string(path.join("comm")).unwrap_or_default();
                if name.starts_with(GATEWAY_THREADS) && self.others.len() < OTHERS_MAX {
                    self.others.extend(Watched::open(&path.join("schedstat")));
                }
            }
        }
    }
}

impl Watched {
    fn open(path: &Path) -> Option<Self> {
        let mut watched = Self {
            file: File::open(path).ok()?,
            wait_ns: 0,
        };
        watched.grown();
        Some(watched)
    }

    /// The wait since the reading before, in nanoseconds.
    fn grown(&mut self) -> u64 {
        let mut text = [0; TEXT_MAX];
        let read = self.file.read_at(&mut text, 0).unwrap_or(0);
        let text = std::str::from_utf8(&text[..read]).ok();
        let Some(now) = text.and_then(SchedStat::parse) else {
            return 0;
        };
        let grown = now.wait_ns.saturating_sub(self.wait_ns);
        self.wait_ns = now.wait_ns;
        grown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_two_fields_are_run_and_wait() {
        let read = SchedStat::parse("12345678901 2345 42\n");
        let wanted = SchedStat {
            run_ns: 12_345_678_901,
            wait_ns: 2_345,
        };
        assert_eq!(read, Some(wanted));
    }

    #[test]
    fn a_torn_text_is_not_a_reading() {
        assert_eq!(SchedStat::parse("12345"), None);
        assert_eq!(SchedStat::parse(""), None);
        assert_eq!(SchedStat::parse("a b c"), None);
    }

    /// The whole wait of this thread, read apart.
    fn wait_us() -> u64 {
        let text = fs::read_to_string("/proc/thread-self/schedstat").expect("procfs is mounted");
        SchedStat::parse(&text).expect("it is a schedstat").wait_ns / 1_000
    }

    #[test]
    fn the_wait_is_what_the_scheduler_says_and_is_read_seldom() {
        let mut wait = CpuWait::default();
        let before = wait_us();
        let at_first = wait.read(Micros(1_000));
        assert!(at_first.get() <= wait_us() - before);
        (0..20).for_each(|_| std::thread::yield_now());
        assert_eq!(wait.read(Micros(1_199)), at_first, "too soon");
        let then = wait.read(Micros(1_200));
        let after = wait_us();
        assert!(
            at_first <= then && then.get() <= after - before,
            "{then} of {after}"
        );
        assert_eq!(wait.waited(), then);
    }

    #[test]
    fn the_threads_of_a_gateway_are_found_by_their_name() {
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let (ready, is_ready) = std::sync::mpsc::channel();
        let thread = std::thread::Builder::new().name("gateway-0".to_owned());
        let thread = thread.spawn(move || {
            ready.send(()).expect("the test waits");
            ended.recv().expect_err("nothing is sent");
        });
        let thread = thread.expect("a thread can be had");
        is_ready.recv().expect("it begins");
        let mut wait = CpuWait::new(vec![std::process::id()]);
        wait.read(Micros(1_000));
        assert!(wait.own.is_some());
        assert_eq!(wait.others.len(), 1);
        drop(end);
        thread.join().expect("it ends");
    }
}
