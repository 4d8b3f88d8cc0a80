//! The number of the target's instances: sets it, reads it, and puts it back.
//!
//! Layer 6. [`open`] makes an [`Actuator`] of a plan: processes of this machine, commands of the
//! user, or pods of a cluster. Each keeps a record in the folder of the result before it changes anything,
//! so that a later one puts the target back as it was even if this program is killed. It must never know why a
//! number is wanted, or how load is offered.

mod command;
mod error;
mod journal;
#[cfg(feature = "kubernetes")]
mod kubernetes;
mod listener;
mod process;
mod program;
mod wait;

use std::path::PathBuf;

use muster_plan::{ActuatorPlan, Endpoint, KubernetesPlan, Variable};

use command::CommandActuator;
pub use error::ActuatorError;
#[cfg(feature = "kubernetes")]
use kubernetes::KubernetesActuator;
use process::ProcessActuator;
pub use program::{CommandEnd, run_shell};
pub use wait::Wait;

/// Sets the number of instances of a target.
pub trait Actuator {
    /// Sets the number of instances, and waits until each of them is ready.
    ///
    /// # Errors
    /// If the target refuses, or does not follow in time, or the wait was interrupted.
    fn set(&mut self, count: u32, wait: &Wait<'_>) -> Result<(), ActuatorError>;

    /// Number of instances that are ready.
    ///
    /// # Errors
    /// If it cannot be read.
    fn actual(&mut self, wait: &Wait<'_>) -> Result<u32, ActuatorError>;

    /// Puts the number of instances back that was there before the first change.
    ///
    /// # Errors
    /// As [`Actuator::set`].
    fn restore(&mut self, wait: &Wait<'_>) -> Result<(), ActuatorError>;

    /// Gives the commands that it runs from now on this environment in addition to that of this program. Instances of
    /// another environment are replaced the next time that a number is set. Pods of a cluster receive none.
    fn set_environment(&mut self, variables: &[Variable]);

    /// The addresses of a number of instances; none where one address stands for all.
    fn addresses(&self, count: u32) -> Option<Vec<Endpoint>>;
}

/// Surroundings of an actuator.
#[derive(Debug, Clone)]
pub struct Site {
    /// The address of devices in the scenario.
    pub devices: Option<Endpoint>,
    /// This program, which `${muster}` stands for.
    pub program: PathBuf,
    /// The folder of the record, and of the output of instances.
    pub folder: PathBuf,
    /// A hash of the actuator. A record that another one left is not followed.
    pub actuator: String,
}

/// Makes the actuator of a plan. Instances that an earlier one left in the same folder are taken over by their
/// record.
///
/// # Errors
/// If the record cannot be read, is another actuator's, or its instances do not end.
pub fn open(plan: &ActuatorPlan, site: Site) -> Result<Box<dyn Actuator>, ActuatorError> {
    Ok(match plan {
        ActuatorPlan::Process { command, ports } => {
            Box::new(ProcessActuator::open(command.clone(), *ports, site)?)
        }
        ActuatorPlan::Command { set, actual } => {
            Box::new(CommandActuator::open(set.clone(), actual.clone(), site)?)
        }
        ActuatorPlan::Kubernetes(plan) => workload(plan, &site)?,
    })
}

#[cfg(feature = "kubernetes")]
fn workload(plan: &KubernetesPlan, site: &Site) -> Result<Box<dyn Actuator>, ActuatorError> {
    Ok(Box::new(KubernetesActuator::open(plan, site)?))
}

#[cfg(not(feature = "kubernetes"))]
fn workload(_: &KubernetesPlan, _: &Site) -> Result<Box<dyn Actuator>, ActuatorError> {
    Err(ActuatorError::NoKubernetes)
}
