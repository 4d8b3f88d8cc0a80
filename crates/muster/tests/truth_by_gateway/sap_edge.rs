//! SAP Edge: the application acknowledges, and nothing surfaces northbound.

use std::collections::BTreeSet;

use crate::truth::{DEVICES, Id, MESSAGES, Truth, count, sum};

/// As for plain MQTT, but that a time-out counts from the last acknowledgement of the device.
const SCENARIO: &str = r#"
name: truth
seed: 7
platform:
  kind: gateway
  dialect: sap-edge
  behaviour: { BEHAVIOUR }
fleet:
  - name: meters
    count: 50
    reconnect: { min: 100ms, max: 200ms }
    streams:
      - name: readings
        rate: 400/s
        count: 12
        qos: QOS
        timeout: 1s
        payload: { template: '{"measureMessageId":"${seq}","measures":[],"device":${index}}' }
phases: { warm-up: 0s, measure: MEASURE, settle: { at-most: 15s, quiet: 400ms } }
slo: { failure-ratio: 0, connected: 100% }
"#;

fn truth(behaviour: &str) -> Truth {
    truth_of(behaviour, "1500ms", 0)
}

fn truth_of(behaviour: &str, measure: &str, qos: u8) -> Truth {
    let scenario = SCENARIO
        .replace("BEHAVIOUR", behaviour)
        .replace("MEASURE", measure)
        .replace("QOS", &qos.to_string());
    let payload = |(device, seq): Id| {
        format!(r#"{{"measureMessageId":"{seq}","measures":[],"device":{device}}}"#)
    };
    let truth = Truth::run(&scenario).named(payload);
    truth.agrees_on_acknowledgements();
    truth
}

impl Truth {
    /// Checks what holds whatever the gateway does to a message.
    fn agrees_on_acknowledgements(&self) {
        self.closes();
        assert_eq!(self.account("received"), self.uplink("sent"));
        let answered = self.uplink("accepted") + self.uplink("answered_late");
        assert_eq!(self.account("accepted"), answered);
        assert_eq!(self.account("rejected"), self.uplink("rejected"));
        assert_eq!(self.account("unanswerable"), 0);
        assert_eq!(self.account("unreadable"), 0);
        let transport = self.account("transport-acknowledged");
        assert_eq!(self.uplink("transport_acknowledged"), transport);
        let uplink = &self.result["ledger"]["uplink"];
        for figure in ["arrived", "lost", "consumed", "outstanding"] {
            assert!(uplink[figure].is_null(), "{figure}: there is no northbound");
        }
    }
}

#[test]
fn a_gateway_that_behaves_accepts_everything() {
    for qos in [0, 1] {
        let truth = truth_of("", "1500ms", qos);
        assert_eq!(truth.uplink("accepted"), MESSAGES);
        assert_eq!(
            truth.account("transport-acknowledged"),
            MESSAGES * u64::from(qos)
        );
        assert!(truth.latency("response", "p50_us") > 0);
        assert_eq!(truth.exit_code, 0);
    }
}

#[test]
fn the_dropped_and_the_ignored_time_out() {
    let truth = truth("drop: 23, ignore: 19");
    let mut silent = truth.befell("drop", 23);
    silent.extend(truth.befell("ignore", 19));
    assert_eq!(truth.uplink("timed_out"), 42);
    assert_eq!(truth.account("unanswered"), 42);
    assert_eq!(truth.in_state("timed_out"), silent);
    assert_eq!(truth.exit_code, 1);
}

#[test]
fn acknowledgements_after_the_time_out_change_nothing() {
    // Each device has twelve messages in a second and a half: the late ones are overdue once it
    // has fallen silent for a second, and come half a second later.
    let truth = truth_of("answer-late: { count: 17, by: 4s }", "6s", 0);
    let late = truth.befell("answer-late", 17);
    assert_eq!(truth.uplink("answered_late"), 17);
    assert_eq!(truth.in_state("timed_out"), late);
}

#[test]
fn late_acknowledgements_within_the_time_out_are_accepted() {
    let truth = truth("answer-late: { count: 17, by: 300ms }");
    truth.befell("answer-late", 17);
    assert_eq!(truth.uplink("accepted"), MESSAGES);
    assert!(truth.latency("service", "max_us") >= 300_000);
    assert_eq!(truth.exit_code, 0);
}

#[test]
fn a_second_acknowledgement_is_counted_and_changes_nothing() {
    let truth = truth("answer-twice: 13");
    truth.befell("answer-twice", 13);
    assert_eq!(truth.uplink("answered_again"), 13);
    assert_eq!(truth.uplink("accepted"), MESSAGES);
    assert_eq!(truth.exit_code, 0);
}

#[test]
fn acknowledgements_that_cannot_be_read_are_counted_and_acknowledge_nothing() {
    let truth = truth("answer-garbled: 11");
    let garbled = truth.befell("answer-garbled", 11);
    assert_eq!(truth.uplink("answered_malformed"), 11);
    assert_eq!(truth.in_state("timed_out"), garbled);
    assert_eq!(truth.exit_code, 1);
}

#[test]
fn acknowledgements_of_what_nobody_sent_are_counted_and_acknowledge_nothing() {
    let truth = truth("answer-unknown: 9");
    let unknown = truth.befell("answer-unknown", 9);
    assert_eq!(truth.uplink("answered_unknown"), 9);
    assert_eq!(truth.in_state("timed_out"), unknown);
}

#[test]
fn the_rejected_are_the_same_with_the_code_they_were_rejected_with() {
    for (code, asked, amount, count) in [
        ("404", "code: 404, ", "count: 31", 31),
        ("503", "", "share: 10%", 60),
    ] {
        let truth = truth(&format!("reject: {{ {asked}{amount} }}"));
        let rejected = truth.befell("reject", count);
        assert_eq!(truth.by_code(code), count as u64);
        assert_eq!(truth.in_state("rejected"), rejected);
        assert_eq!(truth.exit_code, 1);
    }
}

#[test]
fn every_element_of_a_batch_is_read() {
    let truth = truth("answer-batch: { most: 3, within: 400ms }, reject: { count: 20 }");
    truth.befell("reject", 20);
    assert_eq!(truth.uplink("accepted"), MESSAGES - 20);
    // Each device has twelve messages in a second and a half, so that 400 ms gather three.
    let batches = truth.account("acknowledgements");
    assert!(batches < MESSAGES * 2 / 3, "{batches} batches");
    assert!(truth.latency("service", "max_us") >= 200_000);
}

#[test]
fn misbehaviours_together_keep_their_counts() {
    let truth = truth("drop: 5, answer-twice: 4, answer-garbled: 3, reject: { count: 6 }");
    let mut silent = truth.befell("drop", 5);
    silent.extend(truth.befell("answer-garbled", 3));
    assert_eq!(truth.in_state("timed_out"), silent);
    assert_eq!(truth.in_state("rejected"), truth.befell("reject", 6));
    assert_eq!(truth.uplink("answered_again"), 4);
}

#[test]
fn a_full_queue_drops_and_rejects_what_it_says() {
    let dropping = truth("capacity: 200/s, queue: 20, full: drop");
    let dropped = dropping.account("capacity-dropped");
    assert!(dropped > 100, "{dropped} dropped");
    assert_eq!(dropping.uplink("timed_out"), dropped);
    assert_eq!(dropping.exit_code, 1);
    let rejecting = truth("capacity: 200/s, queue: 20, full: reject");
    let rejected = rejecting.account("capacity-rejected");
    assert!(rejected > 100, "{rejected} rejected");
    assert_eq!(rejecting.by_code("503"), rejected);
}

#[test]
fn a_full_queue_that_blocks_delays_and_loses_nothing() {
    let truth = truth("capacity: 300/s, queue: 20, full: block");
    assert!(truth.account("capacity-blocked") > 50);
    assert_eq!(truth.uplink("accepted"), MESSAGES);
    assert!(truth.latency("response", "max_us") >= 400_000);
}

#[test]
fn the_published_figures_are_of_each_device_and_miss_what_was_not_acknowledged() {
    let truth = truth("drop: 23, reject: { count: 4 }");
    let sap = &truth.result["published"]["sap"];
    let devices = sap["devices"].as_array().expect("there are figures");
    assert_eq!(
        (devices.len() as u32, count(&sap["left_out"])),
        (DEVICES, 0)
    );
    let total = |figure: &str| devices.iter().map(|of| count(&of[figure])).sum::<u64>();
    assert_eq!(total("messages"), MESSAGES);
    assert_eq!(total("missing"), 23);
    assert_eq!(total("acknowledged"), MESSAGES - 23);
    for device in devices {
        let is_invalid = device["verdict"] == "invalid";
        assert_eq!(is_invalid, count(&device["missing"]) > 0, "{device}");
        let correlation = device["correlation"].as_f64().expect("a number");
        assert!((-1.0..=1.0).contains(&correlation));
        let rate = device["actual_rate"].as_f64().expect("a rate");
        assert!((6.0..=9.0).contains(&rate), "eight a second: {rate}");
        assert!(
            device["samples"].is_null(),
            "the payload is not the test's own"
        );
    }
}

#[test]
fn closed_links_are_counted_as_often_as_they_were_closed_and_subscribe_again() {
    let scenario = SCENARIO
        .replace("BEHAVIOUR", "close-links: { at: 700ms, share: 20% }")
        .replace("MEASURE", "1500ms")
        .replace("QOS", "0");
    let truth = Truth::run(&scenario);
    truth.closes();
    assert_eq!(truth.account("closed-links"), u64::from(DEVICES) / 5);
    let disconnects = sum(&truth.result["links"]["disconnects"]);
    assert_eq!(disconnects, truth.account("closed-links"));
    assert_eq!(
        count(&truth.result["links"]["connected"]),
        truth.account("connected")
    );
    let heard: BTreeSet<Id> = truth.in_state("accepted");
    assert_eq!(
        heard.len() as u64 + truth.uplink("broken"),
        truth.uplink("sent")
    );
}
