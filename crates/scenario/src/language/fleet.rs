//! The keys of a fleet.

use super::{Kind, Object, Scalar, judging, key, one, stream, word};

pub(super) static FLEET: Object = Object {
    keys: &[
        key("name", one(Scalar::Text), "Its name in the result").or("devices"),
        key(
            "count",
            one(Scalar::Whole(1, u32::MAX as u64)),
            "How many devices",
        )
        .or("1"),
        key(
            "first",
            one(Scalar::Whole(0, u32::MAX as u64)),
            "Index of the first device",
        )
        .or("0"),
        key(
            "id",
            one(Scalar::Template),
            "The devices' names, by ${index} or a column of `data`; by default <fleet>-${index:08}",
        ),
        key("tenant", one(Scalar::Text), "The tenant"),
        key(
            "data",
            one(Scalar::File),
            "A table whose columns become variables, one row a device",
        ),
        key(
            "gateway",
            Kind::Object(&GATEWAY),
            "Links that each carry several devices",
        ),
        key("client", Kind::Object(&CLIENT), "How sessions are opened").or("{}"),
        key(
            "credential",
            Kind::Object(&CREDENTIAL),
            "How links prove who they are",
        )
        .or("{ kind: none }"),
        key(
            "sockets",
            Kind::Word(&[word("per-device"), word("shared")]),
            "CoAP: whether each link has a socket of its own, or links share as few as message ids allow",
        ),
        key("connect", Kind::Object(&CONNECT), "How links are opened").or("{}"),
        key(
            "reconnect",
            Kind::Object(&RECONNECT),
            "How links are opened again",
        )
        .or("{}"),
        key(
            "offline",
            Kind::Object(&OFFLINE),
            "When all its devices are offline on purpose; they come back at `connect.rate`",
        ),
        key(
            "obey-retry-after",
            one(Scalar::Bool),
            "CoAP: whether devices are silent for as long as Max-Age of a 5.03 says; by default true",
        ),
        key(
            "streams",
            Kind::List(&Kind::Object(&stream::STREAM)),
            "What the devices send",
        )
        .or("[]"),
        key(
            "slo",
            Kind::Object(&judging::SLO),
            "What must hold for this fleet",
        ),
    ],
};

static GATEWAY: Object = Object {
    keys: &[
        key(
            "devices",
            one(Scalar::Whole(1, u32::MAX as u64)),
            "Devices a link carries",
        )
        .required(),
        key(
            "id",
            one(Scalar::Template),
            "The links' own names, by ${index} from 0 or a column of their first devices; by default each has that of its first device",
        ),
    ],
};

static CLIENT: Object = Object {
    keys: &[
        key(
            "id",
            one(Scalar::ClientId),
            "The MQTT client id of each link; \"\" leaves it to the server, with each CONNECT",
        ),
        key(
            "version",
            Kind::Word(&[word("5"), word("3.1.1")]),
            "The version of MQTT",
        )
        .or("5"),
        key(
            "clean-start",
            one(Scalar::Bool),
            "Whether an earlier session is forgotten",
        )
        .or("true"),
        key(
            "session-expiry",
            one(Scalar::Time),
            "How long the session outlives the link",
        )
        .or("0s"),
        key(
            "keep-alive",
            one(Scalar::Time),
            "The keep-alive; 0s switches it off",
        )
        .or("60s"),
        key(
            "receive-maximum",
            one(Scalar::Whole(1, 65_535)),
            "Unanswered messages a device takes",
        ),
        key(
            "will",
            Kind::Object(&WILL),
            "What the platform publishes when a link ends unasked",
        ),
        key(
            "authentication",
            Kind::Object(&AUTHENTICATION),
            "What links prove beyond their credential, by a method of MQTT 5",
        ),
        key(
            "coap",
            Kind::Object(&COAP),
            "The transmission parameters of CoAP (RFC 7252 section 4.8)",
        ),
    ],
};

static COAP: Object = Object {
    keys: &[
        key(
            "ack-timeout",
            one(Scalar::Time),
            "ACK_TIMEOUT: how long the first copy of a CON waits, at least",
        )
        .or("2s"),
        key(
            "ack-random-factor",
            one(Scalar::Factor),
            "ACK_RANDOM_FACTOR: how many times that it waits at most",
        )
        .or("1.5"),
        key(
            "max-retransmit",
            one(Scalar::Whole(0, 16)),
            "MAX_RETRANSMIT: copies of a CON after the first",
        )
        .or("4"),
        key(
            "nstart",
            one(Scalar::Whole(1, 1_000)),
            "NSTART: requests that a device may have open at once",
        )
        .or("1"),
        key(
            "exchange-lifetime",
            one(Scalar::Time),
            "EXCHANGE_LIFETIME: how long a message id is not used again; by default as derived from the others, 247s",
        ),
        key(
            "non-lifetime",
            one(Scalar::Time),
            "NON_LIFETIME: how long an answer to a NON is waited for; by default as derived from the others, 145s",
        ),
    ],
};

static AUTHENTICATION: Object = Object {
    keys: &[
        key("method", one(Scalar::Text), "The method's name").required(),
        key(
            "data",
            Kind::Either(&[one(Scalar::Secret), Kind::Object(&OCTETS)]),
            "What goes with the CONNECT; by default nothing",
        ),
        key(
            "answer",
            Kind::Either(&[one(Scalar::Secret), Kind::Object(&OCTETS)]),
            "What answers each challenge; by default the data again",
        ),
        key(
            "echo",
            one(Scalar::Bool),
            "Whether the challenge itself stands before the answer",
        )
        .or("false"),
        key(
            "again",
            one(Scalar::Time),
            "How long after it an open link authenticates again; 0s is never",
        )
        .or("0s"),
    ],
};

static WILL: Object = Object {
    keys: &[
        key("topic", one(Scalar::Template), "Its topic").required(),
        key("payload", one(Scalar::Template), "Its payload").required(),
        key("qos", one(Scalar::Whole(0, 2)), "Its quality of service").or("0"),
        key("retain", one(Scalar::Bool), "Whether it is retained").or("false"),
        key(
            "delay",
            one(Scalar::Time),
            "How long after the end of the link it is published; MQTT 5, at most `session-expiry`",
        )
        .or("0s"),
    ],
};

static CREDENTIAL: Object = Object {
    keys: &[
        key(
            "kind",
            Kind::Word(&[
                word("none"),
                word("password"),
                word("token"),
                word("psk"),
                word("certificate"),
            ]),
            "What it is",
        )
        .required(),
        key(
            "user",
            Kind::Either(&[one(Scalar::Reference), Kind::Object(&OCTETS)]),
            "The user name, or the identity of a psk; by default ${id}",
        ),
        key(
            "secret",
            Kind::Either(&[one(Scalar::Secret), Kind::Object(&OCTETS)]),
            "The password, or the key of a psk; or the access token, by default ${id}",
        ),
        key(
            "cert",
            one(Scalar::Template),
            "The file of the certificate and its chain, or a folder with `${id}.pem` and `${id}.key`",
        ),
        key(
            "key",
            one(Scalar::Template),
            "The file of its key; by default that of the certificate",
        ),
    ],
};

/// Bytes that need not be text.
pub(super) static OCTETS: Object = Object {
    keys: &[
        key(
            "hex",
            one(Scalar::Secret),
            "The bytes as hexadecimal digits, such as a column of `data`",
        ),
        key("base64", one(Scalar::Secret), "The bytes as Base64"),
        key(
            "file",
            one(Scalar::Template),
            "A file with exactly these bytes, a final newline among them; may differ from device to device",
        ),
    ],
};

static CONNECT: Object = Object {
    keys: &[
        key("rate", one(Scalar::Rate), "New links, of the whole fleet").or("500/s"),
        key(
            "pending",
            one(Scalar::Whole(1, 1_000_000)),
            "Handshakes under way",
        )
        .or("128"),
        key(
            "timeout",
            one(Scalar::Time),
            "How long a handshake may take",
        )
        .or("10s"),
        key(
            "lifetime",
            one(Scalar::Time),
            "Reconnect on purpose after it; 0s is never",
        )
        .or("0s"),
        key(
            "from",
            Kind::List(&one(Scalar::Text)),
            "Addresses of this machine that links come from, in turn; by default the kernel's choice",
        )
        .or("[]"),
    ],
};

static OFFLINE: Object = Object {
    keys: &[
        key(
            "at",
            one(Scalar::Time),
            "When they leave, from the start of warm-up",
        )
        .required(),
        key("for", one(Scalar::Time), "How long they stay away").required(),
        key(
            "abrupt",
            one(Scalar::Bool),
            "Whether links are reset without a DISCONNECT, so that the platform publishes their wills",
        )
        .or("false"),
    ],
};

static RECONNECT: Object = Object {
    keys: &[
        key("min", one(Scalar::Time), "The first wait").or("1s"),
        key("max", one(Scalar::Time), "The longest wait").or("30s"),
        key(
            "jitter",
            one(Scalar::Fraction),
            "The share of a wait drawn at random",
        )
        .or("0.5"),
    ],
};
