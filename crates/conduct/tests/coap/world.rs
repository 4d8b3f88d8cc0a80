//! One device that speaks CoAP and the platform it speaks to, under a virtual clock.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use muster_conduct::{Placement, Slice, recorder_plan, schedules};
use muster_device::{Coap, Shard, SharedSockets, Sink};
use muster_measure::Counts;
use muster_model::{
    Attempt, Command, LinkFact, LinkId, Met, Micros, Query, Receipt, Reception, RunId, ShedCause,
    StreamId,
};
use muster_protocol::coap::{
    Code, Opt, OptionNumber, Pending, Reply, Server, ServerEvent, ServerSettings, Uint,
};
use muster_scenario::{NoFiles, Overrides, Source, parse};

use crate::commanding::{Asked, Bringing, Commanding, Commands};

/// Travel time of a datagram.
pub(crate) const WAY: Micros = Micros::from_millis(1);
/// Facts of the shard.
#[derive(Default)]
pub(crate) struct Told {
    pub(crate) attempts: Vec<Attempt>,
    pub(crate) commands: Vec<Command>,
    /// By second.
    pub(crate) windows: BTreeMap<u32, Counts>,
}

impl Told {
    pub(crate) fn counts(&self) -> Counts {
        let mut sum = Counts::default();
        self.windows.values().for_each(|counts| sum.merge(counts));
        sum
    }

    pub(crate) fn queries(&self) -> Vec<Query> {
        self.told_of(|command| match command {
            Command::Query(query) => Some(*query),
            Command::Issue(_)
            | Command::Met(_)
            | Command::Receipt(_)
            | Command::Answer(_)
            | Command::Reply(_) => None,
        })
    }

    pub(crate) fn met(&self) -> Vec<Met> {
        self.told_of(|command| match command {
            Command::Met(met) => Some(*met),
            Command::Issue(_)
            | Command::Query(_)
            | Command::Receipt(_)
            | Command::Answer(_)
            | Command::Reply(_) => None,
        })
    }

    pub(crate) fn receipts(&self) -> Vec<Receipt> {
        self.told_of(|command| match command {
            Command::Receipt(receipt) => Some(*receipt),
            Command::Issue(_)
            | Command::Query(_)
            | Command::Met(_)
            | Command::Answer(_)
            | Command::Reply(_) => None,
        })
    }

    fn told_of<T>(&self, which: impl Fn(&Command) -> Option<T>) -> Vec<T> {
        self.commands.iter().filter_map(which).collect()
    }
}

impl Sink for Told {
    fn attempt(&mut self, attempt: &Attempt) {
        self.attempts.push(*attempt);
    }
    fn command(&mut self, command: &Command) {
        self.commands.push(*command);
    }
    fn reception(&mut self, _reception: &Reception) {}
    fn link(&mut self, _fact: &LinkFact) {}
    fn opened(&mut self, _link: LinkId, _at: Micros) {}
    fn counts(&mut self, _stream: StreamId, at: Micros) -> &mut Counts {
        self.windows.entry(at.second()).or_default()
    }
}

/// The platform's treatment of a request.
#[derive(Clone, Copy)]
pub(crate) enum Peer {
    Answers(Code),
    /// 5.03, with Max-Age in seconds.
    Unavailable(u32),
    /// In a message of its own, so much later.
    Later(Micros),
    /// With 4.03, so much later.
    Refuses(Micros),
    /// Receives every second datagram only.
    Deaf,
    Silent,
    /// Receives this many datagrams, and no more.
    SilentAfter(u32),
    Resets,
    /// Answers queries with commands, and accepts replies.
    Commands(Commands),
}

/// One device and the platform.
pub(crate) struct World {
    pub(crate) shard: Shard<Coap, Told>,
    peer: Peer,
    server: Server,
    up: VecDeque<(Micros, Vec<u8>)>,
    down: VecDeque<(Micros, Vec<u8>)>,
    waiting: VecDeque<(Micros, Pending, Bringing)>,
    heard: u32,
    pub(crate) commanding: Commanding,
    /// For how long the socket keeps a message back: as one that is shared does, which gathers them.
    pub(crate) keeps_back: Option<Micros>,
    kept_until: Option<Micros>,
    /// True if copies and blocks find no room at the socket.
    pub(crate) loses_further: bool,
    out: Vec<u8>,
    now: Micros,
}

impl World {
    /// A platform, and the device of a scenario.
    pub(crate) fn new(peer: Peer, text: &str) -> Self {
        let (name, text) = ("t.yaml", text);
        let plan = parse(Source { name, text }, &Overrides::default(), &NoFiles);
        let plan = plan.unwrap_or_else(|problems| panic!("{problems}"));
        let schedules = schedules(&plan).unwrap();
        let recorder = recorder_plan(&plan, RunId(1), &schedules);
        let placement = Placement {
            plan: &plan,
            recorder: &recorder,
            schedules: &schedules,
            run: RunId(1),
            slice: Slice::WHOLE,
            wall_ms_at_t0: 0,
            slot_limit: 1_000,
        };
        let mut world = Self {
            shard: placement.shard(Told::default()).unwrap(),
            peer,
            server: Server::new(Arc::new(ServerSettings::default()), 1),
            up: VecDeque::new(),
            down: VecDeque::new(),
            waiting: VecDeque::new(),
            heard: 0,
            commanding: Commanding::default(),
            keeps_back: None,
            kept_until: None,
            loses_further: false,
            out: Vec::new(),
            now: Micros::ZERO,
        };
        world.shard.connects_mut().start(Micros::ZERO);
        assert_eq!(world.shard.connects_mut().take(Micros::ZERO), Some(0));
        world.shard.opening(0, Micros::ZERO);
        world.shard.opened(0, Micros::ZERO, &mut world.out);
        assert!(
            world.shard.links().is_up(0) && world.out.is_empty(),
            "there is no CONNECT"
        );
        world.shard.traffic_mut().start(Micros::ZERO);
        world
    }

    /// Lets the time pass until an instant.
    pub(crate) fn run_until(&mut self, end: Micros) {
        while self.now <= end {
            self.turn();
            let due = [
                self.shard.traffic().next_due(),
                self.shard.traffic().next_expiry(),
                self.shard.deadline(0),
                self.up.front().map(|(at, _)| *at),
                self.down.front().map(|(at, _)| *at),
                self.waiting.front().map(|(at, ..)| *at),
                self.kept_until,
            ];
            let next = due.into_iter().flatten().min().unwrap_or(Micros::MAX);
            self.now = next.max(self.now + Micros(1));
        }
        self.now = end;
    }

    fn turn(&mut self) {
        let now = self.now;
        if self.kept_until.take_if(|until| *until <= now).is_some() {
            self.shard.traffic_mut().flushed(0, now);
            self.pump();
        }
        while self.shard.take_due(now).is_some() || self.shard.expire(now).is_some() {
            self.pump();
        }
        if self.shard.deadline(0).is_some_and(|at| at <= now) {
            let _ = self.shard.timer(0, now, &mut self.out);
            self.send();
            self.pump();
        }
        while let Some((_, datagram)) = self.up.pop_front_if(|(at, _)| *at <= now) {
            self.hear(&datagram);
        }
        while let Some((_, pending, bringing)) = self.waiting.pop_front_if(|(at, ..)| *at <= now) {
            self.bring(pending, bringing);
        }
        while let Some((_, datagram)) = self.down.pop_front_if(|(at, _)| *at <= now) {
            let _ = self.shard.received(0, now, &datagram, &mut self.out);
            self.send();
            self.pump();
        }
    }

    fn pump(&mut self) {
        while self.shard.render_next(0, self.now, &mut self.out) {
            if self.send() {
                self.shard.traffic_mut().written(0, self.now);
                continue;
            }
            if let Some(time) = self.keeps_back {
                self.shard.traffic_mut().gathered(0);
                self.kept_until = Some(self.now + time);
            } else {
                self.shard.traffic_mut().written(0, self.now);
            }
        }
        self.shard.shed_excess(0, self.now);
    }

    /// Returns true if it was no message's first datagram.
    fn send(&mut self) -> bool {
        let further = self.shard.session_mut().take_further();
        if self.out.is_empty() {
            return false;
        }
        let datagram = std::mem::take(&mut self.out);
        if further.is_some() && self.loses_further {
            return true;
        }
        if let Some(further) = &further {
            self.shard.traffic_mut().written_again(further, self.now);
        }
        self.up.push_back((self.now + WAY, datagram));
        further.is_some()
    }

    fn hear(&mut self, datagram: &[u8]) {
        self.heard += 1;
        let mut down = Vec::new();
        let peer = self.peer;
        match peer {
            Peer::Silent => return,
            Peer::Deaf if self.heard % 2 == 1 => return,
            Peer::SilentAfter(most) if self.heard > most => return,
            Peer::Resets => {
                let reset = vec![0x70, 0, datagram[2], datagram[3]];
                return self.down.push_back((self.now + WAY, reset));
            }
            Peer::Commands(with) if self.loses(&with, datagram) => return,
            Peer::Deaf
            | Peer::SilentAfter(_)
            | Peer::Answers(_)
            | Peer::Unavailable(_)
            | Peer::Later(_)
            | Peer::Refuses(_)
            | Peer::Commands(_) => {}
        }
        let event = self.server.receive(self.now, datagram, &mut down);
        let Some(ServerEvent::Request(request)) = event else {
            return self.say(down);
        };
        let pending = request.pending;
        match self.peer {
            Peer::Later(after) => self.put_off(pending, after, Bringing::Nothing),
            Peer::Commands(with) => {
                let asked = Asked::of(&request, self.now);
                self.asked(&with, pending, asked);
            }
            Peer::Unavailable(seconds) => {
                let seconds = Uint::of(seconds);
                let options = [Opt::new(OptionNumber::MAX_AGE, &seconds)];
                self.answer(
                    pending,
                    &Reply::new(Code::SERVICE_UNAVAILABLE, &options, b""),
                );
            }
            Peer::Refuses(after) => {
                let reply = Reply::new(Code::FORBIDDEN, &[], b"");
                self.server
                    .respond(self.now, pending, &reply, &mut down)
                    .unwrap();
                self.down.push_back((self.now + after, down));
            }
            Peer::Answers(code) => self.answer(pending, &Reply::new(code, &[], b"")),
            Peer::Deaf | Peer::Silent | Peer::SilentAfter(_) | Peer::Resets => {
                self.answer(pending, &Reply::new(Code::CHANGED, &[], b""));
            }
        }
    }

    /// The answer comes after a time, in a message of its own; at once if that is none.
    pub(crate) fn put_off(&mut self, pending: Pending, after: Micros, brings: Bringing) {
        if after == Micros::ZERO {
            return self.bring(pending, brings);
        }
        let mut down = Vec::new();
        let pending = self.server.acknowledge(pending, &mut down);
        self.say(down);
        self.waiting.push_back((self.now + after, pending, brings));
    }

    pub(crate) fn answer(&mut self, pending: Pending, reply: &Reply<'_>) {
        let mut down = Vec::new();
        self.server
            .respond(self.now, pending, reply, &mut down)
            .unwrap();
        self.say(down);
    }

    fn say(&mut self, datagram: Vec<u8>) {
        if !datagram.is_empty() {
            self.down.push_back((self.now + WAY, datagram));
        }
    }

    /// Ends the run: what the shard told.
    pub(crate) fn end(&mut self) -> Told {
        self.shard.finish(self.now, ShedCause::Interrupted);
        assert_eq!(self.shard.traffic().open(), 0);
        std::mem::take(self.shard.recording().sink())
    }
}
