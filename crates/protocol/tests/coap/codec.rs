//! Bytes to messages and back (RFC 7252 section 3).

use muster_protocol::coap::{
    Code, Fault, Header, Kind, Message, Opt, OptionNumber, Options, ReservedSize, Token, Uint,
};
use proptest::collection::vec;
use proptest::prelude::*;

fn fault(datagram: &[u8]) -> Fault {
    Message::decode(datagram).expect_err("a fault").fault
}

/// The message id of the reset that a datagram is answered with.
fn reset(datagram: &[u8]) -> Option<u16> {
    Message::decode(datagram).expect_err("a fault").reset()
}

/// RFC 7252 section 3: a shorter datagram is no message, and one of another version is ignored.
#[test]
fn what_has_no_header_of_version_1_is_ignored() {
    assert_eq!(fault(&[]), Fault::Header(0));
    assert_eq!(fault(&[0x40, 1, 0]), Fault::Header(3));
    assert_eq!(reset(&[0x40, 1, 0]), None);
    for first in [0x00, 0x80, 0xc0] {
        assert_eq!(fault(&[first, 1, 0, 7]), Fault::Version(first >> 6));
        assert_eq!(reset(&[first, 1, 0, 7]), None);
    }
}

/// RFC 7252 section 3: token lengths 9 to 15 are reserved, a format error.
#[test]
fn a_token_has_at_most_eight_bytes() {
    for length in 0..=8u8 {
        let mut datagram = vec![0x40 | length, 1, 0, 7];
        datagram.extend(vec![9; usize::from(length)]);
        let message = Message::decode(&datagram).expect("a message");
        assert_eq!(message.token.as_bytes(), vec![9; usize::from(length)]);
    }
    for length in 9..=15 {
        let datagram = [&[0x40 | length, 1, 0, 7][..], &[0; 20]].concat();
        assert_eq!(fault(&datagram), Fault::TokenLength(length));
        assert_eq!(reset(&datagram), Some(7));
    }
    assert_eq!(fault(&[0x42, 1, 0, 7, 1]), Fault::Token);
    assert_eq!(Token::new(&[0; 9]), None);
}

/// RFC 7252 section 4.1: an empty message has nothing behind its message id, and no token.
#[test]
fn an_empty_message_is_empty() {
    for first in [0x40, 0x60, 0x70] {
        assert!(
            Message::decode(&[first, 0, 0, 7])
                .expect("empty")
                .is_empty()
        );
        assert_eq!(fault(&[first, 0, 0, 7, 0xb1]), Fault::NotEmpty);
        assert_eq!(fault(&[first | 1, 0, 0, 7, 1]), Fault::NotEmpty);
        assert_eq!(fault(&[first | 1, 0, 0, 7]), Fault::NotEmpty);
    }
}

/// RFC 7252 section 4.3, table 1: an empty message is never NON, a reset always empty, and an
/// acknowledgement never a request.
#[test]
fn types_carry_what_table_1_allows() {
    let carries = |kind: u8, code: u8| Message::decode(&[0x40 | kind << 4, code, 0, 7]).is_ok();
    for (code, wanted) in [
        (0x00, [true, false, true, true]),
        (0x01, [true, true, false, false]),
        (0x44, [true, true, true, false]),
        (0x84, [true, true, true, false]),
        (0xa3, [true, true, true, false]),
    ] {
        assert_eq!(
            [0, 1, 2, 3].map(|kind| carries(kind, code)),
            wanted,
            "{code:#x}"
        );
    }
}

/// RFC 7252 section 4.2: a code of a reserved class is rejected: a CON with a reset, others in
/// silence.
#[test]
fn reserved_classes_are_rejected() {
    for class in [1, 3, 6, 7] {
        let code = Code::new(class, 1).0;
        assert_eq!(fault(&[0x40, code, 0, 7]), Fault::ReservedClass(class));
        assert_eq!(reset(&[0x40, code, 0, 7]), Some(7));
        for first in [0x50, 0x60, 0x70] {
            assert_eq!(reset(&[first, code, 0, 7]), None);
        }
    }
}

/// RFC 7252 section 3.1: nibbles of 13 and 14 have one and two bytes more, and 15 is no option.
#[test]
fn deltas_and_lengths_are_extended_as_section_3_1_says() {
    let head = [0x40, 1, 0, 7];
    let of = |options: &[u8]| [&head[..], options].concat();
    assert_eq!(fault(&of(&[0xf0])), Fault::ReservedNibble);
    assert_eq!(fault(&of(&[0x0f])), Fault::ReservedNibble);
    for cut in [
        &[0xd0][..],
        &[0xe0, 1],
        &[0x0d],
        &[0x0e, 1],
        &[0x01],
        &[0x1d, 0, 1, 2],
    ] {
        assert_eq!(fault(&of(cut)), Fault::Option, "{cut:?}");
    }
    assert_eq!(fault(&of(&[0xe0, 0xff, 0xff])), Fault::OptionNumber);
    assert_eq!(fault(&of(&[0xe0, 0xfe, 0xf2, 0x10])), Fault::OptionNumber);

    let datagram = of(&[0xe0, 0xfe, 0xf2]);
    let message = Message::decode(&datagram).expect("a message");
    assert_eq!(message.options.first(OptionNumber(65_535)), Some(&[][..]));
    for length in [0usize, 12, 13, 268, 269, 1_000] {
        let value = vec![7; length];
        let options = [Opt::new(OptionNumber(2_000), &value)];
        let datagram = written(Code::GET, &options, b"");
        let message = Message::decode(&datagram).expect("a message");
        assert_eq!(message.options.iter().collect::<Vec<_>>(), options);
    }
}

/// RFC 7252 section 3: a marker with nothing behind it is a format error; without a marker there
/// is no payload.
#[test]
fn a_marker_announces_a_payload() {
    assert_eq!(fault(&[0x40, 1, 0, 7, 0xff]), Fault::Payload);
    assert_eq!(fault(&[0x40, 1, 0, 7, 0xb1, b'x', 0xff]), Fault::Payload);
    assert_eq!(
        Message::decode(&[0x40, 1, 0, 7])
            .expect("a message")
            .payload,
        b""
    );
    let datagram = [0x40, 1, 0, 7, 0xff, 0xff, 0xff];
    assert_eq!(
        Message::decode(&datagram).expect("a message").payload,
        [0xff, 0xff]
    );
}

/// RFC 7252 sections 5.4.1, 5.4.3 and 5.4.5: a critical option that is unknown, has a wrong length
/// or is given once too often cannot be accepted; an elective one is ignored.
#[test]
fn critical_options_are_acceptable_or_named() {
    let unacceptable = |options: &[Opt<'_>]| {
        let datagram = written(Code::GET, options, b"");
        let message = Message::decode(&datagram).expect("a message");
        message.options.unacceptable()
    };
    let host = Opt::text(OptionNumber::URI_HOST, "h");
    let path = Opt::text(OptionNumber::URI_PATH, "t");
    let age = Opt::new(OptionNumber::MAX_AGE, &[1]);
    assert_eq!(unacceptable(&[host, path, path, age, age]), None);
    assert_eq!(
        unacceptable(&[host, host, path]),
        Some(OptionNumber::URI_HOST)
    );
    let long = [b'x'; 256];
    let long_path = Opt::new(OptionNumber::URI_PATH, &long);
    assert_eq!(
        unacceptable(&[host, long_path]),
        Some(OptionNumber::URI_PATH)
    );
    assert_eq!(
        unacceptable(&[Opt::text(OptionNumber::URI_HOST, "")]),
        Some(OptionNumber::URI_HOST)
    );
    let long_age = Opt::new(OptionNumber::MAX_AGE, &long);
    assert_eq!(unacceptable(&[path, long_age]), None, "elective");
    assert_eq!(
        unacceptable(&[Opt::new(OptionNumber(9), b"")]),
        Some(OptionNumber(9))
    );
    assert_eq!(unacceptable(&[Opt::new(OptionNumber(65_000), b"")]), None);
}

/// RFC 7252 sections 5.4.3 and 5.4.5: the first of an option that may be given once counts, and one
/// with a wrong length reads as missing.
#[test]
fn options_are_read_by_their_number() {
    let (age, long, two) = (Uint::of(2), [0; 5], Uint::of(300));
    let options = [
        Opt::text(OptionNumber::LOCATION_PATH, "cr"),
        Opt::text(OptionNumber::LOCATION_PATH, "21a"),
        Opt::new(OptionNumber::CONTENT_FORMAT, &long),
        Opt::new(OptionNumber::MAX_AGE, &age),
        Opt::new(OptionNumber::MAX_AGE, &two),
        Opt::text(OptionNumber::LOCATION_QUERY, "hono-command=set"),
        Opt::new(OptionNumber::BLOCK2, &[7]),
    ];
    let datagram = written(Code::CHANGED, &options, b"");
    let read = Message::decode(&datagram).expect("a message").options;
    let path: Vec<_> = read.all(OptionNumber::LOCATION_PATH).collect();
    assert_eq!(path, [&b"cr"[..], b"21a"]);
    assert_eq!(
        read.first(OptionNumber::LOCATION_QUERY),
        Some(&b"hono-command=set"[..])
    );
    assert_eq!(read.first(OptionNumber::ETAG), None);
    assert_eq!(read.max_age(), Some(2));
    assert_eq!(read.uint(OptionNumber::CONTENT_FORMAT), None);
    assert_eq!(
        read.block(OptionNumber::BLOCK2),
        Err(ReservedSize),
        "size 7 is reserved"
    );
    assert_eq!(Options::NONE.iter().next(), None);
}

/// A message written by its parts.
fn written(code: Code, options: &[Opt<'_>], payload: &[u8]) -> Vec<u8> {
    let header = Header {
        kind: Kind::Confirmable,
        code,
        id: 7,
        token: Token::EMPTY,
    };
    let mut out = Vec::new();
    header.write_with(options, payload, &mut out);
    out
}

fn codes() -> impl Strategy<Value = Code> {
    let class = prop_oneof![Just(0u8), Just(2), Just(4), Just(5)];
    (class, 1..32u8).prop_map(|(class, detail)| Code::new(class, detail))
}

fn numbers() -> impl Strategy<Value = u16> {
    prop_oneof![0..64u16, 200..300u16, any::<u16>()]
}

fn lengths() -> impl Strategy<Value = usize> {
    prop_oneof![0..20usize, 260..280usize, 0..1_500usize]
}

proptest! {
    /// Law: decoding returns the message that was encoded, for any parts of a message.
    #[test]
    fn decoding_inverts_encoding(
        code in codes(),
        id: u16,
        is_confirmable: bool,
        token in vec(any::<u8>(), 0..=8),
        mut options in vec((numbers(), lengths()), 0..8),
        payload in vec(any::<u8>(), 0..100),
    ) {
        options.sort_unstable();
        let bytes = vec![0xa5; 1_500];
        let options: Vec<Opt<'_>> = options
            .iter()
            .map(|(number, length)| Opt::new(OptionNumber(*number), &bytes[..*length]))
            .collect();
        let token = Token::new(&token).expect("eight bytes at most");
        let header = Header { kind: Kind::of(is_confirmable), code, id, token };
        let mut wire = Vec::new();
        header.write_with(&options, &payload, &mut wire);
        let message = Message::decode(&wire).expect("what we wrote");
        prop_assert_eq!(
            (message.kind, message.code, message.id, message.token),
            (header.kind, code, id, token)
        );
        prop_assert_eq!(message.options.iter().collect::<Vec<_>>(), options);
        prop_assert_eq!(message.payload, payload);
    }

    /// Any bytes are a message or a fault, and a message written again is the same bytes: section 3
    /// leaves one way to write each.
    #[test]
    fn a_message_has_one_form(mut bytes in vec(any::<u8>(), 0..60), is_likely: bool) {
        if is_likely && bytes.len() > 2 {
            bytes[0] = 0x40 | bytes[0] & 0x13;
            bytes[1] &= 0x5f;
        }
        if let Ok(message) = Message::decode(&bytes) {
            let mut again = Vec::new();
            message.encode(&mut again);
            prop_assert_eq!(again, bytes);
        }
    }
}
