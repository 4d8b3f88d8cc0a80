//! The counts of ThingsBoard's rule engine, and the calls that read them.
//!
//! A rule node counts the messages that reach it and stores the count each second as telemetry of the
//! tenant, `<prefix>_<service>`, zeros too; the schedule corrects itself, so that a late tick does not
//! move the next one.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, Query, Request, State};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::{Map, json};
use tokio::time::{Instant, interval_at};

use crate::counted::Wanted;
use crate::lock::locked;
use crate::shared::Shared;

const TICK: Duration = Duration::from_secs(1);
/// The prefix of the published rule chain.
const PREFIX: &str = "messageCount";
/// The token where none is asked for: whoever logs in gets it.
const ANYBODY: &str = "anybody";
const LOGIN: &str = "/api/auth/login";
const KEYS: &str = "/api/plugins/telemetry/TENANT/{tenant}/keys/timeseries";
const VALUES: &str = "/api/plugins/telemetry/TENANT/{tenant}/values/timeseries";

#[derive(Debug, Deserialize)]
struct Login {
    password: String,
}

/// Counts for as long as the gateway runs.
pub(super) async fn each_second(shared: Arc<Shared>) {
    let mut ticks = interval_at(Instant::now() + TICK, TICK);
    let clock = shared.config.clock();
    let mut before = 0;
    loop {
        ticks.tick().await;
        let processed = shared.account.read_counts().processed;
        let at_ms = clock.wall_ms_at_t0() + clock.now().get() / 1_000;
        locked(&shared.managed.counted).push(at_ms, processed - before);
        before = processed;
    }
}

pub(super) fn routes(shared: Arc<Shared>) -> Router {
    let telemetry = Router::new()
        .route(KEYS, get(keys))
        .route(VALUES, get(values))
        .layer(from_fn_with_state(Arc::clone(&shared), authorize));
    Router::new()
        .route(LOGIN, post(login))
        .merge(telemetry)
        .with_state(shared)
}

fn key(shared: &Shared) -> String {
    let management = shared.config.management.as_ref();
    let service = management.map_or("", |management| &management.gateway);
    format!("{PREFIX}_{service}")
}

fn token(shared: &Shared) -> Option<&str> {
    shared.config.management.as_ref()?.token.as_deref()
}

fn refused(status: StatusCode, message: &str) -> Response {
    let body = json!({ "status": status.as_u16(), "message": message });
    (status, Json(body)).into_response()
}

/// The password is the token of the gateway, where it has one.
async fn login(State(shared): State<Arc<Shared>>, Json(login): Json<Login>) -> Response {
    let token = token(&shared);
    if token.is_some_and(|token| token != login.password) {
        return refused(StatusCode::UNAUTHORIZED, "Invalid username or password");
    }
    let token = token.unwrap_or(ANYBODY);
    Json(json!({ "token": token, "refreshToken": token })).into_response()
}

async fn authorize(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    let given = request.headers().get("x-authorization");
    let given = given.and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
    if given == Some(token(&shared).unwrap_or(ANYBODY)) {
        return next.run(request).await;
    }
    refused(StatusCode::UNAUTHORIZED, "Authentication failed")
}

async fn keys(State(shared): State<Arc<Shared>>, Path(_tenant): Path<String>) -> Response {
    Json(json!([key(&shared)])).into_response()
}

async fn values(
    State(shared): State<Arc<Shared>>,
    Path(_tenant): Path<String>,
    Query(wanted): Query<Wanted>,
) -> Response {
    if wanted.agg.as_deref().is_some_and(|agg| agg != "NONE") {
        return refused(StatusCode::BAD_REQUEST, "only agg=NONE is served");
    }
    let key = key(&shared);
    let mut answer = Map::new();
    if wanted.keys.split(',').any(|wanted| wanted == key) {
        let points = locked(&shared.managed.counted).points(&wanted);
        answer.insert(key, points.into());
    }
    Json(answer).into_response()
}
