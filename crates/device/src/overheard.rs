//! What devices subscribe to that other devices send.

use muster_model::{Micros, Reception, StreamId};
use muster_platform::{DueTimes, Reader};
use muster_protocol::mqtt::topic;

use crate::session::{Downlink, Session};
use crate::{Shard, Sink};

/// Who reads the ids of what devices subscribe to.
#[derive(Debug)]
pub struct Listener {
    /// Reads the ids back.
    pub reader: Reader,
    /// Tells when the messages were due.
    pub due_times: DueTimes,
}

impl<P: Session, S: Sink> Shard<P, S> {
    /// A message came on a link that its dialect knows nothing of.
    pub(crate) fn overheard(&mut self, link: u32, now: Micros, message: &Downlink<'_>) {
        let Some(stream) = self.subscribed_by(link, message.topic.as_str()) else {
            return;
        };
        let subscriber = self.class(link).first_device_of(self.link_id(link));
        self.account.reception(stream).consumed += 1;
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
        let reception = Reception {
            subscriber,
            stream,
            id: copy.id,
            due: copy.due,
            seen: now,
            integrity: copy.integrity,
        };
        self.account.reception(stream).read(&reception);
        self.sink.reception(&reception);
    }

    /// The stream of kind `receive` that a topic belongs to: the first whose filter takes it.
    fn subscribed_by(&mut self, link: u32, topic: &str) -> Option<StreamId> {
        let id = self.link_id(link);
        let class = &self.classes[self.links[link as usize].class as usize];
        let mut streams = class.streams.iter().filter(|stream| stream.is_receive());
        let first = streams.next()?;
        if streams.next().is_none() {
            return Some(first.id);
        }
        let scratch = &mut self.scratch;
        let device = class.first_device_of(id);
        class.roster.render_name(device, &mut scratch.name);
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
