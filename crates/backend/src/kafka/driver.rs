//! Drives one Kafka consumer on an event loop of its own thread.

use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use muster_conduct::{DISPATCH_EVERY, Dispatch, Order, Progress, Scribe, Trouble};
use muster_model::Micros;
use muster_net::{Closed, Handler, Io, Key, ListenerId, Loop, LoopConfig, Mailbox, WaitsOf};
use muster_platform::{CONTENT_TYPE, PROPERTY_NAME, is_own_media_type};
use muster_scenario::{KafkaNorthbound, Pause};
use rdkafka::config::ClientConfig;
use rdkafka::topic_partition_list::TopicPartitionList;

use super::client::config;
use super::commanding::Commanding;
use super::fetched::Record;
use super::headers::headers;
use super::line::{Line, Prepared, Share, Turn};
use super::listener::News;
use super::refusal::Refusal;
use super::standing::Standing;
use crate::consumers::{ConsumersError, ConsumersSpec, Seat};
use crate::intake::{Intake, Surfaced};

/// Copies taken before orders and timers have their turn again.
const BATCH: usize = 512;
/// Copies that share one reading of the clock, some 20 us of work: by so much the last of them is
/// seen later than is said.
const PER_INSTANT: usize = 16;
/// The beginning of the names of librdkafka's threads, which fetch for a consumer.
const LIBRARY_THREADS: &str = "rdk:";
/// The wait before topics are looked for again.
const RETRY: Micros = Micros::from_millis(250);

/// One Kafka consumer.
pub struct KafkaDriver {
    seat: Seat,
    northbound: KafkaNorthbound,
    pause: Vec<Pause>,
    has_group: bool,
    /// Whether it has asked its group for partitions.
    has_asked: bool,
    /// What its group gave it and it has not taken up yet.
    given: Option<TopicPartitionList>,
    /// Whether the group has given or taken others since it began to take these up.
    is_stale: bool,
    config: ClientConfig,
    line: Option<Line>,
    preparing: Option<Receiver<Prepared>>,
    standing: Standing,
    intake: Intake,
    commanding: Option<Commanding>,
    surfaces: Surfaces,
    mailbox: Mailbox<Order, Box<Dispatch>>,
    next_dispatch: Micros,
    is_over: bool,
}

/// Where records surface, as the plan's streams know it.
struct Surfaces {
    /// What stands before the key, by the topic; they are few.
    before: Vec<(String, String)>,
    /// Whether a stamp may be in a header.
    reads_headers: bool,
    text: String,
}

/// What a timer of the loop is for.
#[derive(Debug, Clone, Copy)]
enum Alarm {
    Prepare,
    Pause,
    Resume,
}

impl Alarm {
    fn of(token: u64) -> Self {
        match token {
            0 => Self::Prepare,
            1 => Self::Pause,
            _ => Self::Resume,
        }
    }
}

/// One consumer of Kafka, the first of the spec's seats, to be run on a thread of its own. Orders
/// are read when the loop's waker is called.
///
/// # Errors
/// [`ConsumersError`] if a payload cannot be compiled, the loop cannot start, or the seat is of
/// another kind.
pub fn kafka_loop(
    spec: &ConsumersSpec,
    scribe: Option<Box<dyn Scribe>>,
    mailbox: Mailbox<Order, Box<Dispatch>>,
) -> Result<Loop<KafkaDriver>, ConsumersError> {
    let seat = *spec.seats.first().ok_or(ConsumersError::NoSeat)?;
    let backend = &spec.plan.backends[seat.backend.index()];
    let northbound = backend.kafka().ok_or(ConsumersError::NoSeat)?;
    let intake = Intake::new(spec, scribe)?;
    let driver = KafkaDriver {
        config: config(backend, northbound, &seat, spec.run),
        standing: Standing::new(
            format!(
                "consumer {} of backend `{}` at {}",
                seat.consumer.0,
                backend.name,
                northbound.bootstrap()
            ),
            backend.shared.is_some(),
        ),
        surfaces: Surfaces {
            before: northbound
                .topics
                .iter()
                .map(|topic| (topic.name.clone(), topic.surface.clone()))
                .collect(),
            reads_headers: intake.reads_properties(seat.backend),
            text: String::new(),
        },
        commanding: Commanding::of(spec, &seat, northbound, spec.clock.wall_ms_at_t0()),
        seat,
        northbound: northbound.clone(),
        pause: backend.pause.clone(),
        has_group: backend.shared.is_some(),
        has_asked: false,
        given: None,
        is_stale: false,
        line: None,
        preparing: None,
        intake,
        mailbox,
        next_dispatch: Micros::ZERO,
        is_over: false,
    };
    let mut event_loop = Loop::new(spec.clock, &LoopConfig::default(), driver)?;
    event_loop.parts().1.watch_cpu_wait(WaitsOf {
        gateways: spec.gateways.clone(),
        library: Some(LIBRARY_THREADS),
    });
    Ok(event_loop)
}

impl Handler for KafkaDriver {
    fn turn_begins(&mut self, io: &mut Io) {
        self.intake.reading.turn_begins(&io.turn());
    }

    fn timer(&mut self, io: &mut Io, token: u64) {
        match Alarm::of(token) {
            Alarm::Prepare => self.prepare(io),
            Alarm::Pause => self.pause(io.now(), true),
            Alarm::Resume => self.pause(io.now(), false),
        }
    }

    fn woken(&mut self, io: &mut Io) {
        while let Some(order) = self.mailbox.next_order() {
            self.obey(io, order);
        }
        self.prepared(io);
        self.take(io);
    }

    fn turn(&mut self, io: &mut Io) -> Option<Micros> {
        if self.is_over {
            return None;
        }
        if io.now() >= self.next_dispatch {
            // A group leaves out who asks for nothing, even where nothing comes.
            self.take(io);
            self.dispatch(io.now());
        }
        let next_command = self.command(io.now());
        Some(next_command.map_or(self.next_dispatch, |next| next.min(self.next_dispatch)))
    }

    // The sockets are librdkafka's.
    fn opened(&mut self, _: &mut Io, _: Key) {}
    fn accepted(&mut self, _: &mut Io, _: Key, _: ListenerId) {}
    fn received(&mut self, _: &mut Io, _: Key, bytes: &mut [u8]) -> usize {
        bytes.len()
    }
    fn flushed(&mut self, _: &mut Io, _: Key) {}
    fn closed(&mut self, _: &mut Io, _: Key, _: Closed) {}
}

impl KafkaDriver {
    fn obey(&mut self, io: &mut Io, order: Order) {
        match order {
            Order::Connect => self.prepare(io),
            Order::Start { origin } => self.start(io, origin),
            Order::EndDue { at } => {
                if let Some(commanding) = &mut self.commanding {
                    commanding.end_due(at);
                }
                let recorder = self.intake.tape.recorder();
                if at < recorder.timeline().settle {
                    recorder.stop(at);
                }
            }
            Order::MarkDrain => self.intake.tape.recorder().mark_drain(),
            Order::Finish => self.finish(io),
        }
    }

    /// Looks for the topics on a thread of its own, which wakes this one when it is done.
    fn prepare(&mut self, io: &mut Io) {
        let waits = self.has_asked && self.given.is_none();
        if self.is_over || waits || self.preparing.is_some() {
            return;
        }
        let line = match self.line.take() {
            Some(line) => line,
            None => match Line::open(&self.config, io.waker()) {
                Ok(line) => line,
                Err(refusal) => return self.try_again(io, &refusal),
            },
        };
        self.line = Some(line);
        self.begin(io, self.share());
    }

    /// Takes up what was added to topics meanwhile.
    fn take_further(&mut self, io: &mut Io) {
        let is_free = !self.is_over && self.preparing.is_none();
        if let Some(further) = is_free.then(|| self.standing.take_further()).flatten() {
            self.begin(io, Share::Further(further));
        }
    }

    fn begin(&mut self, io: &mut Io, share: Share) {
        let Some(line) = &self.line else {
            return;
        };
        let preparation = line.prepare(&self.config, &self.northbound, share);
        let (told, heard) = sync_channel(1);
        let waker = io.waker();
        let work = move || {
            // The consumer's thread may be gone by then.
            let _ = told.send(preparation.carry_out());
            waker.wake();
        };
        let name = "kafka-topics".to_owned();
        match thread::Builder::new().name(name).spawn(work) {
            Ok(_) => self.preparing = Some(heard),
            Err(error) => {
                self.standing.limited_again("start a thread", error);
                self.prepare_again(io);
            }
        }
    }

    fn share(&self) -> Share {
        let turn = match self.standing.goes_on() {
            true => Turn::Later,
            false => Turn::First,
        };
        match &self.given {
            Some(given) => Share::Given(given.clone(), turn),
            None if self.has_group => Share::Asked,
            None => Share::All,
        }
    }

    fn prepared(&mut self, io: &mut Io) {
        let done = self.preparing.as_ref().and_then(|it| it.try_recv().ok());
        let Some(done) = done else {
            return;
        };
        self.preparing = None;
        let (has_all, share) = (done.has_all, done.share);
        self.standing.found(done.told);
        if let Some(layout) = done.layout {
            self.standing.watch(layout);
        }
        if let Share::Further(further) = share {
            return match has_all {
                Ok(_) => self.pause_what_it_has(),
                Err(refusal) => self.standing.further_refused(further, &refusal),
            };
        }
        self.has_asked |= has_all.is_ok();
        if std::mem::take(&mut self.is_stale) {
            return self.prepare(io);
        }
        match has_all {
            Ok(true) => self.up(io.now()),
            Ok(false) => {}
            Err(refusal) => return self.try_again(io, &refusal),
        }
        let commanding = self.commanding.as_mut();
        if let Some(Err(why)) = commanding.map(|commanding| commanding.open(io.waker())) {
            self.standing.limited(&why);
        }
    }

    fn up(&mut self, now: Micros) {
        self.given = None;
        self.standing.up(now);
        self.pause_what_it_has();
    }

    /// Pauses what it has taken up, if the consumer is paused.
    fn pause_what_it_has(&mut self) {
        let paused = self.line.as_ref().filter(|_| self.standing.is_paused());
        if paused.is_some_and(|line| line.pause(true).is_err()) {
            self.standing.limited("it cannot be paused");
        }
    }

    /// Issues the commands that are due; when the next one is.
    fn command(&mut self, now: Micros) -> Option<Micros> {
        let commanding = self.commanding.as_mut()?;
        commanding.turn(now, &mut self.intake.desk());
        for refusal in commanding.refusals.drain(..) {
            self.standing.commands_refused(&refusal);
        }
        commanding.next()
    }

    fn try_again(&mut self, io: &mut Io, refusal: &Refusal) {
        self.standing.not_up(refusal);
        self.prepare_again(io);
    }

    fn prepare_again(&self, io: &mut Io) {
        io.set_timer(io.now() + RETRY, Alarm::Prepare as u64);
    }

    fn start(&mut self, io: &mut Io, origin: Micros) {
        self.standing.begin();
        self.intake.due_times.start(origin);
        self.intake.tape.recorder().start(origin);
        if let Some(commanding) = &mut self.commanding {
            commanding.start(origin);
        }
        for pause in &self.pause {
            let from = origin + pause.at;
            io.set_timer(from, Alarm::Pause as u64);
            io.set_timer(from + pause.lasts, Alarm::Resume as u64);
        }
    }

    fn pause(&mut self, now: Micros, is_paused: bool) {
        self.standing.pause(now, is_paused);
        let done = self.line.as_ref().map(|line| line.pause(is_paused));
        if let Some(Err(error)) = done {
            self.standing.limited(&format!("pause or resume: {error}"));
        }
    }

    /// Takes what waits, as far as a batch goes.
    fn take(&mut self, io: &mut Io) {
        let Some(line) = &self.line else {
            return;
        };
        let (mut count, mut seen) = (0, io.now());
        let has_more = line.take(BATCH, |record| {
            if count % PER_INSTANT == 0 {
                seen = io.fresh_now();
            }
            count += 1;
            if let Some(commanding) = &mut self.commanding
                && commanding.returned(record, seen, &mut self.intake.desk())
            {
                return;
            }
            let copy = self.surfaces.read(record);
            let is_platforms = || header(record, CONTENT_TYPE).is_some_and(is_own_media_type);
            let id = self.intake.take(&self.seat, seen, &copy, is_platforms);
            if let Some((commanding, id)) = self.commanding.as_mut().zip(id) {
                commanding.asked(&id, seen, &mut self.intake.desk());
            }
        });
        if has_more {
            // What is left is told by nobody.
            io.waker().wake();
        }
        self.hear(io);
    }

    fn hear(&mut self, io: &mut Io) {
        self.standing.look_after(io.now());
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
            self.standing.heard(io.now(), news);
        }
        if let Some(given) = line.given() {
            self.given = Some(given);
            self.is_stale = self.preparing.is_some();
            self.prepare(io);
        }
        if is_sampled {
            self.take_further(io);
        }
    }

    fn finish(&mut self, io: &mut Io) {
        self.is_over = true;
        if let Some(commanding) = &mut self.commanding {
            let idle = commanding.finish(io.now(), &mut self.intake.desk());
            self.standing.idle_notices(idle);
        }
        self.standing.finish();
        self.dispatch(io.now());
        let account = std::mem::take(&mut self.intake.account);
        let last = self.intake.tape.hand_over(account);
        let _ = self.mailbox.post(last);
        io.stop();
    }

    fn dispatch(&mut self, now: Micros) {
        self.next_dispatch = now + DISPATCH_EVERY;
        let mut desk = self.intake.desk();
        let (mut open, mut next_command) = (0, None);
        if let Some(commanding) = self.commanding.as_mut().filter(|_| !self.is_over) {
            commanding.look_back(now, &mut desk);
            (open, next_command) = (commanding.open_count(), commanding.next());
        }
        let progress = Progress {
            at: now,
            consumers_wanted: 1,
            consumers_up: u64::from(self.standing.is_up()),
            consumers_refused: u64::from(self.standing.is_refused()),
            listening: self.standing.listening(now),
            open,
            behind: u64::from(next_command.is_some_and(|due| due <= now)),
            ..Progress::default()
        };
        let troubles = &mut self.standing.troubles;
        let dispatch = self.intake.tape.dispatch(progress, troubles);
        if !self.mailbox.post(dispatch) {
            troubles.push(Trouble::unheard());
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
