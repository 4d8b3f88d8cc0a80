//! Bytes that the standards print (RFC 7252 appendix A).

use muster_protocol::coap::{Code, Header, Kind, Message, Opt, OptionNumber, Token};

/// RFC 7252 figure 16: the request, and the response in its acknowledgement.
const FIGURE_16: [&[u8]; 2] = [
    b"\x40\x01\x7d\x34\xbbtemperature",
    b"\x60\x45\x7d\x34\xff22.3 C",
];
/// RFC 7252 figure 17: the same with a token.
const FIGURE_17: [&[u8]; 2] = [
    b"\x41\x01\x7d\x35\x20\xbbtemperature",
    b"\x61\x45\x7d\x35\x20\xff22.3 C",
];

/// RFC 7252 appendix A: a request and its piggybacked response, without a token and with one.
#[test]
fn messages_are_those_of_figures_16_and_17() {
    for (figure, id, token) in [(FIGURE_16, 0x7d34, &[][..]), (FIGURE_17, 0x7d35, &[0x20])] {
        let token = Token::new(token).expect("a token");
        let mut request = Vec::new();
        let path = [Opt::text(OptionNumber::URI_PATH, "temperature")];
        let header = Header {
            kind: Kind::Confirmable,
            code: Code::GET,
            id,
            token,
        };
        header.write_with(&path, b"", &mut request);
        assert_eq!(request, figure[0]);

        let mut response = Vec::new();
        let header = Header {
            kind: Kind::Acknowledgement,
            code: Code::CONTENT,
            id,
            token,
        };
        header.write_with(&[], b"22.3 C", &mut response);
        assert_eq!(response, figure[1]);

        let read = Message::decode(figure[0]).expect("a request");
        assert_eq!(read.options.iter().collect::<Vec<_>>(), path);
        let read = Message::decode(figure[1]).expect("a response");
        assert_eq!((read.code, read.payload), (Code::CONTENT, &b"22.3 C"[..]));
    }
}
