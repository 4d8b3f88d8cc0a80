//! One generator process: the plan, its shards and its consumers, as a stream of news.
//!
//! Layer 7. An [`Agent`] starts one thread for each group of shards, and threads for its consumers, passes
//! orders on, and reports their work and the health of the process. [`serve`] is the same over
//! a pair of pipes, for a worker process. It must never know another agent, or what is judged.

mod agent;
mod assignment;
mod consuming;
mod credential_faults;
mod facts;
mod frames;
mod layers;
mod news;
mod renewing;
mod worker;

pub use agent::{Agent, AgentError, Writers};
pub use assignment::Assignment;
pub use consuming::check_consumers;
pub use credential_faults::CredentialFaults;
pub use facts::{FactsError, FactsLog};
pub use frames::{FrameError, read_frame, write_frame};
pub use layers::{LayersError, link_drivers};
pub use news::News;
pub use worker::serve;
