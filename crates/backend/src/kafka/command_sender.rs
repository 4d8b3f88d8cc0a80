//! The consumer that issues commands and receives the replies, over Kafka.

use std::collections::HashSet;

use muster_conduct::{Commander, Desk, Tape};
use muster_model::{Delivery, Micros};
use muster_net::Waker;
use muster_plan::KafkaNorthbound;
use muster_platform::{Dialect, KafkaRecords};
use rdkafka::config::ClientConfig;
use rdkafka::error::RDKafkaErrorCode;

use super::client::producer_config;
use super::courier::{KafkaCourier, is_given_up};
use super::delivery::delivery;
use super::fetched::Record;
use super::headers::headers;
use super::refusal::Refusal;
use crate::consumers::{ConsumersSpec, Seat};
use crate::northbound::{Context, Core};

/// Issues the commands of the run.
pub(crate) struct CommandSender {
    config: ClientConfig,
    dialect: Dialect,
    /// None before the consumer has topics.
    courier: Option<KafkaCourier>,
    /// Topics of replies.
    replies: HashSet<String>,
    /// Errors that were told.
    told: Vec<RDKafkaErrorCode>,
    /// Refusals that are to be told.
    pub(crate) refusals: Vec<Refusal>,
}

impl CommandSender {
    /// The sender of a consumer whose backend issues commands.
    pub(crate) fn new(spec: &ConsumersSpec, seat: &Seat, kafka: &KafkaNorthbound) -> Self {
        let backend = &spec.plan.backends[seat.backend.index()];
        let topics = kafka.topics.iter();
        let replies = topics.filter(|topic| topic.records == KafkaRecords::Replies);
        Self {
            config: producer_config(backend, kafka, seat, spec.run),
            dialect: spec.plan.platform.dialect(),
            courier: None,
            replies: replies.map(|topic| topic.name.clone()).collect(),
            told: Vec::new(),
            refusals: Vec::new(),
        }
    }

    /// The consumer has what it is to consume, so that commands may go. `waker` is called when a report of one
    /// waits.
    ///
    /// # Errors
    /// What this machine, or the library, does not have.
    pub(crate) fn open(&mut self, waker: Waker) -> Result<(), String> {
        if self.courier.is_none() {
            self.courier = Some(KafkaCourier::open(&self.config, self.dialect, waker)?);
        }
        Ok(())
    }

    /// Issues the commands that are due, and receives reports on those before.
    pub(crate) fn issue(&mut self, cx: &mut Context<'_>) {
        let now = cx.io.now();
        cx.core.with_commander(|commander, desk| {
            self.hear(now, commander, desk);
            commander.issue(now, &mut self.courier, desk);
        });
    }

    fn hear(&mut self, now: Micros, commander: &mut Commander, desk: &mut Desk<'_, Tape>) {
        while let Some(report) = self.courier.as_mut().and_then(KafkaCourier::report) {
            let delivery = report.failed.map_or(Delivery::Delivered, delivery);
            // Why the library has given up is told below, once.
            let failed = report.failed.filter(|code| !is_given_up(*code));
            if let Some(code) = failed.filter(|code| self.is_new(*code)) {
                self.refusals.push(match delivery {
                    Delivery::Undeliverable(reason) => Refusal::of_command(code, reason),
                    Delivery::Delivered
                    | Delivery::Expired
                    | Delivery::Unknown
                    | Delivery::Withheld(_) => Refusal::of_unknown(code),
                });
            }
            commander.learn(report.token, delivery, now, desk);
        }
        while let Some(code) = self.courier.as_mut().and_then(KafkaCourier::untaken) {
            if self.is_new(code) {
                self.refusals.push(Refusal::of_untaken(code));
            }
        }
        let courier = self.courier.as_mut();
        if let Some((code, reason)) = courier.and_then(KafkaCourier::gave_up) {
            self.refusals.push(Refusal::of_producer(code, &reason));
        }
    }

    /// Whether an error was not told yet, as it is now.
    fn is_new(&mut self, code: RDKafkaErrorCode) -> bool {
        let is_new = !self.told.contains(&code);
        self.told.extend(is_new.then_some(code));
        is_new
    }

    /// When the next command may be issued; none while none can.
    pub(crate) fn next_issue(&self, commander: &mut Commander) -> Option<Micros> {
        commander.next_issue(Some(&self.courier))
    }

    /// Passes a reply or a notice to the commander; false for every other record.
    pub(crate) fn is_reply(&self, record: &Record<'_>, seen: Micros, core: &mut Core) -> bool {
        if !self.replies.contains(record.topic()) {
            return false;
        }
        let headers = headers(record).map(|(name, value)| (name, value.unwrap_or_default()));
        let payload = record.payload();
        core.with_commander(|commander, desk| commander.returned(headers, payload, seen, desk))
            .unwrap_or(false)
    }

    /// Ends what is known of the commands: how many notices changed nothing.
    pub(crate) fn finish(&mut self, cx: &mut Context<'_>) -> u64 {
        let now = cx.io.now();
        let idle = cx.core.with_commander(|commander, desk| {
            self.hear(now, commander, desk);
            commander.finish(&self.courier, now, desk);
            commander.idle_notices()
        });
        self.courier = None;
        idle.unwrap_or(0)
    }
}
