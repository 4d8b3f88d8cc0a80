//! Counters of links and sockets that no event reports, in one table by protocol.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use crate::merge::Merge;

/// A count that is null where nobody counts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counter(Option<u64>);

/// Counters of links and sockets, each named after its protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LinkCounters {
    /// MQTT acknowledgements of a packet id that was answered before.
    pub mqtt_again: Counter,
    /// MQTT acknowledgements of a packet id that was never used.
    pub mqtt_unknown: Counter,
    /// DTLS handshake flights that were sent again (RFC 6347 section 4.2.4).
    pub dtls_retransmitted: Counter,
    /// Datagrams that are no CoAP message.
    pub coap_malformed: Counter,
    /// CoAP answers to no open request.
    pub coap_stray: Counter,
    /// Pings and requests from the platform; the device resets them.
    pub coap_unexpected: Counter,
    /// CoAP responses that came again.
    pub coap_duplicates: Counter,
    /// DTLS records that could not be decrypted, read or matched to a session.
    pub dtls_discarded: Counter,
    /// DTLS records that came again (RFC 6347 section 4.1.2.6).
    pub dtls_replayed: Counter,
    /// ICMP errors on our datagrams; several between two system calls count once.
    pub icmp_errors: Counter,
    /// Datagrams that the kernel refused to send: no route, a firewall.
    pub datagrams_refused: Counter,
}

/// Line of a report on which a counter stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CounterLine {
    /// Packets and records that are no message's end.
    Packets,
    /// Links and their sockets.
    Links,
    /// None: another figure has the same copies, by stream.
    None,
}

/// Number of counters.
const COUNTERS: usize = 11;

type Row<'a> = (&'a mut Counter, CounterLine, &'static str);

impl LinkCounters {
    /// The table: each counter with its line and its words, in the order of a report.
    fn rows(&mut self) -> [Row<'_>; COUNTERS] {
        use CounterLine::{Links, None, Packets};
        let Self {
            mqtt_again,
            mqtt_unknown,
            dtls_retransmitted,
            coap_malformed,
            coap_stray,
            coap_unexpected,
            coap_duplicates,
            dtls_discarded,
            dtls_replayed,
            icmp_errors,
            datagrams_refused,
        } = self;
        [
            (mqtt_again, Packets, "second acknowledgements"),
            (mqtt_unknown, Packets, "acknowledgements of nothing sent"),
            (coap_stray, Packets, "answers nobody waited for"),
            (
                coap_unexpected,
                Packets,
                "pings and requests of the platform",
            ),
            (coap_malformed, Packets, "datagrams that are no message"),
            (coap_duplicates, None, "second answers"),
            (dtls_discarded, Packets, "records discarded"),
            (dtls_replayed, Packets, "records that came again"),
            (dtls_retransmitted, Links, "flights of handshakes again"),
            (icmp_errors, Links, "ICMP errors"),
            (datagrams_refused, Links, "datagrams refused by the kernel"),
        ]
    }

    /// The counters of a line that counted anything, each with its words.
    pub fn on_line(mut self, line: CounterLine) -> Vec<(u64, &'static str)> {
        let rows = self.rows().into_iter().filter(|(_, of, _)| *of == line);
        let counted = rows.filter_map(|(counter, _, words)| Some((counter.get()?, words)));
        counted.filter(|(count, _)| *count > 0).collect()
    }

    /// The same counters where all of them are counted: what nothing added to is 0.
    pub fn known(mut self) -> Self {
        for (counter, ..) in self.rows() {
            *counter += 0;
        }
        self
    }
}

impl Merge for LinkCounters {
    fn merge(&mut self, other: &Self) {
        let mut other = *other;
        for ((mine, ..), (theirs, ..)) in self.rows().into_iter().zip(other.rows()) {
            mine.0.merge(&theirs.0);
        }
    }
}

impl Counter {
    /// The count; none where nobody counts it.
    pub const fn get(self) -> Option<u64> {
        self.0
    }
}

impl AddAssign<u64> for Counter {
    fn add_assign(&mut self, count: u64) {
        *self.0.get_or_insert(0) += count;
    }
}

impl From<u64> for Counter {
    fn from(count: u64) -> Self {
        Self(Some(count))
    }
}
