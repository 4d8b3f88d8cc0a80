//! One link as a state machine: dialect, session and load policy, without a socket and a clock.
//!
//! Layer 4. In the straight line this stands between the schedule and the protocol session. A
//! [`Shard`] holds the links of one core and all they share: the pool of messages on their way,
//! the agenda of what is due, the account of what the sessions did. The driver (an epoll loop, or
//! the simulator) reports to it what the sockets did and when. It must never know a socket, a clock,
//! a file, or what is judged of its reports.

mod acknowledged;
mod agenda;
mod class;
mod client;
mod connects;
mod demux;
mod fleets;
mod footprint;
mod generator_delay;
mod links;
mod messages;
mod ramp;
mod recording;
mod refusals;
mod reply_paths;
mod session;
mod shard;
mod sink;
mod sliding_timeouts;
mod slots;
mod timeouts;
mod token;
mod traffic;

pub use agenda::{Agenda, DueMessage};
pub use class::{Answer, Class, ClassStream, Kind, Qos};
pub use client::{Client, Gateway, Server};
pub use connects::Connects;
pub use demux::{Route, connection_id, route};
pub use fleets::{FleetLinks, Fleets};
pub use footprint::{
    CLOSED_LOOP_BYTES, COAP_LINK_BYTES, HTTP_LINK_BYTES, LINK_BYTES, STREAM_QUEUE_BYTES,
};
pub use links::{LinkCounts, Links};
pub use ramp::Ramp;
pub use recording::Recording;
pub use refusals::{Note, Refusals};
pub use session::coap::Coap;
pub use session::http::Http;
pub use session::mqtt::{Hello, Mqtt};
pub use session::{Further, Session, SharedSockets, SocketSlot, Transport};
pub use shard::{Shard, ShardPlan, Then};
pub use sink::Sink;
pub use token::SLOT_MAX;
pub use traffic::{Listener, Traffic};
