//! The plan of a calibration: the links of a scenario in a closed loop against a null target.

use muster_judge::{Rules, ValidityBounds};
use muster_load::{Phase, Shape, Stage};
use muster_model::behaviour::Behaviour;
use muster_model::{Micros, Rate, StreamId};

use crate::{
    BackendPlan, ClientPlan, Endpoint, FleetPlan, ManagementUses, Phases, Plan, PlatformKind,
    PlatformPlan, Policy, Settle, StreamPlan,
};

/// The most links of all fleets: enough that no two messages of a turn share a link.
const LINKS_MAX: u32 = 1_000;
/// The most links that need a handshake of TLS or DTLS, a millisecond of CPU each.
const SECURED_LINKS_MAX: u32 = 250;
/// The most devices of all fleets, where links carry several.
const DEVICES_MAX: u32 = 10_000;
/// Nominal rate that no shard reaches, so that a message of each device is always due.
const ALWAYS_DUE: f64 = 1_000_000.0;
/// The same of commands, which are issued by their schedule alone: those that are not issued are withheld at the end.
const COMMANDS_DUE: f64 = 50_000.0;
/// New links a second: no wait between them.
const CONNECT_RATE: f64 = 1_000_000.0;
/// Handshakes under way at once.
const PENDING: u32 = 128;
/// Longest handshake with a null target on this machine.
const CONNECT_TIMEOUT: Micros = Micros::from_secs(3);
/// Time in which one stream alone sends.
const TURN: Micros = Micros::from_secs(1);
/// Time for which the last stream goes on, so that a sample of CPU that ends late sees no rest.
const TAIL: Micros = Micros::from_millis(500);
/// Longest wait for answers after the load.
const SETTLE: Settle = Settle {
    at_most: Micros::from_millis(500),
    quiet: Micros::from_millis(100),
};

impl Plan {
    /// This plan for a null target on this machine: after [`Plan::LEAD`] each of these streams has
    /// a turn of a second, in which each of its devices sends as soon as its last message is final, or commands are issued as
    /// fast as the backend takes them. The first stream sends during the lead too. Addresses, rates, rules and secrets of the
    /// target do not remain, so that scenarios of one shape become one plan.
    #[must_use]
    pub fn saturating(&self, turns: &[StreamId]) -> Self {
        let mut plan = self.clone().with_first_links(|protocol| {
            let of_it = self.fleets.iter();
            let of_it = of_it.filter(|fleet| fleet.client.protocol() == protocol);
            of_it.map(|fleet| self.links_most(fleet)).min().unwrap_or(1)
        });
        plan.name = "calibration".to_owned();
        plan.seed = 1;
        plan.labels.clear();
        plan.resolved.clear();
        plan.warnings.clear();
        plan.provision = None;
        plan.management = ManagementUses::default();
        plan.monitor.clear();
        plan.platform = null_target(&self.platform, self.largest());
        let consumes = |it: &BackendPlan| it.kafka().is_none() && !it.kind().only_commands;
        plan.backends.retain(consumes);
        plan.backends.iter_mut().for_each(simplify);
        let measure = Self::LEAD + Micros(TURN.0 * turns.len() as u64) + TAIL;
        plan.phases = Phases {
            warm_up: Micros::ZERO,
            measure,
            settle: SETTLE,
        };
        plan.rules = Rules::builder(plan.accounts() > 0)
            .validity(ValidityBounds {
                max_lateness: measure + SETTLE.at_most,
                ..ValidityBounds::default()
            })
            .build();
        for (fleet, whole) in plan.fleets.iter_mut().zip(&self.fleets) {
            if let (ClientPlan::Coap(coap), ClientPlan::Coap(whole)) =
                (&mut fleet.client, &whole.client)
            {
                coap.sockets = whole.sockets;
            }
            open_at_once(fleet);
            for stream in &mut fleet.streams {
                let turn = turns.iter().position(|id| *id == stream.id);
                rest(stream, measure);
                if let Some(turn) = turn.filter(|_| stream.is_uplink() || stream.is_command()) {
                    send_in(turn, turn + 1 == turns.len(), stream);
                }
            }
        }
        plan
    }

    /// Time before the first turn, in which caches and buffers fill.
    pub const LEAD: Micros = TURN;

    /// The most links of a fleet, so that all fleets together keep the bounds.
    fn links_most(&self, fleet: &FleetPlan) -> u32 {
        let scheme = self.scheme_of(fleet);
        let fleets = self.fleets.len() as u32;
        let links = match scheme.is_tls() || scheme.is_dtls() {
            true => SECURED_LINKS_MAX,
            false => LINKS_MAX,
        };
        let by_devices = DEVICES_MAX / fleet.devices_per_link.max(1);
        (links.min(by_devices) / fleets).max(1)
    }

    /// Bytes of the longest payload.
    fn largest(&self) -> u32 {
        let longest = self.streams().map(|(_, stream)| stream.largest).max();
        longest.unwrap_or(1).max(1)
    }
}

/// The reference gateway without misbehaviour, at one address of each scheme.
fn null_target(of: &PlatformPlan, largest: u32) -> PlatformPlan {
    let mut endpoints: Vec<Endpoint> = Vec::new();
    for endpoint in &of.endpoints {
        let is_new = endpoints.iter().all(|it| it.scheme != endpoint.scheme);
        if is_new {
            endpoints.push(on_loopback(endpoint));
        }
    }
    PlatformPlan {
        scale: None,
        hooks: Vec::new(),
        kind: PlatformKind::Gateway {
            dialect: of.dialect(),
            behaviour: Box::<Behaviour>::default(),
            max_payload: Some(largest),
        },
        endpoints,
        uses_all_addresses: false,
        renews_addresses: None,
        tls: crate::TlsPlan {
            ca: None,
            server_name: None,
            insecure: false,
            client_ca: None,
            ..of.tls.clone()
        },
        about: None,
    }
}

fn on_loopback(endpoint: &Endpoint) -> Endpoint {
    Endpoint {
        host: "127.0.0.1".to_owned(),
        port: 0,
        ..endpoint.clone()
    }
}

fn simplify(backend: &mut BackendPlan) {
    backend.endpoint = on_loopback(&backend.endpoint);
    (backend.user, backend.password) = (None, None);
    backend.tls.ca = None;
    backend.tls.own = None;
    backend.pause.clear();
}

/// Opens the links of a fleet at once, and none again on purpose.
fn open_at_once(fleet: &mut FleetPlan) {
    let connect = &mut fleet.connect;
    connect.rate = rate(CONNECT_RATE);
    connect.pending = PENDING;
    connect.timeout = CONNECT_TIMEOUT;
    connect.lifetime = None;
    connect.from.clear();
    fleet.offline = None;
    if let ClientPlan::Mqtt(mqtt) = &mut fleet.client {
        mqtt.authentication = None;
        mqtt.will = None;
    }
}

/// Takes all messages from a stream.
fn rest(stream: &mut StreamPlan, measure: Micros) {
    let schedule = &mut stream.schedule;
    (schedule.warm_up, schedule.measure) = (Micros::ZERO, measure);
    (schedule.shape, schedule.rate) = (Shape::Constant, Rate::ZERO);
    (schedule.phase, schedule.poisson) = (Phase::Even, false);
    schedule.limit_per_device = None;
    schedule.seed = u64::from(stream.id.0);
}

/// Gives a stream its turn.
fn send_in(turn: usize, is_last: bool, stream: &mut StreamPlan) {
    let stage = |per_second, hold| Stage {
        to: rate(per_second),
        over: Micros::ZERO,
        hold,
    };
    let begin = |turn: usize| Plan::LEAD + Micros(TURN.0 * turn as u64);
    let from = if turn == 0 { Micros::ZERO } else { begin(turn) };
    let lasts = begin(turn + 1) - from;
    let waits = (turn > 0).then(|| stage(0.0, from));
    let rests = (!is_last).then(|| stage(0.0, TURN));
    let due = match stream.is_command() {
        true => COMMANDS_DUE,
        false => ALWAYS_DUE,
    };
    let stages = waits.into_iter().chain([stage(due, lasts)]);
    stream.schedule.shape = Shape::Stages(stages.chain(rests).collect());
    if !stream.is_command() {
        stream.policy = Policy::Closed;
    }
}

fn rate(per_second: f64) -> Rate {
    Rate::per_second(per_second).unwrap_or(Rate::ZERO)
}
