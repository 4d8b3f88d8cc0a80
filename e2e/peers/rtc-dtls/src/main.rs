//! Handshakes with pre-shared keys by the crate `rtc-dtls`, a socket each, against a server that is there already:
//! the peer of the example `dtls_cost`, which says the same words and the same line.
//!
//! `rtc-dtls-peer ADDRESS ccm8|gcm HANDSHAKES`

use std::error::Error;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use rtc_dtls::cipher_suite::CipherSuiteId;
use rtc_dtls::config::{ConfigBuilder, HandshakeConfig};
use rtc_dtls::endpoint::{Endpoint, EndpointEvent};
use rtc_shared::TransportProtocol;
use rustix::time::{ClockId, clock_gettime};

/// Handshakes under way at once.
const PENDING: usize = 100;
/// Far longer than an answer takes on loopback.
const PATIENCE: Duration = Duration::from_secs(10);

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let [server, suite, handshakes] = words[..] else {
        return Err("usage: rtc-dtls-peer ADDRESS ccm8|gcm HANDSHAKES".into());
    };
    let (server, handshakes) = (server.parse()?, handshakes.parse::<usize>()?);
    let config = Arc::new(config(suite)?);
    let began = cpu();
    for _ in 0..handshakes / PENDING {
        storm(server, &config)?;
    }
    let spent = (cpu() - began).as_secs_f64();
    println!(
        "{{\"handshakes\":{},\"cpu_s\":{spent}}}",
        handshakes / PENDING * PENDING
    );
    Ok(())
}

fn config(suite: &str) -> Outcome<HandshakeConfig> {
    let suite = match suite {
        "ccm8" => CipherSuiteId::Tls_Psk_With_Aes_128_Ccm_8,
        "gcm" => CipherSuiteId::Tls_Psk_With_Aes_128_Gcm_Sha256,
        _ => return Err(format!("{suite} is neither ccm8 nor gcm").into()),
    };
    Ok(ConfigBuilder::default()
        .with_crypto_provider(rtc_crypto::default_provider()?)
        .with_psk(Some(Arc::new(|_| Ok(b"hono-secret".to_vec()))))
        .with_psk_identity_hint(Some(b"d-1@t1".to_vec()))
        .with_cipher_suites(vec![suite])
        .build(true, None)?)
}

struct Link {
    socket: UdpSocket,
    endpoint: Endpoint,
    is_open: bool,
}

/// Some handshakes at once.
fn storm(server: SocketAddr, config: &Arc<HandshakeConfig>) -> Outcome<()> {
    let mut links = Vec::with_capacity(PENDING);
    for _ in 0..PENDING {
        links.push(Link::begin(server, config)?);
    }
    while links.iter().any(|link| !link.is_open) {
        for link in links.iter_mut().filter(|link| !link.is_open) {
            link.receive(server)?;
        }
    }
    Ok(())
}

impl Link {
    fn begin(server: SocketAddr, config: &Arc<HandshakeConfig>) -> Outcome<Self> {
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        socket.connect(server)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        let mut endpoint = Endpoint::new(socket.local_addr()?, TransportProtocol::UDP, None);
        endpoint.connect(Instant::now(), server, config.clone(), None)?;
        let mut link = Self {
            socket,
            endpoint,
            is_open: false,
        };
        link.send()?;
        Ok(link)
    }

    fn receive(&mut self, server: SocketAddr) -> Outcome<()> {
        let mut buffer = [0; 2_048];
        let length = self.socket.recv(&mut buffer)?;
        let events = self.endpoint.read(
            Instant::now(),
            server,
            None,
            BytesMut::from(&buffer[..length]),
        )?;
        let over = |event: &EndpointEvent| matches!(event, EndpointEvent::HandshakeComplete);
        self.is_open |= events.iter().any(over);
        self.send()
    }

    fn send(&mut self) -> Outcome<()> {
        while let Some(datagram) = self.endpoint.poll_transmit() {
            self.socket.send(&datagram.message)?;
        }
        Ok(())
    }
}

/// The processor time of this process.
fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
