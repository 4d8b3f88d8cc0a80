//! A mock of an API server: gives recorded answers in the order of a script.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

use serde_json::Value;

/// An answer of the script. Each request takes the next one to its method and path; the last is repeated.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Answer {
    /// The recorded one, to the request that it was recorded for.
    Of(&'static str),
    /// To the request of the first one, the answer of the second one.
    To(&'static str, &'static str),
    /// The connection is closed instead.
    NoneTo(&'static str),
}

/// A server on a free port.
pub(crate) struct Served {
    at: SocketAddr,
    set: Arc<Mutex<Vec<(u64, String)>>>,
}

/// An answer as it is sent; none closes the connection.
type Sent = Option<(u64, String)>;

impl Served {
    /// Starts it; it ends with the process.
    pub(crate) fn start(answers: &[Answer]) -> Self {
        let mut script: BTreeMap<String, VecDeque<Sent>> = BTreeMap::new();
        for answer in answers {
            let (request, sent) = match *answer {
                Answer::Of(name) => (name, Some(name)),
                Answer::To(request, name) => (request, Some(name)),
                Answer::NoneTo(request) => (request, None),
            };
            let request = recorded(request)["request"].as_str().unwrap().to_owned();
            let sent = sent.map(|name| {
                let recorded = recorded(name);
                (
                    recorded["status"].as_u64().unwrap(),
                    recorded["body"].to_string(),
                )
            });
            script.entry(request).or_default().push_back(sent);
        }
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let set = Arc::default();
        let taken = Arc::clone(&set);
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                serve(connection.unwrap(), &mut script, &taken);
            }
        });
        Self { at, set }
    }

    /// A kubeconfig of it, with a token that nobody may show.
    pub(crate) fn kubeconfig(&self) -> String {
        let server = format!("http://{}", self.at);
        format!(
            "{{ apiVersion: v1, kind: Config, current-context: c,
            clusters: [ {{ name: k, cluster: {{ server: '{server}' }} }} ],
            users: [ {{ name: u, user: {{ token: hunter2 }} }} ],
            contexts: [ {{ name: c, context: {{ cluster: k, user: u }} }} ] }}"
        )
    }

    /// The replicas that were set so far, and the versions that they were set on.
    pub(crate) fn set(&self) -> Vec<(u64, String)> {
        self.set.lock().unwrap().clone()
    }
}

/// Takes one request, and answers it.
fn serve(
    mut connection: TcpStream,
    script: &mut BTreeMap<String, VecDeque<Sent>>,
    set: &Mutex<Vec<(u64, String)>>,
) {
    let mut reader = BufReader::new(connection.try_clone().unwrap());
    let (mut line, mut length) = (String::new(), 0);
    reader.read_line(&mut line).unwrap();
    let mut words = line.split([' ', '?']);
    let request = format!("{} {}", words.next().unwrap(), words.next().unwrap());
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).unwrap();
        let Some((name, value)) = header.trim().split_once(": ") else {
            break;
        };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    if let Ok(scale) = serde_json::from_slice::<Value>(&body) {
        let version = scale["metadata"]["resourceVersion"].as_str();
        let replicas = scale["spec"]["replicas"].as_u64().unwrap();
        let version = version.unwrap_or_default().to_owned();
        set.lock().unwrap().push((replicas, version));
    }
    let answers = script.get_mut(&request);
    let answer = match answers {
        Some(answers) if answers.len() > 1 => answers.pop_front().unwrap(),
        Some(answers) => answers[0].clone(),
        None => Some((500, format!("\"the script has no answer to {request}\""))),
    };
    if let Some((status, body)) = answer {
        let head = format!(
            "HTTP/1.1 {status} -\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        connection.write_all((head + &body).as_bytes()).unwrap();
    }
}

/// A file of `recorded`: the request, the status and the body.
pub(crate) fn recorded(name: &str) -> Value {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded");
    let text = fs::read_to_string(folder.join(format!("{name}.json"))).unwrap();
    serde_json::from_str(&text).unwrap()
}
