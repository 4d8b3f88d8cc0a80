//! A served page, one call a connection, and the plan that names it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

use muster_plan::Plan;
use muster_scenario::{NoFiles, Overrides, Source, parse};
use serde_json::Value;

/// A call.
pub(crate) struct Call {
    pub(crate) method: String,
    /// Path and query.
    pub(crate) target: String,
    headers: Vec<String>,
    /// Null if it has none, or none of JSON.
    pub(crate) body: Value,
}

/// An answer: its status, further lines of its head, and its body.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Call {
    /// The value of a header, whose name is in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter().filter_map(|line| line.split_once(':'));
        let (_, value) = headers.find(|(its, _)| its.eq_ignore_ascii_case(name))?;
        Some(value.trim())
    }
}

/// Serves a page on a free port; its URL.
pub(crate) fn serve(answer: impl Fn(&Call) -> Answer + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            take(stream, &answer);
        }
    });
    url
}

/// One call, one answer; a client that goes away meanwhile is no concern of the page.
fn take(stream: TcpStream, answer: &impl Fn(&Call) -> Answer) {
    let mut reader = BufReader::new(stream);
    let (mut first, mut line) = (String::new(), String::new());
    let mut headers = Vec::new();
    let _ = reader.read_line(&mut first);
    while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
        headers.push(std::mem::take(&mut line));
    }
    let mut words = first.split_whitespace();
    let (Some(method), Some(target)) = (words.next(), words.next()) else {
        return;
    };
    let mut call = Call {
        method: method.to_owned(),
        target: target.to_owned(),
        headers,
        body: Value::Null,
    };
    let length = call.header("content-length");
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    let _ = reader.read_exact(&mut body);
    call.body = serde_json::from_slice(&body).unwrap_or_default();
    let Answer { status, head, body } = answer(&call);
    let length = body.len();
    let _ = write!(
        reader.get_mut(),
        "HTTP/1.1 {status} x\r\nconnection: close\r\n{head}content-length: {length}\r\n\r\n{body}"
    );
}

/// The plan of a scenario.
pub(crate) fn plan_of(text: &str) -> Plan {
    let source = Source {
        name: "t.yaml",
        text,
    };
    let plan = parse(source, &Overrides::new(), &NoFiles);
    plan.unwrap_or_else(|problems| panic!("{problems}"))
}
