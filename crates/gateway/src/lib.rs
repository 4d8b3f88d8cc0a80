//! The reference gateway: the platform that Muster plays by default, and the instrument that
//! Muster is tested with.
//!
//! Layer 6. It stands where the platform under test stands: devices on one side, consumers on the
//! other. It misbehaves by an exact amount ([`GatewayConfig::behaviour`]) and keeps an account of
//! what it did on raw payload bytes ([`GatewayAccount`]). It must never know Muster's message
//! ids, schedules or ledger: an instrument that shares code with what it measures proves nothing.
//!
//! ```
//! use muster_gateway::{Gateway, GatewayConfig};
//!
//! let gateway = Gateway::start(GatewayConfig::default())?;
//! assert_ne!(gateway.addr().port(), 0);
//! assert_eq!(gateway.stop().counts.received, 0);
//! # Ok::<(), muster_gateway::StartError>(())
//! ```

mod account;
mod amqp;
mod backlog;
mod board;
mod broker;
mod child;
mod client_certificates;
mod coap;
mod commands;
mod config;
mod connections;
mod end;
mod ends;
mod fault;
mod fault_plan;
mod gateway;
mod http;
mod listen_addresses;
mod lock;
mod mail;
mod management;
mod memory;
mod message;
mod mqtt;
mod outlets;
mod queries;
mod registered_devices;
mod registry;
mod requests;
mod resumable;
mod router;
mod routes;
mod secrets;
mod server;
mod shard;
mod shared;
mod side_thread;
mod start_error;
mod thread;
mod uplink;
mod waiter;
mod webhook;
mod wire;

pub use account::{GatewayAccount, GatewayCounts, Subject, payload_hash};
pub use board::TENANT_USER;
pub use child::{ChildError, ChildGateway, Listening, run_until_stopped};
pub use config::{
    Demand, GatewayConfig, GatewayDtls, GatewayTls, KnownDevice, ManagementConfig, SlowReader, User,
};
pub use gateway::Gateway;
pub use listen_addresses::ListenAddresses;
pub use management::MANAGEMENT_PATH;
pub use muster_platform::Dialect;
pub use start_error::StartError;
pub use webhook::{WebhookConfig, WebhookError};
