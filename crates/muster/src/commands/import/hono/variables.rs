//! The environment variables of both generations of the published test.

use self::Form::{Any, Plain, Truth, Whole, Word};

/// A pod of that test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Role {
    /// Devices over HTTP.
    Http,
    /// Devices over MQTT.
    Mqtt,
    /// The business application.
    Consumer,
}

/// One variable.
#[derive(Debug)]
pub(super) struct Variable {
    pub(super) name: &'static str,
    pub(super) meaning: Meaning,
    pub(super) form: Form,
    /// The only pod that reads it; none if several do.
    pub(super) role: Option<Role>,
}

/// The use of a variable here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// Becomes a part of the scenario.
    Mapped,
    /// Has no meaning here, for this reason.
    Idle(&'static str),
}

/// The form of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// `true` or `false`, in letters of any case.
    Truth,
    /// A whole number from the first to the second.
    Whole(i64, i64),
    /// One of these words, in letters of any case.
    Word(&'static [&'static str]),
    /// Letters, digits and these characters, which need no escapes in a scenario.
    Plain(&'static str),
    /// Any text: a scenario refers to it.
    Any,
}

impl Form {
    /// The fault of a text, with its remedy; none if the text has this form.
    pub(super) fn fault(self, text: &str) -> Option<String> {
        match self {
            Self::Truth => {
                let mut words = ["true", "false"].into_iter();
                let is_word = words.any(|word| word.eq_ignore_ascii_case(text));
                (!is_word).then(|| "is neither `true` nor `false`; write one of them".to_owned())
            }
            Self::Whole(least, most) => {
                let number: Option<i64> = text.parse().ok();
                let is_within = number.is_some_and(|number| (least..=most).contains(&number));
                (!is_within).then(|| {
                    format!("is no whole number from {least} to {most}; write one without a unit")
                })
            }
            Self::Word(words) => {
                let is_word = words.iter().any(|word| word.eq_ignore_ascii_case(text));
                (!is_word).then(|| format!("is none of {}", words.join(", ")))
            }
            Self::Plain(further) => {
                let is_plain = |c: char| c.is_ascii_alphanumeric() || further.contains(c);
                let is_fit = text.chars().all(is_plain);
                (!is_fit).then(|| format!("may have letters, digits and {further} only"))
            }
            Self::Any => None,
        }
    }
}

const fn mapped(name: &'static str, role: Option<Role>, form: Form) -> Variable {
    Variable {
        name,
        meaning: Meaning::Mapped,
        form,
        role,
    }
}

const fn idle(name: &'static str, role: Option<Role>, why: &'static str) -> Variable {
    Variable {
        name,
        meaning: Meaning::Idle(why),
        form: Any,
        role,
    }
}

/// A variable for a comment of the scenario alone.
const fn noted(name: &'static str, form: Form) -> Variable {
    Variable {
        form,
        ..idle(name, None, METRICS)
    }
}

const HTTP: Option<Role> = Some(Role::Http);
const MQTT: Option<Role> = Some(Role::Mqtt);
const CONSUMER: Option<Role> = Some(Role::Consumer);

/// The longest period or wait: a day, in milliseconds.
const LONGEST_MS: i64 = 86_400_000;
/// The largest payload that a template can hold.
const PAYLOAD_MAX: i64 = 1 << 20;
/// Link credit at the most.
const CREDITS_MAX: i64 = 1_000_000;
/// Characters of a host besides letters and digits.
const HOST: &str = ".-_:";
const PORT: Form = Whole(1, 65_535);

const THREADS: &str =
    "threads and buffers of that test's clients; Muster's follow from the machine";
const POOL: &str = "bounds on shared connections; here each device has its connection";
const RESOLVER: &str = "caches of that test's resolver; here names are looked up once";
const IDLE: &str = "the client library counts it in seconds, so that it never took effect";
const TLS: &str = "the TLS library of that test's clients; here it is rustls";
const METRICS: &str = "that test's own way to its figures; here they are in the result folder, and in `--influx` and `--metrics` \
     of `muster run`";
const WATCHDOG: &str = "a watchdog over deadlocks of that test itself";
const RUNNER: &str = "the runner's access to two clusters; a scenario has fixed sizes";
const TRUST: &str = "that test's template sets it, and none of its programs reads it";

/// All of them, in the order in which a scenario has what they say.
pub(super) const VARIABLES: &[Variable] = &[
    mapped("HONO_TENANT", None, Plain(".-_")),
    mapped("HOSTNAME", None, Plain(".-_:")),
    mapped("NUM_DEVICES", None, Whole(1, u32::MAX as i64)),
    mapped("TELEMETRY_MS", None, Whole(0, LONGEST_MS)),
    mapped("EVENT_MS", None, Whole(0, LONGEST_MS)),
    mapped("MESSAGE_TYPE", None, Word(&["telemetry", "event"])),
    mapped("PERIOD_MS", None, Whole(1, LONGEST_MS)),
    mapped("PAYLOAD_SIZE", None, Whole(i64::MIN, PAYLOAD_MAX)),
    mapped("DEVICE_PASSWORD", None, Any),
    mapped("AUTO_REGISTER", None, Truth),
    mapped("DEVICE_REGISTRY_URL", None, Plain(".:/-_[]~%")),
    mapped(
        "HONO_SERVICE_DEVICE_REGISTRY_SERVICE_HOST",
        None,
        Plain(HOST),
    ),
    mapped("HONO_SERVICE_DEVICE_REGISTRY_SERVICE_PORT_HTTP", None, PORT),
    mapped("DEVICE_REGISTRY_VERSION", None, Word(&["V1", "LEGACY"])),
    mapped("DEVICE_REGISTRY_TOKEN", None, Any),
    mapped("TLS_INSECURE", None, Truth),
    mapped("DISABLE_TLS", None, Truth),
    mapped("HONO_HTTP_URL", HTTP, Plain(".:/-_,[]~% ")),
    mapped("HONO_HTTP_PROTO", HTTP, Word(&["http", "https"])),
    mapped("HONO_HTTP_HOST", HTTP, Plain(".-_, ")),
    mapped("HONO_HTTP_PORT", HTTP, PORT),
    mapped("HTTP_METHOD", HTTP, Word(&["PUT", "POST"])),
    mapped("HTTP_NOAUTH", HTTP, Truth),
    mapped(
        "DEVICE_PROVIDER",
        HTTP,
        Word(&["VERTX", "OKHTTP", "OKHTTP_ASYNC", "JAVA", "HC", "AHC"]),
    ),
    mapped("VERTX_KEEP_ALIVE", HTTP, Truth),
    mapped("AHC_KEEP_ALIVE", HTTP, Truth),
    mapped("VERTX_CONNECT_TIMEOUT", HTTP, Whole(1, LONGEST_MS)),
    mapped("VERTX_RECREATE_CLIENT", HTTP, Whole(0, LONGEST_MS)),
    mapped("HONO_MQTT_HOST", MQTT, Plain(HOST)),
    mapped("HONO_MQTT_PORT", MQTT, PORT),
    mapped("HONO_MQTT_SSL", MQTT, Truth),
    mapped("RECONNECT_DELAY", MQTT, Whole(0, LONGEST_MS)),
    mapped("RECONNECT_JITTER", MQTT, Whole(1, LONGEST_MS)),
    mapped("MESSAGING_SERVICE_HOST", CONSUMER, Plain(HOST)),
    mapped("MESSAGING_SERVICE_PORT_AMQP", CONSUMER, PORT),
    mapped("HONO_USER", CONSUMER, Any),
    mapped("HONO_PASSWORD", CONSUMER, Any),
    mapped("HONO_TRUSTED_CERTS", CONSUMER, Plain("./-_ ")),
    mapped("HONO_INITIAL_CREDITS", CONSUMER, Whole(1, CREDITS_MAX)),
    idle("NUM_THREADS", None, THREADS),
    idle("VERTX_POOLED_BUFFERS", HTTP, THREADS),
    idle("VERTX_EVENT_POOL_SIZE", MQTT, THREADS),
    idle("AHC_POOLED_ALLOCATOR", HTTP, THREADS),
    idle("AHC_IO_THREAD_COUNT", HTTP, THREADS),
    idle("AHC_USE_NATIVE_TRANSPORT", HTTP, THREADS),
    idle("VERTX_MAX_POOL_SIZE", HTTP, POOL),
    idle("OKHTTP_MINIMALISTIC_CONNECTION_POOL", HTTP, POOL),
    idle("OKHTTP_CONNECTION_POOL_SIZE", HTTP, POOL),
    idle("OKHTTP_DISPATCHER_MAX_REQUESTS", HTTP, POOL),
    idle("OKHTTP_DISPATCHER_MAX_REQUESTS_PER_HOST", HTTP, POOL),
    idle("AHC_MAX_CONNECTIONS", HTTP, POOL),
    idle("AHC_MAX_CONNECTIONS_PER_HOST", HTTP, POOL),
    idle("VERTX_DNS_MAX_TTL", HTTP, RESOLVER),
    idle("VERTX_DNS_CACHE_NEGATIVE_TTL_SECONDS", HTTP, RESOLVER),
    idle("VERTX_IDLE_TIMEOUT", HTTP, IDLE),
    idle("WITH_OPENSSL", None, TLS),
    idle("HONO_MQTT_TRUST_ALL", MQTT, TRUST),
    idle("EXIT_ON_DEADLOCK", None, WATCHDOG),
    idle("ENABLE_METRICS", None, METRICS),
    idle("ENABLE_PERSISTENCE", CONSUMER, METRICS),
    noted("INFLUXDB_URL", Plain(".:/-_[]")),
    noted("INFLUXDB_SERVICE_HOST", Plain(HOST)),
    noted("INFLUXDB_SERVICE_PORT_API", PORT),
    idle("INFLUXDB_USER", None, METRICS),
    idle("INFLUXDB_PASSWORD", None, METRICS),
    noted("INFLUXDB_NAME", Plain("-_.")),
    idle("INFLUXDB_BATCH_SIZE", CONSUMER, METRICS),
    idle("INFLUXDB_METRICS_BATCH_SIZE", None, METRICS),
    idle("INFLUXDB_METRICS_FLUSH_DURATION_SECONDS", None, METRICS),
    idle("IOT_URL", None, RUNNER),
    idle("IOT_USER", None, RUNNER),
    idle("IOT_PASSWORD", None, RUNNER),
    idle("SIM_URL", None, RUNNER),
    idle("SIM_USER", None, RUNNER),
    idle("SIM_PASSWORD", None, RUNNER),
];

/// Beginnings of names that are that test's alone, so that an unknown name is a slip.
const PREFIXES: [&str; 11] = [
    "HONO_",
    "HTTP_",
    "VERTX_",
    "OKHTTP_",
    "AHC_",
    "INFLUXDB_",
    "DEVICE_",
    "MESSAGING_SERVICE_",
    "RECONNECT_",
    "TELEMETRY_",
    "NUM_",
];

/// Names that a shell or a container has, whatever runs there.
const FOREIGN: [&str; 16] = [
    "PATH",
    "HOME",
    "PWD",
    "OLDPWD",
    "SHLVL",
    "_",
    "TERM",
    "LANG",
    "USER",
    "LOGNAME",
    "SHELL",
    "TZ",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "container",
];
/// Beginnings of such names.
const FOREIGN_PREFIXES: [&str; 5] = ["KUBERNETES_", "JAVA_", "JDK_", "LC_", "OPENSHIFT_"];

/// The variable of a name.
pub(super) fn variable(name: &str) -> Option<&'static Variable> {
    VARIABLES.iter().find(|variable| variable.name == name)
}

/// Returns true for a name that begins as those of that test do.
pub(super) fn has_prefix(name: &str) -> bool {
    PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// Returns true for a variable that a shell, a container or a cluster sets by itself.
pub(super) fn is_foreign(name: &str, value: &str) -> bool {
    let mut prefixes = FOREIGN_PREFIXES.iter();
    FOREIGN.contains(&name)
        || prefixes.any(|prefix| name.starts_with(prefix))
        || is_service_link(name, value)
}

/// Returns true for a variable that Kubernetes sets in each pod for a service.
fn is_service_link(name: &str, value: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    let is_of_port = |rest: &str| {
        let mut parts = rest.split('_');
        parts.next().is_some_and(is_number) && matches!(parts.next(), Some("TCP" | "UDP"))
    };
    let ports = name.match_indices("_PORT_");
    name.ends_with("_SERVICE_HOST")
        || name.ends_with("_SERVICE_PORT")
        || name.contains("_SERVICE_PORT_") && is_number(value)
        || name.ends_with("_PORT") && value.starts_with("tcp://")
        || ports
            .map(|(at, word)| &name[at + word.len()..])
            .any(is_of_port)
}

/// The names that begin as this one does, for a refusal without a better guess.
pub(super) fn relatives(name: &str) -> Vec<&'static str> {
    let prefix = PREFIXES.iter().find(|prefix| name.starts_with(**prefix));
    let all = VARIABLES.iter().map(|variable| variable.name);
    all.filter(|known| prefix.is_some_and(|prefix| known.starts_with(prefix)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_stands_once() {
        for (at, variable) in VARIABLES.iter().enumerate() {
            let mut before = VARIABLES[..at].iter();
            assert!(!before.any(|it| it.name == variable.name), "{variable:?}");
        }
    }

    #[test]
    fn what_a_cluster_sets_is_no_slip() {
        for (name, value) in [
            ("INFLUXDB_PORT", "tcp://172.30.1.2:8086"),
            ("INFLUXDB_PORT_8086_TCP_ADDR", "172.30.1.2"),
            ("INFLUXDB_SERVICE_PORT", "8086"),
            ("HONO_ADAPTER_HTTP_VERTX_SERVICE_PORT_HTTP", "8080"),
            ("KUBERNETES_PORT_443_TCP", "tcp://172.30.0.1:443"),
            ("HTTP_PROXY", "http://proxy"),
        ] {
            assert!(is_foreign(name, value), "{name}");
        }
        for name in ["HONO_HTTP_PORTS", "HONO_HTTP_PORT_X_TCP", "HTTP_METHODS"] {
            assert!(!is_foreign(name, "x"), "{name}");
        }
    }
}
