//! The platform's own counters, compared with the ledger.

use std::collections::BTreeSet;

use muster_judge::{Warning, WarningKind};
use muster_measure::Ledger;
use muster_model::figure;
use muster_plan::Plan;
use muster_platform::{CounterFamily, CounterKind, CounterMeans};
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
    let streams = plan.streams().zip(of_streams);
    let streams = streams.filter_map(|((_, stream), ledger)| {
        let topic = (dialect.topic)(stream.topic.source());
        let kind = topic.counted_as.filter(|_| stream.is_uplink())?;
        Some(CountedStream { kind, ledger })
    });
    let comparison = Comparison {
        platform: dialect.name,
        streams: streams.collect(),
        noted,
    };
    let families = names.families.iter();
    families
        .flat_map(|family| comparison.rows(family))
        .collect()
}

/// A stream whose messages the platform counts.
struct CountedStream<'a> {
    kind: &'static str,
    ledger: &'a Ledger,
}

/// Both sides of a comparison.
struct Comparison<'a> {
    platform: &'static str,
    streams: Vec<CountedStream<'a>>,
    noted: &'a [NotedCounter],
}

impl Comparison<'_> {
    fn rows(&self, family: &CounterFamily) -> Vec<CounterGrowth> {
        let of_streams = self.streams.iter().map(|stream| stream.kind);
        let counted = self.noted.iter().filter(|it| it.grown != Some(0));
        let kinds: BTreeSet<&str> = match family.kind {
            CounterKind::Label(_) => of_streams
                .chain(counted.map(|it| it.kind.as_str()))
                .collect(),
            CounterKind::All(kind) => [kind].into(),
        };
        let rows = kinds.iter().flat_map(|kind| {
            let is_of_kind = |stream: &&CountedStream<'_>| match family.kind {
                CounterKind::Label(_) => stream.kind == *kind,
                CounterKind::All(_) => true,
            };
            let streams = self.streams.iter().filter(is_of_kind);
            let ledgers: Vec<&Ledger> = streams.map(|stream| stream.ledger).collect();
            let rows = family.statuses.iter();
            rows.map(move |(status, means)| CounterGrowth {
                status: (*status).to_owned(),
                ..self.row(kind, self.grown(kind, status), *means, &ledgers)
            })
        });
        rows.collect()
    }

    /// The growth of a counter. Where all was read, one that no page has never counted.
    fn grown(&self, kind: &str, status: &str) -> Option<u64> {
        let mut noted = self.noted.iter();
        match noted.find(|it| it.kind == kind && it.status == status) {
            Some(found) => found.grown,
            None => {
                let is_known = !self.noted.is_empty();
                let is_known = is_known && self.noted.iter().all(|it| it.grown.is_some());
                is_known.then_some(0)
            }
        }
    }

    fn row(
        &self,
        kind: &str,
        grown: Option<u64>,
        means: CounterMeans,
        ledgers: &[&Ledger],
    ) -> CounterGrowth {
        let sum = |of: fn(&Ledger) -> u64| ledgers.iter().map(|it| of(it)).sum::<u64>();
        let (ledger, unanswered) = (of_ledger(means).map(sum), sum(unanswered));
        let agrees = grown.and_then(|grown| match ledger {
            Some(ledger) => agrees(means, grown, ledger, unanswered),
            None => (means == CounterMeans::Failed).then_some(grown == 0),
        });
        CounterGrowth {
            platform: self.platform.to_owned(),
            kind: kind.to_owned(),
            status: String::new(),
            grown,
            ledger,
            unanswered,
            agrees,
        }
    }
}

/// The count of the ledger for it; none if the ledger has none.
fn of_ledger(means: CounterMeans) -> Option<fn(&Ledger) -> u64> {
    match means {
        CounterMeans::Accepted | CounterMeans::AcceptedAndOthers => Some(|ledger| ledger.accepted),
        CounterMeans::RefusedAsWrong => Some(|ledger| rejected(ledger, '4')),
        CounterMeans::RefusedAsUnable => Some(|ledger| rejected(ledger, '5')),
        CounterMeans::Failed | CounterMeans::Other => None,
    }
}

/// Messages rejected with a code of a class, such as 5.03 of the class 5.
fn rejected(ledger: &Ledger, class: char) -> u64 {
    let codes = ledger.rejected_by_code.iter();
    let of_class = codes.filter(|(code, _)| code.starts_with(class));
    of_class.map(|(_, count)| count).sum()
}

/// Sent messages without an answer; the platform may have counted them or not.
pub(crate) fn unanswered(ledger: &Ledger) -> u64 {
    ledger.timed_out + ledger.broken + ledger.in_flight + ledger.unacknowledged
}

/// True if the platform can have counted so. Messages without an answer may be among them.
fn agrees(means: CounterMeans, grown: u64, ledger: u64, unanswered: u64) -> Option<bool> {
    match means {
        CounterMeans::Accepted | CounterMeans::RefusedAsUnable => {
            Some((ledger..=ledger + unanswered).contains(&grown))
        }
        // Those of others may be among them, and hide that some of ours are missing.
        CounterMeans::AcceptedAndOthers => (grown < ledger).then_some(false),
        CounterMeans::Failed | CounterMeans::Other => None,
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
    let why = match of.ledger {
        None => "perhaps lost behind their acknowledgement: those of others count too, and a message may have been stored"
            .to_owned(),
        Some(ledger) => {
            let why = match grown < ledger {
                true => "not all have come so far",
                false => "others used the tenant",
            };
            let ledger = figure::count(ledger);
            format!(
                "the ledger {ledger}{open}: {why}, an instance is not watched, or one of both is wrong"
            )
        }
    };
    let (platform, grown) = (&of.platform, figure::count(grown));
    Some(Warning {
        kind: WarningKind::CountersDiffer,
        scope: "run".to_owned(),
        detail: format!("{platform} says {grown} {} {}, {why}", of.kind, of.status),
    })
}

#[cfg(test)]
mod tests;
