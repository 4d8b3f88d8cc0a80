//! How the links of a fleet speak CoAP.

use std::sync::Arc;

use muster_protocol::coap;

/// The CoAP of a fleet's links.
#[derive(Debug)]
pub struct CoapSettings {
    /// One value for all sessions.
    pub client: Arc<coap::ClientSettings>,
    /// Whose the UDP sockets are.
    pub sockets: SocketUse,
}

/// Whose a UDP socket is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SocketUse {
    /// One link's own.
    Own,
    /// That of several links which are one endpoint to the peer: message ids and tokens are the
    /// socket's, and tell the links apart.
    SharedEndpoint {
        /// So many at the most.
        links: u32,
    },
    /// That of several links, each an endpoint of its own: what lies between tells them apart.
    SharedPort {
        /// So many at the most.
        links: u32,
    },
}
