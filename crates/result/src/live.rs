//! The state of a run from the windows that came in so far.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context, Result};
use muster_conduct::{ProcessSample, Standing, Timetable, recorder_plan, schedules};
use muster_judge::Rules;
use muster_load::{Schedule, StreamSchedule};
use muster_measure::{Distribution, Flow, RecorderPlan, State, Timeline, WindowDelta};
use muster_model::{ConnectFailure, Micros, RunId, StreamId};
use muster_plan::Plan;

use crate::usage::UsageNote;

mod fitness;
mod history;
mod slos;
mod standing;
mod usage;

use fitness::Fitness;
pub(crate) use fitness::HealthLog;
use history::{History, SPAN_MAX_S};
use slos::{Moment, SloWatch};
pub use standing::{
    Health, Live, LiveClock, LiveLinks, LiveMessages, LiveRates, LiveUse, Quantiles,
};
use usage::LastUsage;

/// The last second whose windows have surely come in: two dispatches ago. It is what is shown.
pub const LAG_S: u32 = 2;
/// Seconds of windows that the live view remembers: the one that is shown, those after it, and
/// one more for a process whose news are late.
const REMEMBERED_S: u32 = LAG_S + 2;

/// The values that do not change during a run.
#[derive(Debug, Clone)]
pub struct Fixed {
    pub(crate) name: String,
    pub(crate) target: String,
    pub(crate) schedules: Vec<Arc<StreamSchedule>>,
    pub(crate) recorder: RecorderPlan,
    pub(crate) rules: Rules,
    pub(crate) timetable: Timetable,
}

impl Fixed {
    /// The values of a plan; `target` names the destination of the load.
    pub fn of(plan: &Plan, target: String, timetable: Timetable) -> Result<Self> {
        let schedules = schedules(plan).context("make a schedule")?;
        Ok(Self {
            name: plan.name.clone(),
            target,
            // Which run it is says nothing of how it stands.
            recorder: recorder_plan(plan, RunId(0), &schedules),
            schedules,
            rules: plan.rules.clone(),
            timetable,
        })
    }
}

/// Sums over the whole run, and the windows of its last seconds.
#[derive(Debug)]
pub struct View {
    fixed: Fixed,
    recent: WindowDelta,
    history: History,
    slos: SloWatch,
    flow: Flow,
    /// First copies, per backend.
    arrived: Vec<u64>,
    errors: BTreeMap<String, u64>,
    connect_failures: BTreeMap<ConnectFailure, u64>,
    fitness: Fitness,
    usage: LastUsage,
    phase: Option<(muster_conduct::Phase, Micros)>,
}

impl View {
    /// The view of a run that has not begun.
    pub fn new(fixed: Fixed) -> Self {
        Self {
            fitness: Fitness::new(fixed.rules.clone(), fixed.recorder.clone()),
            arrived: vec![0; usize::from(fixed.recorder.timed())],
            history: History::default(),
            slos: SloWatch::new(&fixed.recorder),
            fixed,
            recent: WindowDelta::default(),
            flow: Flow::default(),
            errors: BTreeMap::new(),
            connect_failures: BTreeMap::new(),
            usage: LastUsage::default(),
            phase: None,
        }
    }

    /// Takes in what came.
    pub fn add(&mut self, delta: &WindowDelta) {
        for window in delta.uplinks.values() {
            self.flow.merge(&window.flow);
        }
        for ((backend, _, _), window) in &delta.arrivals {
            if let Some(arrived) = self.arrived.get_mut(backend.index()) {
                *arrived += window.arrived;
            }
        }
        self.add_errors(delta);
        self.fitness.add(delta);
        self.history.add(delta);
        self.slos.add(delta);
        self.recent.merge(delta);
        self.recent
            .forget_before(delta.until.second().saturating_sub(REMEMBERED_S));
    }

    /// Adds a health sample.
    pub fn process_sample(&mut self, agent: usize, sample: &ProcessSample) {
        self.fitness.process_sample(agent, sample);
    }

    /// Adds a note of the monitoring of the target.
    pub fn monitored(&mut self, note: &UsageNote) {
        self.usage.add(note);
    }

    /// The state of the run.
    pub fn live(&mut self, standing: &Standing) -> Live {
        if self.phase.is_none_or(|(phase, _)| phase != standing.phase) {
            self.phase = Some((standing.phase, standing.now));
        }
        let second = standing.now.second().saturating_sub(LAG_S);
        let flow = self.flow_of(second);
        let offered = self.offered(second, standing.timeline);
        // The schedules begin in mid-second, and nothing was due before.
        let is_full = Micros::from_secs(u64::from(second)) >= standing.timeline.origin;
        let has_backend = !self.arrived.is_empty();
        let not_arrived = self.not_arrived();
        let response = self.response(second, standing);
        let of_traffic = |messages: u64| (offered > 0.0).then(|| messages as f64 / offered);
        Live {
            name: self.fixed.name.clone(),
            target: self.fixed.target.clone(),
            clock: LiveClock {
                phase: standing.phase,
                elapsed: standing.now,
                phase_from: self.phase.map_or(standing.now, |(_, from)| from),
                phase_until: Some(standing.now + standing.time_left),
                run_until: Some(self.run_until(standing)),
            },
            links: LiveLinks {
                wanted: self.links_wanted(standing),
                up: standing.progress.links_up,
                failures: self.failing(self.links_failing(standing)),
            },
            rates: LiveRates {
                offered: is_full.then_some(offered),
                issued: is_full.then_some(self.handed_in(second) as f64),
                completed: is_full.then_some(flow.answered() as f64),
                arrived: (is_full && has_backend).then(|| self.arrived_in(second) as f64),
            },
            response,
            end_to_end: self.end_to_end(second, standing.timeline),
            backlog_s: of_traffic(standing.progress.open),
            delivery_backlog_s: not_arrived.and_then(of_traffic),
            messages: LiveMessages {
                sent: self.flow.sent,
                accepted: self.flow.of(State::Accepted),
                arrived: self.arrived.first().copied(),
                not_arrived,
                lost: None,
                shed: self.flow.of(State::Shed),
            },
            errors: self.sorted_errors(),
            slos: self.slos.failing(Moment {
                fixed: &self.fixed,
                now: standing.now,
                timeline: standing.timeline,
                response,
            }),
            health: self.health(second),
            usage: self.usage.at(standing.now),
        }
    }

    /// Links that the processes reported; before that, those of the plan, unless this is a part of it.
    fn links_wanted(&self, standing: &Standing) -> u64 {
        let fleets = self.fixed.recorder.fleets.iter();
        let planned = fleets.map(|fleet| u64::from(fleet.links)).sum();
        match standing.progress.links_wanted {
            0 if !self.fixed.timetable.is_part => planned,
            wanted => wanted,
        }
    }

    /// Links that have tried and are not up.
    fn links_failing(&self, standing: &Standing) -> u64 {
        let links = &standing.progress;
        let wanted = self.links_wanted(standing);
        wanted.saturating_sub(links.links_untried + links.links_up)
    }

    /// The causes of links that do not come up, the most frequent first. A link that tries again counts once:
    /// no cause has more than these links.
    pub fn failing(&self, most: u64) -> Vec<(String, u64)> {
        let causes = self.connect_failures.iter();
        let mut causes: Vec<(String, u64)> = causes
            .map(|(cause, count)| (cause.in_words(), (*count).min(most)))
            .filter(|(_, count)| *count > 0)
            .collect();
        causes.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        causes
    }

    /// Messages that were accepted, or have no answer by design, and have not arrived so far at the backend
    /// that lacks most. Before settling ends, messages on their way and lost ones look alike. Not known of
    /// one part of a run, whose messages arrive at other parts.
    fn not_arrived(&self) -> Option<u64> {
        if self.fixed.timetable.is_part {
            return None;
        }
        let expected = self.flow.of(State::Accepted) + self.flow.of(State::Unacknowledged);
        let least = self.arrived.iter().min()?;
        Some(expected.saturating_sub(*least))
    }

    /// The latest end of the run.
    fn run_until(&self, standing: &Standing) -> Micros {
        let timetable = &self.fixed.timetable;
        let phase_until = standing.now + standing.time_left;
        match standing.phase {
            muster_conduct::Phase::Connect => {
                let origin = phase_until + timetable.lead;
                let origin = timetable.agreed_origin.unwrap_or(origin);
                origin + timetable.warm_up + timetable.measure + timetable.settle_at_most
            }
            muster_conduct::Phase::WarmUp | muster_conduct::Phase::Measure => {
                standing.timeline.settle + timetable.settle_at_most
            }
            muster_conduct::Phase::Settle | muster_conduct::Phase::Finish => phase_until,
        }
    }

    fn offered(&self, second: u32, timeline: Timeline) -> f64 {
        if timeline.origin == Micros::MAX {
            return 0.0;
        }
        let streams = self.fixed.recorder.streams.iter();
        let uplinks = streams
            .zip(&self.fixed.schedules)
            .filter(|(track, _)| track.role.is_uplink());
        let due = uplinks.map(|(_, schedule)| due_in(schedule, second, timeline));
        due.sum::<u64>() as f64
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

    /// Messages handed to the sockets, counted before they have ended.
    fn handed_in(&self, second: u32) -> u64 {
        let streams = self.fixed.recorder.streams.iter().zip(0u8..);
        let uplinks = streams.filter(|(track, _)| track.role.is_uplink());
        let windows = uplinks.flat_map(|(_, at)| self.recent.uplinks_of(StreamId(at)));
        let of = windows.filter(|(key, _)| key.second == second);
        of.map(|(_, window)| window.counts.handed).sum()
    }

    fn arrived_in(&self, second: u32) -> u64 {
        let windows = self.recent.arrivals.iter();
        let of = windows.filter(|((backend, _, key), _)| backend.0 == 0 && key.second == second);
        of.map(|(_, window)| window.arrived).sum()
    }

    /// Of all due in a second, or in as many before it as it takes: those that have no answer yet have
    /// waited at least until now, so that a target that stands still does not look fast.
    fn response(&self, second: u32, standing: &Standing) -> Quantiles {
        let seconds = self.seconds_until(second, standing.timeline).map(|second| {
            let (answered, mut others) = match self.history.of(second) {
                Some(times) => (times.answered.clone(), times.censored.clone()),
                None => (Distribution::default(), Distribution::default()),
            };
            let waited = standing.now - Micros::from_secs(u64::from(second) + 1);
            others.record_n(waited, self.open_of(second, standing.timeline));
            (answered, others)
        });
        history::quantiles(seconds)
    }

    /// A second and those before it in which messages were due.
    fn seconds_until(&self, second: u32, timeline: Timeline) -> impl Iterator<Item = u32> {
        let first = match timeline.origin {
            Micros::MAX => second,
            origin => origin.second(),
        };
        (first.min(second)..=second).rev().take(SPAN_MAX_S as usize)
    }

    /// Messages due in a second that are to be answered and have not ended. The schedule does not know the
    /// messages of a closed loop, and a part does not know its share of them.
    fn open_of(&self, second: u32, timeline: Timeline) -> u64 {
        if timeline.origin == Micros::MAX || self.fixed.timetable.is_part {
            return 0;
        }
        let tracks = self.fixed.recorder.streams.iter().zip(0u8..);
        let streams = tracks.zip(&self.fixed.schedules);
        let open = streams.filter(|((track, _), _)| track.answers && track.closed.is_none());
        let open = open.map(|((_, at), schedule)| {
            let times = self.history.of(second);
            let ended = times.map_or(0, |times| times.finals(StreamId(at)));
            due_in(schedule, second, timeline).saturating_sub(ended)
        });
        open.sum()
    }

    fn end_to_end(&self, second: u32, timeline: Timeline) -> Quantiles {
        let seconds = self.seconds_until(second, timeline).map(|second| {
            let times = self.history.of(second);
            let seen = times.map_or_else(Distribution::default, |times| times.end_to_end.clone());
            (seen, Distribution::default())
        });
        history::quantiles(seconds)
    }

    fn health(&mut self, second: u32) -> Health {
        let windows = self.recent.uplinks.iter();
        let of = windows.filter(|((_, key), _)| key.second == second);
        let mut lateness = Distribution::default();
        of.for_each(|(_, window)| lateness.merge(&window.lateness));
        self.fitness.live(&lateness)
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
            for (failure, count) in window.counts.failures.iter() {
                add(format!("connect {failure}"), count);
                *self.connect_failures.entry(failure).or_default() += count;
            }
        }
    }

    /// Errors so far, the most frequent first.
    fn sorted_errors(&self) -> Vec<(String, u64)> {
        let errors = self.errors.iter();
        let mut sorted: Vec<_> = errors.map(|(what, count)| (what.clone(), *count)).collect();
        sorted.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        sorted
    }
}

/// Messages of a schedule that are due in a second of the run.
fn due_in(schedule: &StreamSchedule, second: u32, timeline: Timeline) -> u64 {
    let from = Micros::from_secs(u64::from(second));
    due_between(schedule, (from, from + Micros::from_secs(1)), timeline)
}

/// Messages of a schedule that are due from one instant of the run to another.
fn due_between(
    schedule: &StreamSchedule,
    (from, until): (Micros, Micros),
    timeline: Timeline,
) -> u64 {
    let count = |at: Micros| schedule.count_until(at - timeline.origin);
    count(until) - count(from)
}

#[cfg(test)]
mod tests {
    use muster_conduct::{Phase, Progress, ThreadSample, timetable};
    use muster_judge::{Incident, IncidentKind};
    use muster_measure::{ArrivalWindow, Latency, LinkWindow, UplinkWindow, WindowKey};
    use muster_model::{BackendId, FleetId, Outcome, ShedCause};
    use muster_scenario::{NoFiles, Overrides, Source, parse};

    use super::*;

    const TEXT: &str = "name: live
fleet: [ { name: meters, count: 100, streams: [ { name: readings, rate: 100/s, qos: 1 } ] } ]
phases: { warm-up: 5s, measure: 60s, settle: { at-most: 20s, quiet: 1s } }
";

    fn fixed() -> Fixed {
        fixed_with("")
    }

    /// Of the scenario with further lines.
    fn fixed_with(lines: &str) -> Fixed {
        let source = Source {
            name: "live.yaml",
            text: &format!("{TEXT}{lines}"),
        };
        let plan = parse(source, &Overrides::new(), &NoFiles).expect("a scenario");
        Fixed::of(&plan, "here".to_owned(), timetable(&plan)).expect("a schedule")
    }

    fn timeline() -> Timeline {
        Timeline::starting(
            Micros::from_secs(5),
            Micros::from_secs(5),
            Micros::from_secs(60),
        )
    }

    fn standing(phase: Phase, now: u64, left: u64) -> Standing {
        let is_connecting = phase == Phase::Connect;
        Standing {
            now: Micros::from_secs(now),
            phase,
            time_left: Micros::from_secs(left),
            timeline: if is_connecting {
                Timeline::CONNECTING
            } else {
                timeline()
            },
            progress: Progress::default(),
        }
    }

    fn sample(second: u64, wait: f64) -> ProcessSample {
        ProcessSample {
            at: Micros::from_secs(second),
            threads: vec![ThreadSample {
                is_consumer: false,
                cpu: 0.5,
                wait,
            }],
            rss_bytes: 1,
            steal: Some(0.0),
            incidents: Vec::new(),
        }
    }

    fn measured(second: u32) -> WindowKey {
        WindowKey {
            second,
            phase: muster_measure::Phase::Measure,
            cold: false,
        }
    }

    #[test]
    fn a_second_of_cpu_wait_is_reported_and_is_no_fault() {
        for (wait, told) in [
            (0.28, &["cpu-wait 28 % (ok below 10 %)"] as &[&str]),
            (0.05, &[]),
        ] {
            let mut view = View::new(fixed());
            for second in 11..=30 {
                view.process_sample(0, &sample(second, wait));
            }
            let health = view.live(&standing(Phase::Measure, 30, 40)).health;
            assert_eq!(health.faults, [""; 0]);
            assert_eq!(health.warnings, told);
        }
        // A good second follows: what was is in the report, and not in the view.
        let mut view = View::new(fixed());
        view.process_sample(0, &sample(11, 0.28));
        view.process_sample(0, &sample(12, 0.01));
        let health = view.live(&standing(Phase::Measure, 12, 58)).health;
        assert_eq!(health.warnings, [""; 0]);
    }

    #[test]
    fn lateness_of_the_measured_phase_is_a_fault_by_the_rule_of_the_run() {
        let mut view = View::new(fixed());
        let mut window = UplinkWindow::default();
        for _ in 0..2_000 {
            window.lateness.record(Micros::from_millis(150));
            window.outcomes.count(&Outcome::Accepted);
        }
        window.outcomes.taken = 2_000;
        let bound = fixed().rules.validity.lateness_p99;
        let track = fixed().recorder.stream(StreamId(0)).cloned();
        let place = track.and_then(|track| track.bounds.place(Latency::Lateness, bound));
        window.above = vec![0; place.expect("the bound is counted") + 1];
        *window.above.last_mut().expect("one counter") = 2_000;
        let mut delta = WindowDelta::default();
        delta.uplinks.insert((StreamId(0), measured(12)), window);
        view.add(&delta);
        view.process_sample(0, &sample(13, 0.0));
        let health = view.live(&standing(Phase::Measure, 13, 57)).health;
        assert_eq!(health.faults.len(), 1, "{health:?}");
        assert!(health.faults[0].starts_with("shape 1"), "{health:?}");
    }

    #[test]
    fn what_was_shed_by_us_is_a_fault_at_once() {
        let mut view = View::new(fixed());
        let mut delta = WindowDelta::default();
        let mut window = UplinkWindow::default();
        window
            .outcomes
            .count(&Outcome::Shed(ShedCause::GeneratorLate));
        window.outcomes.count(&Outcome::Shed(ShedCause::QueueFull));
        delta.uplinks.insert((StreamId(0), measured(12)), window);
        view.add(&delta);
        view.process_sample(0, &sample(13, 0.0));
        let health = view.live(&standing(Phase::Measure, 13, 57)).health;
        assert_eq!(health.faults, ["own-shed 1 (max 0)"]);
    }

    #[test]
    fn an_incident_is_a_fault_once_however_often_it_is_told() {
        let incident = Incident {
            kind: IncidentKind::LimitReached,
            from: Micros::from_secs(12),
            until: Micros::from_secs(12),
            count: 2,
            detail: "no descriptor is left".to_owned(),
        };
        let mut view = View::new(fixed());
        for second in 12..=14 {
            let incidents = vec![incident.clone()];
            let told = ProcessSample {
                incidents,
                ..sample(second, 0.0)
            };
            view.process_sample(0, &told);
        }
        let health = view.live(&standing(Phase::Measure, 14, 56)).health;
        assert_eq!(health.faults, ["limits 2 (max 0)"]);
    }

    #[test]
    fn the_time_left_is_that_of_the_whole_run() {
        let mut view = View::new(fixed());
        let cases = [
            (Phase::WarmUp, 6, 4, 90),
            (Phase::Measure, 20, 50, 90),
            (Phase::Settle, 72, 18, 90),
            (Phase::Finish, 75, 0, 75),
        ];
        for (phase, now, left, until) in cases {
            let live = view.live(&standing(phase, now, left));
            assert_eq!(
                live.clock.run_until,
                Some(Micros::from_secs(until)),
                "{phase:?}"
            );
        }
        let live = view.live(&standing(Phase::Connect, 1, 9));
        let left = live.clock.run_left().expect("known").as_secs_f64();
        assert!((94.0..96.0).contains(&left), "9 + 5 + 60 + 20 s: {left}");
    }

    #[test]
    fn rates_are_told_from_the_first_full_second_on_and_links_from_the_plan() {
        let mut view = View::new(fixed());
        let before = view.live(&standing(Phase::WarmUp, 6, 4));
        assert_eq!(before.rates, LiveRates::default());
        let live = view.live(&standing(Phase::WarmUp, 7, 3));
        assert_eq!(live.rates.offered, Some(100.0));
        assert_eq!(view.live(&standing(Phase::Connect, 0, 9)).links.wanted, 100);
    }

    /// 100 messages are due in the second that is shown; of so many the answer came after 1.5 ms.
    fn response(answered: u64) -> Quantiles {
        let mut view = View::new(fixed());
        let mut window = UplinkWindow::default();
        window.outcomes.states[State::Accepted.index()] = answered;
        window.response.record_n(Micros(1_500), answered);
        let mut delta = WindowDelta::default();
        delta.uplinks.insert((StreamId(0), measured(20)), window);
        view.add(&delta);
        view.live(&standing(Phase::Measure, 22, 50)).response
    }

    #[test]
    fn what_has_no_answer_yet_has_waited_until_now() {
        let quick = Some(Micros(1_500));
        assert_eq!(response(100).p50, quick);
        assert_eq!(response(60).p50, quick);
        assert_eq!(response(40).p50, Some(Micros::from_secs(1)));
        assert_eq!(response(0).p50, Some(Micros::from_secs(1)));
        let is_at_least = |answered| response(answered).is_p50_at_least;
        assert_eq!(
            [100, 60, 40, 0].map(is_at_least),
            [false, false, true, true],
            "nobody knows how long they will take"
        );
    }

    #[test]
    fn a_percentile_of_too_few_is_not_shown() {
        let mut view = answered(5..=7, Micros(1_500));
        let live = view.live(&standing(Phase::WarmUp, 9, 1));
        assert_eq!(live.response.p99, None, "300 messages have no p99");
    }

    /// A view of 100/s whose answers came after so long in each of these seconds of due.
    fn answered(seconds: std::ops::RangeInclusive<u32>, response: Micros) -> View {
        answered_by(fixed(), seconds, response)
    }

    fn answered_by(fixed: Fixed, seconds: std::ops::RangeInclusive<u32>, response: Micros) -> View {
        let mut view = View::new(fixed);
        let mut delta = WindowDelta::default();
        let early = WindowKey {
            phase: muster_measure::Phase::Connect,
            ..measured(4)
        };
        let mut links = LinkWindow::default();
        links.counts.connected = 100;
        delta.links.insert((FleetId(0), early), links);
        for second in seconds {
            let mut window = UplinkWindow::default();
            window.outcomes.states[State::Accepted.index()] = 100;
            window.response.record_n(response, 100);
            delta
                .uplinks
                .insert((StreamId(0), measured(second)), window);
        }
        view.add(&delta);
        view
    }

    #[test]
    fn a_percentile_of_a_slow_stream_is_that_of_more_seconds() {
        let mut view = answered(10..=30, Micros(1_500));
        let live = view.live(&standing(Phase::Measure, 32, 38));
        assert_eq!(live.response.p99, Some(Micros(1_500)));
        assert_eq!(
            (live.response.p50_over_s, live.response.p99_over_s),
            (1, 10)
        );
    }

    #[test]
    fn slos_that_do_not_hold_are_told_while_the_run_goes_on() {
        let slos = |response: Micros, until: u32, now: u64| {
            let slo = "slo: { response: { p90: '<= 1s' } }\n";
            let mut view = answered_by(fixed_with(slo), 10..=until, response);
            view.live(&standing(Phase::Measure, now, 70 - now)).slos
        };
        assert_eq!(slos(Micros(1_500), 30, 9), None, "nothing was measured yet");
        assert_eq!(slos(Micros(1_500), 30, 31), Some(Vec::new()));
        // Nothing was answered in the last seconds, and whoever waits for so long has waited too long.
        let silent = slos(Micros(1_500), 30, 45).expect("it is measured");
        assert!(
            matches!(&silent[..], [one] if one.starts_with("response p90 ") && one.contains("above 1 s")),
            "{silent:?}"
        );
    }

    #[test]
    fn a_lower_bound_that_breaks_an_slo_fails_it_before_enough_is_measured() {
        let slo = "slo: { response: { p99: '<= 200ms' } }\n";
        let slos = |until: u32, now: u64| {
            let mut view = answered_by(fixed_with(slo), 5..=until, Micros(1_500));
            let live = view.live(&standing(Phase::Measure, now, 70 - now));
            (live.response.is_p99_at_least, live.slos)
        };
        assert_eq!(slos(14, 16), (false, Some(Vec::new())));
        // 300 of the last 1,000 have no answer: too few were measured to decide, and they wait for too long.
        let (is_at_least, failing) = slos(11, 16);
        let failing = failing.expect("it is measured");
        assert!(
            matches!(&failing[..], [one] if one.starts_with("response p99 >= ") && one.ends_with("(at most 200 ms)")),
            "{is_at_least} {failing:?}"
        );
    }

    #[test]
    fn what_has_not_arrived_is_not_called_lost() {
        let mut view = View::new(fixed());
        let mut delta = WindowDelta::default();
        let mut window = UplinkWindow::default();
        window.counts.handed = 100;
        window.flow.sent = 95;
        window.flow.ended[State::Accepted.index()] = 90;
        delta.uplinks.insert((StreamId(0), measured(12)), window);
        let arrivals = ArrivalWindow {
            arrived: 70,
            ..ArrivalWindow::default()
        };
        let place = (BackendId(0), StreamId(0), measured(12));
        delta.arrivals.insert(place, arrivals);
        view.add(&delta);
        let live = view.live(&standing(Phase::Measure, 14, 56));
        assert_eq!(
            (
                live.messages.arrived,
                live.messages.not_arrived,
                live.messages.lost
            ),
            (Some(70), Some(20), None)
        );
        assert_eq!(live.delivery_backlog_s, Some(0.2), "20 of 100/s");
        assert_eq!(live.rates.issued, Some(100.0), "the open ones, too");
    }
}
