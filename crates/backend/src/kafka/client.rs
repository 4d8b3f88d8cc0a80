//! Configuration of a consumer, and of the producer of commands, for librdkafka.

use muster_model::{Micros, RunId};
use muster_plan::{BackendPlan, KafkaNorthbound, Sasl};
use rdkafka::config::{ClientConfig, RDKafkaLogLevel};

use crate::consumers::{ConsumerPlan, client_id};

/// Settings that do not depend on the scenario. Time-outs are shorter than the library's own, since
/// what a consumer misses is missed by the run.
const ALWAYS: [(&str, &str); 6] = [
    ("allow.auto.create.topics", "false"),
    ("reconnect.backoff.ms", "100"),
    ("reconnect.backoff.max.ms", "2000"),
    ("socket.connection.setup.timeout.ms", "10000"),
    ("socket.timeout.ms", "10000"),
    ("socket.keepalive.enable", "true"),
];
/// Of a consumer; what is fetched ahead stays within the library's bound of 64 MiB.
const CONSUMING: [(&str, &str); 7] = [
    // Partitions that are added are found by one small request at this interval, and a deleted topic at the latest.
    ("topic.metadata.refresh.interval.ms", "2000"),
    // So long a topic may be unknown to some broker after it was created, and is not deleted.
    ("topic.metadata.propagation.max.ms", "5000"),
    // What was known of topics stays known while brokers stand still: the library's own default, which would be
    // thrice the interval.
    ("metadata.max.age.ms", "900000"),
    // Where the broker has deleted what was to come next, all that is left is taken.
    ("auto.offset.reset", "earliest"),
    ("auto.commit.interval.ms", "1000"),
    ("statistics.interval.ms", "1000"),
    ("session.timeout.ms", "10000"),
];
/// Time after which a group gives a lost consumer's partitions to another, or to the same by a new
/// name: `session.timeout.ms`.
pub(crate) const GROUP_WAITS: Micros = Micros::from_secs(10);
/// The settings of librdkafka that every consumer has, whatever the scenario and whether it has a group.
pub const KAFKA_SETTINGS: [&[(&str, &str)]; 2] = [&ALWAYS, &CONSUMING];
/// Of the producer of commands.
const PRODUCING: [(&str, &str); 4] = [
    // What is sent again after a connection has ended is written once, and in its place.
    ("enable.idempotence", "true"),
    // The partition that Java's clients choose, of which Hono is one.
    ("partitioner", "murmur2_random"),
    // A command goes when it is due.
    ("linger.ms", "0"),
    ("message.timeout.ms", "30000"),
];
/// Commands that a broker has not acknowledged, at the most.
pub(crate) const UNDER_WAY_MAX: usize = 1_000;

/// Returns the settings of one consumer. If the scenario names no group, the consumer is the only
/// member of a group, to which it commits nothing.
pub(crate) fn config(
    backend: &BackendPlan,
    kafka: &KafkaNorthbound,
    consumer: &ConsumerPlan,
    run: RunId,
) -> ClientConfig {
    let name = client_id(run, consumer);
    let mut config = connecting(backend, kafka, &name);
    for (key, value) in CONSUMING {
        config.set(key, value);
    }
    config.set("group.id", backend.shared.as_ref().unwrap_or(&name));
    config.set("enable.auto.commit", backend.shared.is_some().to_string());
    config
}

/// Returns the settings of the producer of commands.
pub(crate) fn producer_config(
    backend: &BackendPlan,
    kafka: &KafkaNorthbound,
    consumer: &ConsumerPlan,
    run: RunId,
) -> ClientConfig {
    let name = client_id(run, consumer);
    let mut config = connecting(backend, kafka, &format!("{name}-commands"));
    for (key, value) in PRODUCING {
        config.set(key, value);
    }
    config.set("queue.buffering.max.messages", UNDER_WAY_MAX.to_string());
    config
}

/// Returns the common settings.
fn connecting(backend: &BackendPlan, kafka: &KafkaNorthbound, name: &str) -> ClientConfig {
    let mut config = ClientConfig::new();
    // What it has to say comes as errors and statistics.
    config.set_log_level(RDKafkaLogLevel::Emerg);
    for (key, value) in ALWAYS {
        config.set(key, value);
    }
    config.set("bootstrap.servers", kafka.bootstrap());
    config.set("client.id", name);
    secure(backend, kafka.sasl, &mut config);
    config
}

fn secure(backend: &BackendPlan, sasl: Sasl, config: &mut ClientConfig) {
    let is_tls = backend.endpoint.scheme.is_tls();
    let login = backend.user.as_ref().zip(backend.password.as_ref());
    let protocol = match (is_tls, login.is_some()) {
        (false, false) => "plaintext",
        (false, true) => "sasl_plaintext",
        (true, false) => "ssl",
        (true, true) => "sasl_ssl",
    };
    config.set("security.protocol", protocol);
    if let Some((user, password)) = login {
        config.set("sasl.mechanism", sasl.mechanism());
        config.set("sasl.username", user.expose());
        config.set("sasl.password", String::from_utf8_lossy(password.expose()));
    }
    if !is_tls {
        return;
    }
    let tls = &backend.tls;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if let Some(ca) = &tls.ca {
        config.set("ssl.ca.pem", text(&ca.text));
    }
    if let Some((cert, key)) = &tls.own {
        config.set("ssl.certificate.pem", text(&cert.text));
        config.set("ssl.key.pem", text(&key.expose().text));
    }
    if tls.insecure {
        config.set("enable.ssl.certificate.verification", "false");
        config.set("ssl.endpoint.identification.algorithm", "none");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_settings_of_every_consumer_have_how_long_its_group_waits() {
        let mut all = KAFKA_SETTINGS.into_iter().flatten();
        let told = all.find(|(key, _)| *key == "session.timeout.ms");
        let told = told.and_then(|(_, ms)| ms.parse().ok());
        assert_eq!(told.map(Micros::from_millis), Some(GROUP_WAITS));
    }
}
