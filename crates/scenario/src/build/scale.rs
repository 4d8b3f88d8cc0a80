//! Instances of the target that `muster scale` adds.

mod sweep;

use muster_model::Micros;
use muster_plan::{
    ActuatorPlan, ComponentPlan, Endpoint, InstancePorts, KubernetesPlan, PlatformKind,
    PlatformPlan, PublishedPolicy, ScalePlan, ScalePolicy, UnitOfLoad, WorkloadKind,
};

use super::{hooks, target};
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
    let hooks = hooks::hooks(root)?;
    Some(PlatformPlan {
        scale,
        hooks,
        ..platform
    })
}

fn scale(view: &View<'_>, platform: &PlatformPlan) -> Option<ScalePlan> {
    let components = components(view, platform)?;
    let hold = view.time("hold")?;
    if hold.second() < HOLD_LEAST_S as u32 {
        let what = "a step needs several windows of a second to be judged";
        return view.refuse_at("hold", what, "at least 4s");
    }
    is_deployed(view, platform)?;
    let policy = policy(view)?;
    if policy != ScalePolicy::Muster {
        only_one(view, &components)?;
    }
    Some(ScalePlan {
        policy,
        sweep: sweep::sweep(view, &components)?,
        components,
        hold,
        timeout: view.time("timeout")?,
    })
}

/// The components: the one that `actuator` stands for, or those of the list.
fn components(view: &View<'_>, platform: &PlatformPlan) -> Option<Vec<ComponentPlan>> {
    let listed = view.list("components");
    let Some(first) = listed.first() else {
        if view.get("actuator").is_none() {
            return view.refuse(
                "`scale` has no `actuator`",
                "add `actuator: ...` (whatever changes the number of instances)",
            );
        }
        return Some(vec![component(view, platform)?]);
    };
    for key in ["actuator", "instances", "price"] {
        if let Some(written) = view.written(key) {
            let what = format!("each of the `components` has its own `{key}`");
            return written.refuse(what, &format!("move `{key}` into a component"));
        }
    }
    let all: Vec<ComponentPlan> = listed
        .iter()
        .filter_map(|view| component(view, platform))
        .collect();
    if all.len() < listed.len() {
        return None;
    }
    let has_prices = all.iter().any(|of| of.price.is_some());
    for (place, view) in listed.iter().enumerate() {
        let name = &all[place].name;
        if has_prices && all[place].price.is_none() {
            return view.refuse(
                format!("`{name}` has no `price`, and another component has one"),
                "add `price: ...`, or remove that of the others",
            );
        }
        if all[..place].iter().any(|other| other.name == *name) {
            let what = format!("another component is named `{name}`");
            return view.refuse_at("name", what, "a name for each component");
        }
    }
    match all.iter().filter(|of| is_connected(of)).count() {
        0 | 1 => Some(all),
        _ => first.refuse(
            "two components begin at the port of the devices' address",
            "add `port: NUMBER` to the actuator of those that devices do not connect to",
        ),
    }
}

/// True if the instances have ports that devices connect to.
fn is_connected(component: &ComponentPlan) -> bool {
    match component.actuator {
        ActuatorPlan::Process { ports, .. } => !matches!(ports, InstancePorts::From(_)),
        ActuatorPlan::Command { .. } | ActuatorPlan::Kubernetes(_) => false,
    }
}

/// A component, or the only one, whose keys are those of `scale` itself.
fn component(view: &View<'_>, platform: &PlatformPlan) -> Option<ComponentPlan> {
    let actuator = view.get("actuator")?;
    let instances = view.get("instances")?;
    let (least, most) = (instances.whole("min")?, instances.whole("max")?);
    if least > most {
        let what = format!("`min` is {least}, above `max`, which is {most}");
        return instances.refuse(what, "a `min` that is at most `max`");
    }
    let name = view.text_of("name");
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
    if !name.chars().all(is_plain) {
        let what = format!("`{name}` is no name of a component: it names a folder");
        return view.refuse_at("name", what, "letters, digits and `-`");
    }
    Some(ComponentPlan {
        name: name.to_owned(),
        price: view.optional("price", price)?,
        actuator: match actuator.text_of("kind") {
            "process" => process(&actuator, platform, most)?,
            "kubernetes" => kubernetes(&actuator)?,
            _ => commands(&actuator)?,
        },
        least,
        most,
    })
}

/// Refuses what the published policy does not have.
fn only_one(view: &View<'_>, components: &[ComponentPlan]) -> Option<()> {
    for (key, is_there) in [
        (
            "components",
            components.iter().any(|of| !of.name.is_empty()),
        ),
        ("sweep", view.get("sweep").is_some()),
    ] {
        if is_there {
            let what = format!("`policy: published` grows one component, and has no `{key}`");
            return view.refuse_at(key, what, "remove it, or use `policy: muster`");
        }
    }
    Some(())
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
        adds: match view.text_of("adds") {
            "devices" => UnitOfLoad::Devices,
            _ => UnitOfLoad::Rate,
        },
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
    let ports = match (view.truth("shared-port")?, view.get("port")) {
        (true, None) => InstancePorts::Shared,
        (false, None) => InstancePorts::Each,
        (false, Some(_)) => InstancePorts::From(view.whole("port")?),
        (true, Some(port)) => {
            return port.refuse(
                "instances on a shared port listen on that of the devices' address",
                "remove `port`, or `shared-port`",
            );
        }
    };
    if ports != InstancePorts::Shared {
        if !command.iter().any(|word| word.contains("${port}")) {
            let what =
                "every instance would listen on the same port: `${port}` is not in `command`";
            return view.refuse_at("command", what, "add `${port}`, or `shared-port: true`");
        }
        match ports {
            InstancePorts::From(first) => fit(view, first, most, &first.to_string())?,
            InstancePorts::Each | InstancePorts::Shared => {
                ports_of_their_own(view, platform, most)?;
            }
        }
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
    fit(view, platform.endpoints.first()?.port, most, only)
}

/// Checks that there are as many ports from the first one on.
fn fit(view: &View<'_>, first: u16, most: u32, from: &str) -> Option<()> {
    if u32::from(first) + most - 1 <= u32::from(u16::MAX) {
        return Some(());
    }
    view.refuse(
        format!("the ports of {most} instances from {from} on exceed 65535"),
        "a lower port in `platform.devices` or in `port`, or a lower `instances.max`",
    )
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
