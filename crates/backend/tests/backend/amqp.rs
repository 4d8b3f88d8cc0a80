//! A consumer of AMQP 1.0 before a peer made of the library's own acceptor.

mod peer;
mod rig;

use fe2o3_amqp::types::definitions::AmqpError;
use fe2o3_amqp::types::messaging::{ApplicationProperties, Body, Message, MessageId, Properties};
use muster_model::{Micros, Reason};

use peer::{CREDIT, Content, Do, Peer, Settle, Takes};
use rig::{data, hono, hono_of, message, notification, over_tls, queue, start, up};

use crate::rig::{DELIVERED, UNDELIVERABLE, ended};

/// Commands that may wait behind one that waits for credit.
const QUEUE: u64 = 16;

/// Law: each delivery is counted once and accepted, whatever the credit.
#[test]
fn deliveries_beyond_the_credit_are_counted_and_accepted() {
    for credit in [1, 7, 1_000] {
        let peer = Peer::start();
        let plan = queue(peer.address, &format!(", credit: {credit}"));
        let rig = up(&plan);
        peer.attached(&["readings"]);
        for number in 0..500 {
            peer.send("readings", message(&plan, number));
        }
        assert_eq!(peer.settled(500), 500, "credit {credit}");
        // What is accepted was counted before.
        let (handover, diagnostics) = rig.finish();
        let account = &handover.account.backends[0];
        assert_eq!((account.consumed, account.read.count), (500, 500));
        assert_eq!(diagnostics, []);
    }
}

#[test]
fn a_body_that_is_no_message_of_ours_is_counted_as_it_is() {
    let peer = Peer::start();
    let plan = queue(peer.address, "");
    let mut rig = up(&plan);
    peer.attached(&["readings"]);
    for content in [data(b"somebody else's"), rig::empty(), message(&plan, 0)] {
        peer.send("readings", content);
    }
    assert_eq!(peer.settled(3), 3);
    rig.until(|rig| rig.copies == 3);
    rig.finish();
}

#[test]
fn events_of_hono_itself_are_no_damaged_copies() {
    let peer = Peer::start();
    let plan = hono(peer.address, "");
    let mut rig = up(&plan);
    peer.attached(&["telemetry/t1", "event/t1"]);
    peer.send("event/t1", notification());
    peer.send("telemetry/t1", message(&plan, 3));
    rig.until(|rig| rig.copies == 2);
    assert_eq!(rig.corrupted, 0);
    peer.send("event/t1", data(b"nothing that Muster sent"));
    rig.until(|rig| rig.copies == 3);
    rig.finish();
}

#[test]
fn a_consumer_that_pauses_takes_nothing_until_it_resumes() {
    const PAUSE: Micros = Micros::from_millis(700);
    let peer = Peer::start();
    let pause = ", pause: [ { at: 0s, for: 700ms } ]";
    let plan = queue(peer.address, pause);
    let mut rig = up(&plan);
    peer.attached(&["readings"]);
    // Its first link is closed at the end of the pause, and attached anew with full credit.
    peer.attached(&["readings"]);
    let resumed = rig.clock.now();
    peer.send("readings", message(&plan, 0));
    assert_eq!(peer.settled(1), 1);
    rig.until(|rig| rig.copies == 1);
    assert!(resumed >= PAUSE, "{resumed}");
    let (_, diagnostics) = rig.finish();
    assert_eq!(diagnostics, [], "a pause is no loss");
}

#[test]
fn a_consumer_that_was_hung_up_on_comes_back_and_says_so() {
    let peer = Peer::start();
    let plan = queue(peer.address, "");
    let mut rig = up(&plan);
    peer.attached(&["readings"]);
    peer.hang_up();
    peer.attached(&["readings"]);
    rig.until(|rig| rig.said("ConsumerLost") && rig.said("ConsumerBack"));
    peer.send("readings", message(&plan, 0));
    assert_eq!(peer.settled(1), 1);
    rig.until(|rig| rig.copies == 1);
    rig.finish();
}

#[test]
fn a_link_that_is_detached_with_an_error_names_the_error_and_the_remedy() {
    let peer = Peer::start();
    let mut rig = up(&queue(peer.address, ""));
    peer.attached(&["readings"]);
    let gone = Do::Detach(AmqpError::ResourceDeleted, "the queue was deleted");
    peer.order("readings", gone);
    rig.until(|rig| rig.said("amqp:resource-deleted"));
    assert!(rig.said("the queue was deleted"));
    assert!(rig.said("platform.backend.addresses"));
    rig.until(|rig| rig.said("ConsumerBack"));
    rig.finish();
}

#[test]
fn an_address_that_is_refused_names_the_tenant() {
    let peer = Peer::start();
    peer.refuse("event/t1", AmqpError::NotFound, "no such address");
    let mut rig = start(&hono(peer.address, ""));
    rig.until(|rig| rig.said("amqp:not-found"));
    assert!(
        rig.said("does the platform know tenant `t1`"),
        "{:?}",
        rig.diagnostics
    );
    rig.finish();
}

#[test]
fn a_wrong_password_is_final_and_names_the_keys() {
    let peer = Peer::taking(Takes::Password("right"), Settle::Accept);
    let mut rig = start(&queue(peer.address, ", user: app, password: wrong"));
    rig.until(|rig| rig.is_refused());
    assert!(rig.said("SASL code 1"), "{:?}", rig.diagnostics);
    assert!(rig.said("platform.backend.password"));
    assert!(!rig.said("wrong"), "no secret is printed");
    rig.finish();
    let mut rig = up(&queue(peer.address, ", user: app, password: right"));
    rig.until(|rig| rig.is_up());
    rig.finish();
}

#[test]
fn a_mechanism_that_the_peer_does_not_offer_is_named_with_those_it_offers() {
    let peer = Peer::taking(Takes::Password("right"), Settle::Accept);
    let mut rig = start(&queue(peer.address, ""));
    rig.until(|rig| rig.is_refused());
    assert!(
        rig.said("it offers SASL by PLAIN, and not by ANONYMOUS"),
        "{:?}",
        rig.diagnostics
    );
    rig.finish();
}

#[test]
fn a_certificate_of_tls_logs_in_by_external() {
    let peer = Peer::taking(Takes::Certificate, Settle::Accept);
    let plan = queue(peer.address, "");
    let mut rig = over_tls(&plan, true);
    rig.until(|rig| rig.is_up());
    peer.attached(&["readings"]);
    peer.send("readings", message(&plan, 0));
    assert_eq!(peer.settled(1), 1);
    rig.until(|rig| rig.copies == 1);
    let (_, diagnostics) = rig.finish();
    assert_eq!(diagnostics, []);
}

#[test]
fn a_certificate_of_a_stranger_names_the_keys_of_tls() {
    let peer = Peer::taking(Takes::Certificate, Settle::Accept);
    let mut rig = over_tls(&queue(peer.address, ""), false);
    rig.until(|rig| rig.said("the TLS handshake failed"));
    assert!(rig.said("platform.backend.tls"), "{:?}", rig.diagnostics);
    rig.finish();
}

#[test]
fn a_peer_without_tls_is_no_peer_over_tls() {
    let peer = Peer::start();
    let mut rig = over_tls(&queue(peer.address, ""), true);
    rig.until(|rig| rig.said("the TLS handshake failed"));
    let hint = "a port without TLS does that: if it is one, write `amqp://`";
    assert!(rig.said(hint), "{:?}", rig.diagnostics);
    rig.finish();
}

#[test]
fn nobody_there_is_said_at_once() {
    let plan = queue(([127, 0, 0, 1], 1).into(), "");
    let mut rig = start(&plan);
    rig.until(|rig| rig.said("does anybody listen there?"));
    assert!(!rig.is_refused(), "somebody may come");
    rig.finish();
}

/// The reply of a device, as Hono passes it on.
fn reply(command: &Content, status: i32) -> Content {
    let properties = command.properties.as_ref().unwrap();
    let id = properties.correlation_id.clone().unwrap();
    let status = ApplicationProperties::builder().insert("status", status);
    Message {
        properties: Some(Properties::builder().correlation_id(id).build()),
        application_properties: Some(status.build()),
        ..command.clone()
    }
}

const COMMANDS: &str = ", commands: { rate: 50/s, mode: two-way }";

#[test]
fn commands_go_to_their_devices_and_replies_come_back() {
    let peer = Peer::start();
    let mut rig = up(&hono(peer.address, COMMANDS));
    for _ in 0..10 {
        let command = peer.command();
        let properties = command.properties.as_ref().unwrap();
        let to = properties.to.as_deref().unwrap();
        assert!(to.starts_with("command/t1/meters-"), "{to}");
        assert_eq!(properties.subject.as_deref(), Some("set"));
        assert!(matches!(
            properties.correlation_id,
            Some(MessageId::String(_))
        ));
        assert!(matches!(command.body, Body::Data(_)));
        let reply_to = properties.reply_to.clone().unwrap();
        assert!(reply_to.starts_with("command_response/t1/"), "{reply_to}");
        peer.send(&reply_to, reply(&command, 200));
    }
    rig.until(|rig| rig.replies >= 10);
    let (handover, _) = rig.finish();
    assert!(ended(&handover)[DELIVERED] >= 10);
    assert_eq!(
        handover.account.backends[0].consumed, 0,
        "a reply is no message"
    );
}

#[test]
fn what_the_peer_released_or_rejected_was_not_delivered() {
    for (settle, code) in [
        (Settle::Release, Reason::AMQP_RELEASED),
        (Settle::Reject, Reason::AMQP_REJECTED),
    ] {
        let peer = Peer::taking(Takes::Anybody, settle);
        let keys = ", commands: { rate: 50/s, mode: one-way }";
        let rig = up(&hono(peer.address, keys));
        for _ in 0..5 {
            peer.command();
        }
        let (handover, _) = rig.finish();
        let ended = ended(&handover);
        assert!(ended[UNDELIVERABLE] >= 1, "{code:#x}: {ended:?}");
        assert_eq!(ended[DELIVERED], 0);
    }
}

#[test]
fn an_outcome_is_reported_while_the_next_command_waits_for_credit() {
    let peer = Peer::taking(Takes::Anybody, Settle::AcceptFirst);
    let keys = ", commands: { rate: 2000/s, mode: one-way }";
    let mut rig = up(&hono(peer.address, keys));
    // The queue is full behind the command that waits for credit.
    rig.until(|rig| rig.progress.open == CREDIT as u64 + 1 + QUEUE);
    peer.accept_first();
    rig.until(|rig| rig.delivered == 1);
    let (handover, _) = rig.finish();
    assert_eq!(ended(&handover)[DELIVERED], 1);
}

/// Law: what the peer accepted is final, whether a reply comes or not.
#[test]
fn a_command_that_wants_a_reply_is_delivered_once_it_is_accepted() {
    let peer = Peer::start();
    let mut rig = up(&hono(peer.address, COMMANDS));
    peer.command();
    rig.until(|rig| rig.delivered >= 1);
    assert_eq!(rig.replies, 0);
    rig.finish();
}

/// Law: a tenant without credit holds back its own commands alone.
#[test]
fn a_tenant_without_credit_holds_back_the_commands_of_no_other() {
    let peer = Peer::taking(Takes::Anybody, Settle::AcceptAt("command/t1"));
    let keys = ", commands: { rate: 4000/s, mode: one-way }";
    let mut rig = up(&hono_of(&["t1", "t2"], peer.address, keys));
    // Far more than there were when the credit of the other was at its end.
    rig.until(|rig| rig.delivered >= 5 * CREDIT as u64);
    let waiting = CREDIT as u64 + 1 + QUEUE;
    assert!(
        rig.progress.open >= waiting,
        "{} are open",
        rig.progress.open
    );
    let (handover, _) = rig.finish();
    assert!(ended(&handover)[DELIVERED] >= 5 * CREDIT as u64);
}
