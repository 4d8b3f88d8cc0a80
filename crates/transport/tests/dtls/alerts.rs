//! Alerts, both ways: what goes wrong, who is told, and what nobody is told.

use muster_model::{Micros, TlsFailure};
use muster_protocol::dtls::{CertificateFault, Fault, Group, Opening, Suite};
use muster_protocol::layer::Standing;
use muster_transport::{DtlsCertificates, Own, TlsSpec, throwaway};

use super::ends::{End, Told, certificate, certificates, connected, shake, with_key};

/// Both ends end with these faults.
fn fails(client: &mut End, server: &mut End, opening: &Opening<'_>, faults: (Fault, Fault)) {
    client.open(Micros::ZERO, opening);
    shake(client, server);
    assert_eq!(client.told, [Told::Failed(faults.0)]);
    assert_eq!(server.told, [Told::Failed(faults.1)]);
    for end in [client, server] {
        assert_eq!(end.dtls.standing(), Standing::Over);
        assert_eq!(end.dtls.deadline(), None);
    }
}

#[test]
fn nothing_in_common_is_handshake_failure() {
    let (mut client, mut server) = (End::client(1), End::server(1));
    client.settings.suites = vec![Suite::PskCcm8];
    server.settings.suites = vec![Suite::PskGcm];
    let faults = (Fault::Alert(40), Fault::NothingInCommon);
    fails(&mut client, &mut server, &with_key(), faults);
    let (mut client, mut server) = (End::client(1), End::server(1));
    client.settings.suites = vec![Suite::EcdhePskGcm];
    client.settings.groups = vec![Group::X25519];
    server.settings.groups = vec![Group::P256];
    fails(&mut client, &mut server, &with_key(), faults);
}

#[test]
fn without_randomness_no_handshake_begins_and_a_server_refuses() {
    let (mut client, mut server) = (End::client(1), End::server(1));
    client.crypto.has_randomness = false;
    client.open(Micros::ZERO, &with_key());
    assert!(client.sent().is_empty());
    assert_eq!(client.dtls.deadline(), Some(Micros::ZERO));
    client.expire(Micros::ZERO);
    assert_eq!(client.told, [Told::Failed(Fault::NoRandomness)]);
    let mut client = End::client(1);
    server.crypto.has_randomness = false;
    let faults = (Fault::Alert(80), Fault::NoRandomness);
    fails(&mut client, &mut server, &with_key(), faults);
}

#[test]
fn an_end_without_extended_master_secret_is_refused_where_it_is_demanded() {
    // Our own client always offers it: the offer is taken out on the way.
    for is_demanded in [false, true] {
        let (mut client, mut server) = (End::client(1), End::server(1));
        server.settings.cookie_secret = None;
        server.settings.require_extended_master_secret = is_demanded;
        client.open(Micros::ZERO, &with_key());
        let mut hello = client.sent().remove(0);
        let at = hello.windows(4).position(|four| four == [0, 23, 0, 0]);
        // An extension that nobody knows.
        hello[at.expect("it is offered") + 1] = 99;
        server.hear(Micros::ZERO, &hello);
        let told = server.told.clone();
        if is_demanded {
            assert_eq!(told, [Told::Failed(Fault::NoExtendedMasterSecret)]);
            assert_eq!(server.sent()[0][13..], [2, 40]);
        } else {
            assert_eq!(told, []);
        }
    }
}

#[test]
fn a_client_that_needs_a_connection_id_ends_with_a_server_that_takes_none() {
    let (mut client, mut server) = (End::client(1), End::server(1));
    let opening = Opening {
        connection_id: Some(b"here"),
        needs_connection_id: true,
        ..with_key()
    };
    let faults = (Fault::NoConnectionId, Fault::Alert(40));
    fails(&mut client, &mut server, &opening, faults);
}

#[test]
fn a_server_whose_certificate_is_not_trusted_is_told_why() {
    let stranger = throwaway(&["localhost".to_owned()]).expect("a certificate");
    let spec = TlsSpec {
        ca: Some(stranger.ca),
        ..TlsSpec::default()
    };
    let strange = DtlsCertificates::new(None, &spec, None).expect("it can be used");
    for (ours, name, fault, code) in [
        (strange, "localhost", CertificateFault::UnknownIssuer, 48),
        (
            certificates(false),
            "elsewhere.example",
            CertificateFault::WrongName,
            46,
        ),
    ] {
        let (mut client, mut server) = (End::client(1), End::server(1));
        client.certificates = Some(ours);
        server.certificates = Some(certificates(true));
        let opening = Opening {
            server_name: Some(name),
            ..Opening::default()
        };
        let faults = (Fault::Certificate(fault), Fault::Alert(code));
        fails(&mut client, &mut server, &opening, faults);
    }
}

#[test]
fn a_client_shows_its_certificate_where_one_is_demanded() {
    let (mut client, mut server) = (End::client(1), End::server(1));
    client.certificates = Some(certificates(true));
    server.certificates = Some(certificates(true));
    server.settings.client_certificate = true;
    let opening = Opening {
        server_name: Some("localhost"),
        ..Opening::default()
    };
    client.open(Micros::ZERO, &opening);
    shake(&mut client, &mut server);
    assert_eq!(client.connected(), server.connected());

    let (mut client, mut server) = (End::client(2), End::server(2));
    client.certificates = Some(certificates(false));
    server.certificates = Some(certificates(true));
    server.settings.client_certificate = true;
    let missing = Fault::Certificate(CertificateFault::Missing);
    let faults = (Fault::Alert(40), missing);
    fails(&mut client, &mut server, &opening, faults);
}

#[test]
fn a_client_that_has_not_the_key_of_its_certificate_is_refused() {
    // Somebody else's certificate, signed with one's own key: the server trusts who made it.
    let (mut client, mut server) = (End::client(1), End::server(1));
    let other = throwaway(&["localhost".to_owned()]).expect("a certificate");
    let spec = TlsSpec {
        ca: Some(certificate().ca.clone()),
        ..TlsSpec::default()
    };
    let own = Own::new(&other.cert, &other.key).expect("they belong together");
    client.certificates =
        Some(DtlsCertificates::new(Some(own), &spec, None).expect("it can be used"));
    server.certificates = Some(certificates(true));
    server.settings.client_certificate = true;
    let opening = Opening {
        server_name: Some("localhost"),
        ..Opening::default()
    };
    let fault = Fault::Certificate(CertificateFault::UnknownIssuer);
    fails(
        &mut client,
        &mut server,
        &opening,
        (Fault::Alert(48), fault),
    );
}

#[test]
fn goodbye_is_answered_and_told_once() {
    let (mut client, mut server) = connected();
    client.close();
    assert_eq!(client.dtls.standing(), Standing::Closing);
    assert!(!client.dtls.wrap(&mut b"more".to_vec(), 0));
    shake(&mut client, &mut server);
    assert_eq!(server.told[1..], [Told::Closed]);
    assert_eq!(client.told[1..], [Told::Closed]);
    client.close();
    assert!(client.sent().is_empty());
}

#[test]
fn what_is_said_until_the_goodbye_is_answered_is_still_heard() {
    let (mut client, mut server) = connected();
    client.close();
    let late = server.say(b"late");
    client.hear(Micros::ZERO, &late);
    assert_eq!(client.told[1..], [Told::Data(b"late".to_vec())]);
}

#[test]
fn a_handshake_that_is_left_says_nothing_and_one_that_the_peer_leaves_has_failed() {
    let mut client = End::client(1);
    client.open(Micros::ZERO, &with_key());
    client.sent();
    client.close();
    assert!(client.sent().is_empty());
    assert_eq!(client.dtls.standing(), Standing::Over);

    let mut client = End::client(1);
    client.open(Micros::ZERO, &with_key());
    client.hear(Micros::ZERO, &plain_alert(1, 0));
    assert_eq!(client.told, [Told::Failed(Fault::ClosedEarly)]);
}

/// An alert in the clear, as a record of epoch 0.
fn plain_alert(level: u8, code: u8) -> Vec<u8> {
    vec![21, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 9, 0, 2, level, code]
}

#[test]
fn alerts_in_the_clear_count_only_while_there_are_no_keys() {
    let mut client = End::client(1);
    client.open(Micros::ZERO, &with_key());
    client.hear(Micros::ZERO, &plain_alert(1, 90));
    assert_eq!(client.told, [], "a warning ends nothing");
    client.hear(Micros::ZERO, &plain_alert(2, 40));
    assert_eq!(client.told, [Told::Failed(Fault::Alert(40))]);
    let (mut client, _) = connected();
    client.hear(Micros::ZERO, &plain_alert(2, 40));
    client.hear(Micros::ZERO, &plain_alert(1, 0));
    assert!(client.dtls.is_open());
    assert_eq!(client.dtls.counts().discarded, 2);
}

#[test]
fn a_message_out_of_place_or_unreadable_ends_a_handshake() {
    for (kind, body, fault, code) in [
        // ServerHelloDone before ServerHello.
        (14_u8, &[][..], Fault::Unexpected, 10),
        // A ServerHello that ends inside its random.
        (2, &[0xfe, 0xfd, 1], Fault::Malformed, 50),
        (2, &[0xfe, 0xff, 1], Fault::Version, 70),
    ] {
        let mut client = End::client(1);
        client.open(Micros::ZERO, &with_key());
        client.sent();
        let length = body.len() as u8;
        let mut record = vec![22, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 12 + length];
        record.extend([kind, 0, 0, length, 0, 0, 0, 0, 0, 0, 0, length]);
        record.extend(body);
        client.hear(Micros::ZERO, &record);
        assert_eq!(client.told, [Told::Failed(fault)]);
        assert_eq!(client.sent()[0][13..], [2, code]);
    }
}

#[test]
fn a_server_that_chooses_what_was_not_offered_is_refused() {
    // The suite in ServerHello becomes another one.
    let (mut client, mut server) = (End::client(1), End::server(1));
    server.settings.cookie_secret = None;
    client.settings.suites = vec![Suite::PskCcm8];
    client.open(Micros::ZERO, &with_key());
    server.hear(Micros::ZERO, &client.sent().remove(0));
    let mut flight = server.sent().remove(0);
    let suite = Suite::PskCcm8.code().to_be_bytes();
    let at = flight.windows(2).position(|two| two == suite);
    flight[at.expect("it is chosen") + 1] = 0xa4;
    client.hear(Micros::ZERO, &flight);
    assert_eq!(client.told, [Told::Failed(Fault::Illegal)]);
    assert_eq!(client.sent()[0][13..], [2, 47]);
}

#[test]
fn a_handshake_that_was_altered_on_its_way_does_not_open() {
    // A byte of the client's random differs between what it said and what the server heard.
    let (mut client, mut server) = (End::client(1), End::server(1));
    server.settings.cookie_secret = None;
    client.open(Micros::ZERO, &with_key());
    let mut hello = client.sent().remove(0);
    hello[13 + 12 + 10] ^= 1;
    server.hear(Micros::ZERO, &hello);
    client.hear(Micros::ZERO, &server.sent().remove(0));
    server.hear(Micros::ZERO, &client.sent().remove(0));
    // Other keys follow from it: the client's Finished cannot be opened.
    assert_eq!(server.told, []);
    assert_eq!(server.dtls.counts().discarded, 1);
}

/// An empty message of the handshake.
const fn empty_message(kind: u8) -> [u8; 12] {
    [kind, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0]
}

#[test]
fn a_renegotiation_is_refused_and_changes_nothing() {
    for (is_client, kind) in [(false, 0), (true, 1)] {
        let (mut client, mut server) = connected();
        let (asker, asked) = if is_client {
            (&mut client, &mut server)
        } else {
            (&mut server, &mut client)
        };
        let wish = asker.crypto.forge(is_client, 22, 100, &empty_message(kind));
        asked.hear(Micros::ZERO, &wish);
        let answer = asked.sent().remove(0);
        let refusal = asked.crypto.forge(!is_client, 21, 1, &[1, 100]);
        assert_eq!(answer, refusal, "the warning no_renegotiation");
        asker.hear(Micros::ZERO, &answer);
        let words = asked.say(b"still");
        asker.hear(Micros::ZERO, &words);
        assert_eq!(asker.told[1..], [Told::Data(b"still".to_vec())]);
    }
}

#[test]
fn a_fatal_alert_under_keys_ends_a_session_and_a_warning_does_not() {
    let (mut client, server) = connected();
    let warning = server.crypto.forge(false, 21, 100, &[1, 90]);
    client.hear(Micros::ZERO, &warning);
    assert!(client.dtls.is_open() && client.told.len() == 1);
    let odd = server.crypto.forge(false, 21, 101, &[2]);
    client.hear(Micros::ZERO, &odd);
    assert_eq!(client.dtls.counts().discarded, 1);
    let fatal = server.crypto.forge(false, 21, 102, &[2, 80]);
    client.hear(Micros::ZERO, &fatal);
    assert_eq!(client.told[1..], [Told::Failed(Fault::Alert(80))]);
    assert_eq!(client.dtls.standing(), Standing::Over);
}

#[test]
fn a_fault_has_the_cause_that_a_run_counts() {
    assert_eq!(Fault::TimedOut.cause(), None);
    assert_eq!(Fault::Alert(115).cause(), Some(TlsFailure::Alert(115)));
    let expired = Fault::Certificate(CertificateFault::Expired);
    assert_eq!(expired.cause(), Some(TlsFailure::Expired));
    assert!(Fault::TimedOut.to_string().contains("identity and key"));
}

#[test]
fn after_its_end_a_session_hears_nothing() {
    let (mut client, mut server) = connected();
    let late = server.say(b"late");
    client.close();
    shake(&mut client, &mut server);
    let told = client.told.len();
    client.hear(Micros::ZERO, &late);
    assert_eq!(client.told.len(), told);
}
