//! Recording of subscribers.

use muster_model::{Integrity, Reception};

use super::ReceptionWindow;
use super::sets::Pair;
use crate::Recorder;
use crate::cells::CellPool;
use crate::copies::Manner;
use crate::live::{Filling, Gauge};

/// The subscribers of one stream in the making.
#[derive(Debug, Default)]
pub(crate) struct ReceptionFilling {
    window: ReceptionWindow,
    end_to_end: Gauge,
}

impl ReceptionFilling {
    pub(crate) const GAUGES: usize = 1;
}

impl Filling for ReceptionFilling {
    type Window = ReceptionWindow;

    fn take(&mut self, pool: &mut CellPool) -> ReceptionWindow {
        ReceptionWindow {
            end_to_end: self.end_to_end.take(pool),
            ..std::mem::take(&mut self.window)
        }
    }
}

impl Recorder {
    /// Records that a copy reached a subscriber among the devices: once a copy.
    pub fn reception(&mut self, reception: &Reception) {
        let Reception { stream, seen, .. } = *reception;
        if stream.index() >= self.receptions.len() {
            return;
        }
        let facts = self.identity.facts.reception(stream);
        facts.consumed += 1;
        facts.read(reception);
        let known = reception.id.filter(|id| self.plan.knows(id));
        let (at, due) = (self.key(seen), reception.due.map(|due| self.key(due)));
        let receptions = &mut self.identity.receptions;
        let live = &mut self.receptions[stream.index()];
        let window = &mut live.window(at).window;
        if reception.integrity == Integrity::Corrupted {
            window.corrupted += 1;
            *receptions.corrupted.entry(stream).or_default() += 1;
        }
        // A scenario is refused that needs more pairs than have room. Without room a copy came to
        // somebody for whom it was not meant, of a platform that sends everything to everyone: it
        // counts as foreign, so that nothing is believed of it.
        let pair = known.and_then(|id| Some((id, receptions.pair(Pair::of(reception, &id))?)));
        let Some((id, pair)) = pair else {
            match reception.id {
                Some(_) => {
                    window.foreign += 1;
                    *receptions.foreign.entry(stream).or_default() += 1;
                }
                None => window.unstamped += 1,
            }
            return;
        };
        let manner = Manner {
            is_late: false,
            is_reordered: id.seq < pair.next,
        };
        let is_first = pair.arrive(id.seq, manner);
        pair.next = pair.next.max(id.seq + 1);
        receptions.last = receptions.last.max(Some(seen));
        let last = &mut self.progress.last_reception;
        *last = (*last).max(Some(seen));
        if !is_first {
            window.again += 1;
            return;
        }
        window.arrived += 1;
        if let Some((due, key)) = reception.due.zip(due) {
            if let Some(link) = self.plan.link_of(stream, reception.subscriber) {
                let who = (stream, reception.subscriber);
                self.identity.drains.came(link, who, due, seen);
            }
            let filling = live.window(key);
            filling.end_to_end.record(seen - due, &mut self.pool);
        }
    }
}
