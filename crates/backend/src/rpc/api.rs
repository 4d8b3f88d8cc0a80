//! Calls of ThingsBoard's REST API: the session, the ids of devices, and commands.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use muster_conduct::Remedy;
use muster_model::Reason;
use muster_model::percent::Part;
use muster_platform::board_rest::{
    AUTHORIZATION, Call, Device, FIND_DEVICE, LOGIN, Login, NoQuery, OLD_RPC_ONE_WAY,
    OLD_RPC_TWO_WAY, REFRESH, RPC_ONE_WAY, RPC_TWO_WAY, RpcRequest, Session, Tokens,
};
use muster_protocol::http::{InvalidField, Request, write_field};
use serde::Serialize;
use serde_json::Value;
use tokio::time::timeout;

use super::connection::{Answer, Connection, Way};
use crate::loss::Loss;

/// Keys of the login.
const LOGIN_KEYS: &str = "platform.backend.user and platform.backend.password";
/// The answer to a call without a valid token (RFC 9110 section 15.5.2).
const UNAUTHORIZED: u16 = 401;
/// The answer to a call for a device that is not there (RFC 9110 section 15.5.5).
const NOT_FOUND: u16 = 404;

/// The REST API, for all calls of a thread.
pub(super) struct Api {
    pub(super) way: Way,
    /// The path before that of each call.
    pub(super) prefix: String,
    pub(super) login: Login,
    /// True if the paths of older versions are called.
    pub(super) is_old: bool,
    /// Longest time of a request.
    pub(super) patience: Duration,
    pub(super) state: State,
}

/// Findings of calls so far.
#[derive(Default)]
pub(super) struct State {
    /// Connections without a request.
    idle: Mutex<Vec<Connection>>,
    session: tokio::sync::Mutex<Option<Session>>,
    /// Ids of devices by their names.
    ids: Mutex<HashMap<String, String>>,
}

/// A command as it is called.
#[derive(Debug)]
pub(super) struct Command {
    pub(super) device: String,
    pub(super) is_two_way: bool,
    pub(super) body: Vec<u8>,
}

/// A request, but for host and token.
struct Asked<'a> {
    method: &'static str,
    path: &'a str,
    body: &'a [u8],
}

impl Api {
    /// Logs in, unless there is a session.
    pub(super) async fn log_in(&self) -> Result<(), Loss> {
        self.token(None).await.map(|_| ())
    }

    /// Calls a device. The answer is that to the search for the device, if there is none of this name.
    pub(super) async fn command(&self, command: &Command) -> Result<Answer, Loss> {
        let id = match self.id_of(&command.device).await? {
            Ok(id) => id,
            Err(refusal) => return Ok(refusal),
        };
        let call: &Call<1, NoQuery, RpcRequest, Value> = match (command.is_two_way, self.is_old) {
            (false, false) => &RPC_ONE_WAY,
            (true, false) => &RPC_TWO_WAY,
            (false, true) => &OLD_RPC_ONE_WAY,
            (true, true) => &OLD_RPC_TWO_WAY,
        };
        let path = call.path([&id]);
        let answer = self.authorized(&Asked::post(&path, &command.body)).await?;
        if answer.status == NOT_FOUND {
            // Its successor of the same name has another id.
            locked(&self.state.ids).remove(&command.device);
        }
        Ok(answer)
    }

    /// The id of a device: looked up once, and the answer if there is no such device.
    async fn id_of(&self, device: &str) -> Result<Result<String, Answer>, Loss> {
        let known = locked(&self.state.ids).get(device).cloned();
        if let Some(id) = known {
            return Ok(Ok(id));
        }
        let mut path = format!("{}?deviceName=", FIND_DEVICE.route());
        Part::Value.encode(device, &mut path);
        let answer = self.authorized(&Asked::get(&path)).await?;
        if !answer.is_yes() {
            return Ok(Err(answer));
        }
        let found: Option<Device> = serde_json::from_slice(&answer.body).ok();
        let Some(id) = found.and_then(|device| device.id) else {
            return Err(Loss::other_protocol("its answer names no device"));
        };
        let ids = &mut locked(&self.state.ids);
        Ok(Ok(ids.entry(device.to_owned()).or_insert(id.id).clone()))
    }

    /// Makes a request with the token, and once more with a new one if that is no longer valid.
    async fn authorized(&self, asked: &Asked<'_>) -> Result<Answer, Loss> {
        let token = self.token(None).await?;
        let answer = self.exchange(asked, Some(&token)).await?;
        if answer.status != UNAUTHORIZED {
            return Ok(answer);
        }
        let token = self.token(Some(&token)).await?;
        self.exchange(asked, Some(&token)).await
    }

    /// Ends the session, so that the next call logs in.
    pub(super) async fn forget(&self) {
        self.state.session.lock().await.take();
    }

    /// The token of the session: another one than `stale`, which the platform has refused.
    async fn token(&self, stale: Option<&str>) -> Result<String, Loss> {
        let mut held = self.state.session.lock().await;
        let now = self.way.clock.now();
        let is_valid = |it: &&Session| it.is_fresh(now) && Some(it.token()) != stale;
        if let Some(session) = held.as_ref().filter(is_valid) {
            return Ok(session.token().to_owned());
        }
        let renewed = match held.take() {
            Some(old) => self.tokens(&REFRESH, &old.into_refresh()).await?.ok(),
            None => None,
        };
        let tokens = match renewed {
            Some(tokens) => tokens,
            None => self
                .tokens(&LOGIN, &self.login)
                .await?
                .map_err(|no| refused(&no))?,
        };
        let session = held.insert(Session::new(tokens, now));
        Ok(session.token().to_owned())
    }

    /// Asks for tokens; the answer if the platform gives none.
    async fn tokens<B: Serialize>(
        &self,
        call: &Call<0, NoQuery, B, Tokens>,
        body: &B,
    ) -> Result<Result<Tokens, Answer>, Loss> {
        let body = serde_json::to_vec(body).unwrap_or_default();
        let answer = self
            .exchange(&Asked::post(call.route(), &body), None)
            .await?;
        if !answer.is_yes() {
            return Ok(Err(answer));
        }
        let tokens = serde_json::from_slice(&answer.body);
        let tokens =
            tokens.map_err(|_| Loss::other_protocol("its answer to the login has no tokens"));
        tokens.map(Ok)
    }

    async fn exchange(&self, asked: &Asked<'_>, token: Option<&str>) -> Result<Answer, Loss> {
        let mut fields = Vec::new();
        let is_valid = asked.write_fields(token, &mut fields);
        is_valid.map_err(|error| Loss::silent(format!("the token is of no use: {error}")))?;
        let target = format!("{}{}", self.prefix, asked.path);
        let request = Request {
            fields: &fields,
            body: asked.body,
            ..Request::new(asked.method, &target, &self.way.host)
        };
        let exchange = async {
            let mut connection = match self.idle() {
                Some(connection) => connection,
                None => self.way.open().await?,
            };
            let answer = self.way.exchange(&mut connection, &request).await?;
            locked(&self.state.idle).push(connection);
            Ok(answer)
        };
        let answered = timeout(self.patience, exchange).await;
        answered.unwrap_or_else(|_| {
            let waited = self.patience.as_secs();
            Err(Loss::silent(format!("no answer came within {waited} s")))
        })
    }

    /// A connection that the server has not closed.
    fn idle(&self) -> Option<Connection> {
        let mut idle = locked(&self.state.idle);
        while let Some(mut connection) = idle.pop() {
            if connection.is_alive() {
                return Some(connection);
            }
        }
        None
    }
}

impl<'a> Asked<'a> {
    const fn get(path: &'a str) -> Self {
        Self {
            method: "GET",
            path,
            body: &[],
        }
    }

    const fn post(path: &'a str, body: &'a [u8]) -> Self {
        Self {
            method: "POST",
            path,
            body,
        }
    }

    fn write_fields(&self, token: Option<&str>, out: &mut Vec<u8>) -> Result<(), InvalidField> {
        if !self.body.is_empty() {
            write_field(out, "Content-Type", b"application/json")?;
        }
        match token {
            Some(token) => write_field(out, AUTHORIZATION, format!("Bearer {token}").as_bytes()),
            None => Ok(()),
        }
    }
}

/// The loss for a login that the platform refuses.
fn refused(answer: &Answer) -> Loss {
    let reason = Reason::Http(answer.status);
    let what = format!("the login was refused: {}", reason.in_words());
    let mut loss = Loss::refused(what, Remedy::see(LOGIN_KEYS));
    loss.cause.reason = Some(reason);
    match reason.is_of_credentials() {
        true => loss.finally(),
        false => loss,
    }
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
pub(super) mod tests {
    use std::net::SocketAddr;

    use muster_model::Micros;
    use muster_net::Clock;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::runtime;

    use super::*;

    pub(in crate::rpc) const OLD: &str = r#"{"token":"old","refreshToken":"r"}"#;
    const NEW: &str = r#"{"token":"new","refreshToken":"r"}"#;
    pub(in crate::rpc) const DEVICE: &str =
        r#"{"id":{"entityType":"DEVICE","id":"7"},"name":"a b","type":"default"}"#;

    /// Answers requests of one connection in this order, and closes it; returns their start lines, each with its token.
    pub(in crate::rpc) async fn serve(
        listener: &TcpListener,
        answers: &[(u16, &str)],
    ) -> Vec<String> {
        let (mut stream, _) = listener.accept().await.expect("the client connects");
        let mut seen = Vec::new();
        for (status, body) in answers {
            seen.push(answer(&mut stream, *status, body).await);
        }
        seen
    }

    /// Answers one request; returns its start line with its token.
    pub(in crate::rpc) async fn answer(stream: &mut TcpStream, status: u16, body: &str) -> String {
        let request = request(stream).await;
        let length = body.len();
        let answer = format!("HTTP/1.1 {status} x\r\nContent-Length: {length}\r\n\r\n{body}");
        let written = stream.write_all(answer.as_bytes()).await;
        written.expect("the client is there");
        request
    }

    async fn request(stream: &mut TcpStream) -> String {
        let (mut bytes, mut buffer) = (Vec::new(), [0; 1_024]);
        loop {
            let read = stream.read(&mut buffer).await.expect("the client is there");
            assert!(read > 0, "the client asks");
            bytes.extend_from_slice(&buffer[..read]);
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let Some((head, body)) = text.split_once("\r\n\r\n") else {
                continue;
            };
            let field = |name: &str| {
                let line = head.lines().find_map(|line| line.strip_prefix(name));
                line.unwrap_or_default().trim()
            };
            if body.len() == field("Content-Length:").parse().unwrap_or(0) {
                let line = head.lines().next().unwrap_or_default();
                let line = line.trim_end_matches(" HTTP/1.1");
                return format!("{line} {}", field("X-Authorization:"))
                    .trim()
                    .to_owned();
            }
        }
    }

    /// An API at this address.
    pub(in crate::rpc) fn api(address: SocketAddr) -> Api {
        Api {
            way: Way {
                address,
                host: "h".to_owned(),
                tls: None,
                hint: String::new(),
                clock: Clock::start(),
            },
            prefix: String::new(),
            login: Login {
                username: "u".to_owned(),
                password: "p".to_owned(),
            },
            is_old: false,
            patience: Duration::from_secs(10),
            state: State::default(),
        }
    }

    /// Issues two commands to a device against these answers; the last one's answer, and the requests.
    fn issued(answers: &'static [(u16, &str)]) -> (Result<Answer, Loss>, Vec<String>) {
        let runtime = runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
            let api = api(listener.local_addr().expect("its address"));
            let command = Command {
                device: "a b".to_owned(),
                is_two_way: true,
                body: b"{}".to_vec(),
            };
            let issue = async {
                match api.command(&command).await {
                    Ok(answer) if answer.is_yes() => api.command(&command).await,
                    last => last,
                }
            };
            tokio::join!(issue, serve(&listener, answers))
        })
    }

    #[test]
    fn a_device_is_looked_up_once_and_a_token_that_has_expired_is_renewed() {
        let (answer, seen) = issued(&[
            (200, OLD),
            (200, DEVICE),
            (200, "first"),
            (401, ""),
            (200, NEW),
            (200, "second"),
        ]);
        let answer = answer.expect("it was answered");
        assert_eq!((answer.status, &answer.body[..]), (200, &b"second"[..]));
        assert!(answer.seen > Micros::ZERO);
        let wanted = [
            "POST /api/auth/login",
            "GET /api/tenant/devices?deviceName=a%20b Bearer old",
            "POST /api/rpc/twoway/7 Bearer old",
            "POST /api/rpc/twoway/7 Bearer old",
            "POST /api/auth/token",
            "POST /api/rpc/twoway/7 Bearer new",
        ];
        assert_eq!(seen, wanted);
    }

    #[test]
    fn a_session_that_cannot_be_renewed_begins_anew() {
        let (answer, seen) = issued(&[(200, OLD), (401, ""), (401, ""), (200, NEW), (404, "")]);
        assert_eq!(answer.expect("it was answered").status, 404);
        assert_eq!(seen[2..4], ["POST /api/auth/token", "POST /api/auth/login"]);
    }

    #[test]
    fn a_refused_login_is_final_and_a_fault_of_the_server_is_not() {
        for (answers, is_final) in [(&[(401, "")], true), (&[(503, "")], false)] {
            let loss = issued(answers).0.expect_err("nobody is let in");
            assert_eq!(loss.is_final, is_final);
            assert!(
                loss.cause.what.contains("the login was refused"),
                "{}",
                loss.cause.what
            );
        }
    }
}
