//! News from an agent to the one that conducts the run.

use muster_conduct::{Afterlife, Dispatch, ProcessSample};
use serde::{Deserialize, Serialize};

/// One piece of news.
#[derive(Debug, Serialize, Deserialize)]
pub enum News {
    /// Records of the threads, with the progress of all of them together; with a handover, the
    /// last one.
    Dispatch(Box<Dispatch>),
    /// Health of the process, once a second.
    Sample(ProcessSample),
    /// The process has done its work.
    Ended(Box<Afterlife>),
    /// The process ended before its work was done.
    Lost(String),
}
