//! Usage of a process with its child processes.

use std::collections::BTreeSet;
use std::fs;

use muster_model::{Micros, Resource, ResourceUnit};
use rustix::param::clock_ticks_per_second;

use super::find::{find, process_ids};
use super::{Growth, UsageError, UsageSource, resources};
use crate::environment::{cpu_quota, memory_bound, read, text};
use crate::procfs::{
    DiskBytes, cgroups, command_name, cpu_ticks, cpus_allowed, disk_bytes, memory,
    memory_total_bytes, network_bytes, open_files_limit, parent, threads,
};
use crate::reread::{MonitorError, Reread};

/// Samples processes and all that descend from them: CPU, memory, threads, descriptors and disk; network if its namespace
/// is another one than ours.
#[derive(Debug)]
pub struct ProcessUsage {
    resources: Vec<Resource>,
    /// Processes that must live, the first ones of `members`.
    roots: usize,
    members: Vec<Member>,
    /// Other processes: whoever is no child when it begins never becomes one.
    strangers: BTreeSet<u32>,
    network: Option<Reread>,
    used: Used,
    rates: [Growth; 5],
}

/// Sums over all members since the beginning, also over those that ended.
#[derive(Debug, Clone, Copy, Default)]
struct Used {
    ticks: u64,
    disk: DiskBytes,
}

/// One process; its open files stay bound to it.
#[derive(Debug)]
struct Member {
    pid: u32,
    name: String,
    stat: Reread,
    status: Reread,
    io: Option<Reread>,
    last: Used,
}

/// State of one process.
#[derive(Debug, Clone, Copy, Default)]
struct State {
    anon_bytes: u64,
    /// Of files and shared memory.
    other_bytes: u64,
    threads: u64,
    descriptors: Option<u64>,
}

impl ProcessUsage {
    /// Watches the process of a name or id; `limit` is that of its memory in bytes, if the scenario states one.
    ///
    /// # Errors
    /// [`UsageError`] if there is no such process, or more than one that do not belong together.
    pub fn open(entry: &str, wanted: &str, limit: Option<f64>) -> Result<Self, UsageError> {
        Self::of(entry, &[find(wanted)?], limit)
    }

    /// Watches processes that the caller knows, at least one.
    ///
    /// # Errors
    /// [`UsageError`] if one of them is gone.
    pub fn of(entry: &str, pids: &[u32], limit: Option<f64>) -> Result<Self, UsageError> {
        let members = pids.iter().map(|pid| Member::open(*pid));
        let members: Vec<Member> = members.collect::<Result<_, _>>()?;
        let first = pids.first().copied().unwrap_or_default();
        let network = own_network(first);
        let mut usage = Self {
            resources: of_process(entry, first, limit, network.is_some()),
            roots: members.len(),
            members,
            strangers: BTreeSet::new(),
            network,
            used: Used::default(),
            rates: [Growth::default(); 5],
        };
        usage.add_children();
        // What they have used before is not of the run.
        usage.members.iter_mut().for_each(Member::begin);
        Ok(usage)
    }

    /// Adds child processes that began.
    fn add_children(&mut self) {
        let known: BTreeSet<u32> = self.members.iter().map(|member| member.pid).collect();
        let all: BTreeSet<u32> = process_ids().collect();
        self.strangers.retain(|pid| all.contains(pid));
        let new = all
            .iter()
            .filter(|pid| !known.contains(*pid) && !self.strangers.contains(*pid));
        let mut new: Vec<(u32, u32)> = new
            .filter_map(|pid| Some((*pid, parent_of(*pid)?)))
            .collect();
        loop {
            let members = &self.members;
            let (children, others): (Vec<_>, Vec<_>) = new
                .into_iter()
                .partition(|(_, parent)| members.iter().any(|member| member.pid == *parent));
            if children.is_empty() {
                self.strangers.extend(others.iter().map(|(pid, _)| *pid));
                return;
            }
            // One that has ended since needs no watch.
            let children = children
                .iter()
                .filter_map(|(pid, _)| Member::open(*pid).ok());
            self.members.extend(children);
            new = others;
        }
    }
}

impl UsageSource for ProcessUsage {
    fn resources(&self) -> &[Resource] {
        &self.resources
    }

    fn sample(&mut self, now: Micros) -> Result<Vec<Option<f64>>, UsageError> {
        self.add_children();
        let mut states = Vec::with_capacity(self.members.len());
        let (used, roots) = (&mut self.used, self.roots);
        let mut ended = None;
        let mut place = 0;
        self.members.retain_mut(|member| {
            let state = member.sample(used);
            if state.is_none() && place < roots {
                ended = Some(format!("process {} ({})", member.pid, member.name));
            }
            place += 1;
            states.extend(state);
            state.is_some()
        });
        if let Some(ended) = ended {
            return Err(UsageError::Ended(ended));
        }
        let sum = |of: fn(&State) -> u64| states.iter().map(of).sum::<u64>() as f64;
        let shared = states.iter().map(|state| state.other_bytes).max();
        let descriptors = states.iter().filter_map(|state| state.descriptors).max();
        let has_disk = self.members.first().is_some_and(|first| first.io.is_some());
        let cpu_s = used.ticks as f64 / clock_ticks_per_second() as f64;
        let [cpu, reading, writing, receiving, sending] = &mut self.rates;
        let mut values = vec![
            cpu.per_second(now, cpu_s),
            Some(sum(|state| state.anon_bytes) + shared.unwrap_or(0) as f64),
            Some(sum(|state| state.threads)),
            descriptors.map(|count| count as f64),
            reading
                .per_second(now, used.disk.read as f64)
                .filter(|_| has_disk),
            writing
                .per_second(now, used.disk.written as f64)
                .filter(|_| has_disk),
        ];
        if let Some(network) = &mut self.network {
            let bytes = network.read().map(network_bytes);
            let rate = |growth: &mut Growth, counter: Option<u64>| {
                counter.and_then(|counter| growth.per_second(now, counter as f64))
            };
            values.push(rate(receiving, bytes.map(|bytes| bytes.received)));
            values.push(rate(sending, bytes.map(|bytes| bytes.sent)));
        }
        Ok(values)
    }
}

impl Member {
    fn open(pid: u32) -> Result<Self, MonitorError> {
        let mut stat = Reread::open(format!("/proc/{pid}/stat"))?;
        let name = stat.read().and_then(command_name);
        Ok(Self {
            pid,
            name: name.unwrap_or_default().to_owned(),
            stat,
            status: Reread::open(format!("/proc/{pid}/status"))?,
            io: Reread::open(format!("/proc/{pid}/io")).ok(),
            last: Used::default(),
        })
    }

    fn begin(&mut self) {
        self.last = self.used().unwrap_or_default();
    }

    fn used(&mut self) -> Option<Used> {
        let disk = self.io.as_mut().and_then(Reread::read).and_then(disk_bytes);
        Some(Used {
            ticks: self.stat.read().and_then(cpu_ticks)?,
            disk: disk.unwrap_or(self.last.disk),
        })
    }

    /// Its state, and what it used since the sample before into the sums; none once it is gone.
    fn sample(&mut self, sums: &mut Used) -> Option<State> {
        let now = self.used()?;
        let before = std::mem::replace(&mut self.last, now);
        sums.ticks += now.ticks.saturating_sub(before.ticks);
        sums.disk.read += now.disk.read.saturating_sub(before.disk.read);
        sums.disk.written += now.disk.written.saturating_sub(before.disk.written);
        let status = self.status.read()?;
        let memory = memory(status)?;
        Some(State {
            anon_bytes: memory.anon_bytes,
            other_bytes: memory.rss_bytes.saturating_sub(memory.anon_bytes),
            threads: threads(status).unwrap_or_default(),
            descriptors: descriptors(self.pid),
        })
    }
}

/// Resources of a process, with its limits.
fn of_process(entry: &str, pid: u32, limit: Option<f64>, has_network: bool) -> Vec<Resource> {
    use ResourceUnit::{Bytes, Cores, Number};
    let file = |name: &str| format!("/proc/{pid}/{name}");
    let groups = cgroups(&text(file("cgroup")).unwrap_or_default());
    let allowed = read(file("status"), cpus_allowed).map(f64::from);
    let cores = [allowed, cpu_quota(&groups)].into_iter().flatten();
    let bytes = memory_bound(&groups).or_else(|| read("/proc/meminfo", memory_total_bytes));
    let files = read(file("limits"), open_files_limit).and_then(|files| files.soft);
    let own = [
        ("cpu", Cores, cores.reduce(f64::min)),
        ("memory", Bytes, limit.or(bytes.map(|bytes| bytes as f64))),
        ("threads", Number, None),
        ("descriptors", Number, files.map(|count| count as f64)),
    ];
    resources(entry, &own, has_network)
}

/// The counters of a process's network, unless it is the one of this program, where all else counts too.
pub(super) fn own_network(pid: u32) -> Option<Reread> {
    let namespace = |of: &str| fs::read_link(format!("/proc/{of}/ns/net")).ok();
    let (its, ours) = (namespace(&pid.to_string())?, namespace("self")?);
    (its != ours).then(|| Reread::open(format!("/proc/{pid}/net/dev")).ok())?
}

fn parent_of(pid: u32) -> Option<u32> {
    read(format!("/proc/{pid}/stat"), parent)
}

/// Descriptors that a process has open; none if it belongs to another user.
fn descriptors(pid: u32) -> Option<u64> {
    let folder = format!("/proc/{pid}/fd");
    // Since Linux 6.2 the size of the folder is their number.
    match fs::metadata(&folder).ok()?.len() {
        0 => Some(fs::read_dir(folder).ok()?.count() as u64),
        count => Some(count),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::process::{Child, ChildStdin, Command, Stdio};

    use super::*;
    use crate::thread_cpu_us;

    fn value(usage: &ProcessUsage, values: &[Option<f64>], name: &str) -> Option<f64> {
        let at = usage.resources().iter().position(|of| of.name == name);
        values[at.expect("it is sampled")]
    }

    fn at(usage: &mut ProcessUsage, seconds: u64) -> Vec<Option<f64>> {
        let sample = usage.sample(Micros::from_secs(seconds));
        sample.expect("it is alive")
    }

    /// A shell that has started `cat`, which answers; it ends with its input.
    fn parent_and_child() -> (Child, ChildStdin) {
        let mut command = Command::new("sh");
        let command = command.args(["-c", "cat; exit 0"]);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("sh is everywhere");
        let mut input = child.stdin.take().expect("it is piped");
        input.write_all(b"x").expect("it reads");
        let output = child.stdout.as_mut().expect("it is piped");
        output.read_exact(&mut [0]).expect("it writes");
        (child, input)
    }

    #[test]
    fn a_process_shows_what_it_uses() {
        let mut usage = ProcessUsage::of("own", &[std::process::id()], None).expect("it is alive");
        let first = at(&mut usage, 1);
        assert_eq!(
            value(&usage, &first, "cpu"),
            None,
            "there is no sample before"
        );
        let begun = thread_cpu_us();
        while thread_cpu_us() < begun + 300_000 {}
        let second = at(&mut usage, 2);
        let cpu = value(&usage, &second, "cpu").expect("it is known");
        assert!(cpu >= 0.28, "300 ms less two ticks: {cpu}");
        let status = fs::read_to_string("/proc/self/status").expect("procfs is mounted");
        let rss = memory(&status).expect("it has memory").rss_bytes as f64;
        let sampled = value(&usage, &second, "memory").expect("it is known");
        assert!(
            sampled >= rss / 2.0,
            "{sampled} of {rss}, with its children"
        );
        assert!(value(&usage, &second, "threads").is_some_and(|count| count >= 1.0));
        assert!(value(&usage, &second, "descriptors").is_some_and(|count| count >= 3.0));
        let limit = |name: &str| usage.resources().iter().find(|of| of.name == name)?.limit;
        assert!(limit("cpu").is_some_and(|cores| cores > 0.0));
        assert!(limit("memory").is_some_and(|bytes| bytes > 0.0));
    }

    #[test]
    fn a_sample_each_second_costs_at_most_a_hundredth_of_a_core() {
        let mut usage = ProcessUsage::of("own", &[std::process::id()], None).expect("it is alive");
        let begun = thread_cpu_us();
        for second in 1..=50 {
            at(&mut usage, second);
        }
        let each = (thread_cpu_us() - begun) / 50;
        assert!(each <= 10_000, "{each} us");
    }

    #[test]
    fn children_count_and_the_end_of_the_process_is_named() {
        let (mut parent, input) = parent_and_child();
        let mut usage = ProcessUsage::of("shell", &[parent.id()], Some(1e6)).expect("it is alive");
        let values = at(&mut usage, 1);
        let threads = value(&usage, &values, "threads").expect("it is known");
        assert_eq!(threads, 2.0, "the shell and its `cat`");
        let memory = &usage.resources()[1];
        assert_eq!((memory.name.as_str(), memory.limit), ("memory", Some(1e6)));
        drop(input);
        parent.wait().expect("it ends");
        let error = usage.sample(Micros::from_secs(2)).expect_err("it is gone");
        assert!(error.is_final());
        let words = format!("process {} (sh) ended", parent.id());
        assert_eq!(error.to_string(), words);
    }
}
