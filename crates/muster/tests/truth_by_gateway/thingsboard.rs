//! ThingsBoard: messages surface under the names of their devices, and every carrier finds them.

use std::collections::BTreeSet;

use muster_model::{DeviceId, DeviceSample};
use serde_json::json;

use crate::truth::{MESSAGES, Truth, count};

const SCENARIO: &str = r#"
name: truth
seed: 7
platform: { kind: gateway, dialect: thingsboard, behaviour: { BEHAVIOUR } }
fleet:
  - name: meters
    count: 50
    id: "DW${index:08}"
    reconnect: { min: 100ms, max: 200ms }
    streams: [ { name: readings, rate: 400/s, count: 12, timeout: 1s, KEYS } ]
phases: { warm-up: 0s, measure: 1500ms, settle: { at-most: 15s, quiet: 400ms } }
slo: { failure-ratio: 0, connected: 100% }
"#;

/// Reads back what is stored; the backend gets every message. Those of a device are half a second apart, since
/// two that the gateway takes in one millisecond would be one point.
const READ_BACK: &str = r#"
name: truth
seed: 7
platform: { kind: gateway, dialect: thingsboard, behaviour: { BEHAVIOUR } }
provision: { remove: true, read-back: true, rate: 5000/s }
fleet:
  - name: meters
    count: 50
    streams:
      - name: readings
        rate: 100/s
        count: 12
        qos: 1
        timeout: 1s
        payload: { template: '{"musterId":"${stamp}","n":1}' }
        integrity: body
phases: { warm-up: 0s, measure: 6s, settle: { at-most: 15s, quiet: 400ms } }
slo: { loss: 0, failure-ratio: 0, connected: 100% }
"#;

/// Each payload with a carrier that suits it.
const CARRIED: [&str; 6] = [
    "payload: smart-meter",
    "payload: random-mix, qos: 0",
    "payload: { smart-tracker: { alarms: { rate: 10/s, from: 500ms, until: 1s } } }, topic: v2/t",
    "payload: industrial-plc, carrier: { field: /values/musterId }",
    "payload: long-key, carrier: property",
    "payload: long-key, carrier: order, topic: v1/devices/me/attributes",
];

fn truth(keys: &str, behaviour: &str) -> Truth {
    let scenario = SCENARIO.replace("KEYS", keys);
    let truth = Truth::run(&scenario.replace("BEHAVIOUR", behaviour));
    truth.agrees();
    truth
}

#[test]
fn whatever_the_payload_all_of_it_arrives_and_what_is_lost_is_known() {
    for keys in CARRIED {
        let truth = truth(keys, "lose-after-accept: 7");
        let is_answered = !keys.contains("qos: 0");
        let lost = if is_answered {
            "lost"
        } else {
            "lost_unacknowledged"
        };
        assert_eq!(truth.uplink(lost), 7, "{keys}");
        assert_eq!(truth.uplink("arrived"), MESSAGES - 7, "{keys}");
        assert_eq!(truth.account("processed"), MESSAGES - 7, "{keys}");
        for figure in ["unstamped", "foreign", "corrupted", "duplicates"] {
            assert_eq!(truth.uplink(figure), 0, "{keys}: {figure}");
        }
        let accepted = if is_answered { MESSAGES } else { 0 };
        assert_eq!(truth.uplink("accepted"), accepted, "{keys}");
        assert_eq!(truth.uplink("no_subscriber"), 0, "{keys}");
    }
}

fn read_back(behaviour: &str) -> Truth {
    let truth = Truth::run(&READ_BACK.replace("BEHAVIOUR", behaviour));
    truth.agrees();
    assert_eq!(truth.uplink("accepted"), MESSAGES);
    assert_eq!(truth.uplink("lost"), 0, "every message is delivered");
    truth.named_by_stamps(r#"{"musterId":""#, r#"","n":1}"#)
}

fn at_store(truth: &Truth, figure: &str) -> u64 {
    count(&truth.result["ledger"]["by_backend"]["store"][figure])
}

#[test]
fn all_that_was_accepted_is_read_back() {
    let truth = read_back("");
    assert_eq!(at_store(&truth, "arrived"), MESSAGES);
    assert_eq!(at_store(&truth, "lost"), 0);
    for figure in [
        "unstamped",
        "foreign",
        "corrupted",
        "duplicates",
        "outstanding",
    ] {
        assert_eq!(at_store(&truth, figure), 0, "{figure}");
    }
    truth.is_judged(&[], "all is stored");
}

#[test]
fn the_53_that_were_accepted_and_not_stored_are_the_same_53() {
    let truth = read_back("lose-stored: 53");
    let not_stored = truth.befell("lose-stored", 53);
    assert_eq!(at_store(&truth, "arrived"), MESSAGES - 53);
    assert_eq!(at_store(&truth, "lost"), 53);
    assert_eq!(truth.lost_ids_at("store"), not_stored);
    truth.is_judged(&["loss"], "53 are not stored");
}

/// Law: accepted = stored + not stored + outside the sample.
#[test]
fn of_a_sample_of_devices_the_messages_that_are_not_stored_are_known() {
    let scenario = READ_BACK.replace("read-back: true", "read-back: { share: 20% }");
    let truth = Truth::run(&scenario.replace("BEHAVIOUR", "lose-stored: 53"));
    truth.agrees();
    let truth = truth.named_by_stamps(r#"{"musterId":""#, r#"","n":1}"#);
    let sample = DeviceSample::new(10, 50, 7);
    let not_stored = truth.befell("lose-stored", 53).into_iter();
    let not_stored: BTreeSet<_> = not_stored
        .filter(|(device, _)| sample.holds(DeviceId(*device)))
        .collect();
    let lost = not_stored.len() as u64;
    assert!(lost > 0, "the sample has some of the 53");
    assert_eq!(truth.lost_ids_at("store"), not_stored);
    assert_eq!(at_store(&truth, "arrived"), 120 - lost);
    assert_eq!(at_store(&truth, "outstanding"), 0);
    let of_sample = &truth.result["ledger"]["by_backend"]["store"]["sample"];
    assert_eq!(
        *of_sample,
        json!({ "devices": 10, "of": 50, "outside": MESSAGES - 120 })
    );
    truth.is_judged(&["loss"], "nobody looked for the others");
}

/// The scenario whose messages have a `ts`.
fn at_instant(ts: &str) -> String {
    let payload = format!(r#"{{"ts":{ts},"values":{{"musterId":"${{stamp}}"}}}}"#);
    READ_BACK.replace(r#"{"musterId":"${stamp}","n":1}"#, &payload)
}

/// Each device sends three messages at once, four times, all three with one `ts`: the store keeps one of them.
///
/// Law: accepted = stored + overwritten, and none is lost.
#[test]
fn what_another_message_of_the_same_millisecond_has_replaced_is_overwritten_and_not_lost() {
    let bursts = "shape: { burst: { n: 3, every: 300ms } }";
    let scenario = at_instant("${due_ms}").replace("rate: 100/s", bursts);
    let truth = Truth::run(&scenario.replace("BEHAVIOUR", ""));
    truth.agrees();
    assert_eq!(truth.uplink("accepted"), MESSAGES);
    assert_eq!(at_store(&truth, "arrived"), MESSAGES / 3);
    assert_eq!(at_store(&truth, "overwritten"), MESSAGES - MESSAGES / 3);
    for figure in ["lost", "outstanding", "duplicates", "unstamped"] {
        assert_eq!(at_store(&truth, figure), 0, "{figure}");
    }
    let overwritten = truth.ids_at("store", "overwritten_ids");
    for device in 0..50 {
        for burst in 0..4 {
            let of_burst = (device, 3 * burst)..(device, 3 * burst + 3);
            assert_eq!(overwritten.range(of_burst).count(), 2, "{device} {burst}");
        }
    }
    truth.is_judged(&[], "the platform lost nothing");
}

#[test]
fn what_is_not_stored_at_an_instant_of_its_own_is_lost_and_not_overwritten() {
    let scenario = at_instant("${unique_ms}").replace("BEHAVIOUR", "lose-stored: 53");
    let truth = Truth::run(&scenario);
    truth.agrees();
    assert_eq!(at_store(&truth, "arrived"), MESSAGES - 53);
    assert_eq!(at_store(&truth, "lost"), 53);
    assert_eq!(at_store(&truth, "overwritten"), 0);
    truth.is_judged(&["loss"], "53 are not stored");
}

/// Nothing is stored while the load lasts and long after it, and all is accepted.
#[test]
fn a_store_that_stands_still_behind_the_acknowledgement_never_passes() {
    let truth = read_back("stall-store: { at: 0s, for: 50s }");
    assert_eq!(at_store(&truth, "arrived"), 0);
    assert_eq!(at_store(&truth, "lost"), MESSAGES);
    truth.is_judged(&["loss"], "nothing is stored");
}

#[test]
fn a_link_carries_many_devices_that_it_has_announced() {
    for keys in ["qos: 1", "payload: long-key, carrier: order"] {
        let scenario = SCENARIO.replace(
            "    reconnect",
            "    gateway: { devices: 12 }\n    reconnect",
        );
        let scenario = scenario
            .replace("KEYS", keys)
            .replace("BEHAVIOUR", "lose-after-accept: 7");
        let truth = Truth::run(&scenario);
        truth.agrees();
        assert_eq!(
            (truth.uplink("lost"), truth.uplink("arrived")),
            (7, MESSAGES - 7)
        );
        assert_eq!(
            (truth.account("announced"), truth.account("connected")),
            (50, 6)
        );
    }
}

#[test]
fn a_duplicate_and_an_altered_copy_are_told() {
    for keys in [
        "payload: smart-meter",
        "payload: long-key, carrier: property",
    ] {
        let truth = truth(keys, "duplicate: 5, corrupt: 5");
        assert_eq!(truth.uplink("duplicates"), 5, "{keys}");
        assert_eq!(truth.uplink("corrupted"), 5, "{keys}");
    }
}

#[test]
fn messages_that_no_backend_can_tell_are_counted_by_the_platform_alone() {
    let keys = "payload: long-key, carrier: none";
    let scenario = SCENARIO.replace("KEYS", keys).replace("BEHAVIOUR", "");
    let truth = Truth::run(&scenario);
    truth.closes();
    assert_eq!(truth.account("received"), MESSAGES);
    assert_eq!(truth.uplink("accepted"), MESSAGES);
    let uplink = &truth.result["ledger"]["uplink"];
    assert!(uplink["arrived"].is_null() && uplink["lost"].is_null());
    assert_eq!(truth.uplink("bytes_payload"), 14 * MESSAGES);
}
