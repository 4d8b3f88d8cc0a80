//! What happens to a message that a client published.

use std::sync::Arc;

use muster_model::{Micros, mix};
use muster_net::{Io, Key, ReadLimit};
use muster_protocol::mqtt::{Incoming, Pending, Publish, Qos};

use super::acknowledging::Asked;
use super::alarms::Alarm;
use super::answering::Asker;
use super::link::Pause;
use super::{SessionRef, Shard};
use crate::config::SlowReader;
use crate::fate::Fate;
use crate::message::{Message, with_properties};
use crate::plot::Turn;
use crate::shared::locked;

/// The receive buffer of a slow reader: a few packets, so that the sender soon feels it.
const SLOW_BUFFER_BYTES: usize = 4 * 1024;
/// How often it is looked whether uplinks wait in vain to be overtaken.
const OVERTAKING_LOOK: Micros = Micros::from_millis(250);
/// How long no uplink came when they do: then the traffic has ended.
const OVERTAKING_QUIET: Micros = Micros::from_secs(1);

/// An uplink whose fate is known.
#[derive(Debug)]
pub(crate) struct Uplink {
    asker: Asker,
    /// Whose subscriptions with "no local" get no copy.
    from: Option<SessionRef>,
    message: Arc<Message>,
    hash: u64,
    fate: Fate,
    /// The acknowledgement by the application that it wants, if the dialect has any.
    asked: Option<Asked>,
}

impl Uplink {
    /// What a peer of CoAP uploads.
    pub(super) fn of_peer(asker: Asker, message: Arc<Message>) -> Self {
        Self {
            asker,
            from: None,
            hash: message.hash(),
            message,
            fate: Fate::Behave,
            asked: None,
        }
    }

    pub(super) fn fate(&self) -> Fate {
        self.fate
    }
}

impl Shard {
    pub(super) fn uplink(&mut self, io: &mut Io, key: Key, incoming: &Incoming<'_>) {
        let Some(link) = self.link(key) else { return };
        let Some(from) = link.session else { return };
        let name = link.name.clone();
        if !std::mem::replace(&mut link.has_published, true) {
            self.slow_down(io, key);
        }
        let dialect = self.shared.config.dialect;
        if (dialect.server.command)(&incoming.topic).is_some() {
            return self.command(io, key, incoming, from);
        }
        let name = name.as_deref().unwrap_or_default();
        let mut topic = String::new();
        let said =
            (dialect.server.surfaced_reply)(name, &incoming.topic, incoming.payload, &mut topic);
        if let Some(said) = said {
            return self.reply(io, key, incoming, (from, &topic, said));
        }
        self.hear(io, key, incoming);
    }

    /// An uplink on its way to whoever subscribed to the topic that it surfaces on.
    pub(super) fn put(
        &mut self,
        io: &mut Io,
        key: Key,
        incoming: &Incoming<'_>,
        (topic, pending): (&str, Option<Pending>),
    ) {
        let Some(from) = self.link(key).and_then(|link| link.session) else {
            return;
        };
        let mut user = Vec::new();
        let retain = incoming.retain && self.shared.config.dialect.is_broker;
        let publish = Publish {
            topic,
            retain,
            ..published(incoming, &mut user)
        };
        if !self.shared.behaves {
            let message = Arc::new(Message::new(&publish, io.now()));
            let hash = message.hash();
            let uplink = Uplink {
                asker: Asker::Link { key, pending },
                from: Some(from),
                message,
                hash,
                fate: Fate::Behave,
                asked: None,
            };
            return self.plot(io, uplink, incoming.dup);
        }
        let routed = self.publish(io, &publish, Some(from), None);
        self.counts().processed.more();
        if routed.is_congested {
            self.hold_back(io, key);
        }
        self.accept(key, pending, routed.copies);
    }

    /// An uplink that wants an acknowledgement by the application.
    pub(super) fn ask(&mut self, io: &mut Io, key: Key, incoming: &Incoming<'_>, asked: Asked) {
        if self.shared.behaves {
            let yes = self.shared.config.dialect.server.acceptance;
            return self.acknowledge(io, key, asked, yes);
        }
        let Some(from) = self.link(key).and_then(|link| link.session) else {
            return;
        };
        let mut user = Vec::new();
        let message = Arc::new(Message::new(&published(incoming, &mut user), io.now()));
        let uplink = Uplink {
            asker: Asker::Link { key, pending: None },
            from: Some(from),
            hash: message.hash(),
            message,
            fate: Fate::Behave,
            asked: Some(asked),
        };
        self.plot(io, uplink, incoming.dup);
    }

    /// A link has turned out to be a publisher, which may have to be read slowly.
    fn slow_down(&self, io: &mut Io, key: Key) {
        if let Some(SlowReader { bytes, every }) = self.shared.config.slow_reader {
            io.set_receive_buffer(key, SLOW_BUFFER_BYTES);
            io.set_read_limit(key, Some(ReadLimit { bytes, every }));
        }
    }

    /// The long way: something is wrong with this gateway. `again` says that the uplink has DUP.
    pub(super) fn plot(&mut self, io: &mut Io, uplink: Uplink, again: bool) {
        let now = io.now();
        self.last_uplink = now;
        if self.shared.is_first_uplink(now) {
            self.tell_first_uplink(io, now);
        }
        let turn = locked(&self.shared.plot).turn(now, uplink.hash, again);
        let asker = uplink.asker;
        match turn {
            Turn::Dropped => {
                self.counts().capacity_dropped.more();
                match uplink.asked {
                    Some(_) => self.counts().unanswered.more(),
                    None => self.leave_unanswered(asker),
                }
            }
            Turn::Rejected => {
                self.counts().capacity_rejected.more();
                let refusal = self.shared.config.dialect.server.refusal;
                match uplink.asked {
                    Some(asked) => self.acknowledge(io, asked.key, asked, refusal),
                    None => self.say_no(io, asker, refusal),
                }
            }
            Turn::Taken {
                fate,
                done,
                blocked_until,
            } => {
                if let Some(until) = blocked_until {
                    self.counts().capacity_blocked.more();
                    if let Some(key) = self.read_by(asker) {
                        self.pause(io, key, Pause::Capacity);
                        self.set_alarm(io, until, Alarm::Unblock(key));
                    }
                }
                let uplink = Uplink { fate, ..uplink };
                if done > now {
                    self.set_alarm(io, done, Alarm::Settle(Box::new(uplink)));
                } else {
                    self.settle(io, uplink);
                }
            }
        }
    }

    /// Makes the uplink's fate come true.
    pub(super) fn settle(&mut self, io: &mut Io, mut uplink: Uplink) {
        if let Some(asked) = uplink.asked.take() {
            self.book_asked(&uplink);
            return self.settle_asked(io, &uplink, asked);
        }
        let behaviour = self.shared.config.behaviour;
        let (now, asker, fate) = (io.now(), uplink.asker, uplink.fate);
        if fate != Fate::Reorder && fate != Fate::Behave {
            self.book(&uplink);
        }
        // What is lost, dropped or refused goes no further.
        if !fate.is_lasting() {
            self.counts().processed.more();
        }
        match fate {
            // The last two have no meaning where no application acknowledges.
            Fate::Behave | Fate::AnswerGarbled | Fate::AnswerUnknown => {
                let copies = self.put_through(io, &uplink);
                self.say_yes(io, asker, copies);
            }
            Fate::LoseAfterAccept => self.say_yes(io, asker, 1),
            Fate::Drop => self.leave_unanswered(asker),
            Fate::Ignore => {
                self.put_through(io, &uplink);
                self.leave_unanswered(asker);
            }
            Fate::AnswerLate => {
                let copies = self.put_through(io, &uplink);
                if let Some(asker) = self.put_off(io, asker) {
                    let late = Alarm::Answer { asker, copies };
                    self.set_alarm(io, now + behaviour.answer_late.by, late);
                }
            }
            Fate::AnswerTwice => {
                let copies = self.put_through(io, &uplink);
                self.say_yes_twice(io, asker, copies);
            }
            Fate::Duplicate => {
                let copies = self.put_through(io, &uplink);
                self.put_through(io, &uplink);
                self.say_yes(io, asker, copies);
            }
            Fate::Reorder => {
                self.say_yes(io, asker, 1);
                self.let_overtake(io, uplink);
            }
            Fate::DeliverLate => {
                self.say_yes(io, asker, 1);
                self.deliver_at(io, now + behaviour.deliver_late.by, uplink);
            }
            Fate::Corrupt => {
                let copies = self.put_through(io, &self.corrupted(uplink));
                self.say_yes(io, asker, copies);
            }
            Fate::Reject => self.say_no(io, asker, self.reject_code()),
            Fate::RejectButDeliver => {
                match behaviour.reject_but_deliver.by {
                    Micros::ZERO => _ = self.put_through(io, &uplink),
                    by => self.deliver_at(io, now + by, uplink),
                }
                self.say_no(io, asker, self.reject_code());
            }
        }
    }

    fn deliver_at(&mut self, io: &mut Io, at: Micros, uplink: Uplink) {
        let late = Alarm::Deliver {
            from: uplink.from,
            message: uplink.message,
        };
        self.set_alarm(io, at, late);
    }

    /// Delivers, and then what this uplink was to overtake.
    fn put_through(&mut self, io: &mut Io, uplink: &Uplink) -> usize {
        let routed = self.publish_kept(io, &uplink.message, uplink.from);
        if routed.is_congested {
            self.hold_back_asker(io, uplink.asker);
        }
        let Some(waiting) = self.overtaken_of(uplink.asker) else {
            return routed.copies;
        };
        let topic = &uplink.message.topic;
        let overtaken = waiting.extract_if(.., |held| held.message.topic == *topic);
        for held in overtaken.collect::<Vec<Uplink>>() {
            self.book(&held);
            self.publish_kept(io, &held.message, held.from);
        }
        routed.copies
    }

    /// Writes into the account what befell an uplink. What is wrong with an answer cannot befall
    /// an uplink that has none.
    fn book(&mut self, uplink: &Uplink) {
        let about_answer = matches!(
            uplink.fate,
            Fate::Ignore | Fate::AnswerLate | Fate::AnswerTwice
        );
        if !about_answer || uplink.asker.is_answered() {
            locked(&self.shared.plot)
                .misdeeds
                .book(uplink.fate, uplink.hash);
        }
    }

    fn book_asked(&self, uplink: &Uplink) {
        if uplink.fate != Fate::Behave {
            let mut plot = locked(&self.shared.plot);
            plot.misdeeds.book(uplink.fate, uplink.hash);
        }
    }

    fn let_overtake(&mut self, io: &mut Io, uplink: Uplink) {
        let asker = uplink.asker;
        let Some(waiting) = self.overtaken_of(asker) else {
            self.publish_kept(io, &uplink.message, uplink.from);
            return;
        };
        waiting.push(uplink);
        if self.overtaken.is_empty() {
            self.set_alarm(io, io.now() + OVERTAKING_LOOK, Alarm::Overtaken);
        }
        self.overtaken.push(asker);
    }

    /// Delivers uplinks that nothing overtook, once the traffic has ended; they were not
    /// reordered and are not booked.
    pub(super) fn release_overtaken(&mut self, io: &mut Io) {
        if io.now() < self.last_uplink + OVERTAKING_QUIET {
            self.set_alarm(io, io.now() + OVERTAKING_LOOK, Alarm::Overtaken);
            return;
        }
        for asker in std::mem::take(&mut self.overtaken) {
            let held = self.overtaken_of(asker).map(std::mem::take);
            self.deliver_overtaken(io, held.unwrap_or_default());
        }
    }

    pub(super) fn deliver_overtaken(&mut self, io: &mut Io, held: Vec<Uplink>) {
        for uplink in held {
            self.publish_kept(io, &uplink.message, uplink.from);
        }
    }

    /// The uplink with one bit flipped; an empty payload has none to flip.
    fn corrupted(&self, uplink: Uplink) -> Uplink {
        let bits = uplink.message.payload.len() as u64 * 8;
        if bits == 0 {
            return uplink;
        }
        let mut message = (*uplink.message).clone();
        let bit = mix(self.shared.config.seed, uplink.hash) % bits;
        message.payload[(bit / 8) as usize] ^= 1 << (bit % 8);
        Uplink {
            message: Arc::new(message),
            ..uplink
        }
    }
}

/// An uplink as it was published.
pub(super) fn published<'a>(
    incoming: &'a Incoming<'_>,
    user: &'a mut Vec<(&'a str, &'a str)>,
) -> Publish<'a> {
    let plain = Publish {
        qos: incoming.qos,
        retain: incoming.retain,
        ..Publish::new(&incoming.topic, incoming.payload)
    };
    with_properties(plain, incoming.properties, user)
}

/// Whether a copy is dropped rather than waited for.
pub(super) fn may_be_dropped(qos: Qos) -> bool {
    qos == Qos::AtMostOnce
}
