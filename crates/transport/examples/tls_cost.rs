//! Cost of TLS for a link: handshakes in full and resumed next to rustls alone, memory at rest, the
//! bytes of a kept session, and the time of a message at QoS 1 through each layer.
//!
//! Everything is in memory and on one thread; of a handshake the client's part is timed, which is
//! what a generator pays. The chain is one leaf below its root, both P-256, the group X25519,
//! the suite TLS_AES_128_GCM_SHA256.
//!
//! `cargo run --release -p muster-transport --example tls_cost`

use std::alloc::System;
use std::hint::black_box;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use muster_protocol::layer::{Layer, Layers};
use muster_transport::{
    Any, ClientSpec, Clients, Peer, ServerSpec, ServerTls, Servers, Throwaway, TlsClient,
    TlsServer, Versions, throwaway,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{
    CipherSuite, ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection,
};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Time of measuring each figure; the best is printed.
const SPAN: Duration = Duration::from_secs(1);
const ROUNDS: usize = 5;
/// Links whose memory is counted.
const LINKS: u32 = 1_000;
/// Messages between two looks at the clock.
const MESSAGES: u32 = 100;

fn main() {
    let ours = throwaway(&["localhost".to_owned()]).expect("a certificate");
    handshakes(&ours);
    memory(&ours);
    messages(&ours);
}

fn handshakes(ours: &Throwaway) {
    let alone = Alone::new(ours);
    let servers = servers(ours, false);
    let mut anew = clients(ours, false, false);
    let mut again = clients(ours, false, true);
    let rates = best([
        &mut || alone.shake(),
        &mut || black_box(connect(&mut anew, &servers)).spent,
        &mut || black_box(connect(&mut again, &servers)).spent,
    ]);
    let [alone, full, resumed] = rates;
    say(&format!(
        "rustls alone, full      {alone:>9.0} handshakes/s of the client, one leaf of P-256, X25519"
    ));
    say(&format!(
        "a link, full            {full:>9.0}/s, {:.2} of rustls alone",
        full / alone
    ));
    say(&format!(
        "a link, resumed         {resumed:>9.0}/s, {:.2} of full",
        resumed / full
    ));
}

fn memory(ours: &Throwaway) {
    let servers = servers(ours, false);
    let [without, with] = [false, true].map(|resumption| {
        let mut clients = clients(ours, false, resumption);
        drop(connect(&mut clients, &servers));
        let region = Region::new(ALLOCATOR);
        let links: Vec<Any<TlsClient>> = (1..=LINKS)
            .map(|link| connect_link(&mut clients, link, &servers).client)
            .collect();
        let up = live(&region);
        drop(links);
        (up, live(&region))
    });
    say(&format!(
        "memory of a link at rest {:>8} bytes, without a session to resume",
        without.0
    ));
    say(&format!(
        "memory of a link at rest {:>8} bytes, with one",
        with.0
    ));
    say(&format!(
        "of these a link that is down keeps {:>4} bytes: its session",
        with.1
    ));
}

/// Bytes that were allocated since and live still, a link.
fn live(region: &Region<'_, System>) -> usize {
    let change = region.change();
    // What reallocation adds and takes away is in both already.
    (change.bytes_allocated - change.bytes_deallocated) / LINKS as usize
}

/// A PUBLISH of 100 bytes up and a PUBACK down, through both ends of each layer.
fn messages(ours: &Throwaway) {
    for (name, is_tls, is_websocket) in [
        ("plain", false, false),
        ("WebSocket", false, true),
        ("TLS", true, false),
        ("WebSocket over TLS", true, true),
    ] {
        let mut spec = spec(ours, true);
        (spec.is_tls, spec.is_websocket) = (is_tls, is_websocket);
        let mut clients = Clients::new(&spec, []).expect("clients");
        let tls = is_tls.then(|| ServerTls::new(ours.cert.clone(), ours.key.clone()));
        let servers = Servers::new(&ServerSpec { tls, is_websocket }).expect("servers");
        let Ends {
            mut client,
            mut server,
            ..
        } = connect(&mut clients, &servers);
        let (mut up, mut down) = (Vec::new(), Vec::new());
        let [rate] = best([&mut || {
            let began = now();
            for _ in 0..MESSAGES {
                pass(&mut client, &[0x32; 120], &mut up, &mut server, &mut down);
                pass(&mut server, &[0x40; 4], &mut down, &mut client, &mut up);
            }
            began.elapsed() / MESSAGES
        }]);
        say(&format!(
            "{name:<20} {:>9.0} ns a message at QoS 1, both ends",
            1e9 / rate
        ));
    }
}

/// One end sends something and the other receives it.
fn pass(
    from: &mut impl Layer,
    words: &[u8],
    wire: &mut Vec<u8>,
    to: &mut impl Layer,
    back: &mut Vec<u8>,
) {
    wire.extend_from_slice(words);
    from.wrap(wire, 0);
    let fed = to.feed(wire, 0, back);
    assert_eq!((fed.plain, fed.used), (words.len(), wire.len()));
    wire.clear();
}

fn spec(ours: &Throwaway, resumption: bool) -> ClientSpec {
    let mut spec = ClientSpec::new(Peer::new("localhost", "localhost:8883"));
    spec.is_tls = true;
    spec.tls.ca = Some(ours.ca.clone());
    spec.tls.versions = Versions::Only13;
    spec.tls.resumption = resumption;
    spec
}

fn clients(ours: &Throwaway, is_websocket: bool, resumption: bool) -> Clients {
    let spec = ClientSpec {
        is_websocket,
        ..spec(ours, resumption)
    };
    Clients::new(&spec, []).expect("clients")
}

fn servers(ours: &Throwaway, is_websocket: bool) -> Servers {
    let tls = Some(ServerTls::new(ours.cert.clone(), ours.key.clone()));
    Servers::new(&ServerSpec { tls, is_websocket }).expect("servers")
}

/// Two ends that are open, and the time that opening took the client.
struct Ends {
    client: Any<TlsClient>,
    server: Any<TlsServer>,
    spent: Duration,
}

fn connect(clients: &mut Clients, servers: &Servers) -> Ends {
    connect_link(clients, 0, servers)
}

fn connect_link(clients: &mut Clients, link: u32, servers: &Servers) -> Ends {
    let mut server = servers.layer();
    let (mut up, mut down) = (Vec::new(), Vec::new());
    let mut spent = Duration::ZERO;
    let mut client = timed(&mut spent, || {
        let mut client = clients.layer(link).expect("a layer");
        client.open(&mut up);
        client
    });
    while !(up.is_empty() && down.is_empty()) {
        let fed = server.feed(&mut up, 0, &mut down);
        up.drain(..fed.used);
        let fed = timed(&mut spent, || client.feed(&mut down, 0, &mut up));
        down.drain(..fed.used);
    }
    assert!(client.is_open() && server.is_open());
    Ends {
        client,
        server,
        spent,
    }
}

/// Does something and adds the time it took.
fn timed<T>(spent: &mut Duration, work: impl FnOnce() -> T) -> T {
    let began = now();
    let made = work();
    *spent += began.elapsed();
    made
}

/// rustls as its own documentation uses it, with the same certificates and group.
struct Alone {
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
}

impl Alone {
    fn new(ours: &Throwaway) -> Self {
        let mut provider = rustls::crypto::aws_lc_rs::default_provider();
        provider
            .cipher_suites
            .retain(|suite| suite.suite() == CipherSuite::TLS13_AES_128_GCM_SHA256);
        let provider = Arc::new(provider);
        let mut roots = RootCertStore::empty();
        let certificate = |pem: &[u8]| CertificateDer::from_pem_slice(pem).expect("a certificate");
        roots.add(certificate(ours.ca.text())).expect("a root");
        let versions = [&rustls::version::TLS13];
        let mut client = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&versions)
            .expect("versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        client.resumption = rustls::client::Resumption::disabled();
        let key = PrivateKeyDer::from_pem_slice(ours.key.text()).expect("a key");
        let mut server = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&versions)
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![certificate(ours.cert.text())], key)
            .expect("a certificate with its key");
        server.ticketer = rustls::crypto::aws_lc_rs::Ticketer::new().expect("a ticketer");
        server.send_tls13_tickets = 1;
        let (client, server) = (Arc::new(client), Arc::new(server));
        Self { client, server }
    }

    /// One handshake; the time it took the client.
    fn shake(&self) -> Duration {
        let mut spent = Duration::ZERO;
        let mut client = timed(&mut spent, || {
            let name = "localhost".try_into().expect("a name");
            ClientConnection::new(Arc::clone(&self.client), name).expect("a client")
        });
        let mut server = ServerConnection::new(Arc::clone(&self.server)).expect("a server");
        let mut wire = Vec::new();
        while client.is_handshaking() || server.is_handshaking() || server.wants_write() {
            timed(&mut spent, || {
                while client.wants_write() {
                    client.write_tls(&mut wire).expect("memory");
                }
            });
            server.read_tls(&mut wire.as_slice()).expect("memory");
            server.process_new_packets().expect("TLS");
            wire.clear();
            while server.wants_write() {
                server.write_tls(&mut wire).expect("memory");
            }
            timed(&mut spent, || {
                client.read_tls(&mut wire.as_slice()).expect("memory");
                client.process_new_packets().expect("TLS");
            });
            wire.clear();
        }
        black_box((client, server));
        spent
    }
}

/// Rates of several operations by the time that each reports, interleaved, the best of all rounds.
fn best<const N: usize>(mut works: [&mut dyn FnMut() -> Duration; N]) -> [f64; N] {
    let mut rates = [0.0_f64; N];
    for _ in 0..ROUNDS {
        for (rate, work) in rates.iter_mut().zip(&mut works) {
            let began = now();
            let (mut done, mut spent) = (0u32, Duration::ZERO);
            while began.elapsed() < SPAN {
                spent += work();
                done += 1;
            }
            *rate = rate.max(f64::from(done) / spent.as_secs_f64());
        }
    }
    rates
}

#[expect(
    clippy::disallowed_methods,
    reason = "a benchmark has no run and no T0"
)]
fn now() -> std::time::Instant {
    std::time::Instant::now()
}

fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}
