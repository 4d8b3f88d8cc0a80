//! The server end of a handshake.

use zeroize::Zeroizing;

use super::crypto::{Crypto, Found, Peer};
use super::extension::{ECDSA_P256_SHA256, Extensions, SIGNATURE_SCHEMES};
use super::hello::{ClientHello, SESSION_ID_MAX, ServerHello};
use super::key_exchange::{
    Exchange, Signature, put_chain, put_exchange, put_request, put_signature, read_chain,
};
use super::message::Kind;
use super::step::{Common, Message, Progress, Step};
use super::suite::{Group, KeyExchange, Suite};
use super::wire::{Cursor, codes, put_vec16};
use super::{CertificateFault, Context, Fault, Session};

/// The next message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Hello,
    Certificate,
    KeyExchange,
    Verify,
    Finished,
}

/// A server's handshake state beyond the common one.
pub(super) struct Server<C: Crypto> {
    stage: Stage,
    secret: Option<C::Secret>,
    /// The client's certificate.
    leaf: Box<[u8]>,
}

struct Choice {
    suite: Suite,
    group: Option<Group>,
}

impl<C: Crypto> Server<C> {
    pub(super) fn new() -> Self {
        Self {
            stage: Stage::Hello,
            secret: None,
            leaf: Box::default(),
        }
    }

    pub(super) fn take(
        &mut self,
        step: &mut Step<'_, '_, C>,
        message: &Message<'_>,
    ) -> Result<Progress, Fault> {
        match (self.stage, message.kind) {
            (Stage::Hello, Kind::ClientHello) => self.client_hello(step, message.body),
            (Stage::Certificate, Kind::Certificate) => self.certificate(step, message.body),
            (Stage::KeyExchange, Kind::ClientKeyExchange) => self.key_exchange(step, message.body),
            (Stage::Verify, Kind::CertificateVerify) => self.verify(step, message),
            (Stage::Finished, Kind::Finished) => Self::finished(step, message),
            _ => Err(Fault::Unexpected),
        }
    }

    fn client_hello(&mut self, step: &mut Step<'_, '_, C>, body: &[u8]) -> Result<Progress, Fault> {
        let hello = ClientHello::read(body)?;
        let agreement = &mut step.common.agreement;
        let is_extended = hello.extensions.extended_master_secret;
        agreement.set_extended(is_extended, step.context.settings)?;
        agreement.randoms.client = hello.random;
        if !step.context.crypto.random(&mut agreement.randoms.server) {
            return Err(Fault::NoRandomness);
        }
        if let Some(peer) = hello.extensions.connection_id
            && step.common.own_id.is_some()
        {
            step.agree_on_ids(peer);
        }
        if let Some(session) = resumable(step.common, step.context, &hello) {
            return self.resume(step, &hello, &session);
        }
        let choice = choose(step.context, &hello).ok_or(Fault::NothingInCommon)?;
        let mut id = [0; SESSION_ID_MAX];
        let mut session_id = &[][..];
        if step.context.sessions.is_some() {
            if !step.context.crypto.random(&mut id) {
                return Err(Fault::NoRandomness);
            }
            session_id = &id;
        }
        step.common.agreement.choose(choice.suite, session_id);
        say_hello(step.common, &hello, choice.suite);
        self.say_rest(step, &choice)?;
        Ok(Progress::Say)
    }

    /// Sends the messages after ServerHello in a full handshake.
    fn say_rest(&mut self, step: &mut Step<'_, '_, C>, choice: &Choice) -> Result<(), Fault> {
        let kind = choice.suite.key_exchange();
        self.stage = Stage::KeyExchange;
        let mut body = Vec::new();
        if kind == KeyExchange::EcdheEcdsa {
            let own = step.context.certificates.ok_or(Fault::OwnCredential)?;
            put_chain(&mut body, own.chain());
            step.common.say(Kind::Certificate, &body);
        }
        if let Some(group) = choice.group {
            self.say_exchange(step, group)?;
        }
        if kind == KeyExchange::EcdheEcdsa && step.context.settings.client_certificate {
            body.clear();
            put_request(&mut body, &SIGNATURE_SCHEMES);
            step.common.say(Kind::CertificateRequest, &body);
            self.stage = Stage::Certificate;
        }
        step.common.say(Kind::ServerHelloDone, &[]);
        Ok(())
    }

    fn say_exchange(&mut self, step: &mut Step<'_, '_, C>, group: Group) -> Result<(), Fault> {
        let secret = step.context.crypto.secret(group);
        let (secret, public) = secret.ok_or(Fault::OwnCredential)?;
        self.secret = Some(secret);
        let mut body = Vec::new();
        let kind = step.suite()?.key_exchange();
        if kind.has_psk() {
            // No hint.
            put_vec16(&mut body, |_| {});
        }
        let at = body.len();
        put_exchange(&mut body, group, &public);
        if kind == KeyExchange::EcdheEcdsa {
            let exchange = Exchange::read(&mut Cursor::new(&body[at..]))?;
            let signed = exchange.signed(&step.common.agreement.randoms);
            let signature = step.context.certificates.and_then(|own| own.sign(&signed));
            put_signature(&mut body, &signature.ok_or(Fault::OwnCredential)?);
        }
        step.common.say(Kind::ServerKeyExchange, &body);
        Ok(())
    }

    /// Says what resumes a session (RFC 5246 section 7.3).
    fn resume(
        &mut self,
        step: &mut Step<'_, '_, C>,
        hello: &ClientHello<'_>,
        session: &Session,
    ) -> Result<Progress, Fault> {
        step.common.agreement.resume(session);
        say_hello(step.common, hello, session.suite);
        step.set_keys()?;
        step.say_finished();
        self.stage = Stage::Finished;
        Ok(Progress::Say)
    }

    fn certificate(&mut self, step: &mut Step<'_, '_, C>, body: &[u8]) -> Result<Progress, Fault> {
        let chain = read_chain(body)?;
        let leaf = chain.first().copied().ok_or(CertificateFault::Missing)?;
        let certificates = step.context.certificates.ok_or(Fault::Unexpected)?;
        certificates.judge(&chain, Peer::Client)?;
        step.common.agreement.identity = certificates.identity(leaf).unwrap_or_default();
        self.leaf = leaf.into();
        self.stage = Stage::KeyExchange;
        Ok(Progress::Wait)
    }

    fn key_exchange(&mut self, step: &mut Step<'_, '_, C>, body: &[u8]) -> Result<Progress, Fault> {
        let kind = step.suite()?.key_exchange();
        let mut cursor = Cursor::new(body);
        let mut key = None;
        if kind.has_psk() {
            let identity = cursor.vec16()?;
            step.common.agreement.identity = identity.into();
            key = Some(find(step.common, step.context, identity)?);
        }
        let mut shared = None;
        if let Some(secret) = self.secret.take() {
            let peer = cursor.vec8()?;
            shared = Some(
                step.context
                    .crypto
                    .agree(secret, peer)
                    .ok_or(Fault::Illegal)?,
            );
        }
        cursor.end()?;
        step.exchange_keys(
            key.as_ref().map(|key| key.as_slice()),
            shared.as_ref().map(|shared| shared.as_slice()),
        )?;
        self.stage = if self.leaf.is_empty() {
            Stage::Finished
        } else {
            Stage::Verify
        };
        Ok(Progress::Wait)
    }

    /// The client must have the key of its certificate.
    fn verify(&mut self, step: &Step<'_, '_, C>, message: &Message<'_>) -> Result<Progress, Fault> {
        let mut cursor = Cursor::new(message.body);
        let signature = Signature::read(&mut cursor)?;
        cursor.end()?;
        let signed = &step.common.transcript[..message.before];
        self.stage = Stage::Finished;
        step.check_signature(&self.leaf, signature, signed)?;
        Ok(Progress::Wait)
    }

    fn finished(step: &mut Step<'_, '_, C>, message: &Message<'_>) -> Result<Progress, Fault> {
        step.check_finished(message)?;
        if step.common.agreement.is_resumed() {
            return Ok(Progress::Over);
        }
        let session = step.common.agreement.session(&[]);
        if let (Some(sessions), Some(session)) = (&mut step.context.sessions, session) {
            sessions.keep(&session);
        }
        step.common.flight.clear();
        step.say_finished();
        Ok(Progress::SayOver)
    }
}

fn find<C>(
    common: &mut Common,
    context: &Context<'_, C>,
    identity: &[u8],
) -> Result<Zeroizing<Vec<u8>>, Fault> {
    let keys = context.keys.ok_or(Fault::Unexpected)?;
    match keys.find(identity) {
        Found::Key(key) => Ok(key),
        Found::Unknown => Err(Fault::UnknownIdentity),
        Found::Silent => {
            common.is_silent = true;
            Err(Fault::UnknownIdentity)
        }
    }
}

/// The session that a client asks for, if it is kept, may still be used, and was made alike
/// (RFC 7627 section 5.3).
fn resumable<C>(
    common: &Common,
    context: &Context<'_, C>,
    hello: &ClientHello<'_>,
) -> Option<Session> {
    let sessions = context.sessions.as_deref()?;
    if hello.session_id.is_empty() {
        return None;
    }
    let session = sessions.find(hello.session_id)?;
    let is_alike = session.is_extended == common.agreement.is_extended()
        && hello.offers(session.suite.code())
        && context.settings.suites.contains(&session.suite);
    is_alike.then_some(session)
}

/// The first suite of ours that the client offers and both have the means for.
fn choose<C>(context: &Context<'_, C>, hello: &ClientHello<'_>) -> Option<Choice> {
    let group = group(context, hello);
    let certificates = context.certificates;
    let can_sign = certificates.is_some_and(|own| !own.chain().is_empty())
        && hello.extensions.signatures.is_none_or(|schemes| {
            codes(schemes).is_ok_and(|mut codes| codes.any(|code| code == ECDSA_P256_SHA256))
        });
    let suites = context.settings.suites.iter().copied();
    let mut possible = suites.filter(|suite| {
        let kind = suite.key_exchange();
        hello.offers(suite.code())
            && (!kind.has_ecdhe() || group.is_some())
            && match kind {
                KeyExchange::Psk | KeyExchange::EcdhePsk => context.keys.is_some(),
                KeyExchange::EcdheEcdsa => can_sign,
            }
    });
    let suite = possible.next()?;
    let group = group.filter(|_| suite.key_exchange().has_ecdhe());
    Some(Choice { suite, group })
}

/// The first group of ours that the client has; who does not say which it has, has P-256
/// (RFC 8422 section 4).
fn group<C>(context: &Context<'_, C>, hello: &ClientHello<'_>) -> Option<Group> {
    let has = |group: &Group| match hello.extensions.groups {
        None => *group == Group::P256,
        Some(list) => codes(list).is_ok_and(|mut codes| codes.any(|code| code == group.code())),
    };
    context.settings.groups.iter().copied().find(has)
}

fn say_hello(common: &mut Common, hello: &ClientHello<'_>, suite: Suite) {
    let asked = &hello.extensions;
    let agreement = &common.agreement;
    let own_id = common.own_id.as_deref();
    let extensions = Extensions {
        point_formats: asked.point_formats && suite.key_exchange().has_ecdhe(),
        extended_master_secret: agreement.is_extended(),
        connection_id: own_id.filter(|_| agreement.has_connection_id()),
        renegotiation: hello.is_renegotiation_safe,
        ..Extensions::default()
    };
    let answer = ServerHello {
        random: agreement.randoms.server,
        session_id: agreement.session_id(),
        suite: suite.code(),
        extensions,
    };
    let mut body = Vec::with_capacity(128);
    answer.put(&mut body);
    common.flight.clear();
    common.say(Kind::ServerHello, &body);
}
