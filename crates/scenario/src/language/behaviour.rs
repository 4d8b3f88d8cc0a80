//! The keys under `platform.behaviour`.

use super::{Key, Kind, Object, Scalar, key, one, word};

/// Messages that a count can name: positions are drawn from the whole run.
const COUNT: Kind = one(Scalar::Whole(0, u32::MAX as u64));

pub(super) static BEHAVIOUR: Object = Object {
    keys: &[
        key(
            "service-time",
            Kind::Either(&[one(Scalar::Time), Kind::Object(&SERVICE_TIME)]),
            "Delay of each message by itself",
        ),
        key(
            "capacity",
            Kind::Either(&[one(Scalar::Rate), Kind::Object(&CAPACITY)]),
            "One server with a queue, through which every message passes",
        ),
        key("queue", COUNT, "Places before that server"),
        key(
            "full",
            Kind::Word(&[word("drop"), word("reject"), word("block")]),
            "What happens when the queue is full",
        ),
        key("lose-after-accept", COUNT, "Accepted, never delivered"),
        key("drop", COUNT, "Never answered, never delivered"),
        key("ignore", COUNT, "Delivered, never answered"),
        key("answer-late", Kind::Object(&DELAYED), "Answered late"),
        key("answer-twice", COUNT, "Answered twice"),
        key(
            "answer-garbled",
            COUNT,
            "Acknowledged by the application in a way that cannot be read",
        ),
        key(
            "answer-unknown",
            COUNT,
            "Acknowledged by the application under an id that nobody sent",
        ),
        key(
            "answer-batch",
            Kind::Object(&BATCH),
            "How acknowledgements by the application are gathered, device by device",
        ),
        key("duplicate", COUNT, "Delivered twice"),
        key("reorder", COUNT, "Delivered after the next message"),
        key("deliver-late", Kind::Object(&DELAYED), "Delivered late"),
        key("corrupt", COUNT, "Delivered with one bit altered"),
        key(
            "reject",
            Kind::Object(&REJECT),
            "Answered no, not delivered",
        ),
        key(
            "reject-but-deliver",
            Kind::Either(&[COUNT, Kind::Object(&DELAYED)]),
            "Answered no, delivered nevertheless: at once, or late",
        ),
        key("lose-commands", COUNT, "Commands accepted, never delivered"),
        key("duplicate-commands", COUNT, "Commands delivered twice"),
        key(
            "delay-commands",
            Kind::Object(&DELAYED),
            "Commands delivered late",
        ),
        key(
            "session-queue",
            COUNT,
            "Most messages kept for a device that is offline; further ones are dropped",
        ),
        key(
            "stall",
            Kind::Object(&STALL),
            "A time in which the gateway does nothing",
        ),
        key(
            "close-links",
            Kind::Object(&CLOSE_LINKS),
            "An instant at which links are closed",
        ),
        key(
            "no-gateways",
            one(Scalar::Bool),
            "No link is a gateway's: its announcements are never answered (thingsboard)",
        ),
    ],
};

static SERVICE_TIME: Object = Object {
    keys: &[
        key("exponential", one(Scalar::Time), "The mean"),
        key(
            "drift",
            Kind::Object(&DRIFT),
            "Or a straight line from one time to another",
        ),
    ],
};

static DRIFT: Object = Object {
    keys: &[
        key("from", one(Scalar::Time), "At the first message").required(),
        key("to", one(Scalar::Time), "In the end").required(),
        key("over", one(Scalar::Time), "How long it takes to get there").required(),
    ],
};

static CAPACITY: Object = Object {
    keys: &[
        key("rate", one(Scalar::Rate), "Messages a second").required(),
        key(
            "service",
            Kind::Word(&[word("fixed"), word("exponential")]),
            "The distribution of the service time",
        )
        .or("fixed"),
    ],
};

static DELAYED: Object = Object {
    keys: &[
        key("count", COUNT, "How many").required(),
        key("by", one(Scalar::Time), "By how much").required(),
    ],
};

static BATCH: Object = Object {
    keys: &[
        key(
            "most",
            one(Scalar::Whole(1, 10_000)),
            "Most acknowledgements in one message",
        )
        .required(),
        key(
            "within",
            one(Scalar::Time),
            "How long the first of them waits at most",
        )
        .required(),
    ],
};

static REJECT: Object = Object {
    keys: &[
        key(
            "code",
            one(Scalar::Code),
            "The code of the refusal: by default 0x97 in MQTT, 503 with sap-edge, 5.03 with hono",
        ),
        key("share", one(Scalar::Percent), "Which share of the messages"),
        key("count", COUNT, "Or how many"),
    ],
};

/// An instant of the gateway, which knows no phases.
const AT: Key = key(
    "at",
    one(Scalar::Time),
    "When, from the first message received",
)
.required();

static STALL: Object = Object {
    keys: &[AT, key("for", one(Scalar::Time), "For how long").required()],
};

static CLOSE_LINKS: Object = Object {
    keys: &[
        AT,
        key("share", one(Scalar::Percent), "Which share of the links").required(),
    ],
};
