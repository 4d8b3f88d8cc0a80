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

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use muster_net::Clock;

use self::connection::{Applications, listen};
pub(crate) use self::exchange::{Exchange, Offer, Offered, Passage};
pub(crate) use self::sending::Sending;
use crate::shared::Shared;
use crate::side_thread::SideThread;

/// The end of AMQP 1.0; dropping it stops it.
#[derive(Debug)]
pub(crate) struct Amqp {
    addr: SocketAddr,
    /// Served until it is dropped.
    _thread: SideThread,
}

impl Amqp {
    /// Starts it; it listens when this returns.
    pub(crate) fn start(
        at: SocketAddr,
        applications: (Arc<Shared>, Arc<Exchange>, Clock),
    ) -> io::Result<Self> {
        let (shared, exchange, clock) = applications;
        let listener = TcpListener::bind(at)?;
        listener.set_nonblocking(true)?;
        let addr = listener.local_addr()?;
        let thread = SideThread::start("gateway-amqp", move || {
            let listener = tokio::net::TcpListener::from_std(listener)?;
            let applications = Applications {
                shared,
                exchange,
                clock,
            };
            Ok(listen(listener, applications))
        })?;
        Ok(Self {
            addr,
            _thread: thread,
        })
    }

    pub(crate) const fn addr(&self) -> SocketAddr {
        self.addr
    }
}
