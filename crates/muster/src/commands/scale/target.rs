//! The target of a growth: an actuator for each of its components.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use muster_actuator::{Actuator, ActuatorError, Site, Wait, open};
use muster_plan::{Endpoint, ScalePlan, Variable};
use muster_result::{encoded, sha256};

use crate::scenario_file::Loaded;

/// The components of a target.
pub(super) struct Target {
    components: Vec<Component>,
}

struct Component {
    /// Empty if it is the only one.
    name: String,
    actuator: Box<dyn Actuator>,
}

impl Target {
    /// Opens the actuators. What an earlier growth in the same folder left is taken over.
    ///
    /// # Errors
    /// If one cannot be opened.
    pub(super) fn open(plan: &ScalePlan, loaded: &Loaded, folder: &Path) -> Result<Self> {
        let program = std::env::current_exe().context("find this program for its instances")?;
        let devices = loaded.plan.platform.endpoints.first();
        let components = plan.components.iter().map(|of| {
            // Each has a record, and files of its instances.
            let folder = folder.join(&of.name);
            fs::create_dir_all(&folder).with_context(|| format!("create {}", folder.display()))?;
            let site = Site {
                devices: devices.cloned(),
                program: program.clone(),
                folder,
                actuator: sha256(&encoded(&of.actuator)),
            };
            Ok(Component {
                name: of.name.clone(),
                actuator: open(&of.actuator, site).context("open the actuator")?,
            })
        });
        Ok(Self {
            components: components.collect::<Result<_>>()?,
        })
    }

    /// Sets the number of instances of each component, and waits until all are ready.
    ///
    /// # Errors
    /// If a component cannot be set, with its name.
    pub(super) fn set(&mut self, sizes: &[u32], wait: &Wait<'_>) -> Result<()> {
        let mut all = self.components.iter_mut().zip(sizes);
        all.try_for_each(|(of, size)| of.named(|actuator| actuator.set(*size, wait)))
    }

    /// Gives the commands of all components this environment.
    pub(super) fn set_environment(&mut self, variables: &[Variable]) {
        let all = self.components.iter_mut();
        all.for_each(|of| of.actuator.set_environment(variables));
    }

    /// Numbers of instances that are ready.
    ///
    /// # Errors
    /// If one cannot be read.
    pub(super) fn actual(&mut self, wait: &Wait<'_>) -> Result<Vec<u32>> {
        let all = self.components.iter_mut();
        all.map(|of| of.named(|actuator| actuator.actual(wait)))
            .collect()
    }

    /// Puts every component back as it was, also if another one cannot be.
    ///
    /// # Errors
    /// The first failure.
    pub(super) fn restore(&mut self, wait: &Wait<'_>) -> Result<()> {
        self.set_environment(&[]);
        let all = self.components.iter_mut();
        let restored: Vec<Result<()>> = all
            .map(|of| of.named(|actuator| actuator.restore(wait)))
            .collect();
        restored.into_iter().collect()
    }

    /// The addresses of the instances that devices connect to; none where the scenario's stand for all.
    pub(super) fn addresses(&self, sizes: &[u32]) -> Option<Vec<Endpoint>> {
        let mut all = self.components.iter().zip(sizes);
        all.find_map(|(of, size)| of.actuator.addresses(*size))
    }
}

impl Component {
    /// Does something with the actuator, and names the component in an error.
    fn named<T>(
        &mut self,
        act: impl FnOnce(&mut dyn Actuator) -> Result<T, ActuatorError>,
    ) -> Result<T> {
        act(&mut *self.actuator).map_err(|error| match &self.name[..] {
            "" => anyhow!(error.to_string()),
            name => anyhow!("{name}: {error}"),
        })
    }
}
