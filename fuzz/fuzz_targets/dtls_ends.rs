//! Common part of both DTLS targets: one end under attack, an honest peer, and a network in between that does
//! what the script says.
//!
//! The cryptography is none, so that a script can say what only the peer could: the tag of a record
//! is zeros, what both ends agree on is known, and a hash is a sum.

use muster_model::Micros;
use muster_protocol::dtls::{
    Aead, CertificateFault, Certificates, Cipher, Context, CookieSecret, Crypto, Datagrams, Dtls,
    Event, Found, Greeting, Group, Incoming, Keys, Opening, Peer, Psk, PublicKey, Session,
    Sessions, Settings, Suite, greet,
};
use muster_protocol::layer::Standing;
use zeroize::Zeroizing;

/// Calls of one script; longer ones find nothing that shorter ones do not.
const CALLS: usize = 100;
/// Most bytes that an end may send for one datagram or at one instant: a flight, again, and alerts.
const ANSWER_MAX: usize = 64 * 1024;
/// Small enough that a script reaches it.
const HANDSHAKE_MAX: usize = 2_000;
const ADDRESS: &[u8] = b"address";

/// No cryptography.
struct NoCrypto(u8);

/// The key of a record, which is none.
struct NoKey(usize);

impl Aead for NoKey {
    fn seal(&self, _nonce: &[u8; 12], _associated: &[u8], bytes: &mut [u8]) {
        let plain = bytes.len() - self.0;
        bytes[plain..].fill(0);
    }

    fn open(&self, _nonce: &[u8; 12], _associated: &[u8], bytes: &mut [u8]) -> bool {
        let plain = bytes.len() - self.0;
        bytes[plain..].iter().all(|byte| *byte == 0)
    }

    fn tag_len(&self) -> usize {
        self.0
    }
}

impl Crypto for NoCrypto {
    type Aead = NoKey;
    type Secret = ();

    fn random(&mut self, bytes: &mut [u8]) -> bool {
        self.0 = self.0.wrapping_add(1);
        bytes.fill(self.0);
        true
    }

    fn sha256(&self, bytes: &[u8]) -> [u8; 32] {
        let sum = bytes.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
        [sum; 32]
    }

    fn prf(&self, _secret: &[u8], _label: &[u8], _seed: &[&[u8]], out: &mut [u8]) {
        out.fill(7);
    }

    fn aead(&self, cipher: Cipher, _key: &[u8; 16]) -> NoKey {
        NoKey(cipher.tag_len())
    }

    fn secret(&mut self, _group: Group) -> Option<((), PublicKey)> {
        PublicKey::new(&[4; 65]).map(|public| ((), public))
    }

    fn agree(&self, (): (), peer: &[u8]) -> Option<Zeroizing<[u8; 32]>> {
        (!peer.is_empty()).then(|| Zeroizing::new([1; 32]))
    }
}

/// Everybody is whom they say.
struct Trusting(Vec<Box<[u8]>>);

impl Certificates for Trusting {
    fn chain(&self) -> &[Box<[u8]>] {
        &self.0
    }

    fn sign(&self, _message: &[u8]) -> Option<Vec<u8>> {
        Some(vec![1; 70])
    }

    fn judge(&self, chain: &[&[u8]], _peer: Peer<'_>) -> Result<(), CertificateFault> {
        chain.first().map(|_| ()).ok_or(CertificateFault::Missing)
    }

    fn identity(&self, leaf: &[u8]) -> Option<Box<[u8]>> {
        Some(leaf.into())
    }

    fn verify(&self, _leaf: &[u8], _scheme: u16, _message: &[u8], signature: &[u8]) -> bool {
        !signature.is_empty()
    }
}

/// Some identities are known, some unknown, some met with silence.
struct ByFirst;

impl Keys for ByFirst {
    fn find(&self, identity: &[u8]) -> Found {
        match identity.first() {
            Some(b'u') => Found::Unknown,
            Some(b's') => Found::Silent,
            _ => Found::Key(Zeroizing::new(identity.to_vec())),
        }
    }
}

/// The newest session.
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

/// One end, the means it may use, and the events it has reported.
struct End {
    dtls: Dtls<NoCrypto>,
    is_client: bool,
    id: Option<Vec<u8>>,
    crypto: NoCrypto,
    settings: Settings,
    certificates: Trusting,
    sessions: Newest,
    out: Datagrams,
    has_connected: bool,
    has_ended: bool,
}

macro_rules! context {
    ($end:expr) => {
        Context {
            crypto: &mut $end.crypto,
            settings: &$end.settings,
            certificates: Some(&$end.certificates),
            keys: Some(&ByFirst),
            sessions: Some(&mut $end.sessions),
        }
    };
}

impl End {
    fn new(is_client: bool, choice: u8) -> Self {
        let suite = Suite::ALL[usize::from(choice) % Suite::ALL.len()];
        let ids = [None, Some(vec![]), Some(vec![5]), Some(vec![6; 9])];
        let settings = Settings {
            suites: vec![suite],
            resumption: true,
            handshake_max: HANDSHAKE_MAX,
            datagram_max: if choice & 0x40 == 0 { 1_200 } else { 0 },
            cookie_secret: (choice & 0x80 == 0).then(|| CookieSecret::new([3; 32])),
            client_certificate: choice & 0x20 != 0,
            ..Settings::default()
        };
        Self {
            dtls: Dtls::default(),
            is_client,
            id: ids[usize::from(choice >> 4 & 3)].clone(),
            crypto: NoCrypto(if is_client { 0 } else { 100 }),
            settings,
            certificates: Trusting(vec![vec![9; 300].into(), vec![8; 200].into()]),
            sessions: Newest::default(),
            out: Datagrams::new(),
            has_connected: false,
            has_ended: false,
        }
    }

    fn open(&mut self, now: Micros, session: Option<Session>) {
        let id = self.id.clone();
        let opening = Opening {
            psk: Some(Psk {
                identity: b"device",
                key: b"key",
            }),
            server_name: Some("localhost"),
            connection_id: id.as_deref(),
            needs_connection_id: false,
            session,
        };
        (self.has_connected, self.has_ended) = (false, false);
        self.dtls = Dtls::client(now, &opening, &mut context!(self), &mut self.out);
    }

    fn receive(&mut self, now: Micros, datagram: &[u8]) {
        let before = self.said();
        if !self.is_client && self.dtls.standing() == Standing::Over {
            let context = context!(self);
            let greeting = greet(&context, datagram, ADDRESS, &mut self.out);
            if let Greeting::Welcome(welcome) = greeting {
                self.dtls = Dtls::server(now, welcome, &context, self.id.as_deref());
                (self.has_connected, self.has_ended) = (false, false);
            }
        }
        let mut bytes = datagram.to_vec();
        let mut input = Incoming::new(&mut bytes);
        while let Some(event) = self
            .dtls
            .poll(now, &mut context!(self), &mut input, &mut self.out)
        {
            let length = match &event {
                Event::Data(bytes) => bytes.len(),
                Event::Connected(_) | Event::Closed | Event::Failed(_) => 0,
            };
            assert!(length <= datagram.len(), "no more than came");
            note(&mut self.has_connected, &mut self.has_ended, &event);
        }
        self.check(before);
    }

    fn expire(&mut self, now: Micros) {
        let before = self.said();
        let event = self.dtls.expire(now, &mut context!(self), &mut self.out);
        if let Some(event) = event {
            note(&mut self.has_connected, &mut self.has_ended, &event);
        }
        assert!(
            self.dtls.deadline().is_none_or(|deadline| deadline > now),
            "time goes on"
        );
        self.check(before);
    }

    fn said(&self) -> usize {
        self.out.iter().map(<[u8]>::len).sum()
    }

    fn check(&self, before: usize) {
        assert!(self.said() - before <= ANSWER_MAX, "answers are bounded");
        let standing = self.dtls.standing();
        assert_eq!(self.dtls.is_open(), standing == Standing::Open);
        assert!(!self.dtls.is_open() || self.has_connected);
        assert!(!self.has_ended || standing == Standing::Over);
        assert!(standing != Standing::Over || self.dtls.deadline().is_none());
    }

    /// A record for this end; under keys, with what it asks for and a tag that is right.
    fn record(&self, content: u8, epoch: u8, number: u8, body: &[u8]) -> Vec<u8> {
        let id = self.dtls.own_id();
        let mut inner = body.to_vec();
        let mut shown = content;
        if epoch != 0 {
            if !id.is_empty() {
                inner.push(content);
                shown = 25;
            }
            inner.splice(0..0, [0; 8]);
            let tag = self.settings.suites[0].cipher().tag_len();
            inner.resize(inner.len() + tag, 0);
        }
        let head = [shown, 0xfe, 0xfd, 0, epoch, 0, 0, 0, 0, 0, number];
        let id = if shown == 25 { id } else { &[] };
        let length = (inner.len() as u16).to_be_bytes();
        [&head[..], id, &length, &inner].concat()
    }

    fn sent(&mut self) -> Vec<Vec<u8>> {
        let sent = self.out.iter().map(<[u8]>::to_vec).collect();
        self.out.clear();
        sent
    }
}

/// Data comes only between the beginning and the end, and each of these is reported once.
fn note(has_connected: &mut bool, has_ended: &mut bool, event: &Event<'_>) {
    assert!(!*has_ended, "nothing is reported after the end");
    match event {
        Event::Connected(_) => {
            assert!(!*has_connected);
            *has_connected = true;
        }
        Event::Data(_) => assert!(*has_connected),
        Event::Closed | Event::Failed(_) => *has_ended = true,
    }
}

/// Runs the script. Whatever comes: an end does not panic, its answers are bounded, it reports its
/// beginning and its end once and data only in between, and its timers go on.
pub fn run(data: &[u8], is_client: bool) {
    let [choice, ours, script @ ..] = data else {
        return;
    };
    let mut play = Play::new(is_client, *choice, *ours);
    let mut script = script;
    for _ in 0..CALLS {
        let [call, operand, rest @ ..] = script else {
            return;
        };
        let length = usize::from(call >> 4) * 16 + usize::from(operand & 15);
        let (bytes, rest) = rest.split_at(length.min(rest.len()));
        play.step(*call, *operand, bytes);
        script = rest;
    }
}

/// The end under attack, its honest peer, and what is under way between them.
struct Play {
    end: End,
    peer: End,
    now: Micros,
    to_peer: Vec<Vec<u8>>,
    to_end: Vec<Vec<u8>>,
}

impl Play {
    fn new(is_client: bool, choice: u8, ours: u8) -> Self {
        let mut end = End::new(is_client, choice);
        let mut peer = End::new(!is_client, ours & 0xf0 | choice & 0x0f);
        peer.settings.suites = end.settings.suites.clone();
        let now = Micros::ZERO;
        if is_client { &mut end } else { &mut peer }.open(now, None);
        let (to_peer, to_end) = (Vec::new(), Vec::new());
        Self {
            end,
            peer,
            now,
            to_peer,
            to_end,
        }
    }

    fn step(&mut self, call: u8, operand: u8, bytes: &[u8]) {
        let (end, now) = (&mut self.end, self.now);
        match call & 0x0f {
            // Honest turns, in either direction.
            0 | 1 => {
                self.to_peer.extend(end.sent());
                for datagram in self.to_peer.drain(..) {
                    self.peer.receive(now, &datagram);
                }
                self.to_end.extend(self.peer.sent());
            }
            2 | 3 => {
                for datagram in self.to_end.drain(..) {
                    end.receive(now, &datagram);
                }
            }
            4 | 5 => self.alter(operand, bytes),
            6 => end.receive(now, bytes),
            // A message of the handshake, in the clear or under keys.
            7..=9 => {
                let message = message(operand, bytes);
                let record = end.record(22, call & 1, operand, &message);
                end.receive(now, &record);
            }
            10 | 11 => {
                let is_data = call & 1 == 0;
                let (content, epoch) = if is_data { (23, 1) } else { (21, operand & 1) };
                let record = end.record(content, epoch, operand, bytes);
                end.receive(now, &record);
            }
            12 => {
                self.now = Micros(now.0 + u64::from(operand) * 100_000);
                end.expire(self.now);
                self.peer.expire(self.now);
            }
            13 => {
                let _ = end.dtls.wrap(&mut bytes.to_vec(), 0);
            }
            14 if operand < 8 => end.dtls.close(&mut end.out),
            _ => self.open_again(),
        }
    }

    /// One of the peer's datagrams comes with some bytes of the script's in it; it may come again.
    fn alter(&mut self, operand: u8, bytes: &[u8]) {
        let at = usize::from(operand) % self.to_end.len().max(1);
        let Some(mut datagram) = self.to_end.get(at).cloned() else {
            return;
        };
        let at = bytes.first().map_or(0, |at| usize::from(*at)) % datagram.len();
        for (to, from) in datagram[at..].iter_mut().zip(bytes.iter().skip(1)) {
            *to = *from;
        }
        self.end.receive(self.now, &datagram);
    }

    /// Another session, with what was kept of the last.
    fn open_again(&mut self) {
        let client = if self.end.is_client {
            &mut self.end
        } else {
            &mut self.peer
        };
        if client.dtls.standing() == Standing::Over {
            let session = client.dtls.take_session();
            client.open(self.now, session);
        }
    }
}

/// A message of the handshake in one piece.
fn message(operand: u8, body: &[u8]) -> Vec<u8> {
    let kinds = [0_u8, 1, 2, 3, 4, 11, 12, 13, 14, 15, 16, 20];
    let kind = kinds[usize::from(operand >> 4) % kinds.len()];
    let length = (body.len() as u32).to_be_bytes();
    let sequence = [0, operand & 7];
    [
        &[kind][..],
        &length[1..],
        &sequence,
        &[0; 3],
        &length[1..],
        body,
    ]
    .concat()
}
