//! The device model of SAP Edge: what is created, and how it is recognized.

use serde_json::{Map, Value, json};

/// The name of the capability, of the sensor type and of each device's sensor: what the measures of
/// the published test name.
const NAME: &str = "PerfTest";

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Kind {
    /// For people.
    pub(super) name: &'static str,
    /// Path of its things in the API.
    pub(super) path: &'static str,
    /// The field that names one.
    pub(super) key: &'static str,
}

pub(super) static CAPABILITY: Kind = Kind {
    name: "capability",
    path: "capabilities",
    key: "alternateId",
};
pub(super) static SENSOR_TYPE: Kind = Kind {
    name: "sensor type",
    path: "sensorTypes",
    key: "name",
};
pub(super) static DEVICE: Kind = Kind {
    name: "device",
    path: "devices",
    key: "alternateId",
};
/// Gateways are there already.
pub(super) static GATEWAY: Kind = Kind {
    name: "gateway",
    path: "gateways",
    key: "alternateId",
};

#[derive(Debug)]
pub(super) struct Entity {
    pub(super) kind: &'static Kind,
    pub(super) key: String,
    pub(super) body: Value,
}

/// The ids of what others refer to; what is not known is left out of bodies.
#[derive(Debug, Default)]
pub(super) struct Model {
    pub(super) gateway: Option<String>,
    pub(super) capability: Option<String>,
    pub(super) sensor_type: Option<String>,
}

impl Model {
    pub(super) fn capability(&self) -> Entity {
        let properties = [("sn", "integer"), ("ts", "string")];
        let property = |(name, data)| json!({ "name": name, "dataType": data });
        Entity {
            kind: &CAPABILITY,
            key: NAME.to_owned(),
            body: json!({
                "alternateId": NAME,
                "name": NAME,
                "properties": properties.map(property),
            }),
        }
    }

    pub(super) fn sensor_type(&self) -> Entity {
        let mut body = json!({ "name": NAME });
        if let Some(id) = &self.capability {
            body["capabilities"] = json!([{ "id": id, "type": "measure" }]);
        }
        Entity {
            kind: &SENSOR_TYPE,
            key: NAME.to_owned(),
            body,
        }
    }

    pub(super) fn device(&self, name: &str) -> Entity {
        let mut body = json!({ "alternateId": name, "name": name });
        if let Some(id) = &self.gateway {
            body["gatewayId"] = json!(id);
        }
        let mut sensor = json!({ "alternateId": NAME, "name": NAME });
        if let Some(id) = &self.sensor_type {
            sensor["sensorTypeId"] = json!(id);
        }
        body["sensors"] = json!([sensor]);
        Entity {
            kind: &DEVICE,
            key: name.to_owned(),
            body,
        }
    }

    pub(super) fn entity(&self, kind: &'static Kind, key: &str) -> Entity {
        match kind.path {
            "capabilities" => self.capability(),
            "sensorTypes" => self.sensor_type(),
            _ => self.device(key),
        }
    }
}

impl Entity {
    /// In what a thing differs from this one; none if it has all that is wanted. What it has beyond
    /// that (ids, times, states) is the platform's own.
    pub(super) fn difference(&self, thing: &Value) -> Option<String> {
        difference("", &self.body, thing)
    }
}

fn difference(path: &str, wanted: &Value, there: &Value) -> Option<String> {
    match (wanted, there) {
        (Value::Object(wanted), Value::Object(there)) => {
            let of = |(key, value): (&String, &Value)| field(path, key, value, there);
            wanted.iter().find_map(of)
        }
        (Value::Array(wanted), Value::Array(there)) => items(path, wanted, there),
        _ if text(wanted) == text(there) => None,
        _ => Some(format!("`{path}` is {there}, wanted {wanted}")),
    }
}

fn field(path: &str, key: &str, wanted: &Value, there: &Map<String, Value>) -> Option<String> {
    let dot = if path.is_empty() { "" } else { "." };
    let path = format!("{path}{dot}{key}");
    match there.get(key) {
        Some(there) => difference(&path, wanted, there),
        None => Some(format!("`{path}` is not there, wanted {wanted}")),
    }
}

/// Lists are sets: each wanted item has one that serves, and there are no others.
fn items(path: &str, wanted: &[Value], there: &[Value]) -> Option<String> {
    if wanted.len() != there.len() {
        let counts = format!("{} items, wanted {}", there.len(), wanted.len());
        return Some(format!("`{path}` has {counts}"));
    }
    let serves = |item: &Value| there.iter().any(|it| difference(path, item, it).is_none());
    let lacking = wanted.iter().find(|item| !serves(item))?;
    Some(match (wanted, there) {
        ([wanted], [there]) => difference(path, wanted, there)?,
        _ => format!("`{path}` lacks {lacking}"),
    })
}

/// Ids are numbers to some versions, and text to others.
fn text(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model() -> Model {
        Model {
            gateway: Some("2".to_owned()),
            capability: Some("c-1".to_owned()),
            sensor_type: Some("7".to_owned()),
        }
    }

    #[test]
    fn bodies_are_those_of_the_published_test() {
        let model = model();
        assert_eq!(
            model.capability().body.to_string(),
            r#"{"alternateId":"PerfTest","name":"PerfTest","properties":[{"name":"sn","dataType":"integer"},{"name":"ts","dataType":"string"}]}"#
        );
        assert_eq!(
            model.sensor_type().body.to_string(),
            r#"{"name":"PerfTest","capabilities":[{"id":"c-1","type":"measure"}]}"#
        );
        assert_eq!(
            model.device("PerfTest_3").body.to_string(),
            r#"{"alternateId":"PerfTest_3","name":"PerfTest_3","gatewayId":"2","sensors":[{"alternateId":"PerfTest","name":"PerfTest","sensorTypeId":"7"}]}"#
        );
    }

    #[test]
    fn what_a_platform_adds_is_no_difference() {
        let mut there = model().device("a").body;
        there["id"] = json!(9);
        there["gatewayId"] = json!(2);
        there["sensors"][0]["id"] = json!("11");
        assert_eq!(model().device("a").difference(&there), None);
        let mut there = model().capability().body;
        there["properties"]
            .as_array_mut()
            .expect("a list")
            .reverse();
        assert_eq!(model().capability().difference(&there), None);
    }

    #[test]
    fn a_difference_is_named_with_its_field() {
        let wanted = model().device("a");
        let told = |path: &str, value: Value| {
            let mut there = wanted.body.clone();
            *there.pointer_mut(path).expect("a field") = value;
            wanted.difference(&there).expect("a difference")
        };
        assert_eq!(
            told("/gatewayId", json!("3")),
            r#"`gatewayId` is "3", wanted "2""#
        );
        let sensor = r#"`sensors.sensorTypeId` is 8, wanted "7""#;
        assert_eq!(told("/sensors/0/sensorTypeId", json!(8)), sensor);
        assert_eq!(
            told("/sensors", json!([])),
            "`sensors` has 0 items, wanted 1"
        );
        assert_eq!(
            told("/sensors", json!([wanted.body["sensors"][0], {}])),
            "`sensors` has 2 items, wanted 1"
        );
        assert_eq!(told("/name", Value::Null), r#"`name` is null, wanted "a""#);
        let lacks = wanted.difference(&json!({ "alternateId": "a" }));
        assert_eq!(lacks.as_deref(), Some(r#"`name` is not there, wanted "a""#));
        let mut there = model().capability().body;
        there["properties"][1]["dataType"] = json!("date");
        let told = model().capability().difference(&there);
        let lacks = r#"`properties` lacks {"name":"ts","dataType":"string"}"#;
        assert_eq!(told.as_deref(), Some(lacks));
    }
}
