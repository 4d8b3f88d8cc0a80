//! Whether the generator is fit as things stand, by the rules that the run will be judged by.

use std::collections::BTreeMap;

use muster_agent::Pulse;
use muster_judge::validity::{Delays, command_lateness_p99, generator, lateness_p99, own_shed};
use muster_judge::{
    GeneratorHealth, HostHealth, Incident, RuleOutcome, RuleResult, Rules, ThreadHealth,
    ThreadRole, ThreadWindow,
};
use muster_measure::{
    Distribution, Latency, Phase, RecorderPlan, Timeline, UplinkWindow, WindowDelta,
};
use muster_model::{Micros, StreamId};

/// What the validity rules on the generator are decided by, as far as the run has come.
#[derive(Debug)]
pub(crate) struct Fitness {
    rules: Rules,
    recorder: RecorderPlan,
    pulses: PulseLog,
    latest: BTreeMap<usize, Pulse>,
    shed: BTreeMap<String, u64>,
    lateness: Distribution,
    command_lateness: Distribution,
    /// Messages above the bound on lateness that is known before the run, and all taken.
    above: (u64, u64),
    response: Distribution,
    end_to_end: Distribution,
}

impl Fitness {
    pub(crate) fn new(rules: Rules, recorder: RecorderPlan) -> Self {
        Self {
            rules,
            recorder,
            pulses: PulseLog::default(),
            latest: BTreeMap::new(),
            shed: BTreeMap::new(),
            lateness: Distribution::default(),
            command_lateness: Distribution::default(),
            above: (0, 0),
            response: Distribution::default(),
            end_to_end: Distribution::default(),
        }
    }

    /// Takes in what came.
    pub(crate) fn add(&mut self, delta: &WindowDelta) {
        for ((stream, key), window) in &delta.uplinks {
            let shed = window.outcomes.shed.iter();
            for (cause, count) in shed.filter(|(cause, _)| cause.is_own()) {
                *self.shed.entry(cause.name().to_owned()).or_default() += count;
            }
            if key.phase == Phase::Measure {
                self.add_measured(*stream, window);
            }
        }
        for ((_, key), window) in &delta.commands {
            if key.phase == Phase::Measure {
                self.command_lateness.merge(&window.lateness);
            }
        }
        for ((backend, _, key), window) in &delta.arrivals {
            if key.phase == Phase::Measure && backend.0 == 0 {
                self.end_to_end.merge(&window.end_to_end);
            }
        }
    }

    fn add_measured(&mut self, stream: StreamId, window: &UplinkWindow) {
        self.lateness.merge(&window.lateness);
        self.response.merge(&window.response);
        self.response.merge(&window.censored);
        let bound = self.rules.lateness_bound();
        let track = self.recorder.stream(stream);
        let place = bound
            .zip(track)
            .and_then(|(bound, track)| track.bounds.place(Latency::Lateness, bound));
        let above = place.and_then(|at| window.above.get(at));
        self.above.0 += above.copied().unwrap_or(0);
        self.above.1 += window.outcomes.taken;
    }

    /// Takes in how a process fares.
    pub(crate) fn pulse(&mut self, agent: usize, pulse: &Pulse) {
        self.pulses.add(agent, pulse);
        self.latest.insert(agent, pulse.clone());
    }

    /// The rules that do not hold on the measured phase so far: what makes the run invalid as
    /// things stand.
    pub(crate) fn faults(&self, timeline: &Timeline) -> Vec<RuleResult> {
        let measured = (timeline.measure, timeline.settle);
        let bounds = &self.rules.validity;
        let mut rules = vec![
            own_shed(&self.shed, None),
            lateness_p99(&self.rules, &self.delays(&self.lateness)),
            command_lateness_p99(&self.rules, &self.delays(&self.command_lateness)),
        ];
        rules.extend(generator(bounds, self.pulses.health(), measured));
        broken(rules)
    }

    /// The rules that the last second alone does not keep, whatever its phase; `lateness` is that
    /// of the last second.
    pub(crate) fn warnings(&self, lateness: &Distribution) -> Vec<RuleResult> {
        let mut last = GeneratorHealth::default();
        for (agent, pulse) in &self.latest {
            add_shares(&mut last, *agent, pulse);
        }
        let bounds = &self.rules.validity;
        let mut rules = generator(bounds, &last, (Micros::ZERO, Micros::MAX));
        let of_second = Delays {
            above: None,
            ..self.delays(lateness)
        };
        rules.push(lateness_p99(&self.rules, &of_second));
        broken(rules)
    }

    fn delays<'a>(&'a self, lateness: &'a Distribution) -> Delays<'a> {
        let has_answers = self.recorder.streams.iter().any(|stream| stream.answers);
        Delays {
            lateness,
            above: Some(self.above),
            response: has_answers.then_some(&self.response),
            end_to_end: (self.recorder.backends > 0).then_some(&self.end_to_end),
        }
    }
}

fn broken(rules: Vec<RuleResult>) -> Vec<RuleResult> {
    let broken = rules.into_iter();
    broken
        .filter(|rule| rule.outcome == RuleOutcome::Fail)
        .collect()
}

/// The health of the generator as its pulses tell it.
#[derive(Debug, Default)]
pub(crate) struct PulseLog {
    health: GeneratorHealth,
    /// Each process tells all its incidents with every pulse.
    incidents: BTreeMap<usize, Vec<Incident>>,
}

impl PulseLog {
    /// Adds a second of a process.
    pub(crate) fn add(&mut self, agent: usize, pulse: &Pulse) {
        if self.incidents.get(&agent) != Some(&pulse.incidents) {
            self.incidents.insert(agent, pulse.incidents.clone());
            self.health.incidents = self.incidents.values().flatten().cloned().collect();
        }
        add_shares(&mut self.health, agent, pulse);
    }

    /// The health so far.
    pub(crate) const fn health(&self) -> &GeneratorHealth {
        &self.health
    }
}

/// All processes of a run share a host, so the first one tells its steal.
fn add_shares(health: &mut GeneratorHealth, agent: usize, pulse: &Pulse) {
    for (place, thread) in pulse.threads.iter().enumerate() {
        let role = if thread.is_consumer {
            ThreadRole::Consumer
        } else {
            ThreadRole::Shard
        };
        let name = format!("process {agent} thread {place}");
        let window = ThreadWindow {
            until: pulse.at,
            cpu: thread.cpu,
            waiting: Some(thread.wait),
        };
        match health.threads.iter_mut().find(|known| known.name == name) {
            Some(known) => known.windows.push(window),
            None => health.threads.push(ThreadHealth {
                name,
                role,
                windows: vec![window],
            }),
        }
    }
    if health.hosts.is_empty() {
        health.hosts.push(HostHealth {
            name: "localhost".to_owned(),
            steal: Vec::new(),
        });
    }
    if agent == 0 {
        let steal = pulse.steal.map(|steal| (pulse.at, steal));
        health.hosts[0].steal.extend(steal);
    }
}
