//! A stretch of the run, over all streams: what the charts are drawn from.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Percentiles;

/// Windows in a result at most, so that its size does not grow with the run's length.
pub const MAX_WINDOWS: usize = 600;

/// Counters and percentiles of one stretch of the run.
///
/// Counters belong to the second of the event, latencies to the second of due.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Window {
    /// Begin in seconds since T0.
    pub t_s: f64,
    /// Length in seconds: a multiple of 1.
    pub for_s: f64,
    /// The phase that the window lies in.
    pub phase: String,
    /// Due by the declared rate; null for a run that was killed.
    pub offered: Option<u64>,
    /// Sent.
    pub issued: u64,
    /// Ended with an answer.
    pub completed: u64,
    /// Ended with acceptance.
    pub accepted: u64,
    /// First copies at the first backend; null without one.
    pub arrived: Option<u64>,
    /// Never sent.
    pub shed: u64,
    /// Never sent, by cause and by second of due; `shed` counts by second of giving up.
    pub shed_by_cause: BTreeMap<String, u64>,
    /// Refused.
    pub rejected: u64,
    /// No answer in time.
    pub timed_out: u64,
    /// The link ended before the answer.
    pub broken: u64,
    /// Sent, and no answer exists by design.
    pub unacknowledged: u64,
    /// Links up at the end of the window.
    pub links_up: Option<u64>,
    /// Links that ended within the window.
    pub disconnects: u64,
    /// Percentiles of the response of all due, the unanswered at their lower bound.
    pub response: Percentiles,
    /// Percentiles of end-to-end; all null without a backend.
    pub end_to_end: Percentiles,
    /// Percentiles of the generator's own lateness.
    pub lateness: Percentiles,
    /// Seconds over which each percentile of the response was taken.
    pub response_over: PercentileSpans,
    /// Seconds of the percentiles of end-to-end.
    pub end_to_end_over: PercentileSpans,
    /// Seconds of the percentiles of lateness.
    pub lateness_over: PercentileSpans,
    /// Response times of all due by bucket: `[lower edge in us, count]`, ten edges a decade.
    pub response_heat: Heat,
    /// End-to-end times by bucket.
    pub end_to_end_heat: Heat,
    /// The generator's own health; null without a sample.
    pub generator: Option<WindowHealth>,
}

/// Seconds over which percentiles were taken. If one window has too few values, several windows of the
/// phase share a percentile. Null if the whole phase has too few.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct PercentileSpans {
    /// The median.
    pub p50_s: Option<f64>,
    /// 90 %.
    pub p90_s: Option<f64>,
    /// 95 %.
    pub p95_s: Option<f64>,
    /// 99 %.
    pub p99_s: Option<f64>,
    /// 99.9 %.
    pub p99_9_s: Option<f64>,
}

/// Number of values in each bucket: `[lower edge in microseconds, count]`, rising, zeros left out.
///
/// The edges are the preferred numbers of the series R10 (ISO 3), ten a decade, from 10
/// microseconds on; what is below lies in the bucket of edge 0.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Heat(pub Vec<[u64; 2]>);

impl Heat {
    /// Counts values, as (microseconds, how many), into buckets; the values come in rising order.
    pub fn of(values: impl IntoIterator<Item = (u64, u64)>) -> Self {
        let mut buckets: Vec<[u64; 2]> = Vec::new();
        for (value_us, count) in values {
            let edge = Self::edge_below(value_us);
            match buckets.last_mut() {
                Some(last) if last[0] == edge => last[1] += count,
                Some(_) | None => buckets.push([edge, count]),
            }
        }
        Self(buckets)
    }

    /// The lower edge of the bucket that a value lies in.
    pub fn edge_below(value_us: u64) -> u64 {
        /// R10 in hundredths (ISO 3).
        const R10: [u64; 10] = [100, 125, 160, 200, 250, 315, 400, 500, 630, 800];
        if value_us < 10 {
            return 0;
        }
        let decade = 10u64.pow(value_us.ilog10());
        let edges = R10.map(|step| u128::from(step) * u128::from(decade) / 100);
        let place = edges.partition_point(|edge| *edge <= u128::from(value_us));
        edges[place.saturating_sub(1)] as u64
    }
}

/// The generator's own health in one window: the worst thread's shares, 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct WindowHealth {
    /// Share of a CPU that the busiest device shard used.
    pub shard_cpu: Option<f64>,
    /// Share of a CPU that the busiest consumer thread used.
    pub consumer_cpu: Option<f64>,
    /// Share of the time that the worst thread waited for a CPU.
    pub cpu_wait: Option<f64>,
    /// Share of the time that the hypervisor took away.
    pub steal: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_edges_are_preferred_numbers() {
        let edges = [0, 9, 10, 12, 124, 125, 314, 315, 999, 1_000, 7_999_999].map(Heat::edge_below);
        assert_eq!(
            edges,
            [0, 0, 10, 12, 100, 125, 250, 315, 800, 1_000, 6_300_000]
        );
        assert_eq!(Heat::edge_below(u64::MAX), 16_000_000_000_000_000_000);
    }

    #[test]
    fn values_of_one_bucket_are_added() {
        let heat = Heat::of([(1_000, 2), (1_100, 3), (1_300, 4)]);
        assert_eq!(heat, Heat(vec![[1_000, 5], [1_250, 4]]));
    }
}
