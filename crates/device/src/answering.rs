//! What comes to a link that speaks CoAP, and what time brings it.

use muster_model::{Cause, Micros, Outcome, Reason};
use muster_platform::{Answered, Field, Protocol, Status};
use muster_protocol::coap::{
    Again, ClientEvent, Code, Failure, Opt, OptionNumber, Response, content_format,
};
use muster_protocol::mqtt::Token;

use crate::protocols::Session;
use crate::requesting::Due;
use crate::sockets::Seat;
use crate::token::{due_of, is_unawaited, stream_of};
use crate::{Shard, Sink};

impl<S: Sink> Shard<S> {
    /// A datagram came on a socket that is one endpoint with its links; answers with the link
    /// whose exchange it is about, if it is about one. What the socket answers is appended to `out`.
    pub fn received_at_socket(
        &mut self,
        socket: u32,
        now: Micros,
        datagram: &[u8],
        out: &mut Vec<u8>,
    ) -> Option<u32> {
        let endpoint = self.sockets.endpoint_mut(socket)?;
        let event = endpoint.receive(now, datagram, out)?;
        self.heard_at_socket(socket, now, &event, out)
    }

    /// One thing that is due on such a socket: whose it is, if it was anything. One call appends one
    /// datagram at the most.
    pub fn socket_timer(&mut self, socket: u32, now: Micros, out: &mut Vec<u8>) -> Option<u32> {
        let endpoint = self.sockets.endpoint_mut(socket)?;
        let event = endpoint.wake(now, out)?;
        self.heard_at_socket(socket, now, &event, out)
    }

    /// When [`Shard::socket_timer`] is to be called, until it tells nothing.
    #[must_use]
    pub fn socket_deadline(&self, socket: u32) -> Option<Micros> {
        self.sockets.endpoint(socket)?.deadline()
    }

    fn heard_at_socket(
        &mut self,
        socket: u32,
        now: Micros,
        event: &ClientEvent<'_>,
        out: &mut Vec<u8>,
    ) -> Option<u32> {
        let lane = event.ticket()?.lane;
        let link = self.sockets.link_at(Seat { socket, lane })?;
        self.heard(link, now, event, out);
        Some(link)
    }

    /// A datagram came on a link.
    pub(crate) fn received_datagram(
        &mut self,
        link: u32,
        now: Micros,
        datagram: &[u8],
        out: &mut Vec<u8>,
    ) {
        let event = match &mut self.links[link as usize].session {
            Session::Coap(client) => client.receive(now, datagram, out),
            Session::Mqtt(_) | Session::Shared => None,
        };
        if let Some(event) = event {
            self.heard(link, now, &event, out);
        }
    }

    /// Something of a link's exchanges is due; one thing a call.
    pub(crate) fn wake(&mut self, link: u32, now: Micros, out: &mut Vec<u8>) {
        let is_silence_over = self.silence_ends(link).is_some_and(|end| end <= now);
        let state = &mut self.links[link as usize];
        state.waits_for_silence &= !is_silence_over;
        let event = match &mut state.session {
            Session::Coap(client) => client.wake(now, out),
            Session::Mqtt(_) | Session::Shared => None,
        };
        if let Some(event) = event {
            self.heard(link, now, &event, out);
        }
    }

    fn heard(&mut self, link: u32, now: Micros, event: &ClientEvent<'_>, out: &mut Vec<u8>) {
        match event {
            ClientEvent::Response(response) => self.heard_answer(link, now, response),
            ClientEvent::Part(part) => self.heard_part(link, now, part, out),
            ClientEvent::Again { ticket, key, cause } => {
                let due = Due {
                    ticket: *ticket,
                    key: *key,
                    cause: *cause,
                };
                match due.cause {
                    Again::Block => self.request_block(link, now, due, out),
                    Again::Retransmission => self.request_again(link, now, &due, out),
                }
            }
            ClientEvent::Failed { ticket, cause } => {
                self.request_failed(link, now, Token(ticket.name), *cause);
            }
            ClientEvent::AnsweredLate { ticket, code } if is_unawaited(Token(ticket.name)) => {
                self.answered_unawaited(link, now, Token(ticket.name), *code);
            }
            ClientEvent::AnsweredLate { ticket, code: _ } => {
                let stream = stream_of(Token(ticket.name));
                self.sink.counts(stream, now).answered_late += 1;
            }
            ClientEvent::Duplicate { ticket } => {
                let stream = stream_of(Token(ticket.name));
                self.sink.counts(stream, now).duplicate_responses += 1;
            }
            // Nobody is pinged.
            ClientEvent::Acknowledged { .. }
            | ClientEvent::Pong { .. }
            | ClientEvent::PingedAgain => {}
        }
    }

    /// An answer to a message that was final once it was sent: a refusal counts, a reset is one. It is
    /// of the message, and so of the second in which that was due.
    fn answered_unawaited(&mut self, link: u32, now: Micros, token: Token, code: Option<Code>) {
        let status = Status::of_coap(code.unwrap_or(Code::EMPTY).0);
        if status.is_yes() {
            self.account.links.coap_stray += 1;
            return;
        }
        let hint = (self.class(link).dialect.requests(Protocol::Coap).hint)(status);
        let text = hint.unwrap_or("nobody waits for the answers to these messages");
        self.refusals.note(status.coap_reason(), text.as_bytes());
        let due = due_of(token, now);
        let counts = self.sink.counts(stream_of(token), due);
        counts.refused_unawaited.add(status.coap_reason(), 1);
    }

    /// The platform's answer to a request.
    pub(crate) fn responded(&mut self, link: u32, now: Micros, response: &Response<'_>) {
        let token = Token(response.ticket.name);
        self.sink.counts(stream_of(token), now).separate_responses +=
            u64::from(response.is_separate);
        let requests = self.class(link).dialect.requests(Protocol::Coap);
        let status = Status::of_coap(response.code.0);
        let mut fields = response.options.iter().filter_map(field);
        let reply = &mut self.scratch.reply_path;
        match (requests.answered)(status, &mut fields, response.payload, reply) {
            Answered::Accepted => self.request_accepted(link, token, now, false),
            Answered::Command(copy) => self.answered_by_command(link, now, token, &copy),
            Answered::Rejected(status) => {
                let reason = status.coap_reason();
                let hint = (requests.hint)(status).map(str::as_bytes);
                self.refusals.note(reason, hint.unwrap_or(response.payload));
                self.rejected(link, token, reason, now);
            }
        }
    }

    /// The platform's yes to a request. To a query it is the last word: a command comes with it, or
    /// none came while the device waited.
    pub(crate) fn request_accepted(
        &mut self,
        link: u32,
        token: Token,
        now: Micros,
        has_command: bool,
    ) {
        let Some(id) = self.open_attempt(link, token) else {
            self.sink
                .counts(stream_of(token), now)
                .transport_acknowledged += 1;
            return;
        };
        self.slots.get_mut(id).has_command = has_command;
        self.answered(id, now);
        self.finalise(id, now, Outcome::Accepted);
    }

    /// An exchange ended without an answer.
    pub(crate) fn request_failed(&mut self, link: u32, now: Micros, token: Token, cause: Failure) {
        let outcome = match cause {
            // An empty message: nobody there knows what it is about.
            Failure::Reset => {
                return self.rejected(link, token, Reason::Coap(Code::EMPTY.0), now);
            }
            Failure::Unacknowledged | Failure::Unanswered => Outcome::TimedOut,
            Failure::BadOption(_)
            | Failure::Block
            | Failure::BodyChanged
            | Failure::BodyTooLarge => Outcome::Broken(Cause::Malformed),
        };
        if let Some(id) = self.open_attempt(link, token) {
            self.mark_sent(id, now);
            self.land(id);
            self.end(id, now, outcome);
        }
    }
}

/// An option of an answer that a dialect may read.
fn field(option: Opt<'_>) -> Option<Field<'_>> {
    let text = |value| std::str::from_utf8(value).ok();
    match option.number {
        OptionNumber::LOCATION_PATH => text(option.value).map(Field::PathSegment),
        OptionNumber::LOCATION_QUERY => text(option.value).map(Field::Parameter),
        OptionNumber::MAX_AGE => option.uint().map(Field::MaxAge),
        OptionNumber::CONTENT_FORMAT => {
            content_format::media_type(option.uint()?).map(Field::ContentType)
        }
        _ => None,
    }
}
