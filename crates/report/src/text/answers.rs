//! Answers and packets that are no message's end.

use muster_measure::{CounterLine, Ledger, TargetCounts};
use muster_model::Reason;

use super::count;
use crate::LinkLedger;

/// Answers that changed nothing, zeros left out.
pub(super) fn strays(ledger: &Ledger) -> Vec<String> {
    let kinds = [
        (ledger.session.answered_late, "late"),
        (ledger.session.answered_again, "again"),
        (ledger.session.answered_unknown, "to nothing sent"),
        (ledger.session.answered_malformed, "unreadable"),
    ];
    some_of(&kinds)
}

/// Counts of protocol events besides each message's first sending, zeros left out.
pub(super) fn packets(ledger: &Ledger, links: &LinkLedger) -> Vec<String> {
    let mut kinds = vec![
        (ledger.session.retransmitted, "retransmitted"),
        (ledger.session.separate_responses, "separate responses"),
        (ledger.session.duplicate_responses, "second answers"),
    ];
    kinds.extend(links.counters.on_line(CounterLine::Packets));
    some_of(&kinds)
}

/// Counts of events on links and sockets besides messages, zeros left out.
pub(super) fn datagrams(links: &LinkLedger) -> Vec<String> {
    some_of(&links.counters.on_line(CounterLine::Links))
}

/// Links and messages of one of several addresses.
pub(super) fn target(address: &str, target: &TargetCounts) -> Vec<String> {
    let mut parts = vec![format!("{address}: {} accepted", count(target.accepted))];
    parts.extend(some_of(&[
        (target.rejected, "rejected"),
        (target.timed_out, "timed out"),
        (target.broken, "broken"),
        (target.failed, "connects failed"),
        (target.lost, "links lost"),
    ]));
    parts
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
