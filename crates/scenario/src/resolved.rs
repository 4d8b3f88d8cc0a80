//! A tree as JSON: the scenario as run, with its secrets masked.

use muster_plan::MASK;
use serde_json::{Map, Value as Json};

use crate::check::alternative;
use crate::language::{Kind, Object, SCENARIO, Scalar};
use crate::source::Place;
use crate::tree::Node;

pub(crate) fn resolved(root: &Node) -> Json {
    object(&SCENARIO, root)
}

/// The keys in the order of the language, wherever they stood.
fn object(object: &'static Object, node: &Node) -> Json {
    let entries = object.keys.iter().filter_map(|key| {
        let node = node.get(key.name)?;
        Some((key.name.to_owned(), value(&key.kind, node)))
    });
    Json::Object(entries.collect::<Map<String, Json>>())
}

fn value(kind: &'static Kind, node: &Node) -> Json {
    match kind {
        Kind::Object(inner) => object(inner, node),
        Kind::Table(inner) => {
            let entries = node.entries().iter();
            Json::Object(
                entries
                    .map(|e| (e.key.clone(), value(inner, &e.node)))
                    .collect(),
            )
        }
        Kind::List(inner) => node.items().iter().map(|item| value(inner, item)).collect(),
        Kind::Either(kinds) => {
            alternative(kinds, node).map_or(Json::Null, |kind| value(kind, node))
        }
        Kind::One(_) | Kind::Url(_) | Kind::Word(_) if node.written.is_some() => shown(node).into(),
        Kind::One(Scalar::Secret) => node.text().map_or(Json::Null, |text| masked(text).into()),
        Kind::One(
            Scalar::Bool
            | Scalar::BoolOrAny
            | Scalar::Whole(..)
            | Scalar::Fraction
            | Scalar::Factor,
        ) => number_or_truth(node),
        Kind::One(_) | Kind::Url(_) | Kind::Word(_) => node.text().into(),
        Kind::Percentiles if node.text().is_some() => node.text().into(),
        Kind::Percentiles => {
            let entries = node.entries().iter();
            Json::Object(
                entries
                    .map(|e| (e.key.clone(), shown(&e.node).into()))
                    .collect(),
            )
        }
    }
}

/// The text of a value, without what the environment holds.
fn shown(node: &Node) -> Option<&str> {
    node.written.as_deref().or(node.text())
}

/// The places of the secrets that a scenario spells out, also in addresses where none belongs.
pub(crate) fn spelt_out(root: &Node) -> Vec<Place> {
    let mut found = Vec::new();
    collect(&Kind::Object(&SCENARIO), root, &mut found);
    found
}

fn collect(kind: &Kind, node: &Node, found: &mut Vec<Place>) {
    match kind {
        Kind::Object(object) => {
            for entry in node.entries() {
                if let Some(key) = object.key(&entry.key) {
                    collect(&key.kind, &entry.node, found);
                }
            }
        }
        Kind::List(inner) => node
            .items()
            .iter()
            .for_each(|item| collect(inner, item, found)),
        Kind::Either(kinds) => {
            if let Some(kind) = alternative(kinds, node) {
                collect(kind, node, found);
            }
        }
        Kind::One(Scalar::Secret) => {
            if node.text().is_some_and(|text| masked(text) == MASK) {
                found.push(node.place);
            }
        }
        Kind::One(Scalar::Web) | Kind::Url(_) => {
            if node.text().is_some_and(|text| text.contains('@')) {
                found.push(node.place);
            }
        }
        Kind::One(_) | Kind::Word(_) | Kind::Percentiles | Kind::Table(_) => {}
    }
}

/// A secret that is a reference or a template names no secret; anything else is masked.
fn masked(text: &str) -> &str {
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let Some(length) = rest[start..].find('}') else {
            return MASK;
        };
        if rest[..start].chars().any(char::is_alphanumeric) {
            return MASK;
        }
        rest = &rest[start + length + 1..];
    }
    if rest.chars().any(char::is_alphanumeric) {
        MASK
    } else {
        text
    }
}

fn number_or_truth(node: &Node) -> Json {
    let text = node.text().unwrap_or_default().replace('_', "");
    serde_json::from_str(&text).unwrap_or_else(|_| Json::String(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Sources;
    use crate::tree;

    #[test]
    fn secrets_are_masked_and_references_stay() {
        for (text, shown) in [
            ("${env:PASSWORD}", "${env:PASSWORD}"),
            ("${id}@${tenant}", "${id}@${tenant}"),
            ("hunter2", "***"),
            ("${id}-hunter2", "***"),
            ("hunter2${id}", "***"),
            ("${id", "***"),
        ] {
            assert_eq!(masked(text), shown);
        }
    }

    #[test]
    fn the_scenario_as_run_is_json() {
        let text = "name: x\nseed: 1_0\nfleet:\n- count: 5\n  credential: { kind: password, user: bob, secret: hunter2 }\n";
        let root = tree::read(&Sources::new("x.yaml", text), 0).unwrap();
        let json = resolved(&root).to_string();
        assert_eq!(
            json,
            r#"{"name":"x","seed":10,"fleet":[{"count":5,"credential":{"kind":"password","user":"bob","secret":"***"}}]}"#
        );
    }
}
