//! The consumer that issues commands and hears the replies, over Kafka.

use std::collections::HashSet;

use muster_conduct::{Commander, Desk, Tape};
use muster_model::{Delivery, MessageId, Micros};
use muster_net::Waker;
use muster_platform::{Dialect, KafkaRecords};
use muster_scenario::KafkaNorthbound;
use rdkafka::config::ClientConfig;
use rdkafka::error::RDKafkaErrorCode;

use super::client::producer_config;
use super::courier::{KafkaCourier, is_given_up};
use super::delivery::delivery;
use super::fetched::Record;
use super::headers::headers;
use super::refusal::Refusal;
use crate::consumers::{ConsumersSpec, Seat};

/// Issues the commands of the run.
pub(crate) struct Commanding {
    commander: Commander,
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

impl Commanding {
    /// That of a consumer whose backend issues commands.
    pub(crate) fn of(
        spec: &ConsumersSpec,
        seat: &Seat,
        kafka: &KafkaNorthbound,
        wall_ms_at_t0: u64,
    ) -> Option<Self> {
        let plan = &spec.plan;
        let backend = &plan.backends[seat.backend.index()];
        let topics = kafka.topics.iter();
        let replies = topics.filter(|topic| topic.records == KafkaRecords::Replies);
        let commander = || Commander::new(plan, &spec.schedules, spec.run, wall_ms_at_t0);
        Some(Self {
            commander: backend.issues_commands.then(commander)??,
            config: producer_config(backend, kafka, seat, spec.run),
            dialect: plan.platform.dialect(),
            courier: None,
            replies: replies.map(|topic| topic.name.clone()).collect(),
            told: Vec::new(),
            refusals: Vec::new(),
        })
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

    pub(crate) fn start(&mut self, origin: Micros) {
        self.commander.start(origin);
    }

    pub(crate) fn end_due(&mut self, at: Micros) {
        self.commander.end_due(at);
    }

    /// Issues what is due, and hears what became of what went before.
    pub(crate) fn turn(&mut self, now: Micros, desk: &mut Desk<'_, Tape>) {
        self.hear(now, desk);
        self.commander.issue(now, &mut self.courier, desk);
    }

    /// What needs no instant of its own.
    pub(crate) fn look_back(&mut self, now: Micros, desk: &mut Desk<'_, Tape>) {
        self.commander.expire(now, desk);
    }

    fn hear(&mut self, now: Micros, desk: &mut Desk<'_, Tape>) {
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
            self.commander.learn(report.token, delivery, now, desk);
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
    pub(crate) fn next(&mut self) -> Option<Micros> {
        self.commander.next_issue(Some(&self.courier))
    }

    /// Commands of which not all is known.
    pub(crate) fn open_count(&self) -> u64 {
        self.commander.open()
    }

    /// A message of a device came, which may ask for a command.
    pub(crate) fn asked(&mut self, id: &MessageId, now: Micros, desk: &mut Desk<'_, Tape>) {
        self.commander.asked(id, now, desk);
    }

    /// Whether a record is a reply or a notice, which is then told.
    pub(crate) fn returned(
        &mut self,
        record: &Record<'_>,
        seen: Micros,
        desk: &mut Desk<'_, Tape>,
    ) -> bool {
        if !self.replies.contains(record.topic()) {
            return false;
        }
        let headers = headers(record).map(|(name, value)| (name, value.unwrap_or_default()));
        let payload = record.payload();
        self.commander.returned(headers, payload, seen, desk)
    }

    /// The run is over: how many notices changed nothing.
    pub(crate) fn finish(&mut self, now: Micros, desk: &mut Desk<'_, Tape>) -> u64 {
        self.hear(now, desk);
        self.commander.finish(&self.courier, now, desk);
        self.courier = None;
        self.commander.idle_notices()
    }
}
