//! Findings on the topics of a consumer, and changes that others make to them during the run.

use muster_conduct::Diagnostic;
use rdkafka::topic_partition_list::TopicPartitionList;

use super::layout::{Change, Layout, TopicView};
use super::topics::Finding;
use crate::consumer::Consumer;

/// The topics of one consumer.
#[derive(Debug)]
pub(crate) struct TopicWatch {
    /// True if a group assigns partitions, so that it assigns added ones too.
    has_group: bool,
    /// Findings that were reported.
    found: Vec<Finding>,
    layout: Layout,
    /// Partitions that were added and that the consumer has not taken up yet.
    further: TopicPartitionList,
}

impl TopicWatch {
    pub(crate) fn new(has_group: bool) -> Self {
        Self {
            has_group,
            found: Vec::new(),
            layout: Layout::default(),
            further: TopicPartitionList::new(),
        }
    }

    /// Reports findings, each once: the consumer may try again before it is up.
    pub(crate) fn found(&mut self, consumer: &mut Consumer, findings: Vec<Finding>) {
        for finding in findings {
            if self.found.contains(&finding) {
                continue;
            }
            let (kind, what): (fn(String) -> Diagnostic, _) = match &finding {
                Finding::Created(what) => (Diagnostic::Topics, what),
                Finding::Differs(what) => (Diagnostic::TopicsDiffer, what),
                Finding::NewTenant(what) => (Diagnostic::NewTenant, what),
            };
            consumer.report_of_backend(kind, what);
            self.found.push(finding);
        }
    }

    /// Notes the partitions that the topics have now.
    pub(crate) fn watch(&mut self, layout: Layout) {
        self.layout = layout;
    }

    /// Takes out the added partitions; none if there are none.
    pub(crate) fn take_further(&mut self) -> Option<TopicPartitionList> {
        let is_due = self.further.count() > 0;
        is_due.then(|| std::mem::take(&mut self.further))
    }

    /// Puts back added partitions that could not be taken up.
    pub(crate) fn put_back(&mut self, further: TopicPartitionList) {
        self.further = further;
    }

    /// Reports the deletion of a topic, if the library's error is about one.
    pub(crate) fn note_error(&mut self, consumer: &mut Consumer, reason: &str) {
        if let Some(change) = self.layout.deleted(reason) {
            self.changed(consumer, &change);
        }
    }

    /// Reports the changes since the last look.
    pub(crate) fn sampled(&mut self, consumer: &mut Consumer, views: &[TopicView]) {
        for change in self.layout.changes(views) {
            self.changed(consumer, &change);
        }
    }

    fn changed(&mut self, consumer: &mut Consumer, change: &Change) {
        if let Some((topic, added)) = change.added().filter(|_| !self.has_group) {
            self.further
                .add_partition_range(topic, added.start, added.end - 1);
        }
        consumer.report_of_backend(Diagnostic::TopicsChanged, change);
    }
}
