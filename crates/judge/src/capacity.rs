//! The search for a target's capacity: the highest rate at which a set of service levels holds.
//!
//! A search is a list of steps, each a rate held for a time and judged as a run is judged. [`Search::next`]
//! names the next step, [`Search::record`] takes its outcome; nothing else is remembered, so that a search
//! that was interrupted goes on once its outcomes were recorded again.
//!
//! Three phases follow each other. The *ramp* multiplies the rate until a step fails, in short steps, and so
//! overloads the target once and briefly. The *narrowing* asks at the middle of what is known, in longer
//! steps the closer it comes. The *confirmation* holds the lower end of the interval three times and its
//! upper end once; an outcome that contradicts the interval moves it, and is never thrown away.

mod belief;
mod search;

pub use self::belief::Interval;
pub use self::search::{
    Capacity, Next, Outcome, Phase, Search, SearchEnd, SearchError, SearchSpec, Step,
};
