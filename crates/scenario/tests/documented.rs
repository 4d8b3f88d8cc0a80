//! Pages of the documentation that list keys of a scenario.

use muster_scenario::json_schema;
use serde_json::Value;

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
