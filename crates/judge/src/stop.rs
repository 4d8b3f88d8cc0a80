//! The watch over `stop-if`, fed window by window while the run goes on.

use std::fmt;

use muster_measure::{Flow, State};
use muster_model::Micros;
use serde::{Deserialize, Serialize};

use crate::{Latency, Rules, StopIf, StopTrigger};

/// Decides, from one window after the other, whether the measured phase must end.
///
/// A condition holds from the start of the first window that meets it, and until a window that
/// does not. Windows in which nothing ended say nothing of failures: they break nothing and decide
/// nothing.
#[derive(Debug, Clone)]
pub struct StopWatch {
    watched: Vec<(StopIf, Option<Micros>)>,
}

/// One window of the run, by the instants of the events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StopWindow<'a> {
    /// Instant at which the window began.
    pub from: Micros,
    /// Instant at which the window ended.
    pub until: Micros,
    /// Messages that became final in it, without those shed by a cause of our own.
    pub ended: u64,
    /// Of these, those that failed: rejected, timed out, broken or shed.
    pub failed: u64,
    /// Links that the plan wants.
    pub links_wanted: u64,
    /// Links that are up.
    pub links_up: u64,
    /// True if a step begins with the window: its latencies have nothing to do with those before.
    pub begins_step: bool,
    /// The latencies of the step so far, against every bound that a condition has.
    pub latencies: &'a [StopLatency],
}

/// The messages due in a step so far, against one bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StopLatency {
    /// The latency.
    pub of: Latency,
    /// The bound.
    pub bound: Micros,
    /// Messages above it, and those that ended without an answer.
    pub above: u64,
    /// Messages that ended; for end-to-end those that arrived.
    pub n: u64,
}

impl StopWindow<'_> {
    /// The counts of the messages of `flow`, `shed_own` of them shed by a cause of our own; without
    /// instants and links.
    pub fn of(flow: &Flow, shed_own: u64) -> Self {
        let good = flow.of(State::Accepted) + flow.of(State::Unacknowledged);
        let ended = flow.finals().saturating_sub(shed_own);
        Self {
            ended,
            failed: ended.saturating_sub(good),
            ..Self::default()
        }
    }
}

/// The condition that ended the measured phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stop {
    /// The condition.
    pub condition: StopIf,
    /// Since when it held.
    pub since: Micros,
    /// Instant at which the condition had held for long enough.
    pub at: Micros,
}

impl StopWatch {
    /// Watches every condition of the rules.
    pub fn new(rules: &Rules) -> Self {
        Self {
            watched: rules
                .stop_if
                .iter()
                .map(|condition| (*condition, None))
                .collect(),
        }
    }

    /// Takes in the next window; the condition that has now held for long enough, if there is one.
    pub fn window(&mut self, window: &StopWindow<'_>) -> Option<Stop> {
        let mut stop = None;
        for (condition, since) in &mut self.watched {
            if window.begins_step && matches!(condition.trigger, StopTrigger::LatencyAbove { .. }) {
                *since = None;
            }
            let Some(is_met) = is_met(&condition.trigger, window) else {
                continue;
            };
            if !is_met {
                *since = None;
                continue;
            }
            let began = *since.get_or_insert(window.from);
            if window.until - began >= condition.lasting {
                let now = Stop {
                    condition: *condition,
                    since: began,
                    at: window.until,
                };
                stop = stop.or(Some(now));
            }
        }
        stop
    }
}

/// Returns whether a window meets a trigger; none if the window cannot decide.
fn is_met(trigger: &StopTrigger, window: &StopWindow<'_>) -> Option<bool> {
    match trigger {
        StopTrigger::FailureRatioAbove(share) => {
            (window.ended > 0).then(|| !share.covers(window.failed, window.ended))
        }
        StopTrigger::ConnectedBelow(share) => {
            Some(!share.is_reached_by(window.links_up, window.links_wanted))
        }
        StopTrigger::LatencyAbove {
            of,
            percentile,
            bound,
        } => {
            let mut known = window.latencies.iter();
            let counted = known.find(|known| known.of == *of && known.bound == *bound)?;
            let is_enough = counted.n >= percentile.needed();
            is_enough.then(|| !percentile.allows(counted.above, counted.n))
        }
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lasting = self.condition.lasting;
        match self.condition.trigger {
            StopTrigger::FailureRatioAbove(share) => {
                write!(f, "failure-ratio above {share} for {lasting}")
            }
            StopTrigger::ConnectedBelow(share) => {
                write!(f, "connected below {share} for {lasting}")
            }
            StopTrigger::LatencyAbove {
                of,
                percentile,
                bound,
            } => {
                let name = of.name();
                write!(f, "{name} {percentile} above {bound} for {lasting}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Percentile, Share};

    fn watch(trigger: StopTrigger, lasting_s: u64) -> StopWatch {
        let condition = StopIf {
            trigger,
            lasting: Micros::from_secs(lasting_s),
        };
        StopWatch::new(&Rules::builder(true).stop_if(condition).build())
    }

    fn window(second: u64, failed: u64, ended: u64) -> StopWindow<'static> {
        let (from, until) = (Micros::from_secs(second), Micros::from_secs(second + 1));
        StopWindow {
            from,
            until,
            ended,
            failed,
            links_wanted: 10,
            links_up: 10,
            ..StopWindow::default()
        }
    }

    /// The seconds whose window ends the run, of windows with (failed, ended).
    fn stops(lasting_s: u64, windows: &[(u64, u64)]) -> Vec<usize> {
        let mut watch = watch(
            StopTrigger::FailureRatioAbove(Share::whole_percent(20)),
            lasting_s,
        );
        let stops = |(second, (failed, ended)): (usize, &(u64, u64))| {
            watch
                .window(&window(second as u64, *failed, *ended))
                .map(|_| second)
        };
        windows.iter().enumerate().filter_map(stops).collect()
    }

    #[test]
    fn a_condition_must_hold_for_as_long_as_it_says() {
        assert_eq!(stops(3, &[(21, 100); 3]), [2]);
        assert_eq!(stops(3, &[(20, 100); 9]), [0; 0], "20 % is not above 20 %");
        assert_eq!(stops(1, &[(0, 100), (1, 1)]), [1]);
    }

    #[test]
    fn a_good_window_begins_the_count_again() {
        assert_eq!(
            stops(3, &[(9, 9), (9, 9), (0, 9), (9, 9), (9, 9), (9, 9)]),
            [5]
        );
    }

    #[test]
    fn a_window_in_which_nothing_ended_breaks_nothing_and_decides_nothing() {
        assert_eq!(stops(3, &[(9, 9), (0, 0), (0, 0), (0, 0), (9, 9)]), [4]);
    }

    #[test]
    fn the_stop_tells_since_when_it_held() {
        let mut watch = watch(StopTrigger::ConnectedBelow(Share::whole_percent(90)), 2);
        let down = |second| StopWindow {
            links_up: 8,
            ..window(second, 0, 5)
        };
        assert_eq!(watch.window(&window(0, 0, 5)), None);
        assert_eq!(watch.window(&down(1)), None);
        let stop = watch.window(&down(2)).expect("it held for two seconds");
        assert_eq!(
            (stop.since, stop.at),
            (Micros::from_secs(1), Micros::from_secs(3))
        );
        assert_eq!(stop.to_string(), "connected below 90 % for 2 s");
    }

    #[test]
    fn a_latency_is_watched_within_its_step() {
        let bound = Micros::from_millis(500);
        let trigger = StopTrigger::LatencyAbove {
            of: Latency::Response,
            percentile: Percentile::P99,
            bound,
        };
        let mut watch = watch(trigger, 2);
        let mut at = |second, begins_step, above, n| {
            let latencies = [StopLatency {
                of: Latency::Response,
                bound,
                above,
                n,
            }];
            let window = StopWindow {
                begins_step,
                latencies: &latencies,
                ..window(second, 0, 5)
            };
            watch.window(&window)
        };
        assert_eq!(at(0, true, 500, 999), None, "too few to decide");
        assert_eq!(at(1, false, 20, 1_900), None, "it holds for a second only");
        assert_eq!(at(2, true, 11, 1_000), None, "another step, another count");
        let stop = at(3, false, 22, 2_000).expect("it held for two seconds of one step");
        assert_eq!(stop.since, Micros::from_secs(2));
        assert_eq!(stop.to_string(), "response p99 above 500 ms for 2 s");
    }

    #[test]
    fn what_we_shed_ourselves_is_no_failure_of_the_target() {
        let mut flow = Flow::default();
        flow.ended[State::Accepted.index()] = 5;
        flow.ended[State::Unacknowledged.index()] = 1;
        flow.ended[State::Shed.index()] = 4;
        flow.ended[State::TimedOut.index()] = 2;
        let window = StopWindow::of(&flow, 3);
        assert_eq!((window.ended, window.failed), (9, 3));
    }
}
