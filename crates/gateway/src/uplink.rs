//! The seam between a protocol end and the rest of the gateway: an uplink goes to `Router::uplink`, and
//! an [`Answer`] comes back, at once or with an [`Alarm`].

use std::sync::Arc;

use muster_model::behaviour::{CloseLinks, Stall};
use muster_net::{Key, TimerId};
use muster_protocol::mqtt::Pending;

use crate::coap::request::{PeerRef, QueryRef, RequestRef};
use crate::fault::{Fault, Response};
use crate::message::Message;
use crate::routes::SessionRef;

/// Receiver of the answer to an uplink: one variant for each way to answer.
#[derive(Debug, Clone)]
pub(crate) enum Asker {
    /// A PUBLISH, answered by its acknowledgement.
    Publish(PublishRef),
    /// A PUBLISH, answered by a message of the application.
    Application(Asked),
    /// A request over CoAP.
    Request(RequestRef),
}

/// A PUBLISH; at QoS 0 it waits for nothing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PublishRef {
    pub(crate) key: Key,
    pub(crate) pending: Option<Pending>,
}

/// A message of a device that the application acknowledges.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    /// The link by which the message came.
    pub(crate) key: Key,
    pub(crate) device: Arc<str>,
    pub(crate) id: Option<Arc<[u8]>>,
}

/// Sender of messages that keep their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Sender {
    Link(Key),
    Peer(PeerRef),
}

impl Asker {
    /// True if the sender waits for an answer. A NON has one too, but nobody can know whether it
    /// was lost.
    pub(crate) fn is_answered(&self) -> bool {
        match self {
            Self::Publish(publish) => publish.pending.is_some(),
            Self::Application(_) => true,
            Self::Request(request) => request.pending.is_confirmable(),
        }
    }

    /// True if the uplink goes to subscribers: the application that acknowledges one keeps it.
    pub(crate) fn is_routed(&self) -> bool {
        !matches!(self, Self::Application(_))
    }

    pub(crate) fn sender(&self) -> Sender {
        match self {
            Self::Publish(PublishRef { key, .. }) | Self::Application(Asked { key, .. }) => {
                Sender::Link(*key)
            }
            Self::Request(request) => Sender::Peer(request.peer),
        }
    }
}

/// Origin of an uplink.
#[derive(Debug)]
pub(crate) struct Origin {
    pub(crate) asker: Asker,
    /// The socket that is not read while the uplink has no room.
    pub(crate) socket: Key,
    /// Session of the sender: its subscriptions with "no local" get no copy.
    pub(crate) session: Option<SessionRef>,
    /// True if the sender marked it as sent before.
    pub(crate) is_again: bool,
}

/// An uplink that is treated badly, or late.
#[derive(Debug)]
pub(crate) struct Uplink {
    pub(crate) origin: Origin,
    pub(crate) message: Arc<Message>,
    pub(crate) hash: u64,
    pub(crate) fault: Fault,
}

/// The answer to an uplink.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Answer {
    pub(crate) response: Response,
    /// Subscribers that there were.
    pub(crate) copies: usize,
}

/// Action that the gateway takes later.
#[derive(Debug)]
pub(crate) enum Alarm {
    /// A link's CONNECT or next packet is due.
    Link(Key),
    /// Something is due of a peer of CoAP.
    Peer(PeerRef),
    /// A query has waited long enough for its acknowledgement, or for a command.
    Query(QueryRef),
    /// An uplink has been served.
    Settle(Box<Uplink>),
    /// A late answer.
    Answer { asker: Asker, answer: Answer },
    /// The acknowledgements of a link have waited for others long enough.
    Batch(Key),
    /// A late delivery.
    Deliver {
        from: Option<SessionRef>,
        message: Arc<Message>,
    },
    /// A command has to be handed on.
    Command {
        from: SessionRef,
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
    /// Stand still.
    Stall(Stall),
    /// Close part of the device links.
    CloseLinks(CloseLinks),
}

impl Answer {
    /// The same as what is done later: yes.
    pub(crate) fn late(self, asker: Asker) -> Alarm {
        let response = Response::Accept;
        let answer = Self { response, ..self };
        Alarm::Answer { asker, answer }
    }
}

/// An alarm that was set.
pub(crate) type AlarmId = (TimerId, u64);
