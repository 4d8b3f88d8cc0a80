//! One shard on its thread, as the tests of the driver use it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use muster_conduct::{Dispatch, FactWriter, Order, Slice, Trial, recorder_plan, schedules};
use muster_device::{Mqtt, SharedSockets};
use muster_fleet::{Lines, ShardSpec, Streams, shard_loop};
use muster_model::RunId;
use muster_net::{Clock, Mailbox, Waker};
use muster_plan::Plan;
use muster_protocol::layer::Plain;
use muster_scenario::{NoFiles, Overrides, Source, parse};

/// Far longer than a test takes, so that only a shard that hangs meets it.
const PATIENCE: Duration = Duration::from_secs(60);

fn plan(text: &str) -> Plan {
    let source = Source {
        name: "shard.yaml",
        text,
    };
    parse(source, &Overrides::default(), &NoFiles).unwrap_or_else(|problems| panic!("{problems}"))
}

pub(crate) struct Shard {
    orders: SyncSender<Order>,
    dispatches: Receiver<(usize, Box<Dispatch>)>,
    waker: Waker,
    pub(crate) clock: Clock,
}

impl Shard {
    /// Its links are down, and it tells every fact to `writer` as well.
    pub(crate) fn start(
        scenario: &str,
        target: SocketAddr,
        writer: Option<Box<dyn FactWriter>>,
    ) -> Self {
        Self::start_over::<Mqtt, _>(scenario, target, writer, |_| Streams(Plain))
    }

    /// With other lines between its sockets and its sessions.
    pub(crate) fn start_over<P, L>(
        scenario: &str,
        target: SocketAddr,
        writer: Option<Box<dyn FactWriter>>,
        lines: impl FnOnce(Arc<Plan>) -> L,
    ) -> Self
    where
        P: SharedSockets<Settings: Send + Sync, State: Send, Key: Send, Unfit: Send>
            + Send
            + 'static,
        L: Lines<Line: Send> + Send + 'static,
    {
        let (plan, run, clock) = (Arc::new(plan(scenario)), RunId(1), Clock::start());
        let schedules = schedules(&plan).expect("the plan was checked");
        let lines = lines(Arc::clone(&plan));
        let spec = ShardSpec {
            recorder: recorder_plan(&plan, run, &schedules),
            plan,
            schedules,
            run,
            slice: Slice::WHOLE,
            clock,
            gateways: Vec::new(),
            trial: Trial {
                slots: 16,
                buffers: 16,
                lost_copy: None,
            },
        };
        let (orders, inbox) = sync_channel(8);
        let (outbox, dispatches) = sync_channel(1_000);
        let mailbox = Mailbox::new(0, inbox, outbox);
        let mut shard = shard_loop::<P, L>(&spec, vec![target], lines, writer, mailbox)
            .expect("it can be placed");
        let waker = shard.parts().1.waker();
        std::thread::spawn(move || shard.run());
        Self {
            orders,
            dispatches,
            waker,
            clock,
        }
    }

    pub(crate) fn order(&self, order: Order) {
        self.orders.send(order).expect("the shard lives");
        self.waker.wake();
    }

    pub(crate) fn wait_for<T>(&self, mut seen: impl FnMut(&Dispatch) -> Option<T>) -> T {
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
