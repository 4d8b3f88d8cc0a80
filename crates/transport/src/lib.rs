//! Layers between sockets and sessions: TLS, WebSocket, both or nothing, at either end.
//!
//! Layer 5. [`layer`](muster_protocol::layer) is the seam; here is what needs more than bytes to
//! cross it: certificates, keys, the wall clock and randomness for TLS, and for DTLS ([`AwsLc`],
//! [`DtlsCertificates`]), whose sessions are of `protocol`. [`Clients`] gives the links
//! of a run their layers, [`Servers`] those of a gateway. It must never know what the bytes above
//! mean, or a socket.
//!
//! TLS is rustls on aws-lc-rs, versions 1.2 and 1.3, by its unbuffered connections: a link at rest
//! holds no buffer. Certificates and names are checked unless a caller says otherwise, and a session
//! is resumed only by the link whose it was.
//!
//! ```
//! use muster_protocol::layer::{Layer, Layers};
//! use muster_transport::{ClientSpec, Clients, Peer, ServerSpec, ServerTls, Servers, throwaway};
//!
//! let ours = throwaway(&["localhost".to_owned()])?;
//! let spec = ServerSpec { tls: Some(ServerTls::new(ours.cert, ours.key)), ..ServerSpec::default() };
//! let mut server = Servers::new(&spec)?.layer();
//!
//! let mut spec = ClientSpec { is_tls: true, ..ClientSpec::new(Peer::new("localhost", "localhost:8883")) };
//! spec.tls.ca = Some(ours.ca);
//! let mut client = Clients::new(&spec, std::iter::empty())?.layer(0).expect("it needs nothing else");
//!
//! let (mut up, mut down) = (Vec::new(), Vec::new());
//! client.open(&mut up);
//! while !(client.is_open() && server.is_open()) {
//!     let fed = server.feed(&mut up, 0, &mut down);
//!     up.drain(..fed.used);
//!     let fed = client.feed(&mut down, 0, &mut up);
//!     down.drain(..fed.used);
//! }
//! # Ok::<(), muster_transport::TransportError>(())
//! ```

mod any;
mod clients;
mod dtls;
mod throwaway;
mod tls;

pub use any::Any;
pub use clients::{ClientSpec, Clients, Peer, WebSockets};
pub use dtls::{AwsLc, DtlsCertificates, GroupSecret, RecordKey};
pub use throwaway::{Throwaway, throwaway};
pub use tls::{
    Own, PeerIdentity, Pem, ServerSpec, ServerTls, Servers, Tls, TlsClient, TlsLinks, TlsServer,
    TlsSpec, TransportError, Versions, common_name, crypto_provider, tls_failure_of, trusted,
};
