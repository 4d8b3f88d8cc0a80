//! The platform's own counters, compared with the ledger.

use std::collections::BTreeSet;

use muster_judge::{Warning, WarningKind};
use muster_measure::Ledger;
use muster_model::figure;
use muster_plan::Plan;
use muster_platform::CounterMeans;
use muster_report::CounterGrowth;
use serde::{Deserialize, Serialize};

/// The growth of one counter, summed over all pages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotedCounter {
    /// The type of its messages.
    pub kind: String,
    /// Their status.
    pub status: String,
    /// The number; none where it is not known.
    pub grown: Option<u64>,
}

/// Compares the counters with the ledger: each type of message that the run sent or the
/// platform counted, each status that is known. `of_streams` are the streams' ledgers.
pub(crate) fn compared(
    plan: &Plan,
    noted: &[NotedCounter],
    of_streams: &[&Ledger],
) -> Vec<CounterGrowth> {
    let dialect = plan.platform.dialect();
    let Some(names) = &dialect.counters else {
        return Vec::new();
    };
    let kinds = plan.streams().map(|(_, stream)| {
        let topic = stream.topic.source();
        (dialect.topic)(topic)
            .counted_as
            .filter(|_| stream.is_uplink())
    });
    let kinds: Vec<Option<&str>> = kinds.collect();
    let counted = noted.iter().filter(|it| it.grown != Some(0));
    let counted = counted.map(|it| it.kind.as_str());
    let all: BTreeSet<&str> = kinds.iter().copied().flatten().chain(counted).collect();
    // Where all was read, a counter that no page has is one that never counted.
    let is_known = !noted.is_empty() && noted.iter().all(|it| it.grown.is_some());
    let rows = all.iter().flat_map(|kind| {
        let of_kind = kinds.iter().zip(of_streams);
        let of_kind = of_kind.filter(|(of, _)| **of == Some(*kind));
        let ledgers: Vec<&Ledger> = of_kind.map(|(_, ledger)| *ledger).collect();
        names.statuses.iter().map(move |(status, means)| {
            let mut known = noted.iter();
            let found = known.find(|it| it.kind == *kind && it.status == *status);
            let grown = found.map_or(is_known.then_some(0), |it| it.grown);
            let sum = |of: fn(&Ledger) -> u64| ledgers.iter().map(|it| of(it)).sum::<u64>();
            let (ledger, unanswered) = (sum(of_ledger(*means)), sum(unanswered));
            CounterGrowth {
                platform: dialect.name.to_owned(),
                kind: (*kind).to_owned(),
                status: (*status).to_owned(),
                grown,
                ledger,
                unanswered,
                agrees: grown.and_then(|grown| agrees(*means, grown, ledger, unanswered)),
            }
        })
    });
    rows.collect()
}

/// The count of the ledger for it.
fn of_ledger(means: CounterMeans) -> fn(&Ledger) -> u64 {
    match means {
        CounterMeans::Accepted => |ledger| ledger.accepted,
        CounterMeans::RefusedAsWrong => |ledger| rejected(ledger, '4'),
        CounterMeans::RefusedAsUnable => |ledger| rejected(ledger, '5'),
    }
}

/// Messages rejected with a code of a class, such as 5.03 of the class 5.
fn rejected(ledger: &Ledger, class: char) -> u64 {
    let codes = ledger.rejected_by_code.iter();
    let of_class = codes.filter(|(code, _)| code.starts_with(class));
    of_class.map(|(_, count)| count).sum()
}

fn unanswered(ledger: &Ledger) -> u64 {
    ledger.timed_out + ledger.broken + ledger.in_flight + ledger.unacknowledged
}

/// True if the platform can have counted so. Messages without an answer may be among them.
fn agrees(means: CounterMeans, grown: u64, ledger: u64, unanswered: u64) -> Option<bool> {
    match means {
        CounterMeans::Accepted | CounterMeans::RefusedAsUnable => {
            Some((ledger..=ledger + unanswered).contains(&grown))
        }
        // What the adapter's own CoAP refuses is never counted.
        CounterMeans::RefusedAsWrong => (grown == ledger).then_some(true),
    }
}

/// The warning on a counter that differs.
pub(crate) fn differing(of: &CounterGrowth) -> Option<Warning> {
    let grown = of.grown.filter(|_| of.agrees == Some(false))?;
    let open = match of.unanswered {
        0 => String::new(),
        open => format!(", {} without an answer", figure::count(open)),
    };
    Some(Warning {
        kind: WarningKind::CountersDiffer,
        scope: "run".to_owned(),
        detail: format!(
            "{} says {} {} {}, the ledger {}{open}: others used the tenant, an instance is not watched, or one of both is wrong",
            of.platform,
            figure::count(grown),
            of.kind,
            of.status,
            figure::count(of.ledger)
        ),
    })
}

#[cfg(test)]
mod tests;
