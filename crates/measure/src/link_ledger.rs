//! The account of links.

use std::collections::BTreeMap;

use muster_model::ConnectFailure;
use serde::{Deserialize, Serialize};

use crate::ledger::add_by_name;

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
    /// MQTT acknowledgements of a packet id that was answered before.
    pub mqtt_again: Option<u64>,
    /// MQTT acknowledgements of a packet id that was never used.
    pub mqtt_unknown: Option<u64>,
    /// DTLS handshake flights that were sent again (RFC 6347 section 4.2.4).
    pub dtls_retransmitted: Option<u64>,
    /// Datagrams that are no CoAP message.
    pub coap_malformed: Option<u64>,
    /// CoAP answers to no open request.
    pub coap_stray: Option<u64>,
    /// Pings and requests from the platform; the device resets them.
    pub coap_unexpected: Option<u64>,
    /// CoAP responses that came again.
    pub coap_duplicates: Option<u64>,
    /// DTLS records that could not be decrypted, read or matched to a session.
    pub dtls_discarded: Option<u64>,
    /// DTLS records that came again (RFC 6347 section 4.1.2.6).
    pub dtls_replayed: Option<u64>,
    /// ICMP errors on our datagrams; several between two system calls count once.
    pub icmp_errors: Option<u64>,
    /// Datagrams that the kernel refused to send: no route, a firewall.
    pub datagrams_refused: Option<u64>,
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

    /// Adds the links of another fleet, but for what is known of all fleets together only.
    pub fn merge(&mut self, other: &Self) {
        let Self {
            wanted,
            up_at_start,
            opened,
            connected,
            connect_failures,
            timed_out_by_us,
            down_by_us_at_start,
            disconnects,
            ended_by_platform,
            last_sent,
            open_at_end: _,
            mqtt_again: _,
            mqtt_unknown: _,
            dtls_retransmitted: _,
            coap_malformed: _,
            coap_stray: _,
            coap_unexpected: _,
            coap_duplicates: _,
            dtls_discarded: _,
            dtls_replayed: _,
            icmp_errors: _,
            datagrams_refused: _,
        } = other;
        self.wanted += wanted;
        self.up_at_start += up_at_start;
        self.opened += opened;
        self.connected += connected;
        self.timed_out_by_us += timed_out_by_us;
        self.down_by_us_at_start += down_by_us_at_start;
        add_by_name(&mut self.connect_failures, connect_failures);
        add_by_name(&mut self.disconnects, disconnects);
        add_by_name(&mut self.ended_by_platform, ended_by_platform);
        add_by_name(&mut self.last_sent, last_sent);
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
