//! A device that speaks CoAP, under a virtual clock: what becomes of each of its messages.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::VecDeque;
use std::sync::Arc;

use muster_conduct::{Placement, Slice, recorder_plan, schedules};
use muster_device::{Shard, Sink};
use muster_measure::Counts;
use muster_model::{
    Attempt, Command, LinkFact, LinkId, Micros, Outcome, Reason, Reception, RunId, ShedCause,
    StreamId,
};
use muster_protocol::coap::{
    Code, Opt, OptionNumber, Pending, Reply, Server, ServerEvent, ServerSettings, Uint,
};
use muster_scenario::{NoFiles, Overrides, Source, parse};

/// How long a datagram is under way.
const WAY: Micros = Micros::from_millis(1);
/// Messages of a run: one a second.
const MESSAGES: usize = 10;

/// What the shard tells.
#[derive(Default)]
struct Told {
    attempts: Vec<Attempt>,
    counts: Counts,
}

impl Sink for Told {
    fn attempt(&mut self, attempt: &Attempt) {
        self.attempts.push(*attempt);
    }
    fn command(&mut self, _command: &Command) {}
    fn reception(&mut self, _reception: &Reception) {}
    fn link(&mut self, _fact: &LinkFact) {}
    fn opened(&mut self, _link: LinkId, _at: Micros) {}
    fn counts(&mut self, _stream: StreamId, _at: Micros) -> &mut Counts {
        &mut self.counts
    }
}

/// What the platform does with a request.
#[derive(Clone, Copy)]
enum Peer {
    Answers(Code),
    /// 5.03, with Max-Age in seconds.
    Unavailable(u32),
    /// In a message of its own, so much later.
    Later(Micros),
    /// It hears every second datagram only.
    Deaf,
    Silent,
    Resets,
}

/// One device and the platform.
struct World {
    shard: Shard<Told>,
    peer: Peer,
    server: Server,
    up: VecDeque<(Micros, Vec<u8>)>,
    down: VecDeque<(Micros, Vec<u8>)>,
    waiting: VecDeque<(Micros, Pending)>,
    heard: u32,
    out: Vec<u8>,
    now: Micros,
}

impl World {
    fn new(peer: Peer, fleet: &str, stream: &str) -> Self {
        let payload = match stream.contains("payload") {
            true => "",
            false => "payload: { size: 64 },",
        };
        let text = format!(
            "name: t\nplatform: {{ kind: hono, devices: [ \"coap://127.0.0.1\" ] }}\nfleet: [ {{ name: f, \
             tenant: t1, {fleet} streams: [ {{ rate: 1/s, {payload} {stream} }} ] }} ]\n\
             phases: {{ warm-up: 0s, measure: {MESSAGES}s, settle: {{ at-most: 300s }} }}\n"
        );
        let (name, text) = ("t.yaml", text.as_str());
        let plan = parse(Source { name, text }, &Overrides::default(), &NoFiles);
        let plan = plan.unwrap_or_else(|problems| panic!("{problems}"));
        let schedules = schedules(&plan).unwrap();
        let recorder = recorder_plan(&plan, RunId(1), &schedules);
        let placement = Placement {
            plan: &plan,
            recorder: &recorder,
            schedules: &schedules,
            run: RunId(1),
            slice: Slice::WHOLE,
            wall_ms_at_t0: 0,
            slot_limit: 1_000,
        };
        let mut world = Self {
            shard: placement.shard(Told::default()).unwrap(),
            peer,
            server: Server::new(Arc::new(ServerSettings::default()), 1),
            up: VecDeque::new(),
            down: VecDeque::new(),
            waiting: VecDeque::new(),
            heard: 0,
            out: Vec::new(),
            now: Micros::ZERO,
        };
        world.shard.start_ramp(Micros::ZERO);
        assert_eq!(world.shard.next_to_connect(Micros::ZERO), Some(0));
        world.shard.opening(0, Micros::ZERO);
        world.shard.opened(0, Micros::ZERO, &mut world.out);
        assert!(
            world.shard.is_up(0) && world.out.is_empty(),
            "there is no CONNECT"
        );
        world.shard.start(Micros::ZERO);
        world
    }

    /// Lets the time pass until an instant.
    fn run_until(&mut self, end: Micros) {
        while self.now <= end {
            self.turn();
            let due = [
                self.shard.next_due(),
                self.shard.next_expiry(),
                self.shard.deadline(0),
                self.up.front().map(|(at, _)| *at),
                self.down.front().map(|(at, _)| *at),
                self.waiting.front().map(|(at, _)| *at),
            ];
            let next = due.into_iter().flatten().min().unwrap_or(Micros::MAX);
            self.now = next.max(self.now + Micros(1));
        }
        self.now = end;
    }

    fn turn(&mut self) {
        let now = self.now;
        while self.shard.take_due(now).is_some() || self.shard.expire(now).is_some() {
            self.pump();
        }
        if self.shard.deadline(0).is_some_and(|at| at <= now) {
            let _ = self.shard.timer(0, now, &mut self.out);
            self.send();
            self.pump();
        }
        while let Some((_, datagram)) = self.up.pop_front_if(|(at, _)| *at <= now) {
            self.hear(&datagram);
        }
        while let Some((_, pending)) = self.waiting.pop_front_if(|(at, _)| *at <= now) {
            self.answer(pending, &Reply::new(Code::CHANGED, &[], b""));
        }
        while let Some((_, datagram)) = self.down.pop_front_if(|(at, _)| *at <= now) {
            let _ = self.shard.received(0, now, &datagram, &mut self.out);
            self.send();
            self.pump();
        }
    }

    fn pump(&mut self) {
        while self.shard.render_next(0, self.now, &mut self.out) {
            self.send();
            self.shard.written(0, self.now);
        }
        self.shard.shed_excess(0, self.now);
    }

    fn send(&mut self) {
        if !self.out.is_empty() {
            let datagram = std::mem::take(&mut self.out);
            self.up.push_back((self.now + WAY, datagram));
        }
    }

    fn hear(&mut self, datagram: &[u8]) {
        self.heard += 1;
        let mut down = Vec::new();
        match self.peer {
            Peer::Silent => return,
            Peer::Deaf if self.heard % 2 == 1 => return,
            Peer::Resets => {
                let reset = vec![0x70, 0, datagram[2], datagram[3]];
                return self.down.push_back((self.now + WAY, reset));
            }
            Peer::Deaf | Peer::Answers(_) | Peer::Unavailable(_) | Peer::Later(_) => {}
        }
        let event = self.server.receive(self.now, datagram, &mut down);
        let Some(ServerEvent::Request(request)) = event else {
            return self.say(down);
        };
        let pending = request.pending;
        match self.peer {
            Peer::Later(after) => {
                let pending = self.server.acknowledge(pending, &mut down);
                self.say(down);
                self.waiting.push_back((self.now + after, pending));
            }
            Peer::Unavailable(seconds) => {
                let seconds = Uint::of(seconds);
                let options = [Opt::new(OptionNumber::MAX_AGE, &seconds)];
                self.answer(
                    pending,
                    &Reply::new(Code::SERVICE_UNAVAILABLE, &options, b""),
                );
            }
            Peer::Answers(code) => self.answer(pending, &Reply::new(code, &[], b"")),
            Peer::Deaf | Peer::Silent | Peer::Resets => {
                self.answer(pending, &Reply::new(Code::CHANGED, &[], b""));
            }
        }
    }

    fn answer(&mut self, pending: Pending, reply: &Reply<'_>) {
        let mut down = Vec::new();
        self.server
            .respond(self.now, pending, reply, &mut down)
            .unwrap();
        self.say(down);
    }

    fn say(&mut self, datagram: Vec<u8>) {
        if !datagram.is_empty() {
            self.down.push_back((self.now + WAY, datagram));
        }
    }

    /// Ends the run: how every message ended, each once.
    fn end(mut self) -> (Vec<Attempt>, Counts) {
        self.shard.finish(self.now, ShedCause::Interrupted);
        assert_eq!(self.shard.open(), 0);
        let Told { attempts, counts } = std::mem::take(self.shard.sink());
        let mut ids: Vec<u32> = attempts.iter().map(|attempt| attempt.id.seq).collect();
        ids.sort_unstable();
        assert!(ids.iter().copied().eq(0..MESSAGES as u32), "{ids:?}");
        (attempts, counts)
    }
}

fn run(peer: Peer, fleet: &str, stream: &str) -> (Vec<Attempt>, Counts) {
    let mut world = World::new(peer, fleet, stream);
    world.run_until(Micros::from_secs(300));
    world.end()
}

fn all_ended_as(attempts: &[Attempt], outcome: Outcome) -> bool {
    attempts.iter().all(|attempt| attempt.outcome == outcome)
}

#[test]
fn a_message_is_a_request_whose_answer_ends_it() {
    let (attempts, counts) = run(Peer::Answers(Code::CHANGED), "", "");
    assert!(all_ended_as(&attempts, Outcome::Accepted));
    let round = |attempt: &Attempt| attempt.ended - attempt.sent.unwrap() == WAY + WAY;
    assert!(attempts.iter().all(round));
    assert_eq!((counts.handed, counts.retransmitted), (MESSAGES as u64, 0));
    assert_eq!(counts.bytes_payload, 64 * MESSAGES as u64);
    assert!(counts.bytes_wire > counts.bytes_payload);
}

#[test]
fn what_is_refused_keeps_its_code() {
    let (attempts, _) = run(Peer::Answers(Code::NOT_FOUND), "", "");
    assert!(all_ended_as(
        &attempts,
        Outcome::Rejected(Reason::Coap(0x84))
    ));
    let (attempts, _) = run(Peer::Resets, "", "");
    assert!(all_ended_as(&attempts, Outcome::Rejected(Reason::Coap(0))));
}

#[test]
fn what_is_lost_is_sent_again_and_counted() {
    let (attempts, counts) = run(Peer::Deaf, "", "");
    assert!(all_ended_as(&attempts, Outcome::Accepted));
    assert!(attempts.iter().all(|attempt| attempt.resent));
    assert_eq!(
        (counts.handed, counts.retransmitted),
        (MESSAGES as u64, MESSAGES as u64)
    );
    let waited = |attempt: &Attempt| attempt.ended - attempt.sent.unwrap();
    let is_within = |wait: Micros| (2_000..3_100).contains(&(wait.get() / 1_000));
    assert!(
        attempts.iter().map(waited).all(is_within),
        "ACK_TIMEOUT, times 1 to 1.5"
    );
}

/// RFC 7252 section 4.2: the last copy waits as well, and NSTART keeps the others back meanwhile.
#[test]
fn silence_is_a_time_out_after_all_copies() {
    let times = "client: { coap: { ack-timeout: 1s, ack-random-factor: 1, max-retransmit: 1 } },";
    let (attempts, counts) = run(Peer::Silent, times, "");
    assert!(all_ended_as(&attempts, Outcome::TimedOut));
    let waited = |attempt: &Attempt| attempt.ended - attempt.sent.unwrap();
    assert!(attempts.iter().all(|it| waited(it) == Micros::from_secs(3)));
    assert_eq!(counts.retransmitted, MESSAGES as u64);
    let starts: Vec<Micros> = attempts.iter().filter_map(|attempt| attempt.sent).collect();
    let apart = |pair: &[Micros]| pair[1] - pair[0] == Micros::from_secs(3);
    assert!(starts.windows(2).all(apart), "one at a time: {starts:?}");
}

#[test]
fn a_time_out_of_the_stream_ends_before_the_protocols_and_a_late_answer_is_counted() {
    let late = Peer::Later(Micros::from_millis(800));
    let (attempts, counts) = run(late, "", "timeout: 500ms");
    assert!(all_ended_as(&attempts, Outcome::TimedOut));
    assert_eq!(counts.answered_late, MESSAGES as u64);
}

#[test]
fn an_answer_in_a_message_of_its_own_is_waited_for() {
    let after = Micros::from_secs(20);
    let (attempts, counts) = run(Peer::Later(after), "", "");
    assert!(all_ended_as(&attempts, Outcome::Accepted));
    assert_eq!(counts.retransmitted, 0, "the requests were acknowledged");
    let waited = |attempt: &Attempt| attempt.ended - attempt.sent.unwrap();
    assert!(attempts.iter().all(|it| waited(it) == after + WAY + WAY));
}

#[test]
fn max_age_of_5_03_keeps_a_device_silent_unless_it_does_not_obey() {
    let starts = |fleet: &str| {
        let (attempts, _) = run(Peer::Unavailable(5), fleet, "");
        assert!(all_ended_as(
            &attempts,
            Outcome::Rejected(Reason::Coap(0xa3))
        ));
        attempts.iter().filter_map(|it| it.sent).collect::<Vec<_>>()
    };
    let apart = |starts: &[Micros]| -> Vec<u64> {
        let pairs = starts.windows(2);
        pairs
            .map(|pair| (pair[1] - pair[0]).get() / 1_000)
            .collect()
    };
    assert_eq!(
        apart(&starts("")),
        [5_002; MESSAGES - 1],
        "sent when the silence is over"
    );
    assert_eq!(
        apart(&starts("obey-retry-after: false,")),
        [1_000; MESSAGES - 1]
    );
}

#[test]
fn what_is_shed_in_the_silence_is_told_by_that() {
    let shed = "loop: { in-flight: 1, overflow: shed }";
    let (attempts, _) = run(Peer::Unavailable(5), "", shed);
    let of = |outcome| attempts.iter().filter(|it| it.outcome == outcome).count();
    assert_eq!(of(Outcome::Rejected(Reason::Coap(0xa3))), 2);
    assert_eq!(of(Outcome::Shed(ShedCause::BackOff)), MESSAGES - 2);
}

#[test]
fn a_non_that_nobody_waits_for_is_over_when_it_is_sent() {
    let (attempts, counts) = run(Peer::Answers(Code::CHANGED), "", "confirmable: false");
    assert!(all_ended_as(&attempts, Outcome::Unacknowledged));
    assert!(attempts.iter().all(|it| Some(it.ended) == it.sent));
    assert_eq!((counts.handed, counts.answered_late), (MESSAGES as u64, 0));
    let waited_for = "confirmable: false, ack: transport";
    let (attempts, counts) = run(Peer::Answers(Code::CHANGED), "", waited_for);
    assert!(all_ended_as(&attempts, Outcome::Accepted));
    assert_eq!(counts.retransmitted, 0);
}

#[test]
fn a_body_longer_than_a_block_goes_in_several_and_is_one_message() {
    let body = "payload: { size: 5000 }";
    let (attempts, counts) = run(Peer::Answers(Code::CHANGED), "", body);
    assert!(all_ended_as(&attempts, Outcome::Accepted));
    assert_eq!((counts.handed, counts.retransmitted), (MESSAGES as u64, 0));
    assert_eq!(counts.bytes_payload, 5_000 * MESSAGES as u64);
    assert!(
        counts.bytes_wire > counts.bytes_payload,
        "all blocks are counted"
    );
    let round = |attempt: &Attempt| attempt.ended - attempt.sent.unwrap();
    let five_blocks = Micros(5 * (WAY + WAY).get());
    assert!(attempts.iter().all(|it| round(it) == five_blocks));
}

#[test]
fn what_is_open_at_the_end_is_told_as_in_flight_and_the_rest_by_what_held_it() {
    let mut world = World::new(Peer::Silent, "", "");
    world.run_until(Micros::from_millis(9_500));
    let (attempts, _) = world.end();
    let of = |outcome| attempts.iter().filter(|it| it.outcome == outcome).count();
    assert_eq!(of(Outcome::InFlight), 1);
    assert_eq!(of(Outcome::Shed(ShedCause::Window)), MESSAGES - 1);
}
