//! DTLS between the datagrams of a peer and its messages.

use std::net::SocketAddr;
use std::sync::Arc;

use muster_model::Micros;
use muster_net::{Io, Key};
use muster_protocol::dtls::{
    Connected, Content, Context, CookieSecret, Counts, Crypto, Datagrams, Dtls, Event, Greeting,
    Incoming, Settings, Welcome, greet, is_client_hello, peek,
};
use muster_transport::{AwsLc, PeerIdentity};

use super::{Coap, Peer, PeerRef};
use crate::config::GatewayDtls;
use crate::resumable::Resumable;
use crate::secrets::Secrets;
use crate::shard::Shard;
use crate::shared::Shared;
use crate::vouched::{Vouched, device_of};

/// What a thread needs for DTLS.
pub(super) struct Secure {
    crypto: AwsLc,
    settings: Settings,
    secrets: Arc<Secrets>,
    /// Own and devices' certificates, where there are any.
    vouched: Option<Arc<Vouched>>,
    resumable: Resumable,
    /// Whether connection ids are agreed upon.
    gives_ids: bool,
    /// What is to be sent of handshakes and alerts.
    out: Datagrams,
    /// A message on its way into a record.
    sealed: Vec<u8>,
}

/// One peer's session, and what it began with.
#[derive(Debug)]
pub(super) struct Guard {
    pub(super) dtls: Dtls<AwsLc>,
    /// Of its ClientHello.
    random: [u8; 32],
}

impl std::fmt::Debug for Secure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Secure").finish_non_exhaustive()
    }
}

impl Secure {
    /// None if the system gives no randomness.
    pub(super) fn new(
        shared: &Shared,
        dtls: &GatewayDtls,
        vouched: Option<Arc<Vouched>>,
    ) -> Option<Self> {
        let tls = dtls.certificate.as_ref();
        let mut crypto = AwsLc::new();
        let mut secret = [0; 32];
        if !crypto.random(&mut secret) {
            return None;
        }
        Some(Self {
            crypto,
            settings: Settings {
                cookie_secret: Some(CookieSecret::new(secret)),
                client_certificate: tls.is_some_and(|tls| tls.needs_client_cert),
                ..Settings::default()
            },
            secrets: Arc::clone(&shared.secrets),
            vouched,
            resumable: shared.resumable.clone(),
            gives_ids: dtls.connection_id,
            out: Datagrams::new(),
            sealed: Vec::new(),
        })
    }

    /// What a call to a session may use, and where it writes.
    fn parts(&mut self) -> (Context<'_, AwsLc>, &mut Datagrams) {
        let context = Context {
            crypto: &mut self.crypto,
            settings: &self.settings,
            certificates: self.vouched.as_deref().map(|vouched| vouched as _),
            keys: (!self.secrets.is_empty()).then_some(&*self.secrets as _),
            sessions: Some(&mut self.resumable),
        };
        (context, &mut self.out)
    }
}

impl Coap {
    fn guarded(&mut self, peer: PeerRef) -> Option<(&mut Secure, &mut Dtls<AwsLc>)> {
        let guard = self.peers.get_mut(peer)?.guard.as_mut()?;
        Some((self.secure.as_mut()?, &mut guard.dtls))
    }

    fn poll<'a>(
        &mut self,
        now: Micros,
        peer: PeerRef,
        input: &mut Incoming<'a>,
    ) -> Option<Event<'a>> {
        let (secure, dtls) = self.guarded(peer)?;
        let (mut context, out) = secure.parts();
        dtls.poll(now, &mut context, input, out)
    }

    /// The record of a message; none if the session cannot say anything any more.
    pub(super) fn seal(&mut self, to: PeerRef, message: &[u8]) -> Option<&[u8]> {
        let guard = self.peers.get_mut(to)?.guard.as_mut()?;
        let secure = self.secure.as_mut()?;
        secure.sealed.clear();
        secure.sealed.extend_from_slice(message);
        let is_sealed = guard.dtls.wrap(&mut secure.sealed, 0);
        is_sealed.then_some(&secure.sealed[..])
    }

    fn dtls_counts(&mut self, peer: PeerRef) -> Counts {
        self.guarded(peer)
            .map_or(Counts::default(), |(_, dtls)| dtls.counts())
    }
}

impl Shard {
    /// Takes a datagram that came by a socket of DTLS.
    pub(super) fn heard_secure(
        &mut self,
        io: &mut Io,
        key: Key,
        from: SocketAddr,
        bytes: &mut [u8],
    ) {
        let Some(header) = peek(bytes, PeerRef::ID) else {
            return self.counts().dtls_discarded.more();
        };
        let is_hello = is_client_hello(bytes);
        let peer = if header.content == Content::ConnectionId {
            let named = PeerRef::of_id(header.connection_id);
            named.filter(|peer| self.socket_of(*peer) == Some(key))
        } else if is_hello {
            self.welcome(io, key, from, bytes)
        } else {
            self.coap.peers.guarded_at(key, from)
        };
        match peer {
            Some(peer) => self.open_records(io, peer, from, bytes),
            None if is_hello => {}
            None => self.counts().dtls_discarded.more(),
        }
    }

    /// Answers a ClientHello with a cookie, or finds or makes the session that it begins.
    fn welcome(
        &mut self,
        io: &mut Io,
        key: Key,
        from: SocketAddr,
        bytes: &[u8],
    ) -> Option<PeerRef> {
        let secure = self.coap.secure.as_mut()?;
        let (context, out) = secure.parts();
        let name = from.to_string();
        match greet(&context, bytes, name.as_bytes(), out) {
            Greeting::Ignored => {
                self.counts().dtls_discarded.more();
                None
            }
            Greeting::Answered => {
                self.counts().dtls_cookies.more();
                self.send_flight(io, key, from);
                None
            }
            Greeting::Welcome(welcome) => {
                let begun = self.coap.peers.opening_at(key, from);
                match begun.filter(|begun| self.began_with(*begun, welcome.random())) {
                    Some(begun) => Some(begun),
                    None => self.begin(io, (key, from), welcome),
                }
            }
        }
    }

    fn began_with(&mut self, peer: PeerRef, random: &[u8; 32]) -> bool {
        let guard = self.peer(peer).and_then(|peer| peer.guard.as_ref());
        guard.is_some_and(|guard| guard.random == *random)
    }

    /// Makes a session beside the one that may stand at that address, in the place of one that was
    /// only begun.
    fn begin(
        &mut self,
        io: &mut Io,
        (key, from): (Key, SocketAddr),
        welcome: Welcome,
    ) -> Option<PeerRef> {
        if let Some(begun) = self.coap.peers.opening_at(key, from) {
            self.forget_peer(io, begun);
        }
        let now = io.now();
        let peer = self.new_peer(key, from);
        let secure = self.coap.secure.as_mut()?;
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
        let met = self.coap.peers.insert_opening(now, peer, guard);
        self.greeted(io, met)
    }

    /// Hands a datagram to a session, and what it carries on.
    fn open_records(&mut self, io: &mut Io, of: PeerRef, from: SocketAddr, bytes: &mut [u8]) {
        let (now, before) = (io.now(), self.coap.dtls_counts(of));
        let Some(peer) = self.peer(of) else { return };
        peer.heard = now;
        let mut input = Incoming::new(bytes);
        loop {
            let event = self.coap.poll(now, of, &mut input);
            let answers_to = self.peer(of).map(|peer| (peer.socket, peer.address));
            if let Some((socket, address)) = answers_to {
                self.send_flight(io, socket, address);
            }
            match event {
                None => break,
                Some(Event::Data(plain)) => {
                    self.follow(of, from, input.is_newest());
                    self.hear_message(io, of, plain);
                }
                Some(event) => self.session_event(io, of, &event, before),
            }
        }
        self.note_dtls(of, before);
        self.look_after(io, of);
    }

    fn session_event(&mut self, io: &mut Io, of: PeerRef, event: &Event<'_>, before: Counts) {
        match event {
            Event::Connected(connected) => {
                self.counts().dtls_handshakes.more();
                if connected.has_connection_id {
                    self.counts().dtls_connection_ids.more();
                }
                if connected.is_resumed {
                    self.counts().dtls_resumed.more();
                }
                self.take_name(of, connected);
                if let Some(old) = self.coap.peers.connected(of) {
                    self.forget_peer(io, old);
                }
            }
            Event::Closed => {
                self.counts().dtls_closed.more();
                self.note_dtls(of, before);
                self.forget_peer(io, of);
            }
            Event::Failed(fault) => {
                self.shared.handshake_failed(&fault.to_string());
                self.note_dtls(of, before);
                self.forget_peer(io, of);
            }
            Event::Data(_) => {}
        }
    }

    /// Takes over what a peer's credentials call it, and notes who showed a certificate.
    fn take_name(&mut self, of: PeerRef, connected: &Connected) {
        let Some(peer) = self.peer(of) else { return };
        let Some(identity) = peer.guard.as_ref().map(|guard| guard.dtls.identity()) else {
            return;
        };
        if connected.suite.key_exchange().has_psk() {
            peer.name = std::str::from_utf8(identity).ok().map(Arc::from);
            return;
        }
        let Some(name) = device_of(identity) else {
            return;
        };
        let shown = PeerIdentity {
            subject: String::from_utf8_lossy(identity).into_owned(),
            is_resumed: connected.is_resumed,
        };
        peer.name = Some(Arc::from(name.as_str()));
        self.shared.note_subject(shown, &name);
    }

    /// A peer that speaks from another address has moved there (RFC 9146 section 6).
    fn follow(&mut self, of: PeerRef, from: SocketAddr, is_newest: bool) {
        let has_moved = self.peer(of).is_some_and(|peer| peer.address != from);
        if has_moved && is_newest {
            self.coap.peers.relocate(of, from);
            self.counts().dtls_moved.more();
        }
    }

    /// A flight is due again, or the time of a handshake is over.
    pub(super) fn expire_session(&mut self, io: &mut Io, of: PeerRef) {
        let (now, before) = (io.now(), self.coap.dtls_counts(of));
        let Some((secure, dtls)) = self.coap.guarded(of) else {
            return;
        };
        let (mut context, out) = secure.parts();
        let event = dtls.expire(now, &mut context, out);
        if let Some((socket, address)) = self.peer(of).map(|peer| (peer.socket, peer.address)) {
            self.send_flight(io, socket, address);
        }
        match event {
            Some(event) => self.session_event(io, of, &event, before),
            None => self.note_dtls(of, before),
        }
    }

    /// Says goodbye and forgets the peer.
    pub(in crate::shard) fn close_session(&mut self, io: &mut Io, of: PeerRef) {
        if let Some((secure, dtls)) = self.coap.guarded(of) {
            dtls.close(&mut secure.out);
        }
        if let Some((socket, address)) = self.peer(of).map(|peer| (peer.socket, peer.address)) {
            self.send_flight(io, socket, address);
        }
        self.forget_peer(io, of);
    }

    /// Sends what sessions have to say of themselves.
    fn send_flight(&mut self, io: &mut Io, socket: Key, to: SocketAddr) {
        let Some(secure) = self.coap.secure.as_mut() else {
            return;
        };
        let mut unsent = 0;
        for datagram in secure.out.iter() {
            unsent += u64::from(!super::is_sent(io.send_to(socket, to, datagram)));
        }
        secure.out.clear();
        self.counts().unsent.add(unsent);
    }

    fn note_dtls(&mut self, of: PeerRef, before: Counts) {
        let after = self.coap.dtls_counts(of);
        let counts = self.counts();
        let added = |before: u32, after: u32| u64::from(after.saturating_sub(before));
        counts.dtls_resent.add(added(before.resent, after.resent));
        let discarded = added(before.discarded, after.discarded);
        let replayed = added(before.replayed, after.replayed);
        counts.dtls_discarded.add(discarded + replayed);
    }
}

impl Peer {
    /// Whether its records name it.
    pub(super) fn has_connection_id(&self) -> bool {
        let guard = self.guard.as_ref();
        guard.is_some_and(|guard| !guard.dtls.own_id().is_empty())
    }
}
