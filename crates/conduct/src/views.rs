//! One plan, as the recorder, the calendar and the timetable see it.

use std::ops::Range;
use std::sync::Arc;

use muster_judge::{Latency, Rules};
use muster_load::{HoldRate, Phase, Schedule, ScheduleError, StreamSchedule};
use muster_measure::{
    Bounds, Calendar, FleetTrack, PublishedPlan, RecorderPlan, Role, StreamTrack, Timeline,
};
use muster_model::{CommandTarget, DeviceId, FleetId, Micros, RunId, StreamId};
use muster_plan::{Ack, AddedLoad, FleetPlan, Plan, Policy, StreamKind, StreamPlan};
use muster_platform::{Carrier, PublishedFigures};

use crate::Timetable;
use crate::audience::Audience;

/// Lead of the origin's announcement: more than a message to a worker process takes.
const LEAD: Micros = Micros::from_millis(100);

/// Time of the connect phase beyond ramp and time-out, so that a link that needs a second try is
/// not missed by a hair.
const CONNECT_GRACE: Micros = Micros::from_secs(1);

/// Most devices with figures of a published test: a hundred times the devices of the largest such test,
/// and 10 MB.
const PUBLISHED_DEVICES_MAX: u32 = 1_000;

/// The schedules of every stream of a plan, in the order of `StreamId`.
///
/// # Errors
/// [`ScheduleError`] for a specification that the scenario's checks let through.
pub fn schedules(plan: &Plan) -> Result<Vec<Arc<StreamSchedule>>, ScheduleError> {
    plan.streams()
        .map(|(_, stream)| StreamSchedule::new(stream.schedule.clone()).map(Arc::new))
        .collect()
}

/// Returns the plan of a run's recorders.
pub fn recorder_plan(plan: &Plan, run: RunId, schedules: &[Arc<StreamSchedule>]) -> RecorderPlan {
    let streams = plan.streams().zip(schedules);
    let placed: Vec<(FleetId, StreamId)> = plan
        .streams()
        .map(|(fleet, stream)| (fleet.id, stream.id))
        .collect();
    RecorderPlan {
        run,
        warm_up: plan.phases.warm_up,
        measure: plan.phases.measure,
        streams: streams
            .map(|((fleet, stream), schedule)| track(plan, fleet, stream, schedule))
            .collect(),
        fleets: plan
            .fleets
            .iter()
            .map(|fleet| FleetTrack {
                first_link: fleet.first_link,
                links: fleet.links,
                devices_per_link: fleet.devices_per_link,
            })
            .collect(),
        backends: plan.accounts() as u8,
        store: plan
            .management
            .reads_back
            .filter(|_| plan.store().is_some()),
        groups: plan.rules.groups(&placed),
        cold: plan.cold,
        published: match plan.platform.dialect().published_figures {
            PublishedFigures::None => PublishedPlan::Nothing,
            PublishedFigures::ByDevice => {
                PublishedPlan::ByDevice(plan.devices().min(PUBLISHED_DEVICES_MAX))
            }
            PublishedFigures::BySlot => PublishedPlan::BySlot,
        },
    }
}

/// The lengths that a run of a plan keeps to.
pub fn timetable(plan: &Plan) -> Timetable {
    let slowest = plan.fleets.iter().map(|fleet| {
        let ramp = f64::from(fleet.links) / fleet.connect.rate.get().max(f64::MIN_POSITIVE);
        Micros::from_secs_f64(ramp) + fleet.connect.timeout
    });
    let mut streams = plan.streams();
    Timetable {
        connect_at_most: slowest.max().unwrap_or_default() + CONNECT_GRACE,
        lead: LEAD,
        warm_up: plan.phases.warm_up,
        measure: plan.phases.measure,
        settle_at_most: plan.phases.settle.at_most,
        quiet: plan.phases.settle.quiet,
        agreed_origin: None,
        is_part: false,
        has_links: true,
        registers_refused: plan.management.registers_refused,
        devices_receive: streams.any(|(_, stream)| !stream.is_uplink()),
    }
}

/// The schedules of a run that has begun, on the run's clock.
#[derive(Debug)]
pub struct PlanCalendar {
    streams: Vec<CalendarStream>,
    audience: Audience,
    timeline: Timeline,
}

#[derive(Debug)]
struct CalendarStream {
    schedule: Arc<StreamSchedule>,
    is_closed: bool,
    /// True if its messages are the devices' own; else none of them is due.
    is_uplink: bool,
    /// True for the schedule of commands.
    is_command: bool,
}

impl PlanCalendar {
    /// The calendar of a plan's schedules over a timeline.
    pub fn new(plan: &Plan, schedules: &[Arc<StreamSchedule>], timeline: Timeline) -> Self {
        let streams = plan.streams().zip(schedules);
        let streams = streams.map(|((_, stream), schedule)| CalendarStream {
            schedule: Arc::clone(schedule),
            is_closed: stream.policy == Policy::Closed,
            is_uplink: stream.is_uplink(),
            is_command: is_scheduled_command(stream),
        });
        Self {
            streams: streams.collect(),
            audience: Audience::of(plan),
            timeline,
        }
    }

    fn count_before(&self, stream: StreamId, device: DeviceId, until: Micros) -> Option<u32> {
        let stream = self
            .streams
            .get(stream.index())
            .filter(|stream| !stream.is_closed)?;
        if !stream.is_uplink {
            return Some(0);
        }
        let before = stream.schedule.count_until(until - self.timeline.origin);
        Some(stream.schedule.count_of(device, before))
    }
}

impl Calendar for PlanCalendar {
    fn scheduled(&self, stream: StreamId, device: DeviceId) -> Option<u32> {
        self.count_before(stream, device, self.timeline.settle)
    }

    fn warm_up(&self, stream: StreamId, device: DeviceId) -> Option<u32> {
        self.count_before(stream, device, self.timeline.measure)
    }

    fn due(&self, stream: StreamId, device: DeviceId, seq: u32) -> Option<Micros> {
        let stream = self
            .streams
            .get(stream.index())
            .filter(|stream| !stream.is_closed && stream.is_uplink)?;
        let n = stream.schedule.index_of(device, seq)?;
        Some(self.timeline.origin + stream.schedule.due(n)?)
    }

    fn nominal(&self, stream: StreamId, until: Micros) -> u64 {
        let until = until.min(self.timeline.settle) - self.timeline.origin;
        self.streams
            .get(stream.index())
            .filter(|stream| stream.is_uplink)
            .map_or(0, |stream| stream.schedule.count_until(until))
    }

    fn commands(&self, stream: StreamId, device: DeviceId) -> Option<u32> {
        let of = self.streams.get(stream.index());
        let of = of.filter(|stream| stream.is_command)?;
        let until = self.timeline.settle - self.timeline.origin;
        let before = of.schedule.count_until(until);
        Some(of.schedule.count_of(device, before))
    }

    fn due_between(
        &self,
        stream: StreamId,
        device: DeviceId,
        from: Micros,
        until: Micros,
    ) -> Option<Range<u32>> {
        let of = self.streams.get(stream.index())?;
        if of.is_closed || !(of.is_uplink || of.is_command) {
            return None;
        }
        let before = |at: Micros| {
            let at = at.min(self.timeline.settle) - self.timeline.origin;
            of.schedule.count_of(device, of.schedule.count_until(at))
        };
        Some(before(from)..before(until))
    }

    fn audience(&self, stream: StreamId, each: &mut dyn FnMut(DeviceId, StreamId, DeviceId)) {
        self.audience.pairs(stream, each);
    }
}

/// Returns true if commands of a stream have a schedule, and do not follow queries.
fn is_scheduled_command(stream: &StreamPlan) -> bool {
    match stream.kind {
        StreamKind::Command { to, .. } => to != CommandTarget::Waiting,
        StreamKind::Telemetry
        | StreamKind::Event
        | StreamKind::CommandQuery { .. }
        | StreamKind::Receive
        | StreamKind::Connect => false,
    }
}

fn role(stream: &StreamPlan) -> Role {
    match stream.kind {
        StreamKind::Telemetry | StreamKind::Event | StreamKind::Connect => Role::Uplink,
        StreamKind::CommandQuery { .. } => Role::Query,
        StreamKind::Command { .. } => Role::Command,
        StreamKind::Receive => Role::Receive,
    }
}

fn track(
    plan: &Plan,
    fleet: &FleetPlan,
    stream: &StreamPlan,
    schedule: &StreamSchedule,
) -> StreamTrack {
    StreamTrack {
        fleet: fleet.id,
        first_device: fleet.first_device,
        devices: fleet.devices,
        most_per_device: match role(stream) {
            Role::Command if !is_scheduled_command(stream) => most_queries(fleet),
            Role::Uplink | Role::Query | Role::Command | Role::Receive => most_per_device(
                schedule.spec().devices,
                most_messages(schedule, plan.added.as_ref()),
            ),
        },
        role: role(stream),
        answers: stream.ack != Ack::None && role(stream) == Role::Uplink,
        closed: (stream.policy == Policy::Closed).then(|| schedule.spec().shortest_period()),
        by_order: stream.carrier == Carrier::Order,
        deadline: stream.deadline,
        bounds: registered_bounds(&plan.rules, fleet.id, stream.id),
    }
}

/// The bounds that the windows of a stream have counters for.
pub fn registered_bounds(rules: &Rules, fleet: FleetId, stream: StreamId) -> Bounds {
    let bounds = |latency| rules.thresholds(latency, fleet, stream);
    Bounds {
        response: bounds(Latency::Response),
        service: bounds(Latency::Service),
        lateness: bounds(Latency::Lateness),
        held: Vec::new(),
        end_to_end: bounds(Latency::EndToEnd),
        legs: [
            bounds(Latency::CommandRequest),
            bounds(Latency::CommandResponse),
            bounds(Latency::CommandLoop),
        ],
    }
}

/// Messages that a stream can have at the most, with holds that are added: as many for each device.
fn most_messages(schedule: &StreamSchedule, added: Option<&AddedLoad>) -> u64 {
    let spec = schedule.spec();
    let seconds = spec.horizon().as_secs_f64();
    let rate = spec.rate.get();
    let most = added.map_or(0.0, |load| match (&spec.phase, spec.hold_rate) {
        // A device sends at its stated rate, and one message more in each hold, which takes a second at least.
        (Phase::Active(_), _) => (rate + f64::from(spec.devices)) * seconds,
        (_, HoldRate::Multiplied) => rate * load.most * seconds,
        (_, HoldRate::Stated) => rate * seconds,
    });
    schedule.count().max(most.ceil() as u64)
}

/// A closed loop is never ahead of its nominal schedule, so the schedule bounds it too.
fn most_per_device(devices: u32, count: u64) -> u32 {
    let devices = u64::from(devices).max(1);
    u32::try_from(count.div_ceil(devices) + 1).unwrap_or(u32::MAX)
}

/// Commands that follow queries: one each, for a query is answered once.
fn most_queries(fleet: &FleetPlan) -> u32 {
    let queries = fleet
        .streams
        .iter()
        .filter(|stream| matches!(stream.kind, StreamKind::CommandQuery { .. }));
    let counts = queries.filter_map(|stream| StreamSchedule::new(stream.schedule.clone()).ok());
    most_per_device(fleet.devices, counts.map(|schedule| schedule.count()).sum())
}
