//! Drives one consumer of AMQP on an event loop on a separate thread.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread::{self, JoinHandle};

use muster_conduct::{CommandToken, Commander, Dispatch, FactWriter, Order, RefusalKind};
use muster_model::{Delivery, Micros};
use muster_net::{Loop, LoopConfig, Mailbox, Waker};
use muster_plan::{Plan, Security};
use muster_platform::{Amqp, TENANT, is_own_media_type};
use muster_transport::Clients;
use tokio::runtime;
use tokio::sync::{mpsc, watch};
use tokio_rustls::TlsConnector;

use super::command_sender::AmqpSender;
use super::content::{Reply, Surfaces, body, media_type};
use super::news::{Batch, Content, Delivered, Mode, NEWS_MAX, News, Reporter};
use super::sasl::Login;
use super::target::Target;
use super::worker::{Probe, Worker};
use crate::consumers::{ConsumersError, ConsumersSpec, client_id};
use crate::loss::{Loss, TLS_KEYS};
use crate::northbound::{ConsumerLoop, Context, Core, Northbound};

/// Pieces of news taken before orders and timers have their turn again.
const NEWS_PER_TURN: usize = 8;
/// The beginning of the names of the library's threads.
const LIBRARY_THREADS: &str = "amqp:";
/// Place of the only consumer among those of its thread.
const AT: usize = 0;
/// Time after which a consumer asks again whether its peer is there, and has sent all that it has.
const SILENCE: Micros = Micros::from_millis(100);
/// The wait before a thread is asked for again.
const RETRY: Micros = Micros::from_millis(250);
/// The only timer, after which the library's thread is started again.
const START: u64 = 0;

/// One consumer of AMQP.
pub struct AmqpConsumer {
    target: Arc<Target>,
    thread: Option<Thread>,
    surfaces: Surfaces,
    sender: Option<AmqpSender>,
    /// Instant of the last question to the peer.
    asked: Micros,
    /// Buffer of a reply's body.
    body: Vec<u8>,
    /// The addresses that the platform defines, if it does.
    platform: Option<&'static Amqp>,
}

/// The library's thread, and the ways to it.
struct Thread {
    probes: mpsc::Sender<Probe>,
    mode: watch::Sender<Mode>,
    news: mpsc::Receiver<News>,
    handle: JoinHandle<()>,
}

/// Creates the loop of one consumer of AMQP, the first of the spec, for a separate thread. `layers` says how its
/// connection is secured.
///
/// # Errors
/// [`ConsumersError`] if a payload cannot be compiled, the loop cannot start, or the consumer is of
/// another kind.
pub fn amqp_loop(
    spec: &ConsumersSpec,
    layers: &mut Clients,
    writer: Option<Box<dyn FactWriter>>,
    mailbox: Mailbox<Order, Box<Dispatch>>,
) -> Result<Loop<ConsumerLoop<AmqpConsumer>>, ConsumersError> {
    let plan = spec.consumers.first().ok_or(ConsumersError::NoConsumer)?;
    let backend = &spec.plan.backends[plan.backend.index()];
    let northbound = backend.amqp().ok_or(ConsumersError::NoConsumer)?;
    let issuer = backend.issues_commands.then_some(AT);
    let core = Core::new(spec, writer, issuer, |of| of.target.to_string())?;
    let dialect = spec.plan.platform.dialect();
    let amqp = dialect.spec().application.amqp.as_ref();
    let (container, tenants) = (client_id(spec.run, plan), tenants(&spec.plan));
    let sender = issuer.map(|_| AmqpSender::new(dialect, &tenants, &container));
    let names = northbound.addresses.iter().map(|it| it.name.as_str());
    let replies = sender.iter().flat_map(AmqpSender::replies);
    let commands = amqp.filter(|_| sender.is_some());
    let commands = commands.map(|amqp| tenants.iter().map(|it| amqp.commands.replace(TENANT, it)));
    let tls = layers.tls(u32::from(plan.consumer.0));
    let target = Target {
        address: plan.target,
        host: backend.endpoint.host_name().to_owned(),
        container,
        tls: tls.map(|(config, name)| (TlsConnector::from(config), name)),
        hint: Security::new(backend.endpoint.scheme, TLS_KEYS).hint_on_silence(),
        login: Login {
            mechanism: northbound.login,
            user: backend.user.clone(),
            password: backend.password.clone(),
        },
        sources: names.chain(replies).map(str::to_owned).collect(),
        commands: commands.into_iter().flatten().collect(),
        credit: northbound.credit,
        clock: spec.clock,
        awake: AtomicU64::new(0),
    };
    let surfaces = Surfaces::new(
        &northbound.addresses,
        amqp.map_or("", |amqp| amqp.device),
        core.reads_properties(plan.backend),
    );
    let consumer = AmqpConsumer {
        target: Arc::new(target),
        thread: None,
        surfaces,
        sender,
        asked: Micros::ZERO,
        body: Vec::new(),
        platform: amqp,
    };
    let consumer_loop = ConsumerLoop::new(spec, consumer, core, mailbox);
    Ok(consumer_loop.start(spec, &LoopConfig::default(), Some(LIBRARY_THREADS))?)
}

/// The tenants of a plan, each once.
fn tenants(plan: &Plan) -> Vec<String> {
    let tenants: BTreeSet<&str> = plan.fleets.iter().map(|it| it.tenant.as_str()).collect();
    tenants.into_iter().map(str::to_owned).collect()
}

impl Northbound for AmqpConsumer {
    fn connect(&mut self, cx: &mut Context<'_>) {
        if self.thread.is_some() || cx.core.is_over() {
            return;
        }
        let mode = match cx.core.consumer(AT).is_paused() {
            true => Mode::Paused,
            false => Mode::Running,
        };
        match Thread::start(Arc::clone(&self.target), mode, cx.io.waker()) {
            Ok(thread) => self.thread = Some(thread),
            Err(error) => {
                cx.core.consumer(AT).limited("start a thread", error);
                cx.io.set_timer(cx.io.now() + RETRY, START);
            }
        }
    }

    fn pause(&mut self, cx: &mut Context<'_>, at: usize) {
        let mode = match cx.core.consumer(at).is_paused() {
            true => Mode::Paused,
            false => Mode::Running,
        };
        if let Some(thread) = &self.thread {
            thread.mode.send_replace(mode);
        }
    }

    fn issue(&mut self, cx: &mut Context<'_>) {
        let (now, sender) = (cx.io.now(), &mut self.sender);
        cx.core.with_commander(AT, |commander, sink| {
            commander.issue(now, sender, sink);
        });
    }

    fn next_issue(&mut self, commander: &mut Commander) -> Option<Micros> {
        commander.next_issue(Some(&self.sender))
    }

    fn look_after(&mut self, cx: &mut Context<'_>) {
        let (now, consumer) = (cx.io.now(), cx.core.consumer(AT));
        let is_due = now >= self.asked.max(consumer.received_until()) + SILENCE;
        if is_due
            && consumer.is_up()
            && let Some(thread) = &self.thread
            && thread.probes.try_send(Probe(now)).is_ok()
        {
            self.asked = now;
        }
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        while self.take(cx) {}
        let now = cx.io.now();
        cx.core.finish_commands(AT, &self.sender, now);
        if let Some(thread) = self.thread.take() {
            thread.end();
        }
    }

    fn timer(&mut self, cx: &mut Context<'_>, _: u64) {
        self.connect(cx);
    }

    fn woken(&mut self, cx: &mut Context<'_>) {
        if self.take(cx) {
            // The library does not call the waker again for the rest.
            cx.io.waker().wake();
        }
    }
}

impl Thread {
    /// Starts the library's thread, which connects at once. `waker` is called when news waits.
    fn start(target: Arc<Target>, mode: Mode, waker: Waker) -> std::io::Result<Self> {
        let woken = Arc::clone(&target);
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .on_thread_unpark(move || woken.wakes())
            .build()?;
        let (news, reported) = mpsc::channel(NEWS_MAX);
        let (mode, asked_mode) = watch::channel(mode);
        // One question at a time.
        let (probes, asked) = mpsc::channel(1);
        let name = format!("{LIBRARY_THREADS}{}", target.container);
        let worker = Worker {
            target,
            probes: asked,
            mode: asked_mode,
            reporter: Reporter { news, waker },
        };
        let work = move || runtime.block_on(worker.run());
        let handle = thread::Builder::new().name(name).spawn(work)?;
        Ok(Self {
            probes,
            mode,
            news: reported,
            handle,
        })
    }

    /// Ends the thread: what was counted is accepted, and the connection is closed.
    fn end(mut self) {
        self.news.close();
        self.mode.send_replace(Mode::Finishing);
        // It waits for its peer for a second at the most.
        let _ = self.handle.join();
    }
}

impl AmqpConsumer {
    /// Takes news that waits, some pieces at the most. Returns true if there may be more.
    fn take(&mut self, cx: &mut Context<'_>) -> bool {
        for _ in 0..NEWS_PER_TURN {
            let next = self.thread.as_mut().map(|thread| thread.news.try_recv());
            let Some(Ok(news)) = next else {
                return false;
            };
            self.handle(cx, news);
        }
        true
    }

    fn handle(&mut self, cx: &mut Context<'_>, news: News) {
        let now = cx.io.now();
        match news {
            News::Up(queues) => {
                if let Some(sender) = &mut self.sender {
                    sender.up(queues);
                }
                cx.core.consumer(AT).up(now);
            }
            News::Ended(loss) => self.ended(cx, &loss.on_platform(self.platform)),
            News::Batch(batch) => self.count(cx, batch),
            News::Settled(token, delivery) => settled(cx, token, delivery),
            News::Commands(loss) => {
                let cause = loss.on_platform(self.platform).cause;
                cx.core.consumer(AT).report_refusal(cause);
            }
            News::Answered(asked) => {
                let consumer = cx.core.consumer(AT);
                if consumer.is_up() && !consumer.is_paused() {
                    consumer.note_received(asked);
                }
            }
        }
    }

    /// The connection is over; the library's thread tries again.
    fn ended(&mut self, cx: &mut Context<'_>, loss: &Loss) {
        let (now, consumer) = (cx.io.now(), cx.core.consumer(AT));
        if consumer.is_up() {
            consumer.lost(now, &loss.cause.to_string());
        } else if loss.cause.kind == RefusalKind::Refused || !consumer.was_up() {
            consumer.refused(&loss.cause, loss.is_final);
        }
        if let Some(sender) = &mut self.sender {
            sender.lost();
            cx.core
                .with_commander(AT, |commander, sink| commander.lost(now, sink));
        }
    }

    /// Counts a batch, which then goes back to be accepted.
    fn count(&mut self, cx: &mut Context<'_>, batch: Batch) {
        cx.core.read_since(batch.began);
        for delivered in &batch.deliveries {
            self.count_one(cx, batch.source, delivered);
        }
        // There is room for all batches of a link; a link that is over takes none back.
        let _ = batch.back.try_send(batch.deliveries);
    }

    fn count_one(&mut self, cx: &mut Context<'_>, source: usize, delivered: &Delivered) {
        let seen = delivered.seen;
        let Some(content) = &delivered.content else {
            let copy = self.surfaces.unreadable(source);
            return cx.core.receive(AT, seen, &copy, || false);
        };
        if self.surfaces.is_of_replies(source) {
            return self.reply(cx, seen, content);
        }
        let copy = self.surfaces.read(source, content);
        let is_platforms = || is_own_media_type(media_type(content));
        cx.core.receive(AT, seen, &copy, is_platforms);
    }

    /// Passes a reply to the commander. One of another application is dropped.
    fn reply(&mut self, cx: &mut Context<'_>, seen: Micros, content: &Content) {
        let reply = Reply::of(content);
        let parts = [
            ("correlation-id", reply.correlation_id),
            ("status", reply.status.as_bytes()),
            ("content-type", reply.content_type.as_bytes()),
        ];
        let payload = body(content, &mut self.body);
        cx.core.with_commander(AT, |commander, sink| {
            commander.returned(parts.into_iter(), payload, seen, sink)
        });
    }
}

/// The peer has settled a command.
fn settled(cx: &mut Context<'_>, token: CommandToken, delivery: Delivery) {
    let now = cx.io.now();
    cx.core.with_commander(AT, |commander, sink| {
        commander.learn(token, delivery, now, sink);
    });
}
