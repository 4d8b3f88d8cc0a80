//! Usage of the generator, its host and the target's processes, read once a second, and the
//! target's own counters, read when the caller has time.
//!
//! Layer 6, outside the straight line: the figures here never touch a message. They show whether
//! the generator can be trusted (`judge` decides, this crate only reads) and the cost of the load
//! for the target. It must never know a protocol, a scenario or a verdict.
//!
//! [`UsageSource`] is a part of the target that is sampled over time: a process, a cgroup, or a page.
//!
//! Usage comes from procfs, sysfs and the clocks of the kernel; the target's counters come from a
//! page over HTTP ([`CounterPage`]). The parsers of [`procfs`] and [`prometheus`] are pure
//! functions of a text, so that they are tested on captured ones; the monitors keep their files
//! open and read them again in place.
//!
//! ```
//! use muster_judge::ThreadRole;
//! use muster_model::Micros;
//! use muster_monitor::{GeneratorMonitor, current_thread};
//!
//! let mut monitor = GeneratorMonitor::open()?;
//! monitor.watch(ThreadRole::Shard, 0, current_thread())?;
//! let sample = monitor.sample(Micros::from_secs(1));
//! assert_eq!(sample.threads[0].role, ThreadRole::Shard);
//! assert!(sample.process.peak_rss_bytes > 0);
//! # Ok::<(), muster_monitor::MonitorError>(())
//! ```

mod clock;
mod counters;
mod environment;
mod generator;
mod health;
mod page;
pub mod procfs;
pub mod prometheus;
mod reread;
mod target;
mod usage;

pub use clock::{ClockChange, ClockReading};
pub use counters::{CounterCounts, CounterReader};
pub use environment::{Container, Environment, Limits};
pub use generator::{
    GeneratorMonitor, GeneratorSample, ThreadId, ThreadShare, current_thread, thread_cpu_us,
};
pub use health::HealthLog;
pub use page::{CounterPage, PageError};
pub use reread::MonitorError;
pub use target::{TargetMonitor, TargetSample};
pub use usage::{
    CgroupUsage, CounterUsage, Growth, PageUsage, ProcessUsage, UsageError, UsageSource,
};
