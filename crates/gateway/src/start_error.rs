//! Reasons for which a gateway could not be started.

use std::net::SocketAddr;

use muster_net::{ListenError, LoopError};
use muster_transport::TransportError;

/// Reasons for which a gateway could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The address is not to be had.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The management API cannot listen.
    #[error("the management API cannot listen on {addr}: {why}")]
    Management {
        /// Address on which it was to listen.
        addr: SocketAddr,
        /// The system's reason.
        why: std::io::Error,
    },
    /// An end with a thread for itself cannot start.
    #[error("{end} cannot be served on {addr}: {why}; take another address")]
    Side {
        /// Protocol that was to be served.
        end: &'static str,
        /// Address on which it was to listen.
        addr: SocketAddr,
        /// The system's reason.
        why: std::io::Error,
    },
    /// The store cannot be opened.
    #[error("the store {place} cannot be used: {why}; name another file")]
    Store {
        /// Its file.
        place: String,
        /// Reason of the database.
        why: String,
    },
    /// A certificate or key cannot be used.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// The kernel has no event loop for it.
    #[error(transparent)]
    Loop(#[from] LoopError),
    /// Without randomness no address can be proved.
    #[error("the system gives no random bytes, which DTLS needs")]
    Randomness,
    /// The kernel has no thread for it.
    #[error("the system gives no thread: {0}")]
    Thread(std::io::Error),
}
