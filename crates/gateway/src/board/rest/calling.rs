//! Commands to devices.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{Extension, Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use muster_model::Micros;
use muster_platform::board_rest::{self as calls, ErrorCode, RpcRequest};
use muster_protocol::mqtt::{Publish, Qos};
use serde_json::json;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};

use super::super::refusal::{Answer, Refusal};
use super::super::{Board, devices, records};
use super::{Routes, apart};
use crate::mail::Mail;
use crate::message::Message;
use crate::shared::Shared;

/// Time for which a command waits for its device, unless it says another one.
const WAITS_MS: u64 = 10_000;
const WAITS_LEAST_MS: u64 = 5_000;
/// Longer than anybody waits at a client: a command that nobody takes is not kept for ever.
const WAITS_MOST_MS: u64 = 600_000;
/// Pause before a device that is away is looked for again.
const AGAIN_AFTER: Duration = Duration::from_millis(100);

/// A way to command a device.
#[derive(Debug, Clone, Copy)]
struct Way {
    is_two_way: bool,
    /// The status if the device is away until the time is over.
    away: StatusCode,
    /// The status if it does not reply in time.
    late: StatusCode,
}

const ONE_WAY: Way = Way {
    is_two_way: false,
    away: StatusCode::GATEWAY_TIMEOUT,
    late: StatusCode::GATEWAY_TIMEOUT,
};
const TWO_WAY: Way = Way {
    is_two_way: true,
    ..ONE_WAY
};

impl Way {
    const fn old(self) -> Self {
        Self {
            away: StatusCode::CONFLICT,
            late: StatusCode::REQUEST_TIMEOUT,
            ..self
        }
    }
}

/// A command on its way.
#[derive(Debug)]
struct Command {
    number: u32,
    message: Arc<Message>,
    device: String,
    until: Instant,
    is_persistent: bool,
}

pub(super) fn routes() -> Routes {
    let serve = |way: Way| {
        post(
            move |board: State<Arc<Board>>,
                  shared: Extension<Arc<Shared>>,
                  path: Path<String>,
                  body: Bytes| { command(way, board, shared, path, body) },
        )
    };
    Router::new()
        .route(calls::RPC_ONE_WAY.route(), serve(ONE_WAY))
        .route(calls::RPC_TWO_WAY.route(), serve(TWO_WAY))
        .route(calls::OLD_RPC_ONE_WAY.route(), serve(ONE_WAY.old()))
        .route(calls::OLD_RPC_TWO_WAY.route(), serve(TWO_WAY.old()))
}

async fn command(
    way: Way,
    State(board): State<Arc<Board>>,
    Extension(shared): Extension<Arc<Shared>>,
    Path(device): Path<String>,
    body: Bytes,
) -> Answer<Response> {
    let command = read(&board, &shared, &device, &body)?;
    if !command.is_persistent {
        return Ok(run(way, &board, &shared, command).await);
    }
    let numbering = Arc::clone(&board);
    let id = apart(move || numbering.store.write(|tables| records::next_serial(tables))).await?;
    tokio::spawn(async move { run(way, &board, &shared, command).await });
    Ok(Json(json!({ "rpcId": id.uuid() })).into_response())
}

fn read(board: &Board, shared: &Shared, device: &str, body: &[u8]) -> Answer<Command> {
    let device = devices::read(&board.store.read()?, device)?;
    let request: RpcRequest = serde_json::from_slice(body).map_err(|error| {
        Refusal::new(
            500,
            ErrorCode::GENERAL,
            &format!("Invalid request: {error}"),
        )
    })?;
    let waits = request.timeout.unwrap_or(WAITS_MS);
    let waits = waits.clamp(WAITS_LEAST_MS, WAITS_MOST_MS);
    let number = shared.next_request();
    let topic = format!("thingsboard-rpc/{}/request", device.name);
    let payload = json!({ "method": request.method, "params": request.params }).to_string();
    let publish = Publish {
        qos: Qos::AtLeastOnce,
        ..Publish::new(&topic, payload.as_bytes())
    };
    let mut message = Message::new(&publish, Micros::ZERO);
    message.call = Some(number);
    Ok(Command {
        number,
        message: Arc::new(message),
        device: device.name,
        until: Instant::now() + Duration::from_millis(waits),
        is_persistent: request.persistent.unwrap_or(false),
    })
}

/// Passes a command on, and waits for its reply if it wants one.
async fn run(way: Way, board: &Board, shared: &Shared, command: Command) -> Response {
    let call = way
        .is_two_way
        .then(|| board.calls.wait(command.number, &command.device));
    let call = match call {
        Some(None) => return StatusCode::SERVICE_UNAVAILABLE.into_response(),
        Some(Some(call)) => Some(call),
        None => None,
    };
    if !is_passed_on(shared, &command).await {
        return way.away.into_response();
    }
    let Some(call) = call else {
        return StatusCode::OK.into_response();
    };
    match call.reply(command.until).await {
        Some(reply) => ([(header::CONTENT_TYPE, "application/json")], reply).into_response(),
        None => way.late.into_response(),
    }
}

/// Passes a command on to its device, which may come back in time; false if it does not.
async fn is_passed_on(shared: &Shared, command: &Command) -> bool {
    let mut is_again = false;
    loop {
        let is_last = Instant::now() >= command.until;
        let (routed, copies) = oneshot::channel();
        let message = Arc::clone(&command.message);
        let mail = Mail::Call {
            message,
            is_again,
            is_last,
            routed,
        };
        shared.post(0).send(&mut vec![mail]);
        if copies.await.unwrap_or(0) > 0 {
            return true;
        }
        if is_last {
            return false;
        }
        is_again = true;
        sleep_until(command.until.min(Instant::now() + AGAIN_AFTER)).await;
    }
}
