//! The counts of ThingsBoard's rule engine, and the calls by which they are read.
//!
//! A rule node counts the messages that reach it and stores the count each second as telemetry of the
//! tenant, `<prefix>_<service>`, zeros too; the schedule corrects itself, so that a late tick does not
//! move the next one.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, Query, Request, State};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::time::{Instant, interval_at};

use crate::shared::{Shared, locked};

/// How often the node stores its count.
const TICK: Duration = Duration::from_secs(1);
/// The prefix of the published rule chain.
const PREFIX: &str = "messageCount";
/// Most points that are kept: more than a day.
const POINTS_MAX: usize = 100_000;
/// Points of an answer where the call does not say.
const LIMIT: usize = 100;
/// The token where none is asked for: whoever logs in gets it.
const ANYBODY: &str = "anybody";
const LOGIN: &str = "/api/auth/login";
const KEYS: &str = "/api/plugins/telemetry/TENANT/{tenant}/keys/timeseries";
const VALUES: &str = "/api/plugins/telemetry/TENANT/{tenant}/values/timeseries";

/// What was counted each second: when on the wall clock, in milliseconds, and how much.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    points: VecDeque<(u64, u64)>,
}

/// Which points are asked for.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wanted {
    keys: String,
    start_ts: u64,
    end_ts: u64,
    limit: Option<usize>,
    agg: Option<String>,
    order_by: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Login {
    password: String,
}

impl Counted {
    fn push(&mut self, at_ms: u64, count: u64) {
        if self.points.len() == POINTS_MAX {
            self.points.pop_front();
        }
        self.points.push_back((at_ms, count));
    }

    /// The points from the start to before the end, the newest first unless asked otherwise, as
    /// ThingsBoard writes them: values are text.
    fn points(&self, wanted: &Wanted) -> Vec<Value> {
        let within = |point: &&(u64, u64)| (wanted.start_ts..wanted.end_ts).contains(&point.0);
        let point = |(ts, value): &(u64, u64)| json!({ "ts": ts, "value": value.to_string() });
        let limit = wanted.limit.unwrap_or(LIMIT);
        let points = self.points.iter().filter(within);
        match wanted.order_by.as_deref() {
            Some("ASC") => points.take(limit).map(point).collect(),
            Some(_) | None => points.rev().take(limit).map(point).collect(),
        }
    }
}

/// Counts for as long as the gateway runs.
pub(super) async fn each_second(shared: Arc<Shared>) {
    let mut ticks = interval_at(Instant::now() + TICK, TICK);
    let clock = shared.config.clock();
    let mut before = 0;
    loop {
        ticks.tick().await;
        let processed = shared.processed();
        let at_ms = clock.wall_ms_at_t0() + clock.now().get() / 1_000;
        locked(&shared.counted).push(at_ms, processed - before);
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

/// The name of the series.
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
        let points = locked(&shared.counted).points(&wanted);
        answer.insert(key, points.into());
    }
    Json(answer).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(start_ts: u64, end_ts: u64, limit: Option<usize>, order: &str) -> Wanted {
        Wanted {
            keys: "k".to_owned(),
            start_ts,
            end_ts,
            limit,
            agg: None,
            order_by: Some(order.to_owned()),
        }
    }

    #[test]
    fn points_are_those_from_the_start_to_before_the_end() {
        let mut counted = Counted::default();
        (0..5).for_each(|at| counted.push(1_000 * at, at));
        let values = |wanted: &Wanted| -> Vec<String> {
            let points = counted.points(wanted).into_iter();
            points
                .map(|point| format!("{}:{}", point["ts"], point["value"].as_str().unwrap()))
                .collect()
        };
        let all = ["1000:1", "2000:2", "3000:3"];
        assert_eq!(values(&wanted(1_000, 4_000, None, "ASC")), all);
        assert_eq!(
            values(&wanted(1_000, 4_000, Some(2), "DESC")),
            ["3000:3", "2000:2"]
        );
    }

    #[test]
    fn no_more_points_are_kept_than_the_bound() {
        let mut counted = Counted::default();
        (0..POINTS_MAX as u64 + 3).for_each(|at| counted.push(at, 1));
        assert_eq!(counted.points.len(), POINTS_MAX);
        assert_eq!(counted.points.front(), Some(&(3, 1)));
    }
}
