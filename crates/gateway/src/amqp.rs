//! The application's end over AMQP 1.0 (OASIS): messages surface on addresses, and commands are taken.
//!
//! A thread with a runtime speaks the protocol. The gateway's own threads leave messages at the [`Exchange`], and
//! what comes back is mail to them. A message that has to find credit at once is *offered*: its sender gets the
//! answer after a receiver took it. Any other is *stored* until a receiver has credit.

mod address;
mod connection;
mod encoding;
mod exchange;
mod sasl;
mod sending;
mod serving;

use std::net::{SocketAddr, TcpListener};

use muster_transport::{ServerSpec, Servers};
use tokio_rustls::TlsAcceptor;

pub(crate) use self::connection::Applications;
use self::connection::listen;
pub(crate) use self::exchange::{Exchange, Offer, Offered, Passage};
pub(crate) use self::sending::Sending;
use crate::config::GatewayConfig;
use crate::side_thread::SideThread;
use crate::start_error::StartError;

/// Names of its addresses: without TLS, and over it.
pub(crate) const SCHEMES: [&str; 2] = ["amqp", "amqps"];

/// The end of AMQP 1.0; dropping it stops it.
#[derive(Debug)]
pub(crate) struct Amqp {
    addresses: Vec<(&'static str, SocketAddr)>,
    /// Served until it is dropped.
    _thread: SideThread,
}

impl Amqp {
    /// Starts it; it listens when this returns.
    pub(crate) fn start(applications: Applications) -> Result<Self, StartError> {
        let config = &applications.shared.config;
        let tls = tls(config)?;
        let (mut addresses, mut listeners) = (Vec::new(), Vec::new());
        for (scheme, tls) in SCHEMES.into_iter().zip([None, tls]) {
            let Some(at) = config.listen.get(scheme) else {
                continue;
            };
            let failed = |why| StartError::Side {
                end: "AMQP",
                addr: at,
                why,
            };
            let listener = TcpListener::bind(at).map_err(failed)?;
            listener.set_nonblocking(true).map_err(failed)?;
            addresses.push((scheme, listener.local_addr().map_err(failed)?));
            listeners.push((listener, tls));
        }
        let prepare = move || {
            let mut served = Vec::new();
            for (listener, tls) in listeners {
                let listener = tokio::net::TcpListener::from_std(listener)?;
                served.push(listen(listener, tls, applications.clone()));
            }
            Ok(async move {
                for listener in served {
                    tokio::spawn(listener);
                }
            })
        };
        let thread = SideThread::start("gateway-amqp", prepare).map_err(StartError::Thread)?;
        Ok(Self {
            addresses,
            _thread: thread,
        })
    }

    pub(crate) fn addresses(&self) -> &[(&'static str, SocketAddr)] {
        &self.addresses
    }
}

/// The server's end of TLS; none if the gateway has no certificate for it.
fn tls(config: &GatewayConfig) -> Result<Option<TlsAcceptor>, StartError> {
    let servers = Servers::new(&ServerSpec {
        tls: config.amqps.as_ref().map(|tls| tls.server()),
        is_websocket: false,
    })?;
    Ok(servers.tls().map(TlsAcceptor::from))
}
