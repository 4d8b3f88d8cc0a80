//! Whole runs under the virtual clock.

mod commands;
mod messages;
mod seed;
