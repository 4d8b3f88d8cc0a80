//! A real Kafka consumer before the mock cluster that librdkafka brings: no broker, but its protocol.

#![expect(
    clippy::unwrap_used,
    reason = "what the helpers take for granted is the test's own doing"
)]

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use muster_backend::{ConsumersSpec, Seat, kafka_loop};
use muster_conduct::{
    Dispatch, Handover, Order, Trouble, recorder_plan, roster, schedules, uplink,
};
use muster_model::{BackendId, ConsumerId, DeviceId, MessageId, Micros, RunId, StreamId};
use muster_net::{Clock, Mailbox, Waker};
use muster_platform::UplinkScratch;
use muster_scenario::{NoFiles, Overrides, Plan, Source, parse};
use rdkafka::config::ClientConfig;
use rdkafka::mocking::MockCluster;
use rdkafka::producer::{BaseProducer, BaseRecord, DefaultProducerContext, Producer};

const RUN: RunId = RunId(7);
const TOPIC: &str = "readings";
const PARTITIONS: i32 = 4;
/// Far longer than a test takes, so that only what hangs meets it.
const PATIENCE: Duration = Duration::from_secs(60);

fn plan(servers: &str, keys: &str) -> Plan {
    let text = format!(
        "name: kafka
platform:
  kind: mqtt
  devices: [ 'mqtt://127.0.0.1:1883' ]
  backend: {{ url: 'kafka://{servers}', topics: {{ {TOPIC}: {PARTITIONS} }}, {keys} }}
fleet: [ {{ name: meters, count: 10, streams: [ {{ name: r, rate: 10/s, payload: {{ size: 64 }} }} ] }} ]
phases: {{ measure: 60s }}
"
    );
    let source = Source {
        name: "kafka.yaml",
        text: &text,
    };
    parse(source, &Overrides::default(), &NoFiles).unwrap_or_else(|problems| panic!("{problems}"))
}

/// A cluster of one pretended broker, and who publishes there.
struct Mock {
    cluster: MockCluster<'static, DefaultProducerContext>,
    producer: BaseProducer,
}

impl Mock {
    fn start() -> Self {
        let cluster = MockCluster::new(1).unwrap();
        cluster.create_topic(TOPIC, PARTITIONS, 1).unwrap();
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", cluster.bootstrap_servers());
        let producer = config.create().unwrap();
        Self { cluster, producer }
    }

    fn servers(&self) -> String {
        self.cluster.bootstrap_servers()
    }

    fn publish(&self, key: &str, payload: &[u8]) {
        let record = BaseRecord::to(TOPIC).key(key).payload(payload);
        self.producer
            .send(record)
            .map_err(|(error, _)| error)
            .unwrap();
        self.producer.flush(PATIENCE).unwrap();
    }

    /// Publishes what a device of the plan says.
    fn publish_message(&self, plan: &Plan, seq: u32) {
        let (fleet, stream) = plan.stream(StreamId(0)).unwrap();
        let id = MessageId {
            run: RUN,
            device: DeviceId(seq % 10),
            stream: StreamId(0),
            seq: seq / 10,
        };
        let mut scratch = UplinkScratch::default();
        let roster = roster(plan, fleet, 0);
        let uplink = uplink(stream).unwrap();
        uplink.render(&roster, &id, Micros::ZERO, &mut scratch);
        self.publish(scratch.topic(), &scratch.payload);
    }
}

/// One consumer on its thread.
struct Rig {
    orders: SyncSender<Order>,
    dispatches: Receiver<(usize, Box<Dispatch>)>,
    waker: Waker,
    clock: Clock,
    thread: JoinHandle<()>,
    troubles: Vec<Trouble>,
    copies: u64,
}

impl Rig {
    fn start(plan: &Plan) -> Self {
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
            troubles: Vec::new(),
            copies: 0,
        };
        rig.order(Order::Connect);
        rig
    }

    /// A consumer that is up, and whose run has begun.
    fn up(plan: &Plan) -> Self {
        let mut rig = Self::start(plan);
        rig.until(|rig, up| up && rig.copies == 0);
        let origin = rig.clock.now();
        rig.order(Order::Start { origin });
        rig
    }

    fn order(&self, order: Order) {
        self.orders.send(order).unwrap();
        self.waker.wake();
    }

    /// Hears until it is so; the second argument is whether the consumer is up.
    fn until(&mut self, is_so: impl Fn(&Self, bool) -> bool) {
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
        let copies = dispatch.windows.copies.values();
        self.copies += copies.map(|it| it.consumed).sum::<u64>();
        self.troubles.extend(dispatch.troubles);
        dispatch.handover
    }

    fn finish(mut self) -> (Box<Handover>, Vec<Trouble>) {
        self.order(Order::Finish);
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
        (handover, self.troubles)
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
        seats: vec![Seat {
            backend: BackendId(0),
            consumer: ConsumerId(0),
            target: ([127, 0, 0, 1], 9092).into(),
        }],
        lost_copy: None,
    }
}

fn told(troubles: &[Trouble], part: &str) -> bool {
    let texts = troubles.iter().map(|trouble| format!("{trouble:?}"));
    texts.into_iter().any(|text| text.contains(part))
}

#[test]
fn what_comes_after_the_consumer_is_up_is_consumed_and_nothing_before() {
    let mock = Mock::start();
    let plan = plan(&mock.servers(), "consumers: 1");
    (0..40).for_each(|seq| mock.publish_message(&plan, seq));
    let mut rig = Rig::up(&plan);
    (40..90).for_each(|seq| mock.publish_message(&plan, seq));
    mock.publish("", b"");
    mock.publish("somebody", b"else");
    rig.until(|rig, _| rig.copies == 52);
    let (handover, troubles) = rig.finish();
    let account = &handover.account.backends[0];
    assert_eq!((account.consumed, account.unstamped), (52, 2));
    assert_eq!(account.read.count, 50);
    assert!(!told(&troubles, "Consumer"), "{troubles:?}");
}

#[test]
fn two_consumers_of_a_group_share_what_comes() {
    let mock = Mock::start();
    let plan = plan(&mock.servers(), "consumers: 2, shared: g");
    mock.publish_message(&plan, 0);
    let mut first = Rig::start(&plan);
    let mut second = Rig::start(&plan);
    first.until(|_, is_up| is_up);
    second.until(|_, is_up| is_up);
    for rig in [&first, &second] {
        let origin = rig.clock.now();
        rig.order(Order::Start { origin });
    }
    (1..101).for_each(|seq| mock.publish_message(&plan, seq));
    while first.copies + second.copies < 100 {
        first.until(|_, _| true);
        second.until(|_, _| true);
    }
    let (first, second) = (first.finish().0, second.finish().0);
    let of = |handover: &Handover| handover.account.backends[0].consumed;
    assert_eq!(of(&first) + of(&second), 100);
    assert!(of(&first) > 0 && of(&second) > 0);
}

#[test]
fn a_broker_that_does_not_answer_is_told_and_so_is_its_return() {
    let mock = Mock::start();
    let plan = plan(&mock.servers(), "consumers: 1");
    let mut rig = Rig::up(&plan);
    mock.cluster
        .broker_round_trip_time(1, Duration::from_secs(8))
        .unwrap();
    rig.until(|rig, _| told(&rig.troubles, "ConsumerLost"));
    assert!(
        told(&rig.troubles, "has not answered for"),
        "{:?}",
        rig.troubles
    );
    mock.cluster
        .broker_round_trip_time(1, Duration::ZERO)
        .unwrap();
    rig.until(|rig, is_up| is_up && told(&rig.troubles, "ConsumerBack"));
    rig.finish();
}

#[test]
fn a_broker_that_ends_its_connections_is_told() {
    let mock = Mock::start();
    let plan = plan(&mock.servers(), "consumers: 1");
    let mut rig = Rig::up(&plan);
    mock.cluster.broker_down(1).unwrap();
    rig.until(|rig, _| told(&rig.troubles, "ConsumerLost"));
    mock.cluster.broker_up(1).unwrap();
    rig.until(|rig, is_up| is_up && told(&rig.troubles, "ConsumerBack"));
    mock.publish_message(&plan, 0);
    rig.until(|rig, _| rig.copies == 1);
    rig.finish();
}

#[test]
fn what_comes_while_the_consumer_is_paused_is_consumed_after_it() {
    let mock = Mock::start();
    let plan = plan(
        &mock.servers(),
        "consumers: 1, pause: [ { at: 0s, for: 3s } ]",
    );
    let mut rig = Rig::up(&plan);
    let resumed = rig.clock.now() + Micros::from_secs(2);
    // The pause begins with the run, and the first news after it may still hold copies.
    rig.until(|_, _| true);
    rig.until(|_, _| true);
    (0..20).for_each(|seq| mock.publish_message(&plan, seq));
    rig.until(|rig, _| rig.copies > 0);
    assert!(rig.clock.now() > resumed);
    rig.until(|rig, _| rig.copies == 20);
    assert_eq!(rig.finish().0.account.backends[0].consumed, 20);
}

#[test]
fn where_no_broker_listens_the_consumer_names_the_key() {
    let plan = plan("127.0.0.1:1", "consumers: 1");
    let mut rig = Rig::start(&plan);
    rig.until(|rig, _| told(&rig.troubles, "ConsumerRefused"));
    let (_, troubles) = rig.finish();
    assert!(told(&troubles, "127.0.0.1:1"), "{troubles:?}");
    assert!(told(&troubles, "platform.backend.url"), "{troubles:?}");
    let refusals = troubles.iter();
    let refusals = refusals.filter(|it| matches!(it, Trouble::ConsumerRefused(_)));
    assert_eq!(refusals.count(), 1, "{troubles:?}");
}

#[test]
fn a_topic_that_the_consumer_may_not_read_names_the_right() {
    let mock = Mock::start();
    let plan = plan(&mock.servers(), "consumers: 1");
    let refused = rdkafka::types::RDKafkaRespErr::RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED;
    mock.cluster.topic_error(TOPIC, refused).unwrap();
    let mut rig = Rig::start(&plan);
    rig.until(|rig, _| told(&rig.troubles, "ConsumerRefused"));
    let (_, troubles) = rig.finish();
    assert!(told(&troubles, "`readings`"), "{troubles:?}");
    assert!(
        told(&troubles, "allow platform.backend.user"),
        "{troubles:?}"
    );
}
