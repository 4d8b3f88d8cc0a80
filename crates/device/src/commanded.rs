//! Commands that come to a device, its replies, and its queries for them.

use muster_measure::digest;
use muster_model::{
    Answer, Answering, Command, DeviceId, Integrity, MessageId, Met, Micros, Outcome, Presence,
    Query, QueryOutcome, Receipt, ShedCause, Stamp, StreamId,
};
use muster_platform::CommandCopy;

use crate::agenda::DueMessage;
use crate::class::{Kind, Policy};
use crate::link::{State, Writing};
use crate::session::{Interaction, Session};
use crate::slots::{SlotId, Taken};
use crate::token::Token;
use crate::{Shard, Sink};

/// For so long a link has just come up again.
const RECENT: Micros = Micros::from_secs(1);

impl<P: Session, S: Sink> Shard<P, S> {
    /// A command of the schedule is due: where does its device stand?
    pub(crate) fn meet(&mut self, message: DueMessage, link: u32, now: Micros) {
        let met = Met {
            id: self.id_of(&message),
            due: message.due,
            presence: self.presence(&message, link, now),
        };
        self.tell_command(message.stream, Command::Met(met));
    }

    fn presence(&self, message: &DueMessage, at: u32, now: Micros) -> Presence {
        let is_absent = match self.stream(message.stream).kind {
            Kind::Command { to, .. } => to.is_absent(message.device, message.seq),
            Kind::Uplink | Kind::Query { .. } | Kind::Receive { .. } => false,
        };
        let link = &self.links[at as usize];
        if is_absent || link.state != State::Up {
            Presence::Offline
        } else if P::INTERACTION == Interaction::Asks
            && self.query_under_way(at, message.device).is_some()
        {
            Presence::Waiting
        } else if link.ups > 1 && now - link.since < RECENT {
            Presence::Reconnected
        } else {
            Presence::Online
        }
    }

    /// The query of a device that waits for its answer.
    fn query_under_way(&self, link: u32, device: DeviceId) -> Option<SlotId> {
        let first = self.links[link as usize].flight.first();
        let mut flight = std::iter::successors(first, |id| self.slots.after(*id));
        flight.find(|id| {
            let slot = self.slots.get(*id);
            slot.device == device && self.stream(slot.stream).is_query()
        })
    }

    /// Whether a device has a query of that stream under way, or one that waits for its turn.
    pub(crate) fn has_query(&self, link: u32, message: &DueMessage) -> bool {
        let lane = self.lane_of(link, message.stream);
        let state = &self.links[link as usize];
        let gathered = match state.writing {
            Writing::Message(id) => Some(id),
            Writing::Nothing | Writing::Orphan => None,
        };
        let chains = [state.flight.first(), self.lanes[lane].queue.first()].into_iter();
        let chains = chains.flatten();
        let mut open = chains
            .flat_map(|first| std::iter::successors(Some(first), |id| self.slots.after(*id)))
            .chain(gathered);
        open.any(|id| {
            let slot = self.slots.get(id);
            (slot.device, slot.stream) == (message.device, message.stream)
        })
    }

    /// A copy of a command was published to a link: the first ends the query of its device.
    pub(crate) fn told_command(&mut self, link: u32, now: Micros, copy: &CommandCopy<'_>) {
        let whose = self.class(link).first_device_of(self.link_id(link));
        if let Some(stamp) = self.commanded(link, now, (copy, whose)) {
            self.end_query(link, now, stamp.id.device);
            self.reply_to(link, now, &stamp, |_| copy.request);
        }
    }

    /// A copy of a command came in the answer to a request, which may have been a query.
    pub(crate) fn answered_by_command(
        &mut self,
        link: u32,
        now: Micros,
        token: Token,
        copy: &CommandCopy<'_>,
    ) {
        let asked = self.slots.open_attempt(link, token);
        let asker = match asked {
            Some(id) => self.slots.get(id).device,
            None => self.class(link).first_device_of(self.link_id(link)),
        };
        let first = self.commanded(link, now, (copy, asker));
        self.request_accepted(link, token, now, true);
        let Some(stamp) = first else { return };
        if self.scratch.reply_path.is_empty() {
            return self.answer(stamp.id, now, Answering::OneWay);
        }
        self.reply_to(link, now, &stamp, |shard| {
            shard.reply_paths.keep(&mut shard.scratch.reply_path)
        });
    }

    /// Tells of a copy of a command, which is for the device beside it where it names none; its id, if
    /// it is the first copy of a command of this run for a device of the link.
    fn commanded(
        &mut self,
        link: u32,
        now: Micros,
        (copy, whose): (&CommandCopy<'_>, DeviceId),
    ) -> Option<Stamp> {
        let Some(place) = self.class(link).command_lane() else {
            if let Some(stream) = self.spokesman(link) {
                self.sink.counts(stream, now).commands_received += 1;
            }
            return None;
        };
        let stream = self.class(link).streams[place].id;
        let named = copy.device.map(|name| self.carried(link, name));
        let Some(device) = named.unwrap_or(Some(whose)) else {
            self.sink.counts(stream, now).commands_received += 1;
            return None;
        };
        self.account.command(stream).taken += 1;
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
        self.tell_command(stream, Command::Receipt(receipt));
        let is_planned = |seq: u32| match self.stream(stream).kind {
            Kind::Command {
                most_per_device, ..
            } => seq < most_per_device,
            Kind::Uplink | Kind::Query { .. } | Kind::Receive { .. } => false,
        };
        let is_its = |id: &MessageId| {
            (id.run, id.device, id.stream) == (self.run, device, stream) && is_planned(id.seq)
        };
        let stamp = copy.stamp.filter(|stamp| is_its(&stamp.id))?;
        if !self.is_first_copy(link, &stamp.id) {
            return None;
        }
        let account = self.account.command(stream);
        account.received.add(digest(&stamp.id));
        Some(stamp)
    }

    /// The device of that name, if the link carries it.
    fn carried(&self, link: u32, name: &str) -> Option<DeviceId> {
        let class = self.class(link);
        let device = class.roster.device_named(name)?;
        let is_here = class.devices().contains(&device.0);
        let ramp = &self.ramps[self.links[link as usize].class as usize];
        (is_here && ramp.first + class.link_of(device) == link).then_some(device)
    }

    fn is_first_copy(&mut self, link: u32, id: &MessageId) -> bool {
        let class = self.links[link as usize].class as usize;
        let place = id.device.0 - self.classes[class].devices().start;
        let seen = self.ramps[class].first_seen + place;
        self.commands_seen[seen as usize].insert(id.seq)
    }

    /// The reply to a command waits like any other message, unless there is no room for it; `request`
    /// tells what its slot keeps of the command.
    fn reply_to(
        &mut self,
        link: u32,
        now: Micros,
        stamp: &Stamp,
        request: impl FnOnce(&mut Self) -> u32,
    ) {
        let id = stamp.id;
        let stream = self.stream(id.stream);
        let bound = match stream.policy {
            Policy::Queue { bound, .. } => bound,
            Policy::Shed { .. } | Policy::Closed => u32::MAX,
        };
        if !matches!(
            stream.kind,
            Kind::Command {
                is_two_way: true,
                ..
            }
        ) {
            return self.answer(id, now, Answering::OneWay);
        }
        let lane = self.lane_of(link, id.stream);
        if self.lanes[lane].queued >= self.per_link(link, bound) {
            return self.answer(id, now, Answering::Shed(ShedCause::QueueFull));
        }
        let reply = Taken {
            due: now,
            taken: now,
            own: self.own.taken_at_once(now),
            device: id.device,
            seq: id.seq,
            link,
            stream: id.stream,
        };
        let Some(slot) = self.slots.take(reply) else {
            return self.answer(id, now, Answering::Shed(ShedCause::GeneratorLimit));
        };
        let request = request(self);
        let place = self.slots.get_mut(slot);
        place.issued = stamp.due.unwrap_or(now);
        place.request = request;
        self.slots.push_back(&mut self.lanes[lane].queue, slot);
        self.lanes[lane].queued += 1;
    }

    /// An answer that is final as soon as it is due.
    fn answer(&mut self, id: MessageId, now: Micros, outcome: Answering) {
        let answer = Answer {
            id,
            due: now,
            sent: None,
            ended: now,
            outcome,
            own: Micros::ZERO,
        };
        self.tell_command(id.stream, Command::Answer(answer));
    }

    /// The final word on a reply: told, and its slot given back.
    pub(crate) fn finalise_reply(&mut self, id: SlotId, at: Micros, outcome: Outcome) {
        let slot = self.slots.get(id);
        let answer = Answer {
            id: self.message_id(id),
            due: slot.due,
            sent: slot.sent,
            ended: at,
            outcome: Answering::of(outcome),
            own: self.own.until(slot.own, slot.due, at),
        };
        let (stream, request) = (slot.stream, slot.request);
        if P::INTERACTION == Interaction::Asks {
            self.reply_paths.release(request);
        }
        self.tell_command(stream, Command::Answer(answer));
        self.slots.release(id);
    }

    /// A command ends the query of its device, whatever the transport says of that.
    fn end_query(&mut self, link: u32, now: Micros, device: DeviceId) {
        let Some(id) = self.query_under_way(link, device) else {
            return;
        };
        if !self.slots.get(id).is_asking {
            self.forget(link, id);
        }
        self.slots.get_mut(id).has_command = true;
        self.answered(id, now);
        self.finalise(id, now, Outcome::Accepted);
    }

    /// The final word on a query, beside that on the message that asked.
    pub(crate) fn finalise_query(&mut self, id: SlotId, at: Micros, outcome: Outcome) {
        let slot = self.slots.get(id);
        let stream = slot.stream;
        if !self.stream(stream).is_query() || slot.sent.is_none() {
            return;
        }
        let of_message = QueryOutcome::of(outcome);
        let outcome = of_message.filter(|_| !slot.has_command);
        let query = Query {
            id: self.message_id(id),
            due: slot.due,
            taken: slot.taken,
            ended: at,
            outcome: outcome.unwrap_or(QueryOutcome::Received),
            own: self.own.until(slot.own, slot.due, at),
        };
        self.tell_command(stream, Command::Query(query));
    }

    /// Counts here what is told there.
    fn tell_command(&mut self, stream: StreamId, command: Command) {
        self.account.command(stream).tell(&command);
        self.sink.command(&command);
    }
}
