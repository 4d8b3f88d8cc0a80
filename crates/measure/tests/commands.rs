//! The account of random commands and of subscribers: it closes, no fault of the recording stays
//! unseen, and parts of a run merge to the whole.

use std::collections::BTreeSet;

use muster_measure::{
    Account, Bounds, Calendar, Closing, Cold, Identity, PublishedPlan, QueriesDue, Recorder,
    RecorderPlan, Role, StreamTrack, Summary, Timeline, WindowDelta, query_at,
};
use muster_model::{
    Answer, Answering, Arrival, Attempt, BackendId, Cause, Command, ConsumerId, Delivery, DeviceId,
    Fact, FleetId, Integrity, Issue, Listening, MessageId, Met, Micros, Outcome, Presence, Query,
    QueryOutcome, Reason, Receipt, Reception, Reply, RunId, ShedCause, StreamId, mix,
};
use proptest::prelude::*;

const ORIGIN: Micros = Micros(1_000_000);
const MEASURE: Micros = Micros(5_000_000);
const END: Micros = Micros(20_000_000);
const QUIET: Micros = Micros(2_000_000);
const SHED_AFTER: Micros = Micros(7_000_000);
const RUN: RunId = RunId(9);
const DEVICES: u32 = 4;
const SEQS: u32 = 12;

const UPLINK: StreamId = StreamId(0);
const QUERY: StreamId = StreamId(1);
const TWO_WAY: StreamId = StreamId(2);
const ONE_WAY: StreamId = StreamId(3);
const RECEIVE: StreamId = StreamId(4);

/// Each device has as many messages and commands; every subscriber is to get every uplink.
struct Even;

impl Calendar for Even {
    fn scheduled(&self, stream: StreamId, _: DeviceId) -> Option<u32> {
        Some(if stream == UPLINK || stream == QUERY {
            SEQS
        } else {
            0
        })
    }

    fn warm_up(&self, _: StreamId, _: DeviceId) -> Option<u32> {
        Some(0)
    }

    fn due(&self, _: StreamId, _: DeviceId, seq: u32) -> Option<Micros> {
        Some(due(seq))
    }

    fn nominal(&self, stream: StreamId, until: Micros) -> u64 {
        let count = (0..SEQS).filter(|seq| due(*seq) < until).count() as u64;
        if stream == UPLINK || stream == QUERY {
            count * u64::from(DEVICES)
        } else {
            0
        }
    }

    fn commands(&self, stream: StreamId, _: DeviceId) -> Option<u32> {
        (stream == TWO_WAY || stream == ONE_WAY).then_some(SEQS)
    }

    fn audience(&self, stream: StreamId, each: &mut dyn FnMut(DeviceId, StreamId, DeviceId)) {
        assert_eq!(stream, RECEIVE);
        for subscriber in 0..DEVICES {
            for sender in 0..DEVICES {
                each(DeviceId(subscriber), UPLINK, DeviceId(sender));
            }
        }
    }
}

/// Bounds on each leg: on what it takes in this world, and below it.
fn legs() -> [Vec<Micros>; 3] {
    [
        vec![Micros(1_999), Micros(2_000)],
        vec![Micros(2_500)],
        vec![Micros(3_000_000), Micros(6_000_000)],
    ]
}

fn due(seq: u32) -> Micros {
    ORIGIN + Micros(400_000 * u64::from(seq))
}

fn plan() -> RecorderPlan {
    let track = |role| StreamTrack {
        fleet: FleetId(0),
        first_device: DeviceId(0),
        devices: DEVICES,
        most_per_device: 1_000,
        role,
        answers: role == Role::Uplink,
        closed: None,
        by_order: false,
        deadline: None,
        bounds: Bounds {
            legs: legs(),
            ..Bounds::default()
        },
    };
    let roles = [
        Role::Uplink,
        Role::Query,
        Role::Command,
        Role::Command,
        Role::Receive,
    ];
    RecorderPlan {
        run: RUN,
        warm_up: Micros::ZERO,
        measure: MEASURE,
        streams: roles.map(track).to_vec(),
        fleets: vec![],
        backends: 0,
        store: None,
        cold: Cold::Nothing,
        groups: Vec::new(),
        published: PublishedPlan::Nothing,
    }
}

struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 += 1;
        mix(self.0, 23) % sides
    }
}

/// Everything that happened, as its own accounts and as facts.
struct World {
    own: Account,
    facts: Vec<Fact>,
    dice: Dice,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut world = World {
            own: Account::new(&plan()),
            facts: Vec::new(),
            dice: Dice(mix(seed, 3)),
        };
        for device in (0..DEVICES).map(DeviceId) {
            for seq in 0..SEQS {
                world.uplink(message(UPLINK, device, seq));
                world.query(message(QUERY, device, seq));
                world.command(message(TWO_WAY, device, seq), true);
                world.command(message(ONE_WAY, device, seq), false);
            }
            world.stray(device);
        }
        world
    }

    fn report(&mut self, command: Command) {
        let stream = match &command {
            Command::Query(query) => query.id.stream,
            Command::Issue(issue) => issue.id.stream,
            Command::Met(met) => met.id.stream,
            Command::Receipt(receipt) => receipt.stream,
            Command::Answer(answer) => answer.id.stream,
            Command::Reply(reply) => reply.stream,
        };
        self.own.command(stream).count(&command);
        self.facts.push(Fact::Command(command));
    }

    fn attempt(&mut self, id: MessageId, outcome: Outcome) {
        self.own.sent(&id);
        self.own.ended(&id, &outcome, false);
        self.facts.push(Fact::Attempt(Attempt {
            id,
            due: due(id.seq),
            taken: Some(due(id.seq)),
            sent: Some(due(id.seq)),
            ended: due(id.seq) + Micros(1_000),
            outcome,
            resent: false,
            own: Micros::ZERO,
        }));
    }

    /// A message that is never sent, and is given up after [`SHED_AFTER`].
    fn shed(&mut self, id: MessageId) {
        let outcome = Outcome::Shed(ShedCause::Busy);
        self.own.ended(&id, &outcome, false);
        self.facts.push(Fact::Attempt(Attempt {
            id,
            due: due(id.seq),
            taken: None,
            sent: None,
            ended: due(id.seq) + SHED_AFTER,
            outcome,
            resent: false,
            own: Micros::ZERO,
        }));
    }

    fn uplink(&mut self, id: MessageId) {
        self.attempt(id, Outcome::Accepted);
        for subscriber in (0..DEVICES).map(DeviceId) {
            for _ in 0..self.dice.roll(5) / 2 {
                self.receive(subscriber, Some(id));
            }
        }
    }

    fn receive(&mut self, subscriber: DeviceId, id: Option<MessageId>) {
        let reception = Reception {
            subscriber,
            stream: RECEIVE,
            id,
            due: id.map(|id| due(id.seq)),
            seen: Micros(6_000_000 + self.dice.roll(4_000_000)),
            integrity: self.integrity(),
        };
        let own = self.own.reception(RECEIVE);
        own.consumed += 1;
        own.read(&reception);
        self.facts.push(Fact::Reception(reception));
    }

    fn query(&mut self, id: MessageId) {
        if self.dice.roll(7) == 0 {
            return self.shed(id);
        }
        let (of_query, of_message) = match self.dice.roll(6) {
            0 => (QueryOutcome::NoCommand, Outcome::Accepted),
            1 => (
                QueryOutcome::Rejected(Reason::Mqtt(0x97)),
                Outcome::Rejected(Reason::Mqtt(0x97)),
            ),
            2 => (QueryOutcome::TimedOut, Outcome::TimedOut),
            3 => (
                QueryOutcome::Broken(Cause::Reset),
                Outcome::Broken(Cause::Reset),
            ),
            _ => (QueryOutcome::Received, Outcome::Accepted),
        };
        self.attempt(id, of_message);
        self.report(Command::Query(Query {
            id,
            due: due(id.seq),
            taken: due(id.seq),
            ended: due(id.seq) + Micros(2_000),
            outcome: of_query,
            own: Micros::ZERO,
        }));
    }

    fn command(&mut self, id: MessageId, is_two_way: bool) {
        let delivery = match self.dice.roll(10) {
            0 => Delivery::Undeliverable(Reason::Mqtt(0x10)),
            1 => Delivery::Unknown,
            2 => Delivery::Expired,
            3 => Delivery::Withheld(ShedCause::Offline),
            _ => Delivery::Delivered,
        };
        let is_issued = !matches!(delivery, Delivery::Withheld(_));
        if is_issued {
            self.own
                .command(id.stream)
                .issued
                .add(muster_measure::digest(&id));
        }
        let presence = Presence::ALL[self.dice.roll(4) as usize];
        let at = due(id.seq);
        self.report(Command::Met(Met {
            id,
            due: at,
            presence,
        }));
        self.report(Command::Issue(Issue {
            id,
            due: at,
            ready: at,
            issued: is_issued.then_some(at),
            ended: at + Micros(500),
            delivery,
        }));
        if is_issued && self.dice.roll(4) > 0 {
            for _ in 0..=self.dice.roll(3) / 2 {
                self.receipt(id.device, id.stream, Some(id));
            }
            let digest = muster_measure::digest(&id);
            self.own.command(id.stream).received.add(digest);
            self.answer(id, is_two_way);
        }
    }

    fn receipt(&mut self, device: DeviceId, stream: StreamId, id: Option<MessageId>) {
        self.own.command(stream).taken += 1;
        let integrity = self.integrity();
        let at = due(3) + Micros(self.dice.roll(9_000_000));
        self.report(Command::Receipt(Receipt {
            device,
            stream,
            id,
            at,
            integrity,
        }));
    }

    fn answer(&mut self, id: MessageId, is_two_way: bool) {
        let outcome = match self.dice.roll(9) {
            _ if !is_two_way => Answering::OneWay,
            0 => Answering::Rejected(Reason::Mqtt(0x87)),
            1 => Answering::TimedOut,
            2 => Answering::Broken(Cause::Reset),
            3 => Answering::InFlight,
            4 => Answering::Shed(ShedCause::Offline),
            _ => Answering::Answered,
        };
        let is_sent = !matches!(outcome, Answering::OneWay | Answering::Shed(_));
        if is_sent {
            self.own
                .command(id.stream)
                .replied
                .add(muster_measure::digest(&id));
        }
        let at = due(id.seq) + Micros(9_000);
        self.report(Command::Answer(Answer {
            id,
            due: at,
            sent: is_sent.then_some(at),
            ended: at + Micros(self.dice.0 % 5_000),
            outcome,
            own: Micros::ZERO,
        }));
        if is_sent && self.dice.roll(5) > 0 {
            for _ in 0..=self.dice.roll(4) / 3 {
                self.reply(id.stream, Some(id));
            }
        }
    }

    fn reply(&mut self, stream: StreamId, id: Option<MessageId>) {
        self.own.command(stream).replies_taken += 1;
        let integrity = self.integrity();
        let seen = Micros(7_000_000 + self.dice.roll(3_000_000));
        self.report(Command::Reply(Reply {
            status: None,
            stream,
            id,
            issued: id.map(|id| due(id.seq)),
            seen,
            integrity,
        }));
    }

    /// Copies of other runs, of other devices, and of nothing that can be read.
    fn stray(&mut self, device: DeviceId) {
        let other_run = MessageId {
            run: RunId(10),
            ..message(TWO_WAY, device, 1)
        };
        let other_device = DeviceId((device.0 + 1) % DEVICES);
        let misled = message(TWO_WAY, other_device, 1);
        for id in [Some(other_run), Some(misled), None] {
            self.receipt(device, TWO_WAY, id);
        }
        for id in [Some(other_run), None] {
            self.reply(TWO_WAY, id);
            self.receive(device, id);
        }
    }

    fn integrity(&mut self) -> Integrity {
        match self.dice.roll(12) {
            0 => Integrity::Corrupted,
            _ => Integrity::Intact,
        }
    }

    /// The facts as so many recorders hear them, each its own share.
    fn record(&self, facts: &[Fact], recorders: usize) -> (WindowDelta, Identity) {
        self.record_by(&plan(), facts, recorders)
    }

    fn record_by(
        &self,
        plan: &RecorderPlan,
        facts: &[Fact],
        recorders: usize,
    ) -> (WindowDelta, Identity) {
        let mut heard: Vec<_> = (0..recorders)
            .map(|_| Recorder::new(plan.clone()))
            .collect();
        heard.iter_mut().for_each(|recorder| recorder.start(ORIGIN));
        for fact in facts {
            heard[share(fact) % recorders].fact(fact);
        }
        let mut windows = WindowDelta::default();
        let mut identity = Identity::new(plan);
        for mut recorder in heard {
            windows.merge(&recorder.flush(END));
            identity.merge(recorder.finish());
        }
        (windows, identity)
    }

    fn close(&self, facts: &[Fact], recorders: usize) -> Summary {
        let (windows, identity) = self.record(facts, recorders);
        summary(&self.own, &windows, &identity)
    }
}

/// Devices are told of by one recorder, the backend by another.
fn share(fact: &Fact) -> usize {
    match fact {
        Fact::Command(Command::Issue(_) | Command::Reply(_)) => 1,
        Fact::Command(
            Command::Query(_) | Command::Met(_) | Command::Receipt(_) | Command::Answer(_),
        )
        | Fact::Attempt(_)
        | Fact::Arrival(_)
        | Fact::Link(_)
        | Fact::Reception(_) => 0,
    }
}

fn summary(own: &Account, windows: &WindowDelta, identity: &Identity) -> Summary {
    summary_by(&plan(), own, windows, identity)
}

fn summary_by(
    plan: &RecorderPlan,
    own: &Account,
    windows: &WindowDelta,
    identity: &Identity,
) -> Summary {
    Closing {
        plan,
        windows,
        identity: Some(identity),
        account: Some(own),
        calendar: Some(&Even),
        timeline: Timeline::starting(ORIGIN, Micros::ZERO, MEASURE),
        end: END,
        listening: Listening::until(END),
        devices_until: END,
        has_one_clock: true,
        quiet: QUIET,
        lost_ranges_most: 1_000,
    }
    .summary()
}

fn message(stream: StreamId, device: DeviceId, seq: u32) -> MessageId {
    MessageId {
        run: RUN,
        device,
        stream,
        seq,
    }
}

fn commands_of(summary: &Summary) -> &muster_measure::CommandLedger {
    &summary
        .run
        .command
        .as_ref()
        .expect("there are commands")
        .ledger
}

fn residue_of(summary: &Summary) -> u64 {
    summary.residue.expect("nothing is missing")
}

/// An id where there is none, and none where there is one.
fn other_id(id: Option<MessageId>, device: DeviceId) -> Option<MessageId> {
    match id {
        None => Some(message(TWO_WAY, device, 900)),
        Some(_) => None,
    }
}

/// A fact of the same kind that says something else.
fn altered(fact: &Fact, which: u64) -> Fact {
    let mut fact = *fact;
    let Fact::Command(command) = &mut fact else {
        return fact;
    };
    match command {
        Command::Query(query) if which == 0 => query.id.seq += 100,
        Command::Query(query) => {
            query.outcome = match query.outcome {
                QueryOutcome::Received => QueryOutcome::InFlight,
                QueryOutcome::NoCommand
                | QueryOutcome::Rejected(_)
                | QueryOutcome::TimedOut
                | QueryOutcome::Broken(_)
                | QueryOutcome::InFlight => QueryOutcome::Received,
            };
        }
        Command::Issue(issue) if which == 0 => issue.id.seq += 100,
        Command::Issue(issue) => {
            issue.delivery = match issue.delivery {
                Delivery::Undeliverable(_) => Delivery::Undeliverable(Reason::Mqtt(0x87)),
                Delivery::Delivered => Delivery::Unknown,
                Delivery::Expired | Delivery::Unknown | Delivery::Withheld(_) => {
                    Delivery::Delivered
                }
            };
        }
        Command::Met(met) if which == 0 => met.id.seq += 100,
        Command::Met(met) => {
            met.presence = match met.presence {
                Presence::Online => Presence::Offline,
                Presence::Offline | Presence::Reconnected | Presence::Waiting => Presence::Online,
            };
        }
        Command::Receipt(receipt) if which == 0 => {
            receipt.id = other_id(receipt.id, receipt.device);
        }
        Command::Receipt(receipt) => receipt.device = DeviceId(receipt.device.0 ^ 1),
        Command::Answer(answer) if which == 0 => answer.id.seq += 100,
        Command::Answer(answer) => {
            answer.outcome = match answer.outcome {
                Answering::Answered => Answering::TimedOut,
                Answering::OneWay
                | Answering::Rejected(_)
                | Answering::TimedOut
                | Answering::Broken(_)
                | Answering::InFlight
                | Answering::Shed(_) => Answering::Answered,
            };
        }
        Command::Reply(reply) if which == 0 => {
            reply.id = other_id(reply.id, DeviceId(0));
        }
        Command::Reply(reply) => {
            reply.integrity = match reply.integrity {
                Integrity::Intact => Integrity::Corrupted,
                Integrity::Corrupted | Integrity::Unchecked => Integrity::Intact,
            };
            // A damaged one has no id whose digest could tell.
            if let (None, stream) = (reply.id, reply.stream) {
                reply.id = Some(message(stream, DeviceId(1), 901));
            }
        }
    }
    fact
}

/// Each beginning of a leg while measuring, with how long it took where it came to an end.
fn recount(facts: &[Fact], leg: usize) -> Vec<Option<Micros>> {
    let is_measured = |at: &Micros| (ORIGIN..ORIGIN + MEASURE).contains(at);
    let begun = facts.iter().filter_map(|fact| match fact {
        Fact::Command(command) => began(facts, leg, command),
        Fact::Attempt(_) => shed_query(fact).filter(|_| leg == 0).map(|due| (due, None)),
        Fact::Arrival(_) | Fact::Link(_) | Fact::Reception(_) => None,
    });
    begun
        .filter(|(at, _)| is_measured(at))
        .map(|(_, took)| took)
        .collect()
}

/// Due instant of a query that was never sent; none of any other fact.
fn shed_query(fact: &Fact) -> Option<Micros> {
    let Fact::Attempt(attempt) = fact else {
        return None;
    };
    let is_shed = attempt.id.stream == QUERY && attempt.sent.is_none();
    is_shed.then_some(attempt.due)
}

/// The queries that were due so, by their end.
fn queries_due(facts: &[Fact], is_wanted: impl Fn(u32, Micros) -> bool) -> QueriesDue {
    let mut due = QueriesDue::default();
    for fact in facts {
        if let Fact::Command(Command::Query(query)) = fact
            && is_wanted(query.id.seq, query.due)
        {
            due.ends[query_at(&query.outcome)] += 1;
        }
        if let (Fact::Attempt(attempt), Some(at)) = (fact, shed_query(fact)) {
            due.shed += u64::from(is_wanted(attempt.id.seq, at));
        }
    }
    due
}

/// Replies that were due so and were answered, and commands that were issued so and whose reply came.
fn replied(facts: &[Fact], is_wanted: impl Fn(u32, Micros) -> bool) -> [u64; 2] {
    let mut answered = 0;
    let mut seen = BTreeSet::new();
    for fact in facts {
        match fact {
            Fact::Command(Command::Answer(answer)) => {
                let is_answered =
                    matches!(answer.outcome, Answering::Answered | Answering::Rejected(_));
                answered += u64::from(is_answered && is_wanted(answer.id.seq, answer.due));
            }
            Fact::Command(Command::Reply(reply)) => {
                let its = reply.id.filter(|id| id.run == RUN).zip(reply.issued);
                let its = its.filter(|(id, at)| is_wanted(id.seq, *at));
                seen.extend(its.map(|(id, _)| (id.stream, id.device, id.seq)));
            }
            Fact::Command(_)
            | Fact::Attempt(_)
            | Fact::Arrival(_)
            | Fact::Link(_)
            | Fact::Reception(_) => {}
        }
    }
    [answered, seen.len() as u64]
}

/// Beginning of a leg, if the command begins it, and its time, if it ended.
fn began(facts: &[Fact], leg: usize, command: &Command) -> Option<(Micros, Option<Micros>)> {
    if let (0, Command::Query(query)) = (leg, command) {
        let is_ended = matches!(
            query.outcome,
            QueryOutcome::Received | QueryOutcome::NoCommand | QueryOutcome::Rejected(_)
        );
        return Some((query.due, is_ended.then(|| query.ended - query.due)));
    }
    if let (1, Command::Answer(answer)) = (leg, command) {
        let is_ended = matches!(answer.outcome, Answering::Answered | Answering::Rejected(_));
        let took = is_ended.then(|| answer.ended - answer.due);
        return (answer.outcome != Answering::OneWay).then_some((answer.due, took));
    }
    if let (2, Command::Issue(issue)) = (leg, command) {
        let at = issue.issued.unwrap_or(issue.due);
        let seen = first_reply(facts, issue.id);
        let seen = seen.filter(|_| !issue.delivery.excuses_the_reply());
        return Some((at, seen.map(|seen| seen - at)));
    }
    None
}

/// Commands of the measured cohort that the platform said their devices cannot have.
fn excused(facts: &[Fact]) -> u64 {
    let is_excused = |fact: &&Fact| {
        matches!(fact, Fact::Command(Command::Issue(issue))
            if issue.delivery.excuses_the_reply() && issue.due < ORIGIN + MEASURE)
    };
    facts.iter().filter(is_excused).count() as u64
}

fn first_reply(facts: &[Fact], id: MessageId) -> Option<Micros> {
    facts.iter().find_map(|fact| {
        let Fact::Command(Command::Reply(reply)) = fact else {
            return None;
        };
        (reply.id == Some(id)).then_some(reply.seen)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// The account closes with any queries, commands, replies and subscribers, and each term equals
    /// a plain recount of the facts.
    #[test]
    fn the_account_closes_and_is_the_recounts(seed: u64) {
        let world = World::new(seed);
        let summary = world.close(&world.facts, 1);
        let ledger = commands_of(&summary);
        prop_assert_eq!(&ledger.equations, &vec![]);
        prop_assert_eq!(ledger.residue, Some(0));
        let subscribers = &summary.run.reception.as_ref().unwrap().ledger;
        prop_assert_eq!(&subscribers.equations, &vec![]);
        prop_assert_eq!(residue_of(&summary), 0);
        let count = |is_it: &dyn Fn(&Command) -> bool| {
            let commands = world.facts.iter().filter_map(|fact| match fact {
                Fact::Command(command) => Some(command),
                Fact::Attempt(_) | Fact::Arrival(_) | Fact::Link(_) | Fact::Reception(_) => None,
            });
            commands.filter(|command| is_it(command)).count() as u64
        };
        let delivered = count(&|c| matches!(c, Command::Issue(i) if i.delivery == Delivery::Delivered));
        prop_assert_eq!(ledger.delivered, delivered);
        let withheld = count(&|c| matches!(c, Command::Issue(Issue { delivery: Delivery::Withheld(_), .. })));
        prop_assert_eq!(ledger.issued + withheld, u64::from(2 * DEVICES * SEQS));
        prop_assert_eq!(ledger.scheduled, Some(u64::from(2 * DEVICES * SEQS)));
        prop_assert_eq!(ledger.queries, count(&|c| matches!(c, Command::Query(_))));
        let answered = count(&|c| matches!(c, Command::Answer(a) if a.outcome == Answering::Answered));
        prop_assert_eq!(ledger.answered, answered);
        let parts = [ledger.replies_arrived, ledger.replies_lost, ledger.replies_outstanding];
        prop_assert_eq!(parts.into_iter().flatten().sum::<u64>(), answered);
        let copies = ledger.received + ledger.received_again + ledger.received_foreign + ledger.received_damaged;
        prop_assert_eq!(copies, count(&|c| matches!(c, Command::Receipt(_))));
        let rows = ledger.by_presence.values();
        prop_assert_eq!(rows.map(|row| row.received).sum::<u64>(), ledger.received);
        prop_assert_eq!(subscribers.expected, Some(u64::from(DEVICES * DEVICES * SEQS)));
        let arrived = subscribers.by_subscriber.iter().map(|row| row.arrived).sum::<u64>();
        prop_assert_eq!(arrived, subscribers.arrived);
    }

    /// Counts of legs that began, ended and exceeded each bound equal a plain recount of the facts.
    #[test]
    fn the_legs_are_the_recounts(seed: u64) {
        let world = World::new(seed);
        let summary = world.close(&world.facts, 2);
        let found = &summary.run.command.as_ref().unwrap().legs;
        for (place, bounds) in legs().iter().enumerate() {
            let took = recount(&world.facts, place);
            prop_assert_eq!(found[place].begun, took.len() as u64);
            let ended: Vec<Micros> = took.into_iter().flatten().collect();
            prop_assert_eq!(found[place].ended, ended.len() as u64);
            let excused = if place == 2 { excused(&world.facts) } else { 0 };
            prop_assert_eq!(found[place].excused, excused);
            for bound in bounds {
                let above = ended.iter().filter(|took| *took > bound).count() as u64;
                prop_assert_eq!(found[place].above[bound], above, "leg {} above {}", place, bound);
            }
        }
    }

    /// Every query that was due while measuring counts by its end, whether it was sent or not, in the
    /// share of those with a command as in the times that are printed of all due.
    #[test]
    fn the_queries_of_the_measured_cohort_are_the_recounts(seed: u64) {
        let world = World::new(seed);
        let summary = world.close(&world.facts, 2);
        let found = summary.run.command.as_ref().unwrap();
        let is_measured = |due: Micros| due < ORIGIN + MEASURE;
        let queries = world.facts.iter().filter_map(|fact| {
            let Fact::Command(Command::Query(query)) = fact else { return None };
            is_measured(query.due).then_some(query)
        });
        let queries: Vec<&Query> = queries.collect();
        let shed = world.facts.iter().filter_map(shed_query).filter(|due| is_measured(*due)).count();
        for (place, count) in found.measured.queries.ends.iter().enumerate() {
            let ended = queries.iter().filter(|query| query_at(&query.outcome) == place);
            prop_assert_eq!(*count, ended.count() as u64);
        }
        prop_assert_eq!(found.measured.queries.shed, shed as u64);
        prop_assert_eq!(found.measured.queries.due(), (queries.len() + shed) as u64);
        let printed = &found.measured.request;
        prop_assert_eq!(printed.known.count + printed.censored.count, found.measured.queries.due());
        let longest = if shed > 0 { SHED_AFTER } else { Micros(2_000) };
        prop_assert_eq!(printed.known.max_us.max(printed.censored.max_us), longest.get());
    }

    /// Queries, commands and replies that began cold stand apart from the others, leg by leg, as a plain
    /// recount of the facts says; and the account closes as it does without.
    #[test]
    fn what_began_cold_stands_apart(seed: u64) {
        let world = World::new(seed);
        let whole = world.close(&world.facts, 1);
        let whole = whole.run.command.as_ref().unwrap();
        prop_assert!(whole.cold.is_none() && whole.warm.is_none());
        for cold in [Cold::FirstMessage, Cold::First(Micros::from_secs(2))] {
            let plan = RecorderPlan { cold, ..plan() };
            let (windows, identity) = world.record_by(&plan, &world.facts, 2);
            let summary = summary_by(&plan, &world.own, &windows, &identity);
            prop_assert_eq!(residue_of(&summary), 0);
            let found = summary.run.command.as_ref().unwrap();
            prop_assert_eq!((&found.ledger, found.measured.queries), (&whole.ledger, whole.measured.queries));
            prop_assert_eq!(&found.measured.request, &whole.measured.request);
            prop_assert_eq!(&found.measured.round, &whole.measured.round);
            for (is_cold, part) in [(true, &found.cold), (false, &found.warm)] {
                let part = part.as_ref().unwrap();
                let is_its = |seq, at| {
                    cold.holds(seq, Some(at), ORIGIN) == is_cold && at < ORIGIN + MEASURE
                };
                let due = queries_due(&world.facts, is_its);
                prop_assert_eq!(part.queries, due);
                prop_assert_eq!(part.request.known.count, due.ends[0] + due.ends[2]);
                prop_assert_eq!(part.request.known.count + part.request.censored.count, due.due());
                let replied = replied(&world.facts, is_its);
                prop_assert_eq!([part.response.known.count, part.round.known.count], replied);
            }
        }
    }

    /// A fact of a command or of a subscriber that is dropped, doubled or altered leaves a residue.
    #[test]
    fn no_fault_of_the_recording_stays_unseen(seed: u64, at: prop::sample::Index, fault in 0u64..4) {
        let world = World::new(seed);
        let told: Vec<usize> = (0..world.facts.len())
            .filter(|at| matches!(world.facts[*at], Fact::Command(_) | Fact::Reception(_)))
            .collect();
        let at = told[at.index(told.len())];
        let mut facts = world.facts.clone();
        match fault {
            0 => {
                facts.remove(at);
            }
            1 => facts.push(facts[at]),
            which => {
                let Fact::Command(_) = facts[at] else { return Ok(()) };
                facts[at] = altered(&facts[at], which - 2);
            }
        }
        let summary = world.close(&facts, 1);
        prop_assert!(residue_of(&summary) > 0, "{:?}", world.facts[at]);
        if let Fact::Command(_) = world.facts[at] {
            prop_assert!(commands_of(&summary).residue > Some(0), "{:?}", world.facts[at]);
        }
    }

    /// Recorders of several processes merge to what one would have recorded.
    #[test]
    fn parts_merge_to_the_whole(seed: u64) {
        let world = World::new(seed);
        let (whole, whole_sets) = world.record(&world.facts, 1);
        let (parts, part_sets) = world.record(&world.facts, 2);
        prop_assert_eq!(&whole, &parts);
        prop_assert_eq!(&whole_sets, &part_sets);
        let one = summary(&world.own, &whole, &whole_sets);
        prop_assert_eq!(one, summary(&world.own, &parts, &part_sets));
    }
}

#[test]
fn what_was_delivered_and_not_received_is_listed() {
    let world = World::new(5);
    let received: Vec<MessageId> = world
        .facts
        .iter()
        .filter_map(|fact| match fact {
            Fact::Command(Command::Receipt(receipt)) => {
                receipt.id.filter(|id| id.device == receipt.device)
            }
            Fact::Attempt(_)
            | Fact::Arrival(_)
            | Fact::Link(_)
            | Fact::Command(_)
            | Fact::Reception(_) => None,
        })
        .collect();
    let mut missing: Vec<(StreamId, DeviceId, u32)> = world
        .facts
        .iter()
        .filter_map(|fact| match fact {
            Fact::Command(Command::Issue(issue)) if issue.delivery == Delivery::Delivered => {
                Some(issue.id)
            }
            Fact::Attempt(_)
            | Fact::Arrival(_)
            | Fact::Link(_)
            | Fact::Command(_)
            | Fact::Reception(_) => None,
        })
        .filter(|id| !received.contains(id))
        .map(|id| (id.stream, id.device, id.seq))
        .collect();
    let summary = world.close(&world.facts, 1);
    let ledger = commands_of(&summary);
    let mut listed = Vec::new();
    for lost in &ledger.not_received.lost {
        for [from, to] in &lost.ranges {
            listed.extend((*from..=*to).map(|seq| (lost.stream, lost.device, seq)));
        }
    }
    missing.sort_unstable();
    listed.sort_unstable();
    assert!(!missing.is_empty());
    assert_eq!(listed, missing);
    assert_eq!(ledger.delivered_not_received, Some(missing.len() as u64));
}

/// One command of the schedule, issued so long after it came due and after it could go.
fn issued_late(late: Micros, held: Micros) -> Command {
    let at = due(1);
    Command::Issue(Issue {
        id: message(TWO_WAY, DeviceId(0), 1),
        due: at,
        ready: at + held,
        issued: Some(at + held + late),
        ended: at + held + late + Micros(500),
        delivery: Delivery::Delivered,
    })
}

#[test]
fn a_command_is_late_from_when_it_could_go() {
    let mut world = World::new(1);
    world.facts = vec![Fact::Command(issued_late(Micros(3_000), Micros(900_000)))];
    let summary = world.close(&world.facts, 1);
    let lateness = &summary.run.command.as_ref().unwrap().lateness.known;
    assert_eq!((lateness.count, lateness.sum_us), (1, 3_000));
}

#[test]
fn a_reply_may_still_come_while_its_backend_is_not_quiet() {
    let lost_with = |arrival: Option<Micros>| {
        let plan = RecorderPlan {
            backends: 1,
            ..plan()
        };
        let mut recorder = Recorder::new(plan.clone());
        recorder.start(ORIGIN);
        let (id, at) = (message(TWO_WAY, DeviceId(0), 1), due(1));
        recorder.command(&Command::Answer(Answer {
            id,
            due: at,
            sent: Some(at),
            ended: at,
            outcome: Answering::Answered,
            own: Micros::ZERO,
        }));
        if let Some(seen) = arrival {
            recorder.fact(&Fact::Arrival(Arrival {
                id: Some(message(UPLINK, DeviceId(0), 1)),
                due: Some(due(1)),
                seen,
                backend: BackendId(0),
                consumer: ConsumerId(0),
                integrity: Integrity::Intact,
                own: Micros::ZERO,
            }));
        }
        let mut windows = WindowDelta::default();
        windows.merge(&recorder.flush(END));
        let identity = recorder.finish();
        let closing = Closing {
            plan: &plan,
            windows: &windows,
            identity: Some(&identity),
            account: Some(&Account::new(&plan)),
            calendar: Some(&Even),
            timeline: Timeline::starting(ORIGIN, Micros::ZERO, MEASURE),
            end: END,
            listening: Listening::until(END),
            devices_until: END,
            has_one_clock: true,
            quiet: QUIET,
            lost_ranges_most: 1_000,
        };
        let summary = closing.summary();
        let ledger = commands_of(&summary);
        (ledger.replies_lost, ledger.replies_outstanding)
    };
    let just_now = END - Micros(1);
    assert_eq!(lost_with(None), (Some(1), Some(0)));
    assert_eq!(lost_with(Some(just_now)), (Some(0), Some(1)));
}
