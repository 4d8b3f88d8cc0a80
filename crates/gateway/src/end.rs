//! The seam between the gateway and the protocols of its devices: one [`End`] each, in one folder each.

use std::any::Any;
use std::fmt::Debug;
use std::net::SocketAddr;

use muster_model::mix;
use muster_net::{Key, ListenerId};
use muster_platform::Protocol;

use crate::commands::{Handed, Outgoing, Undelivered};
use crate::config::GatewayConfig;
use crate::listen_addresses::ListenAt;
use crate::router::Router;
use crate::start_error::StartError;
use crate::thread::Ctx;
use crate::uplink::{Answer, Asker, Request, Timer};
use crate::waiter::QueryRef;

pub(crate) type Factory = Box<dyn Fn(&GatewayConfig) -> Box<dyn End>>;

/// One datagram that came.
#[derive(Debug)]
pub(crate) struct Datagram<'a> {
    pub(crate) socket: Key,
    pub(crate) from: SocketAddr,
    pub(crate) bytes: &'a mut [u8],
}

/// The server end of one protocol, in one thread.
pub(crate) trait End: Any + Debug + Send {
    /// Listens at its configured addresses, or at those that an earlier thread got.
    ///
    /// # Errors
    /// [`StartError`] if an address is not to be had.
    fn listen(&mut self, ctx: &mut Ctx<'_>, at: &mut ListenAt<'_>) -> Result<(), StartError>;

    fn accepted(&mut self, _work: &mut Work<'_>, _key: Key, _at: ListenerId) {}

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

    /// Puts a command into the answer to a request that waits for one.
    fn hand_over(&mut self, _ctx: &mut Ctx<'_>, _to: QueryRef, _command: &Outgoing<'_>) -> Handed {
        Err(Undelivered::GONE)
    }

    /// Closes a part of the device links, chosen by the seed.
    fn close_share(&mut self, work: &mut Work<'_>, seed: u64, share: f64);

    /// Ends a turn of the loop; `is_last` is true when the gateway stops.
    fn turn(&mut self, work: &mut Work<'_>, is_last: bool);
}

/// A part of the links of an end, chosen by the seed; `number` identifies each.
pub(crate) fn choose<T>(
    mut of: Vec<T>,
    seed: u64,
    share: f64,
    number: impl Fn(&T) -> u64,
) -> Vec<T> {
    of.sort_by_key(|link| mix(seed, number(link)));
    of.truncate((of.len() as f64 * share).round() as usize);
    of
}

#[derive(Debug)]
pub(crate) struct Ends(Vec<Option<Box<dyn End>>>);

impl Ends {
    /// The ends of all protocols, in the order of [`Protocol`].
    pub(crate) fn new(ends: impl Iterator<Item = Box<dyn End>>) -> Self {
        Self(ends.map(Some).collect())
    }
}

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
        self.at(protocol as usize, act)
    }

    fn at<T>(&mut self, place: usize, act: impl FnOnce(&mut dyn End, &mut Self) -> T) -> Option<T> {
        let mut end = self.ends.0[place].take()?;
        let done = act(&mut *end, self);
        self.ends.0[place] = Some(end);
        Some(done)
    }

    pub(crate) fn each(&mut self, mut act: impl FnMut(&mut dyn End, &mut Self)) {
        for place in 0..self.ends.0.len() {
            self.at(place, &mut act);
        }
    }
}
