//! DTLS between the datagrams of peers and their messages.

use std::net::SocketAddr;
use std::sync::Arc;

use muster_net::Key;
use muster_protocol::dtls::{
    Connected, Content, Counts, Dtls, Event, Greeting, Incoming, Welcome, greet, is_client_hello,
    peek,
};
use muster_transport::{AwsLc, PeerIdentity};

use super::{Endpoint, is_sent};
use crate::client_certificates::device_of;
use crate::coap::guard::{Guard, Secure};
use crate::coap::request::PeerRef;
use crate::end::Datagram;
use crate::thread::Ctx;

/// The records of a datagram.
#[derive(Debug)]
pub(in crate::coap) struct Records<'a> {
    of: PeerRef,
    from: SocketAddr,
    input: Incoming<'a>,
    before: Counts,
}

impl Endpoint {
    fn guarded(&mut self, peer: PeerRef) -> Option<(&mut Secure, &mut Dtls<AwsLc>)> {
        let guard = self.peers.get_mut(peer)?.guard.as_mut()?;
        Some((self.secure.as_mut()?, &mut guard.dtls))
    }

    fn dtls_counts(&mut self, peer: PeerRef) -> Counts {
        self.guarded(peer)
            .map_or(Counts::default(), |(_, dtls)| dtls.counts())
    }

    /// The session that a datagram over DTLS belongs to.
    pub(super) fn secure_sender(
        &mut self,
        ctx: &mut Ctx<'_>,
        datagram: &Datagram<'_>,
    ) -> Option<PeerRef> {
        let (socket, from) = (datagram.socket, datagram.from);
        let Some(header) = peek(datagram.bytes, PeerRef::ID) else {
            ctx.counts().dtls_discarded.more();
            return None;
        };
        if header.content != Content::ConnectionId && is_client_hello(datagram.bytes) {
            return self.welcome(ctx, datagram);
        }
        let peer = if header.content == Content::ConnectionId {
            let named = PeerRef::from_id(header.connection_id);
            named.filter(|peer| self.place(*peer).is_some_and(|(known, _)| known == socket))
        } else {
            self.peers.guarded_at(socket, from)
        };
        if peer.is_none() {
            ctx.counts().dtls_discarded.more();
        }
        peer
    }

    /// Answers a ClientHello with a cookie, or finds or makes the session that it begins.
    fn welcome(&mut self, ctx: &mut Ctx<'_>, hello: &Datagram<'_>) -> Option<PeerRef> {
        let (socket, from) = (hello.socket, hello.from);
        let secure = self.secure.as_mut()?;
        let (context, out) = secure.parts();
        let name = from.to_string();
        match greet(&context, hello.bytes, name.as_bytes(), out) {
            Greeting::Ignored => {
                ctx.counts().dtls_discarded.more();
                None
            }
            Greeting::Answered => {
                ctx.counts().dtls_cookies.more();
                self.send_flight(ctx, socket, from);
                None
            }
            Greeting::Welcome(welcome) => {
                let begun = self.peers.opening_at(socket, from);
                match begun.filter(|begun| self.began_with(*begun, welcome.random())) {
                    Some(begun) => Some(begun),
                    None => self.begin(ctx, hello, welcome),
                }
            }
        }
    }

    fn began_with(&mut self, peer: PeerRef, random: &[u8; 32]) -> bool {
        let guard = self.peer(peer).and_then(|peer| peer.guard.as_ref());
        guard.is_some_and(|guard| guard.random == *random)
    }

    /// Makes a session. An open one at that address stays; one that had only begun is replaced.
    fn begin(
        &mut self,
        ctx: &mut Ctx<'_>,
        hello: &Datagram<'_>,
        welcome: Welcome,
    ) -> Option<PeerRef> {
        let (socket, from) = (hello.socket, hello.from);
        if let Some(begun) = self.peers.opening_at(socket, from) {
            self.forget_peer(ctx, begun);
        }
        let now = ctx.now();
        let peer = self.new_peer(ctx, socket, from);
        let secure = self.secure.as_mut()?;
        let gives_ids = secure.gives_ids;
        let (context, _) = secure.parts();
        let guard = |me: PeerRef| {
            let id = me.id();
            let id = gives_ids.then_some(&id[..]);
            Guard {
                dtls: Dtls::server(now, welcome, &context, id),
                random: *welcome.random(),
            }
        };
        let met = self.peers.insert_opening(now, peer, guard);
        self.admitted(ctx, met)
    }

    /// Opens a datagram of a session.
    pub(in crate::coap) fn records<'a>(
        &mut self,
        ctx: &Ctx<'_>,
        of: PeerRef,
        datagram: Datagram<'a>,
    ) -> Records<'a> {
        let Datagram { from, bytes, .. } = datagram;
        if let Some(peer) = self.peer(of) {
            peer.last_received = ctx.now();
        }
        Records {
            of,
            from,
            input: Incoming::new(bytes),
            before: self.dtls_counts(of),
        }
    }

    /// The next message in the records of a datagram.
    pub(in crate::coap) fn next_message<'a>(
        &mut self,
        ctx: &mut Ctx<'_>,
        records: &mut Records<'a>,
    ) -> Option<&'a [u8]> {
        let of = records.of;
        loop {
            let event = self.guarded(of).and_then(|(secure, dtls)| {
                let (mut context, out) = secure.parts();
                dtls.poll(ctx.now(), &mut context, &mut records.input, out)
            });
            self.send_flight_to(ctx, of);
            match event {
                None => break,
                Some(Event::Data(plain)) => {
                    self.follow(ctx, records);
                    return Some(plain);
                }
                Some(event) => self.session_event(ctx, of, &event, records.before),
            }
        }
        self.note_dtls(ctx, of, records.before);
        self.look_after(ctx, of);
        None
    }

    fn session_event(&mut self, ctx: &mut Ctx<'_>, of: PeerRef, event: &Event<'_>, before: Counts) {
        match event {
            Event::Connected(connected) => {
                ctx.counts().dtls_handshakes.more();
                if connected.has_connection_id {
                    ctx.counts().dtls_connection_ids.more();
                }
                if connected.is_resumed {
                    ctx.counts().dtls_resumed.more();
                }
                self.take_name(ctx, of, connected);
                if let Some(old) = self.peers.connected(of) {
                    self.forget_peer(ctx, old);
                }
            }
            Event::Closed => ctx.counts().dtls_closed.more(),
            Event::Failed(fault) => ctx.shared.account.handshake_failed(&fault.to_string()),
            Event::Data(_) => {}
        }
        if matches!(event, Event::Closed | Event::Failed(_)) {
            self.note_dtls(ctx, of, before);
            self.forget_peer(ctx, of);
        }
    }

    /// Takes over what a peer's credentials call it, and notes who showed a certificate.
    fn take_name(&mut self, ctx: &Ctx<'_>, of: PeerRef, connected: &Connected) {
        let Some(peer) = self.peer(of) else { return };
        let Some(identity) = peer.guard.as_ref().map(|guard| guard.dtls.identity()) else {
            return;
        };
        if connected.suite.key_exchange().has_psk() {
            peer.name = std::str::from_utf8(identity).ok().map(Arc::from);
            return;
        }
        let subject = String::from_utf8_lossy(identity).into_owned();
        let Some(name) = device_of(&subject) else {
            return;
        };
        let shown = PeerIdentity {
            subject,
            is_resumed: connected.is_resumed,
        };
        peer.name = Some(Arc::from(name.as_str()));
        ctx.shared.account.certificate(shown, &name);
    }

    /// A peer that speaks from another address has moved there (RFC 9146 section 6).
    fn follow(&mut self, ctx: &Ctx<'_>, records: &Records<'_>) {
        let place = self.place(records.of);
        let has_moved = place.is_some_and(|(_, address)| address != records.from);
        if has_moved && records.input.is_newest() {
            self.peers.relocate(records.of, records.from);
            ctx.counts().dtls_moved.more();
        }
    }

    /// A flight is due again, or the time of a handshake is over.
    pub(in crate::coap) fn expire_session(&mut self, ctx: &mut Ctx<'_>, of: PeerRef) {
        let before = self.dtls_counts(of);
        let Some((secure, dtls)) = self.guarded(of) else {
            return;
        };
        let (mut context, out) = secure.parts();
        let event = dtls.expire(ctx.now(), &mut context, out);
        self.send_flight_to(ctx, of);
        match event {
            Some(event) => self.session_event(ctx, of, &event, before),
            None => self.note_dtls(ctx, of, before),
        }
    }

    /// Says goodbye and forgets the peer.
    pub(in crate::coap) fn close_session(&mut self, ctx: &mut Ctx<'_>, of: PeerRef) {
        if let Some((secure, dtls)) = self.guarded(of) {
            dtls.close(&mut secure.out);
        }
        self.send_flight_to(ctx, of);
        self.forget_peer(ctx, of);
    }

    fn send_flight_to(&mut self, ctx: &mut Ctx<'_>, of: PeerRef) {
        if let Some((socket, address)) = self.place(of) {
            self.send_flight(ctx, socket, address);
        }
    }

    /// Sends what sessions have to say of themselves.
    fn send_flight(&mut self, ctx: &mut Ctx<'_>, socket: Key, to: SocketAddr) {
        let Some(secure) = self.secure.as_mut() else {
            return;
        };
        let mut unsent = 0;
        for datagram in secure.out.iter() {
            unsent += u64::from(!is_sent(ctx.io.send_to(socket, to, datagram)));
        }
        secure.out.clear();
        ctx.counts().unsent.add(unsent);
    }

    fn note_dtls(&mut self, ctx: &Ctx<'_>, of: PeerRef, before: Counts) {
        let after = self.dtls_counts(of);
        let counts = ctx.counts();
        let added = |before: u32, after: u32| u64::from(after.saturating_sub(before));
        counts.dtls_resent.add(added(before.resent, after.resent));
        let discarded = added(before.discarded, after.discarded);
        let replayed = added(before.replayed, after.replayed);
        counts.dtls_discarded.add(discarded + replayed);
    }
}
