//! The result of a run: all that it left behind, and the report and verdict on it.
//!
//! Layer 6. An [`Archive`] is a run as it is kept: header, windows, identity sets, events and the
//! last record. Its report is judged by the rules in its header, so that a run that has just ended,
//! one that was killed and the merged parts of one are all read alike. [`View`] says how a run
//! stands meanwhile. It must never know where the bytes of an archive are kept.

mod archive;
mod capacity;
pub mod certificate;
pub mod compare;
mod counters;
mod events;
mod gaps;
mod hints;
mod judged;
mod live;
mod published;
mod published_growth;
mod replay;
pub mod series;
mod server_count;
mod so_far;
mod usage;

pub use archive::{Archive, Counted, Header, Note, NotedTarget, encoded, sha256};
pub use capacity::{
    CapacitySearch, Judgement, SearchBegun, SetStanding, search_length, standing_after,
};
pub use counters::NotedCounter;
pub use events::{
    CLOCKS_APART, COUNTERS_UNREAD, METRICS_LOST, MONITOR_ENDED, MONITOR_UNREAD, event_of,
    event_of_hook,
};
pub use live::{
    Fixed, Health, LAG_S, Live, LiveClock, LiveLinks, LiveMessages, LiveRates, LiveUse, Quantiles,
    View,
};
pub use published_growth::PublishedGrowth;
pub use replay::{Replayed, replay};
pub use usage::{UsageNote, UsageSample};
