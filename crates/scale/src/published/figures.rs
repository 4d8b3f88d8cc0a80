//! Figures of a window of time: by the published formulas, and by sums.

use std::collections::{BTreeMap, VecDeque};

use muster_measure::PublishedSecond;
use muster_model::Micros;
use serde::{Deserialize, Serialize};

const SECOND: u64 = 1_000_000;

/// Counts of one second, of all load together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Second {
    /// The second, since the Unix epoch.
    pub at: u64,
    /// Requests of devices.
    pub requests: PublishedSecond,
    /// Requests whose time is in the sum of theirs.
    pub answered: u64,
    /// Messages that the application received.
    pub received: u64,
}

/// Figures of a window.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Figures {
    /// Failures for each request; none without a request.
    pub failure_ratio: Option<f64>,
    /// Mean round-trip time in milliseconds; none without an ended request, or by sums without an answered one.
    pub rtt_ms: Option<f64>,
    /// Messages that the application received, per second.
    pub received_per_s: f64,
}

/// The same window by two formulas.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Reading {
    /// By the published ones: ratios and means of each second, rounded and averaged without weights.
    pub published: Figures,
    /// By sums over the window.
    pub summed: Figures,
}

/// The last seconds, as many as a window needs.
#[derive(Debug, Clone)]
pub struct Seconds {
    window: u64,
    offset: u64,
    seconds: VecDeque<Second>,
}

impl Seconds {
    /// No seconds yet. A reading is of `window`, which ends `offset` before; both count in whole seconds.
    pub fn new(window: Micros, offset: Micros) -> Self {
        Self {
            window: (window.get() / SECOND).max(1),
            offset: offset.get() / SECOND,
            seconds: VecDeque::new(),
        }
    }

    /// Adds a second, which is later than the ones before.
    pub fn add(&mut self, second: Second) {
        self.seconds.push_back(second);
        let needed = second.at.saturating_sub(self.window + self.offset + 1);
        while self.seconds.front().is_some_and(|first| first.at < needed) {
            self.seconds.pop_front();
        }
    }

    /// The figures at an instant since the Unix epoch.
    ///
    /// The published query groups a window at multiples of its length, shifted by the offset. That usually cuts it in
    /// two, whose means count alike.
    pub fn reading(&self, now: Micros) -> Reading {
        let until = (now.get() / SECOND).saturating_sub(self.offset);
        let within = until.saturating_sub(self.window)..until;
        let seconds = self.seconds.iter().filter(|it| within.contains(&it.at));
        let mut groups: BTreeMap<u64, Group> = BTreeMap::new();
        let (mut all, mut answered, mut received) = (PublishedSecond::default(), 0, 0);
        for second in seconds {
            let group = (second.at + self.offset) / self.window;
            groups.entry(group).or_default().add(&second.requests);
            all.sent += second.requests.sent;
            all.failure += second.requests.failure;
            all.took_us += second.requests.took_us;
            answered += second.answered;
            received += second.received;
        }
        let received_per_s = received as f64 / self.window as f64;
        let sent = all.sent as f64;
        Reading {
            published: Figures {
                failure_ratio: Mean::of(groups.values().map(|group| group.ratio)),
                rtt_ms: Mean::of(groups.values().map(|group| group.rtt)),
                received_per_s,
            },
            summed: Figures {
                failure_ratio: (all.sent > 0).then(|| all.failure as f64 / sent),
                rtt_ms: (answered > 0).then(|| all.took_us as f64 / 1_000.0 / answered as f64),
                received_per_s,
            },
        }
    }
}

/// Means of one group of seconds.
#[derive(Debug, Default)]
struct Group {
    ratio: Mean,
    rtt: Mean,
}

impl Group {
    fn add(&mut self, second: &PublishedSecond) {
        self.ratio.add(second.failure_ratio());
        if let Some(mean) = second.mean_ms() {
            self.rtt.add(mean);
        }
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Mean {
    sum: f64,
    count: u32,
}

impl Mean {
    fn add(&mut self, value: f64) {
        self.sum += value;
        self.count += 1;
    }

    fn value(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / f64::from(self.count))
    }

    /// The mean of means, without weights.
    fn of(means: impl Iterator<Item = Self>) -> Option<f64> {
        let mut all = Self::default();
        means
            .filter_map(|mean| mean.value())
            .for_each(|value| all.add(value));
        all.value()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(at: u64, sent: u64, failure: u64, took_ms: u64) -> Second {
        Second {
            at,
            requests: PublishedSecond {
                sent,
                success: sent - failure,
                failure,
                took_us: took_ms * 1_000,
            },
            answered: sent - failure,
            received: sent - failure,
        }
    }

    fn near(found: Option<f64>, expected: f64) {
        let found = found.expect("a figure");
        assert!((found - expected).abs() < 1e-9, "{found} {expected}");
    }

    #[test]
    fn a_failure_below_half_a_percent_of_its_second_does_not_count() {
        let mut seconds = Seconds::new(Micros::from_secs(10), Micros::ZERO);
        for at in 0..10 {
            seconds.add(second(at, 1_000, 4, 1_992));
        }
        let Reading { published, summed } = seconds.reading(Micros::from_secs(10));
        near(published.failure_ratio, 0.0);
        near(summed.failure_ratio, 0.004);
        // A request without an answer has no time, and counts in the published mean.
        near(published.rtt_ms, 1.992);
        near(summed.rtt_ms, 2.0);
        near(Some(published.received_per_s), 996.0);
    }

    #[test]
    fn the_border_of_a_group_decides_on_the_weight_of_a_second() {
        // Groups of 10 s begin at 8, 18 and 28: the offset shifts them.
        let mut seconds = Seconds::new(Micros::from_secs(10), Micros::from_secs(2));
        let mut ratios = Vec::new();
        for at in 0..30 {
            seconds.add(second(at, 100, if at == 19 { 50 } else { 0 }, 0));
            let reading = seconds.reading(Micros::from_secs(at + 1));
            ratios.push((
                reading.published.failure_ratio,
                reading.summed.failure_ratio,
            ));
        }
        // From 10 to 20, eight seconds in one group and two in the other; from 18 to 28, all in one.
        near(ratios[21].0, 0.5 * (0.0 + 0.25));
        near(ratios[21].1, 0.05);
        near(ratios[29].0, 0.05);
    }

    #[test]
    fn a_slow_second_without_requests_has_a_ratio_of_0_and_one_with_few_exceeds_1() {
        let mut seconds = Seconds::new(Micros::from_secs(2), Micros::ZERO);
        let late = |at, sent| Second {
            requests: PublishedSecond {
                sent,
                failure: 100,
                ..PublishedSecond::default()
            },
            ..second(at, 0, 0, 0)
        };
        seconds.add(late(0, 0));
        seconds.add(late(1, 10));
        let reading = seconds.reading(Micros::from_secs(2));
        near(reading.published.failure_ratio, 5.0);
        near(reading.summed.failure_ratio, 20.0);
        let nothing = seconds.reading(Micros::from_secs(60));
        assert_eq!(nothing, Reading::default());
    }
}
