//! A wait with an end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use muster_model::{Micros, figure};
use muster_net::Clock;

use crate::ActuatorError;

/// The interval at which a wait looks again. A port that opens, a process of before and a count that a command
/// prints send no event that could be waited for.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A wait that ends at a time, or once the user asks for it.
#[derive(Debug, Clone, Copy)]
pub struct Wait<'a> {
    clock: Clock,
    at_most: Micros,
    interrupted: &'a AtomicBool,
}

impl<'a> Wait<'a> {
    /// Each wait takes `at_most` at the most.
    pub fn new(at_most: Micros, interrupted: &'a AtomicBool) -> Self {
        Self {
            clock: Clock::start(),
            at_most,
            interrupted,
        }
    }

    /// The longest wait, in words.
    pub(crate) fn length(&self) -> String {
        figure::clock(self.at_most)
    }

    /// Looks until there is something, or the time is over.
    pub(crate) fn until<T>(
        &self,
        look: impl FnMut() -> Result<Option<T>, ActuatorError>,
    ) -> Result<Option<T>, ActuatorError> {
        self.until_every(LOOK_EVERY, look)
    }

    /// The same at another interval.
    pub(crate) fn until_every<T>(
        &self,
        interval: Duration,
        mut look: impl FnMut() -> Result<Option<T>, ActuatorError>,
    ) -> Result<Option<T>, ActuatorError> {
        let end = self.clock.now() + self.at_most;
        loop {
            if let Some(seen) = look()? {
                return Ok(Some(seen));
            }
            if self.interrupted.load(Ordering::Relaxed) {
                return Err(ActuatorError::Interrupted);
            }
            if self.clock.now() >= end {
                return Ok(None);
            }
            std::thread::sleep(interval);
        }
    }
}
