//! Ends of a connection (RFC 6455 sections 5.5.1 and 7).

use muster_protocol::layer::{Ended, Layer, Standing};
use muster_protocol::websocket::Fault;

use crate::ends::{
    Heard, KEY, asking, client, failed, frame, frames, from_client, from_server, hear, server,
};

#[test]
fn section_5_5_1_a_close_frame_is_answered_with_its_code() {
    let heard = from_server(b"\x88\x06\x03\xe9gone");
    assert_eq!(heard.end, Some(Ended::Closed(Some(1001))));
    assert_eq!(
        frames(&heard.wire),
        [(0x88, 1001u16.to_be_bytes().to_vec())]
    );
    let heard = from_client(&frame(0x88, &4000u16.to_be_bytes(), Some(KEY)));
    assert_eq!(heard.end, Some(Ended::Closed(Some(4000))));
    assert_eq!(heard.wire, b"\x88\x02\x0f\xa0");
}

#[test]
fn section_7_1_5_a_close_frame_may_be_without_a_code() {
    let heard = from_client(&frame(0x88, b"", Some(KEY)));
    assert_eq!(heard.end, Some(Ended::Closed(None)));
    assert_eq!(heard.wire, b"\x88\x00");
}

#[test]
fn section_5_5_1_a_close_frame_that_says_nothing_right_fails() {
    assert_eq!(from_server(b"\x88\x01\x03").end, failed(Fault::CloseBody));
    let heard = from_server(b"\x88\x02\x03\xed");
    assert_eq!(heard.end, failed(Fault::CloseCode(1005)));
    assert_eq!(
        frames(&heard.wire),
        [(0x88, 1002u16.to_be_bytes().to_vec())]
    );
    let heard = from_server(b"\x88\x03\x03\xe8\xff");
    assert_eq!(heard.end, failed(Fault::CloseReason));
    assert_eq!(
        frames(&heard.wire),
        [(0x88, 1007u16.to_be_bytes().to_vec())]
    );
}

#[test]
fn section_1_4_what_follows_a_close_frame_is_discarded() {
    let mut end = client();
    let wire = b"\x82\x04last\x88\x00\x82\x04more\x89\x00";
    let heard = hear(&mut end, wire, &[], 1);
    assert_eq!(heard.plain, b"last");
    assert_eq!(heard.end, Some(Ended::Closed(None)));
    assert_eq!(frames(&heard.wire), [(0x88, vec![])]);
    assert_eq!(
        hear(&mut end, b"\x82\x01x\x88\x00", &[], 1),
        Heard::default()
    );
}

#[test]
fn section_5_5_1_nothing_is_said_after_a_close_frame() {
    let mut end = server();
    let mut wire = Vec::new();
    end.layer.close(&mut wire);
    assert_eq!(wire, b"\x88\x02\x03\xe8", "status 1000");
    assert_eq!(end.layer.standing(), Standing::Closing);
    end.layer.close(&mut wire);
    wire.extend_from_slice(b"data");
    end.layer.wrap(&mut wire, 4);
    assert_eq!(wire.len(), 4, "neither data nor a second close frame");
}

#[test]
fn section_7_1_2_after_our_close_frame_data_is_heard_until_the_peers() {
    let mut end = client();
    end.layer.close(&mut Vec::new());
    let heard = hear(&mut end, b"\x82\x02on\x88\x02\x03\xe8", &[], 1);
    assert_eq!(heard.plain, b"on");
    assert_eq!(heard.end, Some(Ended::Closed(Some(1000))));
    assert_eq!(
        heard.wire, b"",
        "the close frame is not answered by another one"
    );
    assert_eq!(end.layer.standing(), Standing::Over);
}

#[test]
fn section_5_5_2_a_ping_is_answered_until_the_peers_close_frame() {
    let mut end = server();
    end.layer.close(&mut Vec::new());
    let heard = hear(&mut end, &frame(0x89, b"?", Some(KEY)), &[], 1);
    assert_eq!(heard.wire, b"\x8a\x01?");
}

#[test]
fn section_7_1_7_after_a_failure_nothing_is_heard_or_said() {
    let mut end = client();
    let heard = hear(&mut end, b"\x82\x01a\x83\x00\x82\x01b", &[], 1);
    assert_eq!(
        (heard.plain, heard.end),
        (b"a".to_vec(), failed(Fault::Opcode(3)))
    );
    assert_eq!(end.layer.standing(), Standing::Over);
    assert_eq!(
        hear(&mut end, b"\x82\x01b\x89\x00", &[], 1),
        Heard::default()
    );
    let mut wire = Vec::new();
    end.layer.close(&mut wire);
    assert!(wire.is_empty(), "the failure was said already");
}

#[test]
fn a_failure_after_our_close_frame_says_nothing_more() {
    let mut end = client();
    end.layer.close(&mut Vec::new());
    let heard = hear(&mut end, b"\x83\x00", &[], 1);
    assert_eq!((heard.end, heard.wire), (failed(Fault::Opcode(3)), vec![]));
}

#[test]
fn a_handshake_that_is_given_up_says_nothing() {
    let (mut end, _) = asking();
    let mut wire = Vec::new();
    end.layer.close(&mut wire);
    assert!(wire.is_empty());
    assert_eq!(end.layer.standing(), Standing::Over);
}
