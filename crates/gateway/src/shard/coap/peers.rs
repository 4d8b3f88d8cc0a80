//! The peers of one thread, found by their addresses.

use std::net::SocketAddr;

use muster_model::Micros;
use muster_net::Key;
use rustc_hash::FxHashMap;

use super::Peer;
use crate::slab::Slab;

/// Names one peer, and never another one after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct PeerRef {
    slot: u32,
    generation: u32,
}

/// The peers of one thread.
#[derive(Debug)]
pub(super) struct Peers {
    slab: Slab<Peer>,
    by_address: FxHashMap<(Key, SocketAddr), PeerRef>,
    most: usize,
    /// The place that is looked at next for somebody to forget.
    hand: u32,
}

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
            most,
            hand: 0,
        }
    }

    pub(super) fn at(&self, socket: Key, address: SocketAddr) -> Option<PeerRef> {
        self.by_address.get(&(socket, address)).copied()
    }

    pub(super) fn get_mut(&mut self, peer: PeerRef) -> Option<&mut Peer> {
        self.slab.get_mut(peer.slot, peer.generation)
    }

    /// Adds a peer, and gives with it the idle one that was forgotten for it, if there are as many
    /// as may be. None if none of those that were looked at is idle.
    pub(super) fn insert(&mut self, now: Micros, peer: Peer) -> Option<(PeerRef, Option<Peer>)> {
        let mut gone = None;
        if self.by_address.len() >= self.most {
            gone = Some(self.forget_one(now)?);
        }
        let key = (peer.socket, peer.address);
        let (slot, generation) = self.slab.insert_with(|_, _| peer);
        let met = PeerRef { slot, generation };
        self.by_address.insert(key, met);
        Some((met, gone))
    }

    pub(super) fn remove(&mut self, peer: PeerRef) -> Option<Peer> {
        let gone = self.slab.remove(peer.slot, peer.generation)?;
        let key = (gone.socket, gone.address);
        if self.by_address.get(&key) == Some(&peer) {
            self.by_address.remove(&key);
        }
        Some(gone)
    }

    fn forget_one(&mut self, now: Micros) -> Option<Peer> {
        for _ in 0..Self::LOOKS {
            let slot = self.hand;
            self.hand = (slot + 1) % self.slab.places().max(1);
            let Some((generation, peer)) = self.slab.at(slot) else {
                continue;
            };
            if peer.is_idle(now) {
                return self.remove(PeerRef { slot, generation });
            }
        }
        None
    }
}
