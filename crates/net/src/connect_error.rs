//! Reasons that a connection attempt cannot start.

use std::net::SocketAddr;

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
