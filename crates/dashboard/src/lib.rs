//! A running load test in a terminal: a live screen, or a line every five seconds.
//!
//! Layer 8, outside the straight line: it receives the state of the run as a [`muster_result::Live`] value and
//! draws it. It must never know where the figures come from, and nothing here changes the run.
//!
//! ```
//! use muster_dashboard::Plain;
//! use muster_result::Live;
//!
//! let mut plain = Plain::default();
//! let live = Live { name: "first".to_owned(), ..Live::default() };
//! assert!(plain.line(&live).is_some_and(|line| line.contains("connect")));
//! assert_eq!(plain.line(&live), None); // nothing new for the next five seconds
//! ```

mod figure;
mod plain;
#[cfg(test)]
mod sample;
mod screen;
mod terminal;

pub use plain::{Brief, PLAIN_EVERY, Plain};
pub use screen::Screen;
pub use terminal::{Dashboard, Request};
