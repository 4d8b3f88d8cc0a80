//! The keys under `platform`, and those around it that are of later work.

use muster_plan::ProvisionPlan;

use super::{Key, Kind, Object, Scalar, Word, behaviour, fleet, key, later, one, word, work};

pub(super) static PLATFORM: Object = Object {
    keys: &[
        key("kind", Kind::Word(KINDS), "What the system under test is").or("gateway"),
        key(
            "dialect",
            Kind::Word(DIALECTS),
            "What the reference gateway speaks",
        ),
        key(
            "devices",
            Kind::Either(&[
                Kind::List(&Kind::Url(DEVICE_SCHEMES)),
                Kind::Url(DEVICE_SCHEMES),
            ]),
            "Where devices connect: an address or a list; of several addresses of a name see `addresses`",
        ),
        key(
            "addresses",
            Kind::Word(&[word("first"), word("all")]),
            "Of several addresses of a device name: the first that answers, or all that do, in turn",
        )
        .or("first"),
        key(
            "tls",
            Kind::Object(&TLS),
            "How the platform's certificate is checked, and what is said of ourselves",
        ),
        key(
            "about",
            Kind::Object(&ABOUT),
            "What the target is, copied into the result",
        ),
        key(
            "backend",
            Kind::Either(&[
                Kind::Object(&BACKEND),
                Kind::List(&Kind::Either(&[
                    Kind::Object(&BACKEND),
                    Kind::Url(BACKEND_SCHEMES),
                ])),
                Kind::Url(BACKEND_SCHEMES),
            ]),
            "The business application: one or its address, or a list, each an account of its own",
        ),
        key(
            "behaviour",
            Kind::Object(&behaviour::BEHAVIOUR),
            "How the gateway misbehaves",
        ),
        key(
            "max-payload",
            one(Scalar::Size),
            "The longest payload that the gateway takes over CoAP; a longer one is refused with 4.13",
        ),
    ],
};

const KINDS: &[Word] = &[
    word("gateway"),
    word("mqtt"),
    word("hono"),
    word("thingsboard"),
    word("sap-edge"),
    later("http", work::HTTP),
];

const DIALECTS: &[Word] = &[
    word("mqtt"),
    word("hono"),
    word("thingsboard"),
    word("sap-edge"),
    later("http", work::HTTP),
];

const DEVICE_SCHEMES: &[Word] = &[
    word("mqtt"),
    word("mqtts"),
    word("ws"),
    word("wss"),
    later("http", work::HTTP),
    later("https", work::HTTP),
    word("coap"),
    word("coaps"),
];

const BACKEND_SCHEMES: &[Word] = &[
    word("mqtt"),
    word("mqtts"),
    word("ws"),
    word("wss"),
    word("kafka"),
    word("kafkas"),
    later("amqp", work::BACKENDS),
    later("http", work::BACKENDS),
    later("store", work::BACKENDS),
];

static TLS: Object = Object {
    keys: &[
        CA,
        SERVER_NAME,
        INSECURE,
        TLS_VERSION,
        ALPN,
        RESUMPTION,
        key(
            "client-ca",
            one(Scalar::File),
            "Whom the embedded gateway trusts when a device shows a certificate",
        ),
    ],
};

static BACKEND_TLS: Object = Object {
    keys: &[
        CA,
        SERVER_NAME,
        INSECURE,
        TLS_VERSION,
        ALPN,
        RESUMPTION,
        key(
            "cert",
            one(Scalar::File),
            "The certificate that consumers show",
        ),
        key(
            "key",
            one(Scalar::File),
            "Its key; by default in the same file",
        ),
    ],
};

const CA: Key = key(
    "ca",
    one(Scalar::File),
    "Certificates that are trusted; by default those that this machine trusts",
);
const SERVER_NAME: Key = key(
    "server-name",
    one(Scalar::Text),
    "The name the certificate must have; by default the address's host",
);
const INSECURE: Key = key(
    "insecure",
    one(Scalar::Bool),
    "Whether any certificate will do; every report says so",
)
.or("false");
const TLS_VERSION: Key = key(
    "version",
    Kind::Word(&[word("1.2"), word("1.3")]),
    "The only version that is spoken; by default both",
);
const ALPN: Key = key(
    "alpn",
    one(Scalar::Text),
    "The protocol that is offered by ALPN, such as mqtt",
);
const RESUMPTION: Key = key(
    "session-resumption",
    one(Scalar::Bool),
    "Whether a link that connects again resumes its own session; by default over TLS, and not over DTLS",
);

static ABOUT: Object = Object {
    keys: &[key(
        "file",
        one(Scalar::File),
        "A file that describes the target",
    )
    .required()],
};

static BACKEND: Object = Object {
    keys: &[
        key("name", one(Scalar::Text), "Its name in the result"),
        key(
            "url",
            Kind::Url(BACKEND_SCHEMES),
            "Where the business application connects",
        ),
        key(
            "tls",
            Kind::Object(&BACKEND_TLS),
            "How the certificate there is checked; by default as that of the devices' address",
        ),
        key(
            "version",
            Kind::Word(&[word("5"), word("3.1.1")]),
            "The version of MQTT it speaks; by default 5, and 3.1.1 where all devices do",
        ),
        key("user", one(Scalar::Reference), "Its user name"),
        key(
            "password",
            Kind::Either(&[one(Scalar::Secret), Kind::Object(&fleet::OCTETS)]),
            "Its password",
        ),
        key(
            "sasl",
            Kind::Word(&[word("plain"), word("scram-sha-256"), word("scram-sha-512")]),
            "How its consumers prove the password to Kafka; by default plain",
        ),
        key(
            "filter",
            one(Scalar::Text),
            "The topic filter it subscribes to",
        ),
        key(
            "qos",
            one(Scalar::Whole(0, 2)),
            "The quality of service it subscribes with",
        ),
        key(
            "consumers",
            one(Scalar::Whole(1, 1_000)),
            "Consumer sessions",
        )
        .or("1"),
        key(
            "shared",
            one(Scalar::Text),
            "The group whose consumers share the messages: a shared subscription, or a group of Kafka",
        ),
        key(
            "credit",
            one(Scalar::Whole(1, 1_000_000)),
            "AMQP link credit",
        )
        .later(work::BACKENDS),
        key(
            "topics",
            Kind::Table(&one(Scalar::Whole(1, 100_000))),
            "Kafka's topics and how many partitions each is created with where it is missing",
        ),
        key(
            "pause",
            Kind::List(&Kind::Object(&PAUSE)),
            "When the consumers stop reading",
        ),
        key(
            "commands",
            Kind::Object(&COMMANDS),
            "Commands to the devices that have a stream of kind command",
        ),
    ],
};

static PAUSE: Object = Object {
    keys: &[
        key("at", one(Scalar::Time), "When, from the start of warm-up").required(),
        key("for", one(Scalar::Time), "For how long").required(),
    ],
};

static COMMANDS: Object = Object {
    keys: &[
        key(
            "rate",
            one(Scalar::Rate),
            "Commands to all devices together; none with to: waiting, where a command answers each query",
        ),
        key(
            "mode",
            Kind::Word(&[word("one-way"), word("two-way")]),
            "Whether a reply is wanted",
        )
        .or("one-way"),
        key(
            "to",
            Kind::Word(&[word("online"), word("waiting"), word("absent"), word("all")]),
            "Which devices: those that connect, those that ask, names that nobody plays, or both by turns",
        )
        .or("online"),
    ],
};

pub(super) static PROVISION: Object = Object {
    keys: &[
        key(
            "mode",
            Kind::Word(&[word("auto"), word("verify"), word("none")]),
            "What a run does of itself: it creates the devices that are not there, looks whether \
             they are there, or does nothing",
        )
        .or("auto"),
        key(
            "remove",
            one(Scalar::Bool),
            "Whether the run removes at its end what it has created, and nothing else",
        )
        .or("true"),
        key(
            "url",
            one(Scalar::Web),
            "The platform's management API; without a path the platform's usual one",
        ),
        key(
            "api",
            Kind::Word(&[word("v1"), word("pre-1.0")]),
            "The management API of a Hono: since its release 1.0, or before it; by default v1",
        ),
        key(
            "mongodb",
            one(Scalar::Secret),
            "The connection string of the database of a Hono's registry, which is then written to in place of the management API",
        ),
        key(
            "token",
            one(Scalar::Secret),
            "The bearer token of the management API",
        ),
        key(
            "user",
            one(Scalar::Secret),
            "In place of a token, who calls the management API by HTTP Basic",
        ),
        key("password", one(Scalar::Secret), "The password of `user`"),
        key(
            "tls",
            Kind::Object(&PROVISION_TLS),
            "How the certificate there is checked; by default as that of the devices' address",
        ),
        key(
            "gateway",
            one(Scalar::Text),
            "The alternate id of the gateway that the devices belong to",
        ),
        key(
            "rate",
            one(Scalar::Rate),
            "Calls of the management API a second, at the most",
        )
        .or("100/s"),
        key(
            "pending",
            one(Scalar::Whole(1, ProvisionPlan::PENDING_MAX as u64)),
            "Calls without an answer, at the most",
        )
        .or("8"),
        key("timeout", one(Scalar::Time), "How long one call may take").or("30s"),
    ],
};

static PROVISION_TLS: Object = Object {
    keys: &[CA, INSECURE],
};

pub(super) static HOOKS: Object = Object {
    keys: &[
        key("before", one(Scalar::Text), "A command before the run"),
        key("after", one(Scalar::Text), "A command after the run"),
    ],
};

pub(super) static MONITOR: Object = Object {
    keys: &[
        key("name", one(Scalar::Text), "Its name in the result").required(),
        key("process", one(Scalar::Text), "The process to watch").later(work::MONITORING),
        key(
            "counters",
            one(Scalar::Web),
            "Where the platform tells its own counters, in the text format of Prometheus; those of several entries are summed",
        ),
    ],
};
