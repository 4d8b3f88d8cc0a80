//! The binary as its user meets it: what it prints, writes and ends with.

mod check;
mod damage;
mod interrupt;
mod program;
mod repeat;
mod texts;
