//! The place in the language where a key of some name lives, for a key that stands elsewhere.

use super::join;
use crate::language::{Kind, Object, SCENARIO};

/// Place in the language where a key of this name lives: the path of its map.
pub(super) fn home(name: &str) -> Option<String> {
    homes(&SCENARIO, "", name)
}

fn homes(object: &'static Object, path: &str, name: &str) -> Option<String> {
    if object.key(name).is_some() {
        return Some(if path.is_empty() {
            "the top".to_owned()
        } else {
            path.to_owned()
        });
    }
    object
        .keys
        .iter()
        .find_map(|key| within(&key.kind, &join(path, key.name), name))
}

fn within(kind: &'static Kind, path: &str, name: &str) -> Option<String> {
    match kind {
        Kind::Object(object) => homes(object, path, name),
        Kind::List(inner) => within(inner, &format!("{path}[]"), name),
        Kind::Either(kinds) => kinds.iter().find_map(|kind| within(kind, path, name)),
        Kind::One(_) | Kind::Url(_) | Kind::Word(_) | Kind::Percentiles | Kind::Table(_) => None,
    }
}
