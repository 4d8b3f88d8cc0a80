//! Cost of a consumer of AMQP 1.0 next to `fe2o3-amqp` alone, before a peer that sends as fast as credit allows: CPU
//! time of the whole process, from connecting to the last message.
//!
//! ```text
//! amqp_cost serve MESSAGES         # the peer of one connection after the other; prints its port
//! amqp_cost bare PORT MESSAGES     # receives and accepts every message and looks at none
//! amqp_cost muster PORT MESSAGES   # decodes each, has it join the ledger, and accepts it
//! ```
//!
//! Prints a line of JSON.

use std::error::Error;
use std::io::Write;
use std::sync::Arc;
use std::sync::mpsc::{Receiver as Inbox, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use fe2o3_amqp::acceptor::{
    ConnectionAcceptor, LinkAcceptor, LinkEndpoint, SaslAnonymousMechanism, SessionAcceptor,
};
use fe2o3_amqp::link::receiver::CreditMode;
use fe2o3_amqp::sasl_profile::SaslProfile;
use fe2o3_amqp::types::messaging::{ApplicationProperties, Body, Data, Message, Properties};
use fe2o3_amqp::types::primitives::Value;
use fe2o3_amqp::{Connection, Receiver, Sender, Session};
use muster_backend::{ConsumerPlan, ConsumersSpec, amqp_loop};
use muster_conduct::{Dispatch, Handover, Order, directory, recorder_plan, schedules, uplink};
use muster_model::{BackendId, ConsumerId, DeviceId, MessageId, Micros, RunId, StreamId};
use muster_net::{Clock, LoopError, Mailbox, Waker};
use muster_plan::Plan;
use muster_platform::{DueTimes, UplinkScratch};
use muster_protocol::layer::Plain;
use muster_scenario::{NoFiles, Overrides, Source, parse};
use muster_transport::Clients;
use rustix::time::{ClockId, clock_gettime};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime;

const RUN: RunId = RunId(7);
const ADDRESS: &str = "telemetry/load-tests";
const DEVICES: u32 = 2_500;
/// Messages of each device, a second.
const RATE: u64 = 10;
/// Since when the first message has been due when the consumers begin: all are late.
const AGO: Duration = Duration::from_secs(600);
/// Far longer than it takes, so that only what hangs meets it.
const PATIENCE: Duration = Duration::from_secs(120);
/// The credit of both, a scenario's default.
const CREDIT: u32 = 1_000;
/// Messages under way to a consumer, more than its credit.
const UNDER_WAY: usize = 4_096;

type Failure = Box<dyn Error + Send + Sync>;
type Done = Result<(), Failure>;

fn main() -> Done {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    match words[..] {
        ["serve", messages] => runtime.block_on(serve(messages.parse()?)),
        ["bare", port, messages] => runtime.block_on(bare(port.parse()?, messages.parse()?)),
        ["muster", port, messages] => muster(port.parse()?, messages.parse()?),
        _ => Err("usage: amqp_cost serve MESSAGES | bare|muster PORT MESSAGES".into()),
    }
}

/// Devices that say a Ditto message of 600 bytes.
fn plan(port: u16, messages: u64) -> Result<Plan, Failure> {
    let seconds = messages.div_ceil(u64::from(DEVICES) * RATE);
    let (rate, note) = (u64::from(DEVICES) * RATE, "x".repeat(281));
    let text = format!(
        r#"name: amqp-cost
platform:
  kind: hono
  devices: [ "coap://127.0.0.1:5683" ]
  backend: {{ url: "amqp://127.0.0.1:{port}", credit: {CREDIT} }}
fleet:
  - name: meters
    count: {DEVICES}
    id: "org.eclipse.muster:meter-${{index:04}}"
    tenant: load-tests
    streams:
      - name: telemetry
        rate: {rate}/s
        payload: {{ template: '{{"topic":"org.eclipse.muster/meter-${{index:04}}/things/twin/commands/modify","headers":{{"response-required":false,"correlation-id":"${{stamp}}","content-type":"application/vnd.eclipse.ditto+json"}},"path":"/features/temperature/properties","value":{{"temperature":${{normal:20:3}},"unit":"Celsius","ts":${{due_ms}},"note":"{note}"}}}}' }}
phases: {{ measure: {seconds}s, settle: {{ at-most: 250s, quiet: 3s }} }}
"#
    );
    let source = Source {
        name: "amqp-cost",
        text: &text,
    };
    parse(source, &Overrides::default(), &NoFiles).map_err(|problems| problems.to_string().into())
}

/// The n-th message in the order of its devices.
fn id(number: u64) -> MessageId {
    MessageId {
        run: RUN,
        device: DeviceId((number % u64::from(DEVICES)) as u32),
        stream: StreamId(0),
        seq: (number / u64::from(DEVICES)) as u32,
    }
}

/// Serves one consumer after the other.
async fn serve(messages: u64) -> Done {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    writeln!(std::io::stdout(), "{}", listener.local_addr()?.port())?;
    loop {
        let (stream, _) = listener.accept().await?;
        tokio::spawn(connection(stream, messages));
    }
}

async fn connection(stream: TcpStream, messages: u64) -> Done {
    let acceptor = ConnectionAcceptor::builder()
        .container_id("amqp-cost")
        .sasl_acceptor(SaslAnonymousMechanism::new())
        .build();
    let mut connection = acceptor.accept(stream).await?;
    let sessions = SessionAcceptor::new();
    while let Ok(mut session) = sessions.accept(&mut connection).await {
        tokio::spawn(async move {
            let links = LinkAcceptor::new();
            while let Ok(link) = links.accept(&mut session).await {
                if let LinkEndpoint::Sender(sender) = link {
                    tokio::spawn(send(sender, messages));
                }
            }
        });
    }
    Ok(())
}

/// Sends every message on the address of telemetry, and nothing on others.
async fn send(mut sender: Sender, messages: u64) -> Done {
    let source = sender.source().as_ref().and_then(|it| it.address.clone());
    if source.as_deref() != Some(ADDRESS) {
        let _ = sender.on_detach().await;
        return Ok(());
    }
    let plan = plan(1, messages)?;
    let (fleet, stream) = plan.stream(StreamId(0)).ok_or("the plan has a stream")?;
    let (directory, uplink) = (directory(&plan, fleet, 0), uplink(stream)?);
    let mut due_times = DueTimes::new(&schedules(&plan)?);
    due_times.start(Micros::ZERO);
    let mut scratch = UplinkScratch::default();
    let mut under_way = std::collections::VecDeque::new();
    for id in (0..messages).map(id) {
        let due = due_times.of(&id).ok_or("the plan has no such message")?;
        uplink.render(&directory, &id, due, &mut scratch);
        let device = format!("org.eclipse.muster:meter-{:04}", id.device.0 + 1);
        let message = message(&device, &scratch.payload);
        under_way.push_back(sender.send_batchable(message).await?);
        if under_way.len() > UNDER_WAY
            && let Some(oldest) = under_way.pop_front()
        {
            oldest.await?;
        }
    }
    for rest in under_way {
        rest.await?;
    }
    let _ = sender.on_detach().await;
    Ok(())
}

/// As Hono's adapters make it.
fn message(device: &str, payload: &[u8]) -> Message<Data> {
    let properties = Properties::builder()
        .to(ADDRESS)
        .content_type("application/vnd.eclipse.ditto+json")
        .build();
    let further = ApplicationProperties::builder()
        .insert("device_id", device.to_owned())
        .insert("tenant_id", "load-tests")
        .insert("orig_adapter", "hono-coap")
        .insert("orig_address", "/telemetry")
        .insert("ttd", 10_i32)
        .build();
    Message::builder()
        .properties(properties)
        .application_properties(further)
        .data(payload)
        .build()
}

/// The library's own loop with the same credit.
async fn bare(port: u16, messages: u64) -> Done {
    let began = now(ClockId::ProcessCPUTime);
    let stream = TcpStream::connect(("127.0.0.1", port)).await?;
    stream.set_nodelay(true)?;
    let mut connection = Connection::builder()
        .container_id("bare")
        .sasl_profile(SaslProfile::Anonymous)
        .open_with_stream(stream)
        .await?;
    let mut session = Session::begin(&mut connection).await?;
    let mut receiver = Receiver::builder()
        .name("bare")
        .source(ADDRESS)
        .credit_mode(CreditMode::Auto(CREDIT))
        .attach(&mut session)
        .await?;
    for _ in 0..messages {
        let delivery = receiver.recv::<Body<Value>>().await?;
        receiver.accept(&delivery).await?;
    }
    report(messages, messages, began)
}

/// A consumer as a run has it.
fn muster(port: u16, messages: u64) -> Done {
    let plan = Arc::new(plan(port, messages)?);
    let spec = spec(&plan)?;
    let began = now(ClockId::ProcessCPUTime);
    let consumer = Running::start(&spec)?;
    let mut taken = 0;
    while taken < messages {
        let dispatch = consumer.next_dispatch()?;
        let copies = dispatch.windows.copies.values();
        taken += copies.map(|copies| copies.consumed).sum::<u64>();
    }
    let account = consumer.finish()?.account;
    report(taken, account.backends[0].read.count, began)
}

/// A consumer on its thread.
struct Running {
    orders: SyncSender<Order>,
    dispatches: Inbox<(usize, Box<Dispatch>)>,
    waker: Waker,
    thread: JoinHandle<Result<(), LoopError>>,
}

impl Running {
    fn start(spec: &ConsumersSpec) -> Result<Self, Failure> {
        let ((orders, inbox), (outbox, dispatches)) = (sync_channel(8), sync_channel(1_000));
        let (mailbox, mut layers) = (Mailbox::new(0, inbox, outbox), Clients::Plain(Plain));
        let mut made = amqp_loop(spec, &mut layers, None, mailbox)?;
        let waker = made.parts().1.waker();
        let thread = thread::Builder::new().name("consumer-0".to_owned());
        let running = Self {
            orders,
            dispatches,
            waker,
            thread: thread.spawn(move || made.run())?,
        };
        running.order(Order::Start {
            origin: Micros::ZERO,
        })?;
        running.order(Order::Connect)?;
        Ok(running)
    }

    fn order(&self, order: Order) -> Done {
        self.orders.send(order)?;
        self.waker.wake();
        Ok(())
    }

    fn next_dispatch(&self) -> Result<Box<Dispatch>, Failure> {
        Ok(self.dispatches.recv_timeout(PATIENCE)?.1)
    }

    fn finish(self) -> Result<Box<Handover>, Failure> {
        self.order(Order::Finish)?;
        loop {
            if let Some(handover) = self.next_dispatch()?.handover {
                self.thread.join().map_err(|_| "the consumer panicked")??;
                return Ok(handover);
            }
        }
    }
}

fn spec(plan: &Arc<Plan>) -> Result<ConsumersSpec, Failure> {
    let schedules = schedules(plan)?;
    let ago = AGO.as_nanos() as u64;
    let clock = Clock::at(Clock::start().t0_ns().saturating_sub(ago));
    Ok(ConsumersSpec {
        recorder: recorder_plan(plan, RUN, &schedules),
        plan: Arc::clone(plan),
        schedules,
        run: RUN,
        clock,
        consumers: vec![ConsumerPlan {
            backend: BackendId(0),
            consumer: ConsumerId(0),
            target: ([127, 0, 0, 1], plan.backends[0].endpoint.port).into(),
        }],
        gateways: Vec::new(),
        lost_copy: None,
    })
}

/// `read` is of how many the id was read.
fn report(taken: u64, read: u64, began: f64) -> Done {
    let cpu = now(ClockId::ProcessCPUTime) - began;
    let text = format!(r#"{{"messages":{taken},"read":{read},"cpu_s":{cpu:.6}}}"#);
    Ok(writeln!(std::io::stdout(), "{text}")?)
}

fn now(clock: ClockId) -> f64 {
    let at = clock_gettime(clock);
    at.tv_sec as f64 + at.tv_nsec as f64 / 1e9
}
