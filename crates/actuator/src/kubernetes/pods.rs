//! Reasons for which a pod is not ready.

use k8s_openapi::api::core::v1::{ContainerStatus, Pod, PodStatus};

/// The first pod that is not ready, with its reason; none if each of them is ready.
///
/// A container's own message at its end is left out: it is output of the program, and may hold secrets.
pub(super) fn first_unready(pods: &[Pod]) -> Option<String> {
    let pod = pods.iter().find(|pod| {
        pod.metadata.deletion_timestamp.is_none() && condition(pod, "Ready") != Some("True")
    })?;
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    let reason = pod.status.as_ref().and_then(reason);
    let reason = reason.unwrap_or_else(|| "not ready".to_owned());
    Some(format!("pod {name}: {reason}"))
}

fn condition<'a>(pod: &'a Pod, name: &str) -> Option<&'a str> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let condition = conditions.iter().find(|it| it.type_ == name)?;
    Some(&condition.status)
}

fn reason(status: &PodStatus) -> Option<String> {
    let started = status.init_container_statuses.iter().flatten();
    let mut containers = started.chain(status.container_statuses.iter().flatten());
    if let Some(reason) = containers.find_map(of_container) {
        return Some(reason);
    }
    let conditions = status.conditions.as_ref()?;
    let of = |name: &str| {
        let mut all = conditions.iter();
        let unmet = all.find(|it| it.type_ == name && it.status == "False")?;
        Some(joined(unmet.reason.as_deref()?, unmet.message.as_deref()))
    };
    of("PodScheduled").or_else(|| of("Ready"))
}

/// The reason of a container that waits or has failed.
fn of_container(container: &ContainerStatus) -> Option<String> {
    let name = &container.name;
    let state = container.state.as_ref()?;
    let last = container.last_state.as_ref();
    let ended = state
        .terminated
        .as_ref()
        .or_else(|| last?.terminated.as_ref());
    let failed = ended.filter(|ended| ended.exit_code != 0);
    let exit = failed.map(|ended| format!("it ended with code {}", ended.exit_code));
    let waits = state.waiting.as_ref().and_then(|waiting| {
        let reason = waiting.reason.as_deref()?;
        Some(joined(reason, waiting.message.as_deref()))
    });
    let all: Vec<String> = [waits, exit].into_iter().flatten().collect();
    (!all.is_empty()).then(|| format!("container {name}: {}", all.join(", ")))
}

fn joined(reason: &str, message: Option<&str>) -> String {
    match message {
        Some(message) if !message.is_empty() => format!("{reason}: {message}"),
        _ => reason.to_owned(),
    }
}
