//! The consumers of one thread, as an agent asks for them.

use std::net::SocketAddr;
use std::sync::Arc;

use muster_conduct::LostCopy;
use muster_load::{Cursor, PayloadError, StreamSchedule};
use muster_measure::RecorderPlan;
use muster_model::{BackendId, ConsumerId, Micros, RunId};
use muster_net::{Clock, LoopError};
use muster_plan::Plan;

/// Inputs of a process's consumers.
#[derive(Debug, Clone)]
pub struct ConsumersSpec {
    /// The plan of the run.
    pub plan: Arc<Plan>,
    /// Plan of the recorder.
    pub recorder: RecorderPlan,
    /// The schedules of its streams.
    pub schedules: Vec<Arc<StreamSchedule>>,
    /// Id of the run.
    pub run: RunId,
    /// The clock of the run.
    pub clock: Clock,
    /// The consumers that this process carries.
    pub consumers: Vec<ConsumerPlan>,
    /// The processes of an embedded gateway, whose CPU wait counts as our own.
    pub gateways: Vec<u32>,
    /// Point at which we lose one copy ourselves, which only tests set.
    pub lost_copy: Option<LostCopy>,
}

impl ConsumersSpec {
    /// Returns the due instant of the first message of a device, from the begin of the run.
    pub(crate) fn first_due(&self) -> Option<Micros> {
        let uplinks = self.plan.streams().filter(|(_, it)| it.is_uplink());
        let first = uplinks.filter_map(|(_, stream)| {
            let schedule = &self.schedules[stream.id.index()];
            Cursor::new(Arc::clone(schedule), schedule.devices()).peek()
        });
        first.map(|first| first.due).min()
    }
}

/// One consumer: its backend, its number within the run, and its address.
#[derive(Debug, Clone, Copy)]
pub struct ConsumerPlan {
    /// Backend that counts its arrivals.
    pub backend: BackendId,
    /// Its number within the run.
    pub consumer: ConsumerId,
    /// Its address.
    pub target: SocketAddr,
}

/// Result of looking at a cluster of Kafka.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Look {
    /// Answers.
    Found {
        /// A line for each topic.
        topics: Vec<String>,
        /// Differences of the topics from the scenario.
        warnings: Vec<String>,
    },
    /// Refuses, for this reason.
    Refused(String),
    /// Does not answer, for this reason.
    Silent(String),
}

/// Reason that consumers cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum ConsumersError {
    /// A payload that the scenario's checks let through.
    #[error("cannot compile a payload: {0}")]
    Payload(#[from] PayloadError),
    /// No consumer of this kind was asked for.
    #[error("no consumer is of this kind")]
    NoConsumer,
    /// This build has no Kafka.
    #[error(
        "consume from {0}: this muster was built without Kafka; build it with `cargo build \
         --release --features kafka`, which needs a C compiler and make"
    )]
    NoKafka(String),
    /// This build has no OpenSSL for Kafka.
    #[error(
        "consume from {endpoint}: this muster was built without {what}; build it with `cargo build \
         --release --features kafka-tls`, which needs the headers of OpenSSL (libssl-dev)"
    )]
    NoKafkaTls {
        /// The address.
        endpoint: String,
        /// Feature that needs it.
        what: &'static str,
    },
    /// The event loop cannot start.
    #[error(transparent)]
    Loop(#[from] LoopError),
}

/// Returns the client id of a consumer.
pub(crate) fn client_id(run: RunId, consumer: &ConsumerPlan) -> String {
    let (backend, number) = (consumer.backend.0, consumer.consumer.0);
    format!("muster-{:08x}-b{backend}-{number}", run.0)
}
