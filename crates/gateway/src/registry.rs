//! Provisioned capabilities, sensor types and devices, in memory.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use serde::Deserialize;
use serde_json::{Value, json};

/// Things of one kind at the most: a device for each link that one process can have, several times
/// over.
const THINGS_MAX: usize = 100_000;
/// Things that a list holds where nobody asks for more.
const PAGE: usize = 100;
const GATEWAY_ID: &str = "1";

#[derive(Debug)]
pub(crate) struct Registry {
    /// The gateway's own alternate id.
    gateway: String,
    last_id: u64,
    shelves: [Shelf; 3],
}

#[derive(Debug, Default)]
struct Shelf {
    by_id: BTreeMap<u64, Value>,
    by_name: FxHashMap<String, u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Capability,
    SensorType,
    Device,
    Gateway,
}

/// Part of a list that a call asks for.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Page {
    filter: Option<String>,
    #[serde(default)]
    skip: usize,
    top: Option<usize>,
}

/// Reason for which a call is refused.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) message: String,
}

type Answer = Result<Value, Refusal>;

impl Refusal {
    pub(crate) fn new(status: u16, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { status, message }
    }
}

impl Kind {
    /// As a path names it.
    pub(crate) fn named(name: &str) -> Result<Self, Refusal> {
        Ok(match name {
            "capabilities" => Self::Capability,
            "sensorTypes" => Self::SensorType,
            "devices" => Self::Device,
            "gateways" => Self::Gateway,
            _ => return Err(Refusal::new(404, format!("there are no `{name}`"))),
        })
    }

    /// The field that no two have alike.
    const fn key(self) -> &'static str {
        match self {
            Self::SensorType => "name",
            Self::Capability | Self::Device | Self::Gateway => "alternateId",
        }
    }

    /// Index of its shelf; a refusal if its things cannot be altered.
    fn shelf(self) -> Result<usize, Refusal> {
        match self {
            Self::Capability => Ok(0),
            Self::SensorType => Ok(1),
            Self::Device => Ok(2),
            Self::Gateway => Err(Refusal::new(
                405,
                "a gateway is neither made nor removed here",
            )),
        }
    }
}

impl Registry {
    /// Nothing but the gateway itself.
    pub(crate) fn new(gateway: &str) -> Self {
        Self {
            gateway: gateway.to_owned(),
            last_id: 0,
            shelves: Default::default(),
        }
    }

    /// True if a device of this alternate id is known.
    pub(crate) fn has_device(&self, name: &str) -> bool {
        self.shelves[2].by_name.contains_key(name)
    }

    /// Takes a thing in, and gives it an id.
    pub(crate) fn create(&mut self, kind: Kind, mut body: Value) -> Answer {
        let shelf = kind.shelf()?;
        let name = body[kind.key()].as_str().filter(|name| !name.is_empty());
        let Some(name) = name.map(str::to_owned) else {
            let what = format!("`{}` is missing, or no text", kind.key());
            return Err(Refusal::new(400, what));
        };
        self.check_references(kind, &body)?;
        let things = &mut self.shelves[shelf];
        if things.by_name.contains_key(&name) {
            let what = format!("there is one whose `{}` is `{name}`", kind.key());
            return Err(Refusal::new(409, what));
        }
        if things.by_id.len() >= THINGS_MAX {
            return Err(Refusal::new(507, format!("there are {THINGS_MAX} already")));
        }
        self.last_id += 1;
        body["id"] = json!(self.last_id.to_string());
        things.by_name.insert(name, self.last_id);
        things.by_id.insert(self.last_id, body.clone());
        Ok(body)
    }

    pub(crate) fn list(&self, kind: Kind, page: &Page) -> Answer {
        let top = page.top.unwrap_or(PAGE);
        let filter = page.filter.as_deref().map(parse).transpose()?;
        if kind == Kind::Gateway {
            let gateway = json!({ "id": GATEWAY_ID, "alternateId": self.gateway });
            let is_meant = filter.is_none_or(|(key, value)| gateway[key] == value);
            return Ok(is_meant.then_some(gateway).into_iter().collect());
        }
        let things = &self.shelves[kind.shelf()?];
        if let Some((key, value)) = filter {
            if key != kind.key() {
                let what = format!("no filter by `{key}` here, only by `{}`", kind.key());
                return Err(Refusal::new(400, what));
            }
            let id = things.by_name.get(&value);
            let found = id.and_then(|id| things.by_id.get(id)).cloned();
            return Ok(found.into_iter().collect());
        }
        let page = things.by_id.values().skip(page.skip).take(top);
        Ok(page.cloned().collect())
    }

    pub(crate) fn read(&self, kind: Kind, id: &str) -> Answer {
        let found = number(id).and_then(|id| self.shelves[kind.shelf().ok()?].by_id.get(&id));
        found.cloned().ok_or_else(|| unknown(id))
    }

    /// Forgets a thing that no other refers to.
    pub(crate) fn delete(&mut self, kind: Kind, id: &str) -> Answer {
        let shelf = kind.shelf()?;
        self.check_unused(kind, id)?;
        let things = &mut self.shelves[shelf];
        let thing = number(id).and_then(|id| things.by_id.remove(&id));
        let thing = thing.ok_or_else(|| unknown(id))?;
        if let Some(name) = thing[kind.key()].as_str() {
            things.by_name.remove(name);
        }
        Ok(json!({ "message": "removed" }))
    }

    /// Refuses a body if a thing that it names does not exist.
    fn check_references(&self, kind: Kind, body: &Value) -> Result<(), Refusal> {
        let named = |list: &str, key: &str| -> Vec<Value> {
            let items = body[list].as_array().into_iter().flatten();
            items.map(|item| item[key].clone()).collect()
        };
        let (shelf, ids) = match kind {
            Kind::Capability | Kind::Gateway => return Ok(()),
            Kind::SensorType => (0, named("capabilities", "id")),
            Kind::Device => (1, named("sensors", "sensorTypeId")),
        };
        if kind == Kind::Device && body["gatewayId"] != GATEWAY_ID {
            let what = format!("there is no gateway {}", body["gatewayId"]);
            return Err(Refusal::new(400, what));
        }
        let is_known = |id: &Value| {
            let id = id.as_str().and_then(number);
            id.is_some_and(|id| self.shelves[shelf].by_id.contains_key(&id))
        };
        match ids.iter().find(|id| !is_known(id)) {
            Some(id) => Err(Refusal::new(
                400,
                format!("it names {id}, which is not there"),
            )),
            None => Ok(()),
        }
    }

    fn check_unused(&self, kind: Kind, id: &str) -> Result<(), Refusal> {
        let (users, list, key) = match kind {
            Kind::Capability => (&self.shelves[1], "capabilities", "id"),
            Kind::SensorType => (&self.shelves[2], "sensors", "sensorTypeId"),
            Kind::Device | Kind::Gateway => return Ok(()),
        };
        let names = |user: &&Value| {
            let mut items = user[list].as_array().into_iter().flatten();
            items.any(|item| item[key] == id)
        };
        match users.by_id.values().find(names) {
            Some(user) => Err(Refusal::new(409, format!("{} uses it", user["name"]))),
            None => Ok(()),
        }
    }
}

fn number(id: &str) -> Option<u64> {
    id.parse().ok()
}

fn unknown(id: &str) -> Refusal {
    Refusal::new(404, format!("there is no `{id}`"))
}

/// `name eq 'value'`; a quote in a value stands twice.
fn parse(filter: &str) -> Result<(&str, String), Refusal> {
    let parts = filter.split_once(" eq ").and_then(|(key, value)| {
        let value = value.trim().strip_prefix('\'')?.strip_suffix('\'')?;
        Some((key.trim(), value.replace("''", "'")))
    });
    parts.ok_or_else(|| Refusal::new(400, format!("`{filter}` is not of the form x eq 'y'")))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn filled() -> (Registry, String) {
        let mut registry = Registry::new("edge");
        let id = |answer: Answer| {
            answer.expect("created")["id"]
                .as_str()
                .expect("text")
                .to_owned()
        };
        let capability = json!({ "alternateId": "c", "name": "c" });
        let capability = id(registry.create(Kind::Capability, capability));
        let sensor_type = json!({ "name": "s", "capabilities": [ { "id": capability } ] });
        let sensor_type = id(registry.create(Kind::SensorType, sensor_type));
        (registry, sensor_type)
    }

    fn device(name: &str, sensor_type: &str) -> Value {
        let sensors = json!([{ "sensorTypeId": sensor_type }]);
        json!({ "alternateId": name, "name": name, "gatewayId": "1", "sensors": sensors })
    }

    fn status(answer: &Answer) -> u16 {
        answer
            .as_ref()
            .map_or_else(|refusal| refusal.status, |_| 200)
    }

    fn found(registry: &Registry, filter: &str) -> usize {
        let filter = Some(filter.to_owned());
        let page = Page {
            filter,
            ..Page::default()
        };
        let list = registry.list(Kind::Device, &page).expect("a list");
        list.as_array().expect("a list").len()
    }

    #[test]
    fn a_device_is_created_once_found_by_its_name_and_forgotten() {
        let (mut registry, sensor_type) = filled();
        let made = registry.create(Kind::Device, device("it's", &sensor_type));
        let id = made.expect("created")["id"]
            .as_str()
            .expect("text")
            .to_owned();
        let again = registry.create(Kind::Device, device("it's", &sensor_type));
        assert_eq!(status(&again), 409);
        assert_eq!(found(&registry, "alternateId eq 'it''s'"), 1);
        assert_eq!(found(&registry, "alternateId eq 'its'"), 0);
        assert!(registry.has_device("it's"));
        assert_eq!(status(&registry.read(Kind::Device, &id)), 200);
        assert_eq!(status(&registry.delete(Kind::Device, &id)), 200);
        assert_eq!(status(&registry.delete(Kind::Device, &id)), 404);
        assert!(!registry.has_device("it's"));
    }

    #[test]
    fn what_is_named_must_be_there_and_what_is_in_use_stays() {
        let (mut registry, sensor_type) = filled();
        let stray = registry.create(Kind::Device, device("a", "99"));
        assert_eq!(status(&stray), 400);
        let mut elsewhere = device("a", &sensor_type);
        elsewhere["gatewayId"] = json!("2");
        assert_eq!(status(&registry.create(Kind::Device, elsewhere)), 400);
        let made = registry.create(Kind::Device, device("a", &sensor_type));
        assert_eq!(status(&made), 200);
        assert_eq!(
            status(&registry.delete(Kind::SensorType, &sensor_type)),
            409
        );
        assert_eq!(status(&registry.delete(Kind::Capability, "1")), 409);
        assert_eq!(status(&registry.create(Kind::Gateway, json!({}))), 405);
        assert_eq!(status(&registry.create(Kind::Device, json!([1]))), 400);
    }

    #[test]
    fn lists_come_in_pages() {
        let (mut registry, sensor_type) = filled();
        for number in 0..150 {
            let device = device(&number.to_string(), &sensor_type);
            registry.create(Kind::Device, device).expect("created");
        }
        let page = |skip, top| {
            let page = Page {
                filter: None,
                skip,
                top,
            };
            let list = registry.list(Kind::Device, &page).expect("a list");
            list.as_array().expect("a list").len()
        };
        assert_eq!(
            (page(0, None), page(100, None), page(149, Some(9))),
            (100, 50, 1)
        );
        let unread = Page {
            filter: Some("id gt 5".to_owned()),
            ..Page::default()
        };
        assert_eq!(status(&registry.list(Kind::Device, &unread)), 400);
    }

    /// Any JSON, often with the fields that are looked at.
    fn bodies() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "[a-c1-3']{0,2}".prop_map(Value::from),
        ];
        let keys = prop::sample::select(vec![
            "alternateId",
            "name",
            "id",
            "gatewayId",
            "capabilities",
            "sensors",
            "sensorTypeId",
        ]);
        leaf.prop_recursive(3, 24, 4, move |inner| {
            let object = prop::collection::btree_map(keys.clone(), inner.clone(), 0..5);
            prop_oneof![
                prop::collection::vec(inner, 0..4).prop_map(Value::from),
                object.prop_map(|fields| fields.into_iter().collect()),
            ]
        })
    }

    fn kinds() -> impl Strategy<Value = Kind> {
        let all = [
            Kind::Capability,
            Kind::SensorType,
            Kind::Device,
            Kind::Gateway,
        ];
        prop::sample::select(all.to_vec())
    }

    proptest! {
        /// Each answer is a value or a refusal of the caller's doing, whatever is asked for. A
        /// thing that was taken in is found by its id and its name, and nothing by a name that was
        /// forgotten.
        #[test]
        fn any_calls_leave_names_and_ids_in_step(
            calls in prop::collection::vec((kinds(), bodies(), "[0-9a-c' eq]{0,8}", 0u8..4), 1..40)
        ) {
            let mut registry = Registry::new("edge");
            for (kind, body, text, call) in calls {
                let page = Page { filter: Some(text.clone()), skip: 0, top: None };
                let answer = match call {
                    0 => registry.list(kind, &page),
                    1 => registry.delete(kind, &text),
                    2 => registry.read(kind, &text),
                    _ => registry.create(kind, body),
                };
                if let Err(refusal) = &answer {
                    prop_assert!((400..500).contains(&refusal.status), "{refusal:?}");
                }
                if let (Ok(thing), 3) = (&answer, call) {
                    let id = thing["id"].as_str().unwrap_or_default();
                    let read = registry.read(kind, id);
                    prop_assert_eq!(read.as_ref(), Ok(thing));
                }
            }
            for shelf in &registry.shelves {
                prop_assert_eq!(shelf.by_id.len(), shelf.by_name.len());
                prop_assert!(shelf.by_name.values().all(|id| shelf.by_id.contains_key(id)));
            }
        }
    }
}
