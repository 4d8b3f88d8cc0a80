//! Many agents as one run: this process, or worker processes of it on this host; and the control channel between
//! the parts of one that several hosts carry.
//!
//! Layer 8. [`Agents`] is the agents, wherever they are; [`carry_out`] conducts a run with them and
//! hands back all that was recorded. It must never know how a result looks or who reads it.

mod agent_states;
mod agents;
mod assignment;
mod control_channel;
mod latency_watch;
mod recent;
mod run;
mod worker;

pub use agents::{Agents, AgentsError};
pub use assignment::{Spread, assignments};
pub use control_channel::{ChannelAccount, ControlChannel, Membership, Offset};
pub use run::{Observer, Surroundings, carry_out};
