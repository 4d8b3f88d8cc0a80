//! Many agents as one run: this process, or worker processes of it on this host; and the line between
//! the parts of one that several hosts carry.
//!
//! Layer 8. [`Force`] is the agents, wherever they are; [`carry_out`] conducts a run with them and
//! hands back all that was recorded. It must never know how a result looks or who reads it.

mod assignment;
mod force;
mod line;
mod recent;
mod run;
mod worker;

pub use assignment::{Spread, assignments};
pub use force::{Force, ForceError};
pub use line::{Line, LineAccount, Membership, Offset};
pub use run::{Observer, Surroundings, carry_out};
