//! Verdicts on whole runs, message by message, against the rules.

mod commands;
mod completion;
mod meanwhile;
mod narrowed;
mod own;
mod recorded;
mod run;
mod slo;
mod soak;
mod stable;
mod step;
mod unfinished;
mod validity;
mod verdict;
mod warnings;
