//! Rule (a): does the backlog of one side grow?

use super::trend::{Point, Trend};

/// A backlog that grows by no more than this share of the offered rate does not count.
const SLOPE_SHARE: f64 = 0.005;

/// Least growth of a backlog from the first to the last fifth, in seconds of traffic.
pub(super) const GROWTH_S: f64 = 0.25;

/// Growth of one backlog over a hold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Growth {
    /// Trend of the backlog, in messages per second.
    pub trend: Trend,
    /// The mean of the last fifth less that of the first, in seconds of traffic.
    pub growth_s: f64,
    /// The mean of the last fifth, in seconds of traffic.
    pub level_s: f64,
    /// The offered rate, per second.
    pub offered: f64,
}

impl Growth {
    /// The growth of a backlog, given at the end of each window, under `offered` messages per
    /// second; none below three windows, or if nothing was offered.
    pub fn of(backlog: &[Point], offered: f64) -> Option<Self> {
        if offered <= 0.0 {
            return None;
        }
        let trend = Trend::of(backlog)?;
        let last = mean(&backlog[backlog.len() - fifth(backlog)..]);
        Some(Self {
            trend,
            growth_s: (last - first_mean(backlog)) / offered,
            level_s: last / offered,
            offered,
        })
    }

    /// Returns whether the backlog grows: both conditions of docs/semantics.md#stability.
    pub fn is_unstable(&self) -> bool {
        self.trend.lower > SLOPE_SHARE * self.offered && self.has_grown()
    }

    /// Returns whether the backlog has grown by as much as counts, be it by chance.
    pub fn has_grown(&self) -> bool {
        self.growth_s > GROWTH_S
    }

    /// The slope above which a backlog counts as growing, in messages per second.
    pub fn least_slope(&self) -> f64 {
        SLOPE_SHARE * self.offered
    }

    /// The rank of a backlog among several: one that is unstable is above one that is
    /// not, then the lower bound decides, then the slope.
    pub(super) fn excess(&self) -> f64 {
        let bounded = if self.trend.lower.is_finite() {
            self.trend.lower
        } else {
            0.0
        };
        match self.is_unstable() {
            true => f64::MAX.min(1e12 + bounded),
            false => bounded.max(self.trend.slope.min(0.0)),
        }
    }

    /// The first instant at which the backlog lay above its beginning by what counts; the end of
    /// the series if it never did.
    pub(super) fn since_s(&self, backlog: &[Point]) -> f64 {
        let level = first_mean(backlog) + GROWTH_S * self.offered;
        let above = backlog.iter().find(|point| point.value > level);
        above.or(backlog.last()).map_or(0.0, |point| point.t_s)
    }
}

fn fifth(points: &[Point]) -> usize {
    (points.len() / 5).max(1)
}

fn first_mean(points: &[Point]) -> f64 {
    mean(&points[..fifth(points)])
}

fn mean(points: &[Point]) -> f64 {
    points.iter().map(|p| p.value).sum::<f64>() / points.len() as f64
}
