//! The platform's own counters: read before the load and after settling.

use std::collections::{BTreeMap, BTreeSet};

use muster_conduct::Part;
use muster_model::figure;
use muster_monitor::CounterPage;
use muster_monitor::prometheus::samples;
use muster_net::Clock;
use muster_plan::{Plan, WebAddress};
use muster_platform::Counters;
use muster_report::Event;
use muster_result::{COUNTERS_UNREAD, NotedCounter};

/// The counts of a page by type and status, of this run's tenants.
type Counts = BTreeMap<(String, String), u64>;

/// The pages of a run, as they were before it.
pub(crate) struct CounterWatch {
    reading: Reading,
    pages: Vec<Page>,
    /// A part of a run would count what the others sent.
    is_part: bool,
}

/// The platform's own counters after a run.
pub(crate) struct CountersEnd {
    /// Their growth.
    pub(crate) counters: Vec<NotedCounter>,
    /// An event for each reason why their growth is not known.
    pub(crate) unread: Vec<Event>,
}

/// The metrics and tenants that are counted.
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
        let entries = plan.monitor.iter();
        let of_counters = entries.filter_map(|of| Some((of.name.as_str(), of.counters()?)));
        let all: Vec<(&str, &WebAddress)> = of_counters.collect();
        let watched = all.iter().filter(|_| !is_part);
        let pages = watched.map(|(name, at)| Page::begin(name, at, &reading));
        let pages = pages.collect();
        (!all.is_empty()).then_some(Self {
            reading,
            pages,
            is_part,
        })
    }

    /// Reads all of it again, once settling has ended.
    pub(crate) fn end(self, clock: Clock) -> CountersEnd {
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
    fn begin(name: &str, at: &WebAddress, reading: &Reading) -> Self {
        let page = CounterPage::new(&at.to_string());
        Self {
            name: name.to_owned(),
            before: read(&page, reading),
            page,
        }
    }
}

impl Reading {
    /// The counts of a page for this run's tenants.
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

    /// The error that no page has the counters.
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
fn summed(grown: &[Result<Counts, String>], t_s: f64) -> CountersEnd {
    let unread: Vec<Event> = grown
        .iter()
        .filter_map(|page| page.as_ref().err())
        .map(|why| {
            let detail = format!("how the platform's own counters grew is not known: {why}");
            Event::new(t_s, COUNTERS_UNREAD, detail)
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
    CountersEnd {
        counters: counters.collect(),
        unread,
    }
}

#[cfg(test)]
mod tests;
