//! One consumer on its thread, and what its run says.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use fe2o3_amqp::types::messaging::{ApplicationProperties, Body, Data, Properties};
use muster_backend::{ConsumerPlan, ConsumersSpec, amqp_loop};
use muster_conduct::{
    Diagnostic, Dispatch, Handover, Order, directory, recorder_plan, schedules, uplink,
};
use muster_model::{BackendId, ConsumerId, DeviceId, MessageId, Micros, RunId, StreamId};
use muster_net::{Clock, Mailbox, Waker};
use muster_plan::{AmqpLogin, Northbound, Plan, Scheme};
use muster_platform::UplinkScratch;
use muster_protocol::layer::Plain;
use muster_scenario::{NoFiles, Overrides, Source, parse};
use muster_transport::{ClientSpec, Clients, Own, Peer, throwaway};

use super::peer::{Content, IDENTITY};
use super::{DELIVERED, PATIENCE};

pub(crate) const RUN: RunId = RunId(7);

/// A broker's queue `readings`, with further keys of the backend.
pub(crate) fn queue(address: SocketAddr, keys: &str) -> Plan {
    parsed(&format!(
        "name: amqp
platform:
  kind: mqtt
  devices: [ 'mqtt://127.0.0.1:1883' ]
  backend: {{ url: 'amqp://{address}', addresses: [ readings ]{keys} }}
fleet: [ {{ name: meters, count: 10, streams: [ {{ name: r, rate: 10/s, payload: {{ size: 64 }} }} ] }} ]
phases: {{ measure: 60s }}
"
    ))
}

/// Hono with devices of tenant t1, with further keys of the backend.
pub(crate) fn hono(address: SocketAddr, keys: &str) -> Plan {
    let commands = match keys.contains("commands") {
        true => ", { kind: command }",
        false => "",
    };
    parsed(&format!(
        "name: amqp
platform:
  kind: hono
  devices: [ 'coap://127.0.0.1:5683' ]
  backend: {{ url: 'amqp://{address}'{keys} }}
fleet: [ {{ name: meters, count: 10, tenant: t1, streams: [ {{ name: r, rate: 10/s }}{commands} ] }} ]
phases: {{ measure: 60s }}
"
    ))
}

fn parsed(text: &str) -> Plan {
    let name = "amqp.yaml";
    let source = Source { name, text };
    parse(source, &Overrides::default(), &NoFiles).unwrap_or_else(|problems| panic!("{problems}"))
}

/// A message of a device of the plan, as a platform passes it on.
pub(crate) fn message(plan: &Plan, number: u32) -> Content {
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
    let mut name = String::new();
    directory.render_name(id.device, &mut name);
    let of_device = ApplicationProperties::builder().insert("device_id", name);
    let mut content = data(&scratch.payload);
    content.application_properties = Some(of_device.build());
    content
}

/// A message with this body.
pub(crate) fn data(payload: &[u8]) -> Content {
    Content {
        body: Body::from(Data::from(payload)),
        ..empty()
    }
}

/// Hono's own notification that a device waits for a command.
pub(crate) fn notification() -> Content {
    let media_type = "application/vnd.eclipse-hono-empty-notification";
    let ttd = ApplicationProperties::builder()
        .insert("device_id", "meters-00000001")
        .insert("ttd", 30_i32);
    Content {
        properties: Some(Properties::builder().content_type(media_type).build()),
        application_properties: Some(ttd.build()),
        ..empty()
    }
}

pub(crate) fn empty() -> Content {
    Content {
        header: None,
        delivery_annotations: None,
        message_annotations: None,
        properties: None,
        application_properties: None,
        body: Body::Empty,
        footer: None,
    }
}

/// The consumer.
pub(crate) struct Rig {
    orders: SyncSender<Order>,
    dispatches: Receiver<(usize, Box<Dispatch>)>,
    waker: Waker,
    pub(crate) clock: Clock,
    thread: JoinHandle<()>,
    pub(crate) diagnostics: Vec<Diagnostic>,
    pub(crate) copies: u64,
    pub(crate) corrupted: u64,
    pub(crate) is_up: bool,
    pub(crate) is_refused: bool,
    /// Commands of which not all is known.
    pub(crate) open: u64,
    pub(crate) replies: u64,
    pub(crate) delivered: u64,
}

impl Rig {
    pub(crate) fn start(plan: &Plan) -> Self {
        Self::over(plan, Clients::Plain(Plain))
    }

    /// The same over TLS, with the certificate of the peer's authority; `trusts` says that it trusts the peer.
    pub(crate) fn over_tls(plan: &Plan, trusts: bool) -> Self {
        let mut plan = plan.clone();
        plan.backends[0].endpoint.scheme = Scheme::Amqps;
        if let Northbound::Amqp(amqp) = &mut plan.backends[0].northbound {
            amqp.login = AmqpLogin::External;
        }
        let mut spec = ClientSpec::new(Peer::new("127.0.0.1", "127.0.0.1"));
        let stranger = throwaway(&["127.0.0.1".to_owned()]).unwrap().ca;
        let ca = if trusts {
            IDENTITY.ca.clone()
        } else {
            stranger
        };
        (spec.is_tls, spec.tls.ca) = (true, Some(ca));
        let own = Own::new(&IDENTITY.cert, &IDENTITY.key).unwrap();
        Self::over(&plan, Clients::new(&spec, [(0, own)]).unwrap())
    }

    fn over(plan: &Plan, mut layers: Clients) -> Self {
        let clock = Clock::start();
        let (orders, inbox) = sync_channel(8);
        let (outbox, dispatches) = sync_channel(1_000);
        let (spec, mailbox) = (spec(plan, clock), Mailbox::new(0, inbox, outbox));
        let mut made = amqp_loop(&spec, &mut layers, None, mailbox).unwrap();
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
            is_up: false,
            is_refused: false,
            open: 0,
            replies: 0,
            delivered: 0,
        };
        rig.order(Order::Connect);
        rig
    }

    /// A consumer that is up, and whose run has begun.
    pub(crate) fn up(plan: &Plan) -> Self {
        let mut rig = Self::start(plan);
        rig.until(|rig| rig.is_up);
        let origin = rig.clock.now();
        rig.order(Order::Start { origin });
        rig
    }

    pub(crate) fn order(&self, order: Order) {
        self.orders.send(order).unwrap();
        self.waker.wake();
    }

    /// Hears until it is so.
    pub(crate) fn until(&mut self, is_so: impl Fn(&Self) -> bool) {
        while !is_so(self) {
            let (_, dispatch) = self.dispatches.recv_timeout(PATIENCE).expect("news");
            self.hear(*dispatch);
        }
    }

    fn hear(&mut self, dispatch: Dispatch) -> Option<Box<Handover>> {
        for it in dispatch.windows.copies.values() {
            self.copies += it.consumed;
            self.corrupted += it.corrupted;
        }
        let replies = dispatch.windows.commands.values();
        self.replies += replies.map(|it| it.counts.replies).sum::<u64>();
        let issues = dispatch.windows.commands.values();
        let delivered = issues.map(|it| it.counts.issues.ends[DELIVERED]);
        self.delivered += delivered.sum::<u64>();
        self.is_up = dispatch.progress.consumers_up == 1;
        self.is_refused = dispatch.progress.consumers_refused == 1;
        self.open = dispatch.progress.open;
        self.diagnostics.extend(dispatch.diagnostics);
        dispatch.handover
    }

    /// Returns true if a diagnostic holds this.
    pub(crate) fn said(&self, part: &str) -> bool {
        let mut texts = self.diagnostics.iter().map(|it| format!("{it:?}"));
        texts.any(|text| text.contains(part))
    }

    /// Finishes, and returns all that it leaves behind.
    pub(crate) fn finish(mut self) -> (Box<Handover>, Vec<Diagnostic>) {
        self.order(Order::Finish);
        let handover = loop {
            let last = self.dispatches.recv_timeout(PATIENCE);
            if let Some(handover) = self.hear(*last.expect("the last news").1) {
                break handover;
            }
        };
        self.thread.join().unwrap();
        (handover, self.diagnostics)
    }
}

fn spec(plan: &Plan, clock: Clock) -> ConsumersSpec {
    let schedules = schedules(plan).unwrap();
    let endpoint = &plan.backends[0].endpoint;
    ConsumersSpec {
        recorder: recorder_plan(plan, RUN, &schedules),
        plan: Arc::new(plan.clone()),
        schedules,
        run: RUN,
        clock,
        consumers: vec![ConsumerPlan {
            backend: BackendId(0),
            consumer: ConsumerId(0),
            target: ([127, 0, 0, 1], endpoint.port).into(),
        }],
        gateways: Vec::new(),
        lost_copy: None,
    }
}
