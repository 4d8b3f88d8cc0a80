//! On which topics of Kafka a platform publishes, and how it takes commands there.

use serde::{Deserialize, Serialize};

use crate::command::{CommandScratch, OutboundCommand, Returned};

/// Placeholder of the tenant in the texts of a [`KafkaClass`].
pub const TENANT: &str = "${tenant}";

/// A platform's use of Kafka.
#[derive(Debug)]
pub struct Kafka {
    /// On which topics it publishes.
    pub topics: &'static [KafkaClass],
    /// Renders a command as a record.
    pub command: for<'a> fn(&OutboundCommand<'a>, &'a mut CommandScratch) -> KafkaCommand<'a>,
    /// Reads a record of a topic of [`KafkaRecords::Replies`] from its headers and its value; none if it is
    /// another application's.
    pub returned: for<'a> fn(Headers<'_, 'a>, &[u8]) -> Option<Returned>,
}

/// The headers of a record, each with its name.
pub type Headers<'i, 'a> = &'i mut dyn Iterator<Item = (&'a str, &'a [u8])>;

/// One kind of topic: a topic for each tenant, where its name holds [`TENANT`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KafkaClass {
    /// Its name in a scenario.
    pub name: &'static str,
    /// The name of the topic at the broker.
    pub topic: &'static str,
    /// Partitions it is created with where a scenario does not say.
    pub partitions: u32,
    /// Prefix that turns a record into a topic of the dialect; the record's key follows it.
    pub surface: &'static str,
    /// Kind of its records.
    pub records: KafkaRecords,
}

/// Kind of a topic's records for a business application.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum KafkaRecords {
    /// Messages of devices, which it consumes.
    Messages,
    /// Replies to its commands, and what the platform says of their delivery, which it consumes.
    Replies,
    /// Nothing that it consumes; the topic only has to be there.
    Others,
}

impl KafkaRecords {
    /// Returns true if a business application consumes them.
    pub const fn are_consumed(self) -> bool {
        match self {
            Self::Messages | Self::Replies => true,
            Self::Others => false,
        }
    }
}

/// A command as a business application produces it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KafkaCommand<'a> {
    /// The topic.
    pub topic: &'a str,
    /// The device: records of one device keep their order.
    pub key: &'a str,
    /// The value.
    pub payload: &'a [u8],
    headers: [(&'static str, &'a str); HEADERS_MAX],
    count: usize,
}

/// The most headers of a command.
const HEADERS_MAX: usize = 5;

impl<'a> KafkaCommand<'a> {
    /// A command without headers.
    pub(crate) const fn new(topic: &'a str, key: &'a str, payload: &'a [u8]) -> Self {
        Self {
            topic,
            key,
            payload,
            headers: [("", ""); HEADERS_MAX],
            count: 0,
        }
    }

    /// With one header more; beyond the bound it stays as it is.
    pub(crate) fn with(mut self, name: &'static str, value: &'a str) -> Self {
        if let Some(place) = self.headers.get_mut(self.count) {
            *place = (name, value);
            self.count += 1;
        }
        self
    }

    /// Its headers, in order. Their values are UTF-8 text.
    pub fn headers(&self) -> &[(&'static str, &'a str)] {
        &self.headers[..self.count]
    }
}
