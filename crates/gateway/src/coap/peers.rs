//! The peers of one thread, found by their addresses and by their connection ids.

use std::net::SocketAddr;
use std::sync::Arc;

use muster_model::{Micros, mix};
use muster_net::Key;
use muster_protocol::coap::{Server, ServerCounts, ServerSettings};
use rustc_hash::FxHashMap;
use slotmap::DenseSlotMap;

use super::bounds;
use super::guard::Guard;
use super::request::PeerRef;
use crate::uplink::AlarmId;

type Place = (Key, SocketAddr);

#[derive(Debug)]
pub(super) struct Peers {
    all: DenseSlotMap<PeerRef, Peer>,
    by_address: FxHashMap<Place, PeerRef>,
    /// Sessions of DTLS that are not open yet; an address may have one of these and an open one.
    opening: FxHashMap<Place, PeerRef>,
    most: usize,
    /// Bytes that all sessions may keep before any of them has to forget some.
    most_kept: usize,
    kept: usize,
    /// The place that is looked at next for somebody to forget.
    hand: usize,
}

/// A peer that was forgotten, and what its name was.
pub(super) type Gone = (PeerRef, Peer);

/// A peer that was added, and the one that was forgotten for it, if there were as many as may be.
pub(super) type Met = (PeerRef, Option<Gone>);

impl Peers {
    /// Places that are looked at for somebody to forget.
    const LOOKS: usize = 64;

    pub(super) fn new() -> Self {
        Self::of(bounds::PEERS, bounds::ALL_KEPT)
    }

    fn of(most: usize, most_kept: usize) -> Self {
        Self {
            all: DenseSlotMap::with_key(),
            by_address: FxHashMap::default(),
            opening: FxHashMap::default(),
            most,
            most_kept,
            kept: 0,
            hand: 0,
        }
    }

    pub(super) fn at(&self, socket: Key, address: SocketAddr) -> Option<PeerRef> {
        self.by_address.get(&(socket, address)).copied()
    }

    pub(super) fn opening_at(&self, socket: Key, address: SocketAddr) -> Option<PeerRef> {
        self.opening.get(&(socket, address)).copied()
    }

    /// The session at an address: the one that begins, if there are two.
    pub(super) fn guarded_at(&self, socket: Key, address: SocketAddr) -> Option<PeerRef> {
        let opening = self.opening_at(socket, address);
        opening.or_else(|| self.at(socket, address))
    }

    pub(super) fn get_mut(&mut self, peer: PeerRef) -> Option<&mut Peer> {
        self.all.get_mut(peer)
    }

    pub(super) fn guarded(&self) -> impl Iterator<Item = PeerRef> {
        self.all.iter().filter_map(|(key, peer)| {
            let guard = peer.guard.as_ref()?;
            guard.dtls.is_open().then_some(key)
        })
    }

    /// Adds a peer. None if there are as many as may be and none of those that were looked at can be
    /// forgotten.
    pub(super) fn insert(&mut self, now: Micros, peer: Peer) -> Option<Met> {
        let gone = self.make_room(now)?;
        let place = (peer.socket, peer.address);
        let met = self.all.insert(peer);
        self.by_address.insert(place, met);
        Some((met, gone))
    }

    /// Adds a peer whose session is to be opened.
    pub(super) fn insert_opening(
        &mut self,
        now: Micros,
        peer: Peer,
        guard: impl FnOnce(PeerRef) -> Guard,
    ) -> Option<Met> {
        let gone = self.make_room(now)?;
        let place = (peer.socket, peer.address);
        let met = self.all.insert_with_key(|key| Peer {
            guard: Some(Box::new(guard(key))),
            ..peer
        });
        self.opening.insert(place, met);
        Some((met, gone))
    }

    /// A session is open: it stands at its address from now on. Gives the one that stood there, unless
    /// that is found by its connection id: then both stand, as of devices that share a socket.
    pub(super) fn connected(&mut self, peer: PeerRef) -> Option<PeerRef> {
        let place = self.place(peer)?;
        if self.opening.get(&place) == Some(&peer) {
            self.opening.remove(&place);
        }
        let before = self.by_address.insert(place, peer)?;
        let has_id = self
            .get_mut(before)
            .is_some_and(|before| before.has_connection_id());
        (before != peer && !has_id).then_some(before)
    }

    pub(super) fn relocate(&mut self, peer: PeerRef, to: SocketAddr) {
        let Some(place) = self.place(peer) else {
            return;
        };
        if self.by_address.get(&place) == Some(&peer) {
            self.by_address.remove(&place);
        }
        if let Some(peer) = self.get_mut(peer) {
            peer.address = to;
        }
        // Whoever stands there already may have no connection id; this one has.
        self.by_address.entry((place.0, to)).or_insert(peer);
    }

    pub(super) fn remove(&mut self, peer: PeerRef) -> Option<Peer> {
        let gone = self.all.remove(peer)?;
        self.kept -= gone.kept;
        let place = (gone.socket, gone.address);
        for map in [&mut self.by_address, &mut self.opening] {
            if map.get(&place) == Some(&peer) {
                map.remove(&place);
            }
        }
        Some(gone)
    }

    /// Looks at what the session of a peer keeps for duplicates, of answers that wait and of bodies in
    /// blocks: where all of them keep more than they may, it forgets all but a few requests and
    /// answers. Its counts before and after.
    pub(super) fn weigh(&mut self, peer: PeerRef) -> Option<(ServerCounts, ServerCounts)> {
        let peer = self.all.get_mut(peer)?;
        let before = *peer.coap.counts();
        let others = self.kept - peer.kept;
        if others + peer.coap.kept() > self.most_kept {
            peer.coap.forget_beyond(bounds::LEAST_KEPT);
        }
        peer.kept = peer.coap.kept();
        self.kept = others + peer.kept;
        Some((before, *peer.coap.counts()))
    }

    fn place(&mut self, peer: PeerRef) -> Option<Place> {
        self.get_mut(peer).map(|peer| (peer.socket, peer.address))
    }

    /// Makes room for one more, by forgetting one if there are as many as may be.
    fn make_room(&mut self, now: Micros) -> Option<Option<Gone>> {
        let len = self.all.len();
        if len < self.most {
            return Some(None);
        }
        let (keys, peers) = self.all.as_slices();
        let places = (0..len.min(Self::LOOKS)).map(|step| (self.hand + step) % len);
        let idle = places.into_iter().find(|place| peers[*place].is_idle(now));
        self.hand = idle.unwrap_or(self.hand + Self::LOOKS) % len;
        let idle = keys[idle?];
        Some(self.remove(idle).map(|peer| (idle, peer)))
    }
}

/// One peer of CoAP: an address that sent a datagram.
#[derive(Debug)]
pub(super) struct Peer {
    /// The socket that it sends to.
    pub(super) socket: Key,
    pub(super) address: SocketAddr,
    pub(super) coap: Server,
    /// Its session of DTLS, where it has one.
    pub(super) guard: Option<Box<Guard>>,
    /// Instant at which its session of DTLS last received a datagram.
    pub(super) last_received: Micros,
    /// Name in its credentials; none without any.
    pub(super) name: Option<Arc<str>>,
    /// Bytes that its session kept for duplicates when that was last looked at.
    pub(super) kept: usize,
    /// Next instant at which something is due of it, and its alarm.
    pub(super) alarm: Option<(Micros, AlarmId)>,
}

impl Peer {
    /// Silence after which a session of DTLS may be forgotten for another's sake: longer than
    /// duplicates of its requests can come.
    const STALE: Micros = Micros::from_secs(300);

    pub(super) fn new(
        socket: Key,
        address: SocketAddr,
        settings: Arc<ServerSettings>,
        seed: u64,
    ) -> Self {
        let seed = mix(seed, u64::from(address.port()));
        Self {
            socket,
            address,
            coap: Server::new(settings, seed),
            guard: None,
            last_received: Micros::ZERO,
            name: None,
            kept: 0,
            alarm: None,
        }
    }

    /// True if nothing is lost by forgetting it. A session of DTLS is lost with it, and so it has
    /// to be silent for long.
    pub(super) fn is_idle(&self, now: Micros) -> bool {
        let is_guarded = self.guard.is_some() && self.last_received + Self::STALE > now;
        !is_guarded && self.coap.is_idle(now)
    }

    /// True if its records name it.
    pub(super) fn has_connection_id(&self) -> bool {
        let guard = self.guard.as_ref();
        guard.is_some_and(|guard| !guard.dtls.own_id().is_empty())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use muster_net::{Clock, Closed, Handler, Io, ListenerId, Loop, LoopConfig, PortUse};
    use muster_protocol::coap::{
        Block, BlockSize, Code, Header, Kind, Opt, OptionNumber, Reply, ServerEvent, Token,
        Transmission,
    };

    use super::*;

    pub(in crate::coap) struct Nobody;

    impl Handler for Nobody {
        fn opened(&mut self, _: &mut Io, _: Key) {}
        fn accepted(&mut self, _: &mut Io, _: Key, _: ListenerId) {}
        fn received(&mut self, _: &mut Io, _: Key, bytes: &mut [u8]) -> usize {
            bytes.len()
        }
        fn flushed(&mut self, _: &mut Io, _: Key) {}
        fn closed(&mut self, _: &mut Io, _: Key, _: Closed) {}
        fn timer(&mut self, _: &mut Io, _: u64) {}
        fn woken(&mut self, _: &mut Io) {}
        fn turn(&mut self, _: &mut Io) -> Option<Micros> {
            None
        }
    }

    /// A key, which only a loop makes.
    fn socket() -> Key {
        let here = SocketAddr::from(([127, 0, 0, 1], 0));
        let event_loop = Loop::new(Clock::start(), &LoopConfig::default(), Nobody);
        let mut event_loop = event_loop.expect("a loop");
        let bound = event_loop.parts().1.bind_udp(here, PortUse::Alone);
        bound.expect("a port").0
    }

    fn peer(socket: Key, port: u16) -> Peer {
        peer_with(socket, port, ServerSettings::default())
    }

    fn peer_with(socket: Key, port: u16, settings: ServerSettings) -> Peer {
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        Peer::new(socket, address, Arc::new(settings), 1)
    }

    #[test]
    fn a_peer_is_found_by_its_address_until_it_goes() {
        let (socket, mut peers) = (socket(), Peers::of(10, usize::MAX));
        let (met, gone) = peers.insert(Micros(0), peer(socket, 7)).expect("room");
        assert!(gone.is_none());
        let address = SocketAddr::from(([127, 0, 0, 1], 7));
        assert_eq!(peers.at(socket, address), Some(met));
        assert_eq!(PeerRef::from_id(&met.id()), Some(met));
        assert!(peers.remove(met).is_some());
        assert_eq!(peers.at(socket, address), None);
        assert!(peers.get_mut(met).is_none() && peers.remove(met).is_none());
    }

    #[test]
    fn beyond_the_bound_an_idle_one_goes_and_a_busy_one_does_not() {
        let (socket, mut peers) = (socket(), Peers::of(2, usize::MAX));
        let (busy, _) = peers.insert(Micros(0), peer(socket, 1)).expect("room");
        // A request: its message id is known for as long as a duplicate can come.
        let mut request = Vec::new();
        let header = Header {
            kind: Kind::Confirmable,
            code: Code::GET,
            id: 1,
            token: Token::EMPTY,
        };
        header.write(&mut request);
        let coap = &mut peers.get_mut(busy).expect("it is there").coap;
        assert!(coap.receive(Micros(0), &request, &mut Vec::new()).is_some());
        let (idle, _) = peers.insert(Micros(0), peer(socket, 2)).expect("room");
        let (third, gone) = peers.insert(Micros(1), peer(socket, 3)).expect("room");
        assert_eq!(gone.map(|(_, gone)| gone.address.port()), Some(2));
        assert!(peers.get_mut(idle).is_none() && peers.get_mut(busy).is_some());
        let coap = &mut peers.get_mut(third).expect("it is there").coap;
        assert!(coap.receive(Micros(1), &request, &mut Vec::new()).is_some());
        assert!(
            peers.insert(Micros(2), peer(socket, 4)).is_none(),
            "nobody can go"
        );
        let later = Micros::from_secs(300);
        assert!(peers.insert(later, peer(socket, 4)).is_some());
    }

    /// Beyond the bytes that all may keep, a peer that sends forgets all but its last requests.
    #[test]
    fn sessions_keep_no_more_for_duplicates_than_all_may() {
        let (socket, mut peers) = (socket(), Peers::of(10, 50_000));
        let mut forgot = 0;
        let mut met = Vec::new();
        for port in 1..=4 {
            let (peer, _) = peers.insert(Micros(0), peer(socket, port)).expect("room");
            for id in 0..1_000 {
                let mut request = Vec::new();
                let header = Header {
                    kind: Kind::Confirmable,
                    code: Code::GET,
                    id,
                    token: Token::EMPTY,
                };
                header.write(&mut request);
                let coap = &mut peers.get_mut(peer).expect("it is there").coap;
                assert!(coap.receive(Micros(0), &request, &mut Vec::new()).is_some());
                let (before, after) = peers.weigh(peer).expect("it is there");
                forgot += after.evicted - before.evicted;
            }
            met.push(peer);
        }
        let of_one = |requests: usize| requests * 48;
        assert_eq!(peers.kept, of_one(1_000) + 3 * of_one(bounds::LEAST_KEPT));
        assert_eq!(forgot, 3 * (1_000 - 64));
        for peer in met {
            assert!(peers.remove(peer).is_some_and(|gone| gone.kept > 0));
        }
        assert_eq!(peers.kept, 0);
    }

    /// The same of bodies under way in blocks, however many peers begin one.
    #[test]
    fn sessions_keep_no_more_of_bodies_than_all_may() {
        let (socket, mut peers) = (socket(), Peers::of(100, 20_000));
        let mut given_up = 0;
        for port in 1..=50 {
            let (peer, _) = peers.insert(Micros(0), peer(socket, port)).expect("room");
            let block = Block::at(0, true, BlockSize::MAX)
                .expect("the first")
                .uint();
            let options = [Opt::new(OptionNumber::BLOCK1, &block)];
            let header = Header {
                kind: Kind::Confirmable,
                code: Code::PUT,
                id: 1,
                token: Token::EMPTY,
            };
            let (mut request, mut answer) = (Vec::new(), Vec::new());
            header.write_with(&options, &[7; 1_024], &mut request);
            let coap = &mut peers.get_mut(peer).expect("it is there").coap;
            assert_eq!(coap.receive(Micros(0), &request, &mut answer), None);
            let (before, after) = peers.weigh(peer).expect("it is there");
            given_up += after.bodies_given_up - before.bodies_given_up;
            assert!(peers.kept < 22_000, "{}", peers.kept);
        }
        assert!((30..40).contains(&given_up), "{given_up}");
    }

    /// The same of answers that wait for their acknowledgements.
    #[test]
    fn sessions_keep_no_more_of_answers_than_all_may() {
        let (socket, mut peers) = (socket(), Peers::of(10, 200_000));
        let settings = bounds::of_a_peer(Transmission::default(), 2_048);
        let (peer, _) = peers
            .insert(Micros(0), peer_with(socket, 1, settings))
            .expect("room");
        let reply = Reply::new(Code::CHANGED, &[], &[7; 500]);
        for id in 0..2_000 {
            let header = Header {
                kind: Kind::NonConfirmable,
                code: Code::GET,
                id,
                token: Token::EMPTY,
            };
            let (mut request, mut answer) = (Vec::new(), Vec::new());
            header.write(&mut request);
            let coap = &mut peers.get_mut(peer).expect("it is there").coap;
            let event = coap.receive(Micros(0), &request, &mut answer);
            let Some(ServerEvent::Request(asked)) = event else {
                panic!("a request");
            };
            let said = coap.respond(Micros(0), asked.pending, &reply, &mut answer);
            assert_eq!(said, Ok(()));
            peers.weigh(peer);
            assert!(peers.kept < 210_000, "{}", peers.kept);
        }
        let coap = &mut peers.get_mut(peer).expect("it is there").coap;
        let given_up = coap.counts().copies_given_up;
        let mut copies = 0;
        let due = coap.deadline().expect("a copy") + Micros::from_secs(3);
        while coap.wake(due, &mut Vec::new()).is_some() {
            copies += 1;
        }
        assert!(copies >= bounds::LEAST_KEPT as u32, "{copies}");
        assert_eq!(given_up + copies, 2_000);
    }
}
