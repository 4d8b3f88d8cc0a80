//! Requests to the API server of a cluster.

use std::future::Future;
use std::time::Duration;

use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::autoscaling::v1::{Scale, ScaleSpec};
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::api::{ListParams, ObjectMeta, PostParams};
use kube::client::AuthError;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::core::{ApiResource, Selector, Status};
use kube::{Api, Client, Config, Error};
use muster_plan::{KubernetesPlan, WorkloadKind};
use tokio::runtime::{Builder, Runtime};

use super::workload::Workload;
use crate::ActuatorError;

/// Longest wait for an answer; a server that is away is asked again.
const ANSWER_MAX: Duration = Duration::from_secs(5);
/// Replaces the text of errors that may show a secret.
const CREDENTIALS: &str = "the credentials of the context cannot be read or obtained";

/// One workload of a cluster.
pub(super) struct Cluster {
    runtime: Runtime,
    client: Client,
    workloads: Api<Workload>,
    kind: &'static str,
    name: String,
    namespace: String,
}

/// A request that failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// The server does not answer, or cannot answer now: a later request may succeed.
    Away(String),
    /// Somebody else changed the workload since it was read.
    Conflict(String),
    /// The server refuses.
    Refused(Box<Status>),
}

impl Failure {
    fn of(error: Error) -> Self {
        let Error::Api(status) = error else {
            return Self::Away(innermost(&error));
        };
        // Another 409 is no conflict of versions, and a time-out or an overload passes.
        match status.reason.as_str() {
            "Conflict" => Self::Conflict(status.message),
            _ if status.code == 429 || status.code >= 500 => Self::Away(status.message),
            _ => Self::Refused(status),
        }
    }
}

impl Cluster {
    /// Reads the configuration; asks the server nothing.
    pub(super) fn open(plan: &KubernetesPlan) -> Result<Self, ActuatorError> {
        let failed = |why: String| ActuatorError::Cluster { why };
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| failed(error.to_string()))?;
        let config = runtime.block_on(config(plan)).map_err(failed)?;
        let namespace = plan.namespace.clone();
        let namespace = namespace.unwrap_or_else(|| config.default_namespace.clone());
        let client = {
            let _within = runtime.enter();
            Client::try_from(config)
        };
        let client = client.map_err(|error| failed(innermost(&error)))?;
        let (resource, kind) = match plan.kind {
            WorkloadKind::Deployment => (ApiResource::erase::<Deployment>(&()), "deployment"),
            WorkloadKind::StatefulSet => (ApiResource::erase::<StatefulSet>(&()), "stateful set"),
        };
        Ok(Self {
            workloads: Api::namespaced_with(client.clone(), &namespace, &resource),
            runtime,
            client,
            kind,
            name: plan.name.clone(),
            namespace,
        })
    }

    /// The workload in words.
    pub(super) fn described(&self) -> String {
        format!(
            "{} {} in namespace {}",
            self.kind, self.name, self.namespace
        )
    }

    pub(super) fn workload(&self) -> Result<Workload, Failure> {
        self.answer(self.workloads.get(&self.name))
    }

    /// Sets the number of replicas, unless the workload changed since it was read.
    pub(super) fn scale(&self, read: &Workload, count: u32) -> Result<(), Failure> {
        let scale = Scale {
            metadata: ObjectMeta {
                name: Some(self.name.clone()),
                namespace: Some(self.namespace.clone()),
                resource_version: read.metadata.resource_version.clone(),
                ..ObjectMeta::default()
            },
            spec: Some(ScaleSpec {
                replicas: i32::try_from(count).ok(),
            }),
            status: None,
        };
        let params = PostParams::default();
        let set = self.workloads.replace_scale(&self.name, &params, &scale);
        self.answer(set).map(|_| ())
    }

    /// The pods of the workload, those of earlier revisions among them.
    pub(super) fn pods(&self, of: &Workload) -> Result<Vec<Pod>, Failure> {
        let selector = Selector::try_from(of.spec.selector.clone());
        let selector = selector.map_err(|error| Failure::Away(error.to_string()))?;
        let params = ListParams::default().labels_from(&selector);
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &self.namespace);
        self.answer(pods.list(&params)).map(|list| list.items)
    }

    /// The last warning of the cluster about the workload.
    pub(super) fn last_warning(&self, of: &Workload) -> Result<Option<String>, Failure> {
        let uid = of.metadata.uid.as_deref().unwrap_or_default();
        let fields = format!("involvedObject.uid={uid},type=Warning");
        let params = ListParams::default().fields(&fields);
        let events: Api<Event> = Api::namespaced(self.client.clone(), &self.namespace);
        let events = self.answer(events.list(&params))?.items;
        let last = events
            .into_iter()
            .max_by_key(|event| event.last_timestamp.as_ref().map(|time| time.0));
        Ok(last.map(|event| {
            let reason = event.reason.unwrap_or_default();
            format!("{reason}: {}", event.message.unwrap_or_default())
        }))
    }

    fn answer<T>(&self, request: impl Future<Output = Result<T, Error>>) -> Result<T, Failure> {
        self.runtime.block_on(async {
            match tokio::time::timeout(ANSWER_MAX, request).await {
                Ok(answer) => answer.map_err(Failure::of),
                Err(_) => Err(Failure::Away(format!(
                    "no answer within {} s",
                    ANSWER_MAX.as_secs()
                ))),
            }
        })
    }
}

/// The configuration: a kubeconfig, or the service account of this pod.
async fn config(plan: &KubernetesPlan) -> Result<Config, String> {
    let options = KubeConfigOptions {
        context: plan.context.clone(),
        ..KubeConfigOptions::default()
    };
    let read = match &plan.kubeconfig {
        Some(path) => match Kubeconfig::read_from(path) {
            Ok(file) => Config::from_custom_kubeconfig(file, &options).await,
            Err(error) => Err(error),
        },
        None => Config::from_kubeconfig(&options).await,
    };
    let may_be_inside = plan.kubeconfig.is_none() && plan.context.is_none();
    let read = read.or_else(|error| match Config::incluster() {
        Ok(config) if may_be_inside => Ok(config),
        // Outside of a pod, the reason is the missing kubeconfig.
        Ok(_) | Err(_) => Err(words(&error)),
    });
    let mut config = read?;
    config.connect_timeout = Some(ANSWER_MAX);
    config.default_retry = false;
    Ok(config)
}

/// An error in a kubeconfig. That of its text would show the text, which holds secrets.
fn words(error: &KubeconfigError) -> String {
    if matches!(error, KubeconfigError::Parse(_)) {
        return "the kubeconfig is no valid YAML of its kind".to_owned();
    }
    error.to_string()
}

/// The innermost cause of an error, which says most. Those of credentials may show output of a program, thus
/// secrets.
fn innermost(error: &Error) -> String {
    let mut cause: &(dyn std::error::Error + 'static) = error;
    loop {
        if cause.is::<AuthError>() {
            return CREDENTIALS.to_owned();
        }
        match cause.source() {
            Some(source) => cause = source,
            None => return cause.to_string(),
        }
    }
}
