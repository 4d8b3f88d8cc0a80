//! The DTLS sessions that devices may resume.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex};

use muster_protocol::dtls::{Session, Sessions};
use rustc_hash::FxHashMap;

use crate::lock::locked;

/// Sessions that are kept; for a further one the oldest is forgotten, whose device then opens its
/// next in full.
const SESSIONS_MAX: usize = 100_000;

/// The sessions of all threads: a device that comes back may reach another one.
#[derive(Clone, Default)]
pub(crate) struct Resumable(Arc<Mutex<Kept>>);

#[derive(Default)]
struct Kept {
    by_id: FxHashMap<Box<[u8]>, Session>,
    /// Their ids, the oldest first.
    order: VecDeque<Box<[u8]>>,
}

/// Prints no secret of a session.
impl fmt::Debug for Resumable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Resumable")
    }
}

impl Sessions for Resumable {
    fn keep(&mut self, session: &Session) {
        let mut kept = locked(&self.0);
        if kept.order.len() >= SESSIONS_MAX
            && let Some(oldest) = kept.order.pop_front()
        {
            kept.by_id.remove(&oldest);
        }
        kept.order.push_back(session.id().into());
        kept.by_id.insert(session.id().into(), session.clone());
    }

    fn find(&self, id: &[u8]) -> Option<Session> {
        locked(&self.0).by_id.get(id).cloned()
    }
}
