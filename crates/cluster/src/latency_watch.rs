//! Counts of the latencies that `stop-if` watches, by step.

use std::collections::BTreeMap;

use muster_conduct::registered_bounds;
use muster_judge::{Latency, StopLatency, StopTrigger};
use muster_measure::{Latency as Kept, Outcomes, Phase, State, WindowDelta};
use muster_model::{Micros, StreamId};
use muster_plan::{Ack, Plan};

/// The latencies of `stop-if` in the step that goes on; a run without steps is one. A time that exceeds
/// a bound only by our own delay does not count against the target.
#[derive(Debug, Default)]
pub(crate) struct LatencyWatch {
    conditions: Vec<Condition>,
    /// Seconds from the begin of the measured phase to that of each step.
    starts: Vec<u32>,
    /// The second in which the measured phase began.
    measure: u32,
    /// The step that goes on.
    step: usize,
    /// The first second that is not decided.
    next: u32,
    /// Counts of the decided seconds of the step, one for each condition.
    decided: Vec<Count>,
    /// The same by each second of the measured phase that is not decided.
    undecided: BTreeMap<u32, Vec<Count>>,
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
        let conditions: Vec<Condition> = conditions.collect();
        Self {
            decided: vec![Count::default(); conditions.len()],
            conditions,
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
                    above: unanswered + window.above_lower.get(place).copied().unwrap_or(0),
                    n,
                };
                self.count(Latency::Response, *stream, key.second, count);
            }
        }
        for ((_, stream, key), window) in &delta.arrivals {
            if key.phase == Phase::Measure {
                let count = |place: usize| Count {
                    above: window.above_lower.get(place).copied().unwrap_or(0),
                    n: window.arrived_due,
                };
                self.count(Latency::EndToEnd, *stream, key.second, count);
            }
        }
    }

    fn count(
        &mut self,
        of: Latency,
        stream: StreamId,
        second: u32,
        count: impl Fn(usize) -> Count,
    ) {
        let sums = if second >= self.next {
            let none = || vec![Count::default(); self.conditions.len()];
            self.undecided.entry(second).or_insert_with(none)
        } else if self.step_of(second) == self.step {
            &mut self.decided
        } else {
            return;
        };
        for (sum, condition) in sums.iter_mut().zip(&self.conditions) {
            let place = condition.places.get(stream.index()).copied().flatten();
            if let Some(place) = place.filter(|_| condition.of == of) {
                sum.add(count(place));
            }
        }
    }

    /// The counts of a second's step until its end. Seconds are decided in their order; those that
    /// follow wait for their own decision.
    pub(crate) fn decide(&mut self, second: u32) -> Vec<StopLatency> {
        let step = self.step_of(second);
        if step != self.step {
            self.step = step;
            self.decided.fill(Count::default());
        }
        self.next = second + 1;
        let later = self.undecided.split_off(&self.next);
        for (due, counts) in std::mem::replace(&mut self.undecided, later) {
            if self.step_of(due) == step {
                let sums = self.decided.iter_mut().zip(counts);
                sums.for_each(|(sum, count)| sum.add(count));
            }
        }
        let counts = self.conditions.iter().zip(&self.decided);
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

impl Count {
    fn add(&mut self, more: Self) {
        self.above += more.above;
        self.n += more.n;
    }
}

/// Places of a bound's counters in the windows of each stream.
fn places(plan: &Plan, of: Latency, bound: Micros) -> Vec<Option<usize>> {
    let streams = plan.streams().map(|(fleet, stream)| {
        let is_answered = stream.ack != Ack::None && !stream.is_query();
        let kept = match of == Latency::Response {
            true => is_answered.then_some(Kept::Response),
            false => Some(Kept::EndToEnd),
        }?;
        let bounds = registered_bounds(&plan.rules, fleet.id, stream.id);
        bounds.place(kept, bound).filter(|_| stream.is_uplink())
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
    use muster_conduct::{recorder_plan, schedules};
    use muster_measure::Recorder;
    use muster_model::{Attempt, DeviceId, MessageId, Outcome, RunId};
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
        slo: { response: { p99: 100ms }, service: { p99: 700ms } }
      - { name: b, qos: 0, rate: 10/s, ack: none }
phases: { measure: 30s }
stop-if: { response: 'p99 > 500ms for 5s' }
";
    const MEASURE: u32 = 100;

    /// The watch of a run, beside the recorder that its windows come from.
    struct Watched {
        watch: LatencyWatch,
        recorder: Recorder,
        ended: u32,
    }

    impl Watched {
        fn new() -> Self {
            let source = Source {
                name: "steps.yaml",
                text: TEXT,
            };
            let plan = parse(source, &Overrides::new(), &NoFiles).expect("a scenario");
            let mut watch = LatencyWatch::new(&plan);
            watch.begin(MEASURE);
            let schedules = schedules(&plan).expect("possible schedules");
            let mut recorder = Recorder::new(recorder_plan(&plan, RunId(1), &schedules));
            recorder.start(Micros::from_secs(u64::from(MEASURE)) - plan.phases.warm_up);
            Self {
                watch,
                recorder,
                ended: 0,
            }
        }

        /// Ten messages due in a second, one without an answer and some that took 600 ms, with a part
        /// of our own.
        fn second(&mut self, second: u32, slow: u32, own_ms: u64) {
            for place in 0..10 {
                let (outcome, took_ms) = match place {
                    9 => (Outcome::TimedOut, 5_000),
                    _ if place < slow => (Outcome::Accepted, 600),
                    _ => (Outcome::Accepted, 200),
                };
                let due = Micros::from_secs(u64::from(second));
                for stream in [StreamId(0), StreamId(1)] {
                    let id = MessageId {
                        run: RunId(1),
                        device: DeviceId(place),
                        stream,
                        seq: self.ended,
                    };
                    self.recorder.attempt(&Attempt {
                        id,
                        due,
                        taken: Some(due),
                        sent: Some(due),
                        ended: due + Micros::from_millis(took_ms),
                        outcome,
                        resent: false,
                        own: Micros::from_millis(own_ms),
                    });
                }
            }
            self.ended += 1;
            let delta = self.recorder.flush(Micros::from_secs(200));
            self.watch.add(&delta);
        }

        fn decide(&mut self, second: u32) -> (u64, u64) {
            let all = self.watch.decide(second);
            assert_eq!(all.len(), 1, "{all:?}");
            (all[0].above, all[0].n)
        }
    }

    #[test]
    fn a_latency_is_counted_by_the_step_in_which_its_messages_were_due() {
        let mut run = Watched::new();
        run.second(109, 3, 0);
        run.second(110, 5, 0);
        run.second(100, 1, 0);
        assert_eq!(run.decide(109), (3 + 1 + 2, 20));
        assert_eq!(run.decide(110), (5 + 1, 10));
        run.second(104, 9, 0);
        assert_eq!(run.decide(111), (5 + 1, 10), "that step is over");
        let begins = [100, 105, 110, 111].map(|second| run.watch.begins_step(second));
        assert_eq!(begins, [true, false, true, false]);
    }

    #[test]
    fn seconds_that_come_in_together_are_decided_one_after_the_other() {
        let mut run = Watched::new();
        for (second, slow) in [(100, 0), (101, 0), (102, 9)] {
            run.second(second, slow, 0);
        }
        assert_eq!(run.decide(100), (1, 10));
        assert_eq!(run.decide(101), (2, 20));
        run.second(100, 4, 0);
        assert_eq!(run.decide(102), (2 + 10 + 5, 40), "one of them ended late");
    }

    #[test]
    fn a_time_above_the_bound_by_our_own_delay_is_nothing_of_the_target() {
        let mut run = Watched::new();
        run.second(100, 9, 150);
        assert_eq!(run.decide(100), (1, 10), "only the one without an answer");
        run.second(101, 9, 50);
        assert_eq!(run.decide(101), (1 + 10, 20));
    }
}
