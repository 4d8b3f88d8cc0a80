//! The search for a target's capacity: the highest rate at which a set of service levels holds.
//!
//! A search is a list of steps, each a rate held for a time and judged as a run is judged. [`Search::next`]
//! names the next step, [`Search::record`] takes its outcome. The next step is a function of the outcomes so
//! far. An interrupted search goes on once its outcomes were recorded again.
//!
//! Three phases follow each other. The *ramp* multiplies the rate until a step fails, in short steps, so that the
//! first overload is brief. The *narrowing* asks close to the middle of the interval, below and above it in turn, and
//! uses how many messages of each step were bad. The *confirmation* holds the lower end of the interval three times
//! and its upper end once. An outcome that contradicts the interval moves it.
//!
//! Several sets of service levels have a search each, and share the steps ([`JointSearch`]).
//!
//! The method, its sources and its measured errors: docs/capacity-search.md.

mod answer;
mod belief;
mod confirming;
mod episodes;
mod fair_share;
mod held;
mod joint;
mod jump;
mod margin;
mod search;
mod spec;

pub use self::answer::{Capacity, Next, Outcome, Phase, SearchEnd, Step, Tried};
pub use self::belief::Interval;
pub use self::fair_share::idle_address;
pub use self::joint::{JointSearch, Turn};
pub use self::margin::{Batch, Margin, Observed};
pub use self::search::{Contradiction, Search};
pub use self::spec::{SearchError, SearchSpec};
