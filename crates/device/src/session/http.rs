//! HTTP/1.1: requests of links over streams of bytes.
//!
//! It owns what lies between a message and its answer: the form of a request, the credentials in it,
//! and the end of a connection on which no further request may go.

mod answering;
mod authorization;
mod requesting;

use std::fmt;

use muster_measure::LinkAccount;
use muster_model::{Cause, Micros, ShedCause};
use muster_plan::{ClientPlan, HttpSettings};
use muster_platform::Protocol;
use muster_protocol::http::{self, ClientEvent, InvalidField, Malformed};

use self::requesting::Rendered;
use super::{Context, Event, Input, Outgoing, Session, Transport, Unsent};
use crate::client::Client;
use crate::token::Token;

/// The time for which a link waits for the peer to close a connection that carries no further request. The
/// end that closes first keeps the port for a minute, and the generator has the fewer ports.
const LINGER: Micros = Micros::from_millis(50);
/// The status with which a server closes a connection that was idle for too long (RFC 9110 section 15.5.9).
const REQUEST_TIMEOUT: u16 = 408;

/// Words for an answer without its end.
const CUT_OFF: &str = "the connection ended before the body of an answer had its Content-Length or its last chunk: look \
                       at the server, or at a proxy in front of it";

/// Words for an answer that began and did not end in time.
const UNFINISHED: &str = "an answer began and did not end in time: it comes too slowly, its last chunk is missing, or it \
                          has no Content-Length and the server keeps the connection open";

/// HTTP, with buffers that all links render in.
#[derive(Debug, Default)]
pub struct Http {
    rendered: Rendered,
}

/// The session of one link.
#[derive(Debug)]
pub struct HttpState {
    client: http::Client,
    /// End of the silence that the platform asked for.
    silent_until: Micros,
    /// Instant at which the link closes a connection that carries no further request; the greatest where one
    /// may follow.
    leaves_at: Micros,
    /// True if the answer to a request is not waited for any more, so that the connection has to end.
    is_given_up: bool,
}

/// The reason why a request can never be rendered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unfit {
    /// A header.
    Header(InvalidField),
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header(why) => write!(f, "{why}; check the templates of the stream's headers"),
        }
    }
}

impl Session for Http {
    type Settings = HttpSettings;
    type State = HttpState;
    type Key = ();
    type Unfit = Unfit;

    const PROTOCOL: Protocol = Protocol::Http;
    const TRANSPORT: Transport = Transport::Stream;
    const SILENCE: ShedCause = ShedCause::RetryAfter;

    fn settings(client: &ClientPlan) -> Option<&HttpSettings> {
        client.http()
    }

    fn state(&self, client: &Client<HttpSettings>, _link: u32, _seed: u64) -> HttpState {
        let settings = &client.settings;
        let window = match settings.closes {
            true => 1,
            false => settings.pipelining,
        };
        HttpState {
            client: http::Client::new(window, settings.body_max),
            silent_until: Micros::ZERO,
            leaves_at: Micros::MAX,
            is_given_up: false,
        }
    }

    /// Opens without a word. A link with a connection a request closes one that carries none.
    fn opened(&mut self, at: &mut Context<'_, Self>, _out: &mut Vec<u8>) -> Option<Event<'static>> {
        if at.class.client.settings.closes {
            at.state.leaves_at = at.now + LINGER;
        }
        Some(Event::Ready)
    }

    #[inline]
    fn poll<'a>(
        &mut self,
        at: &mut Context<'_, Self>,
        input: &mut Input<'a>,
        _out: &mut Vec<u8>,
    ) -> Option<Event<'a>> {
        loop {
            let mut rest = input.rest();
            let before = rest.len();
            let event = at.state.client.poll(&mut rest);
            input.advance(before - rest.len());
            if let Some(event) = self.received(at, input, event?) {
                return Some(event);
            }
        }
    }

    fn ended<'a>(
        &mut self,
        at: &mut Context<'_, Self>,
        input: &mut Input<'a>,
    ) -> Option<Event<'a>> {
        let event = at.state.client.end()?;
        self.received(at, input, event)
    }

    fn timer(&mut self, at: &mut Context<'_, Self>, _out: &mut Vec<u8>) -> Option<Event<'static>> {
        let is_over = at.state.is_given_up || at.state.leaves_at <= at.now;
        // The peer did not close what it had to, or nothing else ends the connection.
        is_over.then(|| Event::Lost(Self::blamed(at.state, Cause::BetweenRequests, at.now)))
    }

    #[inline]
    fn deadline(_settings: &HttpSettings, state: &HttpState) -> Option<Micros> {
        if state.is_given_up {
            return Some(Micros::ZERO);
        }
        (state.leaves_at < Micros::MAX).then_some(state.leaves_at)
    }

    #[inline]
    fn submit(
        &mut self,
        at: &mut Context<'_, Self>,
        message: &Outgoing,
        out: &mut Vec<u8>,
    ) -> Result<Option<()>, Unsent<Unfit>> {
        self.request(at, message, out)?;
        Ok(Some(()))
    }

    #[inline]
    fn window_free(&self, state: &HttpState) -> u16 {
        match state.is_given_up {
            true => 0,
            false => state.client.window_free(),
        }
    }

    #[inline]
    fn silent_until(&self, state: &HttpState) -> Micros {
        state.silent_until
    }

    /// A later answer could be taken for the answer to another request: the connection ends.
    fn forget(&mut self, state: &mut HttpState, _token: Token, _key: Option<()>) {
        state.is_given_up = true;
    }

    fn closed(&mut self, _link: u32, state: &mut HttpState, _open: impl Iterator<Item = ()>) {
        state.client.reopen();
        (state.leaves_at, state.is_given_up) = (Micros::MAX, false);
    }

    /// Returns the cause as HTTP has it: either end may close a connection on which no request is open (RFC
    /// 9112 section 9.3).
    fn blamed(state: &HttpState, cause: Cause, _now: Micros) -> Cause {
        let is_by_us = cause == Cause::BetweenRequests;
        if !is_by_us && !matches!(cause, Cause::PeerClosed | Cause::Reset) {
            return cause;
        }
        if state.is_given_up {
            return match state.client.is_begun() {
                true => Cause::AnswerUnfinished,
                false => Cause::Unanswered,
            };
        }
        if !is_by_us && state.client.is_inside() {
            return Cause::AnswerCutOff;
        }
        if state.client.waiting().next().is_some() || state.client.is_inside() {
            // No answer comes to what was sent behind the last request.
            return if is_by_us { Cause::PeerClosed } else { cause };
        }
        if is_by_us || state.client.is_closing() {
            return Cause::BetweenRequests;
        }
        match cause == Cause::PeerClosed {
            true => Cause::ClosedIdle,
            false => cause,
        }
    }

    /// Notes the first answer without its end.
    fn note_end(&self, at: &mut Context<'_, Self>, cause: Cause, _brief_lives: u8) {
        if cause == Cause::AnswerCutOff {
            at.refusals.note_said(&cause, CUT_OFF);
        } else if cause == Cause::AnswerUnfinished {
            at.refusals.note_said(&cause, UNFINISHED);
        }
    }

    /// Every answer ends a message or its connection.
    fn account<'a>(&'a self, _states: impl Iterator<Item = &'a HttpState>, _sum: &mut LinkAccount) {
    }
}

impl Http {
    /// The meaning of something that came; none if it is of no message.
    #[inline]
    fn received<'a>(
        &mut self,
        at: &mut Context<'_, Self>,
        input: &Input<'a>,
        event: ClientEvent<'a>,
    ) -> Option<Event<'a>> {
        match event {
            ClientEvent::Answered { ticket, response } => {
                self.answered(at, input, Token(ticket.0), response)
            }
            ClientEvent::Unasked(response) if response.status == REQUEST_TIMEOUT => {
                Some(Event::Lost(Cause::ClosedIdle))
            }
            ClientEvent::Unasked(_) => {
                let text = "an answer came to which there is no request";
                at.refusals.note_said(&Cause::Malformed, text);
                Some(Event::Lost(Cause::Malformed))
            }
            ClientEvent::Malformed(why) => Some(Event::Lost(malformed(at, why))),
        }
    }
}

/// Notes what cannot be read, the first of its kind.
#[cold]
fn malformed(at: &mut Context<'_, Http>, why: Malformed) -> Cause {
    at.refusals.note_said(&Cause::Malformed, &why.to_string());
    Cause::Malformed
}
