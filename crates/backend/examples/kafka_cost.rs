//! Cost of a consumer of Kafka next to `rdkafka` alone, on a topic that is full already: CPU time
//! of the whole process, including librdkafka's threads, from joining the group to the last
//! message.
//!
//! ```text
//! kafka_cost fill SERVERS MESSAGES            # fills the topic
//! kafka_cost bare SERVERS MESSAGES GROUP      # takes every message and looks at none
//! kafka_cost muster SERVERS MESSAGES GROUP    # decodes each, and has it join the ledger
//! ```
//!
//! Prints a line of JSON. A group that nobody was in before begins with the first message.

use std::error::Error;
use std::io::Write;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use muster_backend::{ConsumerPlan, ConsumersSpec, KAFKA_SETTINGS, kafka_loop};
use muster_conduct::{Dispatch, Handover, Order, directory, recorder_plan, schedules, uplink};
use muster_model::{BackendId, ConsumerId, DeviceId, MessageId, Micros, RunId, StreamId};
use muster_net::{Clock, LoopError, Mailbox, Waker};
use muster_plan::Plan;
use muster_platform::{DueTimes, UplinkScratch};
use muster_scenario::{NoFiles, Overrides, Source, parse};
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use rustix::time::{ClockId, clock_gettime};

const RUN: RunId = RunId(7);
const TOPIC: &str = "hono.telemetry.load-tests";
const DEVICES: u32 = 2_500;
/// Messages of each device, a second.
const RATE: u64 = 10;
/// Since when the first message has been due when the consumers begin: all are late.
const AGO: Duration = Duration::from_secs(600);
/// Far longer than it takes, so that only what hangs meets it.
const PATIENCE: Duration = Duration::from_secs(120);

type Done = Result<(), Box<dyn Error>>;

fn main() -> Done {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["fill", servers, messages] => fill(servers, messages.parse()?),
        ["bare", servers, messages, group] => bare(servers, messages.parse()?, group),
        ["muster", servers, messages, group] => muster(servers, messages.parse()?, group),
        _ => Err("usage: kafka_cost fill|bare|muster SERVERS MESSAGES [GROUP]".into()),
    }
}

/// Devices that say a Ditto message of 600 bytes.
fn plan(servers: &str, messages: u64, group: &str) -> Result<Plan, Box<dyn Error>> {
    let seconds = messages.div_ceil(u64::from(DEVICES) * RATE);
    let (rate, note) = (u64::from(DEVICES) * RATE, "x".repeat(281));
    let text = format!(
        r#"name: kafka-cost
platform:
  kind: hono
  devices: [ "coap://127.0.0.1:5683" ]
  backend: {{ url: "kafka://{servers}", shared: "{group}" }}
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
        name: "kafka-cost",
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

fn fill(servers: &str, messages: u64) -> Done {
    let plan = Arc::new(plan(servers, messages, "nobody")?);
    let creating = Running::start(&spec(&plan)?)?;
    while creating.next_dispatch()?.progress.consumers_up == 0 {}
    creating.finish()?;
    let (fleet, stream) = plan.stream(StreamId(0)).ok_or("the plan has a stream")?;
    let (directory, uplink) = (directory(&plan, fleet, 0), uplink(stream)?);
    let mut due_times = DueTimes::new(&schedules(&plan)?);
    due_times.start(Micros::ZERO);
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", servers);
    config.set("linger.ms", "50");
    let producer: BaseProducer = config.create()?;
    let mut scratch = UplinkScratch::default();
    for id in (0..messages).map(id) {
        let due = due_times.of(&id).ok_or("the plan has no such message")?;
        uplink.render(&directory, &id, due, &mut scratch);
        let key = format!("org.eclipse.muster:meter-{:04}", id.device.0 + 1);
        let record = BaseRecord::to(TOPIC).key(&key).payload(&scratch.payload);
        let mut record = record.headers(headers(&key));
        while let Err((_, back)) = producer.send(record) {
            producer.poll(Duration::from_millis(10));
            record = back;
        }
    }
    producer.flush(PATIENCE)?;
    writeln!(std::io::stdout(), "{{\"bytes\":{}}}", scratch.payload.len())?;
    Ok(())
}

/// The eight that Hono's adapter for CoAP gives a record.
fn headers(device: &str) -> OwnedHeaders {
    let all = [
        ("device_id", device),
        ("content-type", "application/vnd.eclipse.ditto+json"),
        ("creation-time", "1712345678901"),
        ("qos", "1"),
        ("orig_adapter", "hono-coap"),
        ("orig_address", "/telemetry"),
        ("ttd", "10"),
        (
            "traceparent",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ),
    ];
    let begin = OwnedHeaders::new_with_capacity(all.len());
    all.iter().fold(begin, |headers, (key, value)| {
        headers.insert(Header {
            key,
            value: Some(*value),
        })
    })
}

/// The crate's own loop with the same settings.
fn bare(servers: &str, messages: u64, group: &str) -> Done {
    let mut config = ClientConfig::new();
    for (key, value) in KAFKA_SETTINGS.into_iter().flatten() {
        config.set(*key, *value);
    }
    config.set("bootstrap.servers", servers);
    config.set("group.id", group);
    let began = now(ClockId::ProcessCPUTime);
    let consumer: BaseConsumer = config.create()?;
    consumer.subscribe(&[TOPIC])?;
    let mut taken = 0;
    while taken < messages {
        // A rebalance gives none.
        taken += u64::from(matches!(consumer.poll(PATIENCE), Some(Ok(_))));
    }
    report(taken, taken, began)
}

/// A consumer as a run has it.
fn muster(servers: &str, messages: u64, group: &str) -> Done {
    let plan = Arc::new(plan(servers, messages, group)?);
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
    dispatches: Receiver<(usize, Box<Dispatch>)>,
    waker: Waker,
    thread: JoinHandle<Result<(), LoopError>>,
}

impl Running {
    /// Starts the consumer, which creates missing topics. The run has begun when the group gives
    /// out its partitions, so that they continue where the group is: at the first message.
    fn start(spec: &ConsumersSpec) -> Result<Self, Box<dyn Error>> {
        let ((orders, inbox), (outbox, dispatches)) = (sync_channel(8), sync_channel(1_000));
        let mut made = kafka_loop(spec, None, Mailbox::new(0, inbox, outbox))?;
        let waker = made.parts().1.waker();
        let thread = thread::Builder::new().name("consumer-0".to_owned());
        let running = Self {
            orders,
            dispatches,
            waker,
            thread: thread.spawn(move || made.run())?,
        };
        running.order(Order::Connect)?;
        running.order(Order::Start {
            origin: Micros::ZERO,
        })?;
        Ok(running)
    }

    fn order(&self, order: Order) -> Done {
        self.orders.send(order)?;
        self.waker.wake();
        Ok(())
    }

    fn next_dispatch(&self) -> Result<Box<Dispatch>, Box<dyn Error>> {
        Ok(self.dispatches.recv_timeout(PATIENCE)?.1)
    }

    fn finish(self) -> Result<Box<Handover>, Box<dyn Error>> {
        self.order(Order::Finish)?;
        loop {
            if let Some(handover) = self.next_dispatch()?.handover {
                self.thread.join().map_err(|_| "the consumer panicked")??;
                return Ok(handover);
            }
        }
    }
}

fn spec(plan: &Arc<Plan>) -> Result<ConsumersSpec, Box<dyn Error>> {
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
            target: ([127, 0, 0, 1], 9092).into(),
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
