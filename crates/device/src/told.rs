//! What the platform tells a device in its dialect.

use muster_model::{Micros, Outcome, Reason, StreamId};
use muster_platform::{Acknowledgement, Acknowledgements, ApplicationId, Downlink};

use crate::acknowledged::Met;
use crate::session::{self, Session};
use crate::slots::SlotId;
use crate::{Qos, Shard, Sink};

impl<P: Session, S: Sink> Shard<P, S> {
    /// A message came on a link.
    pub(crate) fn told(&mut self, link: u32, now: Micros, message: &session::Downlink<'_>) {
        let (topic, payload) = (message.topic.as_str(), message.payload);
        match (self.class(link).dialect.publishing().downlink)(topic, payload) {
            Downlink::Acknowledgements(array) => self.read_acknowledgements(link, now, array),
            Downlink::Command(copy) => self.told_command(link, now, &copy),
            Downlink::Other => self.overheard(link, now, message),
        }
    }

    fn read_acknowledgements(&mut self, link: u32, now: Micros, array: Acknowledgements<'_>) {
        let Some(spokesman) = self.spokesman(link) else {
            return;
        };
        for acknowledgement in array {
            match acknowledgement {
                Ok(one) => self.acknowledge(link, now, &one, spokesman),
                Err(_) => self.sink.counts(spokesman, now).answered_malformed += 1,
            }
        }
    }

    fn acknowledge(
        &mut self,
        link: u32,
        now: Micros,
        acknowledgement: &Acknowledgement<'_>,
        spokesman: StreamId,
    ) {
        self.timeouts.acknowledged(link, now);
        let named = match acknowledgement.id {
            Some(id) => self.named(link, id),
            None if acknowledgement.is_of_oldest => self.oldest(link),
            None => None,
        };
        let Some((stream, lane, seq)) = named else {
            self.sink.counts(spokesman, now).answered_unknown += 1;
            return;
        };
        match self.acknowledged.meet(lane, seq) {
            Met::Open(id) if acknowledgement.is_accepted => {
                self.hear(id, now);
                self.finalise(id, now, Outcome::Accepted);
            }
            Met::Open(id) => {
                self.hear(id, now);
                let (code, text) = (acknowledgement.code, acknowledgement.messages);
                let reason = Reason::Application(code);
                self.refusals.note(reason, text);
                self.end(id, now, Outcome::Rejected(reason));
            }
            Met::GivenUp => self.sink.counts(stream, now).answered_late += 1,
            Met::Acknowledged => self.sink.counts(stream, now).answered_again += 1,
            Met::Unknown => self.sink.counts(stream, now).answered_unknown += 1,
        }
    }

    /// The application's word ends an attempt; the transport's may still come.
    fn hear(&mut self, id: SlotId, now: Micros) {
        let slot = self.slots.get(id);
        let (link, stream) = (slot.link, slot.stream);
        if self.stream(stream).qos != Qos::AtMostOnce {
            self.forget(link, id);
        }
        self.answered(id, now);
    }

    /// The message that an id names on a link: its stream, lane and number.
    fn named(&self, link: u32, id: ApplicationId) -> Option<(StreamId, usize, u32)> {
        let place = usize::from(id.lane);
        let streams = &self.class(link).streams;
        let stream = streams.get(place).filter(|of| of.is_acknowledged())?;
        let lane = self.first_lane(link) + place;
        Some((stream.id, lane, id.seq))
    }

    /// The message of a link that has waited longest for the application's word: its stream, lane and
    /// number.
    fn oldest(&self, link: u32) -> Option<(StreamId, usize, u32)> {
        let first = self.links[link as usize].flight.first();
        let flight = std::iter::successors(first, |id| self.slots.after(*id));
        let mut slots = flight.map(|id| self.slots.get(id));
        let slot = slots.find(|slot| self.stream(slot.stream).is_acknowledged())?;
        Some((slot.stream, self.lane_of(link, slot.stream), slot.seq))
    }

    /// The stream in whose name is counted what names none: the first that the application
    /// acknowledges, else the first.
    pub(crate) fn spokesman(&self, link: u32) -> Option<StreamId> {
        let streams = &self.class(link).streams;
        let acknowledged = streams.iter().find(|stream| stream.is_acknowledged());
        acknowledged.or(streams.first()).map(|stream| stream.id)
    }
}
