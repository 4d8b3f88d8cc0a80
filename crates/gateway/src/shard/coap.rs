//! Devices over CoAP: the sockets that hear them, and the peers that were heard.

mod bounds;
mod hearing;
mod peer;
mod peers;
mod queries;
mod querying;
mod replying;
mod securing;

use std::net::SocketAddr;
use std::sync::Arc;

use muster_model::Micros;
use muster_net::{Io, Key, Written};
use muster_protocol::coap::{Server, ServerCounts, ServerEvent, ServerSettings, Transmission};

use super::Shard;
use super::alarms::Alarm;
use crate::config::GatewayDtls;
use crate::vouched::Vouched;

pub(super) use peer::Peer;
pub(crate) use peers::PeerRef;
pub(crate) use queries::QueryRef;
pub(crate) use querying::{QUERIES_MAX, SPOKEN_FOR_MAX, Waiter};

use peers::{Gone, Met, Peers};
use queries::Queries;
use securing::Secure;

/// Bytes asked for as the receive buffer of a socket that hears all devices; the system may grant
/// fewer.
const RECEIVE_BUFFER: usize = 4 << 20;

/// What one thread knows of its devices over CoAP.
#[derive(Debug)]
pub(super) struct Coap {
    sockets: Vec<Socket>,
    peers: Peers,
    queries: Queries,
    settings: Arc<ServerSettings>,
    /// What DTLS needs, if there is a socket of it.
    secure: Option<Box<Secure>>,
    /// The datagram that is being written.
    out: Vec<u8>,
}

/// One socket that hears devices.
#[derive(Debug)]
struct Socket {
    key: Key,
    is_secure: bool,
    /// Why it is not read, as bits of [`super::Pause`].
    pauses: u8,
}

impl Coap {
    pub(super) fn new(transmission: Transmission, max_payload: u32) -> Self {
        Self {
            sockets: Vec::new(),
            peers: Peers::new(),
            queries: Queries::new(),
            settings: Arc::new(bounds::of_a_peer(transmission, max_payload)),
            secure: None,
            out: Vec::new(),
        }
    }

    fn socket(&mut self, key: Key) -> Option<&mut Socket> {
        self.sockets.iter_mut().find(|socket| socket.key == key)
    }
}

/// Whether a datagram will be sent. What finds no room is lost, as on a network.
fn is_sent(written: Written) -> bool {
    match written {
        Written::Whole | Written::Held => true,
        Written::Busy | Written::Exhausted | Written::Refused | Written::Lost => false,
    }
}

impl Shard {
    /// Hears devices by a socket from now on.
    pub(crate) fn hear_coap(&mut self, io: &mut Io, key: Key) {
        self.add_socket(io, key, false);
    }

    /// The same over DTLS; false if the system gives no randomness.
    pub(crate) fn hear_coaps(
        &mut self,
        io: &mut Io,
        key: Key,
        dtls: &GatewayDtls,
        vouched: Option<Arc<Vouched>>,
    ) -> bool {
        let secure = Secure::new(&self.shared, dtls, vouched);
        self.coap.secure = secure.map(Box::new);
        self.add_socket(io, key, true);
        self.coap.secure.is_some()
    }

    fn add_socket(&mut self, io: &mut Io, key: Key, is_secure: bool) {
        io.set_receive_buffer(key, RECEIVE_BUFFER);
        self.coap.sockets.push(Socket {
            key,
            is_secure,
            pauses: 0,
        });
    }

    pub(super) fn heard(&mut self, io: &mut Io, key: Key, from: SocketAddr, bytes: &mut [u8]) {
        let Some(socket) = self.coap.socket(key) else {
            return;
        };
        if socket.is_secure {
            return self.heard_secure(io, key, from, bytes);
        }
        let known = self.coap.peers.at(key, from);
        if let Some(peer) = known.or_else(|| self.meet(io, key, from)) {
            self.hear_message(io, peer, bytes);
        }
    }

    /// A new peer; none if there are too many.
    fn meet(&mut self, io: &mut Io, key: Key, from: SocketAddr) -> Option<PeerRef> {
        let peer = self.new_peer(key, from);
        let met = self.coap.peers.insert(io.now(), peer);
        self.greeted(io, met)
    }

    fn new_peer(&self, key: Key, from: SocketAddr) -> Peer {
        let seed = self.shared.config.seed ^ u64::from(self.index) << 32;
        Peer::new(key, from, Arc::clone(&self.coap.settings), seed)
    }

    fn greeted(&mut self, io: &mut Io, met: Option<Met>) -> Option<PeerRef> {
        let Some((met, gone)) = met else {
            self.counts().peers_refused.more();
            return None;
        };
        self.counts().peers.more();
        if let Some(gone) = gone {
            self.part_with(io, gone);
        }
        Some(met)
    }

    /// Forgets a peer.
    fn forget_peer(&mut self, io: &mut Io, peer: PeerRef) {
        if let Some(gone) = self.coap.peers.remove(peer) {
            self.part_with(io, (peer, gone));
        }
    }

    fn part_with(&mut self, io: &mut Io, (peer, gone): Gone) {
        self.end_queries(io, peer);
        self.cancel_alarm(io, gone.alarm.map(|(_, alarm)| alarm));
        self.deliver_overtaken(io, gone.overtaken);
    }

    /// The peers whose sessions can be closed.
    pub(super) fn sessions_of_peers(&self) -> Vec<PeerRef> {
        self.coap.peers.guarded().collect()
    }

    pub(super) fn peer(&mut self, peer: PeerRef) -> Option<&mut Peer> {
        self.coap.peers.get_mut(peer)
    }

    pub(super) fn socket_of(&mut self, peer: PeerRef) -> Option<Key> {
        self.peer(peer).map(|peer| peer.socket)
    }

    /// Stops reading a socket of devices: what comes waits in its receive buffer, and beyond that is
    /// lost.
    pub(super) fn pause_socket(&mut self, io: &mut Io, key: Key, why: u8) {
        if let Some(socket) = self.coap.socket(key) {
            socket.pauses |= why;
            io.pause_reading(key);
        }
    }

    pub(super) fn resume_socket(&mut self, io: &mut Io, key: Key, why: u8) {
        if let Some(socket) = self.coap.socket(key) {
            socket.pauses &= !why;
            if socket.pauses == 0 {
                io.resume_reading(key);
            }
        }
    }

    /// What the kernel did with datagrams, for the account.
    pub(super) fn count_datagrams(&mut self, io: &mut Io, is_last: bool) {
        if self.coap.sockets.is_empty() {
            return;
        }
        if is_last {
            let sockets = self.coap.sockets.iter();
            sockets.for_each(|socket| io.count_drops(socket.key));
        }
        let counts = io.counts();
        self.counts()
            .datagrams_dropped
            .set(counts.datagrams_dropped);
        self.counts().unreachable.set(counts.icmp_errors);
    }

    /// Something is due of a peer.
    pub(super) fn wake_peer(&mut self, io: &mut Io, peer: PeerRef) {
        if let Some(peer) = self.peer(peer) {
            peer.alarm = None;
        }
        while self.drive(io, peer, |session, now, out| session.wake(now, out)) {}
        self.expire_session(io, peer);
        self.look_after(io, peer);
    }

    /// Has the session of a peer do one thing; whether it told of something.
    fn drive<'d>(
        &mut self,
        io: &mut Io,
        of: PeerRef,
        act: impl FnOnce(&mut Server, Micros, &mut Vec<u8>) -> Option<ServerEvent<'d>>,
    ) -> bool {
        let now = io.now();
        let mut out = std::mem::take(&mut self.coap.out);
        out.clear();
        let done = self.peer(of).map(|peer| {
            let before = *peer.coap.counts();
            let event = act(&mut peer.coap, now, &mut out);
            (event, before, *peer.coap.counts())
        });
        self.send_datagram(io, of, &out);
        self.coap.out = out;
        let Some((event, before, after)) = done else {
            return false;
        };
        self.note(&before, &after);
        if let Some(event) = &event {
            self.told(io, of, event);
        }
        event.is_some()
    }

    /// Weighs what a peer keeps, and sets its alarm for what is due next.
    fn look_after(&mut self, io: &mut Io, of: PeerRef) {
        if let Some((before, after)) = self.coap.peers.weigh(of) {
            self.note(&before, &after);
        }
        let Some(peer) = self.peer(of) else { return };
        let guard = peer.guard.as_ref().and_then(|guard| guard.dtls.deadline());
        let Some(deadline) = peer.coap.deadline().into_iter().chain(guard).min() else {
            return;
        };
        let earlier = peer.alarm.filter(|(at, _)| *at > deadline);
        if peer.alarm.is_some() && earlier.is_none() {
            return;
        }
        self.cancel_alarm(io, earlier.map(|(_, alarm)| alarm));
        let alarm = self.set_alarm(io, deadline, Alarm::Peer(of));
        if let Some(peer) = self.peer(of) {
            peer.alarm = Some((deadline, alarm));
        }
    }

    /// Writes into the account what a session counted since.
    fn note(&self, before: &ServerCounts, after: &ServerCounts) {
        if before == after {
            return;
        }
        let counts = self.counts();
        for (count, before, after) in [
            (&counts.received_again, before.duplicates, after.duplicates),
            (
                &counts.unrepeatable,
                before.unrepeatable,
                after.unrepeatable,
            ),
            (&counts.malformed, before.malformed, after.malformed),
            (&counts.stray, before.stray, after.stray),
            (&counts.refused_requests, before.rejected, after.rejected),
            (&counts.requests_forgotten, before.evicted, after.evicted),
            (
                &counts.bodies_given_up,
                before.bodies_given_up,
                after.bodies_given_up,
            ),
            (
                &counts.retransmitted,
                before.retransmitted,
                after.retransmitted,
            ),
            (
                &counts.separate_given_up,
                before.copies_given_up,
                after.copies_given_up,
            ),
        ] {
            count.add(u64::from(after.wrapping_sub(before)));
        }
    }
}

#[cfg(test)]
mod tests;
