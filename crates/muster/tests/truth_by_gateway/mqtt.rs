//! Plain MQTT, with a consumer behind the gateway.

use std::collections::BTreeSet;

use crate::truth::{DEVICES, Fared, Id, MESSAGES, Truth, count, sum};

/// 600 messages in a second and a half. The target's misbehaviour is the subject, not the speed
/// of a machine that runs other tests beside it, so no rule on time can decide.
const SCENARIO: &str = r#"
name: truth
seed: 7
platform:
  kind: gateway
  behaviour: { BEHAVIOUR }
  backend: { filter: "muster/#", qos: 1 }
fleet:
  - name: meters
    count: 50
    reconnect: { min: 100ms, max: 200ms }
    streams:
      - name: readings
        rate: 400/s
        count: 12
        qos: 1
        timeout: 1s
        deadline: 700ms
        payload: { template: 'PAYLOAD' }
        carrier: CARRIER
phases: { warm-up: 0s, measure: MEASURE, settle: { at-most: 15s, quiet: 400ms } }
slo: { loss: 0, failure-ratio: 0, connected: 100% }
"#;

fn scenario(behaviour: &str, measure: &str, payload: &str, carrier: &str) -> String {
    SCENARIO
        .replace("BEHAVIOUR", behaviour)
        .replace("MEASURE", measure)
        .replace("PAYLOAD", payload)
        .replace("CARRIER", carrier)
}

impl Truth {
    /// A run whose ids travel beside the payload.
    fn of(behaviour: &str) -> Self {
        Self::lasting(behaviour, "1500ms")
    }

    fn lasting(behaviour: &str, measure: &str) -> Self {
        let payload = r#"{"device":${index},"n":${seq}}"#;
        let truth = Self::run(&scenario(behaviour, measure, payload, "property"));
        let payload = |(device, seq): Id| format!(r#"{{"device":{device},"n":{seq}}}"#);
        truth.named(payload)
    }

    /// A run whose ids travel in the payload, which is long enough that most bits that can be
    /// flipped lie outside the id.
    fn stamped(behaviour: &str) -> Self {
        let rest = "x".repeat(40);
        let payload = format!(r#"{{"id":"${{stamp}}","rest":"{rest}"}}"#);
        let truth = Self::run(&scenario(behaviour, "1500ms", &payload, "payload"));
        truth.named_by_stamps(r#"{"id":""#, &format!(r#"","rest":"{rest}"}}"#))
    }
}

#[test]
fn a_gateway_that_behaves_and_the_ledger_agree_on_everything() {
    let truth = Truth::of("");
    truth.agrees();
    assert_eq!(truth.uplink("accepted"), MESSAGES);
    assert_eq!(truth.uplink("arrived"), MESSAGES);
    assert_eq!(truth.exit_code, 0);
}

#[test]
fn the_37_lost_are_37_lost_and_the_same_37() {
    let truth = Truth::of("lose-after-accept: 37");
    truth.agrees();
    let lost = truth.befell("lose-after-accept", 37);
    assert_eq!(truth.uplink("lost"), 37);
    assert_eq!(truth.cell("accepted", "absent"), 37);
    assert_eq!(truth.lost_ids(), lost);
    assert_eq!(truth.absent(), lost);
    // Other tests may take the CPU from our consumer, which leaves this rule open.
    truth.is_judged(&["loss"], "37 lost");
}

#[test]
fn the_dropped_time_out_and_do_not_arrive() {
    let truth = Truth::of("drop: 23");
    truth.agrees();
    let dropped = truth.befell("drop", 23);
    assert_eq!(truth.uplink("timed_out"), 23);
    assert_eq!(truth.cell("timed_out", "absent"), 23);
    assert_eq!(truth.account("unanswered"), 23);
    assert_eq!(truth.in_state("timed_out"), dropped);
    assert_eq!(truth.absent(), dropped);
    assert_eq!(truth.uplink("lost"), 0, "what nobody accepted is not lost");
    assert_eq!(truth.exit_code, 1);
}

#[test]
fn the_ignored_time_out_and_arrive() {
    let truth = Truth::of("ignore: 19");
    truth.agrees();
    let ignored = truth.befell("ignore", 19);
    assert_eq!(truth.cell("timed_out", "arrived"), 19);
    assert_eq!(truth.uplink("timed_out_but_arrived"), 19);
    assert_eq!(truth.in_state("timed_out"), ignored);
    assert_eq!(truth.absent(), BTreeSet::new());
    assert_eq!(truth.exit_code, 1);
}

#[test]
fn answers_after_the_time_out_change_nothing() {
    // What comes when everything has ended is not awaited: the phase outlasts the last answer.
    let truth = Truth::lasting("answer-late: { count: 17, by: 1500ms }", "3500ms");
    truth.agrees();
    let late = truth.befell("answer-late", 17);
    assert_eq!(truth.uplink("answered_late"), 17);
    assert_eq!(truth.cell("timed_out", "arrived"), 17);
    assert_eq!(truth.in_state("timed_out"), late);
}

#[test]
fn a_second_answer_changes_nothing() {
    let truth = Truth::of("answer-twice: 13");
    truth.agrees();
    truth.befell("answer-twice", 13);
    assert_eq!(truth.cell("accepted", "arrived"), MESSAGES);
    assert_eq!(truth.uplink("answered_late"), 0);
    assert_eq!(truth.exit_code, 0);
}

#[test]
fn the_duplicates_are_the_same_12() {
    let truth = Truth::of("duplicate: 12");
    truth.agrees();
    let twice = truth.befell("duplicate", 12);
    assert_eq!(truth.uplink("duplicates"), 12);
    assert_eq!(truth.uplink("duplicate_own"), 0);
    assert_eq!(truth.uplink("arrived"), MESSAGES);
    assert_eq!(truth.ids_where(|fared| fared.seen_us.len() == 2), twice);
}

#[test]
fn the_reordered_are_the_same() {
    // What nothing overtakes is delivered after a second of silence: the phase outlasts that.
    let truth = Truth::lasting("reorder: 5", "3500ms");
    truth.agrees();
    let overtaken = truth.befell_some("reorder");
    assert_eq!(truth.uplink("reordered"), overtaken.len() as u64);
    assert_eq!(truth.uplink("arrived"), MESSAGES);
    assert_eq!(truth.reordered(), overtaken);
}

#[test]
fn late_deliveries_are_late_and_the_same() {
    let truth = Truth::of("deliver-late: { count: 11, by: 1500ms }");
    truth.agrees();
    let late = truth.befell("deliver-late", 11);
    assert_eq!(truth.uplink("late"), 11);
    assert_eq!(truth.uplink("arrived"), MESSAGES);
    let after_deadline = |fared: &Fared| fared.seen_us.iter().any(|at| at - fared.due_us > 700_000);
    assert_eq!(truth.ids_where(after_deadline), late);
}

#[test]
fn the_corrupted_are_the_same_where_the_id_travels_beside_the_payload() {
    let truth = Truth::of("corrupt: 29");
    truth.agrees();
    let corrupted = truth.befell("corrupt", 29);
    assert_eq!(truth.uplink("corrupted"), 29);
    assert_eq!(truth.uplink("arrived"), MESSAGES);
    assert_eq!(truth.ids_where(|fared| fared.is_corrupted), corrupted);
}

#[test]
fn the_corrupted_are_counted_whether_or_not_their_id_can_be_read() {
    let truth = Truth::stamped("corrupt: 29");
    truth.agrees();
    let corrupted = truth.befell("corrupt", 29);
    assert_eq!(truth.uplink("corrupted"), 29);
    let unreadable = truth.absent();
    assert!(unreadable.is_subset(&corrupted), "{unreadable:?}");
    assert_eq!(
        truth.uplink("unstamped") + truth.uplink("foreign"),
        unreadable.len() as u64
    );
    assert_eq!(truth.uplink("lost"), unreadable.len() as u64);
    let readable: BTreeSet<Id> = corrupted.difference(&unreadable).copied().collect();
    assert_eq!(truth.ids_where(|fared| fared.is_corrupted), readable);
}

#[test]
fn the_rejected_are_the_same_by_count_and_by_share() {
    for (amount, count) in [("count: 31", 31), ("share: 10%", 60)] {
        let truth = Truth::of(&format!("reject: {{ code: 131, {amount} }}"));
        truth.agrees();
        let rejected = truth.befell("reject", count);
        assert_eq!(truth.uplink("rejected"), count as u64);
        assert_eq!(truth.by_code("0x83"), count as u64);
        assert_eq!(truth.not_arrived("rejected"), count as u64);
        assert_eq!(truth.in_state("rejected"), rejected);
        assert_eq!(truth.absent(), rejected);
        assert_eq!(truth.uplink("lost"), 0);
    }
}

#[test]
fn the_rejected_but_delivered_are_both() {
    let truth = Truth::of("reject-but-deliver: 9");
    truth.agrees();
    let both = truth.befell("reject-but-deliver", 9);
    assert_eq!(truth.uplink("rejected_but_arrived"), 9);
    assert_eq!(truth.by_code("0x97"), 9);
    assert_eq!(truth.cell("rejected", "arrived"), 9);
    assert_eq!(truth.in_state("rejected"), both);
    assert_eq!(truth.absent(), BTreeSet::new());
}

#[test]
fn misbehaviours_together_keep_their_counts() {
    let truth = Truth::of("lose-after-accept: 7, drop: 5, ignore: 4, duplicate: 3");
    truth.agrees();
    assert_eq!(truth.lost_ids(), truth.befell("lose-after-accept", 7));
    let mut timed_out = truth.befell("drop", 5);
    timed_out.extend(truth.befell("ignore", 4));
    assert_eq!(truth.in_state("timed_out"), timed_out);
    let twice = truth.befell("duplicate", 3);
    assert_eq!(truth.ids_where(|fared| fared.seen_us.len() == 2), twice);
}

#[test]
fn a_full_queue_drops_what_it_says() {
    let truth = Truth::of("capacity: 200/s, queue: 20, full: drop");
    truth.agrees();
    let dropped = truth.account("capacity-dropped");
    assert!(dropped > 100, "{dropped} dropped");
    assert_eq!(truth.cell("timed_out", "absent"), dropped);
    assert_eq!(truth.uplink("accepted") + dropped, MESSAGES);
    assert_eq!(truth.exit_code, 1);
}

#[test]
fn a_full_queue_rejects_what_it_says() {
    let truth = Truth::of("capacity: 200/s, queue: 20, full: reject");
    truth.agrees();
    let rejected = truth.account("capacity-rejected");
    assert!(rejected > 100, "{rejected} rejected");
    assert_eq!(truth.by_code("0x97"), rejected);
    assert_eq!(truth.not_arrived("rejected"), rejected);
    assert_eq!(truth.exit_code, 1);
}

#[test]
fn a_full_queue_that_blocks_delays_and_loses_nothing() {
    let truth = Truth::of("capacity: 300/s, queue: 20, full: block");
    truth.agrees();
    assert!(truth.account("capacity-blocked") > 50);
    assert_eq!(truth.cell("accepted", "arrived"), MESSAGES);
    // 600 messages at 300/s end 0.5 s after the last is due.
    assert!(truth.latency("response", "max_us") >= 400_000);
}

#[test]
fn service_times_are_seen_in_full() {
    let truth = Truth::of("service-time: 120ms");
    truth.agrees();
    assert_eq!(truth.cell("accepted", "arrived"), MESSAGES);
    assert!(truth.latency("service", "p50_us") >= 120_000);
    assert_eq!(
        truth.ids_where(|fared| fared.ended_us - fared.due_us < 120_000),
        BTreeSet::new()
    );
}

#[test]
fn exponential_service_times_have_their_mean() {
    let truth = Truth::of("service-time: { exponential: 60ms }");
    truth.agrees();
    let mean = truth.latency("service", "mean_us") as f64;
    // Five standard errors of 600 exponential times are 20 %; the machine may add to it.
    assert!((48_000.0..90_000.0).contains(&mean), "mean {mean} us");
}

#[test]
fn a_stall_delays_what_was_due_in_it_and_loses_nothing() {
    let truth = Truth::of("stall: { at: 500ms, for: 600ms }");
    truth.agrees();
    assert_eq!(truth.account("stalled"), 1);
    assert_eq!(truth.cell("accepted", "arrived"), MESSAGES);
    // 240 messages are due in the stall; those of its first 500 ms wait 100 ms or more.
    let waited = truth
        .ids_where(|fared| fared.ended_us - fared.due_us >= 100_000)
        .len();
    assert!((195..=260).contains(&waited), "{waited} waited");
}

#[test]
fn closed_links_are_counted_as_often_as_they_were_closed() {
    let truth = Truth::of("close-links: { at: 700ms, share: 20% }");
    truth.closes();
    assert_eq!(truth.account("closed-links"), u64::from(DEVICES) / 5);
    let disconnects = sum(&truth.result["links"]["disconnects"]);
    assert_eq!(disconnects, truth.account("closed-links"));
    // The consumer's link is one of the gateway's.
    assert_eq!(
        count(&truth.result["links"]["connected"]) + 1,
        truth.account("connected")
    );
    // What was in flight when a link closed may have been read or not, answered or not.
    let unread = truth.uplink("sent") - truth.account("received");
    let unheard = truth.account("accepted") - truth.uplink("accepted");
    assert_eq!(unread + unheard, truth.uplink("broken"));
    assert_eq!(truth.uplink("arrived"), truth.account("delivered"));
    assert_eq!(truth.uplink("lost"), 0);
}
