//! How a run stands, from the windows that came in so far.

use std::collections::BTreeMap;
use std::sync::Arc;

use muster_agent::Pulse;
use muster_cluster::Standing;
use muster_dashboard::{Health, Live, LiveRates, Quantiles};
use muster_load::{Schedule, StreamSchedule};
use muster_measure::{Distribution, Flow, State, Timeline, WindowDelta};
use muster_model::Micros;

use crate::events::answered;

/// Seconds of windows that the live view remembers: the last full one, and some that late
/// answers may still change.
const REMEMBERED_S: u32 = 30;
/// The last second whose windows have surely come in: two dispatches ago.
const LAG_S: u32 = 2;

/// What does not change during a run.
#[derive(Debug, Clone)]
pub(crate) struct Fixed {
    pub(crate) name: String,
    pub(crate) target: String,
    pub(crate) has_backend: bool,
    pub(crate) schedules: Vec<Arc<StreamSchedule>>,
}

/// Sums over the whole run, and the windows of its last seconds.
#[derive(Debug)]
pub(crate) struct View {
    fixed: Fixed,
    recent: WindowDelta,
    flow: Flow,
    arrived: u64,
    errors: BTreeMap<String, u64>,
    pulses: BTreeMap<usize, Pulse>,
    phase: Option<(muster_conduct::Phase, Micros)>,
}

impl View {
    pub(crate) fn new(fixed: Fixed) -> Self {
        Self {
            fixed,
            recent: WindowDelta::default(),
            flow: Flow::default(),
            arrived: 0,
            errors: BTreeMap::new(),
            pulses: BTreeMap::new(),
            phase: None,
        }
    }

    /// Takes in what came.
    pub(crate) fn add(&mut self, delta: &WindowDelta) {
        for window in delta.uplinks.values() {
            self.flow.merge(&window.flow);
        }
        let first = delta
            .arrivals
            .iter()
            .filter(|((backend, _, _), _)| backend.0 == 0);
        self.arrived += first.map(|(_, window)| window.arrived).sum::<u64>();
        self.add_errors(delta);
        self.recent.merge(delta);
        self.recent
            .forget_before(delta.until.second().saturating_sub(REMEMBERED_S));
    }

    /// Takes in how a process fares.
    pub(crate) fn pulse(&mut self, agent: usize, pulse: &Pulse) {
        self.pulses.insert(agent, pulse.clone());
    }

    /// How the run stands.
    pub(crate) fn live(&mut self, standing: &Standing) -> Live {
        if self.phase.is_none_or(|(phase, _)| phase != standing.phase) {
            self.phase = Some((standing.phase, standing.now));
        }
        let second = standing.now.second().saturating_sub(LAG_S);
        let flow = self.flow_of(second);
        let offered = self.offered(second, standing.timeline);
        let has_backend = self.fixed.has_backend;
        let delivered = self.flow.of(State::Accepted) + self.flow.of(State::Unacknowledged);
        let undelivered = delivered.saturating_sub(self.arrived) as f64;
        let of_traffic = |messages: f64| (offered > 0.0).then(|| messages / offered);
        Live {
            name: self.fixed.name.clone(),
            target: self.fixed.target.clone(),
            phase: standing.phase,
            elapsed: standing.now,
            phase_from: self.phase.map_or(standing.now, |(_, from)| from),
            phase_until: Some(standing.now + standing.time_left),
            run_until: None,
            links_wanted: standing.progress.links_wanted,
            links_up: standing.progress.links_up,
            has_backend,
            rates: LiveRates {
                offered,
                issued: flow.sent as f64,
                completed: answered(&flow) as f64,
                arrived: has_backend.then(|| self.arrived_in(second) as f64),
            },
            response: self.response(second),
            end_to_end: self.end_to_end(second),
            backlog_s: of_traffic(standing.progress.open as f64),
            delivery_backlog_s: has_backend.then(|| of_traffic(undelivered)).flatten(),
            sent: self.flow.sent,
            accepted: self.flow.of(State::Accepted),
            arrived: has_backend.then_some(self.arrived),
            lost: None,
            shed: self.flow.of(State::Shed),
            errors: self.sorted_errors(),
            health: self.health(second),
        }
    }

    fn offered(&self, second: u32, timeline: Timeline) -> f64 {
        if timeline.origin == Micros::MAX {
            return 0.0;
        }
        let from = Micros::from_secs(u64::from(second)) - timeline.origin;
        let until = Micros::from_secs(u64::from(second) + 1) - timeline.origin;
        let due = |schedule: &Arc<StreamSchedule>| {
            schedule.count_until(until) - schedule.count_until(from)
        };
        self.fixed.schedules.iter().map(due).sum::<u64>() as f64
    }

    fn flow_of(&self, second: u32) -> Flow {
        let mut flow = Flow::default();
        for ((_, key), window) in &self.recent.uplinks {
            if key.second == second {
                flow.merge(&window.flow);
            }
        }
        flow
    }

    fn arrived_in(&self, second: u32) -> u64 {
        let windows = self.recent.arrivals.iter();
        let of = windows.filter(|((backend, _, key), _)| backend.0 == 0 && key.second == second);
        of.map(|(_, window)| window.arrived).sum()
    }

    fn response(&self, second: u32) -> Quantiles {
        let windows = self.recent.uplinks.iter();
        let of = windows.filter(|((_, key), _)| key.second == second);
        quantiles(of.map(|(_, window)| &window.response))
    }

    fn end_to_end(&self, second: u32) -> Quantiles {
        let windows = self.recent.arrivals.iter();
        let of = windows.filter(|((backend, _, key), _)| backend.0 == 0 && key.second == second);
        quantiles(of.map(|(_, window)| &window.end_to_end))
    }

    fn health(&self, second: u32) -> Health {
        let threads = || self.pulses.values().flat_map(|pulse| &pulse.threads);
        let worst = |values: &mut dyn Iterator<Item = f64>| values.reduce(f64::max);
        let cpu = |is_consumer: bool| {
            let of_role = threads().filter(|thread| thread.is_consumer == is_consumer);
            worst(&mut of_role.map(|thread| thread.cpu))
        };
        let windows = self.recent.uplinks.iter();
        let of = windows.filter(|((_, key), _)| key.second == second);
        let rss = self.pulses.values().map(|pulse| pulse.rss_bytes).sum();
        Health {
            shard_cpu: cpu(false),
            consumer_cpu: cpu(true),
            cpu_wait: worst(&mut threads().map(|thread| thread.wait)),
            lateness_p99: quantiles(of.map(|(_, window)| &window.lateness)).p99,
            rss_bytes: (!self.pulses.is_empty()).then_some(rss),
            faults: self.faults(),
        }
    }

    /// What makes the run invalid if it stays so.
    fn faults(&self) -> Vec<String> {
        let own = self
            .errors
            .iter()
            .filter(|(what, _)| what.starts_with("shed generator"));
        own.map(|(what, count)| format!("{what} {count}")).collect()
    }

    fn add_errors(&mut self, delta: &WindowDelta) {
        let mut add = |what: String, count: u64| *self.errors.entry(what).or_default() += count;
        for window in delta.uplinks.values() {
            let outcomes = &window.outcomes;
            outcomes
                .rejected
                .iter()
                .for_each(|(reason, count)| add(reason.to_string(), count));
            outcomes
                .broken
                .iter()
                .for_each(|(cause, count)| add(format!("broken {cause}"), count));
            outcomes
                .shed
                .iter()
                .for_each(|(cause, count)| add(format!("shed {cause}"), count));
            let timed_out = outcomes.states[State::TimedOut.index()];
            if timed_out > 0 {
                add("timed-out".to_owned(), timed_out);
            }
        }
        for window in delta.links.values() {
            let failures = window.counts.failures.iter();
            failures.for_each(|(failure, count)| add(format!("connect {failure}"), count));
        }
    }

    /// What went wrong so far, most frequent first.
    fn sorted_errors(&self) -> Vec<(String, u64)> {
        let errors = self.errors.iter();
        let mut sorted: Vec<_> = errors.map(|(what, count)| (what.clone(), *count)).collect();
        sorted.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        sorted
    }
}

fn quantiles<'a>(distributions: impl Iterator<Item = &'a Distribution>) -> Quantiles {
    let mut all = Distribution::default();
    for distribution in distributions {
        all.merge(distribution);
    }
    Quantiles {
        p50: all.quantile_us(0.5).map(Micros),
        p99: all.quantile_us(0.99).map(Micros),
    }
}
