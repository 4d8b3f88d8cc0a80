//! The peers of one thread, found by their addresses and by their connection ids.

use std::net::SocketAddr;

use muster_model::Micros;
use muster_net::Key;
use rustc_hash::FxHashMap;

use super::Peer;
use super::securing::Guard;
use crate::slab::Slab;

/// Names one peer, and never another one after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct PeerRef {
    slot: u32,
    generation: u32,
}

impl PeerRef {
    /// Bytes of a connection id, which is the name.
    pub(super) const ID: usize = 8;

    pub(super) fn id(self) -> [u8; Self::ID] {
        self.number().to_be_bytes()
    }

    /// The name as a number.
    pub(in crate::shard) fn number(self) -> u64 {
        u64::from(self.slot) << 32 | u64::from(self.generation)
    }

    pub(super) fn of_id(id: &[u8]) -> Option<Self> {
        let number = u64::from_be_bytes(id.try_into().ok()?);
        Some(Self {
            slot: (number >> 32) as u32,
            generation: number as u32,
        })
    }
}

type Place = (Key, SocketAddr);

/// The peers of one thread.
#[derive(Debug)]
pub(super) struct Peers {
    slab: Slab<Peer>,
    by_address: FxHashMap<Place, PeerRef>,
    /// Sessions of DTLS that are not open yet, of which there may be one beside an open one.
    opening: FxHashMap<Place, PeerRef>,
    most: usize,
    /// The place that is looked at next for somebody to forget.
    hand: u32,
}

/// A peer that was added, and the one that was forgotten for it, if there were as many as may be.
pub(super) type Met = (PeerRef, Option<Peer>);

impl Peers {
    /// Most peers: a socket for each of the devices that one process of a generator can have,
    /// several times over.
    const MOST: usize = 100_000;
    /// Places that are looked at for somebody to forget.
    const LOOKS: usize = 64;

    pub(super) fn new() -> Self {
        Self::of(Self::MOST)
    }

    fn of(most: usize) -> Self {
        Self {
            slab: Slab::new(),
            by_address: FxHashMap::default(),
            opening: FxHashMap::default(),
            most,
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
        self.slab.get_mut(peer.slot, peer.generation)
    }

    /// The peers whose sessions are open.
    pub(super) fn guarded(&self) -> impl Iterator<Item = PeerRef> {
        (0..self.slab.places()).filter_map(|slot| {
            let (generation, peer) = self.slab.at(slot)?;
            let guard = peer.guard.as_ref()?;
            guard.dtls.is_open().then_some(PeerRef { slot, generation })
        })
    }

    /// Adds a peer. None if there are as many as may be and none of those that were looked at can be
    /// forgotten.
    pub(super) fn insert(&mut self, now: Micros, peer: Peer) -> Option<Met> {
        let gone = self.make_room(now)?;
        let place = (peer.socket, peer.address);
        let (slot, generation) = self.slab.insert_with(|_, _| peer);
        let met = PeerRef { slot, generation };
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
        let (slot, generation) = self.slab.insert_with(|slot, generation| Peer {
            guard: Some(Box::new(guard(PeerRef { slot, generation }))),
            ..peer
        });
        let met = PeerRef { slot, generation };
        self.opening.insert(place, met);
        Some((met, gone))
    }

    /// A session is open: it stands at its address from now on. Gives the one that stood there.
    pub(super) fn connected(&mut self, peer: PeerRef) -> Option<PeerRef> {
        let place = self.place(peer)?;
        if self.opening.get(&place) == Some(&peer) {
            self.opening.remove(&place);
        }
        let before = self.by_address.insert(place, peer);
        before.filter(|before| *before != peer)
    }

    /// A peer has moved to another address.
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
        // Who else was heard there is found by its connection id, or not at all.
        self.by_address.insert((place.0, to), peer);
    }

    pub(super) fn remove(&mut self, peer: PeerRef) -> Option<Peer> {
        let gone = self.slab.remove(peer.slot, peer.generation)?;
        let place = (gone.socket, gone.address);
        for map in [&mut self.by_address, &mut self.opening] {
            if map.get(&place) == Some(&peer) {
                map.remove(&place);
            }
        }
        Some(gone)
    }

    fn place(&mut self, peer: PeerRef) -> Option<Place> {
        self.get_mut(peer).map(|peer| (peer.socket, peer.address))
    }

    /// Makes room for one more, by forgetting one if there are as many as may be.
    fn make_room(&mut self, now: Micros) -> Option<Option<Peer>> {
        if self.slab.len() < self.most {
            return Some(None);
        }
        for _ in 0..Self::LOOKS {
            let slot = self.hand;
            self.hand = (slot + 1) % self.slab.places().max(1);
            if let Some((generation, peer)) = self.slab.at(slot)
                && peer.is_idle(now)
            {
                return Some(self.remove(PeerRef { slot, generation }));
            }
        }
        None
    }
}
