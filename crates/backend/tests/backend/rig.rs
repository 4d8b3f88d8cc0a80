//! One consumer on its thread, and what its run reports.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use muster_backend::{ConsumerLoop, ConsumerPlan, ConsumersError, ConsumersSpec, Northbound};
use muster_conduct::{
    Diagnostic, Dispatch, Handover, Order, Progress, directory, recorder_plan, schedules, uplink,
};
use muster_measure::CountBy;
use muster_model::{BackendId, ConsumerId, DeviceId, MessageId, Micros, Reason, RunId, StreamId};
use muster_net::{Clock, Loop, LoopError, Mailbox, Waker};
use muster_plan::Plan;
use muster_platform::UplinkScratch;
use muster_scenario::{NoFiles, Overrides, Source, parse};

pub(crate) const RUN: RunId = RunId(7);
/// Far longer than a test takes, so that only what hangs meets it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// Ends of commands, in the order of their accounts.
pub(crate) const DELIVERED: usize = 0;
pub(crate) const UNDELIVERABLE: usize = 2;

pub(crate) fn parsed(text: &str) -> Plan {
    let name = "backend.yaml";
    let source = Source { name, text };
    parse(source, &Overrides::default(), &NoFiles).unwrap_or_else(|problems| panic!("{problems}"))
}

/// A message of the first stream's devices, as one of them sends it.
pub(crate) struct Sent {
    pub(crate) device: String,
    pub(crate) scratch: UplinkScratch,
}

/// The message of that number, of ten devices by turns.
pub(crate) fn sent(plan: &Plan, number: u32) -> Sent {
    let (fleet, stream) = plan.stream(StreamId(0)).unwrap();
    let (directory, uplink) = (directory(plan, fleet, 0), uplink(stream).unwrap());
    let mut scratch = UplinkScratch::default();
    let id = MessageId {
        run: RUN,
        device: DeviceId(number % 10),
        stream: StreamId(0),
        seq: number / 10,
    };
    uplink.render(&directory, &id, Micros::ZERO, &mut scratch);
    let mut device = String::new();
    directory.render_name(id.device, &mut device);
    Sent { device, scratch }
}

/// The way to a consumer's thread, which conducts it.
pub(crate) type Conducted = Mailbox<Order, Box<Dispatch>>;

/// One consumer on its thread.
pub(crate) struct Rig {
    orders: SyncSender<Order>,
    dispatches: Receiver<(usize, Box<Dispatch>)>,
    waker: Waker,
    pub(crate) clock: Clock,
    thread: JoinHandle<Result<(), LoopError>>,
    pub(crate) diagnostics: Vec<Diagnostic>,
    pub(crate) progress: Progress,
    pub(crate) copies: u64,
    /// Of these the altered ones.
    pub(crate) corrupted: u64,
    /// Copies of replies.
    pub(crate) replies: u64,
    /// First copies of them, by their status.
    pub(crate) by_status: CountBy<Reason>,
    /// Commands that were delivered.
    pub(crate) delivered: u64,
}

impl Rig {
    /// The first consumer of a plan's first backend, which connects to `target`. `make` creates its loop.
    pub(crate) fn start<N: Northbound + Send + 'static>(
        plan: &Plan,
        target: SocketAddr,
        make: impl FnOnce(&ConsumersSpec, Conducted) -> Result<Loop<ConsumerLoop<N>>, ConsumersError>,
    ) -> Self {
        let clock = Clock::start();
        let (orders, inbox) = sync_channel(8);
        let (outbox, dispatches) = sync_channel(1_000);
        let mailbox = Mailbox::new(0, inbox, outbox);
        let mut made = make(&spec(plan, clock, target), mailbox).unwrap();
        let waker = made.parts().1.waker();
        let rig = Self {
            orders,
            dispatches,
            waker,
            clock,
            thread: std::thread::spawn(move || made.run()),
            diagnostics: Vec::new(),
            progress: Progress::default(),
            copies: 0,
            corrupted: 0,
            replies: 0,
            by_status: CountBy::default(),
            delivered: 0,
        };
        rig.order(Order::Connect);
        rig
    }

    /// The same once it is up.
    pub(crate) fn until_up(mut self) -> Self {
        self.until(Self::is_up);
        self
    }

    /// The same once it is up and the run has begun.
    pub(crate) fn begun(self) -> Self {
        let rig = self.until_up();
        rig.begin();
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

    pub(crate) const fn is_up(&self) -> bool {
        self.progress.consumers_up == 1
    }

    pub(crate) const fn is_refused(&self) -> bool {
        self.progress.consumers_refused == 1
    }

    /// Returns true if a diagnostic holds this.
    pub(crate) fn said(&self, part: &str) -> bool {
        said(&self.diagnostics, part)
    }

    /// Takes one report of the thread or more, until it is so.
    pub(crate) fn until(&mut self, is_so: impl Fn(&Self) -> bool) {
        loop {
            let (_, dispatch) = self.dispatches.recv_timeout(PATIENCE).expect("a report");
            self.receive(*dispatch);
            if is_so(self) {
                return;
            }
        }
    }

    fn receive(&mut self, dispatch: Dispatch) -> Option<Box<Handover>> {
        for it in dispatch.windows.copies.values() {
            self.copies += it.consumed;
            self.corrupted += it.corrupted;
        }
        for it in dispatch.windows.commands.values() {
            self.replies += it.counts.replies + it.counts.replies_again;
            self.by_status.merge(&it.counts.replies_by_status);
            self.delivered += it.counts.issues.ends[DELIVERED];
        }
        self.progress = dispatch.progress;
        self.diagnostics.extend(dispatch.diagnostics);
        dispatch.handover
    }

    /// Finishes, and returns all that it leaves behind.
    pub(crate) fn finish(self) -> (Box<Handover>, Vec<Diagnostic>) {
        self.order(Order::Finish);
        self.finished()
    }

    /// All that a consumer leaves behind that was ordered to finish.
    pub(crate) fn finished(mut self) -> (Box<Handover>, Vec<Diagnostic>) {
        let handover = loop {
            let last = self.dispatches.recv_timeout(PATIENCE);
            if let Some(handover) = self.receive(*last.expect("the last report").1) {
                break handover;
            }
        };
        self.thread.join().unwrap().unwrap();
        (handover, self.diagnostics)
    }
}

fn spec(plan: &Plan, clock: Clock, target: SocketAddr) -> ConsumersSpec {
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
            target,
        }],
        gateways: Vec::new(),
        lost_copy: None,
    }
}

/// Returns true if a diagnostic holds this.
pub(crate) fn said(diagnostics: &[Diagnostic], part: &str) -> bool {
    let mut texts = diagnostics.iter().map(|it| format!("{it:?}"));
    texts.any(|text| text.contains(part))
}

/// The first refusal of the consumer, as it is printed.
pub(crate) fn refusal(diagnostics: &[Diagnostic]) -> Option<String> {
    let of = |it: &Diagnostic| {
        let Diagnostic::ConsumerRefused(refusal) = it else {
            return None;
        };
        Some(refusal.to_string())
    };
    diagnostics.iter().find_map(of)
}

/// Numbers of commands by their end, of the second stream.
pub(crate) fn ended(handover: &Handover) -> [u64; 5] {
    let account = &handover.account.commands[1];
    std::array::from_fn(|end| account.issues[end].count)
}
