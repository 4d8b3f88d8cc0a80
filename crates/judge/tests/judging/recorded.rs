//! The same messages through a real recorder are judged the same: the figures that this crate
//! reads mean what it takes them to mean.

use muster_judge::{
    Allowance, Figure, Latency, Percentile, RuleOutcome, Rules, RunResult, Scope, Share, SloBound,
    Verdict,
};
use muster_measure::{
    Account, Bounds, Calendar, Closing, Cold, FleetTrack, PublishedPlan, Recorder, RecorderPlan,
    Role, StreamTrack, Summary,
};
use muster_model::{
    Arrival, Attempt, BackendId, Cause, ConsumerId, DeviceId, FleetId, Integrity, LinkEvent,
    LinkFact, LinkId, Listening, MessageId, Micros, Outcome, Reason, RunId, ShedCause, StreamId,
};

use crate::run::{MEASURE, Message, ORIGIN, Run, rule};

const DEVICES: u32 = 10;
const LINKS: u32 = 100;

/// The messages of a run, dealt round to the devices.
struct Dealt<'a>(&'a [Message]);

impl Dealt<'_> {
    fn id(n: usize) -> MessageId {
        let n = n as u32;
        let (device, seq) = (DeviceId(n % DEVICES), n / DEVICES);
        MessageId {
            run: RunId(7),
            device,
            stream: StreamId(0),
            seq,
        }
    }

    fn before(&self, until: Micros) -> impl Iterator<Item = usize> {
        let due = self
            .0
            .iter()
            .enumerate()
            .filter(move |(_, message)| message.due < until.0);
        due.map(|(n, _)| n)
    }

    fn count(&self, device: DeviceId, until: Micros) -> u32 {
        self.before(until)
            .filter(|n| Self::id(*n).device == device)
            .count() as u32
    }
}

impl Calendar for Dealt<'_> {
    fn scheduled(&self, _: StreamId, device: DeviceId) -> Option<u32> {
        Some(self.count(device, Micros::MAX))
    }

    fn warm_up(&self, _: StreamId, device: DeviceId) -> Option<u32> {
        Some(self.count(device, Micros::from_secs(MEASURE)))
    }

    fn due(&self, _: StreamId, device: DeviceId, seq: u32) -> Option<Micros> {
        let message = self.0.get((seq * DEVICES + device.0) as usize);
        message.map(|message| Micros(message.due))
    }

    fn nominal(&self, _: StreamId, until: Micros) -> u64 {
        self.before(until).count() as u64
    }
}

fn plan(run: &Run) -> RecorderPlan {
    let bounds = |of: Latency| run.rules.thresholds(of, FleetId(0), StreamId(0));
    let stream = StreamTrack {
        fleet: FleetId(0),
        first_device: DeviceId(0),
        devices: DEVICES,
        most_per_device: 1_000_000,
        role: Role::Uplink,
        answers: true,
        closed: None,
        by_order: false,
        deadline: None,
        bounds: Bounds {
            response: bounds(Latency::Response),
            service: bounds(Latency::Service),
            lateness: bounds(Latency::Lateness),
            held: Vec::new(),
            end_to_end: bounds(Latency::EndToEnd),
            ..Bounds::default()
        },
    };
    RecorderPlan {
        run: RunId(7),
        warm_up: Micros::from_secs(MEASURE - ORIGIN),
        measure: Micros::from_secs(run.measure_s),
        streams: vec![stream],
        fleets: vec![FleetTrack {
            first_link: LinkId(0),
            links: LINKS,
            devices_per_link: 1,
        }],
        backends: 1,
        store: None,
        cold: Cold::Nothing,
        groups: Vec::new(),
        published: PublishedPlan::Nothing,
    }
}

/// The run as a recorder sums it up.
fn recorded(run: &Run) -> Summary {
    recorded_in_steps(run, &[]).0
}

/// The run and its steps, which begin in these seconds.
pub(crate) fn recorded_in_steps(run: &Run, starts: &[u32]) -> (Summary, Vec<Summary>) {
    let plan = plan(run);
    let (mut recorder, mut account) = (Recorder::new(plan.clone()), Account::new(&plan));
    connect(&mut recorder, &mut account);
    recorder.start(Micros::from_secs(ORIGIN));
    for (n, message) in run.messages.iter().enumerate() {
        tell_attempt(Dealt::id(n), message, &mut recorder, &mut account);
        tell_arrival(Dealt::id(n), message, &mut recorder, &mut account);
    }
    (0..LINKS).for_each(|_| account.open_at_end());
    let end = run.end();
    let (windows, timeline) = (recorder.flush(end), recorder.timeline());
    let identity = recorder.finish();
    let closing = Closing {
        plan: &plan,
        windows: &windows,
        identity: Some(&identity),
        account: Some(&account),
        calendar: Some(&Dealt(&run.messages)),
        timeline,
        end,
        listening: Listening::until(end),
        devices_until: end,
        has_one_clock: true,
        quiet: Micros::from_secs(3),
        lost_ranges_most: 100,
    };
    closing.summary_in_steps(starts)
}

fn connect(recorder: &mut Recorder, account: &mut Account) {
    let at = Micros::from_secs(1);
    for link in (0..LINKS).map(LinkId) {
        recorder.opened(link, at);
        account.opened();
        let event = LinkEvent::Connected { took: Micros(300) };
        recorder.link(&LinkFact {
            link,
            at,
            event,
            by_us: false,
        });
        account.connected(link);
    }
}

fn tell_attempt(id: MessageId, message: &Message, recorder: &mut Recorder, account: &mut Account) {
    let due = Micros(message.due);
    let taken = due + Micros(message.late);
    let attempt = Attempt {
        id,
        due,
        taken: Some(taken),
        sent: message.is_sent().then_some(taken + Micros(message.held)),
        ended: Micros(message.ended),
        outcome: message.outcome,
        resent: false,
        own: Micros(message.own),
    };
    if attempt.sent.is_some() {
        account.sent(&id);
    }
    account.ended(&id, &attempt.outcome, attempt.resent);
    recorder.attempt(&attempt);
}

fn tell_arrival(id: MessageId, message: &Message, recorder: &mut Recorder, account: &mut Account) {
    let Some(seen) = message.seen.map(Micros) else {
        return;
    };
    account.consumed(BackendId(0));
    recorder.copies(BackendId(0), seen).consumed += 1;
    account.read(BackendId(0), Some(&id), Integrity::Intact);
    recorder.arrival(&Arrival {
        id: Some(id),
        due: Some(Micros(message.due)),
        seen,
        backend: BackendId(0),
        consumer: ConsumerId(0),
        integrity: Integrity::Intact,
        own: Micros(message.own_seen),
    });
}

/// Every rule's name, outcome, observation and date.
fn words(verdict: &Verdict) -> Vec<(&str, &RuleOutcome, Option<Figure>, Option<u32>)> {
    let rules = verdict.rules.iter();
    rules
        .map(|r| (r.rule.as_str(), &r.outcome, r.observed, r.since_s))
        .collect()
}

fn assert_judged_alike(run: &Run) -> Verdict {
    let (ours, recorded) = (run.judged(), run.judged_by(&recorded(run)));
    assert_eq!(words(&recorded), words(&ours));
    assert_eq!(recorded.result, ours.result);
    recorded
}

fn strict() -> Rules {
    let p99 = |of: Latency, ms: u64| SloBound::Latency {
        of,
        percentile: Percentile::P99,
        at_most: Micros::from_millis(ms),
    };
    let bounds = [
        SloBound::Loss(Allowance::Count(0)),
        SloBound::FailureRatio(Share::whole_percent(1)),
        SloBound::Connected(Share::ONE),
        SloBound::Disconnects(Allowance::Count(0)),
        p99(Latency::Response, 40),
        p99(Latency::EndToEnd, 15),
        SloBound::Stable,
    ];
    let rules = Rules::builder(true);
    bounds
        .into_iter()
        .fold(rules, |rules, bound| rules.slo(Scope::Run, bound))
        .build()
}

#[test]
fn a_healthy_run_is_judged_alike() {
    let mut run = Run::healthy(100, 35);
    run.rules = strict();
    let verdict = assert_judged_alike(&run);
    assert_eq!(verdict.result, RunResult::Pass, "{verdict:#?}");
}

#[test]
fn a_run_of_every_outcome_is_judged_alike() {
    let mut run = Run::healthy(100, 35);
    run.rules = strict();
    for (n, message) in run.messages.iter_mut().enumerate() {
        match n % 97 {
            3 => message.ends(Outcome::Rejected(Reason::Mqtt(0x97))),
            7 => message.ended = message.due + 41_000,
            11 => message.outcome = Outcome::Rejected(Reason::Mqtt(0x80)),
            20 => message.ends(Outcome::Broken(Cause::Reset)),
            30 => {
                message.ends(Outcome::TimedOut);
                message.ended = message.due + 10_000_000;
            }
            40 => {
                message.ends(Outcome::Shed(ShedCause::QueueFull));
                message.ended = message.due + 30;
            }
            50 => message.seen = None,
            60 => message.seen = Some(message.due + 15_001),
            70 => message.ends(Outcome::InFlight),
            80 => message.outcome = Outcome::TimedOut,
            _ => {}
        }
    }
    let verdict = assert_judged_alike(&run);
    assert_eq!(rule(&verdict, "loss").observed, Some(Figure::Count(38)));
    let expected = ["loss", "failure-ratio", "response p99", "end-to-end p99"];
    assert_eq!(crate::run::failed(&verdict), expected);
}

#[test]
fn an_overload_is_judged_alike() {
    let mut run = Run::healthy(100, 60);
    run.rules = strict();
    for message in &mut run.messages {
        let behind = (message.due - ORIGIN * 1_000_000) / 20;
        message.ended += behind;
        message.seen = message.seen.map(|seen| seen + behind);
    }
    let verdict = assert_judged_alike(&run);
    assert_eq!(
        crate::run::failed(&verdict),
        ["response p99", "end-to-end p99", "stable"]
    );
}
