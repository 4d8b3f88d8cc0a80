//! A pod of devices as a fleet.

use std::fmt::Write;

use anyhow::{Result, anyhow};

use super::super::environment::bracketed;
use super::Pod;
use super::variables::Role;

/// Bytes of a stamp as text, and as it is.
const STAMP_TEXT: i64 = 30;
const STAMP_BYTES: i64 = 22;
/// The password of all devices, which that test has in its code.
const PASSWORD: &str = "hono-secret";
/// Names of environment variables that a scenario refers to.
pub(super) const DEVICE_PASSWORD: &str = "DEVICE_PASSWORD";
/// Variables of the first generation, and those of the later one.
const FIRST: [&str; 3] = ["TELEMETRY_MS", "EVENT_MS", "HONO_MQTT_SSL"];
pub(super) const LATER: [&str; 5] = [
    "MESSAGE_TYPE",
    "PERIOD_MS",
    "DEVICE_PASSWORD",
    "DEVICE_REGISTRY_VERSION",
    "DEVICE_REGISTRY_TOKEN",
];

/// One of the two generations of that test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Generation {
    First,
    Later,
}

/// The devices of one pod.
#[derive(Debug)]
pub(super) struct Producer<'a> {
    pod: &'a Pod,
    role: Role,
    generation: Generation,
}

/// A class of messages, with the period of a device.
struct Class {
    kind: &'static str,
    period_ms: i64,
}

impl<'a> Producer<'a> {
    /// The devices of a pod over HTTP or MQTT; an error if its variables are of both generations or none.
    pub(super) fn new(pod: &'a Pod, role: Role) -> Result<Self> {
        let generation = match (pod.any_of(&FIRST), pod.any_of(&LATER)) {
            (Some(first), Some(later)) => {
                let why = format!(
                    "{first} is of the first generation of hono-simulator and {later} of the later one; keep those of one"
                );
                return Err(pod.refuse(later, &why));
            }
            (Some(_), None) => Generation::First,
            (None, Some(_)) => Generation::Later,
            (None, None) => {
                return Err(anyhow!(
                    "read {}: it has no period, so that its devices send nothing; add TELEMETRY_MS or EVENT_MS \
                     (first generation), or PERIOD_MS (later one), in milliseconds",
                    pod.source()
                ));
            }
        };
        Ok(Self {
            pod,
            role,
            generation,
        })
    }

    pub(super) fn generation(&self) -> Generation {
        self.generation
    }

    /// The addresses of the adapters.
    pub(super) fn addresses(&self) -> Result<Vec<String>> {
        match self.role {
            Role::Http => self.http_addresses(),
            Role::Mqtt | Role::Consumer => Ok(vec![self.mqtt_address()]),
        }
    }

    fn http_addresses(&self) -> Result<Vec<String>> {
        let pod = self.pod;
        let all = |text: &str| -> Vec<String> {
            text.split(',').map(|it| it.trim().to_owned()).collect()
        };
        if let Some(urls) = pod.text("HONO_HTTP_URL") {
            return Ok(all(urls));
        }
        let hosts = pod.text("HONO_HTTP_HOST");
        let port = pod.whole("HONO_HTTP_PORT");
        let (Some(hosts), Some(port)) = (hosts, port) else {
            let first = pod.first_of(Role::Http).unwrap_or("HTTP_METHOD");
            let why = format!(
                "{first} is of devices over HTTP, and their address is missing; add HONO_HTTP_URL, or HONO_HTTP_HOST \
                 and HONO_HTTP_PORT"
            );
            return Err(pod.refuse(first, &why));
        };
        let proto = pod.word("HONO_HTTP_PROTO").unwrap_or("http");
        let url = |host: String| format!("{proto}://{host}:{port}");
        Ok(all(hosts).into_iter().map(url).collect())
    }

    fn mqtt_address(&self) -> String {
        let host = self.pod.text("HONO_MQTT_HOST").unwrap_or("localhost");
        let port = self.pod.whole("HONO_MQTT_PORT").unwrap_or(1_883);
        let is_tls = match self.generation {
            Generation::First => self.pod.truth("HONO_MQTT_SSL").unwrap_or(false),
            Generation::Later => !self.pod.truth("DISABLE_TLS").unwrap_or(false),
        };
        let scheme = if is_tls { "mqtts" } else { "mqtt" };
        format!("{scheme}://{}:{port}", bracketed(host))
    }

    /// True if the devices accept any certificate.
    pub(super) fn is_insecure(&self) -> bool {
        self.pod.truth("TLS_INSECURE").unwrap_or(false)
    }

    pub(super) fn tenant(&self) -> &'a str {
        tenant(self.pod)
    }

    /// The beginning of the devices' names; that of the program where the pod has none.
    pub(super) fn host(&self) -> &'a str {
        self.pod.text("HOSTNAME").unwrap_or(self.name())
    }

    pub(super) fn has_host(&self) -> bool {
        self.pod.text("HOSTNAME").is_some()
    }

    /// The name of its program.
    pub(super) fn name(&self) -> &'static str {
        match self.role {
            Role::Http => "simulator-http",
            Role::Mqtt | Role::Consumer => "simulator-mqtt",
        }
    }

    fn protocol(&self) -> &'static str {
        match self.role {
            Role::Http => "http",
            Role::Mqtt | Role::Consumer => "mqtt",
        }
    }

    /// The fleet, as an item of the list of fleets.
    pub(super) fn fleet(&self, name: &str, has_both: bool) -> String {
        let devices = self.pod.whole("NUM_DEVICES").unwrap_or(10);
        let mut text = format!(
            "  - name: {name}\n    count: {devices}\n    id: \"{}-${{index}}\"\n    tenant: \"{}\"\n",
            self.host(),
            self.tenant()
        );
        if has_both {
            let _ = writeln!(text, "    protocol: {}", self.protocol());
        }
        text += &self.credential();
        text += &match self.role {
            Role::Http => self.http_links(devices),
            Role::Mqtt | Role::Consumer => self.mqtt_links(devices),
        };
        text += &self.streams();
        text
    }

    fn credential(&self) -> String {
        let is_open = self.role == Role::Http && self.pod.truth("HTTP_NOAUTH").unwrap_or(false);
        if is_open {
            return "    credential: { kind: none }\n".to_owned();
        }
        let secret = match self.pod.text(DEVICE_PASSWORD) {
            Some(_) => format!("${{env:{DEVICE_PASSWORD}}}"),
            None => PASSWORD.to_owned(),
        };
        format!(
            "    credential: {{ kind: password, user: \"user-${{id}}@${{tenant}}\", secret: \"{secret}\" }}\n"
        )
    }

    /// A first request opens the connection of a device, within the first period.
    fn http_links(&self, devices: i64) -> String {
        let pod = self.pod;
        let periods = self.classes().into_iter().map(|class| class.period_ms);
        let within = periods.min().unwrap_or(1_000);
        let provider = self.provider();
        let timeout = match provider {
            "VERTX" => pod.whole("VERTX_CONNECT_TIMEOUT").unwrap_or(5_000),
            _ => 10_000,
        };
        let recreate = match provider {
            "VERTX" => pod.whole("VERTX_RECREATE_CLIENT"),
            _ => None,
        };
        let lifetime = recreate.filter(|it| *it > 0);
        let lifetime = lifetime.map_or(String::new(), |it| format!(", lifetime: {it}ms"));
        let keeps_alive = match provider {
            "VERTX" => pod.truth("VERTX_KEEP_ALIVE").unwrap_or(true),
            "AHC" => pod.truth("AHC_KEEP_ALIVE").unwrap_or(true),
            // They open a connection for each request.
            "JAVA" | "HC" => false,
            _ => true,
        };
        let mut text = String::new();
        if !keeps_alive {
            text += "    client: { http: { connection: per-request } }\n";
        }
        let _ = writeln!(
            text,
            "    connect: {{ rate: {}, pending: {}, timeout: {timeout}ms{lifetime} }}",
            rate(devices, within),
            devices.min(1_000_000),
        );
        text += "    obey-retry-after: false    # that test ignores Retry-After\n";
        text
    }

    fn provider(&self) -> &'static str {
        self.pod.word("DEVICE_PROVIDER").unwrap_or("VERTX")
    }

    /// Each connection, the first too, waits for the delay and a random part of the jitter.
    fn mqtt_links(&self, devices: i64) -> String {
        let delay = self.pod.whole("RECONNECT_DELAY");
        let jitter = self.pod.whole("RECONNECT_JITTER");
        let (delay, jitter) = (delay.unwrap_or(2_000), jitter.unwrap_or(2_000));
        let most = delay + jitter;
        let share = jitter as f64 / most as f64;
        format!(
            "    client: {{ version: \"3.1.1\", keep-alive: 10s }}\n    \
             connect: {{ rate: {}, pending: {}, timeout: 10s }}\n    \
             reconnect: {{ min: {most}ms, max: {most}ms, jitter: {share:.3} }}\n",
            rate(devices, jitter),
            devices.min(1_000_000),
        )
    }

    fn classes(&self) -> Vec<Class> {
        let pod = self.pod;
        let mut classes = Vec::new();
        match self.generation {
            Generation::First => {
                for (name, kind) in [("TELEMETRY_MS", "telemetry"), ("EVENT_MS", "event")] {
                    let period_ms = pod.whole(name).unwrap_or(0);
                    classes.extend((period_ms > 0).then_some(Class { kind, period_ms }));
                }
            }
            Generation::Later => {
                let kind = pod.word("MESSAGE_TYPE");
                let period_ms = pod.whole("PERIOD_MS");
                classes.push(Class {
                    kind: kind.unwrap_or("telemetry"),
                    period_ms: period_ms.unwrap_or(1_000),
                });
            }
        }
        classes
    }

    fn streams(&self) -> String {
        let classes = self.classes();
        if classes.is_empty() {
            return "    streams: []    # both periods are 0: devices only connect\n".to_owned();
        }
        let mut text = "    streams:\n".to_owned();
        let (payload, carrier) = self.payload();
        for Class { kind, period_ms } in classes {
            let topic = match self.role == Role::Http && self.is_put() {
                true => format!("{kind}/${{tenant}}/${{id}}"),
                false => kind.to_owned(),
            };
            let (qos, waits) = match (self.role, kind) {
                (Role::Http, "event") => ("", ", loop: closed"),
                (Role::Http, _) => (", qos: 0", ", loop: closed"),
                (_, "event") => (", qos: 1", ""),
                (_, _) => (", qos: 0", ""),
            };
            let _ = writeln!(
                text,
                "      - name: {kind}\n        kind: {kind}\n        every: {period_ms}ms\n        phase: hash\n        \
                 topic: \"{topic}\"{}{}\n        payload: {payload}{carrier}",
                on_lines(qos),
                on_lines(waits),
            );
        }
        text
    }

    /// True if requests are sent by PUT, whose path names the device.
    fn is_put(&self) -> bool {
        self.pod.word("HTTP_METHOD") != Some("POST")
    }

    /// Bytes of 0x42, with an id where there is room for one, and the key `carrier` where there is none.
    fn payload(&self) -> (String, &'static str) {
        let size = self.pod.whole("PAYLOAD_SIZE").unwrap_or(64).max(0);
        let of_type = match self.role {
            Role::Http => ", content-type: application/octet-stream",
            Role::Mqtt | Role::Consumer => "",
        };
        let filler = |count: i64| "B".repeat(count as usize);
        let order = "\n        carrier: order    # no room for an id of 22 bytes";
        match size {
            STAMP_TEXT.. => (
                format!(
                    "{{ template: \"${{stamp}}{}\"{of_type} }}",
                    filler(size - STAMP_TEXT)
                ),
                "",
            ),
            STAMP_BYTES.. => (format!("{{ size: {size}{of_type} }}"), ""),
            1.. => (
                format!("{{ template: \"{}\"{of_type} }}", filler(size)),
                order,
            ),
            _ => (format!("{{ size: 0{of_type} }}"), order),
        }
    }
}

/// The tenant of a pod.
pub(super) fn tenant(pod: &Pod) -> &str {
    pod.text("HONO_TENANT").unwrap_or("DEFAULT_TENANT")
}

/// The rate at which this number of links is opened within a time.
fn rate(links: i64, within_ms: i64) -> String {
    format!("{links}/{within_ms}ms")
}

/// `, key: value` as lines of a stream.
fn on_lines(keys: &str) -> String {
    keys.replace(", ", "\n        ")
}
