//! The REST calls, each answered from the store.

mod calling;
mod limit;
mod reading;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::rejection::QueryRejection;
use axum::extract::{DefaultBodyLimit, Path, Query, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, delete, get, post};
use axum::{Extension, Json, Router};
use muster_platform::board_rest::{self as calls, AUTHORIZATION, Call, ErrorCode, PageQuery, Verb};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::task::spawn_blocking;

pub(super) use self::limit::RestLimit;
use super::devices::{self, Admission};
use super::login::{Logins, Session, user};
use super::refusal::{Answer, Refusal};
use super::{Board, bulk_import, chains, customers, profiles, records};
use crate::shared::Shared;

/// Bytes of a body at the most: a list of devices of a large tenant.
const BODY_MAX: usize = 50 << 20;

/// Path of the call for the device of a name in clients of version 4.4.
const NEW_FIND_DEVICE: &str = "/api/tenant/device";

/// The page of counters for Prometheus, which needs no login.
const COUNTERS: &str = "/actuator/prometheus";

/// Arguments of a call.
#[derive(Debug)]
struct Asked<const N: usize, Q, B> {
    path: [String; N],
    query: Q,
    body: B,
}

/// Routes, and what they are answered from.
type Routes = Router<Arc<Board>>;

/// Returns the routes of all calls.
pub(crate) fn routes(board: Arc<Board>, shared: Arc<Shared>) -> Router {
    let all = Router::new()
        .merge(sessions())
        .merge(device_routes())
        .merge(profile_routes())
        .merge(customer_routes())
        .merge(transfer_routes())
        .merge(chain_routes())
        .merge(reading::routes())
        .merge(calling::routes())
        .layer(Extension(shared));
    let all = all.layer(from_fn_with_state(Arc::clone(&board), admit));
    let open = logins().route(COUNTERS, get(counters));
    open.merge(all)
        .layer(DefaultBodyLimit::max(BODY_MAX))
        .with_state(board)
}

/// Answers a call of the table.
fn serve<const N: usize, Q, B, A>(
    call: &Call<N, Q, B, A>,
    act: fn(&Board, Asked<N, Q, B>) -> Answer<A>,
) -> MethodRouter<Arc<Board>>
where
    Q: DeserializeOwned + Send + 'static,
    B: DeserializeOwned + 'static,
    A: Serialize + 'static,
{
    let handler = move |State(board): State<Arc<Board>>,
                        Path(path): Path<Vec<String>>,
                        query: Result<Query<Q>, QueryRejection>,
                        body: Bytes| {
        apart(move || {
            let asked = asked(path, query, &body)?;
            Ok(respond(act(&board, asked)?))
        })
    };
    match call.verb() {
        Verb::Get => get(handler),
        Verb::Post => post(handler),
        Verb::Delete => delete(handler),
    }
}

fn asked<const N: usize, Q, B: DeserializeOwned>(
    path: Vec<String>,
    query: Result<Query<Q>, QueryRejection>,
    body: &[u8],
) -> Answer<Asked<N, Q, B>> {
    let Query(query) = query.map_err(|error| Refusal::bad_request(&error.body_text()))?;
    let path = path.try_into().map_err(|_| Refusal::not_found())?;
    // A call without a body may have one all the same, which nobody reads.
    let body = if size_of::<B>() == 0 { b"null" } else { body };
    let body = serde_json::from_slice(body);
    let body = body.map_err(|error| Refusal::bad_request(&format!("Bad request: {error}")))?;
    Ok(Asked { path, query, body })
}

/// Runs what uses the store on another thread: a long call, or one that waits for its turn to write, does not
/// delay the other calls.
async fn apart<T: Send + 'static>(act: impl FnOnce() -> Answer<T> + Send + 'static) -> Answer<T> {
    let failed = |_| Refusal::new(500, ErrorCode::GENERAL, "the call failed");
    spawn_blocking(act).await.map_err(failed)?
}

/// An answer without content is an empty body.
fn respond<A: Serialize>(answer: A) -> Response {
    match size_of::<A>() {
        0 => StatusCode::OK.into_response(),
        _ => Json(answer).into_response(),
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.0.status);
        let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        (status, Json(self.0)).into_response()
    }
}

/// Lets nobody in without a token, and not more calls than the tenant may make.
async fn admit(State(board): State<Arc<Board>>, mut request: Request, next: Next) -> Response {
    let session = bearer(request.headers())
        .ok_or_else(|| Refusal::unauthorized(ErrorCode::AUTHENTICATION, "Authentication failed"))
        .and_then(|token| board.logins.check(&board.store, token, board.now_ms()));
    let session = match session {
        Ok(session) => session,
        Err(refusal) => return refusal.into_response(),
    };
    if let Some(limit) = &board.rest_limit
        && !limit.admits(board.clock.now())
    {
        let what = "Too many requests for current tenant!";
        return Refusal::new(429, ErrorCode::TOO_MANY_REQUESTS, what).into_response();
    }
    request.extensions_mut().insert(session);
    next.run(request).await
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let own = headers.get(AUTHORIZATION);
    let given = own.or_else(|| headers.get(header::AUTHORIZATION))?;
    given.to_str().ok()?.strip_prefix("Bearer ")
}

fn logins() -> Routes {
    Router::new()
        .route(
            calls::LOGIN.route(),
            serve(&calls::LOGIN, |board, asked| {
                board.logins.login(&asked.body, board.now_ms())
            }),
        )
        .route(
            calls::REFRESH.route(),
            serve(&calls::REFRESH, |board, asked| {
                let token = &asked.body.refresh_token;
                board.logins.refresh(&board.store, token, board.now_ms())
            }),
        )
}

async fn counters(State(board): State<Arc<Board>>) -> Response {
    let content = [(header::CONTENT_TYPE, "text/plain; version=0.0.4")];
    (content, board.statistics.page()).into_response()
}

fn sessions() -> Routes {
    Router::new()
        .route(calls::LOGOUT.route(), post(logout))
        .route(calls::USER.route(), serve(&calls::USER, |_, _| Ok(user())))
}

async fn logout(
    State(board): State<Arc<Board>>,
    Extension(session): Extension<Session>,
) -> Answer<Response> {
    apart(move || {
        Logins::logout(&board.store, &session, board.now_ms())?;
        Ok(StatusCode::OK.into_response())
    })
    .await
}

/// Query of `/api/tenant/devices`: a name, or a page.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct DevicesQuery {
    device_name: Option<String>,
    page_size: Option<u32>,
    page: Option<u32>,
    text_search: Option<String>,
}

async fn devices_of_tenant(
    State(board): State<Arc<Board>>,
    query: Result<Query<DevicesQuery>, QueryRejection>,
) -> Answer<Response> {
    let Query(query) = query.map_err(|error| Refusal::bad_request(&error.body_text()))?;
    apart(move || find_devices(&board, query)).await
}

fn find_devices(board: &Board, query: DevicesQuery) -> Answer<Response> {
    let tables = board.store.read()?;
    if let Some(name) = query.device_name {
        return Ok(respond(devices::named(&tables, &name)?));
    }
    let (Some(page_size), Some(page)) = (query.page_size, query.page) else {
        let what = "Required request parameter 'pageSize' or 'page' is not present";
        return Err(Refusal::bad_request(what));
    };
    let text_search = query.text_search;
    let page = devices::page(
        &tables,
        &PageQuery {
            page_size,
            page,
            text_search,
        },
    );
    Ok(respond(page?))
}

fn device_routes() -> Routes {
    Router::new()
        .route(
            calls::CREATE_DEVICE.route(),
            serve(&calls::CREATE_DEVICE, |board, asked| {
                let token = asked.query.access_token.as_deref();
                let admission = board.admission(token.filter(|token| !token.is_empty()));
                let device = asked.body;
                board
                    .store
                    .write(|tables| devices::save(tables, device, &admission))
            }),
        )
        .route(
            calls::IMPORT_DEVICES.route(),
            serve(&calls::IMPORT_DEVICES, |board, asked| {
                let admission = board.admission(None);
                board
                    .store
                    .write(|tables| bulk_import::import(tables, &asked.body, &admission))
            }),
        )
        .route(calls::LIST_DEVICES.route(), get(devices_of_tenant))
        .route(
            NEW_FIND_DEVICE,
            serve(&calls::FIND_DEVICE, |board, asked| {
                devices::named(&board.store.read()?, &asked.query.device_name)
            }),
        )
        .route(
            calls::READ_DEVICE.route(),
            serve(&calls::READ_DEVICE, |board, asked| {
                let [id] = asked.path;
                devices::read(&board.store.read()?, &id)
            })
            .merge(serve(&calls::DELETE_DEVICE, |board, asked| {
                let [id] = asked.path;
                board.store.write(|tables| devices::delete(tables, &id))
            })),
        )
        .route(
            calls::READ_CREDENTIALS.route(),
            serve(&calls::READ_CREDENTIALS, |board, asked| {
                let [id] = asked.path;
                devices::credentials(&board.store.read()?, &id)
            }),
        )
        .route(
            calls::WRITE_CREDENTIALS.route(),
            serve(&calls::WRITE_CREDENTIALS, |board, asked| {
                let credentials = asked.body;
                board
                    .store
                    .write(|tables| devices::set_credentials(tables, credentials))
            }),
        )
}

fn profile_routes() -> Routes {
    Router::new()
        .route(
            calls::CREATE_PROFILE.route(),
            serve(&calls::CREATE_PROFILE, |board, asked| {
                let profile = asked.body;
                board.store.write(|tables| profiles::save(tables, profile))
            }),
        )
        .route(
            calls::LIST_PROFILES.route(),
            serve(&calls::LIST_PROFILES, |board, asked| {
                records::page(&board.store.read()?, &asked.query)
            }),
        )
        .route(
            calls::READ_PROFILE.route(),
            serve(&calls::READ_PROFILE, |board, asked| {
                let [id] = asked.path;
                profiles::read(&board.store.read()?, &id)
            })
            .merge(serve(&calls::DELETE_PROFILE, |board, asked| {
                let [id] = asked.path;
                board.store.write(|tables| profiles::delete(tables, &id))
            })),
        )
}

fn customer_routes() -> Routes {
    Router::new()
        .route(
            calls::CREATE_CUSTOMER.route(),
            serve(&calls::CREATE_CUSTOMER, |board, asked| {
                let customer = asked.body;
                board
                    .store
                    .write(|tables| customers::save(tables, customer))
            }),
        )
        .route(
            calls::FIND_CUSTOMER.route(),
            serve(&calls::FIND_CUSTOMER, |board, asked| {
                customers::titled(&board.store.read()?, &asked.query.customer_title)
            }),
        )
        .route(
            calls::DELETE_CUSTOMER.route(),
            serve(&calls::DELETE_CUSTOMER, |board, asked| {
                let [id] = asked.path;
                board.store.write(|tables| customers::delete(tables, &id))
            }),
        )
        .route(
            calls::ASSIGN_DEVICE.route(),
            serve(&calls::ASSIGN_DEVICE, |board, asked| {
                let [customer, device] = asked.path;
                board.store.write(|tables| {
                    let customer = customers::known(tables, &customer)?;
                    devices::assign(tables, &device, customer)
                })
            }),
        )
}

fn transfer_routes() -> Routes {
    Router::new()
        .route(
            calls::EXPORT_RULE_CHAINS.route(),
            serve(&calls::EXPORT_RULE_CHAINS, |board, asked| {
                chains::export(&board.store.read()?, asked.query.limit)
            }),
        )
        .route(
            calls::IMPORT_RULE_CHAINS.route(),
            serve(&calls::IMPORT_RULE_CHAINS, |board, asked| {
                let overwrites = asked.query.overwrite.unwrap_or(false);
                let (data, now_ms) = (asked.body, board.now_ms());
                let imported = board
                    .store
                    .write(|tables| chains::import(tables, data, overwrites, now_ms))?;
                board.note_chain_change();
                Ok(imported)
            }),
        )
}

fn chain_routes() -> Routes {
    Router::new()
        .route(
            calls::LIST_RULE_CHAINS.route(),
            serve(&calls::LIST_RULE_CHAINS, |board, asked| {
                records::page(&board.store.read()?, &asked.query)
            }),
        )
        .route(
            calls::CREATE_RULE_CHAIN.route(),
            serve(&calls::CREATE_RULE_CHAIN, |board, asked| {
                let (chain, now_ms) = (asked.body, board.now_ms());
                board
                    .store
                    .write(|tables| chains::save(tables, chain, now_ms))
            }),
        )
        .route(
            calls::READ_RULE_CHAIN.route(),
            serve(&calls::READ_RULE_CHAIN, |board, asked| {
                let [id] = asked.path;
                chains::read(&board.store.read()?, &id)
            })
            .merge(serve(&calls::DELETE_RULE_CHAIN, |board, asked| {
                let [id] = asked.path;
                board.store.write(|tables| chains::delete(tables, &id))
            })),
        )
        .route(
            calls::READ_NODES.route(),
            serve(&calls::READ_NODES, |board, asked| {
                let [id] = asked.path;
                chains::nodes(&board.store.read()?, &id)
            }),
        )
        .route(
            calls::WRITE_NODES.route(),
            serve(&calls::WRITE_NODES, |board, asked| {
                let metadata = asked.body;
                let written = board
                    .store
                    .write(|tables| chains::set_nodes(tables, metadata))?;
                board.note_chain_change();
                Ok(written)
            }),
        )
        .route(
            calls::MAKE_ROOT.route(),
            serve(&calls::MAKE_ROOT, |board, asked| {
                let [id] = asked.path;
                let root = board.store.write(|tables| chains::make_root(tables, &id))?;
                board.note_chain_change();
                Ok(root)
            }),
        )
}

impl Board {
    /// Conditions of a new device besides its description.
    pub(super) fn admission<'a>(&self, token: Option<&'a str>) -> Admission<'a> {
        Admission {
            token,
            limit: self.device_limit,
            now_ms: self.now_ms(),
        }
    }
}
