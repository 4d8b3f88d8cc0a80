//! Answers to peers of CoAP.

use muster_net::{Io, Written};
use muster_platform::{Field, Refusal, Status};
use muster_protocol::coap::{Code, Opt, OptionNumber, Pending, Reply, Uint, content_format};

use super::{PeerRef, is_sent};
use crate::shard::Shard;

impl Shard {
    /// Answers yes: 2.04.
    pub(in crate::shard) fn change(&mut self, io: &mut Io, to: PeerRef, pending: Pending) {
        let reply = Reply::new(Code::CHANGED, &[], b"");
        if self.respond(io, to, pending, &reply) {
            self.counts().accepted.more();
        }
    }

    /// Answers yes, with the same datagram twice.
    pub(in crate::shard) fn change_twice(&mut self, io: &mut Io, to: PeerRef, pending: Pending) {
        let reply = Reply::new(Code::CHANGED, &[], b"");
        let Some(datagram) = self.write_reply(io, to, pending, &reply) else {
            return;
        };
        self.counts().accepted.more();
        for _ in 0..2 {
            self.send_datagram(io, to, &datagram);
        }
        self.coap.out = datagram;
    }

    /// Says that the answer comes separately; none if the peer is gone.
    pub(in crate::shard) fn separate(
        &mut self,
        io: &mut Io,
        to: PeerRef,
        pending: Pending,
    ) -> Option<Pending> {
        let mut out = std::mem::take(&mut self.coap.out);
        out.clear();
        let put_off = self
            .peer(to)
            .map(|peer| peer.coap.acknowledge(pending, &mut out));
        self.send_datagram(io, to, &out);
        self.coap.out = out;
        if put_off.is_none() {
            self.counts().unanswerable.more();
        }
        put_off
    }

    /// Answers no to an uplink, with a code as in HTTP.
    pub(in crate::shard) fn refuse_upload(
        &mut self,
        io: &mut Io,
        to: PeerRef,
        pending: Pending,
        code: u16,
    ) {
        let status = Status::of_http(code).unwrap_or(Refusal::UNAVAILABLE.status);
        let why = "refused on purpose";
        if self.decline(io, to, pending, &Refusal { status, why }) {
            self.counts().rejected.more();
        }
    }

    /// Answers no; whether that could be said.
    pub(super) fn decline(
        &mut self,
        io: &mut Io,
        to: PeerRef,
        pending: Pending,
        refusal: &Refusal,
    ) -> bool {
        let body = refusal.why.as_bytes();
        self.respond_with(io, to, pending, (refusal.status, refusal.fields(), body))
    }

    /// Answers with a code of the dialect, what stands beside it, and a body; whether that could be
    /// said.
    pub(super) fn respond_with<'a>(
        &mut self,
        io: &mut Io,
        to: PeerRef,
        pending: Pending,
        (status, fields, body): (Status, impl Iterator<Item = Field<'a>>, &[u8]),
    ) -> bool {
        let fields: Vec<Field<'_>> = fields.collect();
        let values: Vec<Uint> = fields.iter().map(number).collect();
        let options = fields.iter().zip(&values);
        let mut options: Vec<Opt<'_>> = options.filter_map(option).collect();
        options.sort_by_key(|option| option.number);
        let code = Code::new(status.class, status.detail);
        self.respond(io, to, pending, &Reply::new(code, &options, body))
    }

    /// Answers; whether the peer is still there, and has room for one more answer.
    fn respond(&mut self, io: &mut Io, to: PeerRef, pending: Pending, reply: &Reply<'_>) -> bool {
        let Some(datagram) = self.write_reply(io, to, pending, reply) else {
            return false;
        };
        self.send_datagram(io, to, &datagram);
        self.coap.out = datagram;
        self.look_after(io, to);
        true
    }

    /// The datagram of an answer, in the buffer that is lent for it; none if the peer is gone, or
    /// has so many answers of ours to acknowledge that there is no room for one more.
    fn write_reply(
        &mut self,
        io: &Io,
        to: PeerRef,
        pending: Pending,
        reply: &Reply<'_>,
    ) -> Option<Vec<u8>> {
        let mut out = std::mem::take(&mut self.coap.out);
        out.clear();
        let now = io.now();
        let written = self
            .peer(to)
            .map(|peer| peer.coap.respond(now, pending, reply, &mut out));
        if !matches!(written, Some(Ok(()))) {
            self.counts().unanswerable.more();
            self.coap.out = out;
            return None;
        }
        if pending.is_separate() {
            self.counts().separate.more();
        }
        Some(out)
    }

    /// Sends a message, if there is one, in a record where the peer has a session.
    pub(super) fn send_datagram(&mut self, io: &mut Io, to: PeerRef, datagram: &[u8]) {
        let Some(peer) = self.peer(to) else { return };
        if datagram.is_empty() {
            return;
        }
        let (socket, address) = (peer.socket, peer.address);
        let is_plain = peer.guard.is_none();
        let written = if is_plain {
            io.send_to(socket, address, datagram)
        } else {
            match self.coap.seal(to, datagram) {
                Some(record) => io.send_to(socket, address, record),
                None => Written::Lost,
            }
        };
        if !is_sent(written) {
            self.counts().unsent.more();
        }
    }
}

/// The number that a field holds.
fn number(field: &Field<'_>) -> Uint {
    match field {
        Field::ContentType(media_type) => {
            let format = content_format::of_media_type(media_type);
            Uint::of(u32::from(format.unwrap_or(content_format::OCTET_STREAM)))
        }
        Field::MaxAge(seconds) => Uint::of(*seconds),
        Field::PathSegment(_) | Field::Parameter(_) => Uint::of(0),
    }
}

/// The option of a field; a media type that has no number is not told.
fn option<'a>((field, number): (&Field<'a>, &'a Uint)) -> Option<Opt<'a>> {
    Some(match field {
        Field::PathSegment(segment) => Opt::text(OptionNumber::LOCATION_PATH, segment),
        Field::Parameter(parameter) => Opt::text(OptionNumber::LOCATION_QUERY, parameter),
        Field::MaxAge(_) => Opt::new(OptionNumber::MAX_AGE, number),
        Field::ContentType(media_type) => {
            content_format::of_media_type(media_type)?;
            Opt::new(OptionNumber::CONTENT_FORMAT, number)
        }
    })
}
