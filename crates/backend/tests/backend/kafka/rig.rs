//! The mock cluster, and a consumer of it.

use std::ops::Range;

use muster_backend::kafka_loop;
use muster_conduct::Diagnostic;
use muster_plan::Plan;
use rdkafka::config::ClientConfig;
use rdkafka::mocking::MockCluster;
use rdkafka::producer::{BaseProducer, BaseRecord, DefaultProducerContext, Producer};

use crate::rig::{PATIENCE, Rig, Sent, parsed, said, sent};

pub(crate) const TOPIC: &str = "readings";
pub(crate) const PARTITIONS: i32 = 4;

pub(crate) fn plan(servers: &str, keys: &str) -> Plan {
    plan_of(servers, keys, "payload: { size: 64 }")
}

/// With further keys of the stream.
pub(crate) fn plan_of(servers: &str, keys: &str, stream: &str) -> Plan {
    let text = format!(
        "name: kafka
platform:
  kind: mqtt
  devices: [ 'mqtt://127.0.0.1:1883' ]
  backend: {{ url: 'kafka://{servers}', topics: {{ {TOPIC}: {PARTITIONS} }}, {keys} }}
fleet: [ {{ name: meters, count: 10, client: {{ version: 5 }}, streams: [ {{ name: r, rate: 10/s, {stream} }} ] }} ]
phases: {{ measure: 60s }}
"
    );
    parsed(&text)
}

/// A cluster of one pretended broker, and who publishes there.
pub(crate) struct Mock {
    pub(crate) cluster: MockCluster<'static, DefaultProducerContext>,
    pub(crate) producer: BaseProducer,
}

impl Mock {
    pub(crate) fn start() -> Self {
        let cluster = MockCluster::new(1).unwrap();
        cluster.create_topic(TOPIC, PARTITIONS, 1).unwrap();
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", cluster.bootstrap_servers());
        let producer = config.create().unwrap();
        Self { cluster, producer }
    }

    pub(crate) fn servers(&self) -> String {
        self.cluster.bootstrap_servers()
    }

    pub(crate) fn publish(&self, key: &str, payload: &[u8]) {
        self.send(BaseRecord::to(TOPIC).key(key).payload(payload));
    }

    pub(crate) fn send(&self, record: BaseRecord<'_, str, [u8]>) {
        self.producer
            .send(record)
            .map_err(|(error, _)| error)
            .unwrap();
        self.producer.flush(PATIENCE).unwrap();
    }

    /// Publishes what a device of the plan says.
    pub(crate) fn publish_message(&self, plan: &Plan, seq: u32) {
        self.publish_messages(plan, seq..seq + 1);
    }

    /// Publishes what devices of the plan say, at once.
    pub(crate) fn publish_messages(&self, plan: &Plan, seqs: Range<u32>) {
        for seq in seqs {
            let Sent { scratch, .. } = sent(plan, seq);
            let record = BaseRecord::to(TOPIC).key(scratch.topic());
            let published = self.producer.send(record.payload(&scratch.payload));
            published.map_err(|(error, _)| error).unwrap();
        }
        self.producer.flush(PATIENCE).unwrap();
    }
}

pub(crate) fn start(plan: &Plan) -> Rig {
    // The consumer takes its brokers from the backend's address.
    let target = ([127, 0, 0, 1], 9092).into();
    Rig::start(plan, target, |spec, mailbox| {
        kafka_loop(spec, None, mailbox)
    })
}

/// A consumer that is up, and whose run has begun.
pub(crate) fn up(plan: &Plan) -> Rig {
    start(plan).begun()
}

/// Returns true if a consumer was refused or away; its lag is always reported.
pub(crate) fn disturbed(diagnostics: &[Diagnostic]) -> bool {
    let what = [
        "ConsumerAway",
        "ConsumerLost",
        "ConsumerBack",
        "ConsumerRefused",
    ];
    what.iter().any(|what| said(diagnostics, what))
}
