//! Line protocol of InfluxDB.

mod address;
mod line;
mod published;

pub(crate) use address::receiver;
use line::Line;
use published::Published;

use std::collections::HashMap;

use crate::identity::Identity;
use crate::names::percentile;
use crate::snapshot::{Annotation, Point, Snapshot, Value};

/// Names of measurements and fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Names {
    /// Names of docs/metrics.md.
    #[default]
    Muster,
    /// Names of the published scale test of Eclipse Hono.
    HonoSimulator,
}

/// Writer of the lines of one run.
#[derive(Debug)]
pub(crate) struct Lines {
    identity: Identity,
    /// The counts so far, where the names are those of a published test.
    published: Option<Published>,
}

impl Lines {
    pub(crate) fn new(identity: Identity, names: Names) -> Self {
        let published = match names {
            Names::Muster => None,
            Names::HonoSimulator => Some(Published::default()),
        };
        Self {
            identity,
            published,
        }
    }

    /// The lines of a snapshot, each with a line feed, and their number.
    pub(crate) fn encode(&mut self, snapshot: &Snapshot) -> (Vec<u8>, u64) {
        let lines = match &mut self.published {
            Some(published) => published.lines(snapshot, &self.identity.host),
            None => self.own(snapshot),
        };
        let mut text = String::new();
        lines.iter().for_each(|line| line.write(&mut text));
        (text.into_bytes(), lines.len() as u64)
    }

    fn own(&self, snapshot: &Snapshot) -> Vec<Line> {
        let mut lines: Vec<Line> = Vec::new();
        let mut places: HashMap<String, usize> = HashMap::new();
        for point in &snapshot.points {
            let line = self.line(point, snapshot);
            let place = *places.entry(line.series()).or_insert(lines.len());
            match lines.get_mut(place) {
                Some(known) => known.add(line),
                None => lines.push(line),
            }
        }
        lines.extend(snapshot.annotations.iter().map(|it| self.annotation(it)));
        lines
    }

    fn line(&self, point: &Point, snapshot: &Snapshot) -> Line {
        let at = if point.metric.is_of_second() {
            snapshot.second_ms
        } else {
            snapshot.wall_ms
        };
        let mut line = Line::new(point.metric.measurement(), at);
        self.identity
            .tags()
            .for_each(|(name, value)| line.tag(name, value));
        point
            .labelled()
            // The address of a target is no series of its own.
            .filter(|(name, _)| !self.identity.tags().any(|(known, _)| known == *name))
            .for_each(|(name, value)| line.tag(name, value));
        let field = point.metric.field();
        match &point.value {
            Value::Count(count) => line.whole(field, *count),
            Value::Number(number) => line.number(field, *number),
            Value::Quantiles(quantiles) => at_quantiles(&field, quantiles, &mut line),
            Value::Summary {
                quantiles,
                sum,
                count,
            } => {
                at_quantiles(&field, quantiles, &mut line);
                line.number(format!("{field}_sum"), *sum);
                line.whole(format!("{field}_count"), *count);
            }
        }
        line
    }

    /// An annotation as Grafana reads it: title, text, and the end of a region.
    fn annotation(&self, of: &Annotation) -> Line {
        let mut line = Line::new("muster_events".to_owned(), of.wall_ms);
        self.identity
            .tags()
            .for_each(|(name, value)| line.tag(name, value));
        line.tag("kind", &of.kind);
        line.text("title", &of.kind);
        line.text("text", &of.text);
        if let Some(until_ms) = of.until_ms {
            line.whole("time_end".to_owned(), until_ms);
        }
        line
    }
}

fn at_quantiles(field: &str, quantiles: &[(f64, f64)], line: &mut Line) {
    for (quantile, value) in quantiles {
        line.number(format!("{field}_{}", percentile(*quantile)), *value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table;

    fn identity() -> Identity {
        Identity {
            run: "0000002a".to_owned(),
            scenario: "my first, run".to_owned(),
            ..Identity::default()
        }
    }

    #[test]
    fn values_of_one_series_and_instant_share_a_line() {
        let summary = Value::Summary {
            quantiles: vec![(0.999, 1.5)],
            sum: 7.25,
            count: 40,
        };
        let snapshot = Snapshot {
            wall_ms: 9_000,
            second_ms: 7_000,
            points: vec![
                Point::count(&table::SENT, &["a", "b c"], 5),
                Point::count(&table::FAILED, &["a", "b c"], 1),
                Point::count(&table::ENDED, &["a", "b c", "accepted"], 4),
                Point::new(&table::RESPONSE, &["a", "b c"], summary),
                Point::number(&table::ISSUED, &[], 100.0),
            ],
            annotations: vec![Annotation {
                wall_ms: 8_000,
                until_ms: Some(8_500),
                kind: "links-down".to_owned(),
                text: "3 \"links\" ended\\".to_owned(),
            }],
            ..Snapshot::default()
        };
        let (lines, number) = Lines::new(identity(), Names::Muster).encode(&snapshot);
        let run = "run=0000002a,scenario=my\\ first\\,\\ run";
        let expected = [
            format!("muster_messages,{run},fleet=a,stream=b\\ c sent=5i,failed=1i 9000"),
            format!("muster_messages,{run},fleet=a,stream=b\\ c,state=accepted ended=4i 9000"),
            format!(
                "muster_latency,{run},fleet=a,stream=b\\ c response_seconds_p99_9=1.5,response_seconds_sum=7.25,\
                 response_seconds_count=40i 9000"
            ),
            format!("muster_rates,{run} issued_per_second=100 7000"),
            format!(
                "muster_events,{run},kind=links-down title=\"links-down\",text=\"3 \\\"links\\\" ended\\\\\",\
                 time_end=8500i 8000"
            ),
        ];
        let text = String::from_utf8(lines).expect("text");
        assert_eq!(text.lines().collect::<Vec<_>>(), expected);
        assert_eq!(number, 5);
    }
}
