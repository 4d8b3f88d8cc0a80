//! Commands of the user.

use muster_plan::{Endpoint, Variable};

use crate::journal::{Journal, Original};
use crate::program::{Program, filled, run};
use crate::{Actuator, ActuatorError, Site, Wait};

/// Sets and reads the number of instances by commands.
#[derive(Debug)]
pub(crate) struct CommandActuator {
    set: Vec<String>,
    actual: Vec<String>,
    site: Site,
    journal: Journal,
    original: Option<Original>,
    environment: Vec<Variable>,
}

impl CommandActuator {
    /// An actuator that runs these commands.
    pub(crate) fn open(
        set: Vec<String>,
        actual: Vec<String>,
        site: Site,
    ) -> Result<Self, ActuatorError> {
        let (journal, original) = Journal::open(&site)?;
        Ok(Self {
            set,
            actual,
            site,
            journal,
            original,
            environment: Vec::new(),
        })
    }

    fn follow(&self, count: u32, wait: &Wait<'_>) -> Result<(), ActuatorError> {
        let count_text = count.to_string();
        let program = self.site.program.display().to_string();
        let words = filled(&self.set, &[("count", &count_text), ("muster", &program)]);
        self.run(&words, "set", wait)?;
        let (mut last, mut why) = (None, String::new());
        let reached = wait.until(|| {
            match self.read(wait) {
                Ok(there) => (last, why) = (Some(there), String::new()),
                Err(error) => why = format!(": {error}"),
            }
            Ok((last == Some(count)).then_some(()))
        })?;
        reached.ok_or_else(|| ActuatorError::DidNotFollow {
            wanted: count,
            there: last.map_or("an unknown number is".to_owned(), |last| {
                format!("{last} are")
            }),
            after: wait.length(),
            why,
        })
    }

    fn run(&self, words: &[String], name: &str, wait: &Wait<'_>) -> Result<String, ActuatorError> {
        let program = Program {
            words,
            environment: &self.environment,
        };
        run(&program, &self.site.folder, name, wait)
    }

    /// Reads the number once.
    fn read(&self, wait: &Wait<'_>) -> Result<u32, ActuatorError> {
        let program = self.site.program.display().to_string();
        let words = filled(&self.actual, &[("muster", &program)]);
        let printed = self.run(&words, "actual", wait)?;
        printed.trim().parse().map_err(|_| ActuatorError::NoNumber {
            program: words.into_iter().next().unwrap_or_default(),
            printed: printed.trim().chars().take(80).collect(),
        })
    }
}

impl Actuator for CommandActuator {
    fn set(&mut self, count: u32, wait: &Wait<'_>) -> Result<(), ActuatorError> {
        if self.original.is_none() {
            let instances = self.read(wait)?;
            let original = Original { instances };
            self.journal.write(original)?;
            self.original = Some(original);
        }
        self.follow(count, wait)
    }

    fn actual(&mut self, wait: &Wait<'_>) -> Result<u32, ActuatorError> {
        let mut last = Err(ActuatorError::Interrupted);
        wait.until(|| {
            last = self.read(wait);
            Ok(last.is_ok().then_some(()))
        })?;
        last
    }

    fn restore(&mut self, wait: &Wait<'_>) -> Result<(), ActuatorError> {
        if let Some(original) = self.original {
            self.follow(original.instances, wait)?;
            self.journal.close()?;
            self.original = None;
        }
        Ok(())
    }

    fn set_environment(&mut self, variables: &[Variable]) {
        self.environment = variables.to_vec();
    }

    fn addresses(&self, _count: u32) -> Option<Vec<Endpoint>> {
        None
    }
}
