//! Calls that are answered while another one waits.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use muster_net::Clock;
use muster_platform::Dialect;
use muster_platform::board_rest::Login;

use super::super::{Board, TENANT_USER};
use crate::config::{GatewayConfig, ManagementConfig};
use crate::management::Management;
use crate::shared::Shared;

/// A generous limit: only a hang reaches it.
const PATIENCE: Duration = Duration::from_secs(60);

/// Sends a call; its answer is read from the stream.
fn call(addr: SocketAddr, token: &str, line: &str, body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(addr).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a limit");
    let length = body.len();
    write!(
        stream,
        "{line} HTTP/1.1\r\nHost: gateway\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .expect("it is sent");
    stream
}

fn status(mut stream: TcpStream) -> String {
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer.lines().next().unwrap_or_default().to_owned()
}

#[test]
fn calls_that_read_are_answered_while_others_wait_to_write() {
    let config = GatewayConfig {
        dialect: Dialect::Thingsboard,
        ..GatewayConfig::default()
    };
    let board = Board::open(&config, &ManagementConfig::default(), Clock::start());
    let shared = Arc::new(Shared::new(config).with_board(Some(board.expect("a store"))));
    let board = shared.managed.board.clone().expect("a board");
    let login = Login {
        username: TENANT_USER.to_owned(),
        password: "tenant".to_owned(),
    };
    let tokens = board.logins.login(&login, board.now_ms());
    let token = tokens.expect("a session").token;
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let api = Management::start(listen, Arc::clone(&shared)).expect("an API");

    let writers = board.store.write(|_| {
        let create = |number: u8| {
            let body = format!(r#"{{"name":"d{number}"}}"#);
            call(api.addr(), &token, "POST /api/device", &body)
        };
        let writers: Vec<TcpStream> = (0..8).map(create).collect();
        let page = "GET /api/tenant/devices?pageSize=10&page=0";
        assert_eq!(
            status(call(api.addr(), &token, page, "")),
            "HTTP/1.1 200 OK"
        );
        Ok(writers)
    });
    for writer in writers.expect("it is written") {
        assert_eq!(status(writer), "HTTP/1.1 200 OK");
    }
}
