//! Control groups, version 1 and 2: which one a process is in, and what it may use.

use super::DiskBytes;

/// The groups of one process, as paths below the mount point of their controller.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CgroupPath {
    /// The unified group (version 2), where there is one.
    pub unified: Option<String>,
    /// The group of the `cpu` controller of version 1.
    pub cpu: Option<String>,
    /// The group of the `memory` controller of version 1.
    pub memory: Option<String>,
}

/// Parses `/proc/<pid>/cgroup`: one line `id:controllers:path` for each hierarchy.
pub fn cgroups(text: &str) -> CgroupPath {
    let mut found = CgroupPath::default();
    for line in text.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else {
            continue;
        };
        let path = Some(path.to_owned());
        if controllers.is_empty() {
            found.unified = path;
        } else if controllers.split(',').any(|name| name == "cpu") {
            found.cpu = path;
        } else if controllers.split(',').any(|name| name == "memory") {
            found.memory = path;
        }
    }
    found
}

/// Parses `cpu.max` (version 2): how many cores the group may use; none means no bound.
pub fn cgroup_v2_quota(text: &str) -> Option<f64> {
    let mut fields = text.split_ascii_whitespace();
    quota(fields.next()?, fields.next()?)
}

/// Parses `cpu.cfs_quota_us` and `cpu.cfs_period_us` (version 1); a quota of -1 means no bound.
pub fn cgroup_v1_quota(quota_us: &str, period_us: &str) -> Option<f64> {
    quota(quota_us.trim(), period_us.trim())
}

/// Parses `cpu.stat` (version 2): the CPU time of all processes of the group, in microseconds.
pub fn cgroup_cpu_us(text: &str) -> Option<u64> {
    let mut lines = text.lines();
    lines.find_map(|line| line.strip_prefix("usage_usec ")?.trim().parse().ok())
}

/// Parses `io.stat` (version 2): the bytes of all devices together.
pub fn cgroup_disk_bytes(text: &str) -> DiskBytes {
    let sum = |name: &str| {
        let fields = text.split_ascii_whitespace();
        let values = fields.filter_map(|field| field.strip_prefix(name)?.parse::<u64>().ok());
        values.sum()
    };
    DiskBytes {
        read: sum("rbytes="),
        written: sum("wbytes="),
    }
}

/// Parses `memory.max` (version 2) or `memory.limit_in_bytes` (version 1), in bytes.
///
/// Both say "no bound" in their own way: version 2 with the word `max`, version 1 with a number
/// close to the largest signed one, rounded down to a page.
pub fn memory_limit(text: &str) -> Option<u64> {
    const NO_BOUND: u64 = 1 << 62;
    text.trim().parse().ok().filter(|bytes| *bytes < NO_BOUND)
}

fn quota(quota: &str, period: &str) -> Option<f64> {
    let (quota, period): (u64, u64) = (quota.parse().ok()?, period.parse().ok()?);
    (period > 0).then(|| quota as f64 / period as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_of_version_2_has_one_group() {
        let found = cgroups(include_str!("../../captured/cgroup-v2.txt"));
        assert_eq!(
            found.unified.as_deref(),
            Some("/system.slice/docker-4f2a.scope")
        );
        assert_eq!(found.cpu, None);
    }

    #[test]
    fn a_process_of_version_1_has_one_group_a_controller() {
        let found = cgroups(include_str!("../../captured/cgroup-v1.txt"));
        assert_eq!(found.cpu.as_deref(), Some("/"));
        assert_eq!(found.memory.as_deref(), Some("/batch/job-7"));
    }

    #[test]
    fn controllers_that_share_a_hierarchy_are_told_apart_by_name() {
        let found = cgroups("3:cpuset:/a\n4:cpu,cpuacct:/b\n");
        assert_eq!(found.cpu.as_deref(), Some("/b"));
    }

    #[test]
    fn a_quota_is_in_cores() {
        assert_eq!(cgroup_v2_quota("150000 100000\n"), Some(1.5));
        assert_eq!(cgroup_v1_quota("50000\n", "100000\n"), Some(0.5));
    }

    #[test]
    fn what_a_group_used_is_summed() {
        let text = "usage_usec 1234567\nuser_usec 1000000\nsystem_usec 234567\n";
        assert_eq!(cgroup_cpu_us(text), Some(1_234_567));
        assert_eq!(cgroup_cpu_us(""), None);
        let text = "8:0 rbytes=4096 wbytes=100 rios=1 wios=2 dbytes=0 dios=0\n8:16 rbytes=1 wbytes=2 rios=1\n";
        let bytes = DiskBytes {
            read: 4_097,
            written: 102,
        };
        assert_eq!(cgroup_disk_bytes(text), bytes);
    }

    #[test]
    fn no_bound_is_none() {
        assert_eq!(cgroup_v2_quota("max 100000\n"), None);
        assert_eq!(cgroup_v1_quota("-1\n", "100000\n"), None);
        assert_eq!(memory_limit("max\n"), None);
        assert_eq!(memory_limit("9223372036854771712\n"), None);
        assert_eq!(memory_limit("1073741824\n"), Some(1 << 30));
    }
}
