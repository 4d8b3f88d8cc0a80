//! The environment variables of both generations of the published test.

use super::super::variables::Form::{Any, Plain, Truth, Whole, Word};
use super::super::variables::{Form, Test, Variable};

/// A pod of that test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) enum Role {
    /// Devices over HTTP.
    Http,
    /// Devices over MQTT.
    Mqtt,
    /// The business application.
    Consumer,
}

const fn mapped(name: &'static str, role: Option<Role>, form: Form) -> Variable<Role> {
    Variable::mapped(name, role, form)
}

const fn idle(name: &'static str, role: Option<Role>, why: &'static str) -> Variable<Role> {
    Variable::idle(name, role, why)
}

/// A variable for a comment of the scenario alone.
const fn noted(name: &'static str, form: Form) -> Variable<Role> {
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

/// The test, with all its variables.
pub(in super::super) static TEST: Test<Role> = Test {
    name: "hono-simulator",
    variables: &[
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
    ],
    prefixes: &[
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
    ],
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_stands_once() {
        for (at, variable) in TEST.variables.iter().enumerate() {
            let mut before = TEST.variables[..at].iter();
            assert!(!before.any(|it| it.name == variable.name), "{variable:?}");
        }
    }
}
