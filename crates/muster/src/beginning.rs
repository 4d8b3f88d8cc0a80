//! The wait for a run's beginning that lies ahead.

use std::io::Read;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use muster_net::Clock;
use signal_hook::SigId;
use signal_hook::low_level::{pipe, unregister};

use crate::{outcome, signals};

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
    let (mut signalled, registered) = listen().context("wait for the beginning")?;
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
fn listen() -> std::io::Result<(UnixStream, Vec<SigId>)> {
    let (signalled, received) = UnixStream::pair()?;
    let signals = signals::ending().into_iter();
    let registered = signals.map(|signal| pipe::register(signal, received.try_clone()?));
    Ok((signalled, registered.collect::<std::io::Result<_>>()?))
}
