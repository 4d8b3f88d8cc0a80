//! Growth of a target: the number of instances to measure next, and the law that the capacities follow.
//!
//! Layer 3, pure. [`Growth::next`] names the next number of instances, [`Growth::record`] takes the outcome;
//! nothing else is remembered, so that a growth that was interrupted goes on once its outcomes were recorded
//! again. [`ComponentGrowth`] does the same for a target of several components, and [`Sweep`] for a matrix of settings.
//! [`Law::of`] takes the capacities and finds the gain of an instance. [`Published`] is the policy of a published
//! test, which grows load and target in turn. It must never know how instances
//! are started, how load is offered, or how a capacity is searched.
//!
//! ```
//! use muster_scale::{Growth, GrowthSpec, Measured, Next, Outcome};
//!
//! let mut growth = Growth::new(GrowthSpec { least: 1, most: 3, first: 100.0 });
//! let Next::Measure(wanted) = growth.next() else { panic!("nothing was measured yet") };
//! assert_eq!((wanted.instances, wanted.first), (1, 100.0));
//! growth.record(&Outcome::Found(Measured { lower: 480.0, middle: 490.0, upper: 505.0 }));
//! let Next::Measure(wanted) = growth.next() else { panic!("one of three is measured") };
//! assert_eq!(wanted.instances, 2);
//! ```

mod components;
mod growth;
mod law;
mod published;
mod setting;
mod sweep;
mod tries;

pub use components::{Addition, ComponentGrowth, ComponentLimits, ComponentsSpec};
pub use growth::{End, Growth, GrowthSpec, Measured, Next, Outcome, Wanted};
pub use law::{Gain, Law, Scalability};
pub use published::{
    Event, Figures, Level, Limit, LogLine, Published, PublishedSpec, Reading, Second, Seconds,
};
pub use setting::Setting;
pub use sweep::Sweep;
