//! The UDP sockets of a loop.

use std::mem;

use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use rustix::net::{SendFlags, sockopt};

use crate::slab::{Flags, Slot};
use crate::sockets::Sockets;
use crate::udp::{self, BATCH_MAX, Datagram, Inbox, UNMARKED};
use crate::{Key, Written, socket};

/// Gathered bytes of one socket from which on they are sent at once: some full batches.
const GATHERED_MAX: usize = 64 * 1024;
/// Bytes that may wait while the kernel has no room, in addition to one more datagram.
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

/// Result of one read.
pub(crate) enum Read {
    /// This many datagrams.
    Came(usize),
    /// Nothing is left.
    Empty,
    /// An error that an earlier datagram brought.
    Error,
}

/// State of a loop's UDP sockets outside their slots.
#[derive(Debug, Default)]
pub(crate) struct Datagrams {
    /// Sockets with datagrams to send at the end of the turn.
    gathering: Vec<Key>,
    /// Marks of gathered datagrams that the kernel refused, until they are asked for.
    refused: Vec<(Key, u32)>,
    icmp_error: Option<Errno>,
    refusal: Option<Errno>,
}

impl Datagrams {
    /// True if datagrams wait for the end of the turn.
    pub(crate) fn are_gathered(&self) -> bool {
        !self.gathering.is_empty()
    }

    pub(crate) fn forget(&mut self, key: Key) {
        self.refused.retain(|(of, _)| *of != key);
    }

    pub(crate) fn take_refused(&mut self, key: Key, marks: &mut Vec<u32>) {
        marks.clear();
        marks.extend(
            self.refused
                .extract_if(.., |(of, _)| *of == key)
                .map(|(_, mark)| mark),
        );
    }

    pub(crate) fn refusal(&self) -> Option<Errno> {
        self.refusal
    }

    pub(crate) fn icmp_error(&self) -> Option<Errno> {
        self.icmp_error
    }

    fn note_icmp_error(&mut self, sockets: &mut Sockets, why: Errno) {
        sockets.counts.icmp_errors += 1;
        self.icmp_error = Some(why);
    }

    /// Counts the errors that wait at a socket.
    pub(crate) fn take_errors(&mut self, sockets: &mut Sockets, key: Key) {
        let Some(slot) = sockets.get(key) else { return };
        let Some(fd) = slot.fd() else { return };
        if slot.flags.has(Flags::UNCONNECTED) {
            sockets.counts.icmp_errors += socket::drain_errors(fd);
        } else if let Ok(Err(pending)) = sockopt::socket_error(fd) {
            self.note_icmp_error(sockets, pending);
        }
    }

    /// Sends one datagram with one call.
    pub(crate) fn write(&mut self, sockets: &mut Sockets, key: Key, bytes: &[u8]) -> Written {
        if self.send_gathered(sockets, key) != Written::Whole {
            return Written::Busy;
        }
        let sent = self.try_send(sockets, key, |fd| {
            rustix::net::send(fd, bytes, SendFlags::NOSIGNAL).map(|_| 1)
        });
        let datagram = Datagram {
            to: None,
            mark: 0,
            bytes,
        };
        match sent {
            Sent::Taken(_) => {
                sockets.counts.datagrams_out += 1;
                sockets.counts.bytes_out += bytes.len() as u64;
                Written::Whole
            }
            Sent::Refused => {
                sockets.counts.datagrams_refused += 1;
                Written::Refused
            }
            Sent::NoRoom if self.append(sockets, key, datagram) => {
                wait_for_room(sockets, key);
                Written::Held
            }
            Sent::NoRoom => Written::Exhausted,
        }
    }

    /// Takes a datagram, to send it at the latest at the end of the turn.
    pub(crate) fn gather(
        &mut self,
        sockets: &mut Sockets,
        key: Key,
        datagram: Datagram<'_>,
    ) -> Written {
        let Some(Slot { flags, .. }) = sockets.get(key) else {
            return Written::Lost;
        };
        let fits = flags.has(Flags::DATAGRAM)
            && flags.has(Flags::UNCONNECTED) == datagram.to.is_some()
            && !flags.has(Flags::ENDED);
        if !fits {
            return Written::Lost;
        }
        if flags.has(Flags::CONNECTING) {
            return Written::Busy;
        }
        let is_blocked = flags.has(Flags::BLOCKED);
        let waiting = sockets.waiting(key);
        if is_blocked && waiting > WAITING_MAX {
            return Written::Busy;
        }
        if !self.append(sockets, key, datagram) {
            return Written::Exhausted;
        }
        if !is_blocked && waiting + datagram.bytes.len() > GATHERED_MAX {
            self.send_waiting(sockets, key);
        }
        Written::Whole
    }

    /// Puts a datagram behind those that wait; false if no buffer is left.
    fn append(&mut self, sockets: &mut Sockets, key: Key, datagram: Datagram<'_>) -> bool {
        let Some(buffer) = sockets.held(key) else {
            return false;
        };
        if buffer.is_empty() {
            self.gathering.push(key);
        }
        udp::push(buffer, datagram);
        true
    }

    /// Sends what was gathered for a socket: `Held` if some of it waits for room.
    pub(crate) fn send_gathered(&mut self, sockets: &mut Sockets, key: Key) -> Written {
        match sockets.get(key).map(|slot| slot.flags) {
            Some(flags) if !flags.has(Flags::DATAGRAM) => Written::Lost,
            Some(flags) if flags.has(Flags::BLOCKED) => Written::Held,
            Some(_) if self.send_waiting(sockets, key) => Written::Whole,
            Some(_) => Written::Held,
            None => Written::Lost,
        }
    }

    /// Sends what was gathered in a turn.
    pub(crate) fn send_all(&mut self, sockets: &mut Sockets) {
        let mut keys = mem::take(&mut self.gathering);
        for key in keys.drain(..) {
            let _ = self.send_gathered(sockets, key);
        }
        self.gathering = keys;
    }

    /// Sends what waits on a socket until the kernel has no more room; true when nothing is left.
    pub(crate) fn send_waiting(&mut self, sockets: &mut Sockets, key: Key) -> bool {
        let Some((waiting, mut at)) = sockets.take_held(key) else {
            return true;
        };
        while at < waiting.len() {
            match self.send_batch(sockets, key, &waiting[at..]) {
                0 => break,
                passed => at += passed,
            }
        }
        sockets.put_held(key, waiting, at)
    }

    /// Sends a batch of what waits, and returns the bytes that wait no more.
    fn send_batch(&mut self, sockets: &mut Sockets, key: Key, waiting: &[u8]) -> usize {
        let batch = || udp::entries(waiting).take(BATCH_MAX);
        let sent = self.try_send(sockets, key, |fd| udp::send_many(fd, batch()));
        let done = match sent {
            Sent::Taken(count) => {
                let payload = batch().take(count).map(|datagram| datagram.bytes.len());
                sockets.counts.datagrams_out += count as u64;
                sockets.counts.bytes_out += payload.sum::<usize>() as u64;
                count
            }
            Sent::Refused => {
                sockets.counts.datagrams_refused += 1;
                let mark = batch().next().map(|datagram| datagram.mark);
                let mark = mark.filter(|mark| *mark != UNMARKED);
                self.refused.extend(mark.map(|mark| (key, mark)));
                1
            }
            Sent::NoRoom => {
                wait_for_room(sockets, key);
                0
            }
        };
        batch().take(done).map(|datagram| datagram.size()).sum()
    }

    /// Sends with one call, or two: an error that an earlier datagram brought fails one call.
    fn try_send(
        &mut self,
        sockets: &mut Sockets,
        key: Key,
        send: impl Fn(BorrowedFd<'_>) -> Result<usize, Errno>,
    ) -> Sent {
        let mut failure = None;
        for _ in 0..2 {
            let Some(slot) = sockets.get(key) else { break };
            let Some(fd) = slot.fd() else { break };
            let has_peer = !slot.flags.has(Flags::UNCONNECTED);
            let sent = send(fd);
            sockets.counts.writes += 1;
            match sent {
                Ok(count) => {
                    if let Some(why) = failure {
                        self.note_icmp_error(sockets, why);
                    }
                    return Sent::Taken(count);
                }
                Err(Errno::AGAIN) => return Sent::NoRoom,
                Err(why) if has_peer => failure = Some(why),
                Err(_) => self.take_errors(sockets, key),
            }
        }
        self.refusal = failure.or(self.refusal);
        Sent::Refused
    }

    /// The kernel reports room: sends what waits; true if nothing is left.
    pub(crate) fn has_room(&mut self, sockets: &mut Sockets, key: Key) -> bool {
        if let Some(slot) = sockets.get_mut(key) {
            slot.flags.remove(Flags::BLOCKED);
        }
        let is_done = self.send_waiting(sockets, key);
        if is_done {
            sockets.watch_room(key, false);
        }
        is_done
    }

    /// Reads up to `most` datagrams with one call.
    pub(crate) fn receive(
        &mut self,
        sockets: &mut Sockets,
        key: Key,
        inbox: &mut Inbox,
        most: usize,
    ) -> Read {
        let Some(slot) = sockets.get(key) else {
            return Read::Empty;
        };
        let Some(fd) = slot.fd() else {
            return Read::Empty;
        };
        let has_peer = !slot.flags.has(Flags::UNCONNECTED);
        let received = inbox.receive(fd, most, !has_peer);
        sockets.counts.reads += 1;
        match received {
            Ok(count) => {
                sockets.counts.datagrams_in += count as u64;
                sockets.counts.bytes_in += inbox.bytes(count);
                if let Some(dropped) = inbox.dropped(count) {
                    sockets.note_dropped(key, dropped);
                }
                Read::Came(count)
            }
            Err(Errno::AGAIN) => Read::Empty,
            Err(why) if has_peer => {
                self.note_icmp_error(sockets, why);
                Read::Error
            }
            Err(_) => {
                self.take_errors(sockets, key);
                Read::Error
            }
        }
    }
}

/// The kernel has no room: it is asked to report when there is some.
fn wait_for_room(sockets: &mut Sockets, key: Key) {
    sockets.counts.held += 1;
    if let Some(slot) = sockets.get_mut(key) {
        slot.flags.add(Flags::BLOCKED);
    }
    sockets.watch_room(key, true);
}
