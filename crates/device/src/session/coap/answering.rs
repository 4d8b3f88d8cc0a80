//! Datagrams that come to a link that speaks CoAP, and its timers.

use muster_model::{Cause, Outcome, Reason};
use muster_platform::{Answered, Field, Protocol, Segments, Status};
use muster_protocol::coap::{
    Again, ClientEvent, Code, Failure, Opt, OptionNumber, Response, Ticket, content_format,
};

use super::Coap;
use super::blocks::BlockDue;
use super::is_observation;
use crate::session::{Context, Event, Input, Reply};
use crate::token::{Token, due_of, is_unawaited, stream_of};

impl Coap {
    /// The meaning of a datagram; none if it is the session's own affair.
    #[inline]
    pub(super) fn received<'a>(
        &mut self,
        at: &mut Context<'_, Self>,
        input: &Input<'a>,
        event: &ClientEvent<'a>,
        out: &mut Vec<u8>,
    ) -> Option<Event<'a>> {
        if is_observation(event) {
            return self.observed(at, event, out);
        }
        match event {
            ClientEvent::Response(response) => Some(self.received_answer(at, input, response)),
            ClientEvent::Part(part) => self.received_part(at, part, out),
            ClientEvent::Acknowledged { .. }
            | ClientEvent::Again { .. }
            | ClientEvent::Failed { .. }
            | ClientEvent::AnsweredLate { .. }
            | ClientEvent::Duplicate { .. }
            | ClientEvent::Notification(_)
            | ClientEvent::Pong { .. }
            | ClientEvent::PingedAgain => self.woken(at, event, out),
        }
    }

    /// The meaning of what time, or a datagram without a response, has brought.
    pub(super) fn woken<'a>(
        &mut self,
        at: &mut Context<'_, Self>,
        event: &ClientEvent<'a>,
        out: &mut Vec<u8>,
    ) -> Option<Event<'a>> {
        if is_observation(event) {
            return self.observed(at, event, out);
        }
        match event {
            ClientEvent::Again { ticket, key, cause } => {
                let due = BlockDue {
                    ticket: *ticket,
                    key: *key,
                    cause: *cause,
                };
                match due.cause {
                    Again::Block => self.request_block(at, due, out),
                    Again::Retransmission => self.request_again(at, &due, out),
                }
                None
            }
            ClientEvent::Failed { ticket, cause } => Some(failed(*ticket, *cause)),
            ClientEvent::AnsweredLate { ticket, code } if is_unawaited(Token(ticket.name)) => {
                self.answered_unawaited(at, Token(ticket.name), *code)
            }
            ClientEvent::AnsweredLate { ticket, code: _ } => Some(Event::AnsweredLate {
                token: Token(ticket.name),
                is_accepted: false,
            }),
            ClientEvent::Duplicate { ticket } => Some(Event::Duplicate {
                token: Token(ticket.name),
            }),
            // Nobody is pinged, and only an observation is notified.
            ClientEvent::Response(_)
            | ClientEvent::Part(_)
            | ClientEvent::Notification(_)
            | ClientEvent::Acknowledged { .. }
            | ClientEvent::Pong { .. }
            | ClientEvent::PingedAgain => None,
        }
    }

    /// An answer to a message that was final once it was sent: a refusal counts, a reset is one. It is
    /// of the message, and so of the second in which that was due.
    fn answered_unawaited<'a>(
        &mut self,
        at: &mut Context<'_, Self>,
        token: Token,
        code: Option<Code>,
    ) -> Option<Event<'a>> {
        let code = code.unwrap_or(Code::EMPTY);
        let (status, reason) = (Status(code.status()), Reason::Coap(code.0));
        if status.is_yes() {
            self.stray += 1;
            return None;
        }
        let hint = (at.class.dialect.requests(Protocol::Coap).hint)(status);
        let text = hint.unwrap_or("nobody waits for the answers to these messages");
        at.refusals.note(reason, text.as_bytes());
        Some(Event::RefusedUnawaited {
            stream: stream_of(token),
            due: due_of(token, at.now),
            reason,
        })
    }

    /// The platform's answer to a request.
    pub(super) fn answered<'a>(
        &mut self,
        at: &mut Context<'_, Self>,
        response: &Response<'a>,
    ) -> Event<'a> {
        let token = Token(response.ticket.name);
        let requests = at.class.dialect.requests(Protocol::Coap);
        let status = Status(response.code.status());
        let mut fields = response.options.iter().filter_map(field);
        let path = &mut at.messages.scratch.reply_path;
        let is_separate = response.is_separate;
        // An answer names the path of a reply itself.
        let asked = Segments::of("");
        let reply = match (requests.answered)(status, &mut fields, response.payload, asked, path) {
            Answered::Accepted => Reply::Accepted,
            Answered::Command(copy) => Reply::Command(copy),
            Answered::Rejected(status) => {
                let reason = Reason::Coap(response.code.0);
                let hint = (requests.hint)(status).map(str::as_bytes);
                at.refusals.note(reason, hint.unwrap_or(response.payload));
                Reply::Rejected(reason)
            }
        };
        Event::Answered {
            token,
            reply,
            is_separate,
        }
    }
}

/// An exchange ended without an answer.
pub(super) fn failed<'a>(ticket: Ticket, cause: Failure) -> Event<'a> {
    let token = Token(ticket.name);
    let outcome = match cause {
        // An empty message: nobody there knows what it is about.
        Failure::Reset => Outcome::Rejected(Reason::Coap(Code::EMPTY.0)),
        Failure::Unacknowledged | Failure::Unanswered => Outcome::TimedOut,
        Failure::BadOption(_) | Failure::Block | Failure::BodyChanged | Failure::BodyTooLarge => {
            Outcome::Broken(Cause::Malformed)
        }
    };
    Event::Failed { token, outcome }
}

/// An option of an answer that a dialect may read.
pub(super) fn field(option: Opt<'_>) -> Option<Field<'_>> {
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
