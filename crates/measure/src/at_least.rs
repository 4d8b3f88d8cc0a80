//! Percentiles whose lower bound alone is known.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Distribution;

/// The percentiles, in the order of the fields of [`crate::Percentiles`].
const NAMES: [&str; 5] = ["p50_us", "p90_us", "p95_us", "p99_us", "p99_9_us"];

/// Set of the percentiles that are lower bounds: unanswered messages among them would have taken
/// longer. It is written as a list of their names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AtLeast(u8);

impl AtLeast {
    /// The percentiles at these places.
    pub(crate) fn at(places: impl IntoIterator<Item = usize>) -> Self {
        let bits = places.into_iter().map(|place| 1 << place);
        Self(bits.fold(0, |all, bit: u8| all | bit))
    }

    /// Adds the percentile of this name; another name adds none.
    pub fn add(&mut self, name: &str) {
        let place = NAMES.iter().position(|known| *known == name);
        self.0 |= place.map_or(0, |place| 1 << place);
    }

    /// Returns whether no percentile is a lower bound.
    pub const fn is_none(&self) -> bool {
        self.0 == 0
    }

    /// Returns whether the percentile of this name, such as `p99_us`, is a lower bound.
    pub fn holds(&self, name: &str) -> bool {
        self.names().any(|known| known == name)
    }

    /// The names of those that are.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
        let bits = self.0;
        let all = NAMES.into_iter().enumerate();
        all.filter(move |(place, _)| bits & (1 << place) != 0)
            .map(|(_, name)| name)
    }
}

impl Serialize for AtLeast {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.names())
    }
}

impl<'de> Deserialize<'de> for AtLeast {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let names = Vec::<String>::deserialize(from)?;
        let places = names.iter().map(|name| {
            let place = NAMES.iter().position(|known| known == name);
            place.ok_or_else(|| D::Error::custom(format!("`{name}` is no percentile")))
        });
        Ok(Self::at(places.collect::<Result<Vec<usize>, _>>()?))
    }
}

/// A percentile of known times and of lower bounds, together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounded {
    /// The upper edge of the cell that it lies in, with each lower bound taken for a time.
    pub us: u64,
    /// True if the percentile would be larger, had the others taken longer than their lower bounds.
    pub is_at_least: bool,
}

impl Bounded {
    /// The percentile `share` in (0, 1); none without values.
    pub fn of(known: &Distribution, censored: &Distribution, share: f64) -> Option<Self> {
        let mut all = known.clone();
        all.merge(censored);
        let us = all.quantile_us(share)?;
        let rank = all.rank(share);
        let most = (rank <= known.count).then(|| known.at_rank(rank)).flatten();
        Some(Self {
            us,
            is_at_least: most.is_none_or(|most| most > us),
        })
    }
}

#[cfg(test)]
mod tests {
    use muster_model::Micros;

    use super::*;
    use crate::Percentiles;

    fn of(known: &[(u64, u64)], censored: &[(u64, u64)]) -> Percentiles {
        let distribution = |values: &[(u64, u64)]| {
            let mut all = Distribution::default();
            for (us, n) in values {
                all.record_n(Micros(*us), *n);
            }
            all
        };
        Percentiles::of_all_due(&distribution(known), &distribution(censored))
    }

    #[test]
    fn a_percentile_among_the_answered_is_exact() {
        // 2 % have no end: the median and p90 are what they are, p99 may be anything.
        let found = of(&[(1_000, 980)], &[(1_000, 20)]);
        let names: Vec<&str> = found.at_least.names().collect();
        assert_eq!(names, ["p99_us"], "{found:?}");
        assert_eq!(found.p50_us, Some(1_000));
    }

    #[test]
    fn where_nothing_was_answered_all_are_lower_bounds() {
        let found = of(&[], &[(749, 2_000)]);
        let names: Vec<&str> = found.at_least.names().collect();
        assert_eq!(names, ["p50_us", "p90_us", "p95_us", "p99_us"]);
        assert!(of(&[(749, 2_000)], &[]).at_least.is_none());
    }
}
