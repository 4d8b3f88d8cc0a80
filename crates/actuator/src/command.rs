//! Commands of the user.

use muster_plan::Endpoint;

use crate::journal::{Journal, Original};
use crate::program::{filled, run};
use crate::{Actuator, ActuatorError, Site, Wait};

/// Sets and reads the number of instances by commands.
#[derive(Debug)]
pub struct CommandActuator {
    set: Vec<String>,
    actual: Vec<String>,
    site: Site,
    journal: Journal,
    original: Option<Original>,
}

impl CommandActuator {
    /// An actuator that runs these commands.
    ///
    /// # Errors
    /// If the record in the folder is unreadable.
    pub fn open(set: Vec<String>, actual: Vec<String>, site: Site) -> Result<Self, ActuatorError> {
        let (journal, original) = Journal::open(&site)?;
        Ok(Self {
            set,
            actual,
            site,
            journal,
            original,
        })
    }

    fn follow(&mut self, count: u32, wait: &Wait<'_>) -> Result<(), ActuatorError> {
        let count_text = count.to_string();
        let program = self.site.program.display().to_string();
        let words = filled(&self.set, &[("count", &count_text), ("muster", &program)]);
        run(&words, &self.site.folder.join("set.log"), wait)?;
        let mut last = 0;
        let reached = wait.until(|| {
            last = self.actual(wait)?;
            Ok((last == count).then_some(()))
        })?;
        reached.ok_or_else(|| ActuatorError::DidNotFollow {
            wanted: count,
            there: format!("{last} are"),
            after: wait.length(),
            why: String::new(),
        })
    }
}

impl Actuator for CommandActuator {
    fn set(&mut self, count: u32, wait: &Wait<'_>) -> Result<(), ActuatorError> {
        if self.original.is_none() {
            let instances = self.actual(wait)?;
            let original = Original { instances };
            self.journal.write(&original)?;
            self.original = Some(original);
        }
        self.follow(count, wait)
    }

    fn actual(&mut self, wait: &Wait<'_>) -> Result<u32, ActuatorError> {
        let program = self.site.program.display().to_string();
        let words = filled(&self.actual, &[("muster", &program)]);
        let printed = run(&words, &self.site.folder.join("actual.log"), wait)?;
        printed.trim().parse().map_err(|_| ActuatorError::NoNumber {
            program: words.join(" "),
            printed: printed.trim().chars().take(80).collect(),
        })
    }

    fn restore(&mut self, wait: &Wait<'_>) -> Result<(), ActuatorError> {
        if let Some(original) = self.original {
            self.follow(original.instances, wait)?;
            self.journal.close()?;
            self.original = None;
        }
        Ok(())
    }

    fn addresses(&self, _count: u32) -> Option<Vec<Endpoint>> {
        None
    }
}
