//! Two ends in memory: what they hear, how they end, and whom they resume.

use muster_model::TlsFailure;
use muster_protocol::layer::{Ended, Layer, LayerError, Layers, Pipe};

use super::*;
use crate::{Any, ClientSpec, Clients, Peer, Throwaway, throwaway};

fn made(name: &str) -> Throwaway {
    throwaway(&[name.to_owned()]).expect("a name")
}

fn servers(made: &Throwaway, versions: Versions) -> Servers {
    let tls = ServerTls {
        versions,
        ..ServerTls::new(made.cert.clone(), made.key.clone())
    };
    serving(tls)
}

fn serving(tls: ServerTls) -> Servers {
    let spec = ServerSpec {
        tls: Some(tls),
        is_websocket: false,
    };
    Servers::new(&spec).expect("it can serve")
}

fn spec(made: &Throwaway) -> ClientSpec {
    let mut spec = ClientSpec::new(Peer::new("localhost", "localhost:8883"));
    spec.is_tls = true;
    spec.tls.ca = Some(made.ca.clone());
    spec
}

fn clients(spec: &ClientSpec) -> Clients {
    Clients::new(spec, []).expect("it can connect")
}

/// Two ends and what is on its way between them.
struct Line {
    client: Pipe<Any<TlsClient>>,
    server: Pipe<Any<TlsServer>>,
    up: Vec<u8>,
    down: Vec<u8>,
    /// Bytes that each end received, and its end.
    heard: [Vec<u8>; 2],
    ends: [Option<Ended>; 2],
    step: usize,
}

impl Line {
    fn new(clients: &mut Clients, servers: &Servers) -> Self {
        Self::of_link(clients, 0, servers)
    }

    fn of_link(clients: &mut Clients, link: u32, servers: &Servers) -> Self {
        let mut line = Self {
            client: Pipe::new(clients.layer(link).expect("a layer")),
            server: Pipe::new(servers.layer()),
            up: Vec::new(),
            down: Vec::new(),
            heard: Default::default(),
            ends: [None; 2],
            step: usize::MAX,
        };
        line.client.layer.open(&mut line.up);
        line.server.layer.open(&mut line.down);
        line
    }

    /// Carries bytes in both directions, in pieces, until nobody says more.
    fn carry(&mut self) {
        let (mut kept_up, mut kept_down) = (Vec::new(), Vec::new());
        while !(self.up.is_empty() && self.down.is_empty()) {
            let up = piece(&mut self.up, self.step);
            let end = pass(
                &mut self.server,
                (&mut kept_up, up),
                &mut self.down,
                &mut self.heard[1],
            );
            self.ends[1] = self.ends[1].or(end);
            let down = piece(&mut self.down, self.step);
            let end = pass(
                &mut self.client,
                (&mut kept_down, down),
                &mut self.up,
                &mut self.heard[0],
            );
            self.ends[0] = self.ends[0].or(end);
        }
    }

    fn say(&mut self, words: &[u8]) {
        let from = self.up.len();
        self.up.extend_from_slice(words);
        self.client.layer.wrap(&mut self.up, from);
    }

    fn answer(&mut self, words: &[u8]) {
        let from = self.down.len();
        self.down.extend_from_slice(words);
        self.server.layer.wrap(&mut self.down, from);
    }

    fn is_open(&self) -> bool {
        self.client.layer.is_open() && self.server.layer.is_open()
    }

    fn server(&self) -> &TlsServer {
        self.server.layer.tls().expect("it speaks TLS")
    }
}

fn piece(wire: &mut Vec<u8>, most: usize) -> Vec<u8> {
    let rest = wire.split_off(wire.len().min(most));
    std::mem::replace(wire, rest)
}

/// Presents a piece behind what is kept, to a session that takes all plain bytes but leaves the
/// last one of an odd number.
fn pass<L: Layer>(
    pipe: &mut Pipe<L>,
    (kept, piece): (&mut Vec<u8>, Vec<u8>),
    wire: &mut Vec<u8>,
    heard: &mut Vec<u8>,
) -> Option<Ended> {
    kept.extend(piece);
    let fed = pipe.receive(kept, wire);
    let taken = fed.plain / 2 * 2;
    heard.extend_from_slice(&kept[..taken]);
    let used = pipe.keep(kept, &fed, taken);
    kept.drain(..used);
    fed.end
}

fn failure(end: Option<Ended>) -> TlsFailure {
    match end {
        Some(Ended::Failed(LayerError::Tls(failure))) => failure,
        other => panic!("{other:?} is no failure of TLS"),
    }
}

#[test]
fn both_ends_hear_what_was_said_in_either_version_and_in_any_pieces() {
    let ours = made("localhost");
    let long: Vec<u8> = (0..50_000u32).map(|n| n as u8).collect();
    for versions in [Versions::Only12, Versions::Only13, Versions::Both] {
        for step in [1, 7, 1_000, usize::MAX] {
            let mut line = Line::new(&mut clients(&spec(&ours)), &servers(&ours, versions));
            line.step = step;
            line.carry();
            assert!(line.is_open(), "{versions:?} {step}");
            line.say(&long);
            line.say(b"abcd");
            line.answer(b"12");
            line.answer(b"");
            line.carry();
            assert_eq!(line.heard[1], [&long[..], b"abcd"].concat());
            assert_eq!(line.heard[0], b"12");
        }
    }
}

#[test]
fn a_goodbye_is_heard_and_answered() {
    let ours = made("localhost");
    for versions in [Versions::Only12, Versions::Only13] {
        let mut line = Line::new(&mut clients(&spec(&ours)), &servers(&ours, versions));
        line.carry();
        line.say(b"last");
        line.client.layer.close(&mut line.up);
        assert_eq!(line.client.layer.standing(), Standing::Closing);
        line.say(b"more");
        line.carry();
        assert_eq!(line.heard[1], b"last");
        assert_eq!(line.ends[1], Some(Ended::Closed(None)));
        assert_eq!(line.server.layer.standing(), Standing::Over);
    }
}

#[test]
fn a_certificate_of_a_stranger_is_refused_by_name_and_the_server_is_told() {
    let (ours, theirs) = (made("localhost"), made("localhost"));
    let mut line = Line::new(
        &mut clients(&spec(&ours)),
        &servers(&theirs, Versions::Both),
    );
    line.carry();
    assert_eq!(failure(line.ends[0]), TlsFailure::UnknownIssuer);
    assert_eq!(failure(line.ends[1]), TlsFailure::Alert(48), "unknown_ca");
    let detail = line.client.layer.detail().expect("more is known");
    assert!(detail.contains("certificate"), "{detail}");
}

#[test]
fn a_certificate_for_another_name_is_refused() {
    let ours = made("elsewhere.example");
    let mut line = Line::new(&mut clients(&spec(&ours)), &servers(&ours, Versions::Both));
    line.carry();
    assert_eq!(failure(line.ends[0]), TlsFailure::WrongName);
    let detail = line.client.layer.detail().expect("more is known");
    assert!(detail.contains("elsewhere.example"), "{detail}");
}

#[test]
fn insecure_takes_any_certificate() {
    let (ours, theirs) = (made("localhost"), made("elsewhere.example"));
    let mut spec = spec(&ours);
    spec.tls.insecure = true;
    for versions in [Versions::Only12, Versions::Only13] {
        let mut line = Line::new(&mut clients(&spec), &servers(&theirs, versions));
        line.carry();
        assert!(line.is_open());
    }
}

#[test]
fn ends_without_a_version_in_common_say_so() {
    let ours = made("localhost");
    let mut spec = spec(&ours);
    spec.tls.versions = Versions::Only12;
    let mut line = Line::new(&mut clients(&spec), &servers(&ours, Versions::Only13));
    line.carry();
    assert_eq!(failure(line.ends[1]), TlsFailure::NothingInCommon);
    assert_eq!(
        failure(line.ends[0]),
        TlsFailure::Alert(70),
        "protocol_version"
    );
}

#[test]
fn what_is_no_tls_is_malformed() {
    let ours = made("localhost");
    let mut line = Line::new(&mut clients(&spec(&ours)), &servers(&ours, Versions::Both));
    line.up.clear();
    line.down
        .extend_from_slice(&[0x20, 2, 0, 0, 0x30, 0x55, 0, 1, b'a']);
    line.carry();
    assert_eq!(failure(line.ends[0]), TlsFailure::Malformed);
}

/// Resumes only what was its own: the same link again, and never another.
#[test]
fn a_link_resumes_its_own_session_and_no_other() {
    let ours = made("localhost");
    for versions in [Versions::Only12, Versions::Only13] {
        let servers = servers(&ours, versions);
        let mut clients = clients(&spec(&ours));
        let mut is_resumed = |link: u32| {
            let mut line = Line::of_link(&mut clients, link, &servers);
            line.carry();
            assert!(line.is_open());
            line.server().is_resumed()
        };
        let kinds = [1, 2, 1, 1, 3, 2].map(&mut is_resumed);
        let wanted = [false, false, true, true, false, true].map(Some);
        assert_eq!(kinds, wanted, "{versions:?}");
    }
}

#[test]
fn without_resumption_every_session_is_new() {
    let ours = made("localhost");
    let servers = servers(&ours, Versions::Both);
    let mut spec = spec(&ours);
    spec.tls.resumption = false;
    let mut clients = clients(&spec);
    for _ in 0..3 {
        let mut line = Line::new(&mut clients, &servers);
        line.carry();
        assert_eq!(line.server().is_resumed(), Some(false));
    }
}

/// Each of a thousand links shows a certificate of its own, first in full and then resumed.
#[test]
fn a_thousand_links_keep_a_thousand_subjects_when_they_resume() {
    let ours = made("localhost");
    let authority = Authority::new();
    let mut tls = ServerTls::new(ours.cert.clone(), ours.key.clone());
    tls.client_ca = Some(authority.ca());
    tls.is_client_cert_needed = true;
    for versions in [Versions::Only12, Versions::Only13] {
        tls.versions = versions;
        let servers = serving(tls.clone());
        let own = (0..1_000).map(|link| (link, authority.own(&format!("meter-{link}"))));
        let mut clients = Clients::new(&spec(&ours), own).expect("they can connect");
        for is_resumed in [false, true] {
            for link in 0..1_000 {
                let mut line = Line::of_link(&mut clients, link, &servers);
                line.carry();
                let peer = line.server().peer().expect("it showed a certificate");
                assert_eq!(peer.subject, format!("CN=meter-{link}"));
                assert_eq!(peer.is_resumed, is_resumed, "{versions:?} {link}");
            }
        }
    }
}

#[test]
fn who_shows_no_certificate_is_sent_away_where_one_is_needed() {
    let ours = made("localhost");
    let mut tls = ServerTls::new(ours.cert.clone(), ours.key.clone());
    tls.client_ca = Some(Authority::new().ca());
    tls.is_client_cert_needed = true;
    let mut line = Line::new(&mut clients(&spec(&ours)), &serving(tls.clone()));
    line.carry();
    assert_eq!(
        failure(line.ends[0]),
        TlsFailure::Alert(116),
        "certificate_required"
    );
    tls.is_client_cert_needed = false;
    let mut line = Line::new(&mut clients(&spec(&ours)), &serving(tls));
    line.carry();
    assert!(line.is_open());
    assert_eq!(line.server().peer(), None);
}

#[test]
fn a_byte_order_mark_hides_no_certificate_and_no_key() {
    let ours = made("localhost");
    let marked = |pem: &Pem| Pem::new("marked", [b"\xef\xbb\xbf", pem.text()].concat());
    assert!(Own::new(&marked(&ours.cert), &marked(&ours.key)).is_ok());
}

#[test]
fn a_key_of_another_certificate_is_named() {
    let (ours, theirs) = (made("localhost"), made("localhost"));
    let error = Own::new(&ours.cert, &theirs.key).expect_err("they do not belong together");
    assert!(matches!(error, TransportError::Mismatch { .. }), "{error}");
    let error = Own::new(&ours.key, &ours.key).expect_err("no certificate");
    assert!(
        matches!(error, TransportError::Certificate { .. }),
        "{error}"
    );
    let error = Own::new(&ours.cert, &ours.cert).expect_err("no key");
    assert!(matches!(error, TransportError::Key { .. }), "{error}");
    let why = |text: &str| {
        let key = Pem::new("the.key", text.as_bytes().to_vec());
        Own::new(&ours.cert, &key).expect_err("no key").to_string()
    };
    let encrypted =
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAA==\n-----END ENCRYPTED PRIVATE KEY-----\n";
    assert!(
        why(encrypted).contains("it is encrypted"),
        "{}",
        why(encrypted)
    );
    let cut = "-----BEGIN PRIVATE KEY-----\nAA==\n";
    assert!(
        why(cut).contains("`-----END PRIVATE KEY-----` is missing"),
        "{}",
        why(cut)
    );
    let error = Own::read("no-such.pem", "no-such.key").expect_err("no file");
    assert!(
        error.to_string().starts_with("read no-such.pem: "),
        "{error}"
    );
}

#[test]
fn whole_records_are_told_from_a_beginning() {
    for (bytes, whole) in [
        (&b""[..], 0),
        (b"\x16\x03\x03\0\x02ab", 7),
        (b"\x16\x03\x03\0\x02abc", 7),
        (b"\x16\x03\x03\0\x02a", 0),
        (b"\x16\x03\x03\0\0\x17\x03\x03\0\x01a", 11),
    ] {
        assert_eq!(whole_records(bytes), whole);
    }
}

/// Vouches for clients.
struct Authority(rcgen::CertifiedIssuer<'static, rcgen::KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut params = rcgen::CertificateParams::default();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = rcgen::KeyPair::generate().expect("a key");
        Self(rcgen::CertifiedIssuer::self_signed(params, key).expect("a certificate"))
    }

    fn ca(&self) -> Pem {
        Pem::new("authority", self.0.pem().into_bytes())
    }

    fn own(&self, name: &str) -> Own {
        let mut params = rcgen::CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params
            .distinguished_name
            .push(rcgen::DnType::CommonName, name);
        let key = rcgen::KeyPair::generate().expect("a key");
        let cert = params.signed_by(&key, &self.0).expect("a certificate");
        let pem = |text: String| Pem::new(name, text.into_bytes());
        Own::new(&pem(cert.pem()), &pem(key.serialize_pem())).expect("they belong together")
    }
}
