//! The platform's own counters on a page.

use std::collections::{BTreeMap, BTreeSet};

use muster_platform::{CounterKey, Counters};

use crate::prometheus::samples;

/// Counts by kind and status.
pub type CounterCounts = BTreeMap<CounterKey, u64>;

/// Reads the platform's own counters of these tenants from pages.
#[derive(Debug, Clone)]
pub struct CounterReader {
    names: &'static Counters,
    tenants: BTreeSet<String>,
}

impl CounterReader {
    /// A reader of these counters. The tenants matter only if the counters have a label for them.
    pub const fn new(names: &'static Counters, tenants: BTreeSet<String>) -> Self {
        Self { names, tenants }
    }

    /// The counters that it reads.
    pub const fn names(&self) -> &'static Counters {
        self.names
    }

    /// The tenants whose messages count, in words; empty if the counters have no label for them.
    pub fn of_tenants(&self) -> String {
        let tenants: Vec<&str> = self.tenants.iter().map(String::as_str).collect();
        match self.names.tenant {
            Some(_) => format!(" of tenant {}", tenants.join(", ")),
            None => String::new(),
        }
    }

    /// The counts of a page.
    pub fn counts(&self, text: &str) -> CounterCounts {
        let mut counts = CounterCounts::new();
        for sample in samples(text) {
            let is_ours = |label| {
                let tenant = sample.label(label);
                tenant.is_some_and(|tenant| self.tenants.contains(&tenant))
            };
            let key = self.names.key(sample.name, |name| sample.label(name));
            let key = key.filter(|_| self.names.tenant.is_none_or(is_ours));
            if let Some((key, count)) = key.zip(sample.count()) {
                let sum = counts.entry(key).or_default();
                *sum = sum.saturating_add(count);
            }
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use muster_platform::Dialect;

    use super::*;

    fn counts(dialect: Dialect, tenants: &[&str], page: &str) -> Vec<(String, u64)> {
        let names = dialect.spec().counters.as_ref();
        let tenants = tenants.iter().map(|it| (*it).to_owned()).collect();
        let reader = CounterReader::new(names.expect("it has some"), tenants);
        let counts = reader.counts(page).into_iter();
        counts
            .map(|(key, count)| (format!("{} {}", key.kind, key.status), count))
            .collect()
    }

    fn expected(all: &[(&str, u64)]) -> Vec<(String, u64)> {
        let all = all.iter();
        all.map(|(key, count)| ((*key).to_owned(), *count))
            .collect()
    }

    #[test]
    fn a_page_is_summed_over_what_the_labels_tell_beside() {
        let metric = "hono_telemetry_processing_duration_seconds";
        let page = format!(
            "{metric}_count{{tenant=\"t1\",type=\"telemetry\",status=\"forwarded\",ttd=\"none\"}} 5\n\
             {metric}_count{{tenant=\"t1\",type=\"telemetry\",status=\"forwarded\",ttd=\"command\"}} 7\n\
             {metric}_count{{tenant=\"t1\",type=\"event\",status=\"undeliverable\"}} 1\n\
             {metric}_count{{tenant=\"t2\",type=\"event\",status=\"forwarded\"}} 100\n\
             {metric}_sum{{tenant=\"t1\",type=\"event\",status=\"forwarded\"}} 3\n\
             hono_telemetry_processing_duration_count{{tenant=\"t3\",type=\"event\",status=\"forwarded\"}} 9\n"
        );
        let of_one = [("event undeliverable", 1), ("telemetry forwarded", 12)];
        let read = counts(Dialect::Hono, &["t1"], &page);
        assert_eq!(read, expected(&of_one));
        let read = counts(Dialect::Hono, &["t2", "t3"], &page);
        assert_eq!(read, expected(&[("event forwarded", 109)]));
    }

    #[test]
    fn queues_and_threads_are_summed_where_tenants_are_not_told_apart() {
        let page = "ruleEngine_producer_total{statsName=\"successfulMsgs\",} 600.0\n\
                    ruleEngine_Main_total{statsName=\"successfulMsgs\",tenantId=\"system\",} 540.0\n\
                    ruleEngine_HighPriority_total{statsName=\"successfulMsgs\",tenantId=\"system\",} 7.0\n\
                    ruleEngine_Main_total{statsName=\"timeoutMsgs\",tenantId=\"system\",} 53.0\n\
                    ts_queue_0_total{statsName=\"successfulMsgs\",} 1000.0\n\
                    ts_queue_1_total{statsName=\"successfulMsgs\",} 94.0\n\
                    ts_latest_queue_0_total{statsName=\"successfulMsgs\",} 5.0\n";
        let all = [
            ("ruleEngine queues successfulMsgs", 547),
            ("ruleEngine queues timeoutMsgs", 53),
            ("ruleEngine_producer successfulMsgs", 600),
            ("ts_queue successfulMsgs", 1_094),
        ];
        let read = counts(Dialect::Thingsboard, &[], page);
        assert_eq!(read, expected(&all));
    }

    #[test]
    fn what_is_beyond_all_counting_is_counted_as_the_most() {
        let line = "hono_telemetry_processing_duration_seconds_count{tenant=\"t1\",type=\"event\",status=\"forwarded\"} \
                    9007199254740991\n";
        let read = counts(Dialect::Hono, &["t1"], &line.repeat(2_049));
        assert_eq!(read, expected(&[("event forwarded", u64::MAX)]));
    }
}
