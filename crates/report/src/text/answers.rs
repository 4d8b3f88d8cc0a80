//! Answers and packets that are no message's end.

use muster_measure::Ledger;
use muster_model::Reason;

use super::count;
use crate::LinkLedger;

/// Answers that changed nothing, as far as there were any.
pub(super) fn strays(ledger: &Ledger) -> Vec<String> {
    let kinds = [
        (ledger.answered_late, "late"),
        (ledger.answered_again, "again"),
        (ledger.answered_unknown, "to nothing sent"),
        (ledger.answered_malformed, "unreadable"),
    ];
    some_of(&kinds)
}

/// Counts of protocol events besides each message's first sending, zeros left out.
pub(super) fn packets(ledger: &Ledger, links: &LinkLedger) -> Vec<String> {
    some_of(&[
        (ledger.retransmitted, "retransmitted"),
        (ledger.separate_responses, "separate responses"),
        (ledger.duplicate_responses, "second answers"),
        (links.mqtt_again.unwrap_or(0), "second acknowledgements"),
        (
            links.mqtt_unknown.unwrap_or(0),
            "acknowledgements of nothing sent",
        ),
        (links.coap_stray.unwrap_or(0), "answers nobody waited for"),
        (
            links.coap_unexpected.unwrap_or(0),
            "pings and requests of the platform",
        ),
        (
            links.coap_malformed.unwrap_or(0),
            "datagrams that are no message",
        ),
        (links.dtls_discarded.unwrap_or(0), "records discarded"),
        (links.dtls_replayed.unwrap_or(0), "records that came again"),
    ])
}

/// Counts of datagram events besides messages, zeros left out.
pub(super) fn datagrams(links: &LinkLedger) -> Vec<String> {
    some_of(&[
        (
            links.dtls_retransmitted.unwrap_or(0),
            "flights of handshakes again",
        ),
        (links.icmp_errors.unwrap_or(0), "ICMP errors"),
        (
            links.datagrams_refused.unwrap_or(0),
            "datagrams refused by the kernel",
        ),
    ])
}

fn some_of(kinds: &[(u64, &str)]) -> Vec<String> {
    let kinds = kinds.iter().filter(|(number, _)| *number > 0);
    kinds
        .map(|(number, kind)| format!("{} {kind}", count(*number)))
        .collect()
}

/// A cause with what its code means, if it has one: `rejected-0x86 bad user name or password`.
pub(super) fn in_words(cause: &str) -> String {
    let prefixes = ["subscribe-rejected-", "rejected-", "disconnect-"];
    let code = prefixes
        .iter()
        .find_map(|prefix| cause.strip_prefix(prefix));
    let reason = Reason::named(code.unwrap_or(cause));
    match reason.and_then(Reason::meaning) {
        Some(meaning) => format!("{cause} {meaning}"),
        None => cause.to_owned(),
    }
}
