//! The threads of one process and their reports.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use muster_backend::{ConsumerPlan, ConsumersError, ConsumersSpec};
use muster_conduct::{
    Afterlife, DISPATCHES_MAX, Diagnostic, Dispatch, FactWriter, Handover, Order, ProcessSample,
    Progress, Slice, ThreadSample, recorder_plan, schedules,
};
use muster_fleet::{ShardError, ShardSpec, shard_loop};
use muster_judge::{Incident, IncidentKind, ThreadRole};
use muster_load::ScheduleError;
use muster_model::Micros;
use muster_monitor::{
    Environment, GeneratorMonitor, GeneratorSample, HealthLog, MonitorError, ThreadId,
    current_thread, thread_cpu_us,
};
use muster_net::{Clock, Handler, Loop, Mailbox, Waker};

use crate::consuming::consumer_threads;
use crate::facts::FactCounter;
use crate::renewing::Renewing;
use crate::{Assignment, FactsLog, LayersError, News, link_drivers};

/// Interval at which the process looks at itself.
const SAMPLE_EVERY: Micros = Micros::from_secs(1);

/// Time before a consumer's absence is reported in which a due message may still be missed: a
/// dispatch comes four times a second, and the message is on its way for a while.
const UNDER_WAY: Micros = Micros::from_secs(1);

/// Orders that may wait for a thread; a run gives five.
pub(crate) const ORDERS_MAX: usize = 8;

/// One generator process at work.
#[derive(Debug)]
pub struct Agent {
    pub(crate) threads: Vec<Running>,
    inbox: Receiver<(usize, Box<Dispatch>)>,
    clock: Clock,
    pub(crate) monitor: GeneratorMonitor,
    log: HealthLog,
    last_sample: Option<GeneratorSample>,
    next_sample: Micros,
    anon_before: u64,
    devices: u64,
    facts: Option<Arc<FactCounter>>,
    facts_missed: u64,
    handovers: Option<Box<Handover>>,
    /// CPU time of the threads of libraries that consume, summed over the samples, in microseconds.
    pub(crate) library_cpu_us: u64,
    /// The thread that looks up names of targets again.
    renewing: Option<Renewing>,
    is_over: bool,
}

#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) role: ThreadRole,
    orders: SyncSender<Order>,
    waker: Waker,
    progress: Progress,
    has_handed_over: bool,
    /// Ends with the CPU time of its whole life, in microseconds.
    thread: Option<JoinHandle<u64>>,
    cpu_us: u64,
}

/// Reason for which an agent cannot start.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// A schedule that the scenario's checks let through.
    #[error("make a schedule: {0}")]
    Schedule(#[from] ScheduleError),
    /// The process cannot look at itself.
    #[error("watch this process: {0}")]
    Monitor(#[from] MonitorError),
    /// TLS or WebSocket cannot be set up.
    #[error(transparent)]
    Layers(#[from] LayersError),
    /// A shard cannot be set up.
    #[error("start a shard: {0}")]
    Shard(#[from] ShardError),
    /// The consumers cannot be set up.
    #[error("start the consumers: {0}")]
    Consumers(#[from] ConsumersError),
    /// This build lacks what a backend needs.
    #[error("backend `{backend}`: {error}")]
    Build {
        /// The name of the backend.
        backend: String,
        /// Feature that is missing.
        error: ConsumersError,
    },
    /// The operating system gives no thread.
    #[error("start a thread: {0}")]
    Thread(#[from] std::io::Error),
    /// A thread ended before it had begun.
    #[error("a thread ended before it had begun")]
    Silent,
}

type Ready = Result<(Waker, ThreadId), AgentError>;

/// Makes the writer of a thread's facts; none where nobody wants them.
pub type Writers<'a> = &'a dyn Fn() -> Option<Box<dyn FactWriter>>;

/// Parts that the channels of all threads are made from.
#[derive(Clone, Copy)]
pub(crate) struct ThreadChannels<'a> {
    outbox: &'a SyncSender<(usize, Box<Dispatch>)>,
    pub(crate) writer: Writers<'a>,
}

impl ThreadChannels<'_> {
    fn mailbox(self, thread: usize) -> (SyncSender<Order>, Mailbox<Order, Box<Dispatch>>) {
        let (orders, inbox) = sync_channel(ORDERS_MAX);
        (orders, Mailbox::new(thread, inbox, self.outbox.clone()))
    }
}

impl Agent {
    /// Starts every thread; nothing connects before [`Order::Connect`].
    ///
    /// # Errors
    /// [`AgentError`] if the assignment cannot be carried out on this machine.
    pub fn start(assignment: Assignment, facts: Option<&FactsLog>) -> Result<Self, AgentError> {
        let mut agent = Self::start_with(assignment, &|| facts.map(FactsLog::pen))?;
        agent.facts = facts.map(FactsLog::counter);
        Ok(agent)
    }

    /// Starts every thread, each with its own writer of facts.
    ///
    /// # Errors
    /// [`AgentError`] if the assignment cannot be carried out on this machine.
    pub fn start_with(assignment: Assignment, writer: Writers<'_>) -> Result<Self, AgentError> {
        let clock = Clock::agreed(assignment.t0_ns, assignment.wall_ms_at_t0);
        let threads = slices(&assignment).count() + consumer_threads(&assignment);
        let (outbox, inbox) = sync_channel(threads * DISPATCHES_MAX);
        let mut monitor = GeneratorMonitor::open()?;
        let log = HealthLog::new(&assignment.name, &Environment::read().host);
        let anon_before = monitor.sample(clock.now()).process.anon_bytes;
        let mut agent = Self {
            threads: Vec::new(),
            inbox,
            clock,
            monitor,
            log,
            last_sample: None,
            next_sample: clock.now() + SAMPLE_EVERY,
            anon_before,
            devices: 0,
            facts: None,
            facts_missed: 0,
            handovers: None,
            library_cpu_us: 0,
            renewing: None,
            is_over: false,
        };
        let outbox = &outbox;
        agent.start_threads(assignment, ThreadChannels { outbox, writer })?;
        Ok(agent)
    }

    /// Passes an order on to every thread.
    pub fn order(&mut self, order: Order) {
        for thread in &self.threads {
            // A thread that is gone has said so, or is found missing when it is waited for.
            let _ = thread.orders.try_send(order);
            thread.waker.wake();
        }
    }

    /// The next piece of news; none if nothing comes within `wait`.
    pub fn next(&mut self, wait: Duration) -> Option<News> {
        if self.clock.now() >= self.next_sample {
            return Some(News::Sample(self.process_sample()));
        }
        match self.inbox.recv_timeout(wait) {
            Ok((thread, dispatch)) => Some(self.receive(thread, dispatch)),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) if self.is_over => None,
            Err(RecvTimeoutError::Disconnected) => Some(self.end()),
        }
    }

    fn start_threads(
        &mut self,
        assignment: Assignment,
        channels: ThreadChannels<'_>,
    ) -> Result<(), AgentError> {
        let schedules = schedules(&assignment.plan)?;
        let recorder = recorder_plan(&assignment.plan, assignment.run, &schedules);
        let consumers = assignment.consumers.iter();
        let consumers = consumers.map(|&((backend, consumer), target)| ConsumerPlan {
            backend,
            consumer,
            target,
        });
        let consumers: Vec<ConsumerPlan> = consumers.collect();
        let slices: Vec<Slice> = slices(&assignment).collect();
        let plan = Arc::new(assignment.plan);
        self.devices = plan
            .fleets
            .iter()
            .map(|fleet| {
                let share = assignment.slice;
                let links = share.map_or(0, |it| it.cut(fleet.first_link.0, fleet.links).len());
                (links as u64 * u64::from(fleet.devices_per_link)).min(u64::from(fleet.devices))
            })
            .sum();
        self.renewing = Renewing::start(&plan, &assignment.targets)?;
        for (shard, slice) in (0u16..).zip(slices) {
            let spec = ShardSpec {
                plan: Arc::clone(&plan),
                recorder: recorder.clone(),
                schedules: schedules.clone(),
                run: assignment.run,
                slice,
                clock: self.clock,
                targets: assignment.targets.clone(),
                renewed: self.renewing.as_ref().map(Renewing::targets),
                gateways: assignment.gateways.clone(),
                trial: assignment.trial,
            };
            let drivers = link_drivers(&plan, slice, channels.writer)?;
            self.start_thread((ThreadRole::Shard, shard), channels, move |mailbox| {
                Ok(shard_loop(&spec, drivers, mailbox)?)
            })?;
        }
        let spec = ConsumersSpec {
            plan,
            recorder,
            schedules,
            run: assignment.run,
            clock: self.clock,
            consumers: Vec::new(),
            gateways: assignment.gateways,
            lost_copy: assignment.trial.lost_copy,
        };
        self.start_consumers(&spec, &consumers, channels)
    }

    pub(crate) fn start_thread<H: Handler + 'static>(
        &mut self,
        (role, index): (ThreadRole, u16),
        channels: ThreadChannels<'_>,
        make: impl FnOnce(Mailbox<Order, Box<Dispatch>>) -> Result<Loop<H>, AgentError> + Send + 'static,
    ) -> Result<(), AgentError> {
        let (orders, mailbox) = channels.mailbox(self.threads.len());
        let (ready, is_ready) = sync_channel::<Ready>(1);
        let name = format!(
            "{}-{index}",
            if role == ThreadRole::Shard {
                "shard"
            } else {
                "consumer"
            }
        );
        let thread = std::thread::Builder::new().name(name).spawn(move || {
            run_loop(make(mailbox), &ready);
            thread_cpu_us()
        })?;
        let (waker, id) = is_ready.recv().map_err(|_| AgentError::Silent)??;
        self.monitor.watch(role, index, id)?;
        let progress = Progress::default();
        let thread = Some(thread);
        self.threads.push(Running {
            role,
            orders,
            waker,
            progress,
            has_handed_over: false,
            thread,
            cpu_us: 0,
        });
        Ok(())
    }

    fn receive(&mut self, thread: usize, mut dispatch: Box<Dispatch>) -> News {
        if let Some(handover) = dispatch.handover.take() {
            self.threads[thread].has_handed_over = true;
            self.keep(handover);
        } else {
            self.threads[thread].progress = dispatch.progress;
        }
        for diagnostic in &dispatch.diagnostics {
            self.note(diagnostic);
        }
        if self.threads.iter().all(|thread| thread.has_handed_over) {
            dispatch.handover = self.handovers.take();
        }
        dispatch.progress = self.progress();
        News::Dispatch(dispatch)
    }

    fn keep(&mut self, handover: Box<Handover>) {
        match &mut self.handovers {
            None => self.handovers = Some(handover),
            Some(all) => all.merge(*handover),
        }
    }

    /// Own limits are the generator's fault; what a consumer suffered from the target is not.
    fn note(&mut self, diagnostic: &Diagnostic) {
        match diagnostic {
            Diagnostic::Limit(detail) | Diagnostic::Failed(detail) => {
                self.incident(IncidentKind::LimitReached, 1, detail);
            }
            Diagnostic::ReceiveDrop(count) => {
                let detail = "for datagrams there was no room: raise `net.core.rmem_max`";
                self.incident(IncidentKind::ReceiveDrop, *count, detail);
            }
            Diagnostic::ConsumerAway(absence) => {
                let now = self.clock.now();
                self.log.begin(Incident {
                    kind: IncidentKind::ConsumerAway,
                    // What was due just before was on its way to the consumer.
                    from: now - UNDER_WAY,
                    until: now,
                    count: 1,
                    detail: absence.to_string(),
                });
            }
            Diagnostic::ConsumerLost { absence, since } => {
                let now = self.clock.now();
                self.log.begin(Incident {
                    kind: IncidentKind::ConsumerLost,
                    from: *since.min(&now) - UNDER_WAY,
                    until: now,
                    count: 1,
                    detail: absence.to_string(),
                });
            }
            Diagnostic::ConsumerBack(name) => {
                let who = format!("{name}: ");
                let now = self.clock.now();
                self.log.end(IncidentKind::ConsumerAway, &who, now);
                self.log.end(IncidentKind::ConsumerLost, &who, now);
            }
            Diagnostic::ConsumerRefused(_)
            | Diagnostic::Rejecting(_)
            | Diagnostic::Unsendable(_)
            | Diagnostic::Handshake(_)
            | Diagnostic::LinkRefused(_)
            | Diagnostic::ReasonString { .. }
            | Diagnostic::LowerQos(_)
            | Diagnostic::TakenOver(_)
            | Diagnostic::Unreachable(_)
            | Diagnostic::Topics(_)
            | Diagnostic::TopicsDiffer(_)
            | Diagnostic::TopicsChanged(_)
            | Diagnostic::NewTenant(_)
            | Diagnostic::PushRefused(_)
            | Diagnostic::NoPushAccepted(_)
            | Diagnostic::PushAbsent(_)
            | Diagnostic::PushConfirmation(_)
            | Diagnostic::ConsumerLag(_)
            | Diagnostic::IdleNotices(_)
            | Diagnostic::ReceiveBuffer(_)
            | Diagnostic::NotListed(_) => {}
        }
    }

    /// Facts that the disk did not take in time were asked for and are not there.
    fn note_missed_facts(&mut self) {
        let missed = self.facts.as_ref().map_or(0, |facts| facts.missed());
        let more = missed - std::mem::replace(&mut self.facts_missed, missed);
        if more > 0 {
            let detail = "facts were not written, because the disk did not take them in time";
            self.incident(IncidentKind::LimitReached, more, detail);
        }
    }

    fn incident(&mut self, kind: IncidentKind, count: u64, detail: &str) {
        let at = self.clock.now();
        self.log.incident(Incident {
            kind,
            from: at,
            until: at,
            count,
            detail: detail.to_owned(),
        });
    }

    fn progress(&self) -> Progress {
        Progress::united(self.threads.iter().map(|thread| thread.progress))
    }

    fn process_sample(&mut self) -> ProcessSample {
        let now = self.clock.now();
        self.next_sample = now + SAMPLE_EVERY;
        self.note_missed_facts();
        let sample = self.sample(now);
        self.log.add(&sample);
        self.log.go_on(now);
        let process = ProcessSample {
            at: now,
            threads: sample
                .threads
                .iter()
                .map(|thread| ThreadSample {
                    is_consumer: thread.role == ThreadRole::Consumer,
                    cpu: thread.cpu,
                    wait: thread.wait,
                })
                .collect(),
            rss_bytes: sample.process.rss_bytes,
            steal: sample.steal,
            incidents: self.log.health().incidents.clone(),
        };
        self.last_sample = Some(sample);
        process
    }

    /// CPU time of the threads of a role that have ended, to their last microsecond: a sample a
    /// second would miss what came after the last one.
    fn cpu_us(&self, role: ThreadRole) -> u64 {
        let of_role = self.threads.iter().filter(|thread| thread.role == role);
        of_role.map(|thread| thread.cpu_us).sum()
    }

    fn end(&mut self) -> News {
        self.is_over = true;
        for thread in &mut self.threads {
            let ended = thread.thread.take().map(JoinHandle::join);
            match ended.transpose() {
                Ok(cpu_us) if thread.has_handed_over => thread.cpu_us = cpu_us.unwrap_or(0),
                Ok(_) | Err(_) => {
                    let role = thread.role;
                    return News::Lost(format!("a {role:?} thread ended before its work was done"));
                }
            }
        }
        self.note_missed_facts();
        self.log.go_on(self.clock.now());
        let sample = self.sample(self.clock.now());
        let memory = self
            .last_sample
            .as_ref()
            .map_or(sample.process, |last| last.process);
        let health = std::mem::replace(&mut self.log, HealthLog::new("", "")).into_health();
        News::Ended(Box::new(Afterlife {
            health,
            cpu_us: sample.cpu_us,
            shards_cpu_us: self.cpu_us(ThreadRole::Shard),
            consumers_cpu_us: self.cpu_us(ThreadRole::Consumer) + self.library_cpu_us,
            peak_rss_bytes: sample.process.peak_rss_bytes,
            links_bytes: memory.anon_bytes.saturating_sub(self.anon_before),
            devices: self.devices,
        }))
    }
}

/// The share of the links of each shard.
fn slices(assignment: &Assignment) -> impl Iterator<Item = Slice> + use<> {
    let (slice, shards) = (assignment.slice, assignment.shards.max(1));
    slice
        .into_iter()
        .flat_map(move |slice| (0..shards).map(move |shard| slice.part(shard, shards)))
}

fn run_loop<H: Handler>(made: Result<Loop<H>, AgentError>, ready: &SyncSender<Ready>) {
    match made {
        Ok(mut event_loop) => {
            let waker = event_loop.parts().1.waker();
            let is_awaited = ready.send(Ok((waker, current_thread()))).is_ok();
            if is_awaited {
                // A loop that fails takes its channel with it, and the agent says so.
                let _ = event_loop.run();
            }
        }
        Err(error) => {
            let _ = ready.send(Err(error));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use muster_conduct::Trial;
    use muster_model::RunId;
    use muster_platform::Protocol;
    use muster_scenario::{NoFiles, Overrides, Source, parse};

    use super::*;

    /// One device over CoAP, whose ramp has not begun.
    fn agent() -> Agent {
        let source = Source {
            name: "t.yaml",
            text: "name: t\nplatform: { kind: hono, devices: [ 'coap://127.0.0.1' ] }\nfleet: [ { streams: [] } ]\n",
        };
        let plan = parse(source, &Overrides::default(), &NoFiles);
        let clock = Clock::start();
        let assignment = Assignment {
            name: String::new(),
            plan: plan.unwrap_or_else(|problems| panic!("{problems}")),
            run: RunId(1),
            slice: Some(Slice::WHOLE),
            t0_ns: clock.t0_ns(),
            wall_ms_at_t0: clock.wall_ms_at_t0(),
            shards: 1,
            targets: vec![(Protocol::Coap, SocketAddr::from(([127, 0, 0, 1], 5683)))],
            consumers: Vec::new(),
            gateways: Vec::new(),
            trial: Trial {
                slots: 1,
                buffers: 1,
                lost_copy: None,
            },
        };
        Agent::start(assignment, None).expect("it starts")
    }

    #[test]
    fn what_a_shard_tells_of_drops_is_an_incident_of_the_generator_with_its_count() {
        let mut agent = agent();
        for count in [7, 5] {
            let dispatch = Dispatch {
                diagnostics: vec![Diagnostic::ReceiveDrop(count)],
                ..Dispatch::default()
            };
            agent.receive(0, Box::new(dispatch));
        }
        agent.order(Order::Finish);
        let afterlife = loop {
            match agent.next(Duration::from_secs(60)) {
                Some(News::Ended(afterlife)) => break afterlife,
                Some(News::Lost(why)) => panic!("{why}"),
                Some(News::Dispatch(_) | News::Sample(_)) | None => {}
            }
        };
        let incidents = afterlife.health.incidents.iter();
        let drops = incidents.filter(|it| it.kind == IncidentKind::ReceiveDrop);
        assert_eq!(drops.map(|it| it.count).sum::<u64>(), 12);
    }
}
