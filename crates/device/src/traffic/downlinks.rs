//! Messages to devices other than commands: acknowledgements, and other devices' messages.

use muster_model::{Micros, Outcome, Reason, Reception, StreamId};
use muster_platform::{Acknowledgement, DueTimes, Reader};
use muster_protocol::mqtt::topic;

use super::Traffic;
use crate::acknowledged::Met;
use crate::class::Qos;
use crate::messages::Forgotten;
use crate::session::{Downlink, Session};
use crate::sink::Sink;

/// Reader of the ids of messages that devices subscribe to.
#[derive(Debug)]
pub struct Listener {
    /// Reads the ids back.
    pub reader: Reader,
    /// Instants at which the messages were due.
    pub due_times: DueTimes,
}

impl<P: Session, S: Sink> Traffic<P, S> {
    /// The application has spoken on a message of a link; `spokesman` is the stream of what names none.
    /// The session may forget an attempt that this ends.
    pub(crate) fn acknowledge(
        &mut self,
        link: u32,
        now: Micros,
        acknowledgement: &Acknowledgement<'_>,
        spokesman: StreamId,
    ) -> Option<Forgotten<P::Key>> {
        self.messages.slide(link, now);
        let named = match acknowledgement.id {
            Some(id) => self.fleets.named(link, id),
            None if acknowledgement.is_of_oldest => self.messages.oldest(&self.fleets, link),
            None => None,
        };
        let Some((stream, queue, seq)) = named else {
            self.recording.counts(spokesman, now).answered_unknown += 1;
            return None;
        };
        let code = acknowledgement.code;
        let of = self.fleets.stream(stream);
        if !of.is_ended_by_name() {
            // The message was final once it was sent.
            self.recording
                .refusals()
                .note(Reason::Application(code), acknowledgement.messages);
            let counts = self.recording.stream_counts(stream, now);
            counts.refused_unawaited.add(Reason::Application(code), 1);
            return None;
        }
        // The transport's answer to a message that is refused by name is the session's to wait for.
        let is_forgotten = of.is_acknowledged() && of.qos != Qos::AtMostOnce;
        let id = match self.messages.meet(queue, seq) {
            Met::Open(id) => id,
            Met::GivenUp => {
                self.recording.counts(stream, now).answered_late += 1;
                return None;
            }
            Met::Acknowledged => {
                self.recording.counts(stream, now).answered_again += 1;
                return None;
            }
            Met::Unknown => {
                self.recording.counts(stream, now).answered_unknown += 1;
                return None;
            }
        };
        // It ends an attempt; the transport's word may still come.
        let forgotten = is_forgotten.then(|| self.messages.forget(id));
        self.answered(id, now);
        if acknowledgement.is_accepted {
            self.finalise(id, now, Outcome::Accepted);
        } else {
            let reason = Reason::Application(code);
            self.recording
                .refusals()
                .note(reason, acknowledgement.messages);
            self.end(id, now, Outcome::Rejected(reason));
        }
        forgotten
    }

    /// A message came on a link that its dialect knows nothing of.
    pub(crate) fn receive_copy(&mut self, link: u32, now: Micros, message: &Downlink<'_>) {
        let Some(stream) = self.subscribed_by(link, message.topic.as_str()) else {
            return;
        };
        let subscriber = self.fleets.first_device_of(link);
        self.recording.account().reception(stream).consumed += 1;
        let Some(listener) = &mut self.listener else {
            return;
        };
        let due_times = &mut listener.due_times;
        let copy = listener.reader.read(
            message.topic.as_str(),
            message.payload,
            message.property,
            &mut |id| due_times.of(id),
        );
        self.recording.reception(&Reception {
            subscriber,
            stream,
            id: copy.id,
            due: copy.due,
            seen: now,
            integrity: copy.integrity,
        });
    }

    /// The stream of kind `receive` that a topic belongs to: the first whose filter takes it.
    fn subscribed_by(&mut self, link: u32, topic: &str) -> Option<StreamId> {
        let class = self.fleets.class(link);
        let mut streams = class.streams.iter().filter(|stream| stream.is_receive());
        let first = streams.next()?;
        if streams.next().is_none() {
            return Some(first.id);
        }
        let scratch = &mut self.scratch;
        let device = self.fleets.first_device_of(link);
        class.directory.render_name(device, &mut scratch.name);
        let streams = class.streams.iter().filter(|stream| stream.is_receive());
        for stream in streams {
            let filter = &mut scratch.filter;
            class.render_filter(stream, device, &scratch.name, filter);
            if topic::matches(filter, topic) {
                return Some(stream.id);
            }
        }
        None
    }
}
