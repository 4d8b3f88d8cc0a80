//! The platform's own counters: read before the load and after settling.

use std::collections::BTreeSet;

use muster_conduct::Part;
use muster_model::figure;
use muster_monitor::{CounterCounts, CounterPage, CounterReader};
use muster_net::Clock;
use muster_plan::{Plan, WebAddress};
use muster_platform::CounterFamily;
use muster_report::Event;
use muster_result::{COUNTERS_UNREAD, NotedCounter};

/// The pages of a run, as they were before it.
pub(crate) struct CounterWatch {
    reader: CounterReader,
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

struct Page {
    name: String,
    page: CounterPage,
    before: Result<CounterCounts, String>,
}

/// The reader of the platform's own counters; none if none are known.
pub(crate) fn reader(plan: &Plan) -> Option<CounterReader> {
    let names = plan.platform.dialect().spec().counters.as_ref()?;
    let tenants = plan.fleets.iter().map(|fleet| fleet.tenant.clone());
    let tenants: BTreeSet<String> = tenants.collect();
    Some(CounterReader::new(names, tenants))
}

impl CounterWatch {
    /// Reads what the scenario wants to be read; may wait for each page's time-out.
    pub(crate) fn begin(plan: &Plan, part: Part) -> Option<Self> {
        let reader = reader(plan)?;
        let is_part = part != Part::WHOLE;
        let entries = plan.monitor.iter();
        let of_counters = entries.filter_map(|of| Some((of.name.as_str(), of.counters()?)));
        let all: Vec<(&str, &WebAddress)> = of_counters.collect();
        let watched = all.iter().filter(|_| !is_part);
        let pages = watched.map(|(name, at)| Page::begin(name, at, &reader));
        let pages = pages.collect();
        (!all.is_empty()).then_some(Self {
            reader,
            pages,
            is_part,
        })
    }

    /// Reads all of it again, once settling has ended.
    pub(crate) fn end(self, clock: Clock) -> CountersEnd {
        let reader = &self.reader;
        let grown = self.pages.iter().map(|page| {
            let grown = page.before.clone();
            let grown = grown.and_then(|before| growth(&before, &read(&page.page, reader)?));
            grown.map_err(|why| format!("{}: {why}", page.name))
        });
        let mut grown: Vec<Result<CounterCounts, String>> = grown.collect();
        if self.is_part {
            let why = "a part of a run does not know what the others sent";
            grown.push(Err(why.to_owned()));
        }
        summed(&self.reader, &grown, clock.now().as_secs_f64())
    }
}

impl Page {
    fn begin(name: &str, at: &WebAddress, reader: &CounterReader) -> Self {
        let page = CounterPage::new(&at.to_string());
        Self {
            name: name.to_owned(),
            before: read(&page, reader),
            page,
        }
    }
}

fn read(page: &CounterPage, reader: &CounterReader) -> Result<CounterCounts, String> {
    let text = page.read().map_err(|error| error.to_string())?;
    Ok(reader.counts(&text))
}

/// By how much each counter of a page grew; one that fell began anew, and the others with it.
fn growth(before: &CounterCounts, after: &CounterCounts) -> Result<CounterCounts, String> {
    for (key, had) in before {
        let has = after.get(key).copied().unwrap_or(0);
        if has < *had {
            return Err(format!(
                "its counters began anew during the run ({} {}: {} before, {} after), as after a restart",
                key.kind,
                key.status,
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

/// The sums over all pages, which are known only where each is. A metric that no page has is named.
fn summed(
    reader: &CounterReader,
    grown: &[Result<CounterCounts, String>],
    t_s: f64,
) -> CountersEnd {
    let mut sums = CounterCounts::new();
    for (key, count) in grown.iter().flatten().flatten() {
        let sum = sums.entry(key.clone()).or_default();
        *sum = sum.saturating_add(*count);
    }
    let unread: Vec<String> = grown.iter().filter_map(|it| it.clone().err()).collect();
    let is_read = unread.is_empty();
    let families = reader.names().families.iter().filter(|_| is_read);
    let absent = families.filter(|family| !sums.keys().any(|key| family.has_kind(&key.kind)));
    let absent: Vec<&CounterFamily> = absent.collect();
    let missing = absent.iter().flat_map(|family| family.all());
    let missing = missing.map(|key| NotedCounter {
        kind: key.kind,
        status: key.status,
        grown: None,
    });
    let unread = unread.into_iter();
    let unread = unread.chain(absent.iter().map(|family| lacks(family, reader)));
    let unread = unread.map(|why| {
        let detail = format!("how the platform's own counters grew is not known: {why}");
        Event::new(t_s, COUNTERS_UNREAD, detail)
    });
    let counters = sums.into_iter().map(|(key, sum)| NotedCounter {
        kind: key.kind,
        status: key.status,
        grown: is_read.then_some(sum),
    });
    CountersEnd {
        counters: counters.chain(missing).collect(),
        unread: unread.collect(),
    }
}

/// The reason that no page has a metric.
fn lacks(family: &CounterFamily, reader: &CounterReader) -> String {
    let (metric, tenants) = (family.metrics[0], reader.of_tenants());
    format!("no page has `{metric}`{tenants} ({})", family.remedy)
}

#[cfg(test)]
mod tests;
