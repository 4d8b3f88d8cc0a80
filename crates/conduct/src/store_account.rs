//! The account of what a platform's store keeps, filled when the load has ended.

use std::collections::BTreeMap;
use std::sync::Arc;

use muster_load::StreamSchedule;
use muster_measure::{Account, Identity, Recorder, RecorderPlan, Timeline, WindowDelta};
use muster_model::{
    Arrival, BackendId, ConsumerId, DeviceId, Integrity, MessageId, Micros, RunId, STAMP_TEXT,
    Stamp, StampError,
};
use muster_platform::{DueTimes, UplinkScratch};

use crate::{PointInstants, RunData};

/// Messages that were read back from a platform's store. They have the counts of a backend, and no times: the instant of
/// a read is not that of an arrival, so that each counts at the second in which it was due.
#[derive(Debug)]
pub struct StoreAccount {
    backend: BackendId,
    recorder: Recorder,
    account: Account,
    due_times: DueTimes,
    run: RunId,
    stored: u64,
    instants: Arc<PointInstants>,
    scratch: UplinkScratch,
    /// Instants of the run's points, in milliseconds and ascending, of devices that are being read.
    held: BTreeMap<DeviceId, Vec<i64>>,
    /// Devices that were read to their end.
    read: Vec<DeviceId>,
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
        instants: Arc<PointInstants>,
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
            stored: 0,
            instants,
            scratch: UplinkScratch::default(),
            held: BTreeMap::new(),
            read: Vec::new(),
            settle: timeline.settle,
        }
    }

    /// Adds a stored message of a device by the text of its id; `at` is the instant of its point in milliseconds, which
    /// ascends from message to message of the device.
    pub fn add(&mut self, device: DeviceId, at: i64, text: &str) {
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
        if id.is_some_and(|id| id.run == self.run) {
            self.stored += 1;
            self.held.entry(device).or_default().push(at);
        }
    }

    /// Number of stored messages of the run, with those that are stored twice.
    pub const fn stored(&self) -> u64 {
        self.stored
    }

    /// Notes that a device was read to its end. What is absent of it is overwritten if the store holds its instant.
    pub fn all_read(&mut self, device: DeviceId, run: Option<&Identity>) {
        self.read.push(device);
        let held = self.held.remove(&device);
        let (Some(held), Some(run)) = (held, run) else {
            return;
        };
        let absent: Vec<_> = self.recorder.absent_of(run, device).collect();
        for (stream, seqs) in absent {
            for seq in seqs {
                let id = MessageId {
                    run: self.run,
                    device,
                    stream,
                    seq,
                };
                let at = self.instant(&id);
                if at.is_some_and(|at| held.binary_search(&at).is_ok()) {
                    self.recorder.overwritten(&id);
                }
            }
        }
    }

    /// The instant of a message's point, in milliseconds; none if nobody knows it.
    fn instant(&mut self, id: &MessageId) -> Option<i64> {
        let due = self.due_times.of(id)?;
        self.instants.of(id, due, &mut self.scratch)
    }

    /// Number of messages of a run, accepted or unacknowledged, that are absent so far.
    pub fn absent(&self, data: &RunData) -> u64 {
        let run = data.identity.as_ref();
        run.map_or(0, |run| self.recorder.absent_at_store(run))
    }

    /// Notes that nothing more will be stored: what is absent of a device that was read to its end is not stored.
    /// Otherwise it is outstanding.
    pub fn settle(&mut self) {
        self.read
            .drain(..)
            .for_each(|device| self.recorder.all_read(device));
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

#[cfg(test)]
mod tests {
    use muster_measure::{Cold, PublishedPlan};
    use muster_model::{DeviceSample, StreamId};

    use super::*;

    const STORE: BackendId = BackendId(0);

    fn text(run: u32, covered: &[&[u8]]) -> String {
        let id = MessageId {
            run: RunId(run),
            device: DeviceId(0),
            stream: StreamId(0),
            seq: 7,
        };
        let text = Stamp { id, due: None }.encode_text(covered);
        String::from_utf8_lossy(&text).into_owned()
    }

    /// Law: every value is counted once, and what was counted where it was read is what the recorder counted.
    #[test]
    fn each_value_counts_and_only_ids_of_the_run_are_its_messages() {
        let plan = RecorderPlan {
            run: RunId(1),
            warm_up: Micros::ZERO,
            measure: Micros::from_secs(1),
            streams: Vec::new(),
            fleets: Vec::new(),
            groups: Vec::new(),
            backends: 1,
            store: Some(DeviceSample::all(1)),
            cold: Cold::Nothing,
            published: PublishedPlan::Nothing,
        };
        let mut account = StoreAccount::new(STORE, plan, &[], Timeline::CONNECTING, Arc::default());
        // The check of the second one covers bytes that are not read.
        let values = [text(1, &[]), text(1, &[b"body"]), text(2, &[])];
        let mut add = |value: &str| account.add(DeviceId(0), 1, value);
        values.iter().for_each(|value| add(value));
        let strays = ["", "17", &"!".repeat(STAMP_TEXT)];
        strays.iter().for_each(|value| add(value));
        assert_eq!(account.stored(), 2);
        let counted = account.account.backends.clone();
        assert_eq!((counted[0].consumed, counted[0].unstamped), (6, 3));
        assert_eq!(counted[0].read.count, 3);
        assert_eq!(account.recorder.finish().facts().backends, counted);
    }
}
