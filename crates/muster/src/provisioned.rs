//! Devices that a run creates on the platform before they connect and removes at its end.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use muster_net::Clock;
use muster_plan::{Plan, ProvisionMode};
use muster_provision::{
    JOURNAL, Journal, ProvisionError, Provisioner, Registered, Registrar, Summary, Watch,
    provisioner,
};
use muster_report::Event;

use crate::counters::CounterWatch;
use crate::counting::{Counting, CountingEnd};
use crate::outcome;

/// The reports of progress by share of the work.
const TIMES: u64 = 10;
/// The longest time without a report of progress.
const EVERY_S: f64 = 10.0;

/// Reports the progress, and passes on that the user wants the end.
pub(crate) struct Watcher<'a> {
    interrupted: &'a AtomicBool,
    quiet: bool,
    /// Shares of the work that were reported.
    parts: AtomicU64,
    /// Spans of time in which progress was reported.
    spans: AtomicU64,
    began: Clock,
}

impl<'a> Watcher<'a> {
    pub(crate) fn new(interrupted: &'a AtomicBool, quiet: bool) -> Self {
        Self {
            interrupted,
            quiet,
            parts: AtomicU64::new(0),
            spans: AtomicU64::new(0),
            began: Clock::start(),
        }
    }
}

impl Watch for Watcher<'_> {
    fn progress(&self, done: u64, of: u64) {
        let since_s = self.began.now().as_secs_f64();
        let (part, span) = (done * TIMES / of.max(1), (since_s / EVERY_S) as u64);
        let is_part = self.parts.fetch_max(part, Ordering::Relaxed) < part;
        let is_span = self.spans.fetch_max(span, Ordering::Relaxed) < span;
        if !self.quiet && (is_part || is_span) {
            // As fast as until now; what was there already took one call and not two or three.
            let left_s = since_s * (of - done) as f64 / done as f64;
            outcome::remark(&format!(
                "provision: {done} of {of}, about {left_s:.0} s left"
            ));
        }
    }

    fn remark(&self, what: &str) {
        outcome::remark(&format!("warning: {what}"));
    }

    fn is_over(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }
}

/// A run that could not begin because of its devices.
pub(crate) struct NotProvisioned {
    /// The reason in words.
    pub(crate) text: String,
    /// True if the platform is as it was.
    pub(crate) leaves_nothing: bool,
    /// True if the user asked for the end.
    pub(crate) is_interrupted: bool,
}

/// The devices of a run on the platform.
pub(crate) struct Provisioned {
    provisioner: Arc<dyn Provisioner>,
    journal: Option<Arc<Journal>>,
    removes: bool,
    summary: Summary,
    /// Registers those that are refused; none where all were registered before.
    registrar: Option<Arc<Registrar>>,
    /// The rule chain that counts on the platform; none where nothing is counted there.
    counting: Option<Counting>,
    /// Begins when the platform knew them.
    at: Clock,
}

/// Creates or verifies the devices on the platform and counts there, if the scenario wants it.
pub(crate) fn before(
    plan: &Plan,
    folder: &Path,
    watch: &Watcher<'_>,
) -> Result<Option<Provisioned>, NotProvisioned> {
    let provisioned = devices(plan, folder, watch)?;
    let Some(mut provisioned) = provisioned else {
        return Ok(None);
    };
    // The devices are removed when `provisioned` is dropped.
    provisioned.counting =
        Counting::begin(plan, folder, watch).map_err(|error| NotProvisioned {
            is_interrupted: is_interruption(&error),
            text: format!("count on the platform: {error}"),
            leaves_nothing: false,
        })?;
    Ok(Some(provisioned))
}

fn devices(
    plan: &Plan,
    folder: &Path,
    watch: &Watcher<'_>,
) -> Result<Option<Provisioned>, NotProvisioned> {
    let Some(provision) = plan.provision.as_ref() else {
        return Ok(None);
    };
    let unchanged = |error: ProvisionError| NotProvisioned {
        is_interrupted: is_interruption(&error),
        text: error.to_string(),
        leaves_nothing: true,
    };
    let provisioner = match provision.mode {
        ProvisionMode::None => return Ok(None),
        ProvisionMode::Auto | ProvisionMode::Verify | ProvisionMode::OnRefusal => {
            provisioner(plan).map_err(unchanged)?
        }
    };
    let Some(provisioner) = provisioner.map(Arc::<dyn Provisioner>::from) else {
        return Ok(None);
    };
    if provision.mode == ProvisionMode::Verify {
        let summary = provisioner.verify(plan, watch).map_err(unchanged)?;
        return verified(provisioner, summary).map(Some);
    }
    let journal = Journal::open(folder, provisioner.target()).map_err(unchanged)?;
    let journal = Arc::new(journal);
    if provision.mode == ProvisionMode::OnRefusal {
        let registrar = Registrar::start(plan, Arc::clone(&provisioner), Arc::clone(&journal));
        return Ok(Some(Provisioned {
            registrar: Some(Arc::new(registrar.map_err(unchanged)?)),
            provisioner,
            journal: Some(journal),
            removes: provision.remove,
            summary: Summary::default(),
            counting: None,
            at: Clock::start(),
        }));
    }
    match provisioner.create(plan, &journal, watch) {
        Ok(summary) => Ok(Some(Provisioned {
            provisioner,
            journal: Some(journal),
            removes: provision.remove,
            summary,
            registrar: None,
            counting: None,
            at: Clock::start(),
        })),
        Err(error) => {
            if provision.remove {
                remove(&*provisioner, &journal);
            }
            let leaves_nothing = journal.is_empty();
            if leaves_nothing {
                // It tells of nothing that is there.
                let _ = std::fs::remove_file(folder.join(JOURNAL));
            }
            Err(NotProvisioned {
                is_interrupted: is_interruption(&error),
                text: format!("provision the devices: {error}"),
                leaves_nothing,
            })
        }
    }
}

/// A platform that lacks something is no target.
fn verified(
    provisioner: Arc<dyn Provisioner>,
    summary: Summary,
) -> Result<Provisioned, NotProvisioned> {
    if summary.is_as_wanted() {
        return Ok(Provisioned {
            provisioner,
            journal: None,
            removes: false,
            summary,
            registrar: None,
            counting: None,
            at: Clock::start(),
        });
    }
    Err(NotProvisioned {
        text: format!(
            "find all devices at {}: {summary}: {}; create them with `muster provision SCENARIO \
             create`",
            provisioner.target(),
            summary.wrong.join(", ")
        ),
        leaves_nothing: true,
        is_interrupted: false,
    })
}

const fn is_interruption(error: &ProvisionError) -> bool {
    matches!(error, ProvisionError::Interrupted)
}

impl Provisioned {
    /// Registers those that the platform refuses during the run; none where all were registered before.
    pub(crate) fn registrar(&self) -> Option<Arc<Registrar>> {
        self.registrar.clone()
    }

    /// Reads the counts and removes what was created, if the scenario wants it; what was done, as events.
    /// Instants count from the run's T0: what came before it is negative.
    pub(crate) fn after(mut self, clock: Clock) -> CountingEnd {
        let counting = self.counting.take();
        let mut end = counting.map_or_else(CountingEnd::default, |counting| counting.end(clock));
        let at_s = clock.now().as_secs_f64() - self.at.now().as_secs_f64();
        let created = match self.registrar.take() {
            Some(registrar) => registered(&registrar.end(), clock.now().as_secs_f64()),
            None => Event::new(at_s, "provisioned", self.summary.to_string()),
        };
        let removed = self.remove();
        let now = clock.now().as_secs_f64();
        let removed = removed.map(|(kind, detail)| Event::new(now, kind, detail));
        end.events
            .extend([Some(created), removed].into_iter().flatten());
        end
    }

    /// Once at the most.
    fn remove(&mut self) -> Option<(&'static str, String)> {
        if let Some(registrar) = self.registrar.take() {
            registrar.end();
        }
        let journal = self.journal.take().filter(|_| self.removes)?;
        Some(remove(&*self.provisioner, &journal))
    }
}

/// Reads the platform's own counts, then removes what was created there.
pub(crate) fn end(
    counters: Option<CounterWatch>,
    provisioned: Option<Provisioned>,
    clock: Clock,
) -> CountingEnd {
    let counters = counters.map(|counters| counters.end(clock));
    let mut end = provisioned.map(|it| it.after(clock)).unwrap_or_default();
    if let Some(read) = counters {
        end.counted.counters = Some(read.counters);
        end.events.extend(read.unread);
    }
    end
}

/// Registrations during the run, and the refusals before them, as an event.
fn registered(done: &Registered, at_s: f64) -> Event {
    let mut text = format!(
        "{} links were refused, {} times in all; {}",
        done.links, done.refusals, done.summary
    );
    if done.failed > 0 {
        let errors = done.errors.join("; ");
        text.push_str(&format!(
            "; {} links could not be registered: {errors}",
            done.failed
        ));
    }
    Event::new(at_s, "registered-on-refusal", text)
}

/// A run that fails to begin leaves nothing behind either.
impl Drop for Provisioned {
    fn drop(&mut self) {
        // Both say themselves what went wrong. The counts are stored by the rule chain, which goes first.
        drop(self.counting.take());
        let _ = self.remove();
    }
}

/// Removes what was created, also when the user has asked for the end: a second signal ends the program.
fn remove(provisioner: &dyn Provisioner, journal: &Journal) -> (&'static str, String) {
    let never = AtomicBool::new(false);
    match provisioner.remove(journal, &Watcher::new(&never, true)) {
        Ok(summary) => ("deprovisioned", summary.to_string()),
        Err(error) => {
            let left = journal.len();
            outcome::remark(&format!(
                "error: failed to remove what was created ({left} left): {error}; try again with \
                 `muster provision SCENARIO remove --out` and the folder of this result"
            ));
            ("not-deprovisioned", format!("{left} left: {error}"))
        }
    }
}
