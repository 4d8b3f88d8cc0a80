//! Sockets of links in datagrams: a link has one to itself, or several links share one.

use muster_conduct::RecordingSink;
use muster_device::{Further, Shard, SharedSockets, SocketSlot};
use muster_model::ShedCause;
use muster_net::{Io, Key, Written};

use super::shared::{DatagramSockets, SharedSocket};
use super::{DatagramLines, Driver, Event, Sockets};

/// A datagram that was gathered.
#[derive(Debug, Clone, Copy)]
pub(super) enum Gathered<K> {
    /// The message of a link, which holds it.
    Message(u32),
    Further(Further<K>),
}

impl<K> DatagramSockets<K> {
    /// Gathers a datagram, after whose sending somebody asks.
    fn gather(&mut self, io: &mut Io, socket: u32, what: Gathered<K>, bytes: &[u8]) -> Written {
        let SharedSocket { key, unsent, .. } = &mut self.shared[socket as usize];
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

impl<P: SharedSockets, L: DatagramLines> Sockets<P, L> for DatagramSockets<P::Key> {
    fn new(shard: &Shard<P, RecordingSink>) -> Self {
        Self::with(shard.session().sockets(), shard.connects().ramps())
    }

    #[inline]
    fn slot(driver: &Driver<P, L, Self>, link: u32) -> Option<SocketSlot> {
        driver.shard.slot_of(link)
    }

    fn connect(driver: &mut Driver<P, L, Self>, io: &mut Io, link: u32) {
        match driver.shard.slot_of(link) {
            Some(slot) => driver.connect_shared(io, link, slot),
            None => driver.connect_alone(io, link),
        }
    }

    fn begin_turn(driver: &mut Driver<P, L, Self>, io: &mut Io) {
        driver.use_room(io);
    }

    fn end_turn(driver: &mut Driver<P, L, Self>, io: &mut Io) -> bool {
        driver.turn_of_shared(io)
    }

    fn on_shared(driver: &mut Driver<P, L, Self>, io: &mut Io, at: u32, event: Event<'_>) {
        match event {
            Event::Opened => driver.sockets.opened(at),
            Event::Received(bytes) => driver.received_at(io, at, bytes),
            Event::Flushed => driver.flushed_at(io, at),
            Event::Closed(why) => driver.closed_at(io, at, why),
            Event::TimeOut => driver.time_passed_at(io, at),
        }
    }

    #[inline]
    fn arm_shared(driver: &mut Driver<P, L, Self>, io: &mut Io, link: u32) {
        if let Some(slot) = driver.shard.slot_of(link) {
            driver.arm_socket(io, slot.socket);
        }
    }

    #[inline]
    fn write(driver: &mut Driver<P, L, Self>, io: &mut Io, link: u32, key: Key) -> Written {
        match driver.shard.session_mut().take_further() {
            None => driver.hand_over(io, link, key),
            further @ Some(_) => driver.say(io, link, key, further),
        }
    }

    /// A message on a shared socket waits for the end of the turn, or for room.
    fn hold(driver: &mut Driver<P, L, Self>, io: &Io, link: u32, key: Key) {
        if driver.shard.slot_of(link).is_some() && io.is_writable(key) {
            driver.shard.traffic_mut().gathered(link);
        } else {
            driver.shard.traffic_mut().held(link);
        }
    }

    fn unwritten(driver: &mut Driver<P, L, Self>, io: &mut Io, link: u32, result: Written) -> bool {
        let cause = match result {
            // There is no way to the target.
            Written::Refused => ShedCause::Offline,
            Written::Busy => ShedCause::SocketFull,
            Written::Exhausted => {
                driver.shed_unbuffered(io, link);
                return true;
            }
            Written::Whole | Written::Held | Written::Lost => return false,
        };
        driver.shard.unsent(link, io.fresh_now(), cause);
        true
    }

    /// A datagram that finds no room is lost, as on any way.
    fn send(driver: &mut Driver<P, L, Self>, io: &mut Io, link: u32) {
        let further = driver.shard.session_mut().take_further();
        if let Some(key) = driver.keys[link as usize] {
            driver.flush_line(io, link, key);
            if !driver.out.is_empty() {
                let written = driver.say(io, link, key, further);
                driver.note_control(link, written);
            }
        }
        driver.out.clear();
    }

    fn flushed(driver: &mut Driver<P, L, Self>, io: &mut Io, link: u32, key: Key) {
        let at = io.fresh_now();
        let further = driver.sockets.held.remove(&link);
        io.take_refused(key, &mut driver.sockets.refused);
        if !driver.sockets.refused.is_empty() {
            return driver.shard.unsent(link, at, ShedCause::Offline);
        }
        if let Some(further) = further {
            driver.shard.traffic_mut().written_again(&further, at);
        }
        driver.shard.traffic_mut().flushed(link, at);
    }

    fn close(driver: &mut Driver<P, L, Self>, io: &mut Io, link: u32, key: Key) {
        let line = &mut driver.each[link as usize];
        driver.lines.close(line, &mut driver.out);
        driver.flush_line(io, link, key);
        if !driver.out.is_empty() {
            let _ = driver.say(io, link, key, None);
            driver.out.clear();
        }
        if driver.shard.slot_of(link).is_none() {
            io.close(key);
        }
    }

    fn reset(driver: &mut Driver<P, L, Self>, io: &mut Io, link: u32, key: Key) {
        if driver.shard.slot_of(link).is_none() {
            io.reset(key);
        }
    }

    fn forget(driver: &mut Driver<P, L, Self>, link: u32) {
        if let Some(slot) = driver.shard.slot_of(link) {
            driver.sockets.shaken(slot.socket, link, false);
        }
        driver.sockets.held.remove(&link);
    }

    fn send_all(driver: &mut Driver<P, L, Self>, io: &mut Io) {
        driver.send_all_gathered(io);
    }

    fn close_all(driver: &mut Driver<P, L, Self>, io: &mut Io) {
        driver.close_shared(io);
    }
}

impl<P: SharedSockets, L: DatagramLines> Driver<P, L, DatagramSockets<P::Key>> {
    /// Sends datagrams of a link's line itself.
    fn flush_line(&mut self, io: &mut Io, link: u32, key: Key) {
        let gathers = self.shard.slot_of(link).is_some();
        let written = self.lines.flush(io, key, gathers);
        self.note_control(link, written);
    }

    /// Notes the result of control datagrams. Those without room are lost as on the way.
    fn note_control(&mut self, link: u32, written: Written) {
        match written {
            Written::Held => self.shard.traffic_mut().held(link),
            Written::Exhausted => self.reports.no_buffer(),
            Written::Whole | Written::Busy | Written::Lost | Written::Refused => {}
        }
    }

    /// Hands the rendered message of a link to the kernel, or gathers it with those of others.
    #[inline]
    fn hand_over(&mut self, io: &mut Io, link: u32, key: Key) -> Written {
        if self.out.is_empty() {
            // The line would not have it: its end follows.
            return Written::Refused;
        }
        let Some(slot) = self.shard.slot_of(link) else {
            return io.write(key, &self.out);
        };
        let message = Gathered::Message(link);
        let written = self.sockets.gather(io, slot.socket, message, &self.out);
        if written == Written::Whole {
            Written::Held
        } else {
            written
        }
    }

    /// Says what is no message's first datagram.
    #[inline]
    fn say(
        &mut self,
        io: &mut Io,
        link: u32,
        key: Key,
        further: Option<Further<P::Key>>,
    ) -> Written {
        if let Some(slot) = self.shard.slot_of(link) {
            return self.say_gathered(io, slot.socket, key, further);
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
                self.sockets.held.insert(link, further);
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
        let written = self.sockets.gather(io, socket, what, &self.out);
        if written == Written::Whole {
            self.shard.traffic_mut().leaves_again(&further);
        }
        written
    }

    /// Says what a socket has to say by itself.
    pub(super) fn say_at(&mut self, io: &mut Io, socket: u32) {
        let further = self.shard.session_mut().take_further();
        let key = self.sockets.shared[socket as usize].key;
        if let (Some(key), false) = (key, self.out.is_empty())
            && self.say_gathered(io, socket, key, further) == Written::Exhausted
        {
            self.reports.no_buffer();
        }
        self.out.clear();
    }

    /// The kernel has taken what was gathered at a socket: that is the instant of all of it.
    pub(super) fn flushed_at(&mut self, io: &mut Io, socket: u32) {
        let mut gathered = self.report_gathered(io, socket);
        for one in gathered.drain(..) {
            if let Gathered::Message(link) = one {
                self.arm(io, link);
                self.pump(io, link);
            }
        }
        self.sockets.spare = gathered;
    }

    /// Reports the results of all that was gathered at a socket; returns what that was.
    fn report_gathered(&mut self, io: &mut Io, socket: u32) -> Vec<Gathered<P::Key>> {
        let at = io.fresh_now();
        let spare = std::mem::take(&mut self.sockets.spare);
        let of = &mut self.sockets.shared[socket as usize];
        let gathered = std::mem::replace(&mut of.unsent, spare);
        if let Some(key) = of.key {
            io.take_refused(key, &mut self.sockets.refused);
        }
        for (mark, one) in (0..).zip(&gathered) {
            let is_refused = self.sockets.refused.binary_search(&mark).is_ok();
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
        let unsent = &mut self.sockets.shared[socket as usize].unsent;
        let gathered = std::mem::take(unsent);
        for one in &gathered {
            if let Gathered::Message(link) = one {
                self.shard.traffic_mut().held(*link);
                self.shard.shed_excess(*link, io.now());
            }
        }
        self.sockets.shared[socket as usize].unsent = gathered;
    }

    /// Sends what was gathered at each socket that has room, and reports the results.
    pub(super) fn send_all_gathered(&mut self, io: &mut Io) {
        while let Some(socket) = self.sockets.gathered.pop() {
            let key = self.sockets.shared[socket as usize].key;
            if key.is_some_and(|key| io.send_gathered(key) == Written::Whole) {
                let mut gathered = self.report_gathered(io, socket);
                gathered.clear();
                self.sockets.spare = gathered;
            }
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
        let is_kept = sent != Written::Whole && written != Written::Held;
        if is_kept { sent } else { written }
    })
}
