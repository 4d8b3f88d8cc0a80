//! One shard on its thread, as the tests of the driver use it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use muster_conduct::{Dispatch, FactWriter, Order, Slice, Trial, recorder_plan, schedules};
use muster_device::Mqtt;
use muster_fleet::{MakeDriver, RenewedTargets, ShardSpec, Streams, shard_loop, stream_driver};
use muster_model::RunId;
use muster_net::{Clock, Mailbox, Waker};
use muster_plan::Plan;
use muster_platform::Protocol;
use muster_protocol::layer::Plain;
use muster_scenario::{NoFiles, Overrides, Source, parse};

/// Far longer than a test takes, so that only a shard that hangs meets it.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn plan(text: &str) -> Plan {
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

/// A shard of all links of a plan.
pub(crate) fn spec(
    plan: Plan,
    targets: Vec<(Protocol, SocketAddr)>,
    renewed: Option<Arc<RenewedTargets>>,
) -> ShardSpec {
    let (plan, run, clock) = (Arc::new(plan), RunId(1), Clock::start());
    let schedules = schedules(&plan).expect("the plan was checked");
    ShardSpec {
        recorder: recorder_plan(&plan, run, &schedules),
        plan,
        schedules,
        run,
        slice: Slice::WHOLE,
        clock,
        targets,
        renewed,
        gateways: Vec::new(),
        trial: Trial {
            slots: 16,
            buffers: 16,
            lost_copy: None,
        },
    }
}

impl Shard {
    /// Its links are down, and it tells every fact to `writer` as well.
    pub(crate) fn start(
        scenario: &str,
        target: SocketAddr,
        writer: Option<Box<dyn FactWriter>>,
    ) -> Self {
        let driver = stream_driver::<Mqtt, _>(|_| Streams(Plain), writer);
        let targets = vec![(Protocol::Mqtt, target)];
        Self::start_over(plan(scenario), targets, vec![driver])
    }

    /// With other drivers, one for each protocol of the plan.
    pub(crate) fn start_over(
        plan: Plan,
        targets: Vec<(Protocol, SocketAddr)>,
        drivers: Vec<MakeDriver>,
    ) -> Self {
        Self::start_renewing(plan, (targets, None), drivers)
    }

    /// With addresses that may be replaced.
    pub(crate) fn start_renewing(
        plan: Plan,
        (targets, renewed): (Vec<(Protocol, SocketAddr)>, Option<Arc<RenewedTargets>>),
        drivers: Vec<MakeDriver>,
    ) -> Self {
        let spec = spec(plan, targets, renewed);
        let clock = spec.clock;
        let (orders, inbox) = sync_channel(8);
        let (outbox, dispatches) = sync_channel(1_000);
        let mailbox = Mailbox::new(0, inbox, outbox);
        let (ready, is_ready) = sync_channel(1);
        std::thread::spawn(move || {
            let mut shards = shard_loop(&spec, drivers, mailbox).expect("it can be placed");
            ready.send(shards.parts().1.waker()).expect("it is awaited");
            shards.run()
        });
        let waker = is_ready.recv().expect("the shards stand");
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
