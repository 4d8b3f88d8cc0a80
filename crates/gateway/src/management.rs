//! The management API: provisioning of the gateway's devices, over HTTP.
//!
//! The server end of two sets of calls: for the provisioning of SAP Edge, and those of ThingsBoard. The API has its own port and thread, and counts for nothing in the
//! gateway's account.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, MutexGuard};
use std::thread::{Builder, JoinHandle};

use axum::body::Bytes;
use axum::extract::{Path, Query, Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::board;
use crate::lock::locked;
use crate::registry::{Kind, Page, Refusal, Registry};
use crate::shared::Shared;

/// Beginning of every path.
pub const MANAGEMENT_PATH: &str = "/api/v1";

/// A running management API; dropping it stops it.
#[derive(Debug)]
pub(crate) struct Management {
    addr: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Management {
    /// Starts it; it listens when this returns.
    pub(crate) fn start(listen: SocketAddr, shared: Arc<Shared>) -> io::Result<Self> {
        let listener = TcpListener::bind(listen)?;
        listener.set_nonblocking(true)?;
        let addr = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let listener = {
            let _inside = runtime.enter();
            tokio::net::TcpListener::from_std(listener)?
        };
        let (stop, stopped) = oneshot::channel();
        let serve = move || {
            runtime.spawn(axum::serve(listener, routes(shared)).into_future());
            // It ends when the sender is dropped, which shows as an error.
            let _ = runtime.block_on(stopped);
        };
        let thread = Builder::new()
            .name("gateway-rest".to_owned())
            .spawn(serve)?;
        Ok(Self {
            addr,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    pub(crate) const fn addr(&self) -> SocketAddr {
        self.addr
    }
}

impl Drop for Management {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has said so on stderr.
            let _ = thread.join();
        }
    }
}

fn routes(shared: Arc<Shared>) -> Router {
    match shared.managed.board.clone() {
        Some(board) => board::rest::routes(board, shared),
        None => registered(shared),
    }
}

fn registered(shared: Arc<Shared>) -> Router {
    let things = get(list).post(create);
    let thing = get(read).delete(delete);
    Router::new()
        .route(&format!("{MANAGEMENT_PATH}/{{kind}}"), things)
        .route(&format!("{MANAGEMENT_PATH}/{{kind}}/{{id}}"), thing)
        .layer(from_fn_with_state(Arc::clone(&shared), authorize))
        .with_state(shared)
}

/// Lets nobody in without the token, where there is one (RFC 6750 section 2.1).
async fn authorize(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    let management = shared.config.management.as_ref();
    let Some(token) = management.and_then(|management| management.token.as_deref()) else {
        return next.run(request).await;
    };
    let given = request.headers().get(header::AUTHORIZATION);
    let given = given.and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
    if given == Some(token) {
        return next.run(request).await;
    }
    let scheme = [(header::WWW_AUTHENTICATE, "Bearer")];
    let body = Json(json!({ "message": "no token, or none that is valid" }));
    (StatusCode::UNAUTHORIZED, scheme, body).into_response()
}

async fn list(
    State(shared): State<Arc<Shared>>,
    Path(kind): Path<String>,
    Query(page): Query<Page>,
) -> Response {
    answer(
        |registry| registry.list(Kind::named(&kind)?, &page),
        &shared,
    )
}

async fn create(
    State(shared): State<Arc<Shared>>,
    Path(kind): Path<String>,
    body: Bytes,
) -> Response {
    let create = |registry: &mut Registry| {
        let kind = Kind::named(&kind)?;
        let body = serde_json::from_slice(&body);
        let body = body.map_err(|error| Refusal::new(400, format!("no JSON: {error}")))?;
        registry.create(kind, body)
    };
    answer(create, &shared)
}

async fn read(
    State(shared): State<Arc<Shared>>,
    Path((kind, id)): Path<(String, String)>,
) -> Response {
    answer(|registry| registry.read(Kind::named(&kind)?, &id), &shared)
}

async fn delete(
    State(shared): State<Arc<Shared>>,
    Path((kind, id)): Path<(String, String)>,
) -> Response {
    answer(
        |registry| registry.delete(Kind::named(&kind)?, &id),
        &shared,
    )
}

fn answer(ask: impl FnOnce(&mut Registry) -> Result<Value, Refusal>, shared: &Shared) -> Response {
    let mut registry: MutexGuard<'_, Registry> = locked(&shared.managed.registered);
    match ask(&mut registry) {
        Ok(value) => Json(value).into_response(),
        Err(Refusal { status, message }) => {
            let status = StatusCode::from_u16(status);
            let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            (status, Json(json!({ "message": message }))).into_response()
        }
    }
}
