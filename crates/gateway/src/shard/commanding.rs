//! What happens to commands on their way to devices, and to the replies.

use std::sync::Arc;

use muster_net::{Io, Key};
use muster_protocol::mqtt::Incoming;

use super::alarms::Alarm;
use super::uplink::published;
use super::{SessionRef, Shard};
use crate::account::command_hash;
use crate::fate::Fate;
use crate::message::Message;
use crate::shared::locked;

impl Shard {
    /// A command: routed as any message, but treated badly by counts of its own.
    pub(super) fn command(
        &mut self,
        io: &mut Io,
        key: Key,
        incoming: &Incoming<'_>,
        from: SessionRef,
    ) {
        let named = command_hash(&incoming.topic, incoming.payload);
        let fate = if incoming.dup || self.shared.behaves {
            Fate::Behave
        } else {
            locked(&self.shared.plot).command(named)
        };
        if !incoming.dup {
            self.counts().commands.more();
        }
        let mut user = Vec::new();
        let message = Arc::new(Message::new(&published(incoming, &mut user), io.now()));
        let copies = match fate {
            Fate::LoseAfterAccept => 1,
            Fate::DeliverLate => {
                let by = self.shared.config.behaviour.delay_commands.by;
                self.set_alarm(io, io.now() + by, Alarm::Deliver { from, message });
                1
            }
            Fate::Duplicate => {
                self.route(io, &message, from);
                self.route(io, &message, from)
            }
            // Nothing else is asked for of commands.
            Fate::Behave
            | Fate::Drop
            | Fate::Ignore
            | Fate::AnswerLate
            | Fate::AnswerTwice
            | Fate::AnswerGarbled
            | Fate::AnswerUnknown
            | Fate::Reorder
            | Fate::Corrupt
            | Fate::Reject
            | Fate::RejectButDeliver => self.route(io, &message, from),
        };
        self.accept(key, incoming.pending, copies);
    }

    /// A reply to a command: routed as any message, and never treated badly.
    pub(super) fn reply(
        &mut self,
        io: &mut Io,
        key: Key,
        incoming: &Incoming<'_>,
        from: SessionRef,
    ) {
        self.counts().replies.more();
        let mut user = Vec::new();
        let routed = self.publish(io, &published(incoming, &mut user), Some(from), None);
        if routed.is_congested {
            self.hold_back(io, key);
        }
        self.accept(key, incoming.pending, routed.copies);
    }

    fn route(&mut self, io: &mut Io, message: &Arc<Message>, from: SessionRef) -> usize {
        let copies = self.publish_kept(io, message, Some(from)).copies;
        self.counts().commands_routed.add(copies as u64);
        copies
    }
}
