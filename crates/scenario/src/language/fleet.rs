//! The keys of a fleet.

use muster_platform::Protocol;

use super::Scalar::{
    Bool, ClientId, Factor, File, Fraction, Rate, Reference, Secret, Template, Text, Time, Whole,
};
use super::{
    ASKING, COAP, HTTP, Kind, MQTT, Owner, U32, Word, judging, key, map, one, stream, word,
};

object! { pub(super) FLEET:
    key("name", one(Text), "Its name in the result").or("devices"),
    key("count", one(Whole(1, U32)), "Number of devices").or("1"),
    key("first", one(Whole(0, U32)), "Index of the first device").or("0"),
    key("id", one(Template),
        "Names of the devices, with ${index} or a column of `data`; by default <fleet>-${index:08}"),
    key("tenant", one(Text), "The tenant; with hono by default DEFAULT_TENANT"),
    key("data", one(File), "A table whose columns become variables, one row a device"),
    key("gateway", map(&GATEWAY), "Links that each carry several devices"),
    key("protocol", Kind::Word(PROTOCOLS),
        "Protocol of its devices, where `platform.devices` has addresses of several; by default that of the first"),
    key("client", map(&CLIENT), "MQTT session of each link").or("{}"),
    key("credential", map(&CREDENTIAL), "Credential of each link").or("{ kind: none }"),
    key("sockets", words!("per-device", "shared"),
        "A socket for each link, or as few shared ones as message ids allow")
        .of(&[COAP]),
    key("connect", map(&CONNECT), "Opening of links").or("{}"),
    key("reconnect", map(&RECONNECT), "Opening of links after they ended").or("{}"),
    key("offline", map(&OFFLINE),
        "Time in which all devices of the fleet are offline; they return at `connect.rate`"),
    key("obey-retry-after", one(Bool),
        "Devices are silent during the Max-Age of a 5.03, or the Retry-After of a 429 or 503").or("true")
        .of(&[ASKING]),
    key("error-topic", one(Bool),
        "Links subscribe to the topic of errors, so that a refusal is a message and not the end of the link")
        .of(&[MQTT, WITH_REFUSALS]),
    key("streams", Kind::List(&map(&stream::STREAM)), "Messages of the devices").or("[]"),
    key("slo", map(&judging::SLO), "Rules for this fleet"),
}

const PROTOCOLS: &[Word] = &{
    let mut words = [word(""); Protocol::ALL.len()];
    let mut at = 0;
    while at < words.len() {
        words[at] = word(Protocol::ALL[at].spec().word);
        at += 1;
    }
    words
};

/// Platforms that publish refusals.
const WITH_REFUSALS: Owner = Owner::Dialect(|of| of.publishing().refusals.is_some());

object! { GATEWAY:
    key("devices", one(Whole(1, U32)), "Devices a link carries").required(),
    key("id", one(Template),
        "Names of the links, with ${index} from 0 or a column of their first devices; by default the name of the first device"),
}

object! { CLIENT:
    key("id", one(ClientId),
        "MQTT client id of each link; \"\" lets the server assign one at each CONNECT").of(&[MQTT]),
    key("version", words!("5", "3.1.1"), "The version of MQTT").or("5").of(&[MQTT]),
    key("clean-start", one(Bool), "Drops an earlier session").or("true").of(&[MQTT]),
    key("session-expiry", one(Time), "Time that the session outlives the link").or("0s").of(&[MQTT]),
    key("keep-alive", one(Time), "The keep-alive; 0s switches it off").or("60s").of(&[MQTT]),
    key("receive-maximum", one(Whole(1, 65_535)), "Unanswered messages a device takes").of(&[MQTT]),
    key("will", map(&WILL), "Message that the platform publishes when a link ends without DISCONNECT").of(&[MQTT]),
    key("authentication", map(&AUTHENTICATION),
        "Enhanced authentication of MQTT 5").of(&[MQTT]),
    key("coap", map(&TRANSMISSION), "The transmission parameters of CoAP (RFC 7252 section 4.8)").or("{}").of(&[COAP]),
    key("http", map(&CONNECTIONS), "Use of connections by HTTP").or("{}").of(&[HTTP]),
}

object! { CONNECTIONS:
    key("pipelining", one(Whole(1, 64)),
        "Requests that a link may have open at once").or("1"),
    key("connection", words!("keep-alive", "per-request"),
        "A connection for all requests of a link, or one for each request").or("keep-alive"),
}

object! { TRANSMISSION:
    key("ack-timeout", one(Time),
        "ACK_TIMEOUT: shortest wait before a CON is sent again").or("2s")
        .above_zero("no acknowledgement comes at once", "such as 2s"),
    key("ack-random-factor", one(Factor),
        "ACK_RANDOM_FACTOR: longest wait as a multiple of the shortest").or("1.5"),
    key("max-retransmit", one(Whole(0, 16)),
        "MAX_RETRANSMIT: retransmissions of a CON").or("4"),
    key("nstart", one(Whole(1, 1_000)),
        "NSTART: requests that a device may have open at once").or("1"),
    key("exchange-lifetime", one(Time),
        "EXCHANGE_LIFETIME: time before a message id is used again; by default derived from the others, 247s"),
    key("non-lifetime", one(Time),
        "NON_LIFETIME: wait for the answer to a NON; by default derived from the others, 145s")
        .above_zero("no answer comes at once", "such as 145s"),
}

object! { AUTHENTICATION:
    key("method", one(Text), "The method's name").required(),
    key("data", Kind::Either(&[one(Secret), map(&OCTETS)]),
        "Data in the CONNECT; by default nothing"),
    key("answer", Kind::Either(&[one(Secret), map(&OCTETS)]),
        "Answer to each challenge; by default `data`"),
    key("echo", one(Bool), "The challenge precedes the answer").or("false"),
    key("again", one(Time),
        "Period after which an open link authenticates again; 0s is never").or("0s"),
}

object! { WILL:
    key("topic", one(Template), "Its topic").required(),
    key("payload", one(Template), "Its payload").required(),
    key("qos", one(Whole(0, 2)), "Its quality of service").or("0"),
    key("retain", one(Bool), "The will is retained").or("false"),
    key("delay", one(Time),
        "Delay from the end of the link to the will, in MQTT 5; at most `session-expiry`").or("0s"),
}

object! { CREDENTIAL:
    key("kind", words!("none", "password", "token", "psk", "certificate"), "Kind of credential").required(),
    key("user", Kind::Either(&[one(Reference), map(&OCTETS)]),
        "The user name, or the identity of a psk; by default ${id}, with hono ${id}@${tenant}")
        .of(&[Owner::Kind(&["password", "psk"])]),
    key("secret", Kind::Either(&[one(Secret), map(&OCTETS)]),
        "The password, or the key of a psk; or the access token, by default ${id}; over HTTP they are Basic and Bearer, with thingsboard the token is part of the path")
        .of(&[Owner::Kind(&["password", "token", "psk"])]),
    key("cert", one(Template),
        "The file of the certificate and its chain, or a folder with `${id}.pem` and `${id}.key`")
        .of(&[Owner::Kind(&["certificate"])]),
    key("key", one(Template), "The file of its key; by default that of the certificate")
        .of(&[Owner::Kind(&["certificate"])]),
}

// Bytes that need not be text.
object! { pub(super) OCTETS:
    key("hex", one(Secret), "The bytes as hexadecimal digits, such as a column of `data`"),
    key("base64", one(Secret), "The bytes as Base64"),
    key("file", one(Template),
        "File of the bytes, a final newline included; may name columns"),
}

object! { CONNECT:
    key("rate", one(Rate), "New links, of the whole fleet").or("500/s")
        .above_zero("at rate 0 no link is ever opened", "such as 500/s"),
    key("pack", one(Whole(1, 1_000_000)), "New links at the same instant, with pauses that keep to `rate`").or("1"),
    key("pending", one(Whole(1, 1_000_000)), "Handshakes under way").or("128"),
    key("timeout", one(Time), "Time-out of a handshake").or("10s")
        .above_zero("no handshake is over at once", "such as 10s"),
    key("lifetime", one(Time), "Age at which a link sends nothing new, waits for its answers and reconnects at once; 0s is never").or("0s"),
    key("from", Kind::List(&one(Text)),
        "Source addresses of links, used alternately; by default the kernel's choice").or("[]"),
}

object! { OFFLINE:
    key("at", one(Time), "Begin of the absence, from the start of warm-up").required(),
    key("for", one(Time), "Length of the absence").required()
        .above_zero("devices that are away for no time are not offline", "such as 10s"),
    key("abrupt", one(Bool),
        "Links are reset without DISCONNECT, so the platform publishes their wills").or("false"),
}

object! { RECONNECT:
    key("min", one(Time), "The first wait").or("1s"),
    key("max", one(Time), "The longest wait").or("30s")
        .above_zero("a link that never waits would hammer a target that refuses", "at least 1ms"),
    key("jitter", one(Fraction), "The share of a wait drawn at random").or("0.5"),
}
