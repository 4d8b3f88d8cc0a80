//! A device that speaks HTTP, under a virtual clock.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod calls;
mod connections;
mod faults;
mod messages;
mod world;
