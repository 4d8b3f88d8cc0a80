//! Closes the account of subscribers.

use std::collections::BTreeMap;
use std::ops::Range;

use muster_model::{DeviceId, StreamId};

use super::ledger::ROWS_MAX;
use super::sets::Pair;
use super::{ReceptionLedger, ReceptionSummary, ReceptionWindow, SubscriberRow};
use crate::closing::Closing;
use crate::copies::{CopySums, Seen};
use crate::drain::{DrainClosed, DrainSums};
use crate::equations::{Equations, Row};
use crate::merge::sum_of;
use crate::scope::view;
use crate::{Distribution, Identity, Phase, Role, SeqSet, TableRow, WindowKey};

/// The subscribers of one stream, closed, with the times of its measured cohort.
pub(crate) struct ReceptionsClosed {
    pub(crate) ledger: ReceptionLedger,
    end_to_end: Option<Distribution>,
    drain: Option<DrainClosed>,
}

/// Sums over the devices of one stream.
#[derive(Default)]
struct ReceptionSums {
    stream: StreamId,
    expected: TableRow,
    copies: CopySums,
    rows: BTreeMap<DeviceId, SubscriberRow>,
    drain: DrainSums,
}

impl Closing<'_> {
    /// The subscribers of a stream; none if it is of another kind.
    pub(crate) fn close_receptions(&self, stream: StreamId) -> Option<ReceptionsClosed> {
        let track = self.plan.stream(stream)?;
        if track.role != Role::Receive {
            return None;
        }
        let windows = |is_wanted: fn(&WindowKey) -> bool| -> ReceptionWindow {
            let windows = &self.windows.receptions;
            sum_of(windows, |(of, key)| *of == stream && is_wanted(key))
        };
        let all = windows(|_| true);
        let measured = windows(|key| key.phase == Phase::Measure);
        let mut ledger = ReceptionLedger {
            subscribers: u64::from(track.devices),
            consumed: all.copies(),
            arrived: all.arrived,
            foreign: all.foreign,
            unstamped: all.unstamped,
            corrupted: all.corrupted,
            ..ReceptionLedger::default()
        };
        let mut drain = None;
        if let Some(sums) = self.reception_sums(stream) {
            sums.fill(&mut ledger);
            drain = self.close_drain(stream, &sums.drain);
            if let Some(equations) = self.reception_equations(stream, &sums, &all) {
                ledger.residue = Some(equations.residue());
                ledger.equations = equations.broken;
            }
        }
        Some(ReceptionsClosed {
            ledger,
            end_to_end: self.has_one_clock.then_some(measured.end_to_end),
            drain,
        })
    }

    fn reception_sums(&self, stream: StreamId) -> Option<ReceptionSums> {
        let (identity, calendar) = (self.identity?, self.calendar?);
        let quiet_since = identity.receptions.last.unwrap_or(self.timeline.settle);
        // Subscribers are devices, whether consumers listen or not.
        let is_quiet = quiet_since + self.quiet <= self.devices_until;
        let mut sums = ReceptionSums {
            stream,
            ..ReceptionSums::default()
        };
        let nothing = Seen::default();
        calendar.audience(stream, &mut |subscriber, of, sender| {
            let pair = Pair {
                stream,
                subscriber,
                of,
                sender,
            };
            let seen = identity.receptions.get(&pair).unwrap_or(&nothing);
            let border = if is_quiet { u32::MAX } else { seen.drained };
            let expected = identity.expected(self, of, sender);
            let row = TableRow::compare(&expected, &seen.arrived, border);
            sums.expect(subscriber, &row);
            if let Some(due) = self.due_while_away(&pair, &mut sums.drain) {
                let kept = expected.within(due);
                sums.drain.compare(subscriber, &kept, &seen.arrived, border);
            }
        });
        for (pair, seen) in identity.receptions.of(stream) {
            sums.add(identity, self, pair, seen);
            if let Some(due) = self.due_while_away(pair, &mut sums.drain) {
                sums.drain.copies.add(seen.sums(None, due));
            }
        }
        Some(sums)
    }

    /// Numbers of a sender's messages that came due while their subscriber was away.
    fn due_while_away(&self, pair: &Pair, drain: &mut DrainSums) -> Option<Range<u32>> {
        let absence = self.absence(pair.stream, pair.subscriber)?;
        let due = self.due_in(absence, pair.of, pair.sender);
        drain.is_unknown |= due.is_none();
        due
    }

    fn reception_equations(
        &self,
        stream: StreamId,
        sums: &ReceptionSums,
        windows: &ReceptionWindow,
    ) -> Option<Equations> {
        let own = self.account?.receptions.get(stream.index())?;
        let identity = self.identity?;
        let facts = identity.facts.receptions.get(stream.index())?;
        let strays = &identity.receptions;
        let foreign = strays.foreign.get(&stream).copied().unwrap_or(0);
        let corrupted = strays.corrupted.get(&stream).copied().unwrap_or(0);
        let mut about = Equations::about(format!("subscribers of stream {}", stream.0));
        let copies = Row::of_counts("copies", own.consumed, facts.consumed);
        for row in [
            copies.window(windows.copies()),
            Row::new("copies with an id", own.read, facts.read),
            Row::of_counts("copies without an id", own.unstamped, facts.unstamped),
        ] {
            about.row(&row);
        }
        let parts = sums.copies.all() + foreign + facts.unstamped;
        let name = "consumed = arrived + duplicates + duplicate_own + foreign + unstamped";
        about.counts(name, own.consumed, parts);
        if self.has_one_clock && !sums.drain.is_unknown {
            let drained = identity.drains.drained_count(stream);
            let name = "drained: by their instants = by the schedule";
            about.counts(name, drained, sums.drain.copies.first);
        }
        about.counts("windows: first copies", windows.arrived, sums.copies.first);
        about.counts("windows: corrupted", windows.corrupted, corrupted);
        Some(about)
    }
}

impl Identity {
    /// The messages of a device's stream that every subscriber is to get.
    fn expected(&self, closing: &Closing<'_>, stream: StreamId, device: DeviceId) -> SeqSet {
        let finals = closing.plan.stream(stream).and_then(|track| {
            let of_stream = self.streams.get(stream.index())?;
            let finals = of_stream.devices.get(track.slot(device)?)?;
            Some((finals, of_stream.primary))
        });
        let Some((finals, primary)) = finals else {
            return SeqSet::default();
        };
        let sets = finals
            .sets(primary)
            .filter(|(state, _)| state.is_expected());
        sets.fold(SeqSet::default(), |all, (_, set)| all.union(set))
    }
}

impl ReceptionsClosed {
    /// Ledger and latency of several streams together.
    pub(crate) fn sum<'a>(
        parts: impl Iterator<Item = &'a ReceptionsClosed> + Clone,
        is_whole: bool,
    ) -> Option<ReceptionSummary> {
        let drain = DrainClosed::sum(parts.clone().filter_map(|part| part.drain.as_ref()));
        let mut sum: Option<(ReceptionLedger, Option<Distribution>)> = None;
        for part in parts {
            let (ledger, times) = sum.get_or_insert_with(Default::default);
            ledger.merge(&part.ledger);
            if let Some(theirs) = &part.end_to_end {
                times.get_or_insert_default().merge(theirs);
            }
        }
        let (mut ledger, times) = sum?;
        ledger.truncated = ledger.by_subscriber.len() > ROWS_MAX;
        ledger.by_subscriber.truncate(ROWS_MAX);
        if !is_whole {
            ledger.residue = None;
        }
        let nothing = Distribution::default;
        Some(ReceptionSummary {
            ledger,
            end_to_end: times.map(|times| view(times, nothing(), false)),
            drain,
        })
    }
}

impl ReceptionSums {
    fn row(&mut self, subscriber: DeviceId) -> &mut SubscriberRow {
        let new = SubscriberRow {
            device: subscriber,
            stream: self.stream,
            ..SubscriberRow::default()
        };
        self.rows.entry(subscriber).or_insert(new)
    }

    fn expect(&mut self, subscriber: DeviceId, of_pair: &TableRow) {
        self.expected.merge(of_pair);
        let row = self.row(subscriber);
        row.expected += of_pair.total();
        row.lost += of_pair.absent;
    }

    fn add(&mut self, identity: &Identity, closing: &Closing<'_>, pair: &Pair, seen: &Seen) {
        let resent = closing.plan.stream(pair.of).and_then(|track| {
            let of_stream = identity.streams.get(pair.of.index())?;
            of_stream.devices.get(track.slot(pair.sender)?)?.resent()
        });
        let copies = seen.sums(resent, 0..u32::MAX);
        self.copies.add(copies);
        let row = self.row(pair.subscriber);
        row.arrived += copies.first;
        row.again += copies.further.all;
    }

    fn fill(&self, ledger: &mut ReceptionLedger) {
        let CopySums { first, further, .. } = self.copies;
        ledger.expected = Some(self.expected.total());
        ledger.arrived = first;
        ledger.unexpected = Some(first - self.expected.arrived);
        ledger.duplicates = Some(further.all - further.own);
        ledger.duplicate_own = Some(further.own);
        ledger.reordered = Some(self.copies.reordered);
        ledger.lost = Some(self.expected.absent);
        ledger.outstanding = Some(self.expected.outstanding);
        ledger.by_subscriber = self.rows.values().copied().collect();
    }
}
