//! A peer that goes on sending and never reads.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use muster_conduct::{Dispatch, Order, Slice, recorder_plan, schedules};
use muster_fleet::{ShardSpec, shard_loop};
use muster_model::{Cause, RunId};
use muster_net::{Clock, Mailbox, Waker};
use muster_scenario::{Overrides, Plan, Reader, Source, parse};

/// One device that sends a message larger than all buffers of the kernel.
const SCENARIO: &str = "
name: waiting
platform: { kind: mqtt, devices: [ 'mqtt://127.0.0.1:1883' ] }
fleet: [ { name: meters, count: 1, client: { version: 5 }, streams: [ { name: r, rate: 1/s, qos: 2, payload: { size: 67108864 } } ] } ]
phases: { measure: 60s }
";
/// CONNACK of MQTT 5 without properties.
const CONNACK: [u8; 5] = [0x20, 3, 0, 0, 0];
/// PUBREC of a packet id that was never used: it is answered, with some bytes.
const PUBREC: [u8; 4] = [0x50, 2, 0x77, 0x77];
/// Far longer than the test takes, so that only a shard that hangs meets it.
const PATIENCE: Duration = Duration::from_secs(60);

struct NoFiles;

impl Reader for NoFiles {
    fn file(&self, _: &str) -> Result<Vec<u8>, String> {
        Err("no such file".to_owned())
    }

    fn variable(&self, _: &str) -> Option<String> {
        None
    }
}

fn plan() -> Plan {
    let source = Source {
        name: "waiting.yaml",
        text: SCENARIO,
    };
    parse(source, &Overrides::default(), &NoFiles).unwrap_or_else(|problems| panic!("{problems}"))
}

/// Takes a device, waits for the head of its message, and answers without end.
fn flood(listener: &TcpListener) {
    let (mut socket, _) = listener.accept().expect("the device comes");
    let mut bytes = [0; 4_096];
    let _ = socket.read(&mut bytes).expect("it says something");
    socket.write_all(&CONNACK).expect("it listens");
    let _ = socket.read(&mut bytes).expect("it says something");
    let answers = PUBREC.repeat(1_024);
    while socket.write_all(&answers).is_ok() {}
}

struct Shard {
    orders: SyncSender<Order>,
    dispatches: Receiver<(usize, Box<Dispatch>)>,
    waker: Waker,
    clock: Clock,
}

impl Shard {
    fn start(target: SocketAddr) -> Self {
        let (plan, run, clock) = (plan(), RunId(1), Clock::start());
        let schedules = schedules(&plan).expect("the plan was checked");
        let spec = ShardSpec {
            recorder: recorder_plan(&plan, run, &schedules),
            plan: Arc::new(plan),
            schedules,
            run,
            slice: Slice::WHOLE,
            clock,
            slot_limit: 16,
        };
        let (orders, inbox) = sync_channel(8);
        let (outbox, dispatches) = sync_channel(1_000);
        let mailbox = Mailbox::new(0, inbox, outbox);
        let mut shard = shard_loop(&spec, vec![target], None, mailbox).expect("it can be placed");
        let waker = shard.parts().1.waker();
        std::thread::spawn(move || shard.run());
        Self {
            orders,
            dispatches,
            waker,
            clock,
        }
    }

    fn order(&self, order: Order) {
        self.orders.send(order).expect("the shard lives");
        self.waker.wake();
    }

    fn wait_for<T>(&self, mut seen: impl FnMut(&Dispatch) -> Option<T>) -> T {
        loop {
            let (_, dispatch) = self
                .dispatches
                .recv_timeout(PATIENCE)
                .expect("the shard goes on");
            if let Some(found) = seen(&dispatch) {
                return found;
            }
        }
    }
}

#[test]
fn a_peer_that_answers_without_end_and_reads_nothing_is_cut_off() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let shard = Shard::start(listener.local_addr().unwrap());
    let peer = std::thread::spawn(move || flood(&listener));
    shard.order(Order::Connect);
    shard.wait_for(|dispatch| (dispatch.progress.links_up == 1).then_some(()));
    let origin = shard.clock.now();
    shard.order(Order::Start { origin });
    let causes = shard.wait_for(|dispatch| {
        let mut links = dispatch.windows.links.values();
        let ended = links.find(|window| window.counts.disconnects.total() > 0)?;
        let causes = ended.counts.disconnects.iter();
        Some(causes.map(|(cause, _)| cause).collect::<Vec<Cause>>())
    });
    assert_eq!(causes, [Cause::Malformed]);
    peer.join().unwrap();
}
