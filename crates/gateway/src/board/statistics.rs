//! Counters of the rule engine and of the store, as ThingsBoard exports them for Prometheus.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts since the start.
#[derive(Debug, Default)]
pub(super) struct Statistics {
    produced: AtomicU64,
    refused: AtomicU64,
    processed: AtomicU64,
    failed: AtomicU64,
    timed_out: AtomicU64,
    values: AtomicU64,
}

impl Statistics {
    /// Counts a message of a device that came to the queue of the rule engine; `has_room` is false if it was full.
    pub(super) fn note_message(&self, has_room: bool) {
        match has_room {
            true => add(&self.produced, 1),
            false => add(&self.refused, 1),
        }
    }

    /// Counts messages whose way through the rule chain ended well.
    pub(super) fn note_processed(&self, messages: u64) {
        add(&self.processed, messages);
    }

    /// Counts messages that a node failed to store.
    pub(super) fn note_failed(&self, messages: u64) {
        add(&self.failed, messages);
    }

    /// Counts messages that waited too long for the store.
    pub(super) fn note_timed_out(&self, messages: u64) {
        add(&self.timed_out, messages);
    }

    /// Counts stored values of time series.
    pub(super) fn note_values(&self, values: u64) {
        add(&self.values, values);
    }

    /// The page that Prometheus reads.
    pub(super) fn page(&self) -> String {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        // What leaves the queue is read before what enters it: the difference is never negative.
        let values = of(&self.values);
        let done = [&self.processed, &self.timed_out, &self.failed].map(of);
        let [produced, refused] = [&self.produced, &self.refused].map(of);
        let mut page = String::new();
        let mut metric = |name: &str, labels: &str, counts: &[(&str, u64)]| {
            let _ = writeln!(page, "# TYPE {name}_total counter");
            for (status, count) in counts {
                let _ = writeln!(
                    page,
                    "{name}_total{{statsName=\"{status}\"{labels}}} {count}.0"
                );
            }
        };
        let messages = [
            ("totalMsgs", produced + refused),
            ("successfulMsgs", produced),
            ("failedMsgs", refused),
        ];
        metric("ruleEngine_producer", "", &messages);
        let [processed, timed_out, failed] = done;
        let queue = [
            ("totalMsgs", done.iter().sum()),
            ("successfulMsgs", processed),
            ("timeoutMsgs", timed_out),
            ("failedMsgs", failed),
            // Nothing is tried again.
            ("tmpTimeout", 0),
            ("tmpFailed", 0),
        ];
        metric("ruleEngine_Main", ",tenantId=\"system\"", &queue);
        // Values are queued and stored in one transaction.
        let saved = [
            ("totalMsgs", values),
            ("successfulMsgs", values),
            ("failedMsgs", 0),
        ];
        metric("ts_queue_0", "", &saved);
        page
    }
}

fn add(count: &AtomicU64, by: u64) {
    count.fetch_add(by, Ordering::Relaxed);
}
