//! Draining of what was kept for devices that were offline, against a recount by hand.

use std::ops::Range;

use muster_measure::{
    Account, Bounds, Calendar, Closing, Cold, DrainLedger, FleetTrack, Identity, PublishedPlan,
    Recorder, RecorderPlan, Role, StreamTrack, Summary, Timeline, WindowDelta,
};
use muster_model::{
    Attempt, Cause, DeviceId, Fact, FleetId, Integrity, LinkEvent, LinkFact, LinkId, Listening,
    MessageId, Micros, Outcome, Reception, RunId, StreamId,
};
use proptest::prelude::*;

const RUN: RunId = RunId(3);
const NEWS: StreamId = StreamId(0);
const RECEIVE: StreamId = StreamId(1);
/// One sender, whose messages all of them are to get.
const SENDER: DeviceId = DeviceId(9);
const SUBSCRIBERS: u32 = 3;
/// Due one a millisecond, from the origin on.
const MESSAGES: u32 = 60;
const END: Micros = Micros::from_secs(30);

/// Each link of the subscribers carries so many of them.
fn plan(per_link: u32) -> RecorderPlan {
    let track = |first: u32, devices: u32, fleet: u8, role: Role| StreamTrack {
        fleet: FleetId(fleet),
        first_device: DeviceId(first),
        devices,
        most_per_device: MESSAGES,
        role,
        answers: true,
        closed: None,
        by_order: false,
        deadline: None,
        bounds: Bounds::default(),
    };
    let fleet = |first_link: u32, devices: u32, devices_per_link: u32| FleetTrack {
        first_link: LinkId(first_link),
        links: devices.div_ceil(devices_per_link),
        devices_per_link,
    };
    RecorderPlan {
        run: RUN,
        warm_up: Micros::ZERO,
        measure: Micros::from_secs(1),
        streams: vec![
            track(SENDER.0, 1, 0, Role::Uplink),
            track(0, SUBSCRIBERS, 1, Role::Receive),
        ],
        fleets: vec![fleet(0, 1, 1), fleet(1, SUBSCRIBERS, per_link)],
        backends: 0,
        store: None,
        cold: Cold::Nothing,
        groups: Vec::new(),
        published: PublishedPlan::Nothing,
    }
}

fn due(seq: u32) -> Micros {
    Micros::from_millis(u64::from(seq))
}

/// The schedule's own word.
struct Schedule;

impl Calendar for Schedule {
    fn scheduled(&self, stream: StreamId, _: DeviceId) -> Option<u32> {
        Some(if stream == NEWS { MESSAGES } else { 0 })
    }

    fn warm_up(&self, _: StreamId, _: DeviceId) -> Option<u32> {
        Some(0)
    }

    fn due(&self, _: StreamId, _: DeviceId, seq: u32) -> Option<Micros> {
        Some(due(seq))
    }

    fn nominal(&self, stream: StreamId, _: Micros) -> u64 {
        u64::from(if stream == NEWS { MESSAGES } else { 0 })
    }

    fn due_between(
        &self,
        _: StreamId,
        _: DeviceId,
        from: Micros,
        until: Micros,
    ) -> Option<Range<u32>> {
        let before = |at: Micros| at.get().div_ceil(1_000).min(u64::from(MESSAGES)) as u32;
        Some(before(from)..before(until))
    }

    fn audience(&self, stream: StreamId, each: &mut dyn FnMut(DeviceId, StreamId, DeviceId)) {
        if stream == RECEIVE {
            (0..SUBSCRIBERS).for_each(|device| each(DeviceId(device), NEWS, SENDER));
        }
    }
}

/// The absence of one subscriber and the copies it got.
#[derive(Debug, Clone)]
struct Fate {
    /// In microseconds from the origin; none: it was never away.
    away: Option<(u64, u64)>,
    is_kept: bool,
    /// By message: how many copies came.
    copies: Vec<u8>,
}

fn fate() -> impl Strategy<Value = Fate> {
    let away = prop::option::weighted(0.8, (0u64..50_000, 0u64..20_000));
    let copies = prop::collection::vec(0u8..3, MESSAGES as usize);
    (away, any::<bool>(), copies).prop_map(|(away, is_kept, copies)| Fate {
        away: away.map(|(left, lasts)| (left, left + lasts)),
        is_kept,
        copies,
    })
}

impl Fate {
    /// Returns whether a message came due while the subscriber was away.
    fn is_kept_for(&self, seq: u32) -> bool {
        let away = self.away.map(|(left, back)| left..back);
        away.is_some_and(|away| away.contains(&due(seq).get()))
    }

    fn returned(&self) -> Option<Micros> {
        self.away.map(|(_, back)| Micros(back))
    }
}

/// Instant at which a message comes to a subscriber: after it is due, and never while that is away.
fn seen(fate: &Fate, seq: u32) -> Micros {
    let after = Micros(500 + u64::from(seq * 37 % 11) * 1_000);
    let back = fate.returned().filter(|_| fate.is_kept_for(seq));
    due(seq).max(back.unwrap_or_default()) + after
}

/// All that happened, and what those counted to whom it happened.
fn world(fates: &[Fate], per_link: u32) -> (Account, Vec<Fact>) {
    let mut own = Account::new(&plan(per_link));
    let mut facts = Vec::new();
    for seq in 0..MESSAGES {
        let id = message(seq);
        own.sent(&id);
        own.ended(&id, &Outcome::Accepted, false);
        facts.push((due(seq), sent(id)));
    }
    for (device, fate) in (0..).zip(fates) {
        if device % per_link == 0 {
            lives(LinkId(1 + device / per_link), fate, &mut own, &mut facts);
        }
        for (seq, copies) in (0..).zip(&fate.copies) {
            for _ in 0..*copies {
                let reception = received(DeviceId(device), seq, seen(fate, seq));
                own.reception(RECEIVE).consumed += 1;
                own.reception(RECEIVE).read(&reception);
                facts.push((reception.seen, Fact::Reception(reception)));
            }
        }
    }
    facts.sort_by_key(|(at, _)| *at);
    (own, facts.into_iter().map(|(_, fact)| fact).collect())
}

/// A link comes up, and is away as a device of its own fares.
fn lives(link: LinkId, fate: &Fate, own: &mut Account, facts: &mut Vec<(Micros, Fact)>) {
    own.opened();
    own.connected(link);
    let connected = LinkEvent::Connected { took: Micros(1) };
    facts.push((Micros::ZERO, changed(link, Micros::ZERO, connected)));
    own.open_at_end();
    let Some((left, back)) = fate.away else {
        return;
    };
    let is_kept = fate.is_kept;
    own.disconnected(link, &Cause::Offline);
    own.returned(link, is_kept);
    own.opened();
    own.connected(link);
    for (at, event) in [
        (left, LinkEvent::Disconnected(Cause::Offline)),
        (back, LinkEvent::Returned { is_kept }),
        (back, connected),
    ] {
        facts.push((Micros(at), changed(link, Micros(at), event)));
    }
}

/// Devices of one link are away together.
fn sharing(mut fates: Vec<Fate>, per_link: u32) -> Vec<Fate> {
    for link in fates.chunks_mut(per_link as usize) {
        let (first, others) = link.split_at_mut(1);
        for other in others {
            (other.away, other.is_kept) = (first[0].away, first[0].is_kept);
        }
    }
    fates
}

fn message(seq: u32) -> MessageId {
    MessageId {
        run: RUN,
        device: SENDER,
        stream: NEWS,
        seq,
    }
}

fn sent(id: MessageId) -> Fact {
    let at = due(id.seq);
    Fact::Attempt(Attempt {
        id,
        due: at,
        taken: Some(at),
        sent: Some(at),
        ended: at,
        outcome: Outcome::Accepted,
        resent: false,
        own: Micros::ZERO,
    })
}

fn changed(link: LinkId, at: Micros, event: LinkEvent) -> Fact {
    Fact::Link(LinkFact {
        link,
        at,
        event,
        by_us: false,
    })
}

fn received(subscriber: DeviceId, seq: u32, seen: Micros) -> Reception {
    Reception {
        subscriber,
        stream: RECEIVE,
        id: Some(message(seq)),
        due: Some(due(seq)),
        seen,
        integrity: Integrity::Intact,
    }
}

/// Process that reports a fact: each link lives in one.
fn shard_of(fact: &Fact, per_link: u32) -> usize {
    match fact {
        Fact::Link(link) => link.link.0 as usize,
        Fact::Reception(reception) => 1 + (reception.subscriber.0 / per_link) as usize,
        Fact::Attempt(_) | Fact::Arrival(_) | Fact::Command(_) => 0,
    }
}

/// The summary of facts that so many processes told.
fn close(own: &Account, facts: &[Fact], split: (u32, usize)) -> Summary {
    close_heard(own, facts, split, END)
}

/// The same where not every device heard to the end.
fn close_heard(
    own: &Account,
    facts: &[Fact],
    (per_link, processes): (u32, usize),
    devices_until: Micros,
) -> Summary {
    let plan = plan(per_link);
    let mut windows = WindowDelta::default();
    let mut identity = Identity::new(&plan);
    for process in 0..processes {
        let mut recorder = Recorder::new(plan.clone());
        recorder.start(Micros::ZERO);
        let its = facts
            .iter()
            .filter(|fact| shard_of(fact, per_link) % processes == process);
        for fact in its {
            if let Fact::Link(LinkFact {
                link,
                at,
                event: LinkEvent::Connected { .. },
                ..
            }) = fact
            {
                recorder.opened(*link, *at);
            }
            recorder.fact(fact);
        }
        windows.merge(&recorder.flush(END));
        identity.merge(recorder.finish());
    }
    let timeline = Timeline::starting(Micros::ZERO, Micros::ZERO, Micros::from_secs(1));
    Closing {
        plan: &plan,
        windows: &windows,
        identity: Some(&identity),
        account: Some(own),
        calendar: Some(&Schedule),
        timeline,
        end: END,
        listening: Listening::until(END),
        devices_until,
        quiet: Micros::from_secs(3),
        has_one_clock: true,
        lost_ranges_most: 100,
    }
    .summary()
}

/// The same by hand, from the fates alone.
fn by_hand(fates: &[Fate]) -> DrainLedger {
    let away: Vec<(u32, &Fate)> = (0..).zip(fates).filter(|(_, f)| f.away.is_some()).collect();
    let mut ledger = DrainLedger {
        devices: away.len() as u64,
        returned: away.len() as u64,
        forgotten: away.iter().filter(|(_, fate)| !fate.is_kept).count() as u64,
        expected: Some(0),
        drained: Some(0),
        lost: Some(0),
        outstanding: Some(0),
        began: away.iter().filter_map(|(_, fate)| fate.returned()).min(),
        ..DrainLedger::default()
    };
    let mut longest = None;
    for (device, fate) in away {
        let kept: Vec<u32> = (0..MESSAGES).filter(|seq| fate.is_kept_for(*seq)).collect();
        let copies = |seq: &u32| u64::from(fate.copies[*seq as usize]);
        let came: Vec<u32> = kept.iter().copied().filter(|seq| copies(seq) > 0).collect();
        let missing = (kept.len() - came.len()) as u64;
        *ledger.expected.get_or_insert(0) += kept.len() as u64;
        *ledger.drained.get_or_insert(0) += came.len() as u64;
        *ledger.lost.get_or_insert(0) += missing;
        ledger.incomplete += u64::from(missing > 0);
        ledger.duplicates += came.iter().map(|seq| copies(seq) - 1).sum::<u64>();
        ledger.reordered += came.iter().filter(|seq| is_overtaken(fate, **seq)).count() as u64;
        let last = came.iter().map(|seq| seen(fate, *seq)).max();
        ledger.ended = ledger.ended.max(last);
        let took = last.zip(fate.returned()).map(|(last, back)| last - back);
        if took > longest {
            (longest, ledger.slowest) = (took, Some(DeviceId(device)));
        }
    }
    ledger
}

/// Returns whether a later message of the sender was there before it; copies of one message come at
/// once.
fn is_overtaken(fate: &Fate, seq: u32) -> bool {
    let mut later = seq + 1..MESSAGES;
    later.any(|other| {
        let came = fate.copies[other as usize] > 0;
        came && seen(fate, other) < seen(fate, seq)
    })
}

/// Consumers that stay longer hear nothing of what comes to devices.
#[test]
fn nothing_that_came_after_the_first_devices_had_left_is_lost() {
    let mut copies = vec![1; MESSAGES as usize];
    copies[59] = 0;
    let fate = Fate {
        away: None,
        is_kept: false,
        copies,
    };
    let fates = vec![fate; SUBSCRIBERS as usize];
    let (own, facts) = world(&fates, 1);
    let last = (0..59).map(|seq| seen(&fates[0], seq)).max();
    let quiet_at = last.expect("some came") + Micros::from_secs(3);
    for (until, lost, outstanding) in [(quiet_at, 3, 0), (quiet_at - Micros(1), 0, 3)] {
        let summary = close_heard(&own, &facts, (1, 1), until);
        let ledger = summary.run.reception.expect("there are subscribers").ledger;
        let found = (ledger.lost, ledger.outstanding, ledger.residue);
        assert_eq!(found, (Some(lost), Some(outstanding), Some(0)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// The ledger of the drain equals a recount by hand and closes, for any absences, copies and
    /// delays, however many devices share a link and processes report it.
    #[test]
    fn the_drain_is_what_a_recount_by_hand_gives(
        fates in prop::collection::vec(fate(), SUBSCRIBERS as usize),
        per_link in 1..=SUBSCRIBERS,
    ) {
        let fates = sharing(fates, per_link);
        let (own, facts) = world(&fates, per_link);
        for processes in [1, 3] {
            let summary = close(&own, &facts, (per_link, processes));
            let reception = summary.run.reception.as_ref().expect("there are subscribers");
            prop_assert_eq!(reception.ledger.residue, Some(0), "{:?}", reception.ledger.equations);
            let found = reception.drain.as_ref().map(|drain| drain.ledger.clone());
            let wanted = Some(by_hand(&fates)).filter(|ledger| ledger.devices > 0);
            prop_assert_eq!(found, wanted);
        }
    }

    /// A copy whose due instant was told wrong is seen: its number and its instant disagree.
    #[test]
    fn a_wrong_instant_is_a_residue(seq in 10u32..20) {
        let fate = Fate { away: Some((10_000, 20_000)), is_kept: true, copies: vec![1; MESSAGES as usize] };
        let never = Fate { away: None, ..fate.clone() };
        let (own, mut facts) = world(&[fate, never.clone(), never], 1);
        let of_it = |fact: &&mut Fact| matches!(
            fact,
            Fact::Reception(reception) if reception.id == Some(message(seq)) && reception.subscriber == DeviceId(0)
        );
        let Some(Fact::Reception(reception)) = facts.iter_mut().find(of_it) else {
            return Err(TestCaseError::fail("it came"));
        };
        reception.due = Some(due(40));
        let summary = close(&own, &facts, (1, 1));
        let ledger = &summary.run.reception.as_ref().expect("there are subscribers").ledger;
        prop_assert_eq!(ledger.residue, Some(1));
    }
}
