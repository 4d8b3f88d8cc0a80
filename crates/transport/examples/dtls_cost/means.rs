//! Credentials of one end of DTLS, and its part of a handshake.

use muster_model::Micros;
use muster_protocol::dtls::{
    Context, CookieSecret, Datagrams, Dtls, Found, Greeting, Incoming, Keys, Opening, Psk, Session,
    Sessions, Settings, Suite, greet,
};
use muster_transport::AwsLc;

const NOW: Micros = Micros(1);

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
pub(super) struct Means {
    crypto: AwsLc,
    pub(super) settings: Settings,
    sessions: Newest,
    pub(super) out: Datagrams,
}

impl Means {
    pub(super) fn new(suite: Suite) -> Self {
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

    pub(super) fn receive(&mut self, dtls: &mut Dtls<AwsLc>, datagram: &mut [u8]) {
        let (mut context, out) = self.parts();
        let mut input = Incoming::new(datagram);
        while dtls.poll(NOW, &mut context, &mut input, out).is_some() {}
    }

    pub(super) fn client(&mut self, session: Option<Session>, id: Option<&[u8]>) -> Dtls<AwsLc> {
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
    pub(super) fn welcome(&mut self, datagram: &[u8], peer: &[u8]) -> Option<Dtls<AwsLc>> {
        let (context, out) = self.parts();
        match greet(&context, datagram, peer, out) {
            Greeting::Welcome(welcome) => Some(Dtls::server(NOW, welcome, &context, Some(b"id"))),
            Greeting::Answered | Greeting::Ignored => None,
        }
    }
}
