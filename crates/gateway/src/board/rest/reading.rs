//! Calls that read and write what entities have stored: time series and attributes.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::response::Response;
use axum::routing::{MethodRouter, get, post};
use muster_platform::board_rest::{self as calls, Device, EntityType};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::super::attributes::{self, Attribute, Scope};
use super::super::refusal::{Answer, Refusal};
use super::super::serial::Serial;
use super::super::store::Tables;
use super::super::{Board, records, series};
use super::{Routes, apart, respond, serve};

/// Attributes of all scopes that others may see; the path of the scopes and a place for one of them.
const ALL_ATTRIBUTES: &str = "/api/plugins/telemetry/{type}/{entity}/values/attributes";
const READ_ATTRIBUTES: &str = "/api/plugins/telemetry/{type}/{entity}/values/attributes/{scope}";
const WRITE_ATTRIBUTES: &str = "/api/plugins/telemetry/{type}/{entity}/attributes/{scope}";

/// Path of the call for a range of series in clients of version 4.4.
const NEW_SERIES: &str = "/api/plugins/telemetry/{type}/{entity}/values/timeseries/history";

#[derive(Debug, Deserialize)]
struct Keys {
    keys: Option<String>,
}

pub(super) fn routes() -> Routes {
    Router::new()
        .route(
            calls::SERIES_KEYS.route(),
            serve(&calls::SERIES_KEYS, |board, asked| {
                let tables = board.store.read()?;
                series::keys(&tables, entity(&tables, &asked.path)?)
            }),
        )
        .route(calls::SERIES.route(), read_series())
        .route(NEW_SERIES, read_series())
        .route(ALL_ATTRIBUTES, get(all_attributes))
        .route(READ_ATTRIBUTES, get(attributes_in_scope))
        .route(WRITE_ATTRIBUTES, post(set_attributes))
}

fn read_series() -> MethodRouter<Arc<Board>> {
    serve(&calls::SERIES, |board, asked| {
        let tables = board.store.read()?;
        series::read(&tables, entity(&tables, &asked.path)?, &asked.query)
    })
}

/// The entity that a path names: the tenant, or a device.
fn entity(tables: &impl Tables, path: &[String; 2]) -> Answer<Serial> {
    let [kind, id] = path;
    let Some(kind) = EntityType::of(kind) else {
        return Err(Refusal::bad_request(&format!(
            "Unsupported entity type: {kind}"
        )));
    };
    let id = Serial::parse(id)?;
    let is_device = kind == EntityType::Device;
    let is_tenant = kind == EntityType::Tenant && id == Serial::TENANT;
    let is_there = is_tenant || is_device && records::find::<Device>(tables, id)?.is_some();
    is_there.then_some(id).ok_or_else(Refusal::not_found)
}

async fn all_attributes(
    State(board): State<Arc<Board>>,
    Path(path): Path<[String; 2]>,
    Query(keys): Query<Keys>,
) -> Answer<Response> {
    apart(move || read_attributes(&board, &path, &Scope::ALL, &keys).map(respond)).await
}

async fn attributes_in_scope(
    State(board): State<Arc<Board>>,
    Path([kind, id, scope]): Path<[String; 3]>,
    Query(keys): Query<Keys>,
) -> Answer<Response> {
    let scope = Scope::named(&scope)?;
    apart(move || read_attributes(&board, &[kind, id], &[scope], &keys).map(respond)).await
}

fn read_attributes(
    board: &Board,
    path: &[String; 2],
    scopes: &[Scope],
    keys: &Keys,
) -> Answer<Vec<Attribute>> {
    let keys: Option<Vec<&str>> = keys.keys.as_deref().map(|keys| keys.split(',').collect());
    let tables = board.store.read()?;
    let entity = entity(&tables, path)?;
    let mut all = Vec::new();
    for scope in scopes {
        all.extend(attributes::read(
            &tables,
            (entity, *scope),
            keys.as_deref(),
        )?);
    }
    Ok(all)
}

async fn set_attributes(
    State(board): State<Arc<Board>>,
    Path([kind, id, scope]): Path<[String; 3]>,
    body: Bytes,
) -> Answer<Response> {
    let scope = Scope::named(&scope)?;
    let values: Map<String, Value> = serde_json::from_slice(&body)
        .map_err(|error| Refusal::bad_request(&format!("Bad request: {error}")))?;
    apart(move || {
        let now_ms = board.now_ms();
        let set = board.store.write(|tables| {
            let entity = entity(tables, &[kind, id])?;
            attributes::set(tables, (entity, scope), &values, now_ms)
        });
        set.map(respond)
    })
    .await
}
