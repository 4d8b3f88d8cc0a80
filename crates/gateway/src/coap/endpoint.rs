//! The sockets of CoAP, and the peers that sent to them.

mod securing;

use std::net::SocketAddr;
use std::sync::Arc;

use muster_model::Micros;
use muster_net::{Key, Written};
use muster_platform::Protocol;
use muster_protocol::coap::{Pending, Reply, Server, ServerCounts, ServerEvent, ServerSettings};

use super::bounds;
use super::guard::Secure;
use super::peers::{Met, Peer, Peers};
use super::request::{PeerRef, RequestRef};
use super::sender;
use crate::account::Count;
use crate::config::GatewayConfig;
use crate::end::Datagram;
use crate::thread::Ctx;
use crate::uplink::{Alarm, Sender, Timer};

/// Bytes asked for as the receive buffer of a socket, which all devices share; the system may grant
/// fewer.
const RECEIVE_BUFFER: usize = 4 << 20;

#[derive(Debug)]
pub(super) struct Endpoint {
    /// With whether they speak DTLS.
    sockets: Vec<(Key, bool)>,
    peers: Peers,
    settings: Arc<ServerSettings>,
    /// State for DTLS, if there is a socket of it.
    secure: Option<Box<Secure>>,
    /// Peers that were forgotten lately.
    gone: Vec<Sender>,
    out: Vec<u8>,
}

/// Returns whether a datagram will be sent. One without room is lost, as on a network.
fn is_sent(written: Written) -> bool {
    match written {
        Written::Whole | Written::Held => true,
        Written::Busy | Written::Exhausted | Written::Refused | Written::Lost => false,
    }
}

impl Endpoint {
    pub(super) fn new(config: &GatewayConfig) -> Self {
        let max_payload = config.max_payload(Protocol::Coap).unwrap_or(u32::MAX);
        let settings = bounds::of_a_peer(config.transmission, max_payload);
        Self {
            sockets: Vec::new(),
            peers: Peers::new(),
            settings: Arc::new(settings),
            secure: None,
            gone: Vec::new(),
            out: Vec::new(),
        }
    }

    /// Takes datagrams of a socket from now on: those of DTLS, if there is state for it.
    pub(super) fn add_socket(&mut self, ctx: &mut Ctx<'_>, key: Key, secure: Option<Secure>) {
        ctx.add_socket(key, Protocol::Coap);
        ctx.io.set_receive_buffer(key, RECEIVE_BUFFER);
        self.sockets.push((key, secure.is_some()));
        self.secure = secure.map(Box::new).or(self.secure.take());
    }

    /// Counts what the kernel did with datagrams, for the account.
    pub(super) fn count_datagrams(&self, ctx: &mut Ctx<'_>, is_last: bool) {
        if self.sockets.is_empty() {
            return;
        }
        if is_last {
            let sockets = self.sockets.iter();
            sockets.for_each(|(socket, _)| ctx.io.count_drops(*socket));
        }
        let counts = ctx.io.counts();
        let account = ctx.counts();
        account.datagrams_dropped.set(counts.datagrams_dropped);
        account.unreachable.set(counts.icmp_errors);
    }

    pub(super) fn is_secure(&self, socket: Key) -> bool {
        self.sockets.contains(&(socket, true))
    }

    /// The peer that sent a datagram; none if nobody takes it.
    pub(super) fn sender(&mut self, ctx: &mut Ctx<'_>, datagram: &Datagram<'_>) -> Option<PeerRef> {
        let Datagram { socket, from, .. } = *datagram;
        if self.is_secure(socket) {
            return self.secure_sender(ctx, datagram);
        }
        let known = self.peers.at(socket, from);
        known.or_else(|| {
            let peer = self.new_peer(ctx, socket, from);
            let met = self.peers.insert(ctx.now(), peer);
            self.admitted(ctx, met)
        })
    }

    fn new_peer(&self, ctx: &Ctx<'_>, key: Key, from: SocketAddr) -> Peer {
        let seed = ctx.shared.config.seed ^ u64::from(ctx.index()) << 32;
        Peer::new(key, from, Arc::clone(&self.settings), seed)
    }

    fn admitted(&mut self, ctx: &mut Ctx<'_>, met: Option<Met>) -> Option<PeerRef> {
        let Some((met, gone)) = met else {
            ctx.counts().peers_refused.more();
            return None;
        };
        ctx.counts().peers.more();
        if let Some((peer, gone)) = gone {
            self.discard(ctx, peer, &gone);
        }
        Some(met)
    }

    fn forget_peer(&mut self, ctx: &mut Ctx<'_>, peer: PeerRef) {
        if let Some(gone) = self.peers.remove(peer) {
            self.discard(ctx, peer, &gone);
        }
    }

    fn discard(&mut self, ctx: &mut Ctx<'_>, peer: PeerRef, gone: &Peer) {
        ctx.cancel_alarm(gone.alarm.map(|(_, alarm)| alarm));
        let sender = sender(gone.socket, peer);
        ctx.note_gone(sender);
        self.gone.push(sender);
    }

    pub(super) fn take_gone(&mut self) -> Vec<Sender> {
        std::mem::take(&mut self.gone)
    }

    /// The peers whose sessions can be closed.
    pub(super) fn sessions(&self) -> Vec<PeerRef> {
        self.peers.guarded().collect()
    }

    pub(super) fn peer(&mut self, peer: PeerRef) -> Option<&mut Peer> {
        self.peers.get_mut(peer)
    }

    fn place(&mut self, of: PeerRef) -> Option<(Key, SocketAddr)> {
        self.peer(of).map(|peer| (peer.socket, peer.address))
    }

    /// Has the session of a peer write a datagram, which is sent as often as `copies` says; none if the
    /// peer is gone.
    fn write<T>(
        &mut self,
        ctx: &mut Ctx<'_>,
        to: PeerRef,
        copies: u8,
        act: impl FnOnce(&mut Server, Micros, &mut Vec<u8>) -> T,
    ) -> Option<T> {
        let now = ctx.now();
        let mut out = std::mem::take(&mut self.out);
        out.clear();
        let peer = self.peer(to);
        let done = peer.map(|peer| act(&mut peer.coap, now, &mut out));
        for _ in 0..copies {
            self.send_datagram(ctx, to, &out);
        }
        self.out = out;
        done
    }

    /// Has the session of a peer take a step; gives its event.
    pub(super) fn drive<'d>(
        &mut self,
        ctx: &mut Ctx<'_>,
        of: PeerRef,
        act: impl FnOnce(&mut Server, Micros, &mut Vec<u8>) -> Option<ServerEvent<'d>>,
    ) -> Option<ServerEvent<'d>> {
        let (event, before, after) = self.write(ctx, of, 1, |session, now, out| {
            let before = *session.counts();
            let event = act(session, now, out);
            (event, before, *session.counts())
        })?;
        note(ctx, &before, &after);
        event
    }

    /// Weighs what a peer keeps, and sets its alarm for what is due next.
    pub(super) fn look_after(&mut self, ctx: &mut Ctx<'_>, of: PeerRef) {
        if let Some((before, after)) = self.peers.weigh(of) {
            note(ctx, &before, &after);
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
        ctx.cancel_alarm(earlier.map(|(_, alarm)| alarm));
        peer.alarm = Some((
            deadline,
            ctx.set_alarm(deadline, Alarm::End(Protocol::Coap, Timer::Peer(of))),
        ));
    }

    /// Announces that the answer comes separately; none if the peer is gone.
    pub(super) fn separate(&mut self, ctx: &mut Ctx<'_>, to: RequestRef) -> Option<Pending> {
        let pending = self.write(ctx, to.peer, 1, |session, _, out| {
            session.acknowledge(to.pending, out)
        });
        if pending.is_none() {
            ctx.counts().unanswerable.more();
        }
        pending
    }

    /// Answers, with the same datagram as often as `copies` says. False if the peer is gone, or owes too many acknowledgements for one more answer.
    pub(super) fn respond(
        &mut self,
        ctx: &mut Ctx<'_>,
        to: RequestRef,
        reply: &Reply<'_>,
        copies: u8,
    ) -> bool {
        let written = self.write(ctx, to.peer, copies, |session, now, out| {
            session.respond(now, to.pending, reply, out)
        });
        if !matches!(written, Some(Ok(()))) {
            ctx.counts().unanswerable.more();
            return false;
        }
        if to.pending.is_separate() {
            ctx.counts().separate.more();
        }
        self.look_after(ctx, to.peer);
        true
    }

    /// Sends a message, if there is one, in a record where the peer has a session.
    fn send_datagram(&mut self, ctx: &mut Ctx<'_>, to: PeerRef, datagram: &[u8]) {
        let Some(peer) = self.peers.get_mut(to) else {
            return;
        };
        if datagram.is_empty() {
            return;
        }
        let (socket, address) = (peer.socket, peer.address);
        let record = match (&mut peer.guard, &mut self.secure) {
            (None, _) => Some(datagram),
            (Some(guard), Some(secure)) => secure.seal(guard, datagram),
            (Some(_), None) => None,
        };
        let sent = record.map(|record| ctx.io.send_to(socket, address, record));
        if !sent.is_some_and(is_sent) {
            ctx.counts().unsent.more();
        }
    }
}

/// Writes into the account what a session counted since.
pub(super) fn note(ctx: &Ctx<'_>, before: &ServerCounts, after: &ServerCounts) {
    if before == after {
        return;
    }
    let counts = ctx.counts();
    let added: [(&Count, u32, u32); 9] = [
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
    ];
    for (count, before, after) in added {
        count.add(u64::from(after.wrapping_sub(before)));
    }
}

#[cfg(test)]
impl Endpoint {
    pub(super) fn set_bounds(&mut self, settings: ServerSettings) {
        self.settings = Arc::new(settings);
    }

    pub(super) fn forget_at(&mut self, ctx: &mut Ctx<'_>, socket: Key, from: SocketAddr) {
        let peer = self.peers.at(socket, from).expect("it is there");
        self.forget_peer(ctx, peer);
    }
}
