//! Samples of the target while a run goes on: a thread for each entry of `monitor`.

mod command;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use muster_conduct::Part;
use muster_model::{Micros, Resource};
use muster_monitor::{
    CgroupUsage, CounterReader, CounterUsage, PageUsage, ProcessUsage, UsageError, UsageSource,
};
use muster_net::Clock;
use muster_plan::{MonitorPlan, Plan, Watched, WebAddress};
use muster_report::Event;
use muster_result::{MONITOR_ENDED, MONITOR_UNREAD, UsageNote, UsageSample};

use command::CommandUsage;

use crate::counters;

/// Notes that wait until the conductor has time, which is four times a second: some seconds of all entries.
const WAITING_MAX: usize = 1_024;
/// Longest wait for entries that are just being read when the run ends.
const END_MAX: Duration = Duration::from_secs(1);

/// The entries of `monitor`: each could be read.
pub(crate) struct Monitor {
    entries: Vec<Entry>,
    resources: Vec<Resource>,
    is_over: Arc<AtomicBool>,
}

struct Entry {
    name: String,
    every: Micros,
    /// The place of its first resource among all.
    first: u16,
    source: Box<dyn UsageSource>,
}

impl Monitor {
    /// Reads each entry once, so that one that cannot be read is found before the load. Of several parts of a run,
    /// the first with devices watches the target; `gateways` are the processes of the embedded gateway.
    pub(crate) fn open(plan: &Plan, part: Part, gateways: &[u32]) -> Result<Self> {
        let mut monitor = Self {
            entries: Vec::new(),
            resources: Vec::new(),
            is_over: Arc::default(),
        };
        let is_first = part.links.is_some_and(|slice| slice.index == 0);
        let reader = counters::reader(plan);
        for plan in plan.monitor.iter().filter(|_| is_first) {
            let source = match plan.counters() {
                Some(page) => reader
                    .as_ref()
                    .and_then(|reader| figures(plan, page, reader)),
                None => {
                    let source = source(plan, gateways, &monitor.is_over);
                    source.with_context(|| format!("watch `{}`", plan.name))?
                }
            };
            monitor.add(plan, source);
        }
        Ok(monitor)
    }

    fn add(&mut self, plan: &MonitorPlan, source: Option<Box<dyn UsageSource>>) {
        let Some(source) = source else { return };
        // The scenario was checked for few entries with few resources each.
        let first = self.resources.len() as u16;
        self.resources.extend_from_slice(source.resources());
        self.entries.push(Entry {
            name: plan.name.clone(),
            every: plan.every,
            first,
            source,
        });
    }

    /// Begins to sample; none if nothing is watched.
    pub(crate) fn start(self, clock: Clock) -> Option<Monitoring> {
        if self.entries.is_empty() {
            return None;
        }
        let (sender, notes) = sync_channel(WAITING_MAX);
        let mut ends = Vec::new();
        // There is room for the first note.
        let _ = sender.try_send(UsageNote::Resources(self.resources));
        for entry in self.entries {
            let (end, ended) = channel();
            let sender = sender.clone();
            let watch = thread::Builder::new().name("muster:monitor".to_owned());
            // Without a thread an entry has no samples; a run without threads has other troubles.
            let _ = watch.spawn(move || entry.watch(clock, &sender, &ended));
            ends.push(end);
        }
        Some(Monitoring {
            notes,
            ends,
            is_over: self.is_over,
        })
    }
}

/// The figures over time of the platform's own counters, if it has such. A page that cannot be read is no reason to
/// refuse a run.
fn figures(
    plan: &MonitorPlan,
    page: &WebAddress,
    reader: &CounterReader,
) -> Option<Box<dyn UsageSource>> {
    let source = CounterUsage::new(&plan.name, &page.to_string(), reader.clone(), plan.limit);
    (!source.resources().is_empty()).then(|| Box::new(source) as Box<dyn UsageSource>)
}

/// The source of an entry, read once; none if nothing is sampled.
fn source(
    plan: &MonitorPlan,
    gateways: &[u32],
    is_over: &Arc<AtomicBool>,
) -> Result<Option<Box<dyn UsageSource>>> {
    let (name, limit) = (plan.name.as_str(), plan.limit);
    let mut source: Box<dyn UsageSource> = match &plan.watched {
        Watched::Counters(_) => return Ok(None),
        Watched::Gateway => Box::new(ProcessUsage::of(name, gateways, limit)?),
        Watched::Process(wanted) => Box::new(ProcessUsage::open(name, wanted, limit)?),
        Watched::Cgroup(folder) => Box::new(CgroupUsage::open(name, folder, limit)?),
        Watched::Page(page) => Box::new(PageUsage::new(name, page)),
        Watched::Command(command) => {
            Box::new(CommandUsage::new(plan, command, Arc::clone(is_over))?)
        }
    };
    source.sample(Micros::ZERO)?;
    Ok(Some(source))
}

impl Entry {
    /// Samples until the other end of `ended` is gone, or nothing can be read any more.
    fn watch(mut self, clock: Clock, notes: &SyncSender<UsageNote>, ended: &Receiver<()>) {
        let mut next = clock.now();
        let mut failure: Option<Event> = None;
        loop {
            let wait = Duration::from_micros((next - clock.now()).get());
            if ended.recv_timeout(wait) != Err(RecvTimeoutError::Timeout) {
                break;
            }
            let at = clock.now();
            let note = match self.source.sample(at) {
                Ok(values) => {
                    let failed = failure.take();
                    let over = failed.map(|event| event.until(at.as_secs_f64()));
                    over.into_iter()
                        .for_each(|event| send(notes, UsageNote::Event(event)));
                    let first = self.first;
                    Some(UsageNote::Sample(UsageSample { at, first, values }))
                }
                Err(error) if error.is_final() => {
                    send(
                        notes,
                        UsageNote::Event(self.event(at, MONITOR_ENDED, &error)),
                    );
                    break;
                }
                Err(error) => {
                    failure.get_or_insert_with(|| self.event(at, MONITOR_UNREAD, &error));
                    None
                }
            };
            note.into_iter().for_each(|note| send(notes, note));
            next = later(next, self.every, clock.now());
        }
        failure
            .into_iter()
            .for_each(|event| send(notes, UsageNote::Event(event)));
    }

    fn event(&self, at: Micros, kind: &str, error: &UsageError) -> Event {
        Event::new(at.as_secs_f64(), kind, format!("{}: {error}", self.name))
    }
}

/// The next instant after `now` on the grid of an interval: samples that were missed are left out.
fn later(last: Micros, every: Micros, now: Micros) -> Micros {
    let every = every.get().max(1);
    let passed = (now - last).get() / every + 1;
    last + Micros(passed * every)
}

/// A conductor that has no time for some seconds misses samples; the run goes on.
fn send(notes: &SyncSender<UsageNote>, note: UsageNote) {
    let _ = notes.try_send(note);
}

/// Sampling that goes on.
pub(crate) struct Monitoring {
    notes: Receiver<UsageNote>,
    ends: Vec<Sender<()>>,
    is_over: Arc<AtomicBool>,
}

impl Monitoring {
    /// The notes that came since the last time.
    pub(crate) fn notes(&self) -> impl Iterator<Item = UsageNote> {
        self.notes.try_iter()
    }

    /// Ends sampling, and gives the last notes.
    pub(crate) fn end(self) -> Vec<UsageNote> {
        self.is_over.store(true, Ordering::Relaxed);
        drop(self.ends);
        // It ends when each thread has: they hold the other ends.
        let mut last = Vec::new();
        while let Ok(note) = self.notes.recv_timeout(END_MAX) {
            last.push(note);
        }
        last
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use muster_model::ResourceUnit;

    use super::*;

    /// A source that has these values, and is gone after them.
    struct Listed(Vec<Resource>, VecDeque<Result<f64, UsageError>>);

    impl UsageSource for Listed {
        fn resources(&self) -> &[Resource] {
            &self.0
        }

        fn sample(&mut self, _: Micros) -> Result<Vec<Option<f64>>, UsageError> {
            let ended = || Err(UsageError::Ended("process 7 (x)".to_owned()));
            let next = self.1.pop_front().unwrap_or_else(ended);
            next.map(|value| vec![Some(value)])
        }
    }

    fn notes(values: Vec<Result<f64, UsageError>>) -> Vec<UsageNote> {
        let resource = Resource {
            entry: "x".to_owned(),
            name: "value".to_owned(),
            unit: ResourceUnit::Number,
            limit: None,
        };
        let entry = Entry {
            name: "x".to_owned(),
            every: Micros(1),
            first: 3,
            source: Box::new(Listed(vec![resource], values.into())),
        };
        let (sender, notes) = sync_channel(WAITING_MAX);
        let (_end, ended) = channel();
        entry.watch(Clock::start(), &sender, &ended);
        drop(sender);
        notes.iter().collect()
    }

    #[test]
    fn what_cannot_be_read_is_one_event_with_begin_and_end_and_the_end_another() {
        let failed = || Err(UsageError::Command("it failed".to_owned()));
        let notes = notes(vec![Ok(1.0), failed(), failed(), Ok(2.0)]);
        let words = notes.iter().map(|note| match note {
            UsageNote::Resources(_) => "resources".to_owned(),
            UsageNote::Sample(sample) => format!("{} {:?}", sample.first, sample.values),
            UsageNote::Event(event) => {
                format!(
                    "{} {} {}",
                    event.kind,
                    event.until_s.is_some(),
                    event.detail
                )
            }
        });
        let expected = [
            "3 [Some(1.0)]",
            "monitor-unread true x: it failed",
            "3 [Some(2.0)]",
            "monitor-ended false x: process 7 (x) ended",
        ];
        assert_eq!(words.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn samples_that_were_missed_are_left_out() {
        let ms = Micros::from_millis;
        assert_eq!(later(ms(1_000), ms(500), ms(1_003)), ms(1_500));
        assert_eq!(later(ms(1_000), ms(500), ms(1_500)), ms(2_000));
        assert_eq!(later(ms(1_000), ms(500), ms(2_700)), ms(3_000));
        assert_eq!(later(ms(1_000), ms(500), ms(900)), ms(1_500));
    }
}
