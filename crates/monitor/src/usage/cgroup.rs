//! Usage of a cgroup of version 2.

use std::fs;
use std::path::{Path, PathBuf};

use muster_model::{Micros, Resource, ResourceUnit};

use super::process::own_network;
use super::{Growth, UsageError, UsageSource, resources};
use crate::environment::{CGROUP_ROOT, read, text};
use crate::procfs::{
    cgroup_cpu_us, cgroup_disk_bytes, cgroup_v2_quota, memory_limit, network_bytes,
};
use crate::reread::Reread;

/// Samples all processes of a cgroup together: CPU, memory, threads and disk; network if its namespace is another one
/// than ours. What its controllers do not count is not known.
#[derive(Debug)]
pub struct CgroupUsage {
    folder: PathBuf,
    resources: Vec<Resource>,
    cpu: Reread,
    memory: Option<Reread>,
    threads: Option<Reread>,
    disk: Option<Reread>,
    network: Option<Reread>,
    rates: [Growth; 5],
}

impl CgroupUsage {
    /// Watches the cgroup of a folder, absolute or below `/sys/fs/cgroup`; `limit` is that of its memory in bytes, if
    /// the scenario states one.
    ///
    /// # Errors
    /// [`UsageError`] if the folder is no cgroup of version 2.
    pub fn open(entry: &str, folder: &str, limit: Option<f64>) -> Result<Self, UsageError> {
        let folder = Path::new(CGROUP_ROOT).join(folder);
        let file = |name: &str| Reread::open(folder.join(name)).ok();
        let mut cpu = file("cpu.stat");
        let Some(cpu) = cpu.take_if(|cpu| cpu.read().and_then(cgroup_cpu_us).is_some()) else {
            return Err(UsageError::NoCgroup {
                folder: folder.display().to_string(),
                root: CGROUP_ROOT,
            });
        };
        let (memory, threads) = (file("memory.current"), file("pids.current"));
        let disk = file("io.stat");
        let members = text(folder.join("cgroup.procs")).unwrap_or_default();
        let first = members
            .lines()
            .next()
            .and_then(|pid| pid.trim().parse().ok());
        let network = first.and_then(own_network);
        let resources = of_group(entry, &folder, limit, network.is_some());
        Ok(Self {
            folder,
            resources,
            cpu,
            memory,
            threads,
            disk,
            network,
            rates: [Growth::default(); 5],
        })
    }
}

impl UsageSource for CgroupUsage {
    fn resources(&self) -> &[Resource] {
        &self.resources
    }

    fn sample(&mut self, now: Micros) -> Result<Vec<Option<f64>>, UsageError> {
        let used_us = self.cpu.read().and_then(cgroup_cpu_us);
        let used_us = used_us.filter(|_| fs::exists(&self.folder).unwrap_or(false));
        let Some(used_us) = used_us else {
            let what = format!("the cgroup {}", self.folder.display());
            return Err(UsageError::Ended(what));
        };
        let disk = self.disk.as_mut().and_then(Reread::read);
        let disk = disk.map(cgroup_disk_bytes);
        let [cpu, reading, writing, receiving, sending] = &mut self.rates;
        let mut values = vec![
            cpu.per_second(now, used_us as f64 / 1e6),
            number(&mut self.memory),
            number(&mut self.threads),
            disk.and_then(|disk| reading.per_second(now, disk.read as f64)),
            disk.and_then(|disk| writing.per_second(now, disk.written as f64)),
        ];
        if let Some(network) = &mut self.network {
            let bytes = network.read().map(network_bytes);
            values.push(bytes.and_then(|of| receiving.per_second(now, of.received as f64)));
            values.push(bytes.and_then(|of| sending.per_second(now, of.sent as f64)));
        }
        Ok(values)
    }
}

/// A file that holds one number.
fn number(file: &mut Option<Reread>) -> Option<f64> {
    file.as_mut()?.read()?.trim().parse().ok()
}

fn of_group(entry: &str, folder: &Path, limit: Option<f64>, has_network: bool) -> Vec<Resource> {
    use ResourceUnit::{Bytes, Cores, Number};
    let bytes = || read(folder.join("memory.max"), memory_limit).map(|bytes| bytes as f64);
    let threads = read(folder.join("pids.max"), memory_limit);
    let own = [
        ("cpu", Cores, read(folder.join("cpu.max"), cgroup_v2_quota)),
        ("memory", Bytes, limit.or_else(bytes)),
        ("threads", Number, threads.map(|count| count as f64)),
    ];
    resources(entry, &own, has_network)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_shows_what_its_controllers_count() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| {
            fs::write(folder.path().join(name), text).expect("it is written");
        };
        write("cpu.stat", "usage_usec 1000000\nuser_usec 1\n");
        write("cpu.max", "150000 100000\n");
        write("memory.current", "5000000\n");
        write("memory.max", "max\n");
        write("io.stat", "8:0 rbytes=1000 wbytes=10 rios=1\n");
        let path = folder.path().display().to_string();
        let mut usage = CgroupUsage::open("broker", &path, None).expect("it is one");
        let limits = usage
            .resources()
            .iter()
            .map(|of| (of.name.as_str(), of.limit));
        let limits: Vec<(&str, Option<f64>)> = limits.collect();
        assert_eq!(limits[..2], [("cpu", Some(1.5)), ("memory", None)]);
        let first = usage.sample(Micros::from_secs(1)).expect("it is there");
        assert_eq!(first, [None, Some(5e6), None, None, None]);
        write("cpu.stat", "usage_usec 3000000\n");
        write("memory.current", "6000000\n");
        write("io.stat", "8:0 rbytes=3000 wbytes=10 rios=1\n");
        let second = usage.sample(Micros::from_secs(3)).expect("it is there");
        assert_eq!(
            second,
            [Some(1.0), Some(6e6), None, Some(1_000.0), Some(0.0)]
        );
        drop(folder);
        let error = usage.sample(Micros::from_secs(4)).expect_err("it is gone");
        assert!(error.is_final(), "{error}");
    }

    #[test]
    fn another_folder_is_refused() {
        let error = CgroupUsage::open("a", "/proc", None).expect_err("it is none");
        assert!(
            error.to_string().starts_with("/proc is no cgroup"),
            "{error}"
        );
    }
}
