//! Where Hono publishes on Kafka, with the partition counts of the published test.

use crate::kafka::KafkaClass;

/// Hono creates none of them itself; those of notifications have no tenant.
pub(crate) const TOPICS: [KafkaClass; 6] = [
    class(
        "telemetry",
        "hono.telemetry.${tenant}",
        10,
        "telemetry/${tenant}/",
    ),
    class("event", "hono.event.${tenant}", 4, "event/${tenant}/"),
    class(
        "command_response",
        "hono.command_response.${tenant}",
        2,
        "command_response/${tenant}/",
    ),
    not_consumed("command", "hono.command.${tenant}", 3),
    not_consumed("registry-tenant", "hono.notification.registry-tenant", 4),
    not_consumed("registry-device", "hono.notification.registry-device", 4),
];

const fn class(
    name: &'static str,
    topic: &'static str,
    partitions: u32,
    surface: &'static str,
) -> KafkaClass {
    KafkaClass {
        name,
        topic,
        partitions,
        surface,
        is_consumed: true,
    }
}

const fn not_consumed(name: &'static str, topic: &'static str, partitions: u32) -> KafkaClass {
    KafkaClass {
        is_consumed: false,
        ..class(name, topic, partitions, "")
    }
}
