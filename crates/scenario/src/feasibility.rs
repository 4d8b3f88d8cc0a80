//! Demands of a plan on the machine: descriptors, ports, memory and rates, as figures that the
//! caller compares with what the machine has.

use muster_load::{Names, PayloadSpec, Phase, ScheduleSpec, Shape, StreamSchedule};
use muster_measure::Recorder;
use muster_model::{Micros, Rate, StreamId};

use muster_plan::{
    Endpoint, Plan, PlatformKind, PlatformPlan, Scheme, StreamKind, StreamPlan, is_loopback,
};
use muster_platform::Protocol;

/// Descriptors of a process other than its sockets: standard streams, epoll and timer descriptors of
/// each shard, result files, worker pipes.
pub const OWN_DESCRIPTORS: u64 = 64;
/// User memory of an idle link of MQTT or CoAP, the goal of docs/benchmarks.md.
pub const USER_BYTES_PER_LINK: u64 = 512;
/// User memory of TLS on an idle link, the goal: keys, the peer's certificates and one ticket.
pub const TLS_BYTES_PER_LINK: u64 = 6 * 1024;
/// User memory of DTLS on an idle link, the goal.
pub const DTLS_BYTES_PER_LINK: u64 = 512;
/// User memory of what a link over DTLS needs to resume its session: it with a ticket of 256 bytes.
const DTLS_SESSION_BYTES: u64 = 512;
/// User memory of WebSocket on an idle link.
pub const WEBSOCKET_BYTES_PER_LINK: u64 = 64;
/// The ledger's memory for one stream of one device in one account, while its messages are few.
pub const LEDGER_BYTES_PER_STREAM: u64 = 96;
/// Kernel memory of a TCP socket, measured at 4 to 5 KB.
pub const KERNEL_BYTES_PER_SOCKET: u64 = 5 * 1024;
/// Due instants travel in 40 bits of microseconds (the stamp's layout), and the last value means
/// "unknown": a run and its connect phase must stay below.
pub const LONGEST_RUN: Micros = Micros((1 << 40) - 2);
/// A process without devices, the generator's or the gateway's: code, pools, histograms.
pub const BASE_BYTES: u64 = 64 * 1024 * 1024;

/// Needs of a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Needs {
    /// Device links at once.
    pub links: u32,
    /// Their sockets: fewer where links share some.
    pub device_sockets: u32,
    /// Consumer sessions of all backends.
    pub consumers: u32,
    /// Descriptors of the generator, in all its processes together.
    pub descriptors: u64,
    /// Descriptors of the embedded gateway, in all its processes together; 0 without one.
    pub gateway_descriptors: u64,
    /// Local ports, per destination.
    pub ports: Vec<PortNeed>,
    /// Memory on this machine, in bytes.
    pub memory: MemoryNeed,
    /// Messages that the schedule holds, warm-up included.
    pub messages: u64,
    /// Commands that the schedule holds, warm-up included.
    pub commands: u64,
    /// The highest rate at which messages are due, of all streams together.
    pub peak: Rate,
    /// The most bytes of payload that are due in a second, of all streams together.
    pub peak_bytes: f64,
    /// Shortest time that the connect phase takes.
    pub connect: Micros,
    /// Time that all phases together take, if settling takes all of its time; a run cannot last
    /// longer than [`LONGEST_RUN`].
    pub run: Micros,
}

/// Connections to one destination: each takes one port of its source address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortNeed {
    /// Their destination.
    pub endpoint: Endpoint,
    /// Number of connections.
    pub connections: u32,
    /// Source addresses that the scenario gives devices; none where it leaves them to the kernel.
    pub from: Option<u32>,
}

/// Memory on this machine, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryNeed {
    /// Of the generator in one process, its threads' windows left out.
    pub generator: u64,
    /// Of each process of the generator, for the tables and names of its devices.
    pub lists: u64,
    /// Of each device shard and each thread of consumers, for the windows in the making.
    pub thread: u64,
    /// Of the kernel for sockets, both ends of them if the gateway is embedded.
    pub kernel: u64,
}

impl Needs {
    /// Needs of one of `of` equal parts; its times are the same.
    pub fn part(&self, of: u32) -> Needs {
        let of = of.max(1);
        let share = |all: u64| all.div_ceil(u64::from(of));
        let mut part = self.clone();
        part.links = self.links.div_ceil(of);
        part.device_sockets = self.device_sockets.div_ceil(of);
        part.consumers = self.consumers.div_ceil(of);
        part.descriptors = share(self.descriptors);
        part.messages = share(self.messages);
        part.peak = Rate::per_second(self.peak.get() / f64::from(of)).unwrap_or(self.peak);
        part.peak_bytes = self.peak_bytes / f64::from(of);
        for need in &mut part.ports {
            need.connections = need.connections.div_ceil(of);
        }
        part.memory.generator = BASE_BYTES + share(self.memory.generator - BASE_BYTES);
        part.memory.kernel = share(self.memory.kernel);
        part
    }

    /// Number of processes that the generator needs if each may open this number of descriptors.
    pub fn processes(&self, descriptors_each: u64) -> u64 {
        let sockets = u64::from(self.device_sockets) + u64::from(self.consumers);
        sockets.div_ceil(sockets_each(descriptors_each)).max(1)
    }

    /// Number of processes that the embedded gateway needs, likewise; 0 without one.
    pub fn gateway_processes(&self, descriptors_each: u64) -> u64 {
        self.gateway_descriptors
            .div_ceil(sockets_each(descriptors_each))
    }

    /// Bytes of memory that the kernel and all these processes need, with this number of device shards
    /// together.
    pub fn memory_of_all(&self, descriptors_each: u64, shards: u64) -> u64 {
        let processes = self.processes(descriptors_each);
        let more = (processes - 1) * (BASE_BYTES + self.memory.lists)
            + self.gateway_processes(descriptors_each) * BASE_BYTES;
        let consuming = processes.min(u64::from(self.consumers));
        let threads = shards.max(processes) + consuming;
        self.memory.total() + more + threads * self.memory.thread
    }
}

fn sockets_each(descriptors_each: u64) -> u64 {
    descriptors_each.saturating_sub(OWN_DESCRIPTORS).max(1)
}

impl PortNeed {
    /// Number of source addresses that the connections need at `ports_each` ports each.
    pub fn sources(&self, ports_each: u32) -> u32 {
        self.connections.div_ceil(ports_each.max(1)).max(1)
    }
}

impl MemoryNeed {
    /// Both together, without threads.
    pub fn total(self) -> u64 {
        self.generator + self.lists + self.kernel
    }
}

/// Works out what a plan needs.
pub fn needs(plan: &Plan) -> Needs {
    let links = plan.links();
    let consumers = plan
        .backends
        .iter()
        .map(|backend| u32::from(backend.consumers))
        .sum();
    let device_sockets = plan.device_sockets();
    let sockets = u64::from(device_sockets) + u64::from(consumers);
    let is_embedded = matches!(plan.platform.kind, PlatformKind::Gateway { .. });
    // The gateway receives the datagrams of all devices at one socket.
    let in_datagrams = plan.sockets_of(Protocol::Coap);
    let accepted = sockets - u64::from(in_datagrams) + u64::from(in_datagrams > 0);
    let bytes = |stream: &StreamPlan| f64::from(largest(&stream.payload)) * peak(&stream.schedule);
    let ends = if is_embedded { 2 } else { 1 };
    let phases = &plan.phases;
    Needs {
        links,
        device_sockets,
        consumers,
        descriptors: sockets + OWN_DESCRIPTORS,
        gateway_descriptors: if is_embedded {
            accepted + OWN_DESCRIPTORS
        } else {
            0
        },
        ports: ports(plan),
        memory: MemoryNeed {
            generator: generator_bytes(plan),
            lists: plan.fleets.iter().map(lists_bytes).sum(),
            thread: Recorder::window_bytes_most(plan.streams().count(), plan.accounts()) as u64,
            kernel: sockets * KERNEL_BYTES_PER_SOCKET * ends,
        },
        messages: plan
            .uplinks()
            .map(|(_, stream)| messages(&stream.schedule))
            .sum(),
        commands: commands(plan),
        peak: Rate::per_second(peaks(plan).map(|(_, peak)| peak).sum()).unwrap_or(Rate::ZERO),
        peak_bytes: plan.uplinks().map(|(_, stream)| bytes(stream)).sum(),
        connect: connect(plan),
        run: connect(plan) + phases.warm_up + phases.measure + phases.settle.at_most,
    }
}

fn generator_bytes(plan: &Plan) -> u64 {
    let accounts = 1 + plan.accounts() as u64;
    let of_fleet = |fleet: &muster_plan::FleetPlan| {
        let link = USER_BYTES_PER_LINK + layers_bytes(&plan.platform, plan.scheme_of(fleet));
        let ledger = fleet.streams.len() as u64 * accounts * LEDGER_BYTES_PER_STREAM;
        u64::from(fleet.devices) * ledger + u64::from(fleet.links) * link
    };
    BASE_BYTES + plan.fleets.iter().map(of_fleet).sum::<u64>()
}

fn lists_bytes(fleet: &muster_plan::FleetPlan) -> u64 {
    let links = fleet.link_names.as_ref().map_or(0, Names::memory);
    let table = fleet.data.as_ref().map_or(0, |table| table.memory());
    (fleet.names.memory() + links + table) as u64
}

/// Bytes that the layers of a link hold while it is idle.
fn layers_bytes(platform: &PlatformPlan, scheme: Scheme) -> u64 {
    let tls = if scheme.is_tls() {
        TLS_BYTES_PER_LINK
    } else {
        0
    };
    let websocket = if scheme.is_websocket() {
        WEBSOCKET_BYTES_PER_LINK
    } else {
        0
    };
    let dtls = match (scheme.is_dtls(), platform.tls.resumes(scheme)) {
        (false, _) => 0,
        (true, false) => DTLS_BYTES_PER_LINK,
        (true, true) => DTLS_BYTES_PER_LINK + DTLS_SESSION_BYTES,
    };
    tls + websocket + dtls
}

/// Links are dealt round to the endpoints; consumers go where their backend is.
fn ports(plan: &Plan) -> Vec<PortNeed> {
    let mut ports: Vec<PortNeed> = Vec::new();
    let mut add = |endpoint: &Endpoint, more: u32| {
        if let Some(need) = ports.iter_mut().find(|need| need.endpoint == *endpoint) {
            need.connections += more;
        } else {
            ports.push(PortNeed {
                endpoint: endpoint.clone(),
                connections: more,
                from: sources(plan, endpoint.scheme.protocol()),
            });
        }
    };
    for protocol in Protocol::ALL {
        let endpoints = plan.platform.endpoints_of(protocol).count() as u32;
        let sockets = plan.sockets_of(protocol);
        let ended = ended_connections(plan, protocol).div_ceil(endpoints.max(1));
        for (place, endpoint) in (0..).zip(plan.platform.endpoints_of(protocol)) {
            let share = sockets / endpoints;
            add(endpoint, share + u32::from(place < sockets % endpoints));
            // Linux uses such ports of loopback addresses again at once.
            if !is_loopback(&endpoint.host) {
                add(endpoint, ended);
            }
        }
    }
    // The platform connects to a webhook.
    for backend in plan.backends.iter().filter(|it| !it.kind().listens) {
        add(&backend.endpoint, u32::from(backend.consumers));
    }
    ports
}

/// Time for which the kernel keeps the port of a connection that this end closed (Linux: TIME-WAIT).
const TIME_WAIT: Micros = Micros::from_secs(60);

/// Connections of one request each whose ports are not free again yet, at the highest rate.
fn ended_connections(plan: &Plan, protocol: Protocol) -> u32 {
    let fleets = plan.fleets.iter();
    let closing = fleets.filter(|fleet| {
        let http = fleet.client.http();
        fleet.client.protocol() == protocol && http.is_some_and(|http| http.closes)
    });
    let streams = closing.flat_map(|fleet| &fleet.streams);
    let rate: f64 = streams
        .filter(|stream| stream.is_uplink())
        .map(|stream| peak(&stream.schedule))
        .sum();
    (rate * TIME_WAIT.as_secs_f64()).ceil() as u32
}

/// Source addresses of the devices of a protocol; that which the kernel picks for fleets that name none is one.
fn sources(plan: &Plan, protocol: Protocol) -> Option<u32> {
    let is_of = |of: &&muster_plan::FleetPlan| of.client.protocol() == protocol;
    let fleets = || plan.fleets.iter().filter(is_of);
    let mut named: Vec<_> = fleets().flat_map(|of| &of.connect.from).collect();
    named.sort_unstable();
    named.dedup();
    let has_unnamed = fleets().any(|of| of.connect.from.is_empty());
    (!named.is_empty()).then(|| named.len() as u32 + u32::from(has_unnamed))
}

fn connect(plan: &Plan) -> Micros {
    let of_fleet = |fleet: &muster_plan::FleetPlan| {
        Micros::from_secs_f64(f64::from(fleet.links) / fleet.connect.rate.get())
    };
    plan.fleets
        .iter()
        .map(of_fleet)
        .max()
        .unwrap_or(Micros::ZERO)
}

/// The bytes of a large payload of a stream; a template is taken for as long as its text.
pub(crate) fn largest(payload: &PayloadSpec) -> u32 {
    match payload {
        PayloadSpec::Template(text) => u32::try_from(text.len()).unwrap_or(u32::MAX),
        PayloadSpec::Size(size) | PayloadSpec::Held { stated: size, .. } => *size,
        PayloadSpec::LogNormal { p99, .. } => *p99,
        PayloadSpec::File(bytes) => u32::try_from(bytes.len()).unwrap_or(u32::MAX),
        PayloadSpec::Mix(mix) => {
            let longest = mix.kinds.iter().map(|(_, text)| text.len()).max();
            u32::try_from(longest.unwrap_or(0)).unwrap_or(u32::MAX)
        }
    }
}

/// Commands of the schedule; where they follow queries, the queries.
fn commands(plan: &Plan) -> u64 {
    let of = |is_it: fn(&StreamKind) -> bool| -> u64 {
        let streams = plan.streams().filter(|(_, stream)| is_it(&stream.kind));
        streams.map(|(_, stream)| messages(&stream.schedule)).sum()
    };
    match of(|kind| matches!(kind, StreamKind::Command { .. })) {
        0 => of(|kind| matches!(kind, StreamKind::CommandQuery { .. })),
        scheduled => scheduled,
    }
}

fn messages(spec: &ScheduleSpec) -> u64 {
    StreamSchedule::new(spec.clone()).map_or(0, |schedule| schedule.count())
}

/// The highest rate of each stream of the devices' own messages, in the order of `StreamId`.
pub fn peaks(plan: &Plan) -> impl Iterator<Item = (StreamId, f64)> {
    plan.uplinks()
        .map(|(_, stream)| (stream.id, peak(&stream.schedule)))
}

/// The highest rate of a stream: over a second where its messages come in lumps.
pub(crate) fn peak(spec: &ScheduleSpec) -> f64 {
    match &spec.shape {
        Shape::Constant
        | Shape::Ramp { .. }
        | Shape::Spike { .. }
        | Shape::Sine { .. }
        | Shape::Stages(_) => spec.peak(),
        Shape::Burst { n, every } => {
            let lump = f64::from(*n) * f64::from(spec.devices);
            let mean = lump / every.as_secs_f64();
            if spec.phase == Phase::Together {
                mean.max(lump)
            } else {
                mean
            }
        }
        Shape::Replay(instants) => busiest_second(instants),
    }
}

fn busiest_second(instants: &[Micros]) -> f64 {
    let mut oldest = 0;
    let mut most = 0;
    for (newest, at) in instants.iter().enumerate() {
        while instants[oldest] + Micros::from_secs(1) <= *at {
            oldest += 1;
        }
        most = most.max(newest + 1 - oldest);
    }
    most as f64
}
