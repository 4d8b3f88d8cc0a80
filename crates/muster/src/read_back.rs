//! Read-back of what the platform has stored, once the load has ended.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::sleep;
use std::time::Duration;

use muster_cluster::Observer;
use muster_conduct::{RunData, StoreAccount, recorder_plan};
use muster_load::StreamSchedule;
use muster_measure::{Account, RecorderPlan, State, StreamAccount, WindowDelta};
use muster_model::{BackendId, Micros, RunId};
use muster_net::Clock;
use muster_plan::Plan;
use muster_provision::{ProvisionError, Store, store};
use muster_report::Event;

use crate::outcome;
use crate::provisioned::Watcher;
use crate::wall_clock;

/// The longest time for which it is read again while more is stored than before.
const PATIENCE: Micros = Micros::from_secs(120);
/// Time between two looks at the wish to end.
const TURN: Duration = Duration::from_millis(50);
/// The event of what could not be read.
const FAILED: &str = "read-back-failed";
/// Allowed difference between the platform's clock and ours.
const APART_MS: i64 = 3_600_000;

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
    clock: Clock,
}

/// Result of one read.
struct Found {
    account: StoreAccount,
    messages: u64,
    failed: Option<ProvisionError>,
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

    fn reading(&self) -> anyhow::Result<Option<Reading<'a>>> {
        let (Some(account), Some(store)) = (self.plan.store(), store(self.plan)?) else {
            return Ok(None);
        };
        let schedules = muster_conduct::schedules(self.plan)?;
        Ok(Some(Reading {
            plan: self.plan,
            recorder: recorder_plan(self.plan, self.run, &schedules),
            schedules,
            account,
            store,
            clock: self.clock,
        }))
    }
}

impl Reading<'_> {
    /// Reads what is stored of all devices: again while something accepted is missing and more comes, unless the user
    /// has asked for the end.
    fn add_to(&self, data: &mut RunData, interrupted: &AtomicBool) -> (WindowDelta, Event) {
        let clock = self.clock;
        let began = clock.now();
        let expected = data.account.as_ref().map_or(0, expected);
        let span = self.span();
        let mut before = None;
        let found = loop {
            let found = self.read(&span, data);
            let is_whole = found.messages >= expected || before == Some(found.messages);
            let is_over = clock.now() > began + PATIENCE || interrupted.load(Ordering::Relaxed);
            if is_whole || is_over || found.failed.is_some() {
                break found;
            }
            before = Some(found.messages);
            self.rest(interrupted);
        };
        let took = (clock.now() - began).as_secs_f64();
        let text = match &found.failed {
            None => format!(
                "{} messages of {} in {took:.1} s",
                found.messages,
                self.store.name()
            ),
            Some(error) => {
                outcome::remark(&format!(
                    "warning: not all that is stored could be read back: {error}; the devices that were not read \
                     are outstanding"
                ));
                format!("{} messages, then: {error}", found.messages)
            }
        };
        let kind = match found.failed {
            None => "read-back",
            Some(_) => FAILED,
        };
        let windows = found.account.add_to(data);
        (windows, Event::new(began.as_secs_f64(), kind, text))
    }

    /// Reads once. A second signal ends the program.
    fn read(&self, span: &Range<i64>, data: &RunData) -> Found {
        let never = AtomicBool::new(false);
        let account = StoreAccount::new(
            self.account,
            self.recorder.clone(),
            &self.schedules,
            data.timeline,
        );
        let state = Mutex::new((account, 0));
        let found = |device, value: Option<&str>| {
            let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
            let (account, messages) = &mut *state;
            match value {
                Some(id) => *messages += u64::from(account.add(id)),
                None => account.all_read(device),
            }
        };
        let watcher = Watcher::new(&never, true);
        let read = self.store.read(self.plan, span, &found, &watcher);
        let (account, messages) = state.into_inner().unwrap_or_else(PoisonError::into_inner);
        Found {
            account,
            messages,
            failed: read.err(),
        }
    }

    /// Waits until what was on its way may be stored.
    fn rest(&self, interrupted: &AtomicBool) {
        let until = self.clock.now() + self.plan.phases.settle.quiet;
        while self.clock.now() < until && !interrupted.load(Ordering::Relaxed) {
            sleep(TURN);
        }
    }

    /// The instants of the run's points, in milliseconds.
    fn span(&self) -> Range<i64> {
        let begin = self.clock.wall_ms_at_t0() as i64;
        let end = wall_clock::now_s() as i64 * 1_000;
        begin - APART_MS..end + APART_MS
    }
}

/// Messages that every account of arrivals is to have.
fn expected(account: &Account) -> u64 {
    let of = |stream: &StreamAccount| {
        let states = [State::Accepted, State::Unacknowledged];
        let counts = states.map(|state| stream.states[state.index()].count);
        counts.into_iter().sum::<u64>()
    };
    account.streams.iter().map(of).sum()
}
