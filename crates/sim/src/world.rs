//! The world: one run under a virtual clock.

mod application;
mod course;
mod sockets;

use std::sync::Arc;

use muster_conduct::{
    Ending, Order, Placement, PlanCalendar, Progress, RecordingSink, Slice, recorder_plan,
    schedules,
};
use muster_device::{Mqtt, SLOT_MAX, Shard};
use muster_load::{AddedHold, PayloadError, ScheduleError, StreamSchedule};
use muster_measure::{Recorder, Summary};
use muster_model::{Micros, RunId, mix};
use muster_plan::Plan;

use self::course::Course;
use crate::account::{Account, Delivered};
use crate::behaviour::Behaviour;
use crate::commanding::Commanding;
use crate::consumer::Consumers;
use crate::platform::Platform;
use crate::queue::{Event, Queue};
use crate::stall::{Stall, Thread, Whose};
use crate::wire::Wire;
use crate::witness::{Finals, Witness};

/// The run of every simulation.
const RUN: RunId = RunId(7);
/// Wake-ups at one instant beyond which the world stands still: some time more than the events
/// that the largest simulation has at once.
const STEPS_MAX: u32 = 1_000_000;

/// One run, from the first connect to the closed ledger.
#[derive(Debug)]
pub struct World {
    plan: Plan,
    schedules: Vec<Arc<StreamSchedule>>,
    queue: Queue,
    wires: Vec<Wire>,
    platform: Platform,
    shard: Shard<Mqtt, Witness>,
    consumers: Consumers,
    commanding: Option<Commanding>,
    course: Course,
    /// The threads of the generator, in the order of [`Whose`].
    threads: [Thread; 2],
    out: Vec<u8>,
    is_over: bool,
    steps: u64,
}

/// Result of a run; two runs of one seed are equal.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Ledgers, rates and latencies.
    pub summary: Summary,
    /// Reason for which the due messages ended.
    pub ending: Ending,
    /// The platform's own count of its actions.
    pub platform: Account,
    /// The platform's own count of the copies for each link that subscribed; the last is the
    /// application, if the plan has commands.
    pub delivered: Vec<Delivered>,
    /// Counts of the second witness.
    pub finals: Finals,
    /// Wake-ups.
    pub steps: u64,
}

/// Reasons for which there is no run.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// A schedule that the scenario's checks let through.
    #[error("the plan has an impossible schedule: {0}")]
    Schedule(#[from] ScheduleError),
    /// A payload that the scenario's checks let through.
    #[error("the plan has an impossible payload: {0}")]
    Payload(#[from] PayloadError),
    /// Something was due again and again at one instant.
    #[error("the world stands still at {at}: something is due there for ever")]
    Stuck {
        /// The instant.
        at: Micros,
    },
}

impl World {
    /// A world in which nothing has happened.
    ///
    /// # Errors
    /// [`SimError`] for a plan that cannot be placed.
    pub fn new(plan: Plan, behaviour: Behaviour, seed: u64) -> Result<Self, SimError> {
        let schedules = schedules(&plan)?;
        let recorder = recorder_plan(&plan, RUN, &schedules);
        let placement = Placement {
            plan: &plan,
            recorder: &recorder,
            schedules: &schedules,
            run: RUN,
            slice: Slice::WHOLE,
            wall_ms_at_t0: 0,
            slot_limit: SLOT_MAX,
        };
        let recording = RecordingSink::new(Recorder::new(recorder.clone()), None);
        let shard = placement.shard(Witness::new(&plan, recording))?;
        let application = shard.fleets().links();
        let commanding = Commanding::of(&plan, &schedules, RUN, application);
        let application = commanding.as_ref().map(|_| application);
        let links = shard.fleets().links() + u32::from(application.is_some());
        let mut queue = Queue::default();
        for incident in &behaviour.incidents {
            let (what, share) = (incident.what, incident.share);
            queue.push(incident.at, Event::Incident { what, share });
        }
        Ok(Self {
            consumers: Consumers::new(&plan, RUN, &recorder, &schedules)?,
            course: Course::new(&plan, recorder),
            platform: Platform::new(
                plan.platform.dialect(),
                behaviour,
                (links, application),
                mix(plan.seed, seed),
            ),
            wires: (0..links).map(|_| Wire::default()).collect(),
            threads: Default::default(),
            out: Vec::new(),
            is_over: false,
            steps: 0,
            plan,
            schedules,
            queue,
            shard,
            commanding,
        })
    }

    /// The user asks for the end at this instant.
    pub fn interrupt_at(&mut self, at: Micros) {
        self.course.interrupt_at(at);
    }

    /// Gives an order that the plan does not have, as a search does; call in the order of the instants.
    pub fn order_at(&mut self, at: Micros, order: Order) {
        self.course.order_at(at, order);
    }

    /// A thread of the generator does not run for a time.
    pub fn stall(&mut self, stall: Stall) {
        self.threads[stall.whose as usize].add(stall);
    }

    /// Runs to the end of settling and closes the account.
    ///
    /// # Errors
    /// [`SimError::Stuck`] if time stands still.
    pub fn run(mut self) -> Result<Run, SimError> {
        let mut steps_here = 0;
        while !self.is_over {
            self.threads_wake();
            while let Some(event) = self.queue.pop() {
                self.comes(event);
            }
            if self.stalled_until(Whose::Devices).is_none() {
                self.turn();
            }
            self.steps += 1;
            let (now, next) = (self.queue.now(), self.next());
            steps_here = if next > now { 0 } else { steps_here + 1 };
            if steps_here > STEPS_MAX {
                return Err(SimError::Stuck { at: now });
            }
            self.queue.jump(next);
        }
        Ok(self.close())
    }

    fn stalled_until(&self, whose: Whose) -> Option<Micros> {
        self.threads[whose as usize].stalled_until(self.queue.now())
    }

    fn next(&mut self) -> Micros {
        let consumers = self.stalled_until(Whose::Consumers);
        if let Some(end) = self.stalled_until(Whose::Devices) {
            let wanted = [self.queue.next(), consumers].into_iter().flatten();
            return wanted.fold(end, Micros::min);
        }
        let wanted = [
            self.queue.next(),
            consumers,
            self.shard.traffic().next_due(),
            self.shard.traffic().next_expiry(),
            self.shard.connects().next(),
            self.commanding.as_mut().and_then(Commanding::next),
        ];
        let wanted = wanted.into_iter().flatten();
        wanted.fold(self.course.next_dispatch(), Micros::min)
    }

    /// Hands over events that waited for a thread, now that it runs again.
    fn threads_wake(&mut self) {
        let now = self.queue.now();
        let [devices, consumers] = self.threads.each_ref().map(|thread| thread.turn(now));
        if self.stalled_until(Whose::Devices).is_none() {
            self.shard.traffic_mut().turn_begins(&devices);
        }
        if self.stalled_until(Whose::Consumers).is_none() {
            self.consumers.reading.turn_begins(&consumers);
        }
        for thread in 0..self.threads.len() {
            while let Some(event) = self.threads[thread].waited(now) {
                self.happened(event);
            }
        }
    }

    /// The thread of the generator that an event is for.
    fn thread_of(&self, event: &Event) -> Option<Whose> {
        let link = match event {
            Event::Dialled { link, .. }
            | Event::ToDevice { link, .. }
            | Event::EndToDevice { link, .. }
            | Event::Flushed { link, .. }
            | Event::Timer { link } => *link,
            Event::Copy(_) => return Some(Whose::Consumers),
            Event::ToPlatform { .. }
            | Event::EndToPlatform { .. }
            | Event::Answer { .. }
            | Event::Acknowledge { .. }
            | Event::Mail(_)
            | Event::Incident { .. } => return None,
        };
        (!self.is_application(link)).then_some(Whose::Devices)
    }

    fn comes(&mut self, event: Event) {
        let thread = self.thread_of(&event);
        match thread.filter(|whose| self.stalled_until(*whose).is_some()) {
            Some(whose) => self.threads[whose as usize].wait(event),
            None => self.happened(event),
        }
    }

    fn turn(&mut self) {
        let now = self.queue.now();
        while let Some(link) = self.shard.expire(now) {
            self.arm(link);
            self.pump(link);
        }
        while let Some(link) = self.shard.connects_mut().take(now) {
            self.dial(link);
        }
        while let Some(link) = self.shard.take_due(now) {
            if self.shard.links().is_renewing(link) {
                self.arm(link);
            }
            self.pump(link);
        }
        self.issue();
        if self.course.is_due(now) {
            self.conduct();
        }
    }

    fn conduct(&mut self) {
        let now = self.queue.now();
        self.gather();
        loop {
            let links = Progress::of(&self.shard, now);
            let parts = [Some(links), self.application_progress()];
            let mut progress = Progress::united(parts.into_iter().flatten());
            let listening = self.platform.behaviour().listening(now);
            progress.listening = progress.listening.and(listening);
            let Some(order) = self.course.step(now, &progress) else {
                return;
            };
            self.obey(order);
        }
    }

    /// The recorders of the devices and of the consumers.
    fn recorders(&mut self) -> [&mut Recorder; 2] {
        let devices = &mut self.shard.recording().sink().recording;
        let consumers = &mut self.consumers.witness.recording;
        [devices, consumers].map(RecordingSink::recorder)
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Connect => {
                self.shard.connect(self.queue.now());
                self.dial_application();
            }
            Order::Start { origin } => {
                self.course.start(origin, &self.plan);
                self.shard.traffic_mut().start(origin);
                let recorders = self.recorders().into_iter();
                recorders.for_each(|recorder| recorder.start(origin));
                let timeline = self.course.timeline();
                let calendar = PlanCalendar::new(&self.plan, &self.schedules, timeline);
                self.consumers.start(calendar);
                if let Some(application) = &mut self.commanding {
                    application.start(origin);
                }
                (0..self.shard.fleets().links()).for_each(|link| self.arm(link));
            }
            Order::Hold(hold) => self.hold(&hold),
            Order::Activate(share) => {
                self.shard.activate(share, self.queue.now());
                (0..self.shard.fleets().links()).for_each(|link| self.arm(link));
            }
            Order::EndDue { at } => self.end_due(at),
            Order::MarkDrain => self.recorders().into_iter().for_each(Recorder::mark_drain),
            Order::Finish => self.finish(),
        }
    }

    fn hold(&mut self, hold: &AddedHold) {
        self.shard.traffic_mut().add_hold(hold);
        if let Some(application) = &mut self.commanding {
            application.add_hold(hold);
        }
        self.plan.add_hold(hold);
        self.schedules = schedules(&self.plan).expect("who orders a hold has its schedule");
        let timeline = self.course.timeline();
        let calendar = PlanCalendar::new(&self.plan, &self.schedules, timeline);
        self.consumers.start(calendar);
        self.consumers
            .add_hold(timeline.origin + hold.from, hold.factor);
    }

    fn end_due(&mut self, at: Micros) {
        self.shard.traffic_mut().end_due(at);
        if let Some(application) = &mut self.commanding {
            application.end_due(at);
        }
        if self.course.end_due(at) {
            let recorders = self.recorders().into_iter();
            recorders.for_each(|recorder| recorder.stop(at));
        }
    }

    fn finish(&mut self) {
        self.shard.finish(self.queue.now(), self.course.untaken());
        self.finish_application();
        for link in 0..self.shard.fleets().links() {
            let then = self.shard.say_goodbye(link, &mut self.out);
            self.out.clear();
            self.follow(link, then);
        }
        self.gather();
        self.drain();
        self.is_over = true;
    }

    /// Delivers the bytes written before the end to the platform, for its account only.
    fn drain(&mut self) {
        while let Some(at) = self.queue.next() {
            if at > self.queue.now() + self.platform.behaviour().latency {
                return;
            }
            let event = self.queue.take_next();
            if let Some(Event::ToPlatform { link, conn, bytes }) = event {
                let queue = &mut self.queue;
                self.platform.received(link, conn, &bytes, queue);
            }
        }
    }

    fn gather(&mut self) {
        let now = self.queue.now();
        for windows in self.recorders().map(|recorder| recorder.flush(now)) {
            self.course.gather(&windows);
        }
    }

    fn close(mut self) -> Run {
        let mut account = std::mem::take(self.shard.recording().account());
        account.merge(&self.consumers.account);
        let finals = self
            .shard
            .recording()
            .sink()
            .finals()
            .and(&self.consumers.witness.finals());
        let mut identity = self.shard.recording().sink().recording.finish();
        identity.merge(self.consumers.witness.recording.finish());
        let timeline = self.course.timeline();
        let calendar = PlanCalendar::new(&self.plan, &self.schedules, timeline);
        let end = self.queue.now();
        let summary = self.course.summary(end, &identity, &account, &calendar);
        Run {
            summary,
            ending: self.course.ending(),
            delivered: self.platform.delivered(),
            platform: self.platform.account,
            finals,
            steps: self.steps,
        }
    }
}
