//! The loop of a thread's consumers, whatever kind of backend they are of.

use muster_conduct::{
    CommandSender, CommandSink, Commander, ConsumerName, DISPATCH_EVERY, Diagnostic, Dispatch,
    FactWriter, Order, Progress, RecordingSink,
};
use muster_load::PayloadError;
use muster_model::{BackendId, Listening, Micros, figure};
use muster_net::{
    Closed, Handler, Io, Key, ListenerId, Loop, LoopConfig, LoopError, Mailbox, WaitsOf,
};
use muster_plan::Pause;

use crate::consumer::Consumer;
use crate::consumers::{ConsumerPlan, ConsumersSpec};
use crate::intake::{Intake, Surfaced};

/// The bit of a timer's token that marks the begin or end of a pause.
const PAUSE: u64 = 1 << 63;
/// The next lower bit, which marks the end.
const RESUME: u64 = 1 << 62;

/// The consumers of one kind of backend on one thread: they bring copies and take commands.
///
/// The loop around them owns the state of each consumer, orders, intake, commander, pauses and progress.
pub trait Northbound {
    /// Opens every consumer that is down.
    fn connect(&mut self, cx: &mut Context<'_>);

    /// Stops reading of a consumer that was paused just now, or resumes it.
    fn pause(&mut self, cx: &mut Context<'_>, consumer: usize);

    /// Issues the commands that are due.
    fn issue(&mut self, cx: &mut Context<'_>);

    /// The instant at which the next command may be issued; none while no consumer can take one.
    fn next_issue(&mut self, commander: &mut Commander) -> Option<Micros>;

    /// Looks after the consumers; called before each report.
    fn look_after(&mut self, cx: &mut Context<'_>);

    /// Closes every consumer at the end of the run.
    fn finish(&mut self, cx: &mut Context<'_>);

    /// A timer set by the consumers fired; the two highest bits of `token` are 0.
    fn timer(&mut self, cx: &mut Context<'_>, token: u64);

    /// The loop's waker was called.
    fn woken(&mut self, _: &mut Context<'_>) {}

    /// See [`Handler::opened`].
    fn opened(&mut self, _: &mut Context<'_>, _: Key) {}

    /// See [`Handler::accepted`]; most consumers listen on nothing.
    fn accepted(&mut self, cx: &mut Context<'_>, key: Key, _: ListenerId) {
        cx.io.close(key);
    }

    /// See [`Handler::received`].
    fn received(&mut self, _: &mut Context<'_>, _: Key, bytes: &mut [u8]) -> usize {
        bytes.len()
    }

    /// See [`Handler::flushed`].
    fn flushed(&mut self, _: &mut Context<'_>, _: Key) {}

    /// See [`Handler::closed`].
    fn closed(&mut self, _: &mut Context<'_>, _: Key, _: Closed) {}
}

/// The part of a consumers' thread that is the same for every kind of backend.
#[derive(Debug)]
pub struct Core {
    consumers: Vec<Consumer>,
    intake: Intake,
    /// None if no consumer of this thread issues commands.
    commander: Option<Commander>,
    /// The consumer that issues them.
    issuer: Option<usize>,
    /// Due instant of the first message, once the loop knows it; it may be ahead.
    origin: Option<Micros>,
    /// True once the run is over.
    is_over: bool,
}

impl Core {
    /// The common part for the consumers of a spec, in their order. `issuer` is the consumer that issues
    /// commands; `address` gives the address that diagnostics name.
    ///
    /// # Errors
    /// [`PayloadError`] if a payload cannot be compiled.
    pub(crate) fn new(
        spec: &ConsumersSpec,
        writer: Option<Box<dyn FactWriter>>,
        issuer: Option<usize>,
        address: impl Fn(&ConsumerPlan) -> String,
    ) -> Result<Self, PayloadError> {
        let wall_ms = spec.clock.wall_ms_at_t0();
        let commander = || Commander::new(&spec.plan, &spec.schedules, spec.run, wall_ms);
        let consumer = |of: &ConsumerPlan| {
            let name = ConsumerName {
                number: of.consumer,
                backend: spec.plan.backends[of.backend.index()].name.clone(),
                address: address(of),
            };
            Consumer::new(*of, name)
        };
        Ok(Self {
            consumers: spec.consumers.iter().map(consumer).collect(),
            intake: Intake::new(spec, writer)?,
            commander: issuer.and_then(|_| commander()),
            issuer,
            origin: None,
            is_over: false,
        })
    }

    /// Returns the state of a consumer.
    pub(crate) fn consumer(&mut self, at: usize) -> &mut Consumer {
        &mut self.consumers[at]
    }

    /// Returns true if the stamps of some stream travel in a property or header.
    pub(crate) fn reads_properties(&self, backend: BackendId) -> bool {
        self.intake.reads_properties(backend)
    }

    /// Returns true once the run is over.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Returns true once the first message is due.
    pub(crate) fn has_begun(&self, now: Micros) -> bool {
        self.origin.is_some_and(|origin| now >= origin)
    }

    /// Notes that the copies from here on were read by another thread, which has worked since `began`.
    pub(crate) fn read_since(&mut self, began: Micros) {
        self.intake.read_since(began);
    }

    /// Counts a copy before anything of it is decoded, then reads it. `is_platforms` is asked if the
    /// copy has no id: it returns true if the platform itself wrote the copy.
    pub(crate) fn receive(
        &mut self,
        at: usize,
        seen: Micros,
        copy: &Surfaced<'_>,
        is_platforms: impl FnOnce() -> bool,
    ) {
        let plan = self.consumers[at].plan();
        if let Some(id) = self.intake.receive(plan, seen, copy, is_platforms) {
            self.with_commander(at, |commander, sink| commander.asked(&id, seen, sink));
        }
    }

    /// Acts on the commander, if this consumer issues commands.
    pub(crate) fn with_commander<T>(
        &mut self,
        at: usize,
        act: impl FnOnce(&mut Commander, &mut CommandSink<'_, RecordingSink>) -> T,
    ) -> Option<T> {
        self.issuer.filter(|issuer| *issuer == at)?;
        self.act(act)
    }

    fn act<T>(
        &mut self,
        act: impl FnOnce(&mut Commander, &mut CommandSink<'_, RecordingSink>) -> T,
    ) -> Option<T> {
        let commander = self.commander.as_mut()?;
        Some(act(commander, &mut self.intake.sink()))
    }

    /// Ends every command at the end of the run; `at` is the consumer that issued them.
    pub(crate) fn finish_commands(&mut self, at: usize, sender: &impl CommandSender, now: Micros) {
        let idle = self.with_commander(at, |commander, sink| {
            commander.finish(sender, now, sink);
            commander.idle_notices()
        });
        if let Some(count) = idle.filter(|count| *count > 0) {
            let count = figure::count(count);
            let what = format!(
                "{count} notices of delivery came after the reply, a second time or too late"
            );
            self.consumers[at].report(Diagnostic::IdleNotices, what);
        }
    }

    /// Returns the state of all consumers for a report.
    fn progress(&self, now: Micros) -> Progress {
        let count =
            |is_it: fn(&Consumer) -> bool| self.consumers.iter().filter(|it| is_it(it)).count();
        let listening = self.consumers.iter().map(|it| it.listening(now));
        Progress {
            at: now,
            consumers_wanted: self.consumers.len() as u64,
            consumers_up: count(Consumer::is_up) as u64,
            consumers_refused: count(Consumer::is_refused) as u64,
            listening: listening.fold(Listening::NOBODY, Listening::and),
            ..Progress::default()
        }
    }
}

/// The loop and the common part, as a consumer's methods get them.
pub struct Context<'a> {
    pub(crate) io: &'a mut Io,
    pub(crate) core: &'a mut Core,
}

/// A thread's consumers on an event loop.
pub struct ConsumerLoop<N> {
    northbound: N,
    core: Core,
    /// By consumer, when it pauses.
    pauses: Vec<Vec<Pause>>,
    mailbox: Mailbox<Order, Box<Dispatch>>,
    next_dispatch: Micros,
    /// Diagnostics that the next report takes.
    diagnostics: Vec<Diagnostic>,
}

impl<N: Northbound> ConsumerLoop<N> {
    /// The consumers of a spec, in their order.
    pub(crate) fn new(
        spec: &ConsumersSpec,
        northbound: N,
        core: Core,
        mailbox: Mailbox<Order, Box<Dispatch>>,
    ) -> Self {
        let pauses = spec.consumers.iter();
        Self {
            northbound,
            core,
            pauses: pauses
                .map(|of| spec.plan.backends[of.backend.index()].pause.clone())
                .collect(),
            mailbox,
            next_dispatch: Micros::ZERO,
            diagnostics: Vec::new(),
        }
    }

    /// Puts the consumers on an event loop. `library` is the beginning of the names of a library's
    /// threads that work for them.
    ///
    /// # Errors
    /// [`LoopError`] if the loop cannot start.
    pub(crate) fn start(
        self,
        spec: &ConsumersSpec,
        config: &LoopConfig,
        library: Option<&'static str>,
    ) -> Result<Loop<Self>, LoopError> {
        let mut event_loop = Loop::new(spec.clock, config, self)?;
        event_loop.parts().1.watch_cpu_wait(WaitsOf {
            gateways: spec.gateways.clone(),
            library,
        });
        Ok(event_loop)
    }

    fn with<T>(&mut self, io: &mut Io, act: impl FnOnce(&mut N, &mut Context<'_>) -> T) -> T {
        let core = &mut self.core;
        act(&mut self.northbound, &mut Context { io, core })
    }

    fn obey(&mut self, io: &mut Io, order: Order) {
        match order {
            Order::Connect => self.with(io, N::connect),
            Order::Start { origin } => self.begin(io, origin),
            Order::Hold(hold) => {
                self.core.intake.add_hold(&hold);
                self.core.act(|commander, _| commander.add_hold(&hold));
            }
            Order::EndDue { at } => {
                self.core.act(|commander, _| commander.end_due(at));
                self.core.intake.stop(at);
            }
            Order::Activate(_) => {}
            Order::MarkDrain => self.core.intake.mark_drain(),
            Order::Finish => self.finish(io),
        }
    }

    fn begin(&mut self, io: &mut Io, origin: Micros) {
        let core = &mut self.core;
        core.origin = Some(origin);
        core.intake.start(origin);
        core.act(|commander, _| commander.start(origin));
        for (consumer, pauses) in (0_u64..).zip(&self.pauses) {
            for pause in pauses {
                let from = origin + pause.at;
                io.set_timer(from, PAUSE | consumer);
                io.set_timer(from + pause.lasts, PAUSE | RESUME | consumer);
            }
        }
    }

    /// The instant at which the next command may be issued.
    fn next_issue(&mut self) -> Option<Micros> {
        let commander = self.core.commander.as_mut()?;
        self.northbound.next_issue(commander)
    }

    fn dispatch(&mut self, now: Micros) {
        self.next_dispatch = now + DISPATCH_EVERY;
        let (mut open, mut next_issue) = (0, None);
        if !self.core.is_over {
            let expire = |commander: &mut Commander, sink: &mut CommandSink<'_, RecordingSink>| {
                commander.expire(now, sink);
                commander.open()
            };
            open = self.core.act(expire).unwrap_or(0);
            next_issue = self.next_issue();
        }
        let progress = Progress {
            open,
            behind: u64::from(next_issue.is_some_and(|due| due <= now)),
            ..self.core.progress(now)
        };
        let core = &mut self.core;
        let consumers = core.consumers.iter_mut();
        self.diagnostics
            .extend(consumers.flat_map(Consumer::take_diagnostics));
        let dispatch = core.intake.dispatch(progress, &mut self.diagnostics);
        if !self.mailbox.post(dispatch) {
            self.diagnostics.push(Diagnostic::unheard());
        }
    }

    fn finish(&mut self, io: &mut Io) {
        self.core.is_over = true;
        self.with(io, N::finish);
        self.dispatch(io.now());
        let _ = self.mailbox.post(self.core.intake.hand_over());
        io.stop();
    }
}

impl<N: Northbound> Handler for ConsumerLoop<N> {
    fn turn_begins(&mut self, io: &mut Io) {
        self.core.intake.turn_begins(&io.turn());
    }

    fn opened(&mut self, io: &mut Io, key: Key) {
        self.with(io, |northbound, cx| northbound.opened(cx, key));
    }

    fn accepted(&mut self, io: &mut Io, key: Key, listener: ListenerId) {
        self.with(io, |northbound, cx| northbound.accepted(cx, key, listener));
    }

    fn received(&mut self, io: &mut Io, key: Key, bytes: &mut [u8]) -> usize {
        self.with(io, |northbound, cx| northbound.received(cx, key, bytes))
    }

    fn flushed(&mut self, io: &mut Io, key: Key) {
        self.with(io, |northbound, cx| northbound.flushed(cx, key));
    }

    fn closed(&mut self, io: &mut Io, key: Key, why: Closed) {
        self.with(io, |northbound, cx| northbound.closed(cx, key, why));
    }

    fn timer(&mut self, io: &mut Io, token: u64) {
        if token & PAUSE == 0 {
            return self.with(io, |northbound, cx| northbound.timer(cx, token));
        }
        let consumer = (token & !(PAUSE | RESUME)) as usize;
        let is_paused = token & RESUME == 0;
        self.core.consumers[consumer].pause(io.now(), is_paused);
        self.with(io, |northbound, cx| northbound.pause(cx, consumer));
    }

    fn woken(&mut self, io: &mut Io) {
        while let Some(order) = self.mailbox.next_order() {
            self.obey(io, order);
        }
        self.with(io, N::woken);
    }

    fn turn(&mut self, io: &mut Io) -> Option<Micros> {
        if self.core.is_over {
            return None;
        }
        self.with(io, N::issue);
        if io.now() >= self.next_dispatch {
            self.with(io, N::look_after);
            self.dispatch(io.now());
        }
        let next_issue = self.next_issue();
        Some(next_issue.map_or(self.next_dispatch, |next| next.min(self.next_dispatch)))
    }
}
