//! Seam between a driver and the sockets of its links: each carrier is a type.

use std::fmt::Debug;

use muster_conduct::RecordingSink;
use muster_device::{Session, Shard, SocketSlot};
use muster_net::{Closed, Io, Key, Written};

use super::{Driver, Lines};

/// The sockets of a driver's links, by the carrier of their bytes.
pub(crate) trait Sockets<P: Session, L: Lines>: Debug + Sized {
    /// The sockets of a shard whose links are all down.
    fn new(shard: &Shard<P, RecordingSink>) -> Self;

    /// The slot of a link on a shared socket; none if it has a socket to itself.
    fn slot(_driver: &Driver<P, L, Self>, _link: u32) -> Option<SocketSlot> {
        None
    }

    /// Connects a link whose turn has come.
    fn connect(driver: &mut Driver<P, L, Self>, io: &mut Io, link: u32) {
        driver.connect_alone(io, link);
    }

    /// Does what goes before the connects of a turn.
    fn begin_turn(_driver: &mut Driver<P, L, Self>, _io: &mut Io) {}

    /// Does what is due at the end of a turn; whether more is to be done at once.
    fn end_turn(_driver: &mut Driver<P, L, Self>, _io: &mut Io) -> bool {
        false
    }

    /// Passes on an event of a shared socket.
    fn on_shared(_driver: &mut Driver<P, L, Self>, _io: &mut Io, _at: u32, _event: Event<'_>) {}

    /// Arms the timer of the socket that a link shares.
    fn arm_shared(_driver: &mut Driver<P, L, Self>, _io: &mut Io, _link: u32) {}

    /// Writes what was rendered on a link.
    fn write(driver: &mut Driver<P, L, Self>, io: &mut Io, link: u32, key: Key) -> Written;

    /// Keeps back further messages of a link until what was written last has gone out.
    fn hold(driver: &mut Driver<P, L, Self>, io: &Io, link: u32, key: Key);

    /// Ends a message that was not written, by the result; whether the next may be rendered.
    fn unwritten(driver: &mut Driver<P, L, Self>, io: &mut Io, link: u32, result: Written) -> bool;

    /// Sends control bytes of a link, if there are any.
    fn send(driver: &mut Driver<P, L, Self>, io: &mut Io, link: u32);

    /// The kernel has taken, or refused, what the link's own socket held.
    fn flushed(driver: &mut Driver<P, L, Self>, io: &mut Io, link: u32, key: Key);

    /// Sends the goodbye of a link and closes its socket.
    fn close(driver: &mut Driver<P, L, Self>, io: &mut Io, link: u32, key: Key);

    /// Drops the socket of a link at once.
    fn reset(driver: &mut Driver<P, L, Self>, io: &mut Io, link: u32, key: Key);

    /// Drops what is kept of a link that is down.
    fn forget(driver: &mut Driver<P, L, Self>, link: u32);

    /// Sends what was gathered, before the links end.
    fn send_all(_driver: &mut Driver<P, L, Self>, _io: &mut Io) {}

    /// Closes shared sockets, after the goodbyes of their links.
    fn close_all(_driver: &mut Driver<P, L, Self>, _io: &mut Io) {}
}

/// Something that happened to a shared socket.
#[derive(Debug)]
pub(crate) enum Event<'a> {
    Opened,
    Received(&'a mut [u8]),
    Flushed,
    Closed(Closed),
    TimeOut,
}
