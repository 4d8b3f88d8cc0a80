//! The settings of a fleet whose links speak CoAP.

use std::sync::Arc;

use muster_protocol::coap;

/// The CoAP of a fleet's links.
#[derive(Debug)]
pub struct CoapSettings {
    /// One value for all sessions.
    pub client: Arc<coap::ClientSettings>,
    /// The use of UDP sockets.
    pub sockets: SocketUse,
}

/// The number of links on a UDP socket, and how they are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SocketUse {
    /// One link's own.
    Own,
    /// Several links that are one endpoint to the peer: message ids and tokens belong to the socket,
    /// and tell the links apart.
    SharedEndpoint {
        /// So many at the most.
        links: u32,
    },
    /// Several links, each an endpoint of its own: the layer between tells them apart.
    SharedPort {
        /// So many at the most.
        links: u32,
    },
}
