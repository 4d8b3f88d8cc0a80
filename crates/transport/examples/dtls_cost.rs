//! What DTLS costs a client: handshakes in memory and over sockets, resumed ones, memory at rest,
//! and the time of a record.
//!
//! In memory both ends take turns on one thread, and the client's part is timed. Over sockets the
//! server has a thread of its own, each session a socket, and what counts is the processor time of
//! the client's thread, system calls and the opening of the socket included.
//!
//! `cargo run --release -p muster-transport --example dtls_cost`

use std::alloc::System;
use std::collections::HashMap;
use std::io::Write;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use muster_model::Micros;
use muster_protocol::dtls::{
    Context, CookieSecret, Datagrams, Dtls, Found, Greeting, Incoming, Keys, Opening, Psk, Session,
    Sessions, Settings, Suite, greet,
};
use muster_transport::AwsLc;
use rustix::time::{ClockId, clock_gettime};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Rounds of each measurement; the best is told.
const ROUNDS: usize = 5;
/// Handshakes of a round.
const HANDSHAKES: usize = 2_000;
/// Handshakes over sockets that are under way at once.
const PENDING: usize = 100;
/// Records of a round.
const RECORDS: u32 = 100_000;
const NOW: Micros = Micros(1);

fn main() {
    for suite in [Suite::PskCcm8, Suite::PskGcm, Suite::EcdhePskGcm] {
        in_memory(suite);
    }
    for suite in [Suite::PskCcm8, Suite::PskGcm] {
        records(suite);
        memory(suite);
    }
    for (suite, id) in [
        (Suite::PskCcm8, false),
        (Suite::PskCcm8, true),
        (Suite::PskGcm, false),
    ] {
        over_sockets(suite, id);
    }
}

struct AnyKey;

impl Keys for AnyKey {
    fn find(&self, _identity: &[u8]) -> Found {
        Found::Key(b"hono-secret".to_vec().into())
    }
}

/// The newest session, which is all that is asked for here.
#[derive(Default)]
struct Newest(Option<Session>);

impl Sessions for Newest {
    fn keep(&mut self, session: &Session) {
        self.0 = Some(session.clone());
    }

    fn find(&self, id: &[u8]) -> Option<Session> {
        self.0.clone().filter(|session| session.id() == id)
    }
}

/// One end's means.
struct Means {
    crypto: AwsLc,
    settings: Settings,
    sessions: Newest,
    out: Datagrams,
}

impl Means {
    fn new(suite: Suite) -> Self {
        let settings = Settings {
            suites: vec![suite],
            resumption: true,
            cookie_secret: Some(CookieSecret::new([1; 32])),
            ..Settings::default()
        };
        Self {
            crypto: AwsLc::new(),
            settings,
            sessions: Newest::default(),
            out: Datagrams::new(),
        }
    }

    fn parts(&mut self) -> (Context<'_, AwsLc>, &mut Datagrams) {
        let context = Context {
            crypto: &mut self.crypto,
            settings: &self.settings,
            certificates: None,
            keys: Some(&AnyKey),
            sessions: Some(&mut self.sessions),
        };
        (context, &mut self.out)
    }

    fn hear(&mut self, dtls: &mut Dtls<AwsLc>, datagram: &mut [u8]) {
        let (mut context, out) = self.parts();
        let mut input = Incoming::new(datagram);
        while dtls.poll(NOW, &mut context, &mut input, out).is_some() {}
    }

    fn client(&mut self, session: Option<Session>, id: Option<&[u8]>) -> Dtls<AwsLc> {
        let opening = Opening {
            psk: Some(Psk {
                identity: b"d-1@t1",
                key: b"hono-secret",
            }),
            session,
            connection_id: id,
            ..Opening::default()
        };
        let (mut context, out) = self.parts();
        Dtls::client(NOW, &opening, &mut context, out)
    }

    /// The server end for whoever has shown a cookie.
    fn welcome(&mut self, datagram: &[u8], peer: &[u8]) -> Option<Dtls<AwsLc>> {
        let (context, out) = self.parts();
        match greet(&context, datagram, peer, out) {
            Greeting::Welcome(welcome) => Some(Dtls::server(NOW, welcome, &context, Some(b"id"))),
            Greeting::Answered | Greeting::Ignored => None,
        }
    }
}

/// A handshake in memory: both ends, and the time that the client took.
fn shake(
    ours: &mut Means,
    theirs: &mut Means,
    session: Option<Session>,
) -> (Dtls<AwsLc>, Dtls<AwsLc>, Duration) {
    let began = cpu();
    let mut client = ours.client(session, None);
    let mut spent = cpu() - began;
    let mut server = None;
    loop {
        let mut up: Vec<_> = ours.out.iter().map(<[u8]>::to_vec).collect();
        ours.out.clear();
        for datagram in &mut up {
            server = server.or_else(|| theirs.welcome(datagram, b"peer"));
            if let Some(server) = &mut server {
                theirs.hear(server, datagram);
            }
        }
        let mut down: Vec<_> = theirs.out.iter().map(<[u8]>::to_vec).collect();
        theirs.out.clear();
        let began = cpu();
        for datagram in &mut down {
            ours.hear(&mut client, datagram);
        }
        spent += cpu() - began;
        if up.is_empty() && down.is_empty() {
            break;
        }
    }
    let server = server.expect("it was welcome");
    assert!(client.is_open() && server.is_open());
    (client, server, spent)
}

fn in_memory(suite: Suite) {
    let (mut ours, mut theirs) = (Means::new(suite), Means::new(suite));
    let mut rate = |is_resumed: bool| {
        best(|| {
            let mut kept = None;
            let mut spent = Duration::ZERO;
            for _ in 0..HANDSHAKES {
                let (mut client, _, took) = shake(&mut ours, &mut theirs, kept.take());
                kept = client.take_session().filter(|_| is_resumed);
                spent += took;
            }
            HANDSHAKES as f64 / spent.as_secs_f64()
        })
    };
    let (full, resumed) = (rate(false), rate(true));
    say(&format!(
        "{suite:?}: {full:.0} handshakes/s of the client in memory, {resumed:.0} resumed"
    ));
}

fn records(suite: Suite) {
    let (mut ours, mut theirs) = (Means::new(suite), Means::new(suite));
    let (mut client, mut server, _) = shake(&mut ours, &mut theirs, None);
    let mut bytes = Vec::new();
    let rate = best(|| {
        let began = cpu();
        for _ in 0..RECORDS {
            bytes.clear();
            bytes.extend_from_slice(&[7; 100]);
            assert!(client.wrap(&mut bytes, 0));
            theirs.hear(&mut server, &mut bytes);
        }
        f64::from(RECORDS) / (cpu() - began).as_secs_f64()
    });
    let nanos = 1e9 / rate;
    say(&format!(
        "{suite:?}: {nanos:.0} ns to seal and open a record of 100 bytes"
    ));
}

fn memory(suite: Suite) {
    let (mut ours, mut theirs) = (Means::new(suite), Means::new(suite));
    ours.settings.resumption = false;
    let mut all = Vec::with_capacity(HANDSHAKES);
    let region = Region::new(ALLOCATOR);
    all.extend((0..HANDSHAKES).map(|_| shake(&mut ours, &mut theirs, None).0));
    let change = region.change();
    let heap = (change.bytes_allocated - change.bytes_deallocated) / HANDSHAKES;
    let own = size_of::<Dtls<AwsLc>>();
    say(&format!(
        "{suite:?}: a client's session at rest has {own} bytes, and {heap} apart"
    ));
}

fn over_sockets(suite: Suite, has_id: bool) {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let server = socket.local_addr().expect("an address");
    let serving = std::thread::spawn(move || serve(&socket, suite));
    let mut ours = Means::new(suite);
    ours.settings.resumption = false;
    let rate = best(|| {
        let began = cpu();
        for _ in 0..HANDSHAKES / PENDING {
            storm(&mut ours, server, has_id);
        }
        HANDSHAKES as f64 / (cpu() - began).as_secs_f64()
    });
    let end = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    end.send_to(b"end", server).expect("a datagram");
    serving.join().expect("the server ends");
    let with = if has_id { " with a connection id" } else { "" };
    say(&format!(
        "{suite:?}{with}: {rate:.0} handshakes per CPU-second of the client, a socket each"
    ));
}

/// Some handshakes at once, each on a socket of its own.
fn storm(ours: &mut Means, server: SocketAddr, has_id: bool) {
    let id = has_id.then_some(&b""[..]);
    let mut links: Vec<_> = (0..PENDING)
        .map(|_| {
            let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
            socket.connect(server).expect("an address");
            let dtls = ours.client(None, id);
            send(ours, &socket);
            (socket, dtls)
        })
        .collect();
    let mut buffer = [0; 2_048];
    for _ in 0..3 {
        for (socket, dtls) in &mut links {
            let length = socket.recv(&mut buffer).expect("an answer");
            ours.hear(dtls, &mut buffer[..length]);
            send(ours, socket);
        }
    }
    assert!(links.iter().all(|(_, dtls)| dtls.is_open()));
}

fn send(means: &mut Means, socket: &UdpSocket) {
    for datagram in means.out.iter() {
        socket.send(datagram).expect("a datagram goes out");
    }
    means.out.clear();
}

/// Serves clients until one says `end`.
fn serve(socket: &UdpSocket, suite: Suite) {
    let mut means = Means::new(suite);
    let mut sessions: HashMap<SocketAddr, Dtls<AwsLc>> = HashMap::new();
    let mut buffer = [0; 2_048];
    loop {
        let (length, from) = socket.recv_from(&mut buffer).expect("a datagram");
        let datagram = &mut buffer[..length];
        if datagram == b"end" {
            return;
        }
        let peer = from.to_string();
        // A port may be another client's by now.
        if let Some(dtls) = means.welcome(datagram, peer.as_bytes()) {
            sessions.insert(from, dtls);
        }
        if let Some(dtls) = sessions.get_mut(&from) {
            means.hear(dtls, datagram);
        }
        for datagram in means.out.iter() {
            socket.send_to(datagram, from).expect("a datagram goes out");
        }
        means.out.clear();
    }
}

fn best(mut round: impl FnMut() -> f64) -> f64 {
    (0..ROUNDS).map(|_| round()).fold(0.0, f64::max)
}

/// The processor time of this thread.
fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}
