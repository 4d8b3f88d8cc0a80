//! Figures over time of the platform's own counters.

use muster_model::{Micros, Resource, ResourceUnit};
use muster_platform::{CounterKey, CounterPlace};

use super::{Growth, UsageError, UsageSource};
use crate::counters::{CounterCounts, CounterReader};
use crate::page::CounterPage;

/// Samples the figures of a page with the platform's own counters.
#[derive(Debug)]
pub struct CounterUsage {
    page: CounterPage,
    reader: CounterReader,
    resources: Vec<Resource>,
    growths: Vec<Growth>,
    levels: Vec<Level>,
}

/// The state of a figure that is the growth since its first sample.
#[derive(Debug, Clone, Copy, Default)]
struct Level {
    first: Option<f64>,
    /// The sum that was added in the last sample.
    plus: f64,
}

impl CounterUsage {
    /// The figures of the page at an address; nothing is read yet. `limit` is that of the figure that takes one.
    pub fn new(entry: &str, url: &str, reader: CounterReader, limit: Option<f64>) -> Self {
        let figures = reader.names().figures;
        let resources = figures.iter().map(|figure| Resource {
            entry: entry.to_owned(),
            name: figure.name.to_owned(),
            unit: match figure.is_rate {
                true => ResourceUnit::PerSecond,
                false => ResourceUnit::Number,
            },
            limit: limit.filter(|_| figure.has_limit),
        });
        Self {
            page: CounterPage::new(url),
            resources: resources.collect(),
            growths: vec![Growth::default(); figures.len()],
            levels: vec![Level::default(); figures.len()],
            reader,
        }
    }

    fn values(&mut self, now: Micros, text: &str) -> Vec<Option<f64>> {
        let counts = self.reader.counts(text);
        let figures = self.reader.names().figures.iter();
        let states = self.growths.iter_mut().zip(&mut self.levels);
        let values = figures.zip(states).map(|(figure, (growth, level))| {
            let plus = sum(&counts, figure.plus)?;
            let minus = sum(&counts, figure.minus)?;
            match figure.is_rate {
                true => growth.per_second(now, plus - minus),
                false => Some(level.growth(plus, minus)),
            }
        });
        values.collect()
    }
}

impl UsageSource for CounterUsage {
    fn resources(&self) -> &[Resource] {
        &self.resources
    }

    fn sample(&mut self, now: Micros) -> Result<Vec<Option<f64>>, UsageError> {
        let text = self.page.read()?;
        Ok(self.values(now, &text))
    }
}

impl Level {
    /// Counters that fell began anew, and so does the figure.
    fn growth(&mut self, plus: f64, minus: f64) -> f64 {
        if plus < self.plus {
            self.first = None;
        }
        self.plus = plus;
        let first = self.first.get_or_insert(plus - minus);
        (plus - minus - *first).max(0.0)
    }
}

/// The sum of these counters; none if the page lacks one.
fn sum(counts: &CounterCounts, of: &[CounterPlace]) -> Option<f64> {
    let counts = of.iter().map(|place| {
        let key = CounterKey {
            kind: place.kind.to_owned(),
            status: place.status.to_owned(),
        };
        counts.get(&key).map(|count| *count as f64)
    });
    counts.sum()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use muster_platform::Dialect;

    use super::*;

    /// A page of a ThingsBoard that keeps its time series elsewhere.
    fn page(produced: u32, processed: u32) -> String {
        format!(
            "ruleEngine_producer_total{{statsName=\"successfulMsgs\"}} {produced}\n\
             ruleEngine_Main_total{{statsName=\"successfulMsgs\"}} {processed}\n\
             ruleEngine_Main_total{{statsName=\"failedMsgs\"}} 0\n\
             ruleEngine_Main_total{{statsName=\"timeoutMsgs\"}} 3\n"
        )
    }

    fn values(usage: &mut CounterUsage, at_s: u64, page: &str) -> Vec<(String, Option<f64>)> {
        let values = usage.values(Micros::from_secs(at_s), page);
        let names = usage.resources.iter().map(|of| of.name.clone());
        names.zip(values).collect()
    }

    #[test]
    fn what_was_accepted_and_not_yet_processed_is_a_lag_that_has_the_limit() {
        let names = Dialect::Thingsboard.spec().counters.as_ref();
        let reader = CounterReader::new(names.expect("it has some"), BTreeSet::new());
        let mut usage = CounterUsage::new("board", "http://h/p", reader, Some(5_000.0));
        let limited = usage.resources.iter().filter(|of| of.limit.is_some());
        let limited: Vec<&str> = limited.map(|of| of.name.as_str()).collect();
        assert_eq!(limited, ["queue-lag"]);
        let mut of = |at_s, produced, processed| {
            let all = values(&mut usage, at_s, &page(produced, processed));
            let value = |name: &str| {
                let found = all.iter().find(|(of, _)| of == name);
                found.expect("a figure").1
            };
            ["accepted", "processed", "queue-lag", "store-lag"].map(value)
        };
        assert_eq!(of(1, 100, 120), [None, None, Some(0.0), None]);
        let behind = [Some(50.0), Some(20.0), Some(60.0), None];
        assert_eq!(of(3, 200, 160), behind);
        let caught_up = [Some(0.0), Some(80.0), Some(0.0), None];
        assert_eq!(of(4, 200, 240), caught_up);
        assert_eq!(of(5, 0, 0), [None, None, Some(0.0), None], "it began anew");
        assert_eq!(of(6, 10, 4)[2], Some(6.0));
    }
}
