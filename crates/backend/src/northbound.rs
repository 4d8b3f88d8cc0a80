//! The loop of a thread's consumers, whatever kind of backend they are of.

use muster_conduct::{
    CommandSink, Commander, DISPATCH_EVERY, Diagnostic, Dispatch, FactWriter, Order, Progress,
    RecordingSink,
};
use muster_load::PayloadError;
use muster_model::{Listening, Micros, figure};
use muster_net::{
    Closed, Handler, Io, Key, ListenerId, Loop, LoopConfig, LoopError, Mailbox, WaitsOf,
};
use muster_plan::Pause;

use crate::consumers::ConsumersSpec;
use crate::intake::Intake;

/// The bit of a timer's token that marks the begin or end of a pause.
const PAUSE: u64 = 1 << 63;
/// The bit beside it that marks the end.
const RESUME: u64 = 1 << 62;

/// The consumers of one kind of backend on one thread: they bring copies and take commands. The
/// loop around them owns orders, intake, commander, pauses and progress.
pub trait Northbound {
    /// Opens every consumer that is down.
    fn connect(&mut self, cx: &mut Context<'_>);

    /// Load is due from `origin` on, which may be ahead.
    fn begin(&mut self, _origin: Micros) {}

    /// Pauses one consumer, or ends its pause.
    fn pause(&mut self, cx: &mut Context<'_>, consumer: usize, is_paused: bool);

    /// Issues the commands that are due.
    fn issue(&mut self, cx: &mut Context<'_>);

    /// The instant at which the next command may be issued; none while no consumer can take one.
    fn next_issue(&mut self, commander: &mut Commander) -> Option<Micros>;

    /// Looks after the consumers; called before each report.
    fn look_after(&mut self, cx: &mut Context<'_>);

    /// The state of the consumers for a report.
    fn standing(&mut self, core: &mut Core, now: Micros) -> Standing;

    /// Closes every consumer at the end of the run.
    fn finish(&mut self, cx: &mut Context<'_>);

    /// A timer set by the consumers fired; the two highest bits of `token` are 0.
    fn timer(&mut self, cx: &mut Context<'_>, token: u64);

    /// The loop's waker was called.
    fn woken(&mut self, _: &mut Context<'_>) {}

    /// See [`Handler::opened`].
    fn opened(&mut self, _: &mut Context<'_>, _: Key) {}

    /// See [`Handler::received`].
    fn received(&mut self, _: &mut Context<'_>, _: Key, bytes: &mut [u8]) -> usize {
        bytes.len()
    }

    /// See [`Handler::flushed`].
    fn flushed(&mut self, _: &mut Context<'_>, _: Key) {}

    /// See [`Handler::closed`].
    fn closed(&mut self, _: &mut Context<'_>, _: Key, _: Closed) {}
}

/// The consumers of a thread as a report gives them.
#[derive(Debug, Clone, Copy)]
pub struct Standing {
    /// Consumers that the run wants.
    pub wanted: u64,
    /// Consumers that are subscribed.
    pub up: u64,
    /// Consumers that were refused for good.
    pub refused: u64,
    /// Since when and until when all of them listened.
    pub listening: Listening,
}

/// The part of a consumers' thread that is the same for every kind of backend.
#[derive(Debug)]
pub struct Core {
    pub(crate) intake: Intake,
    /// None if no consumer of this thread issues commands.
    commander: Option<Commander>,
    pub(crate) diagnostics: Vec<Diagnostic>,
    /// True once the run is over.
    pub(crate) is_over: bool,
}

impl Core {
    /// Acts on the commander, if commands are issued here.
    pub(crate) fn with_commander<T>(
        &mut self,
        act: impl FnOnce(&mut Commander, &mut CommandSink<'_, RecordingSink>) -> T,
    ) -> Option<T> {
        let commander = self.commander.as_mut()?;
        Some(act(commander, &mut self.intake.sink()))
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
}

impl Core {
    /// The common part for the consumers of a spec; `issues_commands` says that one of them does.
    ///
    /// # Errors
    /// [`PayloadError`] if a payload cannot be compiled.
    pub(crate) fn new(
        spec: &ConsumersSpec,
        writer: Option<Box<dyn FactWriter>>,
        issues_commands: bool,
    ) -> Result<Self, PayloadError> {
        let wall_ms = spec.clock.wall_ms_at_t0();
        let commander = || Commander::new(&spec.plan, &spec.schedules, spec.run, wall_ms);
        Ok(Self {
            intake: Intake::new(spec, writer)?,
            commander: issues_commands.then(commander).flatten(),
            diagnostics: Vec::new(),
            is_over: false,
        })
    }
}

impl<N: Northbound> ConsumerLoop<N> {
    /// The consumers of a spec's seats, in their order.
    pub(crate) fn new(
        spec: &ConsumersSpec,
        northbound: N,
        core: Core,
        mailbox: Mailbox<Order, Box<Dispatch>>,
    ) -> Self {
        let pauses = spec.seats.iter();
        Self {
            northbound,
            core,
            pauses: pauses
                .map(|seat| spec.plan.backends[seat.backend.index()].pause.clone())
                .collect(),
            mailbox,
            next_dispatch: Micros::ZERO,
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
            Order::EndDue { at } => {
                self.core
                    .with_commander(|commander, _| commander.end_due(at));
                let recorder = self.core.intake.recording.recorder();
                if at < recorder.timeline().settle {
                    recorder.stop(at);
                }
            }
            Order::MarkDrain => self.core.intake.recording.recorder().mark_drain(),
            Order::Finish => self.finish(io),
        }
    }

    fn begin(&mut self, io: &mut Io, origin: Micros) {
        self.northbound.begin(origin);
        let core = &mut self.core;
        core.intake.due_times.start(origin);
        core.with_commander(|commander, _| commander.start(origin));
        core.intake.recording.recorder().start(origin);
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
            open = self.core.with_commander(expire).unwrap_or(0);
            next_issue = self.next_issue();
        }
        let standing = self.northbound.standing(&mut self.core, now);
        let progress = Progress {
            at: now,
            consumers_wanted: standing.wanted,
            consumers_up: standing.up,
            consumers_refused: standing.refused,
            listening: standing.listening,
            open,
            behind: u64::from(next_issue.is_some_and(|due| due <= now)),
            ..Progress::default()
        };
        let core = &mut self.core;
        let dispatch = core
            .intake
            .recording
            .dispatch(progress, &mut core.diagnostics);
        if !self.mailbox.post(dispatch) {
            core.diagnostics.push(Diagnostic::unheard());
        }
    }

    fn finish(&mut self, io: &mut Io) {
        self.core.is_over = true;
        self.with(io, N::finish);
        self.dispatch(io.now());
        let account = std::mem::take(&mut self.core.intake.account);
        let last = self.core.intake.recording.hand_over(account);
        let _ = self.mailbox.post(last);
        io.stop();
    }
}

impl<N: Northbound> Handler for ConsumerLoop<N> {
    fn turn_begins(&mut self, io: &mut Io) {
        self.core.intake.reading.turn_begins(&io.turn());
    }

    fn opened(&mut self, io: &mut Io, key: Key) {
        self.with(io, |northbound, cx| northbound.opened(cx, key));
    }

    /// Consumers listen on nothing.
    fn accepted(&mut self, io: &mut Io, key: Key, _: ListenerId) {
        io.close(key);
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
        let consumer = (token & !(PAUSE | RESUME)) as usize;
        self.with(io, |northbound, cx| match token & PAUSE {
            0 => northbound.timer(cx, token),
            _ => northbound.pause(cx, consumer, token & RESUME == 0),
        });
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

/// A sentence on notices of delivery that changed nothing; none if there were none.
pub(crate) fn idle_notices(count: u64) -> Option<String> {
    let count_in_words = figure::count(count);
    let why = "came after the reply, a second time or too late";
    (count > 0).then(|| format!("{count_in_words} notices of delivery {why}"))
}
