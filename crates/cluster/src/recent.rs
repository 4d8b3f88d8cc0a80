//! The last seconds of a run that conducting it needs.

use std::collections::BTreeMap;

use muster_measure::{Flow, Progress, State, WindowDelta};

/// Seconds that are remembered for `stop-if`.
const REMEMBERED_S: u32 = 30;

/// Progress of the run, and counts of its last seconds only, since the windows of half a minute are
/// megabytes.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    seconds: BTreeMap<u32, Second>,
    progress: Progress,
}

#[derive(Debug, Default)]
struct Second {
    /// By event.
    flow: Flow,
    /// Shed by causes of ours, by due.
    own: u64,
}

impl Recent {
    /// Takes in what came.
    pub(crate) fn add(&mut self, delta: &WindowDelta) {
        for ((_, key), window) in &delta.uplinks {
            let second = self.seconds.entry(key.second).or_default();
            second.flow.merge(&window.flow);
            let shed = window.outcomes.shed.iter();
            let own = shed.filter(|(cause, _)| cause.is_own());
            second.own += own.map(|(_, count)| count).sum::<u64>();
        }
        let first = delta.until.second().saturating_sub(REMEMBERED_S);
        self.seconds.retain(|second, _| *second >= first);
        self.progress.merge(&delta.progress);
    }

    /// Returns the progress of the run.
    pub(crate) const fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Returns the flow of a second, and how much of its shed may be our own fault. The causes are
    /// known by the second of due, so every own shed that is remembered counts here.
    pub(crate) fn flow_of(&self, second: u32) -> (Flow, u64) {
        let flow = self.seconds.get(&second);
        let flow = flow.map(|second| second.flow).unwrap_or_default();
        let own = self.seconds.values().map(|second| second.own).sum::<u64>();
        let shed = flow.of(State::Shed);
        (flow, own.min(shed))
    }
}

#[cfg(test)]
mod tests {
    use muster_measure::{UplinkWindow, WindowKey};
    use muster_model::{Micros, Outcome, ShedCause, StreamId};

    use super::*;

    fn second(second: u32) -> WindowDelta {
        let mut window = UplinkWindow::default();
        window.flow.sent = 10;
        window.flow.ended[State::Shed.index()] = 3;
        window
            .outcomes
            .count(&Outcome::Shed(ShedCause::GeneratorLate));
        let key = WindowKey {
            second,
            ..WindowKey::default()
        };
        let until = Micros::from_secs(u64::from(second) + 1);
        WindowDelta {
            until,
            uplinks: [((StreamId(0), key), window)].into(),
            ..WindowDelta::default()
        }
    }

    #[test]
    fn seconds_are_summed_and_old_ones_forgotten() {
        let mut recent = Recent::default();
        for at in 0..100 {
            recent.add(&second(at));
            recent.add(&second(at));
        }
        assert_eq!(recent.seconds.len(), REMEMBERED_S as usize);
        let (flow, own) = recent.flow_of(99);
        assert_eq!((flow.sent, flow.of(State::Shed), own), (20, 6, 6));
        assert_eq!(recent.flow_of(5).0, Flow::default());
    }
}
