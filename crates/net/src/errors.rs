//! Errors of a loop and of making its sockets.

use std::net::SocketAddr;

use rustix::io::Errno;

/// Error of a loop that cannot start or continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the event loop cannot {operation} (errno {errno})")]
pub struct LoopError {
    /// The operation that failed.
    pub operation: &'static str,
    /// The kernel's error.
    pub errno: i32,
}

impl LoopError {
    pub(crate) fn new(operation: &'static str, errno: Errno) -> Self {
        let errno = errno.raw_os_error();
        Self { operation, errno }
    }
}

/// Reasons that a connection attempt cannot start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// An own limit: no descriptor is left (EMFILE, ENFILE) or `connections_max` is reached.
    #[error("no descriptor is left for a connection; raise the limit or spread over processes")]
    Descriptors,
    /// An own limit: no ephemeral port is left for this source and destination.
    #[error("no ephemeral port is left towards {0}; spread over more source addresses")]
    Ports(SocketAddr),
    /// No route to the address, or the source address is not ours; with the errno.
    #[error("{0} cannot be reached from here (errno {1}); check the route and the source address")]
    Unreachable(SocketAddr, i32),
    /// The kernel refused for another reason, with its errno.
    #[error("the kernel refused to connect to {0} (errno {1})")]
    Kernel(SocketAddr, i32),
}

/// Error of opening a listening socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("cannot listen on {addr}: {}", self.reason())]
pub struct ListenError {
    /// The address.
    pub addr: SocketAddr,
    /// The kernel's error.
    pub errno: i32,
}

impl ListenError {
    pub(crate) fn new(addr: SocketAddr, errno: Errno) -> Self {
        let errno = errno.raw_os_error();
        Self { addr, errno }
    }

    fn reason(self) -> String {
        match Errno::from_raw_os_error(self.errno) {
            Errno::ADDRINUSE => "another program listens there, perhaps another gateway; stop it \
                                 or choose a free port"
                .to_owned(),
            Errno::ACCESS => "this user may not; choose a port from 1,024 on".to_owned(),
            Errno::ADDRNOTAVAIL => {
                "this host has no such address; choose an address that it has".to_owned()
            }
            _ => format!("errno {}; choose a free port of this host", self.errno),
        }
    }
}
