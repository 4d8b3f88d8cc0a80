//! Messages that the standards print (RFC 7252 appendix A).

use std::sync::Arc;

use muster_model::Micros;
use muster_protocol::coap::{
    Client, ClientSettings, Code, Header, Kind, Message, Opt, OptionNumber, Reply, Server,
    ServerEvent, ServerSettings, Token,
};

/// A message as a figure prints it: its type, code, message id and token, and whether it is a request for
/// `temperature`, the answer to one, or empty.
struct Printed(Kind, Code, u16, &'static [u8], Body);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Body {
    Path,
    Answer,
    Nothing,
}

/// Figures 16 to 22 in their order, each with its messages and their bytes. The RFC prints the bytes of the
/// first two; those of the others follow from what it prints.
const FIGURES: [&[(Printed, &[u8])]; 7] = [
    &[
        (
            Printed(CON, Code::GET, 0x7d34, b"", Body::Path),
            b"\x40\x01\x7d\x34\xbbtemperature",
        ),
        (
            Printed(ACK, Code::CONTENT, 0x7d34, b"", Body::Answer),
            b"\x60\x45\x7d\x34\xff22.3 C",
        ),
    ],
    &[
        (
            Printed(CON, Code::GET, 0x7d35, b"\x20", Body::Path),
            b"\x41\x01\x7d\x35\x20\xbbtemperature",
        ),
        (
            Printed(ACK, Code::CONTENT, 0x7d35, b"\x20", Body::Answer),
            b"\x61\x45\x7d\x35\x20\xff22.3 C",
        ),
    ],
    &[
        (
            Printed(CON, Code::GET, 0x7d36, b"\x31", Body::Path),
            b"\x41\x01\x7d\x36\x31\xbbtemperature",
        ),
        (
            Printed(ACK, Code::CONTENT, 0x7d36, b"\x31", Body::Answer),
            b"\x61\x45\x7d\x36\x31\xff22.3 C",
        ),
    ],
    &[
        (
            Printed(CON, Code::GET, 0x7d37, b"\x42", Body::Path),
            b"\x41\x01\x7d\x37\x42\xbbtemperature",
        ),
        (
            Printed(ACK, Code::CONTENT, 0x7d37, b"\x42", Body::Answer),
            b"\x61\x45\x7d\x37\x42\xff22.3 C",
        ),
    ],
    &[
        (
            Printed(CON, Code::GET, 0x7d38, b"\x53", Body::Path),
            b"\x41\x01\x7d\x38\x53\xbbtemperature",
        ),
        (
            Printed(ACK, Code::EMPTY, 0x7d38, b"", Body::Nothing),
            b"\x60\x00\x7d\x38",
        ),
        (
            Printed(CON, Code::CONTENT, 0xad7b, b"\x53", Body::Answer),
            b"\x41\x45\xad\x7b\x53\xff22.3 C",
        ),
        (
            Printed(ACK, Code::EMPTY, 0xad7b, b"", Body::Nothing),
            b"\x60\x00\xad\x7b",
        ),
    ],
    &[
        (
            Printed(CON, Code::GET, 0x7d39, b"\x64", Body::Path),
            b"\x41\x01\x7d\x39\x64\xbbtemperature",
        ),
        (
            Printed(ACK, Code::EMPTY, 0x7d39, b"", Body::Nothing),
            b"\x60\x00\x7d\x39",
        ),
        (
            Printed(CON, Code::CONTENT, 0xad7c, b"\x64", Body::Answer),
            b"\x41\x45\xad\x7c\x64\xff22.3 C",
        ),
        (
            Printed(Kind::Reset, Code::EMPTY, 0xad7c, b"", Body::Nothing),
            b"\x70\x00\xad\x7c",
        ),
    ],
    &[
        (
            Printed(NON, Code::GET, 0x7d40, b"\x75", Body::Path),
            b"\x51\x01\x7d\x40\x75\xbbtemperature",
        ),
        (
            Printed(NON, Code::CONTENT, 0xad7d, b"\x75", Body::Answer),
            b"\x51\x45\xad\x7d\x75\xff22.3 C",
        ),
    ],
];
const CON: Kind = Kind::Confirmable;
const NON: Kind = Kind::NonConfirmable;
const ACK: Kind = Kind::Acknowledgement;
const ANSWER: &[u8] = b"22.3 C";

/// The bytes of a message in a figure.
fn bytes(figure: usize, message: usize) -> &'static [u8] {
    FIGURES[figure - 16][message].1
}

/// RFC 7252 appendix A: each message is written and read as it is printed.
#[test]
fn messages_are_those_of_figures_16_to_22() {
    for (Printed(kind, code, id, token, body), bytes) in FIGURES.iter().copied().flatten() {
        let path = [Opt::text(OptionNumber::URI_PATH, "temperature")];
        let options: &[Opt<'_>] = if *body == Body::Path { &path } else { &[] };
        let payload = if *body == Body::Answer { ANSWER } else { b"" };
        let header = Header {
            kind: *kind,
            code: *code,
            id: *id,
            token: Token::new(token).expect("a token"),
        };
        let mut written = Vec::new();
        header.write_with(options, payload, &mut written);
        assert_eq!(written, *bytes);
        let read = Message::decode(bytes).expect("a message");
        assert_eq!((read.kind, read.code, read.id), (*kind, *code, *id));
        assert_eq!((read.token, read.payload), (header.token, payload));
        assert!(read.options.iter().eq(options.iter().copied()));
    }
}

/// RFC 7252 appendix A: in figure 18 the first of the requests is lost, in figure 19 the first of the answers.
#[test]
fn a_server_answers_requests_and_their_copies_as_in_figures_16_to_19() {
    let mut server = Server::new(Arc::new(ServerSettings::default()), 1);
    for (figure, copies) in [(16, 0), (17, 0), (18, 0), (19, 1)] {
        let mut out = Vec::new();
        let event = server.receive(Micros::ZERO, bytes(figure, 0), &mut out);
        let Some(ServerEvent::Request(request)) = event else {
            panic!("figure {figure}: {event:?}")
        };
        let (pending, reply) = (request.pending, Reply::new(Code::CONTENT, &[], ANSWER));
        let answered = server.respond(Micros::ZERO, pending, &reply, &mut out);
        assert!(answered.is_ok() && out == bytes(figure, 1), "{figure}");
        for _ in 0..copies {
            out.clear();
            let event = server.receive(Micros(1), bytes(figure, 0), &mut out);
            assert!(!matches!(event, Some(ServerEvent::Request(_))), "{event:?}");
            assert_eq!(out, bytes(figure, 1), "the same again");
        }
    }
}

/// RFC 7252 appendix A: a client that has forgotten its request resets the answer.
#[test]
fn an_answer_that_nobody_expects_is_reset_as_in_figure_21() {
    let mut client = Client::new(Arc::new(ClientSettings::default()), 1);
    let mut out = Vec::new();
    let event = client.receive(Micros::ZERO, bytes(21, 1), &mut out);
    assert!(event.is_none() && out.is_empty(), "{event:?}");
    let event = client.receive(Micros::ZERO, bytes(21, 2), &mut out);
    assert!(event.is_none(), "{event:?}");
    assert_eq!(out, bytes(21, 3));
    assert_eq!(client.counts().stray, 2);
}
