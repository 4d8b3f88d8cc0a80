//! Contents of a plan: ids, defaults, shapes, secrets, and its demands on the machine.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use muster_judge::{Allowance, Latency, Scope, SloBound};
use muster_load::{Names, Octets, Payload, PayloadSpec, Phase, Shape, Template};
use muster_measure::Cold;
use muster_model::behaviour::{Amount, Capacity, Delayed, Full, Service, ServiceTime};
use muster_model::{
    DeviceId, Dimension, FleetId, LinkId, MessageId, Micros, Rate, RunId, StreamId,
};
use muster_plan::{
    Ack, AmqpLogin, ApiCredential, ClientId, Credential, PasswordHash, Plan, PlatformKind, Policy,
    ProvisionMode, RpcNorthbound, Secret, SocketUse, StepNeeds, StreamKind, StreamPlan,
    WebhookNorthbound, WebhookProof,
};
use muster_platform::{
    Carrier, Dialect, Directory, DirectorySpec, IntegrityLevel, Protocol, Uplink, UplinkScratch,
};
use muster_protocol::coap::Transmission;
use muster_protocol::mqtt::{Qos, Version};
use muster_scenario::{Overrides, Problems, Reader, Source, needs, parse};
use proptest::prelude::*;

/// Files and variables in memory.
struct World(BTreeMap<&'static str, &'static str>);

/// A key that is no text.
const KEY: &[u8] = b"\xff\x00\r\n";

impl Reader for World {
    fn file(&self, path: &str) -> Result<Vec<u8>, String> {
        if path == "key.bin" || path == "keys/2.bin" {
            return Ok(KEY.to_vec());
        }
        let found = self.0.get(path).map(|text| text.as_bytes().to_vec());
        found.ok_or_else(|| "no such file".to_owned())
    }

    fn variable(&self, name: &str) -> Option<String> {
        self.0.get(name).map(|&text| text.to_owned())
    }
}

fn read(text: &str, sets: &[&str]) -> Result<Plan, Problems> {
    let world = World(BTreeMap::from([
        ("PASSWORD", "hunter2"),
        ("ODD", "a${id}b"),
        ("secret.txt", "from-file\n"),
        ("meters.csv", "serial,zone\n1,a\n2,b\n3,c\n"),
        ("times.csv", "at\n0.5\n1.5,x\n\n1.5\n"),
        ("body.bin", "0123456789"),
        ("marked.json", "\u{feff}{}"),
        ("values.yaml", "replicas: 3\n"),
        ("bom.txt", "\u{feff}from-file\r\n"),
        ("bom-times.csv", "\u{feff}0.5\r\n1.5\r\n2.5"),
        (
            "blanks.csv",
            "\u{feff}dev , user; pass\r\n d1 , u1; p1 \r\n d2,u2\r\n",
        ),
        (
            "semicolon.csv",
            "dev; user ;pass\nd1; u1; p,1\n\nd2;u2;\" p2\"\nd3;u3;p3",
        ),
        ("quotes.csv", "v\n\"a\"\"b\"\nc\\d\n"),
        ("keys/1.bin", "one"),
        ("keys/3.bin", "three\n"),
        ("hex.csv", "serial,key\nA7,00ff\nB8,0A\nC9,01\n"),
        ("COUNT", "3"),
        ("HOST", "broker.example"),
        ("KIND", "mqtt"),
    ]));
    let mut overrides = Overrides::new();
    for set in sets {
        overrides.add(set)?;
    }
    let source = Source {
        name: "test.yaml",
        text,
    };
    parse(source, &overrides, &world)
}

fn plan(text: &str) -> Plan {
    read(text, &[]).unwrap_or_else(|problems| panic!("{problems}"))
}

/// The template of bytes that are text.
fn source(octets: &Octets) -> &str {
    octets.template().unwrap().source()
}

fn directory(plan: &Plan) -> Directory {
    let fleet = &plan.fleets[0];
    Directory::new(DirectorySpec {
        seed: plan.seed,
        wall_ms_at_t0: 0,
        first_device: fleet.first_device,
        devices: fleet.devices,
        first_index: fleet.first_index,
        names: fleet.names.clone(),
        tenant: fleet.tenant.clone(),
        table: fleet.data.clone(),
    })
}

/// The plan of a scenario with one fleet of ten devices and one stream with these keys.
fn with_stream(keys: &str) -> Plan {
    let stream = format!("{{ name: readings, {keys} }}");
    plan(&format!(
        "name: t\nfleet:\n  - {{ name: meters, count: 10, streams: [ {stream} ] }}\n"
    ))
}

#[test]
fn only_name_and_fleet_are_required() {
    let plan = plan("name: least\nfleet: [ {} ]\n");
    assert_eq!(plan.devices(), 1);
    assert!(plan.fleets[0].streams.is_empty());
    assert!(matches!(plan.platform.kind, PlatformKind::Gateway { .. }));
    assert_eq!(plan.platform.endpoints[0].to_string(), "mqtt://127.0.0.1:0");
    assert_eq!(plan.phases.settle.at_most, Micros::from_secs(30));
    assert_eq!(plan.phases.settle.quiet, Micros::from_secs(3));
    assert_eq!(plan.rules.validity.max_lateness, Micros::from_secs(5));
    let defaults: Vec<_> = plan
        .rules
        .slos
        .iter()
        .map(|slo| (slo.named, slo.bound))
        .collect();
    assert_eq!(defaults[0], (false, SloBound::Loss(Allowance::Count(0))));
    assert_eq!(defaults.len(), 4);
}

#[test]
fn defaults_of_a_stream_are_the_documented_ones() {
    let plan = with_stream("rate: 20/s");
    let stream = &plan.fleets[0].streams[0];
    assert_eq!(stream.kind, StreamKind::Telemetry);
    assert_eq!((stream.qos, stream.ack), (Qos::AtLeastOnce, Ack::Transport));
    assert_eq!(
        stream.policy,
        Policy::Queue {
            bound: 1_000,
            in_flight: None
        }
    );
    assert_eq!(stream.timeout, Micros::from_secs(10));
    assert_eq!(stream.topic.source(), "muster/${id}/readings");
    assert_eq!(stream.payload, PayloadSpec::Size(100));
    assert_eq!(stream.carrier, Carrier::Payload);
    let names = Names::formula("meters-${index:08}").unwrap();
    assert_eq!(plan.fleets[0].names, names);
    assert_eq!(plan.backends[0].mqtt().unwrap().filter, "muster/#");
    assert_eq!(plan.backends[0].mqtt().unwrap().qos, Qos::AtLeastOnce);
    assert_eq!(
        with_stream("rate: 1/s, qos: 0").fleets[0].streams[0].ack,
        Ack::None
    );
    let slow = with_stream("rate: 20/s, timeout: 45s");
    assert_eq!(slow.phases.settle.at_most, Micros::from_secs(48));
}

/// A member of an MQTT group would take messages from the others; in Kafka's group it is looked for, and joins none.
#[test]
fn a_plan_that_only_connects_takes_no_messages_of_a_group() {
    let shared = |url: &str, more: &str| {
        let plan = plan(&format!(
            "name: t\nplatform: {{ kind: mqtt, devices: [ \"mqtt://127.0.0.1\" ], backend: {{ url: \"{url}\", shared: app{more} }} }}\n\
             fleet: [ {{ name: f, count: 2, streams: [ {{ name: r, rate: 1/s }} ] }} ]"
        ));
        plan.only_connecting().backends.remove(0).shared
    };
    assert_eq!(shared("mqtt://127.0.0.1", ""), None);
    assert_eq!(
        shared("kafka://127.0.0.1", ", topics: { r: 4 }").as_deref(),
        Some("app")
    );
    let queue = plan(
        "name: t\nplatform: { kind: mqtt, devices: [ 'mqtt://h' ], backend: { url: 'amqp://h', addresses: [ q ] } }\n\
         fleet: [ { name: f, count: 2, streams: [ { name: r, rate: 1/s } ] } ]",
    );
    assert_eq!(
        queue.only_connecting().backends[0].amqp().unwrap().credit,
        0
    );
}

#[test]
fn ids_have_no_gaps_and_lead_to_their_fleet_and_link() {
    let plan = plan(
        "name: t\nfleet:\n\
         - { name: a, count: 7, gateway: { devices: 3 }, streams: [ { rate: 1/s } ] }\n\
         - { name: b, count: 5, first: 100, streams: [ { rate: 1/s }, { kind: event, rate: 1/s } ] }\n",
    );
    let (a, b) = (&plan.fleets[0], &plan.fleets[1]);
    assert_eq!((a.links, b.first_link, b.links), (3, LinkId(3), 5));
    assert_eq!(
        (b.first_device, plan.devices(), plan.links()),
        (DeviceId(7), 12, 8)
    );
    assert_eq!(plan.link_of(DeviceId(5)), Some(LinkId(1)));
    assert_eq!(plan.link_of(DeviceId(6)), Some(LinkId(2)));
    assert_eq!(plan.link_of(DeviceId(7)), Some(LinkId(3)));
    assert_eq!(
        plan.fleet_of(DeviceId(11))
            .map(|fleet| fleet.index_of(DeviceId(11))),
        Some(104)
    );
    assert!(plan.fleet_of(DeviceId(12)).is_none());
    assert_eq!(a.first_device_of(LinkId(2)), DeviceId(6));
    assert_eq!(
        plan.stream(StreamId(2)).map(|(_, stream)| &*stream.name),
        Some("event")
    );
    let specs: Vec<_> = plan.streams().map(|(_, stream)| &stream.schedule).collect();
    assert_eq!((specs[1].first_device, specs[1].devices), (DeviceId(7), 5));
    assert_ne!(specs[0].seed, specs[1].seed);
}

#[test]
fn every_shape_is_read() {
    let shape = |keys: &str| with_stream(keys).fleets[0].streams[0].schedule.clone();
    let rate = |value| Rate::per_second(value).unwrap();
    assert_eq!(shape("every: 5s").rate, rate(2.0));
    let ramp = shape("rate: 9/s, shape: { ramp: { from: 1/s, to: 9/s, over: 5s }, poisson: true }");
    assert_eq!(
        ramp.shape,
        Shape::Ramp {
            from: rate(1.0),
            over: Micros::from_secs(5)
        }
    );
    assert!(ramp.poisson && ramp.rate == rate(9.0));
    let stages = shape("shape: { stages: [ { to: 5/s, over: 1s }, { to: 7/s, hold: 2s } ] }");
    assert!(matches!(&stages.shape, Shape::Stages(stages) if stages.len() == 2));
    assert_eq!(stages.rate, rate(7.0));
    let spike = shape("rate: 5/s, shape: { spike: { to: 50/s, at: 3s, for: 2s } }");
    assert!(matches!(
        spike.shape,
        Shape::Spike {
            lasts: Micros(2_000_000),
            ..
        }
    ));
    let sine = shape("shape: { sine: { from: 5/s, to: 9/s, period: 10s } }");
    assert!(matches!(sine.shape, Shape::Sine { .. }));
    let burst = shape("shape: { burst: { n: 3, every: 2s } }, phase: together");
    assert_eq!(
        burst.shape,
        Shape::Burst {
            n: 3,
            every: Micros::from_secs(2)
        }
    );
    assert_eq!(burst.phase, Phase::Together);
    let replay = shape("shape: { replay: times.csv }, phase: hash, count: 5");
    let instants = [500_000, 1_500_000, 1_500_000].map(Micros);
    assert_eq!(replay.shape, Shape::Replay(instants.into()));
    assert_eq!(
        (replay.phase, replay.limit_per_device),
        (Phase::Hash, Some(5))
    );
}

#[test]
fn every_loop_payload_and_carrier_is_read() {
    let stream =
        |keys: &str| with_stream(&format!("rate: 9/s, {keys}")).fleets[0].streams[0].clone();
    assert_eq!(stream("loop: closed").policy, Policy::Closed);
    assert_eq!(
        stream("loop: { in-flight: 8 }").policy,
        Policy::Queue {
            bound: 1_000,
            in_flight: Some(8)
        }
    );
    let shed = Policy::Shed { in_flight: 8 };
    assert_eq!(
        stream("loop: { in-flight: 8, overflow: shed }").policy,
        shed
    );
    let sizes = stream("payload: { size: { log-normal: { median: 200, p99: 4KiB } } }");
    assert_eq!(
        sizes.payload,
        PayloadSpec::LogNormal {
            least: 22,
            median: 200,
            p99: 4_096
        }
    );
    let file = stream("payload: { file: body.bin, content-type: text/plain }, carrier: property");
    assert_eq!(file.payload, PayloadSpec::File(b"0123456789"[..].into()));
    assert_eq!(file.content_type.as_deref(), Some("text/plain"));
    let field = stream(
        "payload: { template: '{\"h\":{\"id\":\"${stamp}\"},\"v\":${seq}}' }, carrier: { field: /h/id }",
    );
    assert_eq!(field.carrier, Carrier::Field("/h/id".to_owned()));
    for (word, carrier) in [("order", Carrier::Order), ("none", Carrier::None)] {
        assert_eq!(
            stream(&format!("carrier: {word}, payload: {{ size: 0 }}")).carrier,
            carrier
        );
    }
}

#[test]
fn a_dialect_fills_in_what_its_platform_wants() {
    let text = "name: t\nplatform: { kind: gateway, dialect: sap-edge }\n\
                fleet: [ { count: 3, streams: [ { rate: 9/s }, { name: sure, rate: 1/s, qos: 1, ack: transport } ] } ]\n";
    let plan = plan(text);
    assert_eq!(plan.platform.dialect(), Dialect::SapEdge);
    assert!(plan.backends.is_empty(), "there is no northbound");
    let fleet = &plan.fleets[0];
    let mut name = String::new();
    fleet.names.render(2, &mut name);
    assert_eq!(name, "PerfTest_2");
    let [readings, sure] = &fleet.streams[..] else {
        panic!("two streams")
    };
    assert_eq!(
        (readings.qos, readings.ack),
        (Qos::AtMostOnce, Ack::Application)
    );
    assert_eq!(readings.topic.source(), "measures/${id}");
    assert_eq!(readings.carrier, Carrier::ApplicationId);
    assert_eq!(readings.timeout, Micros::from_secs(30));
    assert_eq!(
        (sure.ack, sure.timeout),
        (Ack::Transport, Micros::from_secs(10))
    );
    let is_its_own = |stream: &StreamPlan, id: &str| matches!(&stream.payload, PayloadSpec::Template(text) if text.contains(id));
    assert!(is_its_own(readings, "\"measureMessageId\": \"${seq}\""));
    assert!(is_its_own(sure, "\"measureMessageId\": \"1.${seq}\""));
}

#[test]
fn devices_of_thingsboard_have_tokens_and_surface_under_their_names() {
    let text = "name: t\nplatform: { kind: gateway, dialect: thingsboard }\n\
                fleet: [ { count: 20, streams: [ { rate: 10/s }, { name: model, rate: 10/s, qos: 0, topic: v2/a, carrier: order, \
                payload: { random-mix: { alarms: { rate: 2/s, from: 10s, until: 20s } } } } ] } ]\n";
    let plan = plan(text);
    let fleet = &plan.fleets[0];
    let Credential::Token { token } = &fleet.credential else {
        panic!("{:?}", fleet.credential)
    };
    assert_eq!(token.expose().source(), "${id}");
    let [readings, model] = &fleet.streams[..] else {
        panic!("two streams")
    };
    assert_eq!(
        (readings.qos, readings.ack),
        (Qos::AtLeastOnce, Ack::Transport)
    );
    assert_eq!(readings.topic.source(), "v1/devices/me/telemetry");
    assert_eq!(readings.surface.source(), "thingsboard/${id}/telemetry");
    assert_eq!(model.surface.source(), "thingsboard/${id}/attributes");
    assert_eq!(plan.backends[0].mqtt().unwrap().filter, "thingsboard/#");
    let PayloadSpec::Template(meter) = &readings.payload else {
        panic!("{:?}", readings.payload)
    };
    assert!(meter.starts_with("{\"ts\":${unique_ms},\"values\":{\"musterId\":\"${stamp}\","));
    let PayloadSpec::Mix(mix) = &model.payload else {
        panic!("{:?}", model.payload)
    };
    let rare = mix.rare.as_ref().expect("alarms");
    // Rounds of 20 messages take 2 s.
    let expected = ("{\"t1\":100}", 20, 5, 10, 20);
    let found = (
        &*rare.template,
        rare.count,
        rare.first,
        rare.end,
        rare.devices,
    );
    assert_eq!(found, expected);
}

#[test]
fn gateways_of_thingsboard_have_names_of_their_own() {
    let text = "name: t\nplatform: { kind: gateway, dialect: thingsboard }\n\
                fleet: [ { count: 250, id: \"DW${index:08}\", gateway: { devices: 100 }, streams: [ { rate: 10/s } ] } ]\n";
    let plan = plan(text);
    let fleet = &plan.fleets[0];
    let mut name = String::new();
    let names = fleet.link_names.as_ref().expect("names of links");
    names.render(2, &mut name);
    assert_eq!((fleet.links, name.as_str()), (3, "GW00000002"));
    let stream = &fleet.streams[0];
    assert_eq!(stream.topic.source(), "v1/gateway/telemetry");
    assert_eq!(stream.surface.source(), "thingsboard/${id}/telemetry");
    let PayloadSpec::Template(text) = &stream.payload else {
        panic!("{:?}", stream.payload)
    };
    let head = "{\"${id}\":[{\"ts\":${unique_ms},\"values\":{\"musterId\":\"${stamp}\",";
    assert!(text.starts_with(head) && text.ends_with("}}]}"), "{text}");
}

#[test]
fn a_real_thingsboard_has_no_northbound_but_that_of_its_rule_chain() {
    let text = |backend: &str| {
        format!(
            "name: t\nplatform: {{ kind: thingsboard, devices: [ \"mqtt://h:1883\" ]{backend} }}\n\
             fleet: [ {{ count: 2, streams: [ {{ rate: 1/s }} ] }} ]\n"
        )
    };
    assert!(plan(&text("")).backends.is_empty());
    let plan = plan(&text(", backend: { url: \"mqtt://b:1883\" }"));
    assert_eq!(plan.backends[0].endpoint.host, "b");
    assert_eq!(plan.backends[0].mqtt().unwrap().filter, "thingsboard/#");
}

/// A plan for a real ThingsBoard, or for the embedded gateway as one.
fn board(platform: &str, streams: &str) -> Plan {
    plan(&format!(
        "name: t\nplatform: {{ {platform} }}\nfleet: [ {{ count: 10, streams: [ {streams} ] }} ]\n"
    ))
}

const REAL: &str = "kind: thingsboard, devices: [ 'mqtt://h:1883' ]";
const HEARD: &str =
    "kind: thingsboard, devices: [ 'mqtt://h:1883' ], backend: { url: 'mqtt://b:1883' }";
const EMBEDDED: &str = "kind: gateway, dialect: thingsboard";

#[test]
fn a_named_payload_has_a_stamp_only_where_a_backend_reads_it() {
    let stamped = |platform: &str, payload: &str| {
        let plan = board(platform, &format!("{{ rate: 1/s, payload: {payload} }}"));
        let stream = &plan.fleets[0].streams[0];
        let text = format!("{:?}", stream.payload);
        (
            text.contains("musterId"),
            stream.carrier.clone(),
            stream.integrity,
        )
    };
    for payload in [
        "smart-meter",
        "smart-tracker",
        "random-mix",
        "{ industrial-plc: { datapoints: 3 } }",
        "{ smart-meter: { alarms: { rate: 0.1/s } } }",
    ] {
        let (stamp, body) = (IntegrityLevel::Stamp, IntegrityLevel::Body);
        assert_eq!(
            stamped(REAL, payload),
            (false, Carrier::None, stamp),
            "{payload}"
        );
        assert_eq!(
            stamped(HEARD, payload),
            (true, Carrier::Payload, stamp),
            "{payload}"
        );
        assert_eq!(
            stamped(EMBEDDED, payload),
            (true, Carrier::Payload, body),
            "{payload}"
        );
    }
    let read_back =
        format!("{REAL} }}\nprovision: {{ url: 'http://h', user: u, password: p, read-back: true");
    assert_eq!(stamped(&read_back, "smart-meter").1, Carrier::Payload);
    assert_eq!(stamped(REAL, "long-key").1, Carrier::None);
    assert_eq!(stamped(REAL, "{ template: '{\"a\":1}' }").1, Carrier::None);
    assert_eq!(
        stamped(REAL, "{ template: '{\"a\":\"${stamp}\"}' }").1,
        Carrier::Payload
    );
    let broker = "kind: mqtt, devices: [ 'mqtt://h:1883' ]";
    assert_eq!(stamped(broker, "smart-meter").1, Carrier::None);
    assert_eq!(stamped(broker, "{ size: 100 }").1, Carrier::Payload);
    let hono = "name: t\nplatform: { kind: hono, devices: [ 'coap://h' ] }\n\
                fleet: [ { tenant: t, streams: [ { rate: 1/s, payload: ditto-modify } ] } ]\n";
    assert_eq!(plan(hono).fleets[0].streams[0].carrier, Carrier::None);
    let asked = board(REAL, "{ rate: 1/s, carrier: payload }");
    assert!(format!("{:?}", asked.fleets[0].streams[0].payload).contains("musterId"));
    let chosen = board(HEARD, "{ rate: 1/s, integrity: body }");
    assert_eq!(chosen.fleets[0].streams[0].integrity, IntegrityLevel::Body);
}

#[test]
fn streams_with_one_payload_divide_the_milliseconds_of_a_device() {
    let streams = "{ name: a, rate: 1/s }, { name: b, rate: 1/s, topic: v2/a }, \
                   { name: c, rate: 1/s, payload: long-key, carrier: none }, { name: d, rate: 1/s, payload: random-mix }";
    let plan = board(REAL, streams);
    let text = |at: usize| format!("{:?}", plan.fleets[0].streams[at].payload);
    assert!(text(0).contains("${unique_ms:2:0}"), "{}", text(0));
    assert!(text(3).contains("${unique_ms:2:1}"), "{}", text(3));
    assert!(!text(1).contains("unique_ms") && !text(2).contains("unique_ms"));
    assert_eq!(plan.warnings, []);
}

/// The warnings about the streams of a ThingsBoard.
fn warned(streams: &str) -> Vec<String> {
    let warnings = board(REAL, streams).warnings.into_iter();
    warnings
        .filter(|warning| warning.path.contains("streams"))
        .map(|warning| format!("{}; {}", warning.what, warning.help))
        .collect()
}

#[test]
fn messages_that_overwrite_each_other_are_warned_of() {
    let due = r#"payload: { template: '{"ts":${due_ms},"values":{"a":1}}' }"#;
    let unique = r#"payload: { template: '{"ts":${unique_ms},"values":{"a":1}}' }"#;
    let flat = r#"payload: { template: '{"a":1}' }"#;
    let same = r#"payload: { template: '{"ts":1600000000000,"values":{"a":${seq}}}' }"#;
    let burst = "shape: { burst: { n: 5, every: 1s } }";
    let poisson = "rate: 10/s, shape: { poisson: true }";
    for (keys, payload, words) in [
        (burst, due, "have one `ts`"),
        (poisson, due, "have one `ts`"),
        ("rate: 20000/s", due, "have one `ts`"),
        (burst, flat, "have no `ts`"),
        (burst, "payload: long-key", "have no `ts`"),
        ("rate: 1/s", same, "all messages of a device have one `ts`"),
        ("rate: 20000/s", unique, "runs ahead of the clock"),
        (
            "rate: 20000/s",
            "payload: smart-meter",
            "runs ahead of the clock",
        ),
        ("rate: 1/s", "payload: { size: 30 }", "takes JSON"),
    ] {
        let found = warned(&format!("{{ {keys}, {payload} }}"));
        assert_eq!(found.len(), 1, "{keys} {payload}: {found:?}");
        assert!(found[0].contains(words), "{found:?}");
    }
    for (keys, payload) in [
        ("rate: 10/s", due),
        ("rate: 10/s", flat),
        (burst, unique),
        (poisson, unique),
        (burst, "payload: smart-meter"),
        (burst, "payload: smart-meter, topic: v2/a"),
        ("every: 1s, count: 1", same),
        ("shape: { burst: { n: 1, every: 1s } }", due),
    ] {
        assert_eq!(
            warned(&format!("{{ {keys}, {payload} }}")),
            [""; 0],
            "{keys} {payload}"
        );
    }
    let both = warned(&format!(
        "{{ name: a, rate: 1/s, {due} }}, {{ name: b, rate: 1/s, {unique} }}"
    ));
    assert!(
        both.len() == 1 && both[0].contains("this stream and `a` send the key `a`"),
        "{both:?}"
    );
    let large = r#"{ rate: 1/s, payload: { template: '{"a":"${hex:65536}"}' } }"#;
    assert!(warned(large)[0].contains("closes the link above 65536 bytes"));
}

#[test]
fn links_that_may_not_ask_for_devices_are_warned_of() {
    let of = |secret: &str, streams: &str| {
        let text = format!(
            "name: t\nplatform: {{ {REAL} }}\nfleet: [ {{ count: 1, credential: {{ kind: token, secret: {secret} }}, \
             streams: [ {streams} ] }} ]\n"
        );
        let warnings = plan(&text).warnings.into_iter();
        let about = warnings.filter(|warning| warning.what.contains("`provision`"));
        about.map(|warning| warning.path).collect::<Vec<_>>()
    };
    let (asks, sends) = (
        "{ name: a, rate: 1/s, topic: /provision/request }",
        "{ name: b, rate: 1/s }",
    );
    assert_eq!(of("provision", asks), [""; 0]);
    assert_eq!(of("A1", sends), [""; 0]);
    assert_eq!(of("A1", asks), ["fleet[0].streams[0]"]);
    let both = format!("{asks}, {sends}");
    assert_eq!(of("provision", &both), ["fleet[0].streams[1]"]);
}

#[test]
fn hashes_that_the_generator_has_no_time_for_are_warned_of() {
    let warned = |keys: &str| {
        let text = format!(
            "name: t\nplatform: {{ kind: hono, devices: [ 'http://h' ] }}\n\
             provision: {{ url: 'http://127.0.0.1'{keys} }}\nfleet: [ {{ streams: [] }} ]\n"
        );
        let warnings = plan(&text).warnings.into_iter();
        let about = warnings.filter(|warning| warning.path == "provision.password-hash");
        about.map(|warning| warning.what).collect::<Vec<_>>()
    };
    let bcrypt = ", password-hash: bcrypt";
    assert_eq!(warned(bcrypt), [""; 0]);
    assert_eq!(warned(", mode: on-refusal"), [""; 0]);
    let both = warned(&format!("{bcrypt}, mode: on-refusal"));
    assert!(
        both.len() == 1 && both[0].contains("on the CPUs that send"),
        "{both:?}"
    );
}

/// The address alone says how devices speak: topics, payloads and where messages surface stay.
#[test]
fn streams_of_thingsboard_are_the_same_over_mqtt_http_and_coap() {
    let streams = "{ rate: 1/s }, { name: b, rate: 1/s, topic: v2/a }";
    let by = |scheme: &str| {
        let devices = format!("devices: [ '{scheme}://127.0.0.1:0' ]");
        let plan = board(&format!("{EMBEDDED}, {devices}"), streams);
        assert_eq!(plan.backends.len(), 1, "{scheme}");
        let fleet = plan.fleets.into_iter().next().unwrap();
        assert!(matches!(fleet.credential, Credential::Token { .. }));
        let of = |stream: &StreamPlan| {
            let payload = format!("{:?}", stream.payload);
            let (topic, surface) = (stream.topic.source(), stream.surface.source());
            assert_eq!(stream.ack, Ack::Transport, "{scheme}");
            [
                topic.to_owned(),
                surface.to_owned(),
                payload,
                stream.carrier.to_string(),
            ]
        };
        fleet.streams.iter().map(of).collect::<Vec<_>>()
    };
    let over_mqtt = by("mqtt");
    assert_eq!(over_mqtt[0][1], "thingsboard/${id}/telemetry");
    assert_eq!(by("http"), over_mqtt);
    assert_eq!(by("coap"), over_mqtt);
    assert_eq!(by("coaps"), over_mqtt);
}

#[test]
fn devices_of_thingsboard_over_coap_observe_their_commands() {
    let fleet = |scheme: &str, keys: &str, streams: &str| {
        let text = format!(
            "name: t\nplatform: {{ dialect: thingsboard, devices: [ '{scheme}://127.0.0.1:0' ], backend: {{ rpc: {{}}, \
             commands: {{ rate: 1/s }} }} }}\nprovision: {{}}\nfleet: [ {{ count: 10, {keys} streams: [ {streams} ] }} ]\n"
        );
        read(&text, &[])
    };
    let observer = fleet("coap", "", "{ kind: command }");
    let observer = observer.unwrap_or_else(|problems| panic!("{problems}"));
    assert!(observer.warnings.is_empty(), "{:?}", observer.warnings);
    assert!(fleet("coaps", "sockets: shared,", "{ kind: command }").is_ok());
    for (keys, streams, wanted) in [
        (
            "sockets: shared,",
            "{ kind: command }",
            "devices that share a socket cannot observe their commands yet",
        ),
        (
            "",
            "{ kind: command }, { kind: command-query, every: 5s }",
            "a device of thingsboard asks for nothing and subscribes to nothing",
        ),
    ] {
        let problems = fleet("coap", keys, streams).unwrap_err().to_string();
        assert!(problems.contains(wanted), "{problems}");
    }
}

#[test]
fn messages_that_thingsboard_never_takes_are_warned_of() {
    let of = |platform: &str, template: &str| {
        let stream =
            format!("{{ rate: 1/s, carrier: none, payload: {{ template: '{template}' }} }}");
        let warnings = board(platform, &stream).warnings;
        let found = warnings.into_iter().map(|warning| warning.what);
        found.collect::<Vec<_>>()
    };
    for (template, what) in [
        ("t=${seq}", "refuses other bytes"),
        ("${seq}", "refuses other bytes"),
        (r#""${seq}""#, "refuses other bytes"),
        ("[ ]", "list without points"),
    ] {
        for platform in [REAL, EMBEDDED] {
            let found = of(platform, template);
            let is_said = matches!(&found[..], [only] if only.contains(what));
            assert!(is_said, "{template}: {found:?}");
        }
    }
    for lenient in ["{a:${seq}}", r#"{"a":${seq},}"#] {
        assert_eq!(of(REAL, lenient), [""; 0]);
        let found = of(EMBEDDED, lenient);
        let is_said = matches!(&found[..], [only] if only.contains("is no JSON"));
        assert!(is_said, "{lenient}: {found:?}");
    }
}

#[test]
fn a_topic_that_thingsboard_does_not_have_is_warned_of() {
    for topic in ["muster/${id}/t", "v1/devices/me/telemetri", "telemetry"] {
        let found = warned(&format!("{{ rate: 1/s, topic: '{topic}' }}"));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("is no topic of thingsboard"), "{found:?}");
    }
    for topic in [
        "v2/t/j",
        "v1/devices/me/attributes",
        "v2/fw/request/0/chunk/1",
    ] {
        assert_eq!(
            warned(&format!("{{ rate: 1/s, topic: '{topic}' }}")),
            [""; 0],
            "{topic}"
        );
    }
}

#[test]
fn the_gateway_of_sap_takes_the_published_time_for_a_message() {
    let service_time = |keys: &str| {
        let text = format!(
            "name: t\nplatform: {{ kind: gateway, {keys} }}\nfleet: [ {{ count: 1, streams: [ {{ rate: 1/s }} ] }} ]\n"
        );
        let PlatformKind::Gateway { behaviour, .. } = plan(&text).platform.kind else {
            panic!("no gateway")
        };
        behaviour.service_time
    };
    let of = |us| Some(ServiceTime::Fixed(Micros(us)));
    assert_eq!(service_time("dialect: sap-edge"), of(2_000));
    assert_eq!(
        service_time("dialect: sap-edge, behaviour: { drop: 1 }"),
        of(2_000)
    );
    assert_eq!(
        service_time("dialect: sap-edge, behaviour: { service-time: 0s }"),
        of(0)
    );
    assert_eq!(service_time("dialect: mqtt"), None);
}

/// A p99 needs 1,000 messages, and a step has twice that: of the slow stream a tenth of the load.
#[test]
fn a_step_of_a_search_has_the_messages_that_percentiles_need() {
    let of = |find| {
        plan(
            "name: t\nfleet:\n  - name: f\n    count: 10\n    connect: { rate: 4/s }\n    streams:\n      \
             - { name: fast, rate: 90/s }\n      - { name: slow, rate: 10/s, slo: { response: { p90: \"<= 1s\" } } }\n\
             slo: { response: { p99: \"<= 1s\" } }\n",
        )
        .step_needs(find)
    };
    let needs = |load_seconds, seconds| StepNeeds {
        load_seconds,
        hold: Micros::from_secs(seconds),
    };
    assert_eq!(of(Dimension::Rate), needs(2_000.0, 0));
    assert_eq!(of(Dimension::Devices), needs(200.0, 0));
    assert_eq!(of(Dimension::Payload), needs(0.0, 20));
    assert_eq!(of(Dimension::Connects), needs(2_000.0, 0));
}

#[test]
fn every_misbehaviour_is_read() {
    let text = "name: t\nfleet: [ {} ]\nplatform:\n  behaviour:\n    service-time: { exponential: 2ms }\n    \
                capacity: { rate: 5000/s, service: exponential }\n    full: block\n    lose-after-accept: 37\n    \
                answer-late: { count: 3, by: 5s }\n    reject: { code: 135, share: 10% }\n    \
                stall: { at: 20s, for: 3s }\n    close-links: { at: 30s, share: 10% }\n";
    let plan = plan(text);
    let PlatformKind::Gateway { behaviour, .. } = plan.platform.kind else {
        panic!("no gateway")
    };
    assert_eq!(
        behaviour.service_time,
        Some(ServiceTime::Exponential(Micros(2_000)))
    );
    let rate = Rate::per_second(5_000.0).unwrap();
    let capacity = Capacity {
        rate,
        service: Service::Exponential,
        queue: 20_000,
        full: Full::Block,
    };
    assert_eq!(behaviour.capacity, Some(capacity));
    assert_eq!(behaviour.lose_after_accept, 37);
    assert_eq!(behaviour.answer_late.by, Micros::from_secs(5));
    assert_eq!(behaviour.reject.map(|reject| reject.code), Some(135));
    assert_eq!(
        behaviour.reject.map(|reject| reject.amount),
        Some(Amount::Share(0.1))
    );
    assert_eq!(
        behaviour.stall.map(|stall| stall.lasts),
        Some(Micros::from_secs(3))
    );
    assert!(behaviour.close_links.is_some());
}

#[test]
fn what_is_refused_but_delivered_is_delivered_at_once_or_late() {
    for (written, by) in [
        ("5", Micros::ZERO),
        ("{ count: 5, by: 3s }", Micros::from_secs(3)),
    ] {
        let text = format!(
            "name: t\nfleet: [ {{}} ]\nplatform: {{ behaviour: {{ reject-but-deliver: {written} }} }}\n"
        );
        let PlatformKind::Gateway { behaviour, .. } = plan(&text).platform.kind else {
            panic!("no gateway")
        };
        assert_eq!(behaviour.reject_but_deliver, Delayed { count: 5, by });
    }
}

#[test]
fn plain_subscribers_are_accounts_of_their_own_and_a_group_is_one() {
    let backends = |keys: &str| {
        plan(&format!(
            "name: t\nfleet: [ {{}} ]\nplatform: {{ backend: {{ consumers: 3, {keys} }} }}\n"
        ))
        .backends
    };
    let plain = backends("qos: 1");
    assert_eq!(
        plain.iter().map(|b| &*b.name).collect::<Vec<_>>(),
        ["backend-1", "backend-2", "backend-3"]
    );
    assert!(plain.iter().all(|backend| backend.consumers == 1));
    let group = backends("shared: g, filter: \"a/+/b\"");
    assert_eq!((group.len(), group[0].consumers), (1, 3));
    let mqtt = group[0].mqtt().unwrap();
    assert_eq!(
        mqtt.subscription(group[0].shared.as_deref()),
        "$share/g/a/+/b"
    );
}

#[test]
fn a_webhook_has_a_proof_and_the_way_of_its_messages() {
    let of = |webhook: &str, backend: &str| {
        let plan = plan(&format!(
            "name: t\nplatform: {{ kind: mqtt, devices: [ 'mqtts://b' ], tls: {{ insecure: true }}, backend: {{ \
             webhook: {{ listen: 'http://127.0.0.1:8088/hook'{webhook} }}{backend} }} }}\n\
             fleet: [ {{ streams: [ {{ rate: 1/s }} ] }} ]\n"
        ));
        plan.backends.into_iter().next().unwrap()
    };
    let backend = of("", "");
    assert_eq!(backend.endpoint.to_string(), "http://127.0.0.1:8088/hook");
    assert_eq!(backend.webhook(), Some(&WebhookNorthbound::default()));
    assert!(!backend.tls.insecure, "that of the devices is not its own");
    let backend = of(", secret: s, topic-header: X-Topic, batches: true", "");
    let webhook = backend.webhook().unwrap();
    assert_eq!(
        webhook.proof,
        Some(WebhookProof::Secret("authorization".to_owned()))
    );
    assert_eq!(
        (webhook.topic.as_deref(), webhook.batches),
        (Some("x-topic"), true)
    );
    assert_eq!(backend.password.unwrap().expose(), b"s");
    let backend = of(", secret: s, secret-header: X-Key", "");
    let named = Some(WebhookProof::Secret("x-key".to_owned()));
    assert_eq!(backend.webhook().unwrap().proof, named);
    let backend = of("", ", user: me, password: p");
    assert_eq!(backend.webhook().unwrap().proof, Some(WebhookProof::Basic));
}

/// Law: backends that only issue commands come behind those with accounts of arrivals, and stamp no message.
#[test]
fn calls_have_the_address_and_login_of_provisioning_and_no_account_of_arrivals() {
    let of = |backend: &str| {
        plan(&format!(
            "name: t\nplatform: {{ kind: thingsboard, devices: [ 'mqtt://b' ], backend: {backend} }}\n\
             provision: {{ url: 'https://api/tb', user: me, password: '${{env:PASSWORD}}' }}\n\
             fleet: [ {{ streams: [ {{ rate: 1/s }}, {{ kind: command }} ] }} ]\n"
        ))
    };
    let calls = "rpc: { pending: 7, api: plugins }, commands: { rate: 1/s }";
    let alone = of(&format!("{{ {calls} }}"));
    let backend = &alone.backends[0];
    assert_eq!(backend.endpoint.to_string(), "https://api:443/tb");
    assert_eq!(backend.user.as_ref().unwrap().expose(), "me");
    assert_eq!(backend.password.as_ref().unwrap().expose(), b"hunter2");
    let wanted = RpcNorthbound {
        pending: 7,
        timeout: Micros::from_secs(10),
        is_old: true,
    };
    assert_eq!((backend.rpc(), alone.accounts()), (Some(&wanted), 0));
    assert_eq!(alone.fleets[0].streams[0].carrier, Carrier::None);
    let both = of(&format!(
        "[ {{ {calls}, user: you, password: p }}, {{ url: 'mqtt://n' }} ]"
    ));
    let kinds = both.backends.iter().map(|it| it.rpc().is_some());
    assert_eq!(
        (kinds.collect::<Vec<_>>(), both.accounts()),
        (vec![false, true], 1)
    );
    assert_eq!(both.backends[1].user.as_ref().unwrap().expose(), "you");
    assert_eq!(both.fleets[0].streams[0].carrier, Carrier::Payload);
}

#[test]
fn kafka_has_servers_and_topics_in_place_of_a_filter() {
    let text = "name: t\nfleet: [ { } ]\nplatform: { kind: mqtt, devices: [ 'mqtt://b' ], backend: { \
                url: 'kafka://a,b:9093', consumers: 3, shared: g/1, topics: { readings: 6, x.y: 1 } } }\n";
    let backends = plan(text).backends;
    let kafka = backends[0].kafka().unwrap();
    assert_eq!(kafka.bootstrap(), "a:9092,b:9093");
    assert_eq!(backends[0].endpoint.to_string(), "kafka://a:9092");
    assert_eq!(backends[0].shared.as_deref(), Some("g/1"));
    let topics = kafka.topics.iter();
    let topics: Vec<_> = topics.map(|it| (&*it.name, it.partitions)).collect();
    assert_eq!(topics, [("readings", 6), ("x.y", 1)]);
    assert_eq!((backends.len(), backends[0].mqtt()), (1, None));
}

#[test]
fn amqp_has_addresses_and_credit_and_its_consumers_share_them() {
    let text = |keys: &str| {
        format!(
            "name: t\nfleet: [ {{ }} ]\nplatform: {{ kind: mqtt, devices: [ 'mqtt://b' ], backend: {{ url: 'amqp://a', \
             consumers: 3, addresses: [ r, 'a::q/1' ]{keys} }} }}\n"
        )
    };
    let backends = plan(&text("")).backends;
    let amqp = backends[0].amqp().unwrap();
    assert_eq!(backends[0].endpoint.to_string(), "amqp://a:5672");
    assert_eq!((backends.len(), backends[0].consumers), (1, 3));
    let names: Vec<_> = amqp
        .addresses
        .iter()
        .map(|it| (&*it.name, &*it.surface))
        .collect();
    assert_eq!(names, [("r", ""), ("a::q/1", "")]);
    assert_eq!((amqp.credit, amqp.login), (1_000, AmqpLogin::Anonymous));
    let backends = plan(&text(", credit: 7, user: u, password: p")).backends;
    let amqp = backends[0].amqp().unwrap();
    assert_eq!((amqp.credit, amqp.login), (7, AmqpLogin::Plain));
}

#[test]
fn addresses_of_hono_follow_from_the_tenants() {
    let text = "name: t\nplatform: { kind: hono, devices: [ 'coap://127.0.0.1' ], backend: { url: 'amqps://a' } }\n\
                fleet: [ { name: a, tenant: t1, streams: [] }, { name: b, tenant: t1, streams: [] } ]\n";
    let backends = plan(text).backends;
    assert_eq!(backends[0].endpoint.to_string(), "amqps://a:5671");
    let addresses = backends[0].amqp().unwrap().addresses.iter();
    let addresses: Vec<_> = addresses.map(|it| (&*it.name, &*it.surface)).collect();
    assert_eq!(
        addresses,
        [("telemetry/t1", "telemetry/t1/"), ("event/t1", "event/t1/")]
    );
}

/// Checks that missing topics are created as documented, and each once for a tenant.
#[test]
fn topics_of_hono_have_the_documented_partitions_unless_the_scenario_says_others() {
    let topics = |keys: &str| -> Vec<(String, u32)> {
        let text = format!(
            "name: t\nplatform: {{ kind: hono, devices: [ 'coap://127.0.0.1' ], backend: {{ url: 'kafka://a'{keys} \
             }} }}\nfleet: [ {{ name: a, tenant: t1, streams: [] }}, {{ name: b, tenant: t1, streams: [] }} ]\n"
        );
        let backends = plan(&text).backends;
        let topics = backends[0].kafka().unwrap().topics.iter();
        topics.map(|it| (it.name.clone(), it.partitions)).collect()
    };
    let named = |name: &str, partitions| (format!("hono.{name}"), partitions);
    let mut expected = [
        named("telemetry.t1", 10),
        named("event.t1", 4),
        named("command_response.t1", 2),
        named("command.t1", 3),
        named("notification.registry-tenant", 4),
        named("notification.registry-device", 4),
    ];
    assert_eq!(topics(""), expected);
    for (name, partitions) in &expected {
        let row = format!("| `{}` | {partitions} |", name.replace("t1", "<tenant>"));
        assert!(
            include_str!("../../../docs/kafka.md").contains(&row),
            "{row}"
        );
    }
    (expected[0].1, expected[3].1) = (3, 7);
    assert_eq!(topics(", topics: { telemetry: 3, command: 7 }"), expected);
}

#[test]
fn consumers_speak_the_newest_version_of_the_devices() {
    let spoken = |fleets: &str, keys: &str| {
        let text = format!("name: t\nfleet: [ {fleets} ]\nplatform: {{ backend: {{ {keys} }} }}\n");
        plan(&text).backends[0].mqtt().unwrap().version
    };
    let old = "{ name: a, client: { version: 3.1.1 } }";
    assert_eq!(spoken(old, ""), Version::V311);
    assert_eq!(spoken(old, "version: 5"), Version::V5);
    assert_eq!(spoken(&format!("{old}, {{ name: b }}"), ""), Version::V5);
}

#[test]
fn secrets_are_resolved_for_the_wire_and_masked_for_people() {
    let text = "name: t\nplatform:\n  kind: mqtt\n  devices: [ \"mqtt://h\" ]\n  \
                about: { file: values.yaml }\n  \
                backend: { user: app, password: \"${file:secret.txt}\" }\n\
                fleet:\n- { tenant: t1, credential: { kind: password, user: \"${id}@${tenant}\", secret: \"${env:ODD}-${index}\" } }\n\
                - { name: b, credential: { kind: password, secret: hunter2 }, \
                client: { authentication: { method: m, data: hunter3, answer: \"${env:ODD}${index}\", echo: true, again: 90s } } }\n";
    let plan = plan(text);
    let password = plan.backends[0].password.as_ref().unwrap();
    assert_eq!(password.expose(), b"from-file");
    let Credential::Password { user, secret } = &plan.fleets[0].credential else {
        panic!("none")
    };
    assert_eq!(user.source(), "${id}@${tenant}");
    assert_eq!(
        secret.expose().template().unwrap().source(),
        "a$${id}b-${index}"
    );
    let authentication = plan.fleets[1]
        .client
        .mqtt()
        .unwrap()
        .authentication
        .as_ref()
        .unwrap();
    assert_eq!(source(authentication.data.expose()), "hunter3");
    assert_eq!(source(authentication.answer.expose()), "a$${id}b${index}");
    assert_eq!(authentication.again, Some(Micros::from_secs(90)));
    let shown = format!("{plan:?}{}", serde_json::to_string(&plan).unwrap());
    for secret in ["from-file", "hunter2", "hunter3", "a$${id}b"] {
        assert!(!shown.contains(secret), "{secret} is shown");
    }
    assert!(plan.resolved.contains("${file:secret.txt}"));
    let about = ("values.yaml".to_owned(), "replicas: 3\n".to_owned());
    assert_eq!(plan.platform.about, Some(about));
    let worker: Plan = postcard::from_bytes(&postcard::to_stdvec(&plan).unwrap()).unwrap();
    assert_eq!(worker, plan);
}

#[test]
fn slos_have_their_scopes_and_the_rest_its_bounds() {
    let text = "name: t\nslo: { loss: \"<= 1%\", stable: true }\ncold: { first-message: true }\n\
                stop-if: { failure-ratio: \"> 20% for 10s\" }\nvalidity: { lateness-p99: 5ms }\n\
                fleet:\n- name: a\n  slo: { connected: \">= 99%\" }\n  streams:\n  \
                - { rate: 1000/s, slo: { response: { p99: 250ms, p99.9: \"<= 1s\" } } }\n";
    let plan = plan(text);
    let scopes: Vec<String> = plan
        .rules
        .slos
        .iter()
        .map(|slo| slo.scope.to_string())
        .collect();
    let defaults = ["run"; 3];
    let named = ["run", "run", "a", "a/telemetry", "a/telemetry"];
    assert_eq!(scopes, [&defaults[..], &named[..]].concat());
    let is_named = plan.rules.slos.iter().map(|slo| slo.named);
    assert!(is_named.eq([[false; 3].as_slice(), &[true; 5]].concat()));
    assert!(matches!(plan.rules.slos[6].scope, Scope::Stream { .. }));
    assert_eq!(plan.rules.stop_if[0].lasting, Micros::from_secs(10));
    assert_eq!(plan.rules.validity.lateness_p99, Micros::from_millis(5));
    assert_eq!(plan.cold, Cold::FirstMessage);
}

/// Steps as (from, until, rate, rate at the end, is a hold), in seconds after a begin at 100 s.
fn steps(shapes: &[&str], measure: &str) -> Vec<(u64, u64, f64, f64, bool)> {
    let streams = (0..).zip(shapes);
    let streams = streams.map(|(at, shape)| format!("- {{ name: s{at}, {shape} }}\n"));
    let text = format!(
        "name: t\nphases: {{ measure: {measure} }}\nfleet:\n- name: a\n  streams:\n  {}",
        streams.collect::<Vec<_>>().join("  ")
    );
    let begin = Micros::from_secs(100);
    let steps = plan(&text).steps(begin).into_iter();
    steps
        .map(|step| {
            let (from, until) = ((step.from - begin).second(), (step.until - begin).second());
            (
                from.into(),
                until.into(),
                step.rate,
                step.rate_until,
                step.is_hold,
            )
        })
        .collect()
}

#[test]
fn stages_divide_the_measured_phase_into_steps_of_whole_seconds() {
    let stages =
        "shape: { stages: [ { to: 100/s, hold: 10s }, { to: 200/s, over: 4s, hold: 5s } ] }";
    let expected = [
        (0, 10, 100.0, 100.0, true),
        (10, 14, 100.0, 200.0, false),
        (14, 30, 200.0, 200.0, true),
    ];
    assert_eq!(steps(&[stages], "30s"), expected);
    assert_eq!(
        steps(&[stages], "12s"),
        [expected[0], (10, 12, 100.0, 150.0, false)]
    );
    assert_eq!(steps(&["rate: 100/s"], "30s"), []);
    let one = "shape: { stages: [ { to: 100/s, hold: 10s } ] }";
    assert_eq!(steps(&[one], "30s"), [], "the last stage goes on");
}

#[test]
fn a_second_in_which_a_rate_changes_belongs_to_no_hold() {
    let stages = "shape: { stages: [ { to: 100/s, hold: 2500ms }, { to: 200/s, hold: 3s } ] }";
    let expected = [
        (0, 2, 100.0, 100.0, true),
        (2, 3, 100.0, 200.0, false),
        (3, 9, 200.0, 200.0, true),
    ];
    assert_eq!(steps(&[stages], "9s"), expected);
}

#[test]
fn streams_with_stages_have_their_steps_in_common() {
    let one = "shape: { stages: [ { to: 100/s, hold: 4s }, { to: 200/s, hold: 6s } ] }";
    let other = "shape: { stages: [ { to: 10/s, hold: 2s }, { to: 20/s, hold: 8s } ] }";
    let expected = [
        (0, 2, 110.0, 110.0, true),
        (2, 4, 120.0, 120.0, true),
        (4, 10, 220.0, 220.0, true),
    ];
    assert_eq!(steps(&[one, "rate: 7/s", other], "10s"), expected);
}

/// Warnings as (path, line, problem).
fn warnings(text: &str) -> Vec<(String, u32, String)> {
    let warnings = plan(text).warnings.into_iter();
    warnings.map(|of| (of.path, of.line, of.what)).collect()
}

#[test]
fn stages_that_the_run_does_not_reach_are_warned_of() {
    let warned = |measure: &str, stages: &str| {
        let mut found = warnings(&format!(
            "name: t\nphases: {{ measure: {measure} }}\nfleet:\n- streams:\n  - shape:\n      stages:\n{stages}"
        ));
        found.retain(|(path, ..)| path.contains("stages"));
        found
    };
    let stages = "      - { to: 20/s, hold: 1s }\n      - { to: 50/s, over: 2s, hold: 60s }\n      \
                  - { to: 90/s, hold: 1s }\n";
    let at = |stage: usize, what: &str| {
        let path = format!("fleet[0].streams[0].shape.stages[{stage}]");
        (path, stage as u32 + 7, what.to_owned())
    };
    let late = "this stage begins 63 s after the warm-up, and the measured phase lasts 4 s";
    assert_eq!(warned("4s", stages), [at(2, late)]);
    let late =
        "the hold of this stage begins 3 s after the warm-up, and the measured phase lasts 2 s";
    assert_eq!(warned("2s", stages), [at(1, late)]);
    let late = "this stage begins 1 s after the warm-up, and the measured phase lasts 1 s";
    assert_eq!(warned("1s", stages), [at(1, late)]);
    assert_eq!(warned("64s", stages), []);
    let longer = "the last stage holds for 7 s, to the end of the measured phase";
    assert_eq!(warned("70s", stages), [at(2, longer)]);
    let open = "      - { to: 20/s, over: 1s }\n";
    assert_eq!(warned("70s", open), [], "nothing is said of a hold");
}

#[test]
fn a_condition_that_the_run_is_too_short_for_is_warned_of() {
    let warned = |measure: &str, stop: &str| {
        let found = warnings(&format!(
            "name: t\nphases: {{ measure: {measure} }}\nstop-if: {{ {stop} }}\nfleet:\n- streams:\n  \
             - {{ qos: 1, shape: {{ stages: [ {{ to: 10/s, hold: 10s }}, {{ to: 20/s, hold: 20s }} ] }} }}\n"
        ));
        let found = found.into_iter();
        let about = found.filter(|(path, ..)| path.starts_with("stop-if"));
        about
            .map(|(_, line, what)| (line, what))
            .collect::<Vec<_>>()
    };
    let failures = |lasting: u32| format!("failure-ratio: '> 20% for {lasting}s'");
    let slow = |lasting: u32| format!("response: 'p99 > 500ms for {lasting}s'");
    assert_eq!(warned("30s", &failures(30)), []);
    let what = "this condition ends no run: it needs 31 s, and the measured phase has 30 s";
    assert_eq!(warned("30s", &failures(31)), [(3, what.to_owned())]);
    assert_eq!(warned("30s", &slow(20)), []);
    let what = "this condition ends no run: it needs 21 s, and the longest step has 20 s";
    assert_eq!(warned("30s", &slow(21)), [(3, what.to_owned())]);
}

#[test]
fn a_latency_that_stops_a_run_is_counted_exactly() {
    let text = |stop: &str| {
        format!(
            "name: t\nstop-if: {{ {stop} }}\nfleet:\n- name: a\n  streams:\n  - {{ rate: 1000/s, qos: 1 }}\n"
        )
    };
    let rules = plan(&text("response: \"p99.9 > 70ms for 3s\"")).rules;
    let of = |latency| rules.thresholds(latency, FleetId(0), StreamId(0));
    assert_eq!(of(Latency::Response), [Micros::from_millis(70)]);
    assert_eq!(of(Latency::EndToEnd), []);
    assert_eq!(rules.stop_if[0].lasting, Micros::from_secs(3));
    let unanswered = text("response: \"p99 > 70ms for 3s\"").replace("qos: 1", "qos: 0");
    let problems = read(&unanswered, &[]).unwrap_err().to_string();
    assert!(problems.contains("no stream has answers"), "{problems}");
}

#[test]
fn any_switches_a_rule_off_at_the_top_in_a_fleet_and_in_a_stream() {
    let text = "name: t\nslo: { failure-ratio: any, service: any, stable: any }\n\
                fleet:\n- name: a\n  slo: { disconnects: any, response: { p99: any } }\n  streams:\n  \
                - { rate: 1000/s, slo: { loss: any, duplicates: any } }\n  \
                - { name: b, rate: 1000/s }\n";
    let rules = plan(text).rules;
    let off = rules.switched_off.iter();
    let off: Vec<String> = off
        .map(|off| format!("{} {}", off.scope, off.rule))
        .collect();
    let expected = [
        "run failure-ratio",
        "run service",
        "run stable",
        "a disconnects",
        "a response p99",
        "a/telemetry loss",
        "a/telemetry duplicates",
    ];
    assert_eq!(off, expected);
    let left = rules.slos.iter().map(|slo| {
        let except: Vec<String> = slo.except.iter().map(Scope::to_string).collect();
        format!("{} without {}", slo.bound.rule(), except.join(", "))
    });
    let expected = [
        "loss without a/telemetry",
        "connected without ",
        "disconnects without a",
    ];
    assert_eq!(left.collect::<Vec<_>>(), expected);
    let placed = [(FleetId(0), StreamId(0)), (FleetId(0), StreamId(1))];
    assert_eq!(rules.groups(&placed), [[StreamId(1)]]);
}

#[test]
fn what_is_likely_a_slip_is_a_warning() {
    let warned = |keys: &str, what: &str| {
        let fleet = "fleet: [ { streams: [ { rate: 5/s, timeout: 20s } ] } ]";
        let fleet = if keys.contains("fleet:") { "" } else { fleet };
        let plan = plan(&format!("name: t\n{fleet}\n{keys}\n"));
        let found: Vec<&str> = plan.warnings.iter().map(|warning| &*warning.what).collect();
        assert!(
            found.len() == 1 && found[0].contains(what),
            "{keys}: {found:?}"
        );
    };
    warned(
        "fleet: [ { streams: [ { rate: 1/10s, phase: together } ] } ]\n\
         phases: { warm-up: 1s, measure: 3s }",
        "not one message is due while measuring",
    );
    warned(
        "fleet: [ { streams: [ { shape: { replay: times.csv } } ] } ]\n\
         phases: { warm-up: 0s, measure: 1s }",
        "2 of 3 instants lie beyond the measured phase of 1 s",
    );
    warned(
        "fleet: [ { streams: [ { rate: 5/s, carrier: order, payload: { file: marked.json } } ] } ]",
        "marked.json begins with a byte-order mark",
    );
    warned(
        "phases: { settle: 10s }",
        "less than the longest time-out of 20 s",
    );
    warned(
        "slo: { response: { p99: 1s } }",
        "p99 needs 1000 messages, and only 150 are due",
    );
    warned(
        "slo: { stable: true }\nphases: { measure: 20s }",
        "only 20 are measured",
    );
    warned(
        "slo: { loss: 5 }\nfleet: [ { slo: { loss: 3 }, streams: [ { rate: 5/s, timeout: 20s } ] } ]",
        "every stream here has its own rule `loss`",
    );
    warned(
        "platform: { backend: { filter: \"other/#\" } }",
        "does not take the topics",
    );
    warned(
        "platform: { behaviour: { drop: 5000 } }",
        "only 175 messages are due",
    );
}

#[test]
fn links_over_dtls_that_come_back_in_full_are_warned_of() {
    let found = |scheme: &str, tls: &str, fleet: &str| {
        let text = format!(
            "name: t\nplatform: {{ kind: hono, devices: [ '{scheme}://h' ]{tls} }}\nfleet: [ {{ {fleet}, tenant: t1, \
             streams: [ {{ rate: 5/s }} ] }} ]\n"
        );
        let warned = plan(&text).warnings.into_iter();
        let warned =
            warned.filter(|warning| warning.what.contains("every reconnect is a full handshake"));
        warned
            .map(|warning| warning.to_string())
            .collect::<Vec<_>>()
    };
    let key = ", credential: { kind: psk, user: '${id}@${tenant}', secret: k }";
    let comes_back = format!("connect: {{ lifetime: 10s }}{key}");
    let offline = format!("offline: {{ at: 1s, for: 5s }}{key}");
    for fleet in [&comes_back, &offline] {
        let warned = found("coaps", "", fleet);
        assert_eq!(warned.len(), 1, "{fleet}: {warned:?}");
        assert!(
            warned[0].contains("`tls: { session-resumption: true }`"),
            "{warned:?}"
        );
        for told in ["true", "false"] {
            let told = format!(", tls: {{ session-resumption: {told} }}");
            assert_eq!(found("coaps", &told, fleet), [""; 0]);
        }
    }
    assert_eq!(found("coaps", "", &format!("count: 2{key}")), [""; 0]);
    assert_eq!(found("coap", "", "connect: { lifetime: 10s }"), [""; 0]);
}

#[test]
fn abrupt_ends_late_wills_and_source_addresses_are_read() {
    let text = "name: t\nplatform: { addresses: all }\nfleet:\n- client: { session-expiry: 10s, will: { topic: \"w/${id}\", \
                payload: gone, delay: 5s } }\n  connect: { from: [ \"127.0.0.2\", \"::1\" ] }\n  \
                offline: { at: 1s, for: 2s, abrupt: true }\n  streams: [ { rate: 1/s } ]\n";
    let plan = plan(text);
    let fleet = &plan.fleets[0];
    let will = fleet.client.mqtt().unwrap().will.as_ref().unwrap();
    assert_eq!(will.delay_s, 5);
    assert_eq!(fleet.connect.from.len(), 2);
    assert!(fleet.offline.unwrap().is_abrupt);
    assert!(plan.platform.uses_all_addresses);
    assert_eq!(needs(&plan).ports[0].from, Some(2));
    let early = text.replace("session-expiry: 10s", "session-expiry: 4s");
    let warned = self::plan(&early).warnings;
    assert!(
        warned[0].what.contains("when the session ends, after 4"),
        "{warned:?}"
    );
}

#[test]
fn old_mqtt_and_wills_are_read() {
    let text = "name: t\nfleet:\n- client: { version: 3.1.1, clean-start: false, keep-alive: 0s, \
                will: { topic: \"w/${id}\", payload: gone, qos: 1 } }\n  data: meters.csv\n  count: 3\n  \
                streams: [ { rate: 1/s, topic: \"${zone}/${serial}\" } ]\n";
    let plan = plan(text);
    let fleet = &plan.fleets[0];
    let client = fleet.client.mqtt().unwrap();
    assert_eq!((client.version, client.clean_start), (Version::V311, false));
    assert_eq!(
        client.will.as_ref().map(|will| will.qos),
        Some(Qos::AtLeastOnce)
    );
    assert_eq!(fleet.data.as_ref().map(|table| table.len()), Some(3));
    assert_eq!(plan.backends[0].mqtt().unwrap().filter, "#");
}

#[test]
fn overrides_win_and_are_checked_like_the_file() {
    let text =
        "name: t\nfleet:\n- { name: a, streams: [ { name: s, rate: 1/s } ] }\n- { name: b }\n";
    let sets = [
        "fleet.a.streams.s.rate=9/s",
        "fleet[1].count=4",
        "seed=7",
        "labels.build=x",
        "phases.measure=1m",
    ];
    let plan = read(text, &sets).unwrap();
    assert_eq!(plan.streams().next().unwrap().1.schedule.rate.get(), 9.0);
    assert_eq!((plan.devices(), plan.seed), (5, 7));
    assert_eq!(plan.labels["build"], "x");
    let problems = read(text, &["fleet.a.conut=5"]).unwrap_err();
    insta::assert_snapshot!(problems, @"
    error: `conut` is no key here
     --> --set
      |
    1 | fleet.a.conut=5
      | ^^^^^^^^^^^^^
      = key: fleet[0].conut
      = help: did you mean `count`?

    1 problem in the scenario
    ");
}

#[test]
fn an_override_that_takes_a_value_away_is_named_and_not_the_file() {
    let text = "name: x\nfleet: [ { name: a, count: 1, streams: [] } ]\n";
    let problems = read(text, &["fleet.count="]).unwrap_err();
    insta::assert_snapshot!(problems, @"
    error: `count` has no value
     --> --set
      |
    1 | fleet.count=
      | ^^^^^^^^^^^
      = key: fleet[0].count
      = help: give it one, or remove the key (number of devices)

    1 problem in the scenario
    ");
}

#[test]
fn an_option_that_takes_a_value_alone_is_named_in_its_problems() {
    let text =
        "name: x\nplatform: { kind: gateway }\nfleet: [ { name: a, count: 1, streams: [] } ]\n";
    let mut overrides = Overrides::new();
    overrides.set_by("--behaviour", "platform.behaviour", "{ dorp: 5 }");
    let source = Source {
        name: "test.yaml",
        text,
    };
    let problems = parse(source, &overrides, &World(BTreeMap::new())).unwrap_err();
    insta::assert_snapshot!(problems, @"
    error: `dorp` is no key here
     --> --behaviour
      |
    1 | { dorp: 5 }
      |   ^^^^
      = key: platform.behaviour.dorp
      = help: did you mean `drop`?

    1 problem in the scenario
    ");
}

#[test]
fn the_scenario_as_run_is_a_scenario_that_runs_the_same() {
    let names = [
        "first",
        "overload",
        "mosquitto-qos2",
        "open-loop-stall",
        "hono-coap",
        "http-api",
        "two-protocols",
    ];
    let texts = names.map(|name| {
        let path = format!("{}/../../scenarios/{name}.yaml", env!("CARGO_MANIFEST_DIR"));
        std::fs::read_to_string(path).unwrap()
    });
    for text in &texts {
        let first = plan(text);
        assert_eq!(plan(&first.resolved), first);
    }
}

#[test]
fn a_device_costs_nothing_in_a_plan() {
    let size = |count: &str| {
        let text = format!(
            "name: t\nfleet: [ {{ count: {count}, streams: [ {{ every: 60s, phase: hash }} ] }} ]\n"
        );
        let plan = plan(&text);
        let bytes = postcard::to_stdvec(&Plan {
            resolved: String::new(),
            ..plan
        })
        .unwrap();
        bytes.len()
    };
    assert!(size("4000000") <= size("10") + 16);
}

#[test]
fn needs_are_worked_out() {
    let text = "name: t\nfleet:\n- { count: 10000, gateway: { devices: 10 }, connect: { rate: 100/s }, streams: [ { rate: 500/s } ] }\n\
                - { name: b, count: 5000, connect: { rate: 1000/s }, streams: [ { shape: { sine: { from: 10/s, to: 90/s, period: 10s } } } ] }\n";
    let needs = needs(&plan(text));
    assert_eq!((needs.links, needs.consumers), (6_000, 1));
    assert_eq!(needs.descriptors, 6_065);
    assert_eq!(needs.gateway_descriptors, 6_065);
    assert_eq!(
        needs
            .ports
            .iter()
            .map(|need| need.connections)
            .collect::<Vec<_>>(),
        [6_001]
    );
    assert_eq!(needs.ports[0].sources(2_000), 4);
    assert_eq!(needs.peak.get(), 590.0);
    assert_eq!(needs.connect, Micros::from_secs(10));
    assert_eq!(needs.processes(20_000), 1);
    assert_eq!(needs.processes(2_064), 4);
    assert!(needs.memory.total() > 100 << 20);
    let more = needs.memory_of_all(20_000, 4) - needs.memory_of_all(20_000, 1);
    assert_eq!(more, 3 * needs.memory.thread);
    let windows = needs.memory.thread;
    assert!((500_000..2_000_000).contains(&windows), "{windows}");
    let third = needs.part(3);
    assert_eq!((third.links, third.ports[0].connections), (2_000, 2_001));
    assert_eq!(third.memory.kernel, needs.memory.kernel.div_ceil(3));
    assert!(third.memory.generator > needs.memory.generator / 3);
    let spread = "name: t\nfleet: [ { count: 7 } ]\nplatform: { kind: mqtt, devices: [ \"mqtt://a\", \"mqtt://b\" ] }\n";
    let needs = muster_scenario::needs(&plan(spread));
    assert_eq!(
        needs
            .ports
            .iter()
            .map(|need| need.connections)
            .collect::<Vec<_>>(),
        [4, 3]
    );
    assert_eq!(needs.gateway_descriptors, 0);
}

proptest! {
    /// No text makes the parser panic, and a scenario cut off anywhere is read or refused.
    #[test]
    fn any_text_is_read_or_refused(text: String, cut in 0usize..6_000, put in "\\PC{0,3}") {
        let _ = read(&text, &[]);
        let complete = include_str!("../../../scenarios/complete.yaml");
        let cut = complete.floor_char_boundary(cut.min(complete.len()));
        let _ = read(&format!("{}{put}{}", &complete[..cut], &complete[cut..]), &[]);
        let _ = read(&complete[..cut], &[]);
    }

    /// No override makes it panic either.
    #[test]
    fn any_override_is_applied_or_refused(path in "[a-z.\\[\\]0-9]{0,20}", value in "\\PC{0,8}") {
        let text = "name: t\nfleet: [ { streams: [ { rate: 1/s } ] } ]\n";
        let _ = read(text, &[&format!("{path}={value}")]);
    }
}

/// A scenario for SAP Edge with these keys under `provision`.
fn provisioned(keys: &str) -> Plan {
    plan(&format!(
        "name: t\nplatform:\n  kind: sap-edge\n  devices: [ 'mqtt://127.0.0.1' ]\n\
         provision: {{ {keys} }}\nfleet: [ {{ count: 2, streams: [ {{ rate: 1/s }} ] }} ]\n"
    ))
}

#[test]
fn provisioning_has_the_documented_defaults() {
    let keys = "url: 'https://h', gateway: edge-1, token: '${file:secret.txt}'";
    let plan = provisioned(keys);
    let provision = plan.provision.unwrap();
    assert_eq!(provision.mode, ProvisionMode::Auto);
    assert!(provision.remove);
    assert_eq!(provision.api.unwrap().to_string(), "https://h");
    let token = Secret::new("from-file".to_owned());
    assert_eq!(provision.credential, Some(ApiCredential::Bearer(token)));
    assert_eq!(provision.rate, Rate::per_second(100.0).unwrap());
    assert_eq!(provision.pending, 8);
    assert_eq!(provision.timeout, Micros::from_secs(30));
    assert_eq!(plan.warnings, []);
}

#[test]
fn passwords_are_hashed_by_sha_512_unless_a_scenario_says_otherwise() {
    let hash = |keys: &str| {
        let hono = plan(&format!(
            "name: t\nplatform: {{ kind: hono, devices: [ 'http://h' ] }}\n\
             provision: {{ url: 'http://127.0.0.1'{keys} }}\nfleet: [ {{ streams: [] }} ]\n"
        ));
        hono.provision.unwrap().password_hash
    };
    assert_eq!(hash(""), PasswordHash::Sha512);
    assert_eq!(hash(", password-hash: sha-512"), PasswordHash::Sha512);
    let bcrypt = ", password-hash: bcrypt";
    assert_eq!(hash(bcrypt), PasswordHash::Bcrypt { cost: 10 });
    let cheap = format!("{bcrypt}, bcrypt-cost: 4");
    assert_eq!(hash(&cheap), PasswordHash::Bcrypt { cost: 4 });
}

#[test]
fn a_token_is_in_no_copy_of_a_plan_that_leaves_the_process() {
    let plan = provisioned("url: 'http://127.0.0.1', gateway: edge-1, token: hunter2");
    assert!(plan.provision.is_some());
    assert!(
        plan.resolved.contains(r#""token":"***""#),
        "{}",
        plan.resolved
    );
    let bytes = postcard::to_stdvec(&plan).unwrap();
    let has_token = bytes.windows(7).any(|part| part == b"hunter2");
    assert!(!has_token);
}

#[test]
fn user_and_password_are_in_no_copy_of_a_plan_that_leaves_the_process() {
    let keys =
        "url: 'http://127.0.0.1', gateway: edge-1, user: harry, password: '${file:secret.txt}'";
    let from_file = provisioned(keys);
    let [user, password] = ["harry", "from-file"].map(|text| Secret::new(text.to_owned()));
    let credential = from_file.provision.unwrap().credential;
    assert_eq!(credential, Some(ApiCredential::Basic { user, password }));
    let plan = provisioned(&keys.replace("'${file:secret.txt}'", "hunter2"));
    assert!(
        plan.resolved.contains(r#""user":"***","password":"***""#),
        "{}",
        plan.resolved
    );
    let bytes = postcard::to_stdvec(&plan).unwrap();
    let has = |secret: &[u8]| bytes.windows(secret.len()).any(|part| part == secret);
    assert!(!has(b"hunter2") && !has(b"harry"));
    assert!(!format!("{plan:?}").contains("hunter2"));
    let there = provisioned("url: 'http://gateway.example', gateway: edge-1, user: u, password: x");
    let warned = &there.warnings[0];
    assert!(
        warned.what.contains("the password crosses the network"),
        "{}",
        warned.what
    );
}

#[test]
fn a_database_is_read_back_without_an_api_and_its_password_leaves_no_process() {
    let board = |mode: &str, read_back: &str| {
        let text = format!(
            "name: t\nplatform: {{ kind: thingsboard, devices: [ 'mqtt://h' ] }}\n\
             provision: {{ mode: {mode}, read-back: {{ {read_back} }} }}\n\
             fleet: [ {{ count: 5, streams: [ {{ rate: 1/s }} ] }} ]\n"
        );
        read(&text, &[])
    };
    let keys = "from: 'postgresql://tb@db.example/thingsboard', password: hunter2";
    let plan = board("none", keys).expect("it can be read");
    assert_eq!(plan.fleets[0].streams[0].carrier, Carrier::Payload);
    assert!(!format!("{plan:?}{}", plan.resolved).contains("hunter2"));
    let bytes = postcard::to_stdvec(&plan).unwrap();
    assert!(!bytes.windows(7).any(|part| part == b"hunter2"));
    let database = plan.provision.unwrap().board.database.unwrap();
    let name = "postgresql://db.example:5432/thingsboard";
    assert_eq!(database.to_string(), name);
    assert_eq!(database.password, Some(Secret::new("hunter2".to_owned())));
    assert_eq!(database.tls.map(|check| check.insecure), Some(false));
    let open = keys.replace("thingsboard'", "thingsboard?sslmode=disable'");
    let warned = board("none", &open).expect("it can be read").warnings;
    assert!(
        warned[0].what.contains("for everybody to read"),
        "{warned:?}"
    );
    for (mode, read_back, what) in [
        ("auto", keys, "`provision` has no `url`"),
        ("none", "devices: 5", "`read-back` has nothing to read"),
        (
            "verify, url: 'http://127.0.0.1', token: x",
            "devices: 5, password: x",
            "`password` has no meaning here",
        ),
        (
            "none",
            "from: 'postgresql://tb:hunter2@h/x'",
            "holds a password",
        ),
        (
            "none",
            "from: 'postgresql://tb@h/x?password=hunter2'",
            "`***@h/x?***` has parameters that have no meaning here",
        ),
        (
            "none",
            "from: 'postgresql://tb@127.0.0.1/x', tls: { insecure: true }",
            "`tls` has no meaning here",
        ),
    ] {
        let refused = board(mode, read_back).expect_err(read_back).to_string();
        assert!(refused.contains(what), "{refused}");
        assert!(!refused.contains("hunter2"), "{refused}");
    }
}

#[test]
fn counters_are_read_where_each_entry_says_and_by_nobody_but_who_starts_the_run() {
    let text = "name: t\nplatform: { kind: hono, devices: [ 'coap://h' ] }\n\
                monitor: [ { name: a, counters: 'http://127.0.0.1:8088/prometheus' }, \
                           { name: b, counters: 'http://[::1]:8088/prometheus' } ]\n\
                fleet: [ { streams: [ { rate: 1/s } ] } ]\n";
    let plan = plan(text);
    let pages = plan.monitor.iter();
    let pages: Vec<String> = pages
        .map(|page| format!("{} {}", page.name, page.counters().expect("a page")))
        .collect();
    let wanted = [
        "a http://127.0.0.1:8088/prometheus",
        "b http://[::1]:8088/prometheus",
    ];
    assert_eq!(pages, wanted);
    let bytes = postcard::to_stdvec(&plan).unwrap();
    let crossed: Plan = postcard::from_bytes(&bytes).unwrap();
    assert_eq!(crossed.monitor, []);
}

#[test]
fn who_asks_for_provisioning_where_there_is_none_hears_so() {
    let warned = |plan: Plan| -> Vec<String> {
        assert_eq!(plan.provision, None);
        plan.warnings
            .into_iter()
            .map(|warning| warning.what)
            .collect()
    };
    let without_url = warned(provisioned("mode: auto"));
    assert_eq!(
        without_url,
        ["nothing is provisioned: `provision` has no `url`"]
    );
    assert_eq!(warned(provisioned("mode: none")), [""; 0]);
    let broker = "name: t\nplatform: { kind: mqtt, devices: [ 'mqtt://127.0.0.1' ] }\n\
                  provision: { mode: auto }\nfleet: [ { streams: [] } ]\n";
    let what = "nothing is provisioned: mqtt has no registry of devices";
    assert_eq!(warned(plan(broker)), [what]);
}

#[test]
fn a_token_in_clear_text_is_warned_of() {
    let there = provisioned("url: 'http://gateway.example', gateway: edge-1, token: x");
    assert!(there.warnings[0].what.contains("for everybody to read"));
    let here = provisioned("url: 'http://127.0.0.1', gateway: edge-1, token: x");
    assert_eq!(here.warnings, []);
}

/// A scenario whose devices speak CoAP, with these keys of the fleet and of its one stream.
fn over_coap(scheme: &str, fleet: &str, stream: &str) -> String {
    format!(
        "name: t\nplatform: {{ kind: hono, devices: [ \"{scheme}://h\" ] }}\nfleet:\n- name: meters\n  \
         count: 100\n  tenant: t1\n  {fleet}\n  streams: [ {{ rate: 10/s, {stream} }} ]\n"
    )
}

#[test]
fn coap_has_the_times_of_its_standard() {
    let plan = plan(&over_coap("coap", "", ""));
    assert_eq!(plan.platform.endpoints[0].to_string(), "coap://h:5683");
    let fleet = &plan.fleets[0];
    let coap = fleet.client.coap().unwrap();
    assert_eq!(coap.client.transmission, Transmission::default());
    assert_eq!((coap.client.nstart, coap.client.obeys_max_age), (1, true));
    assert_eq!(coap.sockets, SocketUse::Own);
    let stream = &fleet.streams[0];
    assert!(stream.is_confirmable);
    assert_eq!(
        (stream.ack, stream.timeout),
        (Ack::Transport, Micros::from_secs(247))
    );
    assert_eq!(stream.topic.source(), "telemetry/${tenant}/${id}");
    assert_eq!(stream.surface.source(), "telemetry/${tenant}/${id}");
    assert_eq!(plan.phases.settle.at_most, Micros::from_secs(250));
}

/// RFC 7252 section 4.4: 65,536 message ids in 247 s are 265 a second, of which a block and the spread of
/// random arrivals are left free.
#[test]
fn sockets_are_shared_as_far_as_message_ids_last() {
    let sockets = |scheme: &str, keys: &str, stream: &str| {
        let text = over_coap(scheme, &format!("sockets: shared\n  {keys}"), stream);
        let text = text.replace("count: 100", "count: 15000");
        let plan = plan(&text.replace("rate: 10/s, rate:", "rate:"));
        let coap = plan.fleets[0].client.coap().cloned().unwrap();
        assert_eq!(plan.device_sockets(), plan.fleets[0].sockets());
        (coap.sockets, plan.device_sockets())
    };
    let (of_few, few) = sockets("coap", "", "rate: 250/s");
    assert_eq!(
        (of_few, few),
        (SocketUse::SharedEndpoint { links: 15_000 }, 1)
    );
    let (of_many, many) = sockets("coap", "", "rate: 5000/s");
    assert_eq!(
        (of_many, many),
        (SocketUse::SharedEndpoint { links: 750 }, 20)
    );
    let shorter = "client: { coap: { exchange-lifetime: 100s } }";
    assert_eq!(sockets("coap", shorter, "rate: 5000/s").1, 8);
    // A body of three blocks takes three ids.
    let blocks = "rate: 5000/s, payload: { size: 2500 }";
    assert_eq!(sockets("coap", "", blocks).1, 58);
    let psk = "credential: { kind: psk, secret: x }";
    let (by_id, _) = sockets("coaps", psk, "rate: 5000/s");
    assert_eq!(by_id, SocketUse::SharedPort { links: 750 });
}

#[test]
fn lifetimes_follow_from_the_other_times_unless_they_are_given() {
    let coap = |keys: &str| {
        let keys = format!("client: {{ coap: {{ {keys} }} }}");
        let plan = plan(&over_coap("coap", &keys, "confirmable: false"));
        let stream = plan.fleets[0].streams[0].clone();
        (
            plan.fleets[0].client.coap().unwrap().client.transmission,
            stream,
        )
    };
    let (derived, stream) = coap("ack-timeout: 1s, ack-random-factor: 1, max-retransmit: 2");
    assert_eq!(derived, Transmission::of(Micros::from_secs(1), 1.0, 2));
    assert_eq!(
        (stream.ack, stream.timeout),
        (Ack::None, derived.non_lifetime)
    );
    assert_eq!(stream.qos, Qos::AtMostOnce);
    let (given, _) = coap("exchange-lifetime: 100s");
    assert_eq!(given.exchange_lifetime, Micros::from_secs(100));
}

#[test]
fn a_shared_key_is_named_by_device_and_tenant_and_is_never_shown() {
    let keys = "credential: { kind: psk, secret: \"${env:PASSWORD}\" }";
    let plan = plan(&over_coap("coaps", keys, "kind: event"));
    let Credential::Psk { identity, secret } = &plan.fleets[0].credential else {
        panic!("a shared key");
    };
    assert_eq!(source(identity), "${id}@${tenant}");
    assert_eq!(source(secret.expose()), "hunter2");
    assert!(!format!("{plan:?}").contains("hunter2"));
    assert_eq!(plan.fleets[0].streams[0].topic.source(), "event");
    assert_eq!(plan.platform.endpoints[0].port, 5684);
}

/// Devices over CoAP that ask for commands, with these keys of `commands` and of the fleet's streams.
fn commanded_over_coap(commands: &str, streams: &str) -> String {
    format!(
        "name: t\nplatform: {{ dialect: hono, devices: [ 'coap://127.0.0.1:0' ], backend: {{ commands: {{ \
         {commands} }} }} }}\nfleet: [ {{ count: 10, streams: [ {streams} ] }} ]\n"
    )
}

#[test]
fn devices_over_coap_ask_for_commands_one_query_at_a_time() {
    let of = |query: &str| {
        let streams = format!("{{ kind: command-query, every: 9s, {query} }}, {{ kind: command }}");
        plan(&commanded_over_coap("to: waiting, mode: two-way", &streams))
    };
    let plan = of("");
    assert_eq!(plan.warnings, []);
    let [query, replies] = &plan.fleets[0].streams[..] else {
        panic!("two streams");
    };
    let ttd = Micros::from_secs(10);
    assert_eq!(query.kind, StreamKind::CommandQuery { ttd });
    assert_eq!(query.timeout, Micros::from_secs(20), "ttd + 10 s");
    assert!(query.is_confirmable && replies.is_confirmable);
    assert_eq!(replies.timeout, Micros::from_secs(247));
    assert_eq!(query.policy, Policy::Shed { in_flight: 1 });
    let queues = of("loop: { in-flight: 1, overflow: queue, bound: 7 }, ttd: 30s");
    let query = &queues.fleets[0].streams[0];
    let queue = Policy::Queue {
        bound: 7,
        in_flight: Some(1),
    };
    assert_eq!(query.policy, queue);
    assert_eq!(query.timeout, Micros::from_secs(40));
}

#[test]
fn devices_over_coap_that_never_ask_are_warned_of() {
    let text = commanded_over_coap("rate: 1/s, to: online", "{ rate: 1/s }, { kind: command }");
    let warned = plan(&text).warnings;
    assert_eq!(warned.len(), 1, "{warned:?}");
    assert!(warned[0].what.contains("ask for none"));
    let absent = commanded_over_coap("rate: 1/s, to: absent", "{ rate: 1/s }, { kind: command }");
    assert_eq!(plan(&absent).warnings, []);
}

/// Limits of a Hono as it comes from its installation (`maxPayloadSize`, `max-ttd`).
#[test]
fn what_a_hono_takes_only_if_it_was_told_to_is_warned_of() {
    let text = |platform: &str, size: u32, ttd: &str| {
        format!(
            "name: t\nplatform: {{ {platform}, backend: {{ url: 'kafka://h', commands: {{ to: waiting }} }} }}\n\
             fleet:\n- streams:\n  - {{ rate: 1/s, payload: {{ size: {size} }} }}\n\
             \x20 - {{ kind: command-query, every: 9m, ttd: {ttd} }}\n  - {{ kind: command }}\n"
        )
    };
    let hono = "kind: hono, devices: [ 'coap://h' ]";
    assert_eq!(plan(&text(hono, 2_048, "60s")).warnings, []);
    let warned = plan(&text(hono, 2_049, "61s")).warnings;
    let told = warned.iter().map(|one| (one.line, one.what.as_str()));
    let told: Vec<_> = told.collect();
    let body = "bodies of up to 2049 bytes, and by default Hono's adapter refuses (4.13) what is above 2048";
    let wait = "these devices wait 61 s for a command, and by default Hono ends that after 60 s";
    assert_eq!(told, [(5, body), (6, wait)]);
    let gateway = text(
        "dialect: hono, devices: [ 'coap://127.0.0.1:0' ]",
        2_049,
        "61s",
    );
    let gateway = gateway.replace("url: 'kafka://h', ", "");
    let warned = plan(&gateway).warnings;
    let told: Vec<_> = warned.iter().map(|one| (one.line, &*one.what)).collect();
    let body =
        "bodies of up to 2049 bytes, and the embedded gateway refuses (4.13) what is above 2048";
    let wait =
        "these devices wait 61 s for a command, and the embedded gateway ends that after 60 s";
    assert_eq!(told, [(5, body), (6, wait)]);
    let larger = gateway.replace("dialect: hono", "dialect: hono, max-payload: 2049");
    let warned = plan(&larger).warnings;
    assert_eq!(warned.len(), 1, "{warned:?}");
    let smaller = gateway.replace("dialect: hono", "dialect: hono, max-payload: 2000");
    let warned = plan(&smaller).warnings;
    assert!(warned[0].what.ends_with("what is above 2000"), "{warned:?}");
}

/// The embedded gateway has no registry that says whose an auth-id is.
#[test]
fn devices_that_the_embedded_gateway_knows_by_another_name_are_warned_of() {
    let warned = |id: &str, user: &str, keys: &str| {
        let streams = "{ kind: command-query, every: 9s }, { kind: command }";
        let text = commanded_over_coap("to: waiting", streams);
        let fleet = format!(
            "count: 10, id: '{id}', {keys}\n credential: {{ kind: psk, user: '{user}', secret: x }},"
        );
        let text = text.replace("count: 10,", &fleet);
        plan(&text.replace("coap:", "coaps:")).warnings
    };
    let [other] = &warned("ns:d-${index}", "d-${index}@${tenant}", "")[..] else {
        panic!("one warning");
    };
    assert_eq!(other.line, 4);
    assert!(other.what.contains("is not `ns:d-9`"), "{other:?}");
    assert!(other.help.contains("`id` of the fleet"), "{other:?}");
    assert_eq!(warned("d-${index}", "d-${index}@${tenant}", ""), []);
    // A gateway names its devices itself.
    let gateway = "gateway: { devices: 5 },";
    assert_eq!(warned("ns:d-${index}", "gw@${tenant}", gateway), []);
}

#[test]
fn devices_are_named_by_a_column_and_found_by_their_names() {
    let plan = plan(
        "name: t\nfleet:\n  - { name: a, count: 3, first: 10, data: meters.csv, id: \"SN-${serial}\", \
         gateway: { devices: 2, id: \"gw-${zone}\" } }\n",
    );
    let fleet = &plan.fleets[0];
    for (index, name) in [(10, "SN-1"), (11, "SN-2"), (12, "SN-3")] {
        let mut rendered = String::new();
        fleet.names.render(index, &mut rendered);
        assert_eq!(rendered, name);
        assert_eq!(fleet.names.index_of(name), Some(index));
    }
    assert_eq!(fleet.names.index_of("SN-4"), None);
    // Names (3 of 4 bytes, 10 more each and 4), links (`gw-a`, `gw-c`), and the cells of the table.
    assert_eq!(
        needs(&plan).memory.lists,
        (3 * 14 + 2) + (2 * 14 + 4) + (6 + 6 * 4)
    );
    // A link that is named by a column has the row of its first device.
    let links = fleet.link_names.as_ref().unwrap();
    let mut rendered = String::new();
    links.render(1, &mut rendered);
    assert_eq!(rendered, "gw-c");
    // A plan with a table reaches a worker process whole.
    let bytes = postcard::to_stdvec(&plan).unwrap();
    let back: Plan = postcard::from_bytes(&bytes).unwrap();
    assert_eq!(back, plan);
}

#[test]
fn client_ids_are_the_fleets_own_or_the_servers() {
    let client_id = |client: &str| {
        let text = format!("name: t\nfleet: [ {{ count: 2, client: {client} }} ]\n");
        plan(&text).fleets[0]
            .client
            .mqtt()
            .unwrap()
            .client_id
            .clone()
    };
    assert_eq!(client_id("{}"), ClientId::Name);
    let own = Template::parse("c-${id}").unwrap();
    assert_eq!(client_id("{ id: \"c-${id}\" }"), ClientId::Template(own));
    assert_eq!(client_id("{ id: \"\" }"), ClientId::Assigned);
    assert_eq!(
        client_id("{ id: \"\", version: 3.1.1 }"),
        ClientId::Assigned
    );
    let kept = plan("name: t\nfleet: [ { client: { id: \"\", session-expiry: 1h } } ]\n");
    assert!(kept.warnings[0].what.contains("assigns another client id"));
}

#[test]
fn keys_are_bytes_of_hex_base64_or_a_file() {
    let bytes = |secret: &str, place: u32| {
        let plan = plan(&format!(
            "name: t\nfleet: [ {{ count: 3, first: 1, data: hex.csv, id: \"${{serial}}\", \
             credential: {{ kind: password, secret: {secret} }} }} ]\n"
        ));
        let Credential::Password { secret, .. } = &plan.fleets[0].credential else {
            panic!("a password");
        };
        let directory = directory(&plan);
        let device = DeviceId(place);
        let (mut name, mut bytes) = (String::new(), Vec::new());
        directory.render_name(device, &mut name);
        directory.render_octets(secret.expose(), device, &name, &mut bytes);
        bytes
    };
    assert_eq!(bytes("{ hex: \"${key}\" }", 0), [0, 0xff]);
    assert_eq!(bytes("{ hex: \"${key}\" }", 1), [10]);
    assert_eq!(bytes("{ base64: \"/wA=\" }", 2), [0xff, 0]);
    assert_eq!(bytes("{ file: key.bin }", 0), KEY);
    for (place, key) in [(0, &b"one"[..]), (1, KEY), (2, b"three\n")] {
        assert_eq!(bytes("{ file: \"keys/${index}.bin\" }", place), key);
    }
}

#[test]
fn text_files_are_read_alike_however_they_are_written() {
    let replay = &with_stream("shape: { replay: bom-times.csv }").fleets[0].streams[0].schedule;
    let instants = [500_000, 1_500_000, 2_500_000].map(Micros);
    assert_eq!(replay.shape, Shape::Replay(instants.into()));
    let read = |data: &str, count: u32| {
        plan(&format!(
            "name: t\nfleet: [ {{ count: {count}, data: {data}, id: \"${{dev}}\" }} ]\n"
        ))
    };
    let semicolons = read("semicolon.csv", 3);
    let table = semicolons.fleets[0].data.as_ref().unwrap();
    let cells =
        |row: usize| ["dev", "user", "pass"].map(|column| table.row(row).unwrap().get(column));
    assert_eq!(cells(0), [Some("d1"), Some("u1"), Some("p,1")]);
    assert_eq!(cells(1), [Some("d2"), Some("u2"), Some(" p2")]);
    assert_eq!(cells(2), [Some("d3"), Some("u3"), Some("p3")]);
    let commas = read("blanks.csv", 2);
    let table = commas.fleets[0].data.as_ref().unwrap();
    assert_eq!(table.columns(), ["dev", "user; pass"]);
    assert_eq!(table.row(0).unwrap().get("dev"), Some("d1"));
    let secret = plan(
        "name: t\nfleet: [ { credential: { kind: password, secret: \"${file:bom.txt}\" } } ]\n",
    );
    let Credential::Password { secret, .. } = &secret.fleets[0].credential else {
        panic!("a password");
    };
    assert_eq!(source(secret.expose()), "from-file");
    assert_eq!(plan("\u{feff}name: t\r\nfleet: [ {} ]").name, "t");
}

#[test]
fn short_forms_and_the_environment_stand_anywhere() {
    let plan = plan(
        "name: \"${env:KIND} ${env:COUNT}\"\nlabels: { build: \"${env:COUNT}\" }\n\
         platform: { kind: \"${env:KIND}\", devices: \"MQTT://${env:HOST}:1884\", backend: \"mqtt://${env:HOST}\" }\n\
         fleet: [ { count: \"${env:COUNT}\", streams: [ { rate: 1/10s, topic: \"${env:ODD}/${id}\", \
         payload: { template: '{\"h\":\"${env:HOST}\",\"id\":\"${stamp}\"}' } } ] } ]\n",
    );
    assert_eq!((plan.name.as_str(), plan.devices()), ("mqtt 3", 3));
    assert_eq!(plan.labels["build"], "3");
    assert_eq!(
        plan.platform.endpoints[0].to_string(),
        "mqtt://broker.example:1884"
    );
    assert_eq!(
        plan.backends[0].endpoint.to_string(),
        "mqtt://broker.example:1883"
    );
    let stream = &plan.fleets[0].streams[0];
    assert_eq!(stream.schedule.rate.get(), 0.1);
    // What the environment holds is no variable.
    assert_eq!(stream.topic.source(), "a$${id}b/${id}");
    // The scenario as run shows the references.
    assert!(
        plan.resolved.contains("MQTT://${env:HOST}:1884"),
        "{}",
        plan.resolved
    );
    assert!(
        !plan.resolved.contains("broker.example"),
        "{}",
        plan.resolved
    );
}

#[test]
fn values_in_json_are_escaped() {
    let text = |template: &str, content_type: &str| {
        let stream = format!(
            "rate: 1/s, carrier: none, payload: {{ template: '{template}'{content_type} }}"
        );
        let text = format!(
            "name: t\nplatform: {{ kind: mqtt, devices: 'mqtt://h' }}\n\
             fleet: [ {{ count: 2, data: quotes.csv, streams: [ {{ {stream} }} ] }} ]\n"
        );
        let plan = plan(&text);
        let stream = &plan.fleets[0].streams[0];
        let payload = Payload::compile(&stream.payload).unwrap();
        let directory = directory(&plan);
        let uplink =
            Uplink::new(stream.topic.clone(), &stream.payload, Carrier::None, false).unwrap();
        let all = (0..2).map(|device| {
            let id = MessageId {
                run: RunId(1),
                device: DeviceId(device),
                stream: StreamId(0),
                seq: 0,
            };
            let mut scratch = UplinkScratch::default();
            uplink.render(&directory, &id, Micros(0), &mut scratch);
            String::from_utf8(scratch.payload.clone()).unwrap()
        });
        assert!(payload.is_text());
        all.collect::<Vec<_>>()
    };
    let escaped = [r#"{"v":"a\"b"}"#, r#"{"v":"c\\d"}"#];
    assert_eq!(text(r#"{"v":"${v}"}"#, ""), escaped);
    assert_eq!(text(r#"{"v":"${json:v}"}"#, ""), escaped);
    let lines = text(r#"x "${v}""#, ", content-type: application/x-ndjson+json");
    assert_eq!(lines, [r#"x "a\"b""#, r#"x "c\\d""#]);
    assert_eq!(text(r#"<${v}>"#, ""), [r#"<a"b>"#, r"<c\d>"]);
}

#[test]
fn sizes_below_the_stamp_are_drawn_again_and_said() {
    let plan =
        with_stream("rate: 9/s, payload: { size: { log-normal: { median: 200, p99: 4KiB } } }");
    let [warning] = &plan.warnings[..] else {
        panic!("{:?}", plan.warnings);
    };
    assert_eq!(
        warning.what,
        "4.29 % of these sizes are below the 22 bytes of the stamp and are drawn again"
    );
    let free =
        "rate: 9/s, carrier: property, payload: { size: { log-normal: { median: 5, p99: 10 } } }";
    assert_eq!(with_stream(free).warnings, []);
}

/// A plan of a fleet over MQTT and one over CoAP, with further keys of each.
fn of_two_protocols(mqtt: &str, coap: &str) -> Plan {
    plan(&format!(
        "name: t\nplatform: {{ dialect: hono, devices: [ 'mqtt://127.0.0.1:0', 'coap://127.0.0.1:0' ] }}\nfleet:\n\
         - {{ {mqtt}, streams: [ {{ rate: 1/s }} ] }}\n\
         - {{ name: g, protocol: coap, {coap}, streams: [ {{ rate: 1/s }} ] }}\n"
    ))
}

#[test]
fn a_backend_speaks_the_newest_version_of_the_fleets_that_speak_mqtt() {
    let version = |plan: Plan| plan.backends[0].mqtt().unwrap().version;
    let old = of_two_protocols("client: { version: 3.1.1 }", "count: 1");
    assert_eq!(version(old), Version::V311);
    assert_eq!(
        version(of_two_protocols("count: 1", "count: 1")),
        Version::V5
    );
}

#[test]
fn source_addresses_are_counted_for_each_protocol() {
    let plan = of_two_protocols(
        "connect: { from: [ 127.0.0.2 ] }",
        "connect: { from: [ 127.0.0.3, 127.0.0.4 ] }",
    );
    let from = needs(&plan).ports.into_iter().map(|need| need.from);
    assert_eq!(from.collect::<Vec<_>>(), [Some(1), Some(2)]);
}

#[test]
fn a_check_opens_as_many_links_of_a_fleet_as_its_protocol_has_addresses() {
    let plan = of_two_protocols("count: 10", "count: 10");
    let first = plan.with_first_links(|protocol| match protocol == Protocol::Mqtt {
        true => 3,
        false => 1,
    });
    let links = first
        .fleets
        .iter()
        .map(|fleet| (fleet.first_link.0, fleet.links));
    assert_eq!(links.collect::<Vec<_>>(), [(0, 3), (3, 1)]);
}

#[test]
fn a_user_name_of_hono_has_the_tenant_by_default() {
    let password = "credential: { kind: password, secret: x }, tenant: t1";
    let plan = of_two_protocols(password, "count: 1");
    assert!(
        plan.resolved.contains(r#""user":"${id}@${tenant}""#),
        "{}",
        plan.resolved
    );
}
