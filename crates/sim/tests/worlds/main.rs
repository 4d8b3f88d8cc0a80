//! Whole runs under the virtual clock.

mod acknowledged;
mod adding;
mod blame;
mod commands;
mod laws;
mod messages;
mod own;
