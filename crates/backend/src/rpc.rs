//! Commands by ThingsBoard's REST API: a thread of connections makes the calls, a thread of ours issues and counts.
//!
//! A call occupies its connection until the platform answers, so the number of calls under way is bounded. The
//! status of the answer is the delivery of the command, and the body of a two-way call is the device's reply.

mod api;
mod connection;
mod driver;
mod worker;

pub use driver::{RpcConsumer, rpc_loop};
