//! The keys of a stream.

use super::Scalar::{Bool, File, Rate, Reference, Size, Template, Text, Time, Whole};
use super::{COAP, Kind, LEVELLED, MQTT, Owner, U32, Word, judging, key, map, one, word};

object! { pub(crate) STREAM:
    key("name", one(Text), "Its name in the result; by default its kind"),
    key("kind", Kind::Word(KINDS), "Kind of message").or("telemetry"),
    key("rate", one(Rate), "Messages of all devices of the stream together").of(&[UPLINK]),
    key("every", one(Time), "Period of one device, in place of `rate`").of(&[UPLINK])
        .above_zero("a period of 0 is no period", "such as 5s"),
    key("shape", Kind::Either(&[words!("constant"), map(&SHAPE)]),
        "Change of the rate over time").or("constant").of(&[UPLINK]),
    key("count", one(Whole(1, U32)), "Messages a device sends, then it stops").of(&[UPLINK]),
    key("phase", words!("even", "hash", "together"), "Distribution of the devices over a period").or("even")
        .of(&[UPLINK]),
    key("loop", Kind::Either(&[words!("open", "closed"), map(&IN_FLIGHT)]),
        "Behaviour when a device is busy").or("open").of(&[UPLINK]),
    key("topic", one(Template), "Topic or path of the messages; by default muster/${id}/<stream>")
        .of(&[UPLINK, WITH_TOPICS]),
    key("path", one(Template),
        "Path of the requests, which may have a query; by default /muster/${id}/<stream>")
        .of(&[UPLINK, WITH_CALLS]),
    key("method", words!("POST", "PUT", "PATCH", "GET", "DELETE"), "Method of the requests").or("POST")
        .of(&[UPLINK, WITH_CALLS]),
    key("headers", Kind::Table(&one(Reference)),
        "Further headers, each with its value; keys by ${env:NAME} or ${file:PATH}")
        .of(&[UPLINK, WITH_CALLS]),
    key("success", Kind::Either(&[one(Text), Kind::List(&one(Text))]),
        "Status codes that accept a message, such as 201, 200-204 or 2xx").or("2xx")
        .of(&[UPLINK, WITH_CALLS]),
    key("answer-id", map(&ANSWER_ID),
        "Place of the id that an answer must give a message, or the message counts as rejected")
        .of(&[UPLINK, WITH_CALLS]),
    key("filter", one(Text),
        "Topic filter of the subscription; it may hold ${id}, ${index} and columns")
        .of(&[Owner::Kind(&["receive"])]),
    key("qos", one(Whole(0, 2)), "The quality of service, with hono over HTTP its qos-level").or("1").of(&[LEVELLED, WITH_TOPICS]),
    key("retain", one(Bool), "The platform keeps the last message (retained)").or("false")
        .of(&[MQTT, UPLINK]),
    key("ack", words!("none", "transport", "application"), "The answer that makes a message accepted")
        .of(&[UPLINK]),
    key("timeout", one(Time), "Time-out of an answer, from sent").or("10s")
        .above_zero("no answer comes at once", "such as 10s"),
    key("ttd", one(Time),
        "Wait of a device for a command, after its query; by default 10s")
        .of(&[Owner::Kind(&["command-query"])]).above_zero("no command comes at once", "such as 10s"),
    key("ttl", one(Time), "Time for which Hono keeps an event, in whole seconds (`hono-ttl`)")
        .of(&[MQTT, Owner::Kind(&["event"]), WITH_PROPERTIES]),
    key("on-error", words!("default", "disconnect", "ignore", "skip-ack"),
        "Treatment of a message that Hono refuses")
        .of(&[MQTT, UPLINK, WITH_PROPERTIES]),
    key("status", one(Whole(200, 599)),
        "Status in a device's reply, as in HTTP; by default 200")
        .of(&[Owner::Kind(&["command"]), WITH_STATUS]),
    key("confirmable", one(Bool),
        "Repeated until acknowledged (CON), or sent once (NON)").or("true")
        .of(&[COAP]),
    key("retry", one(Whole(0, 255)), "Further attempts by the application").or("0").of(&[UPLINK]),
    key("deadline", one(Time), "Later arrivals are `late`").of(&[UPLINK]),
    key("payload", Kind::Either(&[Kind::Word(PAYLOADS), map(&PAYLOAD)]),
        "Content of a message: a map, such as { size: 100 }, { template: ... } or { file: ... }").or("{ size: 100 }")
        .of(&[UPLINK]),
    key("carrier", Kind::Either(&[Kind::Word(CARRIERS), map(&CARRIER)]),
        "Place of the message's id").or("payload").of(&[UPLINK]),
    key("integrity", words!("body", "stamp"),
        "Coverage of the stamp's check: the body, or only the stamp if the platform rewrites bodies; by default body, with a real ThingsBoard stamp").or("body")
        .of(&[UPLINK]),
    key("slo", map(&judging::SLO), "Rules for this stream"),
}

const UPLINK: Owner = Owner::Kind(&["telemetry", "event", "command-query"]);
/// Platforms on which a topic or the path of a request says what a message is.
const WITH_TOPICS: Owner = Owner::Dialect(|of| !of.has_free_calls);
/// Platforms whose requests have the form that the scenario gives them.
const WITH_CALLS: Owner = Owner::Dialect(|of| of.has_free_calls);
/// Platforms to which a device's reply says what became of a command.
const WITH_STATUS: Owner = Owner::Dialect(|of| of.application.replies_with_status);

/// Platforms whose devices write metadata behind the topic.
const WITH_PROPERTIES: Owner = Owner::Dialect(|of| of.server.objections.is_some());

const KINDS: &[Word] = &[
    word("telemetry"),
    word("event"),
    word("command-query"),
    word("command"),
    word("receive"),
];

const PAYLOADS: &[Word] = &[
    word("empty"),
    word("ditto-modify"),
    word("smart-meter"),
    word("smart-tracker"),
    word("industrial-plc"),
    word("random-mix"),
    word("long-key"),
];

const CARRIERS: &[Word] = &[
    word("payload"),
    word("property"),
    word("order"),
    word("none"),
    word("application-id"),
];

object! { SHAPE:
    key("ramp", map(&RAMP), "A straight line to the stream's rate"),
    key("stages", Kind::List(&map(&STAGE)),
        "Lines and holds, one after the other; the first line begins at 0/s"),
    key("spike", map(&SPIKE), "The stream's rate, except during one spike"),
    key("sine", map(&SINE), "Up and down between two rates"),
    key("burst", map(&BURST), "Several messages of each device at once"),
    key("replay", one(File), "Exactly these instants: seconds after warm-up, one a line"),
    key("poisson", one(Bool), "Poisson arrivals at the stream's rate"),
}

object! { RAMP:
    key("from", one(Rate), "The first value").required(),
    key("to", one(Rate), "The last value; by default the stream's rate"),
    key("over", one(Time), "Duration").required(),
}

object! { STAGE:
    key("to", one(Rate), "The rate at the end of the line").required(),
    key("over", one(Time), "Duration of the line").or("0s"),
    key("hold", one(Time), "Time at this rate afterwards").or("0s"),
}

object! { SPIKE:
    key("to", one(Rate), "The rate within it").required(),
    key("at", one(Time), "Begin, from the end of warm-up").required(),
    key("for", one(Time), "Duration").required()
        .above_zero("a spike that lasts no time is none", "such as 10s"),
}

object! { SINE:
    key("from", one(Rate), "The first value").required(),
    key("to", one(Rate), "The other extreme").required(),
    key("period", one(Time), "From one first value to the next").required(),
}

object! { BURST:
    key("n", one(Whole(1, 1_000_000)), "Messages a device sends at once").required(),
    key("every", one(Time), "From one burst of a device to its next").required(),
}

object! { IN_FLIGHT:
    key("in-flight", one(Whole(1, 65_535)), "Unanswered messages a device").required(),
    key("overflow", words!("queue", "shed"), "Behaviour beyond them").or("queue"),
    key("bound", one(Whole(1, 10_000_000)), "Places in a device's queue"),
}

object! { PAYLOAD:
    key("template", one(Template), "Text with variables"),
    key("size", Kind::Either(&[one(Size), map(&SIZE)]), "Number of generated bytes"),
    key("file", one(File), "The bytes of a file"),
    key("sap-measures", map(&SAP_MEASURES),
        "Measures as the published test of the SAP Edge Gateway sends them"),
    key("smart-meter", map(&WITH_ALARMS), "A meter of the published tests of ThingsBoard"),
    key("smart-tracker", map(&WITH_ALARMS), "A vehicle of the same tests"),
    key("industrial-plc", map(&INDUSTRIAL_PLC), "A controller of the same tests"),
    key("random-mix", map(&WITH_ALARMS), "Mix of messages of 1, 20, 100 and 1,000 keys, of the same tests"),
    key("content-type", one(Text),
        "The media type: a property of MQTT 5, Content-Format of CoAP, a header of HTTP; over MQTT with hono a property of the topic"),
}

object! { ANSWER_ID:
    key("header", one(Text), "The header that holds it, such as location"),
    key("pointer", one(Text), "A JSON pointer to its place in the body, such as /id"),
}

object! { WITH_ALARMS:
    key("alarms", map(&ALARMS), "Messages that raise an alarm, in the place of others"),
}

object! { ALARMS:
    key("rate", one(Rate), "Alarms of all devices of the stream together").required(),
    key("from", one(Time), "Begin, from the start of warm-up").or("0s"),
    key("until", one(Time), "End, from the start of warm-up; by default the last message"),
}

object! { INDUSTRIAL_PLC:
    key("datapoints", one(Whole(1, 999)), "Values of a message").or("60"),
}

object! { SAP_MEASURES:
    key("samples", one(Whole(1, 10_000)), "Samples of a message, all alike").or("1"),
}

object! { SIZE:
    key("log-normal", map(&LOG_NORMAL), "Log-normal distribution of sizes").required(),
}

object! { LOG_NORMAL:
    key("median", one(Size), "Median size").required(),
    key("p99", one(Size), "99th percentile of the size").required(),
}

object! { CARRIER:
    key("field", one(Text), "A JSON pointer to the field that holds ${stamp}"),
    key("blind", one(Text),
        "A JSON pointer to the field with an id of the application: fixed text, ${id}, ${index}, ${tenant}, ${run} and one ${seq}"),
}
