//! Forwards messages of another protocol's sink to an MQTT subscriber at QoS 0.

use std::io::{Error, ErrorKind, Read, Result, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::packet::{self, Packet, Publish};

/// Most bytes of one read.
const READ_BYTES: usize = 4 * 1024;
/// Messages are written in pieces of about this size.
const FORWARD_BYTES: usize = 64 * 1024;

/// The first client that subscribes, whatever its filter; there may never be one.
#[derive(Debug, Default)]
pub struct Subscriber(OnceLock<Client>);

#[derive(Debug)]
struct Client {
    v5: bool,
    /// Two threads write to it: each a whole number of packets at a time.
    stream: Mutex<TcpStream>,
}

/// Messages on their way to the subscriber.
#[derive(Debug)]
pub struct Forward<'a> {
    to: &'a Subscriber,
    /// As on the wire.
    topic: &'a [u8],
    bytes: Vec<u8>,
}

impl Subscriber {
    /// Nobody yet.
    #[must_use]
    pub const fn new() -> Self {
        Self(OnceLock::new())
    }

    /// Takes clients one after the other, and answers each until it leaves or makes no sense.
    ///
    /// # Errors
    /// If the listener fails.
    pub fn attend(&self, listener: &TcpListener) -> Result<()> {
        loop {
            let (stream, _) = listener.accept()?;
            // A client that leaves is no fault of the target's.
            let _ = self.answer_all(stream);
        }
    }

    /// Builds the packet for the subscriber on this topic, with its length in front as on the wire.
    #[must_use]
    pub fn forward<'a>(&'a self, topic: &'a [u8]) -> Forward<'a> {
        let bytes = Vec::with_capacity(2 * FORWARD_BYTES);
        Forward {
            to: self,
            topic,
            bytes,
        }
    }

    fn answer_all(&self, mut stream: TcpStream) -> Result<()> {
        stream.set_nodelay(true)?;
        let (mut bytes, mut read, mut v5) = (Vec::new(), [0; READ_BYTES], false);
        loop {
            let got = stream.read(&mut read)?;
            if got == 0 {
                return Ok(());
            }
            bytes.extend_from_slice(&read[..got]);
            let mut used = 0;
            while let Some((packet, rest)) = packet::split(&bytes[used..]) {
                self.answer(packet, &mut v5, &stream)?;
                used = bytes.len() - rest.len();
            }
            bytes.drain(..used);
        }
    }

    fn answer(&self, packet: Packet<'_>, v5: &mut bool, stream: &TcpStream) -> Result<()> {
        match packet.head >> 4 {
            1 => {
                *v5 = packet::is_v5(packet.body);
                self.write(stream, packet::connack(*v5))
            }
            8 => {
                let mut granted = Vec::new();
                let malformed = || Error::from(ErrorKind::InvalidData);
                packet::suback(packet.body, *v5, &mut granted).ok_or_else(malformed)?;
                let kept = Mutex::new(stream.try_clone()?);
                // One who comes later hears nothing.
                let _ = self.0.set(Client {
                    v5: *v5,
                    stream: kept,
                });
                self.write(stream, &granted)
            }
            12 => self.write(stream, packet::PINGRESP),
            _ => Err(ErrorKind::ConnectionAborted.into()),
        }
    }

    /// Never in the midst of a message that goes on.
    fn write(&self, mut stream: &TcpStream, bytes: &[u8]) -> Result<()> {
        let _turn = self.0.get().map(Client::stream);
        stream.write_all(bytes)
    }
}

impl Client {
    fn stream(&self) -> std::sync::MutexGuard<'_, TcpStream> {
        self.stream.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Forward<'_> {
    /// Takes a message, if somebody has subscribed.
    pub fn push(&mut self, payload: &[u8]) {
        let Some(client) = self.to.0.get() else {
            return;
        };
        let message = Publish {
            topic: self.topic,
            id: &[],
            payload,
        };
        packet::forward(&message, client.v5, &mut self.bytes);
        if self.bytes.len() > FORWARD_BYTES {
            self.flush();
        }
    }

    /// Writes what it has; a subscriber that is gone gets nothing more.
    pub fn flush(&mut self) {
        if self.bytes.is_empty() {
            return;
        }
        if let Some(client) = self.to.0.get() {
            let _ = client.stream().write_all(&self.bytes);
        }
        self.bytes.clear();
    }
}
