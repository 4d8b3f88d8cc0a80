//! Clients of one address, one after the other, of which the first knows a wrong key: what the server
//! says again of its handshake reaches those after it.

use muster_model::Micros;
use muster_protocol::dtls::{Opening, Psk, Suite, server_random};

use super::ends::{End, IDENTITY, Told, certificates, shake, with_key};

/// A server's report of a handshake whose client has a wrong key.
struct Failed {
    verify_request: Vec<u8>,
    flight: Vec<Vec<u8>>,
    again: Vec<Vec<u8>>,
}

fn client(seed: u64, suite: Suite) -> End {
    let mut client = End::client(seed);
    client.settings.suites = vec![suite];
    client.connection_id = Some(seed.to_be_bytes().to_vec());
    client.certificates = Some(certificates(false));
    client
}

fn server(seed: u64, suite: Suite) -> End {
    let mut server = End::server(seed);
    server.settings.suites = vec![suite];
    server.settings.datagram_max = 400;
    server.connection_id = Some(seed.to_be_bytes().to_vec());
    server.certificates = Some(certificates(true));
    server
}

fn failed(suite: Suite) -> Failed {
    let (mut client, mut server) = (client(1, suite), server(1, suite));
    let wrong = Opening {
        psk: Some(Psk {
            identity: IDENTITY,
            key: b"another",
        }),
        server_name: Some("localhost"),
        ..Opening::default()
    };
    client.open(Micros::ZERO, &wrong);
    let hello = client.sent();
    server.hear(Micros::ZERO, &hello[0]);
    let verify_request = server.sent().remove(0);
    client.hear(Micros::ZERO, &verify_request);
    let hello = client.sent();
    server.hear(Micros::ZERO, &hello[0]);
    let flight = server.sent();
    let due = server.dtls.deadline().expect("it waits for an answer");
    server.expire(due);
    Failed {
        verify_request,
        flight,
        again: server.sent(),
    }
}

/// The client of a new session hears this before what is said to it.
fn opens_after(heard: &[Vec<u8>], suite: Suite) {
    let (mut client, mut server) = (client(2, suite), server(2, suite));
    client.open(Micros::ZERO, &with_key());
    for datagram in heard {
        client.hear(Micros::ZERO, datagram);
    }
    assert_eq!(client.told, []);
    shake(&mut client, &mut server);
    assert_eq!(client.connected(), server.connected(), "{suite:?}");
    assert_eq!(client.dtls.peer_id(), 2_u64.to_be_bytes());
    let up = client.say(b"up");
    server.hear(Micros::ZERO, &up);
    assert_eq!(server.told[1..], [Told::Data(b"up".to_vec())]);
}

#[test]
fn a_client_keeps_nothing_of_anothers_flight_ahead_of_its_own_server_hello() {
    for suite in [Suite::PskCcm8, Suite::EcdhePskGcm, Suite::EcdheEcdsaGcm] {
        let failed = failed(suite);
        assert!(!failed.again.is_empty());
        opens_after(&failed.again, suite);
    }
}

/// A cookie for another's ClientHello is refused with the right one.
#[test]
fn a_client_gets_over_anothers_cookie() {
    let failed = failed(Suite::PskCcm8);
    opens_after(&[failed.verify_request], Suite::PskCcm8);
}

#[test]
fn a_flight_that_is_said_again_shows_the_same_random_as_the_first_time() {
    let (first, other) = (failed(Suite::PskCcm8), server_random(&[]));
    let random = server_random(&first.flight[0]);
    assert!(random.is_some() && other.is_none());
    assert_eq!(server_random(&first.again[0]), random);
    assert_eq!(server_random(&first.verify_request), None);
}
