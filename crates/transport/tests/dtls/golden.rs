//! A whole handshake with fixed randomness, byte by byte.

use std::fmt::Write;

use muster_model::Micros;
use muster_protocol::dtls::{RecordHeader, Suite, peek};
use muster_protocol::layer::Standing;

use super::ends::{End, with_key};

/// File of the records: one line each, in the order of sending.
const GOLDEN: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../golden/dtls-handshake.txt"
);

/// Both ends' datagrams, by turns; at the end the client says hello and goodbye.
fn conversation(suite: Suite, id: Option<&[u8]>) -> String {
    let mut text = format!("{suite:?}, connection id {id:02x?}\n");
    let (mut client, mut server) = (End::client(42), End::server(42));
    client.settings.suites = vec![suite];
    (client.connection_id, server.connection_id) = (id.map(Into::into), id.map(Into::into));
    client.open(Micros::ZERO, &with_key());
    let (mut is_client, mut hello) = (true, None);
    loop {
        let (from, to) = if is_client {
            (&mut client, &mut server)
        } else {
            (&mut server, &mut client)
        };
        let mut said = from.sent();
        if said.is_empty() {
            return text;
        }
        if is_client && from.dtls.standing() == Standing::Closing {
            said.insert(0, hello.take().unwrap_or_default());
        }
        for datagram in &said {
            lines(&mut text, if is_client { ">" } else { "<" }, datagram, id);
            to.hear(Micros::ZERO, datagram);
        }
        if !is_client && to.dtls.is_open() {
            hello = Some(to.say(b"hello"));
            to.close();
        }
        is_client = !is_client;
    }
}

fn lines(text: &mut String, arrow: &str, mut datagram: &[u8], id: Option<&[u8]>) {
    while let Some(header) = peek(datagram, id.map_or(0, <[u8]>::len)) {
        let RecordHeader {
            connection_id,
            length,
            ..
        } = header;
        let size = 13 + connection_id.len() + usize::from(length);
        let (record, rest) = datagram.split_at(size);
        write!(text, "{arrow} ").expect("memory");
        for byte in record {
            write!(text, "{byte:02x}").expect("memory");
        }
        text.push('\n');
        datagram = rest;
    }
}

#[test]
fn a_handshake_with_fixed_randomness_is_always_the_same() {
    let text = [
        conversation(Suite::PskCcm8, None),
        conversation(Suite::PskGcm, Some(&[0xc1, 0xc2])),
        conversation(Suite::EcdhePskGcm, Some(&[])),
    ]
    .concat();
    if std::env::var_os("MUSTER_BLESS").is_some() {
        std::fs::write(GOLDEN, &text).expect("it can be written");
    }
    let golden = std::fs::read_to_string(GOLDEN).expect("`just bless` writes it");
    assert_eq!(text, golden);
}
