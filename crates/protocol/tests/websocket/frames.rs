//! Frames of both ends (RFC 6455 section 5, with the bytes of section 5.7).

use muster_protocol::layer::{Layer, Pipe};
use muster_protocol::websocket::{Fault, WebSocket};

use crate::ends::{
    Heard, KEY, client, failed, frame, frames, from_client, from_server, hear, server,
};

/// "Hello" under the key of section 5.7.
const MASKED_HELLO: [u8; 9] = [0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58];

fn wrapped(mut end: Pipe<WebSocket>, payload: &[u8]) -> Vec<u8> {
    let mut wire = payload.to_vec();
    end.layer.wrap(&mut wire, 0);
    wire
}

#[test]
fn section_5_7_an_unmasked_message_is_heard() {
    let heard = from_server(b"\x82\x05Hello");
    assert_eq!(
        (heard.plain, heard.wire, heard.end),
        (b"Hello".to_vec(), vec![], None)
    );
}

#[test]
fn section_5_7_a_masked_message_is_heard() {
    let heard = from_client(&[&[0x82, 0x85][..], &MASKED_HELLO].concat());
    assert_eq!((heard.plain, heard.end), (b"Hello".to_vec(), None));
}

#[test]
fn section_5_7_a_message_in_fragments_is_heard() {
    let heard = from_server(b"\x02\x03Hel\x80\x02lo");
    assert_eq!((heard.plain, heard.end), (b"Hello".to_vec(), None));
}

#[test]
fn section_5_7_and_5_5_2_a_ping_is_answered_by_a_pong_with_its_data() {
    let heard = from_server(b"\x89\x05Hello");
    assert_eq!(frames(&heard.wire), [(0x8a, b"Hello".to_vec())]);
    assert_eq!(heard.wire[1], 0x85, "a client's pong is masked");
    let heard = from_client(&[&[0x89, 0x85][..], &MASKED_HELLO].concat());
    assert_eq!(heard.wire, b"\x8a\x05Hello");
}

#[test]
fn section_5_7_lengths_of_two_and_eight_bytes_are_written_and_heard() {
    let short = wrapped(server(), &[7; 256]);
    assert_eq!(short[..4], [0x82, 0x7e, 0x01, 0x00]);
    assert_eq!(from_server(&short).plain, [7; 256]);
    let long = wrapped(server(), &[7; 65_536]);
    assert_eq!(long[..10], [0x82, 0x7f, 0, 0, 0, 0, 0, 1, 0, 0]);
    assert_eq!(from_server(&long).plain, [7; 65_536]);
}

/// MQTT-6.0.0-1.
#[test]
fn mqtt_6_0_0_1_what_is_said_at_once_is_one_binary_frame() {
    assert_eq!(wrapped(server(), b"Hello"), b"\x82\x05Hello");
    assert_eq!(
        frames(&wrapped(client(), b"Hello")),
        [(0x82, b"Hello".to_vec())]
    );
    assert_eq!(wrapped(server(), b""), b"", "nothing said is no frame");
}

/// MQTT-6.0.0-1.
#[test]
fn mqtt_6_0_0_1_a_text_frame_fails_with_1003() {
    let heard = from_server(b"\x81\x05Hello");
    assert_eq!(heard.end, failed(Fault::Text));
    assert_eq!(
        frames(&heard.wire),
        [(0x88, 1003u16.to_be_bytes().to_vec())]
    );
}

/// MQTT-6.0.0-2.
#[test]
fn mqtt_6_0_0_2_packets_are_heard_however_frames_cut_them() {
    let connack = [0x20, 3, 0, 0, 0];
    let mut wire = Vec::new();
    for piece in [&connack[..1], &connack[1..], &[connack, connack].concat()] {
        wire.extend(frame(0x82, piece, None));
    }
    let heard = hear(&mut client(), &wire, &[], connack.len());
    assert_eq!(heard.plain, connack.repeat(3));
}

#[test]
fn section_5_1_a_server_fails_on_a_frame_without_mask() {
    let heard = from_client(b"\x82\x05Hello");
    assert_eq!(heard.end, failed(Fault::Unmasked));
    assert_eq!(heard.wire, b"\x88\x02\x03\xea", "status 1002");
}

#[test]
fn section_5_1_a_client_fails_on_a_frame_with_a_mask() {
    let heard = from_server(&frame(0x82, b"Hello", Some(KEY)));
    assert_eq!(heard.end, failed(Fault::Masked));
    assert_eq!(
        frames(&heard.wire),
        [(0x88, 1002u16.to_be_bytes().to_vec())]
    );
}

#[test]
fn section_5_3_a_client_masks_every_frame_and_a_server_none() {
    let mut up = client();
    let mut down = server();
    let mut keys = Vec::new();
    for round in 0..100 {
        let mut wire = vec![round; 9];
        up.layer.wrap(&mut wire, 0);
        assert_eq!(wire[1], 0x80 | 9);
        keys.push(wire[2..6].to_vec());
        let mut wire = vec![round; 9];
        down.layer.wrap(&mut wire, 0);
        assert_eq!(wire[1], 9);
    }
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), 100, "a key for each frame");
}

#[test]
fn section_5_4_control_frames_between_fragments_are_answered_at_once() {
    let wire = [
        frame(0x02, b"He", Some(KEY)),
        frame(0x89, b"now", Some([9, 8, 7, 6])),
        frame(0x00, b"", Some(KEY)),
        frame(0x8a, b"unasked", Some(KEY)),
        frame(0x00, b"l", Some([1, 2, 3, 4])),
        frame(0x80, b"lo", Some(KEY)),
        frame(0x82, b"!", Some(KEY)),
    ]
    .concat();
    for cut in 0..wire.len() {
        let heard = hear(&mut server(), &wire, &[cut], 1);
        assert_eq!(
            (heard.plain, heard.end),
            (b"Hello!".to_vec(), None),
            "cut at {cut}"
        );
        assert_eq!(heard.wire, b"\x8a\x03now");
    }
}

#[test]
fn section_5_4_fragments_out_of_order_fail() {
    let heard = from_server(b"\x82\x01a\x80\x01b");
    assert_eq!(
        (heard.plain, heard.end),
        (b"a".to_vec(), failed(Fault::Continuation))
    );
    let heard = from_server(b"\x02\x01a\x82\x01b");
    assert_eq!(
        (heard.plain, heard.end),
        (b"a".to_vec(), failed(Fault::Interleaved))
    );
}

#[test]
fn section_5_5_3_a_pong_that_nobody_asked_for_is_not_answered() {
    assert_eq!(from_server(b"\x8a\x05Hello"), Heard::default());
}

#[test]
fn section_5_5_a_control_frame_that_is_long_or_in_fragments_fails() {
    assert_eq!(
        from_server(b"\x89\x7e\x00\x7e").end,
        failed(Fault::ControlTooLong)
    );
    assert_eq!(from_server(b"\x09\x00").end, failed(Fault::ControlFragment));
    let longest = frame(0x89, &[5; 125], None);
    assert_eq!(frames(&from_server(&longest).wire), [(0x8a, vec![5; 125])]);
}

#[test]
fn section_5_2_reserved_bits_unknown_opcodes_and_long_lengths_fail() {
    assert_eq!(from_server(b"\xc2\x00").end, failed(Fault::ReservedBits));
    assert_eq!(from_server(b"\x83\x00").end, failed(Fault::Opcode(3)));
    assert_eq!(
        from_server(b"\x82\x7e\x00\x05Hello").end,
        failed(Fault::Length)
    );
}

#[test]
fn section_10_4_a_frame_beyond_the_bound_fails_with_1009_and_data_before_it_is_heard() {
    let wire = [frame(0x82, b"good", None), frame(0x82, &[0; 1_001], None)].concat();
    let mut end = Pipe::new(client().layer.with_frame_max(1_000));
    let heard = hear(&mut end, &wire, &[], 1);
    let (size, maximum) = (1_001, 1_000);
    assert_eq!(heard.end, failed(Fault::FrameTooLarge { size, maximum }));
    assert_eq!(heard.plain, b"good");
    assert_eq!(
        frames(&heard.wire),
        [(0x88, 1009u16.to_be_bytes().to_vec())]
    );
}

#[test]
fn a_large_frame_is_passed_on_as_it_comes() {
    let mut end = client();
    let mut head = b"\x82\x7f\x00\x00\x00\x00\x05\xf5\xe1\x00".to_vec();
    let fed = end.receive(&mut head, &mut Vec::new());
    assert_eq!((fed.plain, fed.end), (0, None));
    let mut piece = vec![0; 100_000];
    for round in 0..1_000 {
        piece.fill(round as u8);
        let fed = end.receive(&mut piece, &mut Vec::new());
        assert_eq!((fed.plain, fed.used, fed.end), (100_000, 100_000, None));
        assert_eq!((piece[0], piece[99_999]), (round as u8, round as u8));
    }
    assert_eq!(hear(&mut end, b"\x82\x01!", &[], 1).plain, b"!");
}
