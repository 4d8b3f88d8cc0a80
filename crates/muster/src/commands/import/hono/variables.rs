//! The environment variables of both generations of the published test.

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

const fn mapped(name: &'static str, role: Option<Role>) -> Variable {
    let meaning = Meaning::Mapped;
    Variable {
        name,
        meaning,
        role,
    }
}

const fn idle(name: &'static str, role: Option<Role>, why: &'static str) -> Variable {
    Variable {
        name,
        meaning: Meaning::Idle(why),
        role,
    }
}

const HTTP: Option<Role> = Some(Role::Http);
const MQTT: Option<Role> = Some(Role::Mqtt);
const CONSUMER: Option<Role> = Some(Role::Consumer);

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
    mapped("HONO_TENANT", None),
    mapped("HOSTNAME", None),
    mapped("NUM_DEVICES", None),
    mapped("TELEMETRY_MS", None),
    mapped("EVENT_MS", None),
    mapped("MESSAGE_TYPE", None),
    mapped("PERIOD_MS", None),
    mapped("PAYLOAD_SIZE", None),
    mapped("DEVICE_PASSWORD", None),
    mapped("AUTO_REGISTER", None),
    mapped("DEVICE_REGISTRY_URL", None),
    mapped("HONO_SERVICE_DEVICE_REGISTRY_SERVICE_HOST", None),
    mapped("HONO_SERVICE_DEVICE_REGISTRY_SERVICE_PORT_HTTP", None),
    mapped("DEVICE_REGISTRY_VERSION", None),
    mapped("DEVICE_REGISTRY_TOKEN", None),
    mapped("TLS_INSECURE", None),
    mapped("DISABLE_TLS", None),
    mapped("HONO_HTTP_URL", HTTP),
    mapped("HONO_HTTP_PROTO", HTTP),
    mapped("HONO_HTTP_HOST", HTTP),
    mapped("HONO_HTTP_PORT", HTTP),
    mapped("HTTP_METHOD", HTTP),
    mapped("HTTP_NOAUTH", HTTP),
    mapped("DEVICE_PROVIDER", HTTP),
    mapped("VERTX_KEEP_ALIVE", HTTP),
    mapped("AHC_KEEP_ALIVE", HTTP),
    mapped("VERTX_CONNECT_TIMEOUT", HTTP),
    mapped("VERTX_RECREATE_CLIENT", HTTP),
    mapped("HONO_MQTT_HOST", MQTT),
    mapped("HONO_MQTT_PORT", MQTT),
    mapped("HONO_MQTT_SSL", MQTT),
    mapped("RECONNECT_DELAY", MQTT),
    mapped("RECONNECT_JITTER", MQTT),
    mapped("MESSAGING_SERVICE_HOST", CONSUMER),
    mapped("MESSAGING_SERVICE_PORT_AMQP", CONSUMER),
    mapped("HONO_USER", CONSUMER),
    mapped("HONO_PASSWORD", CONSUMER),
    mapped("HONO_TRUSTED_CERTS", CONSUMER),
    mapped("HONO_INITIAL_CREDITS", CONSUMER),
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
    idle("INFLUXDB_URL", None, METRICS),
    idle("INFLUXDB_SERVICE_HOST", None, METRICS),
    idle("INFLUXDB_SERVICE_PORT_API", None, METRICS),
    idle("INFLUXDB_USER", None, METRICS),
    idle("INFLUXDB_PASSWORD", None, METRICS),
    idle("INFLUXDB_NAME", None, METRICS),
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
