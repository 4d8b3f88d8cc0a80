//! One device that speaks HTTP and the server it speaks to, under a virtual clock.

use std::collections::{BTreeMap, VecDeque};

use muster_conduct::{Placement, Progress, Slice, recorder_plan, schedules};
use muster_device::{Http, Shard, Sink, Then};
use muster_measure::Counts;
use muster_model::{
    Attempt, Cause, Command, ConnectFailure, LinkEvent, LinkFact, LinkId, Micros, Outcome,
    Reception, RunId, ShedCause, StreamId,
};
use muster_plan::{ClientPlan, Endpoint, HttpSettings, Plan, Policy, Scheme};
use muster_protocol::http::{Server, ServerEvent};
use muster_scenario::{NoFiles, Overrides, Source, parse};

/// Travel time of bytes.
pub(crate) const WAY: Micros = Micros::from_millis(1);
/// Messages of a run: one a second.
pub(crate) const MESSAGES: usize = 10;
/// Steps of the world that no test needs.
const STEPS_MAX: u32 = 100_000;

/// Facts of the shard.
#[derive(Default)]
pub(crate) struct Told {
    pub(crate) attempts: Vec<Attempt>,
    pub(crate) links: Vec<LinkEvent>,
    /// By second.
    windows: BTreeMap<u32, Counts>,
}

impl Told {
    pub(crate) fn counts(&self) -> Counts {
        let mut sum = Counts::default();
        self.windows.values().for_each(|counts| sum.merge(counts));
        sum
    }

    pub(crate) fn outcomes(&self) -> Vec<Outcome> {
        self.attempts
            .iter()
            .map(|attempt| attempt.outcome)
            .collect()
    }

    pub(crate) fn all_ended_as(&self, outcome: Outcome) -> bool {
        self.attempts
            .iter()
            .all(|attempt| attempt.outcome == outcome)
    }

    /// Connections that stood.
    pub(crate) fn connected(&self) -> usize {
        let events = self.links.iter();
        events
            .filter(|event| matches!(event, LinkEvent::Connected { .. }))
            .count()
    }

    /// The causes by which they ended.
    pub(crate) fn ends(&self) -> Vec<Cause> {
        let ends = self.links.iter().filter_map(|event| match event {
            LinkEvent::Disconnected(cause) => Some(*cause),
            LinkEvent::Connected { .. }
            | LinkEvent::Returned { .. }
            | LinkEvent::Failed(_)
            | LinkEvent::LastSent { .. } => None,
        });
        ends.collect()
    }
}

impl Sink for Told {
    fn attempt(&mut self, attempt: &Attempt) {
        self.attempts.push(*attempt);
    }
    fn command(&mut self, _command: &Command) {}
    fn reception(&mut self, _reception: &Reception) {}
    fn link(&mut self, fact: &LinkFact) {
        self.links.push(fact.event);
    }
    fn opened(&mut self, _link: LinkId, _at: Micros) {}
    fn counts(&mut self, _stream: StreamId, at: Micros) -> &mut Counts {
        self.windows.entry(at.second()).or_default()
    }
}

/// A request as the server has it.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    /// Its number, over all connections.
    pub(crate) number: u32,
    pub(crate) line: String,
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) is_last: bool,
}

impl Asked {
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let mut fields = self.fields.iter();
        let found = fields.find(|(of, _)| of.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

/// A step of the server, so long after the one before.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Says(Micros, Vec<u8>),
    Closes(Micros),
    Resets(Micros),
}

/// Answers at once with these bytes.
pub(crate) fn says(bytes: &str) -> Vec<Step> {
    vec![Step::Says(Micros::ZERO, bytes.as_bytes().to_vec())]
}

/// An answer without a body.
pub(crate) fn status(status: u16) -> Vec<Step> {
    says(&format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n"))
}

/// The treatment of requests.
pub(crate) type Peer = Box<dyn FnMut(&Asked) -> Vec<Step>>;

/// A plan of one device, by keys of its fleet and its stream.
pub(crate) fn plan(fleet: &str, stream: &str, settings: &HttpSettings) -> Plan {
    let rate = match stream.contains("rate:") {
        true => "",
        false => "rate: 1/s,",
    };
    let text = format!(
        "name: t\nplatform: {{ kind: hono, devices: [ 'coap://127.0.0.1' ] }}\nfleet: [ {{ name: f, \
         tenant: t1, {fleet} streams: [ {{ {rate} payload: {{ size: 64 }}, timeout: 2s, {stream} }} ] }} ]\n\
         phases: {{ warm-up: 0s, measure: {MESSAGES}s, settle: {{ at-most: 300s }} }}\n"
    );
    let (name, text) = ("t.yaml", text.as_str());
    let plan = parse(Source { name, text }, &Overrides::default(), &NoFiles);
    let mut plan = plan.unwrap_or_else(|problems| panic!("{problems}"));
    plan.platform.endpoints = vec![Endpoint {
        scheme: Scheme::Http,
        host: "127.0.0.1".to_owned(),
        port: 8080,
        path: String::new(),
    }];
    for fleet in &mut plan.fleets {
        fleet.client = ClientPlan::Http(settings.clone());
    }
    plan
}

/// One device and the server.
pub(crate) struct World {
    pub(crate) shard: Shard<Http, Told>,
    peer: Peer,
    pub(crate) asked: Vec<Asked>,
    /// The connection that stands or is opening, by number; none if there is none.
    connection: Option<u32>,
    connections: u32,
    opens_at: Option<Micros>,
    server: Server,
    /// Bytes that the server has not used up, and those that the device has not.
    unread: [Vec<u8>; 2],
    up: VecDeque<(Micros, u32, Vec<u8>)>,
    down: VecDeque<(Micros, u32, Step)>,
    /// Tries to connect from this one on are refused until that instant.
    pub(crate) refuses_until: Option<Micros>,
    /// True if the kernel keeps the end of every message back until it is answered.
    pub(crate) holds: bool,
    is_closed: bool,
    out: Vec<u8>,
    pub(crate) now: Micros,
}

impl World {
    pub(crate) fn new(plan: &Plan, peer: impl FnMut(&Asked) -> Vec<Step> + 'static) -> Self {
        let schedules = schedules(plan).unwrap();
        let recorder = recorder_plan(plan, RunId(1), &schedules);
        let placement = Placement {
            plan,
            recorder: &recorder,
            schedules: &schedules,
            run: RunId(1),
            slice: Slice::WHOLE,
            wall_ms_at_t0: 0,
            slot_limit: 1_000,
        };
        let mut world = Self {
            shard: placement.shard(Told::default()).unwrap(),
            peer: Box::new(peer),
            asked: Vec::new(),
            connection: None,
            connections: 0,
            opens_at: None,
            server: Server::new(1 << 20),
            unread: Default::default(),
            up: VecDeque::new(),
            down: VecDeque::new(),
            refuses_until: None,
            holds: false,
            is_closed: plan.fleets[0].streams[0].policy == Policy::Closed,
            out: Vec::new(),
            now: Micros::ZERO,
        };
        world.shard.connects_mut().start(Micros::ZERO);
        world
    }

    /// A run with the settings and a server, to its end.
    pub(crate) fn run(
        settings: &HttpSettings,
        stream: &str,
        peer: impl FnMut(&Asked) -> Vec<Step> + 'static,
    ) -> (Told, Vec<Asked>) {
        Self::new(&plan("", stream, settings), peer).whole()
    }

    /// Lets the link come up and the messages fall due, to the end of the run.
    pub(crate) fn whole(mut self) -> (Told, Vec<Asked>) {
        self.start();
        self.run_until(Micros::from_secs(300));
        let told = self.end();
        (told, self.asked)
    }

    /// Lets the link come up, and begins the load a second after the start.
    pub(crate) fn start(&mut self) {
        self.run_until(Micros::from_secs(1));
        self.shard.traffic_mut().start(self.now);
    }

    pub(crate) fn links_up(&self) -> u64 {
        Progress::of(&self.shard, self.now).links_up
    }

    /// Lets the time pass until an instant.
    pub(crate) fn run_until(&mut self, end: Micros) {
        for _ in 0..STEPS_MAX {
            if self.now > end {
                self.now = end;
                return;
            }
            self.turn();
            let due = [
                self.shard.traffic().next_due(),
                self.shard.traffic().next_expiry(),
                self.shard.deadline(0),
                self.shard.connects().next(),
                self.opens_at,
                self.up.front().map(|(at, ..)| *at),
                self.down.front().map(|(at, ..)| *at),
            ];
            let next = due.into_iter().flatten().min().unwrap_or(Micros::MAX);
            self.now = next.max(self.now + Micros(1));
        }
        panic!("the world stands still at {:?}", self.now);
    }

    fn turn(&mut self) {
        let now = self.now;
        while self.shard.connects_mut().take(now).is_some() {
            if self.refuses_until.is_some_and(|until| now < until) {
                self.shard.connect_failed(0, now, ConnectFailure::Refused);
                continue;
            }
            self.connections += 1;
            self.connection = Some(self.connections);
            self.opens_at = Some(now + WAY + WAY);
            self.shard.opening(0, now);
        }
        if self.opens_at.take_if(|at| *at <= now).is_some() {
            self.server = Server::new(1 << 20);
            self.unread = Default::default();
            self.shard.opened(0, now, &mut self.out);
            self.send();
            self.pump();
        }
        while self.shard.take_due(now).is_some() || self.shard.expire(now).is_some() {
            self.pump();
        }
        if self.shard.deadline(0).is_some_and(|at| at <= now) {
            let then = self.shard.timer(0, now, &mut self.out);
            self.send();
            self.follow(then);
            self.pump();
        }
        while let Some((_, connection, bytes)) = self.up.pop_front_if(|(at, ..)| *at <= now) {
            if self.connection == Some(connection) {
                self.serve(connection, &bytes);
            }
        }
        while let Some((_, connection, step)) = self.down.pop_front_if(|(at, ..)| *at <= now) {
            if self.connection == Some(connection) {
                self.receive(step);
            }
        }
    }

    fn follow(&mut self, then: Then) {
        match then {
            Then::Stay => {}
            Then::Close | Then::Abort => self.connection = None,
        }
    }

    fn pump(&mut self) {
        if self.connection.is_some() {
            while self.shard.render_next(0, self.now, &mut self.out) {
                self.send();
                if self.holds {
                    self.shard.traffic_mut().held(0);
                } else {
                    self.shard.traffic_mut().written(0, self.now);
                }
            }
        }
        self.shard.shed_excess(0, self.now);
    }

    fn send(&mut self) {
        let bytes = std::mem::take(&mut self.out);
        if let Some(connection) = self.connection.filter(|_| !bytes.is_empty()) {
            self.up.push_back((self.now + WAY, connection, bytes));
        }
    }

    fn serve(&mut self, connection: u32, bytes: &[u8]) {
        let mut unread = std::mem::take(&mut self.unread[0]);
        unread.extend_from_slice(bytes);
        let (mut input, mut interim) = (&unread[..], Vec::new());
        let mut at = self.now + WAY;
        while let Some(event) = self.server.poll(&mut input, &mut interim) {
            let ServerEvent::Request(request) = event else {
                panic!("a device sent what is no request: {event:?}");
            };
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
            let fields = request.head.fields();
            let asked = Asked {
                number: self.asked.len() as u32,
                line: format!("{} {}", request.method(), request.target()),
                fields: fields
                    .map(|(name, value)| (text(name), text(value)))
                    .collect(),
                body: request.body.to_vec(),
                is_last: request.is_last,
            };
            for step in (self.peer)(&asked) {
                let (Step::Says(after, _) | Step::Closes(after) | Step::Resets(after)) = &step;
                at += *after;
                self.down.push_back((at, connection, step));
            }
            self.asked.push(asked);
        }
        self.unread[0] = input.to_vec();
        self.down.make_contiguous().sort_by_key(|(at, ..)| *at);
    }

    fn receive(&mut self, step: Step) {
        let now = self.now;
        match step {
            Step::Says(_, bytes) => {
                if self.holds {
                    self.holds = false;
                }
                let mut unread = std::mem::take(&mut self.unread[1]);
                unread.extend_from_slice(&bytes);
                let (used, then) = self.shard.received(0, now, &unread, &mut self.out);
                unread.drain(..used);
                self.unread[1] = unread;
                self.send();
                self.follow(then);
                self.pump();
            }
            Step::Closes(_) => {
                self.connection = None;
                self.shard.closed(0, now, Cause::PeerClosed);
            }
            Step::Resets(_) => {
                self.connection = None;
                self.shard.closed(0, now, Cause::Reset);
            }
        }
    }

    /// Ends the run: what the shard told, with each message's end once.
    pub(crate) fn end(&mut self) -> Told {
        self.shard.finish(self.now, ShedCause::Interrupted);
        assert_eq!(self.shard.traffic().open(), 0);
        let told = std::mem::take(self.shard.recording().sink());
        let mut ids: Vec<u32> = told.attempts.iter().map(|it| it.id.seq).collect();
        ids.sort_unstable();
        // How many there are of a closed loop depends on the answers.
        let all = match self.is_closed {
            true => ids.len(),
            false => MESSAGES,
        };
        assert!(ids.iter().copied().eq(0..all as u32), "{ids:?}");
        told
    }
}
