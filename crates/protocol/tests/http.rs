//! HTTP/1.1 against RFC 9112, both ends.

use muster_protocol::http::{
    Client, ClientEvent, InvalidField, Malformed, Refused, Reply, Request, Server, ServerEvent,
    Ticket, write_field,
};
use proptest::prelude::*;

const BODY_MAX: u32 = 64;

/// An event, as far as tests compare it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Seen {
    Answered(u32, u16, Vec<u8>, bool),
    Unasked(u16),
    Malformed(Malformed),
    Request(String, String, Vec<u8>, bool),
}

/// Presents bytes in pieces, as a link's buffer does: what is not taken comes again with more.
fn in_pieces(pieces: &[&[u8]], mut poll: impl FnMut(&mut &[u8]) -> Option<Seen>) -> Vec<Seen> {
    let (mut held, mut seen) = (Vec::new(), Vec::new());
    for piece in pieces {
        held.extend_from_slice(piece);
        let mut input = &held[..];
        while let Some(event) = poll(&mut input) {
            let is_end = matches!(event, Seen::Malformed(_));
            seen.push(event);
            if is_end {
                return seen;
            }
        }
        held = input.to_vec();
    }
    seen
}

fn client(requests: u32) -> Client {
    let mut client = Client::new(16, BODY_MAX);
    for ticket in 0..requests {
        let request = Request::new("GET", "/", "h");
        client
            .submit(Ticket(ticket), &request, &mut Vec::new())
            .expect("a free window");
    }
    client
}

fn of_client(event: ClientEvent<'_>) -> Seen {
    match event {
        ClientEvent::Answered { ticket, response } => Seen::Answered(
            ticket.0,
            response.status,
            response.body.into_owned(),
            response.is_last,
        ),
        ClientEvent::Unasked(response) => Seen::Unasked(response.status),
        ClientEvent::Malformed(malformed) => Seen::Malformed(malformed),
    }
}

/// Events of a client with `requests` open, from bytes and the connection's end behind them.
fn answers(requests: u32, pieces: &[&[u8]]) -> Vec<Seen> {
    let mut client = client(requests);
    let mut seen = in_pieces(pieces, |input| client.poll(input).map(of_client));
    seen.extend(client.end().map(of_client));
    seen
}

/// Events of a server from bytes, and the bytes that it wrote by itself.
fn requests(pieces: &[&[u8]]) -> (Vec<Seen>, String) {
    let mut server = Server::new(BODY_MAX);
    let mut out = Vec::new();
    let seen = in_pieces(pieces, |input| {
        Some(match server.poll(input, &mut out)? {
            ServerEvent::Request(request) => Seen::Request(
                request.method().to_owned(),
                request.target().to_owned(),
                request.body.to_vec(),
                request.is_last,
            ),
            ServerEvent::Malformed(malformed) => Seen::Malformed(malformed),
        })
    });
    (seen, String::from_utf8(out).expect("text"))
}

fn answered(status: u16, body: &[u8], is_last: bool) -> Vec<Seen> {
    vec![Seen::Answered(0, status, body.to_vec(), is_last)]
}

#[track_caller]
fn check(response: &[u8], wanted: &[Seen]) {
    assert_eq!(
        answers(1, &[response]),
        wanted,
        "{}",
        response.escape_ascii()
    );
}

#[track_caller]
fn check_malformed(response: &[u8], wanted: Malformed) {
    check(response, &[Seen::Malformed(wanted)]);
}

#[test]
fn a_request_is_written_as_the_standard_has_it() {
    let mut out = Vec::new();
    let mut fields = Vec::new();
    write_field(&mut fields, "Content-Type", b"application/json").expect("a field");
    let request = Request {
        fields: &fields,
        body: b"{}",
        ..Request::new("POST", "/t?hono-ttd=5", "h:8080")
    };
    let mut client = Client::new(2, BODY_MAX);
    client
        .submit(Ticket(1), &request, &mut out)
        .expect("a free window");
    let text = "POST /t?hono-ttd=5 HTTP/1.1\r\nHost: h:8080\r\nContent-Type: application/json\r\n\
                Content-Length: 2\r\n\r\n{}";
    assert_eq!(out, text.as_bytes());
    out.clear();
    let last = Request {
        is_last: true,
        ..Request::new("GET", "/", "h")
    };
    client
        .submit(Ticket(2), &last, &mut out)
        .expect("a free window");
    assert_eq!(
        out,
        b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
    );
    assert_eq!(
        client.submit(Ticket(3), &last, &mut out),
        Err(Refused::Closing)
    );
    assert_eq!(client.waiting().collect::<Vec<_>>(), [Ticket(1), Ticket(2)]);
}

#[test]
fn the_window_bounds_requests_without_a_response() {
    let mut client = client(16);
    let request = Request::new("GET", "/", "h");
    let refused = client.submit(Ticket(16), &request, &mut Vec::new());
    assert_eq!((refused, client.window_free()), (Err(Refused::Window), 0));
    let mut input = &b"HTTP/1.1 204 No Content\r\n\r\n"[..];
    assert!(client.poll(&mut input).is_some());
    assert_eq!(client.window_free(), 1);
}

#[test]
fn a_field_cannot_break_its_line() {
    let mut out = Vec::new();
    for name in ["", "a b", "a:", "a\r\nb", "\u{e4}"] {
        assert_eq!(
            write_field(&mut out, name, b"x"),
            Err(InvalidField::Name),
            "{name:?}"
        );
    }
    for value in [&b"a\r\nb: c"[..], b"a\n", b"\0", b"\x7f"] {
        assert_eq!(
            write_field(&mut out, "a", value),
            Err(InvalidField::Value),
            "{value:?}"
        );
    }
    assert!(out.is_empty());
    write_field(&mut out, "A", b"tab\there").expect("a field");
    assert_eq!(out, b"A: tab\there\r\n");
}

/// Section 6.3, in the order of its rules.
#[test]
fn a_response_ends_where_the_standard_says() {
    check(
        b"HTTP/1.1 204 X\r\nContent-Length: 3\r\n\r\n",
        &answered(204, b"", false),
    );
    check(
        b"HTTP/1.1 304 X\r\nTransfer-Encoding: chunked\r\n\r\n",
        &answered(304, b"", false),
    );
    check(
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n3;x=y\r\nabc\r\n1\r\nd\r\n0\r\nT: u\r\n\r\n",
        &answered(200, b"abcd", false),
    );
    check(
        b"HTTP/1.1 200 OK\r\ncontent-length: 3, 3\r\n\r\nabc",
        &answered(200, b"abc", false),
    );
    check(
        b"HTTP/1.1 200 OK\r\n\r\nall of it",
        &answered(200, b"all of it", true),
    );
    check(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nx",
        &answered(200, b"x", true),
    );
    check(
        b"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx",
        &answered(200, b"x", true),
    );
    check(
        b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\nx",
        &answered(200, b"x", false),
    );
    check(
        b"HTTP/1.1 503 X\r\nConnection: x, Close\r\nContent-Length: 0\r\n\r\n",
        &answered(503, b"", true),
    );
}

#[test]
fn interim_responses_are_passed_over() {
    let text = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n\
        HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n";
    check(text, &answered(202, b"", false));
    check_malformed(b"HTTP/1.1 101 X\r\n\r\n", Malformed::Switched);
}

#[test]
fn responses_come_in_the_order_of_their_requests() {
    let text =
        b"HTTP/1.1 200 A\r\nContent-Length: 1\r\n\r\naHTTP/1.1 201 B\r\nContent-Length: 1\r\n\r\nb\
        HTTP/1.1 408 C\r\nContent-Length: 0\r\n\r\n";
    let wanted = [
        Seen::Answered(0, 200, b"a".to_vec(), false),
        Seen::Answered(1, 201, b"b".to_vec(), false),
        Seen::Unasked(408),
    ];
    assert_eq!(answers(2, &[text]), wanted);
}

#[test]
fn a_response_that_is_broken_is_malformed() {
    check_malformed(b"\x16\x03\x01\x02\x00", Malformed::Head);
    check_malformed(b"HTTP/2 200 OK\r\n\r\n", Malformed::Head);
    check_malformed(b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n", Malformed::Head);
    check_malformed(
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx",
        Malformed::TwoLengths,
    );
    check_malformed(
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        Malformed::TwoLengths,
    );
    for length in ["", "-1", "+1", "0x1", "1 1", "99999999999999999999"] {
        let text = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
        check_malformed(text.as_bytes(), Malformed::Length);
    }
    check_malformed(
        b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        Malformed::Coding,
    );
    let chunked =
        |rest: &str| format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{rest}");
    for rest in [
        "x\r\n",
        "1\r\nabc",
        "1\r\na\n\r",
        "ffffffffffffffffff\r\n",
        "0\r\n\n",
    ] {
        check_malformed(chunked(rest).as_bytes(), Malformed::Chunk);
    }
}

#[test]
fn bytes_behind_an_answer_are_not_called_another_protocol() {
    let behind = |first: &str, malformed| {
        let seen = answers(1, &[format!("{first}hello").as_bytes()]);
        assert_eq!(seen.last(), Some(&Seen::Malformed(malformed)), "{first}");
        assert_eq!(seen.len(), 2, "the answer before them is read");
    };
    for status in [204, 304] {
        let head = format!("HTTP/1.1 {status} X\r\nContent-Length: 5\r\n\r\n");
        behind(&head, Malformed::NoBody);
        // It may come once the next request is open.
        let mut client = client(2);
        let text = format!("{head}hello");
        let seen = in_pieces(&[text.as_bytes()], |input| {
            client.poll(input).map(of_client)
        });
        assert_eq!(seen.last(), Some(&Seen::Malformed(Malformed::NoBody)));
    }
    behind(
        "HTTP/1.1 200 X\r\nContent-Length: 1\r\n\r\nx",
        Malformed::Surplus,
    );
    let text = b"HTTP/1.1 204 X\r\n\r\nHTTP/1.1 200 X\r\nno colon\r\n\r\n";
    let seen = answers(1, &[text]);
    assert_eq!(seen.last(), Some(&Seen::Malformed(Malformed::Head)));
    let mut client = client(1);
    let mut first = &b"HTTP/1.1 204 X\r\n\r\n"[..];
    assert!(client.poll(&mut first).is_some());
    client.reopen();
    let event = client.poll(&mut &b"hello"[..]).map(of_client);
    assert_eq!(event, Some(Seen::Malformed(Malformed::Head)), "anew");
}

#[test]
fn a_response_has_begun_with_its_first_byte() {
    for (text, is_begun) in [
        ("", false),
        ("H", true),
        ("HTTP/1.1 200 X\r\nContent-Length: 1\r\n\r\n", true),
        ("HTTP/1.1 200 X\r\nContent-Length: 0\r\n\r\n", false),
        ("HTTP/1.1 200 X\r\n\r\n", true),
    ] {
        let mut client = client(1);
        in_pieces(&[text.as_bytes()], |input| {
            client.poll(input).map(of_client)
        });
        assert_eq!(client.is_begun(), is_begun, "{text}");
        client.reopen();
        assert!(!client.is_begun());
    }
}

#[test]
fn every_part_of_a_response_has_a_bound() {
    let long = "x".repeat(20_000);
    let head = Malformed::HeadTooLong(16_384);
    check_malformed(format!("HTTP/1.1 200 OK\r\nX: {long}").as_bytes(), head);
    check_malformed(
        format!("HTTP/1.1 200 OK\r\nX: {long}\r\n\r\n").as_bytes(),
        head,
    );
    let fields = "x: y\r\n".repeat(101);
    let many = format!("HTTP/1.1 200 OK\r\n{fields}\r\n");
    check_malformed(many.as_bytes(), Malformed::TooManyFields(100));
    let body = Malformed::BodyTooLong(BODY_MAX);
    check_malformed(b"HTTP/1.1 200 OK\r\nContent-Length: 65\r\n\r\n", body);
    check_malformed(
        format!("HTTP/1.1 200 OK\r\n\r\n{}", &long[..65]).as_bytes(),
        body,
    );
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    check_malformed(format!("{chunked}41\r\n{long}").as_bytes(), body);
    check_malformed(format!("{chunked}1;{long}").as_bytes(), Malformed::Chunk);
    let whole = format!("{chunked}1;{long}\r\nx\r\n0\r\n\r\n");
    check_malformed(whole.as_bytes(), Malformed::Chunk);
    check_malformed(format!("{chunked}0\r\nT: {long}").as_bytes(), head);
    let trailers = "t: u\r\n".repeat(3_000);
    check_malformed(format!("{chunked}0\r\n{trailers}").as_bytes(), head);
}

#[test]
fn a_response_cut_off_by_the_end_of_its_connection_is_no_response() {
    let whole = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc";
    for end in 1..whole.len() {
        let mut client = client(1);
        let mut input = &whole[..end];
        assert_eq!(client.poll(&mut input), None);
        assert!(client.is_inside() || !input.is_empty());
        assert_eq!(client.end(), None);
    }
}

#[test]
fn what_is_needed_of_a_head_is_found_in_any_case() {
    let mut client = client(1);
    let mut input =
        &b"HTTP/1.1 200 OK\r\nhono-COMMAND:  open \r\nRetry-After: 2\r\nContent-Length: 0\r\n\r\n"
            [..];
    let Some(ClientEvent::Answered { response, .. }) = client.poll(&mut input) else {
        panic!("no response");
    };
    assert_eq!(response.head.field("Hono-Command"), Some(&b"open"[..]));
    assert_eq!(response.head.field("retry-after"), Some(&b"2"[..]));
    assert_eq!(response.head.field("retry"), None);
}

#[test]
fn a_start_line_behind_bare_line_feeds_is_no_field() {
    let mut client = client(1);
    let mut input =
        &b"\n\r\nHTTP/1.1 503 Busy: \xff\r\nRetry-After: 2\r\nContent-Length: 0\r\n\r\n"[..];
    let Some(ClientEvent::Answered { response, .. }) = client.poll(&mut input) else {
        panic!("no response");
    };
    let names = response.head.fields().map(|(name, _)| name);
    assert_eq!(
        names.collect::<Vec<_>>(),
        [&b"Retry-After"[..], b"Content-Length"]
    );
}

#[test]
fn a_server_reads_what_clients_write() {
    let text = b"POST /a?b HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{}\
        PUT /c HTTP/1.1\r\nhost: h\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n1\r\nx\r\n0\r\n\r\n\
        GET /never HTTP/1.1\r\nHost: h\r\n\r\n";
    let request = |method: &str, target: &str, body: &[u8], is_last| {
        Seen::Request(method.into(), target.into(), body.to_vec(), is_last)
    };
    let wanted = [
        request("POST", "/a?b", b"{}", false),
        request("PUT", "/c", b"x", true),
    ];
    assert_eq!(requests(&[text]), (wanted.to_vec(), String::new()));
    let old = request("GET", "/", b"", true);
    assert_eq!(
        requests(&[b"GET / HTTP/1.0\r\n\r\n"]),
        (vec![old], String::new())
    );
}

/// RFC 9110 section 10.1.1.
#[test]
fn a_server_asks_for_a_body_that_waits_to_be_asked_for() {
    let head = b"POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n";
    let (seen, out) = requests(&[head, b"ab"]);
    assert_eq!(seen.len(), 1);
    assert_eq!(out, "HTTP/1.1 100 Continue\r\n\r\n");
    let whole = [&head[..], b"ab"].concat();
    assert_eq!(requests(&[&whole]).1, "");
}

/// RFC 9112 sections 2.2, 3.2, 5.1, 6.1, 6.3 and 11.2: shapes by which a request hides in another.
#[test]
fn a_server_refuses_what_two_readers_may_cut_differently() {
    let refused = |head: &str, wanted: Malformed, status: u16| {
        let text =
            format!("POST / HTTP/1.1\r\n{head}\r\n\r\nGET /hidden HTTP/1.1\r\nHost: h\r\n\r\n");
        let (seen, out) = requests(&[text.as_bytes()]);
        assert_eq!(seen, [Seen::Malformed(wanted)], "{head:?}");
        assert!(
            out.starts_with(&format!("HTTP/1.1 {status} ")),
            "{head:?}: {out}"
        );
        assert!(out.contains("Connection: close"), "{head:?}");
    };
    refused(
        "Host: h\r\nContent-Length: 5\r\nTransfer-Encoding: chunked",
        Malformed::TwoLengths,
        400,
    );
    refused(
        "Host: h\r\nContent-Length: 5\r\nContent-Length: 6",
        Malformed::TwoLengths,
        400,
    );
    refused(
        "Host: h\r\nTransfer-Encoding: gzip, chunked",
        Malformed::Coding,
        501,
    );
    refused(
        "Host: h\r\nTransfer-Encoding: chunked, identity",
        Malformed::Coding,
        501,
    );
    refused(
        "Host: h\r\nTransfer-Encoding: xchunked",
        Malformed::Coding,
        501,
    );
    refused(
        "Host: h\r\nTransfer-Encoding : chunked",
        Malformed::Head,
        400,
    );
    refused(
        "Host: h\r\n Transfer-Encoding: chunked",
        Malformed::Head,
        400,
    );
    refused("Host: h\nContent-Length: 5", Malformed::BareLineFeed, 400);
    refused("Host: h\r\nContent-Length: +5", Malformed::Length, 400);
    refused("Content-Length: 0", Malformed::Host, 400);
    refused("Host: h\r\nHost: i", Malformed::Host, 400);
    refused(
        "Host: h\r\nContent-Length: 65",
        Malformed::BodyTooLong(BODY_MAX),
        413,
    );
    refused(
        &format!("Host: h\r\nX: {}", "x".repeat(20_000)),
        Malformed::HeadTooLong(16_384),
        431,
    );
    let old = "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
    assert_eq!(
        requests(&[old.as_bytes()]).0,
        [Seen::Malformed(Malformed::Coding)]
    );
}

#[test]
fn a_server_refuses_a_request_behind_a_bare_line_feed() {
    let (seen, _) = requests(&[b"\nPOST / HTTP/1.1\r\nHost: h\r\n\r\n"]);
    assert_eq!(seen, [Seen::Malformed(Malformed::BareLineFeed)]);
}

#[test]
fn a_reply_is_written_as_the_standard_has_it() {
    let mut out = Vec::new();
    let reply = Reply {
        fields: b"Retry-After: 2\r\n",
        body: b"no credit",
        ..Reply::new(503)
    };
    reply.write(&mut out);
    let text =
        "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 2\r\nContent-Length: 9\r\n\r\nno credit";
    assert_eq!(out, text.as_bytes());
    out.clear();
    Reply {
        is_last: true,
        ..Reply::new(204)
    }
    .write(&mut out);
    assert_eq!(out, b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
}

fn body() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 0..=BODY_MAX as usize)
}

/// A response and how its body is framed: by its length, or in chunks of this size.
fn response() -> impl Strategy<Value = (u16, Vec<u8>, Option<usize>)> {
    (200u16..600, body(), proptest::option::of(1usize..20))
}

fn write_response(out: &mut Vec<u8>, status: u16, body: &[u8], chunk: Option<usize>) {
    let Some(size) = chunk else {
        return Reply {
            body,
            ..Reply::new(status)
        }
        .write(out);
    };
    out.extend(format!("HTTP/1.1 {status} \r\nTransfer-Encoding: chunked\r\n\r\n").bytes());
    for chunk in body.chunks(size) {
        out.extend(format!("{:x}\r\n", chunk.len()).bytes());
        out.extend_from_slice(chunk);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"0\r\n\r\n");
}

fn pieces<'a>(bytes: &'a [u8], cuts: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    cuts.extend([0, bytes.len()]);
    cuts.sort_unstable();
    cuts.windows(2)
        .map(|pair| &bytes[pair[0]..pair[1]])
        .collect()
}

proptest! {
    /// A client reads the same events from the same bytes, in whatever pieces they come.
    #[test]
    fn pieces_do_not_change_what_a_client_reads(
        responses in proptest::collection::vec(response(), 1..6),
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let mut bytes = Vec::new();
        let mut wanted = Vec::new();
        for (index, (status, body, chunk)) in responses.iter().enumerate() {
            let has_body = !matches!(status, 204 | 304);
            let (body, chunk) = if has_body { (&body[..], *chunk) } else { (&b""[..], None) };
            write_response(&mut bytes, *status, body, chunk);
            wanted.push(Seen::Answered(index as u32, *status, body.to_vec(), false));
        }
        prop_assert_eq!(answers(responses.len() as u32, &pieces(&bytes, &cuts)), wanted);
    }

    /// A server reads what a client wrote, in whatever pieces it comes.
    #[test]
    fn pieces_do_not_change_what_a_server_reads(
        bodies in proptest::collection::vec(body(), 1..6),
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let mut client = Client::new(16, BODY_MAX);
        let mut bytes = Vec::new();
        for (index, body) in bodies.iter().enumerate() {
            let request = Request { body, ..Request::new("POST", "/t", "h") };
            client.submit(Ticket(index as u32), &request, &mut bytes).expect("a free window");
        }
        let wanted: Vec<Seen> = bodies
            .iter()
            .map(|body| Seen::Request("POST".into(), "/t".into(), body.clone(), false))
            .collect();
        prop_assert_eq!(requests(&pieces(&bytes, &cuts)), (wanted, String::new()));
    }

    /// Neither end fails on any bytes, whatever pieces they come in, and both come to the same result.
    #[test]
    fn any_bytes_have_one_reading(
        bytes in proptest::collection::vec(prop_oneof![
            any::<u8>().prop_map(|byte| vec![byte]),
            Just(b"HTTP/1.1 200 OK\r\n".to_vec()),
            Just(b"POST / HTTP/1.1\r\nHost: h\r\n".to_vec()),
            Just(b"Transfer-Encoding: chunked\r\n".to_vec()),
            Just(b"Content-Length: 3\r\n".to_vec()),
            Just(b"\r\n".to_vec()),
            Just(b"3\r\nabc\r\n".to_vec()),
            Just(b"0\r\n\r\n".to_vec()),
        ], 0..12),
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let bytes = bytes.concat();
        prop_assert_eq!(answers(3, &pieces(&bytes, &cuts)), answers(3, &[&bytes]));
        prop_assert_eq!(requests(&pieces(&bytes, &cuts)), requests(&[&bytes]));
    }
}
