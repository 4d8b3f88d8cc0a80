//! Starting, asking and stopping a gateway.

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use muster_net::{Clock, Loop, LoopConfig, PortUse, limits};
use muster_platform::Rest;

use crate::account::GatewayAccount;
use crate::amqp::{Amqp, Applications};
use crate::board::{Board, Writer};
use crate::config::{GatewayConfig, ManagementConfig};
use crate::ends;
use crate::listen_addresses::{ListenAddresses, ListenAt};
use crate::management::Management;
use crate::memory;
use crate::shard::Shard;
use crate::shared::Shared;
use crate::side_thread::SideThread;
use crate::start_error::StartError;
use crate::webhook;

/// A running gateway; dropping it stops it.
#[derive(Debug)]
pub struct Gateway {
    addresses: ListenAddresses,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    /// Served until it is dropped.
    _management: Option<Management>,
    amqp: Option<Amqp>,
    webhook: Option<SideThread>,
    /// Held until it is dropped.
    _memory: Option<SideThread>,
    /// Stores the waiting messages before it ends.
    writer: Option<Writer>,
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
        let ends = ends::prepare(&config)?;
        let board = board(&config, clock)?;
        let shared = Arc::new(Shared::new(config).with_board(board));
        let writer = Writer::start(&shared).map_err(StartError::Thread)?;
        let management = management(&shared)?;
        let api = management.as_ref().map(Management::addr);
        let amqp = amqp(&shared, clock)?;
        let webhook = webhook::start(&shared).map_err(StartError::Thread)?;
        let memory = memory::start(&shared.config.behaviour).map_err(StartError::Thread)?;
        let mut addresses = ListenAddresses::default().with("management", api);
        for (scheme, address) in amqp.iter().flat_map(Amqp::addresses) {
            addresses = addresses.with(scheme, Some(*address));
        }
        let mut loops = Vec::new();
        for index in 0..shared.threads() {
            let shard = Shard::new(index, Arc::clone(&shared), ends(&shared.config));
            let packets = LoopConfig::default().with_packets_of(shared.config.max_packet());
            let mut event_loop = Loop::new(clock, &packets, shard)?;
            let (shard, io) = event_loop.parts();
            let port = match (index, shared.threads()) {
                _ if shared.config.shares_port => PortUse::Further,
                (_, 1) => PortUse::Alone,
                (0, _) => PortUse::First,
                _ => PortUse::Further,
            };
            let mut at = ListenAt {
                addresses: &mut addresses,
                port,
            };
            shard.listen(io, &mut at)?;
            shared.post(index).set_waker(io.waker());
            loops.push(event_loop);
        }
        let mut gateway = Self {
            addresses,
            shared,
            threads: Vec::new(),
            _management: management,
            amqp,
            webhook,
            _memory: memory,
            writer,
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
        self.addresses.mqtt()
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
        self.amqp = None;
        self.webhook = None;
        self.writer = None;
    }
}

/// The store, if its API is served.
fn board(config: &GatewayConfig, clock: Clock) -> Result<Option<Board>, StartError> {
    let management = config.management.as_ref();
    let is_stored = config.dialect.server.rest == Some(Rest::Stored);
    let management = management.filter(|_| is_stored);
    management
        .map(|management| Board::open(config, management, clock))
        .transpose()
}

fn amqp(shared: &Arc<Shared>, clock: Clock) -> Result<Option<Amqp>, StartError> {
    let exchange = shared.outlets.exchange.clone();
    let applications =
        exchange.map(|exchange| Applications::new(Arc::clone(shared), exchange, clock));
    applications.map(Amqp::start).transpose()
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
