//! Notifications (RFC 7641): both ends of a session against each other.

use std::sync::Arc;

use muster_model::Micros;
use muster_protocol::coap::{
    Client, ClientEvent, ClientSettings, Code, Failure, Opt, OptionNumber, Reply, Request, Server,
    ServerEvent, ServerSettings, Ticket, Uint,
};

const TICKET: Ticket = Ticket { slot: 0, name: 7 };
const NOW: Micros = Micros(5);
/// 2.03.
const VALID: Code = Code(0x43);

/// An observer, and the server that it asked.
struct Pair {
    client: Client,
    server: Server,
    /// The request as the server knows it.
    pending: muster_protocol::coap::Pending,
}

/// Meaning of a response to the client.
#[derive(Debug, PartialEq, Eq)]
enum Told {
    /// The code and the payload.
    Response(Code, Vec<u8>),
    Notification(Code, Vec<u8>),
    Failed(Failure),
    Nothing,
}

impl Pair {
    /// A pair whose client has sent a request that observes.
    fn new() -> Self {
        let mut client = Client::new(Arc::new(ClientSettings::default()), 1);
        let mut server = Server::new(Arc::new(ServerSettings::default()), 2);
        let options = [
            Opt::new(OptionNumber::OBSERVE, &[]),
            Opt::text(OptionNumber::URI_PATH, "rpc"),
        ];
        let (mut sent, mut answer) = (Vec::new(), Vec::new());
        let request = Request::new(Code::GET, &options, &[]);
        client
            .observe(NOW, TICKET, &request, &mut sent)
            .expect("it is sent");
        let Some(ServerEvent::Request(came)) = server.receive(NOW, &sent, &mut answer) else {
            panic!("a request");
        };
        assert_eq!(came.options.uint(OptionNumber::OBSERVE), Some(0));
        let pending = came.pending;
        Self {
            client,
            server,
            pending,
        }
    }

    /// Sends a response, with that number as a notification; what the client makes of it, and what the server
    /// then hears.
    fn tell(
        &mut self,
        number: Option<u32>,
        (code, payload): (Code, &[u8]),
    ) -> (Told, Option<ServerEvent<'static>>) {
        let value = number.map(Uint::of);
        let options: Vec<_> = value
            .iter()
            .map(|value| Opt::new(OptionNumber::OBSERVE, value))
            .collect();
        let reply = Reply {
            ticket: number.unwrap_or_default(),
            ..Reply::new(code, &options, payload)
        };
        let (mut datagram, mut answer) = (Vec::new(), Vec::new());
        self.server
            .respond(NOW, self.pending, &reply, &mut datagram)
            .expect("it is sent");
        let told = match self.client.receive(NOW, &datagram, &mut answer) {
            Some(ClientEvent::Response(it)) => Told::Response(it.code, it.payload.to_vec()),
            Some(ClientEvent::Notification(it)) => {
                assert_eq!(it.is_observed(), number.is_some() && code.is_success());
                Told::Notification(it.code, it.payload.to_vec())
            }
            Some(ClientEvent::Failed { cause, .. }) => Told::Failed(cause),
            None => Told::Nothing,
            other => panic!("{other:?}"),
        };
        self.pending = self.pending.observed();
        let heard = match self.server.receive(NOW, &answer, &mut Vec::new()) {
            Some(ServerEvent::Acknowledged { ticket }) => {
                Some(ServerEvent::Acknowledged { ticket })
            }
            Some(ServerEvent::Reset { ticket }) => Some(ServerEvent::Reset { ticket }),
            _ => None,
        };
        (told, heard)
    }
}

/// RFC 7641 sections 3.2 and 3.5.
#[test]
fn each_notification_is_reported_and_acknowledged_and_nothing_else_is_due() {
    let mut pair = Pair::new();
    let (first, _) = pair.tell(Some(0), (VALID, b""));
    assert_eq!(first, Told::Response(VALID, Vec::new()));
    assert_eq!(
        (pair.client.deadline(), pair.client.window_free(0)),
        (None, 1)
    );
    for number in 1..4 {
        let body = number.to_string().into_bytes();
        let (told, heard) = pair.tell(Some(number), (Code::CONTENT, &body));
        assert_eq!(told, Told::Notification(Code::CONTENT, body));
        assert_eq!(heard, Some(ServerEvent::Acknowledged { ticket: number }));
    }
    assert_eq!(pair.client.open_exchanges(), 1);
}

/// RFC 7641 sections 3.2 and 3.5.
#[test]
fn an_observation_ends_with_an_error_and_what_comes_later_is_reset() {
    for (number, code) in [(Some(1), Code::NOT_FOUND), (None, Code::CHANGED)] {
        let mut pair = Pair::new();
        pair.tell(Some(0), (VALID, b""));
        let (told, _) = pair.tell(number, (code, b""));
        assert_eq!(told, Told::Notification(code, Vec::new()));
        assert_eq!(pair.client.open_exchanges(), 0);
        let (told, heard) = pair.tell(Some(2), (Code::CONTENT, b"late"));
        assert_eq!(told, Told::Nothing);
        assert_eq!(heard, Some(ServerEvent::Reset { ticket: 2 }));
    }
}

/// RFC 7641 section 3.1.
#[test]
fn a_server_that_does_not_observe_answers_once() {
    let mut pair = Pair::new();
    let (told, _) = pair.tell(None, (Code::CONTENT, b"once"));
    assert_eq!(told, Told::Response(Code::CONTENT, b"once".to_vec()));
    assert_eq!(pair.client.open_exchanges(), 0);
}

#[test]
fn a_notification_in_several_blocks_ends_the_observation() {
    let mut pair = Pair::new();
    pair.tell(Some(0), (VALID, b""));
    let (told, _) = pair.tell(Some(1), (Code::CONTENT, &[7; 3_000]));
    assert_eq!(told, Told::Failed(Failure::Block));
    assert_eq!(pair.client.open_exchanges(), 0);
}

/// RFC 7641 section 3.6.
#[test]
fn an_observation_that_was_given_up_is_reset() {
    let mut pair = Pair::new();
    pair.tell(Some(0), (VALID, b""));
    pair.client.drop_all(|_| {});
    let (told, heard) = pair.tell(Some(1), (Code::CONTENT, b"late"));
    assert_eq!(told, Told::Nothing);
    assert_eq!(heard, Some(ServerEvent::Reset { ticket: 1 }));
}
