//! What happens to commands on their way to devices, and to the replies.

use std::sync::Arc;

use muster_net::{Io, Key};
use muster_platform::{CommandScratch, Commanded, Handing, Handover, Rewrite};
use muster_protocol::mqtt::{Incoming, Pending, Publish, reason};

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
        if !(self.shared.config.dialect.server.takes_command)(incoming.payload) {
            self.counts().unreadable.more();
            let code = u16::from(reason::PAYLOAD_FORMAT_INVALID);
            return self.reject(io, key, incoming.pending, code);
        }
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
                self.set_alarm(io, io.now() + by, Alarm::Command { from, message });
                1
            }
            Fate::Duplicate => {
                let copies = self.route(io, &message, from);
                self.route_again(io, &message, from);
                copies
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
        self.say_of_command(key, incoming.pending, copies);
    }

    /// Whoever issues commands hears that nobody was there, whatever devices hear of their messages.
    fn say_of_command(&mut self, key: Key, pending: Option<Pending>, copies: usize) {
        let code = match copies {
            0 => reason::NO_MATCHING_SUBSCRIBERS,
            _ => reason::SUCCESS,
        };
        if let Some(pending) = pending {
            self.answer(key, pending, code);
        }
    }

    /// A reply to a command, with what it surfaces as: routed as any message, and never treated badly.
    pub(super) fn reply(
        &mut self,
        io: &mut Io,
        key: Key,
        incoming: &Incoming<'_>,
        (from, topic, payload): (SessionRef, &str, &[u8]),
    ) {
        self.counts().replies.more();
        let mut user = Vec::new();
        let publish = Publish {
            topic,
            payload,
            ..published(incoming, &mut user)
        };
        let routed = self.publish(io, &publish, Some(from), None);
        if routed.is_congested {
            self.hold_back(io, key);
        }
        self.accept(key, incoming.pending, routed.copies);
    }

    /// Hands a command on, in the form that its device asked for.
    pub(super) fn route(&mut self, io: &mut Io, message: &Arc<Message>, from: SessionRef) -> usize {
        let dialect = self.shared.config.dialect;
        let copies = match dialect.server.handover {
            Handover::AsItCame => self.publish_kept(io, message, Some(from)).copies,
            Handover::Rewritten(rewrite) => self.hand(io, message, from, rewrite),
            Handover::InAnswer => self.hand_to_query(io, message),
        };
        self.counts().commands_routed.add(copies as u64);
        copies
    }

    /// Hands a second copy of a command on. Where that finds no device waiting nobody is told, for the
    /// first was handed on, or its notice was sent.
    fn route_again(&mut self, io: &mut Io, message: &Arc<Message>, from: SessionRef) {
        if matches!(
            self.shared.config.dialect.server.handover,
            Handover::InAnswer
        ) {
            let copies = self.pass_to_query(io, message).unwrap_or(0);
            self.counts().commands_routed.add(copies as u64);
        } else {
            self.route(io, message, from);
        }
    }

    fn hand(
        &mut self,
        io: &mut Io,
        message: &Message,
        from: SessionRef,
        rewrite: Rewrite,
    ) -> usize {
        let command = (self.shared.config.dialect.server.command)(&message.topic);
        let Some(Commanded { device, .. }) = command else {
            return 0;
        };
        let gateway = locked(&self.shared.gateways).get(device).cloned();
        let to = Handing {
            device,
            gateway: gateway.as_deref(),
            request: self.shared.next_request(),
        };
        let mut handed = CommandScratch::default();
        for form in 0.. {
            if !rewrite(form, &to, &message.payload, &mut handed) {
                break;
            }
            let publish = Publish {
                qos: message.qos,
                ..Publish::new(&handed.topic, &handed.payload)
            };
            let copies = self.publish(io, &publish, Some(from), None).copies;
            if copies > 0 {
                return copies;
            }
        }
        0
    }
}
