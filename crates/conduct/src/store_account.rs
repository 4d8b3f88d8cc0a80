//! The account of what a platform's store keeps, filled when the load has ended.

use std::sync::Arc;

use muster_load::StreamSchedule;
use muster_measure::{Account, Recorder, RecorderPlan, Timeline, WindowDelta};
use muster_model::{
    Arrival, BackendId, ConsumerId, DeviceId, Integrity, MessageId, Micros, RunId, STAMP_TEXT,
    Stamp, StampError,
};
use muster_platform::DueTimes;

use crate::RunData;

/// Messages that were read back from a platform's store. They have the counts of a backend, and no times: the instant of
/// a read is not that of an arrival, so that each counts at the second in which it was due.
#[derive(Debug)]
pub struct StoreAccount {
    backend: BackendId,
    recorder: Recorder,
    account: Account,
    due_times: DueTimes,
    run: RunId,
    /// The instant of what was due at an unknown one.
    settle: Micros,
}

impl StoreAccount {
    /// The empty account of a store.
    pub fn new(
        backend: BackendId,
        plan: RecorderPlan,
        schedules: &[Arc<StreamSchedule>],
        timeline: Timeline,
    ) -> Self {
        let mut due_times = DueTimes::new(schedules);
        due_times.start(timeline.origin);
        let account = Account::new(&plan);
        let run = plan.run;
        let mut recorder = Recorder::new(plan);
        recorder.start(timeline.origin);
        recorder.stop(timeline.settle);
        Self {
            backend,
            recorder,
            account,
            due_times,
            run,
            settle: timeline.settle,
        }
    }

    /// Adds a stored message by the text of its id; returns false if that is none of this run.
    pub fn add(&mut self, text: &str) -> bool {
        let read = read(text);
        let id = read.map(|(id, _)| id);
        let integrity = read.map_or(Integrity::Unchecked, |(_, integrity)| integrity);
        let due = id.as_ref().and_then(|id| self.due_times.of(id));
        let seen = due.unwrap_or(self.settle);
        self.account.consumed(self.backend);
        self.recorder.copies(self.backend, seen).consumed += 1;
        self.account.read(self.backend, id.as_ref(), integrity);
        self.recorder.arrival(&Arrival {
            id,
            due,
            seen,
            backend: self.backend,
            consumer: ConsumerId(0),
            integrity,
            own: Micros::ZERO,
        });
        id.is_some_and(|id| id.run == self.run)
    }

    /// Notes that all was added that is stored of a device: what else was accepted of it is not stored.
    pub fn all_read(&mut self, device: DeviceId) {
        self.recorder.all_read(device);
    }

    /// Adds the account to what a run has left behind, but for its windows, which are returned.
    pub fn add_to(mut self, data: &mut RunData) -> WindowDelta {
        let windows = self.recorder.flush(data.end);
        let identity = self.recorder.finish();
        if let (Some(whole), Some(account)) = (&mut data.identity, &mut data.account) {
            whole.merge(identity);
            account.merge(&self.account);
        }
        windows
    }
}

/// Reads an id. A check that covers more than the id cannot be made, since its value alone was read.
fn read(text: &str) -> Option<(MessageId, Integrity)> {
    let text: &[u8; STAMP_TEXT] = text.as_bytes().try_into().ok()?;
    match Stamp::decode_text(text, &[]) {
        Ok(stamp) => Some((stamp.id, Integrity::Intact)),
        Err(StampError::Check(stamp)) => Some((stamp.id, Integrity::Unchecked)),
        Err(StampError::NotText) => None,
    }
}
