//! One session of DTLS over a blocking UDP socket, and the arguments of the examples.

use std::collections::HashMap;
use std::io::{ErrorKind, Write};
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use muster_model::Micros;
use muster_protocol::dtls::{
    Certificates, Connected, Context, Datagrams, Dtls, Event, Fault, Incoming, Keys, Sessions,
    Settings, Suite,
};
use muster_transport::{AwsLc, DtlsCertificates, Own, Pem, TlsSpec};

/// Longer than any datagram.
const DATAGRAM_MAX: usize = 65_536;

/// `--name value` pairs, and words without a name.
pub(crate) struct Arguments {
    pub(crate) words: Vec<String>,
    options: HashMap<String, String>,
}

impl Arguments {
    /// Reads the arguments; options without a value are named in `alone`.
    pub(crate) fn read(alone: &[&str]) -> Self {
        let (mut words, mut options) = (Vec::new(), HashMap::new());
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            match argument.strip_prefix("--") {
                None => words.push(argument),
                Some(name) if alone.contains(&name) => {
                    options.insert(name.to_owned(), String::new());
                }
                Some(name) => {
                    let value = arguments.next().expect("a value behind each option");
                    options.insert(name.to_owned(), value);
                }
            }
        }
        Self { words, options }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.options.get(name).map(String::as_str)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.options.contains_key(name)
    }

    /// A number, with its default.
    pub(crate) fn number(&self, name: &str, otherwise: u64) -> u64 {
        self.get(name)
            .map_or(otherwise, |text| text.parse().expect("a number"))
    }

    /// `identity:key`.
    pub(crate) fn psk(&self) -> Option<(Vec<u8>, Vec<u8>)> {
        let (identity, key) = self.get("psk")?.split_once(':')?;
        Some((identity.into(), key.into()))
    }

    /// Bytes in hexadecimal; a `-` alone stands for none of them.
    pub(crate) fn hex(&self, name: &str) -> Option<Vec<u8>> {
        let text = self.get(name)?.trim_start_matches('-');
        let pairs = text.as_bytes().chunks(2);
        let digits = pairs.map(|pair| std::str::from_utf8(pair).expect("ASCII"));
        Some(
            digits
                .map(|pair| u8::from_str_radix(pair, 16).expect("hexadecimal"))
                .collect(),
        )
    }

    /// Settings of both examples: `--suites PskCcm8,PskGcm`, `--first MS`, `--give-up MS`,
    /// `--datagram BYTES`.
    pub(crate) fn settings(&self) -> Settings {
        let mut settings = Settings::default();
        if let Some(names) = self.get("suites") {
            let is_named = |suite: &Suite| {
                let name = format!("{suite:?}");
                names.split(',').any(|wanted| wanted == name)
            };
            settings.suites.retain(is_named);
        }
        let timing = &mut settings.timing;
        timing.first = Micros::from_millis(self.number("first", 1_000));
        timing.give_up = Micros::from_millis(self.number("give-up", 10_000));
        settings.datagram_max = self.number("datagram", 1_200) as usize;
        settings
    }

    /// `--cert FILE --key FILE --ca FILE`.
    pub(crate) fn certificates(&self) -> Option<DtlsCertificates> {
        let ca = Pem::read(self.get("ca")?).expect("a file of certificates");
        let own = self.get("cert").zip(self.get("key"));
        let own = own.map(|(cert, key)| Own::read(cert, key).expect("certificate and key"));
        let spec = TlsSpec {
            ca: Some(ca.clone()),
            ..TlsSpec::default()
        };
        Some(DtlsCertificates::new(own, &spec, Some(&ca)).expect("certificates"))
    }
}

/// Credentials of both ends.
pub(crate) struct Means {
    pub(crate) crypto: AwsLc,
    pub(crate) settings: Settings,
    pub(crate) certificates: Option<DtlsCertificates>,
    pub(crate) keys: Option<Box<dyn Keys>>,
    pub(crate) sessions: Option<Box<dyn Sessions>>,
}

impl Means {
    pub(crate) fn context(&mut self) -> Context<'_, AwsLc> {
        let certificates = self.certificates.as_ref();
        Context {
            crypto: &mut self.crypto,
            settings: &self.settings,
            certificates: certificates.map(|own| own as &dyn Certificates),
            keys: self.keys.as_deref(),
            sessions: match &mut self.sessions {
                Some(sessions) => Some(&mut **sessions),
                None => None,
            },
        }
    }
}

/// An event, with the peer's reason.
#[derive(Debug)]
pub(crate) enum Happened {
    Connected(Connected),
    Data(Vec<u8>),
    Closed,
    Failed(Fault),
    /// Nothing, for as long as one waited.
    Nothing,
}

impl From<Event<'_>> for Happened {
    fn from(event: Event<'_>) -> Self {
        match event {
            Event::Connected(connected) => Self::Connected(connected),
            Event::Data(bytes) => Self::Data(bytes.to_vec()),
            Event::Closed => Self::Closed,
            Event::Failed(fault) => Self::Failed(fault),
        }
    }
}

/// A session and its socket.
pub(crate) struct Link {
    pub(crate) socket: UdpSocket,
    pub(crate) peer: SocketAddr,
    pub(crate) dtls: Dtls<AwsLc>,
    pub(crate) out: Datagrams,
    began: Instant,
    happened: Vec<Happened>,
}

impl Link {
    pub(crate) fn new(socket: UdpSocket, peer: SocketAddr) -> Self {
        Self {
            socket,
            peer,
            dtls: Dtls::default(),
            out: Datagrams::new(),
            began: now(),
            happened: Vec::new(),
        }
    }

    pub(crate) fn micros(&self) -> Micros {
        Micros(self.began.elapsed().as_micros() as u64)
    }

    /// Sends what is to be sent.
    pub(crate) fn flush(&mut self) {
        for datagram in self.out.iter() {
            // A peer that is gone is found out by its silence.
            let _ = self.socket.send_to(datagram, self.peer);
        }
        self.out.clear();
    }

    pub(crate) fn say(&mut self, words: &[u8]) {
        let mut record = words.to_vec();
        assert!(self.dtls.wrap(&mut record, 0), "the session is open");
        self.socket
            .send_to(&record, self.peer)
            .expect("a datagram goes out");
    }

    pub(crate) fn close(&mut self) {
        self.dtls.close(&mut self.out);
        self.flush();
    }

    /// A datagram that came.
    pub(crate) fn receive(&mut self, means: &mut Means, datagram: &mut [u8], from: SocketAddr) {
        let now = self.micros();
        let mut input = Incoming::new(datagram);
        let mut context = means.context();
        while let Some(event) = self.dtls.poll(now, &mut context, &mut input, &mut self.out) {
            self.happened.push(event.into());
        }
        // The peer has moved (RFC 9146 section 6).
        if !self.dtls.own_id().is_empty() && input.is_newest() {
            self.peer = from;
        }
        self.flush();
    }

    /// Waits for the next thing to happen, at most so long.
    pub(crate) fn wait(&mut self, means: &mut Means, patience: Duration) -> Happened {
        let until = self.micros().0 + patience.as_micros() as u64;
        let mut buffer = vec![0; DATAGRAM_MAX];
        loop {
            if !self.happened.is_empty() {
                return self.happened.remove(0);
            }
            let now = self.micros();
            let event = self.dtls.expire(now, &mut means.context(), &mut self.out);
            self.happened.extend(event.map(Happened::from));
            self.flush();
            if now.0 >= until {
                return Happened::Nothing;
            }
            let due = self.dtls.deadline().unwrap_or(Micros::MAX).0.min(until);
            let wait = Duration::from_micros(due.saturating_sub(now.0).max(1_000));
            self.socket
                .set_read_timeout(Some(wait))
                .expect("a time-out");
            match self.socket.recv_from(&mut buffer) {
                Ok((length, from)) => self.receive(means, &mut buffer[..length], from),
                Err(error) => assert!(
                    matches!(
                        error.kind(),
                        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::ConnectionRefused
                    ),
                    "{error}"
                ),
            }
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "an example has no run and no T0")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

pub(crate) fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}
