//! The seam between the gateway and the protocols of its devices: one [`End`] each, in one folder each.

use std::any::Any;
use std::fmt::Debug;
use std::net::SocketAddr;

use muster_net::{Key, PortUse};
use muster_platform::Protocol;

use crate::coap;
use crate::coap::request::{PeerRef, RequestRef};
use crate::commands::QueryRef;
use crate::config::GatewayConfig;
use crate::gateway::{ListenAddresses, StartError};
use crate::message::Message;
use crate::mqtt::{self, Asked, PublishRef};
use crate::router::Router;
use crate::thread::Ctx;
use crate::uplink::{Answer, Asker};

pub(crate) type Factory = Box<dyn Fn(&GatewayConfig) -> Box<dyn End>>;

type Prepare = fn(&GatewayConfig) -> Result<Factory, StartError>;

/// All ends, in the order of [`Protocol`].
const ENDS: &[(Protocol, Prepare)] = &[
    (Protocol::Mqtt, mqtt::prepare),
    (Protocol::Coap, coap::prepare),
];

/// One datagram that came.
#[derive(Debug)]
pub(crate) struct Datagram<'a> {
    pub(crate) socket: Key,
    pub(crate) from: SocketAddr,
    pub(crate) bytes: &'a mut [u8],
}

/// The request that an answer is for, as its end names it.
#[derive(Debug, Clone)]
pub(crate) enum Request {
    /// A PUBLISH, answered by its acknowledgement.
    Publish(PublishRef),
    /// A PUBLISH, answered by a message of the application.
    Application(Asked),
    Coap(RequestRef),
}

#[derive(Debug)]
pub(crate) enum Timer {
    /// A link's CONNECT or next packet is due.
    Link(Key),
    /// The acknowledgements of a link have waited for others long enough.
    Batch(Key),
    /// A step of a CoAP peer is due.
    Peer(PeerRef),
    /// A query has waited long enough for its acknowledgement, or for a command.
    Query(QueryRef),
}

/// The server end of one protocol, in one thread.
pub(crate) trait End: Any + Debug + Send {
    /// Listens at its configured addresses, or at those that an earlier thread got.
    ///
    /// # Errors
    /// [`StartError`] if an address is not to be had.
    fn listen(
        &mut self,
        ctx: &mut Ctx<'_>,
        port: PortUse,
        addresses: &mut ListenAddresses,
    ) -> Result<(), StartError>;

    fn accepted(&mut self, _work: &mut Work<'_>, _key: Key) {}

    /// Takes bytes of a connection: the number that is used up.
    fn received(&mut self, _work: &mut Work<'_>, _key: Key, bytes: &mut [u8]) -> usize {
        bytes.len()
    }

    fn datagram(&mut self, _work: &mut Work<'_>, _datagram: Datagram<'_>) {}

    /// The kernel took what a connection had held.
    fn flushed(&mut self, _work: &mut Work<'_>, _key: Key) {}

    fn closed(&mut self, _work: &mut Work<'_>, _key: Key) {}

    fn due(&mut self, work: &mut Work<'_>, timer: Timer);

    /// Answers an uplink.
    fn respond(&mut self, work: &mut Work<'_>, request: Request, answer: Answer);

    /// Puts a command into the answer to a request that waits for one; false if that cannot be.
    fn deliver(&mut self, _work: &mut Work<'_>, _to: QueryRef, _message: &Message) -> bool {
        false
    }

    /// Closes a part of the device links, chosen by the seed.
    fn close_share(&mut self, work: &mut Work<'_>, seed: u64, share: f64);

    /// Ends a turn of the loop; `is_last` is true when the gateway stops.
    fn turn(&mut self, work: &mut Work<'_>, is_last: bool);
}

#[derive(Debug)]
pub(crate) struct Ends([Option<Box<dyn End>>; ENDS.len()]);

impl Ends {
    /// Gives a function that makes the ends of a thread.
    ///
    /// # Errors
    /// [`StartError`] if what a protocol needs cannot be used.
    pub(crate) fn prepare(
        config: &GatewayConfig,
    ) -> Result<impl Fn(&GatewayConfig) -> Self + use<>, StartError> {
        let factories = ENDS.iter().map(|(_, prepare)| prepare(config));
        let factories = factories.collect::<Result<Vec<Factory>, StartError>>()?;
        Ok(move |config: &GatewayConfig| {
            Self(std::array::from_fn(|place| Some(factories[place](config))))
        })
    }
}

/// One thread at work.
#[derive(Debug)]
pub(crate) struct Work<'a> {
    pub(crate) ctx: Ctx<'a>,
    pub(crate) router: &'a mut Router,
    pub(crate) ends: &'a mut Ends,
}

impl Work<'_> {
    /// Answers an uplink.
    pub(crate) fn respond(&mut self, asker: Asker, answer: Answer) {
        let Asker { protocol, request } = asker;
        self.with(protocol, |end, work| end.respond(work, request, answer));
    }

    /// Has the end of a protocol do something; none if it is at work already.
    pub(crate) fn with<T>(
        &mut self,
        protocol: Protocol,
        act: impl FnOnce(&mut dyn End, &mut Self) -> T,
    ) -> Option<T> {
        let place = protocol as usize;
        let mut end = self.ends.0[place].take()?;
        let done = act(&mut *end, self);
        self.ends.0[place] = Some(end);
        Some(done)
    }

    pub(crate) fn each(&mut self, mut act: impl FnMut(&mut dyn End, &mut Self)) {
        for (protocol, _) in ENDS {
            self.with(*protocol, |end, work| act(end, work));
        }
    }
}
