//! The keys under `platform.behaviour`.

use muster_platform::Rest;

use super::Scalar::{Bool, Code, Percent, Quantity, Rate, Time, Whole};
use super::{Key, Kind, Owner, U32, key, map, one};

/// Messages that a count can name: positions are drawn from the whole run.
const COUNT: Kind = one(Whole(0, U32));

/// Platforms to which links announce devices.
const ANNOUNCING: Owner = Owner::Dialect(|of| of.publishing().announcement.is_some());

/// Platforms whose gateway stores what devices send.
const STORING: Owner = Owner::Dialect(|of| matches!(of.server.rest, Some(Rest::Stored)));

object! { pub(super) BEHAVIOUR:
    key("service-time", Kind::Either(&[one(Time), map(&SERVICE_TIME)]),
        "Delay of each message by itself"),
    key("capacity", Kind::Either(&[one(Rate), map(&CAPACITY)]),
        "One server with a queue for all messages"),
    key("queue", COUNT, "Places before that server"),
    key("full", words!("drop", "reject", "block"), "Behaviour when the queue is full"),
    key("lose-after-accept", COUNT, "Accepted, never delivered"),
    key("drop", COUNT, "Never answered, never delivered"),
    key("ignore", COUNT, "Delivered, never answered"),
    key("answer-late", map(&DELAYED), "Answered late"),
    key("answer-twice", COUNT, "Answered twice"),
    key("answer-garbled", COUNT, "Acknowledged unreadably by the application"),
    key("answer-unknown", COUNT, "Acknowledged by the application under an id that nobody sent"),
    key("answer-batch", map(&BATCH),
        "Acknowledgements of the application, gathered for each device"),
    key("duplicate", COUNT, "Delivered twice"),
    key("reorder", COUNT, "Delivered after the next message"),
    key("deliver-late", map(&DELAYED), "Delivered late"),
    key("corrupt", COUNT, "Delivered with one bit altered"),
    key("reject", map(&REJECT), "Rejected, not delivered"),
    key("reject-but-deliver", Kind::Either(&[COUNT, map(&DELAYED)]),
        "Rejected, yet delivered: at once, or late"),
    key("lose-stored", COUNT, "Accepted and delivered, never stored").of(&[STORING]),
    key("stall-store", map(&STALL),
        "Time in which the store stands still while messages are accepted").of(&[STORING]),
    key("device-limit", COUNT, "Devices that the tenant may have").of(&[STORING]),
    key("message-limit", map(&DELAYED),
        "Messages that the tenant may send; new links and requests are refused that time later").of(&[STORING]),
    key("rest-rate", one(Rate),
        "Calls of the REST API answered a second; further ones are refused").of(&[STORING]),
    key("lose-commands", COUNT, "Commands accepted, never delivered"),
    key("duplicate-commands", COUNT, "Commands delivered twice"),
    key("delay-commands", map(&DELAYED), "Commands delivered late"),
    key("command-rate", one(Rate), "Commands passed on a second; further ones wait"),
    key("connect-rate", one(Rate), "New connections read a second; further ones wait"),
    key("session-queue", COUNT,
        "Most messages kept for a device that is offline; further ones are dropped"),
    key("stall", map(&STALL), "Time in which the gateway does nothing"),
    key("close-links", map(&CLOSE_LINKS), "Instant at which links are closed"),
    key("no-gateways", one(Bool),
        "Announcements of a gateway's devices are never answered").of(&[ANNOUNCING]),
    key("leak", map(&LEAK), "Memory that the gateway takes and never releases"),
    key("sawtooth", map(&SAWTOOTH), "Memory that the gateway takes and releases again and again"),
}

object! { SERVICE_TIME:
    key("exponential", one(Time), "Exponential times with this mean"),
    key("drift", map(&DRIFT), "Straight line from one time to another"),
}

object! { DRIFT:
    key("from", one(Time), "Time at the first message").required(),
    key("to", one(Time), "Time at the end of `over`, and after it").required(),
    key("over", one(Time), "Length of the line").required(),
}

object! { CAPACITY:
    key("rate", one(Rate), "Messages a second").required(),
    key("service", words!("fixed", "exponential"),
        "The distribution of the service time").or("fixed"),
}

object! { DELAYED:
    key("count", COUNT, "Number of messages").required(),
    key("by", one(Time), "Delay").required(),
}

object! { BATCH:
    key("most", one(Whole(1, 10_000)), "Most acknowledgements in one message").required(),
    key("within", one(Time), "Longest wait of the first of them").required(),
}

object! { REJECT:
    key("code", one(Code),
        "The code of the refusal: by default 0x97 in MQTT, 503 with sap-edge, 5.03 with hono"),
    key("share", one(Percent), "Share of the messages"),
    key("count", COUNT, "Number of messages, in place of `share`"),
}

/// An instant of the gateway, which knows no phases.
const AT: Key = key("at", one(Time), "Begin, from the first message received").required();

object! { LEAK:
    key("bytes", one(Rate), "Bytes a second, such as `1M/s`").required(),
    key("at-most", one(Quantity), "Bytes in the end").required(),
}

object! { SAWTOOTH:
    key("bytes", one(Quantity), "Bytes just before a release").required(),
    key("every", one(Time), "Time between two releases, at least 1 s").required(),
}

object! { STALL:
    AT,
    key("for", one(Time), "Length").required(),
}

object! { CLOSE_LINKS:
    AT,
    key("share", one(Percent), "Share of the links").required(),
}
