//! Due instants of messages, as their receiver computes them.

use std::sync::Arc;

use muster_load::{AddedHold, Recall, StreamSchedule};
use muster_model::{MessageId, Micros};

/// Gives the due instant of a message back from the schedules of a plan.
#[derive(Debug)]
pub struct DueTimes {
    streams: Vec<Recall>,
    origin: Option<Micros>,
}

impl DueTimes {
    /// Of the schedules of all streams, in the order of `StreamId`; nothing is due before
    /// [`DueTimes::start`].
    pub fn new(schedules: &[Arc<StreamSchedule>]) -> Self {
        let streams = schedules
            .iter()
            .map(|schedule| Recall::new(Arc::clone(schedule)));
        Self {
            streams: streams.collect(),
            origin: None,
        }
    }

    /// The warm-up begins at `origin`.
    pub fn start(&mut self, origin: Micros) {
        self.origin = Some(origin);
    }

    /// Knows the messages of another hold. Returns its begin on the clock of due instants; none before the start.
    pub fn add_hold(&mut self, hold: &AddedHold) -> Option<Micros> {
        self.streams
            .iter_mut()
            .for_each(|stream| stream.add_hold(hold));
        Some(self.origin? + hold.from)
    }

    /// Returns the due instant of a message; none if there is no such message.
    pub fn of(&mut self, id: &MessageId) -> Option<Micros> {
        let due = self
            .streams
            .get_mut(id.stream.index())?
            .due(id.device, id.seq)?;
        Some(self.origin? + due)
    }
}
