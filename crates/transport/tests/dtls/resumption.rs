//! Sessions that are resumed, and those that are not.

use muster_model::Micros;
use muster_protocol::dtls::{Opening, Session, Suite};

use super::ends::{End, IDENTITY, Kept, Told, shake, with_key};

/// A session in full, and what the client keeps of it.
fn first() -> (Session, End) {
    let (mut client, mut server) = (End::client(1), End::server(1));
    client.settings.resumption = true;
    server.sessions = Some(Kept::default());
    client.open(Micros::ZERO, &with_key());
    shake(&mut client, &mut server);
    assert!(!client.connected().is_resumed);
    let session = client.dtls.take_session().expect("the server gives one");
    assert_eq!(client.dtls.take_session(), None);
    (session, server)
}

/// Another session with the same server, with what was kept.
fn again(session: &Session, earlier: &mut End, change: fn(&mut End, &mut End)) -> (End, End) {
    let (mut client, mut server) = (End::client(2), End::server(2));
    client.settings.resumption = true;
    server.sessions = earlier.sessions.take();
    change(&mut client, &mut server);
    let opening = Opening {
        session: Some(session.clone()),
        ..with_key()
    };
    client.open(Micros::ZERO, &opening);
    shake(&mut client, &mut server);
    assert_eq!(client.connected(), server.connected());
    (client, server)
}

#[test]
fn a_session_is_resumed_as_often_as_the_server_knows_it() {
    let (mut session, mut server) = first();
    for _ in 0..3 {
        let (mut client, next) = again(&session, &mut server, |_, _| {});
        assert!(client.connected().is_resumed);
        assert_eq!(next.dtls.identity(), IDENTITY);
        session = client.dtls.take_session().expect("it can be resumed again");
        server = next;
        let words = client.say(b"resumed");
        server.hear(Micros::ZERO, &words);
        assert_eq!(server.told[1..], [Told::Data(b"resumed".to_vec())]);
        // The client spoke last: it forgets what it said once the server is heard.
        assert!(client.dtls.deadline().is_some());
        let words = server.say(b"so it is");
        client.hear(Micros::ZERO, &words);
        assert_eq!(client.dtls.deadline(), None);
    }
}

#[test]
fn a_session_that_the_server_has_forgotten_is_opened_in_full() {
    let (session, mut server) = first();
    server.sessions = Some(Kept::default());
    let (mut client, _) = again(&session, &mut server, |_, _| {});
    assert!(!client.connected().is_resumed);
    let new = client.dtls.take_session().expect("a new one");
    assert_ne!(new.id(), session.id());
}

#[test]
fn a_session_of_a_suite_that_is_no_longer_spoken_is_opened_in_full() {
    let (session, mut server) = first();
    assert_eq!(session.suite(), Suite::PskCcm8);
    let (client, _) = again(&session, &mut server, |_, server| {
        server.settings.suites = vec![Suite::PskGcm];
    });
    assert!(!client.connected().is_resumed);
    assert_eq!(client.connected().suite, Suite::PskGcm);
}

#[test]
fn a_resumed_session_has_connection_ids_of_its_own() {
    let (session, mut server) = first();
    let (mut client, mut server) = again(&session, &mut server, |client, server| {
        client.connection_id = Some(b"down".to_vec());
        server.connection_id = Some(b"up".to_vec());
    });
    assert!(client.connected().is_resumed && client.connected().has_connection_id);
    let words = client.say(b"words");
    server.hear(Micros::ZERO, &words);
    assert_eq!(server.told[1..], [Told::Data(b"words".to_vec())]);
}

#[test]
fn a_server_without_a_store_gives_no_session() {
    let (mut client, mut server) = (End::client(1), End::server(1));
    client.settings.resumption = true;
    client.open(Micros::ZERO, &with_key());
    shake(&mut client, &mut server);
    assert_eq!(client.connected(), server.connected());
    assert_eq!(client.dtls.take_session(), None);
}

#[test]
fn what_the_client_says_last_is_said_again_when_the_server_has_not_heard_it() {
    let (session, mut earlier) = first();
    let (mut client, mut server) = (End::client(2), End::server(2));
    server.settings.cookie_secret = None;
    server.sessions = earlier.sessions.take();
    let opening = Opening {
        session: Some(session),
        ..with_key()
    };
    client.open(Micros::ZERO, &opening);
    server.hear(Micros::ZERO, &client.sent().remove(0));
    client.hear(Micros::ZERO, &server.sent().remove(0));
    assert!(client.connected().is_resumed);
    assert_eq!(client.sent().len(), 1, "which is lost");
    let later = Micros::from_secs(1);
    server.expire(later);
    client.hear(later, &server.sent().remove(0));
    server.hear(later, &client.sent().remove(0));
    assert_eq!(client.connected(), server.connected());
    assert_eq!((client.sent().len(), server.sent().len()), (0, 0));
}
