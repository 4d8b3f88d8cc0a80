//! Instances of the target that `muster scale` adds.

use muster_model::Micros;
use muster_plan::{
    ActuatorPlan, Endpoint, InstancePorts, KubernetesPlan, PlatformKind, PlatformPlan,
    PublishedPolicy, ScalePlan, ScalePolicy, WorkloadKind,
};

use super::target;
use crate::view::View;

/// A step shorter than this has too few windows to be judged.
const HOLD_LEAST_S: u64 = 4;
/// The windows of a second have surely come in after this time.
const OFFSET_LEAST: Micros = Micros::from_secs(5);
/// A window is of whole seconds, and of more than one check.
const WINDOW_LEAST: Micros = Micros::from_secs(10);

/// The platform, with its growth where the scenario has `scale`.
pub(super) fn platform(root: &View<'_>, is_acknowledged: bool) -> Option<PlatformPlan> {
    let platform = target::platform(&root.get("platform")?, is_acknowledged)?;
    let scale = root.optional("scale", |view| scale(view, &platform))?;
    Some(PlatformPlan { scale, ..platform })
}

fn scale(view: &View<'_>, platform: &PlatformPlan) -> Option<ScalePlan> {
    let actuator = view.get("actuator")?;
    let instances = view.get("instances")?;
    let (least, most) = (instances.whole("min")?, instances.whole("max")?);
    if least > most {
        let what = format!("`min` is {least}, above `max`, which is {most}");
        return instances.refuse(what, "a `min` that is at most `max`");
    }
    let hold = view.time("hold")?;
    if hold.second() < HOLD_LEAST_S as u32 {
        let what = "a step needs several windows of a second to be judged";
        return view.refuse_at("hold", what, "at least 4s");
    }
    let price = view.optional("price", price)?;
    let kind = match actuator.text_of("kind") {
        "process" => process(&actuator, platform, most)?,
        "kubernetes" => kubernetes(&actuator)?,
        _ => commands(&actuator)?,
    };
    is_deployed(view, platform)?;
    Some(ScalePlan {
        policy: policy(view)?,
        actuator: kind,
        least,
        most,
        hold,
        timeout: view.time("timeout")?,
        price,
    })
}

fn policy(view: &View<'_>) -> Option<ScalePolicy> {
    let (is_published, written) = (
        view.text_of("policy") == "published",
        view.written("published"),
    );
    match (is_published, written) {
        (true, _) => published(&view.get("published")?).map(ScalePolicy::Published),
        (false, None) => Some(ScalePolicy::Muster),
        (false, Some(written)) => written.refuse(
            "`published` belongs to another policy, and this is `policy: muster`",
            "remove it, or use `policy: published`",
        ),
    }
}

fn published(view: &View<'_>) -> Option<PublishedPolicy> {
    let window = at_least(view, "window", WINDOW_LEAST)?;
    let offset = at_least(view, "offset", OFFSET_LEAST)?;
    Some(PublishedPolicy {
        failure_ratio: view.fraction("failure-ratio")?,
        window,
        offset,
        stable_within: view.time("stable-within")?,
        improve: view.time("improve")?,
        units: view.whole("units")?,
    })
}

/// A time of whole seconds.
fn at_least(view: &View<'_>, key: &str, least: Micros) -> Option<Micros> {
    let time = view.time(key)?;
    let why = if time < least {
        "which is too short"
    } else if Micros::from_secs(u64::from(time.second())) != time {
        "and readings count whole seconds"
    } else {
        return Some(time);
    };
    let help = format!("whole seconds, at least {}s", least.second());
    view.refuse_at(
        key,
        format!("`{key}` is {}, {why}", view.text_of(key)),
        &help,
    )
}

fn price(view: &View<'_>) -> Option<f64> {
    let price = view.text().parse::<f64>().ok();
    match price.filter(|price| price.is_finite() && *price > 0.0) {
        Some(price) => Some(price),
        None => view.refuse(
            format!("`{}` is no number above 0", view.text()),
            "a number without a currency, such as 0.12",
        ),
    }
}

fn is_deployed(view: &View<'_>, platform: &PlatformPlan) -> Option<()> {
    match platform.kind {
        PlatformKind::Deployed { .. } => Some(()),
        PlatformKind::Gateway { .. } => view.refuse(
            "`platform.kind` is gateway, which the run starts by itself",
            "name another kind, such as `mqtt`, and let `actuator.command` start `muster gateway`",
        ),
    }
}

fn process(view: &View<'_>, platform: &PlatformPlan, most: u32) -> Option<ActuatorPlan> {
    let command = words(view, "command")?;
    let ports = match view.truth("shared-port")? {
        true => InstancePorts::Shared,
        false => InstancePorts::Each,
    };
    if ports == InstancePorts::Each {
        if !command.iter().any(|word| word.contains("${port}")) {
            let what =
                "every instance would listen on the same port: `${port}` is not in `command`";
            return view.refuse_at("command", what, "add `${port}`, or `shared-port: true`");
        }
        ports_of_their_own(view, platform, most)?;
    }
    Some(ActuatorPlan::Process { command, ports })
}

/// Checks that each instance can have a port of the devices' only address.
fn ports_of_their_own(view: &View<'_>, platform: &PlatformPlan, most: u32) -> Option<()> {
    let names = Endpoint::each_once(platform.endpoints.iter());
    let [only] = &names[..] else {
        let what = format!(
            "instances with a port each begin at the devices' address, and there are {}",
            names.len()
        );
        return view.refuse(
            what,
            "one address in `platform.devices`, or `shared-port: true`",
        );
    };
    let first = platform.endpoints.first()?.port;
    if u32::from(first) + most - 1 > u32::from(u16::MAX) {
        let what = format!("the ports of {most} instances from {only} on exceed 65535");
        return view.refuse(
            what,
            "a lower port in `platform.devices`, or a lower `instances.max`",
        );
    }
    Some(())
}

fn commands(view: &View<'_>) -> Option<ActuatorPlan> {
    let (set, actual) = (words(view, "set"), words(view, "actual"));
    let (set, actual) = (set?, actual?);
    if !set.iter().any(|word| word.contains("${count}")) {
        let what = "the command does not receive the number of instances";
        return view.refuse_at("set", what, "add `${count}` to its arguments");
    }
    Some(ActuatorPlan::Command { set, actual })
}

fn kubernetes(view: &View<'_>) -> Option<ActuatorPlan> {
    let (kind, key) = match (view.get("deployment"), view.get("stateful-set")) {
        (Some(_), None) => (WorkloadKind::Deployment, "deployment"),
        (None, Some(_)) => (WorkloadKind::StatefulSet, "stateful-set"),
        (Some(_), Some(both)) => {
            return both.refuse(
                "there is a `deployment` already, and one workload is scaled",
                "remove one of them",
            );
        }
        (None, None) => {
            return view.refuse(
                "no workload of the cluster is named",
                "add `deployment: NAME` or `stateful-set: NAME`",
            );
        }
    };
    let text = |key: &str| view.get(key).map(|view| view.text().to_owned());
    Some(ActuatorPlan::Kubernetes(KubernetesPlan {
        kind,
        name: view.text_of(key).to_owned(),
        namespace: text("namespace"),
        kubeconfig: text("kubeconfig"),
        context: text("context"),
    }))
}

/// The words of a command: one at the least.
fn words(view: &View<'_>, key: &str) -> Option<Vec<String>> {
    let words = view.list(key);
    if words.is_empty() {
        let what = format!("`{key}` names no program");
        return view.refuse(what, &format!("add `{key}: [ program, argument ]`"));
    }
    Some(words.iter().map(|word| word.text().to_owned()).collect())
}
