//! The recorder: receives every Fact and makes Windows and Identity of them.

mod completeness;

use std::collections::BTreeMap;

use muster_model::{
    Arrival, Attempt, BackendId, Fact, FleetId, Integrity, LinkEvent, LinkFact, LinkId, MessageId,
    Micros, StreamId,
};
use rustc_hash::FxHashMap;

use crate::above::{BoundTable, count_above};
use crate::cells::CellPool;
use crate::checksummed_count::digest_of;
use crate::command::CommandFilling;
use crate::copies::Manner;
use crate::down_by_us::DownByUs;
use crate::live::{self, ArrivalFilling, Live, UplinkFilling};
use crate::published::Published;
use crate::reception::ReceptionFilling;
use crate::resting::Resting;
use crate::{
    CopyCounts, Counts, Identity, Latency, LinkWindow, Progress, RecorderPlan, Role, State,
    Timeline, WindowDelta, WindowKey, digest,
};

/// Records the Facts of one shard or consumer thread.
///
/// Several recorders of one run, in one process or many, see disjoint Facts; their windows and
/// identities merge to those of one recorder that had seen them all.
#[derive(Debug)]
pub struct Recorder {
    pub(crate) plan: RecorderPlan,
    pub(crate) timeline: Timeline,
    pub(crate) identity: Identity,
    streams: Vec<StreamRecorder>,
    backends: Vec<BackendRecorder>,
    links: BTreeMap<FleetId, Live<LinkWindow>>,
    down_by_us: DownByUs,
    resting: Resting,
    pub(crate) commands: Vec<Live<CommandFilling>>,
    pub(crate) receptions: Vec<Live<ReceptionFilling>>,
    pub(crate) pool: CellPool,
    pub(crate) progress: Progress,
    pub(crate) published: Published,
    pub(crate) is_draining: bool,
}

#[derive(Debug, Default)]
struct StreamRecorder {
    live: Live<UplinkFilling>,
    bounds: BoundTable,
    end_to_end: Vec<Micros>,
    /// The period of a closed loop.
    closed: Option<Micros>,
}

#[derive(Debug, Default)]
struct BackendRecorder {
    live: Vec<Live<ArrivalFilling>>,
    copies: Live<CopyCounts>,
    /// One more than the highest number, by consumers beyond the first of a device's stream.
    orders: FxHashMap<(u8, u32, u16), u32>,
}

impl Recorder {
    /// Bytes that the windows in the making of one recorder keep at the most; windows that were
    /// handed over and the identity are not in it.
    pub const fn window_bytes_most(streams: usize, backends: usize) -> usize {
        live::bytes_most(streams, backends)
    }

    /// A recorder without any fact.
    pub fn new(plan: RecorderPlan) -> Self {
        let stream = |track: &crate::StreamTrack| StreamRecorder {
            live: Live::default(),
            bounds: BoundTable::of(track),
            end_to_end: track.bounds.sorted(Latency::EndToEnd),
            closed: track.closed,
        };
        let backend = || BackendRecorder {
            live: plan.streams.iter().map(|_| Live::default()).collect(),
            ..BackendRecorder::default()
        };
        Self {
            timeline: Timeline::CONNECTING,
            identity: Identity::new(&plan),
            streams: plan.streams.iter().map(stream).collect(),
            backends: (0..plan.backends).map(|_| backend()).collect(),
            links: BTreeMap::new(),
            down_by_us: DownByUs::default(),
            resting: Resting::default(),
            commands: plan.streams.iter().map(|_| Live::default()).collect(),
            receptions: plan.streams.iter().map(|_| Live::default()).collect(),
            pool: CellPool::default(),
            progress: Progress::empty(&plan),
            published: Published::of(plan.published, plan.streams.len()),
            is_draining: false,
            plan,
        }
    }

    /// The connect phase is over, and the warm-up starts at `origin`. Best is an origin that puts
    /// the start of the measured phase on a whole second: then no window is cut.
    pub fn start(&mut self, origin: Micros) {
        self.timeline = Timeline::starting(origin, self.plan.warm_up, self.plan.measure);
    }

    /// The run is stopped: nothing is due from `at` on. Instants before it keep their phase.
    pub fn stop(&mut self, at: Micros) {
        self.timeline = self.timeline.stopped(at);
    }

    /// Beginnings of the phases.
    pub fn timeline(&self) -> Timeline {
        self.timeline
    }

    /// Records any fact.
    pub fn fact(&mut self, fact: &Fact) {
        match fact {
            Fact::Attempt(attempt) => self.attempt(attempt),
            Fact::Arrival(arrival) => self.arrival(arrival),
            Fact::Link(link) => self.link(link),
            Fact::Command(command) => self.command(command),
            Fact::Reception(reception) => self.reception(reception),
        }
    }

    /// Records that a message reached its final state: once a message.
    pub fn attempt(&mut self, attempt: &Attempt) {
        let (id, state) = (&attempt.id, State::from(&attempt.outcome));
        let message = digest(id);
        self.count_facts(attempt, state, message);
        self.progress.finals += 1;
        self.progress.sent += u64::from(attempt.sent.is_some());
        if state.is_expected() {
            self.progress.expected.add(message);
        }
        if self.plan.knows(id) {
            self.keep_final(attempt, state);
            self.fill_uplink(attempt, state);
            let role = self.plan.streams[id.stream.index()].role;
            if role == Role::Query && state == State::Shed {
                self.shed_query(attempt);
            }
            self.published.attempt(attempt, role);
        }
    }

    /// Records that a copy reached a backend: once a copy, after [`Recorder::copies`] counted it.
    pub fn arrival(&mut self, arrival: &Arrival) {
        let at = arrival.backend.index();
        if at >= self.backends.len() {
            return;
        }
        let account = &mut self.identity.facts.backends[at];
        let message = arrival.id.as_ref().map(digest);
        match message {
            Some(message) => account.read.add(digest_of(message, arrival.integrity)),
            None => account.unstamped += 1,
        }
        account.consumed += 1;
        self.count_stray(arrival);
        let Some((id, message)) = arrival.id.zip(message) else {
            return;
        };
        if !self.plan.expects(at, &id) {
            return;
        }
        let manner = Manner {
            is_late: self.is_late(&id, arrival),
            is_reordered: !self.note_order(&id, arrival),
        };
        let slot = id.device.0 - self.plan.streams[id.stream.index()].first_device.0;
        let seen = self.identity.backends[at].streams[id.stream.index()].get_mut(slot);
        let is_first = seen.arrive(id.seq, manner);
        if !self.plan.is_store(at) {
            if is_first {
                self.progress.arrived[at].add(message);
            }
            let last = &mut self.progress.last_arrival[at];
            *last = (*last).max(Some(arrival.seen));
        }
        self.fill_arrival(&id, arrival, is_first);
    }

    /// Records an event of a link.
    pub fn link(&mut self, fact: &LinkFact) {
        self.identity.facts.link(fact.link, &fact.event);
        self.identity.drains.link(fact);
        let (Some(fleet), key) = (self.plan.fleet_of(fact.link), self.key(fact.at)) else {
            return;
        };
        let window = self.links.entry(fleet).or_default().window(key);
        self.down_by_us.note(fact, &mut window.counts);
        self.resting.note(fact, &mut window.counts);
        window.counts.link(&fact.event);
        if let LinkEvent::Connected { took } = fact.event {
            window.connect.record(took);
        }
    }

    /// The counters of a stream that sessions and sockets add to by themselves.
    ///
    /// # Panics
    /// If the plan has no such stream.
    pub fn counts(&mut self, stream: StreamId, at: Micros) -> &mut Counts {
        let key = self.key(at);
        &mut self.streams[stream.index()].window(key).window.counts
    }

    /// The counters of a backend that its consumers add to by themselves: `consumed` and
    /// `bytes_payload` before decoding. The others are counted from Facts.
    ///
    /// # Panics
    /// If the plan has no such backend.
    pub fn copies(&mut self, backend: BackendId, at: Micros) -> &mut CopyCounts {
        let key = self.key(at);
        self.backends[backend.index()].copies.window(key)
    }

    /// Counts a try to connect, at the socket.
    pub fn opened(&mut self, link: LinkId, at: Micros) {
        if let Some(window) = self.link_window(link, at) {
            window.counts.opened += 1;
        }
    }

    /// All windows touched since the last flush, as deltas. Once a second is right; the windows
    /// of the run are the sum of the deltas, however often it is called.
    pub fn flush(&mut self, now: Micros) -> WindowDelta {
        let mut delta = WindowDelta {
            until: now,
            ..WindowDelta::default()
        };
        let pool = &mut self.pool;
        for (stream, at) in self.streams.iter_mut().zip(0u8..=u8::MAX) {
            stream.live.drain(pool, |key, window| {
                delta.uplinks.insert((StreamId(at), key), window);
            });
        }
        for (backend, b) in self.backends.iter_mut().zip(0u8..=u8::MAX) {
            for (live, at) in backend.live.iter_mut().zip(0u8..=u8::MAX) {
                live.drain(pool, |key, window| {
                    delta
                        .arrivals
                        .insert((BackendId(b), StreamId(at), key), window);
                });
            }
            backend.copies.drain(pool, |key, counts| {
                delta.copies.insert((BackendId(b), key), counts);
            });
        }
        for (live, at) in self.commands.iter_mut().zip(0u8..=u8::MAX) {
            live.drain(pool, |key, window| {
                delta.commands.insert((StreamId(at), key), window);
            });
        }
        for (live, at) in self.receptions.iter_mut().zip(0u8..=u8::MAX) {
            live.drain(pool, |key, window| {
                delta.receptions.insert((StreamId(at), key), window);
            });
        }
        for (fleet, live) in &mut self.links {
            live.drain(pool, |key, window| {
                delta.links.insert((*fleet, key), window);
            });
        }
        delta.progress = std::mem::replace(&mut self.progress, Progress::empty(&self.plan));
        delta
    }

    /// The identity sets; what was not flushed before is lost to the windows.
    pub fn finish(mut self) -> Identity {
        self.identity.shrink();
        (self.identity.published, self.identity.slots) = self.published.figures();
        self.identity
    }

    fn count_facts(&mut self, attempt: &Attempt, state: State, message: u64) {
        let Some(facts) = self
            .identity
            .facts
            .streams
            .get_mut(attempt.id.stream.index())
        else {
            return;
        };
        facts.scheduled.add(message);
        if attempt.sent.is_some() {
            facts.sent.add(message);
        }
        let digest = digest_of(message, (&attempt.outcome, attempt.resent));
        facts.states[state.index()].add(digest);
    }

    fn keep_final(&mut self, attempt: &Attempt, state: State) {
        let id = &attempt.id;
        let slot = id.device.0 - self.plan.streams[id.stream.index()].first_device.0;
        let stream = &mut self.identity.streams[id.stream.index()];
        let finals = stream.devices.get_mut(slot);
        finals.end(id.seq, state, stream.primary);
        if attempt.resent {
            finals.resend(id.seq);
        }
        if attempt.due < self.timeline.measure {
            finals.warm_up = finals.warm_up.max(id.seq + 1);
        }
    }

    fn fill_uplink(&mut self, attempt: &Attempt, state: State) {
        let answers = self.plan.streams[attempt.id.stream.index()].answers;
        let key_ended = self.key(attempt.ended);
        let key_due = self.key_due(attempt.due, attempt.id.seq);
        let key_sent = attempt.sent.map(|sent| self.key(sent));
        let stream = &mut self.streams[attempt.id.stream.index()];
        if let Some(key) = key_sent {
            stream.window(key).window.flow.sent += 1;
        }
        stream.window(key_ended).window.flow.ended[state.index()] += 1;
        stream.fill_due(key_due, attempt, answers.then_some(state), &mut self.pool);
    }

    fn fill_arrival(&mut self, id: &MessageId, arrival: &Arrival, is_first: bool) {
        let key = self.key(arrival.seen);
        let key_due = arrival.due.map(|due| self.key_due(due, id.seq));
        let deadline = self.plan.streams[id.stream.index()].deadline;
        let bounds = &self.streams[id.stream.index()].end_to_end;
        let live = &mut self.backends[arrival.backend.index()].live[id.stream.index()];
        let window = &mut live.window(key).window;
        if !is_first {
            window.again += 1;
            return;
        }
        window.arrived += 1;
        let Some((key_due, due)) = key_due.zip(arrival.due) else {
            window.undated += 1;
            return;
        };
        let filling = live.window(key_due);
        let took = arrival.seen - due;
        filling.window.arrived_due += 1;
        if self.plan.is_store(arrival.backend.index()) {
            return;
        }
        filling.window.early = filling.window.early.max(due - arrival.seen);
        filling.window.late += u64::from(deadline.is_some_and(|deadline| took > deadline));
        count_above(&mut filling.window.above, bounds, took);
        count_above(&mut filling.window.above_lower, bounds, took - arrival.own);
        filling.end_to_end.record(took, &mut self.pool);
    }

    fn count_stray(&mut self, arrival: &Arrival) {
        let at = arrival.backend.index();
        let is_corrupted = arrival.integrity == Integrity::Corrupted;
        let is_foreign = arrival.id.is_some_and(|id| !self.plan.expects(at, &id));
        let is_unstamped = arrival.id.is_none();
        let seen = &mut self.identity.backends[at];
        seen.foreign += u64::from(is_foreign);
        seen.corrupted += u64::from(is_corrupted);
        if !is_foreign && !is_unstamped {
            seen.last_arrival = seen.last_arrival.max(Some(arrival.seen));
        }
        if is_corrupted || is_foreign || is_unstamped {
            let counts = self.copies(arrival.backend, arrival.seen);
            counts.foreign += u64::from(is_foreign);
            counts.unstamped += u64::from(is_unstamped);
            counts.corrupted += u64::from(is_corrupted);
        }
    }

    fn is_late(&self, id: &MessageId, arrival: &Arrival) -> bool {
        let deadline = self.plan.streams[id.stream.index()].deadline;
        deadline
            .zip(arrival.due)
            .is_some_and(|(deadline, due)| arrival.seen - due > deadline)
    }

    /// Returns whether the copy came in order at its consumer (RFC 4737 section 3.3: its number is
    /// not below the next expected one). An altered copy's number moves nothing, for it may be
    /// wrong.
    fn note_order(&mut self, id: &MessageId, arrival: &Arrival) -> bool {
        let slot = id.device.0 - self.plan.streams[id.stream.index()].first_device.0;
        let backend = &mut self.identity.backends[arrival.backend.index()];
        let seen = backend.streams[id.stream.index()].get_mut(slot);
        let first = *seen.consumer.get_or_insert(arrival.consumer.0);
        let next = if first == arrival.consumer.0 {
            &mut seen.next
        } else {
            let orders = &mut self.backends[arrival.backend.index()].orders;
            let key = (id.stream.0, slot, arrival.consumer.0);
            let is_draining = self.is_draining;
            orders
                .entry(key)
                .or_insert_with(|| seen.begin_order(is_draining))
        };
        let is_in_order = id.seq >= *next;
        if is_in_order && arrival.integrity != Integrity::Corrupted {
            *next = id.seq + 1;
        }
        is_in_order
    }

    fn link_window(&mut self, link: LinkId, at: Micros) -> Option<&mut LinkWindow> {
        let fleet = self.plan.fleet_of(link)?;
        let key = self.key(at);
        Some(self.links.entry(fleet).or_default().window(key))
    }

    pub(crate) fn key(&self, at: Micros) -> WindowKey {
        WindowKey {
            second: at.second(),
            phase: self.timeline.phase(at),
            cold: false,
        }
    }

    /// The window of what began at an instant: what is cold is kept apart.
    pub(crate) fn key_due(&self, due: Micros, seq: u32) -> WindowKey {
        let measure = self.timeline.measure;
        WindowKey {
            cold: self.plan.cold.holds(seq, Some(due), measure),
            ..self.key(due)
        }
    }
}

impl StreamRecorder {
    fn window(&mut self, key: WindowKey) -> &mut UplinkFilling {
        self.live.window(key)
    }

    /// Fills the window of the due second; `state` is none where no answer exists by design.
    fn fill_due(
        &mut self,
        key: WindowKey,
        attempt: &Attempt,
        state: Option<State>,
        pool: &mut CellPool,
    ) {
        let filling = self.live.window(key);
        filling.window.outcomes.count(&attempt.outcome);
        if let Some(period) = self.closed {
            filling.window.times.count(attempt, period);
        }
        filling.window.outcomes.taken += u64::from(attempt.taken.is_some());
        filling.window.outcomes.sent += u64::from(attempt.sent.is_some());
        let above = &mut filling.window.above;
        above.resize(self.bounds.len(), 0);
        if let Some(taken) = attempt.taken {
            let lateness = taken - attempt.due;
            filling.lateness.record(lateness, pool);
            self.bounds.count(above, Latency::Lateness, lateness);
            if let Some(sent) = attempt.sent {
                filling.held.record(sent - taken, pool);
                self.bounds.count(above, Latency::Held, sent - taken);
            }
        }
        let Some(state) = state else { return };
        let response = attempt.upper();
        if !state.is_answer() {
            filling.censored.record(response, pool);
            return;
        }
        filling.response.record(response, pool);
        self.bounds.count(above, Latency::Response, response);
        let lower = attempt.lower();
        filling.lower.record(lower, pool);
        let above_lower = &mut filling.window.above_lower;
        self.bounds
            .count_lower(above_lower, Latency::Response, lower);
        if let Some(sent) = attempt.sent {
            let service = attempt.ended - sent;
            filling.service.record(service, pool);
            self.bounds.count(above, Latency::Service, service);
            let lower = service - attempt.own;
            self.bounds
                .count_lower(above_lower, Latency::Service, lower);
        }
    }
}
