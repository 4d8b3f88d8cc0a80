//! Confirmable messages of a server: sent again until they are acknowledged (RFC 7252 section 4.2).

use muster_model::Micros;
use rustc_hash::FxHashMap;

use crate::coap::settings::Random;
use crate::coap::slab::Slab;
use crate::coap::{ExchangeKey, Transmission};

/// Buffers that are kept for later messages.
const SPARE_MAX: usize = 4;
/// Bytes of the longest buffer that is.
const SPARE_BYTES: usize = 2_048;

/// One message that waits.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) id: u16,
    pub(super) ticket: u32,
    retries: u8,
    timeout: Micros,
    bytes: Vec<u8>,
}

/// All that wait, of one peer.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    messages: Slab<Message>,
    by_id: FxHashMap<u16, ExchangeKey>,
    spare: Vec<Vec<u8>>,
}

/// What is due.
#[derive(Debug)]
pub(super) enum Due {
    /// A copy, which was appended.
    Copy,
    /// The end: nobody acknowledged it.
    Over(Message),
}

impl Waiting {
    pub(super) fn len(&self) -> usize {
        self.messages.len()
    }

    pub(super) fn deadline(&self) -> Option<Micros> {
        self.messages.first().map(|(_, deadline)| deadline)
    }

    /// A message was sent.
    pub(super) fn sent(
        &mut self,
        now: Micros,
        (id, ticket): (u16, u32),
        datagram: &[u8],
        (transmission, random): (&Transmission, &mut Random),
    ) {
        let timeout = transmission.first_timeout(random.draw());
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.extend_from_slice(datagram);
        let message = Message {
            id,
            ticket,
            retries: 0,
            timeout,
            bytes,
        };
        if let Some(key) = self.messages.insert(now + timeout, message) {
            self.by_id.insert(id, key);
        }
    }

    /// Whether the message with this id still waits.
    pub(super) fn has(&self, id: u16) -> bool {
        self.by_id.contains_key(&id)
    }

    /// The message was acknowledged or reset; none if none with this id waits.
    pub(super) fn answered(&mut self, id: u16) -> Option<u32> {
        let key = *self.by_id.get(&id)?;
        self.end(key).map(|message| message.ticket)
    }

    /// What is due now, of one message.
    pub(super) fn due(
        &mut self,
        now: Micros,
        transmission: &Transmission,
        out: &mut Vec<u8>,
    ) -> Option<Due> {
        let (key, deadline) = self.messages.first()?;
        if deadline > now {
            return None;
        }
        let message = self.messages.get_mut(key)?;
        if message.retries >= transmission.max_retransmit {
            return self.end(key).map(Due::Over);
        }
        message.retries += 1;
        message.timeout = message.timeout + message.timeout;
        out.extend_from_slice(&message.bytes);
        let next = now + message.timeout;
        self.messages.set_deadline(key, next);
        Some(Due::Copy)
    }

    fn end(&mut self, key: ExchangeKey) -> Option<Message> {
        let mut message = self.messages.remove(key)?;
        self.by_id.remove(&message.id);
        let mut bytes = std::mem::take(&mut message.bytes);
        if self.spare.len() < SPARE_MAX && bytes.capacity() <= SPARE_BYTES {
            bytes.clear();
            self.spare.push(bytes);
        }
        Some(message)
    }
}
