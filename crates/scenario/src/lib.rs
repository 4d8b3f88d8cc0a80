//! The scenario: from a file that people write to a [`muster_plan::Plan`] that can run.
//!
//! Layer 4, the first step of the straight line: scenario file -> Plan -> Schedule. It must never
//! know a socket, a clock, a file or the environment: the text, the overrides and a [`Reader`]
//! for the files and variables that the text names are given by the caller.
//!
//! ```
//! use muster_scenario::{NoFiles, Overrides, Source, parse};
//!
//! let text = "name: first\nfleet:\n  - count: 200\n    streams: [ { rate: 1000/s } ]\n";
//! let mut overrides = Overrides::new();
//! overrides.add("fleet.count=500")?;
//! let plan = parse(Source { name: "first.yaml", text }, &overrides, &NoFiles)?;
//! assert_eq!(plan.devices(), 500);
//!
//! let text = "name: first\nflet: []\n";
//! let problems = parse(Source { name: "first.yaml", text }, &Overrides::new(), &NoFiles);
//! assert!(problems.unwrap_err().to_string().contains("did you mean `fleet`?"));
//! # Ok::<(), muster_scenario::Problems>(())
//! ```

mod build;
mod check;
mod defaults;
mod endpoint;
mod environment;
mod feasibility;
mod language;
mod nearest;
mod overrides;
mod parse;
mod problem;
mod reader;
mod resolved;
mod schema;
mod source;
mod tree;
mod units;
mod view;
mod web;

pub use feasibility::{
    BASE_BYTES, DTLS_BYTES_PER_LINK, KERNEL_BYTES_PER_SOCKET, LEDGER_BYTES_PER_STREAM, LONGEST_RUN,
    MemoryNeed, Needs, OWN_DESCRIPTORS, PortNeed, TLS_BYTES_PER_LINK, USER_BYTES_PER_LINK,
    WEBSOCKET_BYTES_PER_LINK, needs, peaks,
};
pub use nearest::nearest;
pub use overrides::Overrides;
pub use parse::{Source, not_yet, parse};
pub use problem::Problems;
pub use reader::{NoFiles, Reader};
pub use schema::json_schema;
pub use units::{length_of_time, rate_of_events};
