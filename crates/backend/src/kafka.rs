//! Consumers of Kafka: threads of librdkafka fetch and unpack, a thread of ours reads and counts.
//!
//! A consumer without a group reads every partition from the end that it had before the load began.
//! It therefore consumes exactly the records that are added to the topics. In a group the group assigns
//! partitions: if it revokes one, records that were not committed are delivered again.

mod brokers;
mod client;
mod command_sender;
mod commands;
mod delivery;
mod driver;
mod fetched;
mod headers;
mod layout;
mod line;
mod listener;
mod look;
mod membership;
mod refusal;
mod rights;
mod sample;
mod topic_watch;
mod topics;

use muster_plan::{BackendPlan, Northbound, Sasl};

use crate::consumers::ConsumersError;

pub use client::KAFKA_SETTINGS;
pub use driver::{KafkaConsumer, kafka_loop};
pub use look::look;

/// Checks that this build can consume what a backend needs.
///
/// # Errors
/// [`ConsumersError::NoKafkaTls`], which says what build can.
pub fn kafka_is_built(backend: &BackendPlan) -> Result<(), ConsumersError> {
    let Northbound::Kafka(kafka) = &backend.northbound else {
        return Ok(());
    };
    let what = match kafka.sasl {
        _ if cfg!(feature = "kafka-tls") => return Ok(()),
        _ if backend.endpoint.scheme.is_tls() => "Kafka over TLS",
        Sasl::Plain => return Ok(()),
        sasl @ (Sasl::ScramSha256 | Sasl::ScramSha512) => sasl.mechanism(),
    };
    let endpoint = backend.endpoint.to_string();
    Err(ConsumersError::NoKafkaTls { endpoint, what })
}

#[cfg(test)]
mod tests {
    use muster_scenario::{NoFiles, Overrides, Source, parse};

    use super::*;

    fn backend(keys: &str) -> BackendPlan {
        let text = format!(
            "name: t\nplatform: {{ kind: mqtt, devices: [ 'mqtt://h' ], backend: {{ topics: {{ a: 1 }}, \
             {keys} }} }}\nfleet: [ {{ count: 1, streams: [ {{ rate: 1/s }} ] }} ]\n"
        );
        let name = "t.yaml";
        let source = Source { name, text: &text };
        let plan = parse(source, &Overrides::default(), &NoFiles);
        let mut plan = plan.unwrap_or_else(|problems| panic!("{problems}"));
        plan.backends.remove(0)
    }

    #[test]
    fn what_needs_openssl_names_the_feature_where_it_is_not_built() {
        let plain = "url: 'kafka://h', user: u, password: p";
        assert!(kafka_is_built(&backend(plain)).is_ok());
        let tls = "url: 'kafkas://h'";
        let scram = &format!("{plain}, sasl: scram-sha-512");
        for (keys, what) in [(tls, "Kafka over TLS"), (scram, "SCRAM-SHA-512")] {
            let said = kafka_is_built(&backend(keys)).map_err(|error| error.to_string());
            if cfg!(feature = "kafka-tls") {
                assert_eq!(said, Ok(()));
                continue;
            }
            let said = said.expect_err("it is not built");
            assert!(
                said.contains(what) && said.contains("--features kafka-tls"),
                "{said}"
            );
        }
    }
}
