//! The JSON schema of a scenario (draft 2020-12), from the language's own table.

use muster_load::VARIABLES;
use serde_json::{Map, Value, json};

use crate::language::{Key, Kind, Object, Owner, SCENARIO, Scalar, Status, Word};
use crate::units;

/// The JSON schema of a scenario. Keys that are not yet built are in it and say so.
pub fn json_schema() -> Value {
    let mut schema = object(&SCENARIO);
    if let Value::Object(map) = &mut schema {
        map.insert(
            "$schema".to_owned(),
            "https://json-schema.org/draft/2020-12/schema".into(),
        );
        map.insert("title".to_owned(), "Muster scenario".into());
        let variables = VARIABLES.map(|(name, meaning)| (format!("${{{name}}}"), meaning.into()));
        let variables = Map::from_iter(variables);
        map.insert("$defs".to_owned(), json!({ "variables": variables }));
    }
    schema
}

fn object(object: &Object) -> Value {
    let mut properties = Map::new();
    let known = |key: &&Key| !matches!(key.status, Status::Refused { .. });
    for key in object.keys.iter().filter(known) {
        let mut schema = kind(&key.kind);
        if let Value::Object(map) = &mut schema {
            map.insert("description".to_owned(), described(key).into());
            if let Some(default) = key
                .default
                .filter(|default| !default.starts_with(['{', '[']))
            {
                map.insert("default".to_owned(), literal(default));
            }
        }
        properties.insert(key.name.to_owned(), schema);
    }
    let required: Vec<&str> = object
        .keys
        .iter()
        .filter(|key| key.required)
        .map(|key| key.name)
        .collect();
    let mut schema =
        json!({ "type": "object", "properties": properties, "additionalProperties": false });
    if let (Value::Object(map), false) = (&mut schema, required.is_empty()) {
        map.insert("required".to_owned(), required.into());
    }
    schema
}

fn described(key: &Key) -> String {
    let owners: Vec<String> = key.owners.iter().map(Owner::name).collect();
    let doc = match &owners[..] {
        [] => key.doc.to_owned(),
        owners => format!("{}; a key of {}", key.doc, owners.join(", with ")),
    };
    match key.status {
        Status::Built => doc,
        Status::NotYet(with) => format!("{doc}. Not yet built: comes with {with}"),
        Status::Refused { why, help: _ } => why.to_owned(),
    }
}

fn kind(kind_: &Kind) -> Value {
    match kind_ {
        Kind::One(scalar) if scalar.is_text() => single(*scalar),
        Kind::One(scalar) => or_reference(&single(*scalar)),
        Kind::Url(urls) => {
            let is_refused = |word: &Word| matches!(word.status, Status::Refused { .. });
            let schemes = urls.words().into_iter();
            let schemes = schemes.filter(|word| !is_refused(word));
            let schemes: Vec<&str> = schemes.map(|word| word.name).collect();
            let pattern = format!("^(?i:{})://", schemes.join("|"));
            or_reference(&json!({ "type": "string", "pattern": pattern }))
        }
        Kind::Word(words) => or_reference(&choice(words)),
        Kind::Percentiles => json!({ "anyOf": [{ "enum": [units::ANY] }, {
            "type": "object",
            "patternProperties": { "^p[0-9]+(\\.[0-9]+)?$": { "type": "string" } },
            "additionalProperties": false,
            "minProperties": 1
        }] }),
        Kind::Object(inner) => object(inner),
        Kind::Table(inner) => json!({ "type": "object", "additionalProperties": kind(inner) }),
        Kind::List(inner) => json!({ "type": "array", "items": kind(inner) }),
        Kind::Either(kinds) => json!({ "anyOf": kinds.iter().map(kind).collect::<Vec<_>>() }),
    }
}

/// A reference to the environment, which may stand for any value.
const REFERENCE: &str = "\\$\\{env:[^}]+\\}";

fn or_reference(schema: &Value) -> Value {
    json!({ "anyOf": [schema, { "type": "string", "pattern": REFERENCE }] })
}

fn choice(words: &[Word]) -> Value {
    // YAML reads the word `5` as a number, so a schema must allow both.
    let literals = words.iter().flat_map(|word| {
        let text = Value::String(word.name.to_owned());
        let number = Some(literal(word.name)).filter(|literal| *literal != text);
        [Some(text), number].into_iter().flatten()
    });
    json!({ "enum": literals.collect::<Vec<_>>() })
}

fn single(scalar: Scalar) -> Value {
    let text = |pattern: &str, example: &str| json!({ "type": "string", "pattern": pattern, "examples": [example] });
    match scalar {
        Scalar::Text | Scalar::Secret | Scalar::Reference | Scalar::File => {
            json!({ "type": ["string", "number", "boolean"] })
        }
        Scalar::Template | Scalar::ClientId => {
            json!({ "type": ["string", "number", "boolean"], "$comment": "with variables" })
        }
        Scalar::Bool => json!({ "type": "boolean" }),
        Scalar::BoolOrAny => json!({ "enum": [true, false, units::ANY] }),
        Scalar::Whole(least, u64::MAX) => json!({ "type": "integer", "minimum": least }),
        Scalar::Whole(least, most) => {
            json!({ "type": "integer", "minimum": least, "maximum": most })
        }
        Scalar::Code => json!({ "type": ["integer", "string"], "minimum": 0x80, "maximum": 999 }),
        Scalar::Fraction => json!({ "type": "number", "minimum": 0, "maximum": 1 }),
        Scalar::Factor => json!({ "type": "number", "minimum": 1, "maximum": 100 }),
        Scalar::Rate => text(
            "^[0-9][0-9._]* *[kM]? */ *((us|ms|s|m|min|h|d)|([0-9][0-9._]* *(us|ms|s|m|min|h|d) *)+)$",
            "500/s",
        ),
        Scalar::Time => text("^([0-9][0-9._]* *(us|ms|s|m|min|h|d) *)+$", "250ms"),
        Scalar::Percent => text("^[0-9][0-9.]* *%$", "85%"),
        Scalar::Size => {
            json!({ "type": ["integer", "string"], "minimum": 0, "examples": ["4KiB"] })
        }
        Scalar::Quantity => {
            json!({ "type": ["number", "string"], "minimum": 0, "examples": ["2GiB"] })
        }
        Scalar::CountAtMost | Scalar::ShareAtMost => {
            json!({ "type": ["integer", "string"], "examples": ["<= 0.1%"] })
        }
        Scalar::ShareAtLeast => text("^((>=)? *[0-9][0-9.]* *%|any)$", ">= 99.9%"),
        Scalar::Above => text("^> *[0-9][0-9.]* *% *for .+$", "> 5% for 10s"),
        Scalar::Below => text("^< *[0-9][0-9.]* *% *for .+$", "< 90% for 10s"),
        Scalar::PercentileAbove => {
            text("^p[0-9][0-9.]* *> *[0-9].* *for .+$", "p99 > 500ms for 10s")
        }
        Scalar::Web => text("^https?://", "https://host"),
    }
}

/// A default as JSON: numbers and truths as such, everything else as text.
fn literal(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Sources;
    use crate::tree::{self, Node, Value as Tree};

    /// Returns true if a value is of a schema, for the words of JSON schema that this one uses;
    /// patterns are left to the check of the language.
    fn fits(schema: &Value, value: &Value) -> bool {
        let is_type = |name: &Value| match name.as_str().unwrap() {
            "object" => value.is_object(),
            "array" => value.is_array(),
            "string" => value.is_string(),
            "boolean" => value.is_boolean(),
            "integer" => value.is_u64() || value.is_i64(),
            "number" => value.is_number(),
            other => panic!("type {other}"),
        };
        schema
            .as_object()
            .unwrap()
            .iter()
            .all(|(word, rule)| match word.as_str() {
                "type" => rule
                    .as_array()
                    .map_or_else(|| is_type(rule), |any| any.iter().any(is_type)),
                "enum" => rule.as_array().unwrap().contains(value),
                "anyOf" => rule
                    .as_array()
                    .unwrap()
                    .iter()
                    .any(|schema| fits(schema, value)),
                "items" => {
                    let mut items = value.as_array().unwrap().iter();
                    items.all(|item| fits(rule, item))
                }
                "required" => rule
                    .as_array()
                    .unwrap()
                    .iter()
                    .all(|name| value.get(name.as_str().unwrap()).is_some()),
                "properties" => value
                    .as_object()
                    .unwrap()
                    .iter()
                    .all(|(key, value)| rule.get(key).is_none_or(|schema| fits(schema, value))),
                "additionalProperties" => {
                    let object = value.as_object().unwrap();
                    let known = schema.get("properties");
                    let mut others = object.iter().filter(|(key, _)| {
                        known.is_none_or(|known| known.get(key.as_str()).is_none())
                    });
                    let is_named = schema.get("patternProperties").is_some();
                    others.all(|(key, value)| {
                        if rule == &Value::Bool(false) {
                            is_named && key.starts_with('p')
                        } else {
                            fits(rule, value)
                        }
                    })
                }
                "minimum" => value
                    .as_f64()
                    .is_none_or(|value| value >= rule.as_f64().unwrap()),
                "maximum" => value
                    .as_f64()
                    .is_none_or(|value| value <= rule.as_f64().unwrap()),
                "minProperties" => {
                    value.as_object().unwrap().len() as u64 >= rule.as_u64().unwrap()
                }
                "pattern" if rule == REFERENCE => {
                    value.as_str().is_some_and(|text| text.contains("${env:"))
                }
                "$schema" | "$defs" | "$comment" | "title" | "description" | "default"
                | "examples" | "pattern" | "patternProperties" => true,
                other => panic!("the schema uses `{other}`"),
            })
    }

    /// A scenario as an editor with a schema sees it.
    fn json(node: &Node) -> Value {
        match &node.value {
            Tree::Scalar {
                text,
                quoted: false,
            } => literal(text),
            Tree::Scalar { text, .. } => Value::String(text.clone()),
            Tree::List(items) => items.iter().map(json).collect(),
            Tree::Map(entries) => entries
                .iter()
                .map(|e| (e.key.clone(), json(&e.node)))
                .collect(),
        }
    }

    fn is_valid(text: &str) -> bool {
        let root = tree::read(&Sources::new("test.yaml", text), 0).unwrap();
        fits(&json_schema(), &json(&root))
    }

    #[test]
    fn the_schema_knows_every_key_of_the_complete_file() {
        assert!(is_valid(include_str!("../../../scenarios/complete.yaml")));
        assert!(is_valid(include_str!("../../../scenarios/overload.yaml")));
        let any = "slo: { loss: any, stable: any, response: any, service: { p99: any } }";
        assert!(is_valid(&format!("name: t\nfleet: []\n{any}")));
    }

    #[test]
    fn the_schema_takes_short_forms_and_references_to_the_environment() {
        for text in [
            "name: t\nfleet: [ { count: \"${env:COUNT}\" } ]",
            "name: t\nfleet: []\nplatform: { kind: \"${env:KIND}\", devices: \"${env:URL}\" }",
            "name: t\nfleet: []\nplatform: { devices: \"MQTT://h\", backend: \"mqtt://h\" }",
            "name: t\nfleet: []\nplatform: { backend: [ \"mqtt://h\", { url: \"mqtt://h\" } ] }",
        ] {
            assert!(is_valid(text), "{text}");
        }
    }

    #[test]
    fn the_schema_refuses_what_the_language_refuses() {
        for text in [
            "fleet: []",
            "name: t\nfleet: {}",
            "name: t\nfleet: [ { cuont: 5 } ]",
            "name: t\nfleet: [ { count: 0 } ]",
            "name: t\nfleet: [ { streams: [ { qos: 3 } ] } ]",
            "name: t\nfleet: [ { streams: [ { phase: random } ] } ]",
            "name: t\nfleet: []\nslo: { response: {} }",
            "name: t\nfleet: []\nslo: { response: { x99: 1s } }",
        ] {
            assert!(!is_valid(text), "{text}");
        }
    }
}
