//! The time that threads have waited for a CPU, read seldom and without allocation.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

use muster_model::Micros;

/// The least time between two readings. A reading costs 1 to 2 us a thread.
const EVERY: Micros = Micros(200);
/// Bytes of the longest schedstat: three numbers of 20 digits.
const TEXT_MAX: usize = 64;
/// The least time between two looks for threads that a library has started.
const LOOK_EVERY: Micros = Micros::from_secs(1);
/// Threads of gateways, and of a library, that are read in addition to the own one.
const OTHERS_MAX: usize = 16;
/// Prefix of the thread names of an embedded gateway's loops: `gateway-<port>`, or a part of it.
const GATEWAY_THREADS: &str = "gateway";

/// The scheduler's account of one thread since it began.
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
    pub fn parse(text: &str) -> Option<Self> {
        let mut fields = text.split_ascii_whitespace();
        let run_ns = fields.next()?.parse().ok()?;
        let wait_ns = fields.next()?.parse().ok()?;
        Some(Self { run_ns, wait_ns })
    }
}

/// Threads whose CPU wait counts as that of the thread that reads, in addition to its own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WaitsOf {
    /// The processes of an embedded gateway.
    pub gateways: Vec<u32>,
    /// The beginning of the names of threads of this process that work for the reading one, as a
    /// library starts them.
    pub library: Option<&'static str>,
}

/// The CPU wait of the thread that reads and of those that count as it: the sum over readings of what
/// it waited since the reading before, the most that any thread of a gateway waited, and the most that
/// any thread of the library waited.
#[derive(Debug, Default)]
pub(crate) struct CpuWait {
    of: WaitsOf,
    own: Option<Watched>,
    gateway: Vec<Watched>,
    library: Vec<Watched>,
    is_open: bool,
    read_at: Micros,
    looked_at: Micros,
    waited_ns: u64,
}

#[derive(Debug)]
struct Watched {
    thread: u32,
    file: File,
    wait_ns: u64,
}

impl CpuWait {
    /// Waits of the thread that reads first, and of these.
    pub(crate) fn new(of: WaitsOf) -> Self {
        Self {
            of,
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
        if self.of.library.is_some() && now - self.looked_at >= LOOK_EVERY {
            self.look(now);
        }
        self.read_at = now;
        let own = self.own.as_mut().map_or(0, Watched::grown);
        self.waited_ns += own + worst(&mut self.gateway) + worst(&mut self.library);
        self.waited()
    }

    /// The whole wait, as it was read last.
    pub(crate) fn waited(&self) -> Micros {
        Micros(self.waited_ns / 1_000)
    }

    /// A kernel without scheduler statistics reports no wait.
    fn open(&mut self) {
        self.own = Watched::open(0, Path::new("/proc/thread-self/schedstat"));
        for process in &self.of.gateways {
            let tasks = format!("/proc/{process}/task");
            watch_named(Path::new(&tasks), GATEWAY_THREADS, &mut self.gateway);
        }
    }

    /// A library starts its threads when it wants them.
    fn look(&mut self, now: Micros) {
        self.looked_at = now;
        if let Some(name) = self.of.library {
            watch_named(Path::new("/proc/self/task"), name, &mut self.library);
        }
    }
}

/// Watches further threads whose names begin so; those that have ended are let go.
fn watch_named(tasks: &Path, name: &str, watched: &mut Vec<Watched>) {
    watched.retain_mut(|thread| thread.is_alive());
    for task in fs::read_dir(tasks).into_iter().flatten().flatten() {
        let id = task.file_name().to_str().and_then(|id| id.parse().ok());
        let Some(id) = id.filter(|id| watched.iter().all(|known| known.thread != *id)) else {
            continue;
        };
        let path = task.path();
        let comm = fs::read_to_string(path.join("comm")).unwrap_or_default();
        if comm.starts_with(name) && watched.len() < OTHERS_MAX {
            watched.extend(Watched::open(id, &path.join("schedstat")));
        }
    }
}

/// The most that any of these waited since the reading before, in nanoseconds.
fn worst(watched: &mut [Watched]) -> u64 {
    watched.iter_mut().map(Watched::grown).max().unwrap_or(0)
}

impl Watched {
    fn open(thread: u32, path: &Path) -> Option<Self> {
        let mut watched = Self {
            thread,
            file: File::open(path).ok()?,
            wait_ns: 0,
        };
        watched.grown();
        Some(watched)
    }

    fn is_alive(&self) -> bool {
        self.wait().is_some()
    }

    fn wait(&self) -> Option<u64> {
        let mut text = [0; TEXT_MAX];
        let read = self.file.read_at(&mut text, 0).ok()?;
        let text = std::str::from_utf8(&text[..read]).ok()?;
        SchedStat::parse(text).map(|stat| stat.wait_ns)
    }

    /// The wait since the reading before, in nanoseconds.
    fn grown(&mut self) -> u64 {
        let Some(now) = self.wait() else { return 0 };
        let grown = now.saturating_sub(self.wait_ns);
        self.wait_ns = now;
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

    /// A thread of that name, until the sender is dropped.
    fn thread(name: &str) -> (std::sync::mpsc::Sender<()>, std::thread::JoinHandle<()>) {
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let (ready, is_ready) = std::sync::mpsc::channel();
        let thread = std::thread::Builder::new().name(name.to_owned());
        let thread = thread.spawn(move || {
            ready.send(()).expect("the test waits");
            ended.recv().expect_err("nothing is sent");
        });
        is_ready.recv().expect("it begins");
        (end, thread.expect("a thread can be had"))
    }

    #[test]
    fn the_threads_of_gateways_and_libraries_are_found_by_their_names() {
        let (end, gateway) = thread("gateway-0");
        let mut wait = CpuWait::new(WaitsOf {
            gateways: vec![std::process::id()],
            library: Some("odd:"),
        });
        wait.read(Micros::from_secs(10));
        assert!(wait.own.is_some());
        assert_eq!((wait.gateway.len(), wait.library.len()), (1, 0));
        let (end_library, library) = thread("odd:main");
        wait.read(Micros::from_secs(10) + LOOK_EVERY);
        wait.read(Micros::from_secs(10) + LOOK_EVERY + LOOK_EVERY);
        assert_eq!(wait.library.len(), 1);
        drop((end, end_library));
        gateway.join().expect("it ends");
        library.join().expect("it ends");
        wait.read(Micros::from_secs(10) + LOOK_EVERY + LOOK_EVERY + LOOK_EVERY);
        assert_eq!(wait.library.len(), 0);
    }
}
