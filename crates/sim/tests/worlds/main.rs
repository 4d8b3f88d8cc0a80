//! Whole runs under the virtual clock.

mod acknowledged;
mod blame;
mod commands;
mod laws;
mod messages;
mod own;
