//! Times in which a thread of the generator does not run.

use std::collections::VecDeque;

use muster_model::{Micros, Turn};

use crate::queue::Event;

/// A time in which a thread of the generator does not run. What comes for it meanwhile waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stall {
    /// Since T0.
    pub at: Micros,
    /// How long.
    pub lasts: Micros,
    /// Which thread.
    pub whose: Whose,
    /// Why.
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

/// Why a thread does not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// It waits for a CPU, as the scheduler tells.
    CpuWait,
    /// One of its turns takes long.
    LongTurn,
}

/// The stalls of one thread, and what waits for their end.
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

    /// When the stall ends in which the thread is.
    pub(crate) fn stalled_until(&self, now: Micros) -> Option<Micros> {
        let here = self.stalls.iter();
        let here = here.filter(|stall| stall.at <= now && now < stall.end());
        here.map(Stall::end).max()
    }

    /// What comes waits for the end of the stall.
    pub(crate) fn wait(&mut self, event: Event) {
        self.waiting.push_back(event);
    }

    /// What waited for the end of a stall that is over.
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

    /// When the stalls began that end now, one in the other, if a turn among them took long.
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
