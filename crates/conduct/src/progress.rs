//! Progress of a run, as its agents report it.

use muster_device::{Session, Shard, Sink};
use muster_measure::Progress as Windows;
use muster_model::{Listening, Micros};
use serde::{Deserialize, Serialize};

/// Counts of one instant: of one agent, or merged over all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Progress {
    /// Instant of the counts; merged: the earliest of all agents.
    pub at: Micros,
    /// Links that the plan wants.
    pub links_wanted: u64,
    /// Links that are up, or that were and need no connection until a message is due.
    pub links_up: u64,
    /// Links whose first try to connect has not ended.
    pub links_untried: u64,
    /// Tries that the peer refused in its protocol's words.
    pub links_refused: u64,
    /// Tries that ended without a link, for whatever cause, and links that ended for no reason of ours.
    pub links_failed: u64,
    /// Tries in which the peer declined a feature that links on one socket need.
    pub links_declined: u64,
    /// Consumer sessions that the plan wants.
    pub consumers_wanted: u64,
    /// Consumer sessions that are subscribed.
    pub consumers_up: u64,
    /// Consumer sessions that never were subscribed and that the platform refused for good.
    pub consumers_refused: u64,
    /// Listening of all consumers of the plan.
    pub listening: Listening,
    /// Messages taken and not yet final.
    pub open: u64,
    /// Messages of links that the peer refused for good, once nothing is due any more.
    pub stranded: u64,
    /// Shards on which a message is due that was not yet taken.
    pub behind: u64,
    /// Messages accepted at QoS 2 whose completion may still come.
    pub completing: u64,
}

/// State of the backend side by the merged windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Delivery {
    /// True if every message that must arrive has arrived at every backend, and nothing else has,
    /// or if there is no backend.
    pub is_complete: bool,
    /// Instant of the last copy at any backend.
    pub last_arrival: Option<Micros>,
}

impl Delivery {
    /// Returns the delivery that merged windows show.
    pub fn of(windows: &Windows) -> Self {
        Self {
            is_complete: windows.all_expected_arrived(),
            last_arrival: windows.last_arrival_anywhere(),
        }
    }
}

impl Progress {
    /// Returns the progress of a shard's links. Declined links are known to the driver.
    pub fn of<P: Session, S: Sink>(shard: &Shard<P, S>, at: Micros) -> Self {
        let counts = shard.links().counts();
        Self {
            at,
            links_wanted: u64::from(counts.wanted),
            links_up: u64::from(counts.up) + u64::from(counts.resting),
            links_untried: u64::from(counts.untried),
            links_refused: counts.refused,
            links_failed: counts.failed,
            links_declined: 0,
            consumers_wanted: 0,
            consumers_up: 0,
            consumers_refused: 0,
            listening: Listening::NOBODY,
            open: shard.traffic().open() as u64,
            stranded: shard.stranded(),
            behind: u64::from(shard.traffic().next_due().is_some_and(|due| due <= at)),
            completing: shard.traffic().completing(at),
        }
    }

    /// All of these together; the counts of nobody are zero. Some come from other hosts: a sum that
    /// cannot be stays at the most.
    pub fn united(all: impl IntoIterator<Item = Progress>) -> Self {
        let add = |mut sum: Self, other: Self| {
            sum.merge(&other);
            sum
        };
        all.into_iter().reduce(add).unwrap_or_default()
    }

    fn merge(&mut self, other: &Progress) {
        self.at = self.at.min(other.at);
        self.links_wanted = self.links_wanted.saturating_add(other.links_wanted);
        self.links_up = self.links_up.saturating_add(other.links_up);
        self.links_untried = self.links_untried.saturating_add(other.links_untried);
        self.links_refused = self.links_refused.saturating_add(other.links_refused);
        self.links_failed = self.links_failed.saturating_add(other.links_failed);
        self.links_declined = self.links_declined.saturating_add(other.links_declined);
        self.consumers_wanted = self.consumers_wanted.saturating_add(other.consumers_wanted);
        self.consumers_up = self.consumers_up.saturating_add(other.consumers_up);
        self.consumers_refused = self
            .consumers_refused
            .saturating_add(other.consumers_refused);
        self.listening = self.listening.and(other.listening);
        self.open = self.open.saturating_add(other.open);
        self.stranded = self.stranded.saturating_add(other.stranded);
        self.behind = self.behind.saturating_add(other.behind);
        self.completing = self.completing.saturating_add(other.completing);
    }
}

#[cfg(test)]
mod tests {
    use muster_device::{Http, Mqtt, SLOT_MAX};
    use muster_measure::Recorder;
    use muster_model::{Cause, RunId};
    use muster_scenario::{NoFiles, Overrides, Source, parse};

    use super::*;
    use crate::{Placement, RecordingSink, Slice, recorder_plan, schedules};

    /// Three messages that are due at once.
    const BURST: &str = "
name: burst
fleet: [ { name: meters, count: 3, streams: [ { name: r, rate: 3/s, count: 1, phase: together, payload: { size: 64 } } ] } ]
phases: { measure: 1s }
";

    /// Links that are up once their connections stand.
    const REQUESTS: &str = "
name: requests
platform: { kind: http, devices: \"http://127.0.0.1:1\" }
fleet: [ { name: meters, count: 3, streams: [ { name: r, rate: 3/s, path: /, payload: { size: 64 } } ] } ]
";

    fn shard<P: Session>(text: &str) -> Shard<P, RecordingSink> {
        let name = "scenario.yaml";
        let plan = parse(Source { name, text }, &Overrides::default(), &NoFiles).unwrap();
        let schedules = schedules(&plan).unwrap();
        let recorder = recorder_plan(&plan, RunId(1), &schedules);
        let placement = Placement {
            plan: &plan,
            recorder: &recorder,
            schedules: &schedules,
            run: RunId(1),
            slice: Slice::WHOLE,
            wall_ms_at_t0: 0,
            slot_limit: SLOT_MAX,
        };
        let recording = RecordingSink::new(Recorder::new(recorder.clone()), None);
        placement.shard(recording).unwrap()
    }

    #[test]
    fn a_link_that_ends_for_no_reason_of_ours_counts_as_a_try_that_failed() {
        let (mut shard, now) = (shard::<Http>(REQUESTS), Micros::from_secs(1));
        let causes = [Cause::Malformed, Cause::Lifetime, Cause::BetweenRequests];
        for (link, cause) in (0..).zip(causes) {
            shard.opening(link, now);
            shard.opened(link, now, &mut Vec::new());
            shard.closed(link, now, cause);
        }
        let progress = Progress::of(&shard, now);
        assert_eq!((progress.links_failed, progress.links_untried), (1, 0));
        assert_eq!(progress.links_up, 1, "it rests");
    }

    #[test]
    fn a_shard_is_behind_until_all_that_is_due_is_taken() {
        let (mut shard, now) = (shard::<Mqtt>(BURST), Micros::from_secs(2));
        assert_eq!(Progress::of(&shard, now).behind, 0, "nothing is due yet");
        shard.traffic_mut().start(Micros::ZERO);
        for taken in 0..3 {
            assert_eq!(Progress::of(&shard, now).behind, 1, "after {taken}");
            assert!(shard.take_due(now).is_some());
        }
        let progress = Progress::of(&shard, now);
        assert_eq!((progress.open, progress.behind), (3, 0));
    }
}
