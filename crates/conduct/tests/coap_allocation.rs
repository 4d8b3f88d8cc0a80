//! Queries, commands and replies over CoAP cost a device no allocation once its buffers have grown.

use std::alloc::System;
use std::sync::Arc;

use muster_conduct::{Placement, Slice, recorder_plan, schedules};
use muster_device::{Coap, Shard, Sink};
use muster_measure::Counts;
use muster_model::{
    Answering, Attempt, Command, DeviceId, LinkFact, LinkId, MessageId, Micros, Outcome, Reception,
    RunId, Stamp, StreamId,
};
use muster_platform::{CommandScratch, Dialect, OutboundCommand};
use muster_protocol::coap::{
    Code, Opt, OptionNumber, Reply, Server, ServerEvent, ServerSettings, Uint, content_format,
};
use muster_scenario::{NoFiles, Overrides, Source, parse};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const SCENARIO: &str = "
name: t
platform: { dialect: hono, devices: [ 'coap://127.0.0.1:0' ], backend: { commands: { to: waiting, mode: two-way } } }
fleet: [ { name: f, tenant: t1, streams: [
  { kind: command-query, every: 100ms, ttd: 3s, payload: { size: 64 } },
  { kind: command, timeout: 100s } ] } ]
phases: { warm-up: 0s, measure: 600s, settle: { at-most: 300s } }
";
/// Buffers have grown, and the first message ids are used again (RFC 7252: after 247 s).
const WARM_UP: Micros = Micros::from_secs(300);
const END: Micros = Micros::from_secs(600);
const COMMANDS: StreamId = StreamId(1);

/// Counts how things ended.
#[derive(Default)]
struct Told {
    accepted: u64,
    answered: u64,
    other: u64,
    counts: Counts,
}

impl Sink for Told {
    fn attempt(&mut self, attempt: &Attempt) {
        let is_accepted = attempt.outcome == Outcome::Accepted;
        self.accepted += u64::from(is_accepted);
        self.other += u64::from(!is_accepted);
    }
    fn command(&mut self, command: &Command) {
        if let Command::Answer(answer) = command {
            let is_answered = answer.outcome == Answering::Answered;
            self.answered += u64::from(is_answered);
            self.other += u64::from(!is_answered);
        }
    }
    fn reception(&mut self, _: &Reception) {}
    fn link(&mut self, _: &LinkFact) {}
    fn opened(&mut self, _: LinkId, _: Micros) {}
    fn counts(&mut self, _: StreamId, _: Micros) -> &mut Counts {
        &mut self.counts
    }
}

fn shard() -> Shard<Coap, Told> {
    let (name, text) = ("t.yaml", SCENARIO);
    let plan = parse(Source { name, text }, &Overrides::default(), &NoFiles);
    let plan = plan.unwrap_or_else(|problems| panic!("{problems}"));
    let schedules = schedules(&plan).expect("the plan was checked");
    let placement = Placement {
        recorder: &recorder_plan(&plan, RunId(1), &schedules),
        plan: &plan,
        schedules: &schedules,
        run: RunId(1),
        slice: Slice::WHOLE,
        wall_ms_at_t0: 0,
        slot_limit: 1_000,
    };
    placement.shard(Told::default()).expect("it can be placed")
}

/// A device and its platform, which answers at once.
struct Line {
    shard: Shard<Coap, Told>,
    server: Server,
    out: Vec<u8>,
    issued: u32,
    /// Allocations by calls of the shard after the warm-up.
    allocations: usize,
}

impl Line {
    fn new() -> Self {
        let mut line = Self {
            shard: shard(),
            server: Server::new(Arc::new(ServerSettings::default()), 1),
            out: Vec::new(),
            issued: 0,
            allocations: 0,
        };
        line.shard.connects_mut().start(Micros::ZERO);
        assert_eq!(line.shard.connects_mut().take(Micros::ZERO), Some(0));
        line.shard.opening(0, Micros::ZERO);
        line.shard.opened(0, Micros::ZERO, &mut line.out);
        line.shard.traffic_mut().start(Micros::ZERO);
        line
    }

    /// Calls the shard, and counts what that allocates.
    fn ask<T>(
        &mut self,
        now: Micros,
        call: impl FnOnce(&mut Shard<Coap, Told>, &mut Vec<u8>) -> T,
    ) -> T {
        let region = Region::new(ALLOCATOR);
        let result = call(&mut self.shard, &mut self.out);
        let change = region.change();
        if now >= WARM_UP {
            self.allocations += change.allocations + change.reallocations;
        }
        result
    }

    fn run(&mut self) {
        let mut now = Micros::ZERO;
        while now < END {
            while self
                .ask(now, |shard, _| {
                    shard.take_due(now).or_else(|| shard.expire(now))
                })
                .is_some()
            {}
            if self.shard.deadline(0).is_some_and(|at| at <= now) {
                let _ = self.ask(now, |shard, out| shard.timer(0, now, out));
                assert!(
                    self.out.is_empty(),
                    "nothing is lost, and nothing sent again"
                );
            }
            while self.ask(now, |shard, out| shard.render_next(0, now, out)) {
                self.ask(now, |shard, _| shard.traffic_mut().written(0, now));
                let answer = self.answer(now);
                let _ = self.ask(now, |shard, out| shard.received(0, now, &answer, out));
            }
            let next = [
                self.shard.traffic().next_due(),
                self.shard.traffic().next_expiry(),
                self.shard.deadline(0),
            ];
            let next = next.into_iter().flatten().min().unwrap_or(END);
            now = next.max(now + Micros(1));
        }
    }

    /// Returns the platform's answer to the rendered datagram: a command to a query, else success.
    fn answer(&mut self, now: Micros) -> Vec<u8> {
        let mut down = Vec::new();
        let datagram = self.out.clone();
        self.out.clear();
        let event = self.server.receive(now, &datagram, &mut down);
        let Some(ServerEvent::Request(request)) = event else {
            panic!("a request");
        };
        let pending = request.pending;
        let mut asks = request.options.all(OptionNumber::URI_QUERY);
        let is_query = asks.any(|text| text.starts_with(b"hono-ttd="));
        let (body, place) = (body(self.issued), self.issued.to_string());
        let format = Uint::of(u32::from(content_format::JSON));
        let options = [
            Opt::text(OptionNumber::LOCATION_PATH, "command_response"),
            Opt::text(OptionNumber::LOCATION_PATH, &place),
            Opt::new(OptionNumber::CONTENT_FORMAT, &format),
            Opt::text(OptionNumber::LOCATION_QUERY, "hono-command=set"),
        ];
        let reply = match is_query {
            true => Reply::new(Code::CHANGED, &options, &body),
            false => Reply::new(Code::CHANGED, &[], b""),
        };
        self.issued += u32::from(is_query);
        let said = self.server.respond(now, pending, &reply, &mut down);
        said.expect("it has room");
        down
    }
}

fn body(seq: u32) -> Vec<u8> {
    let id = MessageId {
        run: RunId(1),
        device: DeviceId(0),
        stream: COMMANDS,
        seq,
    };
    let due = Some(Micros(7));
    let to = OutboundCommand {
        stamp: &Stamp { id, due },
        device: "f-00000000",
        tenant: "t1",
        is_two_way: true,
    };
    let mut scratch = CommandScratch::default();
    (Dialect::Hono.application.write_command)(&to, &mut scratch);
    scratch.payload
}

#[test]
fn a_query_with_its_command_and_the_reply_to_it_allocates_nothing() {
    let mut line = Line::new();
    line.run();
    let told = line.shard.recording().sink();
    assert!(told.answered > 5_900, "{} replies", told.answered);
    assert_eq!((told.accepted, told.other), (told.answered, 0));
    assert_eq!(line.allocations, 0);
}
