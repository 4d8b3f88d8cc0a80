//! Wrong keys and unknown names.

use muster_model::Micros;
use muster_protocol::dtls::{Fault, Opening, Psk, Suite};

use super::ends::{End, IDENTITY, KEY, Told, shake};

fn opening<'a>(identity: &'a [u8], key: &'a [u8]) -> Opening<'a> {
    Opening {
        psk: Some(Psk { identity, key }),
        ..Opening::default()
    }
}

/// Lets time pass until neither end waits for anything.
fn wait(client: &mut End, server: &mut End) {
    loop {
        let due = [&client.dtls, &server.dtls].map(|dtls| dtls.deadline());
        let Some(now) = due.into_iter().flatten().min() else {
            return;
        };
        client.expire(now);
        server.expire(now);
        for datagram in client.sent() {
            server.hear(now, &datagram);
        }
        for datagram in server.sent() {
            client.hear(now, &datagram);
        }
    }
}

#[test]
fn a_wrong_key_is_silence_and_both_ends_time_out() {
    for suite in [Suite::PskCcm8, Suite::PskGcm, Suite::EcdhePskGcm] {
        let (mut client, mut server) = (End::client(1), End::server(1));
        client.settings.suites = vec![suite];
        client.open(Micros::ZERO, &opening(IDENTITY, b"another"));
        shake(&mut client, &mut server);
        assert_eq!((&client.told[..], &server.told[..]), (&[][..], &[][..]));
        wait(&mut client, &mut server);
        assert_eq!(client.told, [Told::Failed(Fault::TimedOut)]);
        assert_eq!(server.told, [Told::Failed(Fault::TimedOut)]);
        assert!(server.dtls.counts().discarded > 0);
    }
}

#[test]
fn rfc_4279_section_2_an_unknown_identity_is_told() {
    let (mut client, mut server) = (End::client(1), End::server(1));
    client.open(Micros::ZERO, &opening(b"nobody", KEY));
    shake(&mut client, &mut server);
    assert_eq!(client.told, [Told::Failed(Fault::Alert(115))]);
    assert_eq!(server.told, [Told::Failed(Fault::UnknownIdentity)]);
}

#[test]
fn a_server_may_be_silent_about_an_identity_and_the_client_times_out() {
    let (mut client, mut server) = (End::client(1), End::server(1));
    client.open(Micros::ZERO, &opening(b"silent", KEY));
    shake(&mut client, &mut server);
    assert_eq!(server.told, [Told::Failed(Fault::UnknownIdentity)]);
    assert_eq!(client.told, []);
    wait(&mut client, &mut server);
    assert_eq!(client.told, [Told::Failed(Fault::TimedOut)]);
}

#[test]
fn keys_and_names_of_any_length_are_taken() {
    for (identity, key) in [(&b""[..], &b""[..]), (&[b'n'; 300][..], &[b'k'; 300][..])] {
        let (mut client, mut server) = (End::client(1), End::server(1));
        client.open(Micros::ZERO, &opening(identity, key));
        shake(&mut client, &mut server);
        // The server knows neither.
        assert_eq!(client.told, [Told::Failed(Fault::Alert(115))]);
    }
}

#[test]
fn keys_are_not_printed() {
    let (mut client, mut server) = (End::client(1), End::server(1));
    let opening = opening(IDENTITY, KEY);
    client.open(Micros::ZERO, &opening);
    let mut texts = vec![format!("{opening:?} {:?}", client.dtls)];
    shake(&mut client, &mut server);
    texts.push(format!("{:?} {:?}", client.dtls, server.dtls));
    for text in texts {
        assert!(text.contains("Dtls"));
        assert!(!text.contains("hono-secret"), "{text}");
        // The first bytes of the key in decimal, as a derived Debug prints them.
        assert!(!text.contains("104, 111, 110, 111"), "{text}");
    }
}

/// Both ends wait, and each takes the other's flight for one that is said again.
#[test]
fn two_ends_that_wait_do_not_answer_each_others_repetitions_without_end() {
    let (mut client, mut server) = (End::client(1), End::server(1));
    client.open(Micros::ZERO, &opening(IDENTITY, b"another"));
    shake(&mut client, &mut server);
    let due = client.dtls.deadline().expect("it waits");
    client.expire(due);
    for _ in 0..20 {
        for datagram in client.sent() {
            server.hear(due, &datagram);
        }
        for datagram in server.sent() {
            client.hear(due, &datagram);
        }
    }
    let resent = [&client, &server].map(|end| end.dtls.counts().resent);
    assert_eq!(resent, [1, 1]);
}
