//! A DTLS server over a blocking socket, to try other clients against (`e2e/dtls.sh`).
//!
//! `dtls_server HOST:PORT [--psk IDENTITY:KEY] [--ca FILE --cert FILE --key FILE [--client-cert]]
//! [--suites A,B] [--cid HEX|-] [--coap] [--count N] [--patience MS]`
//!
//! Serves `N` clients one after the other and says back what each says, or answers each as a CoAP
//! request (2.05, RFC 7252); prints one line for each thing that happens. Ends with 1 if no client
//! came for the whole of its patience.

#[path = "dtls/socket.rs"]
mod socket;

use std::cell::RefCell;
use std::collections::HashMap;
use std::net::UdpSocket;
use std::process::ExitCode;
use std::time::Duration;

use muster_protocol::dtls::{
    CookieSecret, Crypto, Dtls, Found, Greeting, Keys, Session, Sessions, greet,
};
use muster_transport::AwsLc;
use socket::{Arguments, Happened, Link, Means, say};

/// The one client that is known.
struct One {
    identity: Vec<u8>,
    key: Vec<u8>,
}

impl Keys for One {
    fn find(&self, identity: &[u8]) -> Found {
        if identity == self.identity {
            Found::Key(self.key.clone().into())
        } else {
            Found::Unknown
        }
    }
}

/// All sessions; an example has few.
#[derive(Default)]
struct All(RefCell<HashMap<Vec<u8>, Session>>);

impl Sessions for All {
    fn keep(&mut self, session: &Session) {
        let id = session.id().to_vec();
        self.0.borrow_mut().insert(id, session.clone());
    }

    fn find(&self, id: &[u8]) -> Option<Session> {
        self.0.borrow().get(id).cloned()
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::read(&["coap", "client-cert"]);
    let mut crypto = AwsLc::new();
    let mut secret = [0; 32];
    assert!(crypto.random(&mut secret), "the system gives randomness");
    let mut settings = arguments.settings();
    settings.cookie_secret = Some(CookieSecret::new(secret));
    settings.client_certificate = arguments.has("client-cert");
    let psk = arguments.psk();
    let mut means = Means {
        crypto,
        settings,
        certificates: arguments.certificates(),
        keys: psk.map(|(identity, key)| Box::new(One { identity, key }) as Box<dyn Keys>),
        sessions: Some(Box::new(All::default())),
    };
    let address = arguments.words.first().expect("an address to listen at");
    let socket = UdpSocket::bind(address).expect("a socket");
    say(&format!("listening at {address}"));
    for _ in 0..arguments.number("count", 1) {
        if !serve(&arguments, &mut means, &socket) {
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// Serves one client to its end; whether one came.
fn serve(arguments: &Arguments, means: &mut Means, socket: &UdpSocket) -> bool {
    let patience = Duration::from_millis(arguments.number("patience", 10_000));
    let Some(mut link) = welcome(arguments, means, socket, patience) else {
        return false;
    };
    loop {
        match link.wait(means, patience) {
            Happened::Connected(connected) => {
                let identity = link.dtls.identity().escape_ascii().to_string();
                say(&format!("connected {connected:?} identity {identity}"));
            }
            Happened::Data(bytes) => {
                say(&format!("received {}", bytes.escape_ascii()));
                let answer = if arguments.has("coap") {
                    content(&bytes)
                } else {
                    bytes
                };
                link.say(&answer);
            }
            Happened::Failed(fault) => {
                say(&format!("failed {fault:?}: {fault}"));
                return true;
            }
            Happened::Closed | Happened::Nothing => {
                link.close();
                say(&format!("ended {:?}", link.dtls.counts()));
                return true;
            }
        }
    }
}

/// Waits for a client that is where it says it is.
fn welcome(
    arguments: &Arguments,
    means: &mut Means,
    socket: &UdpSocket,
    patience: Duration,
) -> Option<Link> {
    let mut buffer = vec![0; 65_536];
    let id = arguments.hex("cid");
    socket.set_read_timeout(Some(patience)).expect("a time-out");
    loop {
        let (length, from) = socket.recv_from(&mut buffer).ok()?;
        let mut link = Link::new(socket.try_clone().expect("a socket"), from);
        let address = from.to_string().into_bytes();
        let context = means.context();
        match greet(&context, &buffer[..length], &address, &mut link.out) {
            Greeting::Ignored => {}
            Greeting::Answered => link.flush(),
            Greeting::Welcome(welcome) => {
                link.dtls = Dtls::server(link.micros(), welcome, &context, id.as_deref());
                link.receive(means, &mut buffer[..length], from);
                return Some(link);
            }
        }
    }
}

/// 2.05 Content in the acknowledgement of a CoAP request, with its message id and token.
fn content(request: &[u8]) -> Vec<u8> {
    let [first, _, high, low, rest @ ..] = request else {
        return Vec::new();
    };
    let token = usize::from(first & 0x0f).min(rest.len());
    let mut out = vec![0x60 | first & 0x0f, 0x45, *high, *low];
    out.extend_from_slice(&rest[..token]);
    out.extend_from_slice(b"\xffmuster");
    out
}
