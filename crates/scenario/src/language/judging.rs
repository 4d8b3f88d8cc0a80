//! The keys that say how long a run lasts and what it is judged by.

use super::{Kind, Object, Scalar, key, one, refused};

pub(super) static PHASES: Object = Object {
    keys: &[
        key("warm-up", one(Scalar::Time), "Load that is not measured").or("5s"),
        key("measure", one(Scalar::Time), "Load that is measured").or("30s"),
        key(
            "settle",
            Kind::Either(&[one(Scalar::Time), Kind::Object(&SETTLE)]),
            "The wait for answers and arrivals; a time alone is its at-most",
        ),
    ],
};

static SETTLE: Object = Object {
    keys: &[
        key(
            "at-most",
            one(Scalar::Time),
            "The longest wait; by default 30s, or the longest timeout and quiet",
        ),
        key(
            "quiet",
            one(Scalar::Time),
            "Without an arrival for so long, while every consumer listens, it ends",
        )
        .or("3s"),
    ],
};

pub(super) static COLD: Object = Object {
    keys: &[
        key(
            "first",
            one(Scalar::Time),
            "What is due in so long a time after warm-up",
        ),
        key(
            "first-message",
            one(Scalar::Bool),
            "Or the first message of each device's stream",
        ),
    ],
};

pub(super) static SLO: Object = Object {
    keys: &[
        key(
            "loss",
            one(Scalar::CountAtMost),
            "Accepted or unacknowledged, and not arrived",
        ),
        key(
            "failure-ratio",
            one(Scalar::ShareAtMost),
            "Rejected, timed out, broken, open or shed",
        ),
        key(
            "connected",
            one(Scalar::ShareAtLeast),
            "Links up at the end of the connect phase",
        ),
        key(
            "disconnects",
            one(Scalar::CountAtMost),
            "Links that the platform ended until measuring ended",
        ),
        key(
            "duplicates",
            one(Scalar::CountAtMost),
            "Second copies of messages that were sent once",
        ),
        key("response", Kind::Percentiles, "From due to the answer"),
        key("service", Kind::Percentiles, "From sent to the answer"),
        key("end-to-end", Kind::Percentiles, "From due to the backend"),
        key(
            "command-request",
            Kind::Percentiles,
            "From a query's due to its answer",
        ),
        key(
            "command-response",
            Kind::Percentiles,
            "From a command's receipt to the platform's answer to the reply",
        ),
        key(
            "command-loop",
            Kind::Percentiles,
            "From a command's issue to its reply at the backend",
        ),
        key(
            "queries-with-command",
            one(Scalar::ShareAtLeast),
            "Queries due to which a command came",
        ),
        key(
            "commands-not-received",
            one(Scalar::CountAtMost),
            "Commands delivered, and not received",
        ),
        key(
            "replies-lost",
            one(Scalar::CountAtMost),
            "Replies to commands accepted, and not arrived",
        ),
        key(
            "receive-loss",
            one(Scalar::CountAtMost),
            "Messages that streams of kind receive were to get, and did not",
        ),
        key(
            "stable",
            one(Scalar::BoolOrAny),
            "Whether the backlog may not grow",
        ),
    ],
};

pub(super) static VALIDITY: Object = Object {
    keys: &[
        key(
            "lateness-p99",
            one(Scalar::Time),
            "The most that the p99 of lateness may be",
        )
        .or("100ms"),
        key(
            "max-lateness",
            one(Scalar::Time),
            "A message later than this is shed",
        )
        .or("5s"),
        refused(
            "cpu",
            "CPU use of the generator is reported and warned about, and no rule bounds it",
            HEALTH_HELP,
        ),
        refused(
            "cpu-wait",
            "CPU wait of the generator is reported and warned about, and no rule bounds it",
            HEALTH_HELP,
        ),
        refused(
            "steal",
            "steal is reported and warned about, and no rule bounds it",
            HEALTH_HELP,
        ),
    ],
};

const HEALTH_HELP: &str =
    "remove the key: a run is invalid only where our own delay could have changed a rule";

pub(super) static STABILITY: Object = Object {
    keys: &[key(
        "min-windows",
        one(Scalar::Whole(10, 1_000_000)),
        "The fewest one-second windows",
    )
    .or("30")],
};

pub(super) static STOP_IF: Object = Object {
    keys: &[
        key(
            "failure-ratio",
            one(Scalar::Above),
            "More than this share failed",
        ),
        key(
            "connected",
            one(Scalar::Below),
            "Less than this share of the links is up",
        ),
    ],
};
