//! A gateway over CoAP and DTLS that has no room, takes its time or stands still: the ledger of a run
//! against the gateway's own account.

use std::collections::BTreeSet;

use crate::hono::{Over, all, each, each_of};
use crate::truth::{MESSAGES, Truth};

/// No machine is so busy that what is answered at all is answered too late.
const PATIENT: &str = "timeout: 4s";

fn patient(over: Over, behaviour: &str) -> String {
    let scenario = over.scenario(behaviour, "1500ms");
    scenario.replace("timeout: 1s", PATIENT)
}

/// Messages that were over no sooner than so long after they were due.
fn took(truth: &Truth, least_us: u64) -> usize {
    let took = truth.ids_where(|fared| fared.ended_us - fared.due_us >= least_us);
    took.len()
}

#[test]
fn a_full_queue_drops_what_it_says() {
    let behaviour = "capacity: 200/s, queue: 20, full: drop";
    each(behaviour, "1500ms", |over, truth| {
        truth.agrees();
        let dropped = truth.account("capacity-dropped");
        // What waits in vain keeps others behind the same gateway from being sent.
        let least = if over.is_behind_gateways { 40 } else { 100 };
        assert!(dropped > least, "{over:?}: {dropped} dropped");
        assert_eq!(truth.account("unanswered"), dropped, "{over:?}");
        assert_eq!(truth.uplink("timed_out"), dropped, "{over:?}");
        assert_eq!(truth.not_arrived("timed_out"), dropped, "{over:?}");
        assert_eq!(truth.uplink("accepted") + dropped, MESSAGES, "{over:?}");
        assert_eq!(truth.absent(), truth.in_state("timed_out"), "{over:?}");
        assert_eq!(truth.uplink("lost"), 0, "{over:?}");
    });
}

#[test]
fn a_full_queue_rejects_what_it_says() {
    let behaviour = "capacity: 200/s, queue: 20, full: reject";
    each_of(
        |over| patient(over, behaviour),
        |over, truth| {
            truth.agrees();
            let rejected = truth.account("capacity-rejected");
            assert!(rejected > 100, "{over:?}: {rejected} rejected");
            assert_eq!(truth.by_code("5.03"), rejected, "{over:?}");
            assert_eq!(truth.not_arrived("rejected"), rejected, "{over:?}");
            assert_eq!(truth.uplink("accepted") + rejected, MESSAGES, "{over:?}");
            assert_eq!(truth.absent(), truth.in_state("rejected"), "{over:?}");
        },
    );
}

/// All devices wait behind the one socket that is not read meanwhile.
#[test]
fn a_full_queue_that_blocks_delays_and_loses_nothing() {
    let behaviour = "capacity: 300/s, queue: 20, full: block";
    each_of(
        |over| patient(over, behaviour),
        |over, truth| {
            truth.agrees();
            let blocked = truth.account("capacity-blocked");
            assert!(blocked > 50, "{over:?}: {blocked} blocked");
            assert_eq!(truth.account("datagrams-dropped"), 0, "{over:?}");
            assert_eq!(truth.cell("accepted", "arrived"), MESSAGES, "{over:?}");
            // 600 messages at 300/s end 0.5 s after the last is due.
            let longest = truth.latency("response", "max_us");
            assert!(longest >= 400_000, "{over:?}: {longest}");
        },
    );
}

#[test]
fn service_times_are_seen_in_full() {
    each_of(
        |over| patient(over, "service-time: 120ms"),
        |over, truth| {
            truth.agrees();
            assert_eq!(truth.cell("accepted", "arrived"), MESSAGES, "{over:?}");
            assert_eq!(took(truth, 120_000) as u64, MESSAGES, "{over:?}");
            let half = truth.latency("service", "p50_us");
            assert!(half >= 120_000, "{over:?}: {half}");
        },
    );
}

/// Requests are sent again while nobody answers, and once the gateway goes on it hears each copy.
#[test]
fn a_stall_has_requests_sent_again_and_loses_nothing() {
    let scenario = |over| {
        let scenario = patient(over, "stall: { at: 500ms, for: 400ms }");
        let soon = "ack-timeout: 150ms, ack-random-factor: 1";
        scenario.replace("ack-timeout: 5s", soon)
    };
    each_of(scenario, |over, truth| {
        truth.agrees();
        assert_eq!(truth.account("stalled"), 1, "{over:?}");
        assert_eq!(truth.account("datagrams-dropped"), 0, "{over:?}");
        assert_eq!(truth.cell("accepted", "arrived"), MESSAGES, "{over:?}");
        assert_eq!(truth.uplink("duplicates"), 0, "{over:?}");
        let again = truth.uplink("retransmitted");
        assert_eq!(truth.account("received-again"), again, "{over:?}");
        // Of the 160 that are due meanwhile some 100 wait for more than 150 ms; a gateway has twelve open.
        let least = if over.is_behind_gateways { 30 } else { 80 };
        assert!(again >= least, "{over:?}: {again} sent again");
        let waited = took(truth, 100_000);
        assert!(waited >= 100, "{over:?}: {waited} waited");
    });
}

#[test]
fn misbehaviours_together_keep_their_counts() {
    let behaviour = "lose-after-accept: 7, drop: 5, ignore: 4, duplicate: 3, reject: { count: 6 }, \
                     reject-but-deliver: 8, service-time: 30ms, stall: { at: 500ms, for: 300ms }";
    let scenario = |over| patient(over, behaviour).replace(PATIENT, "timeout: 2s");
    each_of(scenario, |over, truth| {
        truth.agrees();
        let [lost, dropped, ignored, rejected, delivered] = [
            ("lose-after-accept", 7),
            ("drop", 5),
            ("ignore", 4),
            ("reject", 6),
            ("reject-but-deliver", 8),
        ]
        .map(|(name, wanted)| truth.befell(name, wanted));
        assert_eq!(truth.lost_ids(), lost, "{over:?}");
        assert_eq!(truth.in_state("timed_out"), all([&dropped, &ignored]));
        assert_eq!(truth.in_state("rejected"), all([&rejected, &delivered]));
        assert_eq!(truth.absent(), all([&lost, &dropped, &rejected]));
        let twice: BTreeSet<_> = truth.ids_where(|fared| fared.seen_us.len() == 2);
        assert_eq!(twice, truth.befell("duplicate", 3), "{over:?}");
        assert_eq!(truth.by_code("5.03"), 14, "{over:?}");
        assert_eq!(truth.uplink("timed_out_but_arrived"), 4, "{over:?}");
        assert_eq!(truth.uplink("rejected_but_arrived"), 8, "{over:?}");
        assert_eq!(truth.account("stalled"), 1, "{over:?}");
        assert!(truth.latency("service", "p50_us") >= 30_000, "{over:?}");
    });
}
