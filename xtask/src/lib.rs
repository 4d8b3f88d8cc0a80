//! The project's own rules, checked by a program: layers, purity and tidiness; its speed, measured
//! against the bare loop and published tools; its tests, against planted faults; and the commands of its documents.
//!
//! A tool outside the line: no crate depends on it. It reads the workspace (`cargo metadata`,
//! the sources, the docs) and reports every place that breaks a rule, with the remedy. The same
//! checks run as tests, so that `cargo test --workspace` enforces them; each rule has tests
//! that show it catches a violation. Only `conformance` changes files outside the
//! target folder.
//!
//! ```
//! use xtask::tidy;
//! let found = tidy::check_rust("crates/x/src/utils.rs", "//! Odds and ends.\n", false);
//! assert_eq!(found[0].rule, "banned-name");
//! ```

#![allow(
    clippy::wildcard_enum_match_arm,
    reason = "syn's enums are open, and most kinds of item are of no interest to a rule"
)]

pub mod bench;
pub mod docs;
pub mod faults;
pub mod layers;
pub mod project;
pub mod sources;
pub mod tidy;
mod violation;

pub use violation::Violation;
