//! A command of the user that prints a number.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use muster_actuator::{Wait, run_shell};
use muster_model::{Micros, Resource, ResourceUnit};
use muster_monitor::{UsageError, UsageSource};
use muster_plan::MonitorPlan;
use tempfile::TempDir;

/// Longest time for one number.
const TIMEOUT: Micros = Micros::from_secs(10);
/// Characters of an output that an error shows.
const SHOWN: usize = 80;

/// Samples the number that a command prints.
pub(super) struct CommandUsage {
    command: String,
    resources: [Resource; 1],
    /// The folder of its output.
    folder: TempDir,
    is_over: Arc<AtomicBool>,
}

impl CommandUsage {
    /// The command of an entry; one that runs when `is_over` becomes true is ended.
    pub(super) fn new(plan: &MonitorPlan, command: &str, is_over: Arc<AtomicBool>) -> Result<Self> {
        let resource = Resource {
            entry: plan.name.clone(),
            name: "value".to_owned(),
            unit: ResourceUnit::Number,
            limit: plan.limit,
        };
        Ok(Self {
            command: command.to_owned(),
            resources: [resource],
            folder: tempfile::tempdir().context("create a folder for its output")?,
            is_over,
        })
    }

    fn number(&self) -> Result<f64, UsageError> {
        let wait = Wait::new(TIMEOUT, &self.is_over);
        let end = run_shell(&self.command, self.folder.path(), "monitor", &wait);
        let end = end.map_err(|error| UsageError::Command(error.to_string()))?;
        if end.code != Some(0) {
            let why = format!("its command ended with {}{}", end.how, end.said);
            return Err(UsageError::Command(why));
        }
        let printed = end.output.trim();
        let number = printed
            .parse()
            .ok()
            .filter(|number: &f64| number.is_finite());
        number.ok_or_else(|| {
            let shown: String = printed.chars().take(SHOWN).collect();
            let why =
                format!("its command printed `{shown}`, which is no number; print one number");
            UsageError::Command(why)
        })
    }
}

impl UsageSource for CommandUsage {
    fn resources(&self) -> &[Resource] {
        &self.resources
    }

    fn sample(&mut self, _: Micros) -> Result<Vec<Option<f64>>, UsageError> {
        Ok(vec![Some(self.number()?)])
    }
}

#[cfg(test)]
mod tests {
    use muster_plan::Watched;

    use super::*;

    fn number(command: &str) -> Result<f64, String> {
        let plan = MonitorPlan {
            name: "lag".to_owned(),
            watched: Watched::Command(command.to_owned()),
            every: Micros::from_secs(1),
            limit: None,
        };
        let usage = CommandUsage::new(&plan, command, Arc::default()).expect("a folder");
        usage.number().map_err(|error| error.to_string())
    }

    #[test]
    fn a_command_prints_a_number() {
        assert_eq!(number("echo ' 1.5e3 '"), Ok(1_500.0));
        assert_eq!(number("echo 7; echo 8 >&2"), Ok(7.0));
    }

    #[test]
    fn a_command_that_fails_or_prints_something_else_is_named_with_its_words() {
        let failed = number("echo no such queue >&2; exit 3").expect_err("it fails");
        assert_eq!(failed, "its command ended with code 3: no such queue");
        for (command, printed) in [("echo a b", "`a b`"), ("true", "``"), ("echo inf", "`inf`")] {
            let refused = number(command).expect_err("it is no number");
            assert!(refused.contains(printed), "{refused}");
        }
    }
}
