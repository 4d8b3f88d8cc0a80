//! Conducts a run with its agents, from the first order to the last handover.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use muster_agent::News;
use muster_conduct::{
    Conductor, Delivery, Diagnostic, Dispatch, Handover, Incidents, Order, Phase, ProcessSample,
    Progress, Refused, RunData, Standing, Steer, Timetable,
};
use muster_judge::{GeneratorHealth, Incident, IncidentKind, Rules, Stop, StopWatch, StopWindow};
use muster_measure::{Timeline, WindowDelta};
use muster_model::{Listening, Micros};
use muster_net::Clock;
use muster_plan::Plan;

use crate::agent_states::{AgentState, AgentStates};
use crate::control_channel::Own;
use crate::latency_watch::LatencyWatch;
use crate::recent::Recent;
use crate::{Agents, ChannelAccount, ControlChannel};

/// Longest wait of the conductor for news before it reads the clock again.
const WAIT: Duration = Duration::from_millis(10);
/// Interval between two states shown to the observer.
const SHOW_EVERY: Micros = Micros::from_millis(250);
/// Longest time for the agents' last messages after the order to finish.
const FINISH_MAX: Micros = Micros::from_secs(60);
/// Incidents that a result lists; further ones are counted. A consumer that is thrown out four
/// times a second for an hour would fill the list.
const INCIDENTS_MAX: usize = 1_000;

/// Observes a run.
pub trait Observer {
    /// Windows came in; whether the observer keeps them, so that they need not be remembered.
    fn windows(&mut self, delta: &WindowDelta) -> bool;
    /// The platform refused credentials.
    fn refused(&mut self, refused: &[Refused]);
    /// A process reported its health.
    fn process_sample(&mut self, agent: usize, sample: &ProcessSample);
    /// Something happened to the generator or its consumers.
    fn incident(&mut self, incident: &Incidents);
    /// Shows the state of the run, a few times a second.
    fn standing(&mut self, standing: &Standing);
    /// Decides, while the run measures, on load that was not planned.
    fn steer(&mut self, _standing: &Standing, _delivery: &Delivery) -> Option<Steer> {
        None
    }
}

/// Surroundings of a run while it is conducted.
pub struct Surroundings<'a> {
    /// True once the user has requested the end.
    pub interrupted: &'a AtomicBool,
    /// The observer.
    pub observer: &'a mut dyn Observer,
    /// The control channel to the other parts of the run.
    pub channel: Option<ControlChannel>,
}

/// Conducts a run: all that it left behind, and what came of the control channel to the other parts, if there was one.
pub fn carry_out(
    agents: &mut Agents,
    timetable: Timetable,
    plan: &Plan,
    clock: Clock,
    surroundings: Surroundings<'_>,
) -> (RunData, Option<ChannelAccount>) {
    let Surroundings {
        interrupted,
        observer,
        mut channel,
    } = surroundings;
    let mut run = Run::new(agents.agents(), timetable, &plan.rules, clock);
    run.stop_watch.latencies = LatencyWatch::new(plan);
    let mut next_show = Micros::ZERO;
    let mut is_leaving = false;
    while !run.is_over() {
        if let Some((agent, news)) = agents.next(WAIT) {
            run.receive(agent, news, observer);
        }
        if interrupted.load(Ordering::Relaxed) {
            run.conductor.interrupt(clock.now());
        }
        run.watch(clock.now());
        if let Some(order) = run.steer(&clock, observer) {
            agents.order(order);
        }
        if let Some(channel) = &mut channel {
            channel.turn(clock, &|| run.own());
            run.receive_others(channel, clock.now());
        }
        while let Some(order) = run.step(clock.now()) {
            if order != Order::Finish {
                agents.order(order);
                continue;
            }
            is_leaving = true;
            channel
                .iter_mut()
                .for_each(|channel| channel.settled(clock.now()));
        }
        if is_leaving
            && channel
                .as_ref()
                .is_none_or(|channel| channel.may_leave(clock.now()))
        {
            agents.order(Order::Finish);
            is_leaving = false;
        }
        if clock.now() >= next_show {
            next_show = clock.now() + SHOW_EVERY;
            observer.standing(&run.standing(clock.now()));
        }
    }
    let channel = channel.map(|channel| channel.close(clock, &run.own(), run.others.is_some()));
    (run.into_data(), channel)
}

struct Run {
    conductor: Conductor,
    timetable: Timetable,
    agents: AgentStates,
    recent: Recent,
    stop_watch: SecondWatch,
    handover: Option<Box<Handover>>,
    further_incidents: u64,
    /// Results so far.
    data: RunData,
    finished_at: Option<Micros>,
    /// Progress of all other parts, now or when settling ended; none while one is silent.
    others: Option<(Vec<Progress>, muster_measure::Progress)>,
    now: Micros,
}

/// The conditions that stop a run, and the next second to decide them for.
struct SecondWatch {
    watch: StopWatch,
    next: u32,
    latencies: LatencyWatch,
}

impl SecondWatch {
    /// Decides every second whose news are in: every thread has reported its state after it.
    fn decide(&mut self, recent: &Recent, progress: &Progress) -> Option<Stop> {
        loop {
            let second = u64::from(self.next);
            let until = Micros::from_secs(second + 1);
            if until > progress.at {
                return None;
            }
            let (flow, shed_own) = recent.flow_of(self.next);
            let latencies = self.latencies.decide(self.next);
            let window = StopWindow {
                from: Micros::from_secs(second),
                until,
                links_wanted: progress.links_wanted,
                links_up: progress.links_up,
                begins_step: self.latencies.begins_step(self.next),
                latencies: &latencies,
                ..StopWindow::of(&flow, shed_own)
            };
            self.next += 1;
            if let Some(stop) = self.watch.window(&window) {
                return Some(stop);
            }
        }
    }
}

impl Run {
    fn new(agents: usize, timetable: Timetable, rules: &Rules, clock: Clock) -> Self {
        let conductor = Conductor::new(timetable);
        Self {
            data: RunData {
                unkept: WindowDelta::default(),
                identity: None,
                account: None,
                health: GeneratorHealth::default(),
                afterlives: Vec::new(),
                incidents: Vec::new(),
                timeline: Timeline::CONNECTING,
                end: Micros::ZERO,
                listening: None,
                ending: conductor.ending(),
                stop: None,
            },
            conductor,
            timetable,
            agents: AgentStates::new(agents),
            recent: Recent::default(),
            stop_watch: SecondWatch {
                watch: StopWatch::new(rules),
                next: 0,
                latencies: LatencyWatch::default(),
            },
            handover: None,
            further_incidents: 0,
            finished_at: None,
            others: None,
            now: clock.now(),
        }
    }

    fn is_over(&self) -> bool {
        let Some(finished) = self.finished_at else {
            return false;
        };
        self.agents.are_done() || self.now >= finished + FINISH_MAX
    }

    fn receive(&mut self, agent: usize, news: News, observer: &mut dyn Observer) {
        let known = self.data.incidents.len();
        match news {
            News::Dispatch(dispatch) => {
                if !observer.windows(&dispatch.windows) {
                    self.data.unkept.merge(&dispatch.windows);
                }
                if !dispatch.refused.is_empty() {
                    observer.refused(&dispatch.refused);
                }
                self.keep(agent, *dispatch);
            }
            News::Sample(sample) => observer.process_sample(agent, &sample),
            News::Ended(afterlife) => {
                self.agents.set(agent, AgentState::Over);
                self.data.health.merge(afterlife.health.clone());
                self.data.afterlives.push(*afterlife);
            }
            News::Lost(why) => self.lose(agent, why),
        }
        for incident in &self.data.incidents[known..] {
            observer.incident(incident);
        }
    }

    fn keep(&mut self, agent: usize, dispatch: Dispatch) {
        let at = dispatch.windows.until;
        self.recent.add(&dispatch.windows);
        self.stop_watch.latencies.add(&dispatch.windows);
        self.agents.report(agent, dispatch.progress);
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
        self.agents.set(agent, AgentState::Lost);
        self.data.health.incidents.push(Incident {
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
        if self.data.incidents.len() < INCIDENTS_MAX {
            self.data.incidents.push(Incidents { at, diagnostic });
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
        if self.agents.are_all(AgentState::Lost) && self.finished_at.is_none() {
            self.conductor.interrupt(now);
            self.finished_at = Some(now);
            return None;
        }
        let own = self.progress();
        let (progress, delivery) = self.with_others(own, now);
        let order = self.conductor.step(now, &progress, &delivery)?;
        match order {
            Order::Start { origin } => {
                let Timetable {
                    warm_up, measure, ..
                } = self.timetable;
                self.data.timeline = Timeline::starting(origin, warm_up, measure);
                let measure = self.data.timeline.measure.second();
                self.stop_watch.next = measure;
                self.stop_watch.latencies.begin(measure);
            }
            Order::EndDue { at } => self.data.timeline = self.data.timeline.stopped(at),
            Order::Finish => {
                self.finished_at = Some(now);
                let Listening { since, until } = own.listening;
                let until = until.min(now);
                self.data.listening = Some(Listening { since, until });
            }
            Order::Connect | Order::Hold(_) | Order::Activate(_) | Order::MarkDrain => {}
        }
        Some(order)
    }

    /// Reads the progress of the other parts, until this one has settled.
    fn receive_others(&mut self, channel: &ControlChannel, now: Micros) {
        if self.finished_at.is_none() {
            self.others = channel.others(now);
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
            progress: self.progress(),
            windows: self.recent.progress().clone(),
            has_settled: self.finished_at.is_some(),
        }
    }

    /// Stops the run if a condition of the plan holds.
    fn watch(&mut self, now: Micros) {
        let progress = self.progress();
        if self.conductor.phase(now) == Phase::Measure
            && let Some(stop) = self.stop_watch.decide(&self.recent, &progress)
        {
            self.data.stop = Some(stop);
            self.conductor.stop_by_rule(now);
        }
    }

    /// Asks the observer for load; the order that brings it.
    fn steer(&mut self, clock: &Clock, observer: &mut dyn Observer) -> Option<Order> {
        let now = clock.now();
        if self.conductor.phase(now) != Phase::Measure {
            return None;
        }
        let delivery = Delivery::of(self.recent.progress());
        match observer.steer(&self.standing(now), &delivery)? {
            Steer::Hold(hold) => Some(Order::Hold(hold)),
            Steer::Activate(share) => Some(Order::Activate(share)),
            Steer::End => {
                // The observer may have waited for a disk: agents have to hear of the end before it comes.
                self.conductor.end(clock.now());
                None
            }
        }
    }

    /// The progress of all agents of this part.
    fn progress(&self) -> Progress {
        self.agents.progress(self.now)
    }

    fn standing(&self, now: Micros) -> Standing {
        Standing {
            now,
            phase: self.conductor.phase(now),
            time_left: self.conductor.time_left(now),
            timeline: self.data.timeline,
            progress: self.progress(),
        }
    }

    fn into_data(self) -> RunData {
        let has_consumers = self.progress().consumers_wanted > 0;
        let is_whole = self.agents.are_all(AgentState::Over);
        let mut data = self.data;
        if self.further_incidents > 0 {
            let (at, diagnostic) = (self.now, Diagnostic::NotListed(self.further_incidents));
            data.incidents.push(Incidents { at, diagnostic });
        }
        data.end = self.finished_at.unwrap_or(self.now);
        let listening = data.listening.unwrap_or(Listening::deaf(data.end));
        data.listening = has_consumers.then_some(listening);
        if let Some(handover) = self.handover.filter(|_| is_whole) {
            data.identity = Some(handover.identity);
            data.account = Some(handover.account);
        }
        data.ending = self.conductor.ending();
        data
    }
}

#[cfg(test)]
mod tests {
    use muster_conduct::{ConsumerAbsence, ConsumerName};
    use muster_model::ConsumerId;

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
        registers_refused: false,
        devices_receive: false,
    };

    fn run() -> Run {
        let rules = Rules::builder(false).build();
        Run::new(1, TIMETABLE, &rules, Clock::start())
    }

    fn consumer() -> ConsumerName {
        ConsumerName {
            number: ConsumerId(0),
            backend: "b".to_owned(),
            address: "h".to_owned(),
        }
    }

    fn report(run: &mut Run, at: Micros) {
        let progress = Progress {
            at,
            links_wanted: 1,
            links_up: 1,
            ..Progress::default()
        };
        run.agents.report(0, progress);
    }

    #[test]
    fn a_second_is_looked_at_once_its_news_are_in_however_late_they_are() {
        let mut run = run();
        run.step(Micros::ZERO);
        report(&mut run, Micros::from_millis(400));
        let order = run.step(Micros::from_millis(400));
        let origin = Micros::from_secs(1);
        assert_eq!(order, Some(Order::Start { origin }));
        for (reported_ms, watched) in [(1_999, 1), (2_000, 2), (4_300, 4)] {
            report(&mut run, Micros::from_millis(reported_ms));
            run.watch(Micros::from_secs(20));
            assert_eq!(run.stop_watch.next, watched);
        }
    }

    #[test]
    fn what_consumers_lose_by_leaving_is_nothing_of_the_run() {
        let mut run = run();
        run.finished_at = Some(Micros::from_secs(9));
        let lost = |since| Diagnostic::ConsumerLost {
            absence: ConsumerAbsence {
                consumer: consumer(),
                why: "a".to_owned(),
            },
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
            run.note(Micros::ZERO, Diagnostic::ConsumerBack(consumer()));
        }
        let incidents = run.into_data().incidents;
        assert_eq!(incidents.len(), INCIDENTS_MAX + 1);
        let last = incidents.last().map(|last| &last.diagnostic);
        assert_eq!(last, Some(&Diagnostic::NotListed(7)));
    }
}
