//! One link as a state machine: dialect, session and load policy, without a socket and a clock.
//!
//! Layer 3. In the straight line this stands between the schedule and the protocol session. A
//! [`Shard`] holds the links of one core and all they share: the pool of messages on their way,
//! the agenda of what is due, the account of what the sessions did. The driver (an epoll loop, or
//! the simulator) tells it what the sockets did and when. It must never know a socket, a clock, a
//! file, or what is judged of what it tells.

mod acknowledged;
mod agenda;
mod announcing;
mod answering;
mod authenticate;
mod bodies;
mod class;
mod client;
mod commanded;
mod completing;
mod demux;
mod flight;
mod footprint;
mod handshake;
mod hello;
mod link;
mod offline;
mod outcome;
mod overheard;
mod own;
mod protocols;
mod ramp;
mod reconnect;
mod refusals;
mod render;
mod reply_paths;
mod requesting;
mod session;
mod settle;
mod shard;
mod sink;
mod slide;
mod slots;
mod sockets;
mod subscribing;
mod take;
mod token;
mod told;

pub use agenda::{Agenda, DueMessage};
pub use class::{Answer, Class, ClassStream, Kind, Policy};
pub use client::{
    Authentication, Client, ClientId, Gateway, Login, MqttSettings, Protocol, SocketUse, Will,
};
pub use demux::{Route, connection_id, route};
pub use footprint::{CLOSED_LOOP_BYTES, COAP_LINK_BYTES, LANE_BYTES, LINK_BYTES};
pub use hello::Hello;
pub use offline::Offline;
pub use overheard::Listener;
pub use protocols::Unfit;
pub use ramp::{BackOff, Ramp};
pub use requesting::Further;
pub use session::Then;
pub use shard::{LinkTally, Shard, ShardPlan};
pub use sink::Sink;
pub use sockets::Seat;
pub use token::SLOT_MAX;
