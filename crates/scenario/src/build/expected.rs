//! Number of messages that a stream will have.

use muster_load::{Schedule, StreamSchedule};
use muster_model::Micros;

use muster_plan::StreamPlan;

/// Messages of a stream due at or after an instant of its schedule.
pub(super) fn due_from(stream: &StreamPlan, from: Micros) -> u64 {
    StreamSchedule::new(stream.schedule.clone())
        .map_or(0, |schedule| schedule.count() - schedule.count_until(from))
}
