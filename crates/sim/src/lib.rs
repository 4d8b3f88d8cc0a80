//! The whole line under a virtual clock: the same devices and the same run, without a socket.
//!
//! A [`World`] drives the state machines that a real run drives ([`muster_device::Shard`] and
//! [`muster_conduct::Conductor`]) against a model platform, and jumps from one wake-up to the
//! next, so that a minute of a run takes milliseconds and every run of one seed is the same. The
//! platform is made of the server ends of `muster_protocol` and misbehaves as its [`Behaviour`]
//! says and counts its actions in an [`Account`]. It must never know a real clock, a
//! socket or a thread, and it decides nothing that a real run does not decide.
//!
//! ```
//! use muster_scenario::{NoFiles, Overrides, Source, parse};
//! use muster_sim::{Behaviour, World};
//!
//! let text = "
//! name: small
//! fleet: [{ name: meters, count: 5, streams: [{ name: r, rate: 50/s, qos: 1, payload: { size: 64 } }] }]
//! phases: { warm-up: 1s, measure: 2s, settle: { at-most: 20s, quiet: 500ms } }
//! ";
//! let source = Source { name: "small.yaml", text };
//! let plan = parse(source, &Overrides::default(), &NoFiles).expect("the scenario is right");
//! let run = World::new(plan, Behaviour::default(), 1)?.run()?;
//! assert_eq!(run.summary.residue, Some(0));
//! assert_eq!(run.summary.run.uplink.accepted, 150);
//! # Ok::<(), muster_sim::SimError>(())
//! ```

mod account;
mod application;
mod behaviour;
mod commanding;
mod completions;
mod consumer;
mod mail;
mod platform;
mod queue;
mod routing;
mod stall;
mod whereabouts;
mod wire;
mod witness;
mod world;

pub use account::{Account, CommandAccount, Delivered};
pub use behaviour::{Behaviour, CommandWays, Incident, What};
pub use stall::{Stall, Whose, Why};
pub use witness::{CommandFinals, Finals};
pub use world::{Run, SimError, World};
