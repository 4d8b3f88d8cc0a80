//! `muster`: load tests for IoT platforms, with a verdict one can sign.
//!
//! Layer 9: arguments, printing and exit codes. Everything else is a library below.

mod args;
mod beginning;
mod calibration;
mod commands;
mod control_channel;
mod counters;
mod counting;
mod folder;
mod hooks;
mod lines;
mod meanwhile;
mod monitoring;
mod outcome;
mod outputs;
mod provisioned;
mod read_back;
mod registered;
mod scenario_file;
mod screen;
mod searching;
mod secured;
mod signals;
mod signing;
mod sockets;
mod steering;
mod target;
mod users;
mod wall_clock;
mod watched;
mod watcher;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Arguments, Command};

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = match arguments.command {
        Command::Run(run) => commands::run::run(&run),
        Command::Capacity(capacity) => commands::capacity::capacity(&capacity),
        Command::Scale(scale) => commands::scale::scale(&scale),
        Command::Check(check) => commands::check::check(&check),
        Command::Report(report) => commands::report::report(&report),
        Command::Compare(compare) => commands::compare::compare(&compare),
        Command::Merge(merge) => commands::merge::merge(&merge),
        Command::Provision(provision) => commands::provision::provision(&provision),
        Command::Import(import) => commands::import::import(&import),
        Command::Gateway(gateway) => commands::gateway::gateway(&gateway),
        Command::Completions(shell) => commands::manual::completions(&shell),
        Command::Man(man) => commands::manual::man(&man),
        Command::Schema => commands::schema::schema(),
        Command::Verify(verify) => commands::verify::verify(&verify),
        Command::Agent => commands::agent::agent(),
    };
    match done {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            outcome::complain(&error);
            ExitCode::from(outcome::USAGE)
        }
    }
}
