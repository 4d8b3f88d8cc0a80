//! The client end against datagrams written by hand.

use std::sync::Arc;

use muster_model::Micros;
use muster_protocol::coap::{
    Again, Block, BlockSize, Client, ClientEvent, ClientSettings, Code, ExchangeKey, Failure,
    Header, Kind, Message, Opt, OptionNumber, Refused, Request, SharedClient, Ticket, Token,
    Transmission, Uint,
};
use proptest::prelude::*;

const SECOND: u64 = 1_000_000;
const TICKET: Ticket = Ticket { slot: 0, name: 7 };

fn ticket(name: u32) -> Ticket {
    Ticket { slot: 0, name }
}

fn path(text: &str) -> [Opt<'_>; 1] {
    [Opt::text(OptionNumber::URI_PATH, text)]
}

/// A client, its clock, and what it sent last.
struct Device {
    client: Client,
    now: Micros,
    sent: Vec<u8>,
}

impl Device {
    fn new(settings: ClientSettings) -> Self {
        Self {
            client: Client::new(Arc::new(settings), 1),
            now: Micros(5),
            sent: Vec::new(),
        }
    }

    fn standard() -> Self {
        Self::new(ClientSettings::default())
    }

    fn ask(&mut self, request: &Request<'_>) -> ExchangeKey {
        self.try_ask(TICKET, request).expect("it is sent")
    }

    fn try_ask(&mut self, ticket: Ticket, request: &Request<'_>) -> Result<ExchangeKey, Refused> {
        self.sent.clear();
        self.client
            .request(self.now, ticket, request, &mut self.sent)
    }

    fn again(&mut self, key: ExchangeKey, request: &Request<'_>) {
        self.sent.clear();
        let again = self.client.again(self.now, key, request, &mut self.sent);
        assert_eq!(again, Ok(()));
    }

    /// Returns the last datagram sent, which is one message.
    fn last(&self) -> Message<'_> {
        Message::decode(&self.sent).expect("one message")
    }

    fn hears<'d>(&mut self, datagram: &'d [u8]) -> Option<ClientEvent<'d>> {
        self.sent.clear();
        self.client.receive(self.now, datagram, &mut self.sent)
    }

    /// Goes on to the next deadline.
    fn waits(&mut self) -> Option<ClientEvent<'static>> {
        self.now = self.client.deadline().expect("something is due");
        self.sent.clear();
        self.client.wake(self.now, &mut self.sent)
    }
}

/// The answer to what a device sent last, piggybacked.
fn answer(to: &Message<'_>, code: Code, options: &[Opt<'_>], payload: &[u8]) -> Vec<u8> {
    message(
        Kind::Acknowledgement,
        to.id,
        to.token,
        (code, options, payload),
    )
}

fn message(kind: Kind, id: u16, token: Token, rest: (Code, &[Opt<'_>], &[u8])) -> Vec<u8> {
    let (code, options, payload) = rest;
    let mut out = Vec::new();
    Header {
        kind,
        code,
        id,
        token,
    }
    .write_with(options, payload, &mut out);
    out
}

fn empty(kind: Kind, id: u16) -> Vec<u8> {
    let mut out = Vec::new();
    Header::empty(kind, id).write(&mut out);
    out
}

/// RFC 7252 section 5.2.1: the response comes in the acknowledgement.
#[test]
fn a_piggybacked_response_ends_its_exchange() {
    let mut device = Device::standard();
    let path = path("t");
    device.ask(&Request::new(Code::POST, &path, b"21.5"));
    let sent = device.last();
    assert_eq!(
        (sent.kind, sent.code, sent.payload),
        (Kind::Confirmable, Code::POST, &b"21.5"[..])
    );
    assert_eq!(sent.token.as_bytes().len(), 8);
    assert_eq!(sent.options.iter().collect::<Vec<_>>(), path);
    let datagram = answer(&sent, Code::CHANGED, &[], b"ok");
    let Some(ClientEvent::Response(response)) = device.hears(&datagram) else {
        panic!("a response");
    };
    assert_eq!(
        (response.ticket, response.code, response.payload),
        (TICKET, Code::CHANGED, &b"ok"[..])
    );
    assert!(!response.is_separate && response.block.is_none());
    assert!(device.sent.is_empty(), "an acknowledgement is not answered");
    assert_eq!(
        (device.client.open_exchanges(), device.client.deadline()),
        (0, None)
    );
}

/// RFC 7252 section 5.3.2: message id and token of a piggybacked response both have to match.
#[test]
fn an_acknowledgement_of_another_message_or_token_is_ignored() {
    let mut device = Device::standard();
    device.ask(&Request::new(Code::GET, &[], b""));
    let sent = device.sent.clone();
    let sent = Message::decode(&sent).expect("a request");
    let other_id = Message {
        id: sent.id.wrapping_add(1),
        ..sent
    };
    let other_token = Message {
        token: Token::EMPTY,
        ..sent
    };
    for other in [other_id, other_token] {
        assert_eq!(device.hears(&answer(&other, Code::CONTENT, &[], b"")), None);
    }
    assert_eq!(device.client.counts().stray, 2);
    let datagram = answer(&sent, Code::CONTENT, &[], b"");
    assert!(matches!(
        device.hears(&datagram),
        Some(ClientEvent::Response(_))
    ));
}

/// RFC 7252 section 4.5: what comes again changes nothing. A second answer in an acknowledgement is
/// told until its device has a later one, whatever was asked meanwhile.
#[test]
fn a_second_acknowledgement_with_the_same_answer_is_told_as_a_duplicate() {
    let mut device = Device::standard();
    let mut answers = Vec::new();
    for name in [0, u32::MAX - 1] {
        let asked = device.try_ask(ticket(name), &Request::new(Code::POST, &[], b""));
        assert!(asked.is_ok());
        let datagram = answer(&device.last(), Code::CHANGED, &[], b"");
        let event = device.hears(&datagram);
        assert!(matches!(event, Some(ClientEvent::Response(_))));
        answers.push((ticket(name), datagram));
    }
    let [(_, first), (last, second)] = &answers[..] else {
        panic!("two answers");
    };
    device.ask(&Request::new(Code::POST, &[], b""));
    let again = Some(ClientEvent::Duplicate { ticket: *last });
    for _ in 0..2 {
        assert_eq!(device.hears(second), again);
        assert!(device.sent.is_empty(), "an acknowledgement is not answered");
    }
    assert_eq!(device.hears(first), None, "too long ago");
    let counts = device.client.counts();
    assert_eq!((counts.duplicates, counts.stray), (2, 1));
    assert_eq!(device.client.open_exchanges(), 1);
}

/// Each copy of a request may be answered (RFC 7252 section 4.5), and so no answer to one is a second
/// one.
#[test]
fn the_answer_to_a_copy_of_a_request_is_no_second_answer() {
    let mut device = Device::standard();
    let request = Request::new(Code::POST, &[], b"");
    let key = device.ask(&request);
    assert!(matches!(device.waits(), Some(ClientEvent::Again { .. })));
    device.again(key, &request);
    let datagram = answer(&device.last(), Code::CHANGED, &[], b"");
    assert!(device.hears(&datagram).is_some());
    assert_eq!(device.hears(&datagram), None);
    let counts = device.client.counts();
    assert_eq!((counts.duplicates, counts.stray), (0, 1));
}

/// A second answer has the message id and the token of the first (RFC 7252 section 5.3.2).
#[test]
fn what_only_resembles_a_second_answer_is_stray() {
    let mut device = Device::standard();
    device.ask(&Request::new(Code::POST, &[], b""));
    let sent = device.sent.clone();
    let sent = Message::decode(&sent).expect("a request");
    let datagram = answer(&sent, Code::CHANGED, &[], b"");
    assert!(device.hears(&datagram).is_some());
    let mut token = sent.token.as_bytes().to_vec();
    token[7] ^= 1;
    let token = Token::new(&token).expect("a token");
    let other = answer(&Message { token, ..sent }, Code::CHANGED, &[], b"");
    assert_eq!(device.hears(&other), None, "of another token");
    let again = ClientEvent::Duplicate { ticket: TICKET };
    assert_eq!(device.hears(&datagram), Some(again));
    let counts = device.client.counts();
    assert_eq!((counts.duplicates, counts.stray), (1, 1));
}

/// RFC 7252 section 4.4: message ids of a socket come again. What is then said to one of them has
/// nothing to do with who had it before, though that device was silent ever since.
#[test]
fn a_device_that_is_silent_gets_no_second_answers_of_others() {
    let mut client = SharedClient::shared(Arc::new(ClientSettings::default()), 3, 2);
    let (mut now, mut out) = (Micros(5), Vec::new());
    let request = Request::new(Code::POST, &[], b"");
    let mut ask = |client: &mut SharedClient, slot, is_copied: bool| {
        now += Micros(SECOND / 250);
        out.clear();
        let ticket = Ticket { slot, name: 7 };
        let key = client.request(now, ticket, &request, &mut out);
        let key = key.expect("it is sent");
        if is_copied {
            let due = client.deadline().expect("a copy is due");
            assert!(client.wake(due, &mut out).is_some());
            out.clear();
            assert_eq!(client.again(due, key, &request, &mut out), Ok(()));
        }
        let sent = Message::decode(&out).expect("a request");
        let (id, datagram) = (sent.id, answer(&sent, Code::CHANGED, &[], b""));
        assert!(client.receive(now, &datagram, &mut Vec::new()).is_some());
        let again = match client.receive(now, &datagram, &mut Vec::new()) {
            Some(ClientEvent::Duplicate { ticket }) => Some(ticket.slot),
            _ => None,
        };
        (id, again)
    };
    let (first, again) = ask(&mut client, 1, false);
    assert_eq!(again, Some(1));
    for _ in 1..1 << 16 {
        let (_, again) = ask(&mut client, 0, false);
        assert_eq!(again, Some(0));
    }
    let (wrapped, again) = ask(&mut client, 0, true);
    assert_eq!((wrapped, again), (first, None), "one answer to each copy");
    assert_eq!(client.counts().stray, 1);
}

/// Devices that share a socket are told from each other by the message ids of their last answers.
#[test]
fn a_second_answer_is_told_of_the_device_whose_request_it_answers() {
    let settings = Arc::new(ClientSettings::default());
    let mut client = SharedClient::shared(settings, 3, 4);
    let (now, mut out) = (Micros(5), Vec::new());
    let mut asked = Vec::new();
    for slot in 0..4 {
        let ticket = Ticket { slot, name: 7 };
        out.clear();
        let request = Request::new(Code::POST, &[], b"");
        let key = client.request(now, ticket, &request, &mut out);
        assert!(key.is_ok());
        let sent = Message::decode(&out).expect("a request");
        asked.push((ticket, answer(&sent, Code::CHANGED, &[], b"")));
    }
    for (_, datagram) in &asked[1..] {
        assert!(client.receive(now, datagram, &mut out).is_some());
    }
    for (ticket, datagram) in &asked[1..] {
        let again = ClientEvent::Duplicate { ticket: *ticket };
        assert_eq!(client.receive(now, datagram, &mut out), Some(again));
    }
    let (first, datagram) = &asked[0];
    let event = client.receive(now, datagram, &mut out);
    let Some(ClientEvent::Response(response)) = event else {
        panic!("the first answer of the first device");
    };
    assert_eq!(response.ticket, *first);
}

/// RFC 7252 section 5.2.2, figure 5: an empty acknowledgement, later the response as a CON with the
/// same token, which is acknowledged, and again for its duplicates (section 4.5).
#[test]
fn a_separate_response_is_acknowledged_as_often_as_it_comes() {
    let mut device = Device::standard();
    let key = device.ask(&Request::new(Code::GET, &[], b""));
    let sent = device.sent.clone();
    let sent = Message::decode(&sent).expect("a request");
    let acknowledged = ClientEvent::Acknowledged {
        ticket: TICKET,
        key,
    };
    assert_eq!(
        device.hears(&empty(Kind::Acknowledgement, sent.id)),
        Some(acknowledged)
    );
    device.now += Micros(60 * SECOND);
    assert_eq!(
        device.client.wake(device.now, &mut Vec::new()),
        None,
        "no copies any more"
    );

    let datagram = message(
        Kind::Confirmable,
        0xad7b,
        sent.token,
        (Code::CONTENT, &[], b"22.5 C"),
    );
    let Some(ClientEvent::Response(response)) = device.hears(&datagram) else {
        panic!("a response");
    };
    assert!(response.is_separate && response.payload == b"22.5 C");
    for duplicate in 1..=3 {
        assert_eq!(device.sent, empty(Kind::Acknowledgement, 0xad7b));
        let ticket = response.ticket;
        let again = Some(ClientEvent::Duplicate { ticket });
        assert_eq!(device.hears(&datagram), again);
        assert_eq!(device.client.counts().duplicates, duplicate);
    }
}

/// Section 4.5 has the bound that a socket's memory has: beyond it the oldest is forgotten.
#[test]
fn separate_responses_beyond_the_bound_are_forgotten() {
    let mut device = Device::new(ClientSettings {
        remembered_max: 2,
        ..ClientSettings::default()
    });
    let mut came = Vec::new();
    for id in 0..3 {
        device.ask(&Request::new(Code::GET, &[], b""));
        let token = device.last().token;
        let datagram = message(Kind::Confirmable, id, token, (Code::CONTENT, &[], b""));
        assert!(device.hears(&datagram).is_some());
        came.push(datagram);
    }
    assert_eq!(
        device.hears(&came[0]),
        None,
        "taken for an answer to nobody"
    );
    assert_eq!(device.sent, empty(Kind::Reset, 0));
}

/// RFC 7252 section 9.1.1: the message ids of the server are those of a session, and a server may begin
/// each with the same one. With a new socket alone its endpoint stays, and so does what it said.
#[test]
fn what_came_is_forgotten_with_a_session_and_not_with_a_socket() {
    for is_new in [true, false] {
        let mut device = Device::standard();
        let mut told = Vec::new();
        for _ in 0..2 {
            device.ask(&Request::new(Code::GET, &[], b""));
            let (token, rest) = (device.last().token, (Code::CONTENT, &[][..], &b""[..]));
            let datagram = message(Kind::Confirmable, 0xad7b, token, rest);
            let event = device.hears(&datagram);
            told.push(matches!(event, Some(ClientEvent::Response(_))));
            assert_eq!(device.sent, empty(Kind::Acknowledgement, 0xad7b));
            device.client.drop_all(|_| {});
            if is_new {
                device.client.begin_session();
            }
        }
        assert_eq!(told, [true, is_new]);
        let duplicates = device.client.counts().duplicates;
        assert_eq!(duplicates, u32::from(!is_new));
    }
}

/// RFC 7252 section 9.1.1: nor does an answer belong to a session that came after its request.
#[test]
fn a_session_has_no_second_answers_to_requests_of_the_one_before() {
    let mut device = Device::standard();
    device.ask(&Request::new(Code::POST, &[], b""));
    let datagram = answer(&device.last(), Code::CHANGED, &[], b"");
    assert!(device.hears(&datagram).is_some());
    device.client.begin_session();
    assert_eq!(device.hears(&datagram), None);
    let counts = device.client.counts();
    assert_eq!((counts.duplicates, counts.stray), (0, 1));
}

/// RFC 7252 sections 4.2 and 5.2.2: a response implies the acknowledgement that was lost.
#[test]
fn a_separate_response_may_come_before_its_acknowledgement() {
    let mut device = Device::standard();
    device.ask(&Request::new(Code::GET, &[], b""));
    let (id, token) = (device.last().id, device.last().token);
    let datagram = message(Kind::NonConfirmable, 1, token, (Code::CONTENT, &[], b""));
    assert!(matches!(
        device.hears(&datagram),
        Some(ClientEvent::Response(_))
    ));
    assert!(device.sent.is_empty(), "a NON is not acknowledged");
    assert_eq!(device.hears(&empty(Kind::Acknowledgement, id)), None);
    assert_eq!(device.client.window_free(0), 1);
}

/// RFC 7252 section 4.2: a CON that nobody waits for is rejected with a reset, its duplicates too.
#[test]
fn a_response_nobody_waits_for_is_reset() {
    let mut device = Device::standard();
    let token = Token::new(&[1, 2, 3]).expect("a token");
    let datagram = message(Kind::Confirmable, 9, token, (Code::CONTENT, &[], b""));
    for _ in 0..2 {
        assert_eq!(device.hears(&datagram), None);
        assert_eq!(device.sent, empty(Kind::Reset, 9));
    }
    assert_eq!(
        (
            device.client.counts().stray,
            device.client.counts().duplicates
        ),
        (1, 1)
    );
    let datagram = message(Kind::NonConfirmable, 10, token, (Code::CONTENT, &[], b""));
    assert_eq!(device.hears(&datagram), None);
    assert!(device.sent.is_empty(), "section 4.3: in silence");
}

/// RFC 7252 section 4.2: the same bytes again after a timeout that doubles, `MAX_RETRANSMIT` times,
/// and then no more: within 31 to 46.5 first timeouts of 2 s.
#[test]
fn a_con_is_sent_five_times_and_then_given_up() {
    let mut device = Device::standard();
    let request = Request::new(Code::POST, &[], b"x");
    let (began, key) = (device.now, device.ask(&request));
    let first = device.sent.clone();
    let mut waits = Vec::new();
    for _ in 0..4 {
        let before = device.now;
        let cause = Again::Retransmission;
        assert_eq!(
            device.waits(),
            Some(ClientEvent::Again {
                ticket: TICKET,
                key,
                cause
            })
        );
        waits.push((device.now - before).get());
        device.again(key, &request);
        assert_eq!(device.sent, first);
        let once_more = device
            .client
            .again(device.now, key, &request, &mut Vec::new());
        assert_eq!(once_more, Err(Refused::NothingDue), "one copy a timeout");
    }
    assert!((2 * SECOND..=3 * SECOND).contains(&waits[0]));
    assert!(waits.windows(2).all(|pair| pair[1] == 2 * pair[0]));
    let cause = Failure::Unacknowledged;
    assert_eq!(
        device.waits(),
        Some(ClientEvent::Failed {
            ticket: TICKET,
            cause
        })
    );
    assert_eq!(device.now - began, Micros(31 * waits[0]));
    assert_eq!(device.client.counts().retransmitted, 4);
    assert_eq!(
        (device.client.window_free(0), device.client.deadline()),
        (1, None)
    );
}

/// RFC 7252 section 4.8: every parameter is the caller's to set.
#[test]
fn transmission_parameters_are_the_callers() {
    let transmission = Transmission::of(Micros(1_000), 1.0, 1);
    let mut device = Device::new(ClientSettings {
        transmission,
        ..ClientSettings::default()
    });
    let request = Request::new(Code::GET, &[], b"");
    device.ask(&request);
    assert!(matches!(device.waits(), Some(ClientEvent::Again { .. })));
    assert_eq!(device.now, Micros(1_005));
    assert!(matches!(device.waits(), Some(ClientEvent::Failed { .. })));
    assert_eq!(device.now, Micros(3_005));
}

/// RFC 7252 section 4.2: a reset ends the exchange.
#[test]
fn a_reset_ends_con_and_non() {
    for is_confirmable in [true, false] {
        let mut device = Device::standard();
        device.ask(&Request {
            is_confirmable,
            ..Request::new(Code::GET, &[], b"")
        });
        let id = device.last().id;
        let cause = Failure::Reset;
        let failed = Some(ClientEvent::Failed {
            ticket: TICKET,
            cause,
        });
        assert_eq!(device.hears(&empty(Kind::Reset, id)), failed);
        assert_eq!(device.hears(&empty(Kind::Reset, id)), None);
        assert_eq!(device.client.counts().stray, 1);
    }
}

/// RFC 7252 sections 4.3 and 4.8.2: a NON is sent once, and its answer waited for over
/// `NON_LIFETIME`; an acknowledged CON over `EXCHANGE_LIFETIME`.
#[test]
fn what_is_never_answered_ends_with_its_lifetime() {
    let mut device = Device::standard();
    let cause = Failure::Unanswered;
    let failed = Some(ClientEvent::Failed {
        ticket: TICKET,
        cause,
    });
    let began = device.now;
    device.ask(&Request {
        is_confirmable: false,
        ..Request::new(Code::GET, &[], b"")
    });
    assert_eq!(device.last().kind, Kind::NonConfirmable);
    assert_eq!(device.waits(), failed);
    assert_eq!(device.now - began, Micros(145 * SECOND));

    let began = device.now;
    device.ask(&Request::new(Code::GET, &[], b""));
    let id = device.last().id;
    assert!(device.hears(&empty(Kind::Acknowledgement, id)).is_some());
    assert_eq!(device.waits(), failed);
    assert_eq!(device.now - began, Micros(247 * SECOND));
}

/// RFC 7252 section 4.7: NSTART interactions are open at once; one that is acknowledged is not.
#[test]
fn nstart_bounds_what_waits_for_an_answer() {
    let mut device = Device::new(ClientSettings {
        nstart: 2,
        ..ClientSettings::default()
    });
    let request = Request::new(Code::GET, &[], b"");
    device.ask(&request);
    let first = device.sent.clone();
    device.ask(&Request {
        is_confirmable: false,
        ..request
    });
    let second = device.sent.clone();
    assert_eq!(device.try_ask(ticket(9), &request), Err(Refused::Window));
    assert_eq!(device.client.window_free(0), 0);
    let (first, second) = (Message::decode(&first), Message::decode(&second));
    let (first, second) = (first.expect("one"), second.expect("two"));
    assert_ne!((first.id, first.token), (second.id, second.token));
    device.hears(&empty(Kind::Acknowledgement, first.id));
    assert_eq!(device.client.window_free(0), 1);
    let datagram = message(
        Kind::NonConfirmable,
        1,
        second.token,
        (Code::CONTENT, &[], b""),
    );
    assert!(device.hears(&datagram).is_some());
    assert_eq!(device.client.window_free(0), 2);
    assert_eq!(device.client.open_exchanges(), 1, "the acknowledged one");
}

/// RFC 7252 section 4.4: a message id is not used again within `EXCHANGE_LIFETIME`.
#[test]
fn without_a_free_message_id_a_request_is_refused() {
    let mut device = Device::standard();
    let request = Request::new(Code::GET, &[], b"");
    let mut ids = vec![false; 65_536];
    for _ in 0..65_536 {
        device.ask(&request);
        let sent = device.sent.clone();
        let sent = Message::decode(&sent).expect("a request");
        assert!(!std::mem::replace(&mut ids[usize::from(sent.id)], true));
        assert!(
            device
                .hears(&answer(&sent, Code::CONTENT, &[], b""))
                .is_some()
        );
    }
    let free_at = Micros(5 + 247 * SECOND);
    assert_eq!(
        device.try_ask(TICKET, &request),
        Err(Refused::NoMessageId { free_at })
    );
    device.now = free_at;
    device.ask(&request);
}

/// RFC 7252 section 4.3: a ping is an empty CON; the reset that answers it says that the server is
/// there. It is sent again like any CON.
#[test]
fn a_ping_is_answered_by_a_reset() {
    let mut device = Device::standard();
    device.sent.clear();
    device
        .client
        .ping(device.now, TICKET, &mut device.sent)
        .expect("it is sent");
    let ping = device.sent.clone();
    assert_eq!((ping.len(), ping[0], ping[1]), (4, 0x40, 0));
    assert_eq!(device.waits(), Some(ClientEvent::PingedAgain));
    assert_eq!(device.sent, ping);
    let id = device.last().id;
    let content = message(
        Kind::Acknowledgement,
        id,
        Token::EMPTY,
        (Code::CONTENT, &[], b""),
    );
    assert_eq!(device.hears(&content), None);
    assert_eq!(
        device.hears(&empty(Kind::Reset, id)),
        Some(ClientEvent::Pong { ticket: TICKET })
    );
}

/// RFC 7252 sections 4.2 and 4.3: a client resets pings and requests, and what is malformed.
#[test]
fn what_a_client_cannot_take_is_reset_if_it_is_confirmable() {
    let mut device = Device::standard();
    for (datagram, answer) in [
        (&[0x40, 0, 0, 9][..], Some(9)),
        (&[0x40, 1, 0, 8], Some(8)),
        (&[0x50, 1, 0, 7], None),
        (&[0x40, 0x45, 0, 6, 0xff], Some(6)),
        (&[0x50, 0x45, 0, 5, 0xff], None),
        (&[0x80, 0x45, 0, 5], None),
    ] {
        assert_eq!(device.hears(datagram), None);
        let wanted = answer.map_or(Vec::new(), |id| empty(Kind::Reset, id));
        assert_eq!(device.sent, wanted, "{datagram:?}");
    }
    let counts = device.client.counts();
    assert_eq!((counts.unexpected, counts.malformed), (3, 3));
}

/// RFC 7252 section 5.4.1: a response with a critical option that is not known is rejected: a
/// separate one with a reset, one in an acknowledgement in silence.
#[test]
fn a_response_with_an_unknown_critical_option_is_rejected() {
    let options = [Opt::new(OptionNumber(9), b"")];
    let cause = Failure::BadOption(OptionNumber(9));
    let failed = Some(ClientEvent::Failed {
        ticket: TICKET,
        cause,
    });
    let mut device = Device::standard();
    device.ask(&Request::new(Code::GET, &[], b""));
    let datagram = answer(&device.last(), Code::CONTENT, &options, b"");
    assert_eq!(device.hears(&datagram), failed);
    assert!(device.sent.is_empty());

    device.ask(&Request::new(Code::GET, &[], b""));
    let token = device.last().token;
    let datagram = message(Kind::Confirmable, 3, token, (Code::CONTENT, &options, b""));
    assert_eq!(device.hears(&datagram), failed);
    assert_eq!(device.sent, empty(Kind::Reset, 3));
}

/// RFC 7252 section 5.9.3.4: Max-Age of 5.03 is the time for which a device keeps silent, unless it
/// is told not to obey.
#[test]
fn max_age_of_unavailable_keeps_a_device_silent() {
    for obeys_max_age in [true, false] {
        let mut device = Device::new(ClientSettings {
            obeys_max_age,
            ..ClientSettings::default()
        });
        let request = Request::new(Code::POST, &[], b"");
        device.ask(&request);
        let age = Uint::of(2);
        let options = [Opt::new(OptionNumber::MAX_AGE, &age)];
        let datagram = answer(
            &device.last(),
            Code::SERVICE_UNAVAILABLE,
            &options,
            b"later",
        );
        let Some(ClientEvent::Response(response)) = device.hears(&datagram) else {
            panic!("a response");
        };
        assert_eq!(
            (response.code, response.options.max_age()),
            (Code::SERVICE_UNAVAILABLE, Some(2))
        );
        let until = device.now + Micros(2 * SECOND);
        if obeys_max_age {
            assert_eq!(
                device.try_ask(TICKET, &request),
                Err(Refused::Held { until })
            );
            assert_eq!(device.client.held_until(0), until);
            device.now = until;
        }
        device.ask(&request);
    }
}

/// A request that its caller gave up sends nothing more, and its answer is late; a second change of
/// mind changes nothing.
#[test]
fn a_forgotten_request_is_answered_late() {
    let mut device = Device::standard();
    let request = Request::new(Code::GET, &[], b"");
    let key = device.ask(&request);
    let sent = device.sent.clone();
    let sent = Message::decode(&sent).expect("a request");
    assert!(device.client.forget(key));
    assert!(!device.client.forget(key));
    assert_eq!(device.client.window_free(0), 1);
    device.now += Micros(30 * SECOND);
    assert_eq!(device.client.wake(device.now, &mut Vec::new()), None);
    assert_eq!(
        device
            .client
            .again(device.now, key, &request, &mut Vec::new()),
        Err(Refused::NothingDue)
    );
    let late = ClientEvent::AnsweredLate {
        ticket: TICKET,
        code: Some(Code::CONTENT),
    };
    assert_eq!(
        device.hears(&answer(&sent, Code::CONTENT, &[], b"")),
        Some(late)
    );

    let key = device.ask(&request);
    assert!(device.client.forget(key));
    device.now = device.client.deadline().expect("its lifetime");
    assert_eq!(
        device.client.wake(device.now, &mut Vec::new()),
        None,
        "in silence"
    );
    assert_eq!(device.client.open_exchanges(), 0);
}

#[test]
fn what_cannot_be_sent_says_why() {
    let settings = ClientSettings {
        exchanges_max: 1,
        nstart: 5,
        body_max: 10,
        ..ClientSettings::default()
    };
    let mut device = Device::new(settings);
    let refused = |device: &mut Device, request: &Request<'_>| {
        device.try_ask(TICKET, request).expect_err("refused")
    };
    let unordered = [
        Opt::text(OptionNumber::URI_QUERY, "a"),
        Opt::text(OptionNumber::URI_PATH, "b"),
    ];
    let request = Request::new(Code::GET, &unordered, b"");
    assert_eq!(
        refused(&mut device, &request),
        Refused::OptionOrder(OptionNumber::URI_PATH)
    );
    let request = Request::new(Code::CONTENT, &[], b"");
    assert_eq!(
        refused(&mut device, &request),
        Refused::Method(Code::CONTENT)
    );
    let request = Request::new(Code::POST, &[], b"elevenbytes");
    assert_eq!(
        refused(&mut device, &request),
        Refused::BodyTooLarge {
            size: 11,
            maximum: 10
        }
    );
    let request = Request::new(Code::GET, &[], b"");
    let slot = device.try_ask(Ticket { slot: 1, name: 0 }, &request);
    assert_eq!(slot, Err(Refused::NoSlot(1)));
    device.ask(&request);
    assert_eq!(refused(&mut device, &request), Refused::Full);
    assert!(device.sent.is_empty());
    let mut dropped = Vec::new();
    device.client.drop_all(|ticket| dropped.push(ticket));
    assert_eq!((dropped, device.client.window_free(0)), (vec![TICKET], 5));
}

/// Devices behind one socket share message ids and tokens, and have NSTART and Max-Age of their own.
#[test]
fn lanes_of_a_shared_socket_do_not_stand_in_each_others_way() {
    let settings = ClientSettings {
        exchanges_max: 1_000,
        ..ClientSettings::default()
    };
    let mut client = SharedClient::shared(Arc::new(settings), 3, 100);
    let request = Request::new(Code::GET, &[], b"");
    let (mut sent, now) = (Vec::new(), Micros(1));
    for slot in 0..100 {
        let mut out = Vec::new();
        let ticket = Ticket {
            slot,
            name: slot + 1_000,
        };
        client
            .request(now, ticket, &request, &mut out)
            .expect("it is sent");
        let refused = client.request(now, ticket, &request, &mut Vec::new());
        assert_eq!(refused, Err(Refused::Window));
        sent.push(out);
    }
    let age = Uint::of(9);
    let options = [Opt::new(OptionNumber::MAX_AGE, &age)];
    for (slot, datagram) in sent.iter().enumerate().rev() {
        let to = Message::decode(datagram).expect("a request");
        let code = if slot == 7 {
            Code::SERVICE_UNAVAILABLE
        } else {
            Code::CHANGED
        };
        let datagram = answer(&to, code, &options, b"");
        let event = client.receive(now, &datagram, &mut Vec::new());
        let Some(ClientEvent::Response(response)) = event else {
            panic!("a response");
        };
        let slot = slot as u32;
        assert_eq!(
            response.ticket,
            Ticket {
                slot,
                name: slot + 1_000
            }
        );
        assert_eq!(client.held_until(slot) > now, slot == 7);
    }
    assert_eq!((client.open_exchanges(), client.window_free(7)), (0, 1));
}

fn size(bytes: usize) -> BlockSize {
    BlockSize::within(bytes).expect("a size")
}

fn block(number: u32, more: bool, bytes: usize) -> Block {
    Block {
        number,
        more,
        size: size(bytes),
    }
}

/// RFC 7959 section 2.4, figure 2: blocks of a response are asked for one after the other, with the token of
/// the exchange, until one says that it is the last.
#[test]
fn a_response_in_blocks_is_asked_for_block_by_block() {
    let mut device = Device::standard();
    let path = path("status");
    let request = Request::new(Code::GET, &path, b"");
    let key = device.ask(&request);
    let token = device.last().token;
    for number in 0..3 {
        let sent = device.sent.clone();
        let sent = Message::decode(&sent).expect("a request");
        let asked = sent.options.block(OptionNumber::BLOCK2).expect("a size");
        assert_eq!(asked, (number > 0).then(|| block(number, false, 128)));
        assert_eq!(sent.token, token);
        let value = block(number, number < 2, 128).uint();
        let options = [Opt::new(OptionNumber::BLOCK2, &value)];
        let payload = [number as u8; 128];
        let payload = &payload[..if number == 2 { 9 } else { 128 }];
        let datagram = answer(&sent, Code::CONTENT, &options, payload);
        match device.hears(&datagram) {
            Some(ClientEvent::Part(part)) if number < 2 => assert_eq!(part.payload, payload),
            Some(ClientEvent::Response(last)) if number == 2 => assert_eq!(last.payload, payload),
            other => panic!("{other:?}"),
        }
        if number < 2 {
            assert_eq!(device.client.window_free(0), 0, "the exchange goes on");
            device.again(key, &request);
        }
    }
    assert_eq!(device.client.open_exchanges(), 0);
}

/// RFC 7959 section 2.4, figure 3: a size may be asked for before the server names one, and the
/// server may choose a smaller one.
#[test]
fn a_block_size_can_be_asked_for_early_and_made_smaller() {
    let settings = ClientSettings {
        asks_block_size: true,
        block_size: size(64),
        ..ClientSettings::default()
    };
    let mut device = Device::new(settings);
    let request = Request::new(Code::GET, &[], b"");
    let key = device.ask(&request);
    assert_eq!(
        device
            .last()
            .options
            .block(OptionNumber::BLOCK2)
            .expect("a size"),
        Some(block(0, false, 64))
    );
    let value = block(0, true, 32).uint();
    let options = [Opt::new(OptionNumber::BLOCK2, &value)];
    let datagram = answer(&device.last(), Code::CONTENT, &options, &[1; 32]);
    assert!(matches!(
        device.hears(&datagram),
        Some(ClientEvent::Part(_))
    ));
    device.again(key, &request);
    assert_eq!(
        device
            .last()
            .options
            .block(OptionNumber::BLOCK2)
            .expect("a size"),
        Some(block(1, false, 32))
    );
}

/// RFC 7959 section 2.4: blocks of different bodies, out of order, or of a wrong length are not put
/// together.
#[test]
fn blocks_that_do_not_fit_fail_the_exchange() {
    let second = |tag: u8, block: Block, payload: &[u8]| {
        let settings = ClientSettings {
            body_max: 100,
            ..ClientSettings::default()
        };
        let mut device = Device::new(settings);
        let request = Request::new(Code::GET, &[], b"");
        let key = device.ask(&request);
        let value = self::block(0, true, 32).uint();
        let options = [
            Opt::new(OptionNumber::ETAG, &[1]),
            Opt::new(OptionNumber::BLOCK2, &value),
        ];
        let datagram = answer(&device.last(), Code::CONTENT, &options, &[1; 32]);
        assert!(matches!(
            device.hears(&datagram),
            Some(ClientEvent::Part(_))
        ));
        device.again(key, &request);
        let (tag, value) = ([tag], block.uint());
        let options = [
            Opt::new(OptionNumber::ETAG, &tag),
            Opt::new(OptionNumber::BLOCK2, &value),
        ];
        let datagram = answer(&device.last(), Code::CONTENT, &options, payload);
        match device.hears(&datagram) {
            Some(ClientEvent::Failed { cause, .. }) => Err(cause),
            Some(ClientEvent::Response(response)) => Ok(response.payload.len()),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(second(1, block(1, false, 32), &[2; 9]), Ok(9));
    assert_eq!(
        second(2, block(1, false, 32), &[2; 9]),
        Err(Failure::BodyChanged)
    );
    assert_eq!(second(1, block(2, false, 32), &[2; 9]), Err(Failure::Block));
    assert_eq!(second(1, block(1, true, 32), &[2; 9]), Err(Failure::Block));
    assert_eq!(
        second(1, block(1, false, 32), &[2; 90]),
        Err(Failure::BodyTooLarge)
    );
}

/// RFC 7959 section 2.2: size 7 is reserved, so that no block of a body can be what came.
#[test]
fn a_response_with_a_block_of_the_reserved_size_fails() {
    for number in [OptionNumber::BLOCK1, OptionNumber::BLOCK2] {
        let mut device = Device::standard();
        device.ask(&Request::new(Code::GET, &[], b""));
        let options = [Opt::new(number, &[0x0f])];
        let datagram = answer(&device.last(), Code::CONTENT, &options, b"a part");
        let heard = device.hears(&datagram);
        let cause = Failure::Block;
        assert!(
            matches!(heard, Some(ClientEvent::Failed { cause: told, .. }) if told == cause),
            "{heard:?}"
        );
    }
}

/// RFC 7959 section 2.5, figures 7 and 9: a body in blocks, the next one after 2.31, in smaller
/// ones once the server names a smaller size; the first says how long the body is (section 4).
#[test]
fn a_request_in_blocks_goes_on_after_each_continue() {
    let settings = ClientSettings {
        block_size: size(64),
        ..ClientSettings::default()
    };
    let mut device = Device::new(settings);
    let body: Vec<u8> = (0..150).collect();
    let path = path("options");
    let request = Request::new(Code::PUT, &path, &body);
    let key = device.ask(&request);
    let mut arrived = Vec::new();
    let mut wanted = vec![
        block(0, true, 64),
        block(2, true, 32),
        block(3, true, 32),
        block(4, false, 32),
    ];
    loop {
        let sent = device.sent.clone();
        let sent = Message::decode(&sent).expect("a request");
        let at = sent
            .options
            .block(OptionNumber::BLOCK1)
            .expect("a size")
            .expect("a block");
        assert_eq!(at, wanted.remove(0));
        assert_eq!(at.offset(), arrived.len());
        let size1 = sent.options.uint(OptionNumber::SIZE1);
        assert_eq!(size1, (at.number == 0).then_some(150));
        arrived.extend_from_slice(sent.payload);
        let value = Block {
            size: size(32),
            ..at
        }
        .uint();
        let options = [Opt::new(OptionNumber::BLOCK1, &value)];
        let code = if at.more {
            Code::CONTINUE
        } else {
            Code::CHANGED
        };
        match device.hears(&answer(&sent, code, &options, b"")) {
            Some(ClientEvent::Again {
                cause: Again::Block,
                ..
            }) => device.again(key, &request),
            Some(ClientEvent::Response(response)) => {
                break assert_eq!(response.code, Code::CHANGED);
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(arrived == body && wanted.is_empty());
}

/// RFC 7959 section 2.5, figure 8: a server that keeps nothing answers each block with its success.
#[test]
fn a_success_for_a_block_before_the_last_asks_for_the_next() {
    let settings = ClientSettings {
        block_size: size(16),
        ..ClientSettings::default()
    };
    let mut device = Device::new(settings);
    let request = Request::new(Code::PUT, &[], &[7; 17]);
    device.ask(&request);
    let value = block(0, false, 16).uint();
    let options = [Opt::new(OptionNumber::BLOCK1, &value)];
    let datagram = answer(&device.last(), Code::CHANGED, &options, b"");
    assert!(matches!(
        device.hears(&datagram),
        Some(ClientEvent::Again {
            cause: Again::Block,
            ..
        })
    ));
}

/// RFC 7959 section 2.9.3: 4.13 with a block size for a body that was sent whole begins anew in
/// blocks of that size; for a body that has no more bytes than such a block it is the response.
#[test]
fn too_large_begins_anew_in_blocks_where_the_body_was_sent_whole() {
    for is_confirmable in [true, false] {
        for (bytes, is_begun_anew) in [(900, true), (129, true), (128, false), (5, false)] {
            let mut device = Device::standard();
            let body = vec![7; bytes];
            let request = Request {
                is_confirmable,
                ..Request::new(Code::PUT, &[], &body)
            };
            let key = device.ask(&request);
            let value = block(0, false, 128).uint();
            let options = [Opt::new(OptionNumber::BLOCK1, &value)];
            let code = Code::REQUEST_ENTITY_TOO_LARGE;
            let asked = device.last();
            let kind = match is_confirmable {
                true => Kind::Acknowledgement,
                false => Kind::NonConfirmable,
            };
            let datagram = message(kind, asked.id, asked.token, (code, &options, b""));
            let event = device.hears(&datagram);
            if !is_begun_anew {
                assert!(
                    matches!(&event, Some(ClientEvent::Response(it)) if it.code == code),
                    "{bytes}: {event:?}"
                );
                continue;
            }
            let cause = Again::Block;
            assert!(
                matches!(&event, Some(ClientEvent::Again { cause: it, .. }) if *it == cause),
                "{bytes}: {event:?}"
            );
            device.again(key, &request);
            let message = device.last();
            let first = message.options.block(OptionNumber::BLOCK1);
            assert_eq!(first.expect("a size"), Some(block(0, true, 128)));
            assert_eq!(message.payload, &body[..128]);
        }
    }
}

/// RFC 7959 section 2.9.3: 4.13 for the first block with a smaller size begins anew with that; any
/// other error, and 4.08 among them, is the response.
#[test]
fn too_large_with_a_smaller_size_begins_anew() {
    let mut device = Device::standard();
    let body = [7; 3_000];
    let request = Request::new(Code::PUT, &[], &body);
    let key = device.ask(&request);
    let value = block(0, true, 256).uint();
    let options = [Opt::new(OptionNumber::BLOCK1, &value)];
    let datagram = answer(
        &device.last(),
        Code::REQUEST_ENTITY_TOO_LARGE,
        &options,
        b"",
    );
    assert!(matches!(
        device.hears(&datagram),
        Some(ClientEvent::Again {
            cause: Again::Block,
            ..
        })
    ));
    device.again(key, &request);
    assert_eq!(
        device
            .last()
            .options
            .block(OptionNumber::BLOCK1)
            .expect("a size"),
        Some(block(0, true, 256))
    );
    for code in [
        Code::REQUEST_ENTITY_TOO_LARGE,
        Code::REQUEST_ENTITY_INCOMPLETE,
    ] {
        let mut device = Device::standard();
        device.ask(&request);
        let datagram = answer(&device.last(), code, &[], b"");
        assert!(
            matches!(device.hears(&datagram), Some(ClientEvent::Response(it)) if it.code == code)
        );
    }
}

/// RFC 7959 section 2.9.1: 2.31 for what is no block, or for another, is no answer.
#[test]
fn continue_for_another_block_fails_the_exchange() {
    let body = [7; 3_000];
    for (body, number) in [(&body[..], 1), (b"short", 0)] {
        let mut device = Device::standard();
        device.ask(&Request::new(Code::PUT, &[], body));
        let value = block(number, true, 1_024).uint();
        let options = [Opt::new(OptionNumber::BLOCK1, &value)];
        let datagram = answer(&device.last(), Code::CONTINUE, &options, b"");
        let cause = Failure::Block;
        assert_eq!(
            device.hears(&datagram),
            Some(ClientEvent::Failed {
                ticket: TICKET,
                cause
            })
        );
    }
}

proptest! {
    /// Law: for any datagrams of a server, each request ends at most once, one datagram at most
    /// goes out for each that comes, and that one is empty: an acknowledgement or a reset.
    #[test]
    fn any_datagrams_end_a_request_at_most_once(
        script in proptest::collection::vec((0..8u8, any::<[u8; 3]>(), any::<u16>()), 0..40),
    ) {
        let mut device = Device::standard();
        device.ask(&Request::new(Code::GET, &[], b""));
        let (id, token) = (device.last().id, device.last().token);
        let mut ends = 0;
        for (kind, rest, other) in script {
            let kinds = [Kind::Confirmable, Kind::NonConfirmable, Kind::Acknowledgement, Kind::Reset];
            let kind_of = kinds[usize::from(kind % 4)];
            let code = [Code::CONTENT, Code::EMPTY, Code::NOT_FOUND][usize::from(rest[0] % 3)];
            let id = if kind > 3 { id } else { other };
            let options = [Opt::new(OptionNumber::OBSERVE, &rest[..usize::from(rest[1] % 4)])];
            let options = if rest[2] % 2 == 0 { &options[..] } else { &[] };
            let datagram = if code == Code::EMPTY {
                empty(kind_of, id)
            } else {
                message(kind_of, id, token, (code, options, b""))
            };
            let event = device.hears(&datagram);
            let is_end = matches!(event, Some(ClientEvent::Response(_) | ClientEvent::Failed { .. }));
            ends += usize::from(is_end);
            prop_assert!(device.sent.is_empty() || device.last().is_empty());
        }
        prop_assert_eq!(ends + device.client.open_exchanges(), 1);
    }
}
