//! The requests of one thread that wait, found by their names and by their peers.

use muster_model::Micros;
use muster_platform::Manner;
use muster_protocol::coap::Pending;
use rustc_hash::FxHashMap;
use slotmap::SlotMap;

use super::request::{PeerRef, QueryRef};
use crate::alarm::AlarmId;

/// A request that wants a command in its answer.
#[derive(Debug)]
pub(super) struct Query {
    pub(super) peer: PeerRef,
    pub(super) pending: Pending,
    pub(super) tenant: Box<str>,
    pub(super) device: Box<str>,
    pub(super) manner: Manner,
    pub(super) waits: Micros,
    pub(super) until: Micros,
    pub(super) alarm: Option<AlarmId>,
}

/// Those of a peer are a chain, so that they are found when it is gone, and cost nothing where there
/// are none.
#[derive(Debug)]
pub(super) struct Queries {
    all: SlotMap<QueryRef, Linked>,
    /// The last one of each peer that has any.
    last: FxHashMap<PeerRef, QueryRef>,
}

#[derive(Debug)]
struct Linked {
    query: Query,
    before: Option<QueryRef>,
    after: Option<QueryRef>,
}

impl Queries {
    pub(super) fn new() -> Self {
        Self {
            all: SlotMap::with_key(),
            last: FxHashMap::default(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn insert(&mut self, query: Query) -> QueryRef {
        let peer = query.peer;
        let before = self.last.get(&peer).copied();
        let added = self.all.insert(Linked {
            query,
            before,
            after: None,
        });
        if let Some(before) = self.linked(before) {
            before.after = Some(added);
        }
        self.last.insert(peer, added);
        added
    }

    pub(super) fn get_mut(&mut self, of: QueryRef) -> Option<&mut Query> {
        self.linked(Some(of)).map(|linked| &mut linked.query)
    }

    pub(super) fn remove(&mut self, of: QueryRef) -> Option<Query> {
        let gone = self.all.remove(of)?;
        if let Some(before) = self.linked(gone.before) {
            before.after = gone.after;
        }
        match (self.linked(gone.after), gone.before) {
            (Some(after), before) => after.before = before,
            (None, Some(before)) => {
                self.last.insert(gone.query.peer, before);
            }
            (None, None) => {
                self.last.remove(&gone.query.peer);
            }
        }
        Some(gone.query)
    }

    /// The last one of a peer.
    pub(super) fn last_of(&self, peer: PeerRef) -> Option<QueryRef> {
        self.last.get(&peer).copied()
    }

    fn linked(&mut self, of: Option<QueryRef>) -> Option<&mut Linked> {
        self.all.get_mut(of?)
    }
}
