//! Test for a backlog that grows under constant load (docs/semantics.md#stability).
//!
//! Not by correlation: a harmless drift of 5 us a window correlates with time at 1.00, a full queue
//! that drops at 0. What counts is how fast a backlog grows, with a bound on the error, and whether
//! that has come to anything.

mod creep;
mod growth;
mod trend;

pub use creep::Creep;
pub use growth::Growth;
pub use trend::{Point, Trend};

/// Observations over one hold of constant offered rate.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HoldSeries {
    /// Messages per second that were wanted.
    pub offered: f64,
    /// The backlog of each side at the end of each window, in messages, with the side's name.
    pub backlogs: Vec<(String, Vec<Point>)>,
    /// Percentiles of latency by window of due, the unanswered at their lower bound, in
    /// microseconds, with their names.
    pub latencies: Vec<(String, Vec<Point>)>,
}

/// Finding of a hold on stability.
#[derive(Debug, Clone, PartialEq)]
pub enum Stability {
    /// No backlog grows and no latency rises.
    Stable {
        /// The backlog that grew most.
        side: String,
        /// By how much.
        growth: Growth,
    },
    /// A backlog grows.
    Unstable {
        /// The backlog that grows.
        side: String,
        /// By how much.
        growth: Growth,
        /// The end of the first window whose backlog was above the hold's beginning by what
        /// counts, in the seconds of the series.
        since_s: f64,
    },
    /// A latency rises, and no backlog has grown so far.
    Unclear {
        /// The latency that rises.
        latency: String,
        /// By how much.
        creep: Creep,
        /// Length that the hold would need to decide, in seconds.
        needed_s: u64,
    },
}

impl HoldSeries {
    /// Applies rules (a) and (b); none if there is no backlog of at least three windows, or
    /// nothing was offered.
    pub fn assess(&self) -> Option<Stability> {
        let growths = self.backlogs.iter().filter_map(|(side, backlog)| {
            Growth::of(backlog, self.offered).map(|growth| (side, backlog, growth))
        });
        let (side, backlog, growth) =
            growths.max_by(|a, b| a.2.excess().total_cmp(&b.2.excess()))?;
        if growth.is_unstable() {
            let since_s = growth.since_s(backlog);
            return Some(Stability::Unstable {
                side: side.clone(),
                growth,
                since_s,
            });
        }
        let creeps = self.latencies.iter().filter_map(|(name, latency)| {
            let creep = Creep::of(latency)?;
            creep.is_rising().then_some((name, creep))
        });
        let worst = creeps.max_by(|a, b| a.1.trend.slope.total_cmp(&b.1.trend.slope));
        Some(match worst {
            Some((name, creep)) => Stability::Unclear {
                latency: name.clone(),
                creep,
                needed_s: needed_s(&growth, &creep, backlog),
            },
            None => Stability::Stable {
                side: side.clone(),
                growth,
            },
        })
    }
}

/// Length that a hold needs for rule (a) to decide on a latency that rises.
///
/// By Little's law a latency that rises by `m` a second is a backlog that grows by `m` seconds of
/// traffic a second, if it is a backlog at all. The means of the last and the first fifth lie 0.8
/// of the hold apart, so that growth shows once `0.8 m T` exceeds what counts. Where it shows
/// already and only the error of the slope is too large, twice the hold makes it small enough:
/// the error shrinks by a factor of 2.8 for independent values and 1.4 for a random walk.
fn needed_s(growth: &Growth, creep: &Creep, backlog: &[Point]) -> u64 {
    let length_s = match (backlog.first(), backlog.last()) {
        (Some(first), Some(last)) => last.t_s - first.t_s + 1.0,
        (None, _) | (_, None) => 0.0,
    };
    let per_second = creep.trend.slope / 1e6;
    let to_show = growth::GROWTH_S / (0.8 * per_second);
    let to_be_sure = if growth.has_grown() {
        2.0 * length_s
    } else {
        length_s + 1.0
    };
    to_show.max(to_be_sure).ceil() as u64
}
