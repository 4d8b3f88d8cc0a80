//! Commands that come as notifications (RFC 7641): a link observes them before it is up.

use muster_model::{Cause, ConnectFailure, Reason};
use muster_platform::{
    Answered, Asking, CommandCopy, Protocol, ReplyPath, Requests, Segments, Status,
};
use muster_protocol::coap::{
    Again, ClientEvent, Code, ExchangeKey, Failure, Opt, OptionNumber, Refused, Response,
};

use super::answering::field;
use super::requesting::with_options;
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
        at.class.observe(topic, scratch, |request| match again {
            Some(key) => exchanges.again(now, key, request, out),
            None => exchanges.observe(now, NAME, request, out).map(|_| ()),
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
            ClientEvent::Notification(response) => {
                let requests = at.class.dialect.requests(Protocol::Coap);
                let path = &mut at.messages.scratch.reply_path;
                command(requests, response, path).map(Event::Command)
            }
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
fn granted<'a>(at: &mut Context<'_, Coap>, response: &Response<'a>) -> Event<'a> {
    let requests = at.class.dialect.requests(Protocol::Coap);
    if response.is_observed() {
        return begun(requests, response, &mut at.messages.scratch.reply_path);
    }
    let hint = (requests.hint)(Status(response.code.status())).map(str::as_bytes);
    let text = hint.unwrap_or(b"the platform does not observe: its answer has no Observe");
    let reason = Reason::Coap(response.code.0);
    at.refusals.note(reason, text);
    refused(response.code)
}

const fn refused<'a>(code: Code) -> Event<'a> {
    Event::Refused(ConnectFailure::SubscribeRejected(Reason::Coap(code.0)))
}

/// The link is up. If a notification came before the response, its command is the first answer.
fn begun<'a>(requests: &Requests, response: &Response<'a>, path: &mut ReplyPath) -> Event<'a> {
    let command = command(requests, response, path);
    command.map_or(Event::Ready, Event::ReadyWith)
}

/// A command that came; none if the response has none, as the one to the request itself.
fn command<'a>(
    requests: &Requests,
    response: &Response<'a>,
    path: &mut ReplyPath,
) -> Option<CommandCopy<'a>> {
    if response.code == Code::VALID || response.payload.is_empty() {
        return None;
    }
    let asked = Segments::of(requests.observed?);
    let mut fields = response.options.iter().filter_map(field);
    let status = Status(response.code.status());
    match (requests.answered)(status, &mut fields, response.payload, asked, path) {
        Answered::Command(copy) => Some(copy),
        Answered::Accepted | Answered::Rejected(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use muster_model::Micros;
    use muster_platform::Dialect;
    use muster_protocol::coap::{Client, ClientSettings, Message, Request, Ticket};

    use super::*;

    const NOW: Micros = Micros(5);
    const COMMAND: &[u8] = br#"{"id":41,"method":"setGpio","params":{}}"#;

    /// A client that has asked for notifications.
    struct Observer {
        client: Client,
        token: Vec<u8>,
    }

    impl Observer {
        fn new() -> Self {
            let mut client = Client::new(Arc::new(ClientSettings::default()), 1);
            let ticket = Ticket {
                slot: 0,
                name: NAME,
            };
            let request = Request::new(Code::GET, &[OBSERVE], &[]);
            let mut sent = Vec::new();
            client
                .observe(NOW, ticket, &request, &mut sent)
                .expect("it is sent");
            let sent = Message::decode(&sent).expect("a request");
            Self {
                client,
                token: sent.token.as_bytes().to_vec(),
            }
        }

        /// A confirmable response of that message id with Observe.
        fn response(&self, id: u8, code: Code, payload: &[u8]) -> Vec<u8> {
            let head = [0x40 | self.token.len() as u8, code.0, 0, id];
            let marker: &[u8] = if payload.is_empty() { &[] } else { &[0xff] };
            [&head[..], &self.token, &[0x60], marker, payload].concat()
        }
    }

    #[test]
    fn a_command_before_the_response_comes_with_the_link_and_the_response_is_no_command() {
        let requests = Dialect::Thingsboard.requests(Protocol::Coap);
        let mut observer = Observer::new();
        let (mut path, mut out) = (ReplyPath::default(), Vec::new());
        let datagram = observer.response(1, Code::CONTENT, COMMAND);
        let event = observer.client.receive(NOW, &datagram, &mut out);
        let Some(ClientEvent::Response(response)) = event else {
            panic!("{event:?}");
        };
        let first = begun(requests, &response, &mut path);
        assert!(matches!(first, Event::ReadyWith(_)), "{first:?}");
        assert!(path.segments().eq(["41"]));
        let datagram = observer.response(2, Code::VALID, b"");
        let event = observer.client.receive(NOW, &datagram, &mut out);
        let Some(ClientEvent::Notification(response)) = event else {
            panic!("{event:?}");
        };
        assert_eq!(command(requests, &response, &mut path), None);
    }

    #[test]
    fn a_response_without_a_command_is_the_link_alone() {
        let requests = Dialect::Thingsboard.requests(Protocol::Coap);
        for code in [Code::VALID, Code::CONTENT] {
            let mut observer = Observer::new();
            let datagram = observer.response(1, code, b"");
            let event = observer.client.receive(NOW, &datagram, &mut Vec::new());
            let Some(ClientEvent::Response(response)) = event else {
                panic!("{event:?}");
            };
            let first = begun(requests, &response, &mut ReplyPath::default());
            assert_eq!(first, Event::Ready);
        }
    }
}
