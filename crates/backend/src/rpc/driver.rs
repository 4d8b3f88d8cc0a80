//! Drives the commands of one backend on an event loop on a separate thread.

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use muster_conduct::{
    CommandSender, CommandToken, Commander, Dispatch, FactWriter, Order, RefusalKind, Untaken,
};
use muster_model::{Delivery, Micros, Reason};
use muster_net::{Loop, LoopConfig, Mailbox, Waker};
use muster_plan::{RpcNorthbound, Security};
use muster_platform::board_rest::Login;
use muster_platform::{CommandScratch, Dialect, OutboundCommand};
use muster_transport::Clients;
use tokio::runtime;
use tokio::sync::mpsc;
use tokio_rustls::TlsConnector;

use super::api::{Api, Command, State};
use super::connection::Way;
use super::worker::{Called, News, Outgoing, Reporter, Worker};
use crate::consumers::{ConsumersError, ConsumersSpec, client_id};
use crate::loss::TLS_KEYS;
use crate::northbound::{ConsumerLoop, Context, Core, Northbound};

/// Pieces of news taken before orders and timers have their turn again.
const NEWS_PER_TURN: usize = 64;
/// Pieces of news that wait for the loop.
const NEWS_MAX: usize = 1_024;
/// The beginning of the name of the thread of calls.
const CALL_THREADS: &str = "rpc:";
/// Place of the only consumer among those of its thread.
const AT: usize = 0;
/// The wait before a thread is asked for again.
const RETRY: Micros = Micros::from_millis(250);
/// The only timer, after which the thread of calls is started again.
const START: u64 = 0;
/// Time for an answer beyond the platform's wait for the device.
const GRACE: Duration = Duration::from_secs(10);

/// The commands of one backend.
pub struct RpcConsumer {
    api: Arc<Api>,
    name: String,
    thread: Option<Thread>,
    sender: RpcSender,
}

/// The thread of calls, and the way from it.
struct Thread {
    news: mpsc::Receiver<News>,
    handle: JoinHandle<()>,
}

/// Takes commands to the thread of calls.
struct RpcSender {
    dialect: Dialect,
    plan: RpcNorthbound,
    /// The way to the thread, while there is one.
    queue: Option<mpsc::Sender<Outgoing>>,
    is_up: bool,
    /// Calls without an answer.
    under_way: u16,
    scratch: CommandScratch,
}

/// Makes the loop of one backend of REST calls, the first of the spec, for a separate thread. `layers` says how its
/// connections are secured.
///
/// # Errors
/// [`ConsumersError`] if a payload cannot be compiled, the loop cannot start, or the backend is of another kind.
pub fn rpc_loop(
    spec: &ConsumersSpec,
    layers: &mut Clients,
    writer: Option<Box<dyn FactWriter>>,
    mailbox: Mailbox<Order, Box<Dispatch>>,
) -> Result<Loop<ConsumerLoop<RpcConsumer>>, ConsumersError> {
    let consumer = spec.consumers.first().ok_or(ConsumersError::NoConsumer)?;
    let backend = &spec.plan.backends[consumer.backend.index()];
    let plan = *backend.rpc().ok_or(ConsumersError::NoConsumer)?;
    let core = Core::new(spec, writer, Some(AT), |of| of.target.to_string())?;
    let tls = layers.tls(u32::from(consumer.consumer.0));
    let user = backend.user.as_ref().map(|user| user.expose().clone());
    let password = backend.password.as_ref().map(|it| it.expose().as_slice());
    let api = Api {
        way: Way {
            address: consumer.target,
            host: backend.endpoint.http_host(),
            tls: tls.map(|(config, name)| (TlsConnector::from(config), name)),
            hint: Security::new(backend.endpoint.scheme, TLS_KEYS).hint_on_silence(),
            clock: spec.clock,
        },
        prefix: backend.endpoint.path.clone(),
        login: Login {
            username: user.unwrap_or_default(),
            password: String::from_utf8_lossy(password.unwrap_or_default()).into_owned(),
        },
        is_old: plan.is_old,
        patience: Duration::from_micros(plan.timeout.get()) + GRACE,
        state: State::default(),
    };
    let rpc = RpcConsumer {
        api: Arc::new(api),
        name: format!("{CALL_THREADS}{}", client_id(spec.run, consumer)),
        thread: None,
        sender: RpcSender {
            dialect: spec.plan.platform.dialect(),
            plan,
            queue: None,
            is_up: false,
            under_way: 0,
            scratch: CommandScratch::default(),
        },
    };
    let consumer_loop = ConsumerLoop::new(spec, rpc, core, mailbox);
    Ok(consumer_loop.start(spec, &LoopConfig::default(), Some(CALL_THREADS))?)
}

impl Northbound for RpcConsumer {
    fn connect(&mut self, cx: &mut Context<'_>) {
        if self.thread.is_some() || cx.core.is_over() {
            return;
        }
        let (queue, commands) = mpsc::channel(usize::from(self.sender.plan.pending));
        match Thread::start(&self.name, Arc::clone(&self.api), commands, cx.io.waker()) {
            Ok(thread) => {
                self.thread = Some(thread);
                self.sender.queue = Some(queue);
            }
            Err(error) => {
                cx.core.consumer(AT).limited("start a thread", error);
                cx.io.set_timer(cx.io.now() + RETRY, START);
            }
        }
    }

    /// The scenario's checks let no pause through: it reads nothing but answers.
    fn pause(&mut self, _: &mut Context<'_>, _: usize) {}

    fn issue(&mut self, cx: &mut Context<'_>) {
        let (now, sender) = (cx.io.now(), &mut self.sender);
        cx.core.with_commander(AT, |commander, sink| {
            commander.issue(now, sender, sink);
        });
    }

    fn next_issue(&mut self, commander: &mut Commander) -> Option<Micros> {
        commander.next_issue(Some(&self.sender))
    }

    /// Notes that nothing else is to come: calls without an answer are counted as open.
    fn look_after(&mut self, cx: &mut Context<'_>) {
        let (now, consumer) = (cx.io.now(), cx.core.consumer(AT));
        if consumer.is_up() {
            consumer.note_received(now);
        }
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        while self.take(cx) {}
        let now = cx.io.now();
        cx.core.finish_commands(AT, &self.sender, now);
        self.sender.queue = None;
        if let Some(thread) = self.thread.take() {
            thread.end();
        }
    }

    fn timer(&mut self, cx: &mut Context<'_>, _: u64) {
        self.connect(cx);
    }

    fn woken(&mut self, cx: &mut Context<'_>) {
        if self.take(cx) {
            // Nobody calls the waker again for the rest.
            cx.io.waker().wake();
        }
    }
}

impl RpcConsumer {
    /// Takes news that waits, some pieces at the most. Returns true if there may be more.
    fn take(&mut self, cx: &mut Context<'_>) -> bool {
        for _ in 0..NEWS_PER_TURN {
            let next = self.thread.as_mut().map(|thread| thread.news.try_recv());
            let Some(Ok(news)) = next else {
                return false;
            };
            match news {
                News::Up => {
                    self.sender.is_up = true;
                    let now = cx.io.now();
                    cx.core.consumer(AT).up(now);
                }
                News::Down(loss) => {
                    let consumer = cx.core.consumer(AT);
                    if loss.cause.kind == RefusalKind::Refused || !consumer.was_up() {
                        consumer.refused(&loss.cause, loss.is_final);
                    }
                }
                News::Lost(loss) => {
                    self.sender.is_up = false;
                    let now = cx.io.now();
                    cx.core.consumer(AT).lost(now, &loss.cause.to_string());
                }
                News::Called(called) => self.called(cx, &called),
            }
        }
        true
    }

    /// A call has ended: its answer is the delivery of the command, and a yes to a two-way call brings the reply.
    fn called(&mut self, cx: &mut Context<'_>, called: &Called) {
        self.sender.under_way -= 1;
        let now = cx.io.now();
        let delivery = match &called.answer {
            Ok(answer) if answer.is_yes() => Delivery::Delivered,
            Ok(answer) => Delivery::Undeliverable(Reason::Http(answer.status)),
            Err(_) => Delivery::Unknown,
        };
        cx.core.with_commander(AT, |commander, sink| {
            if let Ok(answer) = &called.answer
                && answer.is_yes()
                && called.is_two_way
            {
                commander.called_back(&answer.body, answer.seen, sink);
            }
            commander.learn(called.token, delivery, now, sink);
        });
    }
}

impl Thread {
    fn start(
        name: &str,
        api: Arc<Api>,
        commands: mpsc::Receiver<Outgoing>,
        waker: Waker,
    ) -> std::io::Result<Self> {
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (news, reported) = mpsc::channel(NEWS_MAX);
        let worker = Worker {
            api,
            commands,
            reporter: Reporter { news, waker },
        };
        let work = move || runtime.block_on(worker.run());
        let handle = thread::Builder::new().name(name.to_owned()).spawn(work)?;
        Ok(Self {
            news: reported,
            handle,
        })
    }

    /// Ends the thread, whose queue is closed; calls that are open have no end any more.
    fn end(mut self) {
        self.news.close();
        let _ = self.handle.join();
    }
}

impl CommandSender for RpcSender {
    fn is_connected(&self) -> bool {
        self.is_up
    }

    fn has_room(&self) -> bool {
        self.is_up && self.under_way < self.plan.pending
    }

    fn take(
        &mut self,
        _: Micros,
        token: CommandToken,
        command: &OutboundCommand<'_>,
    ) -> Result<(), Untaken> {
        let calls = self.dialect.application.calls.as_ref();
        let calls = calls.ok_or(Untaken::Ever)?;
        let queue = self.queue.as_ref().ok_or(Untaken::Yet)?;
        let waits_ms = self.plan.timeout.get() / 1_000;
        (calls.write)(command, waits_ms, &mut self.scratch);
        let outgoing = Outgoing {
            token,
            command: Command {
                device: command.device.to_owned(),
                is_two_way: command.is_two_way,
                body: self.scratch.payload.clone(),
            },
        };
        queue.try_send(outgoing).map_err(|_| Untaken::Yet)?;
        self.under_way += 1;
        Ok(())
    }
}
