//! Sockets that links share: whose a datagram is, when what was gathered is sent, who may shake hands.

use std::collections::{BTreeMap, VecDeque};

use muster_device::{Connects, Further, Route, SharedSockets, SocketSlot};
use muster_model::Micros;
use muster_net::{Closed, Io, Key, TimerId, Written};
use muster_plan::shared_receive_buffer;

use super::datagrams::Gathered;
use super::stale_handshakes::StaleHandshakes;
use super::{DatagramLines, Driver};

/// Links that are opened on a socket in one turn.
const OPENED_PER_TURN: u32 = 16;
/// Batches that are sent in one turn before the sockets are looked at again.
const BATCHES_PER_TURN: u32 = 64;

/// One socket.
#[derive(Debug)]
pub(super) struct SharedSocket<K> {
    pub(super) key: Option<Key>,
    is_open: bool,
    /// Links whose turn to connect has come, and when it came.
    waiting: VecDeque<(u32, Micros)>,
    /// The link whose handshake is under way: there is one at a time, since records in the clear
    /// do not say whose they are.
    shaking: Option<u32>,
    /// True if it waits in the queue of its ramp until fewer handshakes are under way.
    is_queued: bool,
    stale_handshakes: StaleHandshakes,
    /// Gathered messages that the kernel has not taken yet; the place of each here is its mark.
    pub(super) unsent: Vec<Gathered<K>>,
    timer: Option<(Micros, TimerId)>,
}

impl<K> Default for SharedSocket<K> {
    fn default() -> Self {
        Self {
            key: None,
            is_open: false,
            waiting: VecDeque::new(),
            shaking: None,
            is_queued: false,
            stale_handshakes: StaleHandshakes::default(),
            unsent: Vec::new(),
            timer: None,
        }
    }
}

impl<K> SharedSocket<K> {
    /// The link that a datagram in the clear is for.
    fn shaker(&mut self, datagram: &[u8]) -> Option<u32> {
        let may_be_ours = self.stale_handshakes.may_be_ours(datagram);
        self.shaking.filter(|_| may_be_ours)
    }
}

/// The sockets of a shard.
#[derive(Debug)]
pub(crate) struct DatagramSockets<K> {
    pub(super) shared: Vec<SharedSocket<K>>,
    /// Copies and blocks that unshared sockets hold, by link.
    pub(super) held: BTreeMap<u32, Further<K>>,
    /// Sockets on which a link may be opened.
    ready: Vec<u32>,
    /// By ramp: sockets that wait until fewer handshakes are under way, in their order, each once.
    queues: Vec<VecDeque<u32>>,
    /// Sockets with messages that were gathered in this turn.
    pub(super) gathered: Vec<u32>,
    /// An empty list, to be lent to a socket whose own is walked.
    pub(super) spare: Vec<Gathered<K>>,
    /// Marks of what the kernel refused of those.
    pub(super) refused: Vec<u32>,
}

impl<K> DatagramSockets<K> {
    pub(super) fn with(shared: u32, ramps: usize) -> Self {
        Self {
            shared: (0..shared).map(|_| SharedSocket::default()).collect(),
            held: BTreeMap::new(),
            ready: Vec::new(),
            queues: vec![VecDeque::new(); ramps],
            gathered: Vec::new(),
            spare: Vec::new(),
            refused: Vec::new(),
        }
    }

    /// A socket stands.
    pub(super) fn opened(&mut self, socket: u32) {
        self.shared[socket as usize].is_open = true;
        self.ready.push(socket);
    }

    fn queue_up(&mut self, socket: u32, ramp: usize) {
        self.shared[socket as usize].is_queued = true;
        self.queues[ramp].push_back(socket);
    }

    /// A ramp that has room for a socket in its queue.
    fn ramp_with_room(&self, connects: &Connects) -> Option<usize> {
        let mut queues = (0..).zip(&self.queues);
        let found = queues.find(|(ramp, queue)| !queue.is_empty() && connects.has_room(*ramp));
        found.map(|(ramp, _)| ramp)
    }

    /// Lets the next handshake of a socket begin if that of `link` was under way and has ended.
    pub(super) fn shaken(&mut self, at: u32, link: u32, has_succeeded: bool) {
        let socket = &mut self.shared[at as usize];
        if socket.shaking != Some(link) {
            return;
        }
        socket.shaking = None;
        if has_succeeded {
            socket.stale_handshakes.succeeded();
        } else {
            socket.stale_handshakes.failed();
        }
        self.ready.push(at);
    }
}

impl<P: SharedSockets, L: DatagramLines> Driver<P, L, DatagramSockets<P::Key>> {
    /// The turn of a link to connect has come: it waits for its socket, which may be the first
    /// to need it.
    pub(super) fn connect_shared(&mut self, io: &mut Io, link: u32, slot: SocketSlot) {
        if self.sockets.shared[slot.socket as usize].key.is_none()
            && !self.begin_socket(io, slot.socket, link)
        {
            return;
        }
        let now = io.fresh_now();
        let socket = &mut self.sockets.shared[slot.socket as usize];
        socket.waiting.push_back((link, now));
        if socket.is_open {
            self.sockets.ready.push(slot.socket);
        }
    }

    /// Makes a socket, which goes where its first link would; whether there is one.
    fn begin_socket(&mut self, io: &mut Io, socket: u32, link: u32) -> bool {
        let first = self
            .shard
            .session()
            .link_at(SocketSlot { socket, index: 0 });
        let first = first.unwrap_or(link);
        let sockets = self.targets.plan().device_sockets();
        let (target, source) = self.targets.of(self.shard.fleets(), first, sockets);
        match L::connect(io, target, source) {
            Ok(key) => {
                io.set_tag(key, self.tags.socket(socket));
                let wanted = shared_receive_buffer(self.shard.session().slots_of(socket));
                self.reports.ask_for_buffer(io, key, wanted);
                self.sockets.shared[socket as usize].key = Some(key);
                true
            }
            Err(error) => {
                self.connect_refused(link, io.now(), &error);
                false
            }
        }
    }

    /// Opens links whose sockets wait, while fewer handshakes are under way than may be. It goes before
    /// the turns of further links, which would wait behind them.
    pub(super) fn use_room(&mut self, io: &mut Io) {
        while let Some(ramp) = self.sockets.ramp_with_room(self.shard.connects()) {
            let Some(socket) = self.sockets.queues[ramp].pop_front() else {
                return;
            };
            self.sockets.shared[socket as usize].is_queued = false;
            self.open_waiting(io, socket);
        }
    }

    /// Does what the turn's end is for: opens links whose sockets are free, and sends what was
    /// gathered; whether more is to be done at once.
    pub(super) fn turn_of_shared(&mut self, io: &mut Io) -> bool {
        for _ in 0..self.sockets.ready.len() {
            if let Some(socket) = self.sockets.ready.pop() {
                self.open_waiting(io, socket);
            }
        }
        for _ in 0..BATCHES_PER_TURN {
            let Some(socket) = self.sockets.gathered.pop() else {
                break;
            };
            let key = self.sockets.shared[socket as usize].key;
            match key.map_or(Written::Lost, |key| io.send_gathered(key)) {
                Written::Whole => self.flushed_at(io, socket),
                // It is told once there is room.
                Written::Held => self.lacks_room(io, socket),
                Written::Busy | Written::Exhausted | Written::Refused | Written::Lost => {}
            }
        }
        let is_work_left = !self.sockets.ready.is_empty() || !self.sockets.gathered.is_empty();
        is_work_left || self.sockets.ramp_with_room(self.shard.connects()).is_some()
    }

    fn open_waiting(&mut self, io: &mut Io, at: u32) {
        for _ in 0..OPENED_PER_TURN {
            let socket = &mut self.sockets.shared[at as usize];
            let Some(key) = socket.key.filter(|_| socket.is_open) else {
                return;
            };
            if socket.shaking.is_some() || socket.is_queued {
                return;
            }
            let Some(&(link, asked)) = socket.waiting.front() else {
                return;
            };
            let ramp = self.shard.fleets().ramp_of(link);
            if !self.shard.connects().has_room(ramp) {
                return self.sockets.queue_up(at, ramp);
            }
            socket.waiting.pop_front();
            self.keys[link as usize] = Some(key);
            let now = io.fresh_now();
            self.shard.opening_after(link, now - asked, now);
            self.arm(io, link);
            self.link_opened(io, link);
            let is_shaking =
                self.keys[link as usize].is_some() && !L::is_open(&self.each[link as usize]);
            self.sockets.shared[at as usize].shaking = is_shaking.then_some(link);
        }
        self.sockets.ready.push(at);
    }

    /// A datagram came to a socket.
    pub(super) fn received_at(&mut self, io: &mut Io, socket: u32, bytes: &mut [u8]) {
        let link = match L::route(bytes) {
            None => return self.received_by_endpoint(io, socket, bytes),
            Some(Route::Slot(index)) => self.shard.session().link_at(SocketSlot { socket, index }),
            Some(Route::Handshake) => self.sockets.shared[socket as usize].shaker(bytes),
            Some(Route::Nobody) => None,
        };
        let Some(link) = link.filter(|link| self.keys[*link as usize].is_some()) else {
            self.shard
                .recording()
                .account()
                .links
                .counters
                .dtls_discarded += 1;
            return;
        };
        self.link_received(io, link, bytes);
        if L::is_open(&self.each[link as usize]) {
            self.sockets.shaken(socket, link, true);
        }
    }

    /// The socket's message ids and tokens identify the link.
    fn received_by_endpoint(&mut self, io: &mut Io, socket: u32, bytes: &[u8]) {
        let now = io.fresh_now();
        let link = self
            .shard
            .poll_socket(socket, now, Some(bytes), &mut self.out);
        self.say_at(io, socket);
        match link {
            Some(link) => self.go_on(io, link),
            None => self.arm_socket(io, socket),
        }
    }

    /// Something of a socket's exchanges is due.
    pub(super) fn time_passed_at(&mut self, io: &mut Io, socket: u32) {
        self.sockets.shared[socket as usize].timer = None;
        let now = io.presented_until();
        while let Some(link) = self.shard.poll_socket(socket, now, None, &mut self.out) {
            self.say_at(io, socket);
            self.go_on(io, link);
        }
        self.arm_socket(io, socket);
    }

    /// The kernel has ended a socket, and with it all links on it.
    pub(super) fn closed_at(&mut self, io: &mut Io, at: u32, why: Closed) {
        let socket = &mut self.sockets.shared[at as usize];
        let SharedSocket {
            waiting, is_queued, ..
        } = std::mem::take(socket);
        // Its place in the queue stays until its turn comes there.
        socket.is_queued = is_queued;
        for index in 0..self.shard.session().slots_of(at) {
            let link = self
                .shard
                .session()
                .link_at(SocketSlot { socket: at, index });
            if let Some(link) = link.filter(|link| self.keys[*link as usize].is_some()) {
                self.link_closed(io, link, why);
            }
        }
        for (link, _) in waiting {
            self.shard
                .connect_failed(link, io.now(), super::failure_of(why));
        }
    }

    /// Makes sure that a timer runs out not later than what is due first on a socket.
    pub(super) fn arm_socket(&mut self, io: &mut Io, at: u32) {
        let Some(deadline) = self.shard.session().socket_deadline(at) else {
            return;
        };
        let socket = &mut self.sockets.shared[at as usize];
        if let Some((set, timer)) = socket.timer {
            if set <= deadline {
                return;
            }
            io.cancel_timer(timer);
        }
        let token = u64::from(self.tags.socket(at));
        let timer = io.set_timer(super::later(io, deadline), token);
        socket.timer = Some((deadline, timer));
    }

    /// Ends the sockets, after what was said last.
    pub(super) fn close_shared(&mut self, io: &mut Io) {
        for socket in &mut self.sockets.shared {
            if let Some(key) = socket.key.take() {
                let _ = io.send_gathered(key);
                io.close(key);
            }
        }
    }
}
