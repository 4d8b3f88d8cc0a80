//! From due to waiting on a link, or shed before that.

use muster_model::{Attempt, MessageId, Micros, Outcome, ShedCause};

use crate::agenda::DueMessage;
use crate::class::Policy;
use crate::link::{Hold, Writing};
use crate::session::Session;
use crate::slots::{SlotId, Taken};
use crate::{Shard, Sink};

impl<P: Session, S: Sink> Shard<P, S> {
    /// Takes the next message that is due by `now`; answers with the link it waits on, which the
    /// driver then pumps.
    pub fn take_due(&mut self, now: Micros) -> Option<u32> {
        let message = self.agenda.pop(now)?;
        let link = self.link_of(message.stream, message.device);
        self.take(message, link, now);
        Some(link)
    }

    /// When the next message is due.
    pub fn next_due(&self) -> Option<Micros> {
        self.agenda.next()
    }

    /// After a link was pumped: what its stream's policy does not let wait is shed.
    pub fn shed_excess(&mut self, link: u32, now: Micros) {
        let streams = self.class(link).streams.len();
        for lane in 0..streams {
            let Policy::Shed { in_flight } = self.class(link).streams[lane].policy else {
                continue;
            };
            let limit = self.per_link(link, in_flight);
            while let Some((id, cause)) = self.excess(link, lane, limit, now) {
                self.unqueue(link, id);
                self.finalise(id, now, Outcome::Shed(cause));
            }
        }
    }

    /// The first message of a lane that may not wait, and why.
    fn excess(
        &self,
        link: u32,
        lane: usize,
        limit: u32,
        now: Micros,
    ) -> Option<(SlotId, ShedCause)> {
        let index = self.first_lane(link) + lane;
        let is_query = self.class(link).streams[lane].is_query();
        let first = self.unsent_beyond(index, 0)?;
        if self.lanes[index].flying >= limit {
            return Some((first, in_flight_of(is_query)));
        }
        let obstacle = self.obstacle(link, now);
        let is_brief = [ShedCause::Window, ShedCause::SocketFull].contains(&obstacle);
        if is_brief && is_query {
            // Another message of the link is under way, or on its way to a socket that is shared: a
            // query waits for its end, and one of each device is enough.
            return Some((self.unsent_beyond(index, limit as usize)?, ShedCause::Busy));
        }
        let is_gathering = self.links[link as usize].hold == Hold::Gathering;
        if is_gathering && obstacle == ShedCause::InFlight {
            // Nothing is full: until the end of the turn as many wait as may go then.
            let room = limit - self.lanes[index].flying - self.gathered_of(link, index);
            let beyond = self.unsent_beyond(index, room as usize)?;
            return Some((beyond, in_flight_of(is_query)));
        }
        Some((first, obstacle))
    }

    /// Messages of a lane that go at the end of the turn: one, or none.
    fn gathered_of(&self, link: u32, lane: usize) -> u32 {
        let Writing::Message(id) = self.links[link as usize].writing else {
            return 0;
        };
        u32::from(self.lane_of(link, self.slots.get(id).stream) == lane)
    }

    /// The first message of a lane behind so many that never went out; what is tried again was sent,
    /// and waits.
    fn unsent_beyond(&self, lane: usize, count: usize) -> Option<SlotId> {
        let first = self.lanes[lane].queue.first();
        let queue = std::iter::successors(first, |id| self.slots.after(*id));
        let mut unsent = queue.filter(|id| self.slots.get(*id).sent.is_none());
        unsent.nth(count)
    }

    /// A message that is shed before it has a slot.
    pub(crate) fn shed_untaken(
        &mut self,
        message: DueMessage,
        taken: Option<Micros>,
        now: Micros,
        cause: ShedCause,
    ) {
        let id = self.id_of(&message);
        let outcome = Outcome::Shed(cause);
        self.account.ended(&id, &outcome, false);
        self.sink.attempt(&Attempt {
            id,
            due: message.due,
            taken,
            sent: None,
            ended: now,
            outcome,
            resent: false,
            own: taken.map_or(Micros::ZERO, |taken| taken - message.due),
        });
        self.agenda.ended(message.stream, message.device, now);
    }

    /// A closed loop counts what it makes due; an open stream's schedule is counted by itself.
    pub(crate) fn account_closed(&mut self, message: &DueMessage) {
        if self.stream(message.stream).policy == Policy::Closed {
            let id = self.id_of(message);
            self.account.scheduled(&id);
        }
    }

    fn take(&mut self, message: DueMessage, link: u32, now: Micros) {
        let own = self.own.taken(message.due, now);
        if self.stream(message.stream).is_command() {
            return self.meet(message, link, now);
        }
        self.account_closed(&message);
        if now - message.due > self.max_lateness {
            return self.shed_untaken(message, Some(now), now, ShedCause::GeneratorLate);
        }
        if self.is_busy(link, &message) {
            return self.shed_untaken(message, Some(now), now, ShedCause::Busy);
        }
        let lane = self.lane_of(link, message.stream);
        let bound = match self.stream(message.stream).policy {
            Policy::Queue { bound, .. } => self.per_link(link, bound),
            Policy::Shed { .. } | Policy::Closed => u32::MAX,
        };
        if self.lanes[lane].queued >= bound {
            return self.shed_untaken(message, Some(now), now, ShedCause::QueueFull);
        }
        let taken = Taken {
            due: message.due,
            taken: now,
            own,
            device: message.device,
            seq: message.seq,
            link,
            stream: message.stream,
        };
        let Some(id) = self.slots.take(taken) else {
            return self.shed_untaken(message, Some(now), now, ShedCause::GeneratorLimit);
        };
        self.slots.push_back(&mut self.lanes[lane].queue, id);
        self.lanes[lane].queued += 1;
    }

    /// Whether the device of a query has another one open that its link's sum of bounds does not see:
    /// on a link of many devices those that are left over are not its own.
    fn is_busy(&self, link: u32, message: &DueMessage) -> bool {
        let stream = self.stream(message.stream);
        let is_bounded = matches!(stream.policy, Policy::Shed { .. }) && stream.is_query();
        is_bounded && self.class(link).devices_per_link > 1 && self.has_query(link, message)
    }

    pub(crate) fn id_of(&self, message: &DueMessage) -> MessageId {
        MessageId {
            run: self.run,
            device: message.device,
            stream: message.stream,
            seq: message.seq,
        }
    }
}

/// What holds a message back whose device has as many under way as it may: a query goes by itself.
pub(crate) const fn in_flight_of(is_query: bool) -> ShedCause {
    if is_query {
        ShedCause::Busy
    } else {
        ShedCause::InFlight
    }
}
