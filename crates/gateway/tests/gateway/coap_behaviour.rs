//! Every misbehaviour over CoAP, plain and secured, is exactly what the account says it was.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::thread;

use muster_gateway::{
    Dialect, Gateway, GatewayAccount, GatewayConfig, GatewayCounts, GatewayDtls, ListenAddresses,
    payload_hash,
};
use muster_model::behaviour::{
    Amount, Behaviour, Capacity, Delayed, Full, Reject, Service, ServiceTime, Stall,
};
use muster_model::{Micros, Rate};
use muster_protocol::coap::{Code, Transmission};
use muster_protocol::mqtt::{Qos, Version};

use crate::device::{Answer, Ask, Device, PATIENCE};
use crate::peer::{Got, Peer, Seen};
use crate::told::{befell, befell_together, delayed, together};
use crate::wire::Wire;

const DEVICES: usize = 4;
const UPLINKS: usize = 200;

/// Results of one run, on both sides.
struct Run {
    account: GatewayAccount,
    /// By payload hash.
    uplinks: BTreeMap<u64, Fared>,
    arrived: Vec<Got>,
    /// Datagrams of answers.
    came: u32,
    retransmitted: u32,
}

#[derive(Debug, Default, Clone)]
struct Fared {
    sent_at: Micros,
    answer: Option<Answer>,
    has_failed: bool,
    copies: Vec<Micros>,
}

impl Fared {
    fn is_accepted(&self) -> bool {
        let code = self.answer.as_ref().map(|answer| answer.code);
        code == Some(Code::CHANGED)
    }

    fn is_rejected(&self, code: Code) -> bool {
        self.answer
            .as_ref()
            .is_some_and(|answer| answer.code == code)
    }
}

/// The same with and without DTLS.
fn both(behaviour: Behaviour, check: impl Fn(&Run)) {
    let runs = [false, true].map(|is_secure| thread::spawn(move || Run::new(behaviour, is_secure)));
    for run in runs {
        check(&run.join().expect("it ran"));
    }
}

impl Run {
    /// Sends 200 confirmable uplinks from four devices at once, and waits until each is answered or
    /// given up, and for what is still under way.
    fn new(behaviour: Behaviour, is_secure: bool) -> Self {
        let here = SocketAddr::from(([127, 0, 0, 1], 0));
        let gateway = Gateway::start(GatewayConfig {
            dialect: Dialect::Hono,
            listen: ListenAddresses::new(here)
                .with("coap", Some(here))
                .with("coaps", Some(here)),
            coaps: Some(GatewayDtls {
                connection_id: true,
                secret: Some("key".to_owned()),
                certificate: None,
            }),
            behaviour,
            seed: 11,
            expected_uplinks: UPLINKS as u64,
            ..GatewayConfig::default()
        });
        let gateway = gateway.expect("a gateway");
        let mut application = Peer::new(gateway.addr(), Version::V5, "application");
        application.subscribe("telemetry/#", Qos::AtLeastOnce);
        let mut devices: Vec<Device> = (0..DEVICES)
            .map(|n| device(&gateway, n, is_secure, transmission(&behaviour)))
            .collect();
        let mut sent = Vec::new();
        for n in 0..UPLINKS {
            let at = n % DEVICES;
            let payload = format!("uplink {n} of device {at}");
            let hash = payload_hash(payload.as_bytes());
            let path = format!("t//dev-{at}");
            let path = if is_secure {
                path
            } else {
                path.replace("//", "/T1/")
            };
            let sent_at = Device::now();
            let name = devices[at].ask(Ask::put(&path, payload.as_bytes()));
            sent.push((at, name, hash, sent_at));
        }
        while devices.iter().any(|device| !device.is_done()) {
            application.read();
            devices.iter_mut().for_each(Device::read);
        }
        settle(&gateway, &behaviour, &mut application, &mut devices);
        let account = gateway.stop();
        // What came besides lies here already.
        application.until("the end", |seen| seen.last() == Some(&Seen::Closed));
        devices.iter_mut().for_each(Device::read_all);
        let mut uplinks: BTreeMap<u64, Fared> = BTreeMap::new();
        for (at, name, hash, sent_at) in sent {
            let fared = Fared {
                sent_at,
                answer: devices[at].answers.get(&name).cloned(),
                has_failed: devices[at].failed.contains(&name),
                copies: Vec::new(),
            };
            uplinks.insert(hash, fared);
        }
        let arrived = application.got();
        for got in &arrived {
            let fared = uplinks.entry(payload_hash(&got.payload)).or_default();
            fared.copies.push(got.at);
        }
        Self {
            account,
            uplinks,
            arrived,
            came: devices.iter().map(|device| device.came).sum(),
            retransmitted: devices.iter().map(|device| device.retransmitted).sum(),
        }
    }

    /// The uplinks that fared so must be those of the account.
    fn check(&self, misbehaviour: &str, count: usize, fared: impl Fn(&Fared) -> bool) {
        let all = self.uplinks.iter().filter(|(_, how)| fared(how));
        befell(
            &self.account,
            misbehaviour,
            count,
            all.map(|(hash, _)| *hash),
        );
    }

    fn accepted(&self) -> usize {
        let all = self.uplinks.values();
        all.filter(|fared| fared.is_accepted()).count()
    }
}

/// Waits for what is still under way, once each request was answered or given up.
fn settle(
    gateway: &Gateway,
    behaviour: &Behaviour,
    application: &mut Peer,
    devices: &mut [Device],
) {
    let again = devices.iter().map(|device| device.retransmitted).sum();
    let give_up = Device::now() + PATIENCE;
    loop {
        application.read();
        devices.iter_mut().for_each(Device::read);
        let (counts, arrived) = (gateway.account().counts, application.got().len());
        let due = due(behaviour, &counts);
        if arrived >= due && has_heard_all(&counts, again) {
            return;
        }
        assert!(Device::now() < give_up, "{arrived} of {due}; {counts:?}");
    }
}

/// Number of messages that are to arrive, once each request was answered or given up.
pub(crate) fn due(behaviour: &Behaviour, counts: &GatewayCounts) -> usize {
    let all = UPLINKS as u64;
    let rejected = behaviour.reject.map_or(0, |reject| reject.amount.of(all));
    let lost = u64::from(behaviour.lose_after_accept + behaviour.drop) + rejected;
    let refused = counts.capacity_dropped + counts.capacity_rejected;
    let doubled = u64::from(behaviour.duplicate);
    (all + doubled - lost - refused) as usize
}

/// True if the gateway has received the copies and acknowledgements that it was sent.
fn has_heard_all(counts: &GatewayCounts, again: u32) -> bool {
    counts.received_again >= u64::from(again)
        && counts.separate_acknowledged + counts.separate_refused >= counts.separate
}

/// Requests that are never answered are given up after 2.1 s; elsewhere nothing is sent again.
fn transmission(behaviour: &Behaviour) -> Transmission {
    let is_full = behaviour.capacity.is_some_and(|it| it.full == Full::Drop);
    let ack_timeout = if is_full || behaviour.drop + behaviour.ignore > 0 {
        Micros::from_millis(300)
    } else {
        Micros::from_secs(20)
    };
    Transmission::of(ack_timeout, 1.0, 2)
}

fn device(gateway: &Gateway, n: usize, is_secure: bool, transmission: Transmission) -> Device {
    if !is_secure {
        let addr = gateway.addresses().get("coap").expect("it hears CoAP");
        return Device::with(addr, transmission);
    }
    let addr = gateway.addresses().get("coaps").expect("it hears DTLS");
    let wire = Wire::secure(addr, (&format!("gw-{n}@T1"), "key"), None);
    let mut device = Device::over(wire, transmission);
    device.until("open", |device| device.wire.connected().is_some());
    device
}

#[test]
fn without_misbehaviour_everything_arrives_once_and_is_accepted() {
    both(Behaviour::default(), |run| {
        let mut all = run.uplinks.values();
        assert!(all.all(|fared| fared.is_accepted() && fared.copies.len() == 1));
        let counts = run.account.counts;
        assert_eq!((counts.received, counts.accepted), (200, 200));
        assert_eq!((counts.delivered, counts.processed), (200, 200));
        assert_eq!((run.came, run.retransmitted), (200, 0));
        assert!(run.account.misbehaved.is_empty());
    });
}

#[test]
fn the_lost_the_dropped_and_the_ignored() {
    let behaviour = Behaviour {
        lose_after_accept: 17,
        drop: 9,
        ignore: 8,
        ..Behaviour::default()
    };
    both(behaviour, |run| {
        run.check("lose-after-accept", 17, |fared| {
            fared.is_accepted() && fared.copies.is_empty()
        });
        run.check("drop", 9, |fared| {
            fared.has_failed && fared.copies.is_empty()
        });
        run.check("ignore", 8, |fared| {
            fared.has_failed && fared.copies.len() == 1
        });
        assert_eq!(run.accepted(), UPLINKS - 17);
        let counts = run.account.counts;
        assert_eq!((counts.received, counts.unanswered), (200, 17));
        // Each of them was sent twice more, and met the same silence.
        assert_eq!(u64::from(run.retransmitted), counts.received_again);
        assert!(counts.received_again >= 2 * 17);
    });
}

#[test]
fn late_answers_are_separate_and_late_deliveries_are_answered_at_once() {
    let by = Micros::from_millis(200);
    let behaviour = Behaviour {
        answer_late: Delayed { count: 7, by },
        deliver_late: Delayed { count: 6, by },
        ..Behaviour::default()
    };
    both(behaviour, |run| {
        run.check("answer-late", 7, |fared| {
            let answer = fared.answer.as_ref().expect("all are answered");
            answer.is_separate
                && answer.at - fared.sent_at >= Micros(by.0 / 2)
                && fared.copies.len() == 1
        });
        let answers = run.uplinks.values().flat_map(|fared| &fared.answer);
        assert_eq!(answers.filter(|answer| answer.is_separate).count(), 7);
        assert_eq!(run.account.befell("deliver-late"), 6);
        assert_eq!(run.accepted(), UPLINKS);
        assert_eq!(run.arrived.len(), UPLINKS);
        let counts = run.account.counts;
        assert_eq!((counts.separate, counts.separate_acknowledged), (7, 7));
        assert_eq!(counts.separate_refused, 0);
    });
}

#[test]
fn a_second_answer_is_a_second_datagram() {
    let behaviour = Behaviour {
        answer_twice: 12,
        ..Behaviour::default()
    };
    both(behaviour, |run| {
        assert_eq!(run.account.befell("answer-twice"), 12);
        assert_eq!((run.came, run.retransmitted), (212, 0));
        assert_eq!(run.accepted(), UPLINKS);
        assert_eq!(run.account.counts.accepted, 200);
        assert_eq!(run.arrived.len(), UPLINKS);
    });
}

#[test]
fn duplicates_arrive_twice_and_the_corrupted_with_one_bit_flipped() {
    let behaviour = Behaviour {
        duplicate: 11,
        ..Behaviour::default()
    };
    both(behaviour, |run| {
        run.check("duplicate", 11, |fared| fared.copies.len() == 2);
        assert_eq!((run.accepted(), run.arrived.len()), (UPLINKS, UPLINKS + 11));
    });
    let behaviour = Behaviour {
        corrupt: 5,
        ..Behaviour::default()
    };
    both(behaviour, |run| {
        run.check("corrupt", 5, |fared| {
            fared.is_accepted() && fared.copies.is_empty()
        });
        assert_eq!((run.accepted(), run.arrived.len()), (UPLINKS, UPLINKS));
    });
}

#[test]
fn the_reordered_come_after_the_next_of_their_device() {
    let behaviour = Behaviour {
        reorder: 6,
        ..Behaviour::default()
    };
    both(behaviour, |run| {
        assert_eq!((run.accepted(), run.arrived.len()), (UPLINKS, UPLINKS));
        let mut overtaken = Vec::new();
        for device in 0..DEVICES {
            let ending = format!("device {device}");
            let of_device = run.arrived.iter();
            let of_device = of_device.filter(|got| got.payload.ends_with(ending.as_bytes()));
            let numbers: Vec<usize> = of_device.map(|got| number(&got.payload)).collect();
            let mut highest = 0;
            for number in numbers {
                if number < highest {
                    let payload = format!("uplink {number} of device {device}");
                    overtaken.push(payload_hash(payload.as_bytes()));
                }
                highest = highest.max(number);
            }
        }
        overtaken.sort_unstable();
        assert_eq!(run.account.misbehaved["reorder"], overtaken);
    });
}

fn number(payload: &[u8]) -> usize {
    let text = std::str::from_utf8(payload).expect("it is text");
    let number = text.split(' ').nth(1).expect("its number");
    number.parse().expect("a number")
}

#[test]
fn the_rejected_hear_the_code_and_the_time_to_be_silent() {
    let behaviour = Behaviour {
        reject: Some(Reject {
            code: 503,
            amount: Amount::Count(10),
        }),
        reject_but_deliver: Delayed::at_once(4),
        ..Behaviour::default()
    };
    both(behaviour, |run| {
        let unavailable = Code::SERVICE_UNAVAILABLE;
        run.check("reject", 10, |fared| {
            fared.is_rejected(unavailable) && fared.copies.is_empty()
        });
        run.check("reject-but-deliver", 4, |fared| {
            fared.is_rejected(unavailable) && fared.copies.len() == 1
        });
        let answers = run.uplinks.values().flat_map(|fared| &fared.answer);
        assert_eq!(
            answers.filter(|answer| answer.max_age == Some(2)).count(),
            14
        );
        let counts = run.account.counts;
        assert_eq!((counts.rejected, counts.accepted), (14, 186));
    });
    let too_many = Behaviour {
        reject: Some(Reject {
            code: 429,
            amount: Amount::Count(3),
        }),
        ..Behaviour::default()
    };
    both(too_many, |run| {
        run.check("reject", 3, |fared| {
            fared.is_rejected(Code::TOO_MANY_REQUESTS)
        });
    });
}

#[test]
fn what_is_refused_at_once_is_delivered_as_late_as_was_asked() {
    let late = Delayed {
        count: 5,
        by: Micros::from_millis(600),
    };
    let behaviour = Behaviour {
        reject_but_deliver: late,
        ..Behaviour::default()
    };
    both(behaviour, |run| {
        run.check("reject-but-deliver", 5, |fared| {
            fared.is_rejected(Code::SERVICE_UNAVAILABLE) && fared.copies.len() == 1
        });
        let delay = |fared: &Fared| fared.copies[0] - fared.sent_at;
        let delays = run
            .uplinks
            .iter()
            .map(|(hash, fared)| (*hash, delay(fared)));
        delayed(&run.account, "reject-but-deliver", (5, late.by), delays);
        assert_eq!((run.accepted(), run.arrived.len()), (UPLINKS - 5, UPLINKS));
    });
}

#[test]
fn service_time_delays_each_message_by_itself() {
    let time = Micros::from_millis(60);
    let behaviour = Behaviour {
        service_time: Some(ServiceTime::Fixed(time)),
        ..Behaviour::default()
    };
    both(behaviour, |run| {
        assert_eq!((run.accepted(), run.arrived.len()), (UPLINKS, UPLINKS));
        let mut all = run.uplinks.values();
        assert!(all.all(|fared| {
            let answered = fared.answer.as_ref().expect("all are").at;
            answered - fared.sent_at >= time
        }));
    });
}

pub(crate) fn capacity(rate: f64, queue: u32, full: Full) -> Behaviour {
    Behaviour {
        capacity: Some(Capacity {
            rate: Rate::per_second(rate).expect("a rate"),
            service: Service::Fixed,
            queue,
            full,
        }),
        ..Behaviour::default()
    }
}

#[test]
fn a_full_queue_drops_rejects_or_blocks() {
    both(capacity(100.0, 3, Full::Drop), |run| {
        let dropped = run.account.counts.capacity_dropped as usize;
        assert!(dropped > 0, "{:?}", run.account.counts);
        // A copy of a request that was dropped is one that came before.
        assert_eq!(run.accepted(), UPLINKS - dropped);
        assert_eq!(run.arrived.len(), UPLINKS - dropped);
    });
    both(capacity(100.0, 3, Full::Reject), |run| {
        let rejected = run.account.counts.capacity_rejected as usize;
        assert!(rejected > 0, "{:?}", run.account.counts);
        let all = run.uplinks.values();
        let heard = all.filter(|fared| fared.is_rejected(Code::SERVICE_UNAVAILABLE));
        assert_eq!(heard.count(), rejected);
        assert_eq!(run.arrived.len(), UPLINKS - rejected);
    });
    both(capacity(400.0, 3, Full::Block), |run| {
        assert_eq!((run.accepted(), run.arrived.len()), (UPLINKS, UPLINKS));
        let counts = run.account.counts;
        assert!(counts.capacity_blocked > 0, "{counts:?}");
        assert_eq!((counts.received, counts.datagrams_dropped), (200, 0));
    });
}

#[test]
fn a_stalled_gateway_says_nothing_and_then_everything() {
    // With the first uplink, so that not all can have been answered.
    let stall = Stall {
        at: Micros::ZERO,
        lasts: Micros::from_millis(500),
    };
    let behaviour = Behaviour {
        stall: Some(stall),
        ..Behaviour::default()
    };
    both(behaviour, |run| {
        assert_eq!((run.accepted(), run.arrived.len()), (UPLINKS, UPLINKS));
        let all = run.uplinks.values().flat_map(|fared| {
            let answer = fared.answer.as_ref()?;
            Some(answer.at - fared.sent_at)
        });
        assert!(all.max() >= Some(Micros::from_millis(300)));
        assert_eq!(run.account.counts.stalled, 1);
    });
}

#[test]
fn misbehaviours_go_together_and_keep_their_counts() {
    both(together(Micros::from_millis(100)), |run| {
        befell_together(&run.account);
        assert_eq!(run.accepted(), UPLINKS - 3 - 4 - 5);
        assert_eq!(run.arrived.len(), UPLINKS - 7 - 3 + 8);
    });
}
