//! Turns of a class whose number of active devices changes.
//!
//! The devices of a fleet have one seeded order, whatever their stream; the first of them are active. A stretch
//! begins with each change. Within it the active slots have their turns round by round, one message each.

use muster_model::{DeviceId, mix};

use crate::layout::Place;
use crate::permutation::Permutation;

/// Key that keeps this use of a seed apart.
const ACTIVE: u64 = 4;

/// The order in which the devices of a fleet become active.
#[derive(Debug, Clone)]
pub struct ActiveOrder {
    first: DeviceId,
    order: Permutation,
}

impl ActiveOrder {
    /// The order of the `devices` from `first` on.
    pub fn new(first: DeviceId, devices: u32) -> Self {
        Self {
            first,
            order: Permutation::new(devices, mix(u64::from(first.0), ACTIVE)),
        }
    }

    /// Returns true if a device of the fleet is one of the first `active`.
    pub fn is_active(&self, device: DeviceId, active: u32) -> bool {
        self.order.place_of(device.0 - self.first.0) < active
    }

    pub(crate) fn into_order(self) -> Permutation {
        self.order
    }
}

/// The number of active devices of a fleet at a share of it: at least 1.
pub fn active_devices(devices: u32, share: f64) -> u32 {
    let active = (f64::from(devices) * share).round();
    (active as u32).clamp(1, devices.max(1))
}

/// The turns of the slots, in stretches that differ in the number of active ones.
#[derive(Debug, Clone)]
pub(crate) struct ActiveRounds {
    stretches: Vec<Stretch>,
}

#[derive(Debug, Clone, Copy)]
struct Stretch {
    /// Its first turn.
    first: u64,
    /// Number of active slots.
    slots: u64,
    /// Number of its whole rounds, and of the turns after them; of the last stretch that of all turns to come.
    rounds: u64,
    rest: u64,
}

/// A position in the turns, for a walk through them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ActivePosition {
    stretch: usize,
    round: u64,
}

impl Stretch {
    /// Turns of a slot among the first `turns` of the stretch.
    fn of_slot_among(&self, slot: u32, turns: u64) -> u64 {
        let slot = u64::from(slot);
        match slot < self.slots {
            true => turns / self.slots + u64::from(slot < turns % self.slots),
            false => 0,
        }
    }

    fn of_slot(&self, slot: u32) -> u64 {
        let slot = u64::from(slot);
        match slot < self.slots {
            true => self.rounds + u64::from(slot < self.rest),
            false => 0,
        }
    }

    fn turns(&self) -> u64 {
        self.rounds * self.slots + self.rest
    }
}

impl ActiveRounds {
    /// Turns in stretches, each with its first turn, ascending from 0, and its number of active slots.
    pub(crate) fn new(stretches: impl IntoIterator<Item = (u64, u32)>) -> Self {
        let mut all: Vec<Stretch> = Vec::new();
        for (first, slots) in stretches {
            if let Some(last) = all.last_mut() {
                let turns = first - last.first;
                (last.rounds, last.rest) = (turns / last.slots, turns % last.slots);
            }
            let slots = u64::from(slots);
            all.push(Stretch {
                first,
                slots,
                rounds: (u64::MAX >> 1) / slots,
                rest: 0,
            });
        }
        Self { stretches: all }
    }

    /// The place of message `n`, which is turn `n`.
    pub(crate) fn place(&self, n: u64) -> Place {
        let after = self.stretches.partition_point(|it| it.first <= n);
        let at = after.saturating_sub(1);
        let stretch = self.stretches[at];
        let within = n - stretch.first;
        let slot = (within % stretch.slots) as u32;
        Place {
            turn: n,
            slot,
            seq: self.seq(at, within / stretch.slots, slot),
        }
    }

    /// The index of the message `seq` of `slot`; the greatest number if there is none.
    pub(crate) fn index(&self, slot: u32, seq: u32) -> u64 {
        let mut left = u64::from(seq);
        for stretch in &self.stretches {
            let turns = stretch.of_slot(slot);
            if left < turns {
                return stretch.first + left * stretch.slots + u64::from(slot);
            }
            left -= turns;
        }
        u64::MAX
    }

    /// Messages of `slot` among the first `count` messages.
    pub(crate) fn of_slot(&self, slot: u32, count: u64) -> u32 {
        let reached = self.stretches.iter().filter(|it| it.first < count);
        let turns = reached.map(|stretch| {
            let turns = stretch.turns().min(count - stretch.first);
            stretch.of_slot_among(slot, turns)
        });
        turns.sum::<u64>().min(u64::from(u32::MAX)) as u32
    }

    /// The place of the first turn at or after a position, of the slots `own`, which are ascending, from `at` on.
    /// Moves both to it. None if no slot has another turn.
    pub(crate) fn seek(
        &self,
        position: &mut ActivePosition,
        at: &mut usize,
        own: impl Fn(usize) -> Option<u32>,
    ) -> Option<Place> {
        loop {
            let stretch = self.stretches.get(position.stretch)?;
            let active = |at: usize| own(at).filter(|slot| u64::from(*slot) < stretch.slots);
            let slot = match active(*at) {
                Some(slot) => Some(slot),
                None => {
                    (position.round, *at) = (position.round + 1, 0);
                    active(0)
                }
            };
            let turn = slot.map(|slot| (slot, position.round * stretch.slots + u64::from(slot)));
            match turn.filter(|(_, within)| *within < stretch.turns()) {
                Some((slot, within)) => {
                    return Some(Place {
                        turn: stretch.first + within,
                        slot,
                        seq: self.seq(position.stretch, position.round, slot),
                    });
                }
                None if position.stretch + 1 == self.stretches.len() => return None,
                None => {
                    (position.stretch, position.round, *at) = (position.stretch + 1, 0, 0);
                }
            }
        }
    }

    fn seq(&self, stretch: usize, round: u64, slot: u32) -> u32 {
        let before = self.stretches[..stretch].iter();
        let before: u64 = before.map(|it| it.of_slot(slot)).sum();
        (before + round) as u32
    }
}
