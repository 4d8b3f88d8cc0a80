//! The requests of one thread that wait, found by their names and by their peers.

use rustc_hash::FxHashMap;

use super::PeerRef;
use super::querying::Query;
use crate::slab::Slab;

/// Names one request that waits, and never another one after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct QueryRef {
    slot: u32,
    generation: u32,
}

/// Those of a peer are a chain, so that they are found when it is gone, and cost nothing where there
/// are none.
#[derive(Debug)]
pub(super) struct Queries {
    slab: Slab<Linked>,
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
            slab: Slab::new(),
            last: FxHashMap::default(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.slab.len()
    }

    pub(super) fn insert(&mut self, query: Query) -> QueryRef {
        let peer = query.peer;
        let before = self.last.get(&peer).copied();
        let (slot, generation) = self.slab.insert_with(|_, _| Linked {
            query,
            before,
            after: None,
        });
        let added = QueryRef { slot, generation };
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
        let gone = self.slab.remove(of.slot, of.generation)?;
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
        let QueryRef { slot, generation } = of?;
        self.slab.get_mut(slot, generation)
    }
}
