//! Devices over CoAP, and the business application over AMQP 1.0: the ledger of a run against the gateway's own
//! account, message by message.

use crate::hono::{named, over};
use crate::truth::{MESSAGES, Truth};

/// A run whose application receives over AMQP, with further keys of the backend.
fn run(behaviour: &str, backend: &str, measure: &str) -> Truth {
    let devices = r#"devices: [ "coap://127.0.0.1:0" ]"#;
    let with_backend = format!("{devices}\n  backend: {{ url: \"amqp://127.0.0.1:0\"{backend} }}");
    let scenario = over("coap", false).scenario(behaviour, measure);
    assert!(scenario.contains(devices));
    named(&scenario.replace(devices, &with_backend))
}

#[test]
fn a_gateway_that_behaves_and_the_ledger_agree_over_amqp() {
    let truth = run("", "", "1500ms");
    truth.agrees();
    assert_eq!(truth.uplink("accepted"), MESSAGES);
    assert_eq!(truth.uplink("arrived"), MESSAGES);
    assert_eq!(truth.account("delivered-acknowledged"), MESSAGES);
    assert_eq!(truth.account("unavailable"), 0);
    assert_eq!(truth.exit_code, 0);
}

#[test]
fn what_becomes_of_the_delivery_over_amqp_is_found_of_each_message() {
    let behaviour = "lose-after-accept: 17, duplicate: 12, reorder: 10, \
                     deliver-late: { count: 7, by: 300ms }, reject: { count: 11 }";
    // What nothing overtakes is delivered after a second of silence: the phase outlasts that.
    let truth = run(behaviour, "", "3500ms");
    truth.agrees();
    let lost = truth.befell("lose-after-accept", 17);
    assert_eq!(truth.lost_ids(), lost);
    let twice = truth.befell("duplicate", 12);
    assert_eq!(truth.ids_where(|fared| fared.seen_us.len() == 2), twice);
    let behind = truth.befell_some("reorder");
    assert!(behind.is_subset(&truth.reordered()));
    let refused = truth.befell("reject", 11);
    assert_eq!(truth.in_state("rejected"), refused);
    assert_eq!(truth.account("unavailable"), 0);
}

/// While the consumers are paused no receiver has credit: the gateway refuses, and nothing is lost.
#[test]
fn messages_without_credit_are_refused_and_counted_on_both_sides() {
    let pause = ", pause: [ { at: 500ms, for: 500ms } ]";
    let truth = run("", pause, "1500ms");
    truth.agrees();
    let refused = truth.account("unavailable");
    assert!(refused > 0, "the pause is long enough");
    assert_eq!(truth.by_code("5.03"), refused);
    assert_eq!(truth.uplink("rejected"), refused);
    assert_eq!(truth.uplink("accepted"), MESSAGES - refused);
    assert_eq!(truth.cell("accepted", "arrived"), MESSAGES - refused);
    assert_eq!(truth.uplink("lost"), 0);
}
