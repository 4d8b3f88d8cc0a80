//! Handles records and timers of a session.

use muster_model::Micros;

use super::crypto::Crypto;
use super::fault::alert;
use super::handshake::{EARLY_MAX, Side};
use super::message::{Fragment, Kind};
use super::protection::Opened;
use super::reassembly::Arrived;
use super::record::{Content, RecordHeader};
use super::step::Progress;
use super::wire::Cursor;
use super::{Context, Datagrams, Dtls, Event, Fault, Incoming};
use crate::layer::Standing;

const FATAL: u8 = 2;
const WARNING: u8 = 1;

/// One call from outside.
struct Turn<'t, 'c, C> {
    now: Micros,
    context: &'t mut Context<'c, C>,
    out: &'t mut Datagrams,
}

impl<C: Crypto> Dtls<C> {
    /// Takes the datagram's records up to the next event, and appends what is to be said; to be
    /// called until it returns none. What the session above said belongs to the caller.
    #[inline]
    pub fn poll<'a>(
        &mut self,
        now: Micros,
        context: &mut Context<'_, C>,
        input: &mut Incoming<'a>,
        out: &mut Datagrams,
    ) -> Option<Event<'a>> {
        let mut turn = Turn { now, context, out };
        while self.standing != Standing::Over && !input.is_empty() {
            let Some((header, fragment)) = input.next(self.records.own_id.len()) else {
                self.discard();
                return None;
            };
            let event = match header.epoch {
                0 => self.plain(&mut turn, &header, fragment),
                _ if !self.records.has_keys() => {
                    self.stash(&header, fragment);
                    None
                }
                1 => match self.records.open(&header, fragment) {
                    Opened::Fresh {
                        content,
                        plain,
                        is_newest,
                    } => {
                        input.is_newest |= is_newest;
                        self.fresh(&mut turn, content, plain)
                    }
                    Opened::Replayed => {
                        self.counts.replayed = self.counts.replayed.saturating_add(1);
                        None
                    }
                    Opened::Bad => {
                        self.discard();
                        None
                    }
                },
                _ => {
                    self.discard();
                    None
                }
            };
            if event.is_some() {
                return event;
            }
        }
        None
    }

    /// Says a flight again or ends a handshake if its time has come; to be called at
    /// [`Dtls::deadline`], and harmless at any other instant.
    pub fn expire(
        &mut self,
        now: Micros,
        context: &mut Context<'_, C>,
        out: &mut Datagrams,
    ) -> Option<Event<'static>> {
        let timer = &mut self.handshake.as_deref_mut()?.timer;
        if let Some(fault) = timer.ended(now) {
            if timer.is_lingering() {
                self.handshake = None;
                return None;
            }
            self.end();
            return Some(Event::Failed(fault));
        }
        if !timer.is_again(&context.settings.timing, now) {
            return None;
        }
        let mut turn = Turn { now, context, out };
        let said = self.say_again(&mut turn);
        said.err().map(|fault| self.fail(fault, &mut turn))
    }

    pub(super) fn begin(&mut self, now: Micros, context: &mut Context<'_, C>, out: &mut Datagrams) {
        let mut turn = Turn { now, context, out };
        // A flight in the clear has numbers enough.
        let _ = self.say(&mut turn);
    }

    /// Notes that it cannot begin, which [`Dtls::expire`] reports.
    #[cold]
    pub(super) fn doom(&mut self, now: Micros, fault: Fault) {
        if let Some(handshake) = self.handshake.as_deref_mut() {
            handshake.timer.fail(fault, now);
        }
    }

    fn discard(&mut self) {
        self.counts.discarded = self.counts.discarded.saturating_add(1);
    }

    /// A record in the clear: it means something only while there is a handshake.
    #[cold]
    fn plain<'a>(
        &mut self,
        turn: &mut Turn<'_, '_, C>,
        header: &RecordHeader<'_>,
        fragment: &'a mut [u8],
    ) -> Option<Event<'a>> {
        let is_opening = self.standing == Standing::Opening;
        match header.content {
            Content::Handshake if self.handshake.is_some() => self.fragments(turn, fragment, false),
            Content::Alert if is_opening => self.alert(turn, fragment),
            // Its place is known by the epochs of the records around it.
            Content::ChangeCipherSpec if is_opening => None,
            Content::Handshake
            | Content::Alert
            | Content::ChangeCipherSpec
            | Content::Data
            | Content::ConnectionId => {
                self.discard();
                None
            }
        }
    }

    /// A record under keys that came before its keys: one is kept.
    #[cold]
    fn stash(&mut self, header: &RecordHeader<'_>, fragment: &[u8]) {
        if let Some(handshake) = self.handshake.as_deref_mut()
            && handshake.early.is_none()
            && header.epoch == 1
            && header.content == expected(&self.records.own_id)
            && fragment.len() <= EARLY_MAX
        {
            handshake.early = Some((header.sequence, fragment.into()));
        } else {
            self.discard();
        }
    }

    #[inline]
    fn fresh<'a>(
        &mut self,
        turn: &mut Turn<'_, '_, C>,
        content: Content,
        plain: &'a mut [u8],
    ) -> Option<Event<'a>> {
        match content {
            Content::Data if self.standing != Standing::Opening => {
                // Who speaks has heard our last flight.
                self.handshake = None;
                Some(Event::Data(plain))
            }
            Content::Alert => self.alert(turn, plain),
            Content::Handshake => self.fragments(turn, plain, true),
            Content::Data | Content::ChangeCipherSpec | Content::ConnectionId => {
                self.discard();
                None
            }
        }
    }

    #[cold]
    fn alert(&mut self, turn: &mut Turn<'_, '_, C>, body: &[u8]) -> Option<Event<'static>> {
        let [level, code] = *body else {
            self.discard();
            return None;
        };
        if code == alert::CLOSE_NOTIFY {
            let event = match self.standing {
                Standing::Opening => Event::Failed(Fault::ClosedEarly),
                Standing::Open => {
                    self.say_alert(alert::CLOSE_NOTIFY, false, turn.out);
                    Event::Closed
                }
                Standing::Closing | Standing::Over => Event::Closed,
            };
            self.end();
            return Some(event);
        }
        if level != FATAL {
            return None;
        }
        self.end();
        Some(Event::Failed(Fault::Alert(code)))
    }

    #[cold]
    fn fragments(
        &mut self,
        turn: &mut Turn<'_, '_, C>,
        bytes: &[u8],
        is_sealed: bool,
    ) -> Option<Event<'static>> {
        let mut cursor = Cursor::new(bytes);
        while !cursor.is_empty() {
            let Ok(fragment) = Fragment::read(&mut cursor) else {
                self.discard();
                return None;
            };
            match self.fragment(turn, &fragment, is_sealed) {
                Ok(None) => {}
                Ok(event) => return event,
                Err(fault) => return Some(self.fail(fault, turn)),
            }
        }
        None
    }

    fn fragment(
        &mut self,
        turn: &mut Turn<'_, '_, C>,
        fragment: &Fragment<'_>,
        is_sealed: bool,
    ) -> Result<Option<Event<'static>>, Fault> {
        let handshake = self.handshake.as_deref_mut();
        let Some(handshake) = handshake.filter(|_| is_sealed == (fragment.kind == Kind::Finished))
        else {
            self.refuse(fragment.kind, is_sealed, turn.out);
            return Ok(None);
        };
        if handshake.timer.is_lingering() {
            if handshake.reassembly.is_again(fragment) {
                self.answer_again(turn)?;
            }
            return Ok(None);
        }
        match handshake.reassembly.accept(fragment) {
            Arrived::Next => {
                let event = self.advance(turn, fragment.sequence, fragment.kind, fragment.bytes)?;
                if event.is_some() {
                    return Ok(event);
                }
            }
            Arrived::Kept => {}
            Arrived::Again => self.answer_again(turn)?,
            Arrived::Dropped => self.discard(),
        }
        self.whole(turn)
    }

    fn whole(&mut self, turn: &mut Turn<'_, '_, C>) -> Result<Option<Event<'static>>, Fault> {
        while let Some(handshake) = self.handshake.as_deref_mut() {
            let Some((sequence, whole)) = handshake.reassembly.take() else {
                break;
            };
            let event = self.advance(turn, sequence, whole.kind, &whole.bytes)?;
            if event.is_some() {
                return Ok(event);
            }
        }
        Ok(self.unstash(turn))
    }

    /// Opens the record that came before its keys, once they are there.
    fn unstash(&mut self, turn: &mut Turn<'_, '_, C>) -> Option<Event<'static>> {
        if !self.records.has_keys() {
            return None;
        }
        let early = self.handshake.as_deref_mut()?.early.take()?;
        let (sequence, mut fragment) = early;
        let id = self.records.own_id.clone();
        let header = RecordHeader {
            content: expected(&id),
            epoch: 1,
            sequence,
            connection_id: &id,
            length: fragment.len() as u16,
        };
        match self.records.open(&header, &mut fragment) {
            Opened::Fresh {
                content: Content::Handshake,
                plain,
                ..
            } => self.fragments(turn, plain, true),
            Opened::Fresh { .. } | Opened::Replayed | Opened::Bad => {
                self.discard();
                None
            }
        }
    }

    /// A message of the handshake where there is none: a renegotiation is refused (RFC 5246
    /// section 7.2.2), anything else has no place.
    fn refuse(&mut self, kind: Kind, is_sealed: bool, out: &mut Datagrams) {
        let is_renegotiation = matches!(kind, Kind::HelloRequest | Kind::ClientHello);
        if is_sealed && is_renegotiation && self.standing == Standing::Open {
            self.say_alert(alert::NO_RENEGOTIATION, false, out);
        } else {
            self.discard();
        }
    }

    fn advance(
        &mut self,
        turn: &mut Turn<'_, '_, C>,
        sequence: u16,
        kind: Kind,
        body: &[u8],
    ) -> Result<Option<Event<'static>>, Fault> {
        let Some(handshake) = self.handshake.as_deref_mut() else {
            return Ok(None);
        };
        match handshake.take(&mut self.records, turn.context, sequence, (kind, body))? {
            Progress::Wait => Ok(None),
            Progress::Say => self.say(turn).map(|()| None),
            Progress::Over => self.connected(turn, false).map(Some),
            Progress::SayOver => {
                self.say(turn)?;
                self.connected(turn, true).map(Some)
            }
        }
    }

    fn say(&mut self, turn: &mut Turn<'_, '_, C>) -> Result<(), Fault> {
        let Some(handshake) = self.handshake.as_deref_mut() else {
            return Ok(());
        };
        let settings = turn.context.settings;
        handshake.timer.said(&settings.timing, turn.now);
        let records = &mut self.records;
        handshake.common.send::<C>(records, settings, turn.out)
    }

    /// The peer said its last flight again.
    fn answer_again(&mut self, turn: &mut Turn<'_, '_, C>) -> Result<(), Fault> {
        let timing = &turn.context.settings.timing;
        let handshake = self.handshake.as_deref_mut();
        if handshake.is_some_and(|it| it.timer.is_answer(timing, turn.now)) {
            self.say_again(turn)?;
        }
        Ok(())
    }

    fn say_again(&mut self, turn: &mut Turn<'_, '_, C>) -> Result<(), Fault> {
        let Some(handshake) = self.handshake.as_deref_mut() else {
            return Ok(());
        };
        self.counts.resent = self.counts.resent.saturating_add(1);
        let (records, settings) = (&mut self.records, turn.context.settings);
        handshake.common.send::<C>(records, settings, turn.out)
    }

    /// The handshake is over. The end that spoke last remembers what it said.
    fn connected(
        &mut self,
        turn: &mut Turn<'_, '_, C>,
        is_last: bool,
    ) -> Result<Event<'static>, Fault> {
        let handshake = self.handshake.as_deref_mut().ok_or(Fault::Unexpected)?;
        let common = &mut handshake.common;
        let connected = common.agreement.connected()?;
        match &mut handshake.side {
            Side::Client(client) if turn.context.settings.resumption => {
                self.session = common.agreement.session(client.ticket()).map(Box::new);
            }
            Side::Client(_) => {}
            Side::Server(_) => self.identity = common.agreement.identity.clone(),
        }
        if is_last {
            let timing = &turn.context.settings.timing;
            handshake.timer.linger(timing, turn.now);
            common.transcript = Vec::new();
        } else {
            self.handshake = None;
        }
        self.standing = Standing::Open;
        Ok(Event::Connected(connected))
    }

    #[cold]
    fn fail(&mut self, fault: Fault, turn: &mut Turn<'_, '_, C>) -> Event<'static> {
        let handshake = self.handshake.as_deref();
        let is_silent = handshake.is_some_and(|handshake| handshake.common.is_silent);
        if let Some(code) = fault.alert().filter(|_| !is_silent) {
            self.say_alert(code, true, turn.out);
        }
        self.end();
        Event::Failed(fault)
    }

    /// Appends an alert, under keys if the peer knows that ours are in use.
    pub(super) fn say_alert(&mut self, code: u8, is_fatal: bool, out: &mut Datagrams) {
        let body = [if is_fatal { FATAL } else { WARNING }, code];
        match self.handshake.as_deref_mut() {
            Some(handshake) if !handshake.common.flight.has_changed() => {
                let flight = &mut handshake.common.flight;
                flight.put_plain(Content::Alert, &body, out);
            }
            _ => {
                let buffer = out.buffer();
                let from = buffer.len();
                buffer.extend_from_slice(&body);
                // Without a number left there is nothing to be said any longer.
                let _ = self.records.seal(buffer, from, Content::Alert);
            }
        }
        out.cut();
    }
}

/// The type that a record under keys shows.
fn expected(own_id: &[u8]) -> Content {
    if own_id.is_empty() {
        Content::Handshake
    } else {
        Content::ConnectionId
    }
}
