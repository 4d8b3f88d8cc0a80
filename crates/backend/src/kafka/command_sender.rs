//! The producer that takes commands to Kafka.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use muster_conduct::{CommandSender, CommandToken, Untaken};
use muster_model::{Delivery, Micros};
use muster_net::Waker;
use muster_platform::{CommandScratch, Dialect, KafkaCommand, OutboundCommand};
use rdkafka::client::ClientContext;
use rdkafka::config::{ClientConfig, RDKafkaLogLevel};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{DeliveryResult, Header, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer, ProducerContext};

use super::client::UNDER_WAY_MAX;
use super::delivery::delivery;
use super::topics::code_of;

/// Longest wait of the polling thread for a report before it checks for its end.
const LOOK: Duration = Duration::from_millis(100);
/// Name of the thread: like those of the library, with which it is watched.
const THREAD: &str = "rdk:reports";

/// Result of one command, by the broker or the library.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) token: CommandToken,
    /// None if a broker has it.
    pub(crate) failed: Option<RDKafkaErrorCode>,
}

/// Takes commands to Kafka.
pub(crate) struct KafkaSender {
    dialect: Dialect,
    producer: Arc<BaseProducer<DeliveryReports>>,
    reports: Receiver<Report>,
    polling: Option<JoinHandle<()>>,
    is_over: Arc<AtomicBool>,
    under_way: usize,
    /// True if the library has given up for good.
    is_broken: bool,
    /// True if that was reported.
    is_reported: bool,
    /// Results of commands that the library refused at once.
    refused: Vec<Report>,
    /// Codes of commands that were refused without a report; each is reported once.
    untaken: Vec<RDKafkaErrorCode>,
    /// Buffers in which a command is rendered.
    scratch: CommandScratch,
}

/// Receives delivery reports of the producer, on a separate thread.
struct DeliveryReports {
    reports: SyncSender<Report>,
    waker: Waker,
}

impl ClientContext for DeliveryReports {
    fn log(&self, _: RDKafkaLogLevel, _: &str, _: &str) {}

    // The consumer reports errors of the brokers.
    fn error(&self, _: KafkaError, _: &str) {}
}

impl ProducerContext for DeliveryReports {
    type DeliveryOpaque = usize;

    fn delivery(&self, result: &DeliveryResult<'_>, token: usize) {
        let report = Report {
            token: CommandToken(token as u32),
            failed: result.as_ref().err().map(|(error, _)| code_of(error)),
        };
        // There is room for all that are under way.
        let _ = self.reports.try_send(report);
        self.waker.wake();
    }
}

impl KafkaSender {
    /// `waker` is called when a report waits.
    pub(crate) fn open(
        config: &ClientConfig,
        dialect: Dialect,
        waker: Waker,
    ) -> Result<Self, String> {
        let (sender, reports) = sync_channel(UNDER_WAY_MAX);
        let polling = DeliveryReports {
            reports: sender,
            waker,
        };
        let producer: BaseProducer<DeliveryReports> = config
            .create_with_context(polling)
            .map_err(|error| format!("set up the producer of commands: {error}"))?;
        let (producer, is_over) = (Arc::new(producer), Arc::new(AtomicBool::new(false)));
        let (polled, ends) = (Arc::clone(&producer), Arc::clone(&is_over));
        let work = move || {
            while !ends.load(Ordering::Relaxed) {
                polled.poll(LOOK);
            }
        };
        let polling = thread::Builder::new().name(THREAD.to_owned()).spawn(work);
        let polling = polling.map_err(|error| format!("start a thread: {error}"))?;
        Ok(Self {
            dialect,
            producer,
            reports,
            polling: Some(polling),
            is_over,
            under_way: 0,
            is_broken: false,
            is_reported: false,
            refused: Vec::new(),
            untaken: Vec::new(),
            scratch: CommandScratch::default(),
        })
    }

    /// The next report that waits.
    pub(crate) fn report(&mut self) -> Option<Report> {
        let at_once = self.refused.pop();
        let report = at_once.or_else(|| self.reports.try_recv().ok())?;
        self.under_way -= 1;
        self.is_broken |= report.failed.is_some_and(is_given_up);
        Some(report)
    }

    /// Returns why commands were refused since the last call.
    pub(crate) fn untaken(&mut self) -> Option<RDKafkaErrorCode> {
        self.untaken.pop()
    }

    /// Returns why the library has given up, if it has, once.
    pub(crate) fn gave_up(&mut self) -> Option<(RDKafkaErrorCode, String)> {
        if !self.is_broken || std::mem::replace(&mut self.is_reported, true) {
            return None;
        }
        self.producer.client().fatal_error()
    }

    fn produce(
        producer: &BaseProducer<DeliveryReports>,
        token: CommandToken,
        record: &KafkaCommand<'_>,
    ) -> Sent {
        let mut headers = OwnedHeaders::new_with_capacity(record.headers().len());
        for (key, value) in record.headers() {
            let value = Some(*value);
            headers = headers.insert(Header { key, value });
        }
        let sent = BaseRecord::with_opaque_to(record.topic, token.0 as usize)
            .key(record.key)
            .payload(record.payload)
            .headers(headers);
        producer.send(sent).map_err(|(error, _)| code_of(&error))
    }
}

/// Returns true if a command ended because the library has given up for good.
pub(crate) fn is_given_up(code: RDKafkaErrorCode) -> bool {
    let given_up = [
        RDKafkaErrorCode::Fatal,
        RDKafkaErrorCode::PurgeQueue,
        RDKafkaErrorCode::PurgeInflight,
    ];
    given_up.contains(&code)
}

/// Result of handing a record to the library.
type Sent = Result<(), RDKafkaErrorCode>;

impl CommandSender for KafkaSender {
    fn is_connected(&self) -> bool {
        !self.is_broken
    }

    fn has_room(&self) -> bool {
        !self.is_broken && self.under_way < UNDER_WAY_MAX
    }

    fn take(
        &mut self,
        _: Micros,
        token: CommandToken,
        command: &OutboundCommand<'_>,
    ) -> Result<(), Untaken> {
        let kafka = self.dialect.application.kafka.as_ref();
        let kafka = kafka.ok_or(Untaken::Ever)?;
        let record = (kafka.command)(command, &mut self.scratch);
        match Self::produce(&self.producer, token, &record) {
            Ok(()) => {
                self.under_way += 1;
                Ok(())
            }
            Err(RDKafkaErrorCode::QueueFull) => Err(Untaken::Yet),
            Err(RDKafkaErrorCode::Fatal) => {
                self.is_broken = true;
                Err(Untaken::Yet)
            }
            Err(code) if matches!(delivery(code), Delivery::Undeliverable(_)) => {
                let failed = Some(code);
                self.refused.push(Report { token, failed });
                self.under_way += 1;
                Ok(())
            }
            Err(code) => {
                if !self.untaken.contains(&code) {
                    self.untaken.push(code);
                }
                Err(Untaken::Ever)
            }
        }
    }
}

impl Drop for KafkaSender {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(polling) = self.polling.take() {
            let _ = polling.join();
        }
    }
}
