//! Notifications (RFC 7641): both ends of a session against each other.

use std::sync::Arc;

use muster_model::Micros;
use muster_protocol::coap::{
    Client, ClientEvent, ClientSettings, Code, ExchangeKey, Failure, Opt, OptionNumber, Reply,
    Request, Server, ServerEvent, ServerSettings, Ticket, Uint,
};

const TICKET: Ticket = Ticket { slot: 0, name: 7 };
const NOW: Micros = Micros(5);

/// An observer, and the server that it asked.
struct Pair {
    client: Client,
    server: Server,
    key: ExchangeKey,
    /// The request as the server knows it.
    pending: muster_protocol::coap::Pending,
}

/// The client's report of a response.
#[derive(Debug, PartialEq, Eq)]
enum Reported {
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
        let key = client
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
            key,
            pending,
        }
    }

    /// Sends a response, with that number as a notification; returns the client's report and its answer, as the
    /// server received it.
    fn respond(
        &mut self,
        number: Option<u32>,
        code: Code,
        payload: &[u8],
    ) -> (Reported, Option<ServerEvent<'static>>) {
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
        let reported = match self.client.receive(NOW, &datagram, &mut answer) {
            Some(ClientEvent::Response(it)) => Reported::Response(it.code, it.payload.to_vec()),
            Some(ClientEvent::Notification(it)) => {
                assert_eq!(it.is_observed(), number.is_some() && code.is_success());
                Reported::Notification(it.code, it.payload.to_vec())
            }
            Some(ClientEvent::Failed { cause, .. }) => Reported::Failed(cause),
            None => Reported::Nothing,
            other => panic!("{other:?}"),
        };
        self.pending = self.pending.observed();
        let received = match self.server.receive(NOW, &answer, &mut Vec::new()) {
            Some(ServerEvent::Acknowledged { ticket }) => {
                Some(ServerEvent::Acknowledged { ticket })
            }
            Some(ServerEvent::Reset { ticket }) => Some(ServerEvent::Reset { ticket }),
            _ => None,
        };
        (reported, received)
    }
}

/// RFC 7641 sections 3.2 and 3.5.
#[test]
fn each_notification_is_reported_and_acknowledged_and_nothing_else_is_due() {
    let mut pair = Pair::new();
    let (first, _) = pair.respond(Some(0), Code::VALID, b"");
    assert_eq!(first, Reported::Response(Code::VALID, Vec::new()));
    assert_eq!(
        (pair.client.deadline(), pair.client.window_free(0)),
        (None, 1)
    );
    for number in 1..4 {
        let body = number.to_string().into_bytes();
        let (reported, received) = pair.respond(Some(number), Code::CONTENT, &body);
        assert_eq!(reported, Reported::Notification(Code::CONTENT, body));
        assert_eq!(received, Some(ServerEvent::Acknowledged { ticket: number }));
    }
    assert_eq!(pair.client.open_exchanges(), 1);
}

/// RFC 7641 sections 3.2 and 3.5.
#[test]
fn an_observation_ends_with_an_error_and_what_comes_later_is_reset() {
    for (number, code) in [(Some(1), Code::NOT_FOUND), (None, Code::CHANGED)] {
        let mut pair = Pair::new();
        pair.respond(Some(0), Code::VALID, b"");
        let (reported, _) = pair.respond(number, code, b"");
        assert_eq!(reported, Reported::Notification(code, Vec::new()));
        assert_eq!(pair.client.open_exchanges(), 0);
        let (reported, received) = pair.respond(Some(2), Code::CONTENT, b"late");
        assert_eq!(reported, Reported::Nothing);
        assert_eq!(received, Some(ServerEvent::Reset { ticket: 2 }));
    }
}

/// RFC 7641 section 3.1.
#[test]
fn a_server_that_does_not_observe_answers_once() {
    let mut pair = Pair::new();
    let (reported, _) = pair.respond(None, Code::CONTENT, b"once");
    assert_eq!(
        reported,
        Reported::Response(Code::CONTENT, b"once".to_vec())
    );
    assert_eq!(pair.client.open_exchanges(), 0);
}

#[test]
fn a_notification_in_several_blocks_ends_the_observation() {
    let mut pair = Pair::new();
    pair.respond(Some(0), Code::VALID, b"");
    let (reported, _) = pair.respond(Some(1), Code::CONTENT, &[7; 3_000]);
    assert_eq!(reported, Reported::Failed(Failure::Block));
    assert_eq!(pair.client.open_exchanges(), 0);
}

/// RFC 7641 section 3.6.
#[test]
fn an_observation_that_was_given_up_is_reset() {
    let ways: [fn(&mut Client, ExchangeKey); 3] = [
        |client, _| client.drop_all(|_| {}),
        |client, key| client.abandon(key),
        |client, key| assert!(client.forget(key)),
    ];
    for give_up in ways {
        let mut pair = Pair::new();
        pair.respond(Some(0), Code::VALID, b"");
        give_up(&mut pair.client, pair.key);
        assert_eq!(pair.client.open_exchanges(), 0);
        let (reported, received) = pair.respond(Some(1), Code::CONTENT, b"late");
        assert_eq!(reported, Reported::Nothing);
        assert_eq!(received, Some(ServerEvent::Reset { ticket: 1 }));
    }
}

/// The response is late, alone or in its acknowledgement.
#[test]
fn a_notification_before_the_response_begins_the_observation() {
    let mut pair = Pair::new();
    let in_acknowledgement = pair.pending;
    pair.pending = pair.pending.observed();
    let (reported, received) = pair.respond(Some(1), Code::CONTENT, b"first");
    let first = Reported::Response(Code::CONTENT, b"first".to_vec());
    assert_eq!(reported, first);
    assert_eq!(received, Some(ServerEvent::Acknowledged { ticket: 1 }));
    let (reported, received) = pair.respond(Some(0), Code::VALID, b"");
    let late = Reported::Notification(Code::VALID, Vec::new());
    assert_eq!(reported, late);
    assert_eq!(received, Some(ServerEvent::Acknowledged { ticket: 0 }));
    pair.pending = in_acknowledgement;
    let (reported, _) = pair.respond(Some(0), Code::VALID, b"");
    assert_eq!(reported, Reported::Nothing);
    assert_eq!(pair.client.open_exchanges(), 1);
}
