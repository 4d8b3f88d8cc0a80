//! Keys of `muster scale`.

use super::Scalar::{Bool, Text, Time, Whole};
use super::{Kind, Owner, key, map, one};

const PROCESS: Owner = Owner::Kind(&["process"]);
const COMMAND: Owner = Owner::Kind(&["command"]);

object! { pub(super) SCALE:
    key("actuator", map(&ACTUATOR), "Whatever changes the number of instances").required(),
    key("instances", map(&INSTANCES), "The numbers of instances to measure").or("{}"),
    key("hold", one(Time), "Length of a step close to the capacity; where an SLO limits a latency, at least that of `muster capacity`").or("20s")
        .above_zero("nothing can be judged in no time", "such as 20s"),
    key("timeout", one(Time), "Longest wait until a number of instances is ready").or("2m")
        .above_zero("no instance is ready in no time", "such as 2m"),
    key("price", one(Text), "Price of one instance for an hour, in any currency"),
}

object! { INSTANCES:
    key("min", one(Whole(1, 1_000)), "The first number of instances").or("1"),
    key("max", one(Whole(1, 1_000)), "The last one").or("4"),
}

object! { ACTUATOR:
    key("kind", words!("process", "command"), "Processes of this machine, or commands of the user").required(),
    key("command", Kind::List(&one(Text)),
        "Program of an instance and its arguments; `${port}` is its port, `${index}` its number from 0, `${muster}` this program")
        .of(&[PROCESS]),
    key("shared-port", one(Bool),
        "All instances listen on the port of the devices' address; otherwise on that and the next ones").or("false")
        .of(&[PROCESS]),
    key("set", Kind::List(&one(Text)), "Program and arguments that set the number `${count}`").of(&[COMMAND]),
    key("actual", Kind::List(&one(Text)), "Program and arguments that print the number of instances which are ready")
        .of(&[COMMAND]),
}
