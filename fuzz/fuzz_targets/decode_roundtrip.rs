//! Any bytes: the decoder does not panic, and what it reads is written and read again the same.
//!
//! The first byte picks the version and the form: what follows is a stream of packets, or one
//! packet that is framed here, so that its body is reached.

#![no_main]

use libfuzzer_sys::fuzz_target;
use muster_protocol::mqtt::packet::Packet;
use muster_protocol::mqtt::{Input, Version};

const MAXIMUM: u32 = 1 << 16;

fuzz_target!(|data: &[u8]| {
    let Some((first, rest)) = data.split_first() else {
        return;
    };
    let version = if first & 1 == 0 {
        Version::V311
    } else {
        Version::V5
    };
    let stream = if first & 2 == 0 {
        rest.to_vec()
    } else {
        framed(version, rest)
    };
    let mut input = Input::new(&stream);
    let mut out = Vec::new();
    while let Ok(Some(packet)) = Packet::decode(version, &mut input, MAXIMUM) {
        check(version, &packet, &mut out);
    }
});

/// One packet: its first byte, then its body; a CONNECT gets the protocol's name and level.
fn framed(version: Version, packet: &[u8]) -> Vec<u8> {
    let Some((first, body)) = packet.split_first() else {
        return Vec::new();
    };
    let head: &[u8] = match (first >> 4, version) {
        (1, Version::V311) => b"\x00\x04MQTT\x04",
        (1, Version::V5) => b"\x00\x04MQTT\x05",
        _ => b"",
    };
    let length = head.len() + body.len();
    // Two bytes of length are enough for the inputs that fuzzing makes, and always allowed.
    let size = [(length & 0x7f) as u8 | 0x80, (length >> 7) as u8 & 0x7f];
    [&[*first], size.as_slice(), head, body].concat()
}

fn check(version: Version, packet: &Packet<'_>, out: &mut Vec<u8>) {
    let version = if let Packet::Connect(connect) = packet {
        connect.version
    } else {
        version
    };
    out.clear();
    packet
        .encode(version, out)
        .expect("what was read can be written");
    let mut input = Input::new(out);
    let again = Packet::decode(version, &mut input, MAXIMUM);
    assert_eq!(again.as_ref(), Ok(&Some(packet.clone())));
    assert_eq!(input.consumed(), out.len());
    // Views of the parts must not panic either.
    if let Packet::Publish(publish) = packet {
        let ids = publish.properties.subscription_ids().count();
        assert!(ids + publish.properties.user().count() <= publish.properties.iter().count());
    }
}
