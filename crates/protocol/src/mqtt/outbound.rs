//! The sending half of a session: window, packet ids, topic aliases, repetition.
//!
//! Client and server publish by the same rules (sections 4.3, 4.4 and 4.9), so both hold one.

use super::answer::{Answer, first_answer};
use super::inflight::{AGED, COUNTED, Entry, FORGOTTEN, InFlight, LOST, OFFERED, Wait};
use super::packet::{Acknowledge, Disconnect, kind};
use super::property::find;
use super::publish::Head;
use super::wire::{VARINT_MAXIMUM, varint_size};
use super::{ALIAS_SLOTS, Malformed, Properties, Publish, Qos, Refused, Token, Version, reason};

/// Version and limits of the peer, announced when the connection was opened.
#[derive(Debug, Clone, Copy)]
pub(super) struct Peer {
    pub(super) version: Version,
    pub(super) receive_maximum: u16,
    pub(super) maximum_packet_size: u32,
    pub(super) topic_alias_maximum: u16,
    pub(super) maximum_qos: Qos,
    pub(super) retain_available: bool,
}

impl Peer {
    /// The limits in a CONNECT or CONNACK, and the standard's defaults for those left out.
    pub(super) fn new(version: Version, properties: Properties<'_>) -> Self {
        Self {
            version,
            receive_maximum: find!(properties, ReceiveMaximum).unwrap_or(u16::MAX),
            maximum_packet_size: find!(properties, MaximumPacketSize).unwrap_or(u32::MAX),
            topic_alias_maximum: find!(properties, TopicAliasMaximum).unwrap_or(0),
            maximum_qos: find!(properties, MaximumQos).unwrap_or(Qos::ExactlyOnce),
            retain_available: find!(properties, RetainAvailable).unwrap_or(true),
        }
    }
}

/// The sending half of a session.
#[derive(Debug)]
pub(super) struct Outbound {
    inflight: InFlight,
    peer: Peer,
    /// Alias slots with a topic known to the peer, as bits.
    known_aliases: u64,
    /// Publishes sent on this connection that have no last answer; within `receive_maximum`.
    used: u16,
    /// Entries that have to be sent again.
    lost: u16,
    /// No entry before this place is still to be offered.
    resend: u16,
}

impl Default for Outbound {
    fn default() -> Self {
        Self {
            inflight: InFlight::default(),
            peer: Peer::new(Version::V5, Properties::NONE),
            known_aliases: 0,
            used: 0,
            lost: 0,
            resend: 0,
        }
    }
}

impl Outbound {
    /// A connection is open: nothing is in flight on it, and no alias is known.
    pub(super) fn opened(&mut self, peer: Peer) {
        self.peer = peer;
        self.known_aliases = 0;
        self.used = 0;
    }

    /// The connection is gone. Requests are not repeated, so their ids are free.
    pub(super) fn closed(&mut self) {
        self.inflight.retain(|entry| {
            entry.close();
            !entry.wait.is_request()
        });
        self.used = 0;
        self.lost = 0;
        self.resend = 0;
    }

    /// The other side goes on with the session: all that waits is to be sent again, in its old
    /// order (MQTT-4.4.0-1, MQTT-4.6.0-1).
    ///
    /// A message that the caller has forgotten is not rendered again: at QoS 1 its id is free, at
    /// QoS 2 it is released, so that the other side gives the id up before another message uses it.
    pub(super) fn resume(&mut self) {
        self.inflight.retain(|entry| {
            if entry.is(FORGOTTEN) && entry.wait == Wait::Pubrec {
                entry.wait = Wait::Pubcomp;
            }
            entry.close();
            entry.mark(LOST);
            !(entry.is(FORGOTTEN) && entry.wait == Wait::Puback)
        });
        self.lost = self.inflight.len() as u16;
        self.resend = 0;
    }

    #[cold]
    pub(super) fn age(&mut self) {
        self.inflight.retain(|entry| {
            entry.mark(AGED);
            true
        });
    }

    /// Returns true if an id waits for an answer to a packet sent after the last silence.
    #[cold]
    pub(super) fn is_recent(&self, id: u16) -> bool {
        self.entry(id).is_some_and(|(_, entry)| !entry.is(AGED))
    }

    pub(super) fn in_flight(&self) -> usize {
        self.inflight.len()
    }

    pub(super) const fn peer(&self) -> &Peer {
        &self.peer
    }

    #[inline]
    pub(super) fn window_free(&self) -> u16 {
        if self.lost > 0 {
            0
        } else {
            self.peer.receive_maximum.saturating_sub(self.used)
        }
    }

    #[inline]
    pub(super) fn publish(
        &mut self,
        token: Token,
        publish: &Publish<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Refused> {
        let Some(wait) = wait_of(publish.qos) else {
            return self.write(publish, self.head(publish.alias_slot, None), out);
        };
        if self.window_free() == 0 {
            return Err(Refused::Window);
        }
        let id = self.inflight.free_id().ok_or(Refused::PacketIds)?;
        self.write(publish, self.head(publish.alias_slot, Some(id)), out)?;
        let mut entry = Entry::new(id, token.0, wait);
        entry.mark(COUNTED);
        self.inflight.push(entry);
        self.used += 1;
        Ok(())
    }

    /// The next publish to be sent again; a PUBREL is sent again at once.
    #[inline]
    pub(super) fn next_resend(&mut self, out: &mut Vec<u8>) -> Option<Token> {
        if self.lost == 0 {
            return None;
        }
        self.offer_next(out)
    }

    #[cold]
    fn offer_next(&mut self, out: &mut Vec<u8>) -> Option<Token> {
        while let Some((at, entry)) = self.inflight.first_lost(usize::from(self.resend)) {
            if entry.wait.is_publish() && self.used >= self.peer.receive_maximum {
                return None;
            }
            self.resend = at as u16 + 1;
            if entry.wait.is_publish() {
                if let Some(entry) = self.inflight.get_mut(at) {
                    entry.mark(OFFERED);
                }
                return Some(Token(entry.name));
            }
            self.found(at);
            self.acknowledge(kind::PUBREL, entry.id, reason::SUCCESS, out);
        }
        None
    }

    pub(super) fn republish(
        &mut self,
        token: Token,
        publish: &Publish<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Refused> {
        let (at, entry) = self.lost_publish(token).ok_or(Refused::Unknown)?;
        if wait_of(publish.qos) != Some(entry.wait) {
            return Err(Refused::Unknown);
        }
        if self.used >= self.peer.receive_maximum {
            return Err(Refused::Window);
        }
        let head = Head {
            dup: true,
            ..self.head(publish.alias_slot, Some(entry.id))
        };
        self.write(publish, head, out)?;
        self.found(at);
        if let Some(entry) = self.inflight.get_mut(at) {
            entry.mark(COUNTED);
            self.used += 1;
        }
        Ok(())
    }

    /// The caller no longer waits for a publish; whether there was such a one.
    pub(super) fn forget(&mut self, token: Token) -> bool {
        let Some(at) = self.inflight.position_of(token.0) else {
            return false;
        };
        let Some(entry) = self.inflight.get_mut(at) else {
            return false;
        };
        entry.mark(FORGOTTEN);
        let entry = *entry;
        if entry.is(LOST) {
            self.forget_lost(at, entry.wait);
        }
        true
    }

    /// As in [`Outbound::resume`]: not sent again, so at QoS 1 free and at QoS 2 released.
    fn forget_lost(&mut self, at: usize, wait: Wait) {
        if wait == Wait::Puback {
            self.remove(at);
        } else if let Some(entry) = self.inflight.get_mut(at) {
            entry.wait = Wait::Pubcomp;
            // Not offered any more, but to be released.
            entry.close();
            entry.mark(LOST);
            self.resend = self.resend.min(at as u16);
        }
    }

    /// Drops all publishes; calls `each` for those the caller still waits for.
    pub(super) fn drop_all(&mut self, mut each: impl FnMut(Token, Wait)) {
        self.inflight.retain(|entry| {
            let is_request = entry.wait.is_request();
            if !entry.is(FORGOTTEN) && !is_request {
                each(Token(entry.name), entry.wait);
            }
            is_request
        });
        self.used = 0;
        self.lost = 0;
        self.resend = 0;
    }

    /// Takes a packet id for a SUBSCRIBE or UNSUBSCRIBE, once `write` has written it.
    pub(super) fn request(
        &mut self,
        wait: Wait,
        name: u32,
        write: impl FnOnce(u16, u32) -> Result<(), Refused>,
    ) -> Result<(), Refused> {
        let id = self.inflight.free_id().ok_or(Refused::PacketIds)?;
        // Looking for a free id may have moved entries from the front to the end.
        self.resend = 0;
        write(id, self.peer.maximum_packet_size)?;
        self.inflight.push(Entry::new(id, name, wait));
        Ok(())
    }

    /// PUBACK, PUBREC or PUBCOMP (sections 4.3.2 and 4.3.3). A PUBREC is answered with a PUBREL
    /// unless it refuses.
    #[inline]
    pub(super) fn answered(
        &mut self,
        packet_kind: u8,
        ack: &Acknowledge<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Answer, Malformed> {
        let id = ack.packet_id;
        let settled = match packet_kind {
            kind::PUBACK => self.settle(Wait::Puback, id)?,
            kind::PUBREC => return self.pubrec(ack, out),
            _ => self.settle(Wait::Pubcomp, id)?,
        };
        Ok(match settled {
            None => self.stray(id),
            Some(entry) if entry.wait == Wait::Puback => first_answer(entry, ack.reason),
            Some(entry) if entry.is(FORGOTTEN) => Answer::Silent,
            Some(entry) => Answer::Completed {
                token: Token(entry.name),
            },
        })
    }

    fn pubrec(&mut self, ack: &Acknowledge<'_>, out: &mut Vec<u8>) -> Result<Answer, Malformed> {
        let is_refusal = ack.reason >= reason::UNSPECIFIED_ERROR;
        let Some((at, entry)) = self.entry(ack.packet_id) else {
            if !is_refusal {
                let code = reason::PACKET_ID_NOT_FOUND;
                self.acknowledge(kind::PUBREL, ack.packet_id, code, out);
            }
            return Ok(self.stray(ack.packet_id));
        };
        let answer = match entry.wait {
            Wait::Pubrec => first_answer(entry, ack.reason),
            Wait::Pubcomp => Answer::Silent,
            Wait::Puback | Wait::Suback | Wait::Unsuback => {
                return Err(Malformed::WrongAnswer(entry.id));
            }
        };
        if is_refusal {
            self.remove(at);
            return Ok(answer);
        }
        self.found(at);
        if let Some(entry) = self.inflight.get_mut(at) {
            entry.wait = Wait::Pubcomp;
            entry.unmark(AGED);
        }
        self.acknowledge(kind::PUBREL, entry.id, reason::SUCCESS, out);
        Ok(answer)
    }

    #[inline]
    pub(super) fn acknowledge(&self, packet_kind: u8, id: u16, reason: u8, out: &mut Vec<u8>) {
        Acknowledge::new(id, reason).write_short(self.peer.version, packet_kind, out);
    }

    /// Ends the exchange of an id that waits for its last answer; none if the id is not in use.
    #[inline]
    pub(super) fn settle(&mut self, wait: Wait, id: u16) -> Result<Option<Entry>, Malformed> {
        let Some((at, entry)) = self.entry(id) else {
            return Ok(None);
        };
        if entry.wait != wait {
            return Err(Malformed::WrongAnswer(id));
        }
        self.remove(at);
        Ok(Some(entry))
    }

    #[cold]
    fn stray(&self, id: u16) -> Answer {
        let was_used = self.inflight.was_used(id);
        Answer::Stray { was_used }
    }

    #[inline]
    fn entry(&self, id: u16) -> Option<(usize, Entry)> {
        let at = self.inflight.position(id)?;
        self.inflight.get(at).map(|entry| (at, entry))
    }

    /// Ends an exchange: its packet id is free, and its place in the window if it took one on
    /// this connection (section 4.9).
    #[inline]
    fn remove(&mut self, at: usize) {
        let Some(entry) = self.inflight.get(at) else {
            return;
        };
        self.used -= u16::from(entry.is(COUNTED));
        self.lost -= u16::from(entry.is(LOST));
        if at < usize::from(self.resend) {
            self.resend -= 1;
        }
        self.inflight.remove(at);
    }

    #[inline]
    fn found(&mut self, at: usize) {
        if let Some(entry) = self.inflight.get_mut(at)
            && entry.is(LOST)
        {
            entry.unmark(LOST | OFFERED);
            self.lost -= 1;
        }
    }

    fn lost_publish(&self, token: Token) -> Option<(usize, Entry)> {
        let is_it =
            |entry: &Entry| entry.name == token.0 && entry.is(LOST) && entry.wait.is_publish();
        // Usually it is the one handed out last.
        let last = usize::from(self.resend).checked_sub(1)?;
        let handed_out = self
            .inflight
            .get(last)
            .filter(is_it)
            .map(|entry| (last, entry));
        handed_out.or_else(|| {
            let at = self.inflight.position_of(token.0)?;
            self.inflight.get(at).filter(is_it).map(|entry| (at, entry))
        })
    }

    /// The session's additions to a message, with a topic alias if the peer takes that of the slot.
    #[inline]
    fn head(&self, slot: Option<u16>, packet_id: Option<u16>) -> Head {
        let taken = match self.peer.version {
            Version::V311 => 0,
            Version::V5 => self.peer.topic_alias_maximum.min(ALIAS_SLOTS),
        };
        let alias = slot.filter(|slot| *slot < taken).map(|slot| slot + 1);
        Head {
            dup: false,
            packet_id,
            alias,
            topic_is_known: alias.is_some_and(|alias| self.known_aliases & alias_bit(alias) != 0),
        }
    }

    #[inline]
    fn write(
        &mut self,
        publish: &Publish<'_>,
        head: Head,
        out: &mut Vec<u8>,
    ) -> Result<(), Refused> {
        let peer = &self.peer;
        if publish.qos > peer.maximum_qos {
            return Err(Refused::QosUnavailable);
        }
        if publish.retain && !peer.retain_available {
            return Err(Refused::RetainUnavailable);
        }
        let (version, maximum) = (peer.version, peer.maximum_packet_size);
        publish.packet(version, head, |packet| {
            let size = packet.measure(version)?;
            check_size(size.remaining, maximum)?;
            packet.write_measured(version, size, out);
            Ok::<(), Refused>(())
        })?;
        if let Some(alias) = head.alias {
            self.known_aliases |= alias_bit(alias);
        }
        Ok(())
    }
}

/// Checks that the peer takes a packet with this remaining length.
#[inline]
pub(super) fn check_size(remaining: usize, maximum: u32) -> Result<(), Refused> {
    let size = (1 + varint_size(remaining) + remaining) as u64;
    if remaining > VARINT_MAXIMUM || size > u64::from(maximum) {
        return Err(Refused::TooLarge { size, maximum });
    }
    Ok(())
}

/// Appends a DISCONNECT that has no text.
pub(super) fn put_disconnect(version: Version, words: Disconnect<'_>, out: &mut Vec<u8>) {
    // Without a text no length can be too large.
    let _written = words.write(version, out);
}

const fn alias_bit(alias: u16) -> u64 {
    1 << (alias - 1)
}

/// Returns the first answer that a publish waits for; none at QoS 0.
const fn wait_of(qos: Qos) -> Option<Wait> {
    match qos {
        Qos::AtMostOnce => None,
        Qos::AtLeastOnce => Some(Wait::Puback),
        Qos::ExactlyOnce => Some(Wait::Pubrec),
    }
}
