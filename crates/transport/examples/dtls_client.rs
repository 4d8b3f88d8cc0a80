//! A DTLS client over a blocking socket, to try against other servers (`e2e/dtls.sh`).
//!
//! `dtls_client HOST:PORT [--psk IDENTITY:KEY] [--ca FILE [--cert FILE --key FILE]] [--name NAME]
//! [--suites A,B] [--cid HEX|-] [--send TEXT|--send-hex HEX] [--resume] [--move] [--linger MS]`
//!
//! Prints one line for each thing that happens. `--resume` opens a second session with what was
//! kept of the first; `--move` says something again from another port, which a peer with
//! connection ids has to answer there; `--linger` waits so long for more, such as a renegotiation.
//! Ends with 1 if a session could not be opened, or nobody answered.

#[path = "dtls/socket.rs"]
mod socket;

use std::net::{ToSocketAddrs, UdpSocket};
use std::process::ExitCode;
use std::time::Duration;

use muster_protocol::dtls::{Dtls, Opening, Psk, Session};
use muster_transport::AwsLc;
use socket::{Arguments, Happened, Link, Means, say};

/// Longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(3);

fn main() -> ExitCode {
    let arguments = Arguments::read(&["resume", "move"]);
    let mut settings = arguments.settings();
    settings.resumption = arguments.has("resume");
    let mut means = Means {
        crypto: AwsLc::new(),
        settings,
        certificates: arguments.certificates(),
        keys: None,
        sessions: None,
    };
    let Some(session) = visit(&arguments, &mut means, None) else {
        return ExitCode::FAILURE;
    };
    if arguments.has("resume") && visit(&arguments, &mut means, session).is_none() {
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// Opens a session, says something, and closes it; none if that fails, else what was kept of it.
fn visit(
    arguments: &Arguments,
    means: &mut Means,
    session: Option<Session>,
) -> Option<Option<Session>> {
    let mut link = open(arguments, means, session);
    let happened = link.wait(means, Duration::from_secs(60));
    if let Happened::Failed(fault) = &happened {
        say(&format!("failed {fault:?}: {fault}"));
    }
    let Happened::Connected(connected) = happened else {
        return None;
    };
    say(&format!("connected {connected:?}"));
    let kept = link.dtls.take_session();
    let words = arguments
        .hex("send-hex")
        .or_else(|| arguments.get("send").map(|text| text.as_bytes().to_vec()));
    let mut is_answered = true;
    if let Some(words) = &words {
        is_answered = ask(&mut link, means, words);
        if arguments.has("move") {
            link.socket = UdpSocket::bind("127.0.0.1:0").expect("another port");
            say("moved");
            is_answered &= ask(&mut link, means, words);
        }
    }
    let linger = Duration::from_millis(arguments.number("linger", 0));
    if !linger.is_zero() {
        say(&format!("then {:?}", link.wait(means, linger)));
    }
    link.close();
    say(&format!("counts {:?}", link.dtls.counts()));
    is_answered.then_some(kept)
}

fn open(arguments: &Arguments, means: &mut Means, session: Option<Session>) -> Link {
    let address = arguments.words.first().expect("the server's address");
    let mut addresses = address.to_socket_addrs().expect("an address");
    let peer = addresses.next().expect("an address");
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let mut link = Link::new(socket, peer);
    let psk = arguments.psk();
    let id = arguments.hex("cid");
    let opening = Opening {
        psk: psk.as_ref().map(|(identity, key)| Psk { identity, key }),
        server_name: arguments.get("name"),
        connection_id: id.as_deref(),
        needs_connection_id: false,
        session,
    };
    let now = link.micros();
    link.dtls = Dtls::client(now, &opening, &mut means.context(), &mut link.out);
    link.flush();
    link
}

/// Says something; whether something was said to it.
fn ask(link: &mut Link, means: &mut Means, words: &[u8]) -> bool {
    link.say(words);
    let happened = link.wait(means, PATIENCE);
    let Happened::Data(bytes) = happened else {
        say(&format!("no answer: {happened:?}"));
        return false;
    };
    say(&format!("received {}", bytes.escape_ascii()));
    true
}
