//! From due to the bytes of a packet, and what became of them.

use muster_model::{Cause, Micros, ShedCause, StreamId};
use muster_plan::Policy;

use super::{Shard, Unsendable};
use crate::links::State;
use crate::messages::WriteBlock;
use crate::session::{Outgoing, Session, Unsent};
use crate::sink::Sink;
use crate::slots::{SlotId, Stage};
use crate::traffic::{ConnectAttempt, in_flight_of};

impl<P: Session, S: Sink> Shard<P, S> {
    /// Takes the next message that is due by `now`; answers with the link it waits on, which the
    /// driver then pumps. If the message is a connection attempt, the link may have a deadline now
    /// ([`Links::is_renewing`](crate::Links::is_renewing)).
    #[inline]
    pub fn take_due(&mut self, now: Micros) -> Option<u32> {
        let link = self.traffic.take_due(&self.links, now)?;
        self.wake(link, now);
        if let Some(attempt) = ConnectAttempt::of(&mut self.traffic, link) {
            let is_connecting = self.links.get(link).is_connecting();
            if is_connecting && !attempt.has_begun() {
                attempt.miss(now);
            } else if self.links.renew(link) {
                self.retry(link, now);
            }
        }
        Some(link)
    }

    /// Ends an attempt whose answer is overdue; answers with its link, which the driver then
    /// pumps, for what waited behind the attempt may go now.
    pub fn expire(&mut self, now: Micros) -> Option<u32> {
        let (link, forgotten) = self.traffic.expire(now)?;
        self.forget(link, forgotten);
        Some(link)
    }

    /// Nothing went out of the message that was rendered last, and nothing will: there was no buffer of
    /// ours for it, or the kernel would not have it.
    pub fn unsent(&mut self, link: u32, at: Micros, cause: ShedCause) {
        let forgotten = self.traffic.unsent(link, at, cause);
        self.forget(link, forgotten);
    }

    /// After a link was pumped: what its stream's policy does not let wait is shed.
    pub fn shed_excess(&mut self, link: u32, now: Micros) {
        for place in 0..self.fleets().class(link).streams.len() {
            while let Some((id, cause)) = self.excess(link, place, now) {
                self.traffic.shed(id, now, cause);
            }
        }
    }

    /// The first message of a stream that may not wait, and why.
    fn excess(&self, link: u32, place: usize, now: Micros) -> Option<(SlotId, ShedCause)> {
        let (fleets, messages) = (self.traffic.fleets(), self.traffic.messages());
        let stream = &fleets.class(link).streams[place];
        let Policy::Shed { in_flight } = stream.policy else {
            return None;
        };
        let limit = fleets.per_link(link, in_flight);
        let is_query = stream.is_query();
        let queue = fleets.first_queue(link) + place;
        let first = messages.unsent_beyond(queue, 0)?;
        if messages.flying(queue) >= limit {
            return Some((first, in_flight_of(is_query)));
        }
        if self.links.get(link).is_waking() {
            // The link connects for these.
            let beyond = messages.unsent_beyond(queue, limit as usize)?;
            return Some((beyond, in_flight_of(is_query)));
        }
        let obstacle = self.obstacle(link, now);
        let is_brief = [ShedCause::Window, ShedCause::SocketFull].contains(&obstacle);
        if is_brief && is_query {
            // Another message of the link is under way, or on its way to a socket that is shared: a
            // query waits for its end, and one of each device is enough.
            let beyond = messages.unsent_beyond(queue, limit as usize)?;
            return Some((beyond, ShedCause::Busy));
        }
        let outbox = messages.outbox(link);
        if outbox.write_block() == WriteBlock::Gathering && obstacle == ShedCause::InFlight {
            // Nothing is full: until the end of the turn as many wait as may go then.
            let gathered = outbox.written().map(|id| messages.get(id).stream);
            let is_gathered = gathered == Some(stream.id);
            let room = limit - messages.flying(queue) - u32::from(is_gathered);
            let beyond = messages.unsent_beyond(queue, room as usize)?;
            return Some((beyond, in_flight_of(is_query)));
        }
        Some((first, obstacle))
    }

    /// Renders the next message that may go on a link into `out`; false if none may.
    ///
    /// The driver writes `out` and then calls [`Traffic::written`], [`Traffic::held`] or
    /// [`Traffic::gathered`], and after `written` asks again. Datagrams of
    /// [`SharedSockets::take_further`] are no message's first, and have calls for themselves.
    ///
    /// [`SharedSockets::take_further`]: crate::SharedSockets::take_further
    /// [`Traffic::written`]: crate::Traffic::written
    /// [`Traffic::held`]: crate::Traffic::held
    /// [`Traffic::gathered`]: crate::Traffic::gathered
    pub fn render_next(&mut self, link: u32, now: Micros, out: &mut Vec<u8>) -> bool {
        loop {
            let is_free = self.traffic.messages().outbox(link).is_free();
            if self.links.get(link).state() != State::Up || !is_free {
                return false;
            }
            if self.session.has_first() {
                let (session, mut view) = self.view(now);
                if session.render_first(&mut view.at(link), out) {
                    return true;
                }
            }
            let Some(id) = self.next_message(link, now) else {
                return false;
            };
            match self.render(id, now, out) {
                Ok(()) => return true,
                Err(Unsent::Waits) => return false,
                Err(Unsent::Silence) => {
                    let outbox = self.traffic.messages_mut().outbox_mut(link);
                    outbox.set_waits_for_silence(true);
                    return false;
                }
                Err(Unsent::Limit) if self.traffic.messages().get(id).sent.is_some() => {
                    return false;
                }
                Err(Unsent::Limit) => self.traffic.shed(id, now, ShedCause::GeneratorLimit),
                Err(Unsent::Never(why)) => {
                    if self.unsendable == Unsendable::Nothing {
                        let stream = self.traffic.messages().get(id).stream;
                        self.unsendable = Unsendable::First(stream, why);
                    }
                    let forgotten = self.traffic.give_up(id, now, Cause::Unsendable);
                    self.forget(link, forgotten);
                }
                Err(Unsent::SessionLost) => {
                    let forgotten = self.traffic.give_up(id, now, Cause::SessionLost);
                    self.forget(link, forgotten);
                }
            }
        }
    }

    /// The message that goes next on a link: again, before anything new.
    #[inline]
    fn next_message(&self, link: u32, now: Micros) -> Option<SlotId> {
        let again = self.traffic.messages().outbox(link).first_again();
        if again.is_some() || self.is_leaving(link, now) {
            return again;
        }
        self.traffic.next_waiting(link, self.window_free(link) > 0)
    }

    #[inline]
    fn render(
        &mut self,
        id: SlotId,
        now: Micros,
        out: &mut Vec<u8>,
    ) -> Result<(), Unsent<P::Unfit>> {
        let before = out.len();
        let (session, mut view) = self.view(now);
        let stream_index = view.messages.render_body(id);
        let slot = view.messages.slots.get(id);
        let (link, is_again) = (slot.link, slot.stage == Stage::Again);
        let is_tracked = view.messages.fleets.stream(slot.stream).is_tracked();
        let message = Outgoing {
            slot: id,
            stream_index,
            is_tracked,
        };
        if is_again {
            session.resubmit(&mut view.at(link), &message, out)?;
        } else {
            let key = session.submit(&mut view.at(link), &message, out)?;
            if is_tracked {
                view.messages.slots.get_mut(id).exchange = key;
            }
        }
        self.traffic.hand_out(id, now, out.len() - before);
        Ok(())
    }

    /// The first message that the peer's declared limits never let through, and which of them,
    /// once.
    pub fn take_unsendable(&mut self) -> Option<(StreamId, P::Unfit)> {
        let Unsendable::First(stream, why) = self.unsendable else {
            return None;
        };
        self.unsendable = Unsendable::Reported;
        Some((stream, why))
    }
}
