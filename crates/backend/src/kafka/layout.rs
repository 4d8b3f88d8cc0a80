//! The partitions of consumed topics, which others may add or delete while a run goes on.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use rdkafka::statistics;
use rdkafka::topic_partition_list::TopicPartitionList;

/// The library's words for a topic that is gone, before its name.
const NOT_AVAILABLE: &str = "Subscribed topic not available: ";

/// One topic as the last answer of the brokers has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TopicView {
    topic: String,
    /// Number of partitions, 0 if the brokers know no such topic. None if the library has no answer of the
    /// brokers, or got it less than a millisecond ago.
    partitions: Option<i32>,
}

impl TopicView {
    #[cfg(test)]
    pub(crate) fn new(topic: &str, partitions: i32) -> Self {
        let (topic, partitions) = (topic.to_owned(), Some(partitions));
        Self { topic, partitions }
    }

    pub(crate) fn of(topic: &statistics::Topic) -> Self {
        let all = topic.partitions.values();
        let known = all.filter(|it| it.partition >= 0 && !it.unknown).count();
        let known = i32::try_from(known).unwrap_or(i32::MAX);
        Self {
            topic: topic.topic.clone(),
            partitions: (topic.metadata_age > 0).then_some(known),
        }
    }
}

/// A change that others made to a topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    /// More partitions.
    Grown {
        topic: String,
        from: i32,
        to: i32,
    },
    Deleted {
        topic: String,
    },
    /// Created anew.
    Renewed {
        topic: String,
        from: i32,
        to: i32,
    },
}

impl Change {
    /// The partitions that were not there before.
    pub(crate) fn added(&self) -> Option<(&str, Range<i32>)> {
        match self {
            Self::Grown { topic, from, to } | Self::Renewed { topic, from, to } => {
                Some((topic.as_str(), *from..*to)).filter(|(_, added)| !added.is_empty())
            }
            Self::Deleted { .. } => None,
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Grown { topic, from, to } => {
                write!(f, "topic `{topic}` grew from {from} to {to} partitions")
            }
            Self::Deleted { topic } => write!(f, "topic `{topic}` was deleted"),
            Self::Renewed { topic, to, .. } => {
                write!(f, "topic `{topic}` was created anew with {to} partitions")
            }
        }
    }
}

/// The partitions of each topic that is consumed.
#[derive(Debug, Default)]
pub(crate) struct Layout {
    known: BTreeMap<String, Known>,
}

#[derive(Debug)]
struct Known {
    partitions: i32,
    presence: Presence,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Presence {
    There,
    /// An error reported its deletion; the statistics may still show its former state.
    Reported,
    Gone,
}

impl Known {
    /// Returns the change to `to` partitions, if it is one.
    fn becomes(&mut self, topic: &str, to: i32) -> Option<Change> {
        let topic = topic.to_owned();
        if to == 0 {
            let before = std::mem::replace(&mut self.presence, Presence::Gone);
            return (before == Presence::There).then_some(Change::Deleted { topic });
        }
        if self.presence == Presence::Reported {
            return None;
        }
        let from = std::mem::replace(&mut self.partitions, to);
        let before = std::mem::replace(&mut self.presence, Presence::There);
        if before == Presence::Gone || to < from {
            Some(Change::Renewed { topic, from, to })
        } else {
            (to > from).then_some(Change::Grown { topic, from, to })
        }
    }
}

impl Layout {
    /// The layout when a consumer takes all partitions up or joins its group.
    pub(crate) fn of(partitions: &TopicPartitionList) -> Self {
        let mut layout = Self::default();
        for partition in partitions.elements() {
            let known = layout.known.entry(partition.topic().to_owned());
            let known = known.or_insert(Known {
                partitions: 0,
                presence: Presence::There,
            });
            known.partitions += 1;
        }
        layout
    }

    /// Returns changes of the topics by others since the last look. Topics without a partition of this
    /// consumer are left out.
    pub(crate) fn changes(&mut self, views: &[TopicView]) -> Vec<Change> {
        let mut changes = Vec::new();
        for (topic, known) in &mut self.known {
            match views.iter().find(|view| view.topic == *topic) {
                Some(view) => {
                    let to = view.partitions;
                    changes.extend(to.and_then(|to| known.becomes(topic, to)));
                }
                None if known.presence == Presence::Reported => known.presence = Presence::Gone,
                None => {}
            }
        }
        changes
    }

    /// Returns the deletion of a topic, if the library's error reports one.
    pub(crate) fn deleted(&mut self, words: &str) -> Option<Change> {
        let (topic, _) = words.strip_prefix(NOT_AVAILABLE)?.split_once(": ")?;
        let known = self.known.get_mut(topic)?;
        let is_new = known.presence == Presence::There;
        is_new.then(|| {
            known.presence = Presence::Reported;
            let topic = topic.to_owned();
            Change::Deleted { topic }
        })
    }
}

#[cfg(test)]
mod tests {
    use rdkafka::statistics::{Partition, Topic};

    use super::*;

    fn layout() -> Layout {
        let mut partitions = TopicPartitionList::new();
        partitions.add_partition_range("t", 0, 3);
        partitions.add_partition_range("other", 0, 0);
        Layout::of(&partitions)
    }

    fn view(topic: &str, partitions: i32) -> TopicView {
        TopicView::new(topic, partitions)
    }

    const GONE: &str = "Subscribed topic not available: t: Broker: Unknown topic or partition";

    fn told(changes: &[Change]) -> Vec<String> {
        changes.iter().map(Change::to_string).collect()
    }

    #[test]
    fn what_is_added_to_a_topic_is_told_once_with_the_new_partitions() {
        let mut layout = layout();
        assert_eq!(layout.changes(&[view("t", 4), view("other", 1)]), []);
        let now = [view("t", 6), view("nobody's", 6)];
        let grown = layout.changes(&now);
        assert_eq!(told(&grown), ["topic `t` grew from 4 to 6 partitions"]);
        assert_eq!(grown[0].added(), Some(("t", 4..6)));
        assert_eq!(layout.changes(&now), []);
    }

    #[test]
    fn a_topic_that_is_deleted_is_told_once_and_so_is_its_return() {
        let mut layout = layout();
        let gone = layout.changes(&[view("t", 0)]);
        assert_eq!(told(&gone), ["topic `t` was deleted"]);
        assert_eq!(gone[0].added(), None);
        assert_eq!(layout.changes(&[view("t", 0)]), []);
        assert_eq!(layout.deleted(GONE), None);
        let back = layout.changes(&[view("t", 5)]);
        let wanted = "topic `t` was created anew with 5 partitions";
        assert_eq!(told(&back), [wanted]);
        assert_eq!(back[0].added(), Some(("t", 4..5)));
    }

    /// A group takes the partitions back then, and with them the topic leaves the statistics.
    #[test]
    fn what_the_statistics_still_have_of_a_topic_after_the_words_is_not_its_return() {
        for then in [&[][..], &[view("t", 0)]] {
            let mut layout = layout();
            assert_eq!(
                layout.deleted("Subscribed topic not available: u: no"),
                None
            );
            assert_eq!(layout.deleted("Broker: Unknown topic or partition"), None);
            let gone = layout.deleted(GONE);
            assert!(matches!(gone, Some(Change::Deleted { .. })), "{gone:?}");
            let untold = TopicView {
                partitions: None,
                ..view("t", 4)
            };
            assert_eq!(layout.changes(&[untold]), []);
            assert_eq!(layout.changes(&[view("t", 4)]), []);
            assert_eq!(layout.changes(then), []);
            let back = layout.changes(&[view("t", 4)]);
            let wanted = "topic `t` was created anew with 4 partitions";
            assert_eq!(told(&back), [wanted]);
            assert!(layout.deleted(GONE).is_some());
        }
    }

    #[test]
    fn fewer_partitions_are_those_of_a_topic_that_was_created_anew() {
        let mut layout = layout();
        let back = layout.changes(&[view("t", 2)]);
        assert_eq!(back[0].added(), None);
        let wanted = "topic `t` was created anew with 2 partitions";
        assert_eq!(told(&back), [wanted]);
    }

    #[test]
    fn a_topic_of_which_no_broker_has_told_yet_is_not_seen() {
        let partition = |number: i32, unknown| {
            let partition = Partition {
                partition: number,
                unknown,
                ..Partition::default()
            };
            (number, partition)
        };
        let mut topic = Topic {
            topic: "t".to_owned(),
            partitions: [
                partition(-1, false),
                partition(0, false),
                partition(1, true),
            ]
            .into(),
            ..Topic::default()
        };
        assert_eq!(TopicView::of(&topic).partitions, None);
        topic.metadata_age = 1;
        assert_eq!(TopicView::of(&topic), view("t", 1));
    }
}
