//! The binary as its user meets it: what it prints, writes and ends with.

mod authentication;
mod check;
mod cpu;
mod damage;
mod interrupt;
mod processes;
mod program;
mod repeat;
mod texts;
mod transport;
mod warnings;
