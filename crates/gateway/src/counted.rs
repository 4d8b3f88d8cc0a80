//! The counts of ThingsBoard's rule engine, second by second.

use std::collections::VecDeque;

use serde::Deserialize;
use serde_json::{Value, json};

/// Most points that are kept: more than a day.
const POINTS_MAX: usize = 100_000;
/// Points of an answer where the call does not say.
const LIMIT: usize = 100;

/// Counts of each second: the instant on the wall clock, in milliseconds, and the count.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    points: VecDeque<(u64, u64)>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Wanted {
    pub(crate) keys: String,
    start_ts: u64,
    end_ts: u64,
    limit: Option<usize>,
    pub(crate) agg: Option<String>,
    order_by: Option<String>,
}

impl Counted {
    pub(crate) fn push(&mut self, at_ms: u64, count: u64) {
        if self.points.len() == POINTS_MAX {
            self.points.pop_front();
        }
        self.points.push_back((at_ms, count));
    }

    /// The points from the start to before the end, the newest first unless asked otherwise, as
    /// ThingsBoard writes them: values are text.
    pub(crate) fn points(&self, wanted: &Wanted) -> Vec<Value> {
        let within = |point: &&(u64, u64)| (wanted.start_ts..wanted.end_ts).contains(&point.0);
        let point = |(ts, value): &(u64, u64)| json!({ "ts": ts, "value": value.to_string() });
        let limit = wanted.limit.unwrap_or(LIMIT);
        let points = self.points.iter().filter(within);
        match wanted.order_by.as_deref() {
            Some("ASC") => points.take(limit).map(point).collect(),
            Some(_) | None => points.rev().take(limit).map(point).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(start_ts: u64, end_ts: u64, limit: Option<usize>, order: &str) -> Wanted {
        Wanted {
            keys: "k".to_owned(),
            start_ts,
            end_ts,
            limit,
            agg: None,
            order_by: Some(order.to_owned()),
        }
    }

    #[test]
    fn points_are_those_from_the_start_to_before_the_end() {
        let mut counted = Counted::default();
        (0..5).for_each(|at| counted.push(1_000 * at, at));
        let values = |wanted: &Wanted| -> Vec<String> {
            let points = counted.points(wanted).into_iter();
            points
                .map(|point| format!("{}:{}", point["ts"], point["value"].as_str().unwrap()))
                .collect()
        };
        let all = ["1000:1", "2000:2", "3000:3"];
        assert_eq!(values(&wanted(1_000, 4_000, None, "ASC")), all);
        assert_eq!(
            values(&wanted(1_000, 4_000, Some(2), "DESC")),
            ["3000:3", "2000:2"]
        );
    }

    #[test]
    fn no_more_points_are_kept_than_the_bound() {
        let mut counted = Counted::default();
        (0..POINTS_MAX as u64 + 3).for_each(|at| counted.push(at, 1));
        assert_eq!(counted.points.len(), POINTS_MAX);
        assert_eq!(counted.points.front(), Some(&(3, 1)));
    }
}
