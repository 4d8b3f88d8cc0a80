//! Maps the n-th message of a class to its turn, slot and position.
//!
//! A round gives each slot (one device) one turn; a turn is one message, or the messages of one
//! burst. With a limit that is no multiple of the burst, the turns of the last round are shorter.

use crate::active::ActiveRounds;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// The turn, counted over all slots.
    pub(crate) turn: u64,
    /// The slot within the round.
    pub(crate) slot: u32,
    /// The sequence number of the slot's device.
    pub(crate) seq: u32,
}

/// The turns of a class.
#[derive(Debug, Clone)]
pub(crate) enum Layout {
    /// Every slot has its turn in every round.
    Whole(Rounds),
    /// The number of slots that have turns changes.
    Active(ActiveRounds),
}

impl Layout {
    /// The most messages.
    pub(crate) fn total(&self) -> u64 {
        match self {
            Self::Whole(rounds) => rounds.total(),
            Self::Active(_) => 1 << 63,
        }
    }

    /// Returns the position of message `n`, which is below the total.
    pub(crate) fn place(&self, n: u64) -> Place {
        match self {
            Self::Whole(rounds) => rounds.place(n),
            Self::Active(rounds) => rounds.place(n),
        }
    }

    /// The index of the message `seq` of `slot`; beyond the count if there is none.
    pub(crate) fn index(&self, slot: u32, seq: u32) -> u64 {
        match self {
            Self::Whole(rounds) => rounds.index(slot, seq),
            Self::Active(rounds) => rounds.index(slot, seq),
        }
    }

    /// Messages in the first `turns` turns.
    pub(crate) fn messages(&self, turns: u64) -> u64 {
        match self {
            Self::Whole(rounds) => rounds.messages(turns),
            Self::Active(_) => turns,
        }
    }

    /// Messages of `slot` among the first `count` messages.
    pub(crate) fn of_slot(&self, slot: u32, count: u64) -> u32 {
        match self {
            Self::Whole(rounds) => rounds.of_slot(slot, count),
            Self::Active(rounds) => rounds.of_slot(slot, count),
        }
    }
}

/// The arithmetic of rounds, slots and turns.
#[derive(Debug, Clone)]
pub(crate) struct Rounds {
    devices: u64,
    burst: u64,
    /// Rounds whose turns have full length.
    full_rounds: u64,
    /// Length of the turns of the round after those; 0 if there is none.
    rest: u64,
}

impl Rounds {
    pub(crate) fn new(devices: u32, burst: u32, limit: Option<u32>) -> Self {
        let (devices, burst) = (u64::from(devices), u64::from(burst));
        let limit = limit.map_or(1 << u32::BITS, u64::from);
        Self {
            devices,
            burst,
            full_rounds: limit / burst,
            rest: limit % burst,
        }
    }

    pub(crate) fn total(&self) -> u64 {
        self.full_messages() + self.devices * self.rest
    }

    /// Messages in a turn of `round`.
    pub(crate) fn turn(&self, round: u64) -> u64 {
        match round {
            _ if round < self.full_rounds => self.burst,
            _ if round == self.full_rounds => self.rest,
            _ => 0,
        }
    }

    /// The index of the first message of a turn.
    pub(crate) fn first_of(&self, round: u64, slot: u32) -> u64 {
        round * self.devices * self.burst + u64::from(slot) * self.turn(round)
    }

    /// The sequence number of the message `within` a turn of `round`.
    pub(crate) fn seq(&self, round: u64, within: u64) -> u32 {
        (round * self.burst + within) as u32
    }

    /// Returns the position of message `n`, which is below the total.
    pub(crate) fn place(&self, n: u64) -> Place {
        let full = self.full_messages();
        let (round, within, turn) = if n < full {
            let round = n / (self.devices * self.burst);
            (round, n - round * self.devices * self.burst, self.burst)
        } else {
            (self.full_rounds, n - full, self.rest.max(1))
        };
        let slot = within / turn;
        Place {
            turn: round * self.devices + slot,
            slot: slot as u32,
            seq: self.seq(round, within - slot * turn),
        }
    }

    /// The index of the message `seq` of `slot`.
    pub(crate) fn index(&self, slot: u32, seq: u32) -> u64 {
        let round = u64::from(seq) / self.burst;
        self.first_of(round, slot) + u64::from(seq) % self.burst
    }

    /// Messages in the first `turns` turns.
    pub(crate) fn messages(&self, turns: u64) -> u64 {
        let round = turns / self.devices;
        if round > self.full_rounds {
            return self.total();
        }
        self.first_of(round, (turns - round * self.devices) as u32)
    }

    /// Messages of `slot` among the first `count` messages.
    pub(crate) fn of_slot(&self, slot: u32, count: u64) -> u32 {
        let count = count.min(self.total());
        if count == 0 {
            return 0;
        }
        let last = self.place(count - 1);
        let round = last.turn / self.devices;
        let before = round * self.burst;
        let share = match slot.cmp(&last.slot) {
            std::cmp::Ordering::Less => self.turn(round),
            std::cmp::Ordering::Equal => u64::from(last.seq) + 1 - before,
            std::cmp::Ordering::Greater => 0,
        };
        (before + share).min(u64::from(u32::MAX)) as u32
    }

    fn full_messages(&self) -> u64 {
        self.full_rounds * self.devices * self.burst
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Places are dealt round by round, slot by slot, without gaps; index inverts place; and
        /// of_slot counts them.
        #[test]
        fn places_are_dealt_in_order(
            devices in 1u32..20, burst in 1u32..5, limit in 1u32..20, cut in 0u64..400,
        ) {
            let layout = Rounds::new(devices, burst, Some(limit));
            prop_assert_eq!(layout.total(), u64::from(devices) * u64::from(limit));
            let cut = cut.min(layout.total());
            let mut next = vec![0; devices as usize];
            let mut last = 0;
            for n in 0..cut {
                let place = layout.place(n);
                prop_assert_eq!(layout.index(place.slot, place.seq), n);
                prop_assert_eq!(place.seq, next[place.slot as usize]);
                prop_assert!(place.turn >= last);
                next[place.slot as usize] += 1;
                last = place.turn;
            }
            for slot in 0..devices {
                prop_assert_eq!(layout.of_slot(slot, cut), next[slot as usize]);
            }
        }

        /// messages(turns) is the index of the first message of the next turn.
        #[test]
        fn turns_hold_their_messages(
            devices in 1u32..20, burst in 1u32..5, limit in 1u32..20, turns in 0u64..200,
        ) {
            let layout = Rounds::new(devices, burst, Some(limit));
            let expected = (0..layout.total())
                .filter(|n| {
                    layout.place(*n).turn < turns
                })
                .count();
            prop_assert_eq!(layout.messages(turns), expected as u64);
        }
    }
}
