//! The wait for a run's beginning that lies ahead.

use std::io::Read;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use muster_net::Clock;
use signal_hook::SigId;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::low_level::{pipe, unregister};

use crate::outcome;

/// The shortest time-out: none at all would be one without an end.
const WAIT_LEAST: Duration = Duration::from_micros(1);

/// Waits until the run begins; false if the user asked for the end before.
pub(crate) fn wait(clock: Clock, is_quiet: bool, interrupted: &AtomicBool) -> Result<bool> {
    let left = || Duration::from_micros(clock.until_t0().get());
    if left().is_zero() {
        return Ok(true);
    }
    if !is_quiet {
        outcome::say(&format!("the run begins in {:.0} s", left().as_secs_f64()));
    }
    let (mut signalled, registered) = signals().context("wait for the beginning")?;
    // A signal before this stands in the flag, one from here on comes by the socket.
    while !left().is_zero() && !interrupted.load(Ordering::Relaxed) {
        signalled.set_read_timeout(Some(left().max(WAIT_LEAST)))?;
        // A signal, the end of the time, or a call cut short: the condition tells which.
        let _ = signalled.read(&mut [0]);
    }
    for signal in registered {
        unregister(signal);
    }
    Ok(left().is_zero())
}

/// A socket that can be read from once the user asks for the end.
fn signals() -> std::io::Result<(UnixStream, [SigId; 2])> {
    let (signalled, told) = UnixStream::pair()?;
    let registered = [
        pipe::register(SIGINT, told.try_clone()?)?,
        pipe::register(SIGTERM, told)?,
    ];
    Ok((signalled, registered))
}
