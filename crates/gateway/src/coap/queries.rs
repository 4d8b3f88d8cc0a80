//! The requests of one thread that wait, found by their names and by their peers.

use std::collections::BTreeSet;

use muster_model::Micros;
use muster_platform::Manner;
use slotmap::{KeyData, SlotMap};

use super::request::{PeerRef, RequestRef};
use crate::uplink::AlarmId;
use crate::waiter::QueryRef;

/// A request that wants a command in its answer.
#[derive(Debug)]
pub(super) struct Query {
    pub(super) request: RequestRef,
    pub(super) tenant: Box<str>,
    pub(super) device: Box<str>,
    pub(super) manner: Manner,
    pub(super) waits: Micros,
    pub(super) until: Micros,
    pub(super) alarm: Option<AlarmId>,
}

#[derive(Debug, Default)]
pub(super) struct Queries {
    all: SlotMap<QueryRef, Query>,
    of_peers: BTreeSet<(PeerRef, QueryRef)>,
}

impl Queries {
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn insert(&mut self, query: Query) -> QueryRef {
        let peer = query.request.peer;
        let added = self.all.insert(query);
        self.of_peers.insert((peer, added));
        added
    }

    pub(super) fn get_mut(&mut self, of: QueryRef) -> Option<&mut Query> {
        self.all.get_mut(of)
    }

    pub(super) fn remove(&mut self, of: QueryRef) -> Option<Query> {
        let gone = self.all.remove(of)?;
        self.of_peers.remove(&(gone.request.peer, of));
        Some(gone)
    }

    pub(super) fn any_of(&self, peer: PeerRef) -> Option<QueryRef> {
        let least = KeyData::from_ffi(0).into();
        let (of, query) = self.of_peers.range((peer, least)..).next()?;
        (*of == peer).then_some(*query)
    }
}
