//! Parts of both examples of cost: a scenario, its messages, and a consumer as a run has it.

use std::error::Error;
use std::io::Write;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use muster_backend::{ConsumerPlan, ConsumersError, ConsumersSpec};
use muster_conduct::{Dispatch, Handover, Order, directory, recorder_plan, schedules, uplink};
use muster_model::{BackendId, ConsumerId, DeviceId, MessageId, Micros, RunId, StreamId};
use muster_net::{Clock, Handler, Loop, LoopError, Mailbox, Waker};
use muster_plan::Plan;
use muster_platform::{Directory, DueTimes, Uplink, UplinkScratch};
use muster_scenario::{NoFiles, Overrides, Source, parse};
use rustix::time::{ClockId, clock_gettime};

const RUN: RunId = RunId(7);
pub(crate) const TENANT: &str = "load-tests";
const DEVICES: u32 = 2_500;
/// Messages of each device, a second.
const RATE: u64 = 10;
/// Since when the first message has been due when the consumers begin: all are late.
const AGO: Duration = Duration::from_secs(600);
/// A generous limit: only a hang reaches it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) type Failure = Box<dyn Error + Send + Sync>;
pub(crate) type Done = Result<(), Failure>;
type ConsumerMailbox = Mailbox<Order, Box<Dispatch>>;

/// Devices that send Ditto messages of 600 bytes, and a backend with these keys.
pub(crate) fn plan(backend: &str, messages: u64) -> Result<Arc<Plan>, Failure> {
    let seconds = messages.div_ceil(u64::from(DEVICES) * RATE);
    let (rate, note) = (u64::from(DEVICES) * RATE, "x".repeat(281));
    let text = format!(
        r#"name: cost
platform:
  kind: hono
  devices: [ "coap://127.0.0.1:5683" ]
  backend: {{ {backend} }}
fleet:
  - name: meters
    count: {DEVICES}
    id: "org.eclipse.muster:meter-${{index:04}}"
    tenant: {TENANT}
    streams:
      - name: telemetry
        rate: {rate}/s
        payload: {{ template: '{{"topic":"org.eclipse.muster/meter-${{index:04}}/things/twin/commands/modify","headers":{{"response-required":false,"correlation-id":"${{stamp}}","content-type":"application/vnd.eclipse.ditto+json"}},"path":"/features/temperature/properties","value":{{"temperature":${{normal:20:3}},"unit":"Celsius","ts":${{due_ms}},"note":"{note}"}}}}' }}
phases: {{ measure: {seconds}s, settle: {{ at-most: 250s, quiet: 3s }} }}
"#
    );
    let source = Source {
        name: "cost",
        text: &text,
    };
    let parsed = parse(source, &Overrides::default(), &NoFiles);
    parsed
        .map(Arc::new)
        .map_err(|problems| problems.to_string().into())
}

/// The messages of a plan, in the order of their devices.
pub(crate) struct Messages {
    directory: Directory,
    uplink: Uplink,
    due_times: DueTimes,
    scratch: UplinkScratch,
}

impl Messages {
    pub(crate) fn new(plan: &Plan) -> Result<Self, Failure> {
        let (fleet, stream) = plan.stream(StreamId(0)).ok_or("the plan has a stream")?;
        let mut due_times = DueTimes::new(&schedules(plan)?);
        due_times.start(Micros::ZERO);
        Ok(Self {
            directory: directory(plan, fleet, 0),
            uplink: uplink(stream)?,
            due_times,
            scratch: UplinkScratch::default(),
        })
    }

    /// The device and the payload of the n-th message.
    pub(crate) fn render(&mut self, number: u64) -> Result<(String, &[u8]), Failure> {
        let id = MessageId {
            run: RUN,
            device: DeviceId((number % u64::from(DEVICES)) as u32),
            stream: StreamId(0),
            seq: (number / u64::from(DEVICES)) as u32,
        };
        let due = self.due_times.of(&id);
        let due = due.ok_or("the plan has no such message")?;
        self.uplink
            .render(&self.directory, &id, due, &mut self.scratch);
        let device = format!("org.eclipse.muster:meter-{:04}", id.device.0 + 1);
        Ok((device, &self.scratch.payload))
    }
}

/// A consumer on its thread.
pub(crate) struct Running {
    orders: SyncSender<Order>,
    dispatches: Receiver<(usize, Box<Dispatch>)>,
    waker: Waker,
    thread: JoinHandle<Result<(), LoopError>>,
}

impl Running {
    /// Starts the consumer that `make` makes, and gives it its first orders.
    pub(crate) fn start<H: Handler + Send + 'static>(
        plan: &Arc<Plan>,
        make: impl FnOnce(&ConsumersSpec, ConsumerMailbox) -> Result<Loop<H>, ConsumersError>,
        orders: [Order; 2],
    ) -> Result<Self, Failure> {
        let ((to_loop, inbox), (outbox, dispatches)) = (sync_channel(8), sync_channel(1_000));
        let mut made = make(&spec(plan)?, Mailbox::new(0, inbox, outbox))?;
        let waker = made.parts().1.waker();
        let thread = thread::Builder::new().name("consumer-0".to_owned());
        let running = Self {
            orders: to_loop,
            dispatches,
            waker,
            thread: thread.spawn(move || made.run())?,
        };
        for order in orders {
            running.order(order)?;
        }
        Ok(running)
    }

    fn order(&self, order: Order) -> Done {
        self.orders.send(order)?;
        self.waker.wake();
        Ok(())
    }

    pub(crate) fn next_dispatch(&self) -> Result<Box<Dispatch>, Failure> {
        Ok(self.dispatches.recv_timeout(PATIENCE)?.1)
    }

    pub(crate) fn finish(self) -> Result<Box<Handover>, Failure> {
        self.order(Order::Finish)?;
        loop {
            if let Some(handover) = self.next_dispatch()?.handover {
                self.thread.join().map_err(|_| "the consumer panicked")??;
                return Ok(handover);
            }
        }
    }

    /// Consumes this number of messages, and reports the CPU time since `began`.
    pub(crate) fn consume(self, messages: u64, began: f64) -> Done {
        let mut taken = 0;
        while taken < messages {
            let dispatch = self.next_dispatch()?;
            let copies = dispatch.windows.copies.values();
            taken += copies.map(|copies| copies.consumed).sum::<u64>();
        }
        let account = self.finish()?.account;
        report(taken, account.backends[0].read.count, began)
    }
}

/// The order to start at an origin that all messages are later than.
pub(crate) const START: Order = Order::Start {
    origin: Micros::ZERO,
};

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

/// Prints a line of JSON; `read` is the number of messages whose id was read.
pub(crate) fn report(taken: u64, read: u64, began: f64) -> Done {
    let cpu = cpu_s() - began;
    let text = format!(r#"{{"messages":{taken},"read":{read},"cpu_s":{cpu:.6}}}"#);
    Ok(writeln!(std::io::stdout(), "{text}")?)
}

/// CPU time of the process, in seconds.
pub(crate) fn cpu_s() -> f64 {
    let at = clock_gettime(ClockId::ProcessCPUTime);
    at.tv_sec as f64 + at.tv_nsec as f64 / 1e9
}
