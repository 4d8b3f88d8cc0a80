//! Drives one Kafka consumer on an event loop on a separate thread.

use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use muster_conduct::{Commander, Diagnostic, Dispatch, FactWriter, Order, RefusalCause};
use muster_model::Micros;
use muster_net::{Loop, LoopConfig, Mailbox};
use muster_plan::KafkaNorthbound;
use muster_platform::{CONTENT_TYPE, PROPERTY_NAME, is_own_media_type};
use rdkafka::config::ClientConfig;
use rdkafka::topic_partition_list::TopicPartitionList;

use super::client::config;
use super::commands::KafkaCommands;
use super::fetched::Record;
use super::headers::headers;
use super::line::{Line, Prepared, Share, Turn};
use super::listener::News;
use super::membership::Membership;
use crate::consumer::Consumer;
use crate::consumers::{ConsumersError, ConsumersSpec};
use crate::intake::Surfaced;
use crate::northbound::{ConsumerLoop, Context, Core, Northbound};

/// Copies taken before orders and timers have their turn again.
const BATCH: usize = 512;
/// Copies that share one reading of the clock, some 20 us of work: by so much the last of them is
/// seen later than is said.
const PER_INSTANT: usize = 16;
/// The beginning of the names of librdkafka's threads, which fetch for a consumer.
const LIBRARY_THREADS: &str = "rdk:";
/// Place of the only consumer among those of its thread.
pub(super) const AT: usize = 0;
/// The wait before topics are looked for again.
const RETRY: Micros = Micros::from_millis(250);

/// One Kafka consumer.
pub struct KafkaConsumer {
    northbound: KafkaNorthbound,
    /// True once it has asked its group for partitions.
    has_asked: bool,
    /// Partitions that its group gave and it has not taken up yet.
    given: Option<TopicPartitionList>,
    /// True if the group has given or taken others since it began to take these up.
    is_stale: bool,
    config: ClientConfig,
    line: Option<Line>,
    preparing: Option<Receiver<Prepared>>,
    membership: Membership,
    sender: Option<KafkaCommands>,
    surfaces: Surfaces,
}

/// Topics on which records surface, as the plan's streams know them.
struct Surfaces {
    /// Prefix of the key, by the topic; they are few.
    before: Vec<(String, String)>,
    /// True if a stamp may be in a header.
    reads_headers: bool,
    text: String,
}

/// The only timer, after which the topics are looked for again.
const PREPARE: u64 = 0;

/// Creates the loop of one Kafka consumer, the first of the spec, for a separate thread. The loop reads
/// orders when its waker is called.
///
/// # Errors
/// [`ConsumersError`] if a payload cannot be compiled, the loop cannot start, or the consumer is of
/// another kind.
pub fn kafka_loop(
    spec: &ConsumersSpec,
    writer: Option<Box<dyn FactWriter>>,
    mailbox: Mailbox<Order, Box<Dispatch>>,
) -> Result<Loop<ConsumerLoop<KafkaConsumer>>, ConsumersError> {
    let plan = spec.consumers.first().ok_or(ConsumersError::NoConsumer)?;
    let backend = &spec.plan.backends[plan.backend.index()];
    let northbound = backend.kafka().ok_or(ConsumersError::NoConsumer)?;
    let issuer = backend.issues_commands.then_some(AT);
    let core = Core::new(spec, writer, issuer, |_| northbound.bootstrap())?;
    let topics = northbound.topics.iter();
    let consumer = KafkaConsumer {
        config: config(backend, northbound, plan, spec.run),
        membership: Membership::new(backend.shared.is_some()),
        surfaces: Surfaces {
            before: topics
                .map(|topic| (topic.name.clone(), topic.surface.clone()))
                .collect(),
            reads_headers: core.reads_properties(plan.backend),
            text: String::new(),
        },
        sender: issuer.map(|_| KafkaCommands::new(spec, plan, northbound)),
        northbound: northbound.clone(),
        has_asked: false,
        given: None,
        is_stale: false,
        line: None,
        preparing: None,
    };
    let consumer_loop = ConsumerLoop::new(spec, consumer, core, mailbox);
    Ok(consumer_loop.start(spec, &LoopConfig::default(), Some(LIBRARY_THREADS))?)
}

impl Northbound for KafkaConsumer {
    fn connect(&mut self, cx: &mut Context<'_>) {
        self.prepare(cx);
    }

    fn pause(&mut self, cx: &mut Context<'_>, at: usize) {
        let (now, consumer) = (cx.io.now(), cx.core.consumer(at));
        self.membership.pause(now, consumer.is_paused());
        let done = self
            .line
            .as_ref()
            .map(|line| line.pause(consumer.is_paused()));
        if let Some(Err(error)) = done {
            consumer.report(Diagnostic::Limit, format_args!("pause or resume: {error}"));
        }
    }

    fn issue(&mut self, cx: &mut Context<'_>) {
        let Some(sender) = &mut self.sender else {
            return;
        };
        sender.issue(cx);
        for refusal in sender.refusals.drain(..) {
            cx.core.consumer(AT).report_refusal(refusal);
        }
    }

    fn next_issue(&mut self, commander: &mut Commander) -> Option<Micros> {
        self.sender.as_ref()?.next_issue(commander)
    }

    /// A group leaves out who asks for nothing, even where nothing comes.
    fn look_after(&mut self, cx: &mut Context<'_>) {
        self.take(cx);
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        if let Some(sender) = &mut self.sender {
            sender.finish(cx);
        }
        self.membership.finish(cx.core.consumer(AT));
    }

    fn timer(&mut self, cx: &mut Context<'_>, _: u64) {
        self.prepare(cx);
    }

    fn woken(&mut self, cx: &mut Context<'_>) {
        self.prepared(cx);
        self.take(cx);
    }
}

impl KafkaConsumer {
    /// Looks for the topics on a separate thread, which wakes this one when it is done.
    fn prepare(&mut self, cx: &mut Context<'_>) {
        let waits = self.has_asked && self.given.is_none();
        if cx.core.is_over() || waits || self.preparing.is_some() {
            return;
        }
        let line = match self.line.take() {
            Some(line) => line,
            None => match Line::open(&self.config, cx.io.waker()) {
                Ok(line) => line,
                Err(refusal) => return self.try_again(cx, &refusal),
            },
        };
        self.line = Some(line);
        let share = self.share(cx);
        self.begin(cx, share);
    }

    /// Takes up what was added to topics meanwhile.
    fn take_further(&mut self, cx: &mut Context<'_>) {
        let is_free = !cx.core.is_over() && self.preparing.is_none();
        let consumer = cx.core.consumer(AT);
        if is_free && let Some(further) = self.membership.take_further(consumer) {
            self.begin(cx, Share::Further(further));
        }
    }

    fn begin(&mut self, cx: &mut Context<'_>, share: Share) {
        let Some(line) = &self.line else {
            return;
        };
        let preparation = line.prepare(&self.config, &self.northbound, share);
        let (prepared, preparing) = sync_channel(1);
        let waker = cx.io.waker();
        let work = move || {
            // The consumer's thread may be gone by then.
            let _ = prepared.send(preparation.carry_out());
            waker.wake();
        };
        let name = "kafka-topics".to_owned();
        match thread::Builder::new().name(name).spawn(work) {
            Ok(_) => self.preparing = Some(preparing),
            Err(error) => {
                cx.core.consumer(AT).limited("start a thread", error);
                Self::prepare_again(cx);
            }
        }
    }

    fn share(&self, cx: &mut Context<'_>) -> Share {
        // A group goes on where it was; before the load it begins at the ends.
        let goes_on = cx.core.consumer(AT).was_up() || cx.core.has_begun(cx.io.now());
        let turn = if goes_on { Turn::Later } else { Turn::First };
        match &self.given {
            Some(given) => Share::Given(given.clone(), turn),
            None if self.membership.has_group() => Share::Asked,
            None => Share::All,
        }
    }

    fn prepared(&mut self, cx: &mut Context<'_>) {
        let done = self.preparing.as_ref().and_then(|it| it.try_recv().ok());
        let Some(done) = done else {
            return;
        };
        self.preparing = None;
        let (has_all, share) = (done.has_all, done.share);
        let consumer = cx.core.consumer(AT);
        self.membership.found(consumer, done.findings);
        if let Some(layout) = done.layout {
            self.membership.watch(layout);
        }
        if let Share::Further(further) = share {
            return match has_all {
                Ok(_) => self.pause_partitions(consumer),
                Err(cause) => self.membership.further_refused(consumer, further, &cause),
            };
        }
        self.has_asked |= has_all.is_ok();
        if std::mem::take(&mut self.is_stale) {
            return self.prepare(cx);
        }
        match has_all {
            Ok(true) => {
                self.given = None;
                self.membership.up(consumer, cx.io.now());
                self.pause_partitions(consumer);
            }
            Ok(false) => {}
            Err(refusal) => return self.try_again(cx, &refusal),
        }
        let sender = self.sender.as_mut();
        if let Some(Err(why)) = sender.map(|sender| sender.open(cx.io.waker())) {
            consumer.report(Diagnostic::Limit, why);
        }
    }

    /// Pauses the partitions that it has taken up, if the consumer is paused.
    fn pause_partitions(&self, consumer: &mut Consumer) {
        let paused = self.line.as_ref().filter(|_| consumer.is_paused());
        if paused.is_some_and(|line| line.pause(true).is_err()) {
            consumer.report(Diagnostic::Limit, "it cannot be paused");
        }
    }

    fn try_again(&mut self, cx: &mut Context<'_>, refusal: &RefusalCause) {
        self.membership.not_up(cx.core.consumer(AT), refusal);
        Self::prepare_again(cx);
    }

    fn prepare_again(cx: &mut Context<'_>) {
        cx.io.set_timer(cx.io.now() + RETRY, PREPARE);
    }

    /// Takes the copies that wait, at most a batch.
    fn take(&mut self, cx: &mut Context<'_>) {
        let Some(line) = &self.line else {
            return;
        };
        let (mut count, mut seen) = (0, cx.io.now());
        let has_more = line.take(BATCH, |record| {
            if count % PER_INSTANT == 0 {
                seen = cx.io.fresh_now();
            }
            count += 1;
            let sender = self.sender.as_ref();
            if sender.is_some_and(|sender| sender.is_reply(record, seen, cx.core)) {
                return;
            }
            let copy = self.surfaces.read(record);
            let is_platforms = || header(record, CONTENT_TYPE).is_some_and(is_own_media_type);
            cx.core.receive(AT, seen, &copy, is_platforms);
        });
        if has_more {
            // The library does not call the waker again for the rest.
            cx.io.waker().wake();
        }
        self.handle_news(cx);
    }

    fn handle_news(&mut self, cx: &mut Context<'_>) {
        let now = cx.io.now();
        self.membership.check(now);
        let Some(line) = &self.line else {
            return;
        };
        let mut is_sampled = false;
        while let Some(news) = line.news() {
            if news.is_revocation() {
                self.given = None;
                self.is_stale = self.preparing.is_some();
            }
            is_sampled |= matches!(news, News::Sampled(_));
            let has_begun = cx.core.has_begun(now);
            let consumer = cx.core.consumer(AT);
            self.membership.handle(consumer, news, now, has_begun);
        }
        if let Some(given) = line.given() {
            self.given = Some(given);
            self.is_stale = self.preparing.is_some();
            self.prepare(cx);
        }
        if is_sampled {
            self.take_further(cx);
        }
    }
}

impl Surfaces {
    /// A record as a copy of a message. Its key is its device, or all that is known of its topic at
    /// the platform.
    fn read<'a>(&'a mut self, record: &'a Record<'_>) -> Surfaced<'a> {
        let key = std::str::from_utf8(record.key()).unwrap_or_default();
        let topic = record.topic();
        let mut known = self.before.iter().filter(|(name, _)| name == topic);
        let before = known.next().map_or("", |(_, before)| before.as_str());
        let topic = match key {
            "" if before.is_empty() => topic,
            key if before.is_empty() => key,
            key => {
                self.text.clear();
                self.text.extend([before, key]);
                &self.text
            }
        };
        Surfaced {
            topic,
            payload: record.payload(),
            property: self
                .reads_headers
                .then(|| header(record, PROPERTY_NAME))
                .flatten(),
        }
    }
}

/// The text of one header.
fn header<'a>(record: &Record<'a>, wanted: &str) -> Option<&'a str> {
    let mut headers = headers(record);
    let (_, text) = headers.find(|(name, _)| *name == wanted)?;
    std::str::from_utf8(text?).ok()
}
