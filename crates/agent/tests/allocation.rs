//! The drivers of a run, over real sockets, allocate nothing per message once their buffers have
//! grown: what a second costs is its dispatches.

use std::alloc::System;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use muster_backend::{ConsumerPlan, ConsumersSpec, consumers_loop};
use muster_conduct::{Dispatch, Order, Slice, Trial, recorder_plan, schedules};
use muster_device::Mqtt;
use muster_fleet::{ShardSpec, Streams, shard_loop, stream_driver};
use muster_model::{BackendId, ConsumerId, Micros, RunId};
use muster_net::{Clock, Handler, Loop, Mailbox, Waker};
use muster_plan::Plan;
use muster_platform::Protocol;
use muster_protocol::layer::Plain;
use muster_scenario::{NoFiles, Overrides, Source, parse};
use muster_transport::Clients;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const SCENARIO: &str = "
name: allocation
platform: { kind: mqtt, devices: [ 'mqtt://127.0.0.1:1883' ], backend: { filter: 'muster/#', qos: 0 } }
fleet: [ { name: meters, count: 1, client: { version: 5 }, streams: [ { name: r, rate: 4000/s, qos: 1, payload: { size: 64 } } ] } ]
phases: { measure: 600s }
";
/// Buffers and windows grow.
const WARM_UP: Micros = Micros::from_secs(3);
const MEASURED: Micros = Micros::from_secs(3);
/// Most allocations for one dispatch: the maps of its windows, whatever the number of messages.
const PER_DISPATCH_MAX: usize = 150;
/// Far longer than the test takes.
const PATIENCE: Duration = Duration::from_secs(60);
/// CONNACK of MQTT 5 without properties: no topic alias is taken.
const CONNACK: [u8; 5] = [0x20, 3, 0, 0, 0];
const PUBLISH_QOS_1: u8 = 0x32;
const PUBLISH_QOS_0: u8 = 0x30;

/// A broker of one consumer and one device, which allocates nothing once it is at work.
fn relay(listener: &TcpListener) {
    let mut room = [0; 4_096];
    let (mut consumer, _) = listener.accept().expect("the consumer comes");
    let _ = consumer.read(&mut room).expect("CONNECT");
    consumer.write_all(&CONNACK).expect("it listens");
    let _ = consumer.read(&mut room).expect("SUBSCRIBE");
    let suback = [0x90, 4, room[2], room[3], 0, 0];
    consumer.write_all(&suback).expect("it listens");
    let (mut device, _) = listener.accept().expect("the device comes");
    let _ = device.read(&mut room).expect("CONNECT");
    device.write_all(&CONNACK).expect("it listens");
    pass_on(&mut device, &mut consumer);
}

fn pass_on(device: &mut TcpStream, consumer: &mut TcpStream) {
    let (mut input, mut length) = (vec![0; 1 << 16], 0);
    let (mut acks, mut copies) = (Vec::with_capacity(1 << 16), Vec::with_capacity(1 << 17));
    while let Ok(count @ 1..) = device.read(&mut input[length..]) {
        length += count;
        let used = translate(&input[..length], &mut acks, &mut copies);
        input.copy_within(used..length, 0);
        length -= used;
        if device.write_all(&acks).is_err() || consumer.write_all(&copies).is_err() {
            return;
        }
        acks.clear();
        copies.clear();
    }
}

/// Answers each whole PUBLISH at QoS 1, and copies it at QoS 0; how many bytes were used.
fn translate(bytes: &[u8], acks: &mut Vec<u8>, copies: &mut Vec<u8>) -> usize {
    let mut at = 0;
    while let Some((head, length)) = head(&bytes[at..]) {
        let Some(body) = bytes.get(at + head..at + head + length) else {
            break;
        };
        if bytes[at] == PUBLISH_QOS_1 {
            let topic = 2 + usize::from(body[0]) * 256 + usize::from(body[1]);
            let (topic, rest) = body.split_at(topic);
            let (id, rest) = rest.split_at(2);
            acks.extend_from_slice(&[0x40, 2, id[0], id[1]]);
            let length = topic.len() + rest.len();
            copies.push(PUBLISH_QOS_0);
            if length >= 128 {
                copies.push((length % 128) as u8 | 128);
                copies.push((length / 128) as u8);
            } else {
                copies.push(length as u8);
            }
            copies.extend_from_slice(topic);
            copies.extend_from_slice(rest);
        }
        at += head + length;
    }
    at
}

/// Bytes of a fixed header, and of what follows it.
fn head(bytes: &[u8]) -> Option<(usize, usize)> {
    let low = usize::from(*bytes.get(1)?);
    if low < 128 {
        return Some((2, low));
    }
    let high = usize::from(*bytes.get(2)?);
    Some((3, low - 128 + 128 * high))
}

/// A driver on its own thread.
struct Thread {
    orders: SyncSender<Order>,
    waker: Waker,
}

impl Thread {
    fn run<H: Handler>(
        orders: SyncSender<Order>,
        make: impl FnOnce() -> Loop<H> + Send + 'static,
    ) -> Self {
        let (ready, is_ready) = sync_channel(1);
        std::thread::spawn(move || {
            let mut driver = make();
            ready.send(driver.parts().1.waker()).expect("it is awaited");
            driver.run()
        });
        let waker = is_ready.recv().expect("the driver stands");
        Self { orders, waker }
    }

    fn order(&self, order: Order) {
        self.orders.send(order).expect("the thread lives");
        self.waker.wake();
    }
}

/// Figures that the dispatches have reported.
#[derive(Debug, Default, Clone, Copy)]
struct Told {
    consumed: u64,
    dispatches: usize,
    at: [Micros; 2],
}

struct Line {
    consumers: Thread,
    devices: Thread,
    dispatches: Receiver<(usize, Box<Dispatch>)>,
    told: Told,
}

impl Line {
    fn start(target: SocketAddr, clock: Clock) -> Self {
        let (name, text) = ("allocation.yaml", SCENARIO);
        let plan = parse(Source { name, text }, &Overrides::default(), &NoFiles);
        let plan = Arc::new(plan.unwrap_or_else(|problems| panic!("{problems}")));
        let (outbox, dispatches) = sync_channel(1_000);
        let sink = |thread| {
            let (orders, inbox) = sync_channel(8);
            (orders, Mailbox::new(thread, inbox, outbox.clone()))
        };
        let (to_consumers, mailbox) = sink(0);
        let spec = consumers(&plan, target, clock);
        let consumers = Thread::run(to_consumers, move || {
            consumers_loop(&spec, vec![Clients::Plain(Plain)], None, mailbox)
                .expect("they can be set up")
        });
        let (to_devices, mailbox) = sink(1);
        let spec = devices(&plan, target, clock);
        let devices = Thread::run(to_devices, move || {
            let driver = stream_driver::<Mqtt, _>(|_| Streams(Plain), None);
            shard_loop(&spec, vec![driver], mailbox).expect("it can be placed")
        });
        Self {
            consumers,
            devices,
            dispatches,
            told: Told::default(),
        }
    }

    /// Hears the threads until something holds.
    fn until(&mut self, mut holds: impl FnMut(&Dispatch, &Told) -> bool) {
        loop {
            let news = self.dispatches.recv_timeout(PATIENCE);
            let (thread, dispatch) = news.expect("the threads go on");
            let told = &mut self.told;
            let copies = dispatch.windows.copies.values();
            told.consumed += copies.map(|copies| copies.consumed).sum::<u64>();
            told.dispatches += 1;
            told.at[thread] = dispatch.progress.at;
            if holds(&dispatch, told) {
                return;
            }
        }
    }
}

fn consumers(plan: &Arc<Plan>, target: SocketAddr, clock: Clock) -> ConsumersSpec {
    let (run, schedules) = (RunId(1), schedules(plan).expect("the plan was checked"));
    ConsumersSpec {
        plan: Arc::clone(plan),
        recorder: recorder_plan(plan, run, &schedules),
        schedules,
        run,
        clock,
        consumers: vec![ConsumerPlan {
            backend: BackendId(0),
            consumer: ConsumerId(0),
            target,
        }],
        gateways: Vec::new(),
        lost_copy: None,
    }
}

fn devices(plan: &Arc<Plan>, target: SocketAddr, clock: Clock) -> ShardSpec {
    let (run, schedules) = (RunId(1), schedules(plan).expect("the plan was checked"));
    ShardSpec {
        plan: Arc::clone(plan),
        recorder: recorder_plan(plan, run, &schedules),
        schedules,
        run,
        slice: Slice::WHOLE,
        clock,
        targets: vec![(Protocol::Mqtt, target)],
        renewed: None,
        gateways: Vec::new(),
        trial: Trial {
            slots: 1 << 16,
            buffers: 16,
            lost_copy: None,
        },
    }
}

#[test]
fn a_message_costs_the_drivers_no_allocation_from_due_to_arrival() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let target = listener.local_addr().unwrap();
    std::thread::spawn(move || relay(&listener));
    let clock = Clock::start();
    let mut line = Line::start(target, clock);
    line.consumers.order(Order::Connect);
    line.until(|dispatch, _| dispatch.progress.consumers_up == 1);
    line.devices.order(Order::Connect);
    line.until(|dispatch, _| dispatch.progress.links_up == 1);
    let origin = clock.now();
    line.consumers.order(Order::Start { origin });
    line.devices.order(Order::Start { origin });
    line.until(|_, told| told.at.iter().all(|at| *at >= origin + WARM_UP));
    let (before, region) = (line.told, Region::new(ALLOCATOR));
    line.until(|_, told| told.at.iter().all(|at| *at >= origin + WARM_UP + MEASURED));
    let change = region.change();
    let messages = line.told.consumed - before.consumed;
    let dispatches = line.told.dispatches - before.dispatches;
    assert!(messages > 5_000, "{messages} messages in 3 s");
    let allocations = change.allocations + change.reallocations;
    assert!(
        allocations <= PER_DISPATCH_MAX * dispatches,
        "{allocations} in {dispatches} dispatches of {messages} messages"
    );
}
