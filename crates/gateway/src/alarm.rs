//! What the gateway does later.

use std::sync::Arc;

use muster_model::behaviour::{CloseLinks, Stall};
use muster_net::{Key, TimerId};

use crate::coap::request::{PeerRef, QueryRef};
use crate::fault::Response;
use crate::message::Message;
use crate::routes::SessionRef;
use crate::uplink::{Answer, Asker, Uplink};

/// What the gateway does later.
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
