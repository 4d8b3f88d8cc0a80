//! Messages of CoAP, and what a request is to the dialect.

use std::sync::Arc;

use muster_net::Io;
use muster_platform::{Identity, Incoming, Method, Protocol, Refusal, Status, Upload, Wanted};
use muster_protocol::coap::{self, Code, OptionNumber, ServerEvent, content_format};
use muster_protocol::mqtt::{Publish, Qos};

use super::PeerRef;
use crate::message::Message;
use crate::shard::Shard;
use crate::shard::answering::Asker;
use crate::shard::uplink::Uplink;
use crate::shared::locked;

/// A path or a parameter that is no text.
const NO_TEXT: Refusal = Refusal {
    status: Status::new(4, 0),
    why: "the path or a parameter is not UTF-8",
};
/// A device that the gateway was not told of.
const UNKNOWN: Refusal = Refusal {
    status: Status::new(4, 4),
    why: "the device is not registered",
};

impl Shard {
    /// Takes one message of a peer.
    pub(super) fn hear_message(&mut self, io: &mut Io, from: PeerRef, bytes: &[u8]) {
        self.drive(io, from, |session, now, out| {
            session.receive(now, bytes, out)
        });
        self.look_after(io, from);
    }

    /// What the session of a peer tells of.
    pub(super) fn told(&mut self, io: &mut Io, of: PeerRef, event: &ServerEvent<'_>) {
        match event {
            ServerEvent::Request(incoming) => self.request(io, of, incoming),
            ServerEvent::Acknowledged { .. } => self.counts().separate_acknowledged.more(),
            ServerEvent::Reset { .. } | ServerEvent::TimedOut { .. } => {
                self.counts().separate_refused.more();
            }
            ServerEvent::Retransmitted => {}
        }
    }

    fn request(&mut self, io: &mut Io, from: PeerRef, incoming: &coap::Incoming<'_>) {
        let name = self.peer(from).and_then(|peer| peer.name.clone());
        let identity = name.as_deref().and_then(Identity::parse);
        let who = identity.map(|identity| muster_platform::Peer {
            tenant: identity.tenant,
            device: identity.auth_id,
        });
        let dialect = self.shared.config.dialect;
        let hear = dialect.requests(Protocol::Coap).hear;
        let mut topic = std::mem::take(&mut self.topic);
        let wanted = match read(incoming) {
            None => Wanted::Refused(NO_TEXT),
            Some(came) => self.of_known(hear(&came, who.as_ref(), &mut topic)),
        };
        self.topic = topic;
        match wanted {
            Wanted::Upload(upload) => self.upload(io, from, incoming, &upload),
            Wanted::Reply(_) => self.uploaded_reply(io, from, incoming),
            Wanted::Refused(refusal) => {
                self.counts().refused_requests.more();
                self.decline(io, from, incoming.pending, &refusal);
            }
        }
    }

    /// What is wanted, if it is of a device that is known.
    fn of_known<'a>(&self, wanted: Wanted<'a>) -> Wanted<'a> {
        let (tenant, device) = match &wanted {
            Wanted::Upload(upload) => (upload.tenant, upload.device),
            Wanted::Reply(reply) => (reply.tenant, reply.device),
            Wanted::Refused(_) => return wanted,
        };
        match &self.shared.known {
            Some(known) if !known.has(tenant, device) => Wanted::Refused(UNKNOWN),
            Some(_) | None => wanted,
        }
    }

    /// A message of a device on its way to whoever subscribed to the topic that it surfaces on, which is in
    /// `self.topic`.
    fn upload(
        &mut self,
        io: &mut Io,
        from: PeerRef,
        incoming: &coap::Incoming<'_>,
        upload: &Upload<'_>,
    ) {
        self.counts().received.more();
        if let Some(gateway) = upload.gateway {
            locked(&self.shared.waiting).speaks_for(upload.tenant, gateway, upload.device);
        }
        let mut asker = Asker::Peer {
            peer: from,
            pending: incoming.pending,
            query: None,
        };
        if upload.ttd_s.is_some() {
            let Some(query) = self.note_query(from, incoming.pending, upload) else {
                return self.refuse_upload(
                    io,
                    from,
                    incoming.pending,
                    self.shared.config.dialect.server.refusal,
                );
            };
            asker = Asker::Peer {
                peer: from,
                pending: incoming.pending,
                query: Some(query),
            };
        }
        let topic = std::mem::take(&mut self.topic);
        let ttd = upload.ttd_s.map(|ttd| ttd.to_string());
        let ttd = ttd.as_deref().map(|ttd| ("ttd", ttd));
        let publish = Publish {
            qos: northbound_qos(incoming),
            content_type: upload.content_type,
            user_properties: ttd.as_slice(),
            ..Publish::new(&topic, &incoming.payload)
        };
        self.surface(io, asker, &publish);
        self.topic = topic;
    }

    fn surface(&mut self, io: &mut Io, asker: Asker, publish: &Publish<'_>) {
        if !self.shared.behaves {
            let message = Arc::new(Message::new(publish, io.now()));
            return self.plot(io, Uplink::of_peer(asker, message), false);
        }
        let routed = self.publish(io, publish, None, None);
        self.counts().processed.more();
        if routed.is_congested {
            self.hold_back_asker(io, asker);
        }
        self.say_yes(io, asker, routed.copies);
    }

    /// A device's reply to a command, on the topic in `self.topic`: routed as any message, and never treated
    /// badly.
    fn uploaded_reply(&mut self, io: &mut Io, from: PeerRef, incoming: &coap::Incoming<'_>) {
        self.counts().replies.more();
        let topic = std::mem::take(&mut self.topic);
        let publish = Publish {
            qos: Qos::AtLeastOnce,
            ..Publish::new(&topic, &incoming.payload)
        };
        self.publish(io, &publish, None, None);
        self.topic = topic;
        self.change(io, from, incoming.pending);
    }
}

/// The request as the dialect reads it; none if its path or a parameter is no text.
fn read<'a>(incoming: &'a coap::Incoming<'_>) -> Option<Incoming<'a>> {
    let method = match incoming.method {
        Code::POST => Method::Post,
        Code::PUT => Method::Put,
        _ => Method::Other,
    };
    let mut came = Incoming::new(method, incoming.is_confirmable, &incoming.payload);
    let format = incoming.options.uint(OptionNumber::CONTENT_FORMAT);
    came.content_type = format.and_then(content_format::media_type);
    for segment in incoming.options.all(OptionNumber::URI_PATH) {
        came.segment(std::str::from_utf8(segment).ok()?);
    }
    for parameter in incoming.options.all(OptionNumber::URI_QUERY) {
        came.parameter(std::str::from_utf8(parameter).ok()?);
    }
    Some(came)
}

/// What is confirmable travels on at least once.
fn northbound_qos(incoming: &coap::Incoming<'_>) -> Qos {
    if incoming.is_confirmable {
        Qos::AtLeastOnce
    } else {
        Qos::AtMostOnce
    }
}
