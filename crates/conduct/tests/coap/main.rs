//! A device that speaks CoAP, under a virtual clock.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod commanding;
mod commands;
mod gateways;
mod messages;
mod world;
