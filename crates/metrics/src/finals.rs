//! The values at the end of a run, read from its result by the places that the table names.

use serde_json::Value as Json;

use crate::snapshot::{Point, QUANTILES, Value};
use crate::table::{Kind, Metric, Place, TABLE, Unit};
use crate::totals::sum_s;

/// The value of each metric that has a place in `result.json`.
pub(crate) fn points(result: &Json) -> Vec<Point> {
    let mut points = Vec::new();
    for metric in TABLE {
        let (Place::Result(path) | Place::AtEnd(path)) = metric.place else {
            continue;
        };
        let mut search = Search {
            metric,
            bound: Vec::new(),
            points: &mut points,
        };
        let steps: Vec<&str> = path.split('.').collect();
        search.descend(result, &steps);
    }
    points
}

/// The way from the root of a result to all values of one metric.
struct Search<'a> {
    metric: &'static Metric,
    /// Labels and their values so far.
    bound: Vec<(&'a str, String)>,
    points: &'a mut Vec<Point>,
}

impl<'a> Search<'a> {
    fn descend(&mut self, at: &Json, steps: &[&'a str]) {
        let Some((step, rest)) = steps.split_first() else {
            self.end(at);
            return;
        };
        if !step.starts_with('{') {
            if let Some(inner) = at.get(step) {
                self.descend(inner, rest);
            }
            return;
        }
        for (key, inner) in at.as_object().into_iter().flatten() {
            let before = self.bound.len();
            if self.bind(step, key) {
                self.descend(inner, rest);
            }
            self.bound.truncate(before);
        }
    }

    /// Takes the values of labels from a key; false if the step does not admit it.
    fn bind(&mut self, step: &'a str, key: &str) -> bool {
        let inner = step.trim_start_matches('{').trim_end_matches('}');
        if let Some((first, second)) = inner.split_once("}/{") {
            let Some((left, right)) = key.split_once('/') else {
                return false;
            };
            self.bound.push((first, left.to_owned()));
            self.bound.push((second, right.to_owned()));
            return true;
        }
        let (label, is_admitted) = match inner.split_once('=') {
            Some((label, keys)) => (label, keys.split('|').any(|admitted| admitted == key)),
            None => (inner, true),
        };
        self.bound.push((label, key.to_owned()));
        is_admitted
    }

    /// Keeps a value; null is none.
    fn end(&mut self, at: &Json) {
        let value = match at {
            Json::Object(_) if self.metric.kind == Kind::Summary => summary(at),
            Json::Number(number) => self.number(number),
            // The text is the value of the label that the path does not have.
            Json::String(text) => {
                let free = self.metric.labels.last().copied().unwrap_or_default();
                self.bound.push((free, text.clone()));
                Some(Value::Count(1))
            }
            Json::Null | Json::Bool(_) | Json::Array(_) | Json::Object(_) => None,
        };
        let Some(value) = value else { return };
        let labels = self.metric.labels.iter().map(|label| self.label(label));
        let point = Point::new(self.metric, &labels.collect::<Vec<_>>(), value);
        self.points.push(point);
    }

    fn number(&self, number: &serde_json::Number) -> Option<Value> {
        if self.metric.is_whole() {
            return number.as_u64().map(Value::Count);
        }
        debug_assert_ne!(
            self.metric.unit,
            Unit::Seconds,
            "no key of the table needs it"
        );
        number.as_f64().map(Value::Number)
    }

    fn label(&self, wanted: &str) -> &str {
        let found = self.bound.iter().find(|(label, _)| *label == wanted);
        found.map_or("", |(_, value)| value.as_str())
    }
}

fn summary(figures: &Json) -> Option<Value> {
    let us = |key: &str| figures.get(key).and_then(Json::as_u64);
    let quantiles = QUANTILES
        .iter()
        .filter_map(|(key, quantile)| Some((*quantile, us(key)? as f64 / 1e6)));
    let count = us("count")?;
    Some(Value::Summary {
        quantiles: quantiles.collect(),
        sum: sum_s(us("mean_us").unwrap_or(0), count),
        count,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::table;

    fn values(result: &Json, metric: &'static Metric) -> Vec<(Vec<String>, Value)> {
        let found = points(result).into_iter();
        found
            .filter(|point| point.metric == metric)
            .map(|point| (point.labels, point.value))
            .collect()
    }

    #[test]
    fn labels_are_the_keys_of_the_result() {
        let ledger = json!({ "sent": 7, "accepted": 5, "rejected": 2, "rejected_by_code": { "5.03": 2 }, "in_flight": 0 });
        let result = json!({ "ledger": { "by_stream": { "meters/a/b": { "ledger": ledger } } } });
        let of = |more: &[&str]| {
            let all = ["meters", "a/b"].iter().chain(more);
            all.map(|label| (*label).to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(values(&result, &table::SENT), [(of(&[]), Value::Count(7))]);
        assert_eq!(
            values(&result, &table::REJECTED),
            [(of(&["5.03"]), Value::Count(2))]
        );
        let ended = values(&result, &table::ENDED);
        let expected = [("accepted", 5), ("rejected", 2), ("in_flight", 0)];
        assert_eq!(
            ended,
            expected.map(|(state, count)| (of(&[state]), Value::Count(count)))
        );
    }

    #[test]
    fn what_is_not_known_is_absent() {
        let result =
            json!({ "ledger": { "by_backend": { "a": { "lost": null }, "b": { "lost": 3 } } } });
        assert_eq!(
            values(&result, &table::LOST),
            [(vec!["b".to_owned()], Value::Count(3))]
        );
        assert!(points(&json!({})).is_empty());
    }

    #[test]
    fn times_are_in_seconds_and_the_verdict_is_a_label() {
        let connect = json!({ "count": 40, "mean_us": 1500, "p50_us": 1400, "p90_us": null });
        let result = json!({ "latency": { "connect": connect }, "verdict": { "result": "fail" } });
        let expected = Value::Summary {
            quantiles: vec![(0.5, 0.0014)],
            sum: 0.06,
            count: 40,
        };
        assert_eq!(values(&result, &table::CONNECT), [(vec![], expected)]);
        assert_eq!(
            values(&result, &table::RUN_VERDICT),
            [(vec!["fail".to_owned()], Value::Count(1))]
        );
    }
}
