//! The client end of a handshake.

use std::fmt;

use zeroize::Zeroizing;

use super::crypto::{Crypto, Peer, PublicKey};
use super::extension::{Extensions, SIGNATURE_SCHEMES};
use super::hello::{ClientHello, ServerHello, read_verify_request};
use super::key_exchange::{
    Exchange, Signature, put_chain, put_signature, read_chain, read_request,
};
use super::message::Kind;
use super::step::{Common, Message, Progress, Step};
use super::suite::{KeyExchange, Suite};
use super::wire::{Cursor, put_u16, put_vec8, put_vec16};
use super::{Context, Fault, Session};

/// Cookies that are taken in one handshake: a server may change its secret once or twice.
const COOKIES_MAX: u8 = 3;
/// Bytes of the name that a client gives a session with a ticket (RFC 5077 section 3.4).
const TICKET_NAME: usize = 16;

/// Inputs of a client's session.
#[derive(Debug, Clone, Default)]
pub struct Opening<'a> {
    /// The key that it shares with the server; none leaves the suites with one out.
    pub psk: Option<Psk<'a>>,
    /// The server's name, which is sent to it (RFC 6066 section 3) and which its certificate must
    /// have.
    pub server_name: Option<&'a str>,
    /// The connection id that the server is to write into its records; an empty one only offers to
    /// write the server's. None offers nothing, nor does one of more than 255 bytes.
    pub connection_id: Option<&'a [u8]>,
    /// True if a server that takes no connection id ends the handshake ([`Fault::NoConnectionId`]).
    pub needs_connection_id: bool,
    /// A session of this device with this server, to be resumed if the server still knows it.
    pub session: Option<Session>,
}

/// A shared key and the name that it goes by (RFC 4279).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Psk<'a> {
    /// The client's identity, at most 65,535 bytes.
    pub identity: &'a [u8],
    /// The key, at most 65,535 bytes.
    pub key: &'a [u8],
}

/// Hides the key.
impl fmt::Debug for Psk<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Psk({})", self.identity.escape_ascii())
    }
}

/// The next message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Hello,
    Certificate,
    KeyExchange,
    Done,
    Finished,
}

/// A client's handshake state beyond the common one.
pub(super) struct Client {
    stage: Stage,
    identity: Box<[u8]>,
    key: Option<Zeroizing<Vec<u8>>>,
    server_name: Option<Box<str>>,
    offered: Option<Session>,
    needs_connection_id: bool,
    cookie: Box<[u8]>,
    cookies: u8,
    /// Our half of an exchange, with what both know.
    agreed: Option<(PublicKey, Zeroizing<[u8; 32]>)>,
    leaf: Box<[u8]>,
    /// True if the server, which requested a certificate, takes one like ours.
    asked: Option<bool>,
    is_ticket_due: bool,
    ticket: Box<[u8]>,
}

impl Client {
    pub(super) fn new(opening: &Opening<'_>) -> Self {
        let psk = opening.psk.as_ref();
        Self {
            stage: Stage::Hello,
            identity: psk.map(|psk| psk.identity.into()).unwrap_or_default(),
            key: psk.map(|psk| Zeroizing::new(psk.key.to_vec())),
            server_name: opening.server_name.map(Into::into),
            offered: opening.session.clone(),
            needs_connection_id: opening.needs_connection_id,
            cookie: Box::default(),
            cookies: 0,
            agreed: None,
            leaf: Box::default(),
            asked: None,
            is_ticket_due: false,
            ticket: Box::default(),
        }
    }

    pub(super) const fn ticket(&self) -> &[u8] {
        &self.ticket
    }

    /// Names a session that resumes by ticket, so that the answer shows if the server took it.
    pub(super) fn name_session<C: Crypto>(&mut self, context: &mut Context<'_, C>) {
        if let Some(session) = self.offered.as_mut()
            && !session.ticket.is_empty()
        {
            let mut name = [0; TICKET_NAME];
            if context.crypto.random(&mut name) {
                session.id = name.into();
            } else {
                self.offered = None;
            }
        }
    }

    /// Returns true if a suite can be offered: it needs a shared key, or the means to judge
    /// certificates.
    fn can<C>(&self, suite: Suite, context: &Context<'_, C>) -> bool {
        if suite.key_exchange().has_psk() {
            self.key.is_some()
        } else {
            context.certificates.is_some()
        }
    }

    pub(super) fn hello<C>(&self, common: &mut Common, context: &Context<'_, C>) {
        let settings = context.settings;
        let (mut suites, mut groups, mut signatures) = (Vec::new(), Vec::new(), Vec::new());
        let offered = settings
            .suites
            .iter()
            .filter(|suite| self.can(**suite, context));
        let (mut has_ecdhe, mut has_ecdsa) = (false, false);
        for suite in offered {
            put_u16(&mut suites, suite.code());
            has_ecdhe |= suite.key_exchange().has_ecdhe();
            has_ecdsa |= suite.key_exchange() == KeyExchange::EcdheEcdsa;
        }
        for group in &settings.groups {
            put_u16(&mut groups, group.code());
        }
        for scheme in SIGNATURE_SCHEMES {
            put_u16(&mut signatures, scheme);
        }
        let session = self.offered.as_ref();
        let ticket = session.map(|session| &*session.ticket);
        let extensions = Extensions {
            server_name: self.server_name.as_deref().filter(|name| is_host(name)),
            groups: has_ecdhe.then_some(&groups),
            point_formats: has_ecdhe,
            signatures: has_ecdsa.then_some(&signatures),
            extended_master_secret: true,
            ticket: settings.resumption.then(|| ticket.unwrap_or_default()),
            connection_id: common.own_id.as_deref(),
            renegotiation: true,
            has_other: false,
        };
        let hello = ClientHello {
            random: common.agreement.randoms.client,
            session_id: session.map(|session| &*session.id).unwrap_or_default(),
            cookie: &self.cookie,
            suites: &suites,
            extensions,
            is_renegotiation_safe: true,
            cookie_at: 0,
        };
        let mut body = Vec::with_capacity(256);
        hello.put(&mut body);
        common.flight.clear();
        common.say(Kind::ClientHello, &body);
    }

    pub(super) fn take<C: Crypto>(
        &mut self,
        step: &mut Step<'_, '_, C>,
        message: &Message<'_>,
    ) -> Result<Progress, Fault> {
        let body = message.body;
        match (self.stage, message.kind) {
            (Stage::Hello, Kind::HelloVerifyRequest) => self.verify(step, body),
            (Stage::Hello, Kind::ServerHello) => self.server_hello(step, body),
            (Stage::Certificate, Kind::Certificate) => self.certificate(step, body),
            (Stage::KeyExchange, Kind::ServerKeyExchange) => self.key_exchange(step, body),
            (Stage::KeyExchange, Kind::ServerHelloDone)
                if step.suite()?.key_exchange() == KeyExchange::Psk =>
            {
                self.done(step, body)
            }
            (Stage::Done, Kind::CertificateRequest)
                if step.suite()?.key_exchange() == KeyExchange::EcdheEcdsa =>
            {
                self.asked = Some(read_request(body)?);
                Ok(Progress::Wait)
            }
            (Stage::Done, Kind::ServerHelloDone) => self.done(step, body),
            (Stage::Finished, Kind::NewSessionTicket) if self.is_ticket_due => {
                self.is_ticket_due = false;
                self.new_ticket(body)
            }
            (Stage::Finished, Kind::Finished) => Self::finished(step, message),
            _ => Err(Fault::Unexpected),
        }
    }

    /// The server wants to see that we are where we say we are.
    fn verify<C: Crypto>(
        &mut self,
        step: &mut Step<'_, '_, C>,
        body: &[u8],
    ) -> Result<Progress, Fault> {
        if self.cookies == COOKIES_MAX {
            return Err(Fault::Unexpected);
        }
        self.cookies += 1;
        self.cookie = read_verify_request(body)?.into();
        // Neither the first ClientHello nor this message count (RFC 6347 section 4.2.1).
        step.common.transcript.clear();
        self.hello(step.common, step.context);
        Ok(Progress::Say)
    }

    fn server_hello<C: Crypto>(
        &mut self,
        step: &mut Step<'_, '_, C>,
        body: &[u8],
    ) -> Result<Progress, Fault> {
        let hello = ServerHello::read(body)?;
        let suite = Suite::from_code(hello.suite).filter(|suite| {
            step.context.settings.suites.contains(suite) && self.can(*suite, step.context)
        });
        let suite = suite.ok_or(Fault::Illegal)?;
        let extensions = &hello.extensions;
        let has_unasked = extensions.has_other
            || extensions.ticket.is_some() && !step.context.settings.resumption
            || extensions.connection_id.is_some() && step.common.own_id.is_none();
        if has_unasked {
            return Err(Fault::Extension);
        }
        let agreement = &mut step.common.agreement;
        agreement.set_extended(extensions.extended_master_secret, step.context.settings)?;
        agreement.randoms.server = hello.random;
        agreement.choose(suite, hello.session_id);
        if let Some(id) = extensions.connection_id {
            step.agree_on_ids(id);
        } else if self.needs_connection_id {
            return Err(Fault::NoConnectionId);
        }
        self.is_ticket_due = extensions.ticket.is_some();
        let offered = self.offered.take();
        let is_ours =
            |session: &Session| !session.id.is_empty() && *session.id == *hello.session_id;
        if let Some(session) = offered.filter(is_ours) {
            return self.resume(step, &session);
        }
        self.stage = if suite.key_exchange() == KeyExchange::EcdheEcdsa {
            Stage::Certificate
        } else {
            Stage::KeyExchange
        };
        Ok(Progress::Wait)
    }

    /// The server knows the session still (RFC 5246 section 7.3).
    fn resume<C: Crypto>(
        &mut self,
        step: &mut Step<'_, '_, C>,
        session: &Session,
    ) -> Result<Progress, Fault> {
        let suite = step.suite()?;
        // RFC 7627 section 5.3.
        if session.suite != suite || session.is_extended != step.common.agreement.is_extended() {
            return Err(Fault::Illegal);
        }
        step.common.agreement.resume(session);
        self.ticket = session.ticket.clone();
        step.set_keys()?;
        self.stage = Stage::Finished;
        Ok(Progress::Wait)
    }

    fn certificate<C: Crypto>(
        &mut self,
        step: &Step<'_, '_, C>,
        body: &[u8],
    ) -> Result<Progress, Fault> {
        let chain = read_chain(body)?;
        let certificates = step.context.certificates.ok_or(Fault::Unexpected)?;
        let peer = Peer::Server(self.server_name.as_deref());
        certificates.judge(&chain, peer)?;
        self.leaf = chain.first().copied().unwrap_or_default().into();
        self.stage = Stage::KeyExchange;
        Ok(Progress::Wait)
    }

    fn key_exchange<C: Crypto>(
        &mut self,
        step: &mut Step<'_, '_, C>,
        body: &[u8],
    ) -> Result<Progress, Fault> {
        let kind = step.suite()?.key_exchange();
        let mut cursor = Cursor::new(body);
        if kind.has_psk() {
            // A hint at which key is meant; a device has one.
            cursor.vec16()?;
        }
        if kind.has_ecdhe() {
            let exchange = Exchange::read(&mut cursor)?;
            if kind == KeyExchange::EcdheEcdsa {
                let signature = Signature::read(&mut cursor)?;
                let signed = exchange.signed(&step.common.agreement.randoms);
                step.check_signature(&self.leaf, signature, &signed)?;
            }
            self.agree(step, &exchange)?;
        }
        cursor.end()?;
        self.stage = Stage::Done;
        Ok(Progress::Wait)
    }

    fn agree<C: Crypto>(
        &mut self,
        step: &mut Step<'_, '_, C>,
        exchange: &Exchange<'_>,
    ) -> Result<(), Fault> {
        if !step.context.settings.groups.contains(&exchange.group) {
            return Err(Fault::Illegal);
        }
        let ours = step.context.crypto.secret(exchange.group);
        let (secret, public) = ours.ok_or(Fault::OwnCredential)?;
        let shared = step.context.crypto.agree(secret, exchange.public);
        self.agreed = Some((public, shared.ok_or(Fault::Illegal)?));
        Ok(())
    }

    /// The server has said all: we say who we are, and that we are done.
    fn done<C: Crypto>(
        &mut self,
        step: &mut Step<'_, '_, C>,
        body: &[u8],
    ) -> Result<Progress, Fault> {
        Cursor::new(body).end()?;
        step.common.flight.clear();
        let mut is_signing = false;
        let mut body = Vec::new();
        if let Some(is_taken) = self.asked {
            // Who has none that is taken says so (RFC 5246 section 7.4.6).
            let own = step.context.certificates.filter(|_| is_taken);
            let chain = own.map(|own| own.chain()).unwrap_or_default();
            is_signing = !chain.is_empty();
            put_chain(&mut body, chain);
            step.common.say(Kind::Certificate, &body);
        }
        body.clear();
        let kind = step.suite()?.key_exchange();
        if kind.has_psk() {
            put_vec16(&mut body, |out| out.extend_from_slice(&self.identity));
        }
        if let Some((public, _)) = &self.agreed {
            put_vec8(&mut body, public.as_bytes());
        }
        step.common.say(Kind::ClientKeyExchange, &body);
        let key = self.key.as_ref().filter(|_| kind.has_psk());
        let agreed = self.agreed.as_ref();
        step.exchange_keys(
            key.map(|key| key.as_slice()),
            agreed.map(|(_, shared)| shared.as_slice()),
        )?;
        if is_signing {
            Self::sign(step)?;
        }
        step.say_finished();
        self.stage = Stage::Finished;
        Ok(Progress::Say)
    }

    fn sign<C: Crypto>(step: &mut Step<'_, '_, C>) -> Result<(), Fault> {
        let signature = step
            .context
            .certificates
            .and_then(|own| own.sign(&step.common.transcript));
        let mut body = Vec::new();
        put_signature(&mut body, &signature.ok_or(Fault::OwnCredential)?);
        step.common.say(Kind::CertificateVerify, &body);
        Ok(())
    }

    fn new_ticket(&mut self, body: &[u8]) -> Result<Progress, Fault> {
        let mut cursor = Cursor::new(body);
        let _lifetime: [u8; 4] = cursor.array()?;
        let ticket = cursor.vec16()?;
        cursor.end()?;
        // An empty one takes the earlier one back (RFC 5077 section 3.3).
        self.ticket = ticket.into();
        Ok(Progress::Wait)
    }

    fn finished<C: Crypto>(
        step: &mut Step<'_, '_, C>,
        message: &Message<'_>,
    ) -> Result<Progress, Fault> {
        step.check_finished(message)?;
        if !step.common.agreement.is_resumed() {
            return Ok(Progress::Over);
        }
        step.common.flight.clear();
        step.say_finished();
        Ok(Progress::SayOver)
    }
}

/// Returns true if a name is a host's: addresses are not sent as names (RFC 6066 section 3).
fn is_host(name: &str) -> bool {
    let is_v4 = name
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.');
    !is_v4 && !name.contains(':')
}
