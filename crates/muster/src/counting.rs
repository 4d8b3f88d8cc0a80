//! The count of messages in the platform's rule engine, for the time of a run.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use muster_net::Clock;
use muster_plan::{Plan, PlatformKind, ProvisionMode};
use muster_provision::{
    JOURNAL, Journal, NodeCounts, ProvisionError, ServerCounter, Summary, Watch,
};
use muster_report::{Event, NodeCount};
use muster_result::Counted;

use crate::outcome;
use crate::outputs::result_folder;
use crate::provisioned::Watcher;
use crate::wall_clock;

/// The platform's rule chain that counts, until it is put back.
pub(crate) struct Counting {
    counter: ServerCounter,
    /// The folder of the record.
    folder: PathBuf,
    /// The record, taken when the chain is put back.
    journal: Option<Journal>,
    /// Wall clock when it began to count, in milliseconds.
    from_ms: i64,
}

impl Counting {
    /// Makes a rule chain that counts the root, if the scenario wants it. What was changed is put back if that fails.
    ///
    /// # Errors
    /// [`ProvisionError`].
    pub(crate) fn begin(
        plan: &Plan,
        folder: &Path,
        watch: &dyn Watch,
    ) -> Result<Option<Self>, ProvisionError> {
        let mode = plan.provision.as_ref().map(|provision| provision.mode);
        if matches!(mode, None | Some(ProvisionMode::None)) {
            return Ok(None);
        }
        let Some(counter) = ServerCounter::of_plan(plan)? else {
            return Ok(None);
        };
        let folder = folder_of(plan, folder);
        fs::create_dir_all(&folder).map_err(|why| ProvisionError::Journal {
            path: folder.display().to_string(),
            why: why.to_string(),
        })?;
        let journal = Journal::open(&folder, counter.target())?;
        let counting = Self {
            from_ms: now_ms(),
            counter,
            folder,
            journal: Some(journal),
        };
        // What is changed before it fails is put back when `counting` is dropped.
        if let Some(journal) = &counting.journal {
            counting.counter.install(journal, watch)?;
        }
        Ok(Some(counting))
    }

    /// Reads the counts and puts the rule chain back.
    pub(crate) fn end(mut self, clock: Clock) -> CountingEnd {
        let never = AtomicBool::new(false);
        let counts = self
            .counter
            .last_counts(self.from_ms, &Watcher::new(&never, true));
        let now = clock.now().as_secs_f64();
        let mut end = CountingEnd::default();
        match counts {
            Ok(nodes) => end.counted.nodes = Some(nodes.iter().map(figures).collect()),
            Err(error) => end
                .events
                .push(Event::new(now, "not-counted", error.to_string())),
        }
        let restored = self.restore();
        let now = clock.now().as_secs_f64();
        end.events
            .extend(restored.map(|(kind, detail)| Event::new(now, kind, detail)));
        end
    }

    /// Once at the most; says itself what went wrong.
    fn restore(&mut self) -> Option<(&'static str, String)> {
        let journal = self.journal.take()?;
        let never = AtomicBool::new(false);
        let restored = self.counter.restore(&journal, &Watcher::new(&never, true));
        if journal.is_empty() {
            // It tells of nothing that is there; a folder with other files stays.
            let _ = fs::remove_file(self.folder.join(JOURNAL));
            let _ = fs::remove_dir(&self.folder);
        }
        Some(match restored {
            Ok(summary) => ("rule-chain-restored", summary.to_string()),
            Err(error) => {
                outcome::remark(&format!(
                    "error: failed to put the root rule chain back: {error}; try again with `muster provision \
                     SCENARIO restore`"
                ));
                ("rule-chain-not-restored", error.to_string())
            }
        })
    }
}

/// Counts that the platform made itself, and events of what was done.
#[derive(Debug, Default)]
pub(crate) struct CountingEnd {
    pub(crate) counted: Counted,
    pub(crate) events: Vec<Event>,
}

fn figures(of: &NodeCounts) -> NodeCount {
    NodeCount {
        node: of.node.clone(),
        messages: of.total(),
        intervals: of.intervals(),
        interval_s: of.interval_s(),
        rate: of.rate(),
        average: of.published_average(),
    }
}

/// A run that fails to begin puts the chain back, too.
impl Drop for Counting {
    fn drop(&mut self) {
        let _ = self.restore();
    }
}

/// Puts the rule chain back that a killed run has left root.
///
/// # Errors
/// [`ProvisionError`]; what is left stays in the record.
pub(crate) fn restore(
    plan: &Plan,
    folder: &Path,
    watch: &dyn Watch,
) -> Result<Option<Summary>, ProvisionError> {
    let counter = ServerCounter::of_plan(plan)?;
    let recorded = folder.join(JOURNAL).exists();
    match counter.filter(|_| recorded) {
        Some(counter) => {
            let journal = Journal::open(folder, counter.target())?;
            counter.restore(&journal, watch).map(Some)
        }
        None => Ok(None),
    }
}

/// The folder of the record: one for all runs of a scenario, so that the next one finds what a killed one has left. The
/// embedded gateway ends with its run, and leaves nothing.
fn folder_of(plan: &Plan, run: &Path) -> PathBuf {
    match plan.platform.kind {
        PlatformKind::Gateway { .. } => run.join("rule-chain"),
        PlatformKind::Deployed { .. } => default_folder(plan),
    }
}

/// The same for every call, so that the next one knows what this one did.
pub(crate) fn default_folder(plan: &Plan) -> PathBuf {
    result_folder(plan, "provision")
}

fn now_ms() -> i64 {
    wall_clock::now_s() as i64 * 1_000
}
