//! The seam between a protocol end and the rest of the gateway: an uplink goes to `Router::uplink`, and
//! an [`Answer`] comes back, at once or with an [`Alarm`].

use std::sync::Arc;

use muster_model::behaviour::{CloseLinks, Stall};
use muster_net::{Key, TimerId};
use muster_platform::Protocol;
use muster_protocol::mqtt::Qos;

use crate::coap::request::{PeerRef, RequestRef};
use crate::fault::{Fault, Response};
use crate::message::Message;
use crate::mqtt::request::{Asked, PublishRef, Refusable};
use crate::requests::Asking;
use crate::routes::SessionRef;
use crate::waiter::QueryRef;

/// The request that an answer is for, as its end names it.
#[derive(Debug, Clone)]
pub(crate) enum Request {
    /// A PUBLISH, answered by its acknowledgement.
    Publish(PublishRef),
    /// A PUBLISH whose refusal may be a message.
    Refusable(Refusable),
    /// A PUBLISH, answered by a message of the application.
    Application(Asked),
    Coap(Asking<RequestRef>),
    /// The request of a connection, which has one at a time.
    Http(Asking<Key>),
}

impl Request {
    /// True if its sender waits for the answer.
    fn is_awaited(&self) -> bool {
        match self {
            Self::Publish(of) => of.pending.is_some(),
            Self::Refusable(of) => of.publish.pending.is_some(),
            Self::Coap(of) => of.request.pending.is_confirmable(),
            Self::Application(_) | Self::Http(_) => true,
        }
    }
}

#[derive(Debug)]
pub(crate) enum Timer {
    /// A link's CONNECT or next packet is due, or the rest of a request.
    Link(Key),
    /// A link has been there as long as one of its name may.
    Lifetime(Key),
    /// The acknowledgements of a link have waited for others long enough.
    Batch(Key),
    /// A step of a CoAP peer is due.
    Peer(PeerRef),
    /// A query has waited long enough for its acknowledgement, or for a command.
    Query(QueryRef),
}

/// Sender of a request, which gets the answer.
#[derive(Debug, Clone)]
pub(crate) struct Asker {
    pub(crate) protocol: Protocol,
    pub(crate) request: Request,
}

/// Sender of messages that keep their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Sender {
    pub(crate) socket: Key,
    /// Its number among those of the socket.
    pub(crate) peer: u64,
}

impl Sender {
    /// A connection.
    pub(crate) const fn link(socket: Key) -> Self {
        Self { socket, peer: 0 }
    }
}

/// Origin of an uplink.
#[derive(Debug)]
pub(crate) struct Origin {
    pub(crate) asker: Asker,
    /// The socket of the sender is not read while the uplink has no room.
    pub(crate) sender: Sender,
    /// True if the sender waits for an answer. A NON has one too, but nobody can know whether it
    /// was lost.
    pub(crate) is_answered: bool,
    /// True if the uplink goes to subscribers: the application that acknowledges one keeps it.
    pub(crate) is_routed: bool,
    /// Session of the sender: its subscriptions with "no local" get no copy.
    pub(crate) session: Option<SessionRef>,
    /// True if the sender marked it as sent before.
    pub(crate) is_again: bool,
    /// True if the sender waits for a command once the uplink is accepted.
    pub(crate) wants_command: bool,
}

/// An uplink that is treated badly, or late.
#[derive(Debug)]
pub(crate) struct Uplink {
    pub(crate) origin: Origin,
    pub(crate) message: Arc<Message>,
    pub(crate) hash: u64,
    pub(crate) fault: Fault,
}

impl Uplink {
    /// One that is treated well. Its name in the account is not needed.
    pub(crate) const fn good(origin: Origin, message: Arc<Message>) -> Self {
        Self {
            origin,
            message,
            hash: 0,
            fault: Fault::Behave,
        }
    }

    /// True if its sender waits until a receiver has accepted it: it travels at least once.
    pub(crate) fn waits(&self) -> bool {
        self.message.qos != Qos::AtMostOnce
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Answer {
    pub(crate) response: Response,
    /// Subscribers that there were.
    pub(crate) copies: usize,
}

/// Action that the gateway takes later.
#[derive(Debug)]
pub(crate) enum Alarm {
    End(Protocol, Timer),
    /// An uplink has been served.
    Settle(Box<Uplink>),
    Answer {
        asker: Asker,
        answer: Answer,
    },
    Deliver {
        from: Option<SessionRef>,
        message: Arc<Message>,
    },
    /// A command has to be handed on.
    Command {
        from: Option<SessionRef>,
        message: Arc<Message>,
    },
    /// The one server's queue has a place for the link's uplink.
    Unblock(Key),
    /// A will has waited out its delay.
    Will(SessionRef),
    /// An absent client's session ends.
    Expire(SessionRef),
    /// Look whether uplinks that wait to be overtaken wait in vain.
    Overtaken,
    Stall(Stall),
    CloseLinks(CloseLinks),
}

impl Alarm {
    /// True if it brings the answer to an uplink whose sender waits for that.
    pub(crate) fn is_awaited(&self) -> bool {
        match self {
            Self::Settle(uplink) => uplink.origin.is_answered,
            Self::Answer { asker, .. } => asker.request.is_awaited(),
            Self::End(..)
            | Self::Deliver { .. }
            | Self::Command { .. }
            | Self::Unblock(_)
            | Self::Will(_)
            | Self::Expire(_)
            | Self::Overtaken
            | Self::Stall(_)
            | Self::CloseLinks(_) => false,
        }
    }
}

impl Answer {
    /// The same as what is done later: yes.
    pub(crate) fn late(self, asker: Asker) -> Alarm {
        let response = Response::Accept;
        let answer = Self { response, ..self };
        Alarm::Answer { asker, answer }
    }
}

pub(crate) type AlarmId = (TimerId, u64);
