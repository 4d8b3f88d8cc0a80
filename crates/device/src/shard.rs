//! The links of one shard and all they share.

use muster_measure::{Account, SeqSet};
use muster_model::{DeviceId, LinkId, Micros, RunId, ShedCause, StreamId, mix};
use muster_platform::{CommandScratch, ReplyPath, UplinkScratch};

use crate::acknowledged::Acknowledged;
use crate::agenda::Agenda;
use crate::class::{Class, ClassStream};
use crate::completing::Completing;
use crate::link::{Hold, Lane, Link, State, Writing};
use crate::messages::Messages;
use crate::overheard::Listener;
use crate::own::OwnDelay;
use crate::reconnect::Reconnects;
use crate::refusals::Refusals;
use crate::reply_paths::ReplyPaths;
use crate::seat::Seat;
use crate::session::{FleetLinks, Session, View};
use crate::slots::{Chain, SlotId, Slots};
use crate::timeouts::Timeouts;
use crate::{Ramp, Sink};

/// The pure half of a shard: every link as a state machine, without a socket and a clock.
///
/// The driver tells it what the sockets did and when, writes what it renders, and tells it what
/// the kernel took. See [`Shard::render_next`] for the order of calls.
#[derive(Debug)]
pub struct Shard<P: Session, S> {
    /// The part of sessions that all links share.
    pub(crate) session: P,
    pub(crate) run: RunId,
    pub(crate) seed: u64,
    pub(crate) max_lateness: Micros,
    pub(crate) classes: Vec<Class<P::Settings>>,
    /// Where each stream stands: its class and its place there.
    pub(crate) places: Vec<Option<Place>>,
    pub(crate) links: Vec<Link<P::State>>,
    pub(crate) lanes: Vec<Lane>,
    pub(crate) slots: Slots<P::Key>,
    /// Those that wait for an answer or a command.
    pub(crate) timeouts: Timeouts,
    pub(crate) completing: Completing,
    /// Those that the application acknowledges.
    pub(crate) acknowledged: Acknowledged,
    /// Commands that came, by device of the fleets that take any.
    pub(crate) commands_seen: Vec<SeqSet>,
    /// Where replies go that are requests.
    pub(crate) reply_paths: ReplyPaths,
    /// Who reads what devices subscribe to; none where no stream does.
    pub(crate) listener: Option<Listener>,
    pub(crate) refusals: Refusals,
    pub(crate) account: Account,
    pub(crate) agenda: Agenda,
    /// What of the times of messages may be our own.
    pub(crate) own: OwnDelay,
    pub(crate) ramps: Vec<ClassRamp>,
    pub(crate) tally: LinkTally,
    pub(crate) sink: S,
    pub(crate) scratch: Scratch,
    pub(crate) unsendable: Unsendable<P::Unfit>,
    /// When the warm-up starts, once that is known.
    pub(crate) origin: Option<Micros>,
    pub(crate) is_over: bool,
}

/// Whether a peer's limits never let a message through, which is told once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unsendable<U> {
    Nothing,
    First(StreamId, U),
    Told,
}

/// What a shard is made of.
#[derive(Debug)]
pub struct ShardPlan<C> {
    /// Which run its messages are of.
    pub run: RunId,
    /// Reproduces payloads and jitter.
    pub seed: u64,
    /// A message taken later than this is shed as `generator-late`.
    pub max_lateness: Micros,
    /// The most messages that may be waiting or unanswered at once; beyond it they are shed as
    /// `generator-limit`.
    pub slot_limit: u32,
    /// Streams of the whole plan.
    pub streams: usize,
    /// An empty account for every stream of the plan.
    pub account: Account,
    /// Who reads what devices subscribe to; needed where a stream is of kind `receive`.
    pub listener: Option<Listener>,
    /// The fleets, as far as this shard carries them.
    pub classes: Vec<(Class<C>, Ramp)>,
}

/// Where a stream stands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) class: u8,
    pub(crate) lane: u8,
}

/// How far the first connects of a class have come.
#[derive(Debug)]
pub(crate) struct ClassRamp {
    pub(crate) ramp: Ramp,
    pub(crate) first: u32,
    /// The first lane of its first link; each link has one a stream.
    pub(crate) first_lane: usize,
    pub(crate) next: u32,
    pub(crate) links: u32,
    pub(crate) pending: u32,
    /// Where the commands of its first device are noted; of no meaning where it takes none.
    pub(crate) first_seen: u32,
    pub(crate) reconnects: Reconnects,
}

impl ClassRamp {
    /// When the next link that never tried may connect.
    pub(crate) fn next_first(&self) -> Option<Micros> {
        self.ramp.at(self.next).filter(|_| self.next < self.links)
    }
}

/// How many links are in which state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LinkTally {
    /// Links that are up.
    pub up: u32,
    /// Links whose first try to connect has not ended.
    pub untried: u32,
    /// Tries that ended without a link.
    pub failed: u64,
    /// Those of them that the peer refused in its protocol's words.
    pub refused: u64,
    /// Links whose last try the peer refused for good.
    pub barred: u32,
}

/// Buffers that every message and every CONNECT is rendered in.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    pub(crate) uplink: UplinkScratch,
    /// A device's name.
    pub(crate) name: String,
    /// A reply to a command.
    pub(crate) reply: CommandScratch,
    /// A filter that a topic may match.
    pub(crate) filter: String,
    /// The parameters of a request.
    pub(crate) query: String,
    /// Where the reply to the command goes that came last.
    pub(crate) reply_path: ReplyPath,
}

impl<P: Session, S: Sink> Shard<P, S> {
    /// A shard whose links are all down.
    pub fn new(plan: ShardPlan<P::Settings>, sink: S) -> Self {
        let mut shard = Self {
            session: P::default(),
            run: plan.run,
            seed: plan.seed,
            max_lateness: plan.max_lateness,
            classes: Vec::new(),
            places: vec![None; plan.streams],
            links: Vec::new(),
            lanes: Vec::new(),
            slots: Slots::new(plan.slot_limit),
            timeouts: Timeouts::new(plan.streams),
            commands_seen: Vec::new(),
            reply_paths: ReplyPaths::default(),
            listener: plan.listener,
            acknowledged: Acknowledged::default(),
            refusals: Refusals::default(),
            completing: Completing::default(),
            account: plan.account,
            agenda: Agenda::new(),
            own: OwnDelay::default(),
            ramps: Vec::new(),
            tally: LinkTally::default(),
            sink,
            scratch: Scratch::default(),
            unsendable: Unsendable::Nothing,
            origin: None,
            is_over: false,
        };
        for (class, ramp) in plan.classes {
            shard.add_class(class, ramp);
        }
        shard.tally.untried = shard.links.len() as u32;
        shard.make_room_for_acknowledgements();
        shard
    }

    /// How many links the shard has; they are numbered from 0.
    pub fn links(&self) -> u32 {
        self.links.len() as u32
    }

    /// The number of a link in the whole plan.
    pub fn link_id(&self, link: u32) -> LinkId {
        let class = self.links[link as usize].class as usize;
        LinkId(self.classes[class].links.start + link - self.ramps[class].first)
    }

    /// How many sockets the links share; they are numbered from 0.
    pub fn sockets(&self) -> u32 {
        self.session.sockets()
    }

    /// Where a link sits that shares its socket; none if it has one of its own.
    pub fn seat(&self, link: u32) -> Option<Seat> {
        self.session.seat(self.links[link as usize].class, link)
    }

    /// How many links share a socket.
    pub fn lanes_of(&self, socket: u32) -> u32 {
        self.session.lanes_of(socket)
    }

    /// Who sits there.
    pub fn link_at(&self, seat: Seat) -> Option<u32> {
        self.session.link_at(seat)
    }

    /// How many links are in which state.
    pub fn tally(&self) -> LinkTally {
        self.tally
    }

    /// Messages taken and not yet final.
    pub fn open(&self) -> usize {
        self.slots.len()
    }

    /// Messages among the open ones that wait on links which the peer refused for good; asked for once
    /// nothing is due any more.
    pub fn stranded(&self) -> u64 {
        if self.tally.barred == 0 || self.next_due().is_some() {
            return 0;
        }
        let waiting = |link: u32| {
            let lanes = self.class(link).streams.len();
            let lanes = &self.lanes[self.first_lane(link)..][..lanes];
            lanes.iter().map(|lane| u64::from(lane.queued)).sum::<u64>()
        };
        let links = (0..).zip(&self.links);
        let barred = links.filter(|(_, link)| link.is_barred);
        barred.map(|(at, _)| waiting(at)).sum()
    }

    /// What the sessions did, counted apart from the facts.
    pub fn account(&mut self) -> &mut Account {
        &mut self.account
    }

    /// The refusals and notes that were reported once of each kind.
    pub fn refusals(&mut self) -> &mut Refusals {
        &mut self.refusals
    }

    /// Where the shard tells what happened.
    pub fn sink(&mut self) -> &mut S {
        &mut self.sink
    }

    /// The first message is due at `origin`, the start of the warm-up. Links of a fleet that goes
    /// offline have a deadline from then on.
    pub fn start(&mut self, origin: Micros) {
        self.origin = Some(origin);
        self.agenda.start(origin);
        if let Some(listener) = &mut self.listener {
            listener.due_times.start(origin);
        }
    }

    /// Nothing is due at or after `at`.
    pub fn end_due(&mut self, at: Micros) {
        self.agenda.end(at);
    }

    fn make_room_for_acknowledgements(&mut self) {
        let streams = self.links.iter().flat_map(|link| {
            let class = &self.classes[link.class as usize];
            class.streams.iter()
        });
        let timeouts: Vec<Option<Micros>> =
            streams.clone().map(ClassStream::sliding_timeout).collect();
        let is_acknowledged = streams.clone().any(ClassStream::is_acknowledged);
        self.timeouts.slide(&timeouts, self.links.len());
        if is_acknowledged {
            self.acknowledged = Acknowledged::of(timeouts.len());
        }
    }

    fn add_class(&mut self, class: Class<P::Settings>, ramp: Ramp) {
        let index = self.classes.len() as u8;
        let first = self.links.len() as u32;
        let first_lane = self.lanes.len();
        for (lane, stream) in (0u8..).zip(&class.streams) {
            self.places[stream.id.index()] = Some(Place { class: index, lane });
            self.timeouts.add(stream);
            let is_closed = stream.policy == crate::Policy::Closed;
            self.agenda.add(
                stream.id,
                stream.schedule.clone(),
                class.devices(),
                is_closed,
            );
        }
        let links = class.links.len() as u32;
        let fleet = FleetLinks {
            first,
            count: links,
            seed: mix(self.seed, u64::from(class.links.start) << 32),
        };
        self.session.add_fleet(&class.client, &fleet);
        for (link, id) in (first..).zip(class.links.clone()) {
            let seed = mix(self.seed, u64::from(id));
            self.lanes
                .extend(class.streams.iter().map(|_| Lane::default()));
            self.links.push(Link {
                last_sent: 0,
                session: self.session.state(&class.client, link, seed),
                state: State::Down,
                flight: Chain::default(),
                again: Chain::default(),
                writing: Writing::Nothing,
                since: Micros::ZERO,
                failures: 0,
                class: index,
                ups: 0,
                is_tried: false,
                is_barred: false,
                brief_lives: 0,
                hold: Hold::Nothing,
                waits_for_silence: false,
            });
        }
        let first_seen = self.commands_seen.len();
        if class.command_lane().is_some() {
            let seen = first_seen + class.devices().len();
            self.commands_seen.resize(seen, SeqSet::default());
        }
        self.ramps.push(ClassRamp {
            ramp,
            first,
            first_lane,
            next: 0,
            links,
            pending: 0,
            first_seen: first_seen as u32,
            reconnects: Reconnects::with_capacity(links as usize),
        });
        self.classes.push(class);
    }

    pub(crate) fn class(&self, link: u32) -> &Class<P::Settings> {
        &self.classes[self.links[link as usize].class as usize]
    }

    pub(crate) fn stream(&self, stream: StreamId) -> &ClassStream {
        let place = self.place(stream);
        &self.classes[place.class as usize].streams[place.lane as usize]
    }

    pub(crate) fn place(&self, stream: StreamId) -> Place {
        self.places[stream.index()].expect("a message's stream is of this shard's plan")
    }

    pub(crate) fn lane_of(&self, link: u32, stream: StreamId) -> usize {
        self.first_lane(link) + usize::from(self.place(stream).lane)
    }

    /// The first of a link's lanes, one a stream.
    pub(crate) fn first_lane(&self, link: u32) -> usize {
        let class = self.links[link as usize].class as usize;
        let ramp = &self.ramps[class];
        ramp.first_lane + (link - ramp.first) as usize * self.classes[class].streams.len()
    }

    pub(crate) fn link_of(&self, stream: StreamId, device: DeviceId) -> u32 {
        let class = self.place(stream).class as usize;
        self.ramps[class].first + self.classes[class].link_of(device)
    }

    /// The sessions, and the shard as they see it.
    #[inline]
    pub(crate) fn view(&mut self, now: Micros) -> (&mut P, View<'_, P>) {
        let view = View {
            now,
            links: &mut self.links,
            ramps: &self.ramps,
            refusals: &mut self.refusals,
            messages: Messages {
                run: self.run,
                classes: &self.classes,
                places: &self.places,
                slots: &mut self.slots,
                scratch: &mut self.scratch,
                paths: &self.reply_paths,
            },
        };
        (&mut self.session, view)
    }

    /// The number of messages that may still be sent and answered on a link.
    #[inline]
    pub(crate) fn window_free(&self, link: u32) -> u16 {
        let state = &self.links[link as usize].session;
        self.session.window_free(state)
    }

    /// Until when the platform asked a link for silence.
    #[inline]
    pub(crate) fn silent_until(&self, link: u32) -> Micros {
        let state = &self.links[link as usize].session;
        self.session.silent_until(state)
    }

    /// The instant at which the silence ends that something waits for.
    #[inline]
    pub(crate) fn silence_ends(&self, link: u32) -> Option<Micros> {
        let waits = self.links[link as usize].waits_for_silence;
        waits.then(|| self.silent_until(link))
    }

    /// The answer to an attempt is not waited for any more.
    pub(crate) fn forget(&mut self, link: u32, id: SlotId) {
        let token = self.slots.token(id);
        let key = self.slots.get_mut(id).exchange.take();
        let state = &mut self.links[link as usize].session;
        self.session.forget(state, token, key);
    }

    /// No answer to an attempt can come any more.
    pub(crate) fn abandon(&mut self, link: u32, id: SlotId) {
        if let Some(key) = self.slots.get_mut(id).exchange.take() {
            let state = &mut self.links[link as usize].session;
            self.session.abandon(state, key);
        }
    }

    /// Closes the session of a link whose connection is gone. Attempts that wait for an answer end apart from this.
    pub(crate) fn close_session(&mut self, link: u32) {
        let state = &mut self.links[link as usize];
        state.waits_for_silence = false;
        let mut written = match state.writing {
            Writing::Message(id) => Some(id),
            Writing::Nothing | Writing::Orphan => None,
        };
        let mut next = state.flight.first();
        let slots = &mut self.slots;
        let open = std::iter::from_fn(|| {
            loop {
                let id = next.or_else(|| written.take())?;
                next = next.and_then(|id| slots.after(id));
                if let Some(key) = slots.get_mut(id).exchange.take() {
                    return Some(key);
                }
            }
        });
        self.session.closed(link, &mut state.session, open);
    }

    /// Why a message that waits on a link cannot go now.
    pub(crate) fn obstacle(&self, at: u32, now: Micros) -> ShedCause {
        let link = &self.links[at as usize];
        match link.state {
            State::Down | State::Opening(_) | State::Handshaking => ShedCause::Offline,
            State::BackOff => ShedCause::BackOff,
            State::Ended => ShedCause::Interrupted,
            State::Up if link.hold == Hold::Full => ShedCause::SocketFull,
            State::Up if self.is_leaving(at, now) => ShedCause::Offline,
            State::Up if self.silent_until(at) > now => ShedCause::BackOff,
            State::Up if self.window_free(at) == 0 => ShedCause::Window,
            State::Up => ShedCause::InFlight,
        }
    }

    /// A reproducible value for one decision of one link.
    pub(crate) fn random(&self, link: u32, what: u64) -> f64 {
        let key = (u64::from(self.link_id(link).0) << 32) ^ what;
        muster_model::unit(mix(self.seed ^ 0x6a09_e667, key))
    }
}
