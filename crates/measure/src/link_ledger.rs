//! The account of links.

use std::collections::BTreeMap;

use muster_model::ConnectFailure;
use serde::{Deserialize, Serialize};

use crate::merge::merge_fields;
use crate::{LinkCounters, TargetCounts};

/// The account of the links of one fleet or of all.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LinkLedger {
    /// Links the plan wants.
    pub wanted: u64,
    /// Links up when the connect phase ended.
    pub up_at_start: u64,
    /// Tries to connect.
    pub opened: u64,
    /// Tries that ended with a usable link.
    pub connected: u64,
    /// Tries that ended without one, by cause.
    pub connect_failures: BTreeMap<String, u64>,
    /// Tries among them that timed out while our own delay exceeded half of the time-out.
    #[serde(skip)]
    pub timed_out_by_us: u64,
    /// Links whose last try of the connect phase was one of these: down at its end, and not by the
    /// target.
    #[serde(skip)]
    pub down_by_us_at_start: u64,
    /// Usable links that ended, by cause.
    pub disconnects: BTreeMap<String, u64>,
    /// Of these, those that the platform ended before settling began.
    #[serde(skip)]
    pub ended_by_platform: BTreeMap<String, u64>,
    /// Messages without an answer by design, last sent on links that the platform ended, by cause.
    pub last_sent: BTreeMap<String, u64>,
    /// Usable links at the end, counted by walking them; null for one fleet.
    pub open_at_end: Option<u64>,
    /// Counters that no event reports; null for one fleet.
    #[serde(flatten)]
    pub counters: LinkCounters,
    /// Links and messages by the address that devices connect to, where streams of bytes have several; left
    /// out where there is one, and for one fleet.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub targets: BTreeMap<String, TargetCounts>,
}

impl LinkLedger {
    /// Returns whether our own part may be why no link came up: a try ended by a limit of ours, or
    /// all tries that had their time were timed out by our own delay.
    pub fn is_down_by_us(&self) -> bool {
        let of = |failure: ConnectFailure| {
            let count = self.connect_failures.get(&failure.to_string());
            count.copied().unwrap_or(0)
        };
        let failed: u64 = self.connect_failures.values().sum();
        let by_us = self.timed_out_by_us;
        let is_all = by_us > 0 && failed == by_us + of(ConnectFailure::RunEnded);
        self.connected == 0 && (is_all || of(ConnectFailure::GeneratorLimit) > 0)
    }
}

merge_fields! {
    LinkLedger {
        wanted, up_at_start, opened, connected, connect_failures, timed_out_by_us,
        down_by_us_at_start, disconnects, ended_by_platform, last_sent, open_at_end, counters,
        targets,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_link_is_down_by_us_unless_a_limit_of_ours_or_our_delay_alone_kept_it() {
        let ledger = |failures: &[(ConnectFailure, u64)], timed_out_by_us| LinkLedger {
            connect_failures: failures.iter().map(|(c, n)| (c.to_string(), *n)).collect(),
            timed_out_by_us,
            ..LinkLedger::default()
        };
        let timed_out = (ConnectFailure::TimedOut, 9);
        let ended = (ConnectFailure::RunEnded, 3);
        assert!(ledger(&[timed_out], 9).is_down_by_us());
        assert!(ledger(&[timed_out, ended], 9).is_down_by_us());
        assert!(!ledger(&[timed_out, ended], 8).is_down_by_us());
        assert!(!ledger(&[timed_out, (ConnectFailure::Refused, 1)], 9).is_down_by_us());
        assert!(!ledger(&[ended], 0).is_down_by_us());
        let limit = (ConnectFailure::GeneratorLimit, 1);
        assert!(ledger(&[timed_out, limit], 0).is_down_by_us());
        let some_came = LinkLedger {
            connected: 1,
            ..ledger(&[limit], 0)
        };
        assert!(!some_came.is_down_by_us());
    }
}
