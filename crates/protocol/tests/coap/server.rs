//! The server end against datagrams written by hand.

use std::sync::Arc;

use muster_model::Micros;
use muster_protocol::coap::{
    Block, BlockSize, Code, Header, Incoming, Kind, Message, Opt, OptionNumber, Options, Refused,
    Reply, Server, ServerEvent, ServerSettings, Token, Transmission, Uint,
};

const SECOND: u64 = 1_000_000;

/// A server, its clock, and what it sent last.
struct Peer {
    server: Server,
    now: Micros,
    sent: Vec<u8>,
}

impl Peer {
    fn new(settings: ServerSettings) -> Self {
        Self {
            server: Server::new(Arc::new(settings), 1),
            now: Micros(5),
            sent: Vec::new(),
        }
    }

    fn standard() -> Self {
        Self::new(ServerSettings::default())
    }

    fn hears<'d>(&mut self, datagram: &'d [u8]) -> Option<ServerEvent<'d>> {
        self.sent.clear();
        self.server.receive(self.now, datagram, &mut self.sent)
    }

    /// Returns the request of a datagram.
    fn asked<'d>(&mut self, datagram: &'d [u8]) -> Incoming<'d> {
        match self.hears(datagram) {
            Some(ServerEvent::Request(request)) => request,
            other => panic!("{other:?}"),
        }
    }

    fn says(&mut self, incoming: &Incoming<'_>, reply: &Reply<'_>) {
        self.sent.clear();
        let said = self
            .server
            .respond(self.now, incoming.pending, reply, &mut self.sent);
        assert_eq!(said, Ok(()));
    }

    fn last(&self) -> Message<'_> {
        Message::decode(&self.sent).expect("one message")
    }

    fn waits(&mut self) -> Option<ServerEvent<'static>> {
        self.now = self.server.deadline().expect("something is due");
        self.sent.clear();
        self.server.wake(self.now, &mut self.sent)
    }
}

fn token(bytes: &[u8]) -> Token {
    Token::new(bytes).expect("eight bytes at most")
}

fn message(kind: Kind, id: u16, rest: (Code, &[Opt<'_>], &[u8])) -> Vec<u8> {
    let (code, options, payload) = rest;
    let mut out = Vec::new();
    let token = token(&[0x74]);
    Header {
        kind,
        code,
        id,
        token,
    }
    .write_with(options, payload, &mut out);
    out
}

fn get(id: u16) -> Vec<u8> {
    message(
        Kind::Confirmable,
        id,
        (Code::GET, &[Opt::text(OptionNumber::URI_PATH, "t")], b""),
    )
}

fn empty(kind: Kind, id: u16) -> Vec<u8> {
    let mut out = Vec::new();
    Header::empty(kind, id).write(&mut out);
    out
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

/// RFC 7252 section 5.2.1: the answer to a CON travels in its acknowledgement, with its message id
/// and token.
#[test]
fn an_answer_travels_in_the_acknowledgement() {
    let mut peer = Peer::standard();
    let datagram = get(7);
    let request = peer.asked(&datagram);
    assert_eq!((request.method, request.is_confirmable), (Code::GET, true));
    assert!(peer.sent.is_empty());
    peer.says(&request, &Reply::new(Code::CONTENT, &[], b"22.3 C"));
    let said = peer.last();
    assert_eq!(
        (said.kind, said.id, said.token),
        (Kind::Acknowledgement, 7, token(&[0x74]))
    );
    assert_eq!((said.code, said.payload), (Code::CONTENT, &b"22.3 C"[..]));
    assert_eq!(peer.server.deadline(), None);
}

/// RFC 7252 section 4.5: a duplicate is answered as its first copy was, and told nobody, within
/// `EXCHANGE_LIFETIME`; after that it is a new request.
#[test]
fn a_request_is_told_once_within_its_lifetime() {
    let mut peer = Peer::standard();
    let datagram = get(7);
    let request = peer.asked(&datagram);
    assert_eq!(peer.hears(&datagram), None);
    assert!(peer.sent.is_empty(), "it is being worked on");
    peer.says(&request, &Reply::new(Code::CHANGED, &[], b"once"));
    let answer = peer.sent.clone();
    peer.now += Micros(247 * SECOND - 1);
    assert_eq!(peer.hears(&datagram), None);
    assert_eq!(peer.sent, answer);
    assert_eq!(peer.server.counts().duplicates, 2);
    assert!(!peer.server.is_idle(peer.now));
    peer.now += Micros(1);
    assert!(peer.server.is_idle(peer.now));
    peer.asked(&datagram);
}

/// RFC 7252 sections 4.3 and 5.2.3: a NON is answered by a NON with an id of its own; its duplicates
/// are ignored.
#[test]
fn a_non_is_answered_by_a_message_of_its_own() {
    let mut peer = Peer::standard();
    let datagram = message(Kind::NonConfirmable, 9, (Code::POST, &[], b"x"));
    let request = peer.asked(&datagram);
    peer.says(
        &request,
        &Reply {
            is_confirmable: false,
            ..Reply::new(Code::CHANGED, &[], b"")
        },
    );
    let said = peer.last();
    assert_eq!(
        (said.kind, said.token),
        (Kind::NonConfirmable, token(&[0x74]))
    );
    assert_eq!(peer.hears(&datagram), None);
    assert!(peer.sent.is_empty());
    peer.says(&request, &Reply::new(Code::CHANGED, &[], b""));
    assert_eq!(peer.last().kind, Kind::Confirmable, "the caller's choice");
}

/// RFC 7252 sections 4.2 and 5.2.2, figure 5: an acknowledgement now, the answer later as a CON, which is
/// sent again until it is acknowledged; duplicates of the request get the acknowledgement again.
#[test]
fn a_separate_answer_is_sent_until_it_is_acknowledged() {
    let mut peer = Peer::standard();
    let datagram = get(7);
    let mut request = peer.asked(&datagram);
    request.pending = peer.server.acknowledge(request.pending, &mut peer.sent);
    assert!(request.pending.is_separate());
    assert_eq!(peer.sent, empty(Kind::Acknowledgement, 7));
    assert_eq!(
        peer.server.acknowledge(request.pending, &mut peer.sent),
        request.pending
    );
    assert_eq!(peer.sent.len(), 4, "once is enough");
    assert_eq!(peer.hears(&datagram), None);
    assert_eq!(peer.sent, empty(Kind::Acknowledgement, 7));

    let reply = Reply {
        ticket: 33,
        ..Reply::new(Code::CONTENT, &[], b"22.5 C")
    };
    peer.says(&request, &reply);
    let answer = peer.sent.clone();
    let said = peer.last();
    assert_eq!((said.kind, said.token), (Kind::Confirmable, token(&[0x74])));
    let id = said.id;
    for _ in 0..2 {
        assert_eq!(peer.waits(), Some(ServerEvent::Retransmitted));
        assert_eq!(peer.sent, answer);
    }
    let acknowledged = Some(ServerEvent::Acknowledged { ticket: 33 });
    assert_eq!(peer.hears(&empty(Kind::Acknowledgement, id)), acknowledged);
    assert_eq!(peer.server.deadline(), None);
    assert_eq!(peer.hears(&empty(Kind::Acknowledgement, id)), None);
    assert_eq!(
        (
            peer.server.counts().retransmitted,
            peer.server.counts().stray
        ),
        (2, 1)
    );
}

/// RFC 7252 section 4.2: what is never acknowledged is given up after `MAX_RETRANSMIT` copies; a
/// reset ends it at once.
#[test]
fn a_separate_answer_ends_by_silence_or_reset() {
    let transmission = Transmission::of(Micros(1_000), 1.0, 3);
    let mut peer = Peer::new(ServerSettings {
        transmission,
        transmissions_max: 1,
        ..ServerSettings::default()
    });
    let datagram = get(7);
    let mut request = peer.asked(&datagram);
    request.pending = peer.server.acknowledge(request.pending, &mut Vec::new());
    let reply = Reply {
        ticket: 5,
        ..Reply::new(Code::CONTENT, &[], b"")
    };
    peer.says(&request, &reply);
    let full = peer
        .server
        .respond(peer.now, request.pending, &reply, &mut Vec::new());
    assert_eq!(full, Err(Refused::Full));
    let mut copies = 0;
    while peer.waits() == Some(ServerEvent::Retransmitted) {
        copies += 1;
    }
    assert_eq!((copies, peer.now), (3, Micros(5 + 15_000)));
    assert_eq!(peer.server.deadline(), None);

    peer.says(&request, &reply);
    let id = peer.last().id;
    assert_eq!(
        peer.hears(&empty(Kind::Reset, id)),
        Some(ServerEvent::Reset { ticket: 5 })
    );
    assert_eq!(peer.hears(&empty(Kind::Reset, id)), None);
}

/// RFC 7252 sections 4.2 and 4.3: a ping, a response, and what is malformed are reset if they are
/// confirmable, and ignored if not.
#[test]
fn what_a_server_cannot_take_is_reset_if_it_is_confirmable() {
    let mut peer = Peer::standard();
    for (datagram, answer) in [
        (&[0x40, 0, 0, 9][..], Some(9)),
        (&[0x40, 0x45, 0, 8], Some(8)),
        (&[0x50, 0x45, 0, 7], None),
        (&[0x60, 0x45, 0, 7], None),
        (&[0x40, 1, 0, 6, 0xff], Some(6)),
        (&[0x50, 1, 0, 5, 0xff], None),
        (&[0x40, 0x21, 0, 4], Some(4)),
        (&[0x80, 1, 0, 5], None),
    ] {
        assert_eq!(peer.hears(datagram), None);
        let wanted = answer.map_or(Vec::new(), |id| empty(Kind::Reset, id));
        assert_eq!(peer.sent, wanted, "{datagram:?}");
    }
    let counts = peer.server.counts();
    assert_eq!((counts.pings, counts.stray, counts.malformed), (1, 3, 4));
}

/// RFC 7252 sections 5.4.1 and 5.10.2: an unknown critical option is answered by 4.02 that names it,
/// in a NON by silence; one for a proxy by 5.05.
#[test]
fn critical_options_that_cannot_be_taken_are_refused() {
    let mut peer = Peer::standard();
    let unknown = [Opt::new(OptionNumber(9), b"")];
    let datagram = message(Kind::Confirmable, 1, (Code::GET, &unknown, b""));
    assert_eq!(peer.hears(&datagram), None);
    assert_eq!(
        (peer.last().code, peer.last().payload),
        (Code::BAD_OPTION, &b"bad option 0x0009"[..])
    );
    let answer = peer.sent.clone();
    assert_eq!(peer.hears(&datagram), None);
    assert_eq!(peer.sent, answer, "a duplicate");
    let datagram = message(Kind::NonConfirmable, 2, (Code::GET, &unknown, b""));
    assert_eq!(peer.hears(&datagram), None);
    assert!(peer.sent.is_empty());
    let proxy = [Opt::text(OptionNumber::PROXY_URI, "coap://h/")];
    peer.hears(&message(Kind::Confirmable, 3, (Code::GET, &proxy, b"")));
    assert_eq!(peer.last().code, Code::PROXYING_NOT_SUPPORTED);
    let elective = [Opt::new(OptionNumber(65_000), b"")];
    peer.asked(&message(Kind::Confirmable, 4, (Code::GET, &elective, b"")));
    assert_eq!(peer.server.counts().rejected, 3);
}

/// RFC 7967 section 2.1: classes that the client does not want are acknowledged and no more.
#[test]
fn an_answer_that_is_not_wanted_is_left_out() {
    for (unwanted, code, is_wanted) in [
        (2u32, Code::CHANGED, false),
        (2, Code::NOT_FOUND, true),
        (8, Code::NOT_FOUND, false),
        (16, Code::SERVICE_UNAVAILABLE, false),
        (26, Code::new(2, 1), false),
        (0, Code::CHANGED, true),
    ] {
        let value = Uint::of(unwanted);
        let options = [Opt::new(OptionNumber::NO_RESPONSE, &value)];
        let mut peer = Peer::standard();
        let datagram = message(Kind::Confirmable, 1, (Code::POST, &options, b""));
        let request = peer.asked(&datagram);
        peer.says(&request, &Reply::new(code, &[], b""));
        assert_eq!(peer.last().is_empty(), !is_wanted, "{unwanted} {code}");
    }
}

/// The memory of a peer is bounded: beyond it the oldest request is forgotten, and said to be.
#[test]
fn what_is_remembered_is_bounded() {
    let settings = ServerSettings {
        remembered_max: 10,
        replies_max: 100,
        ..ServerSettings::default()
    };
    let mut peer = Peer::new(settings);
    for id in 0..20 {
        let datagram = get(id);
        let request = peer.asked(&datagram);
        peer.says(&request, &Reply::new(Code::CONTENT, &[], &[7; 20]));
    }
    assert_eq!(peer.server.counts().evicted, 10);
    assert!(
        matches!(peer.hears(&get(5)), Some(ServerEvent::Request(_))),
        "forgotten"
    );
    assert_eq!(peer.hears(&get(19)), None);
    assert_eq!(peer.sent.len(), 26);
    assert_eq!(peer.hears(&get(12)), None, "known, but its reply is gone");
    assert!(peer.sent.is_empty());
    let datagram = get(30);
    let request = peer.asked(&datagram);
    peer.says(&request, &Reply::new(Code::CONTENT, &[], &[7; 101]));
    assert_eq!(peer.hears(&datagram), None, "too long to keep");
    assert_eq!(peer.server.counts().unrepeatable, 2);
}

/// Law: an owner of many sessions bounds their memory of duplicates.
#[test]
fn the_oldest_requests_are_forgotten_with_their_replies() {
    let mut peer = Peer::standard();
    assert_eq!(peer.server.kept(), 0);
    for id in 0..100 {
        let datagram = get(id);
        let request = peer.asked(&datagram);
        peer.says(&request, &Reply::new(Code::CONTENT, &[], &[7; 94]));
    }
    let full = peer.server.kept();
    assert!(full > 100 * 100, "{full}");
    peer.server.forget_beyond(10);
    assert_eq!(peer.server.kept(), full / 10);
    assert_eq!(peer.server.counts().evicted, 90);
    assert_eq!(peer.hears(&get(90)), None);
    assert_eq!(peer.sent.len(), 100, "the reply is kept");
    let forgotten = get(89);
    assert!(matches!(
        peer.hears(&forgotten),
        Some(ServerEvent::Request(_))
    ));
}

fn put(id: u16, block: Block, payload: &[u8]) -> Vec<u8> {
    let value = block.uint();
    let options = [
        Opt::text(OptionNumber::URI_PATH, "o"),
        Opt::new(OptionNumber::BLOCK1, &value),
    ];
    message(Kind::Confirmable, id, (Code::PUT, &options, payload))
}

/// RFC 7959 sections 2.5 and 2.9.1, figure 7: blocks are put together, each before the last answered
/// by 2.31, and the request is told once, whole; a duplicate of a block changes nothing.
#[test]
fn a_body_in_blocks_is_told_whole() {
    let mut peer = Peer::new(ServerSettings {
        block_size: size(32),
        ..ServerSettings::default()
    });
    for number in 0..2u16 {
        let sent = block(u32::from(number), true, 64);
        let datagram = put(number, sent, &[number as u8; 64]);
        for _copy in 0..2 {
            assert_eq!(peer.hears(&datagram), None);
            assert_eq!(peer.last().code, Code::CONTINUE);
            let wanted = Block {
                size: size(32),
                ..sent
            };
            assert_eq!(
                peer.last()
                    .options
                    .block(OptionNumber::BLOCK1)
                    .expect("a size"),
                Some(wanted)
            );
        }
    }
    let datagram = put(5, block(4, false, 32), b"end");
    let request = peer.asked(&datagram);
    assert_eq!(&*request.payload, [&[0; 64][..], &[1; 64], b"end"].concat());
    peer.says(&request, &Reply::new(Code::CHANGED, &[], b""));
    assert_eq!(
        peer.last()
            .options
            .block(OptionNumber::BLOCK1)
            .expect("a size"),
        Some(block(4, false, 32))
    );
}

/// RFC 7959 sections 2.9.2 and 2.9.3: a block that does not follow is 4.08, a body that is too long
/// 4.13 with what may come, at once where the client says how long it is; a block of a wrong length
/// is 4.00.
#[test]
fn blocks_that_cannot_be_put_together_are_refused() {
    let mut peer = Peer::new(ServerSettings {
        body_max: 100,
        ..ServerSettings::default()
    });
    let mut code = |datagram: &[u8]| {
        assert_eq!(peer.hears(datagram), None);
        (
            peer.last().code,
            peer.last().options.uint(OptionNumber::SIZE1),
        )
    };
    assert_eq!(
        code(&put(1, block(1, true, 32), &[0; 32])).0,
        Code::REQUEST_ENTITY_INCOMPLETE
    );
    assert_eq!(
        code(&put(2, block(0, true, 32), &[0; 31])).0,
        Code::BAD_REQUEST
    );
    assert_eq!(
        code(&put(3, block(0, true, 32), &[0; 32])).0,
        Code::CONTINUE
    );
    assert_eq!(
        code(&put(4, block(2, true, 32), &[0; 32])).0,
        Code::REQUEST_ENTITY_INCOMPLETE
    );
    let too_large = (Code::REQUEST_ENTITY_TOO_LARGE, Some(100));
    assert_eq!(code(&put(5, block(3, false, 32), &[0; 5])), too_large);
    let (value, length) = (block(0, true, 32).uint(), Uint::of(101));
    let options = [
        Opt::new(OptionNumber::BLOCK1, &value),
        Opt::new(OptionNumber::SIZE1, &length),
    ];
    let announced = message(Kind::Confirmable, 6, (Code::PUT, &options, &[0; 32]));
    assert_eq!(code(&announced), too_large);
}

/// A body in one message is as long as one in blocks may be.
#[test]
fn a_body_in_one_message_that_is_too_long_is_refused() {
    let mut peer = Peer::new(ServerSettings {
        body_max: 100,
        ..ServerSettings::default()
    });
    let whole = |id, length| {
        let options = [Opt::text(OptionNumber::URI_PATH, "o")];
        message(
            Kind::Confirmable,
            id,
            (Code::PUT, &options, &vec![7; length]),
        )
    };
    assert_eq!(peer.asked(&whole(1, 100)).payload.len(), 100);
    assert_eq!(peer.hears(&whole(2, 101)), None);
    assert_eq!(peer.last().code, Code::REQUEST_ENTITY_TOO_LARGE);
    assert_eq!(peer.last().options.uint(OptionNumber::SIZE1), Some(100));
    assert_eq!(peer.server.counts().rejected, 1);
}

/// Bodies of one peer have so many bytes together: beyond, the oldest goes, and its next block is 4.08
/// (RFC 7959 section 2.9.2).
#[test]
fn bodies_under_way_are_bounded_by_their_bytes() {
    let mut peer = Peer::new(ServerSettings {
        bodies_bytes_max: 300,
        ..ServerSettings::default()
    });
    let mut code = |id, path: &str, number, more| {
        let value = block(number, more, 64).uint();
        let options = [
            Opt::text(OptionNumber::URI_PATH, path),
            Opt::new(OptionNumber::BLOCK1, &value),
        ];
        let datagram = message(Kind::Confirmable, id, (Code::PUT, &options, &[7; 64]));
        match peer.hears(&datagram) {
            Some(ServerEvent::Request(request)) => Ok(request.payload.len()),
            _ => Err(peer.last().code),
        }
    };
    for number in 0..2 {
        for (at, path) in ["a", "b"].into_iter().enumerate() {
            let id = 10 * at as u16 + number as u16;
            assert_eq!(code(id, path, number, true), Err(Code::CONTINUE));
        }
    }
    assert_eq!(code(20, "b", 2, true), Err(Code::CONTINUE));
    let incomplete = Err(Code::REQUEST_ENTITY_INCOMPLETE);
    assert_eq!(code(21, "a", 2, true), incomplete, "the oldest went");
    for number in 3..6 {
        let alone = code(20 + number as u16, "b", number, true);
        assert_eq!(
            alone,
            Err(Code::CONTINUE),
            "one alone is bounded by its length"
        );
    }
    assert_eq!(code(40, "b", 6, false), Ok(7 * 64));
    assert_eq!(peer.server.counts().bodies_given_up, 1);
}

/// Law: an owner of many sessions may have one give up all it keeps.
#[test]
fn bodies_under_way_count_as_kept_and_can_be_given_up() {
    let mut peer = Peer::standard();
    assert_eq!(
        peer.hears(&put(1, block(0, true, 1_024), &[0; 1_024])),
        None
    );
    assert!(peer.server.kept() >= 1_024, "{}", peer.server.kept());
    peer.server.forget_beyond(10);
    assert!(peer.server.kept() < 1_024, "{}", peer.server.kept());
    assert_eq!(peer.server.counts().bodies_given_up, 1);
    assert_eq!(peer.hears(&put(2, block(1, false, 1_024), b"")), None);
    assert_eq!(peer.last().code, Code::REQUEST_ENTITY_INCOMPLETE);
}

/// A body that is not finished is given up after a while, and only so many are kept.
#[test]
fn unfinished_bodies_are_given_up() {
    let mut peer = Peer::standard();
    assert_eq!(peer.hears(&put(1, block(0, true, 32), &[0; 32])), None);
    assert_eq!(peer.waits(), None);
    assert_eq!(peer.now, Micros(5 + 93 * SECOND));
    assert_eq!(peer.hears(&put(2, block(1, false, 32), b"")), None);
    assert_eq!(peer.last().code, Code::REQUEST_ENTITY_INCOMPLETE);
    assert_eq!(peer.server.deadline(), None);
}

fn get_block(id: u16, method: Code, block: Block) -> Vec<u8> {
    let value = block.uint();
    let options = [
        Opt::text(OptionNumber::URI_PATH, "o"),
        Opt::new(OptionNumber::BLOCK2, &value),
    ];
    message(Kind::Confirmable, id, (method, &options, b""))
}

/// RFC 7959 section 2.4, figures 2 to 4: a long body goes out in blocks of the size that was asked
/// for or a smaller one; later ones do not ask the caller again.
#[test]
fn a_long_answer_is_fetched_block_by_block() {
    let mut peer = Peer::new(ServerSettings {
        block_size: size(64),
        ..ServerSettings::default()
    });
    let body: Vec<u8> = (0..150).collect();
    let options = [
        Opt::new(OptionNumber::ETAG, &[3]),
        Opt::new(OptionNumber::CONTENT_FORMAT, &[50]),
    ];
    let datagram = get_block(1, Code::GET, block(0, false, 128));
    let request = peer.asked(&datagram);
    peer.says(&request, &Reply::new(Code::CONTENT, &options, &body));
    let mut arrived = Vec::new();
    for id in 2.. {
        let said = peer.last();
        let sent = said
            .options
            .block(OptionNumber::BLOCK2)
            .expect("a size")
            .expect("a block");
        assert_eq!((sent.offset(), sent.size), (arrived.len(), size(64)));
        assert_eq!(said.options.first(OptionNumber::ETAG), Some(&[3][..]));
        arrived.extend_from_slice(said.payload);
        if !sent.more {
            break;
        }
        let next = Block {
            number: sent.number + 1,
            ..sent
        };
        assert_eq!(peer.hears(&get_block(id, Code::GET, next)), None);
    }
    assert_eq!(arrived, body);
    assert_eq!(
        peer.hears(&get_block(9, Code::GET, block(9, false, 64))),
        None
    );
    assert_eq!(peer.last().code, Code::BAD_REQUEST, "beyond the end");
}

/// Law: a kept answer is lost only for a client that has not asked for its last block.
#[test]
fn answers_that_were_fetched_whole_are_not_given_up() {
    for (last, given_up) in [(1, 1), (2, 0), (3, 1)] {
        let mut peer = Peer::new(ServerSettings {
            block_size: size(64),
            ..ServerSettings::default()
        });
        let datagram = get_block(1, Code::GET, block(0, false, 64));
        let request = peer.asked(&datagram);
        peer.says(&request, &Reply::new(Code::CONTENT, &[], &[7; 150]));
        let datagram = get_block(2, Code::GET, block(last, false, 64));
        assert_eq!(peer.hears(&datagram), None);
        peer.server.forget_beyond(10);
        let counted = peer.server.counts().bodies_given_up;
        assert_eq!(counted, given_up, "after block {last}");
    }
}

/// Of bodies under way that which was touched longest ago makes room.
#[test]
fn a_body_whose_blocks_still_come_outlasts_one_that_stands_still() {
    let mut peer = Peer::new(ServerSettings {
        bodies_max: 2,
        ..ServerSettings::default()
    });
    let mut code = |id, path: &str, number| {
        let value = block(number, true, 64).uint();
        let options = [
            Opt::text(OptionNumber::URI_PATH, path),
            Opt::new(OptionNumber::BLOCK1, &value),
        ];
        let datagram = message(Kind::Confirmable, id, (Code::PUT, &options, &[7; 64]));
        assert_eq!(peer.hears(&datagram), None);
        peer.last().code
    };
    let came = [("a", 0), ("b", 0), ("a", 1), ("c", 0), ("a", 2)];
    for (id, (path, number)) in (0..).zip(came) {
        assert_eq!(code(id, path, number), Code::CONTINUE, "{path} {number}");
    }
    assert_eq!(code(9, "b", 1), Code::REQUEST_ENTITY_INCOMPLETE);
}

/// RFC 7959 section 2.4: where nothing is kept, a GET is asked of the caller again and cut, and what
/// may not be repeated is 4.08.
#[test]
fn a_later_block_of_nothing_kept_is_rendered_again_or_refused() {
    let mut peer = Peer::standard();
    let datagram = get_block(1, Code::GET, block(2, false, 32));
    let request = peer.asked(&datagram);
    peer.says(&request, &Reply::new(Code::CONTENT, &[], &[7; 70]));
    assert_eq!(peer.last().payload, [7; 6]);
    assert_eq!(
        peer.last()
            .options
            .block(OptionNumber::BLOCK2)
            .expect("a size"),
        Some(block(2, false, 32))
    );
    assert_eq!(
        peer.hears(&get_block(2, Code::POST, block(2, false, 32))),
        None
    );
    assert_eq!(peer.last().code, Code::REQUEST_ENTITY_INCOMPLETE);
}

/// RFC 7959 section 4: the size is told to who asks for it.
#[test]
fn size2_is_told_on_request() {
    let mut peer = Peer::new(ServerSettings {
        block_size: size(16),
        ..ServerSettings::default()
    });
    for wants_size in [true, false] {
        let options = [Opt::new(OptionNumber::SIZE2, b"")];
        let options = if wants_size { &options[..] } else { &[] };
        let datagram = message(
            Kind::Confirmable,
            u16::from(wants_size),
            (Code::GET, options, b""),
        );
        let request = peer.asked(&datagram);
        peer.says(&request, &Reply::new(Code::CONTENT, &[], &[7; 70]));
        let told = peer.last().options.uint(OptionNumber::SIZE2);
        assert_eq!(told, wants_size.then_some(70));
    }
}

/// RFC 7641 section 4.1: a server that grants no observation answers without the option.
#[test]
fn a_wish_to_observe_is_answered_once() {
    let mut peer = Peer::standard();
    let options = [Opt::new(OptionNumber::OBSERVE, &[])];
    let datagram = message(Kind::Confirmable, 1, (Code::GET, &options, b""));
    let request = peer.asked(&datagram);
    peer.says(&request, &Reply::new(Code::CONTENT, &[], b"18.5 C"));
    assert_eq!(peer.last().options.first(OptionNumber::OBSERVE), None);
    assert!(peer.server.deadline().is_none());
}

/// RFC 7959 section 2.2: a block of the reserved size 7 is answered with 4.00, and is no message.
#[test]
fn a_block_of_the_reserved_size_is_refused() {
    let numbers = [OptionNumber::BLOCK1, OptionNumber::BLOCK2];
    for (id, number) in (1..).zip(numbers) {
        let mut peer = Peer::standard();
        let options = [Opt::new(number, &[0x0f])];
        let fragment = message(Kind::Confirmable, id, (Code::PUT, &options, b"a part"));
        assert_eq!(peer.hears(&fragment), None);
        let said = peer.last();
        assert_eq!((said.kind, said.id), (Kind::Acknowledgement, id));
        assert_eq!(said.code, Code::BAD_REQUEST);
        assert_eq!(said.options, Options::NONE);
        assert_eq!(peer.server.counts().rejected, 1);
        assert_eq!(peer.hears(&fragment), None, "the same again");
        assert_eq!(peer.last().code, Code::BAD_REQUEST);
    }
}
