//! A measured process: started with all descriptors, watched through procfs, never left behind.

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Error, Result, anyhow, bail};
use serde_json::Value;

/// Interval between two checks of a condition.
const PAUSE: Duration = Duration::from_millis(2);
/// Longest time until a program's first line.
const BEGINNING: Duration = Duration::from_secs(60);

/// A running program; dropping it ends it.
#[derive(Debug)]
pub(super) struct Process {
    name: String,
    child: Child,
    output: PathBuf,
}

/// Lines of a program's output that an error repeats.
const LAST_WORDS: usize = 12;
/// Unit of `/proc/PID/stat`: `USER_HZ` is 100 for every program (proc(5), time(7)).
const TICKS_PER_SECOND: f64 = 100.0;
/// Fields of `/proc/PID/stat` before `utime`, counted after the name in brackets.
const BEFORE_UTIME: usize = 11;

/// CPU time used so far, in seconds, by threads of these kinds.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Cpu {
    /// Muster's shards; all threads of a program that names none so.
    pub(super) devices: f64,
    /// Muster's consumers.
    pub(super) consumers: f64,
    /// The whole process, threads that have ended included; to 10 ms.
    pub(super) process: f64,
}

impl Process {
    /// Starts `program`; what it prints goes to the file `output`. It may open as many descriptors
    /// as the hard limit allows: not every program raises its own.
    pub(super) fn start(program: &Path, words: &[OsString], output: PathBuf) -> Result<Self> {
        let file =
            fs::File::create(&output).with_context(|| format!("create {}", output.display()))?;
        let child = Command::new("sh")
            .args(["-c", r#"ulimit -n "$(ulimit -Hn)" && exec "$@""#, "sh"])
            .arg(program)
            .args(words)
            .stdin(Stdio::piped())
            .stdout(file.try_clone()?)
            .stderr(file)
            .spawn()
            .with_context(|| format!("start {}", program.display()))?;
        let name = program.file_name().unwrap_or_default();
        Ok(Self {
            name: name.to_string_lossy().into_owned(),
            child,
            output,
        })
    }

    /// Writes a line to its standard input.
    pub(super) fn write_line(&mut self, line: &str) -> Result<()> {
        let input = self.child.stdin.as_mut().context("its input is open")?;
        writeln!(input, "{line}").with_context(|| format!("write to {}", self.name))
    }

    /// An error with the end of what it has printed so far.
    fn failure(&self, what: &str) -> Error {
        let printed = self.printed().unwrap_or_default();
        let lines: Vec<&str> = printed.lines().rev().take(LAST_WORDS).collect();
        let last = lines.into_iter().rev().collect::<Vec<_>>().join("\n");
        anyhow!("{} {what}: {last}", self.name)
    }

    /// Returns its output so far.
    pub(super) fn printed(&self) -> Result<String> {
        let bytes =
            fs::read(&self.output).with_context(|| format!("read {}", self.output.display()))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Waits until `ready` gives something, at most so long, as long as the process runs.
    pub(super) fn until<T>(
        &mut self,
        limit: Duration,
        mut ready: impl FnMut(&mut Self) -> Result<Option<T>>,
    ) -> Result<T> {
        let started = now();
        loop {
            if let Some(value) = ready(self)? {
                return Ok(value);
            }
            if let Some(status) = self.child.try_wait()? {
                return Err(self.failure(&format!("ended too soon, {status}")));
            }
            if started.elapsed() > limit {
                return Err(self.failure(&format!("took longer than {limit:?}")));
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// The first line that it prints, such as the address it is bound to.
    pub(super) fn first_line(&mut self) -> Result<String> {
        self.until(BEGINNING, |process| {
            Ok(process
                .printed()?
                .split_once('\n')
                .map(|(line, _)| line.to_owned()))
        })
    }

    /// Waits for its end, at most so long.
    pub(super) fn finish(mut self, limit: Duration) -> Result<(ExitStatus, String)> {
        let started = now();
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok((status, self.printed()?));
            }
            if started.elapsed() > limit {
                return Err(self.failure(&format!("did not end in {limit:?}")));
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// CPU time so far. A thread's own account (`/proc/PID/task/TID/schedstat`, in nanoseconds)
    /// is brought up to date whenever the scheduler looks, which is within a tick.
    pub(super) fn cpu(&self) -> Result<Cpu> {
        let threads = self.threads()?;
        let sum = |kind: &str| -> f64 {
            let of_kind = threads.iter().filter(|(name, _)| name.starts_with(kind));
            of_kind
                .map(|(_, seconds)| seconds)
                .fold(0.0, |sum, one| sum + one)
        };
        let (shards, consumers) = (sum("shard-"), sum("consumer-"));
        let devices = if shards > 0.0 { shards } else { sum("") };
        Ok(Cpu {
            devices,
            consumers,
            process: self.whole()?,
        })
    }

    fn whole(&self) -> Result<f64> {
        let path = format!("/proc/{}/stat", self.child.id());
        let text = fs::read_to_string(&path).with_context(|| format!("read {path}"))?;
        let (_, fields) = text.rsplit_once(") ").context("the name is in brackets")?;
        let times = fields
            .split(' ')
            .skip(BEFORE_UTIME)
            .take(2)
            .map(str::parse::<u64>);
        let ticks: u64 = times
            .sum::<Result<u64, _>>()
            .context("read utime and stime")?;
        Ok(ticks as f64 / TICKS_PER_SECOND)
    }

    fn threads(&self) -> Result<Vec<(String, f64)>> {
        let folder = format!("/proc/{}/task", self.child.id());
        let mut threads = Vec::new();
        for task in fs::read_dir(&folder).with_context(|| format!("list {folder}"))? {
            let task = task?.path();
            // A thread may end between the listing and the reading.
            let (Ok(name), Ok(account)) = (
                fs::read_to_string(task.join("comm")),
                fs::read_to_string(task.join("schedstat")),
            ) else {
                continue;
            };
            let on_cpu = account.split(' ').next().unwrap_or_default();
            let on_cpu: u64 = on_cpu.parse().context("read schedstat")?;
            threads.push((name, on_cpu as f64 / 1e9));
        }
        Ok(threads)
    }

    /// A size of `/proc/PID/status`, such as `RssAnon`, in bytes.
    pub(super) fn memory(&self, field: &str) -> Result<u64> {
        let path = format!("/proc/{}/status", self.child.id());
        let file = fs::File::open(&path).with_context(|| format!("open {path}"))?;
        for line in BufReader::new(file).lines() {
            let line = line?;
            let Some(value) = line.strip_prefix(field) else {
                continue;
            };
            let kib = value.trim_matches([':', '\t', ' ']).trim_end_matches(" kB");
            let kib: u64 = kib.parse().with_context(|| format!("read {line}"))?;
            return Ok(kib * 1024);
        }
        bail!("{path} has no {field}")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself, which is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Cpu {
    /// Returns the usage since an earlier reading.
    pub(super) fn since(self, earlier: Self) -> Self {
        Self {
            devices: self.devices - earlier.devices,
            consumers: self.consumers - earlier.consumers,
            process: self.process - earlier.process,
        }
    }
}

/// Divides a count in a line of JSON by the `cpu_s` seconds of CPU that it took.
pub(super) fn per_cpu_second(line: &str, name: &str) -> Result<f64> {
    let [count, cpu_s] = figures(line, [name, "cpu_s"])?;
    Ok(count / cpu_s)
}

/// Numbers of a line of JSON.
pub(super) fn figures<const N: usize>(line: &str, names: [&str; N]) -> Result<[f64; N]> {
    let account: Value = serde_json::from_str(line).with_context(|| format!("read {line}"))?;
    let mut figures = [0.0; N];
    for (figure, name) in figures.iter_mut().zip(names) {
        let value = account[name].as_f64();
        *figure = value.with_context(|| format!("{name} in {line}"))?;
    }
    Ok(figures)
}

/// The one clock of the benchmarks.
#[expect(
    clippy::disallowed_methods,
    reason = "a benchmark may share no code with what it measures, not even its clock"
)]
pub(super) fn now() -> Instant {
    Instant::now()
}
