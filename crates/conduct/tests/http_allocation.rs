//! Messages over HTTP cost a device no allocation once its buffers have grown, and a link at rest little memory.

use std::alloc::System;

use muster_conduct::{Placement, Slice, recorder_plan, schedules};
use muster_device::{Http, Shard, Sink};
use muster_load::{Octets, Template};
use muster_measure::Counts;
use muster_model::{
    Attempt, Command, LinkFact, LinkId, Micros, Outcome, Reception, RunId, StreamId,
};
use muster_plan::{
    AnswerId, ClientPlan, Credential, Endpoint, HttpCall, HttpSettings, Plan, Scheme, Secret,
};
use muster_scenario::{NoFiles, Overrides, Source, parse};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const SCENARIO: &str = "
name: t
platform: { kind: hono, devices: [ 'coap://127.0.0.1' ] }
fleet: [ { name: f, count: 3, tenant: t1, streams: [ { every: 100ms, payload: { size: 64 } } ] } ]
phases: { warm-up: 0s, measure: 60s }
";
/// Buffers have grown.
const WARM_UP: Micros = Micros::from_secs(10);
const END: Micros = Micros::from_secs(60);
const LINKS: u32 = 3;
const ANSWER: &[u8] =
    b"HTTP/1.1 202 Accepted\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{\"id\":41}";

/// Counts how messages ended.
#[derive(Default)]
struct Told {
    accepted: u64,
    other: u64,
    counts: Counts,
}

impl Sink for Told {
    fn attempt(&mut self, attempt: &Attempt) {
        let is_accepted = attempt.outcome == Outcome::Accepted;
        self.accepted += u64::from(is_accepted);
        self.other += u64::from(!is_accepted);
    }
    fn command(&mut self, _: &Command) {}
    fn reception(&mut self, _: &Reception) {}
    fn link(&mut self, _: &LinkFact) {}
    fn opened(&mut self, _: LinkId, _: Micros) {}
    fn counts(&mut self, _: StreamId, _: Micros) -> &mut Counts {
        &mut self.counts
    }
}

fn plan(call: Option<HttpCall>) -> Plan {
    let (name, text) = ("t.yaml", SCENARIO);
    let plan = parse(Source { name, text }, &Overrides::default(), &NoFiles);
    let mut plan = plan.unwrap_or_else(|problems| panic!("{problems}"));
    plan.platform.endpoints = vec![Endpoint {
        scheme: Scheme::Http,
        host: "127.0.0.1".to_owned(),
        port: 8080,
        path: "/api".to_owned(),
    }];
    let template = |text| Template::parse(text).expect("a template");
    plan.fleets[0].client = ClientPlan::Http(HttpSettings::new());
    plan.fleets[0].credential = Credential::Password {
        user: template("${id}@t1"),
        secret: Secret::new(Octets::text(template("secret"))),
    };
    plan.fleets[0].streams[0].http = call.map(Box::new);
    plan
}

fn shard(plan: &Plan) -> Shard<Http, Told> {
    let schedules = schedules(plan).expect("the plan was checked");
    let placement = Placement {
        recorder: &recorder_plan(plan, RunId(1), &schedules),
        plan,
        schedules: &schedules,
        run: RunId(1),
        slice: Slice::WHOLE,
        wall_ms_at_t0: 0,
        slot_limit: 1_000,
    };
    placement.shard(Told::default()).expect("it can be placed")
}

/// Runs to the end: the allocations of the shard after the warm-up.
fn allocations(plan: &Plan) -> usize {
    let (mut shard, mut out) = (shard(plan), Vec::new());
    shard.connects_mut().start(Micros::ZERO);
    let (mut now, mut allocations) = (Micros::ZERO, 0);
    while let Some(link) = shard.connects_mut().take(END) {
        shard.opening(link, now);
        shard.opened(link, now, &mut out);
    }
    assert_eq!(shard.links().counts().up, LINKS);
    shard.traffic_mut().start(now);
    while now < END {
        let region = Region::new(ALLOCATOR);
        while let Some(link) = shard.take_due(now).or_else(|| shard.expire(now)) {
            while shard.render_next(link, now, &mut out) {
                shard.traffic_mut().written(link, now);
                out.clear();
                let _ = shard.received(link, now, ANSWER, &mut out);
            }
        }
        let change = region.change();
        if now >= WARM_UP {
            allocations += change.allocations + change.reallocations;
        }
        now = shard
            .traffic()
            .next_due()
            .unwrap_or(END)
            .max(now + Micros(1));
    }
    let told = shard.recording().sink();
    assert!(
        told.accepted > 1_700 && told.other == 0,
        "{}",
        told.accepted
    );
    allocations
}

#[test]
fn messages_are_sent_and_answered_without_an_allocation() {
    assert_eq!(allocations(&plan(None)), 0);
    let call = HttpCall {
        method: "PUT".to_owned(),
        headers: vec![(
            "X-Id".to_owned(),
            Secret::new(Template::parse("${id}-${seq}").expect("a template")),
        )],
        success: vec![(200, 299)],
        id: Some(AnswerId::Pointer("/id".to_owned())),
    };
    assert_eq!(allocations(&plan(Some(call))), 0);
}
