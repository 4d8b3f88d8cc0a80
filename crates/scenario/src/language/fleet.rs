//! The keys of a fleet.

use super::Scalar::{
    Bool, ClientId, Factor, File, Fraction, Rate, Reference, Secret, Template, Text, Time, Whole,
};
use super::{COAP, Kind, MQTT, Owner, U32, judging, key, map, one, stream};

object! { pub(super) FLEET:
    key("name", one(Text), "Its name in the result").or("devices"),
    key("count", one(Whole(1, U32)), "Number of devices").or("1"),
    key("first", one(Whole(0, U32)), "Index of the first device").or("0"),
    key("id", one(Template),
        "The devices' names, by ${index} or a column of `data`; by default <fleet>-${index:08}"),
    key("tenant", one(Text), "The tenant"),
    key("data", one(File), "A table whose columns become variables, one row a device"),
    key("gateway", map(&GATEWAY), "Links that each carry several devices"),
    key("client", map(&CLIENT), "MQTT session of each link").or("{}"),
    key("credential", map(&CREDENTIAL), "Credential of each link").or("{ kind: none }"),
    key("sockets", words!("per-device", "shared"),
        "Whether each link has a socket of its own, or links share as few as message ids allow")
        .of(&[COAP]),
    key("connect", map(&CONNECT), "Opening of links").or("{}"),
    key("reconnect", map(&RECONNECT), "Opening of links after they ended").or("{}"),
    key("offline", map(&OFFLINE),
        "When all its devices are offline on purpose; they come back at `connect.rate`"),
    key("obey-retry-after", one(Bool),
        "Whether devices are silent for as long as Max-Age of a 5.03 says; by default true")
        .of(&[COAP]),
    key("streams", Kind::List(&map(&stream::STREAM)), "Messages of the devices").or("[]"),
    key("slo", map(&judging::SLO), "Rules for this fleet"),
}

object! { GATEWAY:
    key("devices", one(Whole(1, U32)), "Devices a link carries").required(),
    key("id", one(Template),
        "The links' own names, by ${index} from 0 or a column of their first devices; by default each has that of its first device"),
}

object! { CLIENT:
    key("id", one(ClientId),
        "The MQTT client id of each link; \"\" leaves it to the server, with each CONNECT").of(&[MQTT]),
    key("version", words!("5", "3.1.1"), "The version of MQTT").or("5").of(&[MQTT]),
    key("clean-start", one(Bool), "Drops an earlier session").or("true").of(&[MQTT]),
    key("session-expiry", one(Time), "Time that the session outlives the link").or("0s").of(&[MQTT]),
    key("keep-alive", one(Time), "The keep-alive; 0s switches it off").or("60s").of(&[MQTT]),
    key("receive-maximum", one(Whole(1, 65_535)), "Unanswered messages a device takes").of(&[MQTT]),
    key("will", map(&WILL), "Message that the platform publishes when a link ends without DISCONNECT").of(&[MQTT]),
    key("authentication", map(&AUTHENTICATION),
        "What links prove beyond their credential, by a method of MQTT 5").of(&[MQTT]),
    key("coap", map(&TRANSMISSION), "The transmission parameters of CoAP (RFC 7252 section 4.8)").of(&[COAP]),
}

object! { TRANSMISSION:
    key("ack-timeout", one(Time),
        "ACK_TIMEOUT: how long the first copy of a CON waits, at least").or("2s"),
    key("ack-random-factor", one(Factor),
        "ACK_RANDOM_FACTOR: how many times that it waits at most").or("1.5"),
    key("max-retransmit", one(Whole(0, 16)),
        "MAX_RETRANSMIT: copies of a CON after the first").or("4"),
    key("nstart", one(Whole(1, 1_000)),
        "NSTART: requests that a device may have open at once").or("1"),
    key("exchange-lifetime", one(Time),
        "EXCHANGE_LIFETIME: how long a message id is not used again; by default as derived from the others, 247s"),
    key("non-lifetime", one(Time),
        "NON_LIFETIME: how long an answer to a NON is waited for; by default as derived from the others, 145s"),
}

object! { AUTHENTICATION:
    key("method", one(Text), "The method's name").required(),
    key("data", Kind::Either(&[one(Secret), map(&OCTETS)]),
        "What goes with the CONNECT; by default nothing"),
    key("answer", Kind::Either(&[one(Secret), map(&OCTETS)]),
        "What answers each challenge; by default the data again"),
    key("echo", one(Bool), "Whether the challenge itself stands before the answer").or("false"),
    key("again", one(Time),
        "How long after it an open link authenticates again; 0s is never").or("0s"),
}

object! { WILL:
    key("topic", one(Template), "Its topic").required(),
    key("payload", one(Template), "Its payload").required(),
    key("qos", one(Whole(0, 2)), "Its quality of service").or("0"),
    key("retain", one(Bool), "Whether it is retained").or("false"),
    key("delay", one(Time),
        "How long after the end of the link it is published; MQTT 5, at most `session-expiry`").or("0s"),
}

object! { CREDENTIAL:
    key("kind", words!("none", "password", "token", "psk", "certificate"), "What it is").required(),
    key("user", Kind::Either(&[one(Reference), map(&OCTETS)]),
        "The user name, or the identity of a psk; by default ${id}")
        .of(&[Owner::Kind(&["password", "psk"])]),
    key("secret", Kind::Either(&[one(Secret), map(&OCTETS)]),
        "The password, or the key of a psk; or the access token, by default ${id}")
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
        "A file with exactly these bytes, a final newline among them; may differ from device to device"),
}

object! { CONNECT:
    key("rate", one(Rate), "New links, of the whole fleet").or("500/s"),
    key("pending", one(Whole(1, 1_000_000)), "Handshakes under way").or("128"),
    key("timeout", one(Time), "Time-out of a handshake").or("10s"),
    key("lifetime", one(Time), "Reconnect on purpose after it; 0s is never").or("0s"),
    key("from", Kind::List(&one(Text)),
        "Addresses of this machine that links come from, in turn; by default the kernel's choice").or("[]"),
}

object! { OFFLINE:
    key("at", one(Time), "When they leave, from the start of warm-up").required(),
    key("for", one(Time), "Length of the absence").required(),
    key("abrupt", one(Bool),
        "Whether links are reset without a DISCONNECT, so that the platform publishes their wills").or("false"),
}

object! { RECONNECT:
    key("min", one(Time), "The first wait").or("1s"),
    key("max", one(Time), "The longest wait").or("30s"),
    key("jitter", one(Fraction), "The share of a wait drawn at random").or("0.5"),
}
