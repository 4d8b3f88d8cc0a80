//! Counts of the rule engine, and the rates that follow from them.

use muster_platform::board_rest::Point;

/// Counts of one node of the platform, by the instants at which they were stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeCounts {
    /// Its name.
    pub node: String,
    /// Instant in milliseconds of the wall clock, and messages since the one before, in the order of instants.
    points: Vec<(i64, u64)>,
}

impl NodeCounts {
    pub(super) fn new(node: &str) -> Self {
        Self {
            node: node.to_owned(),
            points: Vec::new(),
        }
    }

    /// Adds a stored point; one that is no count is left out.
    pub(super) fn push(&mut self, point: &Point) {
        let text = point.value.as_str().and_then(|text| text.parse().ok());
        if let Some(count) = text.or_else(|| point.value.as_u64()) {
            self.points.push((point.ts, count));
        }
    }

    /// Leaves out the intervals without messages before the first message and after the last.
    pub(super) fn trim(&mut self) {
        let is_busy = |(_, count): &(i64, u64)| *count > 0;
        let end = self.points.iter().rposition(is_busy).map_or(0, |at| at + 1);
        self.points.truncate(end);
        let begin = self.points.iter().position(is_busy).unwrap_or(end);
        self.points.drain(..begin);
    }

    /// Messages in all.
    pub fn total(&self) -> u64 {
        self.points.iter().map(|(_, count)| count).sum()
    }

    /// Counts that were stored, from the first message to the last.
    pub fn intervals(&self) -> u64 {
        self.points.len() as u64
    }

    /// Mean time in seconds between two counts; none with fewer than two points.
    pub fn interval_s(&self) -> Option<f64> {
        let ((first, _), (last, _)) = (self.points.first()?, self.points.last()?);
        let between = self.points.len() - 1;
        (between > 0).then(|| (last - first) as f64 / 1_000.0 / between as f64)
    }

    /// The published formula: the average of the points, whatever the time between them; none with fewer than two
    /// points.
    pub fn published_average(&self) -> Option<f64> {
        (self.points.len() > 1).then(|| self.total() as f64 / self.points.len() as f64)
    }

    /// Messages a second between the first point and the last one. The first one counts messages from before it, so
    /// that it is left out.
    pub fn rate(&self) -> Option<f64> {
        let ((first, before), (last, _)) = (self.points.first()?, self.points.last()?);
        let passed_s = (last - first) as f64 / 1_000.0;
        (passed_s > 0.0).then(|| (self.total() - before) as f64 / passed_s)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn node(points: &[(i64, u64)]) -> NodeCounts {
        let mut node = NodeCounts::new("tb-1");
        for (ts, count) in points {
            node.push(&Point {
                ts: *ts,
                value: json!(count.to_string()),
            });
        }
        node
    }

    /// A late count makes the published average too high, and the rate by the instants stays right.
    #[test]
    fn a_rate_is_by_the_instants_at_which_counts_were_stored() {
        let late = node(&[(0, 70), (1_000, 100), (3_000, 200), (4_000, 100)]);
        assert_eq!(late.total(), 470);
        assert_eq!(late.rate(), Some(100.0));
        assert_eq!(late.published_average(), Some(117.5));
        assert_eq!((late.intervals(), late.interval_s()), (4, Some(4.0 / 3.0)));
    }

    #[test]
    fn idle_time_before_and_after_the_load_is_left_out() {
        let mut node = node(&[(0, 0), (1_000, 40), (2_000, 0), (3_000, 50), (4_000, 0)]);
        node.trim();
        assert_eq!((node.total(), node.rate()), (90, Some(25.0)));
        let mut idle = self::node(&[(0, 0), (1_000, 0)]);
        idle.trim();
        assert_eq!((idle.total(), idle.published_average()), (0, None));
    }

    #[test]
    fn one_count_has_no_rate() {
        let one = node(&[(5, 7)]);
        assert_eq!(
            (one.total(), one.intervals(), one.interval_s()),
            (7, 1, None)
        );
        assert_eq!((one.rate(), one.published_average()), (None, None));
    }
}
