//! Conducts a run with its agents, from the first order to the last handover.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use muster_agent::News;
use muster_conduct::{
    Afterlife, Conductor, Delivery, Diagnostic, Dispatch, Handover, Incidents, Order, Phase,
    ProcessSample, Progress, RunData, Standing, Timetable,
};
use muster_judge::{GeneratorHealth, Incident, IncidentKind, Rules, Stop, StopWatch, StopWindow};
use muster_measure::{Timeline, WindowDelta};
use muster_model::{Listening, Micros};
use muster_net::Clock;

use crate::control_channel::Own;
use crate::recent::Recent;
use crate::{Agents, ChannelAccount, ControlChannel};

/// Longest wait of the conductor for news before it reads the clock again.
const WAIT: Duration = Duration::from_millis(10);
/// Interval between two states shown to the observer.
const SHOW_EVERY: Micros = Micros::from_millis(250);
/// Longest time for the agents' last messages after the order to finish.
const FINISH_MAX: Micros = Micros::from_secs(60);
/// Incidents that a result tells one by one; of what comes beyond, how many there were. A consumer
/// that is thrown out four times a second for an hour would tell of nothing else.
const INCIDENTS_MAX: usize = 1_000;

/// Observes a run.
pub trait Observer {
    /// Windows came in; whether the observer keeps them, so that they need not be remembered.
    fn windows(&mut self, delta: &WindowDelta) -> bool;
    /// A process told how it fares.
    fn pulse(&mut self, agent: usize, pulse: &ProcessSample);
    /// Shows the state of the run, a few times a second.
    fn standing(&mut self, standing: &Standing);
}

/// Surroundings of a run while it is conducted.
pub struct Surroundings<'a> {
    /// True once the user has requested the end.
    pub interrupted: &'a AtomicBool,
    /// The observer.
    pub observer: &'a mut dyn Observer,
    /// The line to the other parts of the run.
    pub line: Option<ControlChannel>,
}

/// Conducts a run: all that it left behind, and what came of the control channel to the other parts, if there was one.
pub fn carry_out(
    agents: &mut Agents,
    timetable: Timetable,
    rules: &Rules,
    clock: Clock,
    surroundings: Surroundings<'_>,
) -> (RunData, Option<ChannelAccount>) {
    let Surroundings {
        interrupted,
        observer,
        mut line,
    } = surroundings;
    let mut run = Run::new(agents.agents(), timetable, rules, clock);
    let mut next_show = Micros::ZERO;
    let mut is_leaving = false;
    while !run.is_over() {
        if let Some((agent, news)) = agents.next(WAIT) {
            run.hear(agent, news, observer);
        }
        if interrupted.load(Ordering::Relaxed) {
            run.conductor.interrupt(clock.now());
        }
        run.watch(clock.now());
        if let Some(line) = &mut line {
            line.turn(clock, &|| run.own());
            run.hear_others(line, clock.now());
        }
        while let Some(order) = run.step(clock.now()) {
            if order != Order::Finish {
                agents.order(order);
                continue;
            }
            is_leaving = true;
            line.iter_mut().for_each(|line| line.settled(clock.now()));
        }
        if is_leaving && line.as_ref().is_none_or(|line| line.may_leave(clock.now())) {
            agents.order(Order::Finish);
            is_leaving = false;
        }
        if clock.now() >= next_show {
            next_show = clock.now() + SHOW_EVERY;
            observer.standing(&run.standing(clock.now()));
        }
    }
    let line = line.map(|line| line.close(clock, &run.own(), run.others.is_some()));
    (run.into_data(), line)
}

struct Run {
    conductor: Conductor,
    timetable: Timetable,
    watch: StopWatch,
    stop: Option<Stop>,
    watched: u32,
    progress: Vec<Progress>,
    state: Vec<AgentState>,
    recent: Recent,
    unkept: WindowDelta,
    handover: Option<Box<Handover>>,
    health: GeneratorHealth,
    afterlives: Vec<Afterlife>,
    incidents: Vec<Incidents>,
    further_incidents: u64,
    timeline: Timeline,
    finished_at: Option<Micros>,
    /// State of the consumers' listening then.
    listening: Option<Listening>,
    /// Progress of all other parts, now or when settling ended; none while one is silent.
    others: Option<(Vec<Progress>, muster_measure::Progress)>,
    now: Micros,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AgentState {
    Working,
    Over,
    Lost,
}

impl Run {
    fn new(agents: usize, timetable: Timetable, rules: &Rules, clock: Clock) -> Self {
        Self {
            conductor: Conductor::new(timetable),
            timetable,
            watch: StopWatch::new(rules),
            stop: None,
            watched: 0,
            progress: vec![Progress::default(); agents],
            state: vec![AgentState::Working; agents],
            recent: Recent::default(),
            unkept: WindowDelta::default(),
            handover: None,
            health: GeneratorHealth::default(),
            afterlives: Vec::new(),
            incidents: Vec::new(),
            further_incidents: 0,
            timeline: Timeline::CONNECTING,
            finished_at: None,
            listening: None,
            others: None,
            now: clock.now(),
        }
    }

    fn is_over(&self) -> bool {
        let Some(finished) = self.finished_at else {
            return false;
        };
        let is_working = self.state.contains(&AgentState::Working);
        !is_working || self.now >= finished + FINISH_MAX
    }

    fn hear(&mut self, agent: usize, news: News, observer: &mut dyn Observer) {
        match news {
            News::Dispatch(dispatch) => {
                if !observer.windows(&dispatch.windows) {
                    self.unkept.merge(&dispatch.windows);
                }
                self.keep(agent, *dispatch);
            }
            News::Pulse(pulse) => observer.pulse(agent, &pulse),
            News::Ended(afterlife) => {
                self.state[agent] = AgentState::Over;
                self.health.merge(afterlife.health.clone());
                self.afterlives.push(*afterlife);
            }
            News::Lost(why) => self.lose(agent, why),
        }
    }

    fn keep(&mut self, agent: usize, dispatch: Dispatch) {
        let at = dispatch.windows.until;
        self.recent.add(&dispatch.windows);
        self.progress[agent] = dispatch.progress;
        for diagnostic in dispatch.diagnostics {
            self.note(at, diagnostic);
        }
        match (&mut self.handover, dispatch.handover) {
            (_, None) => {}
            (None, first) => self.handover = first,
            (Some(all), Some(further)) => all.merge(*further),
        }
    }

    fn lose(&mut self, agent: usize, why: String) {
        self.state[agent] = AgentState::Lost;
        self.health.incidents.push(Incident {
            kind: IncidentKind::ProcessLost,
            from: self.now,
            until: self.now,
            count: 1,
            detail: why.clone(),
        });
        self.note(self.now, Diagnostic::Failed(why));
    }

    fn note(&mut self, at: Micros, diagnostic: Diagnostic) {
        if self.is_of_leaving(at, &diagnostic) {
            return;
        }
        if self.incidents.len() < INCIDENTS_MAX {
            self.incidents.push(Incidents { at, diagnostic });
        } else {
            self.further_incidents += 1;
        }
    }

    /// Once all have settled their consumers leave one after the other, and those that are left are
    /// given other partitions, which is nothing of the run.
    fn is_of_leaving(&self, at: Micros, diagnostic: &Diagnostic) -> bool {
        let Some(finished) = self.finished_at else {
            return false;
        };
        if let Diagnostic::ConsumerLost { since, .. } = diagnostic {
            return *since > finished;
        }
        at > finished
            && matches!(
                diagnostic,
                Diagnostic::ConsumerAway(_) | Diagnostic::ConsumerBack(_)
            )
    }

    fn step(&mut self, now: Micros) -> Option<Order> {
        self.now = now;
        let all_lost = self.state.iter().all(|state| *state == AgentState::Lost);
        if all_lost && self.finished_at.is_none() {
            self.conductor.interrupt(now);
            self.finished_at = Some(now);
            return None;
        }
        let own = self.merged_progress();
        let (progress, delivery) = self.with_others(own, now);
        let order = self.conductor.step(now, &progress, &delivery)?;
        match order {
            Order::Start { origin } => {
                let Timetable {
                    warm_up, measure, ..
                } = self.timetable;
                self.timeline = Timeline::starting(origin, warm_up, measure);
                self.watched = self.timeline.measure.second();
            }
            Order::EndDue { at } => self.timeline = self.timeline.stopped(at),
            Order::Finish => {
                self.finished_at = Some(now);
                let Listening { since, until } = own.listening;
                let until = until.min(now);
                self.listening = Some(Listening { since, until });
            }
            Order::Connect | Order::MarkDrain => {}
        }
        Some(order)
    }

    /// Takes note of how the other parts stand, until this one has settled.
    fn hear_others(&mut self, line: &ControlChannel, now: Micros) {
        if self.finished_at.is_none() {
            self.others = line.others(now);
            self.conductor.see_all_parts(self.others.is_some());
        }
    }

    /// Merges the progress that settling needs: of the whole run, as reported by the other parts.
    /// Other phases are each part's own.
    fn with_others(&self, own: Progress, now: Micros) -> (Progress, Delivery) {
        let is_settling = self.conductor.phase(now) == Phase::Settle;
        match &self.others {
            Some((others, theirs)) if is_settling => {
                let mut windows = self.recent.progress().clone();
                windows.merge(theirs);
                let all = others.iter().copied().chain([own]);
                (Progress::united(all), Delivery::of(&windows))
            }
            Some(_) | None => (own, Delivery::of(self.recent.progress())),
        }
    }

    /// Returns the state of this part for the others.
    fn own(&self) -> Own {
        Own {
            progress: self.merged_progress(),
            windows: self.recent.progress().clone(),
            has_settled: self.finished_at.is_some(),
        }
    }

    /// Looks at every second of the measured phase whose news are in: every thread has told how
    /// it stood after it.
    fn watch(&mut self, now: Micros) {
        let span = |second: u32| {
            (
                Micros::from_secs(u64::from(second)),
                Micros::from_secs(u64::from(second) + 1),
            )
        };
        let told = self.merged_progress().at;
        while self.conductor.phase(now) == Phase::Measure && span(self.watched).1 <= told {
            let (flow, shed_own) = self.recent.flow_of(self.watched);
            let progress = self.merged_progress();
            let links = (progress.links_wanted, progress.links_up);
            let window = StopWindow::of(span(self.watched), &flow, shed_own, links);
            self.watched += 1;
            if let Some(stop) = self.watch.window(&window) {
                self.stop = Some(stop);
                self.conductor.stop_by_rule(now);
                return;
            }
        }
    }

    /// A lost agent holds nothing up: what it had open is nobody's any more.
    fn merged_progress(&self) -> Progress {
        let agents = self.progress.iter().zip(&self.state);
        Progress::united(agents.map(|(progress, state)| match state {
            AgentState::Lost => Progress {
                at: self.now,
                open: 0,
                behind: 0,
                links_untried: 0,
                links_up: 0,
                listening: Listening::NOBODY,
                ..*progress
            },
            AgentState::Working | AgentState::Over => *progress,
        }))
    }

    fn standing(&self, now: Micros) -> Standing {
        Standing {
            now,
            phase: self.conductor.phase(now),
            time_left: self.conductor.time_left(now),
            timeline: self.timeline,
            progress: self.merged_progress(),
        }
    }

    fn into_data(mut self) -> RunData {
        if self.further_incidents > 0 {
            let (at, diagnostic) = (self.now, Diagnostic::NotListed(self.further_incidents));
            self.incidents.push(Incidents { at, diagnostic });
        }
        let end = self.finished_at.unwrap_or(self.now);
        let has_consumers = self.merged_progress().consumers_wanted > 0;
        let listening = self.listening.unwrap_or(Listening::deaf(end));
        let is_whole = !self.state.iter().any(|state| *state != AgentState::Over);
        let handover = self.handover.take().filter(|_| is_whole);
        let (identity, account) = handover
            .map(|handover| (handover.identity, handover.account))
            .unzip();
        RunData {
            identity,
            account,
            unkept: self.unkept,
            health: self.health,
            afterlives: self.afterlives,
            incidents: self.incidents,
            timeline: self.timeline,
            end,
            listening: has_consumers.then_some(listening),
            ending: self.conductor.ending(),
            stop: self.stop,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMETABLE: Timetable = Timetable {
        connect_at_most: Micros::from_secs(10),
        lead: Micros::from_millis(100),
        warm_up: Micros::ZERO,
        measure: Micros::from_secs(60),
        settle_at_most: Micros::from_secs(30),
        quiet: Micros::from_secs(3),
        agreed_origin: None,
        is_part: false,
        has_links: true,
        devices_receive: false,
    };

    fn run() -> Run {
        let rules = Rules::builder(false).build();
        Run::new(1, TIMETABLE, &rules, Clock::start())
    }

    fn told(run: &mut Run, at: Micros) {
        run.progress[0] = Progress {
            at,
            links_wanted: 1,
            links_up: 1,
            ..Progress::default()
        };
    }

    #[test]
    fn a_second_is_looked_at_once_its_news_are_in_however_late_they_are() {
        let mut run = run();
        run.step(Micros::ZERO);
        told(&mut run, Micros::from_millis(400));
        let order = run.step(Micros::from_millis(400));
        let origin = Micros::from_secs(1);
        assert_eq!(order, Some(Order::Start { origin }));
        for (told_ms, watched) in [(1_999, 1), (2_000, 2), (4_300, 4)] {
            told(&mut run, Micros::from_millis(told_ms));
            run.watch(Micros::from_secs(20));
            assert_eq!(run.watched, watched);
        }
    }

    #[test]
    fn what_consumers_lose_by_leaving_is_nothing_of_the_run() {
        let mut run = run();
        run.finished_at = Some(Micros::from_secs(9));
        let lost = |since| Diagnostic::ConsumerLost {
            what: "a".to_owned(),
            since: Micros::from_secs(since),
        };
        let lag = Diagnostic::ConsumerLag("a".to_owned());
        for diagnostic in [lost(8), lost(10), lag.clone()] {
            run.note(Micros::from_secs(11), diagnostic);
        }
        let incidents = run.into_data().incidents.into_iter();
        let noted: Vec<Diagnostic> = incidents.map(|it| it.diagnostic).collect();
        assert_eq!(noted, [lost(8), lag]);
    }

    #[test]
    fn of_incidents_without_end_the_first_are_listed_and_the_others_counted() {
        let mut run = run();
        for _ in 0..INCIDENTS_MAX + 7 {
            run.note(Micros::ZERO, Diagnostic::ConsumerBack("a".to_owned()));
        }
        let incidents = run.into_data().incidents;
        assert_eq!(incidents.len(), INCIDENTS_MAX + 1);
        let last = incidents.last().map(|last| &last.diagnostic);
        assert_eq!(last, Some(&Diagnostic::NotListed(7)));
    }
}
