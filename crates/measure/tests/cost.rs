//! Cost of recording in memory: nothing a message, little a device, a bit a message that is lost at
//! random.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use muster_measure::{
    Bounds, Cold, FleetTrack, PublishedPlan, Recorder, RecorderPlan, Role, StreamTrack,
};
use muster_model::{
    Answer, Answering, Arrival, Attempt, BackendId, Cause, Command, ConsumerId, Delivery, DeviceId,
    FleetId, Integrity, Issue, LinkId, MessageId, Met, Micros, Outcome, Presence, Reason, Receipt,
    Reception, Reply, RunId, ShedCause, StreamId, mix,
};

#[global_allocator]
static COUNTING: Counting = Counting;

thread_local! {
    /// Allocations of this thread, and the bytes it holds.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    static HELD: Cell<i64> = const { Cell::new(0) };
}

struct Counting;

fn count(bytes: i64, is_new: bool) {
    ALLOCATIONS.with(|all| all.set(all.get() + u64::from(is_new)));
    HELD.with(|held| held.set(held.get() + bytes));
}

#[expect(
    unsafe_code,
    reason = "an allocator that counts can be written in no other way"
)]
// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64, true);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(-(layout.size() as i64), false);
        unsafe { System.dealloc(at, layout) }
    }
}

const DEVICES: u32 = 1_000;

fn plan(devices: u32) -> RecorderPlan {
    RecorderPlan {
        run: RunId(1),
        warm_up: Micros::ZERO,
        measure: Micros::from_secs(1_000_000),
        streams: vec![StreamTrack {
            fleet: FleetId(0),
            first_device: DeviceId(0),
            devices,
            most_per_device: u32::MAX,
            role: Role::Uplink,
            answers: true,
            closed: None,
            by_order: false,
            deadline: Some(Micros::from_secs(1)),
            bounds: Bounds {
                response: vec![Micros::from_millis(5)],
                ..Bounds::default()
            },
        }],
        fleets: vec![FleetTrack {
            first_link: LinkId(0),
            links: devices,
            devices_per_link: 1,
        }],
        backends: 1,
        store: None,
        cold: Cold::Nothing,
        groups: Vec::new(),
        published: PublishedPlan::Nothing,
    }
}

fn id(device: u32, seq: u32) -> MessageId {
    MessageId {
        run: RunId(1),
        device: DeviceId(device),
        stream: StreamId(0),
        seq,
    }
}

fn tell_attempt(recorder: &mut Recorder, id: MessageId, due: Micros, outcome: Outcome) {
    let taken = due + Micros(mix(1, u64::from(id.seq)) % 2_000);
    let sent = (!matches!(outcome, Outcome::Shed(_))).then_some(taken + Micros(50));
    let ended = taken + Micros(mix(2, u64::from(id.seq)) % 20_000);
    let taken = Some(taken);
    recorder.attempt(&Attempt {
        id,
        due,
        taken,
        sent,
        ended,
        outcome,
        resent: false,
        own: Micros::ZERO,
    });
}

fn tell_arrival(recorder: &mut Recorder, id: Option<MessageId>, due: Micros) {
    recorder.copies(BackendId(0), due).consumed += 1;
    recorder.arrival(&Arrival {
        id,
        due: id.map(|_| due),
        seen: due + Micros(3_000),
        backend: BackendId(0),
        consumer: ConsumerId(0),
        integrity: Integrity::Intact,
        own: Micros::ZERO,
    });
}

/// A round of every device: most accepted and arrived in order, some answered late across the
/// border of the second, some rejected, timed out, broken or shed, some arriving twice.
fn round(recorder: &mut Recorder, seq: u32) {
    for device in 0..DEVICES {
        let due = Micros(u64::from(seq) * 10_000 + u64::from(device) * 10);
        let id = id(device, seq);
        let outcome = match device % 97 {
            0 => Outcome::Rejected(Reason::Mqtt(0x97)),
            1 => Outcome::TimedOut,
            2 => Outcome::Broken(Cause::Reset),
            3 => Outcome::Shed(ShedCause::Offline),
            _ => Outcome::Accepted,
        };
        tell_attempt(recorder, id, due, outcome);
        recorder.counts(StreamId(0), due).session.bytes_wire += 120;
        tell_arrival(recorder, Some(id), due);
        if device % 101 == 0 {
            tell_arrival(recorder, Some(id), due);
            tell_arrival(recorder, None, due);
        }
    }
}

#[test]
fn no_message_allocates_once_the_memory_is_warm() {
    let recorder = Recorder::new(plan(DEVICES));
    assert_eq!(allocations(recorder, round), 0, "of 98,000 messages");
}

/// Allocations of 98 rounds once some seconds of them have been flushed.
fn allocations(mut recorder: Recorder, round: impl Fn(&mut Recorder, u32)) -> u64 {
    recorder.start(Micros::ZERO);
    for second in 0..4 {
        (second * 100..second * 100 + 100).for_each(|seq| round(&mut recorder, seq));
        drop(recorder.flush(Micros::from_secs(u64::from(second))));
    }
    round(&mut recorder, 400);
    let before = ALLOCATIONS.get();
    (401..499).for_each(|seq| round(&mut recorder, seq));
    ALLOCATIONS.get() - before
}

#[test]
fn a_device_takes_at_most_96_bytes() {
    const MANY: u32 = 100_000;
    let held = |devices: u32| {
        let before = HELD.get();
        let mut recorder = Recorder::new(plan(MANY));
        recorder.start(Micros::ZERO);
        for device in 0..devices {
            for seq in 0..3 {
                tell_attempt(&mut recorder, id(device, seq), Micros(1), Outcome::Accepted);
                tell_arrival(&mut recorder, Some(id(device, seq)), Micros(1));
            }
        }
        let held = HELD.get() - before;
        drop(recorder);
        held
    };
    let slope = (held(MANY) - held(MANY / 2)) / i64::from(MANY / 2);
    assert!(slope <= 96, "{slope} bytes a device");
}

#[test]
fn random_loss_takes_at_most_a_bit_a_message_and_set() {
    const MESSAGES: u32 = 4_000_000;
    const LOSSY_DEVICES: u32 = 100;
    let mut recorder = Recorder::new(plan(LOSSY_DEVICES));
    recorder.start(Micros::ZERO);
    let before = HELD.get();
    for n in 0..MESSAGES {
        let id = id(n % LOSSY_DEVICES, n / LOSSY_DEVICES);
        let dice = mix(3, u64::from(n)) % 100;
        let outcome = if dice < 10 {
            Outcome::TimedOut
        } else {
            Outcome::Accepted
        };
        tell_attempt(&mut recorder, id, Micros(1), outcome);
        if dice % 10 != 3 {
            tell_arrival(&mut recorder, Some(id), Micros(1));
        }
    }
    drop(recorder.flush(Micros(1)));
    let identity = recorder.finish();
    let sets = 3 * i64::from(LOSSY_DEVICES);
    // Histograms and windows that were kept for the next flush went with the recorder.
    let held = HELD.get() - before;
    let most = 3 * i64::from(MESSAGES) / 8 + 64 * sets + 256 * 1_024;
    assert!(held <= most, "{held} bytes held, at most {most}");
    drop(identity);
}

/// A pause lets many seconds end at once, with times of all sizes.
fn pause(recorder: &mut Recorder, from_s: u32, seconds: u32) {
    let end = Micros::from_secs(u64::from(from_s + seconds));
    for n in 0..seconds * 2_000 {
        let id = id(n % DEVICES, from_s * 2 + n / DEVICES);
        let due = Micros::from_secs(u64::from(from_s)) + Micros(u64::from(n) * 500);
        let taken = Some(due + Micros(mix(5, u64::from(n)) % 3_000_000));
        recorder.attempt(&Attempt {
            id,
            due,
            taken,
            sent: Some(end),
            ended: end + Micros(mix(6, u64::from(n)) % 3_000_000),
            outcome: Outcome::Accepted,
            resent: false,
            own: Micros::ZERO,
        });
    }
    drop(recorder.flush(end));
}

#[test]
fn what_a_pause_touches_is_not_kept() {
    let mut recorder = Recorder::new(plan(DEVICES));
    recorder.start(Micros::ZERO);
    pause(&mut recorder, 0, 2);
    let before = HELD.get();
    pause(&mut recorder, 2, 60);
    let kept = HELD.get() - before;
    assert!(kept <= 256 * 1_024, "{kept} bytes more than before");
    let most = Recorder::window_bytes_most(1, 1) as i64;
    assert!(kept <= most, "{kept} bytes, at most {most}");
}

/// A plan whose one stream is of commands, or of subscribers to it.
fn plan_of(role: Role) -> RecorderPlan {
    let mut plan = plan(DEVICES);
    plan.streams[0].role = role;
    plan
}

/// A command of every device: issued, received, answered and replied to, some of them otherwise.
fn command_round(recorder: &mut Recorder, seq: u32) {
    for device in 0..DEVICES {
        let due = Micros(u64::from(seq) * 10_000 + u64::from(device) * 10);
        let id = id(device, seq);
        let is_odd = device % 97 == 0;
        let later = |by: u64| due + Micros(by + mix(3, u64::from(seq)) % 2_000);
        recorder.command(&Command::Met(Met {
            id,
            due,
            presence: if is_odd {
                Presence::Offline
            } else {
                Presence::Online
            },
        }));
        recorder.command(&Command::Issue(Issue {
            id,
            due,
            ready: due,
            issued: Some(due),
            ended: later(100),
            delivery: if is_odd {
                Delivery::Unknown
            } else {
                Delivery::Delivered
            },
        }));
        recorder.command(&Command::Receipt(Receipt {
            device: id.device,
            stream: id.stream,
            id: Some(id),
            at: later(200),
            integrity: Integrity::Intact,
        }));
        recorder.command(&Command::Answer(Answer {
            id,
            due: later(200),
            sent: Some(later(300)),
            ended: later(20_000),
            outcome: if is_odd {
                Answering::TimedOut
            } else {
                Answering::Answered
            },
            own: Micros::ZERO,
        }));
        recorder.command(&Command::Reply(Reply {
            status: None,
            stream: id.stream,
            id: Some(id),
            issued: Some(due),
            seen: later(4_000),
            integrity: Integrity::Intact,
        }));
    }
}

/// Tells what happens in one round.
type Round = fn(&mut Recorder, u32);

/// Every device gets a message of one other.
fn reception_round(recorder: &mut Recorder, seq: u32) {
    for device in 0..DEVICES {
        let due = Micros(u64::from(seq) * 10_000 + u64::from(device) * 10);
        recorder.reception(&Reception {
            subscriber: DeviceId(device),
            stream: StreamId(0),
            id: Some(id((device + 1) % DEVICES, seq)),
            due: Some(due),
            seen: due + Micros(3_000),
            integrity: Integrity::Intact,
        });
    }
}

#[test]
fn no_command_and_no_subscribers_copy_allocates_once_the_memory_is_warm() {
    let rounds: [(Role, Round); 2] = [
        (Role::Command, command_round),
        (Role::Receive, reception_round),
    ];
    for (role, round) in rounds {
        assert_eq!(
            allocations(Recorder::new(plan_of(role)), round),
            0,
            "{role:?}"
        );
    }
}
