//! The scale test of Eclipse Hono, hono-simulator: the environment variables of its pods, in both
//! generations, as a scenario.
//!
//! Its devices over HTTP are closed loops, and `loop: closed` has their very rule: a message is due one period
//! after the one before was due, or once that one has ended. Its devices over MQTT wait for nothing.

mod consumer;
mod producer;
mod variables;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use anyhow::{Result, anyhow, bail};

use self::consumer::{Consumer, PASSWORD, USER};
use self::producer::{DEVICE_PASSWORD, Generation, Producer};
pub(super) use self::variables::{Role, TEST};
use super::environment::{self, Faults, Imported, by_reason};
use crate::args::HonoArgs;

/// The variables of one of its programs.
type Pod = environment::Pod<Role>;

/// Variable with the bearer token of the registry.
const TOKEN: &str = "DEVICE_REGISTRY_TOKEN";
/// Variables whose values a scenario has by reference, since they are secrets or accounts.
const BY_REFERENCE: [&str; 4] = [USER, PASSWORD, DEVICE_PASSWORD, TOKEN];

/// The scenario that does what the variables say.
pub(super) fn imported(args: &HonoArgs) -> Result<Imported> {
    let mut faults = Faults::default();
    let pods = match args.env.is_empty() {
        true => vec![Pod::from_process(&TEST, std::env::vars_os(), &mut faults)],
        false => {
            let read = args.env.iter();
            let read = read.map(|path| Pod::from_file(&TEST, path, &mut faults));
            read.collect::<Result<Vec<_>>>()?
        }
    };
    faults.check()?;
    let variables = references(&pods)?;
    let text = Deployment::new(&pods)?.scenario()?;
    Ok(Imported { text, variables })
}

/// The values of variables that a scenario refers to. One reference has one value.
fn references(pods: &[Pod]) -> Result<BTreeMap<&'static str, String>> {
    let mut found: BTreeMap<&'static str, String> = BTreeMap::new();
    for (pod, name) in pods.iter().flat_map(|pod| BY_REFERENCE.map(|it| (pod, it))) {
        let Some(value) = pod.text(name) else {
            continue;
        };
        if found.get(name).is_some_and(|other| other != value) {
            let why =
                format!("{name} has another value than in an earlier file; import each alone");
            return Err(pod.refuse(name, &why));
        }
        found.insert(name, value.to_owned());
    }
    Ok(found)
}

/// The pods of a test by their programs.
struct Deployment<'a> {
    pods: &'a [Pod],
    producers: Vec<Producer<'a>>,
    consumer: Option<Consumer<'a>>,
}

impl<'a> Deployment<'a> {
    fn new(pods: &'a [Pod]) -> Result<Self> {
        let mut producers = Vec::new();
        for (pod, role) in of_roles(pods, &[Role::Http, Role::Mqtt]) {
            producers.push(Producer::new(pod, role)?);
        }
        let consumers: Vec<_> = of_roles(pods, &[Role::Consumer]).collect();
        if let [_, (second, _), ..] = consumers[..] {
            let name = second.first_of(Role::Consumer).unwrap_or(USER);
            let why = format!("{name} is of a second consumer; keep the variables of one");
            return Err(second.refuse(name, &why));
        }
        let consumer = consumers.first().map(|(pod, _)| Consumer(pod));
        let deployment = Self {
            pods,
            producers,
            consumer,
        };
        deployment.check()?;
        Ok(deployment)
    }

    /// Checks what depends on several pods at once.
    fn check(&self) -> Result<()> {
        if self.producers.is_empty() {
            let sources: Vec<_> = self.pods.iter().map(Pod::source).collect();
            bail!(
                "read {}: no variable says how devices connect; add HONO_HTTP_URL or HONO_MQTT_HOST, or a further \
                 --env with those of a pod of devices",
                sources.join(" and ")
            );
        }
        let mut tenants = Vec::new();
        let mut names = BTreeSet::new();
        for producer in &self.producers {
            let (tenant, host) = (producer.tenant(), producer.host());
            tenants.push(tenant);
            if !names.insert((tenant, host)) {
                return Err(anyhow!(
                    "read the variables: two pods of devices have the HOSTNAME {host}, so that their devices have \
                     the same names; give each file its own"
                ));
            }
        }
        match &self.consumer {
            Some(consumer) if !tenants.contains(&consumer.tenant()) => {
                Err(consumer.of_other_tenant(&tenants))
            }
            _ => Ok(()),
        }
    }

    fn scenario(&self) -> Result<String> {
        let mut text = self.header()?;
        text += "name: hono-simulator\n";
        text += &self.platform()?;
        text += &self.provision()?;
        text += "fleet:\n";
        let has_both = self.has(Role::Http) && self.has(Role::Mqtt);
        let mut numbers: BTreeMap<&str, u32> = BTreeMap::new();
        for producer in &self.producers {
            let number = numbers.entry(producer.name()).or_default();
            *number += 1;
            let name = match number {
                1 => producer.name().to_owned(),
                number => format!("{}-{number}", producer.name()),
            };
            text += &producer.fleet(&name, has_both);
        }
        text += "phases: { warm-up: 1m, measure: 3m }    # the window of its runner; its pods run until they are stopped\n\
                 slo: { failure-ratio: \"<= 2%\" }    # the bound of its runner\n";
        Ok(text)
    }

    /// Says where the scenario comes from, and what is not as it was there.
    fn header(&self) -> Result<String> {
        let sources: Vec<_> = self.pods.iter().map(Pod::source).collect();
        let mut text = format!(
            "# From the environment of hono-simulator: {}\n",
            sources.join(", ")
        );
        let mut note = |line: &str| {
            let _ = writeln!(text, "# - {line}");
        };
        if self.has(Role::Http) {
            note(
                "HTTP: `loop: closed` is that test's rule: a device that waits for an answer is due later. What it \
                 omits is in the report; with `loop: open` the rate stays",
            );
        }
        if self.has(Role::Mqtt) {
            note(
                "MQTT: that test sends at a fixed rate and waits for no answer, as `loop: open` does",
            );
            note(
                "Connections open within RECONNECT_JITTER; RECONNECT_DELAY before the first one is left out",
            );
            let is_first = |it: &Producer<'_>| it.generation() == Generation::First;
            if self.producers.iter().any(is_first) {
                note(
                    "The first generation sends `{foo: 42}` over MQTT, whatever PAYLOAD_SIZE is, and telemetry to a \
                     misspelt topic; here both are right",
                );
            }
        }
        if self.producers.iter().any(|producer| !producer.has_host()) {
            note(
                "HOSTNAME, the beginning of the devices' names, is set by each pod; here it is the program's name",
            );
        }
        if self.consumer.is_none() {
            note(
                "No variable of the consumer: without a backend nobody knows which messages arrive",
            );
        }
        for name in references(self.pods)?.keys() {
            note(&format!("Set {name} where muster is started"));
        }
        for pod in self.pods {
            if let Some(url) = influx(pod) {
                note(&format!(
                    "Figures as that test writes them: muster run SCENARIO --influx '{url}' --influx-names \
                     hono-simulator, with INFLUX_USERNAME and INFLUX_PASSWORD"
                ));
                break;
            }
        }
        for (why, names) in by_reason(self.pods.iter().flat_map(Pod::idle)) {
            note(&format!(
                "Without a meaning here: {} ({why})",
                names.join(", ")
            ));
        }
        Ok(text)
    }

    fn has(&self, role: Role) -> bool {
        of_roles(self.pods, &[role]).next().is_some()
    }

    fn platform(&self) -> Result<String> {
        let mut addresses = Vec::new();
        let mut is_insecure = false;
        for producer in &self.producers {
            is_insecure |= producer.is_insecure();
            for address in producer.addresses()? {
                if !addresses.contains(&address) {
                    addresses.push(address);
                }
            }
        }
        let is_tls = |it: &String| it.starts_with("https:") || it.starts_with("mqtts:");
        let quoted: Vec<_> = addresses.iter().map(|it| format!("\"{it}\"")).collect();
        let mut text = format!(
            "platform:\n  kind: hono\n  devices: [ {} ]\n",
            quoted.join(", ")
        );
        if is_insecure && addresses.iter().any(is_tls) {
            text += "  tls: { insecure: true }\n";
        }
        if let Some(consumer) = &self.consumer {
            let _ = writeln!(text, "  backend: {}", consumer.backend());
        }
        Ok(text)
    }

    /// The devices are created before the run, and not by whoever is refused first.
    fn provision(&self) -> Result<String> {
        let mut found = String::new();
        for pod in self.pods {
            let Some(provision) = provision(pod) else {
                continue;
            };
            if !found.is_empty() && found != provision {
                let name = pod.any_of(&REGISTRY).unwrap_or(REGISTRY[0]);
                let why =
                    format!("{name} is of another registry than in an earlier file; keep one");
                return Err(pod.refuse(name, &why));
            }
            found = provision;
        }
        Ok(found)
    }
}

/// Variables that say where the registry is.
const REGISTRY: [&str; 2] = [
    "DEVICE_REGISTRY_URL",
    "HONO_SERVICE_DEVICE_REGISTRY_SERVICE_HOST",
];

/// The registration of a pod's devices; none if it has no registry or does not register.
fn provision(pod: &Pod) -> Option<String> {
    let registers = pod.truth("AUTO_REGISTER").unwrap_or(true);
    let port = pod.whole("HONO_SERVICE_DEVICE_REGISTRY_SERVICE_PORT_HTTP");
    let url = match (pod.text(REGISTRY[0]), pod.text(REGISTRY[1])) {
        (Some(url), _) => url.to_owned(),
        (None, Some(host)) => {
            let port = port.map_or(String::new(), |port| format!(":{port}"));
            format!("http://{}{port}", environment::bracketed(host))
        }
        (None, None) => return None,
    };
    let is_later = pod.any_of(&producer::LATER).is_some();
    let api = match pod.word("DEVICE_REGISTRY_VERSION") {
        Some("V1") => "v1",
        None if is_later => "v1",
        _ => "pre-1.0",
    };
    let token = match pod.text(TOKEN) {
        Some(_) => format!(", token: \"${{env:{TOKEN}}}\""),
        None => String::new(),
    };
    let text = format!("provision: {{ url: \"{url}\", api: {api}{token} }}\n");
    registers.then_some(text)
}

/// The address of a pod's InfluxDB, as `--influx` takes it.
fn influx(pod: &Pod) -> Option<String> {
    let name = pod.text("INFLUXDB_NAME").unwrap_or("metrics");
    let host = pod.text("INFLUXDB_SERVICE_HOST");
    let port = pod.text("INFLUXDB_SERVICE_PORT_API");
    let base = match (pod.text("INFLUXDB_URL"), host, port) {
        (Some(url), _, _) => url.trim_end_matches('/').to_owned(),
        (None, Some(host), Some(port)) => format!("http://{}:{port}", environment::bracketed(host)),
        (None, _, _) => return None,
    };
    Some(format!("{base}?db={name}"))
}

/// The pods of a program, each with its role; one pod can have several.
fn of_roles<'a>(pods: &'a [Pod], roles: &'a [Role]) -> impl Iterator<Item = (&'a Pod, Role)> {
    let all = pods
        .iter()
        .flat_map(|pod| roles.iter().map(move |role| (pod, *role)));
    all.filter(|(pod, role)| pod.has_role(*role))
}

#[cfg(test)]
mod tests {
    use super::super::variables::Meaning;
    use super::*;

    /// The least variables of each program.
    const HTTP: &str = "HONO_HTTP_URL=http://h:8080\nTELEMETRY_MS=1000\n";
    const HTTP_LATER: &str = "HONO_HTTP_URL=http://h:8080\nPERIOD_MS=1000\n";
    const MQTT: &str = "HONO_MQTT_HOST=h\nTELEMETRY_MS=1000\n";
    const MQTT_LATER: &str = "HONO_MQTT_HOST=h\nPERIOD_MS=1000\n";
    const CONSUMER: &str = "MESSAGING_SERVICE_HOST=router\n";
    const REGISTRY: &str = "DEVICE_REGISTRY_URL=http://r:8080\n";

    fn scenario(pods: &[&str]) -> Result<String, String> {
        let pods = pods.iter().zip(1..);
        let mut faults = Faults::default();
        let pods = pods.map(|(text, number)| {
            Pod::from_lines(&TEST, format!("{number}.env"), text, &mut faults)
        });
        let pods: Vec<Pod> = pods.collect();
        faults.check().map_err(|error| error.to_string())?;
        let scenario = Deployment::new(&pods).and_then(|of| of.scenario());
        scenario.map_err(|error| error.to_string())
    }

    /// Each variable beside others, and the text that it alone makes.
    const CASES: [(&str, &str, &[&str], &str); 39] = [
        ("HONO_TENANT", "t1", &[HTTP], "tenant: \"t1\""),
        ("HOSTNAME", "pod-7", &[HTTP], "id: \"pod-7-${index}\""),
        ("NUM_DEVICES", "2000", &[HTTP], "count: 2000"),
        (
            "TELEMETRY_MS",
            "500",
            &["HONO_HTTP_URL=http://h\n"],
            "every: 500ms",
        ),
        ("EVENT_MS", "700", &[HTTP], "every: 700ms"),
        ("MESSAGE_TYPE", "event", &[HTTP_LATER], "kind: event"),
        (
            "PERIOD_MS",
            "250",
            &["HONO_HTTP_URL=http://h\n"],
            "every: 250ms",
        ),
        ("PAYLOAD_SIZE", "33", &[HTTP], "${stamp}BBB\""),
        (
            "DEVICE_PASSWORD",
            "own",
            &[HTTP_LATER],
            "secret: \"${env:DEVICE_PASSWORD}\"",
        ),
        (
            "DEVICE_REGISTRY_URL",
            "http://r:1/v1",
            &[HTTP],
            "provision: { url: \"http://r:1/v1\", api: pre-1.0 }",
        ),
        (
            "HONO_SERVICE_DEVICE_REGISTRY_SERVICE_HOST",
            "10.0.0.1",
            &[HTTP],
            "url: \"http://10.0.0.1\"",
        ),
        (
            "HONO_SERVICE_DEVICE_REGISTRY_SERVICE_PORT_HTTP",
            "8081",
            &[HTTP, "HONO_SERVICE_DEVICE_REGISTRY_SERVICE_HOST=10.0.0.1\n"],
            "url: \"http://10.0.0.1:8081\"",
        ),
        (
            "DEVICE_REGISTRY_VERSION",
            "legacy",
            &[HTTP_LATER, REGISTRY],
            "api: pre-1.0",
        ),
        (
            "DEVICE_REGISTRY_TOKEN",
            "secret",
            &[HTTP_LATER, REGISTRY],
            "token: \"${env:DEVICE_REGISTRY_TOKEN}\"",
        ),
        (
            "TLS_INSECURE",
            "true",
            &["HONO_HTTP_URL=https://h\nTELEMETRY_MS=1\n"],
            "tls: { insecure: true }",
        ),
        ("DISABLE_TLS", "true", &[MQTT_LATER], "mqtt://h:1883"),
        (
            "HONO_HTTP_URL",
            "http://a:1, http://b:2",
            &["TELEMETRY_MS=1\n"],
            "[ \"http://a:1\", \"http://b:2\" ]",
        ),
        (
            "HONO_HTTP_PROTO",
            "https",
            &["HONO_HTTP_HOST=h\nHONO_HTTP_PORT=1\nEVENT_MS=1\n"],
            "https://h:1",
        ),
        (
            "HONO_HTTP_HOST",
            "a,b",
            &["HONO_HTTP_PORT=1\nEVENT_MS=1\n"],
            "[ \"http://a:1\", \"http://b:1\" ]",
        ),
        (
            "HONO_HTTP_PORT",
            "8080",
            &["HONO_HTTP_HOST=h\nEVENT_MS=1\n"],
            "http://h:8080",
        ),
        ("HTTP_METHOD", "POST", &[HTTP], "topic: \"telemetry\""),
        ("HTTP_NOAUTH", "true", &[HTTP], "credential: { kind: none }"),
        (
            "DEVICE_PROVIDER",
            "JAVA",
            &[HTTP],
            "connection: per-request",
        ),
        (
            "VERTX_KEEP_ALIVE",
            "false",
            &[HTTP],
            "connection: per-request",
        ),
        (
            "AHC_KEEP_ALIVE",
            "false",
            &[HTTP, "DEVICE_PROVIDER=AHC\n"],
            "connection: per-request",
        ),
        ("VERTX_CONNECT_TIMEOUT", "2500", &[HTTP], "timeout: 2500ms"),
        (
            "VERTX_RECREATE_CLIENT",
            "120000",
            &[HTTP],
            "lifetime: 120000ms",
        ),
        (
            "HONO_MQTT_HOST",
            "broker",
            &["TELEMETRY_MS=1\n"],
            "mqtt://broker:1883",
        ),
        ("HONO_MQTT_PORT", "1884", &[MQTT], "mqtt://h:1884"),
        ("HONO_MQTT_SSL", "true", &[MQTT], "mqtts://h:1883"),
        (
            "RECONNECT_DELAY",
            "6000",
            &[MQTT],
            "min: 8000ms, max: 8000ms, jitter: 0.250",
        ),
        ("RECONNECT_JITTER", "6000", &[MQTT], "rate: 10/6000ms"),
        (
            "MESSAGING_SERVICE_HOST",
            "router",
            &[HTTP],
            "amqps://router:5671",
        ),
        (
            "MESSAGING_SERVICE_PORT_AMQP",
            "15671",
            &[HTTP, CONSUMER],
            "amqps://router:15671",
        ),
        (
            "HONO_USER",
            "me",
            &[HTTP, CONSUMER],
            "user: \"${env:HONO_USER}\"",
        ),
        (
            "HONO_PASSWORD",
            "hidden",
            &[HTTP, CONSUMER],
            "password: \"${env:HONO_PASSWORD}\"",
        ),
        (
            "HONO_TRUSTED_CERTS",
            "/etc/c.pem",
            &[HTTP, CONSUMER],
            "tls: { ca: \"/etc/c.pem\" }",
        ),
        (
            "HONO_INITIAL_CREDITS",
            "5000",
            &[HTTP, CONSUMER],
            "credit: 5000",
        ),
        ("AUTO_REGISTER", "false", &[HTTP, REGISTRY], ""),
    ];

    /// Law: a variable of the table changes the scenario as its case says, or stands in a comment.
    #[test]
    fn every_variable_becomes_a_key_or_a_comment() {
        for variable in TEST.variables {
            let name = variable.name;
            if let Meaning::Idle(why) = variable.meaning {
                let of = match variable.of {
                    Some(Role::Mqtt) => MQTT,
                    Some(Role::Http | Role::Consumer) | None => HTTP,
                };
                let text = scenario(&[&format!("{of}{name}=1\n")]);
                let text = text.unwrap_or_else(|error| panic!("{name}: {error}"));
                let comment = format!("# - Without a meaning here: {name} ({why})");
                assert!(text.contains(&comment), "{name}: {text}");
                continue;
            }
            let case = CASES.iter().find(|case| case.0 == name);
            let (_, value, others, wanted) = case.unwrap_or_else(|| panic!("{name} has no case"));
            let before = scenario(&[&others.concat()]).unwrap_or_default();
            let with = format!("{}{name}={value}\n", others.concat());
            let text = scenario(&[&with]).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(
                !before.contains(wanted) || wanted.is_empty(),
                "{name}: {before}"
            );
            assert!(text.contains(wanted) && text != before, "{name}: {text}");
        }
        let mapped = TEST
            .variables
            .iter()
            .filter(|it| it.meaning == Meaning::Mapped);
        assert_eq!(CASES.len(), mapped.count());
    }

    #[test]
    fn variables_that_contradict_each_other_are_refused() {
        for (pods, wanted) in [
            (
                vec!["NUM_DEVICES=3"],
                "read 1.env: no variable says how devices connect",
            ),
            (vec!["HONO_MQTT_HOST=h"], "read 1.env: it has no period"),
            (
                vec!["HTTP_METHOD=PUT\nTELEMETRY_MS=1"],
                "read 1.env:1: HTTP_METHOD is of devices over HTTP, and their address is missing",
            ),
            (
                vec!["HONO_MQTT_HOST=h\nTELEMETRY_MS=1\nPERIOD_MS=1"],
                "read 1.env:3: TELEMETRY_MS is of the first generation",
            ),
            (
                vec![HTTP, HTTP],
                "two pods of devices have the HOSTNAME simulator-http",
            ),
            (
                vec![HTTP, CONSUMER, CONSUMER],
                "read 3.env:1: MESSAGING_SERVICE_HOST is of a second consumer",
            ),
            (
                vec![HTTP, "HONO_TENANT=t2\nHONO_USER=me"],
                "read 2.env:1: the consumer is of tenant t2, and the devices are of DEFAULT_TENANT",
            ),
            (
                vec!["HONO_HTTP_URL=http://h\nTELEMETRY_MS=1\nHTTP_METHOD=PATCH"],
                "HTTP_METHOD, `PATCH`, is none of PUT, POST",
            ),
            (
                vec!["HONO_HTTP_URL=http://h\" x\nTELEMETRY_MS=1"],
                "HONO_HTTP_URL, `http://h\" x`, may have letters",
            ),
            (
                vec!["HONO_MQTT_HOST=h\nEVENT_MS=1\nRECONNECT_JITTER=0"],
                "RECONNECT_JITTER, `0`, is no whole number from 1",
            ),
        ] {
            let error = scenario(&pods).unwrap_err();
            assert!(error.contains(wanted), "{pods:?}: {error}");
        }
    }

    #[test]
    fn the_influxdb_of_that_test_can_have_the_figures_as_they_were() {
        for (variables, url) in [
            ("INFLUXDB_URL=http://i:8086/\n", "http://i:8086?db=metrics"),
            (
                "INFLUXDB_SERVICE_HOST=i\nINFLUXDB_SERVICE_PORT_API=8086\nINFLUXDB_NAME=own\n",
                "http://i:8086?db=own",
            ),
        ] {
            let text = scenario(&[&format!("{HTTP}{variables}")]).expect("a scenario");
            let wanted = format!("--influx '{url}' --influx-names hono-simulator");
            assert!(text.contains(&wanted), "{variables}: {text}");
        }
    }

    #[test]
    fn a_payload_has_the_size_that_is_asked_for() {
        for (size, wanted) in [
            (
                "-1",
                "payload: { size: 0, content-type: application/octet-stream }\n        carrier: order",
            ),
            (
                "5",
                "payload: { template: \"BBBBB\", content-type: application/octet-stream }\n        carrier: order",
            ),
            (
                "22",
                "payload: { size: 22, content-type: application/octet-stream }\n",
            ),
            (
                "30",
                "payload: { template: \"${stamp}\", content-type: application/octet-stream }\n",
            ),
        ] {
            let text = scenario(&[&format!("{HTTP}PAYLOAD_SIZE={size}\n")]).expect("a scenario");
            assert!(text.contains(wanted), "{size}: {text}");
        }
    }
}
