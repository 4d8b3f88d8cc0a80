//! The keys under `platform`, and those around it that are of later work.

use muster_plan::{BackendKind, BoardProvision, PasswordHash, ProvisionPlan, RpcNorthbound};
use muster_platform::{Dialect, ManagementApi, Protocol};

use super::Scalar::{
    Bool, File, Percent, Quantity, Rate, Reference, Secret, Size, Text, Time, Web, Whole,
};
use super::{
    Key, Kind, Owner, STREAMED, Urls, Word, behaviour, fleet, key, later, map, one, refused_word,
    word, work,
};

object! { pub(super) PLATFORM:
    key("kind", Kind::Word(KINDS), "The kind of the system under test").or("gateway"),
    key("dialect", Kind::Word(DIALECTS), "The dialect of the reference gateway").of(&[Owner::Gateway]),
    key("devices",
        Kind::Either(&[Kind::List(&Kind::Either(&[Kind::Url(DEVICE_SCHEMES), map(&DEVICES)])), Kind::Url(DEVICE_SCHEMES)]),
        "Address or addresses where devices connect, those of one protocol with one scheme; for names with several addresses see `addresses`"),
    key("addresses", words!("first", "all"),
        "For a name with several addresses: the first that answers, or all that answer, alternately").or("first"),
    key("renew-addresses", one(Time),
        "Time after which names are looked up again, for links that connect later; 0s is never").or("0s")
        .of(&[STREAMED]),
    key("tls", map(&TLS),
        "Check of the platform's certificate, and TLS settings of the client"),
    key("about", map(&ABOUT), "Description of the target, copied into the result"),
    key("backend",
        Kind::Either(&[map(&BACKEND), Kind::List(&Kind::Either(&[map(&BACKEND), Kind::Url(BACKEND_SCHEMES)])), Kind::Url(BACKEND_SCHEMES)]),
        "Business application, its address, or a list; each is an account of arrivals"),
    key("behaviour", map(&behaviour::BEHAVIOUR), "Misbehaviour of the gateway").of(&[Owner::Gateway]),
    key("max-payload", one(Size),
        "Longest payload that the gateway accepts over CoAP and HTTP; a longer one gets 4.13 or 413")
        .of(&[Owner::Gateway, WITH_REQUESTS]).above_zero("a gateway that takes no payload", "such as 2KiB"),
}

const OF_MQTT: Owner = Owner::Backend(|it| it == BackendKind::Mqtt);
const OF_KAFKA: Owner = Owner::Backend(|it| it == BackendKind::Kafka);
const OF_AMQP: Owner = Owner::Backend(|it| it == BackendKind::Amqp);
const WITH_SASL: Owner = Owner::Backend(|it| it.has_sasl);
const WITH_GROUPS: Owner = Owner::Backend(|it| it.has_groups);
/// Backends whose TLS is our own.
const WITH_OWN_TLS: Owner = Owner::Backend(|it| it.has_own_tls);
/// Platforms that take requests.
const WITH_REQUESTS: Owner = Owner::Dialect(|of| {
    let mut protocols = Protocol::ALL.into_iter();
    protocols.any(|protocol| protocol.asks && of.speaks(protocol))
});
/// Platforms that take commands by calls of their REST API.
const WITH_CALLS: Owner = Owner::Dialect(|of| of.application.calls.is_some());
const PROVISIONED: Owner = Owner::Dialect(|of| of.management.is_some());
const REGISTRY: Owner = Owner::Dialect(|of| of.management == Some(ManagementApi::HonoRegistry));
/// Platforms with profiles and customers.
const BOARD: Owner = Owner::Dialect(|of| of.management == Some(ManagementApi::ThingsBoard));
/// Platforms whose devices belong to gateways that the platform names.
const WITH_GATEWAYS: Owner = Owner::Dialect(|of| of.management == Some(ManagementApi::SapEdge));

/// The embedded gateway, and every dialect.
const KINDS: &[Word] = &{
    let mut words = [word("gateway"); 1 + Dialect::ALL.len()];
    let mut at = 0;
    while at < Dialect::ALL.len() {
        words[1 + at] = word(Dialect::ALL[at].spec().name);
        at += 1;
    }
    words
};

const DIALECTS: &[Word] = KINDS.split_at(1).1;

const DEVICE_SCHEMES: &Urls = &Urls {
    are_built: |scheme| scheme.devices.is_some(),
    others: &[],
};

const BACKEND_SCHEMES: &Urls = &Urls {
    are_built: |scheme| scheme.backend.is_some_and(|kind| !kind.listens),
    others: &[
        refused_word("http", PUSHED, WEBHOOKS),
        refused_word("https", PUSHED, WEBHOOKS),
        later("store", work::BACKENDS),
    ],
};

object! { DEVICES:
    key("url", Kind::Url(DEVICE_SCHEMES), "The address").required(),
    key("weight", one(Whole(1, 100)),
        "Share of the links that connect there, in relation to the other weights").or("1"),
}

const PUSHED: &str = "Muster fetches no messages over HTTP; the platform pushes them";
const WEBHOOKS: &str =
    "use `webhook: { listen: \"http://0.0.0.0:8088/muster\" }` in place of `url`";

/// Schemes of an address of ours.
const LISTEN_SCHEMES: &Urls = &Urls {
    are_built: |scheme| scheme.backend.is_some_and(|kind| kind.listens),
    others: &[],
};

object! { WEBHOOK:
    key("listen", Kind::Url(LISTEN_SCHEMES),
        "Address of this machine where Muster listens, with the path of the requests").required(),
    key("secret", one(Secret),
        "Secret that each request shows; in its place `user` and `password` of the backend are HTTP Basic"),
    key("secret-header", one(Text),
        "Header that has the secret; by default authorization, as a bearer token"),
    key("topic-header", one(Text),
        "Header that has the topic of a message; by default the path behind that of `listen`"),
    key("batches", one(Bool), "Each element of a JSON array is a message").or("false"),
}

/// Schemes of the REST API.
const CALL_SCHEMES: &Urls = &Urls {
    are_built: |scheme| scheme.devices == Some(Protocol::Http),
    others: &[],
};

object! { RPC:
    key("url", Kind::Url(CALL_SCHEMES), "Address of the REST API; by default that of `provision`")
        .of(&[Owner::Deployed]),
    key("pending", one(Whole(1, RpcNorthbound::PENDING_MAX as u64)),
        "Most calls without an answer; a two-way call is answered when its device replies").or("256"),
    key("timeout", one(Time), "Time for which ThingsBoard waits for the device, at least 5s").or("10s"),
    key("api", words!("rpc", "plugins"),
        "Path of the calls: `/api/rpc`, or `/api/plugins/rpc` of older versions").or("rpc"),
}

object! { TLS:
    CA.of(&[Owner::Deployed]),
    SERVER_NAME,
    INSECURE,
    TLS_VERSION,
    ALPN,
    RESUMPTION,
    key("client-ca", one(File),
        "Authority of device certificates at the embedded gateway").of(&[Owner::Gateway]),
}

object! { BACKEND_TLS:
    CA,
    SERVER_NAME.of(&[WITH_OWN_TLS]),
    INSECURE,
    TLS_VERSION.of(&[WITH_OWN_TLS]),
    ALPN.of(&[OF_MQTT]),
    RESUMPTION,
    key("cert", one(File), "The certificate that consumers show"),
    key("key", one(File), "Its key; by default in the same file"),
}

const CA: Key = key(
    "ca",
    one(File),
    "Trusted certificates; by default those of this machine",
);
const SERVER_NAME: Key = key(
    "server-name",
    one(Text),
    "The name the certificate must have; by default the address's host",
);
const INSECURE: Key = key(
    "insecure",
    one(Bool),
    "Accepts any certificate; every report says so",
)
.or("false");
const TLS_VERSION: Key = key(
    "version",
    Kind::Word(&[word("1.2"), word("1.3")]),
    "The only TLS version; by default both",
);
const ALPN: Key = key("alpn", one(Text), "Protocol offered by ALPN, such as mqtt");
const RESUMPTION: Key = key(
    "session-resumption",
    one(Bool),
    "A link that reconnects resumes its session; by default true over TLS, false over DTLS",
);

object! { ABOUT:
    key("file", one(File), "A file that describes the target").required(),
}

object! { pub(crate) BACKEND:
    key("name", one(Text), "Its name in the result"),
    key("url", Kind::Url(BACKEND_SCHEMES), "Address where the business application connects"),
    key("webhook", map(&WEBHOOK),
        "Endpoint of ours to which the platform pushes messages, in place of `url`"),
    key("rpc", map(&RPC),
        "Calls of ThingsBoard's REST API that issue `commands`, in place of `url`; nothing is consumed")
        .of(&[WITH_CALLS]),
    key("tls", map(&BACKEND_TLS),
        "Check of the certificate there; by default as that of the devices' address"),
    key("version", words!("5", "3.1.1"),
        "Version of MQTT; by default 5, or 3.1.1 if all devices use 3.1.1").of(&[OF_MQTT]),
    key("user", one(Reference), "Its user name"),
    key("password", Kind::Either(&[one(Secret), map(&fleet::OCTETS)]), "Its password"),
    key("sasl", words!("plain", "scram-sha-256", "scram-sha-512", "external", "anonymous"),
        "SASL mechanism of the login; by default plain, at AMQP without a user external with a certificate of `tls`, else anonymous")
        .of(&[WITH_SASL]),
    key("filter", one(Text), "Topic filter of its subscription").of(&[OF_MQTT]),
    key("qos", one(Whole(0, 2)), "Quality of service of its subscription").of(&[OF_MQTT]),
    key("consumers", one(Whole(1, 1_000)), "Consumer sessions").or("1"),
    key("shared", one(Text),
        "The group whose consumers share the messages: a shared subscription, or a group of Kafka").of(&[WITH_GROUPS]),
    key("addresses", Kind::List(&one(Text)),
        "Addresses of AMQP to receive from: queues or topics; by default those of the platform").of(&[OF_AMQP]),
    key("credit", one(Whole(1, 1_000_000)),
        "Deliveries of an AMQP address under way at once, the link credit").or("1000").of(&[OF_AMQP]),
    key("topics", Kind::Table(&one(Whole(1, 100_000))),
        "Topics of Kafka, each with its number of partitions if the run must create it")
        .of(&[OF_KAFKA]),
    key("pause", Kind::List(&map(&PAUSE)), "Times in which the consumers do not read"),
    key("commands", map(&COMMANDS), "Commands to the devices that have a stream of kind command"),
}

object! { PAUSE:
    key("at", one(Time), "Begin, from the start of warm-up").required(),
    key("for", one(Time), "Length").required(),
}

object! { COMMANDS:
    key("rate", one(Rate),
        "Commands to all devices together; not with `to: waiting`")
        .above_zero("at rate 0 no command is ever issued", "such as 50/s"),
    key("mode", words!("one-way", "two-way"), "One-way, or with a reply").or("one-way"),
    key("to", words!("online", "waiting", "absent", "all"),
        "Receivers: devices that connect, devices that query, names that no device uses, or `online` and `absent` alternately").or("online"),
}

object! { pub(super) PROVISION:
    key("mode", words!("auto", "verify", "on-refusal", "none"),
        "Create missing devices before the run, verify that all exist, create each when hono refuses it, or nothing").or("auto"),
    key("remove", one(Bool),
        "The run removes at its end only what it created").or("true"),
    key("url", one(Web), "Address of the management API; without a path the platform's default path")
        .of(&[Owner::Deployed, PROVISIONED]),
    key("api", words!("v1", "pre-1.0"),
        "Version of Hono's management API; by default v1")
        .of(&[Owner::Deployed, REGISTRY]),
    key("mongodb", one(Secret),
        "Connection string of the registry's database, in place of the management API")
        .of(&[Owner::Deployed, REGISTRY]),
    key("password-hash", words!("sha-512", "bcrypt"),
        "Hash of devices' passwords in Hono's registry, by default sha-512; bcrypt limits the rate over HTTP")
        .of(&[Owner::Deployed, REGISTRY]),
    key("bcrypt-cost", one(Whole(PasswordHash::BCRYPT_COST_MIN as u64, PasswordHash::BCRYPT_COST_MAX as u64)),
        "Cost of bcrypt, each doubles its time; by default 10, the highest that Hono takes unless it is configured otherwise")
        .of(&[Owner::Deployed, REGISTRY]),
    key("token", one(Secret), "The bearer token of the management API")
        .of(&[Owner::Deployed, PROVISIONED]),
    key("user", one(Secret), "User of the management API, in place of `token`: by HTTP Basic, or ThingsBoard's login")
        .of(&[Owner::Deployed, PROVISIONED]),
    key("password", one(Secret), "The password of `user`").of(&[Owner::Deployed, PROVISIONED]),
    key("tls", map(&PROVISION_TLS),
        "Check of the certificate there; by default as that of the devices' address")
        .of(&[Owner::Deployed, PROVISIONED]),
    key("gateway", one(Text), "The alternate id of the gateway that the devices belong to")
        .of(&[WITH_GATEWAYS]),
    key("profile", one(Text), "Profile of new devices, created if it is missing; by default ThingsBoard's default profile")
        .of(&[BOARD]),
    key("customers", one(Whole(1, BoardProvision::CUSTOMERS_MAX as u64)),
        "Number of customers `C00000000`, `C00000001`, ... that new devices are distributed to")
        .of(&[BOARD]),
    key("bulk", one(Whole(1, BoardProvision::BULK_MAX as u64)),
        "Devices that one bulk import creates; by default each is created by one call")
        .of(&[BOARD]),
    key("count", one(Bool),
        "Counts messages in ThingsBoard's rule engine: during the run the root rule chain is a copy with a count node; by default false")
        .of(&[BOARD]),
    key("read-back", Kind::Either(&[one(Bool), map(&READ_BACK)]),
        "Reads the stored time series when the load has ended, and counts what was accepted but is not stored; by default false")
        .of(&[BOARD]),
    key("rate", one(Rate), "Most calls of the management API a second").or("100/s"),
    key("pending", one(Whole(1, ProvisionPlan::PENDING_MAX as u64)),
        "Most calls without an answer").or("8"),
    key("timeout", one(Time), "Time-out of one call").or("30s")
        .above_zero("no call can be answered in no time", "such as 30s"),
}

object! { READ_BACK:
    key("devices", one(Whole(1, u32::MAX as u64)),
        "Number of devices that are read, spread evenly over the fleets; by default all"),
    key("share", one(Percent), "Share of the devices that are read, in place of their number"),
    key("from", one(Secret),
        "Address of ThingsBoard's PostgreSQL, which is read in place of the REST API: `postgresql://user@host:5432/database`"),
    key("password", one(Secret), "The password of the user of `from`"),
    key("tls", map(&PROVISION_TLS), "Check of the certificate of `from`"),
}

object! { PROVISION_TLS:
    CA,
    INSECURE,
}

object! { pub(super) HOOK:
    key("name", one(Text), "Its name in the result").required(),
    key("when", words!("before", "connect", "warm-up", "measure", "settle", "after"),
        "Before the first link, in a phase, or after settling").required(),
    key("at", one(Time), "Time after the begin of the phase").or("0s"),
    key("command", one(Text), "A command of the shell").required(),
    key("timeout", one(Time), "The longest time for it; then it is ended").or("30s")
        .above_zero("no command ends in no time", "such as 30s"),
}

object! { pub(super) MONITOR:
    key("name", one(Text), "Its name in the result").required(),
    key("process", one(Text),
        "A process by its name or id, with its child processes; with `kind: gateway`, `gateway` is the embedded one"),
    key("cgroup", one(Text),
        "A cgroup (version 2) by its folder, absolute or below `/sys/fs/cgroup`"),
    key("prometheus", map(&PAGE), "Figures of a page in the text format of Prometheus"),
    key("command", one(Text), "A command of the shell that prints a number"),
    key("counters", one(Web),
        "Page with the platform's own counters in the text format of Prometheus; several entries are summed"),
    key("every", one(Time), "Interval of the samples").or("1s")
        .above_zero("nothing can be sampled all the time", "such as 1s"),
    key("limit", one(Quantity),
        "The value at which it runs out: of a command its number, of a process or cgroup its memory in bytes, of ThingsBoard's counters the messages in the queue of its rule engine"),
}

object! { PAGE:
    key("url", one(Web), "Its address, over plain HTTP").required(),
    key("series", Kind::Table(&one(Text)),
        "Figures by name, such as `'jvm_memory_used_bytes{area=\"heap\"}'`: the sum of these samples, or `rate(...)` of it").required(),
    key("limits", Kind::Table(&one(Quantity)), "The values at which figures run out, by their names"),
}
