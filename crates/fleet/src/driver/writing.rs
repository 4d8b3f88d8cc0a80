//! Writes on sockets, alone or gathered with those of other links, and their results.

use muster_device::{Further, SharedSockets};
use muster_model::{Cause, Micros, ShedCause};
use muster_net::{Io, Key, Written};

use super::shared::{Shared, SharedSocket};
use super::{Driver, Lines};

/// Control bytes of a link that may wait behind a message. The answers to all 65,535 packet ids
/// are less: a peer beyond it goes on answering what was never sent.
const WAITING_MAX: usize = 1 << 20;

/// A datagram that was gathered.
#[derive(Debug, Clone, Copy)]
pub(super) enum Gathered<K> {
    /// The message of a link, which holds it.
    Message(u32),
    Further(Further<K>),
}

impl<K> Shared<K> {
    /// Gathers a datagram, after whose sending somebody asks.
    fn gather(&mut self, io: &mut Io, socket: u32, what: Gathered<K>, bytes: &[u8]) -> Written {
        let SharedSocket { key, unsent, .. } = &mut self.sockets[socket as usize];
        let Some(key) = *key else {
            return Written::Lost;
        };
        let written = io.gather_marked(key, unsent.len() as u32, bytes);
        if written == Written::Whole {
            unsent.push(what);
            if unsent.len() == 1 {
                self.gathered.push(socket);
            }
        }
        bounded(written)
    }
}

impl<P: SharedSockets, L: Lines> Driver<P, L> {
    /// Sends what waits on a link, one write a message, as long as it may.
    pub(super) fn pump(&mut self, io: &mut Io, link: u32) {
        let Some(key) = self.keys[link as usize] else {
            return self.shard.shed_excess(link, io.now());
        };
        while self.shard.render_next(link, io.now(), &mut self.out) {
            self.wrap(link, 0);
            let written = match self.shard.session_mut().take_further() {
                None => self.hand_over(io, link, key),
                further @ Some(_) => self.say(io, link, key, further),
            };
            self.out.clear();
            let at = io.fresh_now();
            match written {
                Written::Whole => self.shard.traffic_mut().written(link, at),
                Written::Held => self.hold(io, link, key),
                Written::Exhausted => {
                    self.shard.unsent(link, at, ShedCause::GeneratorLimit);
                    self.reports
                        .diagnostic("no buffer was left for a message that a socket did not take");
                    if !L::IN_DATAGRAMS {
                        // The session counts as sent what never went out, so it cannot go on.
                        self.cut(io, link, Cause::Network);
                        break;
                    }
                }
                // Only of datagrams, each of which goes by itself: there is no way to the target.
                Written::Refused => self.shard.unsent(link, at, ShedCause::Offline),
                Written::Busy if L::IN_DATAGRAMS => {
                    self.shard.unsent(link, at, ShedCause::SocketFull);
                }
                Written::Busy | Written::Lost => break,
            }
        }
        self.shard.shed_excess(link, io.now());
        if L::IN_DATAGRAMS {
            self.arm(io, link);
        }
    }

    /// Sends control bytes of a session, if there are any.
    pub(super) fn send(&mut self, io: &mut Io, link: u32) {
        let further = self.shard.session_mut().take_further();
        if let Some(key) = self.keys[link as usize] {
            self.flush_line(io, link, key);
        }
        if self.out.is_empty() {
            return;
        }
        if let Some(key) = self.keys[link as usize] {
            match self.say(io, link, key, further) {
                Written::Whole | Written::Lost | Written::Refused => {}
                Written::Held => self.shard.traffic_mut().held(link),
                // A datagram that finds no room is lost, as on any way.
                Written::Busy if L::IN_DATAGRAMS => {}
                Written::Busy => self.wait_behind_message(io, link),
                Written::Exhausted if L::IN_DATAGRAMS => self.reports.no_buffer(),
                Written::Exhausted => {
                    self.reports.no_buffer();
                    self.cut(io, link, Cause::Network);
                }
            }
        }
        self.out.clear();
    }

    /// Sends what the line of a link has to say of its own.
    pub(super) fn flush_line(&mut self, io: &mut Io, link: u32, key: Key) {
        match self.lines.flush(io, key, self.is_shared(link)) {
            Written::Held => self.shard.traffic_mut().held(link),
            Written::Exhausted => self.reports.no_buffer(),
            // What finds no room is lost as on the way, and said again.
            Written::Whole | Written::Busy | Written::Lost | Written::Refused => {}
        }
    }

    fn wait_behind_message(&mut self, io: &mut Io, link: u32) {
        let waiting = self.waiting.entry(link).or_default();
        if waiting.len() + self.out.len() > WAITING_MAX {
            return self.cut(io, link, Cause::Malformed);
        }
        waiting.extend_from_slice(&self.out);
    }

    /// Hands the rendered message of a link to the kernel, or gathers it with those of others.
    #[inline]
    pub(super) fn hand_over(&mut self, io: &mut Io, link: u32, key: Key) -> Written {
        let seat = match L::IN_DATAGRAMS {
            true => self.shard.seat(link),
            false => None,
        };
        if L::IN_DATAGRAMS && self.out.is_empty() {
            // The line would not have it: its end follows.
            return Written::Refused;
        }
        let Some(seat) = seat else {
            return io.write(key, &self.out);
        };
        let message = Gathered::Message(link);
        match self.shared.gather(io, seat.socket, message, &self.out) {
            Written::Whole => Written::Held,
            other @ (Written::Held
            | Written::Busy
            | Written::Exhausted
            | Written::Refused
            | Written::Lost) => other,
        }
    }

    /// Says what is no message's first datagram.
    #[inline]
    pub(super) fn say(
        &mut self,
        io: &mut Io,
        link: u32,
        key: Key,
        further: Option<Further<P::Key>>,
    ) -> Written {
        let seat = match L::IN_DATAGRAMS {
            true => self.shard.seat(link),
            false => None,
        };
        if let Some(seat) = seat {
            return self.say_gathered(io, seat.socket, key, further);
        }
        let written = io.write(key, &self.out);
        let Some(further) = further else {
            return written;
        };
        match written {
            Written::Whole => self
                .shard
                .traffic_mut()
                .written_again(&further, io.fresh_now()),
            Written::Held => {
                self.shard.traffic_mut().leaves_again(&further);
                self.held.insert(link, further);
            }
            Written::Busy | Written::Exhausted | Written::Refused | Written::Lost => {}
        }
        written
    }

    fn say_gathered(
        &mut self,
        io: &mut Io,
        socket: u32,
        key: Key,
        further: Option<Further<P::Key>>,
    ) -> Written {
        let Some(further) = further else {
            return bounded(io.gather(key, &self.out));
        };
        let what = Gathered::Further(further);
        let written = self.shared.gather(io, socket, what, &self.out);
        if written == Written::Whole {
            self.shard.traffic_mut().leaves_again(&further);
        }
        written
    }

    /// Says what a socket has to say by itself.
    pub(super) fn say_at(&mut self, io: &mut Io, socket: u32) {
        let further = self.shard.session_mut().take_further();
        let key = self.shared.sockets[socket as usize].key;
        if let (Some(key), false) = (key, self.out.is_empty())
            && self.say_gathered(io, socket, key, further) == Written::Exhausted
        {
            self.reports.no_buffer();
        }
        self.out.clear();
    }

    /// The kernel has taken what was gathered at a socket: that is the instant of all of it.
    pub(super) fn flushed_at(&mut self, io: &mut Io, socket: u32) {
        let mut gathered = self.tell_gathered(io, socket);
        for one in gathered.drain(..) {
            if let Gathered::Message(link) = one {
                self.arm(io, link);
                self.pump(io, link);
            }
        }
        self.shared.spare = gathered;
    }

    /// Tells what became of all that was gathered at a socket, and what that was.
    fn tell_gathered(&mut self, io: &mut Io, socket: u32) -> Vec<Gathered<P::Key>> {
        let at = io.fresh_now();
        let spare = std::mem::take(&mut self.shared.spare);
        let of = &mut self.shared.sockets[socket as usize];
        let gathered = std::mem::replace(&mut of.unsent, spare);
        if let Some(key) = of.key {
            io.take_refused(key, &mut self.shared.refused);
        }
        for (mark, one) in (0..).zip(&gathered) {
            let is_refused = self.shared.refused.binary_search(&mark).is_ok();
            match one {
                Gathered::Message(link) if is_refused => {
                    self.shard.unsent(*link, at, ShedCause::Offline);
                }
                Gathered::Message(link) => self.shard.traffic_mut().flushed(*link, at),
                Gathered::Further(_) if is_refused => {}
                Gathered::Further(further) => self.shard.traffic_mut().written_again(further, at),
            }
        }
        gathered
    }

    /// The kernel has no room for what was gathered at a socket: what may not wait is shed.
    pub(super) fn lacks_room(&mut self, io: &Io, socket: u32) {
        let unsent = &mut self.shared.sockets[socket as usize].unsent;
        let gathered = std::mem::take(unsent);
        for one in &gathered {
            if let Gathered::Message(link) = one {
                self.shard.traffic_mut().held(*link);
                self.shard.shed_excess(*link, io.now());
            }
        }
        self.shared.sockets[socket as usize].unsent = gathered;
    }

    /// Sends what was gathered at all sockets, as far as there is room, and tells of it.
    pub(super) fn send_all_gathered(&mut self, io: &mut Io) {
        while let Some(socket) = self.shared.gathered.pop() {
            let key = self.shared.sockets[socket as usize].key;
            if key.is_some_and(|key| io.send_gathered(key) == Written::Whole) {
                let mut gathered = self.tell_gathered(io, socket);
                gathered.clear();
                self.shared.spare = gathered;
            }
        }
    }

    /// The kernel has taken, or refused, what a socket of its own held of a link.
    pub(super) fn tell_flushed(&mut self, io: &mut Io, link: u32, key: Key, at: Micros) {
        let further = self.held.remove(&link);
        if L::IN_DATAGRAMS {
            io.take_refused(key, &mut self.shared.refused);
            if !self.shared.refused.is_empty() {
                return self.shard.unsent(link, at, ShedCause::Offline);
            }
        }
        if let Some(further) = further {
            self.shard.traffic_mut().written_again(&further, at);
        }
        self.shard.traffic_mut().flushed(link, at);
    }

    /// Nothing more is written on a link until what was written last went out: at the end of the turn,
    /// or once there is room.
    pub(super) fn hold(&mut self, io: &Io, link: u32, key: Key) {
        if self.is_shared(link) && io.is_writable(key) {
            self.shard.traffic_mut().gathered(link);
        } else {
            self.shard.traffic_mut().held(link);
        }
    }
}

/// More waits at a socket than may: the bound is ours.
fn bounded(gathered: Written) -> Written {
    match gathered {
        Written::Busy => Written::Exhausted,
        other @ (Written::Whole
        | Written::Held
        | Written::Exhausted
        | Written::Refused
        | Written::Lost) => other,
    }
}

/// Sends datagrams that no message is in. What became of them: whether one is held, else how it went
/// with the first that did not go.
pub(super) fn send_each<'a>(
    io: &mut Io,
    key: Key,
    gathers: bool,
    datagrams: impl Iterator<Item = &'a [u8]>,
) -> Written {
    datagrams.fold(Written::Whole, |sent, datagram| {
        let written = match gathers {
            true => bounded(io.gather(key, datagram)),
            false => io.write(key, datagram),
        };
        let is_told = sent != Written::Whole && written != Written::Held;
        if is_told { sent } else { written }
    })
}
