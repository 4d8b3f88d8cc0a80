//! What an agent tells the one that conducts the run.

use muster_conduct::{Afterlife, Dispatch, Pulse};
use serde::{Deserialize, Serialize};

/// One piece of news.
#[derive(Debug, Serialize, Deserialize)]
pub enum News {
    /// What the threads recorded, with the progress of all of them together; with a handover, the
    /// last one.
    Dispatch(Box<Dispatch>),
    /// How the process fares, once a second.
    Pulse(Pulse),
    /// The process has done its work.
    Ended(Box<Afterlife>),
    /// The process ended before its work was done.
    Lost(String),
}
