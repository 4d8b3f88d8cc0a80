//! Handshakes in full: every suite, group and connection id.

use muster_model::Micros;
use muster_protocol::dtls::{Group, KeyExchange, Opening, Suite};

use super::ends::{End, IDENTITY, Told, certificates, shake, with_key};

#[test]
fn every_suite_and_group_opens_a_session_that_carries_data_both_ways() {
    for suite in Suite::ALL {
        for group in Group::ALL {
            let (mut client, mut server) = (End::client(7), End::server(7));
            client.settings.suites = vec![suite];
            client.settings.groups = vec![group];
            client.certificates = Some(certificates(false));
            server.certificates = Some(certificates(true));
            client.open(Micros::ZERO, &with_key());
            shake(&mut client, &mut server);
            assert_eq!(client.connected(), server.connected(), "{suite:?}");
            assert_eq!(client.connected().suite, suite);
            assert!(client.connected().is_extended && !client.connected().is_resumed);
            let has_psk = suite.key_exchange() != KeyExchange::EcdheEcdsa;
            let identity = if has_psk { IDENTITY } else { &[] };
            assert_eq!(server.dtls.identity(), identity);
            let up = client.say(b"up");
            server.hear(Micros::ZERO, &up);
            let down = server.say(b"down");
            client.hear(Micros::ZERO, &down);
            assert_eq!(server.told[1..], [Told::Data(b"up".to_vec())]);
            assert_eq!(client.told[1..], [Told::Data(b"down".to_vec())]);
            assert!(client.is_newest && server.is_newest);
        }
    }
}

#[test]
fn connection_ids_of_any_length_are_agreed_upon_in_both_directions() {
    let ids: [Option<&[u8]>; 4] = [None, Some(&[]), Some(b"c"), Some(&[9; 255])];
    for suite in [Suite::PskCcm8, Suite::PskGcm] {
        for up in ids {
            for down in ids {
                let (mut client, mut server) = (End::client(3), End::server(3));
                client.settings.suites = vec![suite];
                client.connection_id = down.map(Into::into);
                server.connection_id = up.map(Into::into);
                client.open(Micros::ZERO, &with_key());
                shake(&mut client, &mut server);
                let has_both = up.is_some() && down.is_some();
                assert_eq!(client.connected().has_connection_id, has_both);
                assert_eq!(client.connected(), server.connected());
                let agreed =
                    |id: Option<&'static [u8]>| id.filter(|_| has_both).unwrap_or_default();
                assert_eq!(client.dtls.peer_id(), agreed(up));
                assert_eq!(client.dtls.own_id(), agreed(down));
                let datagram = client.say(b"up");
                let shown = if agreed(up).is_empty() { 23 } else { 25 };
                assert_eq!(datagram[0], shown);
                assert_eq!(datagram.len(), 2 + client.dtls.overhead());
                server.hear(Micros::ZERO, &datagram);
                assert_eq!(server.told[1..], [Told::Data(b"up".to_vec())]);
                let datagram = server.say(b"down");
                client.hear(Micros::ZERO, &datagram);
                assert_eq!(client.told[1..], [Told::Data(b"down".to_vec())]);
            }
        }
    }
}

#[test]
fn without_cookies_a_handshake_is_one_round_trip_shorter() {
    let (mut client, mut server) = (End::client(1), End::server(1));
    server.settings.cookie_secret = None;
    client.open(Micros::ZERO, &with_key());
    let hello = client.sent();
    server.hear(Micros::ZERO, &hello[0]);
    let flight = server.sent();
    client.hear(Micros::ZERO, &flight[0]);
    assert_eq!(client.dtls.counts(), Default::default());
    shake(&mut client, &mut server);
    assert_eq!(client.connected(), server.connected());
}

#[test]
fn a_server_keeps_nothing_of_who_has_no_cookie() {
    let (mut client, mut server) = (End::client(1), End::server(1));
    client.open(Micros::ZERO, &with_key());
    let hello = client.sent().remove(0);
    server.hear(Micros::ZERO, &hello);
    assert_eq!(server.dtls.deadline(), None);
    let request = server.sent().remove(0);
    assert!(request.len() < hello.len(), "nothing to amplify");
    // The record's number is that of the ClientHello (RFC 6347 section 4.2.1).
    assert_eq!(request[3..11], hello[3..11]);
}

#[test]
fn a_cookie_is_for_one_address_and_one_hello() {
    use super::ends::ADDRESS;
    use muster_protocol::dtls::{Context, Datagrams, Greeting, greet};
    let (mut client, mut server) = (End::client(1), End::server(1));
    client.open(Micros::ZERO, &with_key());
    let hello = client.sent().remove(0);
    server.hear(Micros::ZERO, &hello);
    let request = server.sent().remove(0);
    client.hear(Micros::ZERO, &request);
    let hello = client.sent().remove(0);
    let mut greet = |datagram: &[u8], address: &[u8]| {
        let context = Context {
            crypto: &mut server.crypto,
            settings: &server.settings,
            certificates: None,
            keys: None,
            sessions: None,
        };
        greet(&context, datagram, address, &mut Datagrams::new())
    };
    assert!(matches!(greet(&hello, ADDRESS), Greeting::Welcome(_)));
    assert_eq!(greet(&hello, b"elsewhere"), Greeting::Answered);
    let mut other = hello.clone();
    // A byte of the random.
    other[13 + 12 + 5] ^= 1;
    assert_eq!(greet(&other, ADDRESS), Greeting::Answered);
    assert_eq!(greet(&hello[..40], ADDRESS), Greeting::Ignored);
}

#[test]
fn long_flights_go_in_fragments_and_come_together() {
    let (mut client, mut server) = (End::client(1), End::server(1));
    for end in [&mut client, &mut server] {
        end.settings.datagram_max = 0;
        end.settings.suites = vec![Suite::EcdheEcdsaGcm];
    }
    client.certificates = Some(certificates(false));
    server.certificates = Some(certificates(true));
    let opening = Opening {
        server_name: Some("localhost"),
        ..Opening::default()
    };
    client.open(Micros::ZERO, &opening);
    let now = Micros::ZERO;
    for datagram in client.sent() {
        server.hear(now, &datagram);
    }
    for datagram in server.sent() {
        client.hear(now, &datagram);
    }
    for datagram in client.sent() {
        server.hear(now, &datagram);
    }
    let flight = server.sent();
    assert!(flight.len() > 2, "{}", flight.len());
    assert!(flight.iter().all(|datagram| datagram.len() <= 400));
    // In the worst order, and each twice.
    for datagram in flight.iter().rev().chain(&flight) {
        client.hear(now, datagram);
    }
    shake(&mut client, &mut server);
    assert_eq!(client.connected(), server.connected());
}

#[test]
fn a_connection_id_that_cannot_be_said_is_none() {
    let (mut client, mut server) = (End::client(1), End::server(1));
    client.connection_id = Some(vec![1; 256]);
    server.connection_id = Some(vec![1; 256]);
    client.open(Micros::ZERO, &with_key());
    shake(&mut client, &mut server);
    assert_eq!(client.connected(), server.connected());
    assert!(!client.connected().has_connection_id);
}
