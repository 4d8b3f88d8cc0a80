//! Both ends, what they know, and what happened to them.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex};

use muster_model::Micros;
use muster_protocol::dtls::{
    Aead, Certificates, Cipher, Connected, Context, CookieSecret, Crypto, Datagrams, Dtls, Event,
    Fault, Found, Greeting, Group, Incoming, Keys, Opening, Psk, PublicKey, Session, Sessions,
    Settings, greet,
};
use muster_transport::{
    AwsLc, DtlsCertificates, GroupSecret, Own, RecordKey, Throwaway, TlsSpec, throwaway,
};
use zeroize::Zeroizing;

/// The address that a server sees.
pub(crate) const ADDRESS: &[u8] = b"198.51.100.7:5684";
/// The key that both ends know.
pub(crate) const KEY: &[u8] = b"hono-secret";
/// The client's identity.
pub(crate) const IDENTITY: &[u8] = b"sensor1@t1";

static THROWAWAY: LazyLock<Throwaway> =
    LazyLock::new(|| throwaway(&["localhost".to_owned()]).expect("a certificate"));

/// A certificate for `localhost`, and who vouches for it.
pub(crate) fn certificate() -> &'static Throwaway {
    &THROWAWAY
}

/// One key for one identity; some identities are met with silence.
pub(crate) struct OneKey;

impl Keys for OneKey {
    fn find(&self, identity: &[u8]) -> Found {
        match identity {
            IDENTITY => Found::Key(Zeroizing::new(KEY.to_vec())),
            b"silent" => Found::Silent,
            _ => Found::Unknown,
        }
    }
}

/// All sessions for ever, as few tests make.
#[derive(Default)]
pub(crate) struct Kept(pub(crate) Mutex<HashMap<Vec<u8>, Session>>);

impl Sessions for Kept {
    fn keep(&mut self, session: &Session) {
        let mut kept = self.0.lock().expect("one thread");
        kept.insert(session.id().to_vec(), session.clone());
    }

    fn find(&self, id: &[u8]) -> Option<Session> {
        self.0.lock().expect("one thread").get(id).cloned()
    }
}

/// Events of one end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Told {
    Connected(Connected),
    Data(Vec<u8>),
    Closed,
    Failed(Fault),
}

impl From<Event<'_>> for Told {
    fn from(event: Event<'_>) -> Self {
        match event {
            Event::Connected(connected) => Self::Connected(connected),
            Event::Data(bytes) => Self::Data(bytes.to_vec()),
            Event::Closed => Self::Closed,
            Event::Failed(fault) => Self::Failed(fault),
        }
    }
}

/// The algorithms, with a look at the keys that they make: so a test can say what no peer should.
pub(crate) struct Tapped {
    algorithms: AwsLc,
    keys: Cell<[u8; 40]>,
    pub(crate) has_randomness: bool,
}

impl Tapped {
    fn new(seed: u64) -> Self {
        let algorithms = AwsLc::seeded(seed);
        let keys = Cell::new([0; 40]);
        Self {
            algorithms,
            keys,
            has_randomness: true,
        }
    }

    /// A record under the keys of the client or the server, without a connection id.
    pub(crate) fn forge(
        &self,
        is_client: bool,
        content: u8,
        sequence: u64,
        body: &[u8],
    ) -> Vec<u8> {
        let keys = self.keys.get();
        let (key, salt) = if is_client { (0, 32) } else { (16, 36) };
        let key = keys[key..][..16].try_into().expect("16 bytes");
        let aead = self.algorithms.aead(Cipher::Aes128Ccm8, &key);
        let numbered = (1_u64 << 48 | sequence).to_be_bytes();
        let nonce = [&keys[salt..][..4], &numbered].concat();
        let mut sealed = [body, &[0; 8]].concat();
        let (length, whole) = (body.len() as u16, sealed.len() as u16 + 8);
        let head = [&[content][..], &[0xfe, 0xfd]].concat();
        let associated = [&numbered[..], &head, &length.to_be_bytes()].concat();
        aead.seal(
            &nonce.try_into().expect("12 bytes"),
            &associated,
            &mut sealed,
        );
        let header = [&head[..], &numbered, &whole.to_be_bytes()].concat();
        [&header[..], &numbered, &sealed].concat()
    }
}

impl Crypto for Tapped {
    type Aead = RecordKey;
    type Secret = GroupSecret;

    fn random(&mut self, bytes: &mut [u8]) -> bool {
        self.has_randomness && self.algorithms.random(bytes)
    }

    fn sha256(&self, bytes: &[u8]) -> [u8; 32] {
        self.algorithms.sha256(bytes)
    }

    fn prf(&self, secret: &[u8], label: &[u8], seed: &[&[u8]], out: &mut [u8]) {
        self.algorithms.prf(secret, label, seed, out);
        if label == b"key expansion" {
            self.keys.set((&*out).try_into().expect("40 bytes"));
        }
    }

    fn aead(&self, cipher: Cipher, key: &[u8; 16]) -> RecordKey {
        self.algorithms.aead(cipher, key)
    }

    fn secret(&mut self, group: Group) -> Option<(GroupSecret, PublicKey)> {
        self.algorithms.secret(group)
    }

    fn agree(&self, secret: GroupSecret, peer: &[u8]) -> Option<Zeroizing<[u8; 32]>> {
        self.algorithms.agree(secret, peer)
    }
}

/// One end, with all it may use.
pub(crate) struct End {
    pub(crate) dtls: Dtls<Tapped>,
    pub(crate) crypto: Tapped,
    pub(crate) settings: Settings,
    pub(crate) certificates: Option<DtlsCertificates>,
    pub(crate) keys: Option<OneKey>,
    pub(crate) sessions: Option<Kept>,
    pub(crate) connection_id: Option<Vec<u8>>,
    pub(crate) told: Vec<Told>,
    pub(crate) out: Datagrams,
    /// True if the last datagram may have moved the peer.
    pub(crate) is_newest: bool,
}

macro_rules! context {
    ($end:expr) => {
        Context {
            crypto: &mut $end.crypto,
            settings: &$end.settings,
            certificates: $end
                .certificates
                .as_ref()
                .map(|own| own as &dyn Certificates),
            keys: $end.keys.as_ref().map(|keys| keys as &dyn Keys),
            sessions: $end.sessions.as_mut().map(|kept| kept as &mut dyn Sessions),
        }
    };
}

impl End {
    fn new(seed: u64) -> Self {
        Self {
            dtls: Dtls::default(),
            crypto: Tapped::new(seed),
            settings: Settings::default(),
            certificates: None,
            keys: None,
            sessions: None,
            connection_id: None,
            told: Vec::new(),
            out: Datagrams::new(),
            is_newest: false,
        }
    }

    /// A client that has not begun.
    pub(crate) fn client(seed: u64) -> Self {
        Self::new(2 * seed)
    }

    /// A server that waits for a ClientHello.
    pub(crate) fn server(seed: u64) -> Self {
        let mut this = Self::new(2 * seed + 1);
        this.keys = Some(OneKey);
        this.settings.cookie_secret = Some(CookieSecret::new([7; 32]));
        this
    }

    /// The client begins.
    pub(crate) fn open(&mut self, now: Micros, opening: &Opening<'_>) {
        let mut opening = opening.clone();
        let id = self.connection_id.clone();
        opening.connection_id = id.as_deref().or(opening.connection_id);
        self.dtls = Dtls::client(now, &opening, &mut context!(self), &mut self.out);
    }

    /// A datagram comes; a server without a session greets it.
    pub(crate) fn hear(&mut self, now: Micros, datagram: &[u8]) {
        let is_server = self.keys.is_some();
        let is_stranger = self.told.is_empty() && !has_begun(&self.dtls);
        if is_server && is_stranger {
            let greeting = greet(&context!(self), datagram, ADDRESS, &mut self.out);
            let Greeting::Welcome(welcome) = greeting else {
                return;
            };
            let id = self.connection_id.clone();
            self.dtls = Dtls::server(now, welcome, &context!(self), id.as_deref());
        }
        let mut datagram = datagram.to_vec();
        let mut input = Incoming::new(&mut datagram);
        while let Some(event) = self
            .dtls
            .poll(now, &mut context!(self), &mut input, &mut self.out)
        {
            self.told.push(event.into());
        }
        self.is_newest = input.is_newest();
    }

    /// Handles what is due.
    pub(crate) fn expire(&mut self, now: Micros) {
        let event = self.dtls.expire(now, &mut context!(self), &mut self.out);
        self.told.extend(event.map(Told::from));
    }

    /// Returns the datagrams to send.
    pub(crate) fn sent(&mut self) -> Vec<Vec<u8>> {
        let sent = self.out.iter().map(<[u8]>::to_vec).collect();
        self.out.clear();
        sent
    }

    /// The session above says something.
    pub(crate) fn say(&mut self, words: &[u8]) -> Vec<u8> {
        let mut out = words.to_vec();
        assert!(self.dtls.wrap(&mut out, 0));
        out
    }

    pub(crate) fn close(&mut self) {
        self.dtls.close(&mut self.out);
    }

    /// Returns the negotiated parameters.
    pub(crate) fn connected(&self) -> Connected {
        match self.told.first() {
            Some(Told::Connected(connected)) => *connected,
            other => panic!("not connected: {other:?}"),
        }
    }
}

fn has_begun(dtls: &Dtls<Tapped>) -> bool {
    dtls.deadline().is_some() || dtls.is_open()
}

/// The opening of most clients.
pub(crate) fn with_key() -> Opening<'static> {
    Opening {
        psk: Some(Psk {
            identity: IDENTITY,
            key: KEY,
        }),
        server_name: Some("localhost"),
        ..Opening::default()
    }
}

/// Certificates of a server, and of a client that trusts its authority.
pub(crate) fn certificates(is_server: bool) -> DtlsCertificates {
    let Throwaway { ca, cert, key } = certificate();
    let spec = TlsSpec {
        ca: Some(ca.clone()),
        ..TlsSpec::default()
    };
    let own = is_server.then(|| Own::new(cert, key).expect("they belong together"));
    DtlsCertificates::new(own, &spec, Some(ca)).expect("they can be used")
}

/// Carries datagrams to and fro until nobody has anything to say.
pub(crate) fn shake(client: &mut End, server: &mut End) {
    let now = Micros::ZERO;
    loop {
        let up = client.sent();
        up.iter().for_each(|datagram| server.hear(now, datagram));
        let down = server.sent();
        down.iter().for_each(|datagram| client.hear(now, datagram));
        if up.is_empty() && down.is_empty() {
            return;
        }
    }
}

/// Both ends connected, by a shared key.
pub(crate) fn connected() -> (End, End) {
    let (mut client, mut server) = (End::client(1), End::server(1));
    client.open(Micros::ZERO, &with_key());
    shake(&mut client, &mut server);
    assert_eq!(client.connected(), server.connected());
    (client, server)
}
