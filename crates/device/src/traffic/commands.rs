//! Commands that come to a device, its replies, and its queries for them.

use muster_measure::{SeqSet, digest};
use muster_model::{
    Answer, Answering, Command, DeviceId, Integrity, MessageId, Met, Micros, Outcome, Presence,
    Receipt, ShedCause, Stamp,
};
use muster_platform::CommandCopy;

use super::Traffic;
use crate::agenda::DueMessage;
use crate::class::{Class, Kind};
use crate::links::{Link, State};
use crate::messages::Forgotten;
use crate::session::Session;
use crate::sink::Sink;
use crate::slots::{Admission, SlotId};
use crate::token::Token;

/// For so long a link has just come up again.
const RECENT: Micros = Micros::from_secs(1);

/// Commands that came, by device of the fleets that take any.
#[derive(Debug, Default)]
pub(super) struct CommandsSeen {
    seen: Vec<SeqSet>,
    /// By class: the place of its first device; of no meaning where it takes none.
    first: Vec<usize>,
}

impl CommandsSeen {
    /// Makes room for the next class.
    pub(super) fn add<C>(&mut self, class: &Class<C>) {
        let first = self.seen.len();
        self.first.push(first);
        if class.command_stream().is_some() {
            let seen = first + class.devices().len();
            self.seen.resize(seen, SeqSet::default());
        }
    }

    /// A command came to a device, as its place in its class: whether for the first time.
    fn insert(&mut self, class: usize, place: u32, seq: u32) -> bool {
        self.seen[self.first[class] + place as usize].insert(seq)
    }
}

impl<P: Session, S: Sink> Traffic<P, S> {
    /// A command of the schedule is due: where does its device stand?
    pub(super) fn meet(&mut self, message: &DueMessage, link: &Link, now: Micros) {
        let met = Met {
            id: self.fleets.id_of(message),
            due: message.due,
            presence: self.presence(message, link, now),
        };
        self.recording.command(message.stream, Command::Met(met));
    }

    fn presence(&self, message: &DueMessage, link: &Link, now: Micros) -> Presence {
        let is_absent = match self.fleets.stream(message.stream).kind {
            Kind::Command { to, .. } => to.is_absent(message.device, message.seq),
            Kind::Uplink | Kind::Query { .. } | Kind::Receive { .. } | Kind::Connect => false,
        };
        let asks = || {
            let link = self.fleets.link_of(message);
            self.messages
                .query_of(&self.fleets, link, message.device)
                .is_some()
        };
        if is_absent || !matches!(link.state(), State::Up | State::Resting) {
            Presence::Offline
        } else if P::PROTOCOL.asks && asks() {
            Presence::Waiting
        } else if link.ups() > 1 && now - link.since() < RECENT {
            Presence::Reconnected
        } else {
            Presence::Online
        }
    }

    /// A copy of a command was published to a link: the first ends the query of its device, which the
    /// session may forget.
    pub(crate) fn receive_command(
        &mut self,
        link: u32,
        now: Micros,
        copy: &CommandCopy<'_>,
    ) -> Option<Forgotten<P::Key>> {
        let stamp = self.commanded(link, now, copy, self.fleets.first_device_of(link))?;
        let forgotten = self.end_query(link, now, stamp.id.device);
        if !self.fleets.names_replies(link, P::PROTOCOL) {
            self.reply_to(link, now, &stamp, |_| copy.request);
        } else if copy
            .reply
            .is_some_and(|topic| topic.keep(&mut self.scratch.reply_path))
        {
            self.reply_to(link, now, &stamp, |traffic| {
                traffic.reply_paths.keep(&mut traffic.scratch.reply_path)
            });
        } else {
            self.recording
                .answered_at_once(stamp.id, now, Answering::OneWay);
        }
        forgotten
    }

    /// A copy of a command came in the answer to a request, which may have been a query, or as a notification,
    /// which answers none.
    pub(crate) fn answered_by_command(
        &mut self,
        link: u32,
        now: Micros,
        token: Option<Token>,
        copy: &CommandCopy<'_>,
    ) {
        let asked = token.and_then(|token| self.messages.slots().open_attempt(link, token));
        let asker = match asked {
            Some(id) => self.messages.get(id).device,
            None => self.fleets.first_device_of(link),
        };
        let first = self.commanded(link, now, copy, asker);
        if let Some(token) = token {
            self.request_accepted(link, token, now, true);
        }
        let Some(stamp) = first else { return };
        if self.scratch.reply_path.is_empty() {
            return self
                .recording
                .answered_at_once(stamp.id, now, Answering::OneWay);
        }
        self.reply_to(link, now, &stamp, |traffic| {
            traffic.reply_paths.keep(&mut traffic.scratch.reply_path)
        });
    }

    /// Reports a copy of a command, which is for `whose` where it names no device; its id, if it is the
    /// first copy of a command of this run for a device of the link.
    fn commanded(
        &mut self,
        link: u32,
        now: Micros,
        copy: &CommandCopy<'_>,
        whose: DeviceId,
    ) -> Option<Stamp> {
        let class = self.fleets.class(link);
        let Some(place) = class.command_stream() else {
            if let Some(stream) = self.fleets.spokesman(link) {
                self.recording.counts(stream, now).commands_received += 1;
            }
            return None;
        };
        let stream = class.streams[place].id;
        let named = copy.device.map(|name| self.fleets.carried(link, name));
        let Some(device) = named.unwrap_or(Some(whose)) else {
            self.recording.counts(stream, now).commands_received += 1;
            return None;
        };
        let first_of_run = self.fleets.message_id(device, stream, 0);
        self.recording.account().command(stream).taken += 1;
        let receipt = Receipt {
            device,
            stream,
            id: copy.stamp.map(|stamp| stamp.id),
            at: now,
            integrity: if copy.stamp.is_some() {
                Integrity::Intact
            } else {
                Integrity::Corrupted
            },
        };
        self.recording.command(stream, Command::Receipt(receipt));
        let is_planned = |seq: u32| match self.fleets.stream(stream).kind {
            Kind::Command {
                most_per_device, ..
            } => seq < most_per_device,
            Kind::Uplink | Kind::Query { .. } | Kind::Receive { .. } | Kind::Connect => false,
        };
        let is_its = |id: &MessageId| MessageId { seq: 0, ..*id } == first_of_run;
        let stamp = copy
            .stamp
            .filter(|stamp| is_its(&stamp.id) && is_planned(stamp.id.seq))?;
        let place = device.0 - self.fleets.class(link).devices().start;
        let class = self.fleets.ramp_of(link);
        if !self.commands_seen.insert(class, place, stamp.id.seq) {
            return None;
        }
        let account = self.recording.account().command(stream);
        account.received.add(digest(&stamp.id));
        Some(stamp)
    }

    /// Queues the reply to a command like any other message, unless there is no room for it; `request`
    /// is what its slot keeps of the command.
    fn reply_to(
        &mut self,
        link: u32,
        now: Micros,
        stamp: &Stamp,
        request: impl FnOnce(&mut Self) -> u32,
    ) {
        let id = stamp.id;
        let is_two_way = matches!(
            self.fleets.stream(id.stream).kind,
            Kind::Command {
                is_two_way: true,
                ..
            }
        );
        if !is_two_way {
            return self.recording.answered_at_once(id, now, Answering::OneWay);
        }
        if self.is_full(link, id.stream) {
            return self
                .recording
                .answered_at_once(id, now, Answering::Shed(ShedCause::QueueFull));
        }
        let reply = Admission {
            due: now,
            taken: now,
            own: self.own.taken_at_once(now),
            device: id.device,
            seq: id.seq,
            link,
            stream: id.stream,
        };
        let queue = self.fleets.queue_of(link, id.stream);
        let Some(slot) = self.messages.enqueue(queue, reply) else {
            return self.recording.answered_at_once(
                id,
                now,
                Answering::Shed(ShedCause::GeneratorLimit),
            );
        };
        let request = request(self);
        let place = self.messages.get_mut(slot);
        place.issued = stamp.due.unwrap_or(now);
        place.request = request;
    }

    /// Reports the final state of a reply and gives its slot back.
    pub(super) fn finalise_reply(&mut self, id: SlotId, at: Micros, outcome: Outcome) {
        let slot = self.messages.get(id);
        let (link, stream, request) = (slot.link, slot.stream, slot.request);
        let answer = Answer {
            id: self.fleets.message_id(slot.device, stream, slot.seq),
            due: slot.due,
            sent: slot.sent,
            ended: at,
            outcome: Answering::of(outcome),
            own: self.own.until(slot.own, slot.due, at),
        };
        if self.fleets.names_replies(link, P::PROTOCOL) {
            self.reply_paths.release(request);
        }
        self.recording.command(stream, Command::Answer(answer));
        self.messages.slots_mut().release(id);
    }

    /// A command ends the query of its device, whatever the transport says of that.
    fn end_query(&mut self, link: u32, now: Micros, device: DeviceId) -> Option<Forgotten<P::Key>> {
        let id = self.messages.query_of(&self.fleets, link, device)?;
        let slot = self.messages.get_mut(id);
        slot.has_command = true;
        let is_asking = slot.is_asking;
        let forgotten = (!is_asking).then(|| self.messages.forget(id));
        self.answered(id, now);
        self.finalise(id, now, Outcome::Accepted);
        forgotten
    }
}
