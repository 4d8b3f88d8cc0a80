//! What an uplink is to the dialect.

use muster_net::{Io, Key};
use muster_platform::{Data, Heard};
use muster_protocol::mqtt::{Incoming, Pending, reason};

use super::Shard;

impl Shard {
    /// Takes an uplink as the dialect reads it.
    pub(super) fn hear(&mut self, io: &mut Io, key: Key, incoming: &Incoming<'_>) {
        let Some(link) = self.link(key) else { return };
        let name = link.name.clone();
        let dialect = self.shared.config.dialect;
        let name = name.as_deref().unwrap_or_default();
        let limit = dialect.publishing().payload_limit;
        if limit.is_some_and(|limit| incoming.payload.len() > limit) {
            self.count_uplink(incoming.dup);
            self.counts().unreadable.more();
            return self.expel(io, key, reason::MALFORMED_PACKET);
        }
        let heard = if self.is_silent_on(&incoming.topic) {
            Heard::Ignored
        } else {
            (dialect.server.hear)(name, &incoming.topic, incoming.payload)
        };
        if !matches!(heard, Heard::Announced { .. }) {
            self.count_uplink(incoming.dup);
        }
        match heard {
            Heard::Ignored => self.counts().unanswered.more(),
            Heard::Other => self.put(io, key, incoming, (&incoming.topic, incoming.pending)),
            Heard::Message { device, id } => self.ask_of(io, key, incoming, (device, id)),
            Heard::Unreadable { device } => {
                self.answer_unreadable(io, key, device, incoming.pending);
            }
            Heard::Announced { device, is_there } => {
                self.note_announced(key, (device, is_there), incoming.pending);
            }
            Heard::Taken => {
                let mut topic = String::new();
                (dialect.server.route)(name, &incoming.topic, &mut topic);
                self.put(io, key, incoming, (&topic, incoming.pending));
            }
            Heard::Data(data) => self.put_data(io, key, incoming, &data),
            Heard::Invalid => self.refuse_payload(io, key),
            Heard::Unknown => self.note_unknown(io, key, incoming.pending),
        }
    }

    fn count_uplink(&self, is_again: bool) {
        if is_again {
            self.counts().received_again.more();
        } else {
            self.counts().received.more();
        }
    }

    /// A gateway's device came or went: only commands to it depend on that, as its data name it
    /// too.
    fn note_announced(
        &mut self,
        key: Key,
        (device, is_there): (&str, bool),
        pending: Option<Pending>,
    ) {
        let gateway = self.link(key).and_then(|link| link.name.clone());
        self.shared.announce(device, gateway.filter(|_| is_there));
        if is_there {
            self.counts().announced.more();
        } else {
            self.counts().announced_gone.more();
        }
        if let (Some(pending), Some(link)) = (pending, self.link(key)) {
            link.server.ack(pending, reason::SUCCESS, &mut link.out);
            self.mark_dirty(key);
        }
    }

    /// Data go on once for each device that they are of, all as they came; the answer is that to
    /// the first.
    fn put_data(&mut self, io: &mut Io, key: Key, incoming: &Incoming<'_>, data: &Data<'_>) {
        let mut pending = incoming.pending;
        let mut topic = std::mem::take(&mut self.topic);
        for device in data.devices() {
            topic.clear();
            data.write_surface(device, &mut topic);
            self.put(io, key, incoming, (&topic, pending.take()));
        }
        self.topic = topic;
    }

    /// Not what the topic is for: the link ends, and MQTT 5 says why.
    fn refuse_payload(&mut self, io: &mut Io, key: Key) {
        self.counts().unreadable.more();
        self.expel(io, key, reason::PAYLOAD_FORMAT_INVALID);
    }

    /// Whether a link that is no gateway's speaks for other devices.
    fn is_silent_on(&self, topic: &str) -> bool {
        let config = &self.shared.config;
        config.behaviour.no_gateways && (config.dialect.topic)(topic).is_for_gateways == Some(true)
    }

    /// A topic that the platform does not know: only MQTT 5 can say so.
    fn note_unknown(&mut self, io: &mut Io, key: Key, pending: Option<Pending>) {
        self.counts().unknown_topics.more();
        let is_v5 = self.link(key).is_some_and(|link| link.is_v5());
        match pending {
            Some(pending) if is_v5 => {
                let code = u16::from(reason::TOPIC_NAME_INVALID);
                self.reject(io, key, Some(pending), code);
            }
            Some(pending) => self.answer(key, pending, reason::SUCCESS),
            None => {}
        }
    }
}
