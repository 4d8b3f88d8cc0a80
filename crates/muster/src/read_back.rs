//! Read-back of what the platform has stored, once the load has ended.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use muster_cluster::Observer;
use muster_conduct::{RunData, StoreAccount, recorder_plan};
use muster_load::StreamSchedule;
use muster_measure::{Account, RecorderPlan, State, StreamAccount, WindowDelta};
use muster_model::{BackendId, Micros, RunId};
use muster_net::Clock;
use muster_plan::Plan;
use muster_provision::{ProvisionError, Store, Watch, store};
use muster_report::Event;

use crate::outcome;
use crate::provisioned::Watcher;
use crate::wall_clock;

/// The longest time for which it is read again while more is stored than before.
const PATIENCE: Micros = Micros::from_secs(120);
/// The event of what could not be read.
const FAILED: &str = "read-back-failed";
/// Allowed difference between the platform's clock and ours.
const APART_MS: i64 = 3_600_000;

/// Reads what the platform has stored and adds its account to the data of the run; the event of it, none where the
/// plan wants none.
pub(crate) fn read_back(
    plan: &Plan,
    run: RunId,
    data: &mut RunData,
    observer: &mut dyn Observer,
    (clock, interrupted): (Clock, &AtomicBool),
) -> Option<Event> {
    match ReadBack::of(plan, run) {
        Ok(read_back) => {
            let (windows, event) = read_back?.add_to(data, clock, interrupted);
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
            Some(Event::new(clock.now().as_secs_f64(), FAILED, why))
        }
    }
}

/// A store that is read when the load has ended.
struct ReadBack<'a> {
    plan: &'a Plan,
    recorder: RecorderPlan,
    schedules: Vec<Arc<StreamSchedule>>,
    account: BackendId,
    store: Box<dyn Store>,
}

/// Result of one read.
struct Found {
    account: StoreAccount,
    messages: u64,
    failed: Option<ProvisionError>,
}

impl<'a> ReadBack<'a> {
    /// The read-back of a plan; none if it wants none.
    ///
    /// # Errors
    /// If the store cannot be read at all.
    fn of(plan: &'a Plan, run: RunId) -> anyhow::Result<Option<Self>> {
        let (Some(account), Some(store)) = (plan.store(), store(plan)?) else {
            return Ok(None);
        };
        let schedules = muster_conduct::schedules(plan)?;
        Ok(Some(Self {
            recorder: recorder_plan(plan, run, &schedules),
            plan,
            schedules,
            account,
            store,
        }))
    }

    /// Reads what is stored of all devices and adds its account to the data of the run: again while something accepted is
    /// missing and more comes.
    fn add_to(
        &self,
        data: &mut RunData,
        clock: Clock,
        interrupted: &AtomicBool,
    ) -> (WindowDelta, Event) {
        let began = clock.now();
        let expected = data.account.as_ref().map_or(0, expected);
        let span = self.span(clock);
        let mut before = None;
        let found = loop {
            let found = self.read(&span, data, interrupted);
            let is_whole = found.messages >= expected || before == Some(found.messages);
            let is_over = clock.now() > began + PATIENCE || interrupted.load(Ordering::Relaxed);
            if is_whole || is_over || found.failed.is_some() {
                break found;
            }
            before = Some(found.messages);
            self.rest(clock, interrupted);
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

    fn read(&self, span: &Range<i64>, data: &RunData, interrupted: &AtomicBool) -> Found {
        let account = StoreAccount::new(
            self.account,
            self.recorder.clone(),
            &self.schedules,
            data.timeline,
        );
        let state = Mutex::new((account, 0));
        let watcher = Watcher::new(interrupted, true);
        let read = self.store.read(
            self.plan,
            span,
            &|device, value| {
                let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
                let (account, messages) = &mut *state;
                match value {
                    Some(id) => *messages += u64::from(account.add(id)),
                    None => account.all_read(device),
                }
            },
            &watcher,
        );
        let (account, messages) = state.into_inner().unwrap_or_else(PoisonError::into_inner);
        Found {
            account,
            messages,
            failed: read.err(),
        }
    }

    /// Waits until what was on its way may be stored.
    fn rest(&self, clock: Clock, interrupted: &AtomicBool) {
        let until = clock.now() + self.plan.phases.settle.quiet;
        let watcher = Watcher::new(interrupted, true);
        while clock.now() < until && !watcher.is_over() {
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }

    /// The instants of the run's points, in milliseconds.
    fn span(&self, clock: Clock) -> Range<i64> {
        let begin = clock.wall_ms_at_t0() as i64;
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
