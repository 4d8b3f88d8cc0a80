//! The environment of the published test of Hono over HTTP and MQTT becomes a scenario that is read.

use std::path::Path;

use muster_plan::{Plan, Policy};
use muster_scenario::{Overrides, Reader, Source, parse};

use crate::program::{Said, folder_with, muster, program};

/// Variables of a pod of devices over HTTP, as that test's template has them.
const HTTP: &str = "HOSTNAME=simulator-http-1-abcde\nDEVICE_REGISTRY_URL=http://registry.example:8080\n\
    HONO_HTTP_URL=http://adapter-0.example:8080,http://adapter-1.example:8080\nHONO_TENANT=DEFAULT_TENANT\n\
    NUM_DEVICES=2000\nNUM_THREADS=10\nTELEMETRY_MS=1000\nEVENT_MS=0\nTLS_INSECURE=false\nINFLUXDB_USER=user\n\
    INFLUXDB_PASSWORD=of-influx\nINFLUXDB_METRICS_BATCH_SIZE=10\nINFLUXDB_METRICS_FLUSH_DURATION_SECONDS=100\n\
    INFLUXDB_NAME=metrics\nDEVICE_PROVIDER=VERTX\nVERTX_POOLED_BUFFERS=true\nVERTX_MAX_POOL_SIZE=500\n\
    VERTX_RECREATE_CLIENT=120000\nVERTX_KEEP_ALIVE=true\n";

/// Variables of a pod of devices over MQTT, as that test's template has them.
const MQTT: &str = "HOSTNAME=simulator-mqtt-1-fghij\nDEVICE_REGISTRY_URL=http://registry.example:8080\n\
    HONO_TENANT=DEFAULT_TENANT\nHONO_MQTT_HOST=mqtt.example\nHONO_MQTT_PORT=443\nHONO_MQTT_SSL=true\n\
    HONO_MQTT_TRUST_ALL=true\nNUM_DEVICES=10\nNUM_THREADS=10\nTLS_INSECURE=true\nTELEMETRY_MS=1000\nEVENT_MS=5000\n";
/// Variables of a pod of the later generation.
const LATER: &str = "HOSTNAME=sim-mqtt-0\nHONO_TENANT=load\nHONO_MQTT_HOST=mqtt.example\nHONO_MQTT_PORT=1883\n\
    DISABLE_TLS=true\nMESSAGE_TYPE=event\nPERIOD_MS=250\nPAYLOAD_SIZE=100\nDEVICE_PASSWORD=of-devices\n\
    DEVICE_REGISTRY_URL=https://registry.example/v1\nDEVICE_REGISTRY_VERSION=V1\nDEVICE_REGISTRY_TOKEN=of-registry\n\
    AUTO_REGISTER=true\nRECONNECT_DELAY=1000\nRECONNECT_JITTER=3000\n";

/// Variables of the consumer's pod.
const CONSUMER: &str = "HONO_TRUSTED_CERTS=/etc/config/server-cert.pem\nHONO_USER=consumer\nHONO_PASSWORD=verysecret\n\
    HONO_TENANT=DEFAULT_TENANT\nHONO_INITIAL_CREDITS=100\nINFLUXDB_METRICS_BATCH_SIZE=100\n\
    MESSAGING_SERVICE_HOST=messaging.example\nMESSAGING_SERVICE_PORT_AMQP=5671\nENABLE_PERSISTENCE=false\n";

/// Imports the variables of these pods, each in a file.
fn import(pods: &[(&str, &str)]) -> Said {
    let folder = folder_with("");
    let mut arguments = vec!["import", "hono-simulator"];
    for (name, text) in pods {
        std::fs::write(folder.path().join(name), text).expect("the variables are written");
        arguments.extend(["--env", name]);
    }
    muster(folder.path(), &arguments)
}

/// A reader that has every file and variable.
struct All;

impl Reader for All {
    fn file(&self, _: &str) -> Result<Vec<u8>, String> {
        Ok(b"-----BEGIN CERTIFICATE-----".to_vec())
    }

    fn variable(&self, name: &str) -> Option<String> {
        Some(name.to_owned())
    }
}

fn imported(pods: &[(&str, &str)], golden: &str) -> Plan {
    let said = import(pods);
    assert_eq!(said.code, 0, "{said:?}");
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../golden")
        .join(golden);
    if std::env::var_os("MUSTER_BLESS").is_some() {
        std::fs::write(&path, &said.out).expect("the folder golden can be written");
    }
    let wanted = std::fs::read_to_string(&path).expect("the golden file is there");
    assert!(
        wanted == said.out,
        "golden/{golden} differs: bless it if the change is meant"
    );
    for secret in ["verysecret", "of-devices", "of-registry", "of-influx"] {
        assert!(!said.out.contains(secret), "{secret}");
    }
    let (name, text) = ("imported.yaml", said.out.as_str());
    parse(Source { name, text }, &Overrides::new(), &All)
        .unwrap_or_else(|problems| panic!("{problems}"))
}

#[test]
fn devices_over_mqtt_of_the_first_generation_are_a_fleet() {
    let plan = imported(&[("mqtt.env", MQTT)], "import-hono-mqtt.yaml");
    assert_eq!(plan.devices(), 10);
    assert_eq!(
        plan.platform.endpoints[0].to_string(),
        "mqtts://mqtt.example:443"
    );
    let streams: Vec<_> = plan.fleets[0]
        .streams
        .iter()
        .map(|it| it.qos as u8)
        .collect();
    assert_eq!(streams, [0, 1]);
}

#[test]
fn devices_over_mqtt_of_the_later_generation_are_a_fleet() {
    let plan = imported(&[("later.env", LATER)], "import-hono-later.yaml");
    assert_eq!(plan.fleets[0].tenant, "load");
    assert_eq!(plan.fleets[0].streams.len(), 1);
}

#[test]
fn devices_over_http_are_closed_loops_that_ignore_retry_after() {
    let pods = [("http.env", HTTP), ("consumer.env", CONSUMER)];
    let plan = imported(&pods, "import-hono-http.yaml");
    let addresses = plan.platform.endpoints.iter().map(ToString::to_string);
    let addresses: Vec<_> = addresses.collect();
    assert_eq!(
        addresses,
        [
            "http://adapter-0.example:8080",
            "http://adapter-1.example:8080"
        ]
    );
    let fleet = &plan.fleets[0];
    assert_eq!((plan.devices(), fleet.streams.len()), (2_000, 1));
    let settings = fleet.client.http().expect("they speak HTTP");
    assert!(!settings.obeys_retry_after && !settings.closes);
    let stream = &fleet.streams[0];
    assert_eq!(stream.policy, Policy::Closed);
    assert_eq!(stream.topic.source(), "telemetry/${tenant}/${id}");
    assert_eq!((stream.largest, stream.is_confirmable), (64, false));
}

#[test]
fn the_consumer_is_the_backend_of_all_devices() {
    let pods = [("mqtt.env", MQTT), ("consumer.env", CONSUMER)];
    let plan = imported(&pods, "import-hono-consumer.yaml");
    let backend = &plan.backends[0];
    assert_eq!(
        backend.endpoint.to_string(),
        "amqps://messaging.example:5671"
    );
    assert!(backend.amqp().is_some_and(|amqp| amqp.credit == 100));
    assert!(plan.platform.tls.insecure && !backend.tls.insecure);
}

#[test]
fn a_variable_that_no_program_reads_is_refused_with_the_nearest_name() {
    let said = import(&[(
        "pod.env",
        "HONO_MQTT_HOST=h\nTELEMETRY_MS=1\nHONO_MQTT_POTR=1\n",
    )]);
    assert_eq!(said.code, 2, "{said:?}");
    let wanted =
        "pod.env:3: HONO_MQTT_POTR is no variable of hono-simulator; did you mean HONO_MQTT_PORT?";
    assert!(said.err.contains(wanted), "{said:?}");
    let folder = folder_with("");
    let said = muster(
        folder.path(),
        &["import", "hono-simulator", "--env", "none.env"],
    );
    assert_eq!(said.code, 2, "{said:?}");
    assert!(
        said.err.contains("read the variables in none.env"),
        "{said:?}"
    );
}

#[test]
fn without_a_file_the_variables_are_those_of_the_environment() {
    let folder = folder_with("");
    let run = |variables: &[(&str, &str)]| {
        let mut command = program(
            folder.path(),
            &["import", "hono-simulator", "--out", "new.yaml"],
        );
        command.env("HOSTNAME", "pod-0");
        command
            .envs(variables.iter().copied())
            .output()
            .expect("the binary runs")
    };
    let said = run(&[("HONO_MQTT_HOST", "h"), ("TELEMETRY_MS", "1000")]);
    assert!(said.status.success(), "{said:?}");
    let text = std::fs::read_to_string(folder.path().join("new.yaml")).expect("written");
    assert!(text.contains("id: \"pod-0-${index}\""), "{text}");
    let said = run(&[("HONO_MQTT_HOST", "h"), ("TELEMETRY_MS", "1000")]);
    assert_eq!(said.status.code(), Some(2), "never over another: {said:?}");
    let said = run(&[("HONO_MQTT_HOSTS", "h"), ("TELEMETRY_MS", "1000")]);
    assert_eq!(said.status.code(), Some(2), "{said:?}");
}
