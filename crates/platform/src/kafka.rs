//! On which topics of Kafka a platform publishes.

/// What stands for the tenant in the texts of a [`KafkaClass`].
pub const TENANT: &str = "${tenant}";

/// One kind of topic: a topic for each tenant, where its name holds [`TENANT`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KafkaClass {
    /// Its name in a scenario.
    pub name: &'static str,
    /// The name of the topic at the broker.
    pub topic: &'static str,
    /// Partitions it is created with where a scenario does not say.
    pub partitions: u32,
    /// How a record reads as a topic of the dialect: this, and behind it the record's key.
    pub surface: &'static str,
    /// Whether its records are what a business application consumes.
    pub is_consumed: bool,
}
