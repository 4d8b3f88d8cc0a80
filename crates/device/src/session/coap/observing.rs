//! Commands that come as notifications (RFC 7641): a link observes them before it is up.

use muster_model::{Cause, ConnectFailure, Reason};
use muster_platform::{Answered, Asking, Protocol, Segments, Status};
use muster_protocol::coap::{
    Again, ClientEvent, Code, ExchangeKey, Failure, Opt, OptionNumber, Refused, Response, Ticket,
};

use super::answering::field;
use super::requesting::with_options;
use super::sockets::Exchanges;
use super::{Coap, CoapSettings};
use crate::class::Class;
use crate::session::{Context, Event, Scratch};

/// The name of a link's one observation; no message has it.
const NAME: u32 = u32::MAX;
/// Asks a server for notifications (RFC 7641 section 2).
const OBSERVE: Opt<'static> = Opt::new(OptionNumber::OBSERVE, &[]);

impl Class<CoapSettings> {
    /// The topic of the request that observes the commands to a link; none if they come in answers alone.
    pub(super) fn observed(&self) -> Option<&'static str> {
        let topic = self.dialect.requests(Protocol::Coap).observed;
        topic.filter(|_| self.command_stream().is_some())
    }

    /// Hands the request that observes to a session.
    fn observe<T>(
        &self,
        topic: &str,
        scratch: &mut Scratch,
        submit: impl FnOnce(&muster_protocol::coap::Request<'_>) -> T,
    ) -> T {
        let asking = Asking {
            path: topic,
            payload: &[],
            content_type: None,
            is_at_least_once: true,
            ttd_s: None,
            login: &scratch.login,
        };
        let requests = self.dialect.requests(Protocol::Coap);
        let request = (requests.uplink)(&asking, &mut scratch.query);
        with_options(&request, Some(OBSERVE), submit)
    }
}

/// Returns true for an event of a link's observation.
pub(super) fn is_observation(event: &ClientEvent<'_>) -> bool {
    event.ticket().is_some_and(|ticket| ticket.name == NAME)
}

impl Coap {
    /// Observes the commands of a link's device: first, or again for a copy of the request.
    pub(super) fn observe(
        &mut self,
        at: &mut Context<'_, Self>,
        again: Option<ExchangeKey>,
        out: &mut Vec<u8>,
    ) -> Result<(), Refused> {
        let Some(topic) = at.class.observed() else {
            return Err(Refused::NothingDue);
        };
        let scratch = &mut *at.messages.scratch;
        scratch.render_login::<Self>(at.class, at.id);
        let Some(mut exchanges) = self.sockets.exchanges(at.state) else {
            return Err(Refused::NothingDue);
        };
        let now = at.now;
        at.class
            .observe(topic, scratch, |request| match (&mut exchanges, again) {
                (exchanges, Some(key)) => exchanges.again(now, key, request, out),
                (Exchanges::Own(client), None) => {
                    let ticket = Ticket {
                        slot: 0,
                        name: NAME,
                    };
                    client.observe(now, ticket, request, out).map(|_| ())
                }
                (Exchanges::Shared(client, slot), None) => {
                    let ticket = Ticket {
                        slot: *slot,
                        name: NAME,
                    };
                    client.observe(now, ticket, request, out).map(|_| ())
                }
            })
    }

    /// The meaning of what came, or did not come, of an observation.
    pub(super) fn observed<'a>(
        &mut self,
        at: &mut Context<'_, Self>,
        event: &ClientEvent<'a>,
        out: &mut Vec<u8>,
    ) -> Option<Event<'a>> {
        match event {
            ClientEvent::Response(response) => Some(granted(at, response)),
            ClientEvent::Notification(response) if !response.is_observed() => {
                Some(Event::Lost(Cause::PeerClosed))
            }
            ClientEvent::Notification(response) => notified(at, response),
            ClientEvent::Again {
                key,
                cause: Again::Retransmission,
                ..
            } => {
                // An observation that cannot go on ends with the time of the handshake.
                let _ = self.observe(at, Some(*key), out);
                None
            }
            ClientEvent::Failed { cause, .. } => Some(match cause {
                Failure::Unacknowledged | Failure::Unanswered => {
                    Event::Refused(ConnectFailure::SubscribeUnanswered)
                }
                Failure::Reset => refused(Code::EMPTY),
                Failure::BadOption(_)
                | Failure::Block
                | Failure::BodyChanged
                | Failure::BodyTooLarge => Event::Lost(Cause::Malformed),
            }),
            ClientEvent::Again { .. }
            | ClientEvent::Acknowledged { .. }
            | ClientEvent::AnsweredLate { .. }
            | ClientEvent::Duplicate { .. }
            | ClientEvent::Part(_)
            | ClientEvent::Pong { .. }
            | ClientEvent::PingedAgain => None,
        }
    }
}

/// The first answer: the link is up if the platform observes for it.
fn granted<'a>(at: &mut Context<'_, Coap>, response: &Response<'_>) -> Event<'a> {
    if response.is_observed() {
        return Event::Ready;
    }
    let requests = at.class.dialect.requests(Protocol::Coap);
    let hint = (requests.hint)(Status(response.code.status())).map(str::as_bytes);
    let text = hint.unwrap_or(b"the platform does not observe: its answer has no Observe");
    let reason = Reason::Coap(response.code.0);
    at.refusals.note(reason, text);
    refused(response.code)
}

const fn refused<'a>(code: Code) -> Event<'a> {
    Event::Refused(ConnectFailure::SubscribeRejected(Reason::Coap(code.0)))
}

/// A command that came; none if what came is no command.
fn notified<'a>(at: &mut Context<'_, Coap>, response: &Response<'a>) -> Option<Event<'a>> {
    let requests = at.class.dialect.requests(Protocol::Coap);
    let asked = Segments::of(requests.observed?);
    let mut fields = response.options.iter().filter_map(field);
    let path = &mut at.messages.scratch.reply_path;
    let status = Status(response.code.status());
    match (requests.answered)(status, &mut fields, response.payload, asked, path) {
        Answered::Command(copy) => Some(Event::Command(copy)),
        Answered::Accepted | Answered::Rejected(_) => None,
    }
}
