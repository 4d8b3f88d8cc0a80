//! The generator as things stand: the validity rules on what is known so far, and the health of its threads.

use std::collections::BTreeMap;

use muster_conduct::ProcessSample;
use muster_judge::validity::{Lateness, accidents, command_shape, own_shed, shape};
use muster_judge::{
    Figure, GeneratorHealth, HostHealth, Incident, RuleOutcome, RuleResult, Rules, Strain,
    ThreadHealth, ThreadRole, ThreadWindow, strains,
};
use muster_measure::{
    Distribution, Latency, Percentiles, Phase, RecorderPlan, UplinkWindow, WindowDelta,
};
use muster_model::{Micros, StreamId};

use super::Health;

/// The evidence so far for the validity rules on the generator.
#[derive(Debug)]
pub(crate) struct Fitness {
    rules: Rules,
    recorder: RecorderPlan,
    samples: HealthLog,
    latest: BTreeMap<usize, ProcessSample>,
    /// The faults as of the last sample: working them out looks at every second of the run.
    faults: Option<Vec<RuleResult>>,
    shed: BTreeMap<String, u64>,
    lateness: Distribution,
    command_lateness: Distribution,
    /// Messages above the bound on lateness, and all taken.
    above: (u64, u64),
}

impl Fitness {
    pub(crate) fn new(rules: Rules, recorder: RecorderPlan) -> Self {
        Self {
            rules,
            recorder,
            samples: HealthLog::default(),
            latest: BTreeMap::new(),
            faults: None,
            shed: BTreeMap::new(),
            lateness: Distribution::default(),
            command_lateness: Distribution::default(),
            above: (0, 0),
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
    }

    fn add_measured(&mut self, stream: StreamId, window: &UplinkWindow) {
        self.lateness.merge(&window.lateness);
        let bound = self.rules.validity.lateness_p99;
        let track = self.recorder.stream(stream);
        let place = track.and_then(|track| track.bounds.place(Latency::Lateness, bound));
        let above = place.and_then(|at| window.above.get(at));
        self.above.0 += above.copied().unwrap_or(0);
        self.above.1 += window.outcomes.taken;
    }

    /// Adds a health sample.
    pub(crate) fn process_sample(&mut self, agent: usize, sample: &ProcessSample) {
        self.samples.add(agent, sample);
        self.latest.insert(agent, sample.clone());
        self.faults = None;
    }

    /// The health of the generator; `lateness` is that of the last second.
    pub(crate) fn live(&mut self, lateness: &Distribution) -> Health {
        let faults = self.faults.take().unwrap_or_else(|| self.faults());
        let threads = || self.latest.values().flat_map(|sample| &sample.threads);
        let cpu = |is_consumer: bool| {
            let of_role = threads().filter(|thread| thread.is_consumer == is_consumer);
            of_role.map(|thread| thread.cpu).reduce(f64::max)
        };
        let rss = self.latest.values().map(|sample| sample.rss_bytes).sum();
        let is_new = |rule: &RuleResult| !faults.iter().any(|fault| fault.rule == rule.rule);
        let late = self.late(lateness).filter(is_new);
        let strains = self.strains();
        let strains = strains.iter().map(Strain::to_string);
        let health = Health {
            shard_cpu: cpu(false),
            consumer_cpu: cpu(true),
            cpu_wait: threads().map(|thread| thread.wait).reduce(f64::max),
            lateness_p99: Percentiles::of(lateness).p99_us.map(Micros),
            rss_bytes: (!self.latest.is_empty()).then_some(rss),
            faults: faults.iter().map(in_words).collect(),
            warnings: late.iter().map(in_words).chain(strains).collect(),
        };
        self.faults = Some(faults);
        health
    }

    /// The rules that do not hold on the measured phase so far: what makes the run invalid as
    /// things stand.
    fn faults(&self) -> Vec<RuleResult> {
        let bound = self.rules.validity.lateness_p99;
        let lateness = Lateness {
            known: &self.lateness,
            above: Some(self.above),
        };
        let mut rules = vec![
            own_shed(&self.shed, None),
            shape(bound, &lateness),
            command_shape(bound, &self.command_lateness),
        ];
        rules.extend(accidents(self.samples.health()));
        broken(rules)
    }

    /// The rule on lateness if the last second alone does not keep it, whatever its phase.
    fn late(&self, lateness: &Distribution) -> Option<RuleResult> {
        let lateness = Lateness {
            known: lateness,
            above: None,
        };
        let rule = shape(self.rules.validity.lateness_p99, &lateness);
        (rule.outcome == RuleOutcome::Fail).then_some(rule)
    }

    /// The health figures of the last second that may lengthen times.
    fn strains(&self) -> Vec<Strain> {
        let mut last = GeneratorHealth::default();
        for (agent, sample) in &self.latest {
            add_shares(&mut last, *agent, sample);
        }
        let mut strains = strains(&last, (Micros::ZERO, Micros::MAX));
        strains.retain(Strain::is_harmful);
        strains
    }
}

/// A broken rule in a few words.
fn in_words(rule: &RuleResult) -> String {
    let seen = |observed: Figure| {
        rule.bound
            .map_or(observed.to_string(), |bound| observed.beside(bound))
    };
    let observed = rule.observed.map(|observed| format!(" {}", seen(observed)));
    let bound = rule.bound.map(|bound| format!(" (max {bound})"));
    format!(
        "{}{}{}",
        rule.rule,
        observed.unwrap_or_default(),
        bound.unwrap_or_default()
    )
}

fn broken(rules: Vec<RuleResult>) -> Vec<RuleResult> {
    let broken = rules.into_iter();
    broken
        .filter(|rule| rule.outcome == RuleOutcome::Fail)
        .collect()
}

/// The health of the generator by its samples.
#[derive(Debug, Default)]
pub(crate) struct HealthLog {
    health: GeneratorHealth,
    /// Each sample has all incidents of its process.
    incidents: BTreeMap<usize, Vec<Incident>>,
}

impl HealthLog {
    /// Adds a second of a process.
    pub(crate) fn add(&mut self, agent: usize, sample: &ProcessSample) {
        if self.incidents.get(&agent) != Some(&sample.incidents) {
            self.incidents.insert(agent, sample.incidents.clone());
            self.health.incidents = self.incidents.values().flatten().cloned().collect();
        }
        add_shares(&mut self.health, agent, sample);
    }

    /// The health so far.
    pub(crate) const fn health(&self) -> &GeneratorHealth {
        &self.health
    }
}

/// All processes of a run share a host, so the first one reports its steal.
fn add_shares(health: &mut GeneratorHealth, agent: usize, sample: &ProcessSample) {
    for (place, thread) in sample.threads.iter().enumerate() {
        let role = if thread.is_consumer {
            ThreadRole::Consumer
        } else {
            ThreadRole::Shard
        };
        let name = format!("process {agent} thread {place}");
        let window = ThreadWindow {
            until: sample.at,
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
        let steal = sample.steal.map(|steal| (sample.at, steal));
        health.hosts[0].steal.extend(steal);
    }
}
