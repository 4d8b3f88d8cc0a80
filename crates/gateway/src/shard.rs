//! One thread of the gateway: its links, its sessions, its mail.

mod acknowledging;
mod admitting;
mod alarms;
mod answering;
mod authenticating;
mod coap;
mod commanding;
mod delivery;
mod hearing;
mod link;
mod opening;
mod session;
mod subscribing;
mod uplink;
mod wire;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use muster_model::Micros;
use muster_net::{Closed, Handler, Io, Key, ListenerId, Written};
use muster_protocol::layer::Layer;
use muster_protocol::mqtt::{Input, ServerEvent, ServerLimits};
use muster_transport::Servers;
use slotmap::{DefaultKey, SlotMap};

use crate::account::Counts;
use crate::routes::{Gauge, SessionKey, SessionRef};
use crate::shared::{Mail, Shared};

use alarms::Alarm;
use answering::Asker;
use coap::Coap;
use delivery::Match;
use link::{Link, Pause};

pub(crate) use coap::{QUERIES_MAX, SPOKEN_FOR_MAX, Waiter};
pub(crate) use session::Session;

/// Most bytes gathered for one write: more would only wait in the kernel.
const OUT_MAX: usize = 64 * 1024;

/// One thread of the gateway.
#[derive(Debug)]
pub(crate) struct Shard {
    index: u16,
    shared: Arc<Shared>,
    limits: ServerLimits,
    layers: Servers,
    /// By the index of the connection's key.
    links: Vec<Option<Box<Link>>>,
    sessions: SlotMap<SessionKey, Session>,
    coap: Coap,
    alarms: SlotMap<DefaultKey, Alarm>,
    /// Links with something to write at the end of the turn.
    dirty: Vec<Key>,
    /// Publishers that wait for room in a full queue.
    waiting: Vec<Key>,
    /// Whose uplinks are to be overtaken.
    overtaken: Vec<Asker>,
    last_uplink: Micros,
    /// Sessions that moved to another thread lately, for mail that was under way to them.
    moved: VecDeque<(SessionRef, SessionRef, Arc<Gauge>)>,
    outboxes: Vec<Vec<Mail>>,
    inbox: VecDeque<Mail>,
    matches: Vec<Match>,
    /// Acknowledgements by the application are written here.
    answers: Vec<u8>,
    /// The topics that data surface on are written here.
    topic: String,
}

impl Shard {
    pub(crate) fn new(index: u16, shared: Arc<Shared>, layers: Servers) -> Self {
        let threads = usize::from(shared.threads());
        let limits = ServerLimits {
            receive_maximum: shared.config.receive_maximum.max(1),
            maximum_packet_size: shared.config.max_packet(),
            ..ServerLimits::default()
        };
        let (transmission, max_payload) = (shared.config.transmission, shared.config.max_payload());
        Self {
            index,
            shared,
            limits,
            layers,
            links: Vec::new(),
            sessions: SlotMap::with_key(),
            coap: Coap::new(transmission, max_payload),
            alarms: SlotMap::new(),
            dirty: Vec::new(),
            waiting: Vec::new(),
            overtaken: Vec::new(),
            last_uplink: Micros::ZERO,
            moved: VecDeque::new(),
            outboxes: (0..threads).map(|_| Vec::new()).collect(),
            inbox: VecDeque::new(),
            matches: Vec::new(),
            answers: Vec::new(),
            topic: String::new(),
        }
    }

    fn counts(&self) -> &Counts {
        &self.shared.counts[usize::from(self.index)]
    }

    fn link(&mut self, key: Key) -> Option<&mut Link> {
        let link = self.links.get_mut(key.index())?.as_deref_mut()?;
        (link.key == key).then_some(link)
    }

    fn session(&mut self, session: SessionRef) -> Option<&mut Session> {
        self.sessions.get_mut(session.key)
    }

    /// Takes packets as long as the link may be read.
    fn pump(&mut self, io: &mut Io, key: Key, input: &mut Input<'_>) {
        loop {
            let now = io.now();
            let Some(link) = self.link(key) else { return };
            if link.is_paused() {
                return;
            }
            let Some(event) = link.server.poll(now, input, &mut link.out) else {
                return;
            };
            self.handle(io, key, event);
        }
    }

    fn handle(&mut self, io: &mut Io, key: Key, event: ServerEvent<'_>) {
        match event {
            ServerEvent::Publish(incoming) => self.uplink(io, key, &incoming),
            ServerEvent::Acked { token, reason } => self.acked(io, key, token, reason),
            ServerEvent::Completed { token } => self.completed(io, key, token),
            ServerEvent::Resend { token } => self.resend(io, key, token),
            ServerEvent::Connect(connect) => self.connect(io, key, &connect),
            ServerEvent::Subscribe(subscribe) => self.subscribe(io, key, &subscribe),
            ServerEvent::Unsubscribe(unsubscribe) => self.unsubscribe(io, key, &unsubscribe),
            ServerEvent::Ping => {}
            ServerEvent::Auth(auth) => self.authenticate(io, key, &auth),
            ServerEvent::Disconnect {
                with_will,
                session_expiry,
                ..
            } => {
                self.goodbye(key, session_expiry);
                self.end(io, key, with_will);
            }
            ServerEvent::KeepAliveExpired => {
                self.counts().keep_alive_expired.more();
                self.end(io, key, true);
            }
            ServerEvent::Malformed(_) => {
                self.counts().malformed.more();
                self.end(io, key, true);
            }
        }
    }

    /// Writes what has been gathered for a link, if the kernel takes it.
    fn send(&mut self, io: &mut Io, key: Key) {
        let Some(link) = self.link(key) else { return };
        if link.is_held || link.out.is_empty() {
            return;
        }
        link.wrap();
        match io.write(key, &link.out) {
            Written::Whole => link.clear(),
            Written::Held => {
                link.is_held = true;
                link.clear();
            }
            // Told of later: `closed` follows. The other is only of datagrams.
            Written::Lost | Written::Refused => link.clear(),
            Written::Busy => {}
            Written::Exhausted => self.end(io, key, true),
        }
    }

    fn mark_dirty(&mut self, key: Key) {
        if let Some(link) = self.link(key)
            && !link.is_dirty
        {
            link.is_dirty = true;
            self.dirty.push(key);
        }
    }

    fn pause(&mut self, io: &mut Io, key: Key, why: Pause) {
        if let Some(link) = self.link(key) {
            link.pauses |= why as u8;
            io.pause_reading(key);
        } else {
            self.pause_socket(io, key, why as u8);
        }
    }

    fn resume(&mut self, io: &mut Io, key: Key, why: Pause) {
        if let Some(link) = self.link(key) {
            link.pauses &= !(why as u8);
            if !link.is_paused() {
                io.resume_reading(key);
            }
        } else {
            self.resume_socket(io, key, why as u8);
        }
    }

    fn read_mail(&mut self, io: &mut Io) {
        let mut inbox = std::mem::take(&mut self.inbox);
        self.shared.collect(self.index, &mut inbox);
        for mail in inbox.drain(..) {
            match mail {
                Mail::Deliver { to, grant, message } => self.arrived(io, to, grant, message),
                Mail::Claim(claim) => self.claimed(io, claim),
                Mail::Granted { to, session } => self.granted(io, to, session),
                Mail::FirstUplink(at) => self.plan_alarms(io, at),
                Mail::Room => self.resume_waiting(io),
                Mail::Command { to, message } => {
                    self.put_into_answer(io, to, &message);
                }
            }
        }
        self.inbox = inbox;
    }
}

impl Handler for Shard {
    fn opened(&mut self, io: &mut Io, key: Key) {
        // The gateway connects to nobody.
        io.reset(key);
    }

    fn accepted(&mut self, io: &mut Io, key: Key, _listener: ListenerId) {
        if self.links.len() <= key.index() {
            self.links.resize_with(key.index() + 1, || None);
        }
        let mut link = Link::new(key, &self.limits, self.layers.layer());
        link.pipe.layer.open(&mut link.out);
        self.links[key.index()] = Some(Box::new(link));
        self.watch(io, key, io.now() + Link::CONNECT_TIMEOUT);
    }

    fn received(&mut self, io: &mut Io, key: Key, bytes: &mut [u8]) -> usize {
        let used = self.read(io, key, bytes);
        self.send(io, key);
        self.throttle(io, key);
        used
    }

    fn datagram(&mut self, io: &mut Io, key: Key, from: SocketAddr, bytes: &mut [u8]) {
        self.heard(io, key, from, bytes);
    }

    fn flushed(&mut self, io: &mut Io, key: Key) {
        let Some(link) = self.link(key) else { return };
        link.is_held = false;
        self.send(io, key);
        self.drain(io, key);
        self.throttle(io, key);
    }

    fn closed(&mut self, io: &mut Io, key: Key, _why: Closed) {
        self.end(io, key, true);
    }

    fn timer(&mut self, io: &mut Io, token: u64) {
        self.ring(io, token);
    }

    fn woken(&mut self, io: &mut Io) {
        self.read_mail(io);
        if self.shared.stopping.load(Ordering::Acquire) {
            self.count_datagrams(io, true);
            io.stop();
        }
    }

    fn turn(&mut self, io: &mut Io) -> Option<Micros> {
        let mut dirty = std::mem::take(&mut self.dirty);
        for key in dirty.drain(..) {
            if let Some(link) = self.link(key) {
                link.is_dirty = false;
                self.send(io, key);
            }
        }
        self.count_datagrams(io, false);
        // Sending can end a link, whose will makes others dirty.
        let settled = self.dirty.is_empty();
        dirty.append(&mut self.dirty);
        self.dirty = dirty;
        for (shard, outbox) in self.outboxes.iter_mut().enumerate() {
            self.shared.post(shard as u16, outbox);
        }
        (!settled).then_some(Micros::ZERO)
    }
}
