//! Windows: sums by second, which merge in any order.

use std::collections::BTreeMap;

use muster_model::{BackendId, FleetId, Micros, StreamId};
use serde::{Deserialize, Serialize};

use crate::merge::merge_fields;
use crate::{
    ChecksummedCount, CommandWindow, CopyCounts, Counts, Distribution, Flow, LinkCounts, Outcomes,
    Phase, ReceptionWindow, RecorderPlan, Role, TimeSums,
};

/// A second of the run's clock, cut at the borders of the phases, so that windows of one phase sum
/// exactly to the phase.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize,
)]
pub struct WindowKey {
    /// The second since T0.
    pub second: u32,
    /// The phase in which the instants of the window lie.
    pub phase: Phase,
    /// True if the window holds the messages that are kept apart as cold; by event it never does.
    pub cold: bool,
}

/// The device side of one stream in one window.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct UplinkWindow {
    /// Counts by sessions and sockets, by event.
    pub counts: Counts,
    /// Messages by event.
    pub flow: Flow,
    /// Messages by due.
    pub outcomes: Outcomes,
    /// The times of messages, by due.
    pub times: TimeSums,
    /// By due: messages above each registered bound of [`crate::StreamTrack::bounds`]: those on
    /// response, service, lateness and held in turn, each ascending and once; empty if none
    /// counted anything.
    pub above: Vec<u64>,
    /// By due: answered messages whose lower time exceeds each registered bound on response,
    /// ascending and once; empty if none counted anything.
    pub above_lower: Vec<u64>,
    /// By due: `ended - due` of the answered.
    pub response: Distribution,
    /// By due: `ended - due - own` of the answered, their lower times.
    pub lower: Distribution,
    /// By due: `ended - sent` of the answered.
    pub service: Distribution,
    /// By due: `taken - due`.
    pub lateness: Distribution,
    /// By due: `sent - taken`.
    pub held: Distribution,
    /// By due: `ended - due` of those that have an answer by design and got none: the least that
    /// their response can have been.
    pub censored: Distribution,
}

/// The arrivals of one stream at one backend in one window.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ArrivalWindow {
    /// First copies, by event.
    pub arrived: u64,
    /// Further copies, by event.
    pub again: u64,
    /// First copies, by due.
    pub arrived_due: u64,
    /// First copies beyond the stream's deadline, by due.
    pub late: u64,
    /// First copies whose due instant is not known, by event.
    pub undated: u64,
    /// By how much a first copy was seen before it was due, at the most, by due: only where sender and
    /// consumer read different clocks.
    pub early: Micros,
    /// By due: first copies above each registered end-to-end bound, ascending and once; empty if
    /// none counted anything.
    pub above: Vec<u64>,
    /// By due: the same by the lower time, `seen - due - own`.
    pub above_lower: Vec<u64>,
    /// By due: `seen - due` of first copies.
    pub end_to_end: Distribution,
}

/// The links of one fleet in one window, by event.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LinkWindow {
    /// Counts by event.
    pub counts: LinkCounts,
    /// From the first SYN to a usable link.
    pub connect: Distribution,
}

/// Progress of a run, which decides that settling may end.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Progress {
    /// Messages that reached a final state.
    pub finals: u64,
    /// Messages that were sent.
    pub sent: u64,
    /// Messages accepted or unacknowledged: those that every backend is to get.
    pub expected: ChecksummedCount,
    /// Per backend that is timed: the first copies.
    pub arrived: Vec<ChecksummedCount>,
    /// Per backend that is timed: when the last copy of a message of this run was seen.
    pub last_arrival: Vec<Option<Micros>>,
    /// Commands and their replies.
    pub commands: CommandProgress,
    /// True if devices subscribe to what other devices send: until the end nobody knows what they
    /// are still to get.
    pub has_subscribers: bool,
    /// Instant at which the last copy reached a subscriber.
    pub last_reception: Option<Micros>,
}

/// Progress of the commands of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CommandProgress {
    /// Commands that the platform took for devices that it can reach.
    pub delivered: ChecksummedCount,
    /// First copies at devices.
    pub received: ChecksummedCount,
    /// Replies that the platform took.
    pub answered: ChecksummedCount,
    /// First copies of replies at the backend.
    pub replies: ChecksummedCount,
    /// Instant at which the last command reached a device, or the last reply the backend.
    pub last: Option<Micros>,
}

impl CommandProgress {
    fn is_complete(&self) -> bool {
        self.delivered == self.received && self.answered == self.replies
    }
}

/// Windows touched since the last flush, as deltas; merged, the windows of a run.
///
/// Merging is a sum: it commutes and associates, so that deltas may come in any order.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct WindowDelta {
    /// The latest instant it covers.
    pub until: Micros,
    /// The device side.
    pub uplinks: BTreeMap<(StreamId, WindowKey), UplinkWindow>,
    /// The backend side.
    pub arrivals: BTreeMap<(BackendId, StreamId, WindowKey), ArrivalWindow>,
    /// Copies a backend took in, whoever's they are.
    pub copies: BTreeMap<(BackendId, WindowKey), CopyCounts>,
    /// The links.
    pub links: BTreeMap<(FleetId, WindowKey), LinkWindow>,
    /// Commands and queries.
    pub commands: BTreeMap<(StreamId, WindowKey), CommandWindow>,
    /// Receptions of subscribers among the devices.
    pub receptions: BTreeMap<(StreamId, WindowKey), ReceptionWindow>,
    /// Messages that were sent to each address and came to an end; empty where devices have one address.
    pub sent_to: BTreeMap<String, u64>,
    /// Progress of the run.
    pub progress: Progress,
}

impl WindowKey {
    const FIRST: WindowKey = WindowKey {
        second: 0,
        phase: Phase::Connect,
        cold: false,
    };
    const LAST: WindowKey = WindowKey {
        second: u32::MAX,
        phase: Phase::Settle,
        cold: true,
    };
}

impl Progress {
    /// The progress of a run in which nothing has happened.
    pub(crate) fn empty(plan: &RecorderPlan) -> Self {
        Self {
            arrived: vec![ChecksummedCount::default(); usize::from(plan.timed())],
            last_arrival: vec![None; usize::from(plan.timed())],
            has_subscribers: plan.streams.iter().any(|track| track.role == Role::Receive),
            ..Self::default()
        }
    }

    /// Returns whether every backend has exactly the messages accepted or unacknowledged, and every
    /// command and every reply has arrived: then no copy is to be waited for. If something else
    /// arrived too (rejected but delivered), this stays false and quiet decides.
    pub fn all_expected_arrived(&self) -> bool {
        let has_arrived = self.arrived.iter().all(|arrived| *arrived == self.expected);
        has_arrived && self.commands.is_complete() && !self.has_subscribers
    }

    /// Instant at which the last copy reached any backend, device or subscriber; none if none did.
    pub fn last_arrival_anywhere(&self) -> Option<Micros> {
        let last = self.last_arrival.iter().copied().max().flatten();
        last.max(self.commands.last).max(self.last_reception)
    }
}

/// Counts of the links of all fleets in one second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LinksSecond {
    /// The second since T0.
    pub second: u32,
    /// Links that came up in it.
    pub connected: u64,
    /// Links that were lost in it: those that ended and need a connection before a message is due, and those
    /// that needed none and could not connect.
    pub lost: u64,
    /// Links that were up at its end, or needed no connection until a message is due.
    pub up: u64,
}

impl WindowDelta {
    /// Counts of links at each second in which one came up, ended or failed to come up again, in order.
    pub fn links_by_second(&self) -> Vec<LinksSecond> {
        let mut changes: BTreeMap<u32, LinkCounts> = BTreeMap::new();
        for ((_, key), window) in &self.links {
            changes.entry(key.second).or_default().merge(&window.counts);
        }
        let mut sum = LinkCounts::default();
        let seconds = changes.into_iter().filter_map(|(second, change)| {
            let before = sum.usable();
            sum.merge(&change);
            let (connected, up) = (change.connected, sum.usable());
            let changed = connected + change.disconnects.total() + change.woken;
            let ended = change.disconnects.only(|cause| !cause.rests()).total();
            (changed > 0).then_some(LinksSecond {
                second,
                connected,
                lost: ended.max(before.saturating_sub(up)),
                up,
            })
        });
        seconds.collect()
    }

    /// By how much a copy was seen before it was due, at the most: the clocks of sender and consumer are
    /// apart by that at the least.
    pub fn early(&self) -> Micros {
        let early = self.arrivals.values().map(|window| window.early);
        early.max().unwrap_or_default()
    }

    /// Forgets how long deliveries took: when sender and consumer read different clocks, it is
    /// not known. By how much they were early stays.
    pub fn forget_end_to_end(&mut self) {
        for window in self.arrivals.values_mut() {
            window.end_to_end = Distribution::default();
            window.above.clear();
            window.above_lower.clear();
            window.late = 0;
        }
        for window in self.receptions.values_mut() {
            window.end_to_end = Distribution::default();
        }
    }

    /// Forgets the windows of all seconds before `second`, but not how far the run has come: for
    /// a live view, whose memory must not grow with the run.
    pub fn forget_before(&mut self, second: u32) {
        self.uplinks.retain(|(_, key), _| key.second >= second);
        self.arrivals.retain(|(_, _, key), _| key.second >= second);
        self.copies.retain(|(_, key), _| key.second >= second);
        self.links.retain(|(_, key), _| key.second >= second);
        self.commands.retain(|(_, key), _| key.second >= second);
        self.receptions.retain(|(_, key), _| key.second >= second);
    }

    /// The device side of one stream, by key.
    pub fn uplinks_of(
        &self,
        stream: StreamId,
    ) -> impl Iterator<Item = (&WindowKey, &UplinkWindow)> {
        let range = (stream, WindowKey::FIRST)..=(stream, WindowKey::LAST);
        self.uplinks
            .range(range)
            .map(|((_, key), window)| (key, window))
    }

    /// The arrivals of one stream at one backend, by key.
    pub fn arrivals_of(
        &self,
        backend: BackendId,
        stream: StreamId,
    ) -> impl Iterator<Item = (&WindowKey, &ArrivalWindow)> {
        let range = (backend, stream, WindowKey::FIRST)..=(backend, stream, WindowKey::LAST);
        self.arrivals
            .range(range)
            .map(|((_, _, key), window)| (key, window))
    }
}

merge_fields! {
    UplinkWindow {
        counts, flow, outcomes, times, above, above_lower, response, lower, service, lateness, held,
        censored,
    }
    ArrivalWindow {
        arrived, again, arrived_due, late, undated, early, above, above_lower, end_to_end,
    }
    LinkWindow { counts, connect }
    CommandProgress { delivered, received, answered, replies, last }
    Progress {
        finals, sent, expected, arrived, last_arrival, commands, has_subscribers, last_reception,
    }
    WindowDelta { until, uplinks, arrivals, copies, links, commands, receptions, sent_to, progress }
}

#[cfg(test)]
mod tests {
    use muster_model::Cause;

    use super::*;

    #[test]
    fn a_link_that_rests_between_requests_is_not_lost() {
        let counts = |connected, woken, rested, ended: &[Cause]| {
            let mut counts = LinkCounts {
                connected,
                woken,
                rested,
                ..LinkCounts::default()
            };
            for cause in ended {
                counts.disconnects.add(*cause, 1);
            }
            counts
        };
        let seconds = [
            counts(2, 0, 2, &[Cause::BetweenRequests; 2]),
            counts(2, 2, 2, &[Cause::BetweenRequests, Cause::ClosedIdle]),
            counts(1, 1, 0, &[Cause::Reset]),
            counts(0, 1, 0, &[]),
        ];
        let links = (0..).zip(seconds).map(|(second, counts)| {
            let key = WindowKey {
                second,
                ..WindowKey::FIRST
            };
            let window = LinkWindow {
                counts,
                ..LinkWindow::default()
            };
            ((FleetId(0), key), window)
        });
        let delta = WindowDelta {
            links: links.collect(),
            ..WindowDelta::default()
        };
        let seconds = delta.links_by_second().into_iter();
        let found: Vec<(u64, u64)> = seconds.map(|at| (at.lost, at.up)).collect();
        assert_eq!(found, [(0, 2), (0, 2), (1, 1), (1, 0)]);
    }
}
