//! UDP: the system calls that make its sockets, and batches of datagrams.

mod address;
mod batch;
mod inbox;
mod outbox;

use std::net::{IpAddr, SocketAddr};

use nix::sys::socket::{setsockopt, sockopt as options};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SocketType, sockopt};

use crate::{ConnectError, ListenError, PortUse, socket};

pub(crate) use batch::{BATCH_MAX, dropped, send_many};
pub(crate) use inbox::Inbox;
pub(crate) use outbox::{UNMARKED, entries, push};

/// A socket that hears one peer only.
pub(crate) fn connect(to: SocketAddr, source: Option<IpAddr>) -> Result<OwnedFd, ConnectError> {
    let failed = |errno: Errno| match errno {
        // UDP's word for "no port is left" when connecting (udp(7)), and when binding.
        Errno::AGAIN | Errno::ADDRINUSE => ConnectError::Ports(to),
        errno => socket::refusal(to, errno),
    };
    let fd = open(to).map_err(failed)?;
    if let Some(source) = source {
        rustix::net::bind(&fd, &SocketAddr::new(source, 0)).map_err(|errno| match errno {
            Errno::ADDRINUSE => ConnectError::Ports(to),
            errno => ConnectError::Unreachable(to, errno.raw_os_error()),
        })?;
    }
    rustix::net::connect(&fd, &to).map_err(failed)?;
    Ok(fd)
}

/// A socket that hears everybody, and the address it got.
pub(crate) fn bind(at: SocketAddr, port: PortUse) -> Result<(OwnedFd, SocketAddr), ListenError> {
    let begin = || {
        let fd = open(at)?;
        tell_errors(&fd, at)?;
        if port == PortUse::Further {
            sockopt::set_socket_reuseport(&fd, true)?;
        }
        rustix::net::bind(&fd, &at)?;
        // Not before: of two that may both share a port, the kernel refuses none.
        if port == PortUse::First {
            sockopt::set_socket_reuseport(&fd, true)?;
        }
        let bound = SocketAddr::try_from(rustix::net::getsockname(&fd)?)?;
        Ok((fd, bound))
    };
    begin().map_err(|errno: Errno| ListenError {
        addr: at,
        errno: errno.raw_os_error(),
    })
}

/// Watches a socket for input, once.
pub(crate) fn watch(epoll: &OwnedFd, fd: impl AsFd, token: u64) -> rustix::io::Result<()> {
    let events = EventFlags::IN | EventFlags::ET;
    epoll::add(epoll, fd, EventData::new_u64(token), events)
}

/// Watches it for room too, or no more: the kernel tells of room after every datagram that left, so
/// it is asked only while there is none.
pub(crate) fn watch_room(
    epoll: &OwnedFd,
    fd: impl AsFd,
    token: u64,
    wants_room: bool,
) -> rustix::io::Result<()> {
    let mut events = EventFlags::IN | EventFlags::ET;
    events.set(EventFlags::OUT, wants_room);
    epoll::modify(epoll, fd, EventData::new_u64(token), events)
}

/// A socket that has no peer hears of ICMP errors only if it asks (`IP_RECVERR`, ip(7)).
fn tell_errors(fd: &OwnedFd, at: SocketAddr) -> Result<(), Errno> {
    let asked = match at {
        SocketAddr::V4(_) => setsockopt(fd, options::Ipv4RecvErr, &true),
        SocketAddr::V6(_) => setsockopt(fd, options::Ipv6RecvErr, &true),
    };
    asked.map_err(|errno| Errno::from_raw_os_error(errno as i32))
}

/// Takes the ICMP errors that wait at a socket which asked for them (`MSG_ERRQUEUE`, recv(2)): how
/// many they were.
pub(crate) fn drain_errors(fd: impl AsFd) -> u64 {
    /// More than wait at once; what is left is taken with the next.
    const DRAINED_MAX: u64 = 1_024;
    let take = || rustix::net::recv(&fd, &mut [0; 1], RecvFlags::ERRQUEUE | RecvFlags::DONTWAIT);
    (0..DRAINED_MAX).take_while(|_| take().is_ok()).count() as u64
}

fn open(addr: SocketAddr) -> Result<OwnedFd, Errno> {
    let fd = socket::open(addr, SocketType::DGRAM)?;
    // Each datagram then says how many were dropped before it, if any were (socket(7)).
    setsockopt(&fd, options::RxqOvfl, &1)
        .map_err(|errno| Errno::from_raw_os_error(errno as i32))?;
    Ok(fd)
}
