//! State of the consumers whose silence counts.

use serde::{Deserialize, Serialize};

use crate::Micros;

/// The last stretch of time in which all consumers are known to have listened without a break. Silence says
/// something of a target within it only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listening {
    /// Since when; [`Micros::MAX`] where one of them does not listen.
    pub since: Micros,
    /// Until when that is known.
    pub until: Micros,
}

impl Listening {
    /// Without consumers none can miss anything.
    pub const NOBODY: Self = Self::until(Micros::MAX);

    /// All listened from T0 on.
    pub const fn until(until: Micros) -> Self {
        let since = Micros::ZERO;
        Self { since, until }
    }

    /// One does not listen at this instant.
    pub const fn deaf(at: Micros) -> Self {
        Self {
            since: Micros::MAX,
            until: at,
        }
    }

    /// Returns the state of these consumers and others together.
    pub fn and(self, other: Self) -> Self {
        Self {
            since: self.since.max(other.since),
            until: self.until.min(other.until),
        }
    }

    /// Returns true if they received nothing for `quiet` since the last copy.
    pub fn is_quiet(self, last: Micros, quiet: Micros) -> bool {
        self.since != Micros::MAX && self.since.max(last) + quiet <= self.until
    }
}

impl Default for Listening {
    fn default() -> Self {
        Self::NOBODY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quiet_is_counted_while_all_listen() {
        let secs = Micros::from_secs;
        let (long, late) = (
            Listening::until(secs(10)),
            Listening {
                since: secs(8),
                until: secs(11),
            },
        );
        let quiet = secs(3);
        assert!(long.is_quiet(secs(7), quiet) && !long.is_quiet(Micros(7_000_001), quiet));
        assert!(late.is_quiet(secs(1), quiet));
        assert!(!long.and(late).is_quiet(secs(1), quiet), "10 - 8 s");
        assert!(Listening::NOBODY.and(late).is_quiet(secs(1), quiet));
        let deaf = Listening::deaf(Micros::MAX);
        assert!(!deaf.is_quiet(secs(1), quiet) && !long.and(deaf).is_quiet(secs(1), quiet));
    }
}
