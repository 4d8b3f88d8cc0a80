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
/// Messages that there is room for as long as none waits.
const SPARE_ROOM: usize = 64;

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
    /// Of the messages' own.
    bytes: usize,
}

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

    /// Bytes that all take that wait, and what finds them.
    pub(super) fn bytes(&self) -> usize {
        let of_ids = self.by_id.capacity() * size_of::<(u16, ExchangeKey)>();
        self.bytes + of_ids + self.messages.capacity() * Slab::<Message>::ENTRY_BYTES
    }

    /// Keeps no more than `most`, and gives memory back beyond twice as many; returns how many were
    /// given up.
    pub(super) fn keep(&mut self, most: usize) -> u32 {
        let before = self.len();
        if before <= most && self.messages.capacity() <= 2 * most {
            return 0;
        }
        let mut old = std::mem::take(self);
        while let Some((key, deadline)) = old.messages.first() {
            let message = old.messages.remove(key);
            if let Some(message) = message.filter(|_| old.len() < most) {
                self.wait(deadline, message);
            }
        }
        (before - self.len()) as u32
    }

    pub(super) fn deadline(&self) -> Option<Micros> {
        self.messages.first().map(|(_, deadline)| deadline)
    }

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
        self.wait(now + timeout, message);
    }

    fn wait(&mut self, deadline: Micros, message: Message) {
        let (id, bytes) = (message.id, message.bytes.capacity());
        if let Some(key) = self.messages.insert(deadline, message) {
            self.by_id.insert(id, key);
            self.bytes += bytes;
        }
    }

    /// The message was acknowledged or reset; none if none with this id waits.
    pub(super) fn answered(&mut self, id: u16) -> Option<u32> {
        let key = *self.by_id.get(&id)?;
        self.end(key).map(|message| message.ticket)
    }

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
        self.bytes -= bytes.capacity();
        if self.len() == 0 && self.messages.capacity() > SPARE_ROOM {
            (self.messages, self.by_id) = Default::default();
        }
        if self.spare.len() < SPARE_MAX && bytes.capacity() <= SPARE_BYTES {
            bytes.clear();
            self.spare.push(bytes);
        }
        Some(message)
    }
}
