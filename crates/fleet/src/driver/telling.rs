//! What a shard tells those who conduct the run.

use std::io::ErrorKind;

use muster_conduct::{DISPATCH_EVERY, Progress, Trouble};
use muster_device::{Note, SharedSockets};
use muster_model::Micros;
use muster_net::Io;

use super::{Driver, Lines};

impl<P: SharedSockets, L: Lines> Driver<P, L> {
    pub(super) fn dispatch(&mut self, io: &Io, now: Micros) {
        self.next_dispatch = now + DISPATCH_EVERY;
        self.tell_dropped(io.counts().datagrams_dropped);
        self.tell_unreachable(io);
        self.tell_unsendable();
        let progress = Progress {
            links_declined: self.declined,
            ..Progress::of(&self.shard, now)
        };
        for note in self.shard.recording().refusals().take() {
            self.note(match note {
                Note::Rejecting(text) => Trouble::Rejecting(text),
                Note::LinkRefused(text) => Trouble::LinkRefused(text),
                Note::LowerQos(text) => Trouble::LowerQos(text),
                Note::TakenOver(text) => Trouble::TakenOver(text),
                Note::ReasonString(cause, text) => Trouble::ReasonString { cause, text },
                Note::Limit(text) => Trouble::Limit(text),
            });
        }
        let dispatch = self
            .shard
            .recording()
            .sink()
            .dispatch(progress, &mut self.troubles);
        if !self.mailbox.post(dispatch) {
            self.troubles.push(Trouble::unheard());
        }
    }

    /// What the kernel dropped since our own buffers were full is no loss of the target's.
    fn tell_dropped(&mut self, dropped: u64) {
        let more = dropped - std::mem::replace(&mut self.dropped, dropped);
        if more > 0 {
            self.note(Trouble::ReceiveDrop(more));
        }
    }

    /// Whom datagrams do not reach, each cause once.
    fn tell_unreachable(&mut self, io: &Io) {
        let icmp = io.icmp_error().filter(|_| !self.refusing);
        if let Some(why) = icmp {
            self.refusing = true;
            let is_nobody = why.kind() == ErrorKind::ConnectionRefused;
            let hint = if is_nobody {
                ": nobody listens there"
            } else {
                ""
            };
            let text = format!("ICMP told of datagrams to {}: {why}{hint}", self.whereto());
            self.note(Trouble::Unreachable(text));
        }
        if let Some(why) = io.refusal().filter(|_| !self.unroutable) {
            self.unroutable = true;
            let text = format!("the kernel refuses datagrams to {}: {why}", self.whereto());
            self.note(Trouble::Unreachable(text));
        }
    }

    fn whereto(&self) -> String {
        let mut targets = self.targets.clone();
        targets.sort_unstable();
        targets.dedup();
        let all: Vec<String> = targets.iter().map(ToString::to_string).collect();
        all.join(", ")
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
