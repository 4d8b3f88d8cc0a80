//! UDP sockets of a loop, as its handler uses them.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{SendFlags, sockopt};

use super::Io;
use crate::pool::BufferId;
use crate::slab::Flags;
use crate::udp::{self, BATCH_MAX, UNMARKED};
use crate::{ConnectError, Key, ListenError, PortUse, Written};

/// Gathered bytes of one socket from which on they are sent at once: some full batches.
const GATHERED_MAX: usize = 64 * 1024;
/// Bytes that may wait while the kernel has no room, beside one more datagram.
const WAITING_MAX: usize = 256 * 1024;

/// The kernel's result for one datagram, or the first of several.
enum Sent {
    /// This many were taken.
    Taken(usize),
    /// No room for it now.
    NoRoom,
    /// Never sent: no route, a firewall, or too long.
    Refused,
}

/// State of a loop's UDP sockets outside their slots.
#[derive(Debug, Default)]
pub(crate) struct Datagrams {
    /// Sockets with datagrams to send at the end of the turn.
    pub(crate) gathering: Vec<Key>,
    /// Drops that were counted, by slab index; sockets without drops are absent.
    dropped: BTreeMap<u32, u32>,
    /// Marks of gathered datagrams that the kernel refused, until they are asked for.
    refused: Vec<(Key, u32)>,
    icmp_error: Option<Errno>,
    refusal: Option<Errno>,
}

impl Datagrams {
    pub(super) fn forget(&mut self, key: Key) {
        self.dropped.remove(&key.index);
        self.refused.retain(|(of, _)| *of != key);
    }
}

impl Io {
    /// Makes a UDP socket that speaks to one peer and hears nobody else, from a port of `source` if
    /// given; [`crate::Handler::opened`] follows in the next turn. A port belongs to one socket of
    /// its source address, whatever the peer ([`crate::limits::ephemeral_ports`]).
    ///
    /// [`Io::write`] sends one datagram by one call, as devices do that have a socket of their own;
    /// [`Io::gather`] is for a socket that many devices share.
    ///
    /// Errors that ICMP brings do not end it: they are counted ([`crate::IoCounts::icmp_errors`]),
    /// several between two calls as one, and what is sent later goes out.
    ///
    /// # Errors
    /// [`ConnectError`]: nothing was begun and no callback follows.
    pub fn connect_udp(
        &mut self,
        to: SocketAddr,
        source: Option<IpAddr>,
    ) -> Result<Key, ConnectError> {
        if self.slab.is_full() {
            return Err(ConnectError::Descriptors);
        }
        let fd = udp::connect(to, source)?;
        self.open_datagrams(fd)
            .map_err(|errno| ConnectError::Kernel(to, errno.raw_os_error()))
    }

    /// Takes a socket of datagrams with one peer that was made elsewhere, such as an end of a pair of
    /// local ones, which lack room as UDP over loopback never does; as [`Io::connect_udp`] else.
    ///
    /// # Errors
    /// The kernel's reason, also if there is no place for it: nothing follows.
    pub fn adopt_datagrams(&mut self, fd: OwnedFd) -> std::io::Result<Key> {
        if self.slab.is_full() {
            return Err(Errno::MFILE.into());
        }
        Ok(self.open_datagrams(fd)?)
    }

    fn open_datagrams(&mut self, fd: OwnedFd) -> Result<Key, Errno> {
        let key = self.watch(fd, Flags::CONNECTING.and(Flags::DATAGRAM))?;
        self.counts.opened += 1;
        self.enqueue(key);
        Ok(key)
    }

    /// Makes a UDP socket that hears everybody ([`crate::Handler::datagram`]) and speaks to anybody
    /// ([`Io::send_to`]), and gives the address it got (port 0 is a free port). Errors that ICMP
    /// brings are counted one by one. No callback follows.
    ///
    /// Several loops may share a port as with [`Io::listen`]: the kernel then gives each peer's
    /// datagrams to one of them, by the addresses of both ends.
    ///
    /// # Errors
    /// [`ListenError`] with the kernel's reason.
    pub fn bind_udp(
        &mut self,
        at: SocketAddr,
        port: PortUse,
    ) -> Result<(Key, SocketAddr), ListenError> {
        let failed = |errno: Errno| ListenError {
            addr: at,
            errno: errno.raw_os_error(),
        };
        if self.slab.is_full() {
            return Err(failed(Errno::MFILE));
        }
        let (fd, bound) = udp::bind(at, port)?;
        let key = self.watch(fd, Flags::DATAGRAM.and(Flags::UNCONNECTED));
        Ok((key.map_err(failed)?, bound))
    }

    /// Sends a datagram from a socket of [`Io::bind_udp`] at the latest at the end of this turn,
    /// several with one call: see [`Io::gather`].
    pub fn send_to(&mut self, key: Key, to: SocketAddr, bytes: &[u8]) -> Written {
        self.gather_for(key, (Some(to), UNMARKED), bytes)
    }

    /// Sends a datagram from a socket of [`Io::connect_udp`] at the latest at the end of this turn,
    /// several with one call (`sendmmsg`); [`Io::send_gathered`] sends it at once.
    ///
    /// [`Written::Whole`] says that it was taken here. While the kernel has no room up to 256 KiB
    /// wait; beyond them nothing is taken and the answer is [`Written::Busy`]:
    /// [`crate::Handler::flushed`] follows once all are out. A datagram that the kernel refuses is
    /// counted ([`crate::IoCounts::datagrams_refused`]) and lost, as one that a network drops.
    pub fn gather(&mut self, key: Key, bytes: &[u8]) -> Written {
        self.gather_for(key, (None, UNMARKED), bytes)
    }

    /// [`Io::gather`] with a mark by which [`Io::take_refused`] names the datagram, if the kernel
    /// refuses it.
    pub fn gather_marked(&mut self, key: Key, mark: u32, bytes: &[u8]) -> Written {
        self.gather_for(key, (None, mark), bytes)
    }

    /// The marks of a socket's datagrams that were gathered or held and that the kernel refused since
    /// the last call: put into `marks`, which is emptied first, in the order in which they were
    /// gathered. What [`Io::write`] left [`Written::Held`] has the mark 0.
    pub fn take_refused(&mut self, key: Key, marks: &mut Vec<u32>) {
        marks.clear();
        self.datagrams.refused.retain(|(of, mark)| {
            let is_its = *of == key;
            if is_its {
                marks.push(*mark);
            }
            !is_its
        });
    }

    /// Returns why the kernel refused a datagram last, if it refused one.
    pub fn refusal(&self) -> Option<std::io::Error> {
        self.datagrams.refusal.map(Into::into)
    }

    /// Returns the last ICMP error on a socket with one peer, if there was one.
    pub fn icmp_error(&self) -> Option<std::io::Error> {
        self.datagrams.icmp_error.map(Into::into)
    }

    pub(crate) fn note_icmp_error(&mut self, why: Errno) {
        self.counts.icmp_errors += 1;
        self.datagrams.icmp_error = Some(why);
    }

    /// Sends what was gathered for a socket: `Whole` if the kernel has all of it, so that the
    /// instant after is that of each; `Held` if some wait for room and `flushed` follows, whose
    /// instant is then the upper bound of all; `Lost` if there is no such socket.
    pub fn send_gathered(&mut self, key: Key) -> Written {
        let Some(slot) = self.slab.get(key) else {
            return Written::Lost;
        };
        if !slot.flags.has(Flags::DATAGRAM) {
            return Written::Lost;
        }
        if slot.flags.has(Flags::BLOCKED) || !self.send_waiting(key) {
            return Written::Held;
        }
        Written::Whole
    }

    /// Looks how many datagrams the socket dropped for want of room and counts those that are not
    /// counted yet ([`crate::IoCounts::datagrams_dropped`]). Each datagram tells of those dropped
    /// before it, and the end of a socket of all; so this is only for drops behind which none came.
    pub fn count_drops(&mut self, key: Key) {
        let slot = self.slab.get(key);
        let slot = slot.filter(|slot| slot.flags.has(Flags::DATAGRAM));
        let fd = slot.and_then(|slot| slot.fd.as_ref());
        if let Some(dropped) = fd.and_then(|fd| udp::dropped(fd.as_fd())) {
            self.note_dropped(key, dropped);
        }
    }

    /// Bytes of the socket's receive buffer, as it would be asked for by
    /// [`Io::set_receive_buffer`]; none for a connection that is gone.
    pub fn receive_buffer(&self, key: Key) -> Option<usize> {
        let fd = self.slab.get(key)?.fd.as_ref()?;
        // The kernel doubles what it is asked for (socket(7)).
        let doubled = sockopt::socket_recv_buffer_size(fd).ok()?;
        Some(doubled / 2)
    }

    /// A socket has dropped so many datagrams since it was made.
    pub(crate) fn note_dropped(&mut self, key: Key, dropped: u32) {
        if dropped == 0 {
            return;
        }
        let before = self.datagrams.dropped.insert(key.index, dropped);
        let before = before.unwrap_or(0);
        self.counts.datagrams_dropped += u64::from(dropped.wrapping_sub(before));
    }

    /// Counts the errors that wait at a socket: whether there were any.
    pub(crate) fn take_errors(&mut self, key: Key) -> bool {
        let Some(slot) = self.slab.get(key) else {
            return false;
        };
        let Some(fd) = &slot.fd else { return false };
        if slot.flags.has(Flags::UNCONNECTED) {
            let errors = udp::drain_errors(fd);
            self.counts.icmp_errors += errors;
            return errors > 0;
        }
        let Ok(Err(pending)) = sockopt::socket_error(fd) else {
            return false;
        };
        self.note_icmp_error(pending);
        true
    }

    /// Sends one datagram with one call.
    pub(super) fn write_datagram(&mut self, key: Key, bytes: &[u8]) -> Written {
        let slot = self.slab.get(key);
        let is_blocked = slot.is_some_and(|slot| slot.flags.has(Flags::BLOCKED));
        if is_blocked || !self.send_waiting(key) {
            return Written::Busy;
        }
        let sent = self.try_send(key, |fd| {
            rustix::net::send(fd, bytes, SendFlags::NOSIGNAL).map(|_| 1)
        });
        match sent {
            Sent::Taken(_) => {
                self.counts.datagrams_out += 1;
                self.counts.bytes_out += bytes.len() as u64;
                Written::Whole
            }
            Sent::Refused => {
                self.counts.datagrams_refused += 1;
                Written::Refused
            }
            Sent::NoRoom if self.append(key, (None, 0), bytes) => {
                self.counts.held += 1;
                self.wait_for_room(key);
                Written::Held
            }
            Sent::NoRoom => Written::Exhausted,
        }
    }

    /// Takes a datagram to where it goes, if its socket has no peer, with its mark.
    fn gather_for(&mut self, key: Key, to: (Option<SocketAddr>, u32), bytes: &[u8]) -> Written {
        let Some(slot) = self.slab.get(key) else {
            return Written::Lost;
        };
        let fits = slot.flags.has(Flags::DATAGRAM)
            && slot.flags.has(Flags::UNCONNECTED) == to.0.is_some()
            && !slot.flags.has(Flags::ENDED);
        if !fits {
            return Written::Lost;
        }
        if slot.flags.has(Flags::CONNECTING) {
            return Written::Busy;
        }
        let is_blocked = slot.flags.has(Flags::BLOCKED);
        let waiting = self.waiting(key);
        if is_blocked && waiting > WAITING_MAX {
            return Written::Busy;
        }
        if !self.append(key, to, bytes) {
            return Written::Exhausted;
        }
        if !is_blocked && waiting + bytes.len() > GATHERED_MAX {
            self.send_waiting(key);
        }
        Written::Whole
    }

    /// Bytes that wait on a socket.
    fn waiting(&mut self, key: Key) -> usize {
        let slot = self.slab.get(key).filter(|slot| slot.held.is_some());
        slot.map_or(0, |slot| {
            self.pool.get(slot.held).len() - slot.held_at as usize
        })
    }

    /// Puts a datagram behind those that wait; false if no buffer is left.
    fn append(&mut self, key: Key, (to, mark): (Option<SocketAddr>, u32), bytes: &[u8]) -> bool {
        let Some(slot) = self.slab.get_mut(key) else {
            return false;
        };
        if !slot.held.is_some() {
            let Some(buffer) = self.pool.take() else {
                self.counts.pool_exhausted += 1;
                return false;
            };
            slot.held = buffer;
            slot.held_at = 0;
            self.datagrams.gathering.push(key);
        }
        udp::push(self.pool.get(slot.held), to, mark, bytes);
        true
    }

    /// Sends what waits on a socket, as far as the kernel has room; true when nothing is left.
    pub(crate) fn send_waiting(&mut self, key: Key) -> bool {
        loop {
            let Some(slot) = self.slab.get(key).filter(|slot| slot.held.is_some()) else {
                return true;
            };
            let (buffer, at) = (slot.held, slot.held_at as usize);
            if at == self.pool.get(buffer).len() {
                self.let_go(key, buffer);
                return true;
            }
            if !self.send_batch(key, buffer, at) {
                return false;
            }
        }
    }

    /// Sends a batch of what waits; false if the kernel has no room.
    fn send_batch(&mut self, key: Key, buffer: BufferId, at: usize) -> bool {
        // Taken out meanwhile, since counting errors needs the rest.
        let bytes = std::mem::take(self.pool.get(buffer));
        let batch = || udp::entries(&bytes[at..]).take(BATCH_MAX);
        let sent = self.try_send(key, |fd| udp::send_many(fd.as_fd(), batch()));
        let done = match sent {
            Sent::Taken(count) => {
                let payload = batch().take(count).map(|datagram| datagram.bytes.len());
                self.counts.datagrams_out += count as u64;
                self.counts.bytes_out += payload.sum::<usize>() as u64;
                count
            }
            Sent::Refused => {
                self.counts.datagrams_refused += 1;
                let mark = batch().next().map(|datagram| datagram.mark);
                let mark = mark.filter(|mark| *mark != UNMARKED);
                self.datagrams.refused.extend(mark.map(|mark| (key, mark)));
                1
            }
            Sent::NoRoom => 0,
        };
        let sizes = batch().take(done).map(|datagram| datagram.size());
        let passed = sizes.sum::<usize>() as u32;
        *self.pool.get(buffer) = bytes;
        if let Some(slot) = self.slab.get_mut(key) {
            slot.held_at += passed;
        }
        if done == 0 {
            self.counts.held += 1;
            self.wait_for_room(key);
        }
        done > 0
    }

    /// Sends with one call, or two: an error that an earlier datagram brought stands in the way of
    /// this one once.
    fn try_send(&mut self, key: Key, send: impl Fn(&OwnedFd) -> Result<usize, Errno>) -> Sent {
        let mut in_the_way = None;
        for _ in 0..2 {
            let Some(slot) = self.slab.get(key) else {
                break;
            };
            let Some(fd) = &slot.fd else { break };
            self.counts.writes += 1;
            match send(fd) {
                Ok(count) => {
                    if let Some(why) = in_the_way {
                        self.note_icmp_error(why);
                    }
                    return Sent::Taken(count);
                }
                Err(Errno::AGAIN) => return Sent::NoRoom,
                Err(_) if slot.flags.has(Flags::UNCONNECTED) => {
                    self.counts.icmp_errors += udp::drain_errors(fd);
                }
                Err(why) => in_the_way = Some(why),
            }
        }
        self.datagrams.refusal = in_the_way.or(self.datagrams.refusal);
        Sent::Refused
    }

    /// The kernel has no room: it is asked to tell when there is some.
    fn wait_for_room(&mut self, key: Key) {
        if let Some(slot) = self.slab.get_mut(key) {
            slot.flags.add(Flags::BLOCKED);
        }
        self.watch_room(key, true);
    }

    /// Sends what waits for room; true if nothing is left.
    pub(crate) fn has_room(&mut self, key: Key) -> bool {
        if let Some(slot) = self.slab.get_mut(key) {
            slot.flags.remove(Flags::BLOCKED);
        }
        let is_done = self.send_waiting(key);
        if is_done {
            self.watch_room(key, false);
        }
        is_done
    }

    fn watch_room(&self, key: Key, wants_room: bool) {
        if let Some(fd) = self.slab.get(key).and_then(|slot| slot.fd.as_ref()) {
            // It is watched already, so that there is nothing to fail for want of memory.
            let _ = udp::watch_room(&self.epoll, fd, key.to_u64(), wants_room);
        }
    }

    fn let_go(&mut self, key: Key, buffer: BufferId) {
        self.pool.give_back(buffer);
        if let Some(slot) = self.slab.get_mut(key) {
            slot.held = BufferId::NONE;
            slot.held_at = 0;
        }
    }

    /// Sends what was gathered in a turn.
    pub(crate) fn send_all_gathered(&mut self) {
        let mut keys = std::mem::take(&mut self.datagrams.gathering);
        for key in keys.drain(..) {
            let slot = self.slab.get(key);
            if slot.is_some_and(|slot| !slot.flags.has(Flags::BLOCKED)) {
                self.send_waiting(key);
            }
        }
        self.datagrams.gathering = keys;
    }
}
