//! The facts about this host that a result must carry to be compared with another.

use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use muster_net::limits;
use rustix::system::uname;
use serde::{Deserialize, Serialize};

use crate::procfs::{
    CgroupPath, cgroup_v1_quota, cgroup_v2_quota, cgroups, cpu_info, memory_limit,
    memory_total_bytes, open_files_limit, os_name,
};

pub(crate) const CGROUP_ROOT: &str = "/sys/fs/cgroup";

/// The machine on which the generator ran; unknown facts are none.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Environment {
    /// The host's name.
    pub host: String,
    /// The kernel's id of this boot: processes with the same id share their clocks, in any
    /// container.
    pub boot: Option<String>,
    /// The kernel's name and release.
    pub kernel: String,
    /// The distribution.
    pub os: Option<String>,
    /// The machine's architecture, as the kernel names it.
    pub architecture: String,
    /// The name of the first processor.
    pub cpu_model: String,
    /// Logical processors of the host.
    pub cpus: u32,
    /// Processors this process may use: its affinity and its control group's quota counted in.
    pub cpus_usable: u32,
    /// Memory of the host in bytes.
    pub memory_bytes: Option<u64>,
    /// The kernel's source of time, such as `tsc`.
    pub clock_source: Option<String>,
    /// Bounds on what the process may open.
    pub limits: Limits,
    /// Bounds of the control group it runs in.
    pub container: Container,
}

/// Bounds that a run meets before it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Limits {
    /// Open files allowed now; none means unlimited.
    pub open_files: Option<u64>,
    /// Open files allowed at most after raising; none means unlimited.
    pub open_files_max: Option<u64>,
    /// First and last ephemeral port.
    pub ephemeral_ports: Option<(u16, u16)>,
}

/// Limits of a control group; none means no limit.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Container {
    /// True if marks of a container were found.
    pub detected: bool,
    /// CPU quota in cores.
    pub cpu_quota: Option<f64>,
    /// Memory bound in bytes.
    pub memory_bytes: Option<u64>,
}

impl Environment {
    /// A name for the clocks that its instants are read from: of the host since it booted.
    pub fn clock(&self) -> String {
        let boot = self.boot.as_deref().unwrap_or("boot unknown");
        format!("{} ({boot})", self.host)
    }

    /// Reads the facts of this host and process; never fails, since a missing fact is none.
    pub fn read() -> Self {
        let system = uname();
        let cpus = cpu_info(&text("/proc/cpuinfo").unwrap_or_default());
        Self {
            host: system.nodename().to_string_lossy().into_owned(),
            boot: trimmed("/proc/sys/kernel/random/boot_id"),
            kernel: format!(
                "{} {}",
                system.sysname().to_string_lossy(),
                system.release().to_string_lossy()
            ),
            os: read("/etc/os-release", os_name),
            architecture: system.machine().to_string_lossy().into_owned(),
            cpu_model: cpus.model,
            cpus: cpus.count,
            cpus_usable: std::thread::available_parallelism().map_or(cpus.count, |cores| {
                u32::try_from(cores.get()).unwrap_or(u32::MAX)
            }),
            memory_bytes: read("/proc/meminfo", memory_total_bytes),
            clock_source: trimmed(
                "/sys/devices/system/clocksource/clocksource0/current_clocksource",
            ),
            limits: Limits::read(),
            container: Container::read(),
        }
    }
}

impl Limits {
    fn read() -> Self {
        let files = read("/proc/self/limits", open_files_limit);
        Self {
            open_files: files.and_then(|files| files.soft),
            open_files_max: files.and_then(|files| files.hard),
            ephemeral_ports: limits::port_range().map(RangeInclusive::into_inner),
        }
    }
}

impl Container {
    fn read() -> Self {
        let marks = ["/.dockerenv", "/run/.containerenv"];
        let groups = cgroups(&text("/proc/self/cgroup").unwrap_or_default());
        Self {
            detected: marks.iter().any(|mark| Path::new(mark).exists())
                || std::env::var_os("KUBERNETES_SERVICE_HOST").is_some(),
            cpu_quota: cpu_quota(&groups),
            memory_bytes: memory_bound(&groups),
        }
    }
}

pub(crate) fn cpu_quota(groups: &CgroupPath) -> Option<f64> {
    let unified = within("", groups.unified.as_deref());
    let unified = unified.filter_map(|folder| read(folder.join("cpu.max"), cgroup_v2_quota));
    let split = within("cpu", groups.cpu.as_deref()).filter_map(|folder| {
        let quota = text(folder.join("cpu.cfs_quota_us"))?;
        cgroup_v1_quota(&quota, &text(folder.join("cpu.cfs_period_us"))?)
    });
    unified.chain(split).reduce(f64::min)
}

pub(crate) fn memory_bound(groups: &CgroupPath) -> Option<u64> {
    let unified = within("", groups.unified.as_deref());
    let unified = unified.map(|folder| folder.join("memory.max"));
    let split = within("memory", groups.memory.as_deref());
    let split = split.map(|folder| folder.join("memory.limit_in_bytes"));
    let files = unified.chain(split);
    files.filter_map(|file| read(file, memory_limit)).min()
}

/// The group's folder and all above it: a bound on any of them holds. Inside a container the
/// path may be the host's, and only its root is mounted.
fn within(controller: &str, group: Option<&str>) -> impl Iterator<Item = PathBuf> {
    let root = Path::new(CGROUP_ROOT).join(controller);
    let leaf = group.map(|group| root.join(group.trim_start_matches('/')));
    let folders = std::iter::successors(leaf, |folder| folder.parent().map(Path::to_owned));
    folders.take_while(move |folder| folder.starts_with(&root))
}

/// A file's text as `parse` reads it.
pub(crate) fn read<T>(path: impl AsRef<Path>, parse: impl Fn(&str) -> Option<T>) -> Option<T> {
    parse(&text(path)?)
}

/// A file's text without its last line feed.
fn trimmed(path: &str) -> Option<String> {
    read(path, |text| Some(text.trim().to_owned()))
}

pub(crate) fn text(path: impl AsRef<Path>) -> Option<String> {
    fs::read_to_string(path).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_host_is_known() {
        let environment = Environment::read();
        assert!(environment.kernel.starts_with("Linux "), "{environment:?}");
        assert!(environment.cpus_usable >= 1);
        assert!(environment.memory_bytes.is_some_and(|bytes| bytes > 0));
        assert!(
            environment
                .limits
                .ephemeral_ports
                .is_some_and(|(first, last)| first < last)
        );
    }

    #[test]
    fn an_environment_survives_json() {
        let environment = Environment::read();
        let json = serde_json::to_string(&environment).expect("it has only plain values");
        assert_eq!(
            serde_json::from_str::<Environment>(&json).ok(),
            Some(environment)
        );
    }

    #[test]
    fn a_bound_on_any_group_above_holds() {
        let folders = within("cpu", Some("/batch/job-7"));
        let expected: Vec<PathBuf> = [
            "/sys/fs/cgroup/cpu/batch/job-7",
            "/sys/fs/cgroup/cpu/batch",
            "/sys/fs/cgroup/cpu",
        ]
        .map(PathBuf::from)
        .into();
        let folders: Vec<PathBuf> = folders
            .map(|folder| folder.components().collect())
            .collect();
        assert_eq!(folders, expected);
    }
}
