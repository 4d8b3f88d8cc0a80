//! A device registry of a page: what it holds is JSON by path, and what it was asked is kept.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, MutexGuard};

use serde_json::{Value, json};

use crate::page::{Answer, Call, serve};

/// Content of the registry by path, and every call.
#[derive(Default)]
pub(crate) struct Held {
    pub(crate) things: BTreeMap<String, Value>,
    pub(crate) calls: Vec<String>,
    /// The calls of this method and path are answered with 500, so many times.
    pub(crate) failing: Option<(String, u32)>,
    /// Required authorization; calls without it are answered with 401.
    pub(crate) authorization: Option<String>,
    /// Credentials of others, each written by them just before one of ours is.
    pub(crate) meanwhile: VecDeque<Value>,
    /// Nobody serves any path, and this is what is answered with 404.
    pub(crate) nobody: Option<&'static str>,
}

/// A running registry.
#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) url: String,
    held: Arc<Mutex<Held>>,
}

impl Server {
    pub(crate) fn start() -> Self {
        let held = Arc::new(Mutex::new(Held::default()));
        let serving = Arc::clone(&held);
        let url = serve(move |call| answer(call, &serving));
        Self { url, held }
    }

    pub(crate) fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap()
    }

    /// The paths of all things below one.
    pub(crate) fn below(&self, path: &str) -> Vec<String> {
        let held = self.held();
        let below = held.things.keys().filter(|key| key.starts_with(path));
        below.cloned().collect()
    }
}

fn answer(call: &Call, held: &Mutex<Held>) -> Answer {
    let path = &call.target.replace("%3A", ":");
    let said = call.header("authorization").map(str::to_owned);
    let if_match = call.header("if-match");
    let mut held = held.lock().unwrap();
    let (status, said) = if held.authorization.is_none() || held.authorization == said {
        held.answer(&call.method, path, call.body.clone(), if_match)
    } else {
        // As no registry should, it repeats what it was told.
        (
            401,
            json!({ "error": format!("not for {}", said.unwrap_or_default()) }),
        )
    };
    let body = match held.nobody {
        Some(page) => page.to_owned(),
        None if said.is_null() => String::new(),
        None => said.to_string(),
    };
    let thing = held.things.get(path).filter(|_| path.starts_with("/v1/"));
    Answer {
        status,
        head: thing.map_or_else(String::new, |it| format!("etag: {}\r\n", etag(it))),
        body,
    }
}

/// An ETag of version 1: other content has another one.
fn etag(thing: &Value) -> String {
    let mut hasher = DefaultHasher::new();
    thing.to_string().hash(&mut hasher);
    hasher.finish().to_string()
}

impl Held {
    fn answer(
        &mut self,
        method: &str,
        path: &str,
        body: Value,
        if_match: Option<&str>,
    ) -> (u16, Value) {
        self.calls.push(format!("{method} {path}"));
        if self.nobody.is_some() {
            return (404, Value::Null);
        }
        if let Some((call, times)) = &mut self.failing
            && *call == format!("{method} {path}")
            && *times > 0
        {
            *times -= 1;
            return (500, json!({ "error": "out of order" }));
        }
        let place = where_created(method, path, &body);
        match method {
            "GET" => match (self.things.get(path), self.credentials_of(path)) {
                (Some(thing), _) => (200, shown(path, thing)),
                (None, Some(all)) => (200, json!({ "total": all.len(), "credentials": all })),
                (None, _) => (404, json!({ "error": "nothing" })),
            },
            "POST" if self.things.contains_key(&place) => (409, json!({ "error": "taken" })),
            "PUT" if self.is_stale(path, if_match) => (412, json!({ "error": "another version" })),
            "POST" | "PUT" => {
                self.things.insert(place, body);
                (if method == "POST" { 201 } else { 204 }, Value::Null)
            }
            _ => self.delete(path),
        }
    }

    /// Lets others write first, and compares what stands there then.
    fn is_stale(&mut self, path: &str, if_match: Option<&str>) -> bool {
        if let Some(theirs) = self.meanwhile.pop_front() {
            self.things.insert(path.to_owned(), theirs);
        }
        if_match.is_some_and(|wanted| self.things.get(path).map(etag).as_deref() != Some(wanted))
    }

    /// Before version 1 there was a path for all credentials of a device.
    fn credentials_of(&self, path: &str) -> Option<Vec<Value>> {
        let (tenant, device) = path.strip_prefix("/credentials/")?.split_once('/')?;
        let below = format!("/credentials/{tenant}/");
        let all = self
            .things
            .iter()
            .filter(|(key, thing)| key.starts_with(&below) && thing["device-id"] == device);
        let all: Vec<Value> = all.map(|(key, thing)| shown(key, thing)).collect();
        (!all.is_empty()).then_some(all)
    }

    /// A device's credentials go with it in version 1, and all of a device's before that.
    fn delete(&mut self, path: &str) -> (u16, Value) {
        let credentials = path.replacen("/v1/devices", "/v1/credentials", 1);
        let device = path.rsplit('/').next().unwrap_or_default();
        let is_all = path.starts_with("/credentials/");
        let before = self.things.len();
        self.things.retain(|key, thing| {
            let is_of_device =
                is_all && key.starts_with("/credentials/") && thing["device-id"] == device;
            key != path && *key != credentials && !is_of_device
        });
        (
            if before > self.things.len() { 204 } else { 404 },
            Value::Null,
        )
    }
}

/// Before version 1 a thing's name stood in its body.
fn where_created(method: &str, path: &str, body: &Value) -> String {
    let text = |key: &str| body[key].as_str().unwrap_or_default().to_owned();
    let is_legacy = method == "POST" && !path.starts_with("/v1/");
    match path.split('/').nth(1) {
        Some("tenant") if is_legacy => format!("{path}/{}", text("tenant-id")),
        Some("registration") if is_legacy => format!("{path}/{}", text("device-id")),
        Some("credentials") if is_legacy => format!("{path}/{}/{}", text("auth-id"), text("type")),
        _ => path.to_owned(),
    }
}

/// Nobody is shown a secret, a device of version 1 has a status, and a registration stood under `data` before version 1.
fn shown(path: &str, thing: &Value) -> Value {
    let mut shown = thing.clone();
    let is_list = shown.is_array();
    let one = std::slice::from_mut(&mut shown);
    let all = if is_list {
        one[0].as_array_mut().unwrap().as_mut_slice()
    } else {
        one
    };
    for one in all.iter_mut().filter(|one| one["secrets"].is_array()) {
        one["secrets"] = json!([{ "id": "1" }]);
    }
    if path.starts_with("/v1/devices/") {
        shown["status"] = json!({ "created": "2026-01-01T00:00:00Z" });
    }
    if path.starts_with("/registration/") {
        return json!({ "device-id": shown["device-id"], "data": shown });
    }
    shown
}
