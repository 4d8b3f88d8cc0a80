//! ThingsBoard's performance tests: their environment variables, of both generations, as a scenario.

mod rpc;
mod variables;

use std::fmt::Write;

use anyhow::{Result, anyhow};

use self::variables::TEST;
use super::environment::{self, Faults, Imported, by_reason};
use crate::args::{Generation, ThingsboardArgs};

/// The variables of one run of the test.
type Pod = environment::Pod<Generation>;

/// Variables whose values a scenario has by reference.
const BY_REFERENCE: [&str; 2] = ["REST_USERNAME", "REST_PASSWORD"];
/// Mean of the random pauses between two packs of new links, in milliseconds.
const PACK_PAUSE_MS: i64 = 50;

/// The scenario that does what the variables say.
pub(super) fn imported(args: &ThingsboardArgs) -> Result<Imported> {
    let mut faults = Faults::default();
    let pod = match &args.env {
        None => Pod::from_process(&TEST, std::env::vars_os(), &mut faults),
        Some(path) => Pod::from_file(&TEST, path, &mut faults)?,
    };
    faults.check()?;
    let text = Load::new(&pod, args.generation)?.scenario()?;
    let variables = BY_REFERENCE.iter();
    let variables = variables.filter_map(|name| Some((*name, pod.text(name)?.to_owned())));
    Ok(Imported {
        text,
        variables: variables.collect(),
    })
}

/// The load of one run.
struct Load<'a> {
    pod: &'a Pod,
    generation: Generation,
    /// Index of the first device.
    first: i64,
    /// Number of devices.
    devices: i64,
}

impl<'a> Load<'a> {
    fn new(pod: &'a Pod, stated: Option<Generation>) -> Result<Self> {
        let generation = generation(pod, stated)?;
        let is_sharded = pod.truth("USE_INSTANCE_IDX").unwrap_or(false);
        let (first, devices) = if is_sharded {
            let count = pod.whole("DEVICE_COUNT").unwrap_or(1_000);
            (count * pod.whole("INSTANCE_IDX").unwrap_or(0), count)
        } else {
            let end = pod.whole("DEVICE_END_IDX").unwrap_or(match generation {
                Generation::First => 10,
                Generation::Later => 1_000,
            });
            let start = pod.whole("DEVICE_START_IDX").unwrap_or(0);
            (start, end - start)
        };
        if devices < 1 {
            let why =
                "DEVICE_END_IDX is behind the last device, and must be above DEVICE_START_IDX";
            return Err(pod.refuse("DEVICE_END_IDX", why));
        }
        Ok(Self {
            pod,
            generation,
            first,
            devices,
        })
    }

    fn scenario(&self) -> Result<String> {
        let gateways = self.gateways()?;
        let backend = self.backend()?;
        let mut text = self.header();
        text += "name: thingsboard\n";
        if let Some(seed) = self.pod.whole("SEED") {
            let _ = writeln!(text, "seed: {seed}");
        }
        let _ = writeln!(
            text,
            "platform: {{ kind: thingsboard, devices: [ \"{}\" ]{backend} }}",
            self.address()
        );
        text += &self.provision()?;
        text += &self.fleet(&gateways);
        let (warm_up, measure) = self.phases();
        let _ = writeln!(text, "phases: {{ warm-up: {warm_up}, measure: {measure} }}");
        Ok(text)
    }

    /// Says where the scenario comes from, and what is not as it was there.
    fn header(&self) -> String {
        let mut text = format!(
            "# From the environment of {}: {}\n",
            TEST.name,
            self.pod.source()
        );
        let mut note = |line: &str| {
            let _ = writeln!(text, "# - {line}");
        };
        match self.generation {
            Generation::First => {
                note(
                    "That test succeeds with PUBACK or 2xx, as `accepted` does; its counts are those of the server",
                );
            }
            Generation::Later if self.is_rpc() => {
                rpc::DIFFERENCES.iter().for_each(|line| note(line));
            }
            Generation::Later if self.is_http() => {}
            Generation::Later => {
                note(
                    "QoS 0, as that test: its success is a message written to the socket. With `qos: 1` the server answers",
                );
            }
        }
        if !self.is_first() && !self.is_rpc() {
            if self.per_second() % self.devices != 0 {
                note(
                    "That test sends the messages of a second at its begin; here they are spread over it. Other instants: `shape: { replay: FILE }`",
                );
            }
            if self.alarms().is_some() && self.profile().is_some() {
                note(
                    "A profile that is created here has no alarm rule; create that of the test before, which raises one at a battery level of 20",
                );
            }
        }
        for name in BY_REFERENCE
            .iter()
            .filter(|name| self.pod.text(name).is_some())
        {
            note(&format!("Set {name} where muster is started"));
        }
        for (why, names) in by_reason(self.pod.idle().chain(self.idle_by_mode())) {
            note(&format!(
                "Without a meaning here: {} ({why})",
                names.join(", ")
            ));
        }
        text
    }

    fn is_first(&self) -> bool {
        self.generation == Generation::First
    }

    fn is_http(&self) -> bool {
        self.pod.word("DEVICE_API") == Some("HTTP")
    }

    fn rest_url(&self) -> &str {
        let usual = match self.generation {
            Generation::First => "http://localhost:9090",
            Generation::Later => "http://localhost:8080",
        };
        self.pod.text("REST_URL").unwrap_or(usual)
    }

    /// The address of the devices.
    fn address(&self) -> String {
        if self.is_http() {
            return self.rest_url().to_owned();
        }
        let host = self.pod.text("MQTT_HOST").unwrap_or("localhost");
        let port = self.pod.whole("MQTT_PORT").unwrap_or(1_883);
        let scheme = match self.pod.truth("MQTT_SSL_ENABLED") {
            Some(true) => "mqtts",
            _ => "mqtt",
        };
        format!("{scheme}://{}:{port}", environment::bracketed(host))
    }

    /// The devices are created, and counted on the server, as that test does.
    fn provision(&self) -> Result<String> {
        let pod = self.pod;
        if pod.truth("REST_CONNECT_SERVER") == Some(false) {
            return Ok(String::new());
        }
        let login = |name: &str, usual: &str| match pod.text(name) {
            Some(_) => format!("\"${{env:{name}}}\""),
            None => usual.to_owned(),
        };
        let mut text = format!(
            "provision:\n  url: \"{}\"\n  user: {}\n  password: {}\n",
            self.rest_url(),
            login("REST_USERNAME", "\"tenant@thingsboard.org\""),
            login("REST_PASSWORD", "tenant"),
        );
        if pod.truth("DEVICE_CREATE_ON_START") == Some(false) {
            text += "  mode: verify\n";
        }
        let removes = pod.truth("DEVICE_DELETE_ON_COMPLETE");
        let _ = writeln!(text, "  remove: {}", removes.unwrap_or(self.is_first()));
        if let Some(profile) = self.profile() {
            let _ = writeln!(text, "  profile: \"{profile}\"");
        }
        if !self.is_first() {
            let pending = pod.whole("REST_POOL_SIZE").unwrap_or(4);
            let _ = writeln!(text, "  pending: {pending}");
        }
        text += &self.customers()?;
        let counts = pod.truth("UPDATE_ROOT_RULE_CHAIN") == Some(true) && !self.is_rpc();
        if self.is_first() || counts {
            text += "  count: true\n";
        }
        Ok(text)
    }

    /// The profile of the devices; none of 2019, when there were none.
    fn profile(&self) -> Option<&str> {
        let usual = self.payload_type();
        // That test has no profile of that name.
        let usual = (!self.is_first() && usual != "RANDOM").then_some(usual);
        self.pod.text("DEVICE_PROFILE").or(usual)
    }

    fn customers(&self) -> Result<String> {
        let first = self.pod.whole("CUSTOMER_START_IDX").unwrap_or(0);
        let number = self.pod.whole("CUSTOMER_END_IDX").unwrap_or(0) - first;
        match (number, first) {
            (..1, _) => Ok(String::new()),
            (1..=10_000, 0) => Ok(format!("  customers: {number}\n")),
            (_, 0) => {
                let why = "more than 10,000 customers are not supported; give at most 10000";
                Err(self.pod.refuse("CUSTOMER_END_IDX", why))
            }
            _ => {
                let why = "customers are numbered from 0; give CUSTOMER_START_IDX=0";
                Err(self.pod.refuse("CUSTOMER_START_IDX", why))
            }
        }
    }

    /// The key `gateway` of the fleet; empty where each device has its link.
    fn gateways(&self) -> Result<String> {
        let pod = self.pod;
        if pod.word("TEST_API") != Some("gateway") {
            return Ok(String::new());
        }
        if self.is_http() {
            let why = "gateways speak MQTT; give DEVICE_API=MQTT";
            return Err(pod.refuse("DEVICE_API", why));
        }
        let (first, number) = match pod.truth("USE_INSTANCE_IDX") {
            Some(true) => {
                let count = pod.whole("GATEWAY_COUNT").unwrap_or(3);
                (count * pod.whole("INSTANCE_IDX").unwrap_or(0), count)
            }
            _ => {
                let first = pod.whole("GATEWAY_START_IDX").unwrap_or(0);
                (first, pod.whole("GATEWAY_END_IDX").unwrap_or(10) - first)
            }
        };
        if first != 0 {
            let why = format!(
                "gateways are numbered from 0, and these would begin at {first}; give GATEWAY_START_IDX=0, and no INSTANCE_IDX"
            );
            return Err(pod.refuse("GATEWAY_START_IDX", &why));
        }
        let devices = self.devices as u64;
        let each = devices.div_ceil(number.max(1) as u64);
        if number < 1 || devices.div_ceil(each) != number as u64 {
            let why = format!(
                "{devices} devices cannot be divided evenly among {number} gateways; give a number that divides them"
            );
            return Err(pod.refuse("GATEWAY_END_IDX", &why));
        }
        let prefix = pod.text("GATEWAY_NAME_PREFIX").unwrap_or_default();
        Ok(format!(
            "    gateway: {{ devices: {each}, id: \"{prefix}GW${{index:08}}\" }}\n"
        ))
    }

    fn fleet(&self, gateways: &str) -> String {
        let mut text = format!("fleet:\n  - name: devices\n    count: {}\n", self.devices);
        if self.first > 0 {
            let _ = writeln!(text, "    first: {}", self.first);
        }
        text += match self.generation {
            Generation::First => {
                "    id: \"Device ${index:020}\"\n    credential: { kind: token, secret: \"${index:020}\" }\n"
            }
            Generation::Later => "    id: \"DW${index:08}\"    # the access token, too\n",
        };
        text += gateways;
        if !self.is_http() {
            text += "    client: { version: \"3.1.1\" }\n";
        }
        let _ = writeln!(text, "    connect: {{ {} }}", self.connect());
        if self.is_rpc() {
            text += rpc::STREAMS;
            return text;
        }
        let _ = writeln!(
            text,
            "    streams:\n      - name: {}\n        {}",
            self.topic().0,
            self.stream(!gateways.is_empty()).join("\n        ")
        );
        text
    }

    fn connect(&self) -> String {
        match self.generation {
            Generation::First => {
                format!("rate: {}/{}ms, timeout: 5s", self.devices, self.pause_ms())
            }
            Generation::Later => {
                let pack = self.pod.whole("WARMUP_PACK_SIZE").unwrap_or(100);
                format!("rate: {pack}/{PACK_PAUSE_MS}ms, pack: {pack}, pending: {pack}")
            }
        }
    }

    /// The name of the stream, and the end of its topic.
    fn topic(&self) -> (&'static str, bool) {
        match self.pod.truth("TEST_TELEMETRY") {
            Some(false) => ("attributes", true),
            _ => ("telemetry", false),
        }
    }

    /// Keys of the stream.
    fn stream(&self, is_gateway: bool) -> Vec<String> {
        if self.is_first() {
            let mut keys = vec![format!("every: {}ms", self.pause_ms())];
            keys.extend((!self.is_http()).then(|| "qos: 1".to_owned()));
            keys.push("payload: long-key".to_owned());
            return keys;
        }
        let (rate, devices) = (self.per_second(), self.devices);
        let mut keys = match (rate / devices, rate % devices) {
            (1, 0) => vec!["every: 1s".to_owned(), "phase: together".to_owned()],
            (n, 0) => vec![
                format!("shape: {{ burst: {{ n: {n}, every: 1s }} }}"),
                "phase: together".to_owned(),
            ],
            _ => vec![format!("rate: {rate}/s")],
        };
        keys.extend((!self.is_http()).then(|| "qos: 0".to_owned()));
        if self.topic().1 {
            let owner = if is_gateway { "gateway" } else { "devices/me" };
            keys.push(format!("topic: v1/{owner}/attributes"));
        }
        keys.push(format!("payload: {}", self.payload()));
        keys
    }

    fn payload_type(&self) -> &'static str {
        self.pod.word("TEST_PAYLOAD_TYPE").unwrap_or("SMART_METER")
    }

    fn payload(&self) -> String {
        let name = match self.payload_type() {
            "SMART_TRACKER" => "smart-tracker",
            "RANDOM" => "random-mix",
            "INDUSTRIAL_PLC" => {
                let points = self.pod.whole("TEST_PAYLOAD_DATAPOINTS").unwrap_or(60);
                return format!("{{ industrial-plc: {{ datapoints: {points} }} }}");
            }
            _ => "smart-meter",
        };
        match self.alarms() {
            Some(alarms) => format!("{{ {name}: {{ alarms: {alarms} }} }}"),
            None => name.to_owned(),
        }
    }

    /// The storm of alarms, from the start of the warm-up; none without alarms.
    fn alarms(&self) -> Option<String> {
        let pod = self.pod;
        let rate = pod.whole("ALARMS_PER_SECOND").unwrap_or(1);
        let seconds = self.seconds();
        let start = pod.whole("ALARM_STORM_START_SECOND").unwrap_or(0);
        let end = pod.whole("ALARM_STORM_END_SECOND").unwrap_or(999_999);
        let end = end.min(seconds);
        let sends = !self.is_first() && !self.is_rpc();
        if !sends || rate < 1 || start >= end || self.payload_type() == "INDUSTRIAL_PLC" {
            return None;
        }
        let warm_up = i64::from(self.warms_up());
        let (from, until) = (warm_up + start, warm_up + end);
        Some(format!(
            "{{ rate: {rate}/s, from: {from}s, until: {until}s }}"
        ))
    }

    fn per_second(&self) -> i64 {
        self.pod.whole("MESSAGES_PER_SECOND").unwrap_or(1_000)
    }

    fn seconds(&self) -> i64 {
        self.pod.whole("DURATION_IN_SECONDS").unwrap_or(300)
    }

    fn pause_ms(&self) -> i64 {
        self.pod.whole("PUBLISH_PAUSE").unwrap_or(1_000)
    }

    fn warms_up(&self) -> bool {
        !self.is_rpc() && self.pod.truth("WARMUP_ENABLED").unwrap_or(true)
    }

    /// The lengths of the warm-up, in which each device sends a message, and of the load.
    fn phases(&self) -> (String, String) {
        match self.generation {
            Generation::First => {
                let count = self.pod.whole("PUBLISH_COUNT").unwrap_or(10);
                let pause = self.pause_ms();
                (format!("{pause}ms"), format!("{}ms", pause * count))
            }
            Generation::Later => {
                let warm_up = i64::from(self.warms_up());
                (format!("{warm_up}s"), format!("{}s", self.seconds()))
            }
        }
    }
}

/// The generation that the variables are of, or that is stated.
fn generation(pod: &Pod, stated: Option<Generation>) -> Result<Generation> {
    let first = pod.first_of(Generation::First);
    let later = pod.first_of(Generation::Later);
    let (found, other) = match (first, later, stated) {
        (Some(_), Some(later), None) => {
            let why = format!(
                "{later} is of the current generation, and {} of that of 2019; keep those of one",
                first.unwrap_or_default()
            );
            return Err(pod.refuse(later, &why));
        }
        (Some(_), None, None) => (Generation::First, None),
        (None, Some(_), None) => (Generation::Later, None),
        (None, None, None) => {
            return Err(anyhow!(
                "read {}: no variable shows the generation of the test; add --generation 2019 or --generation current",
                pod.source()
            ));
        }
        (_, later, Some(Generation::First)) => (Generation::First, later),
        (first, _, Some(Generation::Later)) => (Generation::Later, first),
    };
    match other {
        None => Ok(found),
        Some(name) => {
            let why = format!(
                "{name} is not of the stated generation; remove it, or state the other one"
            );
            Err(pod.refuse(name, &why))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use super::super::variables::{Form, Meaning};
    use super::*;

    /// The scenario of these variables, which `muster check` accepts.
    fn scenario(text: &str) -> Result<String, String> {
        let text_of = |error: anyhow::Error| format!("{error:#}");
        let mut faults = Faults::default();
        let pod = Pod::from_lines(&TEST, "t.env".to_owned(), text, &mut faults);
        faults.check().map_err(text_of)?;
        let load = Load::new(&pod, None).map_err(text_of)?;
        let text = load.scenario().map_err(text_of)?;
        let variables = BY_REFERENCE.map(|name| (name, "v".to_owned())).into();
        let imported = Imported { text, variables };
        check(&imported.text, &imported).map_err(text_of)?;
        Ok(imported.text)
    }

    const FIRST: &str = "PUBLISH_PAUSE=1000\n";
    const LATER: &str = "SEED=7\n";
    const GATEWAY: &str = "SEED=7\nTEST_API=gateway\n";
    const HTTP: &str = "SEED=7\nDEVICE_API=HTTP\n";
    const PLC: &str = "SEED=7\nTEST_PAYLOAD_TYPE=INDUSTRIAL_PLC\n";
    const CALLS: &str = "SEED=7\nTEST_API=rpc\n";
    const PART: &str = "SEED=7\nUSE_INSTANCE_IDX=true\n";

    /// Each variable, with others, and the text that it alone makes or, with `-`, takes away.
    const CASES: [(&str, &str, &str, &str); 44] = [
        (
            "REST_URL",
            "https://tb:443",
            LATER,
            "url: \"https://tb:443\"",
        ),
        (
            "REST_USERNAME",
            "me",
            FIRST,
            "user: \"${env:REST_USERNAME}\"",
        ),
        (
            "REST_PASSWORD",
            "hidden",
            LATER,
            "password: \"${env:REST_PASSWORD}\"",
        ),
        ("REST_POOL_SIZE", "9", LATER, "pending: 9"),
        ("REST_CONNECT_SERVER", "false", LATER, "-provision:"),
        ("MQTT_HOST", "tb", FIRST, "mqtt://tb:1883"),
        ("MQTT_PORT", "1884", LATER, "mqtt://localhost:1884"),
        ("MQTT_SSL_ENABLED", "true", FIRST, "mqtts://localhost:1883"),
        (
            "DEVICE_API",
            "HTTP",
            FIRST,
            "devices: [ \"http://localhost:9090\" ]",
        ),
        ("DEVICE_START_IDX", "4", FIRST, "count: 6\n    first: 4"),
        ("DEVICE_END_IDX", "450", FIRST, "count: 450"),
        ("DEVICE_CREATE_ON_START", "false", FIRST, "mode: verify"),
        ("DEVICE_DELETE_ON_COMPLETE", "true", LATER, "remove: true"),
        (
            "PUBLISH_COUNT",
            "36000",
            FIRST,
            "warm-up: 1000ms, measure: 36000000ms",
        ),
        ("PUBLISH_PAUSE", "500", "PUBLISH_COUNT=10\n", "every: 500ms"),
        ("DEVICE_COUNT", "20", PART, "count: 20"),
        (
            "USE_INSTANCE_IDX",
            "true",
            "INSTANCE_IDX=2\n",
            "first: 2000",
        ),
        ("INSTANCE_IDX", "3", PART, "first: 3000"),
        ("DEVICE_PROFILE", "own", LATER, "profile: \"own\""),
        (
            "TEST_API",
            "gateway",
            LATER,
            "gateway: { devices: 100, id: \"GW${index:08}\" }",
        ),
        ("GATEWAY_START_IDX", "0", GATEWAY, ""),
        ("GATEWAY_END_IDX", "4", GATEWAY, "gateway: { devices: 250,"),
        (
            "GATEWAY_COUNT",
            "4",
            "TEST_API=gateway\nUSE_INSTANCE_IDX=true\n",
            "gateway: { devices: 250,",
        ),
        (
            "GATEWAY_NAME_PREFIX",
            "t1-",
            GATEWAY,
            "id: \"t1-GW${index:08}\"",
        ),
        ("CUSTOMER_START_IDX", "0", LATER, ""),
        ("CUSTOMER_END_IDX", "5", LATER, "customers: 5"),
        ("WARMUP_ENABLED", "false", LATER, "warm-up: 0s"),
        (
            "WARMUP_PACK_SIZE",
            "50",
            LATER,
            "connect: { rate: 50/50ms, pack: 50, pending: 50 }",
        ),
        (
            "MESSAGES_PER_SECOND",
            "3000",
            LATER,
            "shape: { burst: { n: 3, every: 1s } }",
        ),
        ("DURATION_IN_SECONDS", "60", LATER, "measure: 60s"),
        (
            "TEST_TELEMETRY",
            "false",
            GATEWAY,
            "topic: v1/gateway/attributes",
        ),
        (
            "TEST_PAYLOAD_TYPE",
            "SMART_TRACKER",
            LATER,
            "payload: { smart-tracker: { alarms:",
        ),
        (
            "TEST_PAYLOAD_DATAPOINTS",
            "7",
            PLC,
            "industrial-plc: { datapoints: 7 }",
        ),
        (
            "ALARMS_PER_SECOND",
            "2",
            LATER,
            "alarms: { rate: 2/s, from: 1s, until: 301s }",
        ),
        (
            "ALARM_STORM_START_SECOND",
            "3",
            LATER,
            "from: 4s, until: 301s",
        ),
        ("ALARM_STORM_END_SECOND", "9", LATER, "from: 1s, until: 10s"),
        ("UPDATE_ROOT_RULE_CHAIN", "true", LATER, "count: true"),
        ("SEED", "5", HTTP, "seed: 5"),
        (
            "TEST_API",
            "rpc",
            LATER,
            "backend: { rpc: { pending: 16 }, commands: { rate: 1000/s, mode: one-way } }",
        ),
        ("RPC_TWO_WAY", "true", CALLS, "mode: two-way"),
        ("MESSAGES_PER_SECOND", "50", CALLS, "rate: 50/s, mode"),
        (
            "RPC_TWO_WAY",
            "true",
            LATER,
            "here: RPC_TWO_WAY (a setting of TEST_API=rpc)",
        ),
        ("DEVICE_API", "MQTT", LATER, ""),
        ("MESSAGES_PER_SECOND", "300", LATER, "rate: 300/s"),
    ];

    /// Law: a variable changes the scenario as its case says, or stands in a comment, or is refused with the reason.
    #[test]
    fn every_variable_becomes_a_key_or_a_comment_or_is_refused() {
        for (name, value, others, wanted) in CASES {
            let others: String = others
                .lines()
                .filter(|line| line.split('=').next() != Some(name))
                .map(|line| format!("{line}\n"))
                .collect();
            let with = scenario(&format!("{others}{name}={value}\n"));
            let with = with.unwrap_or_else(|error| panic!("{name}: {error}"));
            let before = scenario(&others).unwrap_or_default();
            match wanted.strip_prefix('-') {
                Some(gone) => assert!(
                    before.contains(gone) && !with.contains(gone),
                    "{name}: {with}"
                ),
                None if wanted.is_empty() => assert_eq!(with, before, "{name}"),
                None => assert!(
                    with.contains(wanted) && !before.contains(wanted),
                    "{name}: {with}"
                ),
            }
        }
        for variable in TEST.variables {
            let name = variable.name;
            let of = if variable.of.is_none() { FIRST } else { LATER };
            match (variable.meaning, variable.form) {
                (Meaning::Idle(why), _) => {
                    let text = scenario(&format!("{of}{name}=1\n"));
                    let text = text.unwrap_or_else(|error| panic!("{name}: {error}"));
                    let comment = format!("# - Without a meaning here: {name} ({why})");
                    assert!(text.contains(&comment), "{name}: {text}");
                }
                (Meaning::Mapped, Form::Only(only, why)) => {
                    let error = scenario(&format!("{of}{name}=other\n")).expect_err(name);
                    assert!(
                        error.contains(name) && error.contains(why),
                        "{name}: {error}"
                    );
                    scenario(&format!("{of}{name}={only}\n")).expect(name);
                }
                (Meaning::Mapped, _) => {
                    assert!(
                        CASES.iter().any(|case| case.0 == name),
                        "{name} has no case"
                    );
                }
            }
        }
    }

    #[test]
    fn variables_that_contradict_each_other_are_refused() {
        for (text, wanted) in [
            (
                "MQTT_HOST=h",
                "read t.env: no variable shows the generation of the test",
            ),
            (
                "PUBLISH_COUNT=1\nSEED=1",
                "read t.env:2: SEED is of the current generation, and PUBLISH_COUNT of that of 2019",
            ),
            (
                "SEED=1\nDEVICE_START_IDX=1000",
                "DEVICE_END_IDX is behind the last device",
            ),
            ("TEST_API=gateway\nDEVICE_API=HTTP", "gateways speak MQTT"),
            (
                "TEST_API=rpc\nDEVICE_API=HTTP",
                "devices take calls over MQTT; give DEVICE_API=MQTT",
            ),
            (
                "TEST_API=rpc\nREST_CONNECT_SERVER=false",
                "calls need the REST API; give REST_CONNECT_SERVER=true",
            ),
            (
                "TEST_API=gateway\nGATEWAY_END_IDX=7\nDEVICE_END_IDX=10",
                "10 devices cannot be divided evenly among 7 gateways",
            ),
            (
                "TEST_API=gateway\nGATEWAY_START_IDX=2",
                "gateways are numbered from 0",
            ),
            (
                "CUSTOMER_START_IDX=2\nCUSTOMER_END_IDX=3",
                "customers are numbered from 0",
            ),
            (
                "DEVICE_API=LWM2M",
                "DEVICE_API, `LWM2M`, is none of MQTT, HTTP",
            ),
            ("MESSAGE_PER_SECOND=5", "did you mean MESSAGES_PER_SECOND?"),
        ] {
            let error = scenario(text).expect_err(text);
            assert!(error.contains(wanted), "{text}: {error}");
        }
    }

    #[test]
    fn a_stated_generation_decides_where_no_variable_does() {
        let mut faults = Faults::default();
        let pod = Pod::from_lines(&TEST, "t.env".to_owned(), "PUBLISH_PAUSE=10", &mut faults);
        assert_eq!(generation(&pod, None).ok(), Some(Generation::First));
        let error = generation(&pod, Some(Generation::Later)).expect_err("it is of 2019");
        assert!(
            error
                .to_string()
                .contains("PUBLISH_PAUSE is not of the stated generation"),
            "{error}"
        );
        let pod = Pod::from_lines(&TEST, "t.env".to_owned(), "MQTT_HOST=h", &mut faults);
        for stated in [Generation::First, Generation::Later] {
            assert_eq!(generation(&pod, Some(stated)).ok(), Some(stated));
        }
    }

    /// The page's table has each variable that becomes a part of a scenario.
    #[test]
    fn the_page_names_every_variable_with_a_meaning() {
        let page = include_str!("../../../../../docs/thingsboard.md");
        let begin = page
            .find("## Settings of the published tests")
            .expect("its heading");
        let table = &page[begin..];
        let table = &table[..table[3..].find("\n## ").map_or(table.len(), |end| end + 3)];
        for variable in TEST.variables {
            let has_meaning =
                variable.meaning == Meaning::Mapped && !matches!(variable.form, Form::Only(..));
            let name = format!("`{}`", variable.name);
            assert!(
                !has_meaning || table.contains(&name),
                "{name} is not in the table"
            );
        }
    }
}
