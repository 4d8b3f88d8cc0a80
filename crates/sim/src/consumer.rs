//! The model of all consumers: reads every copy as a real consumer does.

use std::sync::Arc;

use muster_conduct::{PlanCalendar, RecordingSink, reader};
use muster_load::{PayloadError, StreamSchedule};
use muster_measure::{Account, Calendar, ReadDelay, Recorder, RecorderPlan, Timeline};
use muster_model::{Arrival, BackendId, ConsumerId, MessageId, Micros, RunId};
use muster_plan::Plan;
use muster_platform::Reader;

use crate::queue::Copy;
use crate::witness::Witness;

/// One consumer a backend; each sees every copy.
#[derive(Debug)]
pub(crate) struct Consumers {
    readers: Vec<Reader>,
    pub(crate) witness: Witness,
    pub(crate) account: Account,
    calendar: PlanCalendar,
    pub(crate) reading: ReadDelay,
}

impl Consumers {
    pub(crate) fn new(
        plan: &Plan,
        run: RunId,
        recorder: &RecorderPlan,
        schedules: &[Arc<StreamSchedule>],
    ) -> Result<Self, PayloadError> {
        let accounts = plan.backends.iter().take(plan.accounts());
        let readers = accounts.map(|_| reader(plan, run, 0));
        Ok(Self {
            readers: readers.collect::<Result<_, _>>()?,
            witness: Witness::new(
                plan,
                RecordingSink::new(Recorder::new(recorder.clone()), None),
            ),
            account: Account::new(recorder),
            calendar: PlanCalendar::new(plan, schedules, Timeline::CONNECTING),
            reading: ReadDelay::default(),
        })
    }

    pub(crate) fn start(&mut self, calendar: PlanCalendar) {
        self.calendar = calendar;
    }

    /// Reads the messages of another hold, which begins at `from`.
    pub(crate) fn add_hold(&mut self, from: Micros, factor: f64) {
        for reader in &mut self.readers {
            reader.add_hold(from, factor);
        }
    }

    /// One copy reaches every backend; `each` gets the message's id, if that can be read.
    pub(crate) fn arrived(
        &mut self,
        seen: Micros,
        copy: &Copy,
        mut each: impl FnMut(BackendId, &MessageId),
    ) {
        for (reader, at) in self.readers.iter_mut().zip(0u8..) {
            let backend = BackendId(at);
            self.account.consumed(backend);
            let counts = self.witness.recording.recorder().copies(backend, seen);
            counts.consumed += 1;
            counts.bytes_payload += copy.payload.len() as u64;
            let calendar = &self.calendar;
            let mut due = |id: &MessageId| calendar.due(id.stream, id.device, id.seq);
            let property = copy.property.as_deref();
            let read = reader.read(&copy.topic, &copy.payload, property, &mut due);
            self.account.read(backend, read.id.as_ref(), read.integrity);
            self.witness.recording.arrival(&Arrival {
                id: read.id,
                due: read.due,
                seen,
                backend,
                consumer: ConsumerId(0),
                integrity: read.integrity,
                own: read
                    .due
                    .map_or(Micros::ZERO, |due| self.reading.own(due, seen)),
            });
            if let Some(id) = read.id {
                each(backend, &id);
            }
        }
    }
}
