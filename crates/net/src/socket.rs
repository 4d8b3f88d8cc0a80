//! The system calls that make, bind and watch sockets.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use nix::sys::socket::{SetSockOpt, setsockopt, sockopt as options};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, sockopt};

use crate::{Closed, ConnectError, ListenError};

/// Sharing of a listening port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PortUse {
    /// Nobody.
    Alone,
    /// Nobody did so far, and [`PortUse::Further`] loops of the same user may from now on: the
    /// kernel spreads connections over them (`SO_REUSEPORT`, socket(7)).
    First,
    /// The first does, or others of the same user in any order.
    Further,
}

/// Connections the kernel completes before they are accepted; it lowers this to its own bound
/// (`net.core.somaxconn`).
const BACKLOG: i32 = 65_535;

/// A socket with one peer; one of TCP has sent its SYN.
pub(crate) fn connect(
    to: SocketAddr,
    source: Option<IpAddr>,
    kind: SocketType,
) -> Result<OwnedFd, ConnectError> {
    let failed = |errno: Errno| match errno {
        // UDP's errors for "no port is left" when connecting (udp(7)), and when binding.
        Errno::AGAIN | Errno::ADDRINUSE if kind == SocketType::DGRAM => ConnectError::Ports(to),
        Errno::ADDRNOTAVAIL if kind == SocketType::STREAM => ConnectError::Ports(to),
        Errno::MFILE | Errno::NFILE => ConnectError::Descriptors,
        Errno::NETUNREACH | Errno::HOSTUNREACH => {
            ConnectError::Unreachable(to, errno.raw_os_error())
        }
        errno => ConnectError::Kernel(to, errno.raw_os_error()),
    };
    let fd = open(to, kind).map_err(failed)?;
    if let Some(source) = source {
        bind_source(&fd, source, kind).map_err(|errno| match errno {
            Errno::ADDRINUSE if kind == SocketType::DGRAM => ConnectError::Ports(to),
            errno => ConnectError::Unreachable(to, errno.raw_os_error()),
        })?;
    }
    match rustix::net::connect(&fd, &to) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(fd),
        Err(errno) => Err(failed(errno)),
    }
}

/// A TCP port is chosen by `connect`, which may then share it between destinations
/// (`IP_BIND_ADDRESS_NO_PORT`, ip(7)): else each source address would have 28,232 in all.
fn bind_source(fd: &OwnedFd, source: IpAddr, kind: SocketType) -> Result<(), Errno> {
    if source.is_ipv4() && kind == SocketType::STREAM {
        set(fd, options::IpBindAddressNoPort, &true)?;
    }
    rustix::net::bind(fd, &SocketAddr::new(source, 0))
}

/// A socket that listens (TCP) or receives from every peer (UDP), and the address it got.
pub(crate) fn bind(
    at: SocketAddr,
    port: PortUse,
    kind: SocketType,
) -> Result<(OwnedFd, SocketAddr), ListenError> {
    let begin = || {
        let fd = open(at, kind)?;
        if kind == SocketType::STREAM {
            sockopt::set_socket_reuseaddr(&fd, true)?;
        } else {
            report_errors(&fd, at)?;
        }
        if port == PortUse::Further {
            sockopt::set_socket_reuseport(&fd, true)?;
        }
        rustix::net::bind(&fd, &at)?;
        if kind == SocketType::STREAM {
            rustix::net::listen(&fd, BACKLOG)?;
        }
        // Not before: of two that may both share a port, the kernel refuses none.
        if port == PortUse::First {
            sockopt::set_socket_reuseport(&fd, true)?;
        }
        let bound = SocketAddr::try_from(rustix::net::getsockname(&fd)?)?;
        Ok((fd, bound))
    };
    begin().map_err(|errno| ListenError::new(at, errno))
}

fn open(addr: SocketAddr, kind: SocketType) -> Result<OwnedFd, Errno> {
    let family = match addr {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let fd = rustix::net::socket_with(family, kind, flags, None)?;
    if kind == SocketType::STREAM {
        // Accepted sockets inherit it, which saves a call for each.
        sockopt::set_tcp_nodelay(&fd, true)?;
    } else {
        // Each datagram then carries the number dropped before it, if any were (socket(7)).
        set(&fd, options::RxqOvfl, &1)?;
    }
    Ok(fd)
}

/// A socket that has no peer receives ICMP errors only if it asks (`IP_RECVERR`, ip(7)).
fn report_errors(fd: &OwnedFd, at: SocketAddr) -> Result<(), Errno> {
    match at {
        SocketAddr::V4(_) => set(fd, options::Ipv4RecvErr, &true),
        SocketAddr::V6(_) => set(fd, options::Ipv6RecvErr, &true),
    }
}

fn set<O: SetSockOpt>(fd: &OwnedFd, option: O, value: &O::Val) -> Result<(), Errno> {
    setsockopt(fd, option, value).map_err(|errno| Errno::from_raw_os_error(errno as i32))
}

/// Takes the ICMP errors that wait at a socket which asked for them (`MSG_ERRQUEUE`, recv(2)) and
/// returns their number.
pub(crate) fn drain_errors(fd: impl AsFd) -> u64 {
    /// More than wait at once; what is left is taken with the next.
    const DRAINED_MAX: u64 = 1_024;
    let take = || rustix::net::recv(&fd, &mut [0; 1], RecvFlags::ERRQUEUE | RecvFlags::DONTWAIT);
    (0..DRAINED_MAX).take_while(|_| take().is_ok()).count() as u64
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
