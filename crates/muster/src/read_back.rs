//! Read-back of what the platform has stored, once the load has ended.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result, bail};
use muster_cluster::Observer;
use muster_conduct::{PointInstants, RunData, StoreAccount, recorder_plan};
use muster_load::StreamSchedule;
use muster_measure::{RecorderPlan, WindowDelta};
use muster_model::{BackendId, DeviceSample, Micros, RunId};
use muster_net::Clock;
use muster_plan::Plan;
use muster_provision::{ProvisionError, Store, Stored, store};
use muster_report::Event;

use crate::outcome;
use crate::provisioned::Watcher;
use crate::wall_clock;

/// Time after the first read in which it is read again, while the number of absent messages changes.
const PATIENCE: Micros = Micros::from_secs(120);
/// The event of what could not be read.
const FAILED: &str = "read-back-failed";
/// Allowed difference between the platform's clock and ours.
const APART_MS: i64 = 3_600_000;

/// Refuses a search whose steps are judged while the load goes on: the store is read behind it.
pub(crate) fn refuse(plan: &Plan) -> Result<()> {
    if plan.management.reads_back.is_some() {
        bail!(
            "search with `provision.read-back`: the store is read when the load has ended, and no step could be judged by \
             it; use --set provision.read-back=false, and read back in a run at the capacity"
        );
    }
    Ok(())
}

/// Checks before a run that the store can be read.
pub(crate) fn check(plan: &Plan, interrupted: &AtomicBool) -> Result<()> {
    if let Some(store) = store(plan)? {
        let watch = Watcher::new(interrupted, true);
        store
            .greet(&watch)
            .context("read back what will be stored")?;
    }
    Ok(())
}

/// Reads what the platform has stored, when the load has ended.
pub(crate) struct ReadBack<'a> {
    plan: &'a Plan,
    run: RunId,
    clock: Clock,
}

/// A store, and what its account is made of.
struct Reading<'a> {
    plan: &'a Plan,
    recorder: RecorderPlan,
    schedules: Vec<Arc<StreamSchedule>>,
    account: BackendId,
    store: Box<dyn Store>,
    instants: Arc<PointInstants>,
    clock: Clock,
}

/// The end of reading.
#[derive(Debug)]
enum End {
    /// Nothing that was accepted is absent, or two reads found the same.
    Settled,
    /// More was still being stored.
    Unsettled,
    /// The store could not be read.
    Failed(ProvisionError),
}

/// Reads of a store, one after the other.
#[derive(Debug, Default)]
struct Reads {
    /// End of the first one.
    first: Option<Micros>,
    /// Number of messages that were absent by the last one.
    absent: Option<u64>,
}

impl Reads {
    /// Takes the number of messages that are absent by a read that ended at `now`. Returns the end of reading; none if it is
    /// to be read again.
    fn next(&mut self, absent: u64, now: Micros) -> Option<End> {
        let first = *self.first.get_or_insert(now);
        let before = self.absent.replace(absent);
        if absent == 0 || before == Some(absent) {
            return Some(End::Settled);
        }
        (now - first > PATIENCE).then_some(End::Unsettled)
    }
}

impl<'a> ReadBack<'a> {
    pub(crate) const fn new(plan: &'a Plan, run: RunId, clock: Clock) -> Self {
        Self { plan, run, clock }
    }

    /// Adds the account of the store to the data of the run; the event of it, none where the plan wants none.
    pub(crate) fn add_to(
        &self,
        data: &mut RunData,
        observer: &mut dyn Observer,
        interrupted: &AtomicBool,
    ) -> Option<Event> {
        match self.reading() {
            Ok(reading) => {
                let (windows, event) = reading?.add_to(data, interrupted);
                if !observer.windows(&windows) {
                    data.unkept.merge(&windows);
                }
                Some(event)
            }
            Err(error) => {
                let why = format!("{error:#}");
                outcome::remark(&format!(
                    "warning: what is stored could not be read back: {why}"
                ));
                Some(Event::new(self.clock.now().as_secs_f64(), FAILED, why))
            }
        }
    }

    fn reading(&self) -> Result<Option<Reading<'a>>> {
        let (Some(account), Some(store)) = (self.plan.store(), store(self.plan)?) else {
            return Ok(None);
        };
        let schedules = muster_conduct::schedules(self.plan)?;
        let wall_ms = self.clock.wall_ms_at_t0();
        Ok(Some(Reading {
            plan: self.plan,
            recorder: recorder_plan(self.plan, self.run, &schedules),
            schedules,
            account,
            store,
            instants: Arc::new(PointInstants::new(self.plan, wall_ms)?),
            clock: self.clock,
        }))
    }
}

impl Reading<'_> {
    /// Reads what is stored of all devices: again while something accepted is absent and the number of it changes.
    fn add_to(&self, data: &mut RunData, interrupted: &AtomicBool) -> (WindowDelta, Event) {
        let never = AtomicBool::new(false);
        // A wish for the end from before has ended the load alone.
        let over = match interrupted.load(Ordering::Relaxed) {
            true => &never,
            false => interrupted,
        };
        let began = self.clock.now();
        let mut reads = Reads::default();
        let (mut account, end) = loop {
            let (account, read) = self.read(data, over);
            let end = match read {
                Ok(()) => reads.next(account.absent(data), self.clock.now()),
                Err(error) => Some(End::Failed(error)),
            };
            match end {
                Some(end) => break (account, end),
                None => self.store.rest(self.plan.phases.settle.quiet),
            }
        };
        if matches!(end, End::Settled) {
            account.settle();
        }
        let took = (self.clock.now() - began).as_secs_f64();
        let sample = self.plan.management.reads_back;
        let sample = sample
            .filter(DeviceSample::is_part)
            .map(|sample| format!(", of {} of {} devices", sample.devices(), sample.of()));
        let text = format!(
            "{} messages of {} in {took:.1} s{}",
            account.stored(),
            self.store.name(),
            sample.unwrap_or_default()
        );
        let (kind, text) = match end {
            End::Settled => ("read-back", text),
            End::Unsettled => (FAILED, format!("{text}, and more was still being stored")),
            End::Failed(error) => (FAILED, format!("{text}, then: {error}")),
        };
        if kind == FAILED {
            outcome::remark(&format!(
                "warning: not all that is stored was read back: {text}"
            ));
        }
        let event = Event::new(began.as_secs_f64(), kind, text);
        (account.add_to(data), event)
    }

    /// Reads once.
    fn read(
        &self,
        data: &RunData,
        over: &AtomicBool,
    ) -> (StoreAccount, Result<(), ProvisionError>) {
        let (plan, schedules) = (self.recorder.clone(), &self.schedules);
        let instants = Arc::clone(&self.instants);
        let account = StoreAccount::new(self.account, plan, schedules, data.timeline, instants);
        let account = Mutex::new(account);
        let found = |device, stored: Stored<'_>| {
            let mut account = account.lock().unwrap_or_else(PoisonError::into_inner);
            match stored {
                Stored::Point(point) => account.add(device, point.at, point.id),
                Stored::End => account.all_read(device, data.identity.as_ref()),
            }
        };
        let watch = Watcher::new(over, true);
        let read = self.store.read(self.plan, &self.span(), &found, &watch);
        let account = account.into_inner().unwrap_or_else(PoisonError::into_inner);
        (account, read)
    }

    /// The instants of the run's points, in milliseconds.
    fn span(&self) -> Range<i64> {
        let begin = self.clock.wall_ms_at_t0() as i64;
        let end = wall_clock::now_s() as i64 * 1_000;
        begin - APART_MS..end + APART_MS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads that end every ten seconds, with these numbers of absent messages: the number of reads, and whether they
    /// settled.
    fn reads(absent: impl IntoIterator<Item = u64>) -> Option<(u64, bool)> {
        let mut reads = Reads::default();
        let mut numbered = (1..).zip(absent);
        numbered.find_map(|(number, absent)| {
            let end = reads.next(absent, Micros::from_secs(10 * number))?;
            Some((number, matches!(end, End::Settled)))
        })
    }

    #[test]
    fn it_is_read_until_nothing_is_absent_or_nothing_changes() {
        assert_eq!(reads([0]), Some((1, true)));
        assert_eq!(reads([9, 5, 0]), Some((3, true)));
        assert_eq!(reads([9, 5, 5]), Some((3, true)));
        assert_eq!(reads([9, 5]), None);
    }

    /// More than two minutes after the first read nobody knows what is still to come.
    #[test]
    fn what_goes_on_being_stored_is_not_waited_for_forever() {
        assert_eq!(reads((0..100).rev()), Some((14, false)));
    }
}
