//! Handles copies of every consumer, whatever brought them.

use muster_conduct::{CommandSink, FactWriter, LostCopy, RecordingSink, reader};
use muster_load::PayloadError;
use muster_measure::{Account, ReadDelay, Recorder};
#[cfg(feature = "kafka")]
use muster_model::BackendId;
use muster_model::{Arrival, Integrity, MessageId, Micros};
use muster_platform::{DueTimes, Reader};

use crate::consumers::{ConsumersSpec, Seat};

/// Adds the copies of a thread's consumers to the ledger.
#[derive(Debug)]
pub(crate) struct Intake {
    /// One a backend: the carrier `order` counts the arrivals of each account by itself.
    readers: Vec<Reader>,
    pub(crate) due_times: DueTimes,
    pub(crate) recording: RecordingSink,
    pub(crate) account: Account,
    /// The part of the times of copies that may be our own.
    pub(crate) reading: ReadDelay,
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
            lost_copy: spec.lost_copy,
            copies: 0,
        })
    }

    /// Returns true if the stamps of some stream travel in a property or header.
    #[cfg(feature = "kafka")]
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

    /// One copy: counted before anything of it is decoded, then read. Gives its id. Whether the platform itself
    /// says that no device has stamped it is asked only where no id is found.
    pub(crate) fn take(
        &mut self,
        seat: &Seat,
        seen: Micros,
        copy: &Surfaced<'_>,
        is_platforms: impl FnOnce() -> bool,
    ) -> Option<MessageId> {
        let lost = self.lost_copy();
        // Without an account of arrivals nothing is consumed but replies.
        if lost == Some(LostCopy::Uncounted) || self.account.backends.is_empty() {
            return None;
        }
        self.account.consumed(seat.backend);
        let counts = self.recording.recorder().copies(seat.backend, seen);
        counts.consumed += 1;
        counts.bytes_payload += copy.payload.len() as u64;
        if lost == Some(LostCopy::Counted) {
            return None;
        }
        let due_times = &mut self.due_times;
        let mut read = self.readers[seat.backend.index()].read(
            copy.topic,
            copy.payload,
            copy.property,
            &mut |id| due_times.of(id),
        );
        if read.id.is_none() && is_platforms() {
            read.integrity = Integrity::Unchecked;
        }
        self.account
            .read(seat.backend, read.id.as_ref(), read.integrity);
        self.recording.arrival(&Arrival {
            id: read.id,
            due: read.due,
            seen,
            backend: seat.backend,
            consumer: seat.consumer,
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
