//! Handles copies of every consumer, whatever brought them.

use muster_conduct::{
    CommandSink, Diagnostic, Dispatch, FactWriter, LostCopy, Progress, RecordingSink, reader,
};
use muster_load::{AddedHold, PayloadError};
use muster_measure::{Account, ReadDelay, Recorder};
use muster_model::{Arrival, BackendId, Integrity, MessageId, Micros, Turn};
use muster_platform::{DueTimes, Reader};

use crate::consumers::{ConsumerPlan, ConsumersSpec};

/// Adds the copies of a thread's consumers to the ledger.
#[derive(Debug)]
pub(crate) struct Intake {
    /// One a backend: the carrier `order` counts the arrivals of each account by itself.
    readers: Vec<Reader>,
    due_times: DueTimes,
    recording: RecordingSink,
    account: Account,
    /// The part of the times of copies that may be our own.
    reading: ReadDelay,
    /// The turn of this thread.
    turn: Turn,
    lost_copy: Option<LostCopy>,
    copies: u64,
}

/// A copy as it came.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Surfaced<'a> {
    pub(crate) topic: &'a str,
    pub(crate) payload: &'a [u8],
    /// The property or header that carries a stamp, if there is one.
    pub(crate) property: Option<&'a str>,
}

impl Intake {
    pub(crate) fn new(
        spec: &ConsumersSpec,
        writer: Option<Box<dyn FactWriter>>,
    ) -> Result<Self, PayloadError> {
        let wall_ms = spec.clock.wall_ms_at_t0();
        let backends = spec.plan.backends.iter();
        let readers = backends.map(|_| reader(&spec.plan, spec.run, wall_ms));
        Ok(Self {
            readers: readers.collect::<Result<_, _>>()?,
            due_times: DueTimes::new(&spec.schedules),
            recording: RecordingSink::new(Recorder::new(spec.recorder.clone()), writer),
            account: Account::new(&spec.recorder),
            reading: ReadDelay::default(),
            turn: Turn::default(),
            lost_copy: spec.lost_copy,
            copies: 0,
        })
    }

    /// Returns true if the stamps of some stream travel in a property or header.
    pub(crate) fn reads_properties(&self, backend: BackendId) -> bool {
        self.readers[backend.index()].reads_properties()
    }

    /// Returns the sink of commands and their replies.
    pub(crate) fn sink(&mut self) -> CommandSink<'_, RecordingSink> {
        CommandSink {
            account: &mut self.account,
            sink: &mut self.recording,
        }
    }

    /// Sets the due instant of the first message.
    pub(crate) fn start(&mut self, origin: Micros) {
        self.due_times.start(origin);
        self.recording.recorder().start(origin);
    }

    /// Knows the messages of another hold.
    pub(crate) fn add_hold(&mut self, hold: &AddedHold) {
        let Some(from) = self.due_times.add_hold(hold) else {
            return;
        };
        for reader in &mut self.readers {
            reader.add_hold(from, hold.factor);
        }
    }

    /// Ends the measured phase at `at`, if that is before its planned end.
    pub(crate) fn stop(&mut self, at: Micros) {
        let recorder = self.recording.recorder();
        if at < recorder.timeline().settle {
            recorder.stop(at);
        }
    }

    /// Marks messages that are still on their way as outstanding.
    pub(crate) fn mark_drain(&mut self) {
        self.recording.recorder().mark_drain();
    }

    /// Notes the begin of a turn of the event loop.
    pub(crate) fn turn_begins(&mut self, turn: &Turn) {
        self.turn = *turn;
        self.reading.turn_begins(turn);
    }

    /// Notes that the copies from here on were read by another thread, which has worked since `began`.
    pub(crate) fn read_since(&mut self, began: Micros) {
        let turn = Turn { began, ..self.turn };
        self.reading.turn_begins(&turn);
    }

    /// Returns the records since the last call, for a report.
    pub(crate) fn dispatch(
        &mut self,
        progress: Progress,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Box<Dispatch> {
        self.recording.dispatch(progress, diagnostics)
    }

    /// Returns the last report, with all counts and identities.
    pub(crate) fn hand_over(&mut self) -> Box<Dispatch> {
        self.recording.hand_over(std::mem::take(&mut self.account))
    }

    /// Counts a copy before anything of it is decoded, then reads it, and returns its id. `is_platforms`
    /// is asked if the copy has no id: it returns true if the platform itself wrote the copy.
    pub(crate) fn receive(
        &mut self,
        consumer: &ConsumerPlan,
        seen: Micros,
        copy: &Surfaced<'_>,
        is_platforms: impl FnOnce() -> bool,
    ) -> Option<MessageId> {
        let lost = self.lost_copy();
        // Without an account of arrivals nothing is consumed but replies.
        if lost == Some(LostCopy::Uncounted) || self.account.backends.is_empty() {
            return None;
        }
        self.account.consumed(consumer.backend);
        let counts = self.recording.recorder().copies(consumer.backend, seen);
        counts.consumed += 1;
        counts.bytes_payload += copy.payload.len() as u64;
        if lost == Some(LostCopy::Counted) {
            return None;
        }
        let due_times = &mut self.due_times;
        let mut read = self.readers[consumer.backend.index()].read(
            copy.topic,
            copy.payload,
            copy.property,
            &mut |id| due_times.of(id),
        );
        if read.id.is_none() && is_platforms() {
            read.integrity = Integrity::Unchecked;
        }
        self.account
            .read(consumer.backend, read.id.as_ref(), read.integrity);
        self.recording.arrival(&Arrival {
            id: read.id,
            due: read.due,
            seen,
            backend: consumer.backend,
            consumer: consumer.consumer,
            integrity: read.integrity,
            own: read
                .due
                .map_or(Micros::ZERO, |due| self.reading.own(due, seen)),
        });
        read.id
    }

    /// Returns true if this copy is the one that a test loses on purpose.
    fn lost_copy(&mut self) -> Option<LostCopy> {
        self.copies += 1;
        let is_it = self.copies == LostCopy::NUMBER + 1;
        self.lost_copy.filter(|_| is_it)
    }
}
