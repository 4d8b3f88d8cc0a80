//! Plans of devices that speak HTTP: to Hono, and to any API.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use muster_load::PayloadSpec;
use muster_plan::{
    Ack, AnswerId, ClientPlan, Credential, FleetPlan, HttpCall, Plan, Scheme, StreamPlan,
};
use muster_platform::{Carrier, Dialect, Protocol};
use muster_protocol::mqtt::Qos;
use muster_scenario::{Overrides, Problems, Reader, Source, needs, parse};

/// Files and variables in memory.
struct World;

impl Reader for World {
    fn file(&self, path: &str) -> Result<Vec<u8>, String> {
        match path {
            "key.txt" => Ok(b"from-file\n".to_vec()),
            "meters.csv" => Ok(b"serial,site\nm1,a\nm2,b\n".to_vec()),
            _ => Err("no such file".to_owned()),
        }
    }

    fn variable(&self, name: &str) -> Option<String> {
        (name == "API_KEY").then(|| "hunter2".to_owned())
    }
}

fn plan(text: &str) -> Plan {
    let source = Source {
        name: "test.yaml",
        text,
    };
    parse(source, &Overrides::new(), &World).unwrap_or_else(|problems| panic!("{problems}"))
}

/// The plan of a scenario with one fleet of two devices with these keys.
fn with_fleet(platform: &str, keys: &str) -> Plan {
    plan(&format!(
        "name: t\nplatform: {{ {platform} }}\nfleet: [ {{ count: 2, {keys} }} ]\n"
    ))
}

const API: &str = r#"kind: http, devices: "http://api.example/v2""#;
const HONO: &str = r#"kind: hono, devices: "http://hono.example:8080""#;

fn fleet(plan: &Plan) -> &FleetPlan {
    &plan.fleets[0]
}

fn stream(plan: &Plan) -> &StreamPlan {
    &plan.fleets[0].streams[0]
}

fn call(plan: &Plan) -> &HttpCall {
    stream(plan).http.as_deref().expect("a form of requests")
}

fn settings(plan: &Plan) -> (u16, bool, bool) {
    let ClientPlan::Http(http) = &fleet(plan).client else {
        panic!("{:?}", fleet(plan).client);
    };
    (http.pipelining, http.closes, http.obeys_retry_after)
}

#[test]
fn a_stream_of_an_api_needs_nothing_but_a_rate() {
    let plan = with_fleet(API, "streams: [ { rate: 1/s } ]");
    assert_eq!(plan.platform.dialect(), Dialect::Http);
    let endpoint = &plan.platform.endpoints[0];
    assert_eq!(
        (endpoint.scheme, endpoint.path.as_str()),
        (Scheme::Http, "/v2")
    );
    let (stream, call) = (stream(&plan), call(&plan));
    assert_eq!(call.method, "POST");
    assert_eq!(stream.topic.source(), "muster/${id}/telemetry");
    assert_eq!((call.headers.len(), &call.id), (0, &None));
    assert_eq!(call.success, [(200, 299)]);
    assert_eq!((stream.ack, stream.qos), (Ack::Transport, Qos::AtLeastOnce));
    assert_eq!(stream.payload, PayloadSpec::Size(100));
    let media_type = stream.content_type.as_deref();
    assert_eq!(media_type, Some("application/octet-stream"));
    assert_eq!(settings(&plan), (1, false, true));
    assert!(plan.backends.is_empty());
    assert_eq!(plan.warnings, []);
}

#[test]
fn a_stream_of_an_api_has_the_form_of_its_keys() {
    let keys = r#"data: meters.csv, id: "${serial}", obey-retry-after: false,
        client: { http: { pipelining: 8 } }, streams: [ { rate: 1/s, method: PUT,
        path: "/devices/${id}/readings?site=${site}&x=%20",
        headers: { X-Api-Key: "${env:API_KEY}", x-site: "s-${site}", x-file: "${file:key.txt}", idempotency-key: "${run}-${id}-${seq}" },
        success: [ 201, 409, 200 ], answer-id: { header: Location },
        payload: { template: '[{"t":1}]' } } ]"#;
    let plan = with_fleet(API, keys);
    let (stream, call) = (stream(&plan), call(&plan));
    assert_eq!(call.method, "PUT");
    let path = "devices/${id}/readings?site=${site}&x=%20";
    assert_eq!(stream.topic.source(), path);
    assert_eq!(stream.surface.source(), "devices/${id}/readings");
    let headers = call.headers.iter();
    let headers: Vec<(&str, &str)> = headers
        .map(|(name, value)| (name.as_str(), value.expose().source()))
        .collect();
    assert_eq!(
        headers,
        [
            ("X-Api-Key", "hunter2"),
            ("x-site", "s-${site}"),
            ("x-file", "from-file"),
            ("idempotency-key", "${run}-${id}-${seq}")
        ]
    );
    assert_eq!(call.success, [(201, 201), (409, 409), (200, 200)]);
    assert_eq!(call.id, Some(AnswerId::Header("location".to_owned())));
    assert_eq!(stream.content_type.as_deref(), Some("application/json"));
    assert_eq!(settings(&plan), (8, false, false));
    // A key from the environment is shown nowhere.
    for secret in ["hunter2", "from-file"] {
        assert!(!plan.resolved.contains(secret), "{}", plan.resolved);
        assert!(!format!("{plan:?}").contains(secret));
    }
    assert!(plan.resolved.contains("${env:API_KEY}"));
}

#[test]
fn a_template_without_a_stamp_is_sent_as_it_is_where_nobody_looks_for_one() {
    let streams = r"streams: [ { rate: 1/s, payload: { template: '{}' } } ]";
    assert_eq!(stream(&with_fleet(API, streams)).carrier, Carrier::None);
    let stamped = streams.replace("{}", r#"{"id":"${stamp}"}"#);
    let looked_for = format!("{API}, backend: \"mqtt://broker.example\"");
    let plan = with_fleet(&looked_for, &stamped);
    assert_eq!(stream(&plan).carrier, Carrier::Payload);
    assert_eq!(plan.backends[0].mqtt().unwrap().filter, "muster/#");
}

#[test]
fn the_embedded_gateway_serves_an_api_and_a_broker_beside_it() {
    let keys = r#"streams: [ { rate: 1/s, path: "/v1/${id}/t?a=b" }, { name: x, rate: 1/s, path: "/v1/x/${id}" } ]"#;
    let plan = with_fleet("dialect: http", keys);
    assert_eq!(plan.platform.endpoints[0].to_string(), "http://127.0.0.1:0");
    let backend = &plan.backends[0];
    assert_eq!(backend.endpoint.to_string(), "mqtt://127.0.0.1:0");
    assert_eq!(backend.mqtt().unwrap().filter, "v1/#");
}

#[test]
fn every_fault_of_headers_and_codes_is_reported() {
    let text = format!(
        "name: t\nplatform: {{ {API} }}\nfleet:\n- streams:\n  - rate: 1/s\n    path: /x\n    \
         headers: {{ \"a b\": \"1\", host: h, x-site: y }}\n    success: [ 20, 201, 2xx, soon ]\n"
    );
    let source = Source {
        name: "test.yaml",
        text: &text,
    };
    let Problems(problems) = parse(source, &Overrides::new(), &World).unwrap_err();
    let found: Vec<(&str, u32)> = problems
        .iter()
        .map(|it| (it.path.as_str(), it.line))
        .collect();
    let stream = "fleet[0].streams[0]";
    let at = |key: &str| format!("{stream}.{key}");
    let expected = [
        (at("headers.a b"), 7),
        (at("headers.host"), 7),
        (at("success[0]"), 8),
        (at("success[2]"), 8),
        (at("success[3]"), 8),
    ];
    let expected: Vec<(&str, u32)> = expected
        .iter()
        .map(|(path, line)| (path.as_str(), *line))
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn a_fault_in_the_text_of_a_path_is_no_devices() {
    let text = format!(
        "name: t\nplatform: {{ {API} }}\nfleet: [ {{ count: 10, streams: [ {{ rate: 1/s, path: '/a b/${{id}}' }} ] }} ]\n"
    );
    let source = Source {
        name: "test.yaml",
        text: &text,
    };
    let Problems(problems) = parse(source, &Overrides::new(), &World).unwrap_err();
    let what = "the path `/a b/${id}` has the character ' ', which no path of a request has";
    assert_eq!(problems[0].what, what);
}

#[test]
fn links_are_spread_over_addresses_as_their_weights_say() {
    let devices = r#"kind: http, devices: [ { url: "http://a", weight: 6 }, "http://b", { url: "http://c", weight: 2 } ]"#;
    let plan = with_fleet(devices, "streams: []");
    let hosts: String = plan
        .platform
        .endpoints
        .iter()
        .map(|it| it.host.as_str())
        .collect();
    assert_eq!(hosts.len(), 9);
    let count = |host| hosts.matches(host).count();
    assert_eq!((count("a"), count("b"), count("c")), (6, 1, 2));
    let equal = devices
        .replace("weight: 6", "weight: 5")
        .replace("weight: 2", "weight: 5");
    let equal = equal.replace(r#""http://b""#, r#"{ url: "http://b", weight: 5 }"#);
    assert_eq!(
        with_fleet(&equal, "streams: []").platform.endpoints.len(),
        3
    );
}

#[test]
fn a_device_of_hono_posts_with_credentials_and_puts_without() {
    let plain = with_fleet(HONO, "streams: [ { rate: 1/s } ]");
    assert_eq!(stream(&plain).topic.source(), "telemetry/${tenant}/${id}");
    assert_eq!(fleet(&plain).client.protocol(), Protocol::Http);
    assert_eq!(stream(&plain).http, None);
    let known =
        r"credential: { kind: password, secret: x }, streams: [ { kind: event, rate: 1/s } ]";
    let known = with_fleet(HONO, known);
    assert_eq!(stream(&known).topic.source(), "event");
    let Credential::Password { user, .. } = &fleet(&known).credential else {
        panic!("{:?}", fleet(&known).credential);
    };
    assert_eq!(user.source(), "${id}@${tenant}");
    let gateway = r"gateway: { devices: 2 }, credential: { kind: password, secret: x }, streams: [ { rate: 1/s } ]";
    let gateway = with_fleet(HONO, gateway);
    assert_eq!(stream(&gateway).topic.source(), "telemetry/${tenant}/${id}");
}

#[test]
fn the_quality_of_service_of_hono_says_how_surely_telemetry_travels_on() {
    for (keys, is_sure) in [("rate: 1/s", true), ("rate: 1/s, qos: 0", false)] {
        let plan = with_fleet(HONO, &format!("streams: [ {{ {keys} }} ]"));
        let stream = stream(&plan);
        assert_eq!(stream.is_confirmable, is_sure, "{keys}");
        // Each request is answered.
        assert_eq!((stream.ack, stream.qos), (Ack::Transport, Qos::AtLeastOnce));
    }
}

#[test]
fn a_connection_for_each_request_needs_ports_for_those_that_ended() {
    let keys = r"client: { http: { connection: per-request } }, streams: [ { rate: 100/s } ]";
    let ports = |platform| needs(&with_fleet(platform, keys)).ports[0].connections;
    assert_eq!(ports(API), 2 + 100 * 60);
    assert_eq!(ports("dialect: http"), 2);
}

#[test]
fn a_fleet_chooses_http_beside_coap() {
    let platform = r#"kind: hono, devices: [ "coap://hono.example", "http://hono.example:8080" ]"#;
    let text = format!(
        "name: t\nplatform: {{ {platform} }}\nfleet:\n- {{ name: a, streams: [ {{ rate: 1/s }} ] }}\n\
         - {{ name: b, protocol: http, streams: [ {{ rate: 1/s }} ] }}\n"
    );
    let protocols = plan(&text)
        .fleets
        .iter()
        .map(|it| it.client.protocol())
        .collect::<Vec<_>>();
    assert_eq!(protocols, [Protocol::Coap, Protocol::Http]);
}
