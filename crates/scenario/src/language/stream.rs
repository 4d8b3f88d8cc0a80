//! The keys of a stream.

use super::{Kind, Object, Scalar, Word, judging, key, one, word};

pub(super) static STREAM: Object = Object {
    keys: &[
        key(
            "name",
            one(Scalar::Text),
            "Its name in the result; by default its kind",
        ),
        key("kind", Kind::Word(KINDS), "What the platform takes it for").or("telemetry"),
        key("rate", one(Scalar::Rate), "Messages of the whole class"),
        key("every", one(Scalar::Time), "Or the period of one device"),
        key(
            "shape",
            Kind::Either(&[Kind::Word(&[word("constant")]), Kind::Object(&SHAPE)]),
            "How the rate moves",
        )
        .or("constant"),
        key(
            "count",
            one(Scalar::Whole(1, u32::MAX as u64)),
            "Messages a device sends, then it stops",
        ),
        key(
            "phase",
            Kind::Word(&[word("even"), word("hash"), word("together")]),
            "How the devices share the time",
        )
        .or("even"),
        key(
            "loop",
            Kind::Either(&[
                Kind::Word(&[word("open"), word("closed")]),
                Kind::Object(&IN_FLIGHT),
            ]),
            "What happens when a device is busy",
        )
        .or("open"),
        key(
            "topic",
            one(Scalar::Template),
            "Where it is published; by default muster/${id}/<stream>",
        ),
        key(
            "filter",
            one(Scalar::Text),
            "What is subscribed to (kind receive); it may hold ${id}, ${index} and columns",
        ),
        key("qos", one(Scalar::Whole(0, 2)), "The quality of service").or("1"),
        key(
            "retain",
            one(Scalar::Bool),
            "Whether the platform keeps the last message",
        )
        .or("false"),
        key(
            "ack",
            Kind::Word(&[word("none"), word("transport"), word("application")]),
            "Which answer makes a message accepted",
        ),
        key(
            "timeout",
            one(Scalar::Time),
            "How long an answer may take, from sent",
        )
        .or("10s"),
        key(
            "ttd",
            one(Scalar::Time),
            "How long a device waits for a command once its query was taken (kind command-query); by default 10s",
        ),
        key(
            "status",
            one(Scalar::Whole(200, 599)),
            "What a device's reply says became of a command, as a status of HTTP from 200 to 599 (kind command, hono); by default 200",
        ),
        key(
            "confirmable",
            one(Scalar::Bool),
            "CoAP: whether it is sent until it is acknowledged (CON, not NON); by default true",
        ),
        key(
            "retry",
            one(Scalar::Whole(0, 255)),
            "How often the application tries again",
        )
        .or("0"),
        key("deadline", one(Scalar::Time), "Later arrivals are `late`"),
        key(
            "payload",
            Kind::Either(&[Kind::Word(PAYLOADS), Kind::Object(&PAYLOAD)]),
            "What is sent: a map, such as { size: 100 }, { template: ... } or { file: ... }",
        )
        .or("{ size: 100 }"),
        key(
            "carrier",
            Kind::Either(&[Kind::Word(CARRIERS), Kind::Object(&CARRIER)]),
            "Where the message's id travels",
        )
        .or("payload"),
        key(
            "integrity",
            Kind::Word(&[word("body"), word("stamp")]),
            "What the check of the stamp covers: the whole body, or the stamp alone, which survives a platform that writes bodies anew; by default body, with a real ThingsBoard stamp",
        )
        .or("body"),
        key(
            "slo",
            Kind::Object(&judging::SLO),
            "What must hold for this stream",
        ),
    ],
};

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

static SHAPE: Object = Object {
    keys: &[
        key(
            "ramp",
            Kind::Object(&RAMP),
            "A straight line to the stream's rate",
        ),
        key(
            "stages",
            Kind::List(&Kind::Object(&STAGE)),
            "Lines and holds, one after the other; the first line begins at 0/s",
        ),
        key(
            "spike",
            Kind::Object(&SPIKE),
            "The stream's rate, but for one rectangle",
        ),
        key("sine", Kind::Object(&SINE), "Up and down between two rates"),
        key(
            "burst",
            Kind::Object(&BURST),
            "Several messages of each device at once",
        ),
        key(
            "replay",
            one(Scalar::File),
            "Exactly these instants: seconds after warm-up, one a line",
        ),
        key(
            "poisson",
            one(Scalar::Bool),
            "Whether arrivals are Poisson at that rate",
        ),
    ],
};

static RAMP: Object = Object {
    keys: &[
        key("from", one(Scalar::Rate), "The first value").required(),
        key(
            "to",
            one(Scalar::Rate),
            "The last value; by default the stream's rate",
        ),
        key("over", one(Scalar::Time), "How long it takes").required(),
    ],
};

static STAGE: Object = Object {
    keys: &[
        key("to", one(Scalar::Rate), "The rate at the end of the line").required(),
        key("over", one(Scalar::Time), "How long the line takes").or("0s"),
        key("hold", one(Scalar::Time), "How long the rate then holds").or("0s"),
    ],
};

static SPIKE: Object = Object {
    keys: &[
        key("to", one(Scalar::Rate), "The rate within it").required(),
        key("at", one(Scalar::Time), "When it begins, after warm-up").required(),
        key("for", one(Scalar::Time), "How long it lasts").required(),
    ],
};

static SINE: Object = Object {
    keys: &[
        key("from", one(Scalar::Rate), "The first value").required(),
        key("to", one(Scalar::Rate), "The other extreme").required(),
        key(
            "period",
            one(Scalar::Time),
            "From one first value to the next",
        )
        .required(),
    ],
};

static BURST: Object = Object {
    keys: &[
        key(
            "n",
            one(Scalar::Whole(1, 1_000_000)),
            "Messages a device sends at once",
        )
        .required(),
        key(
            "every",
            one(Scalar::Time),
            "From one burst of a device to its next",
        )
        .required(),
    ],
};

static IN_FLIGHT: Object = Object {
    keys: &[
        key(
            "in-flight",
            one(Scalar::Whole(1, 65_535)),
            "Unanswered messages a device",
        )
        .required(),
        key(
            "overflow",
            Kind::Word(&[word("queue"), word("shed")]),
            "What happens beyond them",
        )
        .or("queue"),
        key(
            "bound",
            one(Scalar::Whole(1, 10_000_000)),
            "Places in a device's queue",
        ),
    ],
};

static PAYLOAD: Object = Object {
    keys: &[
        key("template", one(Scalar::Template), "Text with variables"),
        key(
            "size",
            Kind::Either(&[one(Scalar::Size), Kind::Object(&SIZE)]),
            "Made-up bytes: how many",
        ),
        key("file", one(Scalar::File), "The bytes of a file"),
        key(
            "sap-measures",
            Kind::Object(&SAP_MEASURES),
            "Measures as the published test of the SAP Edge Gateway sends them",
        ),
        key(
            "smart-meter",
            Kind::Object(&WITH_ALARMS),
            "A meter of the published tests of ThingsBoard",
        ),
        key(
            "smart-tracker",
            Kind::Object(&WITH_ALARMS),
            "A vehicle of theirs",
        ),
        key(
            "industrial-plc",
            Kind::Object(&INDUSTRIAL_PLC),
            "A controller of theirs",
        ),
        key(
            "random-mix",
            Kind::Object(&WITH_ALARMS),
            "Their mix of messages of 1, 20, 100 and 1,000 keys",
        ),
        key("content-type", one(Scalar::Text), "The MQTT 5 content type"),
    ],
};

static WITH_ALARMS: Object = Object {
    keys: &[key(
        "alarms",
        Kind::Object(&ALARMS),
        "Messages that raise an alarm, in the place of others",
    )],
};

static ALARMS: Object = Object {
    keys: &[
        key("rate", one(Scalar::Rate), "How many, of the whole class").required(),
        key(
            "from",
            one(Scalar::Time),
            "When they begin, from the start of warm-up",
        )
        .or("0s"),
        key(
            "until",
            one(Scalar::Time),
            "When they end; by default with the last message",
        ),
    ],
};

static INDUSTRIAL_PLC: Object = Object {
    keys: &[key(
        "datapoints",
        one(Scalar::Whole(1, 999)),
        "Values of a message",
    )
    .or("60")],
};

static SAP_MEASURES: Object = Object {
    keys: &[key(
        "samples",
        one(Scalar::Whole(1, 10_000)),
        "Samples of a message, all alike",
    )
    .or("1")],
};

static SIZE: Object = Object {
    keys: &[key(
        "log-normal",
        Kind::Object(&LOG_NORMAL),
        "Sizes as real fleets have",
    )
    .required()],
};

static LOG_NORMAL: Object = Object {
    keys: &[
        key("median", one(Scalar::Size), "Half are smaller").required(),
        key("p99", one(Scalar::Size), "One of a hundred is larger").required(),
    ],
};

static CARRIER: Object = Object {
    keys: &[
        key(
            "field",
            one(Scalar::Text),
            "A JSON pointer to the field that holds ${stamp}",
        ),
        key(
            "blind",
            one(Scalar::Text),
            "A JSON pointer to the field that holds an id of the application's own, made of fixed text, ${id}, ${index}, ${tenant}, ${run} and one ${seq}",
        ),
    ],
};
