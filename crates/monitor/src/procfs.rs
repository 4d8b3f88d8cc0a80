//! The kernel's own texts, parsed: every function here is pure, from a file's text to values.
//!
//! Formats as in `proc(5)` and the kernel's `Documentation/filesystems/proc.rst`.

mod cgroup;
mod host;
mod network;
mod process;
mod route;

pub use cgroup::{
    CgroupPath, cgroup_cpu_us, cgroup_disk_bytes, cgroup_v1_quota, cgroup_v2_quota, cgroups,
    memory_limit,
};
pub use host::{CpuInfo, CpuTimes, cpu_info, cpu_times, memory_total_bytes, os_name};
pub use muster_net::SchedStat;
pub use network::{NetworkBytes, network_bytes};
pub use process::{
    DiskBytes, Memory, OpenFiles, command_name, cpu_ticks, cpus_allowed, disk_bytes, memory,
    open_files_limit, parent, threads,
};
pub use route::{device_towards, interface_towards};
