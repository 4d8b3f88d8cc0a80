//! What a shard tells those who conduct the run.

use muster_conduct::{DISPATCH_EVERY, Progress, Trouble};
use muster_model::Micros;
use muster_net::Io;

use super::{Driver, Lines};

impl<L: Lines> Driver<L> {
    pub(super) fn dispatch(&mut self, io: &Io, now: Micros) {
        self.next_dispatch = now + DISPATCH_EVERY;
        self.tell_dropped(io.counts().datagrams_dropped);
        self.tell_unsendable();
        let progress = Progress::of(&self.shard, now);
        let refusals = self.shard.take_refusals().into_iter();
        self.troubles.extend(refusals.map(Trouble::Rejecting));
        let refused = self.shard.take_refused_links().into_iter();
        self.troubles.extend(refused.map(Trouble::LinkRefused));
        let dispatch = self.shard.sink().dispatch(progress, &mut self.troubles);
        if !self.mailbox.post(dispatch) {
            self.troubles.push(Trouble::unheard());
        }
    }

    /// What the kernel dropped since our own buffers were full is no loss of the target's.
    fn tell_dropped(&mut self, dropped: u64) {
        if std::mem::replace(&mut self.dropped, dropped) < dropped {
            self.trouble("datagrams came for which a receive buffer of ours had no room");
        }
    }

    fn tell_unsendable(&mut self) {
        let Some((id, why)) = self.shard.take_unsendable() else {
            return;
        };
        if let Some((fleet, stream)) = self.plan.stream(id) {
            let (fleet, stream) = (&fleet.name, &stream.name);
            let text = format!("messages of stream `{stream}` of fleet `{fleet}`: {why}");
            self.troubles.push(Trouble::Unsendable(text));
        }
    }

    pub(super) fn trouble(&mut self, what: &str) {
        self.note(Trouble::Limit(what.to_owned()));
    }

    pub(super) fn note(&mut self, trouble: Trouble) {
        if !self.troubles.contains(&trouble) {
            self.troubles.push(trouble);
        }
    }
}
