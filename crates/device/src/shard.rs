//! The links of one shard: their connections, sessions and traffic put together.

mod activating;
mod connecting;
mod receiving;
mod settling;
mod writing;

use muster_measure::Account;
use muster_model::{Micros, RunId, ShedCause, StreamId};

pub use self::receiving::Then;

use crate::class::Class;
use crate::connects::Connects;
use crate::fleets::Fleets;
use crate::links::{Links, State};
use crate::messages::{Forgotten, WriteBlock};
use crate::ramp::Ramp;
use crate::recording::Recording;
use crate::session::{Session, View};
use crate::sink::Sink;
use crate::traffic::{Listener, Traffic, TrafficPlan};

/// The pure half of a shard: every link as a state machine, without a socket and a clock.
///
/// The driver reports what the sockets did and when, writes what the shard renders, and reports what
/// the kernel took. See [`Shard::render_next`] for the order of calls.
#[derive(Debug)]
pub struct Shard<P: Session, S> {
    /// The part of sessions that all links share.
    session: P,
    /// By link.
    states: Vec<P::State>,
    links: Links,
    connects: Connects,
    traffic: Traffic<P, S>,
    unsendable: Unsendable<P::Unfit>,
    /// The share of each fleet's devices that is wanted at first; none: all of them, for good.
    first_share: Option<f64>,
}

/// Finding that a peer's limits never let a message through; reported once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unsendable<U> {
    Nothing,
    First(StreamId, U),
    Reported,
}

/// Parts that a shard is made of.
#[derive(Debug)]
pub struct ShardPlan<C> {
    /// Run that its messages are of.
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
    /// Reader of received messages; needed if a stream is of kind `receive`.
    pub listener: Option<Listener>,
    /// True if devices that the platform refuses are registered meanwhile, so that no refusal by credentials is
    /// final.
    pub registers_refused: bool,
    /// The share of each fleet's devices that connects at first, where their number changes; else none.
    pub first_share: Option<f64>,
    /// The parts of fleets that this shard carries.
    pub classes: Vec<(Class<C>, Ramp)>,
}

impl<P: Session, S: Sink> Shard<P, S> {
    /// A shard whose links are all down.
    pub fn new(plan: ShardPlan<P::Settings>, sink: S) -> Self {
        let (mut session, mut states) = (P::default(), Vec::new());
        let mut links = Links::registered_on_refusal(plan.registers_refused);
        let are_wanted = plan.first_share.is_none();
        let mut connects = Connects::default();
        let mut fleets = Fleets::new(plan.run, plan.seed, plan.streams);
        for (class, ramp) in plan.classes {
            let added = fleets.add(class);
            let client = &fleets.class_of(&added).client;
            links.add(added.count, are_wanted);
            connects.add(ramp, &added, are_wanted);
            session.add_fleet(client, &added);
            let indices = added.first..added.first + added.count;
            states.extend(indices.map(|link| session.state(client, link, fleets.seed_of(link))));
        }
        let traffic = TrafficPlan {
            max_lateness: plan.max_lateness,
            slot_limit: plan.slot_limit,
            streams: plan.streams,
            listener: plan.listener,
        };
        Self {
            session,
            states,
            links,
            connects,
            traffic: Traffic::new(fleets, traffic, Recording::new(sink, plan.account)),
            unsendable: Unsendable::Nothing,
            first_share: plan.first_share,
        }
    }

    /// The part of sessions that all links share.
    #[inline]
    pub fn session(&self) -> &P {
        &self.session
    }

    /// The same, to be changed.
    #[inline]
    pub fn session_mut(&mut self) -> &mut P {
        &mut self.session
    }

    /// Turns of the links to connect.
    pub fn connects(&self) -> &Connects {
        &self.connects
    }

    /// The same, to be changed.
    pub fn connects_mut(&mut self) -> &mut Connects {
        &mut self.connects
    }

    /// States of the links.
    pub fn links(&self) -> &Links {
        &self.links
    }

    /// The fleets of the links.
    pub fn fleets(&self) -> &Fleets<P::Settings> {
        self.traffic.fleets()
    }

    /// The messages.
    #[inline]
    pub fn traffic(&self) -> &Traffic<P, S> {
        &self.traffic
    }

    /// The same, to be changed.
    #[inline]
    pub fn traffic_mut(&mut self) -> &mut Traffic<P, S> {
        &mut self.traffic
    }

    /// Facts, counts and refusals that the shard records.
    pub fn recording(&mut self) -> &mut Recording<S> {
        self.traffic.recording()
    }

    /// Messages among the open ones that wait on links which the peer refused for good; asked for once
    /// nothing is due any more.
    pub fn stranded(&self) -> u64 {
        if self.links.counts().barred == 0 || self.traffic.next_due().is_some() {
            return 0;
        }
        let waiting = |queue| u64::from(self.traffic.messages().queued(queue));
        let queues_of = |link| self.traffic.fleets().queues_of(link);
        self.links.barred().flat_map(queues_of).map(waiting).sum()
    }

    /// The sessions, and the shard as they see it.
    #[inline]
    fn view(&mut self, now: Micros) -> (&mut P, View<'_, P>) {
        let (messages, recording) = self.traffic.rendering();
        let view = View {
            now,
            states: &mut self.states,
            refusals: recording.refusals(),
            messages,
        };
        (&mut self.session, view)
    }

    /// The number of messages that may still be sent and answered on a link.
    #[inline]
    fn window_free(&self, link: u32) -> u16 {
        self.session.window_free(&self.states[link as usize])
    }

    /// Until when the platform asked a link for silence.
    #[inline]
    fn silent_until(&self, link: u32) -> Micros {
        self.session.silent_until(&self.states[link as usize])
    }

    /// The instant at which the silence ends that something waits for.
    #[inline]
    fn silence_ends(&self, link: u32) -> Option<Micros> {
        let waits = self.traffic.messages().outbox(link).waits_for_silence();
        waits.then(|| self.silent_until(link))
    }

    /// The answer to an attempt is not waited for any more.
    fn forget(&mut self, link: u32, forgotten: Option<Forgotten<P::Key>>) {
        let Some(Forgotten {
            token,
            mut key,
            is_unseen,
        }) = forgotten
        else {
            return;
        };
        let state = &mut self.states[link as usize];
        if is_unseen && let Some(key) = key.take() {
            self.session.abandon(state, key);
        }
        self.session.forget(state, token, key);
    }

    /// Reason for which a message that waits on a link cannot go now.
    fn obstacle(&self, at: u32, now: Micros) -> ShedCause {
        match self.links.get(at).state() {
            State::Down | State::Resting if self.silent_until(at) > now => P::SILENCE,
            State::Down | State::Resting | State::Opening(_) | State::Handshaking => {
                ShedCause::Offline
            }
            State::BackOff => ShedCause::BackOff,
            State::Ended => ShedCause::Interrupted,
            State::Up if self.traffic.messages().outbox(at).write_block() == WriteBlock::Full => {
                ShedCause::SocketFull
            }
            State::Up if self.is_leaving(at, now) => ShedCause::Offline,
            State::Up if self.silent_until(at) > now => P::SILENCE,
            State::Up if self.window_free(at) == 0 => ShedCause::Window,
            State::Up => ShedCause::InFlight,
        }
    }

    /// Returns whether a link is at the end of its life, so that nothing new goes out on it.
    #[inline]
    fn is_leaving(&self, link: u32, now: Micros) -> bool {
        let of = self.links.get(link);
        let leaves_at = || self.traffic.fleets().leaves_at(link, of);
        of.state() == State::Up && leaves_at().is_some_and(|at| at <= now)
    }
}
