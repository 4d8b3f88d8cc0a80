//! From waiting to the bytes of a packet.

use muster_model::{Cause, MessageId, Micros, Outcome, ShedCause, Stamp, StreamId};
use muster_platform::{Replying, UplinkScratch};
use muster_protocol::mqtt::{self, Refused};

use crate::class::{Class, Policy};
use crate::link::{Hold, State, Writing};
use crate::protocols::{Session, Unfit};
use crate::shard::Unsendable;
use crate::slots::{SlotId, Stage};
use crate::token::nobody;
use crate::{Shard, Sink};

/// Why a message was not handed to its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unsent {
    /// Its turn has not come.
    Waits,
    /// A bound of our own keeps it back.
    Limit,
    /// It will never go.
    Never(Unfit),
    /// The session knows nothing of it.
    SessionLost,
}

impl From<Refused> for Unsent {
    fn from(why: Refused) -> Self {
        match why {
            Refused::Window | Refused::PacketIds | Refused::NotConnected => Self::Waits,
            Refused::TooLarge { .. }
            | Refused::TextTooLong
            | Refused::RetainUnavailable
            | Refused::QosUnavailable => Self::Never(Unfit::Mqtt(why)),
            Refused::Unknown | Refused::Authentication => Self::SessionLost,
        }
    }
}

impl<S: Sink> Shard<S> {
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
            if !self.blocks_due.is_empty() && self.render_block(link, now, out) {
                return true;
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
            if stream.qos != mqtt::Qos::AtMostOnce && !has_window {
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

    fn render(
        &mut self,
        link: u32,
        id: SlotId,
        now: Micros,
        out: &mut Vec<u8>,
    ) -> Result<(), Unsent> {
        self.render_body(id);
        let stream_id = self.slots.get(id).stream;
        let before = out.len();
        self.submit(link, id, now, out)?;
        self.unqueue(link, id);
        let is_again = self.hand_out(link, id);
        let counts = self.sink.counts(stream_id, now);
        counts.handed += u64::from(!is_again);
        counts.retried += u64::from(is_again);
        counts.bytes_wire += (out.len() - before) as u64;
        counts.bytes_payload += self.scratch.uplink.payload.len() as u64;
        Ok(())
    }

    /// Hands the message in the scratch buffers to the session for the first time.
    fn submit(
        &mut self,
        link: u32,
        id: SlotId,
        now: Micros,
        out: &mut Vec<u8>,
    ) -> Result<(), Unsent> {
        let stream = self.slots.get(id).stream;
        let token = if self.stream(stream).is_tracked() {
            self.token(id)
        } else {
            nobody(stream)
        };
        let place = self.place(stream);
        match &mut self.links[link as usize].session {
            Session::Mqtt(client) => {
                let class = &self.classes[place.class as usize];
                class.publish(place.lane, &self.scratch.uplink, |publish| {
                    client.publish(now, token, publish, out)
                })?;
            }
            Session::Coap(_) | Session::Shared => self.request(link, id, now, out)?,
        }
        Ok(())
    }

    /// Renders a message once more, on the session that was resumed.
    fn render_again(
        &mut self,
        link: u32,
        id: SlotId,
        now: Micros,
        out: &mut Vec<u8>,
    ) -> Result<(), Unsent> {
        self.render_body(id);
        let stream_id = self.slots.get(id).stream;
        let token = self.token(id);
        let place = self.place(stream_id);
        let class = &self.classes[place.class as usize];
        let before = out.len();
        let state = &mut self.links[link as usize];
        let client = state.session.mqtt().ok_or(Unsent::SessionLost)?;
        class.publish(place.lane, &self.scratch.uplink, |publish| {
            client.republish(now, token, publish, out)
        })?;
        self.slots.unlink(&mut state.again, id);
        let is_again = self.hand_out(link, id);
        let counts = self.sink.counts(stream_id, now);
        counts.retransmitted += u64::from(is_again);
        counts.bytes_wire += (out.len() - before) as u64;
        counts.bytes_payload += self.scratch.uplink.payload.len() as u64;
        Ok(())
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

    /// Renders topic and payload of a slot into the scratch buffers: a pure function of the seed,
    /// the message id and its due instant, so that nothing is stored for a second time.
    pub(crate) fn render_body(&mut self, id: SlotId) {
        let slot = self.slots.get(id);
        let place = self.places[slot.stream.index()].expect("the stream of a slot is planned");
        let class = &self.classes[place.class as usize];
        let message = MessageId {
            run: self.run,
            device: slot.device,
            stream: slot.stream,
            seq: slot.seq,
        };
        if class.streams[place.lane as usize].is_command() {
            let stamp = Stamp {
                id: message,
                due: Some(slot.issued),
            };
            let scratch = &mut self.scratch;
            class.roster.render_name(slot.device, &mut scratch.name);
            let to = Replying {
                stamp: &stamp,
                request: slot.request,
                device: &scratch.name,
                is_gateways: class.client.gateway.is_some(),
            };
            (class.dialect.write_reply)(&to, &mut scratch.reply);
            scratch.uplink.say(&scratch.reply);
            return;
        }
        let uplink = &class.streams[place.lane as usize].uplink;
        uplink.render(&class.roster, &message, slot.due, &mut self.scratch.uplink);
    }

    /// The first message that the peer's declared limits never let through, and which of them,
    /// once.
    pub fn take_unsendable(&mut self) -> Option<(StreamId, Unfit)> {
        let Unsendable::First(stream, why) = self.unsendable else {
            return None;
        };
        self.unsendable = Unsendable::Told;
        Some((stream, why))
    }

    fn note_unsendable(&mut self, id: SlotId, why: Unfit) {
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

impl Class {
    /// Hands the message in the scratch buffers to a session.
    fn publish<T>(
        &self,
        lane: u8,
        scratch: &UplinkScratch,
        submit: impl FnOnce(&mqtt::Publish<'_>) -> T,
    ) -> T {
        let stream = &self.streams[lane as usize];
        // An alias stands for one topic as long as the session lives, which on a link with many
        // devices a stream is not, nor is one of replies, or of requests that the topic numbers.
        let is_one = !stream.is_command() && stream.uplink.has_one_topic();
        let has_one_topic = self.devices_per_link == 1 && is_one;
        let alias = u16::from(lane) < mqtt::ALIAS_SLOTS && has_one_topic;
        scratch.with_property(|user_properties| {
            submit(&mqtt::Publish {
                alias_slot: alias.then_some(u16::from(lane)),
                qos: stream.qos,
                retain: stream.retain,
                content_type: stream.content_type.as_deref(),
                user_properties,
                ..mqtt::Publish::new(scratch.topic(), &scratch.payload)
            })
        })
    }
}
