//! Commands of the user before, while and after a run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result};
use muster_actuator::{ActuatorError, Wait, run_shell};
use muster_conduct::{Part, Standing};
use muster_measure::{Phase, Timeline};
use muster_model::Micros;
use muster_net::Clock;
use muster_plan::{HookPlan, HookTime, Plan};
use muster_report::HookRun;
use tempfile::TempDir;

use crate::outcome;

/// Longest wait for the end of a hook before a look for the user's interrupt.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The hooks of a run.
pub(crate) struct Hooks {
    /// Hooks that have not been started.
    waiting: Vec<HookPlan>,
    /// Runs of those before the load.
    done: Vec<HookRun>,
    running: Vec<JoinHandle<()>>,
    ended: Receiver<HookRun>,
    sender: Sender<HookRun>,
    /// The folder of their output.
    folder: Arc<TempDir>,
    /// True once nobody waits for them any more.
    is_over: Arc<AtomicBool>,
    /// True once one was started, so that those after the load are owed.
    has_begun: bool,
}

impl Hooks {
    /// The hooks of a plan. Of several parts of a run, the first with devices starts them.
    pub(crate) fn new(plan: &Plan, part: Part) -> Result<Self> {
        let is_first = part.links.is_some_and(|slice| slice.index == 0);
        let waiting = plan.platform.hooks.iter().filter(|_| is_first).cloned();
        let (sender, ended) = channel();
        Ok(Self {
            waiting: waiting.collect(),
            done: Vec::new(),
            running: Vec::new(),
            ended,
            sender,
            folder: Arc::new(tempfile::tempdir().context("create a folder for hooks")?),
            is_over: Arc::default(),
            has_begun: false,
        })
    }

    /// Runs the hooks before the load, one after the other; `interrupted` ends them.
    ///
    /// # Errors
    /// The end of the first that fails.
    pub(crate) fn before(&mut self, interrupted: &AtomicBool) -> Result<(), String> {
        let is_before = |hook: &mut HookPlan| hook.when == HookTime::Before;
        let hooks: Vec<HookPlan> = self.waiting.extract_if(.., is_before).collect();
        for hook in &hooks {
            self.has_begun = true;
            let run = run(hook, &self.folder, Clock::start(), interrupted);
            if !run.succeeded() {
                return Err(run.words());
            }
            self.done.push(run);
        }
        Ok(())
    }

    /// Starts those that are due, and gives those that have ended.
    pub(crate) fn turn(&mut self, standing: &Standing, clock: Clock) -> Vec<HookRun> {
        let (now, timeline) = (standing.now, standing.timeline);
        let is_due = |hook: &mut HookPlan| due(hook, timeline).is_some_and(|due| due <= now);
        let hooks: Vec<HookPlan> = self.waiting.extract_if(.., is_due).collect();
        for hook in hooks {
            let (sender, folder) = (self.sender.clone(), Arc::clone(&self.folder));
            let is_over = Arc::clone(&self.is_over);
            self.running.push(thread::spawn(move || {
                // Nobody may be there to hear it.
                let _ = sender.send(run(&hook, &folder, clock, &is_over));
            }));
        }
        self.done.drain(..).chain(self.ended.try_iter()).collect()
    }

    /// Waits for those that run, runs those after the load, and gives all of them, and those whose time never came.
    pub(crate) fn end(mut self, clock: Clock, interrupted: &AtomicBool) -> Vec<HookRun> {
        while !self.running.iter().all(JoinHandle::is_finished) {
            if interrupted.load(Ordering::Relaxed) {
                self.is_over.store(true, Ordering::Relaxed);
            }
            // One that panicked has no result, and there is no other trace of it.
            self.done.extend(self.ended.recv_timeout(LOOK_EVERY).ok());
        }
        let mut runs: Vec<HookRun> = self.done.drain(..).chain(self.ended.try_iter()).collect();
        runs.extend(self.after(clock));
        runs.extend(self.waiting.drain(..).map(|hook| not_due(&hook)));
        runs
    }

    /// Runs those after the load, once: what puts the target back is wanted after a run that was interrupted, too.
    fn after(&mut self, clock: Clock) -> Vec<HookRun> {
        let is_after = |hook: &mut HookPlan| hook.when == HookTime::After;
        let after: Vec<HookPlan> = self.waiting.extract_if(.., is_after).collect();
        let never = AtomicBool::new(false);
        let runs = after
            .iter()
            .map(|hook| run(hook, &self.folder, clock, &never));
        runs.collect()
    }
}

/// A run that fails to begin puts the target back as well.
impl Drop for Hooks {
    fn drop(&mut self) {
        if !self.has_begun {
            return;
        }
        let failed = self.after(Clock::start());
        for run in failed.iter().filter(|run| !run.succeeded()) {
            outcome::remark(&format!("error: {}", run.words()));
        }
    }
}

/// The instant of a hook in a phase; none before the timeline is known.
fn due(hook: &HookPlan, timeline: Timeline) -> Option<Micros> {
    let HookTime::In { phase, after } = hook.when else {
        return None;
    };
    let begin = match phase {
        Phase::Connect => Micros::ZERO,
        Phase::WarmUp => timeline.origin,
        Phase::Measure => timeline.measure,
        Phase::Settle => timeline.settle,
    };
    (begin < Micros::MAX).then(|| begin + after)
}

fn run(hook: &HookPlan, folder: &TempDir, clock: Clock, is_over: &AtomicBool) -> HookRun {
    let begin = clock.now();
    let wait = Wait::new(hook.timeout, is_over);
    let name = format!("hook-{}", hook.name.replace('/', "-"));
    let end = run_shell(&hook.command, folder.path(), &name, &wait);
    let took = clock.now() - begin;
    let (code, end, output, error) = match end {
        Ok(end) => (end.code, end.how, end.output, end.said),
        Err(error) => {
            let was_ended = matches!(error, ActuatorError::Interrupted);
            let end = if was_ended {
                "ended with the run".to_owned()
            } else {
                error.to_string()
            };
            (None, end, String::new(), String::new())
        }
    };
    HookRun {
        name: hook.name.clone(),
        t_s: Some(begin.as_secs_f64()),
        took_s: Some(took.as_secs_f64()),
        code,
        end,
        output,
        error: error.trim_start_matches(": ").to_owned(),
    }
}

fn not_due(hook: &HookPlan) -> HookRun {
    HookRun {
        name: hook.name.clone(),
        t_s: None,
        took_s: None,
        code: None,
        end: "not started: the run ended before its time".to_owned(),
        output: String::new(),
        error: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hook(command: &str, timeout: Micros) -> HookPlan {
        HookPlan {
            name: "a/b".to_owned(),
            command: command.to_owned(),
            when: HookTime::Before,
            timeout,
        }
    }

    fn outcome(command: &str, timeout: Micros) -> HookRun {
        let folder = tempfile::tempdir().expect("a folder");
        let never = AtomicBool::new(false);
        run(&hook(command, timeout), &folder, Clock::start(), &never)
    }

    #[test]
    fn a_hook_has_its_code_and_its_output() {
        let done = outcome("echo put back; exit 0", Micros::from_secs(30));
        assert!(done.succeeded());
        assert_eq!(
            (done.end.as_str(), done.output.as_str()),
            ("code 0", "put back\n")
        );
        let failed = outcome("echo no such unit >&2; exit 4", Micros::from_secs(30));
        assert_eq!(failed.words(), "hook `a/b`: code 4: no such unit");
    }

    #[test]
    fn a_hook_that_hangs_is_ended_and_named() {
        let hung = outcome("sleep 600", Micros::from_millis(100));
        assert_eq!(hung.code, None);
        assert!(hung.end.starts_with("no exit after "), "{hung:?}");
        assert!(hung.took_s.is_some_and(|took| took < 60.0), "{hung:?}");
    }

    #[test]
    fn a_hook_is_due_after_the_begin_of_its_phase() {
        let secs = Micros::from_secs;
        let timeline = Timeline::starting(secs(5), secs(10), secs(60));
        let at = |phase, timeline| {
            let when = HookTime::In {
                phase,
                after: secs(3),
            };
            let hook = HookPlan {
                when,
                ..hook("true", secs(1))
            };
            due(&hook, timeline)
        };
        let phases = [Phase::Connect, Phase::WarmUp, Phase::Measure, Phase::Settle];
        let instants = phases.map(|phase| at(phase, timeline));
        assert_eq!(instants, [3, 8, 18, 78].map(|second| Some(secs(second))));
        assert_eq!(at(Phase::Measure, Timeline::CONNECTING), None);
    }
}
