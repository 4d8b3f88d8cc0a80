//! The keys that say how long a run lasts and what it is judged by.

use super::Scalar::{
    Above, Below, Bool, BoolOrAny, CountAtMost, ShareAtLeast, ShareAtMost, Time, Whole,
};
use super::{Kind, key, map, one, refused};

object! { pub(super) PHASES:
    key("warm-up", one(Time), "Load that is not measured").or("5s"),
    key("measure", one(Time), "Load that is measured").or("30s"),
    key("settle", Kind::Either(&[one(Time), map(&SETTLE)]),
        "The wait for answers and arrivals; a time alone is its at-most"),
}

object! { SETTLE:
    key("at-most", one(Time), "The longest wait; by default 30s, or the longest timeout and quiet"),
    key("quiet", one(Time),
        "Without an arrival for so long, while every consumer listens, it ends").or("3s"),
}

object! { pub(super) COLD:
    key("first", one(Time), "What is due in so long a time after warm-up"),
    key("first-message", one(Bool), "Or the first message of each device's stream"),
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
    key("queries-with-command", one(ShareAtLeast), "Queries due to which a command came"),
    key("commands-not-received", one(CountAtMost), "Commands delivered, and not received"),
    key("replies-lost", one(CountAtMost), "Replies to commands accepted, and not arrived"),
    key("receive-loss", one(CountAtMost),
        "Messages that streams of kind receive were to get, and did not"),
    key("stable", one(BoolOrAny), "The backlog must not grow"),
}

object! { pub(super) VALIDITY:
    key("lateness-p99", one(Time), "The most that the p99 of lateness may be").or("100ms"),
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
}
