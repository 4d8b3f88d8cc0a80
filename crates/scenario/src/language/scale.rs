//! Keys of `muster scale`.

use super::Scalar::{Bool, Fraction, Text, Time, Whole};
use super::{Kind, Owner, key, map, one};

const PROCESS: Owner = Owner::Kind(&["process"]);
const COMMAND: Owner = Owner::Kind(&["command"]);
const KUBERNETES: Owner = Owner::Kind(&["kubernetes"]);

object! { pub(super) SCALE:
    key("actuator", map(&ACTUATOR), "Whatever changes the number of instances; left out with `components`"),
    key("components", Kind::List(&map(&COMPONENT)),
        "Components of the target: each of them gets an instance more in turn, and one that does not help is put back"),
    key("sweep", Kind::List(&map(&AXIS)),
        "Axes of a matrix: the capacity of each cell is searched, and nothing else is"),
    key("policy", words!("muster", "published"), "Search the capacity of each number of instances, or grow load and target in turn as the published scale test of Hono")
        .or("muster"),
    key("published", map(&PUBLISHED), "Parameters of `policy: published`; the defaults are those of the published `Scenario1`").or("{}"),
    key("instances", map(&INSTANCES), "The numbers of instances to measure").or("{}"),
    key("hold", one(Time), "Length of a step close to the capacity; where an SLO limits a latency, at least that of `muster capacity`").or("20s")
        .above_zero("nothing can be judged in no time", "such as 20s"),
    key("timeout", one(Time), "Longest wait until a number of instances is ready").or("2m")
        .above_zero("no instance is ready in no time", "such as 2m"),
    key("price", one(Text), "Price of one instance for an hour, in any currency"),
}

object! { COMPONENT:
    key("name", one(Text), "Its name").required(),
    key("actuator", map(&ACTUATOR), "Whatever changes the number of its instances").required(),
    key("instances", map(&INSTANCES), "The numbers of its instances to measure").or("{}"),
    key("price", one(Text), "Price of one of its instances for an hour, in any currency"),
}

object! { AXIS:
    key("component", one(Text), "The component whose instances change; left out where there is one"),
    key("instances", Kind::List(&one(Whole(1, 1_000))), "The numbers of its instances to measure"),
    key("variable", one(Text), "A variable in the environment of the commands that actuators run"),
    key("values", Kind::List(&one(Text)), "Its values"),
}

object! { PUBLISHED:
    key("units", one(Whole(1, 1_000)), "The most units of load; `Scenario1LowMax` has 64").or("48"),
    key("adds", words!("rate", "devices"), "A unit adds the rate that the scenario states, or connects its part of the devices: those of the scenario divided by `units`")
        .or("rate"),
    key("failure-ratio", one(Fraction), "A unit is added below this ratio of failures").or("0.02"),
    key("window", one(Time), "Length of the window of a reading; `Scenario1LowMax` has 2m").or("3m"),
    key("offset", one(Time), "Time from the end of that window to the reading").or("1m"),
    key("stable-within", one(Time), "Without an acceptable reading for this time an instance is added; `Scenario1LowMax` has 5m").or("15m"),
    key("improve", one(Time), "Time in which a better reading replaces the first acceptable one; `Scenario1LowMax` has 1m").or("5m"),
}

object! { INSTANCES:
    key("min", one(Whole(1, 1_000)), "The first number of instances").or("1"),
    key("max", one(Whole(1, 1_000)), "The last one").or("4"),
}

object! { ACTUATOR:
    key("kind", words!("process", "command", "kubernetes"), "Processes of this machine, commands of the user, or pods of a cluster").required(),
    key("command", Kind::List(&one(Text)),
        "Program of an instance and its arguments; `${port}` is its port, `${index}` its number from 0, `${muster}` this program")
        .of(&[PROCESS]),
    key("shared-port", one(Bool),
        "All instances listen on the port of the devices' address; otherwise on that and the next ones").or("false")
        .of(&[PROCESS]),
    key("port", one(Whole(1, 65_535)),
        "Port of the first instance where devices connect to another component; the next ones are those of the others")
        .of(&[PROCESS]),
    key("set", Kind::List(&one(Text)), "Program and arguments that set the number `${count}`").of(&[COMMAND]),
    key("actual", Kind::List(&one(Text)), "Program and arguments that print the number of instances which are ready")
        .of(&[COMMAND]),
    key("deployment", one(Text), "The Deployment whose pods are the instances").of(&[KUBERNETES]),
    key("stateful-set", one(Text), "The StatefulSet whose pods are the instances").of(&[KUBERNETES]),
    key("namespace", one(Text), "Its namespace; by default that of the context").of(&[KUBERNETES]),
    key("kubeconfig", one(Text),
        "Path of the kubeconfig; by default `KUBECONFIG`, `~/.kube/config`, or the service account of this pod")
        .of(&[KUBERNETES]),
    key("context", one(Text), "Its context; by default the current one").of(&[KUBERNETES]),
}
