//! The keys that say how long a run lasts and what it is judged by.

use super::Scalar::{
    Above, Below, Bool, BoolOrAny, CountAtMost, PercentileAbove, ShareAtLeast, ShareAtMost, Time,
    Whole,
};
use super::{Kind, key, map, one, refused};

object! { pub(super) PHASES:
    key("warm-up", one(Time), "Load that is not measured").or("5s"),
    key("measure", one(Time), "Load that is measured").or("30s"),
    key("settle", Kind::Either(&[one(Time), map(&SETTLE)]),
        "Wait for answers and arrivals; a time alone is `at-most`"),
}

object! { SETTLE:
    key("at-most", one(Time), "Longest wait; by default 30s, or the longest `timeout` plus `quiet` if that is longer"),
    key("quiet", one(Time),
        "Settling ends after this time without an arrival, while every consumer listens").or("3s"),
}

object! { pub(super) COLD:
    key("first", one(Time), "Messages due within this time after warm-up"),
    key("first-message", one(Bool), "First message of each device's stream, in place of `first`"),
}

object! { pub(super) SLO:
    key("loss", one(CountAtMost), "Accepted or unacknowledged, and not arrived"),
    key("failure-ratio", one(ShareAtMost), "Rejected, timed out, broken, open or shed"),
    key("connected", one(ShareAtLeast), "Links up at the end of the connect phase"),
    key("disconnects", one(CountAtMost), "Links that the platform ended until measuring ended"),
    key("duplicates", one(CountAtMost), "Second copies of messages that were sent once"),
    key("response", Kind::Percentiles, "From due to the answer"),
    key("service", Kind::Percentiles, "From sent to the answer"),
    key("end-to-end", Kind::Percentiles, "From due to the backend"),
    key("command-request", Kind::Percentiles, "From a query's due to its answer"),
    key("command-response", Kind::Percentiles,
        "From a command's receipt to the platform's answer to the reply"),
    key("command-loop", Kind::Percentiles, "From a command's issue to its reply at the backend"),
    key("queries-with-command", one(ShareAtLeast), "Queries due that received a command"),
    key("commands-not-received", one(CountAtMost), "Commands delivered, and not received"),
    key("replies-lost", one(CountAtMost), "Replies to commands accepted, and not arrived"),
    key("receive-loss", one(CountAtMost),
        "Messages expected by streams of kind receive, and lost"),
    key("stable", one(BoolOrAny), "The backlog must not grow"),
}

object! { pub(super) SOAK:
    key("for", one(Time), "The time from the end of the load for which each resource of `monitor` with a limit must last").or("7d")
        .above_zero("whatever is within its limit lasts for no time", "such as 7d"),
}

object! { pub(super) VALIDITY:
    key("lateness-p99", one(Time), "Upper bound of the p99 of lateness").or("100ms"),
    key("max-lateness", one(Time), "A message later than this is shed").or("5s"),
    refused("cpu", "CPU use of the generator is reported and warned about, and no rule bounds it",
        HEALTH_HELP),
    refused("cpu-wait",
        "CPU wait of the generator is reported and warned about, and no rule bounds it",
        HEALTH_HELP),
    refused("steal", "steal is reported and warned about, and no rule bounds it", HEALTH_HELP),
}

const HEALTH_HELP: &str =
    "remove the key: a run is invalid only where our own delay could have changed a rule";

object! { pub(super) STABILITY:
    key("min-windows", one(Whole(10, 1_000_000)), "The fewest one-second windows").or("30"),
}

object! { pub(super) STOP_IF:
    key("failure-ratio", one(Above), "More than this share failed"),
    key("connected", one(Below), "Less than this share of the links is up"),
    key("response", one(PercentileAbove), "This percentile of the messages due in the step so far is longer"),
    key("end-to-end", one(PercentileAbove),
        "The same of the times to the backends, of the messages that arrived"),
}
