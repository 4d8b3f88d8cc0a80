//! Closes the account of subscribers.

use std::collections::BTreeMap;
use std::ops::Range;

use muster_model::{DeviceId, StreamId};

use super::ledger::ROWS_MAX;
use super::sets::Pair;
use super::{ReceptionLedger, ReceptionSummary, ReceptionWindow, SubscriberRow};
use crate::closing::Closing;
use crate::copies::Seen;
use crate::drain::{DrainClosed, DrainWalk};
use crate::equations::{Equations, Row};
use crate::scope::view;
use crate::sweep::sweep;
use crate::{Distribution, Identity, Phase, Role, SeqSet, WindowKey};

/// The subscribers of one stream, closed, with the times of its measured cohort.
pub(crate) struct ReceptionsClosed {
    pub(crate) ledger: ReceptionLedger,
    end_to_end: Option<Distribution>,
    drain: Option<DrainClosed>,
}

/// Totals over the sets of one stream.
#[derive(Default)]
struct Walk {
    stream: StreamId,
    expected: u64,
    arrived: u64,
    arrived_expected: u64,
    lost: u64,
    outstanding: u64,
    further: u64,
    further_own: u64,
    reordered: u64,
    rows: BTreeMap<DeviceId, SubscriberRow>,
    drain: DrainWalk,
}

impl Closing<'_> {
    /// The subscribers of a stream; none if it is of another kind.
    pub(crate) fn close_receptions(&self, stream: StreamId) -> Option<ReceptionsClosed> {
        let track = self.plan.stream(stream)?;
        if track.role != Role::Receive {
            return None;
        }
        let all = self.reception_windows(stream, |_| true);
        let measured = self.reception_windows(stream, |key| key.phase == Phase::Measure);
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
        if let Some(walk) = self.walk_receptions(stream) {
            walk.fill(&mut ledger);
            drain = self.close_drain(stream, &walk.drain);
            if let Some(equations) = self.reception_equations(stream, &walk, &all) {
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

    fn reception_windows(
        &self,
        stream: StreamId,
        is_wanted: impl Fn(&WindowKey) -> bool,
    ) -> ReceptionWindow {
        let mut sum = ReceptionWindow::default();
        for ((of, key), window) in &self.windows.receptions {
            if *of == stream && is_wanted(key) {
                sum.merge(window);
            }
        }
        sum
    }

    fn walk_receptions(&self, stream: StreamId) -> Option<Walk> {
        let (identity, calendar) = (self.identity?, self.calendar?);
        let quiet_since = identity.receptions.last.unwrap_or(self.timeline.settle);
        // Subscribers are devices, whether consumers listen or not.
        let is_quiet = quiet_since + self.quiet <= self.devices_until;
        let mut walk = Walk {
            stream,
            ..Walk::default()
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
            walk.expect(subscriber, &expected, (seen, border));
            if let Some(due) = self.due_while_away(&pair, &mut walk.drain) {
                let drain = &mut walk.drain;
                drain.expect(subscriber, &expected, &seen.arrived, (due, border));
            }
        });
        for (pair, seen) in identity.receptions.of(stream) {
            walk.add(identity, self, pair, seen);
            if let Some(due) = self.due_while_away(pair, &mut walk.drain) {
                walk.drain.came(seen, due);
            }
        }
        Some(walk)
    }

    /// Numbers of a sender's messages that came due while their subscriber was away.
    fn due_while_away(&self, pair: &Pair, drain: &mut DrainWalk) -> Option<Range<u32>> {
        let absence = self.absence(pair.stream, pair.subscriber)?;
        let due = self.due_in(absence, pair.of, pair.sender);
        drain.is_unknown |= due.is_none();
        due
    }

    fn reception_equations(
        &self,
        stream: StreamId,
        walk: &Walk,
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
        let parts = walk.arrived + walk.further + foreign + facts.unstamped;
        let name = "consumed = arrived + duplicates + duplicate_own + foreign + unstamped";
        about.counts(name, own.consumed, parts);
        let parts = walk.arrived_expected + walk.lost + walk.outstanding;
        about.counts(
            "expected = arrived + lost + outstanding",
            walk.expected,
            parts,
        );
        if self.has_one_clock && !walk.drain.is_unknown {
            let drained = identity.drains.drained_count(stream);
            let name = "drained: by their instants = by the schedule";
            about.counts(name, drained, walk.drain.arrived);
        }
        about.counts("windows: first copies", windows.arrived, walk.arrived);
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

impl Walk {
    fn row(&mut self, subscriber: DeviceId) -> &mut SubscriberRow {
        let new = SubscriberRow {
            device: subscriber,
            stream: self.stream,
            ..SubscriberRow::default()
        };
        self.rows.entry(subscriber).or_insert(new)
    }

    fn expect(&mut self, subscriber: DeviceId, expected: &SeqSet, (seen, border): (&Seen, u32)) {
        let (mut lost, mut all) = (0, 0);
        for stretch in sweep(expected.runs(), seen.arrived.runs()) {
            let range = &stretch.range;
            let len = u64::from(range.end - range.start);
            if !stretch.in_first {
                continue;
            }
            all += len;
            if stretch.in_second {
                self.arrived_expected += len;
                continue;
            }
            let gone = u64::from(range.end.min(border).max(range.start) - range.start);
            lost += gone;
            self.outstanding += len - gone;
        }
        self.expected += all;
        self.lost += lost;
        let row = self.row(subscriber);
        row.expected += all;
        row.lost += lost;
    }

    fn add(&mut self, identity: &Identity, closing: &Closing<'_>, pair: &Pair, seen: &Seen) {
        let resent = closing.plan.stream(pair.of).and_then(|track| {
            let of_stream = identity.streams.get(pair.of.index())?;
            of_stream.devices.get(track.slot(pair.sender)?)?.resent()
        });
        let arrived = seen.arrived.len();
        let further = seen.further(resent, 0);
        self.arrived += arrived;
        self.further += further.all;
        self.further_own += further.own;
        if let Some(remarks) = &seen.remarks {
            self.reordered += remarks.reordered.len();
        }
        let row = self.row(pair.subscriber);
        row.arrived += arrived;
        row.again += further.all;
    }

    fn fill(&self, ledger: &mut ReceptionLedger) {
        ledger.expected = Some(self.expected);
        ledger.arrived = self.arrived;
        ledger.unexpected = Some(self.arrived - self.arrived_expected);
        ledger.duplicates = Some(self.further - self.further_own);
        ledger.duplicate_own = Some(self.further_own);
        ledger.reordered = Some(self.reordered);
        ledger.lost = Some(self.lost);
        ledger.outstanding = Some(self.outstanding);
        ledger.truncated = self.rows.len() > ROWS_MAX;
        ledger.by_subscriber = self.rows.values().take(ROWS_MAX).copied().collect();
    }
}
