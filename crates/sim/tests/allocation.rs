//! Nothing is allocated per message once the buffers have grown to their use.

use std::alloc::System;

use muster_conduct::{
    Placement, PlanCalendar, RecordingSink, Slice, reader, recorder_plan, schedules,
};
use muster_device::{Mqtt, SLOT_MAX, Shard};
use muster_measure::{Calendar, Recorder, Timeline};
use muster_model::{Arrival, BackendId, Cause, ConsumerId, MessageId, Micros, RunId};
use muster_plan::Plan;
use muster_platform::{DevicePublish, Dialect, Reader, Reply};
use muster_protocol::mqtt::{
    Accept, Incoming, Input, Pending, Publish, Server, ServerEvent, ServerLimits, SessionState,
    Token,
};
use muster_scenario::{Overrides, Source, parse};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const RUN: RunId = RunId(7);
const BACKEND: BackendId = BackendId(0);
const LINKS: u32 = 20;
const RATE: u64 = 2_000;
/// Cycles of [`CYCLE_S`] in which buffers grow, and in which nothing may be allocated any more.
const WARM_UP_S: u64 = 8;
const MEASURED_S: u64 = 8;
/// Every path is taken in so many seconds.
const CYCLE_S: u64 = 4;
/// Most allocations of the windows of a new second outside the flush: a constant, whatever the
/// number of messages.
const PER_SECOND_MAX: usize = 16;
/// Most allocations of a flush: the maps of the delta that it hands over.
const PER_FLUSH_MAX: usize = 64;

struct NoFiles;

impl muster_scenario::Reader for NoFiles {
    fn file(&self, _: &str) -> Result<Vec<u8>, String> {
        Err("no such file".to_owned())
    }

    fn variable(&self, _: &str) -> Option<String> {
        None
    }
}

/// Configuration of a line.
#[derive(Clone, Copy)]
struct Way {
    platform: &'static str,
    client: &'static str,
    policy: &'static str,
    stream: &'static str,
}

fn plan(way: Way) -> Plan {
    let Way {
        platform,
        client,
        policy,
        stream,
    } = way;
    let text = format!(
        "
name: allocation
platform: {{ kind: gateway, dialect: {platform} }}
fleet: [{{ name: m, count: {LINKS}, reconnect: {{ min: 10ms, max: 20ms }}, connect: {{ rate: 100000/s }},
  client: {{ {client} }}, streams: [{{ name: r, rate: {RATE}/s, {stream},
  timeout: 200ms, loop: {policy} }}] }}]
phases: {{ warm-up: {WARM_UP_S}s, measure: {MEASURED_S}s, settle: {{ at-most: 30s, quiet: 1s }} }}
"
    );
    let source = Source {
        name: "allocation.yaml",
        text: &text,
    };
    parse(source, &Overrides::default(), &NoFiles)
        .unwrap_or_else(|problems| panic!("{problems}\n{text}"))
}

/// The platform's end of one link, whose own allocations do not count.
struct End {
    server: Server,
    kept: Option<SessionState>,
    unanswered: Vec<Withheld>,
}

/// An answer that is withheld.
enum Withheld {
    Transport(Pending),
    Application(Vec<u8>),
}

impl End {
    fn answer(&mut self, answer: &Withheld, out: &mut Vec<u8>) {
        match answer {
            Withheld::Transport(pending) => self.server.ack(*pending, 0, out),
            Withheld::Application(payload) => {
                let publish = Publish::new("ack/device", payload);
                let said = self.server.deliver(Token(0), &publish, out);
                said.expect("the device is there");
            }
        }
    }
}

fn acknowledgement(dialect: Dialect, id: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    let code = dialect.server.acceptance;
    let reply = Reply { id: Some(id), code };
    (dialect.server.write_acknowledgement)(&mut std::iter::once(reply), &mut text);
    text
}

/// Allocations of the line, in its calls and in its flushes.
#[derive(Debug, Default, Clone, Copy)]
struct Allocated {
    calls: usize,
    flushes: usize,
    messages: u64,
}

/// Devices, sessions, recorder and reader, told by hand what the sockets do.
struct Line {
    dialect: Dialect,
    shard: Shard<Mqtt, RecordingSink>,
    ends: Vec<End>,
    reader: Reader,
    consumer: RecordingSink,
    calendar: PlanCalendar,
    now: Micros,
    up: Vec<u8>,
    down: Vec<u8>,
    answers: bool,
    allocated: Allocated,
}

/// Counts what `call` allocates.
fn counted<T>(sum: &mut usize, call: impl FnOnce() -> T) -> T {
    let region = Region::new(ALLOCATOR);
    let value = call();
    let change = region.change();
    *sum += change.allocations + change.reallocations;
    value
}

impl Line {
    fn new(plan: &Plan) -> Self {
        let schedules = schedules(plan).expect("the plan's schedules are possible");
        let recorder = recorder_plan(plan, RUN, &schedules);
        let placement = Placement {
            plan,
            recorder: &recorder,
            schedules: &schedules,
            run: RUN,
            slice: Slice::WHOLE,
            wall_ms_at_t0: 0,
            slot_limit: SLOT_MAX,
        };
        let recording = || RecordingSink::new(Recorder::new(recorder.clone()), None);
        let mut shard: Shard<Mqtt, _> = placement
            .shard(recording())
            .expect("the plan can be placed");
        shard.connects_mut().start(Micros::ZERO);
        let origin = Micros::from_secs(1);
        shard.traffic_mut().start(origin);
        shard.recording().sink().recorder().start(origin);
        let mut consumer = recording();
        consumer.recorder().start(origin);
        let timeline = Timeline::starting(origin, plan.phases.warm_up, plan.phases.measure);
        let end = || End {
            server: Server::new(&ServerLimits::default()),
            kept: None,
            unanswered: Vec::new(),
        };
        Self {
            dialect: plan.platform.dialect(),
            shard,
            ends: (0..LINKS).map(|_| end()).collect(),
            reader: reader(plan, RUN, 0).expect("the payloads are possible"),
            consumer,
            calendar: PlanCalendar::new(plan, &schedules, timeline),
            now: Micros::ZERO,
            up: Vec::new(),
            down: Vec::new(),
            answers: true,
            allocated: Allocated::default(),
        }
    }

    /// One millisecond, in which the sockets are always writable.
    fn tick(&mut self) {
        self.now += Micros::from_millis(1);
        let now = self.now;
        while let Some(link) = counted(&mut self.allocated.calls, || self.shard.expire(now)) {
            self.pump(link);
        }
        while let Some(link) = counted(&mut self.allocated.calls, || {
            self.shard.connects_mut().take(now)
        }) {
            counted(&mut self.allocated.calls, || {
                self.shard.opening(link, now);
                self.shard.opened(link, now, &mut self.up);
            });
            self.exchange(link);
        }
        while let Some(link) = counted(&mut self.allocated.calls, || self.shard.take_due(now)) {
            self.allocated.messages += 1;
            self.pump(link);
        }
    }

    fn pump(&mut self, link: u32) {
        let now = self.now;
        loop {
            let is_rendered = counted(&mut self.allocated.calls, || {
                let is_rendered = self.shard.render_next(link, now, &mut self.up);
                if is_rendered {
                    self.shard.traffic_mut().written(link, now);
                }
                is_rendered
            });
            if !is_rendered {
                break;
            }
            self.exchange(link);
        }
        counted(&mut self.allocated.calls, || {
            self.shard.shed_excess(link, now);
        });
    }

    /// Passes the device's bytes to the platform, and the platform's answers back.
    fn exchange(&mut self, link: u32) {
        let up = std::mem::take(&mut self.up);
        let mut input = Input::new(&up);
        loop {
            let end = &mut self.ends[link as usize];
            match end.server.poll(self.now, &mut input, &mut self.down) {
                Some(ServerEvent::Connect(connect)) => {
                    let kept = end.kept.take().filter(|_| !connect.clean_start);
                    if let Some(kept) = kept {
                        end.server.resume(kept);
                    }
                    let accepted = end
                        .server
                        .accept(self.now, &Accept::default(), &mut self.down);
                    accepted.expect("a CONNECT waits");
                }
                Some(ServerEvent::Subscribe(subscribe)) => {
                    let codes = [0, 1];
                    let granted = end
                        .server
                        .suback(subscribe.packet_id, &codes, &mut self.down);
                    granted.expect("a SUBSCRIBE waits");
                }
                Some(ServerEvent::Publish(publish)) => {
                    let heard = (self.dialect.server.read)("", &publish.topic, publish.payload);
                    let withheld = match (heard, publish.pending) {
                        (DevicePublish::Message { id: Some(id), .. }, _) => {
                            Some(Withheld::Application(acknowledgement(self.dialect, id)))
                        }
                        (_, Some(pending)) => Some(Withheld::Transport(pending)),
                        (_, None) => None,
                    };
                    match withheld {
                        Some(answer) if self.answers => end.answer(&answer, &mut self.down),
                        Some(answer) => end.unanswered.push(answer),
                        None => {}
                    }
                    if self.dialect.has_northbound {
                        self.arrive(&publish);
                    }
                }
                Some(_) => {}
                None => break,
            }
        }
        self.up = up;
        self.up.clear();
        self.hear(link);
    }

    fn hear(&mut self, link: u32) {
        let (now, down) = (self.now, std::mem::take(&mut self.down));
        let was_up = self.shard.links().is_up(link);
        let _ = counted(&mut self.allocated.calls, || {
            self.shard.received(link, now, &down, &mut self.up)
        });
        self.down = down;
        self.down.clear();
        if !self.up.is_empty() {
            // A link that subscribes before it is up.
            self.exchange(link);
        }
        if !was_up && self.shard.links().is_up(link) {
            self.pump(link);
        }
    }

    fn arrive(&mut self, publish: &Incoming<'_>) {
        let (reader, calendar) = (&mut self.reader, &self.calendar);
        let mut due = |id: &MessageId| calendar.due(id.stream, id.device, id.seq);
        let (consumer, seen) = (&mut self.consumer, self.now);
        counted(&mut self.allocated.calls, || {
            consumer.recorder().copies(BACKEND, seen).consumed += 1;
            let copy = reader.read(publish.topic.as_str(), publish.payload, None, &mut due);
            consumer.arrival(&Arrival {
                id: copy.id,
                due: copy.due,
                seen,
                backend: BACKEND,
                consumer: ConsumerId(0),
                integrity: copy.integrity,
                own: Micros::ZERO,
            });
        });
    }

    /// The answers that were withheld come after all: too late.
    fn answer_late(&mut self) {
        for link in 0..LINKS {
            let end = &mut self.ends[link as usize];
            for answer in std::mem::take(&mut end.unanswered) {
                end.answer(&answer, &mut self.down);
            }
            self.hear(link);
        }
    }

    /// Every link is reset.
    fn reset(&mut self) {
        for link in 0..LINKS {
            let end = &mut self.ends[link as usize];
            end.kept = Some(end.server.take_session());
            end.server = Server::new(&ServerLimits::default());
            end.unanswered.clear();
            let now = self.now;
            counted(&mut self.allocated.calls, || {
                self.shard.closed(link, now, Cause::Reset);
            });
        }
    }

    /// One second of a cycle, which takes one of the paths.
    fn second(&mut self, place: u64) {
        for ms in 0..1_000u32 {
            // In the second of time-outs each answer comes at least 100 ms after its time-out; in
            // that of reconnects what is sent just before the reset has no answer.
            self.answers = match place {
                1 => ms >= 600,
                2 => ms % 100 < 95,
                _ => true,
            };
            self.tick();
            match place {
                1 if ms == 900 => self.answer_late(),
                2 if ms % 100 == 99 => self.reset(),
                _ => {}
            }
        }
        let (now, recording, consumer) =
            (self.now, self.shard.recording().sink(), &mut self.consumer);
        let deltas = counted(&mut self.allocated.flushes, || {
            (
                recording.recorder().flush(now),
                consumer.recorder().flush(now),
            )
        });
        drop(deltas);
    }
}

/// Allocations of a line in `MEASURED_S` seconds, once its buffers have grown.
fn measured(way: Way) -> Allocated {
    let mut line = Line::new(&plan(way));
    // The connect phase.
    line.second(0);
    (0..WARM_UP_S).for_each(|second| line.second(second % CYCLE_S));
    line.allocated = Allocated::default();
    (0..MEASURED_S).for_each(|second| line.second(second % CYCLE_S));
    line.allocated
}

#[test]
fn nothing_is_allocated_per_message_on_any_path() {
    let once = "version: 5";
    let resumed = "version: 5, clean-start: false, session-expiry: 60s";
    let mqtt = ("mqtt", "qos: 1, payload: { size: 64 }");
    let application = ("sap-edge", "qos: 0");
    for ((platform, stream), client, policy) in [
        (mqtt, once, "open"),
        (mqtt, resumed, "open"),
        (mqtt, once, "closed"),
        (application, once, "open"),
        (application, once, "closed"),
    ] {
        let way = Way {
            platform,
            client,
            policy,
            stream,
        };
        let allocated = measured(way);
        let seconds = MEASURED_S as usize;
        assert!(
            allocated.messages > 3_000,
            "{platform}, {policy}: {allocated:?}"
        );
        assert!(
            allocated.calls <= PER_SECOND_MAX * seconds,
            "{platform}, {client}, {policy}: {allocated:?}"
        );
        assert!(
            allocated.flushes <= PER_FLUSH_MAX * seconds,
            "{platform}, {client}, {policy}: {allocated:?}"
        );
    }
}
