//! A small client over HTTP and a blocking socket, which shares no code with the gateway's end.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use muster_model::Micros;

use crate::device::PATIENCE;
use crate::peer::CLOCK;

/// An answer as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// By their names in lower case.
    pub(crate) fields: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
    pub(crate) at: Micros,
}

impl Answer {
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.fields.get(name).map(String::as_str)
    }
}

pub(crate) struct Browser {
    stream: TcpStream,
    input: Vec<u8>,
    /// True once the gateway has closed the connection.
    has_ended: bool,
}

impl Browser {
    pub(crate) fn new(at: SocketAddr) -> Self {
        let stream = TcpStream::connect(at).expect("the gateway listens");
        stream.set_nodelay(true).expect("no delay");
        let wait = Some(Duration::from_millis(5));
        stream.set_read_timeout(wait).expect("a time-out");
        Self {
            stream,
            input: Vec::new(),
            has_ended: false,
        }
    }

    /// Another hand on its socket, to write with.
    pub(crate) fn writer(&self) -> TcpStream {
        self.stream.try_clone().expect("a descriptor")
    }

    /// Sends bytes as they are.
    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        // A connection that the gateway closed shows when it is read.
        let _ = self.stream.write_all(bytes.as_ref());
    }

    /// Sends a request with a body of JSON: its first line without the version, and further lines.
    pub(crate) fn ask(&mut self, line: &str, fields: &[&str], body: impl AsRef<[u8]>) {
        self.send(request(line, fields, body.as_ref()));
    }

    /// Asks and waits for the answer.
    pub(crate) fn answer(&mut self, line: &str, fields: &[&str], body: impl AsRef<[u8]>) -> Answer {
        self.ask(line, fields, body);
        self.next(line)
    }

    /// The next answer.
    pub(crate) fn next(&mut self, what: &str) -> Answer {
        let answer = self.next_within(PATIENCE);
        answer.unwrap_or_else(|| panic!("no answer to {what}: {:?}", self.left()))
    }

    /// The next answer; none if none comes in that time, or the connection ends before.
    pub(crate) fn next_within(&mut self, time: Micros) -> Option<Answer> {
        let give_up = CLOCK.now() + time;
        loop {
            if let Some((answer, used)) = parse(&self.input) {
                self.input.drain(..used);
                return Some(answer);
            }
            if self.has_ended || CLOCK.now() >= give_up {
                return None;
            }
            self.read();
        }
    }

    /// Waits until the gateway closes the connection; bytes that come before are kept.
    pub(crate) fn until_closed(&mut self) {
        let give_up = CLOCK.now() + PATIENCE;
        while !self.has_ended {
            assert!(CLOCK.now() < give_up, "it stays open: {:?}", self.left());
            self.read();
        }
    }

    /// Bytes that are not read yet, as text.
    pub(crate) fn left(&self) -> String {
        String::from_utf8_lossy(&self.input).into_owned()
    }

    fn read(&mut self) {
        let mut bytes = [0; 16 * 1024];
        match self.stream.read(&mut bytes) {
            Ok(0) => self.has_ended = true,
            Ok(count) => self.input.extend_from_slice(&bytes[..count]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => self.has_ended = true,
        }
    }
}

/// The bytes of a request.
pub(crate) fn request(line: &str, fields: &[&str], body: &[u8]) -> Vec<u8> {
    let mut text = format!("{line} HTTP/1.1\r\nHost: gateway\r\n");
    for field in fields {
        text.extend([field, "\r\n"]);
    }
    text += "Content-Type: application/json\r\n";
    text += &format!("Content-Length: {}\r\n\r\n", body.len());
    [text.as_bytes(), body].concat()
}

/// The answer that lies at the front of the bytes, and its length.
fn parse(bytes: &[u8]) -> Option<(Answer, usize)> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&bytes[..end]).expect("a head is text");
    let mut lines = head.split("\r\n");
    let status = lines
        .next()?
        .strip_prefix("HTTP/1.1 ")
        .expect("its version");
    let status = status[..3].parse().expect("a status");
    let fields: BTreeMap<String, String> = lines
        .map(|line| {
            let (name, value) = line.split_once(": ").expect("a field");
            (name.to_ascii_lowercase(), value.to_owned())
        })
        .collect();
    let length = fields.get("content-length").map_or("0", String::as_str);
    let length: usize = length.parse().expect("a length");
    let body = bytes.get(end + 4..end + 4 + length)?.to_vec();
    let answer = Answer {
        status,
        fields,
        body,
        at: CLOCK.now(),
    };
    Some((answer, end + 4 + length))
}
