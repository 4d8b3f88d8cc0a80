//! The brokers of a consumer, from the statistics of the library.

use std::collections::BTreeMap;
use std::fmt;

use muster_model::{Micros, figure};

use super::sample::{Connections, SILENT, Sample};

/// Lag and connections, sample by sample.
#[derive(Debug, Default)]
pub(crate) struct BrokerWatch {
    /// Connections that had ended by the last sample, by broker.
    ended: BTreeMap<i32, i64>,
    /// End of the last pause, in which the brokers had nothing to answer.
    resumed: Option<Micros>,
    lag: Lag,
}

/// Lag of a consumer.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Lag {
    /// Number of samples in which it was known.
    samples: u64,
    most: u64,
    /// Instant of the most.
    at: Micros,
    last: u64,
}

impl BrokerWatch {
    /// Notes that the consumer stops fetching, or resumes.
    pub(crate) fn pause(&mut self, now: Micros, is_paused: bool) {
        self.resumed = (!is_paused).then_some(now);
    }

    /// Returns true if a pause ended so recently that the library still counts its silence.
    pub(crate) fn has_just_resumed(&self, now: Micros) -> bool {
        self.resumed.is_some_and(|at| now - at < SILENT)
    }

    /// Adds a sample. Returns how many connections to leaders have ended since the sample before.
    pub(crate) fn add(&mut self, now: Micros, sample: &Sample) -> i64 {
        if let Some(behind) = sample.lag {
            self.lag.add(now, behind);
        }
        let ended = |of: &Connections| {
            let before = self.ended.insert(of.broker, of.ended).unwrap_or(0);
            (of.ended - before) * i64::from(of.is_leader)
        };
        sample.connections.iter().map(ended).sum()
    }

    /// Returns the lag; none if it was never known, which is not the same as no lag.
    pub(crate) fn lag(&self) -> Option<Lag> {
        Some(self.lag).filter(|lag| lag.samples > 0)
    }
}

impl Lag {
    fn add(&mut self, now: Micros, behind: u64) {
        if behind > self.most {
            (self.most, self.at) = (behind, now);
        }
        self.samples += 1;
        self.last = behind;
    }
}

impl fmt::Display for Lag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [samples, most, last] = [self.samples, self.most, self.last].map(figure::count);
        let at = self.at.as_secs_f64();
        if self.most == 0 {
            return write!(
                f,
                "never behind the ends of its partitions, sampled {samples}x"
            );
        }
        write!(
            f,
            "at most {most} messages behind the ends of its partitions, at {at:.0} s; {last} when last \
             sampled, {samples}x in all"
        )
    }
}
