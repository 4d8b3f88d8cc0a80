//! The system calls that make, bind and watch TCP sockets, and what is common to all.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use nix::sys::socket::{setsockopt, sockopt::IpBindAddressNoPort};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};

use crate::{Closed, ConnectError, ListenError, PortUse};

/// Connections the kernel completes before they are accepted; it lowers this to its own bound
/// (`net.core.somaxconn`).
const BACKLOG: i32 = 65_535;

/// A socket that has sent its SYN.
pub(crate) fn connect(to: SocketAddr, source: Option<IpAddr>) -> Result<OwnedFd, ConnectError> {
    let failed = |errno: Errno| match errno {
        Errno::ADDRNOTAVAIL => ConnectError::Ports(to),
        errno => refusal(to, errno),
    };
    let fd = open(to, SocketType::STREAM).map_err(failed)?;
    sockopt::set_tcp_nodelay(&fd, true).map_err(failed)?;
    if let Some(source) = source {
        bind_source(&fd, source)
            .map_err(|errno| ConnectError::Unreachable(to, errno.raw_os_error()))?;
    }
    match rustix::net::connect(&fd, &to) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(fd),
        Err(errno) => Err(failed(errno)),
    }
}

/// Returns why no connection can start, other than for want of ports.
pub(crate) fn refusal(to: SocketAddr, errno: Errno) -> ConnectError {
    match errno {
        Errno::MFILE | Errno::NFILE => ConnectError::Descriptors,
        Errno::NETUNREACH | Errno::HOSTUNREACH => {
            ConnectError::Unreachable(to, errno.raw_os_error())
        }
        errno => ConnectError::Kernel(to, errno.raw_os_error()),
    }
}

/// The port is chosen by `connect`, which may then share it between destinations
/// (`IP_BIND_ADDRESS_NO_PORT`, ip(7)): else each source address would have 28,232 in all.
fn bind_source(fd: &OwnedFd, source: IpAddr) -> Result<(), Errno> {
    if source.is_ipv4() {
        setsockopt(fd, IpBindAddressNoPort, &true)
            .map_err(|errno| Errno::from_raw_os_error(errno as i32))?;
    }
    rustix::net::bind(fd, &SocketAddr::new(source, 0))
}

/// A listening socket, and the address it got.
pub(crate) fn listen(at: SocketAddr, port: PortUse) -> Result<(OwnedFd, SocketAddr), ListenError> {
    let begin = || {
        let fd = open(at, SocketType::STREAM)?;
        sockopt::set_socket_reuseaddr(&fd, true)?;
        if port == PortUse::Further {
            sockopt::set_socket_reuseport(&fd, true)?;
        }
        // Accepted sockets inherit it, which saves a call for each.
        sockopt::set_tcp_nodelay(&fd, true)?;
        rustix::net::bind(&fd, &at)?;
        rustix::net::listen(&fd, BACKLOG)?;
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

/// Watches a connection, once for its whole life.
pub(crate) fn watch_connection(
    epoll: &OwnedFd,
    fd: impl AsFd,
    token: u64,
) -> rustix::io::Result<()> {
    let events = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
    epoll::add(epoll, fd, EventData::new_u64(token), events)
}

/// Closing with this set sends RST and drops what was not sent.
pub(crate) fn arm_reset(fd: impl AsFd) {
    // A socket that refuses is gone already, which is what a reset is for.
    let _ = sockopt::set_socket_linger(fd, Some(Duration::ZERO));
}

/// Returns why the handshake failed.
pub(crate) fn handshake_failure(errno: Errno) -> Closed {
    match errno {
        Errno::CONNREFUSED => Closed::Refused,
        Errno::NETUNREACH | Errno::HOSTUNREACH => Closed::Unreachable,
        errno => failure(errno),
    }
}

/// Returns why an established connection ended.
pub(crate) fn failure(errno: Errno) -> Closed {
    match errno {
        Errno::CONNRESET | Errno::PIPE => Closed::Reset,
        Errno::TIMEDOUT => Closed::TimedOut,
        errno => Closed::Network(errno.raw_os_error()),
    }
}

pub(crate) fn open(addr: SocketAddr, kind: SocketType) -> Result<OwnedFd, Errno> {
    let family = if addr.is_ipv4() {
        AddressFamily::INET
    } else {
        AddressFamily::INET6
    };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    rustix::net::socket_with(family, kind, flags, None)
}
