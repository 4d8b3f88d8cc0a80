//! Records after the handshake: replays, garbage, order, and where the peer is.

use muster_model::Micros;
use muster_protocol::dtls::{PLAIN_MAX, peek};

use super::ends::{End, Told, connected, shake, with_key};

#[test]
fn a_record_that_comes_again_is_heard_once() {
    let (mut client, mut server) = connected();
    let words = client.say(b"once");
    for _ in 0..3 {
        server.hear(Micros::ZERO, &words);
    }
    assert_eq!(server.told[1..], [Told::Data(b"once".to_vec())]);
    assert_eq!(server.dtls.counts().replayed, 2);
    assert!(!server.is_newest);
}

#[test]
fn records_out_of_order_are_heard_within_the_window() {
    let (mut client, mut server) = connected();
    let said: Vec<_> = (0..70_u8).map(|number| client.say(&[number])).collect();
    for words in said.iter().rev() {
        server.hear(Micros::ZERO, words);
    }
    let heard: Vec<_> = (0..70_u8)
        .rev()
        .take(64)
        .map(|n| Told::Data(vec![n]))
        .collect();
    assert_eq!(server.told[1..], heard);
    assert_eq!(server.dtls.counts().replayed, 6);
}

#[test]
fn an_altered_record_is_discarded_wherever_it_was_altered() {
    let (mut client, mut server) = connected();
    let words = client.say(b"words");
    for at in 0..words.len() {
        let mut altered = words.clone();
        altered[at] ^= 0x10;
        server.hear(Micros::ZERO, &altered);
        server.hear(Micros::ZERO, &words[..at]);
    }
    assert_eq!(server.told.len(), 1);
    server.hear(Micros::ZERO, &words);
    assert_eq!(server.told[1..], [Told::Data(b"words".to_vec())]);
}

#[test]
fn several_records_in_a_datagram_are_several_events() {
    let (mut client, mut server) = connected();
    let both = [client.say(b"a"), client.say(b"b"), b"garbage".to_vec()].concat();
    server.hear(Micros::ZERO, &both);
    let heard = [b"a", b"b"].map(|word| Told::Data(word.to_vec()));
    assert_eq!(server.told[1..], heard);
    assert_eq!(server.dtls.counts().discarded, 1);
}

#[test]
fn a_peer_has_moved_only_if_a_newer_record_says_so() {
    let (mut client, mut server) = (End::client(1), End::server(1));
    client.connection_id = Some(Vec::new());
    server.connection_id = Some(b"abcd".to_vec());
    client.open(Micros::ZERO, &with_key());
    shake(&mut client, &mut server);
    let (old, new) = (client.say(b"old"), client.say(b"new"));
    assert_eq!(peek(&new, 4).expect("a header").connection_id, b"abcd");
    server.hear(Micros::ZERO, &new);
    assert!(server.is_newest);
    server.hear(Micros::ZERO, &old);
    assert!(!server.is_newest, "authentic, but older");
    let mut forged = client.say(b"forged");
    *forged.last_mut().expect("a tag") ^= 1;
    server.hear(Micros::ZERO, &forged);
    assert!(!server.is_newest, "not authentic");
}

#[test]
fn rfc_9146_section_6_a_record_without_the_agreed_connection_id_is_discarded() {
    let (mut client, mut server) = (End::client(1), End::server(1));
    client.connection_id = Some(Vec::new());
    server.connection_id = Some(b"abcd".to_vec());
    client.open(Micros::ZERO, &with_key());
    shake(&mut client, &mut server);
    let bare = client.crypto.forge(true, 23, 100, b"bare");
    server.hear(Micros::ZERO, &bare);
    let mut other = client.say(b"other");
    other[11] ^= 1;
    server.hear(Micros::ZERO, &other);
    assert_eq!(server.told.len(), 1);
    assert_eq!(server.dtls.counts().discarded, 2);
}

#[test]
fn data_before_the_handshake_is_over_is_not_heard() {
    let (mut client, mut server) = (End::client(1), End::server(1));
    server.settings.cookie_secret = None;
    client.open(Micros::ZERO, &with_key());
    server.hear(Micros::ZERO, &client.sent().remove(0));
    client.hear(Micros::ZERO, &server.sent().remove(0));
    // The client has its keys and could speak; its Finished is still on its way.
    let flight = client.sent().remove(0);
    let early = client.crypto.forge(true, 23, 50, b"early");
    let key_exchange = peek(&flight, 0).expect("a header").length;
    server.hear(Micros::ZERO, &flight[..13 + usize::from(key_exchange)]);
    server.hear(Micros::ZERO, &early);
    assert_eq!(server.told, []);
    server.hear(Micros::ZERO, &flight);
    shake(&mut client, &mut server);
    assert_eq!(client.connected(), server.connected());
    assert_eq!(server.told.len(), 1);
}

#[test]
fn a_finished_that_overtakes_its_keys_is_kept_until_they_come() {
    let (mut client, mut server) = (End::client(1), End::server(1));
    client.open(Micros::ZERO, &with_key());
    server.hear(Micros::ZERO, &client.sent().remove(0));
    client.hear(Micros::ZERO, &server.sent().remove(0));
    server.hear(Micros::ZERO, &client.sent().remove(0));
    client.hear(Micros::ZERO, &server.sent().remove(0));
    let flight = client.sent().remove(0);
    let key_exchange = 13 + usize::from(peek(&flight, 0).expect("a header").length);
    let change = 13 + 1;
    server.hear(Micros::ZERO, &flight[key_exchange + change..]);
    assert_eq!(server.told, []);
    server.hear(Micros::ZERO, &flight[..key_exchange]);
    shake(&mut client, &mut server);
    assert_eq!(client.connected(), server.connected());
    assert_eq!(client.dtls.counts().resent, 0);
}

#[test]
fn what_is_too_long_or_said_before_its_time_is_dropped() {
    let (mut client, _) = connected();
    let mut out = vec![0; 3 + PLAIN_MAX + 1];
    assert!(!client.dtls.wrap(&mut out, 3));
    assert_eq!(out.len(), 3);
    out.resize(3 + PLAIN_MAX, 0);
    assert!(client.dtls.wrap(&mut out, 3));
    let mut client = End::client(1);
    client.open(Micros::ZERO, &with_key());
    let mut out = b"early".to_vec();
    assert!(!client.dtls.wrap(&mut out, 0));
    assert!(out.is_empty());
}

#[test]
fn the_end_that_spoke_last_says_it_again_until_the_other_is_heard() {
    let (mut client, mut server) = (End::client(1), End::server(1));
    server.settings.cookie_secret = None;
    client.open(Micros::ZERO, &with_key());
    server.hear(Micros::ZERO, &client.sent().remove(0));
    client.hear(Micros::ZERO, &server.sent().remove(0));
    let flight = client.sent().remove(0);
    server.hear(Micros::ZERO, &flight);
    assert_eq!(server.sent().len(), 1, "which is lost");
    let linger = server.dtls.deadline().expect("it lingers");
    client.expire(Micros::from_secs(1));
    for datagram in client.sent() {
        server.hear(Micros::from_secs(1), &datagram);
    }
    for datagram in server.sent() {
        client.hear(Micros::from_secs(1), &datagram);
    }
    assert_eq!(client.connected(), server.connected());
    assert_eq!(server.dtls.deadline(), Some(linger));
    let words = client.say(b"heard");
    server.hear(Micros::from_secs(1), &words);
    assert_eq!(server.dtls.deadline(), None, "nothing is kept any longer");

    let (_, mut server) = connected();
    let linger = server.dtls.deadline().expect("it lingers");
    server.expire(linger);
    assert_eq!((server.dtls.deadline(), server.told.len()), (None, 1));
}
