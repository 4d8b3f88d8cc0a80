//! Names and messages of a plan's devices, as both ends need them.

use std::sync::Arc;

use muster_load::{PayloadError, Shape, StreamSchedule, UniqueMs};
use muster_model::{MessageId, Micros, RunId};
use muster_plan::{FleetPlan, Plan, Policy, StreamPlan};
use muster_platform::{
    Dialect, Directory, DirectorySpec, Reader, ReaderStream, Uplink, UplinkScratch,
};

/// The devices of a fleet by formula; `wall_ms_at_t0` is the wall clock at T0 in milliseconds
/// since the Unix epoch.
pub fn directory(plan: &Plan, fleet: &FleetPlan, wall_ms_at_t0: u64) -> Directory {
    Directory::new(DirectorySpec {
        seed: plan.seed,
        wall_ms_at_t0,
        first_device: fleet.first_device,
        devices: fleet.devices,
        first_index: fleet.first_index,
        names: fleet.names.clone(),
        tenant: fleet.tenant.clone(),
        table: fleet.data.clone(),
    })
}

/// Returns the messages of a stream. The due instant travels only where the schedule does not give
/// it back from the sequence number in a step or two.
///
/// # Errors
/// [`PayloadError`] for a payload that the scenario's checks let through.
pub fn uplink(stream: &StreamPlan) -> Result<Uplink, PayloadError> {
    let is_costly = stream.schedule.poisson || matches!(stream.schedule.shape, Shape::Replay(_));
    let carries_due = stream.policy == Policy::Closed || is_costly;
    let uplink = Uplink::new(
        stream.topic.clone(),
        &stream.payload,
        stream.carrier.clone(),
        carries_due,
    )?;
    let uplink = uplink
        .surfacing_on(stream.surface.clone())
        .checked_by(stream.integrity);
    Ok(match unique_ms(stream, &uplink) {
        Some(unique) => uplink.keeping_apart(unique),
        None => uplink,
    })
}

/// Returns the source of `${unique_ms}`, where a message has it.
fn unique_ms(stream: &StreamPlan, uplink: &Uplink) -> Option<UniqueMs> {
    let step = uplink.payload().unique_step()?;
    // The scenario's checks let no impossible schedule through.
    let schedule = StreamSchedule::new(stream.schedule.clone()).ok()?;
    let is_closed = stream.policy == Policy::Closed;
    Some(UniqueMs::new(&Arc::new(schedule), step, is_closed))
}

/// The messages of a plan's devices, rendered again to see at which instants a platform stores them.
#[derive(Debug, Default)]
pub struct PointInstants {
    dialect: Option<Dialect>,
    /// Streams whose due instants follow from the schedule.
    streams: Vec<ReaderStream>,
}

impl PointInstants {
    /// The messages of a plan.
    ///
    /// # Errors
    /// [`PayloadError`] as [`uplink`].
    pub fn new(plan: &Plan, wall_ms_at_t0: u64) -> Result<Self, PayloadError> {
        let is_by_schedule = |stream: &StreamPlan| stream.policy != Policy::Closed;
        Ok(Self {
            dialect: Some(plan.platform.dialect()),
            streams: uplinks(plan, wall_ms_at_t0, is_by_schedule)?,
        })
    }

    /// Returns the instant of a message's point, in milliseconds of the wall clock; none if the message leaves it to the
    /// platform, or belongs to a closed loop, whose due instants follow the answers.
    pub fn of(&self, id: &MessageId, due: Micros, scratch: &mut UplinkScratch) -> Option<i64> {
        let stream = self.streams.iter().find(|stream| stream.id == id.stream)?;
        stream.uplink.render(&stream.directory, id, due, scratch);
        scratch.point_instant(self.dialect?)
    }
}

/// A reader of all that the plan's devices say.
///
/// # Errors
/// [`PayloadError`] as [`uplink`].
pub fn reader(plan: &Plan, run: RunId, wall_ms_at_t0: u64) -> Result<Reader, PayloadError> {
    Ok(Reader::new(run, uplinks(plan, wall_ms_at_t0, |_| true)?))
}

/// The streams of devices' messages that fulfil a condition.
fn uplinks(
    plan: &Plan,
    wall_ms_at_t0: u64,
    is_wanted: impl Fn(&StreamPlan) -> bool,
) -> Result<Vec<ReaderStream>, PayloadError> {
    let mut streams = Vec::new();
    for fleet in &plan.fleets {
        let directory = Arc::new(directory(plan, fleet, wall_ms_at_t0));
        let wanted = fleet.streams.iter().filter(|it| it.is_uplink());
        for stream in wanted.filter(|stream| is_wanted(stream)) {
            streams.push(ReaderStream {
                id: stream.id,
                directory: Arc::clone(&directory),
                uplink: Arc::new(uplink(stream)?),
            });
        }
    }
    Ok(streams)
}
