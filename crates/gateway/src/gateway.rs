//! Starting, asking and stopping a gateway.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use muster_net::{ListenError, Loop, LoopConfig, LoopError, PortUse, limits};
use muster_transport::TransportError;
use serde::{Deserialize, Serialize};

use crate::account::GatewayAccount;
use crate::config::{GatewayConfig, ManagementConfig};
use crate::end::Ends;
use crate::management::Management;
use crate::shard::Shard;
use crate::shared::Shared;

/// A running gateway; dropping it stops it.
#[derive(Debug)]
pub struct Gateway {
    addresses: ListenAddresses,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    /// Served until it is dropped.
    _management: Option<Management>,
}

/// Addresses of a gateway by protocol: `mqtt`, `coap`, `coaps`, and `management` for the management API.
/// Port 0 is a free port.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ListenAddresses(BTreeMap<String, SocketAddr>);

impl ListenAddresses {
    /// An address for MQTT alone.
    pub fn new(mqtt: SocketAddr) -> Self {
        Self::default().with("mqtt", Some(mqtt))
    }

    /// Adds the address of a protocol, if there is one.
    #[must_use]
    pub fn with(mut self, protocol: &str, address: Option<SocketAddr>) -> Self {
        self.0
            .extend(address.map(|address| (protocol.to_owned(), address)));
        self
    }

    /// The address of a protocol; none if the gateway does not serve it.
    pub fn get(&self, protocol: &str) -> Option<SocketAddr> {
        self.0.get(protocol).copied()
    }

    /// Listens at the address that an earlier thread got, else at the configured one, if there is one.
    pub(crate) fn listen<T>(
        &mut self,
        protocol: &str,
        configured: &Self,
        listen: impl FnOnce(SocketAddr) -> Result<(T, SocketAddr), ListenError>,
    ) -> Result<Option<T>, ListenError> {
        let at = self.get(protocol).or(configured.get(protocol));
        let Some((listener, bound)) = at.map(listen).transpose()? else {
            return Ok(None);
        };
        self.0.insert(protocol.to_owned(), bound);
        Ok(Some(listener))
    }
}

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

impl Gateway {
    /// Starts a gateway on new threads; it listens when this returns.
    ///
    /// # Errors
    /// [`StartError`] if the address, a loop or a thread is not to be had.
    pub fn start(config: GatewayConfig) -> Result<Self, StartError> {
        // A lower limit shows itself as connections that wait at the door.
        let _ = limits::raise_descriptors();
        let clock = config.clock();
        let ends = Ends::prepare(&config)?;
        let shared = Arc::new(Shared::new(config));
        let management = management(&shared)?;
        let api = management.as_ref().map(Management::addr);
        let mut addresses = ListenAddresses::default().with("management", api);
        let mut loops = Vec::new();
        for index in 0..shared.threads() {
            let shard = Shard::new(index, Arc::clone(&shared), ends(&shared.config));
            let packets = LoopConfig::default().with_packets_of(shared.config.max_packet());
            let mut event_loop = Loop::new(clock, &packets, shard)?;
            let (shard, io) = event_loop.parts();
            let port = match (index, shared.threads()) {
                (_, 1) => PortUse::Alone,
                (0, _) => PortUse::First,
                _ => PortUse::Further,
            };
            shard.listen(io, port, &mut addresses)?;
            shared.post(index).set_waker(io.waker());
            loops.push(event_loop);
        }
        let mut gateway = Self {
            addresses,
            shared,
            threads: Vec::new(),
            _management: management,
        };
        for event_loop in loops {
            gateway.spawn(event_loop).map_err(StartError::Thread)?;
        }
        Ok(gateway)
    }

    /// The addresses on which it listens.
    pub fn addresses(&self) -> &ListenAddresses {
        &self.addresses
    }

    /// Address on which it listens for MQTT.
    pub fn addr(&self) -> SocketAddr {
        self.addresses.0["mqtt"]
    }

    /// Account up to now. Threads count on meanwhile: ask when nothing is under way for figures
    /// that add up.
    pub fn account(&self) -> GatewayAccount {
        self.shared.account()
    }

    /// Stops all threads, closes all connections and gives the final account.
    pub fn stop(mut self) -> GatewayAccount {
        self.halt();
        self.shared.account()
    }

    fn spawn(&mut self, mut event_loop: Loop<Shard>) -> std::io::Result<()> {
        let name = format!("gateway-{}", self.threads.len());
        let thread = Builder::new().name(name).spawn(move || {
            // A loop that fails drops its connections, which is all the other side could see.
            let _ = event_loop.run();
        })?;
        self.threads.push(thread);
        Ok(())
    }

    fn halt(&mut self) {
        self.shared.stop();
        // One that stands still sees it at once.
        self.threads.iter().for_each(|it| it.thread().unpark());
        for thread in self.threads.drain(..) {
            // A thread that panicked has said so on stderr.
            let _ = thread.join();
        }
    }
}

fn management(shared: &Arc<Shared>) -> Result<Option<Management>, StartError> {
    let config = shared.config.management.as_ref();
    let started = config.map(|ManagementConfig { listen: addr, .. }| {
        let started = Management::start(*addr, Arc::clone(shared));
        started.map_err(|why| StartError::Management { addr: *addr, why })
    });
    started.transpose()
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.halt();
    }
}
