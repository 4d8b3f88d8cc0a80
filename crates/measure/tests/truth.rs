//! The account of random runs: it closes, it is the recount's, no fault of the recording stays
//! unseen, and parts of a run merge to the whole.

use std::collections::{BTreeMap, BTreeSet};

use muster_measure::{
    Account, Bounds, Calendar, Closing, Cold, FleetTrack, Identity, Latency, Ledger, PublishedPlan,
    Record, Recorder, RecorderPlan, Records, Role, Scope, ScopeSummary, State, StreamTrack,
    Summary, Timeline, WindowDelta, encode_record,
};
use muster_model::{
    Arrival, Attempt, BackendId, Cause, ConnectFailure, ConsumerId, DeviceId, Fact, FleetId,
    Integrity, LinkEvent, LinkFact, LinkId, Listening, MessageId, Micros, Outcome, Reason, RunId,
    ShedCause, StreamId, mix,
};
use proptest::prelude::*;

const ORIGIN: Micros = Micros(2_300_000);
const WARM_UP: Micros = Micros(1_700_000);
const MEASURE: Micros = Micros(6_000_000);
const END: Micros = Micros(16_000_000);
const QUIET: Micros = Micros(2_000_000);
const RUN: RunId = RunId(77);
const BACKENDS: u8 = 2;
const PROCESSES: usize = 3;
const DEVICES: [(u32, u32); 3] = [(0, 5), (0, 5), (5, 3)];
const PERIODS: [u64; 3] = [400_000, 1_100_000, 700_000];

/// The schedule: device `d` of stream `s` is due every `PERIODS[s]`, from a phase of its own on.
/// Stream 2 is a closed loop, so the calendar knows nothing of it but the nominal count.
struct Periods;

impl Periods {
    fn at(stream: StreamId, device: DeviceId, seq: u32) -> Micros {
        let phase = mix(5, u64::from(device.0)) % 300_000;
        ORIGIN + Micros(phase + PERIODS[stream.index()] * u64::from(seq))
    }

    fn count(stream: StreamId, device: DeviceId, until: Micros) -> u32 {
        (0u32..)
            .take_while(|seq| Self::at(stream, device, *seq) < until)
            .count() as u32
    }

    fn is_closed(stream: StreamId) -> bool {
        stream.0 == 2
    }
}

impl Calendar for Periods {
    fn scheduled(&self, stream: StreamId, device: DeviceId) -> Option<u32> {
        let count = Self::count(stream, device, ORIGIN + WARM_UP + MEASURE);
        (!Self::is_closed(stream)).then_some(count)
    }

    fn warm_up(&self, stream: StreamId, device: DeviceId) -> Option<u32> {
        let count = Self::count(stream, device, ORIGIN + WARM_UP);
        (!Self::is_closed(stream)).then_some(count)
    }

    fn due(&self, stream: StreamId, device: DeviceId, seq: u32) -> Option<Micros> {
        (!Self::is_closed(stream)).then(|| Self::at(stream, device, seq))
    }

    fn nominal(&self, stream: StreamId, until: Micros) -> u64 {
        let (first, devices) = DEVICES[stream.index()];
        (first..first + devices)
            .map(|device| u64::from(Self::count(stream, DeviceId(device), until)))
            .sum()
    }
}

fn plan(cold: Cold) -> RecorderPlan {
    let stream = |at: usize| StreamTrack {
        fleet: FleetId(u8::from(at == 2)),
        first_device: DeviceId(DEVICES[at].0),
        devices: DEVICES[at].1,
        most_per_device: 1_000,
        role: Role::Uplink,
        answers: at != 1,
        closed: (at == 2).then_some(Micros::from_millis(1)),
        by_order: false,
        deadline: (at == 0).then_some(Micros::from_millis(1_500)),
        bounds: Bounds {
            response: vec![Micros::from_millis(300), Micros::from_millis(100)],
            end_to_end: vec![Micros::from_millis(500)],
            lateness: vec![Micros(3_000)],
            ..Bounds::default()
        },
    };
    RecorderPlan {
        run: RUN,
        warm_up: WARM_UP,
        measure: MEASURE,
        streams: (0..3).map(stream).collect(),
        fleets: vec![
            FleetTrack {
                first_link: LinkId(0),
                links: 5,
                devices_per_link: 1,
            },
            FleetTrack {
                first_link: LinkId(5),
                links: 3,
                devices_per_link: 1,
            },
        ],
        backends: BACKENDS,
        store: None,
        cold,
        groups: Vec::new(),
        published: PublishedPlan::Nothing,
    }
}

/// A fact, and the process whose recorder hears it.
type Told = (usize, Fact);

/// A random run: what each process counted for itself, and every fact in the order of time.
struct World {
    accounts: Vec<Account>,
    facts: Vec<Told>,
    copies_to_both: bool,
}

struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 += 1;
        mix(self.0, 11) % sides
    }
}

impl World {
    /// Devices live in process 0; consumers 0 and 2 in process 1, consumer 1 in process 2. With
    /// `copies_to_both` a message may reach consumers of both.
    fn new(seed: u64, copies_to_both: bool) -> Self {
        let accounts = vec![Account::new(&plan(Cold::Nothing)); PROCESSES];
        let mut world = World {
            accounts,
            facts: Vec::new(),
            copies_to_both,
        };
        let mut dice = Dice(mix(seed, 1));
        for link in 0..8 {
            world.live_link(LinkId(link), &mut dice);
        }
        for stream in (0..3).map(StreamId) {
            let (first, devices) = DEVICES[stream.index()];
            for device in (first..first + devices).map(DeviceId) {
                for seq in 0..Periods::count(stream, device, ORIGIN + WARM_UP + MEASURE) {
                    world.live(
                        MessageId {
                            run: RUN,
                            device,
                            stream,
                            seq,
                        },
                        &mut dice,
                    );
                }
            }
        }
        for _ in 0..dice.roll(6) {
            let id = MessageId {
                run: RunId(78),
                ..world.any_id(&mut dice)
            };
            let seen = Micros(3_000_000 + dice.roll(9_000_000));
            world.arrive(Some(id), None, seen, &mut dice);
            world.arrive(None, None, seen, &mut dice);
        }
        world.facts.sort_by_key(|(_, fact)| instant(fact));
        world
    }

    fn any_id(&self, dice: &mut Dice) -> MessageId {
        let stream = StreamId(dice.roll(3) as u8);
        let (first, devices) = DEVICES[stream.index()];
        let device = DeviceId(first + dice.roll(u64::from(devices)) as u32);
        MessageId {
            run: RUN,
            device,
            stream,
            seq: dice.roll(6) as u32,
        }
    }

    fn live_link(&mut self, link: LinkId, dice: &mut Dice) {
        let mut at = Micros(dice.roll(1_000_000));
        for _ in 0..1 + dice.roll(3) {
            self.accounts[0].opened();
            at += Micros(1_000 + dice.roll(400_000));
            if dice.roll(4) == 0 {
                self.accounts[0].connect_failed(link, &ConnectFailure::Refused);
                self.tell_link(link, at, LinkEvent::Failed(ConnectFailure::Refused));
                continue;
            }
            self.accounts[0].connected(link);
            self.tell_link(
                link,
                at,
                LinkEvent::Connected {
                    took: Micros(1_000),
                },
            );
            if dice.roll(3) == 0 {
                self.accounts[0].open_at_end();
                return;
            }
            at += Micros(1 + dice.roll(3_000_000));
            self.accounts[0].disconnected(link, &Cause::Reset);
            self.tell_link(link, at, LinkEvent::Disconnected(Cause::Reset));
        }
    }

    fn tell_link(&mut self, link: LinkId, at: Micros, event: LinkEvent) {
        self.facts.push((
            0,
            Fact::Link(LinkFact {
                link,
                at,
                event,
                by_us: false,
            }),
        ));
    }

    fn live(&mut self, id: MessageId, dice: &mut Dice) {
        let due = Periods::at(id.stream, id.device, id.seq);
        let outcome = outcome(id.stream, dice);
        let is_sent = State::from(&outcome) != State::Shed;
        let taken = due + Micros(dice.roll(5_000));
        let sent = is_sent.then(|| taken + Micros(dice.roll(50_000)));
        let ended = sent.unwrap_or(taken) + Micros(dice.roll(600_000));
        let resent = is_sent && dice.roll(8) == 0;
        let account = &mut self.accounts[0];
        account.scheduled(&id);
        if is_sent {
            account.sent(&id);
        }
        account.ended(&id, &outcome, resent);
        let attempt = Attempt {
            id,
            due,
            taken: Some(taken),
            sent,
            ended,
            outcome,
            resent,
            own: Micros((ended - due).get() / 3),
        };
        self.facts.push((0, Fact::Attempt(attempt)));
        if let Some(sent) = sent {
            for _ in 0..dice.roll(7) / 2 {
                let seen = sent + Micros(dice.roll(4_000_000));
                self.arrive(Some(id), Some(due), seen, dice);
            }
        }
    }

    fn arrive(
        &mut self,
        id: Option<MessageId>,
        due: Option<Micros>,
        seen: Micros,
        dice: &mut Dice,
    ) {
        let backend = BackendId(dice.roll(u64::from(BACKENDS)) as u8);
        let consumer = if self.copies_to_both {
            dice.roll(3) as u16
        } else {
            id.map_or(0, |id| (id.device.0 % 3) as u16)
        };
        let process = if consumer == 1 { 2 } else { 1 };
        let integrity = if dice.roll(20) == 0 {
            Integrity::Corrupted
        } else {
            Integrity::Intact
        };
        self.accounts[process].consumed(backend);
        self.accounts[process].read(backend, id.as_ref(), integrity);
        let consumer = ConsumerId(consumer);
        let arrival = Arrival {
            id,
            due,
            seen,
            backend,
            consumer,
            integrity,
            own: due.map_or(Micros::ZERO, |due| Micros((seen - due).get() / 4)),
        };
        self.facts.push((process, Fact::Arrival(arrival)));
    }

    fn account(&self) -> Account {
        let mut all = Account::default();
        self.accounts.iter().for_each(|account| all.merge(account));
        all
    }

    /// Records the facts with one recorder, or with several that each receive their own.
    fn record(&self, facts: &[Told], processes: usize, cold: Cold) -> Recorded {
        let mut recorders: Vec<_> = (0..processes).map(|_| Recorder::new(plan(cold))).collect();
        let mut deltas = Vec::new();
        for (at, recorder) in recorders.iter_mut().enumerate() {
            recorder.start(ORIGIN);
            count_by_hand(recorder, at, processes, self);
        }
        let mut is_drained = false;
        for (heard, (process, fact)) in facts.iter().enumerate() {
            if !is_drained && instant(fact) >= END - QUIET {
                recorders.iter_mut().for_each(Recorder::mark_drain);
                is_drained = true;
            }
            recorders[process % processes].fact(fact);
            if heard % 97 == 0 {
                deltas.extend(recorders.iter_mut().map(|recorder| recorder.flush(END)));
            }
        }
        deltas.extend(recorders.iter_mut().map(|recorder| recorder.flush(END)));
        Recorded {
            deltas,
            identities: recorders.into_iter().map(Recorder::finish).collect(),
        }
    }
}

/// Counts the windows' own figures of sockets and consumers: tries to connect, and consumed copies.
fn count_by_hand(recorder: &mut Recorder, at: usize, processes: usize, world: &World) {
    let own = world
        .accounts
        .iter()
        .enumerate()
        .filter(|(process, _)| process % processes == at);
    for (_, account) in own {
        for _ in 0..account.links.opened {
            recorder.opened(LinkId(0), Micros::ZERO);
        }
        for (backend, at) in account.backends.iter().zip(0..) {
            recorder.copies(BackendId(at), Micros::ZERO).consumed += backend.consumed;
        }
    }
}

struct Recorded {
    deltas: Vec<WindowDelta>,
    identities: Vec<Identity>,
}

impl Recorded {
    fn windows(&self) -> WindowDelta {
        let mut all = WindowDelta::default();
        self.deltas.iter().for_each(|delta| all.merge(delta));
        all
    }

    fn identity(&self) -> Identity {
        let mut all = Identity::new(&plan(Cold::Nothing));
        self.identities
            .iter()
            .for_each(|identity| all.merge(identity.clone()));
        all
    }

    fn summary(&self, account: &Account) -> Summary {
        close(&self.windows(), &self.identity(), account)
    }
}

/// A run as its windows and schedules alone show it.
fn of_windows<'a>(plan: &'a RecorderPlan, windows: &'a WindowDelta) -> Closing<'a> {
    Closing {
        plan,
        windows,
        identity: None,
        account: None,
        calendar: Some(&Periods),
        timeline: Timeline::starting(ORIGIN, WARM_UP, MEASURE),
        end: END,
        listening: Listening::until(END),
        devices_until: END,
        has_one_clock: true,
        quiet: QUIET,
        lost_ranges_most: 0,
    }
}

fn close(windows: &WindowDelta, identity: &Identity, account: &Account) -> Summary {
    let plan = plan(Cold::Nothing);
    let closing = Closing {
        identity: Some(identity),
        account: Some(account),
        lost_ranges_most: 1_000,
        ..of_windows(&plan, windows)
    };
    closing.summary()
}

fn instant(fact: &Fact) -> Micros {
    match fact {
        Fact::Attempt(attempt) => attempt.ended,
        Fact::Arrival(arrival) => arrival.seen,
        Fact::Link(link) => link.at,
        Fact::Command(_) | Fact::Reception(_) => Micros::ZERO,
    }
}

fn outcome(stream: StreamId, dice: &mut Dice) -> Outcome {
    match dice.roll(20) {
        0 => Outcome::Shed(ShedCause::QueueFull),
        1 => Outcome::Shed(ShedCause::Offline),
        2 => Outcome::Broken(Cause::Reset),
        3 => Outcome::InFlight,
        _ if stream.0 == 1 => Outcome::Unacknowledged,
        4 => Outcome::TimedOut,
        5 => Outcome::Rejected(Reason::Mqtt(0x97)),
        6 => Outcome::Rejected(Reason::Mqtt(0x87)),
        _ => Outcome::Accepted,
    }
}

/// Alteration of one fact on its way to the recorder.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    Dropped,
    Doubled,
    OtherOutcome,
    OtherId,
}

fn spoil(facts: &[Told], at: usize, fault: Fault) -> Vec<Told> {
    let mut spoilt = facts.to_vec();
    match fault {
        Fault::Dropped => drop(spoilt.remove(at)),
        Fault::Doubled => spoilt.insert(at, facts[at]),
        Fault::OtherOutcome => give_other_outcome(&mut spoilt[at].1),
        Fault::OtherId => give_other_id(&mut spoilt[at].1),
    }
    spoilt
}

fn give_other_outcome(fact: &mut Fact) {
    match fact {
        Fact::Attempt(attempt) => {
            attempt.outcome = match attempt.outcome {
                Outcome::Accepted => Outcome::TimedOut,
                Outcome::Rejected(Reason::Mqtt(0x97)) => Outcome::Rejected(Reason::Mqtt(0x87)),
                Outcome::Shed(ShedCause::Offline) => Outcome::Shed(ShedCause::QueueFull),
                Outcome::Shed(_) => Outcome::Shed(ShedCause::Busy),
                Outcome::Rejected(_)
                | Outcome::TimedOut
                | Outcome::Broken(_)
                | Outcome::Unacknowledged
                | Outcome::InFlight => Outcome::Accepted,
            }
        }
        Fact::Arrival(arrival) if arrival.integrity == Integrity::Corrupted => {
            arrival.integrity = Integrity::Intact;
        }
        Fact::Arrival(arrival) => arrival.backend = BackendId(1 - arrival.backend.0),
        Fact::Link(link) => {
            link.event = match link.event {
                LinkEvent::Connected { .. } => LinkEvent::Failed(ConnectFailure::Closed),
                LinkEvent::Failed(_) | LinkEvent::Returned { .. } => {
                    LinkEvent::Failed(ConnectFailure::Closed)
                }
                LinkEvent::LastSent { cause, messages } => LinkEvent::LastSent {
                    cause,
                    messages: messages + 1,
                },
                LinkEvent::Disconnected(_) => LinkEvent::Disconnected(Cause::Malformed),
            }
        }
        Fact::Command(_) | Fact::Reception(_) => {}
    }
}

fn give_other_id(fact: &mut Fact) {
    match fact {
        Fact::Attempt(attempt) => attempt.id.seq ^= 1,
        Fact::Arrival(arrival) => {
            arrival.id = match arrival.id {
                Some(id) if id.seq == 2 => None,
                Some(id) => Some(MessageId {
                    seq: id.seq ^ 1,
                    ..id
                }),
                None => Some(MessageId {
                    run: RUN,
                    device: DeviceId(1),
                    stream: StreamId(0),
                    seq: 3,
                }),
            }
        }
        Fact::Link(link) => link.link.0 ^= 1,
        Fact::Command(_) | Fact::Reception(_) => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// The account of a faithful recording closes, at every cell of every ledger, and is the one
    /// that a recount of the plain list of facts gives.
    #[test]
    fn a_faithful_recording_closes_and_is_the_recount(seed: u64, to_both: bool) {
        let world = World::new(seed, to_both);
        let summary = world.record(&world.facts, 1, Cold::Nothing).summary(&world.account());
        prop_assert_eq!(&summary.run.uplink.equations, &vec![]);
        prop_assert_eq!(&summary.run.measured.equations, &vec![]);
        prop_assert_eq!(summary.residue, Some(0));
        for stream in (0..3).map(StreamId) {
            for from in [ORIGIN, ORIGIN + WARM_UP] {
                recount(&world, &summary, stream, from)?;
            }
        }
    }

    /// A Fact of any kind that is dropped, doubled, or given another's outcome or id on its way
    /// to the recorder makes a residue other than zero.
    #[test]
    fn no_spoilt_fact_stays_unseen(
        seed: u64,
        at: prop::sample::Index,
        fault in prop::sample::select(
            &[Fault::Dropped, Fault::Doubled, Fault::OtherOutcome, Fault::OtherId],
        ),
    ) {
        let world = World::new(seed, true);
        let spoilt = spoil(&world.facts, at.index(world.facts.len()), fault);
        let summary = world.record(&spoilt, 1, Cold::Nothing).summary(&world.account());
        prop_assert!(summary.residue > Some(0), "{:?}", world.facts[at.index(world.facts.len())]);
    }

    /// Devices in one process and consumers in two others, their windows in any order and their
    /// late answers across borders, give what one process gives: the ledger to the unit, and the
    /// windows too, but for messages that reached two consumers, which are counted.
    #[test]
    fn parts_of_a_run_merge_to_the_whole(seed: u64, to_both: bool, order in any::<u64>()) {
        let world = World::new(seed, to_both);
        let whole = world.record(&world.facts, 1, Cold::Nothing);
        let mut parts = world.record(&world.facts, PROCESSES, Cold::Nothing);
        shuffle(&mut parts.deltas, order);
        shuffle(&mut parts.identities, order);
        let (one, many) = (whole.summary(&world.account()), parts.summary(&world.account()));
        prop_assert_eq!(many.residue, Some(0));
        for scope in scopes() {
            let (one, many) = (one.scope(scope).unwrap(), many.scope(scope).unwrap());
            prop_assert_eq!(&one.uplink, &many.uplink);
            prop_assert_eq!(&one.measured, &many.measured);
        }
        let split: u64 = many.backends.iter().map(|backend| backend.split).sum();
        let firsts = |windows: &WindowDelta| -> u64 {
            windows.arrivals.values().map(|window| window.arrived).sum()
        };
        let (one_windows, many_windows) = (whole.windows(), parts.windows());
        prop_assert!(one_windows.uplinks == many_windows.uplinks, "uplinks");
        prop_assert!(one_windows.links == many_windows.links, "links");
        prop_assert!(one_windows.copies == many_windows.copies, "copies");
        prop_assert_eq!(firsts(&one_windows) + split, firsts(&many_windows));
        if !to_both {
            prop_assert_eq!(split, 0);
        }
        if split == 0 {
            prop_assert!(one_windows == many_windows, "windows");
            prop_assert!(one == many, "summary");
        }
    }

    /// Records written to `windows.bin` and read back close to the same figures.
    #[test]
    fn a_run_closes_the_same_from_its_file(seed: u64) {
        let world = World::new(seed, true);
        let recorded = world.record(&world.facts, PROCESSES, Cold::Nothing);
        let mut file = Vec::new();
        for delta in &recorded.deltas {
            encode_record(&Record::Windows(Box::new(delta.clone())), &mut file).unwrap();
        }
        encode_record(&Record::Identity(Box::new(recorded.identity())), &mut file).unwrap();
        encode_record(&Record::Account(Box::new(world.account())), &mut file).unwrap();
        let (mut windows, mut identity, mut account) = (WindowDelta::default(), None, None);
        for record in Records::new(&file) {
            match record {
                Record::Windows(delta) => windows.merge(&delta),
                Record::Identity(read) => identity = Some(read),
                Record::Account(read) => account = Some(read),
                Record::Header(_) | Record::Health(_) | Record::Event(_) | Record::Footer(_) => {}
            }
        }
        let read = close(&windows, &identity.unwrap(), &account.unwrap());
        prop_assert!(read == recorded.summary(&world.account()), "summary");
    }

    /// Law: a message belongs to the step in which it was due, so that the ledgers of the steps add up to
    /// that of the measured phase, and so do all counts that rules are decided by. Nothing of the whole
    /// depends on its steps.
    #[test]
    fn the_ledgers_of_the_steps_add_up_to_the_ledger_of_the_whole(
        seed: u64,
        inner in prop::collection::btree_set(5_u32..12, 0..4),
    ) {
        let starts: Vec<u32> = std::iter::once(4).chain(inner).collect();
        let (whole, steps) = in_steps(seed, &starts);
        prop_assert!(whole == in_steps(seed, &[]).0, "the whole");
        // Settling begins at 10 s.
        prop_assert_eq!(steps.len(), starts.iter().filter(|start| **start < 10).count());
        for scope in scopes() {
            let is_closed = match scope {
                Scope::Run => true,
                Scope::Fleet(fleet) => fleet == FleetId(1),
                Scope::Stream(stream) => stream == StreamId(2),
                Scope::Group => false,
            };
            let mut sum = Ledger::default();
            let mut counts: Vec<u64> = Vec::new();
            for step in &steps {
                let of_step = step.scope(scope).unwrap();
                sum.merge(&of_step.measured);
                let more = counts_of(of_step);
                counts.resize(more.len(), 0);
                counts.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
            }
            let whole = whole.scope(scope).unwrap();
            prop_assert_eq!(&sum, &known_by_step(whole.measured.clone(), is_closed), "{:?}", scope);
            if !is_closed {
                prop_assert_eq!(counts, counts_of(whole), "{:?}", scope);
            }
            let lost: u64 = whole.series.iter().flat_map(|row| &row.arrivals[..1]).map(|at| at.lost_due).sum();
            if !is_closed {
                prop_assert_eq!(Some(lost), whole.uplink.arrivals.lost.zip(whole.uplink.arrivals.lost_unacknowledged).map(|(a, b)| a + b));
            }
        }
    }

    /// Law: what windows and schedules alone show of a step is what the sets show at the end, but that
    /// rejected and failed messages may be taken for those that are absent: never more are lost, and fewer only
    /// by the rejected and failed that arrived all the same.
    #[test]
    fn the_steps_so_far_blame_the_target_for_no_more_than_the_steps_at_the_end(seed: u64) {
        let starts = [4, 7];
        let steps = in_steps(seed, &starts).1;
        let world = World::new(seed, false);
        let windows = world.record(&world.facts, PROCESSES, Cold::Nothing).windows();
        let plan = plan(Cold::Nothing);
        let closing = of_windows(&plan, &windows);
        for (so_far, at_end) in closing.steps_so_far(&starts).iter().zip(&steps) {
            for stream in [StreamId(0), StreamId(1)] {
                let ledger = |summary: &Summary| {
                    summary.scope(Scope::Stream(stream)).unwrap().measured.clone()
                };
                let (so_far, at_end) = (ledger(so_far), ledger(at_end));
                prop_assert_eq!(so_far.arrivals.arrived, at_end.arrivals.arrived);
                let absent = |ledger: &Ledger| {
                    let arrivals = &ledger.arrivals;
                    arrivals.lost.unwrap() + arrivals.lost_unacknowledged.unwrap()
                };
                let open = at_end.arrivals.outstanding.unwrap();
                prop_assert!(absent(&so_far) <= absent(&at_end) + open);
                let arrivals = &at_end.arrivals;
                let arrived = [
                    arrivals.rejected_but_arrived,
                    arrivals.timed_out_but_arrived,
                    arrivals.broken_but_arrived,
                ];
                let arrived: u64 = arrived.into_iter().flatten().sum();
                let mistaken = arrived + at_end.in_flight;
                prop_assert!(absent(&so_far) + mistaken >= absent(&at_end));
                let outcomes = |ledger: Ledger| Ledger {
                    arrivals: Default::default(),
                    ..ledger
                };
                prop_assert_eq!(outcomes(so_far), outcomes(at_end));
            }
        }
    }

    /// Cold messages are those due first in the measured phase. They are kept apart, and with the
    /// others make up the whole measured cohort: what has a time, and what has none.
    #[test]
    fn cold_and_warm_make_up_the_cohort(seed: u64) {
        let first = Micros::from_secs(2);
        let run = apart(seed, Cold::First(first));
        let (cold, warm) = (run.cold.unwrap(), run.warm.unwrap());
        for latency in [Latency::Lateness, Latency::Response, Latency::EndToEnd] {
            let of = |table: &muster_measure::LatencyTable| {
                let figures = &table.of(latency).unwrap().figures;
                [figures.count, figures.censored]
            };
            let ([known, censored], [few, few_censored]) = (of(&run.latency), of(&cold));
            let [rest, rest_censored] = of(&warm);
            prop_assert_eq!((few + rest, few_censored + rest_censored), (known, censored));
        }
        let begun = ORIGIN + WARM_UP;
        let taken = World::new(seed, false).facts.into_iter().filter(|told| match &told.1 {
            Fact::Attempt(attempt) => {
                attempt.taken.is_some() && (begun..begun + first).contains(&attempt.due)
            }
            Fact::Arrival(_) | Fact::Link(_) | Fact::Command(_) | Fact::Reception(_) => false,
        });
        let lateness = cold.of(Latency::Lateness).unwrap().figures.count;
        prop_assert_eq!(lateness, taken.count() as u64);
        prop_assert_eq!((cold.connect, warm.connect), (None, None));
        prop_assert_eq!(run.measured.residue, Some(0));
    }

    /// The first message of each device is cold wherever it was due; no other message is.
    #[test]
    fn first_messages_are_cold_though_they_lie_in_the_warm_up(seed: u64) {
        let run = apart(seed, Cold::FirstMessage);
        let first = World::new(seed, false);
        let taken = first.facts.iter().filter(|told| match &told.1 {
            Fact::Attempt(attempt) => attempt.id.seq == 0 && attempt.taken.is_some(),
            Fact::Arrival(_) | Fact::Link(_) | Fact::Command(_) | Fact::Reception(_) => false,
        });
        let lateness = |table: &muster_measure::LatencyTable| {
            table.of(Latency::Lateness).unwrap().figures.count
        };
        prop_assert_eq!(lateness(&run.cold.unwrap()), taken.count() as u64);
    }
}

/// A whole run and its steps, which begin in these seconds.
fn in_steps(seed: u64, starts: &[u32]) -> (Summary, Vec<Summary>) {
    let world = World::new(seed, false);
    let recorded = world.record(&world.facts, PROCESSES, Cold::Nothing);
    let (plan, windows) = (plan(Cold::Nothing), recorded.windows());
    let closing = Closing {
        identity: Some(&recorded.identity()),
        account: Some(&world.account()),
        lost_ranges_most: 10,
        ..of_windows(&plan, &windows)
    };
    closing.summary_in_steps(starts)
}

/// The ledger without what belongs to no step: copies beyond the first, the sums of equations, and of a
/// closed loop what is absent.
fn known_by_step(mut ledger: Ledger, is_closed: bool) -> Ledger {
    (ledger.residue, ledger.equations) = (None, Vec::new());
    let arrivals = &mut ledger.arrivals;
    (arrivals.consumed, arrivals.reordered) = (None, None);
    (arrivals.duplicates, arrivals.duplicate_own) = (None, None);
    if is_closed {
        (arrivals.lost, arrivals.lost_unacknowledged) = (None, None);
        (arrivals.outstanding, arrivals.rejected_but_arrived) = (None, None);
        (arrivals.timed_out_but_arrived, arrivals.broken_but_arrived) = (None, None);
    }
    ledger
}

/// Counts of a table that must add up.
fn counts_of(scope: &ScopeSummary) -> Vec<u64> {
    let latencies = [Latency::Response, Latency::Service, Latency::EndToEnd];
    let figures = latencies.map(|latency| {
        let view = scope.latency.of(latency);
        view.map_or([0, 0], |view| [view.figures.count, view.figures.censored])
    });
    let above = scope.above.iter();
    let above = above.flat_map(|it| [it.above, it.above_lower, it.missing, it.n]);
    figures.into_iter().flatten().chain(above).collect()
}

/// A whole run in which some messages are kept apart.
fn apart(seed: u64, cold: Cold) -> ScopeSummary {
    let world = World::new(seed, false);
    let recorded = world.record(&world.facts, 1, cold);
    let (windows, identity) = (recorded.windows(), recorded.identity());
    let account = world.account();
    let plan = plan(cold);
    let closing = Closing {
        identity: Some(&identity),
        account: Some(&account),
        lost_ranges_most: 10,
        ..of_windows(&plan, &windows)
    };
    closing.summary().run
}

fn scopes() -> impl Iterator<Item = Scope> {
    let fleets = (0..2).map(|at| Scope::Fleet(FleetId(at)));
    std::iter::once(Scope::Run)
        .chain(fleets)
        .chain((0..3).map(|at| Scope::Stream(StreamId(at))))
}

fn shuffle<T>(list: &mut [T], order: u64) {
    for at in (1..list.len()).rev() {
        list.swap(at, (mix(order, at as u64) % (at as u64 + 1)) as usize);
    }
}

/// The arrivals of one message at one backend, by the plain list.
#[derive(Default)]
struct Copies {
    copies: u64,
    is_timely: bool,
    is_in_order: bool,
}

/// Recounts one stream's ledger from the plain list of facts and compares it cell by cell.
fn recount(
    world: &World,
    summary: &Summary,
    stream: StreamId,
    from: Micros,
) -> Result<(), TestCaseError> {
    let scope = summary
        .scope(Scope::Stream(stream))
        .expect("the plan has the stream");
    let is_measured = from != ORIGIN;
    let ledger = if is_measured {
        &scope.measured
    } else {
        &scope.uplink
    };
    let attempts: BTreeMap<MessageId, Attempt> = world
        .facts
        .iter()
        .filter_map(|(_, fact)| match fact {
            Fact::Attempt(attempt) => Some((attempt.id, *attempt)),
            Fact::Arrival(_) | Fact::Link(_) | Fact::Command(_) | Fact::Reception(_) => None,
        })
        .filter(|(id, attempt)| id.stream == stream && attempt.due >= from)
        .collect();
    let of = |state| {
        attempts
            .values()
            .filter(|a| State::from(&a.outcome) == state)
            .count() as u64
    };
    for state in State::ALL {
        prop_assert_eq!(ledger.state(state), of(state), "{}", state.name());
    }
    prop_assert_eq!(ledger.scheduled, Some(attempts.len() as u64));
    prop_assert_eq!(ledger.sent, attempts.len() as u64 - of(State::Shed));
    recount_arrivals(world, ledger, &attempts, stream)?;
    if is_measured {
        recount_above(scope, &attempts)
    } else {
        Ok(())
    }
}

fn recount_arrivals(
    world: &World,
    ledger: &Ledger,
    attempts: &BTreeMap<MessageId, Attempt>,
    stream: StreamId,
) -> Result<(), TestCaseError> {
    let of = |state| {
        attempts
            .values()
            .filter(|a| State::from(&a.outcome) == state)
            .count() as u64
    };
    let copies = copies_of(world, stream, BackendId(0));
    let seen: BTreeSet<_> = copies
        .keys()
        .filter(|id| attempts.contains_key(id))
        .collect();
    let arrived = |state: State| {
        let is_it = |id: &&&MessageId| State::from(&attempts[**id].outcome) == state;
        seen.iter().filter(is_it).count() as u64
    };
    let further = |is_own: bool| -> u64 {
        let is_it = |id: &&&MessageId| attempts[**id].resent == is_own;
        seen.iter()
            .filter(is_it)
            .map(|id| copies[*id].copies - 1)
            .sum()
    };
    prop_assert_eq!(ledger.arrivals.arrived, Some(seen.len() as u64));
    prop_assert_eq!(
        ledger.arrivals.rejected_but_arrived,
        Some(arrived(State::Rejected))
    );
    prop_assert_eq!(
        ledger.arrivals.timed_out_but_arrived,
        Some(arrived(State::TimedOut))
    );
    prop_assert_eq!(
        ledger.arrivals.broken_but_arrived,
        Some(arrived(State::Broken))
    );
    let absent = of(State::Accepted) + of(State::Unacknowledged)
        - arrived(State::Accepted)
        - arrived(State::Unacknowledged);
    let known = |count: Option<u64>| count.expect("the plan has a backend");
    let lost = known(ledger.arrivals.lost) + known(ledger.arrivals.lost_unacknowledged);
    prop_assert_eq!(lost + known(ledger.arrivals.outstanding), absent);
    prop_assert_eq!(ledger.arrivals.duplicates, Some(further(false)));
    prop_assert_eq!(ledger.arrivals.duplicate_own, Some(further(true)));
    let reordered = seen.iter().filter(|id| !copies[**id].is_in_order).count() as u64;
    prop_assert_eq!(ledger.arrivals.reordered, Some(reordered));
    let late = seen.iter().filter(|id| !copies[**id].is_timely).count() as u64;
    prop_assert_eq!(ledger.arrivals.late, (stream.0 == 0).then_some(late));
    Ok(())
}

fn recount_above(
    scope: &ScopeSummary,
    attempts: &BTreeMap<MessageId, Attempt>,
) -> Result<(), TestCaseError> {
    let bound = Micros::from_millis(300);
    if let Some(above) = scope.above(Latency::Response, bound, None) {
        let is_above =
            |a: &&Attempt| State::from(&a.outcome).is_answer() && a.ended - a.due > bound;
        prop_assert_eq!(
            above.above,
            attempts.values().filter(is_above).count() as u64
        );
        prop_assert_eq!(above.n, attempts.len() as u64);
    }
    Ok(())
}

fn copies_of(world: &World, stream: StreamId, backend: BackendId) -> BTreeMap<MessageId, Copies> {
    let mut copies: BTreeMap<MessageId, Copies> = BTreeMap::new();
    let mut next: BTreeMap<(DeviceId, ConsumerId), u32> = BTreeMap::new();
    for (_, fact) in &world.facts {
        let Fact::Arrival(arrival) = fact else {
            continue;
        };
        let Some(id) = arrival.id else { continue };
        if id.run != RUN || id.stream != stream || arrival.backend != backend {
            continue;
        }
        let next = next.entry((id.device, arrival.consumer)).or_default();
        let copy = copies.entry(id).or_default();
        copy.copies += 1;
        copy.is_in_order |= id.seq >= *next;
        copy.is_timely |=
            arrival.seen - arrival.due.expect("it has one") <= Micros::from_millis(1_500);
        if id.seq >= *next && arrival.integrity != Integrity::Corrupted {
            *next = id.seq + 1;
        }
    }
    copies
}
