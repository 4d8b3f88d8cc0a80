//! Counts of the latencies that `stop-if` watches, by step.

use std::collections::BTreeMap;

use muster_judge::{Latency, StopLatency, StopTrigger};
use muster_measure::{Outcomes, Phase, State, WindowDelta};
use muster_model::{Micros, StreamId};
use muster_plan::{Ack, Plan};

/// The latencies of `stop-if` in the steps that go on; a run without steps is one.
#[derive(Debug, Default)]
pub(crate) struct LatencyWatch {
    conditions: Vec<Condition>,
    /// Seconds from the begin of the measured phase to that of each step.
    starts: Vec<u32>,
    /// The second in which the measured phase began.
    measure: u32,
    /// By step, one count for each condition. Steps that are over are forgotten.
    counted: BTreeMap<usize, Vec<Count>>,
    first_step: usize,
}

#[derive(Debug)]
struct Condition {
    of: Latency,
    bound: Micros,
    /// Place of the bound's counter in the windows of each stream; none if the stream has no such latency.
    places: Vec<Option<usize>>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Count {
    above: u64,
    n: u64,
}

impl LatencyWatch {
    /// The latencies that the rules of a plan watch.
    pub(crate) fn new(plan: &Plan) -> Self {
        let triggers = plan.rules.stop_if.iter().map(|stop| stop.trigger);
        let conditions = triggers.filter_map(|trigger| match trigger {
            StopTrigger::LatencyAbove { of, bound, .. } => Some(Condition {
                of,
                bound,
                places: places(plan, of, bound),
            }),
            StopTrigger::FailureRatioAbove(_) | StopTrigger::ConnectedBelow(_) => None,
        });
        let steps = plan.steps(Micros::ZERO);
        Self {
            conditions: conditions.collect(),
            starts: steps.iter().map(|step| step.from.second()).collect(),
            ..Self::default()
        }
    }

    /// The measured phase begins in a second of the run.
    pub(crate) fn begin(&mut self, measure: u32) {
        self.measure = measure;
    }

    /// Takes in what came.
    pub(crate) fn add(&mut self, delta: &WindowDelta) {
        if self.conditions.is_empty() {
            return;
        }
        for ((stream, key), window) in &delta.uplinks {
            if key.phase == Phase::Measure {
                let unanswered = unanswered(&window.outcomes);
                let n = window.outcomes.finals() - window.outcomes.shed_own();
                let count = |place: usize| Count {
                    above: unanswered + window.above.get(place).copied().unwrap_or(0),
                    n,
                };
                self.count((Latency::Response, *stream), key.second, count);
            }
        }
        for ((_, stream, key), window) in &delta.arrivals {
            if key.phase == Phase::Measure {
                let count = |place: usize| Count {
                    above: window.above.get(place).copied().unwrap_or(0),
                    n: window.arrived_due,
                };
                self.count((Latency::EndToEnd, *stream), key.second, count);
            }
        }
    }

    fn count(
        &mut self,
        (of, stream): (Latency, StreamId),
        second: u32,
        count: impl Fn(usize) -> Count,
    ) {
        let step = self.step_of(second);
        if step < self.first_step {
            return;
        }
        let counts = self.counted.entry(step).or_default();
        counts.resize(self.conditions.len(), Count::default());
        for (sum, condition) in counts.iter_mut().zip(&self.conditions) {
            let place = condition.places.get(stream.index()).copied().flatten();
            if let Some(place) = place.filter(|_| condition.of == of) {
                let Count { above, n } = count(place);
                sum.above += above;
                sum.n += n;
            }
        }
    }

    /// The counts of the step that a second lies in.
    pub(crate) fn of_second(&mut self, second: u32) -> Vec<StopLatency> {
        self.first_step = self.step_of(second);
        let first = self.first_step;
        self.counted.retain(|step, _| *step >= first);
        let counts = self.counted.get(&first).map_or(&[][..], Vec::as_slice);
        let counts = self.conditions.iter().zip(counts);
        let counts = counts.map(|(condition, count)| StopLatency {
            of: condition.of,
            bound: condition.bound,
            above: count.above,
            n: count.n,
        });
        counts.collect()
    }

    /// Returns whether a step begins with a second.
    pub(crate) fn begins_step(&self, second: u32) -> bool {
        let since = second.saturating_sub(self.measure);
        self.starts.binary_search(&since).is_ok()
    }

    fn step_of(&self, second: u32) -> usize {
        let since = second.saturating_sub(self.measure);
        self.starts.partition_point(|start| *start <= since)
    }
}

/// Places of a bound's counters: those of response and of end-to-end come first in their windows.
fn places(plan: &Plan, of: Latency, bound: Micros) -> Vec<Option<usize>> {
    let streams = plan.streams().map(|(fleet, stream)| {
        let is_answered = stream.ack != Ack::None && !stream.is_query();
        let has_it = of != Latency::Response || is_answered;
        let bounds = plan.rules.thresholds(of, fleet.id, stream.id);
        let mut bounds = bounds.iter();
        bounds
            .position(|known| *known == bound)
            .filter(|_| stream.is_uplink() && has_it)
    });
    streams.collect()
}

/// Messages that ended without an answer, by no fault of ours.
fn unanswered(outcomes: &Outcomes) -> u64 {
    let states = [State::TimedOut, State::Broken, State::Shed];
    let all: u64 = states.iter().map(|state| outcomes.of(*state)).sum();
    all - outcomes.shed_own()
}

#[cfg(test)]
mod tests {
    use muster_measure::{UplinkWindow, WindowKey};
    use muster_model::Outcome;
    use muster_scenario::{NoFiles, Overrides, Source, parse};

    use super::*;

    const TEXT: &str = "name: steps
fleet:
  - name: meters
    count: 10
    streams:
      - name: a
        qos: 1
        shape: { stages: [ { to: 100/s, hold: 10s }, { to: 200/s, hold: 20s } ] }
        slo: { response: { p99: 1s } }
      - { name: b, qos: 0, rate: 10/s, ack: none }
phases: { measure: 30s }
stop-if: { response: 'p99 > 500ms for 5s' }
";

    fn plan() -> Plan {
        let source = Source {
            name: "steps.yaml",
            text: TEXT,
        };
        parse(source, &Overrides::new(), &NoFiles).expect("a scenario")
    }

    fn second(second: u32, above: u64) -> WindowDelta {
        let mut window = UplinkWindow::default();
        for _ in 0..9 {
            window.outcomes.count(&Outcome::Accepted);
        }
        window.outcomes.count(&Outcome::TimedOut);
        // The bound of the stop comes before that of the SLO.
        window.above = vec![above, 0];
        let key = WindowKey {
            second,
            phase: Phase::Measure,
            cold: false,
        };
        let unanswered = (StreamId(1), key);
        WindowDelta {
            uplinks: [((StreamId(0), key), window.clone()), (unanswered, window)].into(),
            ..WindowDelta::default()
        }
    }

    #[test]
    fn a_latency_is_counted_by_the_step_in_which_its_messages_were_due() {
        let mut watch = LatencyWatch::new(&plan());
        watch.begin(100);
        watch.add(&second(109, 3));
        watch.add(&second(110, 5));
        watch.add(&second(100, 1));
        let counts = |watch: &mut LatencyWatch, second| {
            let all = watch.of_second(second);
            all.iter().map(|it| (it.above, it.n)).collect::<Vec<_>>()
        };
        assert_eq!(counts(&mut watch, 105), [(3 + 1 + 2, 20)]);
        assert_eq!(counts(&mut watch, 112), [(5 + 1, 10)]);
        watch.add(&second(104, 9));
        assert_eq!(counts(&mut watch, 112), [(5 + 1, 10)], "that step is over");
        let begins = [100, 105, 110, 111].map(|second| watch.begins_step(second));
        assert_eq!(begins, [true, false, true, false]);
    }
}
