//! Pages of the documentation that list keys of a scenario.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use muster_scenario::json_schema;
use serde_json::Value;

/// Lines around the generated part of the page of the keys.
const MARKS: [&str; 2] = [
    "<!-- generated: the keys of a scenario, from its schema -->",
    "<!-- end of generated -->",
];

/// The keys of an object, those in its alternatives among them.
fn keys(schema: &Value) -> Vec<(&String, &Value)> {
    let own = schema["properties"].as_object().into_iter().flatten();
    let others = schema["anyOf"].as_array().into_iter().flatten();
    own.chain(others.flat_map(keys)).collect()
}

/// Every key that stands in the row of `row`, at any depth.
fn has_keys(row: &str, schema: &Value) {
    for (name, of) in keys(schema) {
        assert!(row.contains(&format!("{name}: ")), "`{name}` in {row}");
        has_keys(row, of);
    }
}

#[test]
fn every_misbehaviour_of_the_gateway_has_a_row_with_its_keys() {
    let page = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/gateway-behaviour.md"
    );
    let page = std::fs::read_to_string(page).unwrap();
    let rows: Vec<&str> = page
        .lines()
        .filter(|line| line.starts_with("| `"))
        .collect();
    let schema = json_schema();
    let behaviour = &schema["properties"]["platform"]["properties"]["behaviour"];
    let all = keys(behaviour);
    for (name, of) in &all {
        let of_key = |row: &&&str| row.starts_with(&format!("| `{name}` |"));
        let row = rows.iter().find(of_key);
        has_keys(row.unwrap_or_else(|| panic!("no row for `{name}`")), of);
    }
    assert_eq!(rows.len(), all.len(), "a row for each key, and no other");
}

/// Form of a value, in words.
fn form(schema: &Value, place: &str, met: &BTreeMap<String, String>) -> String {
    let words = |list: &Value| -> Vec<String> {
        let texts = list.as_array().into_iter().flatten();
        let texts = texts.filter(|word| !word.is_number());
        let shown = |word: &Value| {
            word.as_str()
                .map_or_else(|| word.to_string(), str::to_owned)
        };
        texts.map(|word| format!("`{}`", shown(word))).collect()
    };
    if let Some(kinds) = schema["anyOf"].as_array() {
        let is_reference = |kind: &&Value| kind["pattern"] == "\\$\\{env:[^}]+\\}";
        let kinds = kinds.iter().filter(|kind| !is_reference(kind));
        let kinds: Vec<String> = kinds.map(|kind| form(kind, place, met)).collect();
        return kinds.join(", or ");
    }
    if schema["properties"].is_object() {
        let own = met.get(&schema["properties"].to_string());
        let own = own.map_or(place, String::as_str);
        return format!("[keys](#{})", anchor(own));
    }
    if schema["patternProperties"].is_object() {
        return "bounds such as `{ p99: \"<= 250ms\" }`".to_owned();
    }
    if schema["items"].is_object() {
        return format!(
            "list of {}",
            form(&schema["items"], &format!("{place}[]"), met)
        );
    }
    if schema["additionalProperties"].is_object() {
        let inner = form(&schema["additionalProperties"], &format!("{place}.*"), met);
        return format!("map of {inner}");
    }
    if schema["enum"].is_array() {
        return words(&schema["enum"]).join(", ");
    }
    if let Some(example) = schema["examples"][0].as_str() {
        return format!("such as `{example}`");
    }
    if let Some(schemes) = schema["pattern"].as_str() {
        let schemes = schemes.trim_start_matches("^(?i:").trim_end_matches(")://");
        return format!("address: `{}`", schemes.replace('|', "`, `"));
    }
    match (
        &schema["type"],
        schema["minimum"].as_u64(),
        schema["maximum"].as_u64(),
    ) {
        (Value::String(kind), Some(least), Some(most)) => format!("{kind}, {least} to {most}"),
        (Value::String(kind), Some(least), None) => format!("{kind}, {least} or more"),
        (Value::String(kind), ..) => kind.clone(),
        _ if schema["$comment"].is_string() => "template".to_owned(),
        (_, Some(_), _) => "code such as `0x97`".to_owned(),
        _ => "text".to_owned(),
    }
}

fn anchor(place: &str) -> String {
    place.replace(['.', '[', ']', '*'], "")
}

/// A section for each object, in the order of a reader; one that is met again is not repeated.
fn sections(schema: &Value, place: &str, met: &mut BTreeMap<String, String>, page: &mut String) {
    let inner = ["items", "additionalProperties"]
        .into_iter()
        .zip(["[]", ".*"]);
    for (word, step) in inner.filter(|(word, _)| schema[word].is_object()) {
        sections(&schema[word], &format!("{place}{step}"), met, page);
    }
    for kind in schema["anyOf"].as_array().into_iter().flatten() {
        sections(kind, place, met, page);
    }
    let Some(keys) = schema["properties"].as_object() else {
        return;
    };
    let text = schema["properties"].to_string();
    if met.contains_key(&text) {
        return;
    }
    met.insert(text, place.to_owned());
    let dotted = |key: &str| match place {
        "top" => key.to_owned(),
        place => format!("{place}.{key}"),
    };
    let at = page.len();
    let mut rest = String::new();
    let (plain, lists): (Vec<_>, Vec<_>) = keys.iter().partition(|(_, of)| of["items"].is_null());
    for (key, of) in plain.into_iter().chain(lists) {
        sections(of, &dotted(key), met, &mut rest);
    }
    let mut table =
        format!("\n## {place}\n\n| key | value | default | meaning |\n|---|---|---|---|\n");
    for (key, of) in keys {
        let is_required = schema["required"]
            .as_array()
            .into_iter()
            .flatten()
            .any(|it| it == key);
        let default = match (of["default"].as_str(), of.get("default")) {
            (Some(text), _) => format!("`{text}`"),
            (None, Some(other)) => format!("`{other}`"),
            (None, None) if is_required => "required".to_owned(),
            (None, None) => String::new(),
        };
        let meaning = of["description"]
            .as_str()
            .unwrap_or_default()
            .replace('|', "\\|");
        let form = form(of, &dotted(key), met);
        let _ = writeln!(table, "| `{key}` | {form} | {default} | {meaning} |");
    }
    page.insert_str(at, &(table + &rest));
}

#[test]
fn the_page_of_the_scenario_has_every_key_and_variable() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/scenario.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let schema = json_schema();
    let mut wanted = String::from("\n\n## Variables\n\n| variable | value |\n|---|---|\n");
    for (name, meaning) in schema["$defs"]["variables"].as_object().unwrap() {
        let (name, meaning) = (name.replace('|', "\\|"), meaning.as_str().unwrap());
        let _ = writeln!(wanted, "| `{name}` | {meaning} |");
    }
    sections(&schema, "top", &mut BTreeMap::new(), &mut wanted);
    wanted.push('\n');
    let (before, rest) = text.split_once(MARKS[0]).unwrap();
    let (own, after) = rest.split_once(MARKS[1]).unwrap();
    if std::env::var_os("MUSTER_BLESS").is_some() {
        let text = format!("{before}{}{wanted}{}{after}", MARKS[0], MARKS[1]);
        std::fs::write(path, text).unwrap();
    } else {
        assert!(own == wanted, "docs/scenario.md differs: run `just bless`");
    }
}
