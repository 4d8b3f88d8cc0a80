//! A Deployment or a StatefulSet, as much of it as an actuator reads.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::Object;
use serde::{Deserialize, Serialize};

/// A Deployment or a StatefulSet.
pub(super) type Workload = Object<WorkloadSpec, WorkloadStatus>;

/// The wish.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct WorkloadSpec {
    pub(super) replicas: u32,
    pub(super) selector: LabelSelector,
}

/// The state that the controllers of the cluster report. A number that is left out is 0.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct WorkloadStatus {
    observed_generation: i64,
    replicas: u32,
    ready_replicas: u32,
    /// Pods that are about to end; they may still serve. Only of newer Deployments.
    terminating_replicas: u32,
    conditions: Vec<Condition>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
struct Condition {
    r#type: String,
    status: String,
    reason: String,
    message: String,
}

/// The state that a wait ends with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Goal {
    /// Each of the wanted pods is ready, and no other one is left.
    Ready,
    /// The controllers of the cluster know the wish.
    Observed,
}

impl Goal {
    pub(super) fn is_met(self, workload: &Workload, count: u32) -> bool {
        let Some(status) = &workload.status else {
            return false;
        };
        let generation = workload.metadata.generation.unwrap_or_default();
        let is_observed =
            workload.spec.replicas == count && status.observed_generation >= generation;
        let is_ready = status.replicas == count
            && status.ready_replicas == count
            && status.terminating_replicas == 0;
        is_observed && (self == Self::Observed || is_ready)
    }
}

/// Number of pods that are ready.
pub(super) fn ready(workload: &Workload) -> u32 {
    workload
        .status
        .as_ref()
        .map_or(0, |status| status.ready_replicas)
}

/// The reason why a Deployment's pods cannot be created, such as a quota.
pub(super) fn creation_failure(workload: &Workload) -> Option<String> {
    let conditions = &workload.status.as_ref()?.conditions;
    let failure = conditions
        .iter()
        .find(|condition| condition.r#type == "ReplicaFailure" && condition.status == "True")?;
    Some(format!("{}: {}", failure.reason, failure.message))
}
