//! Sources of the layers of links that connect.

use std::sync::Arc;

use muster_model::mix;
use muster_protocol::layer::{LayerError, Layers, Plain, Stack};
use muster_protocol::websocket::{Fault, Upgrade, WebSocket};

use rustls::client::ClientConfig;
use rustls::pki_types::ServerName;

use crate::Any;
use crate::tls::{Own, TlsClient, TlsLinks, TlsSpec, TransportError};

/// Inputs of the layers of links.
#[derive(Debug, Clone)]
pub struct ClientSpec {
    /// True if there is TLS.
    pub is_tls: bool,
    /// True if there is WebSocket.
    pub is_websocket: bool,
    /// Peers of the links, never empty: link n connects to peer n modulo their number.
    pub peers: Vec<Peer>,
    /// Settings of TLS.
    pub tls: TlsSpec,
    /// Reproduces the masking keys of WebSocket.
    pub seed: u64,
}

/// The peer of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// The name that its certificate must have.
    pub name: String,
    /// Its host and port, as a URL writes them.
    pub authority: String,
    /// The path of its WebSocket service.
    pub path: String,
}

impl Peer {
    /// A peer with the usual path.
    pub fn new(name: &str, authority: &str) -> Self {
        Self {
            name: name.to_owned(),
            authority: authority.to_owned(),
            path: "/mqtt".to_owned(),
        }
    }
}

impl ClientSpec {
    /// Links to one peer, without TLS and WebSocket.
    pub fn new(peer: Peer) -> Self {
        Self {
            is_tls: false,
            is_websocket: false,
            peers: vec![peer],
            tls: TlsSpec::default(),
            seed: 0,
        }
    }
}

/// Sources of the layers of links, by their kind.
#[derive(Debug)]
pub enum Clients {
    /// None.
    Plain(Plain),
    /// WebSocket.
    WebSocket(WebSockets),
    /// TLS.
    Tls(TlsLinks),
    /// WebSocket over TLS.
    Both(Stack<WebSockets, TlsLinks>),
}

impl Clients {
    /// Returns the source of layers; `own` are the links with a certificate, by their numbers.
    ///
    /// # Errors
    /// [`TransportError`], which names what cannot be used.
    pub fn new(
        spec: &ClientSpec,
        own: impl IntoIterator<Item = (u32, Own)>,
    ) -> Result<Self, TransportError> {
        let websockets = || WebSockets::new(spec);
        let tls = |own| TlsLinks::new(&spec.tls, &spec.peers, own);
        Ok(match (spec.is_websocket, spec.is_tls) {
            (false, false) => Self::Plain(Plain),
            (true, false) => Self::WebSocket(websockets()?),
            (false, true) => Self::Tls(tls(own.into_iter().collect())?),
            (true, true) => {
                let tls = tls(own.into_iter().collect())?;
                Self::Both(Stack {
                    upper: websockets()?,
                    lower: tls,
                })
            }
        })
    }
}

impl Clients {
    /// Returns the settings of one link for a library that speaks TLS over its own sockets, and the name that the
    /// peer's certificate must have; none without TLS, or where WebSocket is above it.
    pub fn tls(&mut self, link: u32) -> Option<(Arc<ClientConfig>, ServerName<'static>)> {
        match self {
            Self::Tls(links) => Some(links.settings(link)),
            Self::Plain(_) | Self::WebSocket(_) | Self::Both(_) => None,
        }
    }
}

impl Layers for Clients {
    type Layer = Any<TlsClient>;

    fn layer(&mut self, link: u32) -> Result<Self::Layer, LayerError> {
        Ok(match self {
            Self::Plain(plain) => Any::Plain(*plain),
            Self::WebSocket(layers) => Any::WebSocket(layers.layer(link)?),
            Self::Tls(layers) => Any::Tls(layers.layer(link)?),
            Self::Both(layers) => Any::Both(layers.layer(link)?),
        })
    }
}

/// Source of the WebSocket ends of links.
#[derive(Debug)]
pub struct WebSockets {
    peers: Vec<Peer>,
    seed: u64,
    connections: u64,
}

impl WebSockets {
    fn new(spec: &ClientSpec) -> Result<Self, TransportError> {
        for peer in &spec.peers {
            Upgrade::new(&peer.authority, &peer.path).check()?;
        }
        Ok(Self {
            peers: spec.peers.clone(),
            seed: spec.seed,
            connections: 0,
        })
    }
}

impl Layers for WebSockets {
    type Layer = WebSocket;

    fn layer(&mut self, link: u32) -> Result<WebSocket, LayerError> {
        let peer = &self.peers[link as usize % self.peers.len()];
        self.connections += 1;
        let seed = mix(mix(self.seed, u64::from(link)), self.connections);
        // What cannot be written was found when this was made.
        WebSocket::client(&Upgrade::new(&peer.authority, &peer.path), seed)
            .map_err(|_| Fault::Head.into())
    }
}
