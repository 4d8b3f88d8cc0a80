//! Times in slots of 5 ms, as the published test of Hono counts them.
//!
//! The slots stand next to Muster's own distributions and decide nothing: a percentile is the upper
//! edge of its slot, and all above 10 s is one slot.

use muster_model::Micros;
use serde::{Deserialize, Serialize};

use crate::merge::merge_fields;

/// Width of a slot, in milliseconds (the class `TimeStatistic` of Californium's element-connector,
/// whose range and slot are those of its benchmark client).
const SLOT_MS: u64 = 5;
/// Number of slots: a range of 10 s. The last one holds all that is above it too.
const SLOTS: usize = 2_000;

/// Times by slot. Merging commutes and associates.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotTimes {
    /// Number of times in each slot, up to the highest one that has any.
    slots: Vec<u64>,
    count: u64,
    sum_us: u64,
    max: Micros,
}

merge_fields! {
    SlotTimes { slots, count, sum_us, max }
}

impl SlotTimes {
    /// Adds a time.
    pub fn add(&mut self, time: Micros) {
        // At once, so that no message pays for growing.
        self.slots
            .reserve_exact(SLOTS.saturating_sub(self.slots.len()));
        let slot = (time.get() / 1_000 / SLOT_MS).min(SLOTS as u64 - 1) as usize;
        if slot >= self.slots.len() {
            self.slots.resize(slot + 1, 0);
        }
        self.slots[slot] += 1;
        self.count += 1;
        self.sum_us += time.get();
        self.max = self.max.max(time);
    }

    /// Number of times.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The mean in whole milliseconds; none without a time.
    pub fn mean_ms(&self) -> Option<u64> {
        (self.sum_us / 1_000).checked_div(self.count)
    }

    /// The longest time, in whole milliseconds; none without a time.
    pub fn max_ms(&self) -> Option<u64> {
        (self.count > 0).then(|| self.max.get() / 1_000)
    }

    /// The percentile of this order per mille (950 is the 95th), in whole milliseconds; none without
    /// a time. From the top, the first slot at which more than `floor(n * (1000 - order) / 1000)`
    /// times are counted: its upper edge less a nanosecond, but never above the longest time.
    pub fn percentile_ms(&self, order: u64) -> Option<u64> {
        let above = self.count * 1_000_u64.saturating_sub(order) / 1_000;
        let mut counted = 0;
        let slot = self.slots.iter().rposition(|times| {
            counted += times;
            counted > above
        })?;
        let edge = (slot as u64 + 1) * SLOT_MS - 1;
        Some(edge.min(self.max.get() / 1_000))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(times_ms: impl IntoIterator<Item = u64>) -> SlotTimes {
        let mut slots = SlotTimes::default();
        for ms in times_ms {
            slots.add(Micros::from_millis(ms));
        }
        slots
    }

    #[test]
    fn nothing_has_no_figures() {
        let none = SlotTimes::default();
        assert_eq!(
            (none.mean_ms(), none.max_ms(), none.percentile_ms(950)),
            (None, None, None)
        );
    }

    #[test]
    fn a_percentile_is_the_last_whole_millisecond_of_its_slot() {
        let slots = of(0..1_000);
        assert_eq!(slots.percentile_ms(950), Some(949));
        assert_eq!(slots.percentile_ms(990), Some(989));
        assert_eq!(slots.percentile_ms(999), Some(999));
        assert_eq!(slots.mean_ms(), Some(499));
    }

    #[test]
    fn no_percentile_is_above_the_longest_time() {
        let slots = of([3, 4, 7, 11]);
        assert_eq!(slots.percentile_ms(999), Some(11));
        assert_eq!(slots.max_ms(), Some(11));
    }

    #[test]
    fn all_above_the_range_is_one_slot() {
        let slots = of([1, 12_000, 61_000]);
        assert_eq!(slots.percentile_ms(999), Some(9_999));
        assert_eq!(slots.max_ms(), Some(61_000));
    }

    proptest! {
        /// Law: a percentile is at least the time of that rank, by less than a slot, as long as that
        /// lies in the range; and it is congruent to 4 modulo 5, or the longest time.
        #[test]
        fn a_percentile_is_the_time_of_its_rank_or_a_little_more(
            mut times in prop::collection::vec(0_u64..9_990, 1..300),
            order in prop::sample::select(vec![500_u64, 950, 990, 999]),
        ) {
            let slots = of(times.iter().copied());
            times.sort_unstable();
            let above = times.len() as u64 * (1_000 - order) / 1_000;
            let exact = times[times.len() - 1 - above as usize];
            let told = slots.percentile_ms(order).unwrap();
            prop_assert!(told >= exact && told < exact + SLOT_MS, "{told} {exact}");
            prop_assert!(told % 5 == 4 || Some(told) == slots.max_ms());
        }

        /// Law: what two counted apart, united, is what one counted.
        #[test]
        fn merged_is_counted_together(
            one in prop::collection::vec(0_u64..20_000, 0..100),
            other in prop::collection::vec(0_u64..20_000, 0..100),
        ) {
            let mut merged = of(one.iter().copied());
            merged.merge(&of(other.iter().copied()));
            prop_assert_eq!(merged, of(one.into_iter().chain(other)));
        }
    }
}
