//! A tenant of ThingsBoard on one page: what it holds, and the knobs of its misbehaviour.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use serde_json::{Value, json};

use crate::page::{Answer, Call, serve};

pub(crate) const PASSWORD: &str = "tenant";

/// Content of the tenant by name or title, and every call.
pub(crate) struct Held {
    pub(crate) devices: BTreeMap<String, Value>,
    /// Access tokens by the id of the device.
    pub(crate) tokens: BTreeMap<String, String>,
    pub(crate) profiles: BTreeMap<String, Value>,
    pub(crate) customers: BTreeMap<String, Value>,
    pub(crate) calls: Vec<String>,
    pub(crate) authority: &'static str,
    /// Number of the session; tokens of others have expired.
    pub(crate) session: u32,
    /// Calls that are answered with 429.
    pub(crate) limited: u32,
    pub(crate) device_limit: usize,
    /// Part of the paths that the server does not know.
    pub(crate) lacking: Option<&'static str>,
    ids: u32,
}

#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) url: String,
    held: Arc<Mutex<Held>>,
}

struct Asked {
    method: String,
    path: String,
    query: BTreeMap<String, String>,
    token: String,
    body: Value,
}

impl Server {
    pub(crate) fn start() -> Self {
        let held = Arc::new(Mutex::new(Held {
            devices: BTreeMap::new(),
            tokens: BTreeMap::new(),
            profiles: BTreeMap::from([(
                "default".to_owned(),
                json!({ "id": id("DEVICE_PROFILE", 0) }),
            )]),
            customers: BTreeMap::new(),
            calls: Vec::new(),
            authority: "TENANT_ADMIN",
            session: 0,
            limited: 0,
            device_limit: usize::MAX,
            lacking: None,
            ids: 0,
        }));
        let serving = Arc::clone(&held);
        let url = serve(move |call| answer(call, &serving));
        Self { url, held }
    }

    pub(crate) fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap()
    }
}

fn answer(call: &Call, held: &Mutex<Held>) -> Answer {
    let (path, query) = call.target.split_once('?').unwrap_or((&call.target, ""));
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let text = |text: &str| text.replace("%20", " ").replace("%22", "\"");
    let login = call.header("x-authorization").unwrap_or_default();
    let token = login.to_ascii_lowercase();
    let asked = Asked {
        method: call.method.clone(),
        path: path.to_owned(),
        query: pairs
            .map(|(name, value)| (name.to_owned(), text(value)))
            .collect(),
        token: token.trim_start_matches("bearer ").to_owned(),
        body: call.body.clone(),
    };
    let (status, said) = held.lock().unwrap().answer(&asked);
    let body = match said.is_null() {
        true => String::new(),
        false => said.to_string(),
    };
    Answer {
        status,
        head: String::new(),
        body,
    }
}

fn id(kind: &str, number: u32) -> Value {
    json!({ "entityType": kind, "id": number.to_string() })
}

fn failure(status: u16, code: u16, message: &str) -> (u16, Value) {
    (
        status,
        json!({ "status": status, "message": message, "errorCode": code }),
    )
}

fn not_found() -> (u16, Value) {
    failure(404, 32, "Requested item wasn't found!")
}

fn page(things: impl Iterator<Item = Value>) -> (u16, Value) {
    let data: Vec<Value> = things.collect();
    let total = data.len();
    (
        200,
        json!({ "data": data, "totalPages": 1, "totalElements": total, "hasNext": false }),
    )
}

impl Held {
    fn answer(&mut self, asked: &Asked) -> (u16, Value) {
        self.calls.push(format!("{} {}", asked.method, asked.path));
        if self.lacking.is_some_and(|part| asked.path.contains(part)) {
            return (
                404,
                json!({ "status": 404, "error": "Not Found", "path": asked.path }),
            );
        }
        if self.limited > 0 {
            self.limited -= 1;
            return failure(429, 33, "Too many requests for current tenant!");
        }
        if asked.path == "/api/auth/login" {
            if asked.body["password"] != PASSWORD {
                return failure(401, 10, "Invalid username or password");
            }
            let token = format!("session-{}", self.session);
            return (200, json!({ "token": token, "refreshToken": "r" }));
        }
        if asked.token != format!("session-{}", self.session) {
            return failure(401, 11, "Token has expired");
        }
        self.authorized(asked)
    }

    fn authorized(&mut self, asked: &Asked) -> (u16, Value) {
        let parts: Vec<&str> = asked.path.trim_start_matches("/api/").split('/').collect();
        match (asked.method.as_str(), parts.as_slice()) {
            ("GET", ["auth", "user"]) => (
                200,
                json!({ "id": id("USER", 1), "tenantId": id("TENANT", 1), "email": "t@example.org",
                    "authority": self.authority }),
            ),
            ("POST", ["device"]) => {
                let token = asked.query.get("accessToken").cloned();
                self.create(&asked.body, token)
            }
            ("POST", ["device", "bulk_import"]) => self.import(&asked.body),
            ("GET", ["tenant", "devices"]) => match asked.query.get("deviceName") {
                Some(name) => self.devices.get(name).map_or_else(not_found, |it| (200, it.clone())),
                None => page(self.devices.values().cloned()),
            },
            ("GET", ["device", device, "credentials"]) => (
                200,
                json!({ "deviceId": { "entityType": "DEVICE", "id": device },
                    "credentialsType": "ACCESS_TOKEN", "credentialsId": self.tokens[*device] }),
            ),
            ("DELETE", ["device", device]) => remove(&mut self.devices, device),
            ("DELETE", ["deviceProfile", profile]) => remove(&mut self.profiles, profile),
            ("DELETE", ["customer", customer]) => remove(&mut self.customers, customer),
            ("GET", ["deviceProfiles"]) => page(self.profiles.iter().map(|(name, thing)| {
                json!({ "id": thing["id"], "name": name, "type": "DEFAULT", "transportType": "DEFAULT" })
            })),
            ("POST", ["deviceProfile"]) => {
                let id = self.next_id("DEVICE_PROFILE");
                let mut thing = asked.body.clone();
                thing["id"] = id;
                let name = thing["name"].as_str().unwrap().to_owned();
                self.profiles.insert(name, thing.clone());
                (200, thing)
            }
            ("GET", ["tenant", "customers"]) => {
                let found = self.customers.get(&asked.query["customerTitle"]);
                found.map_or_else(not_found, |it| (200, it.clone()))
            }
            ("POST", ["customer"]) => {
                let id = self.next_id("CUSTOMER");
                let thing = json!({ "id": id, "title": asked.body["title"] });
                let title = thing["title"].as_str().unwrap().to_owned();
                self.customers.insert(title, thing.clone());
                (200, thing)
            }
            ("POST", ["customer", customer, "device", device]) => {
                let mut devices = self.devices.values_mut();
                let found = devices.find(|it| it["id"]["id"] == *device).unwrap();
                found["customerId"] = json!({ "entityType": "CUSTOMER", "id": customer });
                (200, found.clone())
            }
            _ => panic!("{} {}", asked.method, asked.path),
        }
    }

    fn create(&mut self, body: &Value, token: Option<String>) -> (u16, Value) {
        let name = body["name"].as_str().unwrap().to_owned();
        if self.devices.len() >= self.device_limit {
            let mut failure = failure(403, 41, "Devices limit reached");
            failure.1["entityType"] = json!("DEVICE");
            failure.1["limit"] = json!(self.device_limit);
            return failure;
        }
        if self.devices.contains_key(&name) {
            return failure(400, 31, "Device with such name already exists!");
        }
        if token
            .iter()
            .any(|token| self.tokens.values().any(|it| it == token))
        {
            return failure(
                400,
                31,
                "Device credentials are already assigned to another device!",
            );
        }
        let mut device = body.clone();
        device["id"] = self.next_id("DEVICE");
        let number = device["id"]["id"].as_str().unwrap().to_owned();
        self.tokens
            .insert(number, token.unwrap_or_else(|| format!("of {name}")));
        self.devices.insert(name, device.clone());
        (200, device)
    }

    fn import(&mut self, body: &Value) -> (u16, Value) {
        let (mut created, mut reasons) = (0, Vec::new());
        for line in body["file"].as_str().unwrap().lines() {
            // No name of these tests needs quotes.
            let cells: Vec<&str> = line.splitn(5, ',').collect();
            let device = json!({
                "name": cells[0], "type": cells[1],
                "additionalInfo": { "gateway": cells[3] == "true", "description": cells[4].trim_matches('"') },
            });
            match self.create(&device, Some(cells[2].to_owned())) {
                (200, _) => created += 1,
                (_, failure) => reasons.push(failure["message"].clone()),
            }
        }
        let errors = reasons.len();
        (
            200,
            json!({ "created": created, "updated": 0, "errors": errors, "errorsList": reasons }),
        )
    }

    fn next_id(&mut self, kind: &str) -> Value {
        self.ids += 1;
        id(kind, self.ids)
    }
}

fn remove(things: &mut BTreeMap<String, Value>, id: &str) -> (u16, Value) {
    let before = things.len();
    things.retain(|_, thing| thing["id"]["id"] != id);
    if things.len() < before {
        (200, Value::Null)
    } else {
        not_found()
    }
}
