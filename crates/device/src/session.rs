//! The session of a link: the seam between a shard and the protocols that devices speak.
//!
//! A protocol is one implementation of [`Session`] in one folder. It renders what a link
//! sends, reads what comes, and reports [`Event`]s; the shard knows no protocol beyond that.

pub(crate) mod coap;
pub(crate) mod http;
pub(crate) mod mqtt;
mod rendering;

use std::cell::OnceCell;
use std::fmt::{Debug, Display};

use muster_measure::LinkAccount;
use muster_model::{Cause, ConnectFailure, LinkId, Micros, Outcome, Reason, ShedCause, StreamId};
use muster_plan::ClientPlan;
use muster_platform::{CommandCopy, Protocol};
use muster_protocol::mqtt::Topic;

pub(crate) use self::rendering::{Rendering, Scratch};

use crate::class::Class;
use crate::client::Client;
use crate::fleets::FleetLinks;
use crate::refusals::Refusals;
use crate::slots::SlotId;
use crate::token::Token;

/// The carrier of a session's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// A stream of bytes.
    Stream,
    /// Datagrams; each is whole or lost.
    Datagrams,
}

/// The sessions of a shard's links, all of one protocol; its value is what they share.
pub trait Session: Debug + Default {
    /// The part of a fleet's settings that is the protocol's.
    type Settings: Debug + Clone;
    /// The session of one link.
    type State: Debug;
    /// The session's name of an exchange that waits for an answer.
    type Key: Debug + Copy + PartialEq;
    /// The reason why a message can never go on a session.
    type Unfit: Debug + Copy + PartialEq + Display;

    /// The protocol.
    const PROTOCOL: Protocol;
    /// The carrier of the bytes.
    const TRANSPORT: Transport;
    /// The cause for which messages are shed while the platform asks a link for silence.
    const SILENCE: ShedCause = ShedCause::BackOff;

    /// The settings of a fleet's sessions; none if the fleet speaks another protocol.
    fn settings(client: &ClientPlan) -> Option<&Self::Settings>;

    /// True if attempts in flight may still be answered on the next connection.
    fn is_resumable(_settings: &Self::Settings) -> bool {
        false
    }

    /// Makes room for the links of the next fleet; called once a fleet, in their order.
    fn add_fleet(&mut self, _client: &Client<Self::Settings>, _links: &FleetLinks) {}

    /// The session of a link of the fleet that was added last; `seed` is the link's own.
    fn state(&self, client: &Client<Self::Settings>, link: u32, seed: u64) -> Self::State;

    /// Renders what the session sends first, once the connection under a link stands.
    fn opened(&mut self, at: &mut Context<'_, Self>, out: &mut Vec<u8>) -> Option<Event<'static>>;

    /// Continues to connect after `Event::Connected`.
    fn go_on(&mut self, _at: &mut Context<'_, Self>, _out: &mut Vec<u8>) -> Option<Event<'static>> {
        Some(Event::Ready)
    }

    /// Reads what came until something is to be reported; none once all is read. What the session
    /// answers by itself is appended to `out`.
    fn poll<'a>(
        &mut self,
        at: &mut Context<'_, Self>,
        input: &mut Input<'a>,
        out: &mut Vec<u8>,
    ) -> Option<Event<'a>>;

    /// Reads the end of a connection that the peer closed: the answer that ends with it, if one does.
    fn ended<'a>(
        &mut self,
        _at: &mut Context<'_, Self>,
        _input: &mut Input<'a>,
    ) -> Option<Event<'a>> {
        None
    }

    /// Does what is due at [`Session::deadline`].
    fn timer(&mut self, at: &mut Context<'_, Self>, out: &mut Vec<u8>) -> Option<Event<'static>>;

    /// The instant at which a link that is up wants its timer to be called.
    fn deadline(settings: &Self::Settings, state: &Self::State) -> Option<Micros>;

    /// Renders a message for the first time.
    ///
    /// # Errors
    /// `Unsent` says why nothing was rendered.
    fn submit(
        &mut self,
        at: &mut Context<'_, Self>,
        message: &Outgoing,
        out: &mut Vec<u8>,
    ) -> Result<Option<Self::Key>, Unsent<Self::Unfit>>;

    /// Renders a message again after `Event::Resend`.
    ///
    /// # Errors
    /// `Unsent` says why nothing was rendered.
    fn resubmit(
        &mut self,
        _at: &mut Context<'_, Self>,
        _message: &Outgoing,
        _out: &mut Vec<u8>,
    ) -> Result<(), Unsent<Self::Unfit>> {
        Err(Unsent::SessionLost)
    }

    /// Renders what goes out before any message; whether there was anything.
    #[inline]
    fn render_first(&mut self, _at: &mut Context<'_, Self>, _out: &mut Vec<u8>) -> bool {
        false
    }

    /// True if [`Session::render_first`] may have something, for any link.
    #[inline]
    fn has_first(&self) -> bool {
        false
    }

    /// The number of messages that may still be sent and answered.
    fn window_free(&self, state: &Self::State) -> u16;

    /// The instant until which the platform asked the link for silence.
    fn silent_until(&self, _state: &Self::State) -> Micros {
        Micros::ZERO
    }

    /// Stops waiting for the answer to an attempt.
    fn forget(&mut self, state: &mut Self::State, token: Token, key: Option<Self::Key>);

    /// Ends an exchange whose answer can no longer come.
    fn abandon(&mut self, _state: &mut Self::State, _key: Self::Key) {}

    /// Ends the session of a link whose connection is gone. `open` are the exchanges that still wait for an answer.
    fn closed(&mut self, link: u32, state: &mut Self::State, open: impl Iterator<Item = Self::Key>);

    /// Drops all that is in flight; `incomplete` is called for each message that was accepted and whose
    /// exchange was not completed.
    fn drop_exchanges(&mut self, _state: &mut Self::State, _incomplete: impl FnMut(Token)) {}

    /// Renders the end of the session, where the protocol has a message for it.
    fn disconnect(&mut self, _state: &mut Self::State, _out: &mut Vec<u8>) {}

    /// The failure of a link whose time to connect is over.
    fn unanswered(&self, _link: u32) -> ConnectFailure {
        ConnectFailure::TimedOut
    }

    /// Notes the first link of each cause that did not connect.
    fn note_failure(&self, _at: &mut Context<'_, Self>, _failure: ConnectFailure) {}

    /// Notes a link that ended as one does whose name another client uses; `brief_lives` are those in
    /// a row that the peer ended soon after it had taken the link.
    fn note_end(&self, _at: &mut Context<'_, Self>, _cause: Cause, _brief_lives: u8) {}

    /// The cause of a link's end, after a look at what the protocol allows the peer and at our own part.
    fn blamed(_state: &Self::State, cause: Cause, _now: Micros) -> Cause {
        cause
    }

    /// Begins a new session on a link that was secured anew.
    fn secured(&mut self, _state: &mut Self::State) {}

    /// Adds up counters that no event reports.
    fn account<'a>(&'a self, states: impl Iterator<Item = &'a Self::State>, sum: &mut LinkAccount);
}

/// Sessions that may share sockets.
pub trait SharedSockets: Session {
    /// The number of sockets that links share.
    fn sockets(&self) -> u32;

    /// The slot of a link on a shared socket; none if it has a socket to itself.
    fn slot_of(&self, class: u8, link: u32) -> Option<SocketSlot>;

    /// The link at a slot of a shared socket.
    fn link_at(&self, slot: SocketSlot) -> Option<u32>;

    /// The number of links that share a socket.
    fn slots_of(&self, socket: u32) -> u32;

    /// Reads a datagram that came to a shared socket, or does what is due there if there is none:
    /// the link that it is about, and what is to be reported of it.
    fn poll_socket<'a>(
        &mut self,
        socket: u32,
        view: &mut View<'_, Self>,
        input: Option<&mut Input<'a>>,
        out: &mut Vec<u8>,
    ) -> Option<(u32, Option<Event<'a>>)>;

    /// The instant at which something of a shared socket is due.
    fn socket_deadline(&self, socket: u32) -> Option<Micros>;

    /// Takes the datagram that was rendered last, if it is not the first of its message.
    fn take_further(&mut self) -> Option<Further<Self::Key>>;
}

/// The place of a link on a shared socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SocketSlot {
    /// The socket, as an index of the shard.
    pub socket: u32,
    /// Its place among the links of that socket.
    pub index: u32,
}

/// A message that a session is to render; its parts are in the scratch buffers.
#[derive(Debug, Clone, Copy)]
pub struct Outgoing {
    pub(crate) slot: SlotId,
    /// The place of its stream in the fleet.
    pub(crate) stream_index: u8,
    /// True if its attempt waits for the protocol's answer.
    pub(crate) is_tracked: bool,
}

/// The reason why a message was not rendered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unsent<U> {
    /// Its turn has not come.
    Waits,
    /// The platform asked for silence.
    Silence,
    /// A bound of our own keeps it back.
    Limit,
    /// The message will never go.
    Never(U),
    /// The session knows nothing of it.
    SessionLost,
}

/// Something that a session reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event<'a> {
    /// The platform has answered the CONNECT; [`Session::go_on`] is next.
    Connected {
        /// True if it goes on with the session before.
        is_kept: bool,
    },
    /// The link may carry messages.
    Ready,
    /// The link may carry messages, and a command came, as in [`Self::Command`].
    ReadyWith(CommandCopy<'a>),
    /// The link cannot be used; the goodbye is rendered.
    Refused(ConnectFailure),
    /// The platform took a message.
    Accepted { token: Token, has_subscriber: bool },
    /// The platform answered a request.
    Answered {
        token: Token,
        reply: Reply<'a>,
        /// True if the answer came in a separate message.
        is_separate: bool,
    },
    /// An attempt ended with a refusal, or without an answer.
    Failed { token: Token, outcome: Outcome },
    /// The exchange of an accepted message is complete.
    Completed { token: Token },
    /// The answer to an attempt that was forgotten.
    AnsweredLate { token: Token, is_accepted: bool },
    /// An answer came again.
    Duplicate { token: Token },
    /// A message was refused that was final once it was sent.
    RefusedUnawaited {
        stream: StreamId,
        due: Micros,
        reason: Reason,
    },
    /// A message of the session before has no answer: it is to be rendered again or forgotten.
    Resend { token: Token },
    /// A message came.
    Message(Downlink<'a>),
    /// A command came to the observer of commands; the path of its reply is in the scratch buffers.
    Command(CommandCopy<'a>),
    /// A sign of life.
    Alive,
    /// The session is at its end.
    Lost(Cause),
}

impl Event<'_> {
    /// True if it is the end of its link.
    #[inline]
    pub(crate) const fn is_end(&self) -> bool {
        matches!(self, Self::Refused(_) | Self::Lost(_))
    }
}

/// The platform's answer to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply<'a> {
    /// The platform took the message, and has no command.
    Accepted,
    /// The platform took the message, and a command comes with the answer.
    Command(CommandCopy<'a>),
    /// The platform refused the message.
    Rejected(Reason),
}

/// A message that the platform published to a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Downlink<'a> {
    pub(crate) topic: Topic<'a>,
    pub(crate) payload: &'a [u8],
    /// The property that may carry its id.
    pub(crate) property: Option<&'a str>,
}

/// Bytes that came on a link: some of a stream, or one datagram.
#[derive(Debug)]
pub struct Input<'a> {
    bytes: &'a [u8],
    used: usize,
    is_taken: bool,
    /// Room for a body that came in several pieces.
    room: &'a OnceCell<Vec<u8>>,
}

impl<'a> Input<'a> {
    pub(crate) fn new(bytes: &'a [u8], room: &'a OnceCell<Vec<u8>>) -> Self {
        Self {
            bytes,
            used: 0,
            is_taken: false,
            room,
        }
    }

    /// The same bytes after the progress of an earlier value, with a room that is empty.
    pub(crate) fn after(
        bytes: &'a [u8],
        (used, is_taken): (usize, bool),
        room: &'a OnceCell<Vec<u8>>,
    ) -> Self {
        Self {
            bytes,
            used,
            is_taken,
            room,
        }
    }

    /// The number of bytes that are used up, and whether the datagram was taken.
    pub(crate) fn progress(&self) -> (usize, bool) {
        (self.used, self.is_taken)
    }

    /// The bytes of a stream that are left.
    #[inline]
    pub(crate) fn rest(&self) -> &'a [u8] {
        &self.bytes[self.used..]
    }

    /// Uses bytes up.
    #[inline]
    pub(crate) fn advance(&mut self, count: usize) {
        self.used += count;
    }

    /// The datagram, once.
    #[inline]
    pub(crate) fn datagram(&mut self) -> Option<&'a [u8]> {
        self.used = self.bytes.len();
        let was_taken = std::mem::replace(&mut self.is_taken, true);
        (!was_taken).then_some(self.bytes)
    }

    /// Keeps a body as long as what came is looked at.
    pub(crate) fn keep(&self, body: Vec<u8>) -> &'a [u8] {
        self.room.get_or_init(|| body)
    }
}

/// All links of a shard, as the sessions see them.
#[derive(Debug)]
pub struct View<'a, P: Session> {
    pub(crate) now: Micros,
    pub(crate) states: &'a mut [P::State],
    pub(crate) refusals: &'a mut Refusals,
    pub(crate) messages: Rendering<'a, P>,
}

/// A link and its fleet, as the sessions see them.
#[derive(Debug)]
pub struct Context<'a, P: Session> {
    pub(crate) now: Micros,
    /// Its index of the shard.
    pub(crate) link: u32,
    /// Its number in the whole plan.
    pub(crate) id: LinkId,
    pub(crate) class: &'a Class<P::Settings>,
    pub(crate) state: &'a mut P::State,
    pub(crate) refusals: &'a mut Refusals,
    pub(crate) messages: Rendering<'a, P>,
}

impl<P: Session> View<'_, P> {
    /// One of them.
    #[inline]
    pub(crate) fn at(&mut self, link: u32) -> Context<'_, P> {
        let fleets = self.messages.fleets;
        Context {
            now: self.now,
            link,
            id: fleets.link_id(link),
            class: fleets.class(link),
            state: &mut self.states[link as usize],
            refusals: self.refusals,
            messages: self.messages.reborrow(),
        }
    }
}

/// A datagram that is not the first of its message: a copy, or a further block.
#[derive(Debug, Clone, Copy)]
#[must_use]
pub struct Further<K> {
    pub(crate) link: u32,
    pub(crate) token: Token,
    pub(crate) key: K,
    pub(crate) is_copy: bool,
    /// True if a block of the message's body is in it for the first time.
    pub(crate) is_block: bool,
    /// Bytes of the datagram, and of payload in it.
    pub(crate) wire: u32,
    pub(crate) payload: u32,
}
