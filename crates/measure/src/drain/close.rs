//! Closes the account of what was kept for devices that were offline.

use std::collections::BTreeSet;
use std::ops::Range;

use muster_model::{DeviceId, Micros, StreamId};

use super::{Absence, DrainLedger, DrainSummary};
use crate::closing::Closing;
use crate::copies::CopySums;
use crate::scope::view;
use crate::{Distribution, Identity, SeqSet, TableRow};

/// The closed account of what was kept for the devices of one stream.
#[derive(Debug, Clone, Default)]
pub(crate) struct DrainClosed {
    pub(crate) ledger: DrainLedger,
    took: Distribution,
}

/// Sums over the devices of one stream.
#[derive(Debug, Default)]
pub(crate) struct DrainSums {
    kept: TableRow,
    /// Copies of what was due then, accepted or not.
    pub(crate) copies: CopySums,
    incomplete: BTreeSet<DeviceId>,
    /// True if the schedule does not know some of what was due.
    pub(crate) is_unknown: bool,
}

impl Closing<'_> {
    /// Absence of the device; none if it never was away, or it is not known.
    pub(crate) fn absence(&self, stream: StreamId, device: DeviceId) -> Option<&Absence> {
        let link = self.plan.link_of(stream, device);
        self.identity?.drains.absence(link)
    }

    /// Numbers of a sender's messages, or of commands, that came due in an absence.
    pub(crate) fn due_in(
        &self,
        absence: &Absence,
        stream: StreamId,
        device: DeviceId,
    ) -> Option<Range<u32>> {
        let until = absence.returned.unwrap_or(Micros::MAX);
        self.calendar?
            .due_between(stream, device, absence.left, until)
    }

    /// The draining of a stream whose sets were walked; none if no device of it was offline.
    pub(crate) fn close_drain(&self, stream: StreamId, sums: &DrainSums) -> Option<DrainClosed> {
        let track = self.plan.stream(stream)?;
        let identity = self.identity?;
        let mut closed = DrainClosed::default();
        let first = track.first_device.0;
        for device in (first..first + track.devices).map(DeviceId) {
            if let Some(absence) = self.absence(stream, device) {
                closed.add(identity, absence, (stream, device));
            }
        }
        sums.fill(&mut closed.ledger);
        (closed.ledger.devices > 0).then_some(closed)
    }
}

impl DrainClosed {
    fn add(&mut self, identity: &Identity, absence: &Absence, who: (StreamId, DeviceId)) {
        let ledger = &mut self.ledger;
        ledger.devices += 1;
        let Some(returned) = absence.returned else {
            return;
        };
        ledger.returned += 1;
        ledger.forgotten += u64::from(!absence.is_kept);
        let begins = [ledger.began, Some(returned)];
        ledger.began = begins.into_iter().flatten().min();
        let Some(last) = identity.drains.drained(who.0, who.1).last else {
            return;
        };
        ledger.ended = ledger.ended.max(Some(last));
        let took = last - returned;
        if self.took.count == 0 || took.get() > self.took.max_us {
            ledger.slowest = Some(who.1);
        }
        self.took.record(took);
    }

    /// The draining of several streams together.
    pub(crate) fn sum<'a>(parts: impl Iterator<Item = &'a DrainClosed>) -> Option<DrainSummary> {
        let mut sum: Option<DrainClosed> = None;
        for part in parts {
            let sum = sum.get_or_insert_with(DrainClosed::default);
            sum.ledger.merge(&part.ledger);
            if sum.took.count == 0 || part.took.max_us > sum.took.max_us {
                sum.ledger.slowest = part.ledger.slowest;
            }
            sum.took.merge(&part.took);
        }
        let DrainClosed { ledger, took } = sum?;
        Some(DrainSummary {
            ledger,
            took: view(took, Distribution::default(), false),
        })
    }
}

impl DrainSums {
    /// Compares what was kept for an absent device with what arrived. Numbers from `border` on may
    /// still arrive.
    pub(crate) fn compare(
        &mut self,
        device: DeviceId,
        kept: &SeqSet,
        arrived: &SeqSet,
        border: u32,
    ) {
        let row = TableRow::compare(kept, arrived, border);
        if row.arrived < row.total() {
            self.incomplete.insert(device);
        }
        self.kept.merge(&row);
    }

    fn fill(&self, ledger: &mut DrainLedger) {
        ledger.duplicates = self.copies.further.all;
        ledger.reordered = self.copies.reordered;
        if self.is_unknown {
            return;
        }
        ledger.expected = Some(self.kept.total());
        ledger.drained = Some(self.kept.arrived);
        ledger.lost = Some(self.kept.absent);
        ledger.outstanding = Some(self.kept.outstanding);
        ledger.incomplete = self.incomplete.len() as u64;
    }
}
