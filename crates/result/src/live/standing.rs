//! The state of a run at one instant.

use muster_conduct::Phase;
use muster_model::{Micros, Resource};

/// The state of a run, updated up to four times a second.
///
/// Rates and percentiles are of the last full second; counts are since T0. What is not known is
/// `None` and shows as `-`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Live {
    /// The scenario's name.
    pub name: String,
    /// The destination of the load, such as `mqtt://127.0.0.1:1883`.
    pub target: String,
    /// Its phase and times.
    pub clock: LiveClock,
    /// Its links.
    pub links: LiveLinks,
    /// Rates of the last full second.
    pub rates: LiveRates,
    /// Response of the last full second.
    pub response: Quantiles,
    /// End-to-end of the last full second.
    pub end_to_end: Quantiles,
    /// Messages due and not yet final, in seconds of offered traffic.
    pub backlog_s: Option<f64>,
    /// Messages not arrived, in seconds of offered traffic.
    pub delivery_backlog_s: Option<f64>,
    /// Its messages.
    pub messages: LiveMessages,
    /// Errors by code or cause, most frequent first; the first few are shown.
    pub errors: Vec<(String, u64)>,
    /// The SLOs that do not hold so far, in words, without those that only the end decides; `None` before
    /// anything was measured.
    pub slos: Option<Vec<String>>,
    /// The generator's own health.
    pub health: Health,
    /// Resources of the target that were sampled within the last minute.
    pub usage: Vec<LiveUse>,
}

/// The last sample of a resource of the target.
#[derive(Debug, Clone, PartialEq)]
pub struct LiveUse {
    /// The resource.
    pub resource: Resource,
    /// Its value.
    pub value: f64,
}

/// Phase and times of a run, since T0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LiveClock {
    /// The phase that the run is in.
    pub phase: Phase,
    /// Since T0.
    pub elapsed: Micros,
    /// The begin of the phase, since T0.
    pub phase_from: Micros,
    /// The latest end of the phase, since T0.
    pub phase_until: Option<Micros>,
    /// The latest end of the run, since T0.
    pub run_until: Option<Micros>,
}

/// Links of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LiveLinks {
    /// Links that the plan wants.
    pub wanted: u64,
    /// Links that are up.
    pub up: u64,
    /// Tries to connect that ended without a link, by cause in words, most frequent first.
    pub failures: Vec<(String, u64)>,
}

/// Counts of messages since T0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LiveMessages {
    /// Messages sent.
    pub sent: u64,
    /// Messages accepted.
    pub accepted: u64,
    /// First copies arrived.
    pub arrived: Option<u64>,
    /// Messages accepted, or without an answer by design, less those arrived: lost ones and those still on
    /// their way, which look alike before settling ends.
    pub not_arrived: Option<u64>,
    /// Messages known to be lost; `None` as long as that is not known.
    pub lost: Option<u64>,
    /// Messages never sent.
    pub shed: u64,
}

/// Rates of the last full second, per second (docs/semantics.md#phases-and-rates); `None` before the first one.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct LiveRates {
    /// Due by the declared rate.
    pub offered: Option<f64>,
    /// Sent.
    pub issued: Option<f64>,
    /// Ended with an answer.
    pub completed: Option<f64>,
    /// First copies at the first backend.
    pub arrived: Option<f64>,
}

/// Two percentiles of one latency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Quantiles {
    /// The median.
    pub p50: Option<Micros>,
    /// 99 %.
    pub p99: Option<Micros>,
    /// Seconds of due that the median was taken over: more than one where one has too few messages.
    pub p50_over_s: u32,
    /// Seconds of due that the other one was taken over.
    pub p99_over_s: u32,
    /// True if the median is a lower bound, since messages without an answer are among the values.
    pub is_p50_at_least: bool,
    /// True if the other one is a lower bound.
    pub is_p99_at_least: bool,
    /// Messages in the seconds that the other one was taken over.
    pub p99_of: u64,
    /// Messages that it needs.
    pub p99_needs: u64,
}

/// The generator's own health over the last full second; shares are 0 to 1.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Health {
    /// CPU share of the busiest device shard.
    pub shard_cpu: Option<f64>,
    /// CPU share of the busiest consumer thread.
    pub consumer_cpu: Option<f64>,
    /// Share of the time that the worst thread waited for a CPU.
    pub cpu_wait: Option<f64>,
    /// Lateness, 99 %.
    pub lateness_p99: Option<Micros>,
    /// Resident set in bytes.
    pub rss_bytes: Option<u64>,
    /// The validity rules that do not hold on the measured phase so far, in words: what makes the
    /// run invalid as things stand.
    pub faults: Vec<String>,
    /// Rules that the last second alone breaks, and the measured phase so far keeps.
    pub warnings: Vec<String>,
}

impl LiveClock {
    /// The phase's name (docs/semantics.md#phases-and-rates).
    pub const fn phase_name(&self) -> &'static str {
        match self.phase {
            Phase::Connect => "connect",
            Phase::WarmUp => "warm-up",
            Phase::Measure => "measure",
            Phase::Settle => "settle",
            Phase::Finish => "finish",
        }
    }

    /// The longest time to the end of the phase.
    pub fn phase_left(&self) -> Option<Micros> {
        self.phase_until.map(|until| until - self.elapsed)
    }

    /// The longest time to the end of the run.
    pub fn run_left(&self) -> Option<Micros> {
        self.run_until.map(|until| until - self.elapsed)
    }
}
