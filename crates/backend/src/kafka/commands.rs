//! The consumer that issues commands and receives the replies, over Kafka.

use std::collections::HashSet;

use muster_conduct::{CommandSink, Commander, RecordingSink, RefusalCause};
use muster_model::{Delivery, Micros};
use muster_net::Waker;
use muster_plan::KafkaNorthbound;
use muster_platform::{Dialect, KafkaRecords};
use rdkafka::config::ClientConfig;
use rdkafka::error::RDKafkaErrorCode;

use super::client::producer_config;
use super::command_sender::{KafkaSender, is_given_up};
use super::delivery::delivery;
use super::driver::AT;
use super::fetched::Record;
use super::headers::headers;
use super::refusal;
use crate::consumers::{ConsumerPlan, ConsumersSpec};
use crate::northbound::{Context, Core};

/// Issues the commands of the run.
pub(crate) struct KafkaCommands {
    config: ClientConfig,
    dialect: Dialect,
    /// None before the consumer has topics.
    sender: Option<KafkaSender>,
    /// Topics of replies.
    replies: HashSet<String>,
    /// Errors that were reported.
    reported: Vec<RDKafkaErrorCode>,
    /// Refusals that the loop reports next.
    pub(crate) refusals: Vec<RefusalCause>,
}

impl KafkaCommands {
    /// The sender of a consumer whose backend issues commands.
    pub(crate) fn new(
        spec: &ConsumersSpec,
        consumer: &ConsumerPlan,
        kafka: &KafkaNorthbound,
    ) -> Self {
        let backend = &spec.plan.backends[consumer.backend.index()];
        let topics = kafka.topics.iter();
        let replies = topics.filter(|topic| topic.records == KafkaRecords::Replies);
        Self {
            config: producer_config(backend, kafka, consumer, spec.run),
            dialect: spec.plan.platform.dialect(),
            sender: None,
            replies: replies.map(|topic| topic.name.clone()).collect(),
            reported: Vec::new(),
            refusals: Vec::new(),
        }
    }

    /// The consumer has what it is to consume, so that commands may go. `waker` is called when a report of one
    /// waits.
    ///
    /// # Errors
    /// Reason for which this machine, or the library, could not set up the sender.
    pub(crate) fn open(&mut self, waker: Waker) -> Result<(), String> {
        if self.sender.is_none() {
            self.sender = Some(KafkaSender::open(&self.config, self.dialect, waker)?);
        }
        Ok(())
    }

    /// Issues the commands that are due, and receives reports on those before.
    pub(crate) fn issue(&mut self, cx: &mut Context<'_>) {
        let now = cx.io.now();
        cx.core.with_commander(AT, |commander, sink| {
            self.handle_reports(now, commander, sink);
            commander.issue(now, &mut self.sender, sink);
        });
    }

    fn handle_reports(
        &mut self,
        now: Micros,
        commander: &mut Commander,
        sink: &mut CommandSink<'_, RecordingSink>,
    ) {
        while let Some(report) = self.sender.as_mut().and_then(KafkaSender::report) {
            let delivery = report.failed.map_or(Delivery::Delivered, delivery);
            // Why the library has given up is told below, once.
            let failed = report.failed.filter(|code| !is_given_up(*code));
            if let Some(code) = failed.filter(|code| self.is_new(*code)) {
                self.refusals.push(match delivery {
                    Delivery::Undeliverable(reason) => refusal::of_command(code, reason),
                    Delivery::Delivered
                    | Delivery::Expired
                    | Delivery::Unknown
                    | Delivery::Withheld(_) => refusal::of_unknown(code),
                });
            }
            commander.learn(report.token, delivery, now, sink);
        }
        while let Some(code) = self.sender.as_mut().and_then(KafkaSender::untaken) {
            if self.is_new(code) {
                self.refusals.push(refusal::of_untaken(code));
            }
        }
        let sender = self.sender.as_mut();
        if let Some((code, reason)) = sender.and_then(KafkaSender::gave_up) {
            self.refusals.push(refusal::of_producer(code, &reason));
        }
    }

    /// Returns true if an error was not reported yet, as it is now.
    fn is_new(&mut self, code: RDKafkaErrorCode) -> bool {
        let is_new = !self.reported.contains(&code);
        self.reported.extend(is_new.then_some(code));
        is_new
    }

    /// Returns when the next command may be issued; none while none can.
    pub(crate) fn next_issue(&self, commander: &mut Commander) -> Option<Micros> {
        commander.next_issue(Some(&self.sender))
    }

    /// Passes a reply or a notice to the commander; false for every other record.
    pub(crate) fn is_reply(&self, record: &Record<'_>, seen: Micros, core: &mut Core) -> bool {
        if !self.replies.contains(record.topic()) {
            return false;
        }
        let headers = headers(record).map(|(name, value)| (name, value.unwrap_or_default()));
        let payload = record.payload();
        core.with_commander(AT, |commander, sink| {
            commander.returned(headers, payload, seen, sink)
        })
        .unwrap_or(false)
    }

    /// Ends every command at the end of the run.
    pub(crate) fn finish(&mut self, cx: &mut Context<'_>) {
        let now = cx.io.now();
        cx.core.with_commander(AT, |commander, sink| {
            self.handle_reports(now, commander, sink);
        });
        cx.core.finish_commands(AT, &self.sender, now);
        self.sender = None;
    }
}
