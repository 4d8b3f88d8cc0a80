//! From waiting to the bytes of a packet.

use muster_model::{Cause, Micros, Outcome, ShedCause, StreamId};

use crate::class::Policy;
use crate::link::{Hold, State, Writing};
use crate::session::{Outgoing, Session, Unsent, View};
use crate::shard::Unsendable;
use crate::slots::{SlotId, Stage};
use crate::{Qos, Shard, Sink};

impl<P: Session, S: Sink> Shard<P, S> {
    /// Renders the next message that may go on a link into `out`; false if none may.
    ///
    /// The driver writes `out` and then calls [`Shard::written`], [`Shard::held`] or
    /// [`Shard::gathered`], and after `written` asks again. What [`Shard::take_further`] tells of is
    /// no message's first datagram, and is told by its own calls.
    pub fn render_next(&mut self, link: u32, now: Micros, out: &mut Vec<u8>) -> bool {
        loop {
            let state = &self.links[link as usize];
            let is_free = state.hold == Hold::Nothing && state.writing == Writing::Nothing;
            if state.state != State::Up || !is_free {
                return false;
            }
            if self.session.has_first() {
                let (session, mut view) = self.view(now);
                if session.render_first(&mut view.at(link), out) {
                    return true;
                }
            }
            let state = &self.links[link as usize];
            let again = state.again.first();
            let is_leaving = self.is_leaving(link, now);
            let new = || self.next_waiting(link).filter(|_| !is_leaving);
            let Some(slot) = again.or_else(new) else {
                return false;
            };
            let rendered = match again {
                Some(_) => self.render_again(link, slot, now, out),
                None => self.render(link, slot, now, out),
            };
            match rendered {
                Ok(()) => return true,
                Err(Unsent::Waits) => return false,
                Err(Unsent::Silence) => {
                    self.links[link as usize].waits_for_silence = true;
                    return false;
                }
                Err(Unsent::Limit) if self.slots.get(slot).sent.is_some() => return false,
                Err(Unsent::Limit) => {
                    self.unqueue(link, slot);
                    let outcome = Outcome::Shed(ShedCause::GeneratorLimit);
                    self.finalise(slot, now, outcome);
                }
                Err(Unsent::Never(why)) => {
                    self.note_unsendable(slot, why);
                    self.give_up(link, slot, now, Cause::Unsendable);
                }
                Err(Unsent::SessionLost) => {
                    self.give_up(link, slot, now, Cause::SessionLost);
                }
            }
        }
    }

    pub(crate) fn per_link(&self, link: u32, per_device: u32) -> u32 {
        per_device.saturating_mul(self.class(link).devices_per_link)
    }

    /// The waiting message of a link that was due first, of the streams that may send.
    fn next_waiting(&self, link: u32) -> Option<SlotId> {
        let state = &self.links[link as usize];
        let streams = &self.classes[state.class as usize].streams;
        let lanes = &self.lanes[self.first_lane(link)..][..streams.len()];
        let has_window = self.window_free(link) > 0;
        let ready = streams.iter().zip(lanes).filter_map(|(stream, lane)| {
            if stream.qos != Qos::AtMostOnce && !has_window {
                return None;
            }
            let limit = match stream.policy {
                Policy::Queue {
                    in_flight: Some(limit),
                    ..
                }
                | Policy::Shed { in_flight: limit } => self.per_link(link, limit),
                Policy::Queue {
                    in_flight: None, ..
                }
                | Policy::Closed => u32::MAX,
            };
            if lane.flying < limit {
                lane.queue.first()
            } else {
                None
            }
        });
        ready.min_by_key(|id| self.slots.get(*id).due)
    }

    #[inline]
    fn render(
        &mut self,
        link: u32,
        id: SlotId,
        now: Micros,
        out: &mut Vec<u8>,
    ) -> Result<(), Unsent<P::Unfit>> {
        let stream_id = self.slots.get(id).stream;
        let before = out.len();
        let (message, session, mut view) = self.outgoing(id, now);
        let key = session.submit(&mut view.at(link), &message, out)?;
        if message.is_tracked {
            self.slots.get_mut(id).exchange = key;
        }
        self.unqueue(link, id);
        let is_again = self.hand_out(link, id);
        let counts = self.sink.counts(stream_id, now);
        counts.handed += u64::from(!is_again);
        counts.retried += u64::from(is_again);
        counts.bytes_wire += (out.len() - before) as u64;
        counts.bytes_payload += self.scratch.uplink.payload.len() as u64;
        Ok(())
    }

    /// Renders a message once more, on the session that was resumed.
    fn render_again(
        &mut self,
        link: u32,
        id: SlotId,
        now: Micros,
        out: &mut Vec<u8>,
    ) -> Result<(), Unsent<P::Unfit>> {
        let stream_id = self.slots.get(id).stream;
        let before = out.len();
        let (message, session, mut view) = self.outgoing(id, now);
        session.resubmit(&mut view.at(link), &message, out)?;
        let state = &mut self.links[link as usize];
        self.slots.unlink(&mut state.again, id);
        let is_again = self.hand_out(link, id);
        let counts = self.sink.counts(stream_id, now);
        counts.retransmitted += u64::from(is_again);
        counts.bytes_wire += (out.len() - before) as u64;
        counts.bytes_payload += self.scratch.uplink.payload.len() as u64;
        Ok(())
    }

    /// A message whose parts are rendered into the scratch buffers, and who takes it.
    #[inline]
    fn outgoing(&mut self, id: SlotId, now: Micros) -> (Outgoing, &mut P, View<'_, P>) {
        let stream = self.slots.get(id).stream;
        let message = Outgoing {
            slot: id,
            lane: self.place(stream).lane,
            is_tracked: self.stream(stream).is_tracked(),
        };
        let (session, mut view) = self.view(now);
        view.messages.render_body(id);
        (message, session, view)
    }

    /// From here on the socket has the message; whether for a second time, because the peer had the
    /// whole of it before.
    fn hand_out(&mut self, link: u32, id: SlotId) -> bool {
        self.links[link as usize].writing = Writing::Message(id);
        let slot = self.slots.get_mut(id);
        slot.stage = Stage::Writing;
        let is_again = slot.sent.is_some();
        slot.resent |= is_again;
        let (stream, seq) = (slot.stream, slot.seq);
        if self.stream(stream).is_acknowledged() {
            let lane = self.lane_of(link, stream);
            self.acknowledged.expect(lane, seq, id);
        }
        is_again
    }

    /// The first message that the peer's declared limits never let through, and which of them,
    /// once.
    pub fn take_unsendable(&mut self) -> Option<(StreamId, P::Unfit)> {
        let Unsendable::First(stream, why) = self.unsendable else {
            return None;
        };
        self.unsendable = Unsendable::Told;
        Some((stream, why))
    }

    fn note_unsendable(&mut self, id: SlotId, why: P::Unfit) {
        if self.unsendable == Unsendable::Nothing {
            self.unsendable = Unsendable::First(self.slots.get(id).stream, why);
        }
    }

    /// A message that can never go on this session; `cause` where it was sent before.
    fn give_up(&mut self, link: u32, id: SlotId, now: Micros, cause: Cause) {
        if self.slots.get(id).stage == Stage::Waiting {
            self.unqueue(link, id);
        } else {
            self.forget(link, id);
            self.land(id);
        }
        let outcome = match self.slots.get(id).sent {
            Some(_) => Outcome::Broken(cause),
            None => Outcome::Shed(ShedCause::Unsendable),
        };
        self.finalise(id, now, outcome);
    }
}
