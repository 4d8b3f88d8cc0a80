//! Due instants asked for by id, nearly in order, as a consumer does.

use std::sync::Arc;

use muster_model::{DeviceId, Micros};

use crate::poisson::Recent;
use crate::schedule::{Schedule, StreamSchedule};
use crate::shape::AddedHold;

/// Gives the due instant of a message back from its device and sequence number.
///
/// The answers are those of the schedule. A Poisson schedule is asked about 20 times faster this way, if
/// the questions come within a few hundred messages of each other; this costs 8 KiB then, and
/// nothing for other schedules.
#[derive(Debug, Clone)]
pub struct Recall {
    schedule: Arc<StreamSchedule>,
    recent: Option<Box<Recent>>,
}

impl Recall {
    /// Nothing asked yet.
    pub fn new(schedule: Arc<StreamSchedule>) -> Self {
        let recent = schedule.poisson().map(|_| Box::new(Recent::new()));
        Self { schedule, recent }
    }

    /// Returns the due instant of a message from the start of warm-up; none if there is no such
    /// message.
    pub fn due(&mut self, device: DeviceId, seq: u32) -> Option<Micros> {
        let n = self.schedule.index_of(device, seq)?;
        match (self.schedule.poisson(), &mut self.recent) {
            (Some(poisson), Some(recent)) => self.schedule.instant(recent.arrival(poisson, n)?),
            (_, _) => self.schedule.due(n),
        }
    }

    /// Knows the messages of another hold. Does nothing if there can be no such schedule, as
    /// [`Cursor::add_hold`](crate::Cursor::add_hold).
    pub fn add_hold(&mut self, hold: &AddedHold) {
        if let Ok(schedule) = self.schedule.with_hold(hold) {
            self.schedule = Arc::new(schedule);
        }
    }

    /// The schedule that is asked.
    pub fn schedule(&self) -> &StreamSchedule {
        &self.schedule
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sample::any_spec;

    proptest! {
        /// Law: in any order of questions, the answers are the schedule's.
        #[test]
        fn recalling_is_asking_the_schedule(spec in any_spec(), asked: [(u32, u32); 30]) {
            let schedule = Arc::new(StreamSchedule::new(spec).unwrap());
            let mut recall = Recall::new(Arc::clone(&schedule));
            for (device, seq) in asked {
                let device = DeviceId(schedule.devices().start + device % 40);
                let seq = seq % 50;
                let expected = schedule.index_of(device, seq).and_then(|n| schedule.due(n));
                prop_assert_eq!(recall.due(device, seq), expected);
            }
        }
    }
}
