//! Replies and notices that come back to the business application.

use muster_device::Sink;
use muster_model::{Command, Delivery, Integrity, Micros, Reply, Stamp};
use muster_platform::{CommandCopy, Returned};

use super::{CommandSink, Commander};

impl Commander {
    /// Takes a reply or a notice of delivery; false if the message is neither.
    pub fn replied(
        &mut self,
        topic: &str,
        payload: &[u8],
        seen: Micros,
        sink: &mut CommandSink<'_, impl Sink>,
    ) -> bool {
        let returned = (self.dialect.application.returned)(topic, payload);
        self.came_back(returned, seen, sink)
    }

    /// Takes a record of Kafka's reply topic; false if it belongs to another application.
    pub fn returned<'a>(
        &mut self,
        mut headers: impl Iterator<Item = (&'a str, &'a [u8])>,
        payload: &[u8],
        seen: Micros,
        sink: &mut CommandSink<'_, impl Sink>,
    ) -> bool {
        let kafka = self.dialect.application.kafka.as_ref();
        let returned = kafka.and_then(|kafka| (kafka.returned)(&mut headers, payload));
        self.came_back(returned, seen, sink)
    }

    /// Takes the answer to a call that is its device's reply; false if the platform takes no calls.
    pub fn called_back(
        &mut self,
        body: &[u8],
        seen: Micros,
        sink: &mut CommandSink<'_, impl Sink>,
    ) -> bool {
        let calls = self.dialect.application.calls.as_ref();
        let returned = calls.map(|calls| (calls.returned)(body));
        self.came_back(returned, seen, sink)
    }

    /// Takes a reply or a notice; false if there is none.
    fn came_back(
        &mut self,
        returned: Option<Returned>,
        seen: Micros,
        sink: &mut CommandSink<'_, impl Sink>,
    ) -> bool {
        match returned {
            Some(Returned::Reply(copy)) => self.reply(&copy, seen, sink),
            Some(Returned::Notice(notice)) => {
                self.note_notice(&notice.stamp.id, notice.delivery(), seen, sink);
            }
            None => return false,
        }
        true
    }

    fn reply(
        &mut self,
        copy: &CommandCopy<'_>,
        seen: Micros,
        sink: &mut CommandSink<'_, impl Sink>,
    ) {
        let is_known = |stamp: &Stamp| {
            let mut streams = self.streams.iter();
            streams.any(|stream| stream.id == stamp.id.stream)
        };
        let known = copy.stamp.filter(is_known);
        let stream = known.map_or(self.streams[0].id, |stamp| stamp.id.stream);
        sink.account.command(stream).replies_taken += 1;
        let reply = Reply {
            stream,
            id: copy.stamp.map(|stamp| stamp.id),
            issued: copy.stamp.and_then(|stamp| stamp.due),
            status: copy.status,
            seen,
            integrity: if copy.stamp.is_some() {
                Integrity::Intact
            } else {
                Integrity::Corrupted
            },
        };
        sink.report(stream, Command::Reply(reply));
        if let Some(token) = reply.id.and_then(|id| self.notices.token(&id)) {
            self.settle(token, Delivery::Delivered, seen, sink);
        }
    }
}
