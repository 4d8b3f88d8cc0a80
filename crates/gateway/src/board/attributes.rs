//! Attributes of entities, in three scopes.

use redb::{ReadableTable, WriteTransaction};
use serde::Serialize;
use serde_json::{Map, Value};

use super::refusal::{Answer, Refusal};
use super::serial::Serial;
use super::store::{ATTRIBUTES, Tables};

/// Scope of an attribute: its writer and its readers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Scope {
    Client = 1,
    Server = 2,
    Shared = 3,
}

/// An attribute as the API has it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Attribute {
    /// Instant of its last change in milliseconds of the wall clock.
    last_update_ts: i64,
    pub(super) key: String,
    pub(super) value: Value,
}

impl Scope {
    pub(super) const ALL: [Self; 3] = [Self::Client, Self::Server, Self::Shared];

    /// Reads its name in a path.
    pub(super) fn named(name: &str) -> Answer<Self> {
        Ok(match name {
            "CLIENT_SCOPE" => Self::Client,
            "SERVER_SCOPE" => Self::Server,
            "SHARED_SCOPE" => Self::Shared,
            _ => return Err(Refusal::bad_request(&format!("Invalid scope: {name}"))),
        })
    }
}

/// Sets attributes of an entity.
pub(super) fn set(
    tables: &WriteTransaction,
    of: (Serial, Scope),
    values: &Map<String, Value>,
    now_ms: i64,
) -> Answer<()> {
    let (entity, scope) = of;
    let mut attributes = tables.open_table(ATTRIBUTES)?;
    for (key, value) in values.iter().filter(|(_, value)| !value.is_null()) {
        let value = serde_json::to_vec(value)?;
        attributes.insert(
            (entity.get(), scope as u8, key.as_str()),
            (now_ms, value.as_slice()),
        )?;
    }
    Ok(())
}

/// Reads attributes of an entity in a scope: those of the keys, or all.
pub(super) fn read(
    tables: &impl Tables,
    of: (Serial, Scope),
    keys: Option<&[&str]>,
) -> Answer<Vec<Attribute>> {
    let (entity, scope) = of;
    let attributes = tables.table(ATTRIBUTES)?;
    let from = (entity.get(), scope as u8, "");
    let mut read = Vec::new();
    for found in attributes.range(from..)? {
        let (found_key, found) = found?;
        let (of, in_scope, key) = found_key.value();
        if (of, in_scope) != (entity.get(), scope as u8) {
            break;
        }
        if keys.is_none_or(|keys| keys.contains(&key)) {
            let (last_update_ts, value) = found.value();
            read.push(Attribute {
                last_update_ts,
                key: key.to_owned(),
                value: serde_json::from_slice(value)?,
            });
        }
    }
    Ok(read)
}

/// Forgets all attributes of an entity.
pub(super) fn delete_all(tables: &WriteTransaction, of: Serial) -> Answer<()> {
    let mut attributes = tables.open_table(ATTRIBUTES)?;
    let (from, to) = ((of.get(), 0, ""), (of.get() + 1, 0, ""));
    attributes.retain_in(from..to, |_, _| false)?;
    Ok(())
}
