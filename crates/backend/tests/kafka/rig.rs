//! Shared parts of the tests: the mock cluster, and a consumer on its thread.

use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use muster_backend::{ConsumerPlan, ConsumersSpec, kafka_loop};
use muster_conduct::{
    Diagnostic, Dispatch, Handover, Order, directory, recorder_plan, schedules, uplink,
};
use muster_measure::CountBy;
use muster_model::{BackendId, ConsumerId, DeviceId, MessageId, Micros, Reason, RunId, StreamId};
use muster_net::{Clock, Mailbox, Waker};
use muster_plan::Plan;
use muster_platform::UplinkScratch;
use muster_scenario::{NoFiles, Overrides, Source, parse};
use rdkafka::config::ClientConfig;
use rdkafka::mocking::MockCluster;
use rdkafka::producer::{BaseProducer, BaseRecord, DefaultProducerContext, Producer};

pub(crate) const RUN: RunId = RunId(7);
pub(crate) const TOPIC: &str = "readings";
pub(crate) const PARTITIONS: i32 = 4;
/// Far longer than a test takes, so that only what hangs meets it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn plan(servers: &str, keys: &str) -> Plan {
    plan_of(servers, keys, "payload: { size: 64 }")
}

/// With further keys of the stream.
pub(crate) fn plan_of(servers: &str, keys: &str, stream: &str) -> Plan {
    let text = format!(
        "name: kafka
platform:
  kind: mqtt
  devices: [ 'mqtt://127.0.0.1:1883' ]
  backend: {{ url: 'kafka://{servers}', topics: {{ {TOPIC}: {PARTITIONS} }}, {keys} }}
fleet: [ {{ name: meters, count: 10, client: {{ version: 5 }}, streams: [ {{ name: r, rate: 10/s, {stream} }} ] }} ]
phases: {{ measure: 60s }}
"
    );
    parsed(&text)
}

pub(crate) fn parsed(text: &str) -> Plan {
    let name = "kafka.yaml";
    let source = Source { name, text };
    parse(source, &Overrides::default(), &NoFiles).unwrap_or_else(|problems| panic!("{problems}"))
}

/// A cluster of one pretended broker, and who publishes there.
pub(crate) struct Mock {
    pub(crate) cluster: MockCluster<'static, DefaultProducerContext>,
    pub(crate) producer: BaseProducer,
}

impl Mock {
    pub(crate) fn start() -> Self {
        let cluster = MockCluster::new(1).unwrap();
        cluster.create_topic(TOPIC, PARTITIONS, 1).unwrap();
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", cluster.bootstrap_servers());
        let producer = config.create().unwrap();
        Self { cluster, producer }
    }

    pub(crate) fn servers(&self) -> String {
        self.cluster.bootstrap_servers()
    }

    pub(crate) fn publish(&self, key: &str, payload: &[u8]) {
        self.send(BaseRecord::to(TOPIC).key(key).payload(payload));
    }

    pub(crate) fn send(&self, record: BaseRecord<'_, str, [u8]>) {
        self.producer
            .send(record)
            .map_err(|(error, _)| error)
            .unwrap();
        self.producer.flush(PATIENCE).unwrap();
    }

    /// Publishes what a device of the plan says.
    pub(crate) fn publish_message(&self, plan: &Plan, seq: u32) {
        self.publish_messages(plan, seq..seq + 1);
    }

    /// Publishes what devices of the plan say, at once.
    pub(crate) fn publish_messages(&self, plan: &Plan, seqs: Range<u32>) {
        let (fleet, stream) = plan.stream(StreamId(0)).unwrap();
        let (directory, uplink) = (directory(plan, fleet, 0), uplink(stream).unwrap());
        let mut scratch = UplinkScratch::default();
        for seq in seqs {
            let id = MessageId {
                run: RUN,
                device: DeviceId(seq % 10),
                stream: StreamId(0),
                seq: seq / 10,
            };
            uplink.render(&directory, &id, Micros::ZERO, &mut scratch);
            let record = BaseRecord::to(TOPIC).key(scratch.topic());
            let sent = self.producer.send(record.payload(&scratch.payload));
            sent.map_err(|(error, _)| error).unwrap();
        }
        self.producer.flush(PATIENCE).unwrap();
    }
}

/// One consumer on its thread.
pub(crate) struct Rig {
    orders: SyncSender<Order>,
    dispatches: Receiver<(usize, Box<Dispatch>)>,
    waker: Waker,
    pub(crate) clock: Clock,
    thread: JoinHandle<()>,
    pub(crate) diagnostics: Vec<Diagnostic>,
    pub(crate) copies: u64,
    /// Of these the altered ones.
    pub(crate) corrupted: u64,
    /// Copies of replies.
    pub(crate) replies: u64,
    /// First copies of them, by the status that they tell.
    pub(crate) by_status: CountBy<Reason>,
    /// Commands of which not all is known.
    pub(crate) open: u64,
}

impl Rig {
    pub(crate) fn start(plan: &Plan) -> Self {
        let clock = Clock::start();
        let (orders, inbox) = sync_channel(8);
        let (outbox, dispatches) = sync_channel(1_000);
        let mut made =
            kafka_loop(&spec(plan, clock), None, Mailbox::new(0, inbox, outbox)).unwrap();
        let waker = made.parts().1.waker();
        let thread = std::thread::spawn(move || made.run().unwrap());
        let rig = Self {
            orders,
            dispatches,
            waker,
            clock,
            thread,
            diagnostics: Vec::new(),
            copies: 0,
            corrupted: 0,
            replies: 0,
            by_status: CountBy::default(),
            open: 0,
        };
        rig.order(Order::Connect);
        rig
    }

    /// A consumer that is up, and whose run has begun.
    pub(crate) fn up(plan: &Plan) -> Self {
        let rig = Self::up_only(plan);
        rig.begin();
        rig
    }

    /// A consumer that is up.
    pub(crate) fn up_only(plan: &Plan) -> Self {
        let mut rig = Self::start(plan);
        rig.until(|rig, up| up && rig.copies == 0);
        rig
    }

    /// Messages and commands are due from now on.
    pub(crate) fn begin(&self) {
        let origin = self.clock.now();
        self.order(Order::Start { origin });
    }

    pub(crate) fn order(&self, order: Order) {
        self.orders.send(order).unwrap();
        self.waker.wake();
    }

    /// Hears until it is so; the second argument is whether the consumer is up.
    pub(crate) fn until(&mut self, is_so: impl Fn(&Self, bool) -> bool) {
        loop {
            let (_, dispatch) = self.dispatches.recv_timeout(PATIENCE).expect("news");
            let is_up = dispatch.progress.consumers_up == 1;
            self.hear(*dispatch);
            if is_so(self, is_up) {
                return;
            }
        }
    }

    fn hear(&mut self, dispatch: Dispatch) -> Option<Box<Handover>> {
        for it in dispatch.windows.copies.values() {
            self.copies += it.consumed;
            self.corrupted += it.corrupted;
        }
        let replies = dispatch.windows.commands.values().map(|it| &it.counts);
        self.replies += replies.map(|it| it.replies + it.replies_again).sum::<u64>();
        for it in dispatch.windows.commands.values() {
            self.by_status.merge(&it.counts.replies_by_status);
        }
        self.open = dispatch.progress.open;
        self.diagnostics.extend(dispatch.diagnostics);
        dispatch.handover
    }

    pub(crate) fn finish(self) -> (Box<Handover>, Vec<Diagnostic>) {
        self.order(Order::Finish);
        self.finished()
    }

    /// All that a consumer leaves behind that was told to finish.
    pub(crate) fn finished(mut self) -> (Box<Handover>, Vec<Diagnostic>) {
        let handover = loop {
            let (_, dispatch) = self
                .dispatches
                .recv_timeout(PATIENCE)
                .expect("the last news");
            if let Some(handover) = self.hear(*dispatch) {
                break handover;
            }
        };
        self.thread.join().unwrap();
        (handover, self.diagnostics)
    }
}

fn spec(plan: &Plan, clock: Clock) -> ConsumersSpec {
    let schedules = schedules(plan).unwrap();
    ConsumersSpec {
        recorder: recorder_plan(plan, RUN, &schedules),
        plan: Arc::new(plan.clone()),
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
    }
}

pub(crate) fn told(diagnostics: &[Diagnostic], part: &str) -> bool {
    let texts = diagnostics
        .iter()
        .map(|diagnostic| format!("{diagnostic:?}"));
    texts.into_iter().any(|text| text.contains(part))
}

/// Returns true if a consumer was refused or away; its lag is always reported.
pub(crate) fn disturbed(diagnostics: &[Diagnostic]) -> bool {
    let what = [
        "ConsumerAway",
        "ConsumerLost",
        "ConsumerBack",
        "ConsumerRefused",
    ];
    what.iter().any(|what| told(diagnostics, what))
}
