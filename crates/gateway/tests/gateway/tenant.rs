//! A gateway with a store, as a user of its REST API sees it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;

use muster_gateway::{Dialect, Gateway, GatewayConfig, ManagementConfig};
use muster_model::Micros;
use muster_model::behaviour::Behaviour;
use muster_protocol::mqtt::{Connect, Version};
use serde_json::{Value, json};

use crate::peer::{CLOCK, Peer};

const USER: &str = "tenant@thingsboard.org";
/// A generous limit: only a hang reaches it.
pub(crate) const PATIENCE: Micros = Micros::from_secs(20);

/// A gateway with a store, and a user who is logged in.
pub(crate) struct Tenant {
    pub(crate) gateway: Gateway,
    rest: SocketAddr,
    pub(crate) token: String,
}

impl Tenant {
    pub(crate) fn new() -> Self {
        Self::with(Behaviour::default(), None)
    }

    pub(crate) fn with(behaviour: Behaviour, store: Option<&Path>) -> Self {
        let here = SocketAddr::from(([127, 0, 0, 1], 0));
        let plain = GatewayConfig::default();
        let gateway = Gateway::start(GatewayConfig {
            dialect: Dialect::Thingsboard,
            behaviour,
            expected_uplinks: 20,
            listen: plain
                .listen
                .with("http", Some(here))
                .with("coap", Some(here)),
            management: Some(ManagementConfig {
                token: Some("open-sesame".to_owned()),
                gateway: "node".to_owned(),
                only_provisioned: true,
                store: store.map(Path::to_path_buf),
                ..ManagementConfig::default()
            }),
            ..plain
        });
        let gateway = gateway.expect("a gateway");
        let rest = gateway.addresses().get("management").expect("it is served");
        let mut tenant = Self {
            gateway,
            rest,
            token: String::new(),
        };
        tenant.token = text(&tenant.login("open-sesame").1["token"]);
        tenant
    }

    pub(crate) fn login(&self, password: &str) -> (u16, Value) {
        let body = json!({ "username": USER, "password": password });
        self.call("POST /api/auth/login", &body)
    }

    /// The status and the body of a call.
    pub(crate) fn call(&self, head: &str, body: &Value) -> (u16, Value) {
        self.begin(head, body).end()
    }

    pub(crate) fn call_as(&self, authorization: &str, head: &str, body: &Value) -> (u16, Value) {
        self.begin_as(authorization, head, body).end()
    }

    /// A call whose answer is read later.
    pub(crate) fn begin(&self, head: &str, body: &Value) -> Pending {
        let authorization = format!("X-Authorization: Bearer {}", self.token);
        self.begin_as(&authorization, head, body)
    }

    fn begin_as(&self, authorization: &str, head: &str, body: &Value) -> Pending {
        let mut stream = TcpStream::connect(self.rest).expect("it listens");
        let body = match body.is_null() {
            true => String::new(),
            false => body.to_string(),
        };
        let length = body.len();
        let request = format!(
            "{head} HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Type: application/json\r\n\
             {authorization}\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).expect("it is sent");
        Pending(stream)
    }

    pub(crate) fn get(&self, path: &str) -> Value {
        let (status, body) = self.call(&format!("GET {path}"), &Value::Null);
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Value {
        let (status, body) = self.call(&format!("POST {path}"), body);
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    /// Creates a device with a token of the same name: its id.
    pub(crate) fn create(&self, name: &str) -> String {
        self.create_as(name, false)
    }

    /// Creates a gateway with a token of the same name.
    pub(crate) fn create_gateway(&self, name: &str) {
        self.create_as(name, true);
    }

    fn create_as(&self, name: &str, is_gateway: bool) -> String {
        let path = format!("/api/device?accessToken={name}");
        let device = json!({ "name": name, "additionalInfo": { "gateway": is_gateway } });
        text(&self.post(&path, &device)["id"]["id"])
    }

    pub(crate) fn device(&self, token: &str) -> Peer {
        let connect = Connect {
            user: Some(token),
            ..Connect::new(token)
        };
        Peer::open(self.gateway.addr(), Version::V311, &connect)
    }

    /// The address of devices that come by a scheme.
    pub(crate) fn at(&self, scheme: &str) -> SocketAddr {
        let addresses = self.gateway.addresses();
        addresses.get(scheme).expect("it listens")
    }

    /// Series of a device, once it has as many points of a key as wanted.
    pub(crate) fn series(&self, id: &str, key: &str, wanted: usize) -> Vec<Value> {
        let path = format!(
            "/api/plugins/telemetry/{id}/values/timeseries?keys={key}&startTs=0&endTs=9999999999999&limit=1000&orderBy=ASC"
        );
        let give_up = CLOCK.now() + PATIENCE;
        loop {
            let series = self.get(&path);
            let points = series[key].as_array().cloned().unwrap_or_default();
            if points.len() >= wanted {
                return points;
            }
            assert!(CLOCK.now() < give_up, "{series}");
        }
    }
}

/// A call on its way.
pub(crate) struct Pending(TcpStream);

impl Pending {
    /// The status and the body of its answer.
    pub(crate) fn end(mut self) -> (u16, Value) {
        let mut answer = String::new();
        self.0.read_to_string(&mut answer).expect("an answer");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        let status = head.split(' ').nth(1).expect("a status");
        let body = serde_json::from_str(body).unwrap_or(Value::Null);
        (status.parse().expect("a number"), body)
    }
}

pub(crate) fn text(value: &Value) -> String {
    value
        .as_str()
        .unwrap_or_else(|| panic!("{value} is no text"))
        .to_owned()
}

/// The status and the reason of a refused call.
pub(crate) fn refused((status, body): (u16, Value)) -> (u16, u64) {
    (status, body["errorCode"].as_u64().unwrap_or(0))
}
