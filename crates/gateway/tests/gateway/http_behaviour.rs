//! Every misbehaviour over HTTP is exactly what the account says it was.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::thread;

use muster_gateway::{GatewayAccount, GatewayConfig, payload_hash};
use muster_model::Micros;
use muster_model::behaviour::{Amount, Behaviour, Delayed, Full, Reject, ServiceTime, Stall};

use crate::browser::{Answer, Browser};
use crate::coap_behaviour::{capacity, due};
use crate::peer::{CLOCK, Got, Seen};
use crate::rig::Rig;
use crate::told::{befell, befell_together, copies, delayed, together};

const DEVICES: usize = 4;
const UPLINKS: usize = 200;
/// Longer than a late answer takes, and shorter than a test may.
const WAITS: Micros = Micros::from_millis(700);
const LATE: Micros = Micros::from_millis(200);

/// Results of one run, on both sides.
struct Run {
    account: GatewayAccount,
    /// By payload hash.
    uplinks: BTreeMap<u64, Fared>,
    arrived: Vec<Got>,
}

#[derive(Debug, Default, Clone)]
struct Fared {
    sent_at: Micros,
    answer: Option<Answer>,
    /// Bytes that came behind the answer.
    is_answered_twice: bool,
    copies: Vec<Micros>,
}

impl Fared {
    fn status(&self) -> u16 {
        self.answer.as_ref().map_or(0, |answer| answer.status)
    }
}

/// One device on its connection, or on another one after each request without an answer.
fn device(at: SocketAddr, device: usize) -> Vec<(u64, Fared)> {
    let mut browser = Browser::new(at);
    let of_device = (0..UPLINKS).filter(|n| n % DEVICES == device);
    let mut ask = |n: usize| {
        // Its number twice, so that one flipped bit never makes another's payload of it.
        let payload = format!("uplink {n} of device {device}: {n}");
        let mut fared = Fared {
            sent_at: CLOCK.now(),
            ..Fared::default()
        };
        browser.ask(&format!("PUT /event/T1/dev-{device}"), &[], &payload);
        fared.answer = browser.next_within(WAITS);
        // A second answer came with the first.
        fared.is_answered_twice = browser.left().starts_with("HTTP/1.1 202");
        if fared.answer.is_none() || fared.is_answered_twice {
            browser = Browser::new(at);
        }
        (payload_hash(payload.as_bytes()), fared)
    };
    of_device.map(&mut ask).collect()
}

impl Run {
    fn new(behaviour: Behaviour) -> Self {
        let config = GatewayConfig {
            behaviour,
            seed: 11,
            expected_uplinks: UPLINKS as u64,
            ..GatewayConfig::default()
        };
        let mut rig = Rig::with("http", config);
        let at = rig.at;
        let devices: Vec<_> = (0..DEVICES)
            .map(|n| thread::spawn(move || device(at, n)))
            .collect();
        while devices.iter().any(|device| !device.is_finished()) {
            rig.application.read();
        }
        let devices = devices
            .into_iter()
            .map(|device| device.join().expect("it ran"));
        let mut uplinks: BTreeMap<u64, Fared> = devices.flatten().collect();
        let counts = rig.gateway.account().counts;
        rig.surfaced(due(&behaviour, &counts));
        let Rig {
            gateway,
            mut application,
            ..
        } = rig;
        let account = gateway.stop();
        application.until("the end", |seen| seen.last() == Some(&Seen::Closed));
        let arrived = application.got();
        for (hash, copies) in copies(&arrived) {
            uplinks.entry(hash).or_default().copies = copies;
        }
        Self {
            account,
            uplinks,
            arrived,
        }
    }

    /// The uplinks that fared so.
    fn those(&self, fared: impl Fn(&Fared) -> bool) -> impl Iterator<Item = u64> {
        let all = self.uplinks.iter().filter(move |(_, how)| fared(how));
        all.map(|(hash, _)| *hash)
    }

    fn answered(&self, status: u16) -> usize {
        let all = self.uplinks.values();
        all.filter(|fared| fared.status() == status).count()
    }

    fn is_whole(&self) {
        assert_eq!((self.answered(202), self.arrived.len()), (UPLINKS, UPLINKS));
    }
}

#[test]
fn without_misbehaviour_everything_arrives_once_and_is_accepted() {
    let run = Run::new(Behaviour::default());
    run.is_whole();
    assert!(run.uplinks.values().all(|fared| fared.copies.len() == 1));
    let counts = run.account.counts;
    assert_eq!((counts.received, counts.accepted), (200, 200));
    assert_eq!((counts.delivered, counts.processed), (200, 200));
    assert_eq!(counts.http_connections, DEVICES as u64);
    assert!(run.account.misbehaved.is_empty());
}

#[test]
fn the_lost_the_dropped_and_the_ignored() {
    let run = Run::new(Behaviour {
        lose_after_accept: 17,
        drop: 5,
        ignore: 4,
        ..Behaviour::default()
    });
    let those = run.those(|fared| fared.status() == 202 && fared.copies.is_empty());
    befell(&run.account, "lose-after-accept", 17, those);
    let those = run.those(|fared| fared.answer.is_none() && fared.copies.is_empty());
    befell(&run.account, "drop", 5, those);
    let those = run.those(|fared| fared.answer.is_none() && fared.copies.len() == 1);
    befell(&run.account, "ignore", 4, those);
    let counts = run.account.counts;
    assert_eq!((counts.received, counts.unanswered), (200, 9));
    assert_eq!(counts.http_connections, DEVICES as u64 + 9);
}

#[test]
fn late_answers_and_late_deliveries_are_late() {
    let late = |count| Delayed { count, by: LATE };
    let run = Run::new(Behaviour {
        answer_late: late(7),
        deliver_late: late(6),
        ..Behaviour::default()
    });
    run.is_whole();
    let delay = |fared: &Fared| fared.answer.as_ref().expect("all are").at - fared.sent_at;
    let delays = run
        .uplinks
        .iter()
        .map(|(hash, fared)| (*hash, delay(fared)));
    delayed(&run.account, "answer-late", (7, LATE), delays);
    let delay = |fared: &Fared| fared.copies[0] - fared.sent_at;
    let delays = run
        .uplinks
        .iter()
        .map(|(hash, fared)| (*hash, delay(fared)));
    delayed(&run.account, "deliver-late", (6, LATE), delays);
}

#[test]
fn a_late_answer_to_a_client_that_is_gone_is_no_answer() {
    let by = WAITS + LATE;
    let run = Run::new(Behaviour {
        answer_late: Delayed { count: 3, by },
        ..Behaviour::default()
    });
    let those = run.those(|fared| fared.answer.is_none());
    befell(&run.account, "answer-late", 3, those);
    assert_eq!(run.account.counts.accepted, 197);
}

#[test]
fn a_second_answer_comes_behind_the_first() {
    let run = Run::new(Behaviour {
        answer_twice: 12,
        ..Behaviour::default()
    });
    run.is_whole();
    let those = run.those(|fared| fared.is_answered_twice);
    befell(&run.account, "answer-twice", 12, those);
    assert_eq!(run.account.counts.accepted, 200);
}

#[test]
fn duplicates_arrive_twice_and_the_corrupted_with_one_bit_flipped() {
    let run = Run::new(Behaviour {
        duplicate: 11,
        ..Behaviour::default()
    });
    let those = run.those(|fared| fared.copies.len() == 2);
    befell(&run.account, "duplicate", 11, those);
    assert_eq!(
        (run.answered(202), run.arrived.len()),
        (UPLINKS, UPLINKS + 11)
    );
    let run = Run::new(Behaviour {
        corrupt: 5,
        ..Behaviour::default()
    });
    run.is_whole();
    let those = run.those(|fared| fared.status() == 202 && fared.copies.is_empty());
    befell(&run.account, "corrupt", 5, those);
}

#[test]
fn the_reordered_come_after_the_next_of_their_device() {
    let run = Run::new(Behaviour {
        reorder: 6,
        ..Behaviour::default()
    });
    run.is_whole();
    let mut highest = [0; DEVICES];
    let mut overtaken = Vec::new();
    for got in &run.arrived {
        let text = std::str::from_utf8(&got.payload).expect("it is text");
        let number = text.split(' ').nth(1).expect("its number");
        let number: usize = number.parse().expect("a number");
        let highest = &mut highest[number % DEVICES];
        if number < *highest {
            overtaken.push(payload_hash(&got.payload));
        }
        *highest = number.max(*highest);
    }
    overtaken.sort_unstable();
    assert_eq!(run.account.misbehaved["reorder"], overtaken);
}

#[test]
fn the_rejected_get_the_code_and_the_time_to_be_silent() {
    let run = Run::new(Behaviour {
        reject: Some(Reject {
            code: 503,
            amount: Amount::Count(10),
        }),
        reject_but_deliver: Delayed::at_once(4),
        ..Behaviour::default()
    });
    let those = run.those(|fared| fared.status() == 503 && fared.copies.is_empty());
    befell(&run.account, "reject", 10, those);
    let those = run.those(|fared| fared.status() == 503 && fared.copies.len() == 1);
    befell(&run.account, "reject-but-deliver", 4, those);
    let answers = run.uplinks.values().flat_map(|fared| &fared.answer);
    let silent = answers.filter(|answer| answer.field("retry-after") == Some("2"));
    assert_eq!(silent.count(), 14);
    let counts = run.account.counts;
    assert_eq!((counts.rejected, counts.accepted), (14, 186));
    assert_eq!(counts.http_connections, DEVICES as u64);
    let run = Run::new(Behaviour {
        reject: Some(Reject {
            code: 429,
            amount: Amount::Count(3),
        }),
        ..Behaviour::default()
    });
    let those = run.those(|fared| fared.status() == 429);
    befell(&run.account, "reject", 3, those);
}

#[test]
fn service_time_delays_each_message_by_itself() {
    let time = Micros::from_millis(20);
    let run = Run::new(Behaviour {
        service_time: Some(ServiceTime::Fixed(time)),
        ..Behaviour::default()
    });
    run.is_whole();
    let mut answers = run.uplinks.values();
    assert!(answers.all(|fared| {
        let answer = fared.answer.as_ref().expect("all are answered");
        answer.at - fared.sent_at >= time
    }));
}

#[test]
fn a_full_queue_rejects_or_blocks() {
    let run = Run::new(capacity(100.0, 1, Full::Reject));
    let rejected = run.account.counts.capacity_rejected as usize;
    assert!(rejected > 0, "{:?}", run.account.counts);
    assert_eq!(run.answered(503), rejected);
    assert_eq!(run.arrived.len(), UPLINKS - rejected);
    let run = Run::new(capacity(400.0, 1, Full::Block));
    run.is_whole();
    assert!(run.account.counts.capacity_blocked > 0);
}

#[test]
fn a_stalled_gateway_says_nothing_and_then_everything() {
    let run = Run::new(Behaviour {
        stall: Some(Stall {
            at: Micros::ZERO,
            lasts: Micros::from_millis(300),
        }),
        ..Behaviour::default()
    });
    run.is_whole();
    assert_eq!(run.account.counts.stalled, 1);
}

#[test]
fn misbehaviours_go_together_and_keep_their_counts() {
    let run = Run::new(together(LATE));
    befell_together(&run.account);
    assert_eq!(run.answered(202), UPLINKS - 3 - 4 - 5);
    assert_eq!(run.arrived.len(), UPLINKS - 7 - 3 + 8);
}
