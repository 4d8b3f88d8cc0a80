//! Times in which a thread of the generator does not run.

use std::collections::VecDeque;

use muster_model::{Micros, Turn};

use crate::queue::Event;

/// A time in which a thread of the generator does not run. What comes for it meanwhile waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stall {
    /// Since T0.
    pub at: Micros,
    /// Its length.
    pub lasts: Micros,
    /// Its thread.
    pub whose: Whose,
    /// Its cause.
    pub why: Why,
}

/// A thread of the generator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// The shard, which drives the devices.
    Devices,
    /// The consumers of the backends.
    Consumers,
}

/// Cause of a stall.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// Waits for a CPU, as the scheduler reports.
    CpuWait,
    /// One of its turns takes long.
    LongTurn,
}

#[derive(Debug, Default)]
pub(crate) struct Thread {
    stalls: Vec<Stall>,
    waiting: VecDeque<Event>,
}

impl Stall {
    fn end(&self) -> Micros {
        self.at + self.lasts
    }
}

impl Thread {
    pub(crate) fn add(&mut self, stall: Stall) {
        self.stalls.push(stall);
    }

    /// Instant at which the present stall of the thread ends.
    pub(crate) fn stalled_until(&self, now: Micros) -> Option<Micros> {
        let here = self.stalls.iter();
        let here = here.filter(|stall| stall.at <= now && now < stall.end());
        here.map(Stall::end).max()
    }

    pub(crate) fn wait(&mut self, event: Event) {
        self.waiting.push_back(event);
    }

    /// Takes the next event that waited for the end of a stall, once it is over.
    pub(crate) fn waited(&mut self, now: Micros) -> Option<Event> {
        match self.stalled_until(now) {
            Some(_) => None,
            None => self.waiting.pop_front(),
        }
    }

    /// The turn that begins now.
    pub(crate) fn turn(&self, now: Micros) -> Turn {
        let waits = self.stalls.iter().filter(|stall| stall.why == Why::CpuWait);
        let waits = waits.filter(|stall| stall.end() <= now);
        Turn {
            now,
            began: self.turn_began(now),
            waited: waits.fold(Micros::ZERO, |sum, stall| sum + stall.lasts),
        }
    }

    /// Beginning of the adjoining stalls that end now, if one of them is a long turn; else now.
    fn turn_began(&self, now: Micros) -> Micros {
        let (mut began, mut is_long) = (now, false);
        let touches = |began: Micros| {
            let mut all = self.stalls.iter();
            all.find(|stall| stall.at < began && began <= stall.end())
        };
        while let Some(stall) = touches(began) {
            began = stall.at;
            is_long |= stall.why == Why::LongTurn;
        }
        if is_long { began } else { now }
    }
}
