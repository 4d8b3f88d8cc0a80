//! Instances of the target that `muster scale` adds.

use muster_model::Micros;
use serde::{Deserialize, Serialize};

/// Growth of the target.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ScalePlan {
    /// The policy: it decides on the next number of instances.
    pub policy: ScalePolicy,
    /// The components that it grows: one, or several with different names.
    pub components: Vec<ComponentPlan>,
    /// The settings to measure; none to find the next one by what was measured.
    pub sweep: Option<SweepPlan>,
    /// The length of steps close to a capacity, at the least.
    pub hold: Micros,
    /// The longest wait for a number of instances to be there.
    pub timeout: Micros,
}

/// A component of the target, whose instances are alike.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComponentPlan {
    /// Its name; empty if it is the only one.
    pub name: String,
    /// The actuator: it changes the number of instances.
    pub actuator: ActuatorPlan,
    /// The first number of instances, at least 1.
    pub least: u32,
    /// The last one, at least `least`.
    pub most: u32,
    /// Price of one instance for an hour, in any currency; none if it is unknown.
    pub price: Option<f64>,
}

/// A matrix of settings: each size of each component with each of the others, in each environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SweepPlan {
    /// Numbers of instances of each component, in the order of the components; at least one number each.
    pub sizes: Vec<Vec<u32>>,
    /// Environments of the commands that actuators run; at least one, which may be empty.
    pub environments: Vec<Vec<Variable>>,
}

/// A variable in the environment of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// A policy, which decides on load and number of instances.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub enum ScalePolicy {
    /// A search finds the capacity of each number of instances.
    Muster,
    /// Load and target grow in turn, as in the published scale test of Eclipse Hono.
    Published(PublishedPolicy),
}

/// Parameters of the published scale test.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PublishedPolicy {
    /// A level is acceptable below this ratio of failures.
    pub failure_ratio: f64,
    /// Length of the window of a reading, in whole seconds.
    pub window: Micros,
    /// Time from the end of the window to the reading, in whole seconds.
    pub offset: Micros,
    /// Longest wait for an acceptable reading.
    pub stable_within: Micros,
    /// Time in which a better reading replaces the first acceptable one.
    pub improve: Micros,
    /// The most units of load.
    pub units: u32,
    /// The load that a unit adds.
    pub adds: UnitOfLoad,
}

/// The load that a unit of the published scale test adds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UnitOfLoad {
    /// The rate that the scenario states, from the same devices.
    Rate,
    /// A part of the scenario's devices, as large as that of any other unit.
    Devices,
}

/// An actuator, which changes the number of instances.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum ActuatorPlan {
    /// Processes of this machine.
    Process {
        /// The program and its arguments, with `${port}`, `${index}` and `${muster}`.
        command: Vec<String>,
        /// The ports of the instances.
        ports: InstancePorts,
    },
    /// Commands of the user.
    Command {
        /// The program that sets the number, with `${count}` among its arguments.
        set: Vec<String>,
        /// The program that prints the number of instances that are ready.
        actual: Vec<String>,
    },
    /// A workload of a Kubernetes cluster.
    Kubernetes(KubernetesPlan),
}

/// A workload of a Kubernetes cluster, whose pods are the instances.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KubernetesPlan {
    /// The kind of the workload.
    pub kind: WorkloadKind,
    /// Its name.
    pub name: String,
    /// Its namespace; none for that of the context.
    pub namespace: Option<String>,
    /// Path of the kubeconfig, relative to the working directory. None for `KUBECONFIG`, `~/.kube/config`, or the
    /// service account of this pod, in this order.
    pub kubeconfig: Option<String>,
    /// The context in the kubeconfig; none for its current one.
    pub context: Option<String>,
}

/// Kinds of workloads, which have replicas and a scale subresource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum WorkloadKind {
    /// Pods without an identity.
    Deployment,
    /// Pods with a number each.
    StatefulSet,
}

/// Ports of the instances on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum InstancePorts {
    /// The port of the devices' address for the first instance, the next ones for the others.
    Each,
    /// This port of the loopback address for the first instance, the next ones for the others. Devices connect to
    /// another component.
    From(u16),
    /// All instances listen on the port of the devices' address (`SO_REUSEPORT`).
    Shared,
}
