//! The platform's own counters: read before the load and after settling, and set beside the ledger.

use std::collections::{BTreeMap, BTreeSet};

use muster_conduct::Part;
use muster_judge::{Warning, WarningKind};
use muster_measure::Ledger;
use muster_model::figure;
use muster_monitor::CounterPage;
use muster_monitor::prometheus::samples;
use muster_net::Clock;
use muster_plan::{MonitorPlan, Plan};
use muster_platform::{CounterMeans, Counters};
use muster_report::CounterGrowth;
use serde::{Deserialize, Serialize};

use crate::events::{COUNTERS_UNREAD, NotedEvent};

/// What a page says by type and status, of this run's tenants.
type Counts = BTreeMap<(String, String), u64>;

/// How one counter grew, summed over all pages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NotedCounter {
    pub(crate) kind: String,
    pub(crate) status: String,
    /// None where it is not known.
    pub(crate) grown: Option<u64>,
}

/// What came of reading them.
pub(crate) struct Counted {
    pub(crate) counters: Vec<NotedCounter>,
    /// Why it is not known how they grew, if so.
    pub(crate) unread: Vec<NotedEvent>,
}

/// The pages of a run, as they were before it.
pub(crate) struct CounterWatch {
    reading: Reading,
    pages: Vec<Page>,
    /// A part of a run would count what the others sent.
    is_part: bool,
}

/// What of a page is counted.
struct Reading {
    names: &'static Counters,
    tenants: BTreeSet<String>,
}

struct Page {
    name: String,
    page: CounterPage,
    before: Result<Counts, String>,
}

impl CounterWatch {
    /// Reads what the scenario wants to be read; may wait for each page's time-out.
    pub(crate) fn begin(plan: &Plan, part: Part) -> Option<Self> {
        let names = plan.platform.dialect().spec().counters.as_ref()?;
        let fleets = plan.fleets.iter();
        let reading = Reading {
            names,
            tenants: fleets.map(|fleet| fleet.tenant.clone()).collect(),
        };
        let is_part = part != Part::WHOLE;
        let watched = plan.monitor.iter().filter(|_| !is_part);
        let pages = watched.map(|of| Page::begin(of, &reading)).collect();
        (!plan.monitor.is_empty()).then_some(Self {
            reading,
            pages,
            is_part,
        })
    }

    /// Reads all of it again, once settling has ended.
    pub(crate) fn end(self, clock: Clock) -> Counted {
        let reading = &self.reading;
        let grown = self.pages.iter().map(|page| {
            let grown = page.before.clone();
            let grown = grown.and_then(|before| growth(&before, &read(&page.page, reading)?));
            grown.map_err(|why| format!("{}: {why}", page.name))
        });
        let mut grown: Vec<Result<Counts, String>> = grown.collect();
        if self.is_part {
            let why = "a part of a run does not know what the others sent";
            grown.push(Err(why.to_owned()));
        } else if grown.iter().flatten().all(Counts::is_empty) && grown.iter().all(Result::is_ok) {
            grown.push(Err(reading.has_none()));
        }
        summed(&grown, clock.now().as_secs_f64())
    }
}

impl Page {
    fn begin(of: &MonitorPlan, reading: &Reading) -> Self {
        let page = CounterPage::new(&of.counters.to_string());
        Self {
            name: of.name.clone(),
            before: read(&page, reading),
            page,
        }
    }
}

impl Reading {
    /// What a page says of this run's tenants.
    fn counts(&self, text: &str) -> Counts {
        let mut counts = Counts::new();
        for sample in samples(text) {
            if !self.names.metrics.contains(&sample.name) {
                continue;
            }
            let label = |name: &str| sample.label(name);
            let is_ours = label(self.names.tenant).is_some_and(|it| self.tenants.contains(&it));
            let key = label(self.names.kind).zip(label(self.names.status));
            if let (true, Some(key), Some(count)) = (is_ours, key, sample.count()) {
                let sum = counts.entry(key).or_default();
                *sum = sum.saturating_add(count);
            }
        }
        counts
    }

    /// That no page has what is looked for.
    fn has_none(&self) -> String {
        let tenants: Vec<&str> = self.tenants.iter().map(String::as_str).collect();
        format!(
            "no page has `{}` of tenant {} (are they pages of the protocol adapters that the devices talk to?)",
            self.names.metrics[0],
            tenants.join(", ")
        )
    }
}

fn read(page: &CounterPage, reading: &Reading) -> Result<Counts, String> {
    let text = page.read().map_err(|error| error.to_string())?;
    Ok(reading.counts(&text))
}

/// By how much each counter of a page grew; one that fell began anew, and the others with it.
fn growth(before: &Counts, after: &Counts) -> Result<Counts, String> {
    for ((kind, status), had) in before {
        let key = (kind.clone(), status.clone());
        let has = after.get(&key).copied().unwrap_or(0);
        if has < *had {
            return Err(format!(
                "its counters began anew during the run ({kind} {status}: {} before, {} after), as after a restart",
                figure::count(*had),
                figure::count(has)
            ));
        }
    }
    let grown = after.iter().map(|(key, has)| {
        let had = before.get(key).copied().unwrap_or(0);
        (key.clone(), has.saturating_sub(had))
    });
    Ok(grown.collect())
}

/// The sums over all pages, which are known only where each is.
fn summed(grown: &[Result<Counts, String>], t_s: f64) -> Counted {
    let unread: Vec<NotedEvent> = grown
        .iter()
        .filter_map(|page| page.as_ref().err())
        .map(|why| NotedEvent {
            t_s,
            until_s: None,
            kind: COUNTERS_UNREAD.to_owned(),
            detail: format!("how the platform's own counters grew is not known: {why}"),
        })
        .collect();
    let mut sums = Counts::new();
    for (key, count) in grown.iter().flatten().flatten() {
        let sum = sums.entry(key.clone()).or_default();
        *sum = sum.saturating_add(*count);
    }
    let counters = sums.into_iter().map(|((kind, status), sum)| NotedCounter {
        kind,
        status,
        grown: unread.is_empty().then_some(sum),
    });
    Counted {
        counters: counters.collect(),
        unread,
    }
}

/// What was read beside what the ledger has of it: each type of message that the run sent or the
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

/// What the ledger calls it.
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

/// Whether the platform can have counted so: what nobody was told the end of may be among it.
fn agrees(means: CounterMeans, grown: u64, ledger: u64, unanswered: u64) -> Option<bool> {
    match means {
        CounterMeans::Accepted | CounterMeans::RefusedAsUnable => {
            Some((ledger..=ledger + unanswered).contains(&grown))
        }
        // What the adapter's own CoAP refuses is never counted.
        CounterMeans::RefusedAsWrong => (grown == ledger).then_some(true),
    }
}

/// The warning on a counter that tells another number.
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
